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

bool file_candidate_open(struct file_candidate *candidate, const char *path, bool pread)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0)
        return false;
    if (!S_ISREG(st.st_mode) || st.st_size <= 0) {
        errno = EINVAL;
        return false;
    }
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
