#include "src/cli/commands/output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/base/console.h"
#include "src/cli/base/watchdog.h"
#include "util/same_file.h"

/*
 * Whether a folder is that of the machine's own files, which must not be replaced. The root is its own parent; the path
 * "/" is another folder under qemu-user.
 */
static bool is_root(int folder)
{
    struct stat st, above;
    return fstat(folder, &st) == 0 && fstatat(folder, "..", &above, 0) == 0 && is_same_file(&st, &above);
}

bool output_folder_open(struct output_folder *folder, const char *path)
{
    *folder = (struct output_folder){.path = path, .fd = -1, .is_new = mkdir(path, 0777) == 0};
    if (!folder->is_new && errno != EEXIST) {
        message("cannot make '%s': %s", path, strerror(errno));
        return false;
    }
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0) {
        message("cannot open '%s': %s", path, strerror(errno));
        return false;
    }
    if (is_root(folder->fd)) {
        message("'%s' is the root directory, whose files would be replaced", path);
        output_folder_close(folder);
        return false;
    }
    return true;
}

static void forget_last(struct output_folder *folder)
{
    if (folder->last)
        close(folder->last_fd);
    free(folder->last);
    folder->last = NULL;
}

void output_folder_close(struct output_folder *folder)
{
    forget_last(folder);
    if (folder->fd >= 0)
        close(folder->fd);
    if (folder->is_new)
        (void)rmdir(folder->path); /* fails unless it is empty */
    folder->fd = -1;
}

bool output_folder_takes(const char *path)
{
    if (path[0] != '/' || !path[1] || path[strlen(path) - 1] == '/')
        return false;
    for (const char *at = path; at; at = strchr(at + 1, '/')) {
        size_t length = strcspn(at + 1, "/");
        if (!length || (length == 1 && at[1] == '.') || (length == 2 && at[1] == '.' && at[2] == '.'))
            return false;
    }
    return true;
}

/* Whether no other file can be written either. */
static bool concerns_all(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EROFS || error == EMFILE || error == ENFILE;
}

/* Keeps an open folder for the next file in it. */
static void keep_last(struct output_folder *folder, const char *path, size_t length, int fd)
{
    forget_last(folder);
    folder->last_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    folder->last = folder->last_fd >= 0 ? strndup(path, length) : NULL;
    if (!folder->last && folder->last_fd >= 0)
        close(folder->last_fd);
}

int output_folder_of(struct output_folder *folder, const char *path, const char **ret_name)
{
    const char *end = strrchr(path, '/');
    size_t above = end ? (size_t)(end - path) : 0;
    bool is_last = end && folder->last && strlen(folder->last) == above && memcmp(folder->last, path, above) == 0;
    int fd = is_last && !folder->error ? fcntl(folder->last_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd >= 0) {
        *ret_name = end + 1;
        return fd;
    }
    fd = folder->error ? -1 : dup(folder->fd);
    bool is_top = true, is_forbidden = false; /* to create files in the folder itself */
    const char *at = path;
    while (fd >= 0) {
        char name[NAME_MAX + 1];
        while (*at == '/')
            at++;
        const char *slash = strchr(at, '/');
        if (!slash)
            break;
        size_t length = (size_t)(slash - at);
        if (length > NAME_MAX)
            errno = ENAMETOOLONG;
        else
            snprintf(name, sizeof name, "%.*s", (int)length, at);
        int next = length > NAME_MAX || (mkdirat(fd, name, 0777) < 0 && errno != EEXIST)
                       ? -1
                       : openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        close(fd);
        errno = error;
        fd = next;
        at = slash;
        is_forbidden = is_top && fd < 0 && error == EACCES;
        is_top = false;
    }
    if (fd < 0 && !folder->error)
        output_folder_complain(folder, path);
    if (is_forbidden)
        folder->error = EACCES;
    if (fd >= 0) {
        part_files_clean(fd);
        keep_last(folder, path, above, fd);
    }
    *ret_name = at;
    return fd;
}

bool folder_file_begin(struct output_folder *folder, int in, const char *path, const char *name, unsigned mode,
                       struct folder_file *ret)
{
    *ret = (struct folder_file){.path = path, .name = name, .folder = in};
    sigset_t before;
    watchdog_block_ends(&before);
    int fd = part_file_create(in, mode, ret->part);
    int saved = errno;
    if (fd >= 0)
        watchdog_remove(in, ret->part);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    ret->held = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return output_folder_complain(folder, path);
    output_open_fd(&ret->out, fd, path);
    return true;
}

bool folder_file_end(struct output_folder *folder, struct folder_file *file, bool wanted)
{
    bool done = output_close(&file->out);
    if (concerns_all(file->out.error))
        folder->error = file->out.error;
    if (done && wanted)
        done = renameat(file->folder, file->part, file->folder, file->name) == 0 ||
               output_folder_complain(folder, file->path);
    if (!done || !wanted)
        (void)unlinkat(file->folder, file->part, 0);
    if (file->held >= 0)
        close(file->held);
    watchdog_remove(AT_FDCWD, NULL);
    return done;
}

bool output_folder_complain(struct output_folder *folder, const char *path)
{
    int error = errno;
    message("cannot write '%s' in '%s': %s", path, folder->path, strerror(error));
    if (concerns_all(error))
        folder->error = error;
    return false;
}
