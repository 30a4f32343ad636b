/* target.c: opens TARGET. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/busy_threads.h"
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/output.h"
#include "src/cli/watchdog.h"
#include "util/base.h"
#include "util/file.h"
#include "util/library.h"

bool target_is_pid(const char *name)
{
    return name[0] && name[strspn(name, "0123456789")] == '\0';
}

int target_pid(const char *name)
{
    errno = 0;
    long pid = strtol(name, NULL, 10);
    return errno || pid > INT32_MAX ? 0 : (int)pid;
}

unsigned file_elf_type(const char *path, uint8_t header[FILE_HEADER_SIZE])
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0 || !S_ISREG(st.st_mode) || file_read_at(fd, 0, header, FILE_HEADER_SIZE) < FILE_HEADER_SIZE)
        memset(header, 0, FILE_HEADER_SIZE);
    return memcmp(header, ELFMAG, SELFMAG) == 0 ? load_u16(header + 16, header[EI_DATA] == ELFDATA2MSB) : ET_NONE;
}

uint64_t path_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool is_pipe(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Whether a file is an ELF image, such as libcoreclr.so, and not a core. */
static bool is_image(const char *name)
{
    uint8_t header[FILE_HEADER_SIZE];
    unsigned type = file_elf_type(name, header);
    return type == ET_DYN || type == ET_EXEC;
}

bool target_is_refused(const char *name)
{
    if (target_is_pid(name) || target_is_stdin(name) || !is_image(name))
        return false;
    message("%s: an ELF image, not a core; only 'info' and 'descriptor' can read it", name);
    return true;
}

const char *target_truncation(const struct cdacq_target_info *info)
{
    return info->truncation ? info->truncation : "the file ends before its last segment does";
}

bool target_is_stdin(const char *name)
{
    return !strcmp(name, "-");
}

const char *target_display_name(const char *name)
{
    return target_is_stdin(name) ? "standard input" : name;
}

/* ---- Bytes that are read or fetched ----------------------------------------------------------------------------- */

struct bytes {
    struct progress progress;
    char what[80];
};

static struct bytes reading, fetching; /* one file each */

static void step_bytes(struct bytes *bytes, uint64_t done, uint64_t total, unsigned shift)
{
    progress_expect(&bytes->progress, total >> shift);
    progress_step(&bytes->progress, done >> shift);
}

void bytes_begin(const char *name, int results)
{
    snprintf(reading.what, sizeof reading.what, "MiB of %.60s read", path_basename(name));
    progress_begin(&reading.progress, reading.what, results);
}

void bytes_end(void)
{
    progress_end(&reading.progress);
}

static void show_read(void *context, uint64_t done, uint64_t total)
{
    step_bytes(context, done, total, 20);
}

static void show_fetch(void *context, const struct cdacq_need *file, uint64_t done, uint64_t total)
{
    struct bytes *bytes = context;
    if (!file) {
        progress_end(&bytes->progress);
        return;
    }
    if (!bytes->progress.wanted) {
        snprintf(bytes->what, sizeof bytes->what, "KiB of %.60s fetched", path_basename(file->path));
        progress_begin(&bytes->progress, bytes->what, -1);
    }
    step_bytes(bytes, done, total, 10);
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

/* One that is compressed, or on standard input, is read before it is opened. */
static enum cdacq_status open_core(const char *name, const struct cdacq_options *options, struct cdacq_target **ret,
                                   struct cdacq_error *err)
{
    bytes_begin(target_display_name(name), -1);
    enum cdacq_status status =
        target_is_stdin(name) ? cdacq_target_open_core_fd(STDIN_FILENO, target_display_name(name), options, ret, err)
                              : cdacq_target_open_core(name, options, ret, err);
    bytes_end();
    const char *truncation = status >= 0 ? cdacq_target_truncation(*ret) : NULL;
    if (truncation)
        message("%s: %s", target_display_name(name), truncation);
    return status;
}

/*
 * A folder that is not there is an empty one, except that somebody may have mistyped its name. Other errors are those
 * of one who has no right to look: a crash handler, of any process.
 */
static void check_folders(const char *option, const char *const *folders)
{
    for (; folders && *folders; folders++) {
        struct stat folder;
        errno = 0;
        if (stat(*folders, &folder) == 0 && !S_ISDIR(folder.st_mode))
            errno = ENOTDIR;
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG)
            notice("%s %s: %s; no file is looked for there", option, *folders, strerror(errno));
    }
}

struct cdacq_target *target_open(const char *name, const struct cdacq_options *given)
{
    struct cdacq_options with_progress = *given, *options = &with_progress;
    options->progress = show_read;
    options->progress_context = &reading;
    options->fetching = show_fetch;
    options->fetching_context = &fetching;
    struct cdacq_target *target = NULL;
    struct cdacq_error error;
    enum cdacq_status status;
    watchdog_set(0); /* a file may be on a slow disk */
    check_folders("--sysroot", options->sysroots);
    check_folders("--module-path", options->module_paths);
    if (target_is_stdin(name)) {
        if (isatty(STDIN_FILENO)) {
            message("standard input is a terminal; redirect a core to it");
            return NULL;
        }
        status = open_core(name, options, &target, &error);
    } else if (!target_is_pid(name)) {
        bool image = is_image(name);
        if (!(options->flags & CDACQ_OPEN_PARTIAL) && target_is_refused(name))
            return NULL;
        status =
            image ? cdacq_target_open_image(name, options, &target, &error) : open_core(name, options, &target, &error);
    } else {
        int pid = target_pid(name);
        if (!pid) {
            message("%s: no process can have this pid", name);
            return NULL;
        }
        watchdog_set(pid);
        status = cdacq_target_open_pid(pid, options, &target, &error);
    }
    if (status < 0) {
        message("%s%s", error.message, status == CDACQ_ERR_IO && is_pipe(name) ? "; give a pipe as '-'" : "");
        return NULL;
    }
    return target;
}

static bool is_output(const struct invocation *invocation, const struct stat *input)
{
    struct stat output;
    return invocation->output && stat(invocation->output, &output) == 0 && output.st_dev == input->st_dev &&
           output.st_ino == input->st_ino;
}

bool output_is_input(const struct invocation *invocation, const char *path)
{
    struct stat input;
    bool same = stat(path, &input) == 0 && is_output(invocation, &input);
    if (same)
        message("'%s' is an input file and will not be overwritten", invocation->output);
    return same;
}

bool output_is_a_target(const struct invocation *invocation)
{
    struct stat target;
    if (invocation->file && output_is_input(invocation, invocation->file))
        return true;
    for (size_t i = 0; i < invocation->target_count; i++) {
        const char *name = invocation->targets[i];
        bool opens_target = invocation->command->options & OPTIONS_TARGET;
        if (opens_target && target_is_pid(name))
            continue;
        if ((opens_target && target_is_stdin(name) ? fstat(STDIN_FILENO, &target) : stat(name, &target)) < 0)
            continue;
        if (is_output(invocation, &target)) {
            message("'%s' is the target and will not be overwritten", invocation->output);
            return true;
        }
    }
    return false;
}

/* One line for a command that reached a bound. Returns whether it did. */
static bool report_bound(const struct cdacq_target *target)
{
    char bound[160];
    if (!cdacq_target_bound_reached(target, bound, sizeof bound))
        return false;
    if (!message_was_shown(bound))
        message("%s", bound);
    return true;
}

static int count_module(const struct cdacq_module_info *module, void *context)
{
    (void)module;
    ++*(uint64_t *)context;
    return 0;
}

void expect_modules(struct progress *progress, struct cdacq_target *target)
{
    uint64_t count = 0;
    if (progress->wanted && cdacq_target_visit_modules(target, count_module, &count, NULL) >= 0)
        progress_expect(progress, count);
}

static int count_thread(const struct cdacq_thread *thread, void *context)
{
    (void)thread;
    ++*(uint64_t *)context;
    return 0;
}

void expect_threads(struct progress *progress, struct cdacq_session *session)
{
    uint64_t count = 0;
    if (progress->wanted && cdacq_session_visit_threads(session, count_thread, &count, NULL) >= 0)
        progress_expect(progress, count);
}

bool stop_is_wanted(const struct invocation *invocation)
{
    return invocation->options.flags & CDACQ_OPEN_STOP && target_is_pid(invocation->targets[0]);
}

bool target_stop(struct cdacq_target *target)
{
    struct cdacq_error error;
    if (cdacq_target_stop(target, &error) >= 0)
        return true;
    message("%s", error.message);
    return false;
}

/* -v: for how long the process was stopped. */
static void report_stops(const struct invocation *invocation, struct cdacq_target *target)
{
    struct cdacq_stops stops = {.size = sizeof stops};
    cdacq_target_resume(target);
    if (!invocation->verbose || cdacq_target_get_stops(target, &stops, NULL) < 0 ||
        !target_is_pid(invocation->targets[0]))
        return;
    if (stops.count > 1)
        notice("process %s was stopped %" PRIu64 " times, for %.1f ms together, %.1f ms at most",
               invocation->targets[0], stops.count, (double)stops.total / 1e6, (double)stops.longest / 1e6);
    else if (stops.count)
        notice("process %s was stopped for %.1f ms", invocation->targets[0], (double)stops.total / 1e6);
    else
        notice("process %s was not stopped", invocation->targets[0]);
}

typedef int run_command(const struct invocation *invocation, struct cdacq_target *target,
                        struct cdacq_session *session);

static int run_on_open(const struct invocation *invocation, unsigned flags, struct cdacq_target *target,
                       run_command *run)
{
    int status = EXIT_FAILED;
    struct cdacq_session *session = NULL;
    struct cdacq_error error;
    if (cdacq_session_create(target, &session, &error) < 0)
        message("%s", error.message);
    if (session || flags & CDACQ_OPEN_PARTIAL)
        status = run(invocation, target, session);
    if (report_bound(target) && status == EXIT_ANSWERED)
        status = EXIT_PARTLY;
    report_stops(invocation, target);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return status;
}

static int run_on_target(const struct invocation *invocation, unsigned more_flags, run_command *run)
{
    struct cdacq_options options = invocation->options;
    options.flags |= more_flags;
    if (invocation->command->stops_itself && target_is_pid(invocation->targets[0]))
        options.flags &= ~(unsigned)CDACQ_OPEN_STOP;
    if (output_is_a_target(invocation))
        return EXIT_FAILED;
    struct progress activity;
    char what[80];
    const char *name = target_display_name(invocation->targets[0]);
    snprintf(what, sizeof what, "reading %s%.60s", target_is_pid(name) ? "process " : "", path_basename(name));
    progress_begin_activity(&activity, what);
    if (invocation->busy)
        busy_threads_measure(target_is_pid(name) ? target_pid(name) : 0, invocation->busy);
    struct cdacq_target *target = target_open(invocation->targets[0], &options);
    int status = target ? run_on_open(invocation, options.flags, target, run) : EXIT_FAILED;
    watchdog_set(0);
    progress_end(&activity);
    return status;
}

/* "==> core.1 <==", as head(1) has it. */
static void write_heading(const char *name, bool is_first)
{
    struct output out;
    output_open(&out, NULL);
    output_style(&out, STYLE_HEADING);
    output_text_between(&out, is_first ? "==> " : "\n==> ", name, " <==");
    output_style(&out, STYLE_NONE);
    output_literal(&out, "\n");
    output_flush(&out);
    output_abandon(&out); /* standard output stays open */
}

/* The exit code is the worst of all. */
static int run_on_each(const struct invocation *invocation, unsigned more_flags, run_command *run)
{
    int results = dup(STDOUT_FILENO), worst = EXIT_ANSWERED;
    for (size_t i = 0; i < invocation->target_count; i++) {
        struct invocation one = *invocation;
        one.targets += i;
        one.target_count = 1;
        one.is_one_of_several = true;
        const char *name = target_display_name(one.targets[0]);
        if (i && dup2(results, STDOUT_FILENO) < 0) { /* the one before has closed it */
            message("cannot write to standard output: %s", strerror(errno));
            worst = EXIT_FAILED;
            break;
        }
        message_set_subject(name);
        if (!one.json && !one.signature)
            write_heading(name, i == 0);
        int status = run_on_target(&one, more_flags, run);
        worst = MAX(worst, status);
    }
    message_set_subject(NULL);
    close(results);
    return worst;
}

/* The library finds nothing by --debuginfod, and does not say why, if there is no server or no client. */
static void check_debuginfod(const struct invocation *invocation)
{
    static const char *const names[] = {"debuginfod_begin", NULL};
    static const struct library client = {"libdebuginfod.so.1", "libdebuginfod1", names};
    const char *servers = getenv("DEBUGINFOD_URLS");
    void (*begin)(void);
    char why[200];
    if (!(invocation->options.flags & CDACQ_OPEN_DEBUGINFOD))
        return;
    if (!servers || !servers[0])
        message("--debuginfod: no server is asked, because DEBUGINFOD_URLS is not set");
    else if (!library_load(&client, &begin, why, sizeof why))
        message("--debuginfod: no server is asked: %s", why);
}

int target_run(const struct invocation *invocation, unsigned more_flags, run_command *run)
{
    check_debuginfod(invocation);
    return invocation->command->takes_targets && invocation->target_count > 1
               ? run_on_each(invocation, more_flags, run)
               : run_on_target(invocation, more_flags, run);
}
