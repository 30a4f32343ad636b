#include "util/file_system.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "util/file.h"
#include "util/proc_file.h"

enum {
    MOUNTS_MAX = 64 << 20, /* bytes of mountinfo; the kernel allows 100,000 mounts by default */
    INFO_ROOM = 1024,
};

/* ---- statx(2), since Linux 4.11 ---- */

struct moment {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t reserved;
};

/* The kernel's struct statx, which older headers lack, or know without the number of the mount (since Linux 5.8). */
struct look {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, user, group;
    uint16_t mode, reserved;
    uint64_t inode, size, blocks, attributes_mask;
    struct moment accessed, created, changed, modified;
    uint32_t special_major, special_minor, device_major, device_minor;
    uint64_t mount;
    uint64_t more[13];
};

enum { BASIC = 0x7ff, MOUNT = 0x1000 };            /* of the mask */
enum { NO_AUTOMOUNT = 0x800, DONT_SYNC = 0x4000 }; /* of the flags */
_Static_assert(sizeof(struct look) == 256, "as the kernel has it");

static bool look_at(int fd, const char *path, struct look *ret)
{
    unsigned flags = NO_AUTOMOUNT | DONT_SYNC | (path[0] ? 0 : AT_EMPTY_PATH);
    *ret = (struct look){0};
#ifdef SYS_statx
    return syscall(SYS_statx, fd, path, flags, BASIC | MOUNT, ret) == 0;
#else
    (void)fd;
    (void)flags;
    return false;
#endif
}

static uint64_t device_of(const struct look *look)
{
    return makedev(look->device_major, look->device_minor);
}

bool file_system_look(int fd, struct stat *ret)
{
    struct look look;
    if (!look_at(fd, "", &look))
        return false;
    *ret = (struct stat){
        .st_mode = look.mode,
        .st_uid = look.user,
        .st_gid = look.group,
        .st_dev = device_of(&look),
        .st_ino = look.inode,
        .st_size = (off_t)look.size,
        .st_nlink = look.links,
        .st_mtim = {.tv_sec = look.modified.seconds, .tv_nsec = look.modified.nanoseconds},
        .st_ctim = {.tv_sec = look.changed.seconds, .tv_nsec = look.changed.nanoseconds},
    };
    return true;
}

/* ---- Mounts ---- */

/* Sorted by where their contents are: in memory, on a disk, in the kernel. */
static const char local[][12] = {
    "tmpfs",    "ramfs",    "rootfs",     "devtmpfs", "hugetlbfs", /* */
    "ext2",     "ext3",     "ext4",       "xfs",      "btrfs",     "zfs",     "bcachefs", "f2fs",    "jfs", "reiserfs",
    "nilfs2",   "vfat",     "msdos",      "exfat",    "ntfs",      "ntfs3",   "hfs",      "hfsplus", "udf", "iso9660",
    "squashfs", "erofs",    "cramfs",     "romfs",    "ubifs",     "jffs2",   "minix",    "ufs", /* */
    "proc",     "sysfs",    "devpts",     "mqueue",   "cgroup",    "cgroup2", "debugfs",  "tracefs", "bpf", "pstore",
    "configfs", "efivarfs", "securityfs",
};

enum file_system_kind file_system_kind_of(const char *type, size_t length)
{
    if (length == strlen("overlay") && !memcmp(type, "overlay", length))
        return FILE_SYSTEM_OVERLAY;
    for (size_t i = 0; i < ARRAY_SIZE(local); i++)
        if (strlen(local[i]) == length && !memcmp(local[i], type, length))
            return FILE_SYSTEM_LOCAL;
    return FILE_SYSTEM_FAR;
}

/* A line is "id parent major:minor root place options optional-fields - type source options". */
bool file_system_next_mount(const char **text, struct file_system_mount *ret)
{
    while (**text) {
        const char *line = *text, *end = line + strcspn(line, "\n");
        char numbers[80]; /* sscanf reads all that is before a NUL: of many mounts, that would be read for each */
        unsigned major, minor;
        *text = end + (*end != '\0');
        snprintf(numbers, sizeof numbers, "%.*s", (int)MIN((size_t)(end - line), sizeof numbers - 1), line);
        const char *type = memmem(line, (size_t)(end - line), " - ", strlen(" - ")); /* spaces in names are escaped */
        if (!type || sscanf(numbers, "%" SCNu64 " %*u %u:%u ", &ret->id, &major, &minor) != 3)
            continue;
        ret->device = makedev(major, minor);
        ret->type = type + strlen(" - ");
        ret->type_length = strcspn(ret->type, " \n");
        return true;
    }
    return false;
}

/* Whether what is mounted for a process was mounted by one who has the same rights in this program's namespace. */
static bool is_of_own_namespace(int pid)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    CLEANUP_CLOSE int here = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    CLEANUP_CLOSE int there = open(path, O_RDONLY | O_CLOEXEC);
    return here >= 0 && there >= 0 && fstat(here, &own) == 0 && fstat(there, &other) == 0 && own.st_ino == other.st_ino;
}

/* The mount with the number `id`; 0: the first one of the device. */
static bool find_mount(const char *text, uint64_t id, uint64_t device, struct file_system_mount *ret)
{
    while (file_system_next_mount(&text, ret))
        if (id ? ret->id == id : ret->device == device)
            return true;
    return false;
}

static bool is_local_mount(int pid, uint64_t id, uint64_t device)
{
    struct file_system_mount mount;
    size_t length;
    CLEANUP_CLOSE int fd = pid ? proc_file_open(pid, "mountinfo") : open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    CLEANUP_FREE char *text = fd < 0 ? NULL : file_read_all(fd, MOUNTS_MAX, &length);
    if (!text || !find_mount(text, id, device, &mount))
        return false;
    enum file_system_kind kind = file_system_kind_of(mount.type, mount.type_length);
    return kind == FILE_SYSTEM_LOCAL || (kind == FILE_SYSTEM_OVERLAY && (!pid || is_of_own_namespace(pid)));
}

/* The number of the mount of an open file, where statx() does not say it. 0: it is not known. */
static uint64_t mount_of(int fd)
{
    char name[64], text[INFO_ROOM];
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    CLEANUP_CLOSE int info = open(name, O_RDONLY | O_CLOEXEC);
    size_t n = info < 0 ? 0 : file_read_at(info, 0, text, sizeof text - 1);
    text[n] = '\0';
    const char *number = strstr(text, "mnt_id:");
    return number ? strtoull(number + strlen("mnt_id:"), NULL, 10) : 0;
}

bool file_system_is_local(int fd, int pid)
{
    struct look look, root;
    if (look_at(fd, "", &look) && look.device_major) /* a disk */
        return true;
    uint64_t id = look.mask & MOUNT ? look.mount : mount_of(fd);
    if (!id)
        return false;
    if (look_at(AT_FDCWD, "/", &root) && root.mask & MOUNT && root.mount == id)
        return true;
    return is_local_mount(pid, id, 0);
}

/* The device of memory that programs share. No mount of it is listed. */
static uint64_t memory_device(void)
{
    static _Atomic uint64_t known;
    struct stat st;
    uint64_t device = atomic_load_explicit(&known, memory_order_relaxed);
    if (device)
        return device;
    CLEANUP_CLOSE int fd = file_in_memory("cdacq");
    if (fd < 0 || fstat(fd, &st) < 0)
        return 0;
    atomic_store_explicit(&known, st.st_dev, memory_order_relaxed);
    return st.st_dev;
}

bool file_system_device_is_local(uint64_t device, int pid)
{
    struct look root;
    if (major(device) || device == memory_device() || (look_at(AT_FDCWD, "/", &root) && device_of(&root) == device))
        return true;
    return is_local_mount(0, 0, device) || is_local_mount(pid, 0, device);
}
