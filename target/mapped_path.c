#include "target/mapped_path.h"

static const char deleted[] = " (deleted)";

bool mapped_path_is_memory(const char *path)
{
    static const char *const prefixes[] = {"/memfd:", "/dev/zero", "/SYSV"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

bool mapped_path_is_deleted(const char *path)
{
    size_t n = strlen(path);
    return n > sizeof deleted && strcmp(path + n - (sizeof deleted - 1), deleted) == 0;
}

bool mapped_path_is_still(const char *path, const char *before)
{
    size_t length = strlen(before);
    return strncmp(path, before, length) == 0 && (!path[length] || strcmp(path + length, deleted) == 0);
}

bool mapped_path_is_file(const char *path)
{
    for (const char *step = strchr(path, '/'); step; step = strchr(step + 1, '/')) {
        size_t length = strcspn(step + 1, "/");
        if (!length || (step[1] == '.' && (length == 1 || (length == 2 && step[2] == '.'))))
            return false;
    }
    return path[0] == '/' && !mapped_path_is_memory(path) && strncmp(path, "/dev/", 5) != 0 &&
           strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 && !mapped_path_is_deleted(path);
}
