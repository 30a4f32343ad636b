/*
 * process_files.c: finds the jitdump and the perf map of a running process. A runtime maps a page of its jitdump, so
 * that perf sees it. What is not mapped is where the environment of the process says, or in /tmp. The process may have
 * another root directory and another pid than it has here. A jitdump that was deleted, as what is old in /tmp is on
 * many systems, is still open in the process. A file that is not mapped may be that of an earlier process with the same
 * pid, as in a container that is started again.
 * Source: src/coreclr/vm/perfmap.cpp, perfjitdump.cpp.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "formats/jitdump.h"
#include "cdacq/perf.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

enum {
    PROC_FILE_MAX = 64 * 1024 * 1024,
    PATH_ROOM = 4096,
    WHY_ROOM = 256,
    DESCRIPTORS_TRIED = 4096,
    STARTTIME_FIELD = 20, /* of /proc/PID/stat, after the name of the program */
    NS = 1000000000,
};

/* Opens a file of /proc/PID. -1 with errno set. */
static int open_proc(int pid, const char *name)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return file_open(path, &st);
}

/* What it holds, to be freed. NULL with errno set. */
static char *read_proc(int pid, const char *name, size_t *ret_length)
{
    *ret_length = 0;
    CLEANUP_CLOSE int fd = open_proc(pid, name);
    return fd < 0 ? NULL : file_read_all(fd, PROC_FILE_MAX, ret_length);
}

/* Whether this program may not see what the process maps, and so neither where its file is. */
static bool is_refused(int pid)
{
    CLEANUP_CLOSE int fd = open_proc(pid, "maps");
    return fd < 0 && (errno == EACCES || errno == EPERM);
}

/* The pid as the process itself sees it. */
static int own_pid(int pid)
{
    size_t length;
    CLEANUP_FREE char *status = read_proc(pid, "status", &length);
    char *line = status ? strstr(status, "\nNSpid:") : NULL;
    if (!line)
        return pid;
    line++;
    line[strcspn(line, "\n")] = '\0';
    const char *last = strrchr(line, '\t');
    int own = last ? atoi(last) : 0;
    return own > 0 ? own : pid;
}

/* What the kernel appends to the path of a file that was deleted. */
static const char deleted[] = " (deleted)";

/* Whether the end of a path is jit-PID.dump. */
static bool is_jitdump(const char *path, bool *ret_deleted)
{
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/jit-", 5) != 0)
        return false;
    const char *suffix = name + 5 + strspn(name + 5, "0123456789");
    if (suffix == name + 5 || strncmp(suffix, ".dump", 5) != 0)
        return false;
    *ret_deleted = strcmp(suffix + 5, deleted) == 0;
    return *ret_deleted || !suffix[5];
}

/*
 * Writes how the file of the process is reached from here: by its path if that leads to the same file. The process may
 * have other mounts than this program, even below the same root. False if it is not there.
 */
static bool reach(int pid, const char *path, char *ret, size_t size)
{
    struct stat st, own;
    char through[PATH_ROOM + 32];
    int length = snprintf(through, sizeof through, "/proc/%d/root%s", pid, path);
    if (length <= 0 || (size_t)length >= sizeof through || stat(through, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    bool same = stat(path, &own) == 0 && own.st_dev == st.st_dev && own.st_ino == st.st_ino;
    length = snprintf(ret, size, "%s", same ? path : through);
    return length > 0 && (size_t)length < size;
}

/* Finds a file, which has no path any more, by a descriptor of the process. `path` is what the kernel shows for it. */
static bool find_open(int pid, const char *path, char *ret, size_t size)
{
    char folder[64], shown[PATH_ROOM];
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool found = false;
    for (int i = 0; dir && !found && i < DESCRIPTORS_TRIED && (entry = readdir(dir)); i++) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, shown, sizeof shown - 1);
        shown[MAX(length, 0)] = '\0';
        int needed = strcmp(shown, path) == 0 ? snprintf(ret, size, "%s/%s", folder, entry->d_name) : -1;
        found = needed > 0 && (size_t)needed < size;
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool find_mapped(int pid, char *ret, size_t size)
{
    size_t length;
    CLEANUP_FREE char *maps = read_proc(pid, "maps", &length);
    for (char *line = maps, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        const char *path = strchr(line, '/');
        bool is_deleted;
        if (path && is_jitdump(path, &is_deleted) &&
            (is_deleted ? find_open(pid, path, ret, size) : reach(pid, path, ret, size)))
            return true;
        if (!next)
            break;
    }
    return false;
}

/* When the process began, in ns since 1970, up to a tick early; 0 if this is not known. */
static int64_t start_time(int pid)
{
    size_t length;
    struct timespec now, up;
    CLEANUP_FREE char *stat = read_proc(pid, "stat", &length);
    const char *field = stat ? strrchr(stat, ')') : NULL; /* the name may have spaces */
    for (int i = 0; field && i < STARTTIME_FIELD; i++)
        field = strchr(field + 1, ' ');
    long ticks_per_second = sysconf(_SC_CLK_TCK);
    if (!field || ticks_per_second <= 0 || clock_gettime(CLOCK_REALTIME, &now) < 0 ||
        clock_gettime(CLOCK_BOOTTIME, &up) < 0)
        return 0;
    int64_t boot = (int64_t)(now.tv_sec - up.tv_sec) * NS + now.tv_nsec - up.tv_nsec;
    return boot + (int64_t)(strtoll(field, NULL, 10) * (NS / ticks_per_second));
}

/*
 * Whether a file that the process does not map may be its own. If not, says why: it is ... The times in a jitdump count
 * from the start of the machine, which may have been another one; the file's own time does not. What is no jitdump is
 * left to those who open it.
 */
static bool may_be_of(int pid, const char *path, char *ret_why, size_t why_size)
{
    uint8_t header[JITDUMP_HEADER_SIZE];
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0)
        return true;
    int64_t written = (int64_t)st.st_mtim.tv_sec * NS + st.st_mtim.tv_nsec;
    if (written + NS < start_time(pid)) { /* clocks of files and processes have other steps */
        snprintf(ret_why, why_size, "older than the process");
        return false;
    }
    size_t size = file_read_at(fd, 0, header, sizeof header);
    if (jitdump_decode_header(header, size, &record, NULL) != CDACQ_OK)
        return true;
    uint32_t named = record.as.header.pid;
    if (named == (uint32_t)pid || named == (uint32_t)own_pid(pid))
        return true;
    snprintf(ret_why, why_size, "of process %" PRIu32, named);
    return false;
}

/*
 * A variable of the environment that the process started with, or NULL. The process can write to that memory: the last
 * variable need not end with NUL, except with the one after all of the `size` bytes.
 */
static const char *variable(const char *environment, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = environment; p && p < environment + size; p += strlen(p) + 1)
        if (strncmp(p, name, length) == 0 && p[length] == '=' && p[length + 1] == '/')
            return p + length + 1;
    return NULL;
}

/* Looks in the folders where the runtime would write a file. False: ret_why says why one that is there is no answer. */
static bool find_in_folders(int pid, const char *name, char *ret, size_t size, char *ret_why, size_t why_size)
{
    static const char *const variables[] = {"DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath", "JITDUMPDIR",
                                            "TMPDIR"};
    char path[PATH_ROOM], found[PATH_ROOM], shown[160], why[64];
    size_t environment_size;
    CLEANUP_FREE char *environment = read_proc(pid, "environ", &environment_size);
    for (size_t i = 0; i <= ARRAY_SIZE(variables); i++) {
        const char *directory =
            i < ARRAY_SIZE(variables) ? variable(environment, environment_size, variables[i]) : "/tmp";
        int length = directory ? snprintf(path, sizeof path, "%s/%s", directory, name) : 0;
        if (length <= 0 || (size_t)length >= sizeof path || !reach(pid, path, found, MIN(size, sizeof found)))
            continue;
        if (may_be_of(pid, found, why, sizeof why)) {
            memcpy(ret, found, strlen(found) + 1);
            return true;
        }
        error_printable(shown, sizeof shown, found);
        snprintf(ret_why, why_size, "'%s' is %s", shown, why);
    }
    return false;
}

/* A kind of file that the runtime writes, and the words of a message that there is none. */
struct written_file {
    const char *prefix, *suffix; /* of its name, around the pid */
    const char *kind, *where, *unless_mapped, *setting;
};

/* Finds a file of the process that it need not map. */
static enum cdacq_status find_written(int pid, const struct written_file *file, char *ret, size_t size,
                                      struct cdacq_error *err)
{
    char name[64], why[WHY_ROOM] = "";
    snprintf(name, sizeof name, "%s%d%s", file->prefix, own_pid(pid), file->suffix);
    if (find_in_folders(pid, name, ret, size, why, sizeof why))
        return CDACQ_OK;
    if (why[0])
        return error_set(err, CDACQ_NOT_MANAGED, 0, "process %d has no %s: %s%s", pid, file->kind, file->unless_mapped,
                         why);
    if (is_refused(pid))
        return error_set(err, CDACQ_ERR_IO, 0,
                         "process %d: not permitted to see %s (same user, or root; see ptrace_scope), and there is no "
                         "%s in /tmp",
                         pid, file->where, name);
    return error_set(err, CDACQ_NOT_MANAGED, 0,
                     "process %d has no %s: %sthere is no %s in /tmp or where its environment says (%s makes a .NET "
                     "process write it)",
                     pid, file->kind, file->unless_mapped, name, file->setting);
}

static enum cdacq_status check_pid(int pid, struct cdacq_error *err)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    return pid > 0 && access(path, F_OK) == 0 ? CDACQ_OK
                                              : error_set(err, CDACQ_ERR_IO, 0, "there is no process %d", pid);
}

enum cdacq_status cdacq_jitdump_find_file(int pid, char *ret, size_t size, struct cdacq_error *err)
{
    static const struct written_file jitdump = {.prefix = "jit-",
                                                .suffix = ".dump",
                                                .kind = "jitdump",
                                                .where = "which jitdump it has",
                                                .unless_mapped = "it maps none, and ",
                                                .setting = "DOTNET_PerfMapEnabled=1"};
    if (check_pid(pid, err) < 0)
        return CDACQ_ERR_IO;
    return find_mapped(pid, ret, size) ? CDACQ_OK : find_written(pid, &jitdump, ret, size, err);
}

enum cdacq_status cdacq_perf_map_find_file(int pid, char *ret, size_t size, struct cdacq_error *err)
{
    static const struct written_file perf_map = {.prefix = "perf-",
                                                 .suffix = ".map",
                                                 .kind = "perf map",
                                                 .where = "where its perf map is",
                                                 .unless_mapped = "",
                                                 .setting = "DOTNET_PerfMapEnabled=3"};
    return check_pid(pid, err) < 0 ? CDACQ_ERR_IO : find_written(pid, &perf_map, ret, size, err);
}
