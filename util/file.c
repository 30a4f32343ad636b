#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/vector.h"

enum { READ_SIZE = 64 * 1024 };

DEFINE_VECTOR(buffer, char);

int file_open(const char *path, struct stat *ret)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret) < 0)
        return -1;
    int opened = fd;
    fd = -1;
    return opened;
}

size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size)
{
    size_t done = 0;
    errno = 0;
    while (done < size && offset + done <= INT64_MAX) {
        ssize_t n = pread(fd, (uint8_t *)buffer + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return done;
        if (n == 0)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    errno = 0;
    return done;
}

uint64_t file_find_data(int fd, uint64_t offset)
{
    off_t data = offset <= INT64_MAX ? lseek(fd, (off_t)offset, SEEK_DATA) : -1;
    return data >= 0 ? (uint64_t)data : errno == ENXIO ? UINT64_MAX : offset;
}

/* The bytes of a hole that a file still has at `offset`, at most `size`. */
static size_t pass_hole(int fd, uint64_t offset, uint64_t data, size_t size)
{
    struct stat st;
    uint64_t end = fstat(fd, &st) == 0 ? MIN(data, (uint64_t)st.st_size) : offset;
    return end > offset ? (size_t)MIN(end - offset, (uint64_t)size) : 0;
}

size_t file_read_sparse_at(int fd, uint64_t offset, void *zeroed, size_t size)
{
    size_t done = 0;
    for (;;) {
        uint64_t at = offset + done, data = file_find_data(fd, at);
        if (data > at)
            done += pass_hole(fd, at, data, size - done);
        errno = 0;
        if (done == size || data == UINT64_MAX)
            return done;
        at = offset + done;
        off_t hole = lseek(fd, (off_t)at, SEEK_HOLE);
        size_t wanted = hole > (off_t)at ? (size_t)MIN((uint64_t)hole - at, (uint64_t)(size - done)) : size - done;
        size_t n = file_read_at(fd, at, (uint8_t *)zeroed + done, wanted);
        done += n;
        if (n < wanted || done == size)
            return done;
    }
}

size_t file_read_text(int folder, const char *path, char *ret, size_t size)
{
    CLEANUP_CLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    size_t n = fd < 0 ? 0 : file_read_at(fd, 0, ret, size - 1);
    ret[n] = '\0';
    return n;
}

char *file_read_all(int fd, size_t most, size_t *ret_length)
{
    struct buffer text = {0};
    for (;;) {
        if (!buffer_reserve(&text, text.count + READ_SIZE)) {
            errno = ENOMEM;
            break;
        }
        ssize_t n = pread(fd, text.items + text.count, text.capacity - text.count - 1, (off_t)text.count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0) {
            text.items[text.count] = '\0';
            *ret_length = text.count;
            return text.items;
        }
        if (n < 0)
            break;
        text.count += (size_t)n;
        if (text.count > most) {
            errno = EFBIG;
            break;
        }
    }
    int saved = errno;
    buffer_deinit(&text);
    errno = saved;
    return NULL;
}

/* ---- Replacing a file ------------------------------------------------------------------------------------------- */

static void new_file_deinit(struct new_file *file)
{
    int saved = errno;
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file->temporary);
    *file = (struct new_file){.fd = -1};
    errno = saved;
}

/* The length of the folder part of a path, with its last slash. */
static int folder_length(const char *path)
{
    return (int)(path_basename(path) - path);
}

/*
 * Tries temporary names, until `make` makes the file of one or fails for another reason than that there is one. The
 * names are short: that of the file itself may be as long as names can be.
 */
static bool name_temporarily(struct new_file *file, bool (*make)(struct new_file *file, unsigned mode), unsigned mode)
{
    for (unsigned i = 0; i < 100; i++) {
        if (asprintf(&file->temporary, "%.*s.cdacq-part-%d-%u", folder_length(file->path), file->path, (int)getpid(),
                     i) < 0) {
            file->temporary = NULL;
            errno = ENOMEM;
            return false;
        }
        if (make(file, mode))
            return true;
        free(file->temporary);
        file->temporary = NULL;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool create_temporary(struct new_file *file, unsigned mode)
{
    file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return file->fd >= 0;
}

enum { LINK_SIZE = 64 };

/* The path by which an open file gets a name. */
static void format_link(int fd, char ret[LINK_SIZE])
{
    snprintf(ret, LINK_SIZE, "/proc/self/fd/%d", fd);
}

/* Gives a file without a name a temporary one. */
static bool link_temporary(struct new_file *file, unsigned mode)
{
    char link[LINK_SIZE];
    (void)mode;
    format_link(file->fd, link);
    return linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) == 0;
}

/* Whether a file without a name can get one later: not without /proc. */
static bool can_get_name(int fd)
{
    char link[LINK_SIZE];
    format_link(fd, link);
    return access(link, F_OK) == 0;
}

/* A file without a name in the folder of the file, or one with a temporary name. */
static bool create_beside(struct new_file *file, unsigned mode)
{
    char folder[4096];
    int length = folder_length(file->path);
    if (snprintf(folder, sizeof folder, "%.*s", length ? length : 2, length ? file->path : "./") >= (int)sizeof folder)
        return false;
    file->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (file->fd >= 0 && can_get_name(file->fd))
        return true;
    if (file->fd >= 0)
        close(file->fd);
    return name_temporarily(file, create_temporary, mode);
}

bool file_create_beside(const char *path, unsigned mode, struct new_file *ret)
{
    struct stat st;
    *ret = (struct new_file){.fd = -1};
    bool exists = stat(path, &st) == 0, is_new = !exists && errno == ENOENT && lstat(path, &st) < 0;
    if (is_new || (exists && S_ISREG(st.st_mode) && access(path, W_OK) == 0)) {
        unsigned wanted = exists ? mode & st.st_mode : mode;
        ret->path = is_new ? strdup(path) : realpath(path, NULL);
        if (ret->path && create_beside(ret, wanted) && (!exists || fchmod(ret->fd, wanted) == 0))
            return true;
        if (ret->temporary)
            unlink(ret->temporary);
        new_file_deinit(ret);
    }
    return false;
}

bool file_create_directly(const char *path, unsigned mode, struct new_file *ret)
{
    *ret = (struct new_file){.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, mode)};
    return ret->fd >= 0;
}

bool file_create(const char *path, unsigned mode, struct new_file *ret)
{
    /* The folder may not be writable. */
    return file_create_beside(path, mode, ret) || file_create_directly(path, mode, ret);
}

bool file_commit(struct new_file *file)
{
    bool placed = !file->path || file->temporary || name_temporarily(file, link_temporary, 0);
    int fd = file->fd;
    file->fd = -1;
    /* Some file systems report only here that the disk is full: it must be known before the old file is replaced. */
    placed = close(fd) == 0 && placed;
    placed = placed && (!file->path || rename(file->temporary, file->path) == 0);
    if (!placed && file->temporary) {
        int saved = errno;
        unlink(file->temporary);
        errno = saved;
    }
    new_file_deinit(file);
    return placed;
}

void file_abandon(struct new_file *file)
{
    if (file->temporary)
        unlink(file->temporary);
    new_file_deinit(file);
}
