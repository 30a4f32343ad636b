#include "util/file_system.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "util/file.h"
#include "tests/support/check_main.h"

static enum file_system_kind kind_of(const char *type)
{
    return file_system_kind_of(type, strlen(type));
}

START_TEST(knows_types)
{
    static const char *const local[] = {"ext4", "xfs", "btrfs", "tmpfs", "zfs", "vfat", "squashfs", "erofs", "proc"};
    static const char *const far[] = {"fuse", "fuse.sshfs", "fuseblk",   "nfs",        "nfs4",     "cifs",
                                      "9p",   "virtiofs",   "autofs",    "ceph",       "ecryptfs", "",
                                      "ext",  "ext44",      "overlayfs", "of tomorrow"};
    for (size_t i = 0; i < ARRAY_SIZE(local); i++)
        ck_assert_msg(kind_of(local[i]) == FILE_SYSTEM_LOCAL, "%s", local[i]);
    for (size_t i = 0; i < ARRAY_SIZE(far); i++)
        ck_assert_msg(kind_of(far[i]) == FILE_SYSTEM_FAR, "%s", far[i]);
    ck_assert_int_eq(kind_of("overlay"), FILE_SYSTEM_OVERLAY);
    ck_assert_int_eq(file_system_kind_of("ext4 /dev/sda1", 4), FILE_SYSTEM_LOCAL);
}
END_TEST

START_TEST(reads_lines_of_mounts)
{
    const char *text = "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                       "no line\n"
                       "27 1 254:3 / / rw shared:1 master:2 - ext4 /dev/vda rw\n"
                       "28 x 0:5 / /mnt rw - tmpfs none rw\n" /* no number */
                       "99 27 0:50 /a\\040-\\040b /c\\040-\\040d rw,nosuid - fuse.x - rw,user_id=0\n"
                       "100 27 0:51 / /e rw\n"
                       "101 27 0:52 / /f rw - xfs";
    struct file_system_mount mount;
    ck_assert(file_system_next_mount(&text, &mount));
    ck_assert_uint_eq(mount.id, 22);
    ck_assert_uint_eq(mount.device, makedev(0, 21));
    ck_assert(mount.type_length == 4 && !memcmp(mount.type, "proc", 4));
    ck_assert(file_system_next_mount(&text, &mount));
    ck_assert_uint_eq(mount.id, 27);
    ck_assert_uint_eq(mount.device, makedev(254, 3));
    ck_assert(mount.type_length == 4 && !memcmp(mount.type, "ext4", 4));
    ck_assert(file_system_next_mount(&text, &mount) && mount.id == 99);
    ck_assert(mount.type_length == 6 && !memcmp(mount.type, "fuse.x", 6));
    ck_assert(file_system_next_mount(&text, &mount) && mount.id == 101); /* the line before has no type */
    ck_assert(mount.type_length == 3 && !memcmp(mount.type, "xfs", 3));
    ck_assert(!file_system_next_mount(&text, &mount));
}
END_TEST

/* A user may mount as often in a namespace of his own. */
START_TEST(reads_many_mounts_once)
{
#ifdef CDACQ_SANITIZED /* which looks for the end of the text in each call of the C library */
    const int count = 1000;
#else
    const int count = rounds(100 * 1000, 1000);
#endif
    static const char line[] = "22 1 0:21 / /proc/some/place rw,nosuid shared:3 - proc proc rw\n";
    char *text = malloc((size_t)count * strlen(line) + 1), *end = text;
    struct file_system_mount mount;
    for (int i = 0; i < count; i++)
        end = stpcpy(end, line);
    const char *at = text;
    double start = cpu_seconds();
    for (int i = 0; i < count; i++)
        ck_assert(file_system_next_mount(&at, &mount) && mount.id == 22);
    ck_assert(!file_system_next_mount(&at, &mount));
    ck_assert_msg(cpu_seconds() - start < time_bound(2), "%g s", cpu_seconds() - start);
    free(text);
}
END_TEST

static bool is_local(const char *path)
{
    CLEANUP_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s", path);
    return file_system_is_local(fd, 0);
}

START_TEST(looks_at_this_machine)
{
    struct stat st, looked;
    CLEANUP_CLOSE int own = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    ck_assert(is_local("/") && is_local("/proc") && is_local("/dev"));
    ck_assert(!file_system_is_local(-1, 0));
    ck_assert(fstat(own, &st) == 0);
    if (!file_system_look(own, &looked)) /* without statx */
        return;
    ck_assert(looked.st_dev == st.st_dev && looked.st_ino == st.st_ino && looked.st_mode == st.st_mode);
    ck_assert(looked.st_uid == st.st_uid && looked.st_gid == st.st_gid && looked.st_size == st.st_size);
    ck_assert(looked.st_ctim.tv_sec == st.st_ctim.tv_sec && looked.st_ctim.tv_nsec == st.st_ctim.tv_nsec);
    ck_assert(looked.st_mtim.tv_sec == st.st_mtim.tv_sec);
}
END_TEST

/* What is on no mount: a file in memory is local by its device; a pipe is on a file system of its own. */
START_TEST(looks_at_devices)
{
    struct stat st;
    int ends[2];
    CLEANUP_CLOSE int memory = file_in_memory("test");
    ck_assert(fstat(memory, &st) == 0);
    ck_assert(file_system_device_is_local(st.st_dev, getpid()));
    ck_assert(file_system_device_is_local(makedev(8, 1), getpid()));
    ck_assert(pipe(ends) == 0 && fstat(ends[0], &st) == 0);
    ck_assert(!file_system_device_is_local(st.st_dev, getpid()));
    ck_assert(!file_system_is_local(ends[0], 0));
    close(ends[0]);
    close(ends[1]);
    ck_assert(stat("/proc", &st) == 0);
    ck_assert(file_system_device_is_local(st.st_dev, getpid()));
}
END_TEST

static Suite *file_system_suite(void)
{
    Suite *suite = suite_create("file_system");
    TCase *tcase = tcase_create("local or far");
    tcase_add_test(tcase, knows_types);
    tcase_add_test(tcase, reads_lines_of_mounts);
    tcase_add_test(tcase, reads_many_mounts_once);
    tcase_add_test(tcase, looks_at_this_machine);
    tcase_add_test(tcase, looks_at_devices);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(file_system_suite)
