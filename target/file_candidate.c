#include "target/file_candidate.h"

#include <errno.h>
#include <sys/mman.h>

#include "util/file.h"

enum { FILE_READ_MAX = 1 << 30 };

/* Reads the whole file, or what is left of one that was truncated meanwhile. */
static bool candidate_read(struct file_candidate *candidate, int fd, uint64_t size)
{
    if (size > FILE_READ_MAX) {
        errno = EFBIG;
        return false;
    }
    CLEANUP_FREE uint8_t *bytes = malloc((size_t)size);
    if (!bytes)
        return false;
    size_t done = file_read_at(fd, 0, bytes, (size_t)size);
    if (!done) {
        errno = EINVAL;
        return false;
    }
    candidate->size = done;
    candidate->bytes = candidate->owned = take_ptr(bytes);
    return true;
}

static bool is_mapped(const struct stat *st, const void *context)
{
    const struct mapped_identity *mapped = context;
    return mapped && mapped->inode && mapped->inode == st->st_ino && mapped->device == st->st_dev;
}

static int open_candidate(const struct file_root *root, const char *path, const struct mapped_identity *mapped,
                          struct stat *ret)
{
    return root ? file_root_open_known(root, path, is_mapped, mapped, ret) : file_open_regular(path, ret);
}

bool file_candidate_open(struct file_candidate *candidate, const struct file_root *root, const char *path, bool pread,
                         const struct mapped_identity *mapped)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open_candidate(root, path, mapped, &st);
    if (fd < 0)
        return false;
    if (!S_ISREG(st.st_mode) || st.st_size <= 0) {
        errno = EINVAL;
        return false;
    }
    candidate->root = root;
    candidate->changed = st.st_ctim;
    candidate->device = st.st_dev;
    candidate->inode = st.st_ino;
    if ((uint64_t)st.st_size > SIZE_MAX / 2) { /* of a program of 32 bits */
        errno = EFBIG;
        return false;
    }
    if (pread)
        return candidate_read(candidate, fd, (uint64_t)st.st_size);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    candidate->bytes = bytes;
    candidate->size = (uint64_t)st.st_size;
    return true;
}

int file_candidate_reopen(const struct file_candidate *candidate, const char *path, struct stat *ret)
{
    const struct mapped_identity same = {candidate->device, candidate->inode};
    CLEANUP_CLOSE int fd =
        open_candidate(candidate->root, path + (candidate->root ? strlen(candidate->root->name) : 0), &same, ret);
    if (fd < 0)
        return -1;
    if (!is_mapped(ret, &same) || ret->st_ctim.tv_sec != candidate->changed.tv_sec ||
        ret->st_ctim.tv_nsec != candidate->changed.tv_nsec) {
        errno = ESTALE;
        return -1;
    }
    int opened = fd;
    fd = -1;
    return opened;
}

void file_candidate_close(struct file_candidate *candidate)
{
    if (candidate->bytes && !candidate->owned)
        munmap((void *)(uintptr_t)candidate->bytes, candidate->size);
    free(candidate->owned);
    candidate->bytes = candidate->owned = NULL;
    file_extents_deinit(&candidate->constant);
}

void file_candidate_add_constant(struct file_candidate *candidate, uint64_t begin, uint64_t end, unsigned access)
{
    end = MIN(end, candidate->size);
    if (begin < end && candidate->constant.count < FILE_EXTENT_MAX)
        (void)file_extents_append(&candidate->constant, (struct file_extent){begin, end, access});
}

void file_candidate_release_pages(const struct file_candidate *candidate)
{
    if (candidate->bytes && !candidate->owned)
        (void)madvise((void *)(uintptr_t)candidate->bytes, (size_t)candidate->size, MADV_DONTNEED);
}
