#include "target/control_group.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "util/file.h"
#include "util/proc_file.h"

enum {
    GROUPS_MAX = 64 * 1024,
    MOUNTS_MAX = 1 << 20,
    FILE_TEXT_MAX = 8192,
    LEVELS_MAX = 64, /* groups in each other */
    NS_PER_US = 1000,
};

#define US_MAX           (UINT64_C(1) << 40) /* of a quota or period; the kernel allows less */
#define MEMORY_LIMIT_MAX (UINT64_C(1) << 60) /* version 1 has about 2^63 for no limit */

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

/*
 * `controller`: of version 1; NULL: of version 2. Reads a line: "31 23 0:28 /root /point options [tags...] - type
 * source options".
 */
static bool read_mount(const char *line, size_t length, const char *controller, struct mount *ret)
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
    const char *type = controller ? "cgroup" : "cgroup2";
    if (lengths[dash + 1] != strlen(type) || memcmp(fields[dash + 1], type, strlen(type)) != 0 ||
        (controller && !control_group_has(fields[dash + 3], lengths[dash + 3], controller)))
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

static bool find_mount(const char *mounts, const struct control_group *group, const char *controller, struct mount *ret)
{
    for (const char *line = mounts; *line;) {
        size_t length = strcspn(line, "\n");
        if (read_mount(line, length, controller, ret) && shows(ret, group))
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
static void read_limit(const char *folder, bool version_1, void *found)
{
    struct cpu_limit *ret = found;
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

static uint64_t read_number(const char *folder, const char *name)
{
    char text[FILE_TEXT_MAX];
    return read_group_file(folder, name, text) ? strtoull(text, NULL, 10) : 0; /* "max" is 0 */
}

/* Reads the limit of a group, if it has one, and is nearer to it than that in *ret. */
static void read_memory_limit(const char *folder, bool version_1, void *found)
{
    struct memory_limit *ret = found;
    char text[FILE_TEXT_MAX];
    uint64_t limit = read_number(folder, version_1 ? "memory.limit_in_bytes" : "memory.max");
    uint64_t used = read_number(folder, version_1 ? "memory.usage_in_bytes" : "memory.current"), cached = 0;
    if (!limit || limit >= MEMORY_LIMIT_MAX || !used)
        return;
    if (read_group_file(folder, "memory.stat", text))
        cached = number_of(text, version_1 ? "total_inactive_file" : "inactive_file");
    used -= MIN(cached, used);
    if (!ret->limit || (double)used / (double)limit > (double)ret->used / (double)ret->limit)
        *ret = (struct memory_limit){.limit = limit, .used = used};
}

/* What of a group is read: `read` puts a limit that is lower than that in *ret there. */
struct controller {
    const char *name;
    void (*read)(const char *folder, bool version_1, void *ret);
};

/* The limits of a group and of those that it is in, up to the one at the mount point. */
static void find_limit(const struct control_group *group, const char *mounts, const struct controller *controller,
                       bool version_1, const char *root, void *ret)
{
    struct mount mount;
    char folder[PATH_MAX];
    if (leads_out(group) || !find_mount(mounts, group, version_1 ? controller->name : NULL, &mount))
        return;
    int top = snprintf(folder, sizeof folder, "%s%.*s", root, mount.point_length, mount.point);
    size_t rest = group->path_length - (size_t)mount.root_length;
    if (top < 0 || (size_t)top + rest >= sizeof folder)
        return;
    memcpy(folder + top, group->path + mount.root_length, rest);
    folder[(size_t)top + rest] = '\0';
    char *end = folder + top + rest;
    for (unsigned level = 0; level < LEVELS_MAX; level++) {
        controller->read(folder, version_1, ret);
        if (end == folder + top)
            break;
        while (*--end != '/') /* which is what `rest` begins with */
            ;
        *end = '\0';
    }
}

/* Where the controller is: one hierarchy alone has it. *ret is left as it was if there is no limit. */
static void find_limits(const char *groups, const char *mounts, const struct controller *controller, const char *root,
                        void *ret)
{
    struct control_group group;
    for (int version_1 = 1; version_1 >= 0; version_1--)
        for (const char *at = groups; *at;)
            if (control_group_next(&at, &group) &&
                (version_1 ? control_group_has(group.controllers, group.controllers_length, controller->name)
                           : !group.controllers_length))
                find_limit(&group, mounts, controller, version_1, root, ret);
}

bool cpu_limit_find(const char *groups, const char *mounts, const char *root, struct cpu_limit *ret)
{
    struct cpu_limit found = {.period = 0};
    find_limits(groups, mounts, &(struct controller){"cpu", read_limit}, root, &found);
    if (found.period)
        *ret = found;
    return found.period;
}

bool memory_limit_find(const char *groups, const char *mounts, const char *root, struct memory_limit *ret)
{
    struct memory_limit found = {.limit = 0};
    find_limits(groups, mounts, &(struct controller){"memory", read_memory_limit}, root, &found);
    if (found.limit)
        *ret = found;
    return found.limit;
}

/* The texts of /proc/PID/cgroup and of mountinfo, which the caller frees. */
static bool read_texts(int pid, char **ret_groups, char **ret_mounts)
{
    size_t length;
    CLEANUP_CLOSE int group_file = proc_file_open(pid, "cgroup");
    *ret_groups = group_file < 0 ? NULL : file_read_all(group_file, GROUPS_MAX, &length);
    *ret_mounts = *ret_groups ? malloc(MOUNTS_MAX) : NULL;
    return *ret_mounts && file_read_text(AT_FDCWD, "/proc/self/mountinfo", *ret_mounts, MOUNTS_MAX) > 0;
}

bool cpu_limit_read(int pid, struct cpu_limit *ret)
{
    CLEANUP_FREE char *groups = NULL, *mounts = NULL;
    return read_texts(pid, &groups, &mounts) && cpu_limit_find(groups, mounts, "", ret);
}

bool memory_limit_read(int pid, struct memory_limit *ret)
{
    CLEANUP_FREE char *groups = NULL, *mounts = NULL;
    return read_texts(pid, &groups, &mounts) && memory_limit_find(groups, mounts, "", ret);
}
