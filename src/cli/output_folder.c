#include "src/cli/output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/console.h"
#include "src/cli/watchdog.h"

/*
 * Whether a folder is that of the machine's own files, which must not be replaced. The root is its own parent; the path
 * "/" is another folder under qemu-user.
 */
static bool is_root(int folder)
{
    struct stat st, above;
    return fstat(folder, &st) == 0 && fstatat(folder, "..", &above, 0) == 0 && st.st_dev == above.st_dev &&
           st.st_ino == above.st_ino;
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

void output_folder_close(struct output_folder *folder)
{
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

int output_folder_of(struct output_folder *folder, const char *path, const char **ret_name)
{
    int fd = folder->error ? -1 : dup(folder->fd);
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
    *ret_name = at;
    return fd;
}

bool folder_file_begin(struct output_folder *folder, int in, const char *path, const char *name,
                       struct folder_file *ret)
{
    enum { PARTS_MAX = 1000 }; /* of one pid: those of other machines and containers, and of killed runs */
    int fd = -1;
    *ret = (struct folder_file){.path = path, .name = name, .folder = in};
    sigset_t before;
    watchdog_block_ends(&before);
    errno = EEXIST;
    for (unsigned i = 0; fd < 0 && errno == EEXIST && i < PARTS_MAX; i++) {
        snprintf(ret->part, sizeof ret->part, ".cdacq-part-%d-%u", (int)getpid(), i);
        fd = openat(in, ret->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    int saved = errno;
    if (fd >= 0)
        watchdog_remove(in, ret->part);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
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
