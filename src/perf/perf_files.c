/*
 * perf_files.c: writes perf maps and jitdumps of a target: each entry is a line or a record.
 */
#include <stdio.h>

#include "src/api/listing.h"
#include "src/api/follower.h"
#include "src/api/session.h"
#include "formats/jitdump_writer.h"
#include "formats/perf_map.h"
#include "src/perf/jitdump_debug.h"
#include "src/perf/sink.h"
#include "util/sized.h"

enum { TRIES = 4 }; /* of reading code that a running process may free */

/* One entry: code that is called `name` followed by `suffix`. */
struct entry {
    const struct cdacq_method *method;
    uint64_t begin, size;
    const char *name, *suffix;
    size_t name_length, suffix_length;
};

struct writing {
    struct cdacq_session *session;
    struct cdacq_sink sink;
    bool (*put)(struct writing *writing, const struct entry *entry); /* false: it was left out */
    bool with_bytes;                                                 /* an entry includes the code bytes */
    struct jitdump_debug *debug; /* NULL: without lines and call-frame information */
    uint64_t time;               /* of the last record */
    struct byte_writer *record;  /* of a file that is followed: an entry's records, which are written at once */
    bool unverified;             /* the bytes of the last entry are */
    bool stopped;
    bool no_memory; /* for the records of an entry: it is stopped, too */
    struct cdacq_written written;
};

static void emit(struct writing *writing, const void *bytes, size_t size)
{
    if (writing->stopped || !size)
        return;
    if (writing->record) {
        put_bytes(writing->record, bytes, size);
        return;
    }
    if (writing->sink.write(bytes, size, writing->sink.context))
        writing->stopped = true;
    else
        writing->written.bytes += size;
}

/* Writes the records of an entry that were kept. */
static void flush_record(struct writing *writing)
{
    struct byte_writer *record = writing->record;
    if (!record)
        return;
    writing->record = NULL;
    if (record->broken)
        writing->stopped = writing->no_memory = true;
    emit(writing, record->data, record->length);
    record->length = 0;
    writing->record = record;
}

static void emit_name(struct writing *writing, const struct entry *entry)
{
    emit(writing, entry->name, entry->name_length);
    emit(writing, entry->suffix, entry->suffix_length);
}

static void leave_out(struct writing *writing, const struct cdacq_method *method, uint64_t begin, uint64_t size,
                      const char *why)
{
    if (!sink_leave_out(&writing->sink, &writing->written, method, begin, size, why))
        writing->stopped = true;
}

/* ---- Entries ---- */

static void write_entry(struct writing *writing, const struct entry *entry)
{
    writing->unverified = !entry->method->module_verified;
    bool was_put = writing->put(writing, entry);
    flush_record(writing);
    if (!was_put || writing->stopped)
        return;
    writing->written.unverified += writing->unverified;
    if (entry->method->answer == CDACQ_ANSWER_STUB)
        writing->written.stubs++;
    else
        writing->written.methods++;
}

/* The word for a method's tier that the runtime writes after the name; NULL when the tier is not known. */
static const char *tier_of(const struct cdacq_method *method, bool cold)
{
    static const struct {
        const char *tier, *written;
    } words[] = {
        {"Tier0", "QuickJitted"},
        {"Tier1", "OptimizedTier1"},
        {"Tier1OSR", "OptimizedTier1OSR"},
        {"Optimized", "Optimized"},
        {"Tier0Instrumented", "InstrumentedTier"},
        {"Tier1Instrumented", "InstrumentedTierOptimized"},
    };
    if (method->kind == CDACQ_CODE_READY_TO_RUN)
        return cold ? "PreJit-cold" : "PreJIT";
    for (size_t i = 0; method->tier && i < ARRAY_SIZE(words); i++)
        if (strcmp(method->tier, words[i].tier) == 0)
            return words[i].written;
    return NULL;
}

/* Writes the hot or cold part of a method. */
static void write_part(struct writing *writing, const struct cdacq_method *method, uint64_t begin, uint64_t size,
                       bool cold)
{
    char suffix[64] = "";
    const char *tier = tier_of(method, cold);
    if (!method->name) {
        leave_out(writing, method, begin, size, method->error);
        return;
    }
    if (tier)
        snprintf(suffix, sizeof suffix, "[%s]", tier);
    write_entry(writing,
                &(struct entry){method, begin, size, method->name, suffix, method->name_length, strlen(suffix)});
}

/*
 * Finds the next span of memory in [*begin, end). Sets *begin to its start and returns its end, or 0 if there is none.
 * Memory is missing in whole pages.
 */
static uint64_t next_span(struct reader *reader, uint64_t *begin, uint64_t end)
{
    while (*begin < end && reader_step(reader, "stubs") && !reader_try_view(reader, *begin, 1))
        *begin = align_up(*begin + 1, PAGE_SIZE);
    uint64_t at = *begin;
    while (at < end && reader_step(reader, "stubs") && reader_try_view(reader, at, 1))
        at = MIN(reader->hint.end, end);
    return at > *begin && at <= end ? at : 0;
}

/* `method` covers the range that the runtime has reserved for stubs; not all of it need be committed memory. */
static void write_stubs(struct writing *writing, const struct cdacq_method *method)
{
    char name[64];
    snprintf(name, sizeof name, "stub <%s>", cdacq_code_kind_text(method->kind));
    struct entry entry = {method, method->code_start, method->code_size, name, "", strlen(name), 0};
    uint64_t begin = entry.begin, end = add_saturated(begin, entry.size), span_end;
    struct reader reader = writing->session->reader.raw;
    reader_begin(&reader, FUEL_LOOKUP);
    if (!writing->with_bytes || !(span_end = next_span(&reader, &begin, end))) {
        write_entry(writing, &entry); /* this reports what is missing */
        return;
    }
    for (; span_end && !writing->stopped; begin = span_end, span_end = next_span(&reader, &begin, end)) {
        entry.begin = begin;
        entry.size = span_end - begin;
        write_entry(writing, &entry);
    }
    if (reader_failed(&reader)) {
        struct cdacq_error error;
        reader_status(&reader, &error);
        leave_out(writing, method, begin, end - begin, error.message);
    }
}

static int write_code(const struct cdacq_method *method, void *context)
{
    struct writing *writing = context;
    sink_visit(&writing->sink, method);
    if (method->answer == CDACQ_ANSWER_ERROR) {
        leave_out(writing, method, method->code_start, method->code_size, method->error);
    } else if (method->answer == CDACQ_ANSWER_STUB) {
        write_stubs(writing, method);
    } else if (method->kind == CDACQ_CODE_JITTED || method->kind == CDACQ_CODE_READY_TO_RUN) {
        write_part(writing, method, method->code_start, method->code_size, false);
        if (method->cold_start && !writing->stopped)
            write_part(writing, method, method->cold_start, method->cold_size, true);
    }
    return writing->stopped;
}

/* ---- The two files ---- */

static bool put_line(struct writing *writing, const struct entry *entry)
{
    char head[PERF_MAP_HEAD_MAX];
    emit(writing, head, perf_map_encode(entry->begin, entry->size, head));
    emit_name(writing, entry);
    emit(writing, "\n", 1);
    return true;
}

static void put_record(struct writing *writing, struct cdacq_jitdump_record *record)
{
    uint8_t bytes[JITDUMP_ENCODED_MAX];
    record->timestamp = ++writing->time;
    emit(writing, bytes, jitdump_encode(record, writing->session->target->descriptor_info.big_endian, bytes));
}

static uint32_t process_of(const struct writing *writing)
{
    return (uint32_t)writing->session->target->target->pid;
}

/*
 * Reads the code. False without a failure of the reader if a running process has freed the method: its memory may have
 * gone with it.
 */
static bool read_code(struct writing *writing, const struct entry *entry, struct window *ret)
{
    struct cdacq_session *session = writing->session;
    struct reader *reader = &session->reader.raw;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        reader_begin(reader, FUEL_LOOKUP);
        bool found = reader_window(reader, entry->begin, entry->size, "code", ret);
        struct reader_failure failure = reader_failure(reader);
        if (!session_is_running(session) || entry->method->answer != CDACQ_ANSWER_MANAGED)
            return found;
        if (!found && target_gone(session->target->target))
            return false;
        if (session_confirms(session, entry->method)) {
            if (!found) {
                reader_begin(reader, FUEL_LOOKUP);
                reader_fail_again(reader, &failure);
            }
            return found;
        }
        if (found)
            window_deinit(ret);
        session_read_anew(session);
    }
    reader_begin(reader, FUEL_LOOKUP);
    return false;
}

/* Writes the records that precede a JIT_CODE_LOAD. */
static void put_debug(struct writing *writing, const struct entry *entry)
{
    struct jitdump_debug *debug = writing->debug;
    if (debug->position_count) {
        struct cdacq_jitdump_record record = {
            .kind = CDACQ_JITDUMP_SAMPLY_POSITIONS,
            .total_size =
                JITDUMP_POSITIONS_FIXED + debug->code_offsets.length + debug->positions.length + debug->strings.length,
            .as.samply_positions = {.code_addr = entry->begin,
                                    .code_offset_count = debug->position_count,
                                    .source_position_count = debug->position_count,
                                    .string_count = debug->string_count},
        };
        put_record(writing, &record);
        emit(writing, debug->code_offsets.data, debug->code_offsets.length);
        emit(writing, debug->positions.data, debug->positions.length);
        emit(writing, debug->strings.data, debug->strings.length);
    }
    if (debug->entry_count) {
        struct cdacq_jitdump_record record = {
            .kind = CDACQ_JITDUMP_DEBUG_INFO,
            .total_size = JITDUMP_DEBUG_INFO_FIXED + debug->entries.length,
            .as.debug_info = {.code_addr = entry->begin, .nr_entry = debug->entry_count},
        };
        put_record(writing, &record);
        emit(writing, debug->entries.data, debug->entries.length);
    }
    if (debug->unwinding.length) {
        struct cdacq_jitdump_record record = {
            .kind = CDACQ_JITDUMP_UNWINDING_INFO,
            .as.unwinding_info = {.unwind_data_size = debug->unwinding.length, .eh_frame_hdr_size = debug->index_size},
        };
        put_record(writing, &record);
        emit(writing, debug->unwinding.data, debug->unwinding.length);
    }
}

/*
 * Reads all of the code before it writes anything. The code is at most WINDOW_MAX bytes and a name is capped, so the
 * size of the record always fits its field.
 */
static bool put_load(struct writing *writing, const struct entry *entry)
{
    struct reader *reader = &writing->session->reader.raw;
    struct window window = {0};
    bool has_debug = writing->debug && entry->method->answer == CDACQ_ANSWER_MANAGED;
    if (has_debug)
        jitdump_debug_form(writing->debug, entry->method, entry->begin, entry->size);
    if (!read_code(writing, entry, &window)) {
        struct cdacq_error error;
        bool has_ended = writing->record && target_gone(writing->session->target->target);
        if (reader_status(reader, &error) < 0 && !has_ended)
            leave_out(writing, entry->method, entry->begin, entry->size, error.message);
        return false;
    }
    writing->unverified |= reader_unverified(reader);
    struct cdacq_jitdump_record record = {
        .kind = CDACQ_JITDUMP_LOAD,
        .as.load =
            {
                .pid = process_of(writing),
                .tid = process_of(writing),
                .vma = entry->begin,
                .code_addr = entry->begin,
                .code_size = entry->size,
                .code_index = writing->written.methods + writing->written.stubs + 1,
                .name_length = entry->name_length + entry->suffix_length,
            },
    };
    if (has_debug)
        put_debug(writing, entry);
    put_record(writing, &record);
    emit_name(writing, entry);
    emit(writing, "", 1);
    emit(writing, window.bytes, window.size);
    window_deinit(&window);
    return true;
}

static uint32_t machine_of(const struct cdacq_target *target)
{
    return target->target->elf_machine ? target->target->elf_machine
                                       : architecture_elf_machine(target->layout.architecture);
}

static void put_header(struct writing *writing)
{
    struct cdacq_jitdump_record header = {
        .kind = CDACQ_JITDUMP_HEADER,
        .as.header = {.version = 1, .elf_mach = machine_of(writing->session->target), .pid = process_of(writing)},
    };
    put_record(writing, &header);
}

/* Takes and checks the arguments of the caller. `what` is the kind of file. */
static enum cdacq_status take_arguments(struct writing *writing, const struct cdacq_sink *sink,
                                        const struct cdacq_written *ret, const char *what, struct cdacq_error *err)
{
    writing->sink.size = sizeof writing->sink;
    if (sized_check(sink, "struct cdacq_sink", NULL) >= 0)
        sized_copy(&writing->sink, sink, sink->size);
    if (!writing->sink.write)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a %s needs a sink that writes", what);
    return sized_check(ret, "struct cdacq_written", err);
}

/* Checks the arguments of the caller, then writes a whole file. */
static enum cdacq_status write_file(struct writing *writing, unsigned flags, const struct cdacq_sink *sink,
                                    struct cdacq_written *ret, const char *what, struct cdacq_error *err)
{
    struct cdacq_session *session = writing->session;
    enum cdacq_status status = take_arguments(writing, sink, ret, what, err);
    if (status < 0)
        return status;
    if (!session_question_map(session, &status, err))
        return status;
    if (writing->with_bytes)
        put_header(writing);
    session->visits++; /* the listing is of the question that has begun */
    if (!writing->stopped)
        status = session_visit_methods(session, flags, NULL, write_code, writing, err);
    session->visits--;
    bool any = writing->written.methods + writing->written.stubs > 0;
    bool is_part = any && listing_is_part(status);
    if (status < 0 && !is_part)
        return status;
    if (writing->with_bytes && !writing->stopped)
        put_record(writing, &(struct cdacq_jitdump_record){.kind = CDACQ_JITDUMP_CLOSE});
    sized_copy(ret, &writing->written, sizeof writing->written);
    return writing->stopped ? CDACQ_STOPPED : is_part ? status : CDACQ_OK;
}

enum cdacq_status cdacq_session_write_perf_map(struct cdacq_session *session, unsigned flags,
                                               const struct cdacq_sink *sink, struct cdacq_written *ret,
                                               struct cdacq_error *err)
{
    struct writing writing = {.session = session, .put = put_line};
    enum cdacq_status status = error_check_flags(flags, VISIT_FLAGS, err);
    return status < 0 ? status : write_file(&writing, flags, sink, ret, "perf map", err);
}

enum cdacq_status cdacq_session_write_jitdump(struct cdacq_session *session, unsigned flags,
                                              const struct cdacq_sink *sink, struct cdacq_written *ret,
                                              struct cdacq_error *err)
{
    struct jitdump_debug debug;
    enum cdacq_status status = error_check_flags(flags, JITDUMP_WRITE_FLAGS, err);
    if (status < 0)
        return status;
    jitdump_debug_init(&debug, session);
    debug.with_samply = flags & (unsigned)CDACQ_WRITE_SAMPLY;
    struct writing writing = {.session = session,
                              .put = put_load,
                              .with_bytes = true,
                              .debug = flags & (unsigned)CDACQ_WRITE_DEBUG ? &debug : NULL};
    status = write_file(&writing, flags, sink, ret, "jitdump", err);
    jitdump_debug_deinit(&debug);
    return status;
}

/* ---- Following ---- */

struct round {
    struct cdacq_follower *follower;
    struct writing writing;
};

static int write_new_code(const struct cdacq_method *method, void *context)
{
    struct round *round = context;
    const struct cdacq_written *written = &round->writing.written;
    uint64_t before = written->methods + written->left_out;
    int result = write_code(method, &round->writing);
    if (method->answer == CDACQ_ANSWER_MANAGED && before == written->methods + written->left_out)
        follower_retry(round->follower, method->code_start); /* it changed too often, or was freed */
    return result;
}

/* Continues the jitdump after what the rounds before have written. */
static enum cdacq_status begin_round(struct round *round, struct cdacq_follower *follower,
                                     const struct cdacq_sink *sink, const struct cdacq_written *ret,
                                     struct byte_writer *record, struct cdacq_error *err)
{
    struct writing *writing = &round->writing;
    enum cdacq_status status = follower_session(follower, err);
    *round = (struct round){.follower = follower,
                            .writing = {.session = follower->session,
                                        .put = put_load,
                                        .with_bytes = true,
                                        .time = MAX(follower->jitdump.time, follower->began),
                                        .record = record,
                                        .written = follower->jitdump.written}};
    if (status >= 0 && follower->jitdump.closed)
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "jitdump: its JIT_CODE_CLOSE is written");
    if (status >= 0)
        status = take_arguments(writing, sink, ret, "jitdump", err);
    if (status >= 0 && !follower->jitdump.has_header) {
        put_header(writing);
        flush_record(writing);
        follower->jitdump.has_header = !writing->no_memory;
    }
    return status;
}

static enum cdacq_status end_round(struct round *round, enum cdacq_status status, struct cdacq_written *ret,
                                   struct cdacq_error *err)
{
    round->follower->jitdump.time = round->writing.time;
    round->follower->jitdump.written = round->writing.written;
    byte_writer_deinit(round->writing.record);
    if (status >= 0 && round->writing.no_memory)
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    if (status < 0)
        return status;
    sized_copy(ret, &round->writing.written, sizeof round->writing.written);
    return round->writing.stopped ? CDACQ_STOPPED : status;
}

enum cdacq_status cdacq_follower_write_jitdump(struct cdacq_follower *follower, const struct cdacq_sink *sink,
                                               struct cdacq_written *ret, struct cdacq_error *err)
{
    struct byte_writer record = {0};
    struct jitdump_debug debug;
    struct round round;
    enum cdacq_status status = begin_round(&round, follower, sink, ret, &record, err);
    if (status < 0 || round.writing.stopped)
        return end_round(&round, status, ret, err);
    jitdump_debug_init(&debug, follower->session);
    debug.with_samply = follower->flags & (unsigned)CDACQ_WRITE_SAMPLY;
    if (follower->flags & (unsigned)CDACQ_WRITE_DEBUG)
        round.writing.debug = &debug;
    status = cdacq_follower_visit_methods(follower, write_new_code, &round, err);
    jitdump_debug_deinit(&debug);
    return end_round(&round, status, ret, err);
}

enum cdacq_status cdacq_follower_close_jitdump(struct cdacq_follower *follower, const struct cdacq_sink *sink,
                                               struct cdacq_written *ret, struct cdacq_error *err)
{
    struct byte_writer record = {0};
    struct round round;
    enum cdacq_status status = begin_round(&round, follower, sink, ret, &record, err);
    if (status >= 0 && !round.writing.stopped) {
        put_record(&round.writing, &(struct cdacq_jitdump_record){.kind = CDACQ_JITDUMP_CLOSE});
        flush_record(&round.writing);
        follower->jitdump.closed = true;
    }
    return end_round(&round, status, ret, err);
}
