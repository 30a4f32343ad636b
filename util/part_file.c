#include "util/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "util/same_file.h"

enum {
    PARTS_MAX = 1000, /* in a folder at once */
    GAP_MAX = 4,      /* numbers without a file after which no further one is looked for */
};

/* The names are short: that of the file itself may be as long as names can be. */
static void format_name(unsigned i, char ret[PART_NAME_SIZE])
{
    snprintf(ret, PART_NAME_SIZE, ".cdacq-part-%u-%u", (unsigned)geteuid(), i);
}

enum named { IS_NAMED, IS_NOT_NAMED, NOT_KNOWN };

/* Whether the file still has the name: another run may have taken it for one that was left, before it was locked. */
static enum named find_name(int fd, int folder, const char *name)
{
    struct stat own, named;
    if (fstat(fd, &own) < 0)
        return NOT_KNOWN;
    if (fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? IS_NOT_NAMED : NOT_KNOWN;
    return is_same_file(&own, &named) ? IS_NAMED : IS_NOT_NAMED;
}

void part_file_lock(int fd)
{
    (void)flock(fd, LOCK_EX | LOCK_NB); /* some file systems have no locks: nothing is removed there */
}

int part_file_create(int folder, unsigned mode, char ret_name[PART_NAME_SIZE])
{
    for (unsigned i = 0; i < PARTS_MAX; i++) {
        format_name(i, ret_name);
        int fd = openat(folder, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd < 0)
            continue;
        bool is_removed = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        enum named named = is_removed ? IS_NOT_NAMED : find_name(fd, folder, ret_name);
        if (named == IS_NAMED)
            return fd;
        int saved = errno;
        close(fd);
        if (named == NOT_KNOWN) {
            (void)unlinkat(folder, ret_name, 0);
            errno = saved;
            return -1;
        }
    }
    errno = EEXIST;
    return -1;
}

bool part_file_link(int fd, int folder, char ret_name[PART_NAME_SIZE])
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    for (unsigned i = 0; i < PARTS_MAX; i++) {
        format_name(i, ret_name);
        if (linkat(AT_FDCWD, self, folder, ret_name, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    ret_name[0] = '\0';
    return false;
}

/* Removes a file of this user that nobody holds. */
static void remove_left(int folder, const char *name)
{
    CLEANUP_CLOSE int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && find_name(fd, folder, name) == IS_NAMED)
        (void)unlinkat(folder, name, 0);
}

void part_files_clean(int folder)
{
    char name[PART_NAME_SIZE];
    struct stat st;
    int saved = errno;
    for (unsigned i = 0, gap = 0; i < PARTS_MAX && gap < GAP_MAX; i++) {
        format_name(i, name);
        bool exists = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        gap = exists ? 0 : gap + 1;
        if (exists && S_ISREG(st.st_mode) && st.st_uid == geteuid())
            remove_left(folder, name);
    }
    errno = saved;
}
