#include "target/shared_memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/file.h"

enum {
    DESCRIPTORS_TRIED = 64, /* the runtime opens the file when it starts */
    PARTS_MAX = 64,         /* into which a mapping may have been split since it was listed */
};

/* The kernel's struct procmap_query, which older headers lack. */
struct mapping_query {
    uint64_t size, flags, address;
    uint64_t begin, end, access, page_size, offset, inode;
    uint32_t device_major, device_minor;
    uint32_t name_size, build_id_size;
    uint64_t name, build_id;
};

enum { MAPPING_READABLE = 1, MAPPING_SHARED = 8 }; /* of `access` */

#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)

/* The mapping that has an address. */
static bool query(int maps, uint64_t address, struct mapping_query *ret)
{
    *ret = (struct mapping_query){.size = sizeof *ret, .address = address};
    return ioctl(maps, MAPPING_QUERY, ret) == 0;
}

bool shared_memory_is_mapped(const struct shared_memory *memory, int maps, uint64_t begin, uint64_t end,
                             uint64_t offset)
{
    struct mapping_query part = {.end = begin};
    for (int i = 0; i < PARTS_MAX && part.end < end; i++) {
        uint64_t at = part.end;
        if (!query(maps, at, &part) || part.inode != memory->inode || part.end <= at ||
            (part.access & (MAPPING_READABLE | MAPPING_SHARED)) != (MAPPING_READABLE | MAPPING_SHARED) ||
            makedev(part.device_major, part.device_minor) != memory->device ||
            part.offset + (at - part.begin) != offset + (at - begin))
            return false;
    }
    return part.end >= end;
}

bool shared_memory_is_path(const char *path)
{
    return strncmp(path, "/memfd:", strlen("/memfd:")) == 0;
}

/* Opens the file if one of the process's first file descriptors is of it, and stores its fstat(). -1 if not. */
static int open_of(int pid, uint64_t device, uint64_t inode, struct stat *ret)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int fd = -1;
    for (int i = 0; dir && fd < 0 && i < DESCRIPTORS_TRIED && (entry = readdir(dir)); i++) {
        char name[16] = ""; /* of a file on a network, or on FUSE, fstat() may wait for ever, and readlink() does not */
        if (readlinkat(dirfd(dir), entry->d_name, name, sizeof name - 1) < 0 || !shared_memory_is_path(name) ||
            fstatat(dirfd(dir), entry->d_name, ret, 0) < 0 || ret->st_dev != device || ret->st_ino != inode)
            continue;
        snprintf(path, sizeof path, "/proc/%d/fd/%.10s", pid, entry->d_name);
        fd = file_open(path, ret);
        if (fd >= 0 && (ret->st_dev != device || ret->st_ino != inode || !S_ISREG(ret->st_mode))) {
            close(fd); /* the descriptor is of another file by now */
            fd = -1;
        }
    }
    if (dir)
        closedir(dir);
    return fd;
}

void shared_memory_close(struct shared_memory *memory)
{
    if (memory->bytes)
        munmap((void *)(uintptr_t)memory->bytes, (size_t)memory->size);
    *memory = (struct shared_memory){0};
}

void shared_memory_open(int pid, int maps, uint64_t device, uint64_t inode, struct shared_memory *ret)
{
    struct stat stat;
    struct mapping_query part;
    *ret = (struct shared_memory){0};
    if (!query(maps, 0, &part) && errno != ENOENT) /* nothing is mapped there */
        return;
    CLEANUP_CLOSE int fd = open_of(pid, device, inode, &stat);
    if (fd < 0 || stat.st_size <= 0 || (uint64_t)stat.st_size > SIZE_MAX / 2)
        return;
    size_t size = (size_t)stat.st_size;
    void *bytes = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return;
    *ret = (struct shared_memory){bytes, size, device, inode};
    (void)madvise(bytes, size, MADV_DONTDUMP);
    (void)madvise(bytes, size, MADV_DONTFORK);
    (void)munlock(bytes, size); /* a program that locks all its memory (mlockall) must not fill the holes of the file */
    if (mprotect(bytes, size, PROT_READ) < 0)
        shared_memory_close(ret);
}
