#include "src/cli/base/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/base/busy_threads.h"
#include "src/cli/base/console.h"
#include "src/cli/base/output.h"
#include "src/cli/base/runtimes.h"
#include "src/cli/base/watchdog.h"
#include "util/base.h"
#include "util/file.h"
#include "util/same_file.h"
#include "util/library.h"

static bool is_pipe(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 && S_ISFIFO(st.st_mode);
}

const char *target_truncation(const struct cdacq_target_info *info)
{
    return info->truncation ? info->truncation : "the file ends before its last segment does";
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

static void show_read(uint64_t done, uint64_t total, void *context)
{
    step_bytes(context, done, total, 20);
}

static void show_fetch(const struct cdacq_need *file, uint64_t done, uint64_t total, void *context)
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

/* ---- Files that are not fetched --------------------------------------------------------------------------------- */

/* Files that no server has: an own program has many, and one line says so. */
static struct {
    uint64_t count;
    char first[800];
} absent;

static void note_failure(const struct cdacq_need *file, const char *url, bool is_absent, const char *why, void *context)
{
    (void)context;
    (void)file;
    if (!is_absent)
        message("%s: %s", url, why);
    else if (!absent.count++)
        snprintf(absent.first, sizeof absent.first, "%s: %s", url, why);
}

static void report_absent(void)
{
    if (absent.count > 1)
        notice("%s, nor %" PRIu64 " other%s", absent.first, absent.count - 1, plural(absent.count - 1));
    else if (absent.count)
        notice("%s", absent.first);
    absent.count = 0;
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
    options->fetch_failed = note_failure;
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
        bool image = target_is_image(name);
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

static bool is_output(const struct common_options *options, const struct stat *input)
{
    struct stat output;
    return options->output && stat(options->output, &output) == 0 && is_same_file(&output, input);
}

static bool refuse_output(const struct common_options *options, const struct stat *input, const char *what)
{
    bool same = is_output(options, input);
    if (same)
        message("'%s' is %s and will not be overwritten", options->output, what);
    return same;
}

bool output_is_input(const struct common_options *options, const char *path)
{
    struct stat input;
    return stat(path, &input) == 0 && refuse_output(options, &input, "an input file");
}

bool output_is_file(const struct common_options *options, const char *path)
{
    struct stat input;
    return stat(path, &input) == 0 && refuse_output(options, &input, "the target");
}

bool output_is_a_target(const struct common_options *options)
{
    struct stat input;
    for (size_t i = 0; i < options->targets.count; i++) {
        const char *name = options->targets.items[i];
        if (target_is_stdin(name) ? fstat(STDIN_FILENO, &input) == 0 && refuse_output(options, &input, "the target")
                                  : !target_is_pid(name) && output_is_file(options, name))
            return true;
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

static int count_module(const struct cdacq_mapped_file *module, void *context)
{
    (void)module;
    ++*(uint64_t *)context;
    return 0;
}

void expect_modules(struct progress *progress, struct cdacq_target *target)
{
    uint64_t count = 0;
    if (progress->wanted && cdacq_target_visit_mapped_files(target, count_module, &count, NULL) >= 0)
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

bool stop_is_wanted(const struct common_options *options, const char *target)
{
    return options->open.flags & CDACQ_OPEN_STOP && target_is_pid(target);
}

bool target_stop(struct cdacq_target *target)
{
    struct cdacq_error error;
    watchdog_delay_stops(true);
    if (cdacq_target_stop(target, &error) >= 0)
        return true;
    watchdog_delay_stops(false);
    message("%s", error.message);
    return false;
}

void target_let_go(struct cdacq_target *target)
{
    cdacq_target_resume(target);
    watchdog_delay_stops(false);
}

/* -v: for how long the process was stopped. */
static void report_stops(const struct common_options *options, const struct opened_target *opened)
{
    struct cdacq_stops stops = {.size = sizeof stops};
    target_let_go(opened->target);
    if (!options->verbose || cdacq_target_get_stops(opened->target, &stops, NULL) < 0 || !target_is_pid(opened->name))
        return;
    if (stops.count > 1)
        notice("process %s was stopped %" PRIu64 " times, for %.1f ms together, %.1f ms at most", opened->name,
               stops.count, (double)stops.total_ns / 1e6, (double)stops.longest_ns / 1e6);
    else if (stops.count)
        notice("process %s was stopped for %.1f ms", opened->name, (double)stops.total_ns / 1e6);
    else
        notice("process %s was not stopped", opened->name);
}

static int run_on_open(const struct common_options *options, const struct target_use *use, struct opened_target *opened)
{
    int status = EXIT_FAILED;
    bool all_runtimes = runtimes_are_asked(options, use->flags);
    struct cdacq_error error;
    if (cdacq_session_create(opened->target, &opened->session, &error) < 0)
        message("%s", error.message);
    opened->tells_runtime = all_runtimes && cdacq_target_runtime_count(opened->target) > 1;
    if (opened->session || use->flags & CDACQ_OPEN_PARTIAL)
        status = use->run(options, opened);
    if (opened->session && !use->shows_runtime && !runtimes_tell_left_out(options, all_runtimes, opened->target) &&
        status == EXIT_ANSWERED)
        status = EXIT_PARTLY;
    if (report_bound(opened->target) && status == EXIT_ANSWERED)
        status = EXIT_PARTLY;
    report_stops(options, opened);
    cdacq_session_destroy(opened->session);
    cdacq_target_close(opened->target);
    return status;
}

struct watch {
    const struct target_use *use;
    int pid;
};

static void watch_target(struct cdacq_target *target, void *context)
{
    const struct watch *watch = context;
    watch->use->watch(target, watch->pid, watch->use->busy);
}

static int run_on_target(const struct common_options *options, const struct target_use *use, const char *target)
{
    struct opened_target opened = {.name = target, .is_one_of_several = options->targets.count > 1, .busy = use->busy};
    struct cdacq_options open = options->open;
    open.flags |= use->flags;
    if (!runtimes_are_asked(options, use->flags))
        open.flags &= ~(unsigned)CDACQ_OPEN_ALL_RUNTIMES;
    if (use->stops_itself && target_is_pid(target))
        open.flags &= ~(unsigned)CDACQ_OPEN_STOP;
    if ((use->file && output_is_input(options, use->file)) || output_is_a_target(options))
        return EXIT_FAILED;
    struct progress activity;
    char what[80];
    const char *name = target_display_name(target);
    snprintf(what, sizeof what, "reading %s%.60s", target_is_pid(name) ? "process " : "", path_basename(name));
    progress_begin_activity(&activity, what);
    struct watch watch = {.use = use, .pid = target_is_pid(name) ? target_pid(name) : 0};
    if (use->busy) {
        busy_threads_release(use->busy);
        open.before_stop = watch_target;
        open.before_stop_context = &watch;
    }
    watchdog_delay_stops(open.flags & CDACQ_OPEN_STOP && target_is_pid(target));
    opened.target = target_open(target, &open);
    int status = opened.target ? run_on_open(options, use, &opened) : EXIT_FAILED;
    report_absent();
    watchdog_delay_stops(false);
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

static int run_on_each(const struct common_options *options, const struct target_use *use)
{
    int results = dup(STDOUT_FILENO), worst = EXIT_ANSWERED;
    for (size_t i = 0; i < options->targets.count; i++) {
        const char *name = target_display_name(options->targets.items[i]);
        if (i && dup2(results, STDOUT_FILENO) < 0) { /* the one before has closed it */
            message("cannot write to standard output: %s", strerror(errno));
            worst = EXIT_FAILED;
            break;
        }
        message_set_subject(name);
        if (!options->json && !use->no_heading)
            write_heading(name, i == 0);
        int status = run_on_target(options, use, options->targets.items[i]);
        worst = MAX(worst, status);
    }
    message_set_subject(NULL);
    close(results);
    return worst;
}

/* The library finds nothing by --debuginfod, and does not say why, if there is no server or no client. */
static void check_debuginfod(const struct common_options *options)
{
    static const char *const names[] = {"debuginfod_begin", NULL};
    static const struct library client = {"libdebuginfod.so.1", "libdebuginfod1", names};
    const char *servers = getenv("DEBUGINFOD_URLS");
    void (*begin)(void);
    char why[200];
    if (!(options->open.flags & CDACQ_OPEN_DEBUGINFOD))
        return;
    if (!servers || !servers[0])
        message("--debuginfod: no server is asked, because DEBUGINFOD_URLS is not set");
    else if (!library_load(&client, &begin, why, sizeof why))
        message("--debuginfod: no server is asked: %s", why);
}

int target_run(const struct common_options *options, const struct target_use *use)
{
    check_debuginfod(options);
    return options->targets.count > 1 ? run_on_each(options, use)
                                      : run_on_target(options, use, options->targets.items[0]);
}
