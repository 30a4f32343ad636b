#include "target/file_search.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

/* Nothing is at the path. */
static bool is_absence(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

static bool consider(struct file_search *search, const char *path)
{
    struct file_candidate candidate = {0};
    if (!file_candidate_open(&candidate, path, search->policy->pread)) {
        if (search->refused && !is_absence(errno))
            search->refused(search, path, errno == EINVAL ? "it is empty or not a regular file" : strerror(errno));
        return false;
    }
    bool ended = search->consider(search, path, &candidate);
    file_candidate_close(&candidate);
    return ended;
}

bool file_search_at(struct file_search *search, const char *format, ...)
{
    char path[PATH_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return length >= 0 && length < (int)sizeof path && consider(search, path);
}

bool file_search_named(struct file_search *search, size_t i, const char *name)
{
    const struct file_index *index = file_policy_index(search->policy, i);
    size_t count = 0;
    const struct file_index_entry *entries = index ? file_index_find(index, name, &count) : NULL;
    for (size_t k = 0; k < count; k++)
        if (consider(search, entries[k].path))
            return true;
    return false;
}

bool file_search_ask(struct file_search *search, const struct cdacq_need *need)
{
    const struct file_policy *policy = search->policy;
    char path[PATH_SIZE] = "";
    return policy->find && policy->find(policy->find_context, need, path, sizeof path) &&
           memchr(path, 0, sizeof path) && consider(search, path);
}

bool file_search_is_below(const char *local, const char *root, const char *path)
{
    size_t length = strlen(root);
    return strncmp(local, root, length) == 0 && strcmp(local + length, path) == 0;
}

void file_search_own_root(const struct target *target, char ret[32])
{
    ret[0] = '\0';
    if (target->kind == CDACQ_TARGET_PROCESS)
        snprintf(ret, 32, "/proc/%d/root", target->pid);
}
