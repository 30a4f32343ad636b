#include "target/shared_memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/file.h"
#include "target/proc_maps.h"

enum {
    DESCRIPTORS_TRIED = 64, /* the runtime opens the file when it starts */
    PARTS_MAX = 64,         /* into which a mapping may have been split since it was listed */
};

bool shared_memory_is_mapped(const struct shared_memory *memory, int maps, uint64_t begin, uint64_t end,
                             uint64_t offset)
{
    struct proc_map part = {.end = begin};
    for (int i = 0; i < PARTS_MAX && part.end < end; i++) {
        uint64_t at = part.end;
        if (!proc_maps_at(maps, at, &part) || part.inode != memory->inode || part.device != memory->device ||
            part.end <= at || !part.readable || !part.shared ||
            part.offset + (at - part.begin) != offset + (at - begin))
            return false;
    }
    return part.end >= end;
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
        if (readlinkat(dirfd(dir), entry->d_name, name, sizeof name - 1) < 0 || !proc_maps_is_memfd(name) ||
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
    struct proc_map part;
    *ret = (struct shared_memory){0};
    if (!proc_maps_at(maps, 0, &part) && errno != ENOENT) /* nothing is mapped there */
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
    (void)munlock(bytes, size); /* a program that locks all its memory (mlockall) must not fill the holes of the file */
    if (mprotect(bytes, size, PROT_READ) < 0)
        shared_memory_close(ret);
}
