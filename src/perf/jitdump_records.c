#include "src/perf/jitdump_records.h"

#include "src/lookup/find.h"
#include "src/lookup/opened_session.h"
#include "formats/jitdump_writer.h"
#include "src/lookup/opened_target.h"
#include "src/perf/jitdump_debug.h"

enum { TRIES = 4 }; /* of reading code that a running process may free */

void jitdump_records_put(struct code_writer *writer, struct cdacq_jitdump_record *record)
{
    uint8_t bytes[JITDUMP_ENCODED_MAX];
    record->timestamp = ++writer->time;
    code_writer_put(writer, bytes,
                    jitdump_encode(record, writer->session->resolver.target->descriptor_info.big_endian, bytes));
}

static uint32_t process_of(const struct code_writer *writer)
{
    return (uint32_t)writer->session->resolver.target->memory->pid;
}

static bool read_bytes(struct reader *reader, const struct code_entry *entry, struct window *ret)
{
    if (!work_take_code(&reader->target->work, entry->size))
        return reader_fail(reader, CDACQ_ERR_FUEL, entry->begin, "code");
    return reader_window(reader, entry->begin, entry->size, "code", ret);
}

/*
 * Reads the code. False without a failure of the reader if a running process has freed the method: its memory may have
 * gone with it.
 */
static bool read_code(struct code_writer *writer, const struct code_entry *entry, struct window *ret)
{
    struct cdacq_session *session = writer->session;
    struct reader *reader = &session->resolver.reader;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        reader_begin(reader, FUEL_LOOKUP);
        bool found = read_bytes(reader, entry, ret);
        struct reader_failure failure = reader_failure(reader);
        if (!resolver_is_running(&session->resolver) || entry->method->answer != CDACQ_ANSWER_MANAGED)
            return found;
        if (!found && target_gone(session->resolver.target->memory))
            return false;
        if (resolver_confirms(&session->resolver, entry->method)) {
            if (!found) {
                reader_begin(reader, FUEL_LOOKUP);
                reader_fail_again(reader, &failure);
            }
            return found;
        }
        if (found)
            window_deinit(ret);
        epoch_read_anew(&session->resolver.epoch);
    }
    reader_begin(reader, FUEL_LOOKUP);
    return false;
}

/* Writes the records that precede a JIT_CODE_LOAD. */
static void put_debug(struct code_writer *writer, const struct code_entry *entry)
{
    struct jitdump_debug *debug = writer->debug;
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
        jitdump_records_put(writer, &record);
        code_writer_put(writer, debug->code_offsets.data, debug->code_offsets.length);
        code_writer_put(writer, debug->positions.data, debug->positions.length);
        code_writer_put(writer, debug->strings.data, debug->strings.length);
    }
    if (debug->entry_count) {
        struct cdacq_jitdump_record record = {
            .kind = CDACQ_JITDUMP_DEBUG_INFO,
            .total_size = JITDUMP_DEBUG_INFO_FIXED + debug->entries.length,
            .as.debug_info = {.code_addr = entry->begin, .nr_entry = debug->entry_count},
        };
        jitdump_records_put(writer, &record);
        code_writer_put(writer, debug->entries.data, debug->entries.length);
    }
    if (debug->unwinding.length) {
        struct cdacq_jitdump_record record = {
            .kind = CDACQ_JITDUMP_UNWINDING_INFO,
            .as.unwinding_info = {.unwind_data_size = debug->unwinding.length, .eh_frame_hdr_size = debug->index_size},
        };
        jitdump_records_put(writer, &record);
        code_writer_put(writer, debug->unwinding.data, debug->unwinding.length);
    }
}

/*
 * Reads all of the code before it writes anything. The code is at most WINDOW_MAX bytes and a name is capped, so the
 * size of the record always fits its field.
 */
bool jitdump_records_put_entry(struct code_writer *writer, const struct code_entry *entry)
{
    struct reader *reader = &writer->session->resolver.reader;
    struct window window = {0};
    bool has_debug = writer->debug && entry->method->answer == CDACQ_ANSWER_MANAGED;
    if (has_debug)
        jitdump_debug_form(writer->debug, entry->method, entry->begin, entry->size);
    if (!read_code(writer, entry, &window)) {
        struct cdacq_error error;
        bool has_ended = writer->record && target_gone(writer->session->resolver.target->memory);
        if (reader_status(reader, &error) < 0 && !has_ended)
            code_writer_leave_out(writer, entry->method, entry->begin, entry->size, error.message);
        return false;
    }
    writer->unverified |= reader_unverified(reader);
    struct cdacq_jitdump_record record = {
        .kind = CDACQ_JITDUMP_LOAD,
        .as.load =
            {
                .pid = process_of(writer),
                .tid = process_of(writer),
                .vma = entry->begin,
                .code_addr = entry->begin,
                .code_size = entry->size,
                .code_index = writer->written.methods + writer->written.stubs + 1,
                .name_length = entry->name_length + entry->suffix_length,
            },
    };
    if (has_debug)
        put_debug(writer, entry);
    jitdump_records_put(writer, &record);
    code_writer_put_name(writer, entry);
    code_writer_put(writer, "", 1);
    code_writer_put(writer, window.bytes, window.size);
    window_deinit(&window);
    return true;
}

static uint32_t machine_of(const struct cdacq_target *target)
{
    return target->memory->elf_machine ? target->memory->elf_machine
                                       : architecture_elf_machine(target->layout.architecture);
}

void jitdump_records_put_header(struct code_writer *writer)
{
    struct cdacq_jitdump_record header = {
        .kind = CDACQ_JITDUMP_HEADER,
        .as.header = {.version = 1,
                      .elf_mach = machine_of(writer->session->resolver.target),
                      .pid = process_of(writer)},
    };
    jitdump_records_put(writer, &header);
}
