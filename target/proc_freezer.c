#include "target/proc_freezer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/proc_file.h"

enum { GROUPS_MAX = 64 * 1024, STATE_MAX = 4096 };

/* Whether a file of a control group has a line. `path` begins with a slash. */
static bool has_line(const char *folder, const char *path, int length, const char *name, const char *line)
{
    char full[PATH_MAX], state[STATE_MAX];
    if (snprintf(full, sizeof full, "%s%.*s/%s", folder, length, path, name) >= (int)sizeof full)
        return false;
    (void)file_read_text(AT_FDCWD, full, state, sizeof state);
    for (const char *at = state; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, line, strlen(line)) == 0 && strchr("\n", at[strlen(line)]))
            return true;
    return false;
}

/* Whether a list of controllers, separated by commas, has the freezer. */
static bool has_freezer(const char *controllers, size_t length)
{
    static const char name[] = "freezer";
    for (size_t i = 0, n; i < length; i += n + 1) {
        n = strcspn(controllers + i, ",:");
        if (n == sizeof name - 1 && memcmp(controllers + i, name, n) == 0)
            return true;
    }
    return false;
}

/* A line of /proc/PID/cgroup: "0::/a.slice" of version 2, "6:freezer:/a" of version 1. */
static bool is_held_by(const char *line, size_t length, const char *folder)
{
    const char *controllers = memchr(line, ':', length);
    const char *path = controllers ? memchr(controllers + 1, ':', length - (size_t)(controllers + 1 - line)) : NULL;
    char below[PATH_MAX];
    if (!path || path[1] != '/')
        return false;
    controllers++;
    path++;
    int path_length = (int)(line + length - path);
    bool version_1 = has_freezer(controllers, (size_t)(path - 1 - controllers));
    if (version_1 && snprintf(below, sizeof below, "%s/freezer", folder) < (int)sizeof below)
        return has_line(below, path, path_length, "freezer.state", "FROZEN");
    if (controllers[0] != ':')
        return false;
    if (has_line(folder, path, path_length, "cgroup.events", "frozen 1"))
        return true;
    /* beside the hierarchies of version 1 */
    return snprintf(below, sizeof below, "%s/unified", folder) < (int)sizeof below &&
           has_line(below, path, path_length, "cgroup.events", "frozen 1");
}

bool proc_freezer_holds(const char *groups, const char *folder)
{
    for (const char *line = groups; *line;) {
        size_t length = strcspn(line, "\n");
        if (is_held_by(line, length, folder))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

bool proc_is_frozen(int pid)
{
    size_t length;
    CLEANUP_CLOSE int fd = proc_file_open(pid, "cgroup");
    CLEANUP_FREE char *groups = fd < 0 ? NULL : file_read_all(fd, GROUPS_MAX, &length);
    return groups && proc_freezer_holds(groups, "/sys/fs/cgroup");
}
