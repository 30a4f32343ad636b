/*
 * cmd_ps.c: lists the .NET processes of this machine, with their runtimes. Each is opened as the other commands would
 * open it, so that the list says which of them can be read. Other processes of the tool do that, so that a process that
 * holds them up costs its own line only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/cli/base/runtimes.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/workers.h"
#include "util/base.h"
#include "util/escape.h"
#include "util/proc_file.h"

enum {
    WORK_MAX = 30 * 1000 * 1000, /* steps for a process: about a second */
    MEMORY_MAX = 128 << 20,
    RUNTIMES_MAX = 16, /* of one process that are shown */
};

struct work {
    const struct common_options *options;
    const int *pids;
    struct output out;
    struct progress progress;
    uint64_t count, unreadable, examined;
    int width; /* of the terminal; 0: lines are not cut */
};

/* What opening a process says. */
struct opened {
    char version[64];                /* "" if it is not known */
    char runtimes[RUNTIMES_MAX][64]; /* the versions of all, where there are several */
    unsigned runtime_count;
    char problem[CDACQ_ERROR_MESSAGE_SIZE];
    bool readable;
};

static int add_runtime(const struct cdacq_runtime_info *runtime, void *context)
{
    struct opened *opened = context;
    snprintf(opened->runtimes[opened->runtime_count++], sizeof opened->runtimes[0], "%s",
             runtime->version ? runtime->version : "");
    return opened->runtime_count == RUNTIMES_MAX;
}

static void open_process(const struct work *work, int pid, struct opened *opened)
{
    struct cdacq_options options = work->options->open;
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_target *target;
    struct cdacq_error error;
    options.work_max = WORK_MAX;
    options.memory_max = MEMORY_MAX;
    options.flags |= CDACQ_OPEN_ALL_RUNTIMES;
    *opened = (struct opened){0};
    if (cdacq_target_open_pid(pid, &options, &target, &error) < 0) {
        snprintf(opened->problem, sizeof opened->problem, "%s", error.message);
        return;
    }
    opened->readable = true;
    if (cdacq_target_get_info(target, &info, NULL) >= 0 && runtime_version_of(&info))
        snprintf(opened->version, sizeof opened->version, "%s", runtime_version_of(&info));
    if (cdacq_target_runtime_count(target) > 1)
        cdacq_target_visit_runtimes(target, add_runtime, opened, NULL);
    cdacq_target_close(target);
}

/* "8.0.34" or, of several runtimes, "8.0.34,10.0.15"; "?" for what is not known. */
static void form_versions(const struct opened *opened, char *ret, size_t size)
{
    size_t length = (size_t)snprintf(ret, size, "%s", opened->version[0] ? opened->version : "?");
    for (unsigned i = 0; i < opened->runtime_count; i++) {
        const char *version = opened->runtimes[i][0] ? opened->runtimes[i] : "?";
        length = i ? length : 0;
        if (length < size)
            length += (size_t)snprintf(ret + length, size - length, "%s%s", i ? "," : "", version);
    }
}

static void write_json(struct output *out, const struct cdacq_process *process, const struct opened *opened)
{
    struct json_writer writer = json_begin_line(out), *w = &writer;
    json_number(w, "pid", (uint64_t)process->pid);
    json_known_number(w, "inner_pid", process->inner_pid != 0, (uint64_t)process->inner_pid);
    json_number(w, "uid", process->uid);
    json_number(w, "threads", process->thread_count);
    json_string(w, "name", process->name);
    json_string(w, "program", process->program);
    json_string(w, "arguments", process->arguments);
    json_bool(w, "arguments_cut", process->arguments_cut);
    json_string(w, "container", process->container);
    json_string(w, "runtime_path", process->runtime_path);
    json_string(w, "runtime", opened->version[0] ? opened->version : NULL);
    if (opened->runtime_count) {
        json_begin_array(w, "runtimes");
        for (unsigned i = 0; i < opened->runtime_count; i++)
            json_string(w, NULL, opened->runtimes[i][0] ? opened->runtimes[i] : NULL);
        json_end_array(w);
    }
    json_bool(w, "readable", opened->readable);
    json_note(w, "problem", opened->readable ? NULL : opened->problem);
    json_end_line(w);
}

/* Writes text in at most `room` columns, but at least "...". Each character that is not escaped counts as one. */
static void write_cut(struct output *out, const char *text, size_t room)
{
    char escaped[ESCAPED_CHARACTER_SIZE];
    size_t length = strlen(text), at = 0, columns = 0, kept = 0;
    while (at < length && columns <= room) {
        size_t taken;
        const char *end = escape_character(escaped, text + at, length - at, ESCAPE_DATA, &taken);
        columns += escape_keeps((uint8_t)escaped[0]) || escaped[0] == '\\' ? (size_t)(end - escaped) : 1;
        at += taken;
        if (columns + 3 <= room)
            kept = at;
    }
    bool cut = columns > room;
    output_escaped(out, text, cut ? kept : length, ESCAPE_DATA);
    if (cut)
        output_literal(out, "...");
}

static void write_text(const struct work *work, struct output *out, const struct cdacq_process *process,
                       const struct opened *opened)
{
    char line[160], versions[64];
    const char *program = process->arguments ? process->arguments : process->program ? process->program : process->name;
    form_versions(opened, versions, sizeof versions);
    int length = snprintf(line, sizeof line, "%7d  %-9.63s %7u  %-12.12s  ", process->pid, versions,
                          process->thread_count, process->container ? process->container : "-");
    output_literal(out, line);
    if (program && work->width)
        write_cut(out, program, work->width > length ? (size_t)(work->width - length) : 0);
    else if (program)
        output_text(out, program);
    output_literal(out, "\n");
    if (opened->readable)
        return;
    output_style(out, STYLE_DOUBT);
    output_note_between(out, "         ", opened->problem, "");
    output_style(out, STYLE_NONE);
    output_literal(out, "\n");
}

static void write_process(const struct work *work, struct output *out, const struct cdacq_process *process,
                          const struct opened *opened)
{
    if (work->options->json)
        write_json(out, process, opened);
    else
        write_text(work, out, process, opened);
}

/* What is said of a process that does not answer. */
static void form_silence(struct opened *ret, int pid)
{
    *ret = (struct opened){0};
    snprintf(ret->problem, sizeof ret->problem, "process %d: it could not be examined within %d seconds", pid,
             WORKERS_SECONDS);
}

/* ---- In another process ---- */

struct examination {
    const struct work *work;
    struct workers_self *self;
};

static void tell(const struct examination *examination, const struct cdacq_process *process,
                 const struct opened *opened)
{
    struct output out;
    output_open_memory(&out);
    out.colour = examination->work->out.colour;
    write_process(examination->work, &out, process, opened);
    workers_tell(examination->self, &out, !opened->readable);
    output_abandon(&out);
}

static int examine(const struct cdacq_process *process, void *context)
{
    struct opened opened;
    form_silence(&opened, process->pid);
    tell(context, process, &opened); /* opening it may take for ever */
    open_process(((const struct examination *)context)->work, process->pid, &opened);
    tell(context, process, &opened);
    return 0;
}

static void examine_if_dotnet(void *context, size_t item, struct workers_self *self)
{
    struct examination examination = {.work = context, .self = self};
    (void)cdacq_visit_process(examination.work->pids[item], examine, &examination, NULL);
}

/* ---- In this one ---- */

static int list_process(void *context, size_t item, const struct workers_result *result)
{
    struct work *work = context;
    int pid = work->pids[item];
    struct opened silent;
    progress_step(&work->progress, ++work->examined);
    if (!result->length && !result->is_late) /* it is not .NET */
        return 0;
    if (!work->count++ && !work->options->json)
        output_styled(&work->out, STYLE_HEADING, "    PID  RUNTIME   THREADS  CONTAINER     PROGRAM\n");
    work->unreadable += result->is_partly || result->is_late;
    if (result->length) {
        output_bytes(&work->out, result->text, result->length);
    } else {
        form_silence(&silent, pid);
        write_process(work, &work->out, &(struct cdacq_process){.pid = pid}, &silent);
    }
    output_flush(&work->out);
    return output_failed(&work->out);
}

static int run(const void *given)
{
    const struct common_options *options = given;
    struct work work = {.options = options};
    size_t count;
    if (!output_open(&work.out, options->output))
        return EXIT_FAILED;
    work.width = terminal_width(work.out.fd);
    CLEANUP_FREE int *pids = proc_list_processes(&count);
    work.pids = pids;
    progress_begin(&work.progress, "processes", work.out.fd);
    progress_expect(&work.progress, pids ? count : 0);
    bool done = pids && workers_run(count, examine_if_dotnet, list_process, &work);
    int error = errno;
    progress_end(&work.progress);
    bool written = output_close_if(&work.out, done);
    if (!done)
        message("%s%s", pids ? "processes: " : "/proc: ", strerror(error));
    else if (!work.count)
        message("no .NET process was found");
    if (!written)
        return EXIT_FAILED;
    return work.unreadable ? EXIT_PARTLY : EXIT_ANSWERED;
}

const struct command command_ps = {
    .name = "ps",
    .section = SECTION_PROCESS,
    RUNS(run, struct common_options),
    .options = OPTIONS(json_rows, output_rows),
    .summary = "list the .NET processes of this machine",
    .details = "One line for each process that is visible here, also in containers: pid, runtime, number of threads,\n"
               "container, and command line. If a process cannot be read, the next line says what is needed.\n",
    .exit_partly = "some process cannot be read",
};
