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

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/left_out_code.h"
#include "src/cli/base/memory.h"
#include "src/cli/commands/native_aot.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/output_folder.h"
#include "util/file.h"
#include "util/file_root.h"
#include "util/same_file.h"
#include "util/text.h"

struct symfs_options {
    struct method_options which;
    const char *folder;
};

struct work {
    const struct symfs_options *options;
    const struct cdacq_target *target;
    struct cdacq_session *session;
    struct progress progress;
    uint64_t done;
    int process;            /* its id; 0 of a core */
    struct file_root *root; /* of the process; NULL of a core */
    struct output_folder folder;
    struct cdacq_written written; /* of all files, except for bytes and stubs */
    struct left_out code;         /* that is not in the files of its mappings */
    uint64_t files, links;
    uint64_t left_out; /* files and links */
    uint64_t missing;  /* files with code that were not found */
    char *first_missing;
    bool failed; /* the folder cannot be written */
    bool anonymous;
    bool at_bound; /* no more files and links are made */
};

/* A file that is being written. */
struct elf {
    struct work *work;
    struct output *out;
};

static int take_bytes(const void *bytes, size_t size, void *context)
{
    struct output *out = ((struct elf *)context)->out;
    output_bytes(out, bytes, size);
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
    unsigned flags = (unsigned)CDACQ_ELF_CODE | CDACQ_VISIT_STUBS | method_flags(&work->options->which, R2R_ALL);
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
    bool done = folder >= 0 && folder_file_begin(&work->folder, folder, path, name, 0600, &file);
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
static void note_missing(struct work *work, const struct cdacq_code_file *file)
{
    static const char *const others[] = {"/memfd:", "/dev/zero", "/SYSV"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (string_begins_with(file->path, others[i]))
            return;
    if (file->may_execute && !work->missing++)
        work->first_missing = strdup(file->path);
}

/*
 * Where this machine has the file that a process means: by way of the process if that is in a container. NULL if there
 * is no process, or it has no such file. The caller frees it. *ret is what fstat() says of it.
 */
static char *reach(const struct work *work, const char *path, struct stat *ret)
{
    struct stat here;
    if (!work->root)
        return NULL;
    CLEANUP_CLOSE int there = file_root_find(work->root, file_root_inside(work->root, path), ret);
    if (there < 0)
        return NULL;
    CLEANUP_CLOSE int own = file_root_find(&file_root_machine, path, &here);
    bool is_same = own >= 0 && is_same_file(&here, ret);
    size_t size = strlen(path) + sizeof work->root->room;
    char *reached = allocate(size);
    snprintf(reached, size, "%s%s", is_same ? "" : work->root->name,
             is_same ? path : file_root_inside(work->root, path));
    return reached;
}

/* A recording that began before the file was deleted has the path that it had then. */
static void link_former_path(struct work *work, const struct cdacq_code_file *file)
{
    struct stat known;
    const char *name, *slash = strrchr(file->path, '/');
    if (!file->former_path || !slash || !output_folder_takes(file->former_path))
        return;
    int folder = output_folder_of(&work->folder, file->former_path, &name);
    bool is_taken = folder < 0 || (fstatat(folder, name, &known, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(known.st_mode));
    if (folder >= 0)
        close(folder);
    if (!is_taken)
        work->links += link_to(work, file->former_path, slash + 1);
}

/*
 * What a link holds that leads to a file which is reached by way of the process. perf enters the mount namespace of a
 * process before it opens its files, and there /proc may have other processes, or none. In a folder that was written by
 * way of the process, links are therefore paths of its namespace.
 */
static const char *linked_path(const struct work *work, const char *path, const char *reached)
{
    char root[64];
    int length = snprintf(root, sizeof root, "/proc/%d/root/", work->process);
    return strncmp(work->options->folder, root, (size_t)length) == 0 ? path : reached;
}

/*
 * The path of a file without links: where it leads does not change when somebody replaces one. False: it has none here.
 */
static bool find_real_path(const struct cdacq_code_file *file, bool is_reached, char *ret, size_t size)
{
    struct stat st;
    CLEANUP_CLOSE int fd = -1;
    if (is_reached)
        fd = file_root_find(&file_root_machine, file->path, &st);
    else if (file->local_file && cdacq_local_file_open(file->local_file, &fd, NULL) < 0)
        fd = -1;
    return fd >= 0 && file_real_path(fd, ret, size);
}

/* Links to the file that the target means. */
static void link_file(struct work *work, const struct cdacq_code_file *file)
{
    struct stat st;
    char real[PATH_MAX];
    CLEANUP_FREE char *reached = reach(work, file->path, &st);
    bool is_reached = reached && S_ISREG(st.st_mode);
    bool by_process = is_reached && strcmp(reached, file->path) != 0;
    /* In the other namespace, the path has no links: it is the kernel's. Here, it may lead elsewhere. */
    bool found = by_process || ((is_reached || !reached) && find_real_path(file, is_reached, real, sizeof real));
    if (found)
        work->links += link_to(work, file->path, by_process ? linked_path(work, file->path, reached) : real);
    if (found)
        link_former_path(work, file);
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
    CLEANUP_FREE char *reached = reach(work, path, &st);
    CLEANUP_CLOSE int own = reached ? -1 : file_root_find(&file_root_machine, path, &st);
    const char *to = reached ? reached : path;
    if ((reached || own >= 0) && S_ISDIR(st.st_mode))
        (void)link_to(work, path, strcmp(to, path) == 0 ? path : linked_path(work, path, reached));
}

static void add_code(struct work *work, const struct cdacq_code_file *file)
{
    work->failed |= !write_code(work, file->path);
    link_former_path(work, file);
}

static int add_file(const struct cdacq_code_file *file, void *context)
{
    struct work *work = context;
    char bound[160];
    progress_step(&work->progress, ++work->done);
    work->anonymous |= !file->path;
    if (!file->path || !output_folder_takes(file->path))
        return 0;
    work->at_bound = work->at_bound || cdacq_target_bound_reached(work->target, bound, sizeof bound);
    if (work->at_bound)
        work->left_out++;
    else if (file->has_code)
        add_code(work, file);
    else
        link_file(work, file);
    return 0;
}

/*
 * A folder is one process's: compiled code of each process is in a file of the same name. A file in it says which
 * process that is, by where the kernel has put its runtime.
 */
static const char owner_file[] = ".cdacq-symfs";

static void write_owner(const struct cdacq_target_info *info, char *ret, size_t size)
{
    snprintf(ret, size, "runtime %s at 0x%" PRIx64 "\n", info->runtime_build_id ? info->runtime_build_id : "?",
             info->runtime_base);
}

/* False, with a message, if the folder is another process's. */
static bool check_owner(const struct work *work, const struct cdacq_target_info *info)
{
    char owner[160], known[160] = "";
    struct stat st;
    const struct file_root folder = {.fd = work->folder.fd, .confined = true, .name = ""};
    CLEANUP_CLOSE int fd = file_root_open_file(&folder, owner_file, &st);
    write_owner(info, owner, sizeof owner);
    if (fd < 0 || !file_read_at(fd, 0, known, sizeof known - 1) || strcmp(known, owner) == 0)
        return true;
    message("'%s': it has the files of another process; name another folder, or remove this one",
            work->options->folder);
    return false;
}

static void note_owner(struct work *work, const struct cdacq_target_info *info)
{
    char owner[160];
    struct folder_file file;
    write_owner(info, owner, sizeof owner);
    if (!folder_file_begin(&work->folder, work->folder.fd, owner_file, owner_file, 0666, &file))
        return;
    output_literal(&file.out, owner);
    (void)folder_file_end(&work->folder, &file, true);
}

static void tell_missing(struct work *work)
{
    if (work->missing)
        message("files that may have code and were not found, so that it has no names: %" PRIu64 "; the first: '%s'",
                work->missing, work->first_missing ? work->first_missing : "?");
    free(work->first_missing);
}

static int write_all(const void *given, const struct opened_target *opened)
{
    const struct symfs_options *options = given;
    struct work work = {
        .options = options, .target = opened->target, .session = opened->session, .code.target = opened->target};
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_error error;
    cdacq_target_get_info(opened->target, &info, NULL);
    work.process = info.kind == CDACQ_TARGET_PROCESS ? info.pid : 0;
    if (native_aot_refused(opened->target) || !output_folder_open(&work.folder, options->folder))
        return EXIT_FAILED;
    if (!check_owner(&work, &info)) {
        output_folder_close(&work.folder);
        return EXIT_FAILED;
    }
    struct file_root root = {.fd = -1};
    if (work.process && file_root_open_process(&root, work.process))
        work.root = &root;
    progress_begin(&work.progress, "files", -1);
    expect_modules(&work.progress, opened->target);
    enum cdacq_status status = cdacq_session_visit_code_files(opened->session, add_file, &work, &error);
    progress_end(&work.progress);
    bool all_visited = status >= 0 || status == CDACQ_ERR_MEMORY; /* it may not be known which of them have code */
    if (all_visited)
        link_debug_files(&work);
    if (work.files || work.links)
        note_owner(&work, &info);
    output_folder_close(&work.folder);
    file_root_close(&root);
    left_out_tell(&work.code, false, status < 0 ? error.message : NULL);
    if (!all_visited || work.failed) {
        free(work.first_missing);
        return EXIT_FAILED;
    }
    notice("'%s': %" PRIu64 " file%s with %" PRIu64 " method%s, %" PRIu64 " link%s", options->folder, work.files,
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
            target_display_name(opened->name), info.pid);
    bool partly = status < 0 || work.left_out || work.missing || unknown_file || work.code.count ||
                  work.written.functions_left_out;
    return partly && (work.files || work.links) ? EXIT_PARTLY : work.files ? EXIT_ANSWERED : EXIT_FAILED;
}

static int run(const void *given)
{
    const struct symfs_options *options = given;
    return target_run(&options->which.common, &(const struct target_use){.run = write_all, .file = options->folder});
}

const struct command command_symfs = {
    .name = "symfs",
    .section = SECTION_FILES,
    RUNS(run, struct symfs_options),
    .operands = OPERANDS({TARGET_OPERAND}, {"DIR", OPERAND_FOLDER, TO_WORD(struct symfs_options, folder)}),
    .options = OPTIONS(target_rows, names_rows, r2r_rows),
    .summary = "write a folder in which perf finds the names of the managed code",
    .details = "DIR gets an ELF file for each mapped file that has managed code, and links to the other mapped files.\n"
               "The process needs no settings:\n"
               "  perf record -g -p PID -- sleep 10\n"
               "  cdacq symfs PID DIR\n"
               "  perf report --symfs DIR --kallsyms /proc/kallsyms\n",
    .exit_partly = "a method has no name, or code could not be read",
};
