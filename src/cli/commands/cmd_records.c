/*
 * cmd_records.c: decodes a jitdump file, one line for each record. It streams: memory use is constant, and --follow
 * prints all records before it waits for more.
 */
#include <inttypes.h>
#include <poll.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/follow.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/records.h"
#include "util/base.h"

struct records_options {
    struct common_options common;
    const char *file; /* or a pid */
    bool has_at, has_time;
    uint64_t at, time;
};

enum { WAIT_MS = 100 };

struct work {
    const char *path;
    struct output out;
    struct progress progress;
    uint64_t size; /* of the file, for the end of the progress */
    uint64_t done, errors;
    uint64_t without_code; /* blocks of stubs, as .NET 11 writes them */
    bool follow;
    int process; /* whose file is followed, as follow_open_process() gives it; -1: not known */
    bool ended;  /* it has */
    bool closed; /* the runtime has closed the file */
};

static void take_record(struct work *work, const struct cdacq_jitdump_record *record, bool json)
{
    if (record->kind == CDACQ_JITDUMP_HEADER && record->as.header.restart)
        message("'%s': %s; reading again from the start", work->path, record->as.header.restart);
    (json ? record_write_json : record_write_text)(&work->out, record);
    if (record->error && ++work->errors <= READ_FAILURES_MAX)
        message("'%s', offset %" PRIu64 ": %s", work->path, record->offset, record->error);
    const struct cdacq_jitdump_load *load = &record->as.load;
    work->without_code += record->kind == CDACQ_JITDUMP_LOAD && !record->error && load->code_size &&
                          load->code_offset == record->offset + record->total_size;
    work->closed |= record->kind == CDACQ_JITDUMP_CLOSE;
    work->closed &= record->kind != CDACQ_JITDUMP_HEADER; /* another runtime writes to the file */
    if (++work->done % 1024 == 0 && !work->follow && record->offset)
        progress_estimate(&work->progress, work->done, record->offset, work->size);
}

/*
 * Waits for the file to grow. Returns false if it cannot, or if the output has no reader. What a process wrote before
 * it ended is still to be read.
 */
static bool wait_for_more(struct work *work)
{
    if (work->closed || work->ended)
        return false;
    work->ended = follow_process_ended(work->process);
    return work->ended || follow_wait(&work->out, WAIT_MS);
}

static enum cdacq_status print_all(struct work *work, struct cdacq_jitdump *jitdump, bool json)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error error;
    for (;;) {
        enum cdacq_status status = cdacq_jitdump_next(jitdump, &record, &error);
        if (status == CDACQ_OK)
            take_record(work, &record, json);
        else if (status != CDACQ_DONE) {
            progress_end(&work->progress);
            message("'%s': %s", work->path, error.message);
            return status;
        } else if (!work->follow || !wait_for_more(work))
            break;
        if (follow_interrupted() || output_failed(&work->out))
            return CDACQ_OK;
    }
    if (!(work->closed || work->ended) || cdacq_jitdump_check_end(jitdump, &error) >= 0)
        return CDACQ_OK;
    message("'%s': %s", work->path, error.message);
    return CDACQ_ERR_FORMAT;
}

/*
 * The file of TARGET: its path or, of a process, that of its jitdump, for which --follow waits. False: a message says
 * why.
 */
static bool find_file(const struct records_options *options, struct work *work, char *room, size_t size)
{
    struct cdacq_error error;
    const char *name = options->file;
    enum cdacq_status status = CDACQ_OK;
    work->path = name;
    if (!target_is_pid(name))
        return true;
    work->path = room;
    if (options->common.follow)
        work->process = follow_open_process(target_pid(name));
    do {
        status = cdacq_jitdump_find_file(target_pid(name), room, size, &error);
    } while (status == CDACQ_NOT_MANAGED && options->common.follow && !follow_interrupted() &&
             !follow_process_ended(work->process) && (poll(NULL, 0, WAIT_MS), true));
    if (status != CDACQ_OK)
        message("%s", error.message);
    return status == CDACQ_OK;
}

static void write_found(struct work *work, uint64_t at, const struct cdacq_jitdump_record *record,
                        const struct cdacq_jitdump_place *place, bool found, bool json)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    if (!json) {
        output_printf(&work->out, "0x%" PRIx64 " ", at);
        if (found)
            output_escaped(&work->out, load->name ? load->name : "?", load->name ? load->name_length : 1, ESCAPE_DATA);
        if (found)
            output_printf(&work->out, " +0x%" PRIx64 " [0x%" PRIx64 " +0x%" PRIx64 ", index %" PRIu64 "]\n",
                          at - place->vma, place->vma, place->code_size, place->code_index);
        else
            output_literal(&work->out, "[none]\n");
        return;
    }
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_known_address(w, "ip", true, at);
    json_string_bytes(w, "name", found ? load->name : NULL, found ? load->name_length : 0);
    json_known_address(w, "start", found, place->vma);
    json_known_number(w, "size", found, place->code_size);
    json_known_number(w, "offset", found, at - place->vma);
    json_known_number(w, "code_index", found, place->code_index);
    json_known_number(w, "load", found, place->load);
    json_known_number(w, "timestamp", found, place->timestamp);
    json_number(w, "damaged", place->damaged);
    json_note(w, "problem", place->problem);
    json_end_line(w);
}

/* What is wrong with the records that were searched. */
static void complain_of_search(const struct work *work, const struct cdacq_jitdump_place *place)
{
    if (!place->problem)
        return;
    message("'%s': %s", work->path, place->problem);
    if (place->damaged > 1)
        message("'%s': %" PRIu64 " more damaged record%s", work->path, place->damaged - 1, plural(place->damaged - 1));
}

/* --at: the function that has the address. */
static int show_function(const struct records_options *options, struct work *work, struct cdacq_jitdump *jitdump)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_jitdump_place place = {.size = sizeof place};
    struct cdacq_error error;
    uint64_t time = options->has_time ? options->time : CDACQ_JITDUMP_LAST;
    enum cdacq_status status = cdacq_jitdump_find(jitdump, options->at, time, &record, &place, &error);
    if (status >= 0)
        write_found(work, options->at, &record, &place, status == CDACQ_OK, options->common.json);
    else
        message("'%s': %s", work->path, error.message);
    if (status >= 0)
        complain_of_search(work, &place);
    return !output_close_if(&work->out, status >= 0) ? EXIT_FAILED : place.damaged ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int run(const void *given)
{
    const struct records_options *options = given;
    struct work work = {.follow = options->common.follow, .process = -1};
    struct cdacq_jitdump *jitdump;
    struct cdacq_error error;
    char room[4096];
    if (options->has_time && !options->has_at) {
        message("--time needs --at");
        return EXIT_USAGE;
    }
    if (output_is_file(&options->common, options->file))
        return EXIT_FAILED;
    if (work.follow)
        follow_begin();
    if (!find_file(options, &work, room, sizeof room) || output_is_input(&options->common, work.path))
        return EXIT_FAILED;
    if (cdacq_jitdump_open(work.path, work.follow ? CDACQ_JITDUMP_FOLLOW : 0, &jitdump, &error) < 0) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    if (!(work.follow ? output_open_stream : output_open)(&work.out, options->common.output)) {
        cdacq_jitdump_close(jitdump);
        return EXIT_FAILED;
    }
    if (options->has_at) {
        int status = show_function(options, &work, jitdump);
        cdacq_jitdump_close(jitdump);
        return status;
    }
    progress_begin(&work.progress, "records", work.out.fd);
    work.size = path_size(work.path);
    enum cdacq_status status = print_all(&work, jitdump, options->common.json);
    progress_end(&work.progress);
    cdacq_jitdump_close(jitdump);
    if (work.errors > READ_FAILURES_MAX)
        message("'%s': %" PRIu64 " more damaged record%s", work.path, work.errors - READ_FAILURES_MAX,
                plural(work.errors - READ_FAILURES_MAX));
    if (work.without_code)
        message("'%s': %" PRIu64 " block%s of stubs without code, as .NET 11 writes %s", work.path, work.without_code,
                plural(work.without_code), work.without_code == 1 ? "it" : "them");
    if (!output_close_if(&work.out, status >= 0 || work.done))
        return EXIT_FAILED;
    return status < 0 || work.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

const struct option_row records_rows[] = {
    {"at", "ADDR", "show the function that has this address, after moves", TO_ADDRESS(struct records_options, at),
     AND_GIVEN(struct records_options, has_at)},
    {"time", "T", "with --at: after the records up to this time of the file", TO_NUMBER(struct records_options, time),
     AND_GIVEN(struct records_options, has_time), .max = UINT64_MAX, .wrong = "not a time as the file counts it"},
    {0},
};

const struct command command_records = {
    .name = "records",
    .section = SECTION_RECORDS,
    RUNS(run, struct records_options),
    .operands = OPERANDS({"FILE|PID", OPERAND_FILE_OR_PID, TO_WORD(struct records_options, file)}),
    .options = OPTIONS(json_rows, output_rows, follow_rows, records_rows),
    .summary = "decode a jitdump file",
    .details = "FILE is what a runtime writes as /tmp/jit-PID.dump (DOTNET_PerfMapEnabled=1); PID is a process that\n"
               "writes one. With --at, the function that has an address is shown. Otherwise, one line for each\n"
               "record: offset, time, kind and contents. With --follow, a growing file is read until its runtime\n"
               "closes it, the process of PID ends, or SIGINT arrives; a file that is truncated or replaced is read\n"
               "again from its start.\n",
    .exit_partly = "a record is damaged, or the last one is incomplete",
};
