#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "util/same_file.h"
#include "util/vector.h"

enum {
    READ_SIZE = 64 * 1024,
    DESCRIPTORS_MAX = 1 << 20,
};

#ifndef SYS_close_range
#define SYS_close_range 436 /* of all machines; Linux 5.9 */
#endif

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

/* What lseek finds from `offset` on. */
static uint64_t find_from(int fd, uint64_t offset, int what)
{
    if (offset > INT64_MAX)
        return UINT64_MAX; /* no file is so large */
    off_t found = lseek(fd, (off_t)offset, what);
    return found >= 0 ? (uint64_t)found : errno == ENXIO ? UINT64_MAX : offset;
}

uint64_t file_find_data(int fd, uint64_t offset)
{
    return find_from(fd, offset, SEEK_DATA);
}

uint64_t file_find_hole(int fd, uint64_t offset)
{
    return find_from(fd, offset, SEEK_HOLE);
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
        uint64_t hole = file_find_hole(fd, at);
        size_t wanted = hole > at ? (size_t)MIN(hole - at, (uint64_t)(size - done)) : size - done;
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

void file_close_all_from(int first, int except)
{
    struct rlimit limit = {.rlim_cur = DESCRIPTORS_MAX};
    bool is_above = except >= first;
    if ((!is_above || except == first || syscall(SYS_close_range, first, except - 1, 0) == 0) &&
        syscall(SYS_close_range, is_above ? except + 1 : first, ~0U, 0) == 0)
        return;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd < (int)MIN(limit.rlim_cur, (rlim_t)DESCRIPTORS_MAX); fd++)
        if (fd != except)
            (void)close(fd);
}

static int create_in(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    /* The file system has no unnamed files. */
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/cdacq-XXXXXX", directory) >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

int file_create_temporary(const char **ret_directory)
{
    const char *given = getenv("TMPDIR");
    const char *const directories[] = {given && given[0] ? given : "/var/tmp", "/tmp"};
    size_t count = given && given[0] ? 1 : ARRAY_SIZE(directories);
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < count; i++) {
        *ret_directory = directories[i];
        fd = create_in(directories[i]);
    }
    return fd;
}

int file_in_memory(const char *label)
{
    return memfd_create(label, MFD_CLOEXEC);
}

/* ---- Replacing a file ------------------------------------------------------------------------------------------- */

static const struct new_file nothing = {.fd = -1, .folder = -1};

static void new_file_deinit(struct new_file *file)
{
    int saved = errno;
    const char *problem = file->problem;
    if (file->fd >= 0)
        close(file->fd);
    if (file->name && file->folder >= 0)
        close(file->folder);
    free(file->name);
    *file = nothing;
    file->problem = problem;
    errno = saved;
}

static bool refuse(struct new_file *file, const char *problem)
{
    file->problem = problem;
    errno = EPERM;
    return false;
}

/* Whether only this user, or root, can have made a file. */
static bool is_trusted(const struct stat *st)
{
    return st->st_uid == geteuid() || st->st_uid == 0;
}

/*
 * Finds what is at a path, or what a link there leads to, and opens nothing (O_PATH). -1 with errno set: ENOENT also if
 * a link leads to no file. *ret_is_link is set only then, and if there is something.
 */
static int find_old(const char *path, struct new_file *file, bool *ret_is_link, struct stat *ret)
{
    CLEANUP_CLOSE int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    *ret_is_link = false;
    if (place < 0 || fstat(place, ret) < 0)
        return -1;
    *ret_is_link = S_ISLNK(ret->st_mode);
    if (*ret_is_link && !is_trusted(ret)) {
        refuse(file, "it is a link of another user");
        return -1;
    }
    int found = *ret_is_link ? open(path, O_PATH | O_CLOEXEC) : place;
    if (found == place)
        place = -1;
    if (found >= 0 && fstat(found, ret) < 0) {
        close(found);
        return -1;
    }
    return found;
}

/* Opens the folder of a path, and keeps the name in it. */
static bool open_folder(const char *path, struct new_file *ret)
{
    size_t length = (size_t)(path_basename(path) - path); /* with the last slash */
    CLEANUP_FREE char *folder = length ? strndup(path, length) : strdup(".");
    ret->name = strdup(path + length);
    ret->folder = folder && ret->name ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder && ret->name && ret->folder < 0 && errno == EACCES) /* it may be written to */
        ret->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return ret->folder >= 0;
}

/* The path by which an open file gets a name, or is opened. */
enum { LINK_SIZE = 64 };

static void format_link(int fd, char ret[LINK_SIZE])
{
    snprintf(ret, LINK_SIZE, "/proc/self/fd/%d", fd);
}

/* Whether a file without a name can get one later: not without /proc. */
static bool can_get_name(int fd)
{
    char link[LINK_SIZE];
    format_link(fd, link);
    return access(link, F_OK) == 0;
}

/* A file without a name in the folder of the file, or one with a temporary name. */
static bool create_in_folder(struct new_file *file, unsigned mode)
{
    part_files_clean(file->folder);
    file->fd = openat(file->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (file->fd >= 0 && can_get_name(file->fd)) {
        part_file_lock(file->fd);
        return true;
    }
    if (file->fd >= 0)
        close(file->fd);
    file->fd = part_file_create(file->folder, mode, file->temporary);
    if (file->fd < 0)
        file->temporary[0] = '\0';
    return file->fd >= 0;
}

static void remove_temporary(const struct new_file *file)
{
    int saved = errno;
    if (file->temporary[0])
        (void)unlinkat(file->folder, file->temporary, 0);
    errno = saved;
}

bool file_create_beside(const char *path, unsigned mode, struct new_file *ret)
{
    struct stat st;
    bool is_link;
    *ret = nothing;
    CLEANUP_CLOSE int old = find_old(path, ret, &is_link, &st);
    bool is_new = old < 0 && errno == ENOENT && !is_link;
    if (!is_new && (old < 0 || !S_ISREG(st.st_mode) || access(path, W_OK) < 0))
        return false;
    bool is_own = !is_new && st.st_uid == geteuid();
    unsigned wanted = is_own ? mode & st.st_mode : mode;
    CLEANUP_FREE char *real = is_link ? realpath(path, NULL) : NULL;
    if ((!is_link || real) && open_folder(real ? real : path, ret) && create_in_folder(ret, wanted) &&
        (!is_own || fchmod(ret->fd, wanted) == 0))
        return true;
    remove_temporary(ret);
    new_file_deinit(ret);
    return false;
}

/* Whether a pipe has no name, as a shell makes them. */
static bool is_unnamed_pipe(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == 0x50495045; /* PIPEFS_MAGIC */
}

/* Whether an existing file may be written to. */
static bool may_write(struct new_file *file, int fd, const struct stat *st, unsigned mode)
{
    if (S_ISFIFO(st->st_mode))
        return is_trusted(st) || is_unnamed_pipe(fd) || refuse(file, "it is a pipe of another user");
    if (!S_ISREG(st->st_mode))
        return true;
    if (st->st_uid != geteuid())
        return refuse(file, "it belongs to another user");
    return !(st->st_mode & 0777 & ~mode) || refuse(file, "it exists, and others may read it or write to it");
}

bool file_create_directly(const char *path, unsigned mode, struct new_file *ret)
{
    struct stat st, opened;
    bool is_link;
    char link[LINK_SIZE];
    *ret = nothing;
    CLEANUP_CLOSE int old = find_old(path, ret, &is_link, &st);
    if (old < 0 && errno != ENOENT)
        return false;
    if (old < 0) {
        ret->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (is_link ? 0 : O_EXCL), mode);
        return ret->fd >= 0;
    }
    if (!may_write(ret, old, &st, mode))
        return false;
    format_link(old, link);
    ret->fd = open(link, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (ret->fd < 0 && errno == ENOENT) /* without /proc */
        ret->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    bool is_same = ret->fd >= 0 && fstat(ret->fd, &opened) == 0 && is_same_file(&opened, &st);
    if (is_same && (!S_ISREG(st.st_mode) || ftruncate(ret->fd, 0) == 0))
        return true;
    new_file_deinit(ret);
    return false;
}

bool file_create(const char *path, unsigned mode, struct new_file *ret)
{
    /* The folder may not be writable. */
    return file_create_beside(path, mode, ret) || file_create_directly(path, mode, ret);
}

bool file_place(struct new_file *file)
{
    if ((file->temporary[0] || part_file_link(file->fd, file->folder, file->temporary)) &&
        renameat(file->folder, file->temporary, file->folder, file->name) == 0) {
        close(file->folder);
        free(take_ptr(file->name));
        file->temporary[0] = '\0';
        return true;
    }
    file_abandon(file);
    return false;
}

bool file_commit(struct new_file *file)
{
    bool is_beside = file->name;
    bool placed = !is_beside || file->temporary[0] || part_file_link(file->fd, file->folder, file->temporary);
    int held = is_beside ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1; /* the lock, until it has its name */
    int fd = file->fd;
    file->fd = -1;
    /* Some file systems report only here that the disk is full: it must be known before the old file is replaced. */
    placed = close(fd) == 0 && placed;
    placed = placed && (!is_beside || renameat(file->folder, file->temporary, file->folder, file->name) == 0);
    if (!placed)
        remove_temporary(file);
    int saved = errno;
    if (held >= 0)
        close(held);
    errno = saved;
    new_file_deinit(file);
    return placed;
}

void file_abandon(struct new_file *file)
{
    remove_temporary(file);
    new_file_deinit(file);
}
