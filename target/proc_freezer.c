#include "target/proc_freezer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/control_group.h"
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

static bool is_held_by(const struct control_group *group, const char *folder)
{
    char below[PATH_MAX];
    int length = (int)group->path_length;
    if (control_group_has(group->controllers, group->controllers_length, "freezer") &&
        snprintf(below, sizeof below, "%s/freezer", folder) < (int)sizeof below)
        return has_line(below, group->path, length, "freezer.state", "FROZEN");
    if (group->controllers_length) /* of version 1: only the freezer freezes */
        return false;
    if (has_line(folder, group->path, length, "cgroup.events", "frozen 1"))
        return true;
    /* beside the hierarchies of version 1 */
    return snprintf(below, sizeof below, "%s/unified", folder) < (int)sizeof below &&
           has_line(below, group->path, length, "cgroup.events", "frozen 1");
}

bool proc_freezer_holds(const char *groups, const char *folder)
{
    struct control_group group;
    for (const char *at = groups; *at;)
        if (control_group_next(&at, &group) && is_held_by(&group, folder))
            return true;
    return false;
}

bool proc_is_frozen(int pid)
{
    size_t length;
    CLEANUP_CLOSE int fd = proc_file_open(pid, "cgroup");
    CLEANUP_FREE char *groups = fd < 0 ? NULL : file_read_all(fd, GROUPS_MAX, &length);
    return groups && proc_freezer_holds(groups, "/sys/fs/cgroup");
}
