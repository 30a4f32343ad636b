#include "target/mapped_path.h"

/* What the kernel appends to the path of a file that was deleted, or replaced by another one. */
static const char deleted[] = " (deleted)";

/* Whether the path is `name`, deleted or not. */
static bool is_path(const char *path, const char *name)
{
    size_t length = strlen(name);
    return strncmp(path, name, length) == 0 && (!path[length] || strcmp(path + length, deleted) == 0);
}

/* Memory that is shared by a key: /SYSV and the key, 8 digits. */
static bool is_shared_by_key(const char *path)
{
    static const char prefix[] = "/SYSV";
    const char *key = path + sizeof prefix - 1;
    return strncmp(path, prefix, sizeof prefix - 1) == 0 && strspn(key, "0123456789abcdef") == 8 &&
           is_path(key + 8, "");
}

bool mapped_path_is_memory(const char *path)
{
    static const char *const prefixes[] = {"/memfd:", "/dev/shm/doublemapper"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return is_path(path, "/dev/zero") || is_shared_by_key(path);
}

size_t mapped_path_length(const char *path)
{
    size_t length = strlen(path), mark = sizeof deleted - 1;
    bool is_marked = length > mark + 1 && strcmp(path + length - mark, deleted) == 0 && !mapped_path_is_memory(path);
    return is_marked ? length - mark : length;
}

bool mapped_path_is_deleted(const char *path)
{
    return path[mapped_path_length(path)] != '\0';
}

bool mapped_path_is_still(const char *path, const char *before)
{
    return is_path(path, before);
}

bool mapped_path_is_below_dev(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0;
}

void mapped_path_unescape(char *path)
{
    path = strchrnul(path, '\\');
    char *out = path;
    for (; *path; path++) {
        if (strncmp(path, "\\012", 4) == 0) {
            *out++ = '\n';
            path += 3;
        } else {
            *out++ = *path;
        }
    }
    *out = '\0';
}

bool mapped_path_is_file(const char *path)
{
    for (const char *step = strchr(path, '/'); step; step = strchr(step + 1, '/')) {
        size_t length = strcspn(step + 1, "/");
        if (!length || (step[1] == '.' && (length == 1 || (length == 2 && step[2] == '.'))))
            return false;
    }
    return path[0] == '/' && !mapped_path_is_memory(path) && strncmp(path, "/proc/", 6) != 0 &&
           strncmp(path, "/sys/", 5) != 0;
}
