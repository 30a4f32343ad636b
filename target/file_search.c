#include "target/file_search.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "target/file_candidate.h"
#include "target/file_index.h"
#include "util/file_root.h"

enum { PATH_SIZE = 4096 };

/* Nothing is at the path. */
static bool is_absence(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

/* Why a file cannot be read. */
static const char *reason_of(int error)
{
    return error == EINVAL      ? "it is empty or not a regular file"
           : error == ETIMEDOUT ? "its file system does not answer"
                                : strerror(error);
}

/* `path` begins with the name of the root. `entry` is that of an index, or NULL. */
static bool consider(struct file_search *search, const struct file_root *root, const char *path,
                     struct file_index_entry *entry)
{
    struct file_candidate candidate = {0};
    const char *below = path + (root ? strlen(root->name) : 0);
    if (!work_take_steps(search->work, WORK_OF_A_PATH))
        return false;
    if (!file_candidate_open(&candidate, root, below, search->policy->pread, &search->mapped)) {
        if (search->refused && !is_absence(errno))
            search->refused(search, path, reason_of(errno));
        return false;
    }
    work_add_steps(search->work, WORK_OF_A_FILE + (candidate.owned ? candidate.size / WORK_BYTES_OF_A_STEP : 0));
    candidate.tag.size = candidate.size;
    bool ended = search->consider(search, path, &candidate);
    search->kept = !candidate.bytes;
    if (entry)
        file_index_set_tag(entry, &candidate.tag);
    file_candidate_close(&candidate);
    return ended;
}

bool file_search_at(struct file_search *search, const struct file_root *root, const char *format, ...)
{
    char path[PATH_SIZE];
    va_list arguments;
    if (!root)
        return false;
    int length = snprintf(path, sizeof path, "%s", root->name);
    if (length < 0 || length >= (int)sizeof path)
        return false;
    va_start(arguments, format);
    int below = vsnprintf(path + length, sizeof path - (size_t)length, format, arguments);
    va_end(arguments);
    return below >= 0 && below < (int)sizeof path - length && consider(search, root, path, NULL);
}

bool file_search_named(struct file_search *search, size_t i, const char *name)
{
    struct file_index *index = file_policy_index(search->policy, i, search->work);
    const struct file_root *root = file_policy_module_root(search->policy, i);
    size_t count = 0;
    struct file_index_entry *entries = index && root ? file_index_find(index, name, &count) : NULL;
    for (size_t k = 0; k < count && work_take_steps(search->work, 1); k++) {
        const struct file_tag *tag = entries[k].tag;
        if (tag && search->excludes && search->excludes(search, entries[k].path, tag))
            continue;
        if (consider(search, root, entries[k].path, &entries[k]))
            return true;
    }
    return false;
}

bool file_search_trusted(struct file_search *search, const char *path)
{
    return consider(search, NULL, path, NULL);
}

bool file_search_fetch(struct file_search *search, const struct target *target, const struct cdacq_need *need,
                       const char *why)
{
    const struct file_server *server = &search->policy->server;
    bool ended = false, again = server->fetch && need->symbol_key;
    while (again) { /* ends with the list of servers */
        CLEANUP_FREE char *path = server->fetch(server->context, need, target->is_held);
        if (!path)
            return false;
        search->kept = false;
        ended = consider(search, NULL, path, NULL);
        again = !search->kept && server->refuse(server->context, need, path, why) && !ended;
    }
    return ended;
}

bool file_search_ask(struct file_search *search, const struct cdacq_need *need)
{
    const struct file_policy *policy = search->policy;
    char path[PATH_SIZE] = "";
    return policy->find && policy->find(need, path, sizeof path, policy->find_context) &&
           memchr(path, 0, sizeof path) && consider(search, NULL, path, NULL);
}

bool file_search_is_below(const char *local, const struct file_root *root, const char *path)
{
    size_t length = strlen(root->name);
    return strncmp(local, root->name, length) == 0 && strcmp(local + length, path) == 0;
}

const struct file_root *file_search_own_root(const struct target *target)
{
    return target->kind == CDACQ_TARGET_PROCESS ? target->own_root : &file_root_machine;
}

const char *file_search_own_path(const struct target *target, const char *path)
{
    const struct file_root *root = file_search_own_root(target);
    return root ? file_root_inside(root, path) : path;
}
