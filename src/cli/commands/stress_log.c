#include "src/cli/commands/stress_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/json_writer.h"
#include "src/cli/base/output.h"
#include "util/base.h"
#include "util/clock.h"

enum { FACILITIES = 32, FACILITIES_ROOM = 512 };

struct work {
    const char *target_name;
    struct cdacq_stress_log log;
    struct output out;
    bool json;
    uint64_t messages, problems;
};

/* "GC|GCALLOC", as C writes sets of bits. */
static void put_facilities(uint32_t facilities, char ret[FACILITIES_ROOM])
{
    size_t length = 0;
    ret[0] = '\0';
    if (facilities == UINT32_MAX)
        snprintf(ret, FACILITIES_ROOM, "ALL");
    for (unsigned bit = 0; facilities != UINT32_MAX && bit < FACILITIES; bit++)
        if (facilities >> bit & 1)
            length += (size_t)snprintf(ret + length, FACILITIES_ROOM - length, "%s%s", length ? "|" : "",
                                       cdacq_stress_facility_name(bit));
}

/* ---- Text ---- */

static void write_log_text(struct work *work)
{
    struct output *out = &work->out;
    const struct cdacq_stress_log *log = &work->log;
    char facilities[FACILITIES_ROOM], time[OUTPUT_TIME_SIZE];
    output_label(out, "target");
    output_text(out, work->target_name);
    output_literal(out, "\n");
    output_label(out, "stress log");
    if (!log->is_on) {
        output_literal(out, "off; it is on in a process that was started with DOTNET_StressLog=1\n");
        return;
    }
    output_printf(out, "at 0x%" PRIx64 ", up to level %" PRIu32 "\n", log->address, log->level);
    output_label(out, "facilities");
    put_facilities(log->facilities, facilities);
    output_printf(out, "%s\n", facilities);
    output_label(out, "size");
    output_printf(out, "at most %" PRIu64 " bytes a thread and %" PRIu64 " in all; %" PRIu64 " chunk%s in use\n",
                  log->max_size_per_thread, log->max_size_total, log->chunk_count, plural(log->chunk_count));
    if (log->start_time_ns && output_form_time(log->start_time_ns / (int64_t)NS_PER_SECOND, time)) {
        output_label(out, "started");
        output_printf(out, "%s\n", time);
    }
    output_style(out, STYLE_HEADING);
    output_printf(out, "%14s %8s  %-20s   %s\n", "SECONDS", "THREAD", "FACILITY", "MESSAGE");
    output_style(out, STYLE_NONE);
}

static void write_message_text(struct work *work, const struct cdacq_stress_message *message)
{
    struct output *out = &work->out;
    char facilities[FACILITIES_ROOM];
    output_printf(out, "%4" PRIu64 ".%09" PRIu64 " %8" PRIu64 "  ", message->time_ns / NS_PER_SECOND,
                  message->time_ns % NS_PER_SECOND, message->tid);
    put_facilities(message->facilities, facilities);
    output_printf(out, "%-20s ", facilities);
    if (message->problem) {
        output_styled(out, STYLE_ERROR, "! ");
        output_note_between(out, "", message->problem, "\n");
        return;
    }
    output_styled(out, STYLE_DOUBT, message->flaws & CDACQ_STRESS_CHANGEABLE ? "? " : "  ");
    output_note(out, message->text);
    output_literal(out, message->flaws & CDACQ_STRESS_CUT ? " [cut]\n" : "\n");
}

/* ---- JSON ---- */

static void write_facilities(struct json_writer *w, uint32_t facilities)
{
    json_begin_array(w, "facilities");
    for (unsigned bit = 0; bit < FACILITIES; bit++)
        if (facilities >> bit & 1)
            json_note(w, NULL, cdacq_stress_facility_name(bit));
    json_end_array(w);
}

static void write_log_json(struct work *work)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    const struct cdacq_stress_log *log = &work->log;
    json_note(w, "type", "log");
    json_string(w, "target", work->target_name);
    json_bool(w, "on", log->is_on);
    json_address(w, "address", log->address);
    json_known_number(w, "level", log->is_on, log->level);
    write_facilities(w, log->facilities);
    json_known_number(w, "max_size_per_thread", log->is_on, log->max_size_per_thread);
    json_known_number(w, "max_size_total", log->is_on, log->max_size_total);
    json_known_number(w, "chunk_count", log->is_on, log->chunk_count);
    json_known_number(w, "ticks_per_second", log->is_on, log->ticks_per_second);
    json_known_number(w, "start_time", log->start_time_ns > 0, (uint64_t)log->start_time_ns);
    json_end_line(w);
}

static void write_message_json(struct work *work, const struct cdacq_stress_message *message)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_note(w, "type", message->problem ? "problem" : "message");
    json_number(w, "time", message->time_ns);
    json_known_number(w, "tid", message->tid != 0, message->tid);
    write_facilities(w, message->facilities);
    json_note(w, "text", message->text);
    json_note(w, "format", message->format);
    json_begin_array(w, "arguments");
    for (uint32_t i = 0; i < message->argument_count; i++)
        json_known_address(w, NULL, true, message->arguments[i]);
    json_end_array(w);
    json_address(w, "address", message->address);
    json_bool(w, "changeable", message->flaws & CDACQ_STRESS_CHANGEABLE);
    json_bool(w, "incomplete", message->flaws & (CDACQ_STRESS_CUT | CDACQ_STRESS_MISSING | CDACQ_STRESS_NO_ARGUMENT));
    json_bool(w, "verified", !(message->flaws & CDACQ_STRESS_UNVERIFIED));
    json_note(w, "problem", message->problem);
    json_end_line(w);
}

/* ---- Both ---- */

static int write_message(const struct cdacq_stress_message *message, void *context)
{
    struct work *work = context;
    work->messages += !message->problem;
    work->problems += message->problem != NULL;
    (work->json ? write_message_json : write_message_text)(work, message);
    return output_failed(&work->out);
}

int stress_log_show(const void *given, const struct opened_target *opened)
{
    const struct common_options *options = given;
    struct work work = {
        .target_name = target_display_name(opened->name), .log = {.size = sizeof work.log}, .json = options->json};
    struct cdacq_error error;
    if (cdacq_session_get_stress_log(opened->session, &work.log, &error) < 0) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    if (!output_open_private(&work.out, options->output))
        return EXIT_FAILED;
    (work.json ? write_log_json : write_log_text)(&work);
    enum cdacq_status status = cdacq_session_visit_stress_log(opened->session, write_message, &work, &error);
    if (!output_close(&work.out))
        return EXIT_FAILED;
    if (status < 0)
        message("%s", error.message);
    else if (work.problems && !work.messages)
        message("no message of the stress log can be read");
    return status >= 0 && !work.problems ? EXIT_ANSWERED : work.messages ? EXIT_PARTLY : EXIT_FAILED;
}
