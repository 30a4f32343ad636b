/*
 * cmd_symfs.c: writes a folder in which perf finds the symbols of a process (perf report --symfs): an ELF file for each
 * mapped file that has managed code, and links to the others, by their paths below the folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/left_out.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"
#include "src/cli/output_folder.h"
#include "util/base.h"

struct work {
    const struct invocation *invocation;
    const struct cdacq_target *target;
    struct cdacq_session *session;
    struct progress progress;
    uint64_t done;
    int process; /* its id; 0 of a core */
    struct output_folder folder;
    struct cdacq_written written; /* of all files, except for bytes and stubs */
    struct left_out code;         /* that is not in the files of its mappings */
    uint64_t files, links;
    uint64_t left_out; /* files and links */
    uint64_t missing;  /* files with code that were not found */
    char *first_missing;
    bool failed; /* the folder cannot be written */
    bool anonymous;
    bool at_bound; /* no more files with code are written */
};

/* A file that is being written. */
struct elf {
    struct work *work;
    struct output *out;
};

static int take_bytes(const void *bytes, size_t size, void *context)
{
    struct output *out = ((struct elf *)context)->out;
    char *p = output_reserve(out, size);
    memcpy(p, bytes, size);
    output_commit(out, p + size);
    return output_failed(out);
}

static int take_left_out(const struct cdacq_method *method, void *context)
{
    return left_out_take(&((struct elf *)context)->work->code, method);
}

static void add_written(struct cdacq_written *sum, const struct cdacq_written *written)
{
    sum->methods += written->methods;
    sum->unverified += written->unverified;
    sum->functions_left_out += written->functions_left_out;
    sum->without_epilogs += written->without_epilogs;
}

/*
 * Writes the ELF file of the code that is mapped from `path`. Returns whether it is whole: false also if there is no
 * code. At a bound, or if the file cannot be made, it is left out.
 */
static bool write_elf(struct work *work, const char *path, struct output *out)
{
    struct cdacq_written written = {.size = sizeof written};
    struct elf elf = {work, out};
    const struct cdacq_sink sink = {
        .size = sizeof sink, .context = &elf, .write = take_bytes, .left_out = take_left_out, .visited = NULL};
    const struct invocation *invocation = work->invocation;
    unsigned flags = (unsigned)CDACQ_ELF_CODE | (unsigned)CDACQ_VISIT_STUBS |
                     (invocation->r2r == R2R_PREPARED ? 0u : (unsigned)CDACQ_VISIT_R2R_ALL);
    struct cdacq_error error;
    enum cdacq_status status = cdacq_session_write_elf_of_file(work->session, path, flags, &sink, &written, &error);
    if (status < 0 && !message_was_shown(error.message)) /* such as the end of the process, for each file */
        message("%s", error.message);
    add_written(&work->written, &written);
    work->left_out += status != CDACQ_OK;
    return status == CDACQ_OK && written.bytes;
}

/* Returns false if the folder cannot be written. */
static bool write_code(struct work *work, const char *path)
{
    const char *name;
    struct folder_file file;
    int folder = output_folder_of(&work->folder, path, &name);
    bool done = folder >= 0 && folder_file_begin(&work->folder, folder, path, name, &file);
    if (done) {
        bool is_whole = write_elf(work, path, &file.out);
        done = folder_file_end(&work->folder, &file, is_whole);
        work->files += done && is_whole;
    }
    if (folder >= 0)
        close(folder);
    return done;
}

/*
 * Makes `path` in the folder a link, in place of an earlier link. False, with a message, if it cannot: what is there
 * and is no link may be a file that somebody collected.
 */
static bool link_to(struct work *work, const char *path, const char *to)
{
    struct stat known;
    const char *name;
    int folder = output_folder_of(&work->folder, path, &name);
    if (folder >= 0 && fstatat(folder, name, &known, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(known.st_mode))
        (void)unlinkat(folder, name, 0);
    bool linked = folder >= 0 && (symlinkat(to, folder, name) == 0 || output_folder_complain(&work->folder, path));
    work->left_out += !linked;
    if (folder >= 0)
        close(folder);
    return linked;
}

/* Counts a file whose code has no names now. */
static void note_missing(struct work *work, const struct cdacq_mapped_file *file)
{
    static const char *const others[] = {"/memfd:", "/dev/", "/SYSV"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (strncmp(file->path, others[i], strlen(others[i])) == 0)
            return;
    if (file->may_execute && !work->missing++)
        work->first_missing = strdup(file->path);
}

/*
 * Where this machine has the file that a process means: by way of the process if that is in a container. NULL if there
 * is no process, or it has no such file. The caller frees it.
 */
static char *reach(const struct work *work, const char *path)
{
    struct stat here, there;
    size_t size = strlen(path) + 64;
    char *through = allocate(size);
    snprintf(through, size, "/proc/%d/root%s", work->process, path);
    if (!work->process || stat(through, &there) < 0) {
        free(through);
        return NULL;
    }
    if (stat(path, &here) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino)
        strcpy(through, path); /* it has room for more */
    return through;
}

/* Links to the file that the target means. */
static void link_file(struct work *work, const struct cdacq_mapped_file *file)
{
    struct stat st;
    CLEANUP_FREE char *reached = reach(work, file->path);
    const char *local_path = reached ? reached : file->local_path;
    bool found = local_path && stat(local_path, &st) == 0 && S_ISREG(st.st_mode);
    CLEANUP_FREE char *absolute = found ? realpath(local_path, NULL) : NULL;
    bool by_process = reached && strcmp(reached, file->path) != 0; /* what that leads to is of its namespace */
    if (absolute)
        work->links += link_to(work, file->path, by_process ? reached : absolute);
    else
        note_missing(work, file);
}

/*
 * The separate debug files of the machine, or of the container that the process is in: native code has its names there.
 */
static void link_debug_files(struct work *work)
{
    static const char path[] = "/usr/lib/debug";
    struct stat st;
    CLEANUP_FREE char *reached = reach(work, path);
    const char *to = reached ? reached : path;
    if (stat(to, &st) == 0 && S_ISDIR(st.st_mode))
        (void)link_to(work, path, to);
}

static void add_code(struct work *work, const char *path)
{
    char bound[160];
    if (work->at_bound) {
        work->left_out++;
        return;
    }
    work->failed |= !write_code(work, path);
    work->at_bound = cdacq_target_bound_reached(work->target, bound, sizeof bound);
}

static int add_file(const struct cdacq_mapped_file *file, void *context)
{
    struct work *work = context;
    progress_step(&work->progress, ++work->done);
    work->anonymous |= !file->path;
    if (!file->path || !output_folder_takes(file->path))
        return 0;
    if (file->has_code)
        add_code(work, file->path);
    else
        link_file(work, file);
    return 0;
}

static void tell_missing(struct work *work)
{
    if (work->missing)
        message("files that may have code and were not found, so that it has no names: %" PRIu64 "; the first: '%s'",
                work->missing, work->first_missing ? work->first_missing : "?");
    free(work->first_missing);
}

static int write_all(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {.invocation = invocation, .target = target, .session = session, .code.target = target};
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_error error;
    cdacq_target_get_info(target, &info, NULL);
    work.process = info.kind == CDACQ_TARGET_PROCESS ? info.pid : 0;
    if (!output_folder_open(&work.folder, invocation->file))
        return EXIT_FAILED;
    progress_begin(&work.progress, "files", -1);
    expect_modules(&work.progress, target);
    enum cdacq_status status = cdacq_session_visit_mapped_files(session, add_file, &work, &error);
    progress_end(&work.progress);
    bool all_visited = status >= 0 || status == CDACQ_ERR_MEMORY; /* it may not be known which of them have code */
    if (all_visited)
        link_debug_files(&work);
    output_folder_close(&work.folder);
    left_out_tell(&work.code, false, status < 0 ? error.message : NULL);
    if (!all_visited || work.failed) {
        free(work.first_missing);
        return EXIT_FAILED;
    }
    notice("'%s': %" PRIu64 " file%s with %" PRIu64 " method%s, %" PRIu64 " link%s", invocation->file, work.files,
           plural(work.files), work.written.methods, plural(work.written.methods), work.links, plural(work.links));
    left_out_tell_counts(&work.code, &work.written);
    tell_missing(&work);
    bool unknown_file = work.anonymous && info.writer && strcmp(info.writer, "createdump") == 0;
    if (unknown_file)
        message("createdump does not say in which file compiled code is: if perf says '/memfd:doublemapper', only "
                "symfs of the process or of a core of another kind names it");
    else if (work.anonymous)
        notice(
            "compiled code is in memory that no file backs: 'cdacq perfmap %s -o /tmp/perf-%d.map' names it for perf",
            target_display_name(invocation->targets[0]), info.pid);
    bool partly = status < 0 || work.left_out || work.missing || unknown_file || work.code.count ||
                  work.written.functions_left_out;
    return partly && (work.files || work.links) ? EXIT_PARTLY : work.files ? EXIT_ANSWERED : EXIT_FAILED;
}

int cmd_symfs(const struct invocation *invocation)
{
    return target_run(invocation, 0, write_all);
}
