#include "src/cli/commands/written_core.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/console.h"
#include "src/cli/base/watchdog.h"
#include "util/file.h"

/* Whether a file that is not there yet can be created. False with errno set. */
static bool can_create(const char *path)
{
    struct stat link;
    struct new_file file;
    sigset_t before;
    if (lstat(path, &link) == 0) /* to where the file will be */
        return true;
    watchdog_block_ends(&before);
    bool can = file_create_beside(path, 0600, &file);
    if (can)
        file_abandon(&file);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return can;
}

/* Says at once what the library would find only after all questions were asked. */
bool written_core_check(const char *path)
{
    struct stat st;
    bool can = true;
    if (stat(path, &st) < 0)
        can = errno == ENOENT && can_create(path);
    else if (S_ISREG(st.st_mode))
        can = access(path, W_OK) == 0;
    else if (S_ISDIR(st.st_mode)) {
        can = false;
        errno = EISDIR;
    }
    if (!can)
        message("cannot write '%s': %s", path, strerror(errno));
    return can;
}

bool written_core_begin(const char *path, sigset_t *ret)
{
    struct stat st;
    bool is_file = stat(path, &st) < 0 || S_ISREG(st.st_mode); /* a pipe may have to wait for its reader */
    if (is_file)
        watchdog_block_ends(ret);
    return is_file;
}

void written_core_end(bool is_held, const sigset_t *before)
{
    if (is_held)
        sigprocmask(SIG_SETMASK, before, NULL);
}
