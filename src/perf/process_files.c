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
#include "target/mapped_path.h"
#include "target/proc_maps.h"
#include "target/proc_status.h"
#include "util/error.h"
#include "util/file.h"
#include "util/file_root.h"
#include "util/proc_file.h"
#include "util/text.h"

enum {
    PROC_FILE_MAX = 64 * 1024 * 1024,
    PATH_ROOM = 4096,
    WHY_ROOM = 256,
    DESCRIPTORS_TRIED = 4096,
    MAPPED_TRIED = 16,    /* jitdumps */
    STARTTIME_FIELD = 20, /* of /proc/PID/stat, after the name of the program */
    NS = 1000000000,
};

struct process {
    int pid;
    struct file_root root;
    bool is_own; /* it sees the files of this program */
};

/* What a file of /proc/PID holds, to be freed. NULL with errno set. */
static char *read_proc(int pid, const char *name, size_t *ret_length)
{
    *ret_length = 0;
    CLEANUP_CLOSE int fd = proc_file_open(pid, name);
    return fd < 0 ? NULL : file_read_all(fd, PROC_FILE_MAX, ret_length);
}

/* Whether this program may not see what the process maps, and so neither where its file is. */
static bool is_refused(int pid)
{
    CLEANUP_CLOSE int fd = proc_file_open(pid, "maps");
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

/* Whether the end of a path is jit-PID.dump. */
static bool is_jitdump(const char *path)
{
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/jit-", 5) != 0)
        return false;
    const char *suffix = name + 5 + strspn(name + 5, "0123456789");
    return suffix != name + 5 && mapped_path_is_still(suffix, ".dump");
}

/*
 * Writes how the file of the process is reached from here: by its path if the process sees the files of this program,
 * and nobody else can put another one there. file_open_regular() opens what is written. False if it is not there.
 */
static bool reach(const struct process *process, const char *path, char *ret, size_t size)
{
    struct stat st;
    const char *inside = file_root_inside(&process->root, path);
    CLEANUP_CLOSE int place = file_root_find(&process->root, inside, &st);
    if (place < 0 || !S_ISREG(st.st_mode))
        return false;
    int length =
        process->is_own ? snprintf(ret, size, "%s", path) : snprintf(ret, size, "%s%s", process->root.name, inside);
    return length > 0 && (size_t)length < size;
}

/* Finds a file, which has no path any more, by a descriptor of the process. `path` is what the kernel shows for it. */
static bool find_open(int pid, const char *path, char *ret, size_t size)
{
    char folder[64], shown[PATH_ROOM];
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *dir = proc_folder_open(pid, "fd");
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
    CLEANUP_CLOSE int fd = file_open_regular(path, &st);
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

static const char *const folder_variables[] = {"DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath", "JITDUMPDIR",
                                               "TMPDIR"};

/* Whether a path is one where the runtime would write. */
static bool is_in_folder(const char *path, const char *environment, size_t size)
{
    size_t length = (size_t)(strrchr(path, '/') - path);
    for (size_t i = 0; i <= ARRAY_SIZE(folder_variables); i++) {
        const char *folder =
            i < ARRAY_SIZE(folder_variables) ? variable(environment, size, folder_variables[i]) : "/tmp";
        size_t folder_length = folder ? strlen(folder) : 0;
        while (folder_length > 1 && folder[folder_length - 1] == '/')
            folder_length--;
        if (folder)
            return folder_length == length && !memcmp(folder, path, length);
    }
    return false;
}

/*
 * What speaks for a jitdump that the process maps: its header, and that it is where the environment has the runtime
 * write. A process can have several runtimes that write one, and maps of its parent.
 */
static unsigned rate_mapped(int pid, const char *path, const char *reached, const char *environment, size_t size)
{
    uint8_t header[JITDUMP_HEADER_SIZE];
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct stat st;
    CLEANUP_CLOSE int fd = file_open_regular(reached, &st);
    size_t read = fd < 0 ? 0 : file_read_at(fd, 0, header, sizeof header);
    bool is_whole = jitdump_decode_header(header, read, &record, NULL) == CDACQ_OK;
    uint32_t named = is_whole ? record.as.header.pid : 0;
    bool is_own = is_whole && (named == (uint32_t)pid || named == (uint32_t)own_pid(pid));
    return 1 + is_whole + 4u * is_own + 2u * is_in_folder(path, environment, size);
}

static bool find_mapped(const struct process *process, char *ret, size_t size)
{
    int pid = process->pid;
    struct proc_maps maps;
    struct proc_map map;
    size_t environment_size, room;
    unsigned best = 0, tried = 0;
    char last[PATH_ROOM] = "", reached[PATH_ROOM];
    CLEANUP_FREE char *environment = read_proc(pid, "environ", &environment_size);
    CLEANUP_CLOSE int file = proc_maps_open(pid);
    if (file < 0)
        return false;
    room = MIN(size, sizeof reached);
    bool is_begun = proc_maps_begin(file, false, &maps) == 0;
    while (is_begun && tried < MAPPED_TRIED && proc_maps_next(&maps, &map)) {
        if (is_jitdump(map.path) && strcmp(map.path, last) != 0 && strlen(map.path) < sizeof last &&
            (mapped_path_is_deleted(map.path) ? find_open(pid, map.path, reached, room)
                                              : reach(process, map.path, reached, room))) {
            memcpy(last, map.path, strlen(map.path) + 1);
            unsigned rate = rate_mapped(pid, map.path, reached, environment, environment_size);
            if (rate > best)
                memcpy(ret, reached, strlen(reached) + 1);
            best = MAX(best, rate);
            tried++;
        }
    }
    proc_maps_end(&maps);
    return best > 0;
}

/* Looks in the folders where the runtime would write a file. False: ret_why says why one that is there is no answer. */
static bool find_in_folders(const struct process *process, const char *name, char *ret, size_t size, char *ret_why,
                            size_t why_size)
{
    int pid = process->pid;
    char path[PATH_ROOM], found[PATH_ROOM], shown[160], why[64];
    size_t environment_size;
    CLEANUP_FREE char *environment = read_proc(pid, "environ", &environment_size);
    for (size_t i = 0; i <= ARRAY_SIZE(folder_variables); i++) {
        const char *directory =
            i < ARRAY_SIZE(folder_variables) ? variable(environment, environment_size, folder_variables[i]) : "/tmp";
        int length = directory ? snprintf(path, sizeof path, "%s/%s", directory, name) : 0;
        if (length <= 0 || (size_t)length >= sizeof path || !reach(process, path, found, MIN(size, sizeof found)))
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
static enum cdacq_status find_written(const struct process *process, const struct written_file *file, char *ret,
                                      size_t size, struct cdacq_error *err)
{
    char name[64], why[WHY_ROOM] = "";
    int pid = process->pid;
    snprintf(name, sizeof name, "%s%d%s", file->prefix, own_pid(pid), file->suffix);
    if (find_in_folders(process, name, ret, size, why, sizeof why))
        return CDACQ_OK;
    if (why[0])
        return error_set(err, CDACQ_NOT_MANAGED, 0, "process %d has no %s: %s%s", pid, file->kind, file->unless_mapped,
                         why);
    if (is_refused(pid)) {
        char refusal[PROC_REFUSAL_SIZE];
        proc_describe_refusal(pid, refusal);
        return error_set(err, CDACQ_ERR_IO, 0, "process %d: not permitted to see %s, and there is no %s in /tmp (%s)",
                         pid, file->where, name, refusal);
    }
    return error_set(err, CDACQ_NOT_MANAGED, 0,
                     "process %d has no %s: %sthere is no %s in /tmp or where its environment says (%s makes a .NET "
                     "process write it)",
                     pid, file->kind, file->unless_mapped, name, file->setting);
}

/* False, with IO, if there is no such process. Close its root. */
static bool process_open(int pid, struct process *ret, struct cdacq_error *err)
{
    CLEANUP_CLOSE int fd = pid > 0 ? proc_file_open(pid, "stat") : -1;
    if (fd < 0) {
        error_set(err, CDACQ_ERR_IO, 0, "there is no process %d", pid);
        return false;
    }
    *ret = (struct process){.pid = pid};
    (void)file_root_open_process(&ret->root, pid);
    ret->is_own = file_root_is_own(&ret->root, pid);
    return true;
}

enum cdacq_status cdacq_jitdump_find_file(int pid, char *ret, size_t size, struct cdacq_error *err)
{
    static const struct written_file jitdump = {.prefix = "jit-",
                                                .suffix = ".dump",
                                                .kind = "jitdump",
                                                .where = "which jitdump it has",
                                                .unless_mapped = "it maps none, and ",
                                                .setting = "DOTNET_PerfMapEnabled=1"};
    struct process process;
    if (!process_open(pid, &process, err))
        return CDACQ_ERR_IO;
    enum cdacq_status status =
        find_mapped(&process, ret, size) ? CDACQ_OK : find_written(&process, &jitdump, ret, size, err);
    file_root_close(&process.root);
    return status;
}

enum cdacq_status cdacq_perf_map_find_file(int pid, char *ret, size_t size, struct cdacq_error *err)
{
    static const struct written_file perf_map = {.prefix = "perf-",
                                                 .suffix = ".map",
                                                 .kind = "perf map",
                                                 .where = "where its perf map is",
                                                 .unless_mapped = "",
                                                 .setting = "DOTNET_PerfMapEnabled=3"};
    struct process process;
    if (!process_open(pid, &process, err))
        return CDACQ_ERR_IO;
    enum cdacq_status status = find_written(&process, &perf_map, ret, size, err);
    file_root_close(&process.root);
    return status;
}
