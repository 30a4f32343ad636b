/*
 * cmd_ps.c: lists the .NET processes of this machine, with their runtimes. Each is opened as the other commands would
 * open it, so that the list says which of them can be read.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/json_writer.h"
#include "src/cli/output.h"
#include "src/cli/watchdog.h"
#include "util/base.h"
#include "util/escape.h"

enum {
    WORK_MAX = 30 * 1000 * 1000, /* steps for a process: about a second */
    MEMORY_MAX = 128 << 20,
};

struct work {
    const struct invocation *invocation;
    struct output out;
    struct progress progress;
    uint64_t count, unreadable;
    int width; /* of the terminal; 0: lines are not cut */
};

/* What opening a process says. */
struct opened {
    char version[64]; /* "" if it is not known */
    char problem[CDACQ_ERROR_MESSAGE_SIZE];
    bool readable;
};

static void open_process(const struct work *work, int pid, struct opened *opened)
{
    struct cdacq_options options = work->invocation->options;
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_target *target;
    struct cdacq_error error;
    options.work_max = WORK_MAX;
    options.memory_max = MEMORY_MAX;
    *opened = (struct opened){0};
    watchdog_set(pid);
    if (cdacq_target_open_pid(pid, &options, &target, &error) < 0) {
        snprintf(opened->problem, sizeof opened->problem, "%s", error.message);
        return;
    }
    opened->readable = true;
    if (cdacq_target_get_info(target, &info, NULL) >= 0 && (info.runtime_version || info.runtime_release))
        snprintf(opened->version, sizeof opened->version, "%s",
                 info.runtime_version ? info.runtime_version : info.runtime_release);
    cdacq_target_close(target);
}

static void write_json(struct output *out, const struct cdacq_process *process, const struct opened *opened)
{
    struct json_writer writer = json_begin(out), *w = &writer;
    json_begin_object(w, NULL);
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
    json_bool(w, "readable", opened->readable);
    json_note(w, "problem", opened->readable ? NULL : opened->problem);
    json_end_object(w);
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

static void write_text(struct work *work, const struct cdacq_process *process, const struct opened *opened)
{
    struct output *out = &work->out;
    char line[160];
    const char *program = process->arguments ? process->arguments : process->program ? process->program : process->name;
    if (!work->count)
        output_styled(out, STYLE_HEADING, "    PID  RUNTIME   THREADS  CONTAINER     PROGRAM\n");
    int length = snprintf(line, sizeof line, "%7d  %-9.32s %7u  %-12.12s  ", process->pid,
                          opened->version[0] ? opened->version : "?", process->thread_count,
                          process->container ? process->container : "-");
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

static int list_process(const struct cdacq_process *process, void *context)
{
    struct work *work = context;
    struct opened opened;
    open_process(work, process->pid, &opened);
    work->unreadable += !opened.readable;
    if (work->invocation->json)
        write_json(&work->out, process, &opened);
    else
        write_text(work, process, &opened);
    progress_step(&work->progress, ++work->count);
    output_flush(&work->out); /* the next process may never answer */
    watchdog_set(WATCHDOG_ANY);
    return output_failed(&work->out);
}

int cmd_ps(const struct invocation *invocation)
{
    struct work work = {.invocation = invocation};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    work.width = terminal_width(work.out.fd);
    progress_begin(&work.progress, "processes", work.out.fd);
    watchdog_set(WATCHDOG_ANY);
    enum cdacq_status status = cdacq_visit_processes(list_process, &work, &error);
    progress_end(&work.progress);
    bool written = output_close_if(&work.out, status >= 0);
    if (status < 0)
        message("%s", error.message);
    else if (!work.count)
        message("no .NET process was found");
    if (!written)
        return EXIT_FAILED;
    return work.unreadable ? EXIT_PARTLY : EXIT_ANSWERED;
}
