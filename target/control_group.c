#include "target/control_group.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/proc_file.h"

enum {
    GROUPS_MAX = 64 * 1024,
    MOUNTS_MAX = 1 << 20,
    FILE_TEXT_MAX = 4096,
    LEVELS_MAX = 64, /* groups in each other */
    NS_PER_US = 1000,
};

#define US_MAX (UINT64_C(1) << 40) /* of a quota or period; the kernel allows less */

/* ---- Lines ---- */

bool control_group_next(const char **at, struct control_group *ret)
{
    const char *line = *at;
    size_t length = strcspn(line, "\n");
    *at = line + length + (line[length] == '\n');
    const char *controllers = memchr(line, ':', length);
    const char *path = controllers ? memchr(controllers + 1, ':', length - (size_t)(controllers + 1 - line)) : NULL;
    if (!path || path[1] != '/')
        return false;
    *ret = (struct control_group){
        .controllers = controllers + 1,
        .controllers_length = (size_t)(path - controllers - 1),
        .path = path + 1,
        .path_length = (size_t)(line + length - path - 1),
    };
    return true;
}

bool control_group_has(const char *words, size_t length, const char *word)
{
    for (size_t i = 0, n; i < length; i += n + 1) {
        const char *comma = memchr(words + i, ',', length - i);
        n = comma ? (size_t)(comma - words) - i : length - i;
        if (n == strlen(word) && memcmp(words + i, word, n) == 0)
            return true;
    }
    return false;
}

/* Whether a path leaves the folder that it begins in: the kernel shows groups outside of a namespace so. */
static bool leads_out(const struct control_group *group)
{
    for (size_t i = 0; i + 2 < group->path_length; i++)
        if (memcmp(group->path + i, "/..", 3) == 0 && (i + 3 == group->path_length || group->path[i + 3] == '/'))
            return true;
    return false;
}

/* ---- Mounts ---- */

enum { ROOT_FIELD = 3, POINT_FIELD = 4, FIELDS_MAX = 32 };

/* A file system that shows groups. */
struct mount {
    const char *root, *point; /* which group is at the mount point */
    int root_length, point_length;
};

/* Reads a line: "31 23 0:28 /root /point options [tags...] - type source options". */
static bool read_mount(const char *line, size_t length, bool version_1, struct mount *ret)
{
    const char *fields[FIELDS_MAX];
    size_t lengths[FIELDS_MAX], count = 0, dash = 0;
    for (size_t i = 0; i < length && count < FIELDS_MAX; i += lengths[count++] + 1) {
        const char *space = memchr(line + i, ' ', length - i);
        fields[count] = line + i;
        lengths[count] = space ? (size_t)(space - line) - i : length - i;
        if (!dash && count > POINT_FIELD && lengths[count] == 1 && line[i] == '-')
            dash = count;
    }
    if (!dash || dash + 3 >= count || memchr(fields[POINT_FIELD], '\\', lengths[POINT_FIELD]) || /* an escape */
        lengths[ROOT_FIELD] >= PATH_MAX || lengths[POINT_FIELD] >= PATH_MAX)
        return false;
    const char *type = version_1 ? "cgroup" : "cgroup2";
    if (lengths[dash + 1] != strlen(type) || memcmp(fields[dash + 1], type, strlen(type)) != 0 ||
        (version_1 && !control_group_has(fields[dash + 3], lengths[dash + 3], "cpu")))
        return false;
    *ret = (struct mount){
        .root = fields[ROOT_FIELD],
        .root_length = lengths[ROOT_FIELD] == 1 ? 0 : (int)lengths[ROOT_FIELD], /* "/" is before all paths */
        .point = fields[POINT_FIELD],
        .point_length = (int)lengths[POINT_FIELD],
    };
    return true;
}

/* Whether a mount shows a group. */
static bool shows(const struct mount *mount, const struct control_group *group)
{
    size_t length = (size_t)mount->root_length;
    return length <= group->path_length && memcmp(mount->root, group->path, length) == 0 &&
           (length == group->path_length || group->path[length] == '/');
}

static bool find_mount(const char *mounts, const struct control_group *group, bool version_1, struct mount *ret)
{
    for (const char *line = mounts; *line;) {
        size_t length = strcspn(line, "\n");
        if (read_mount(line, length, version_1, ret) && shows(ret, group))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* ---- Limits ---- */

static bool read_group_file(const char *folder, const char *name, char ret[FILE_TEXT_MAX])
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           file_read_text(AT_FDCWD, path, ret, FILE_TEXT_MAX) > 0;
}

/* The number of a line "NAME NUMBER"; 0 if there is none. */
static uint64_t number_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, name, length) == 0 && at[length] == ' ')
            return strtoull(at + length + 1, NULL, 10);
    return 0;
}

/* The quota and the period of a group in microseconds. False: it has none. */
static bool read_quota(const char *folder, bool version_1, uint64_t *ret_quota, uint64_t *ret_period)
{
    char text[FILE_TEXT_MAX];
    unsigned long long quota, period; /* version 1 has -1 for no quota, and version 2 the word max */
    bool is_read = version_1
                       ? read_group_file(folder, "cpu.cfs_quota_us", text) && text[0] != '-' &&
                             sscanf(text, "%llu", &quota) == 1 && read_group_file(folder, "cpu.cfs_period_us", text) &&
                             sscanf(text, "%llu", &period) == 1
                       : read_group_file(folder, "cpu.max", text) && sscanf(text, "%llu %llu", &quota, &period) == 2;
    if (!is_read || !quota || quota > US_MAX || !period || period > US_MAX)
        return false;
    *ret_quota = quota;
    *ret_period = period;
    return true;
}

/* Reads the limit of a group, if it has one, and one that is lower than that in *ret. */
static void read_limit(const char *folder, bool version_1, struct cpu_limit *ret)
{
    char text[FILE_TEXT_MAX];
    uint64_t quota, period;
    if (!read_quota(folder, version_1, &quota, &period))
        return;
    quota *= NS_PER_US;
    period *= NS_PER_US;
    if (ret->period && (double)quota * (double)ret->period >= (double)ret->quota * (double)period)
        return;
    *ret = (struct cpu_limit){.quota = quota, .period = period};
    if (read_group_file(folder, "cpu.stat", text)) {
        ret->periods = number_of(text, "nr_periods");
        ret->throttled_periods = number_of(text, "nr_throttled");
        ret->throttled_time =
            version_1 ? number_of(text, "throttled_time") : number_of(text, "throttled_usec") * NS_PER_US;
    }
}

/* The lowest limit of a group and of those that it is in, up to the one at the mount point. */
static bool find_limit(const struct control_group *group, const char *mounts, bool version_1, const char *root,
                       struct cpu_limit *ret)
{
    struct mount mount;
    char folder[PATH_MAX];
    if (leads_out(group) || !find_mount(mounts, group, version_1, &mount))
        return false;
    int top = snprintf(folder, sizeof folder, "%s%.*s", root, mount.point_length, mount.point);
    size_t rest = group->path_length - (size_t)mount.root_length;
    if (top < 0 || (size_t)top + rest >= sizeof folder)
        return false;
    memcpy(folder + top, group->path + mount.root_length, rest);
    folder[(size_t)top + rest] = '\0';
    struct cpu_limit found = {.period = 0};
    char *end = folder + top + rest;
    for (unsigned level = 0; level < LEVELS_MAX; level++) {
        read_limit(folder, version_1, &found);
        if (end == folder + top)
            break;
        while (*--end != '/') /* which is what `rest` begins with */
            ;
        *end = '\0';
    }
    if (found.period)
        *ret = found;
    return found.period;
}

bool cpu_limit_find(const char *groups, const char *mounts, const char *root, struct cpu_limit *ret)
{
    struct control_group group;
    for (int version_1 = 1; version_1 >= 0; version_1--) /* one hierarchy alone has the controller */
        for (const char *at = groups; *at;)
            if (control_group_next(&at, &group) &&
                (version_1 ? control_group_has(group.controllers, group.controllers_length, "cpu")
                           : !group.controllers_length) &&
                find_limit(&group, mounts, version_1, root, ret))
                return true;
    return false;
}

bool cpu_limit_read(int pid, struct cpu_limit *ret)
{
    size_t length;
    CLEANUP_CLOSE int group_file = proc_file_open(pid, "cgroup");
    CLEANUP_FREE char *groups = group_file < 0 ? NULL : file_read_all(group_file, GROUPS_MAX, &length);
    CLEANUP_FREE char *mounts = groups ? malloc(MOUNTS_MAX) : NULL;
    return mounts && file_read_text(AT_FDCWD, "/proc/self/mountinfo", mounts, MOUNTS_MAX) > 0 &&
           cpu_limit_find(groups, mounts, "", ret);
}
