/*
 * cmd_records.c: decodes a jitdump file, one line for each record, also while it is being written. It streams: memory
 * stays constant, and with --follow what is there has been printed before it waits for more.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "util/escape.h"
#include "src/cli/output.h"
#include "src/cli/put.h"

enum {
    COMPLAINTS_MAX = 20, /* lines on standard error: each record tells its problem anyway */
    PIECE = 16 * 1024,   /* of a string that is escaped at once */
    FIELDS_ROOM = 1024,  /* the longest line without its strings and lists */
    WAIT_MS = 100,
};

struct work {
    const char *path;
    struct output out;
    struct progress progress;
    uint64_t done, errors;
    bool follow;
    bool closed; /* the runtime has said that it writes no more */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- Strings ----------------------------------------------------------------------------------------------------- */

/* Where to cut a string so that no character is: at `at`, or up to three bytes before it. */
static size_t cut_between_characters(const char *string, size_t at)
{
    for (size_t back = 0; back < 4 && back < at; back++)
        if (((unsigned char)string[at - back] & 0xc0) != 0x80)
            return at - back;
    return at; /* broken UTF-8 is escaped byte by byte */
}

/* A string of any length, in memory that does not grow with it. */
static void write_escaped(struct output *out, const char *string, size_t length, bool json)
{
    while (length) {
        size_t piece = length > PIECE ? cut_between_characters(string, PIECE) : length;
        char *p = output_reserve(out, ESCAPED_SIZE(piece));
        output_commit(out, escape(p, string, piece, json ? ESCAPE_JSON_DATA : ESCAPE_DATA));
        string += piece;
        length -= piece;
    }
}

static void write_json_string(struct output *out, const char *string, size_t length)
{
    if (!string) {
        output_literal(out, "null");
        return;
    }
    output_literal(out, "\"");
    write_escaped(out, string, length, true);
    output_literal(out, "\"");
}

/* ---- JSON: fields ------------------------------------------------------------------------------------------------ */

static inline char *put_string(char *p, const char *string)
{
    return put_bytes(p, string, strlen(string));
}

/* Behind another member, or behind the brace that begins the object. */
static inline char *put_key(char *p, const char *name)
{
    if (p[-1] != '{')
        *p++ = ',';
    *p++ = '"';
    p = put_string(p, name);
    return PUT_LITERAL(p, "\":");
}

/* A record that is too short for its fields has none that are known. */
static inline char *put_number(char *p, const char *name, bool known, uint64_t value)
{
    p = put_key(p, name);
    return known ? put_decimal(p, value) : PUT_LITERAL(p, "null");
}

static inline char *put_address(char *p, const char *name, bool known, uint64_t value)
{
    p = put_key(p, name);
    if (!known)
        return PUT_LITERAL(p, "null");
    *p++ = '"';
    p = put_hex(p, value);
    *p++ = '"';
    return p;
}

#define NUMBER(p, object, field)  put_number(p, #field, known, (object)->field)
#define ADDRESS(p, object, field) put_address(p, #field, known, (object)->field)

static void write_json_header(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_header *header = &record->as.header;
    const bool known = true;
    char *p = PUT_LITERAL(output_reserve(out, FIELDS_ROOM), "{\"type\":\"header\"");
    p = NUMBER(p, header, version);
    p = NUMBER(p, header, total_size);
    p = NUMBER(p, header, elf_mach);
    p = NUMBER(p, header, pid);
    p = NUMBER(p, record, timestamp);
    p = NUMBER(p, header, flags);
    p = put_key(p, "endian");
    p = put_string(p, header->big_endian ? "\"big\"}\n" : "\"little\"}\n");
    output_commit(out, p);
}

static char *put_json_load(char *p, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    bool known = record->has_fields;
    p = NUMBER(p, load, pid);
    p = NUMBER(p, load, tid);
    p = ADDRESS(p, load, vma);
    p = ADDRESS(p, load, code_addr);
    p = NUMBER(p, load, code_size);
    p = NUMBER(p, load, code_index);
    p = put_number(p, "debug_info", load->debug_info, load->debug_info);
    p = put_number(p, "unwinding_info", load->unwinding_info, load->unwinding_info);
    p = put_number(p, "samply_debug_info2", load->samply_debug_info2, load->samply_debug_info2);
    return put_key(p, "name");
}

static char *put_json_move(char *p, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_move *move = &record->as.move;
    bool known = record->has_fields;
    p = NUMBER(p, move, pid);
    p = NUMBER(p, move, tid);
    p = ADDRESS(p, move, vma);
    p = ADDRESS(p, move, old_code_addr);
    p = ADDRESS(p, move, new_code_addr);
    p = NUMBER(p, move, code_size);
    p = NUMBER(p, move, code_index);
    return put_number(p, "load", move->load, move->load);
}

static char *put_json_unwinding_info(char *p, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    bool known = record->has_fields;
    p = NUMBER(p, info, unwind_data_size);
    p = NUMBER(p, info, eh_frame_hdr_size);
    return NUMBER(p, info, mapped_size);
}

static char *put_json_debug_info(char *p, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_debug_info *info = &record->as.debug_info;
    bool known = record->has_fields;
    p = ADDRESS(p, info, code_addr);
    return NUMBER(p, info, nr_entry);
}

static char *put_json_samply(char *p, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    bool known = record->has_fields;
    p = NUMBER(p, info, file_count);
    p = NUMBER(p, info, file_list_size);
    p = NUMBER(p, info, function_names_count);
    p = NUMBER(p, info, function_names_list_size);
    p = NUMBER(p, info, function_count);
    p = NUMBER(p, info, inline_call_record_count);
    p = NUMBER(p, info, range_count);
    return NUMBER(p, info, line_record_count);
}

/* ---- JSON: lists ------------------------------------------------------------------------------------------------- */

/* Begins a list. False where the record is too short to have one: it is null then. */
static bool begin_list(struct output *out, const struct cdacq_jitdump_record *record, const char *name)
{
    char *p = PUT_LITERAL(output_reserve(out, FIELDS_ROOM), ",\"");
    p = put_string(p, name);
    output_commit(out, record->has_fields ? PUT_LITERAL(p, "\":[") : PUT_LITERAL(p, "\":null"));
    return record->has_fields;
}

/* Begins an object in a list: room for its numbers. */
static char *begin_element(struct output *out, bool first)
{
    char *p = output_reserve(out, FIELDS_ROOM);
    if (!first)
        *p++ = ',';
    *p++ = '{';
    return p;
}

static void end_element(struct output *out, char *p)
{
    *p++ = '}';
    output_commit(out, p);
}

static void write_entries(struct output *out, const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_entry entry;
    const bool known = true;
    if (!begin_list(out, record, "entries"))
        return;
    bool first = true;
    for (uint64_t cursor = 0; cdacq_jitdump_next_entry(record, &cursor, &entry); first = false) {
        char *p = begin_element(out, first);
        p = ADDRESS(p, &entry, code_addr);
        p = NUMBER(p, &entry, line);
        p = NUMBER(p, &entry, discrim);
        output_commit(out, put_key(p, "name"));
        write_json_string(out, entry.name, entry.name_length);
        output_literal(out, "}");
    }
    output_literal(out, "]");
}

static void write_strings(struct output *out, const struct cdacq_jitdump_record *record, const char *name,
                          enum cdacq_jitdump_strings list)
{
    const char *string;
    size_t length;
    if (!begin_list(out, record, name))
        return;
    bool first = true;
    for (uint64_t cursor = 0; cdacq_jitdump_next_string(record, list, &cursor, &string, &length); first = false) {
        if (!first)
            output_literal(out, ",");
        write_json_string(out, string, length);
    }
    output_literal(out, "]");
}

static void write_functions(struct output *out, const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_function function;
    const bool known = true;
    if (!begin_list(out, record, "function_list"))
        return;
    for (uint32_t i = 0; cdacq_jitdump_function(record, i, &function); i++) {
        char *p = begin_element(out, !i);
        p = NUMBER(p, &function, function_name_index);
        p = NUMBER(p, &function, file_index);
        p = NUMBER(p, &function, start_line);
        p = NUMBER(p, &function, start_column);
        p = NUMBER(p, &function, flags);
        end_element(out, p);
    }
    output_literal(out, "]");
}

static void write_inline_calls(struct output *out, const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_inline_call call;
    const bool known = true;
    if (!begin_list(out, record, "inline_call_list"))
        return;
    for (uint32_t i = 0; cdacq_jitdump_inline_call(record, i, &call); i++) {
        char *p = begin_element(out, !i);
        p = NUMBER(p, &call, depth);
        p = NUMBER(p, &call, range_count);
        p = NUMBER(p, &call, function_index);
        p = NUMBER(p, &call, call_line_number);
        p = NUMBER(p, &call, call_column_number);
        end_element(out, p);
    }
    output_literal(out, "]");
}

static void write_ranges(struct output *out, const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_range range;
    const bool known = true;
    if (!begin_list(out, record, "range_list"))
        return;
    for (uint32_t i = 0; cdacq_jitdump_range(record, i, &range); i++) {
        char *p = begin_element(out, !i);
        p = NUMBER(p, &range, start_offset);
        p = NUMBER(p, &range, size);
        end_element(out, p);
    }
    output_literal(out, "]");
}

static void write_line_records(struct output *out, const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_line_record line;
    const bool known = true;
    if (!begin_list(out, record, "line_record_list"))
        return;
    for (uint32_t i = 0; cdacq_jitdump_line_record(record, i, &line); i++) {
        char *p = begin_element(out, !i);
        p = NUMBER(p, &line, code_offset);
        p = NUMBER(p, &line, file_index);
        p = NUMBER(p, &line, line_number);
        p = NUMBER(p, &line, column_number);
        end_element(out, p);
    }
    output_literal(out, "]");
}

static void write_json(struct output *out, const struct cdacq_jitdump_record *record)
{
    const bool known = true;
    if (record->kind == CDACQ_JITDUMP_HEADER) {
        write_json_header(out, record);
        return;
    }
    char *p = PUT_LITERAL(output_reserve(out, FIELDS_ROOM), "{\"type\":\"");
    p = put_string(p, cdacq_jitdump_kind_text(record->kind));
    *p++ = '"';
    p = NUMBER(p, record, id);
    p = NUMBER(p, record, offset);
    p = NUMBER(p, record, size);
    p = NUMBER(p, record, timestamp);
    switch (record->kind) {
    case CDACQ_JITDUMP_LOAD:
        output_commit(out, put_json_load(p, record));
        write_json_string(out, record->as.load.name, record->as.load.name_length);
        break;
    case CDACQ_JITDUMP_MOVE:
        output_commit(out, put_json_move(p, record));
        break;
    case CDACQ_JITDUMP_DEBUG_INFO:
        output_commit(out, put_json_debug_info(p, record));
        write_entries(out, record);
        break;
    case CDACQ_JITDUMP_UNWINDING_INFO:
        output_commit(out, put_json_unwinding_info(p, record));
        break;
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
        output_commit(out, put_json_samply(p, record));
        write_strings(out, record, "file_list", CDACQ_JITDUMP_FILES);
        write_strings(out, record, "function_names_list", CDACQ_JITDUMP_FUNCTION_NAMES);
        write_functions(out, record);
        write_inline_calls(out, record);
        write_ranges(out, record);
        write_line_records(out, record);
        break;
    default:
        output_commit(out, p);
        break;
    }
    output_literal(out, ",\"error\":");
    output_json_note(out, record->error);
    output_literal(out, "}\n");
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void write_text_string(struct output *out, const char *string, size_t length)
{
    if (string)
        write_escaped(out, string, length, false);
    else
        output_literal(out, "?");
}

static void write_text_header(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_header *header = &record->as.header;
    output_printf(out, "0 %" PRIu64 " header version %" PRIu32 ", pid %" PRIu32 ", elf_mach %" PRIu32 ", %s-endian%s\n",
                  record->timestamp, header->version, header->pid, header->elf_mach,
                  header->big_endian ? "big" : "little", header->flags & 1 ? ", times in ticks of the processor" : "");
}

static void write_text_load(struct output *out, const struct cdacq_jitdump_load *load)
{
    char *p = put_hex(output_reserve(out, FIELDS_ROOM), load->vma);
    p = PUT_LITERAL(p, " +");
    p = put_hex(p, load->code_size);
    *p++ = ' ';
    output_commit(out, p);
    write_text_string(out, load->name, load->name_length);
    p = PUT_LITERAL(output_reserve(out, FIELDS_ROOM), " [index ");
    p = put_decimal(p, load->code_index);
    p = PUT_LITERAL(p, " tid ");
    p = put_decimal(p, load->tid);
    *p++ = ']';
    output_commit(out, p);
}

static void write_text_entries(struct output *out, const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_entry entry;
    output_printf(out, "0x%" PRIx64 " %" PRIu64 " entries", record->as.debug_info.code_addr,
                  record->as.debug_info.nr_entry);
    for (uint64_t cursor = 0; cdacq_jitdump_next_entry(record, &cursor, &entry);) {
        output_printf(out, "\n  0x%" PRIx64 " ", entry.code_addr);
        write_text_string(out, entry.name, entry.name_length);
        output_printf(out, ":%" PRIu32 ":%" PRIu32, entry.line, entry.discrim);
    }
}

static void write_text_strings(struct output *out, const struct cdacq_jitdump_record *record, const char *what,
                               enum cdacq_jitdump_strings list)
{
    const char *string;
    size_t length;
    uint32_t i = 0;
    for (uint64_t cursor = 0; cdacq_jitdump_next_string(record, list, &cursor, &string, &length); i++) {
        output_printf(out, "\n  %s %" PRIu32 " ", what, i);
        write_text_string(out, string, length);
    }
}

/* Functions, files and names by their numbers: a name may be used by many. */
static void write_text_samply(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_function function;
    struct cdacq_jitdump_inline_call call;
    struct cdacq_jitdump_range range;
    struct cdacq_jitdump_line_record line;
    uint32_t next_range = 0;
    output_printf(out, "%" PRIu32 " functions, %" PRIu32 " inline calls, %" PRIu32 " line records",
                  info->function_count, info->inline_call_record_count, info->line_record_count);
    write_text_strings(out, record, "file", CDACQ_JITDUMP_FILES);
    write_text_strings(out, record, "name", CDACQ_JITDUMP_FUNCTION_NAMES);
    for (uint32_t i = 0; cdacq_jitdump_function(record, i, &function); i++)
        output_printf(
            out, "\n  function %" PRIu32 " name %" PRIu32 " file %" PRIu32 ":%" PRIu32 ":%" PRIu32 " flags 0x%" PRIx32,
            i, function.function_name_index, function.file_index, function.start_line, function.start_column,
            function.flags);
    for (uint32_t i = 0; cdacq_jitdump_inline_call(record, i, &call); i++) {
        output_printf(out, "\n  call depth %" PRIu32 " function %" PRIu32 " from :%" PRIu32 ":%" PRIu32, call.depth,
                      call.function_index, call.call_line_number, call.call_column_number);
        for (uint32_t k = 0; k < call.range_count && cdacq_jitdump_range(record, next_range, &range); k++, next_range++)
            output_printf(out, " +0x%" PRIx32 "..0x%" PRIx64, range.start_offset,
                          (uint64_t)range.start_offset + range.size);
    }
    for (uint32_t i = 0; cdacq_jitdump_line_record(record, i, &line); i++)
        output_printf(out, "\n  line +0x%" PRIx32 " file %" PRIu32 ":%" PRIu32 ":%" PRIu32, line.code_offset,
                      line.file_index, line.line_number, line.column_number);
}

static void write_text_fields(struct output *out, const struct cdacq_jitdump_record *record)
{
    switch (record->kind) {
    case CDACQ_JITDUMP_LOAD:
        write_text_load(out, &record->as.load);
        break;
    case CDACQ_JITDUMP_MOVE:
        output_printf(out, "0x%" PRIx64 " +0x%" PRIx64 " from 0x%" PRIx64 " [index %" PRIu64 " tid %" PRIu32 "]",
                      record->as.move.vma, record->as.move.code_size, record->as.move.old_code_addr,
                      record->as.move.code_index, record->as.move.tid);
        break;
    case CDACQ_JITDUMP_DEBUG_INFO:
        write_text_entries(out, record);
        break;
    case CDACQ_JITDUMP_UNWINDING_INFO:
        output_printf(out, "%" PRIu64 " bytes, of which eh_frame_hdr %" PRIu64 ", mapped %" PRIu64,
                      record->as.unwinding_info.unwind_data_size, record->as.unwinding_info.eh_frame_hdr_size,
                      record->as.unwinding_info.mapped_size);
        break;
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
        write_text_samply(out, record);
        break;
    default:
        output_printf(out, "id %" PRIu32 ", %" PRIu64 " bytes", record->id, record->size);
        break;
    }
}

static void write_text(struct output *out, const struct cdacq_jitdump_record *record)
{
    if (record->kind == CDACQ_JITDUMP_HEADER) {
        write_text_header(out, record);
        return;
    }
    char *p = put_decimal(output_reserve(out, FIELDS_ROOM), record->offset);
    *p++ = ' ';
    p = put_decimal(p, record->timestamp);
    *p++ = ' ';
    output_commit(out, put_string(p, cdacq_jitdump_kind_text(record->kind)));
    if (record->has_fields && record->kind != CDACQ_JITDUMP_CLOSE) {
        output_literal(out, " ");
        write_text_fields(out, record);
    }
    if (record->error) {
        output_literal(out, " ? [error] ");
        output_note(out, record->error);
    }
    output_literal(out, "\n");
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static void take_record(struct work *work, const struct cdacq_jitdump_record *record, bool json)
{
    if (record->kind == CDACQ_JITDUMP_HEADER && record->as.header.restart)
        message("'%s': %s; it is read from its start", work->path, record->as.header.restart);
    (json ? write_json : write_text)(&work->out, record);
    if (record->error && ++work->errors <= COMPLAINTS_MAX)
        message("'%s', offset %" PRIu64 ": %s", work->path, record->offset, record->error);
    work->closed |= record->kind == CDACQ_JITDUMP_CLOSE;
    work->closed &= record->kind != CDACQ_JITDUMP_HEADER; /* another runtime writes now */
    if (++work->done % 1024 == 0 && !work->follow)
        progress_step(&work->progress, work->done);
}

/* Waits for the file to grow. False where nobody is left to wait for. */
static bool wait_for_more(struct work *work)
{
    output_flush(&work->out);
    if (work->closed || interrupted || output_failed(&work->out))
        return false;
    struct pollfd out = {.fd = work->out.fd};
    int n = poll(&out, 1, WAIT_MS); /* with no events asked: an error, a reader that has left */
    return n == 0 || (n < 0 && errno == EINTR && !interrupted);
}

/* Ctrl-C ends a tail; what was read has been printed by then. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static enum cdacq_status print_all(struct work *work, struct cdacq_jitdump *jitdump, bool json)
{
    struct cdacq_jitdump_record record;
    struct cdacq_error error;
    for (;;) {
        enum cdacq_status status = cdacq_jitdump_next(jitdump, &record, &error);
        if (status == CDACQ_OK)
            take_record(work, &record, json);
        else if (status != CDACQ_END) {
            progress_end(&work->progress);
            message("'%s': %s", work->path, error.message);
            return status;
        } else if (!work->follow || !wait_for_more(work))
            return CDACQ_OK;
        if (interrupted || output_failed(&work->out))
            return CDACQ_OK;
    }
}

int cmd_records(const struct invocation *invocation)
{
    struct work work = {.path = invocation->targets[0], .follow = invocation->follow};
    struct cdacq_jitdump *jitdump;
    struct cdacq_error error;
    if (output_is_a_target(invocation))
        return EXIT_FAILED;
    if (cdacq_jitdump_open(work.path, work.follow ? CDACQ_JITDUMP_FOLLOW : 0, &jitdump, &error) < 0) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    if (!output_open(&work.out, invocation->output)) {
        cdacq_jitdump_close(jitdump);
        return EXIT_FAILED;
    }
    if (work.follow)
        catch_interrupts();
    progress_begin(&work.progress, "records", work.out.fd);
    enum cdacq_status status = print_all(&work, jitdump, invocation->json);
    progress_end(&work.progress);
    cdacq_jitdump_close(jitdump);
    if (work.errors > COMPLAINTS_MAX)
        message("'%s': %" PRIu64 " more records are damaged", work.path, work.errors - COMPLAINTS_MAX);
    if (!output_close(&work.out) || (status < 0 && !work.done))
        return EXIT_FAILED;
    return status < 0 || work.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}
