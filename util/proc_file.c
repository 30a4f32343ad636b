#include "util/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/vector.h"

enum {
    PATH_ROOM = 64,
    PIDS_MAX = 4 << 20, /* the kernel's own limit */
};

DEFINE_VECTOR(pids, int);

static bool form_path(int pid, const char *name, char ret[PATH_ROOM])
{
    int length = pid ? snprintf(ret, PATH_ROOM, "/proc/%d/%s", pid, name) : snprintf(ret, PATH_ROOM, "/proc/%s", name);
    return length > 0 && length < PATH_ROOM;
}

int proc_file_open(int pid, const char *name)
{
    char path[PATH_ROOM];
    return form_path(pid, name, path) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

DIR *proc_folder_open(int pid, const char *name)
{
    char path[PATH_ROOM];
    return form_path(pid, name, path) ? opendir(path) : NULL;
}

static int compare_pids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int *proc_list_processes(size_t *ret_count)
{
    struct pids pids = {0};
    struct dirent *entry;
    DIR *all = opendir("/proc");
    if (!all)
        return NULL;
    bool room = pids_reserve(&pids, 1);
    while (room && pids.count < PIDS_MAX && (entry = readdir(all))) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid <= INT32_MAX)
            room = pids_append(&pids, (int)pid);
    }
    closedir(all);
    if (!room) {
        pids_deinit(&pids);
        errno = ENOMEM;
        return NULL;
    }
    qsort(pids.items, pids.count, sizeof *pids.items, compare_pids);
    *ret_count = pids.count;
    return pids.items;
}
