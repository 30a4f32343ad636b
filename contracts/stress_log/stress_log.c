#include "contracts/stress_log/stress_log.h"

#include <inttypes.h>

#include "util/error.h"

enum { HEADER_SIZE = 16, HEADER_MAX = 64 }; /* bytes of a message before its arguments */

#define FREQUENCY_MAX  (UINT64_C(10) * 1000 * 1000 * 1000)
#define TIMESTAMP_MASK ((UINT64_C(1) << STRESS_TIMESTAMP_BITS) - 1)

const char *stress_facility_name(unsigned bit)
{
    /* Source: dotnet/runtime src/coreclr/inc/loglf.h. */
    static const char *const names[] = {
        "GC",
        "GCINFO",
        "STUBS",
        "JIT",
        "LOADER",
        "METADATA",
        "SYNC",
        "EEMEM",
        "GCALLOC",
        "CORDB",
        "CLASSLOADER",
        "CORPROF",
        "DIAGNOSTICS_PORT",
        "DBGALLOC",
        "EH",
        "ENC",
        "ASSERT",
        "VERIFIER",
        "THREADPOOL",
        "GCROOTS",
        "INTEROP",
        "MARSHALER",
        "TIEREDCOMPILATION",
        "ZAP",
        "STARTUP",
        "APPDOMAIN",
        "CODESHARING",
        "STORE",
        "SECURITY",
        "LOCKS",
        "BCL",
        "ALWAYS",
    };
    _Static_assert(ARRAY_SIZE(names) == 32, "a name for each bit");
    return bit < ARRAY_SIZE(names) ? names[bit] : NULL;
}

/* ---- The log and its threads ---- */

static void read_modules(struct reader *reader, struct stress_log *log)
{
    const struct layout *layout = reader->layout;
    uint64_t size = layout->sizes[T_StressLogModuleDesc], table = layout->globals[G_StressLogModuleTable];
    log->has_module_table = layout->globals[G_StressLogHasModuleTable] != 0;
    if (!log->has_module_table)
        return;
    if (has_field(reader, F_StressLog_Modules))
        table = field_address(reader, log->address, F_StressLog_Modules);
    if (!table || !size) {
        reader_fail(reader, CDACQ_ERR_FIELD, 0, "StressLog.Modules");
        return;
    }
    uint64_t count = MIN(layout->globals[G_StressLogMaxModules], (uint64_t)STRESS_MODULES_MAX);
    for (uint64_t i = 0; i < count && !reader_failed(reader); i++) {
        uint64_t module = table + i * size;
        log->modules[i].base = read_field(reader, module, F_StressLogModuleDesc_BaseAddress);
        log->modules[i].size = read_field(reader, module, F_StressLogModuleDesc_Size);
        log->module_count++;
    }
}

/* What no runtime has, which the rest relies on; or NULL. */
static const char *impossible_value(const struct layout *layout, const struct stress_log *log)
{
    uint64_t header = layout->sizes[T_StressMsgHeader], chunk = layout->globals[G_StressLogChunkSize];
    if (header < HEADER_SIZE || header > HEADER_MAX)
        return "the size of StressMsgHeader";
    if (chunk < header || chunk > STRESS_CHUNK_MAX)
        return "StressLogChunkSize";
    return log->tick_frequency && log->tick_frequency <= FREQUENCY_MAX ? NULL : "StressLog.TickFrequency";
}

bool stress_log_read(struct reader *reader, struct stress_log *ret)
{
    enum { DIRECT_SINCE = 2 }; /* schema */
    const struct layout *layout = reader->layout;
    *ret = (struct stress_log){.address = layout->globals[G_StressLog]};
    if (!layout->globals[G_StressLogEnabled])
        ret->address = 0;
    if (ret->address && layout->schema < DIRECT_SINCE)
        ret->address = read_pointer(reader, ret->address);
    reader_name_failure(reader, "the address of StressLog");
    if (!ret->address)
        return !reader_failed(reader);
    uint64_t log = ret->address;
    ret->facilities = (uint32_t)read_field(reader, log, F_StressLog_LoggedFacilities);
    ret->level = (uint32_t)read_field(reader, log, F_StressLog_Level);
    ret->max_size_per_thread = (uint32_t)read_field(reader, log, F_StressLog_MaxSizePerThread);
    ret->max_size_total = (uint32_t)read_field(reader, log, F_StressLog_MaxSizeTotal);
    ret->chunk_count = (uint32_t)read_field(reader, log, F_StressLog_TotalChunks);
    ret->first = read_field(reader, log, F_StressLog_Logs);
    ret->tick_frequency = read_field(reader, log, F_StressLog_TickFrequency);
    ret->start_timestamp = read_field(reader, log, F_StressLog_StartTimestamp);
    ret->start_time = read_optional(reader, log, F_StressLog_StartTime);
    ret->module_offset = read_field(reader, log, F_StressLog_ModuleOffset);
    ret->is_on = ret->max_size_per_thread || ret->first;
    if (!ret->is_on || reader_failed(reader))
        return !reader_failed(reader);
    const char *wrong = impossible_value(layout, ret);
    if (!layout->sizes[T_StressMsgHeader])
        reader_fail(reader, CDACQ_ERR_FIELD, 0, "the size of StressMsgHeader");
    else if (wrong)
        reader_fail(reader, CDACQ_ERR_CORRUPT, log, wrong);
    read_modules(reader, ret);
    return !reader_failed(reader);
}

bool stress_thread_read(struct reader *reader, uint64_t address, struct stress_thread *ret)
{
    *ret = (struct stress_thread){
        .address = address,
        .next = read_field(reader, address, F_ThreadStressLog_Next),
        .id = read_field(reader, address, F_ThreadStressLog_ThreadId),
        .current = read_field(reader, address, F_ThreadStressLog_CurrentPtr),
        .head = read_field(reader, address, F_ThreadStressLog_ChunkListHead),
        .tail = read_field(reader, address, F_ThreadStressLog_ChunkListTail),
        .write_chunk = read_field(reader, address, F_ThreadStressLog_CurrentWriteChunk),
        .write_has_wrapped = read_field(reader, address, F_ThreadStressLog_WriteHasWrapped) != 0,
    };
    return !reader_failed(reader);
}

/* ---- Messages ---- */

/* The address of a format string by its offset, which counts through all modules. 0 if no module has it. */
static uint64_t format_address(const struct stress_log *log, uint64_t offset)
{
    if (!log->has_module_table)
        return log->module_offset + offset;
    for (unsigned i = 0; i < log->module_count; i++) {
        if (offset < log->modules[i].size)
            return log->modules[i].base + offset;
        offset -= log->modules[i].size;
    }
    return 0;
}

/*
 * Decodes the header: 32 bits of facility, 6 for the number of arguments, 39 of format offset, 51 of time. A host that
 * runs for long enough has a counter of more bits, so times are relative to the start of the log.
 */
static uint64_t read_header(struct reader *reader, const struct stress_log *log, uint64_t address,
                            struct stress_message *ret)
{
    uint64_t header = field_address(reader, address, F_StressMsg_Header);
    uint64_t first = read_u64(reader, header), second = read_u64(reader, header + 8);
    uint64_t offset = (first >> 38 & 0x3ffffff) | (second & 0x1fff) << 26;
    *ret = (struct stress_message){
        .address = address,
        .time = ((second >> 13) - log->start_timestamp) & TIMESTAMP_MASK,
        .facility = (uint32_t)first,
        .format = format_address(log, offset),
        .argument_count = (unsigned)(first >> 32 & STRESS_ARGUMENTS_MAX),
        .arguments = field_address(reader, address, F_StressMsg_Args),
    };
    return first;
}

static uint64_t message_size(const struct reader *reader, const struct stress_message *message)
{
    return reader->layout->sizes[T_StressMsgHeader] + (uint64_t)message->argument_count * reader->pointer_size;
}

/* Whether a time is later. A distance of more than half of all times means that the counter has wrapped. */
static bool is_later(uint64_t time, uint64_t than)
{
    return time > than && time - than <= TIMESTAMP_MASK / 2;
}

/* Moves on over words of zeros, as far as a message can be long. */
static void skip_zeros(struct reader *reader, struct stress_cursor *cursor)
{
    uint64_t word = reader->pointer_size, begin = cursor->position;
    uint64_t most = MIN(reader->layout->globals[G_StressLogMaxMessageSize], cursor->end - begin);
    while (cursor->position - begin < most && cursor->end - cursor->position >= word &&
           reader_step(reader, "StressLogChunk.Buf") && !read_pointer(reader, cursor->position))
        cursor->position += word;
    if (cursor->position - begin >= most)
        cursor->position = cursor->end; /* the chunk has no message */
}

/* Goes to the next chunk, whose messages are older. False if there is none; else the reader may have failed. */
static bool next_chunk(struct reader *reader, struct stress_cursor *cursor)
{
    const struct stress_thread *thread = &cursor->thread;
    uint32_t signature = (uint32_t)reader->layout->globals[G_StressLogValidChunkSig];
    bool is_first = !cursor->chunk, is_tail = cursor->chunk == thread->tail;
    if (!is_first &&
        ((is_tail && !thread->write_has_wrapped) || (cursor->has_wrapped && cursor->chunk == thread->write_chunk)))
        return false;
    cursor->has_wrapped |= !is_first && is_tail;
    uint64_t chunk = is_first ? thread->write_chunk : read_field(reader, cursor->chunk, F_StressLogChunk_Next);
    bool is_last = cursor->has_wrapped && chunk == thread->write_chunk;
    cursor->is_done = reader_failed(reader) || !chunk || (chunk == cursor->marked && !is_last);
    if (cursor->is_done) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, cursor->chunk,
                    chunk ? "StressLogChunk.Next, which leads back" : "StressLogChunk.Next");
        return true;
    }
    if (!(cursor->chunk_count & (cursor->chunk_count - 1)))
        cursor->marked = chunk;
    cursor->chunk_count++;
    cursor->chunk = chunk;
    uint64_t begin = field_address(reader, chunk, F_StressLogChunk_Buf);
    uint64_t end = begin + reader->layout->globals[G_StressLogChunkSize];
    cursor->position = cursor->end = end; /* it is left out if it is damaged */
    if ((read_field(reader, chunk, F_StressLogChunk_Sig1) != signature ||
         read_field(reader, chunk, F_StressLogChunk_Sig2) != signature) &&
        !reader_failed(reader))
        reader_fail(reader, CDACQ_ERR_CORRUPT, chunk, "the signature of a StressLogChunk");
    if ((is_first || is_last) && (thread->current < begin || thread->current > end))
        reader_fail(reader, CDACQ_ERR_CORRUPT, thread->address, "ThreadStressLog.CurrentPtr");
    if (reader_failed(reader))
        return true;
    cursor->position = is_first ? thread->current : begin;
    cursor->end = is_last ? thread->current : end;
    if (!is_first)
        skip_zeros(reader, cursor);
    return true;
}

/* Whether the newest message was not complete: its header is empty, or the message before it is later. */
static bool is_being_written(struct reader *reader, const struct stress_log *log, struct stress_cursor *cursor,
                             const struct stress_message *newest, uint64_t first_word)
{
    struct stress_message older;
    if (!first_word) {
        skip_zeros(reader, cursor);
        return true;
    }
    uint64_t size = message_size(reader, newest);
    if (cursor->end - cursor->position < size + reader->layout->sizes[T_StressMsgHeader])
        return false;
    uint64_t word = read_header(reader, log, cursor->position + size, &older);
    if (reader_recover(reader, FAILURE_BUT_FUEL) || !word || !is_later(older.time, newest->time))
        return false;
    cursor->position += size;
    return true;
}

/* Reads the message at the position. False, with a flaw or, without one, if it has been overwritten in part. */
static bool read_message(struct reader *reader, const struct stress_log *log, struct stress_cursor *cursor,
                         struct stress_message *ret, struct cdacq_error *flaw)
{
    uint64_t address = cursor->position, left = cursor->end - address;
    bool may_be_cut = cursor->has_wrapped && cursor->chunk == cursor->thread.write_chunk;
    uint64_t word = left < reader->layout->sizes[T_StressMsgHeader] ? 0 : read_header(reader, log, address, ret);
    bool is_newest = !cursor->has_message && cursor->chunk_count == 1 && address == cursor->thread.current;
    if (is_newest && left && !reader_failed(reader) && is_being_written(reader, log, cursor, ret, word)) {
        error_set(flaw, CDACQ_ERR_CHANGED, address, "the message at 0x%" PRIx64 " was being written", address);
        return false;
    }
    uint64_t size = word ? message_size(reader, ret) : 0;
    cursor->position = cursor->end;
    if (reader_failed(reader)) {
        (void)reader_status(reader, flaw);
        return false;
    }
    if ((!word || size > left) && may_be_cut)
        return false;
    if (!word || size > left)
        error_set(flaw, CDACQ_ERR_CORRUPT, address,
                  word ? "the message at 0x%" PRIx64 " extends beyond its chunk" : "there is no message at 0x%" PRIx64,
                  address);
    else if (cursor->has_message && is_later(ret->time, cursor->time))
        error_set(flaw, CDACQ_ERR_CORRUPT, address,
                  "the message at 0x%" PRIx64 " is newer than the one that was written after it", address);
    else
        cursor->position = address + size;
    return flaw->status == CDACQ_OK;
}

void stress_cursor_begin(const struct stress_thread *thread, struct stress_cursor *ret)
{
    /* The runtime has made it, but not begun to write. */
    *ret = (struct stress_cursor){.thread = *thread, .is_done = !thread->head || !thread->write_chunk};
}

static enum stress_step next(struct reader *reader, const struct stress_log *log, struct stress_cursor *cursor,
                             struct stress_message *ret, struct cdacq_error *flaw)
{
    while (!cursor->is_done) {
        if (cursor->position < cursor->end) {
            if (read_message(reader, log, cursor, ret, flaw)) {
                cursor->has_message = true;
                cursor->time = ret->time;
                return STRESS_MESSAGE;
            }
            if (flaw->status < 0)
                return STRESS_FLAW;
        }
        if (!next_chunk(reader, cursor))
            cursor->is_done = true;
        else if (reader_status(reader, flaw) < 0)
            return STRESS_FLAW;
    }
    return STRESS_DONE;
}

enum stress_step stress_cursor_next(struct reader *reader, const struct stress_log *log, struct stress_cursor *cursor,
                                    struct stress_message *ret, struct cdacq_error *ret_flaw)
{
    *ret_flaw = (struct cdacq_error){.status = CDACQ_OK};
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    enum stress_step step = next(reader, log, cursor, ret, ret_flaw);
    cursor->is_done |= ret_flaw->status == CDACQ_ERR_FUEL;
    reader_leave(reader, &outer);
    return step;
}
