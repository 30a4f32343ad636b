#include "tests/support/stress_mock.h"

#include <string.h>

#include "util/base.h"

static void put(struct stress_mock *stress, uint64_t object, const char *field, uint64_t value)
{
    mock_set(stress->mock, object, field, value);
}

static uint64_t get(struct stress_mock *stress, uint64_t object, const char *field)
{
    return mock_error(stress->mock) ? 0 : mock_get(stress->mock, object, field);
}

static void add_modules(struct stress_mock *stress)
{
    uint32_t size = mock_size_of(stress->mock, "StressLogModuleDesc");
    uint64_t table = stress->log + mock_offset_of(stress->mock, "StressLog.Modules");
    for (unsigned i = 0; i < ARRAY_SIZE(stress->images); i++) {
        stress->images[i] = mock_map(stress->mock, 0, STRESS_MOCK_STRINGS, MOCK_READ, "/lib/strings.so", 4096 * i);
        put(stress, table + i * size, "StressLogModuleDesc.BaseAddress", stress->images[i]);
        put(stress, table + i * size, "StressLogModuleDesc.Size", STRESS_MOCK_STRINGS);
        stress->used[i] = 64; /* an ELF header is no string */
    }
}

void stress_mock_init(struct stress_mock *stress, struct mock *mock, bool is_net11)
{
    *stress = (struct stress_mock){.mock = mock, .is_net11 = is_net11, .start = (UINT64_C(5) << 51) + 12345};
    stress->log = mock_new(mock, "StressLog", 5 * (uint64_t)mock_size_of(mock, "StressLogModuleDesc"));
    put(stress, stress->log, "StressLog.LoggedFacilities", 0x80000101);
    put(stress, stress->log, "StressLog.Level", 6);
    put(stress, stress->log, "StressLog.MaxSizePerThread", 3 * STRESS_MOCK_CHUNK);
    put(stress, stress->log, "StressLog.MaxSizeTotal", 64 * STRESS_MOCK_CHUNK);
    put(stress, stress->log, "StressLog.TickFrequency", STRESS_MOCK_FREQUENCY);
    put(stress, stress->log, "StressLog.StartTimestamp", stress->start);
    put(stress, stress->log, "StressLog.StartTime", UINT64_C(116444736000000000) + UINT64_C(17000000000000000));
    add_modules(stress);
    put(stress, stress->log, "StressLog.ModuleOffset", stress->images[0]);
    uint64_t variable = mock_alloc(mock, 8, 8);
    mock_write_pointer(mock, variable, stress->log);
    if (!is_net11)
        mock_hide(mock, "StressLog.StartTime");
    mock_contract(mock, "StressLog", is_net11 ? "c2" : "2");
    mock_global(mock, "StressLog", is_net11 ? stress->log : variable);
    mock_global(mock, "StressLogEnabled", 1);
    mock_global(mock, "StressLogHasModuleTable", 1);
    mock_global(mock, "StressLogMaxModules", 5);
    mock_global(mock, "StressLogChunkSize", STRESS_MOCK_CHUNK);
    mock_global(mock, "StressLogValidChunkSig", STRESS_MOCK_SIGNATURE);
    mock_global(mock, "StressLogMaxMessageSize",
                mock_size_of(mock, "StressMsgHeader") + 63 * (uint64_t)mock_pointer_size(mock));
}

void stress_mock_deinit(struct stress_mock *stress)
{
    stress_mock_messages_deinit(&stress->messages);
}

uint64_t stress_mock_string(struct stress_mock *stress, unsigned image, const char *text)
{
    size_t size = strlen(text) + 1;
    uint64_t address = stress->images[image] + stress->used[image];
    mock_write(stress->mock, address, text, size);
    stress->used[image] += size;
    return address;
}

static uint64_t add_chunk(struct stress_mock *stress)
{
    uint64_t chunk = mock_new(stress->mock, "StressLogChunk", STRESS_MOCK_CHUNK);
    put(stress, chunk, "StressLogChunk.Next", chunk);
    put(stress, chunk, "StressLogChunk.Sig1", STRESS_MOCK_SIGNATURE);
    put(stress, chunk, "StressLogChunk.Sig2", STRESS_MOCK_SIGNATURE);
    put(stress, stress->log, "StressLog.TotalChunks", get(stress, stress->log, "StressLog.TotalChunks") + 1);
    return chunk;
}

static uint64_t begin_of(struct stress_mock *stress, uint64_t chunk)
{
    return chunk + mock_offset_of(stress->mock, "StressLogChunk.Buf");
}

uint64_t stress_mock_thread(struct stress_mock *stress, uint64_t id)
{
    uint64_t thread = mock_new(stress->mock, "ThreadStressLog", 0), chunk = add_chunk(stress);
    put(stress, thread, "ThreadStressLog.Next", get(stress, stress->log, "StressLog.Logs"));
    put(stress, thread, "ThreadStressLog.ThreadId", id);
    put(stress, thread, "ThreadStressLog.ChunkListHead", chunk);
    put(stress, thread, "ThreadStressLog.ChunkListTail", chunk);
    put(stress, thread, "ThreadStressLog.CurrentWriteChunk", chunk);
    put(stress, thread, "ThreadStressLog.CurrentPtr", begin_of(stress, chunk) + STRESS_MOCK_CHUNK);
    put(stress, stress->log, "StressLog.Logs", thread);
    return thread;
}

/* The chunks of a thread, and the one before `chunk`. */
static unsigned walk(struct stress_mock *stress, uint64_t chunk, uint64_t *ret_previous)
{
    unsigned count = 0;
    *ret_previous = chunk;
    for (uint64_t next = chunk; !count || next != chunk; count++) {
        *ret_previous = next;
        next = get(stress, next, "StressLogChunk.Next");
    }
    return count;
}

/* What is in [begin, end) is overwritten. */
static void overwrite(struct stress_mock *stress, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < stress->messages.count; i++) {
        struct stress_mock_message *message = &stress->messages.items[i];
        message->is_gone |= message->address < end && begin < message->address + message->size;
    }
}

/* Zeroes the rest of the chunk and goes to the one before it, which is new if the list may grow. */
static uint64_t leave_chunk(struct stress_mock *stress, uint64_t thread, unsigned chunks_max)
{
    uint64_t chunk = get(stress, thread, "ThreadStressLog.CurrentWriteChunk"), begin = begin_of(stress, chunk);
    uint64_t head = get(stress, thread, "ThreadStressLog.ChunkListHead");
    uint64_t tail = get(stress, thread, "ThreadStressLog.ChunkListTail"), previous;
    uint64_t current = get(stress, thread, "ThreadStressLog.CurrentPtr");
    mock_write(stress->mock, begin, (const uint8_t[STRESS_MOCK_CHUNK]){0}, current - begin);
    overwrite(stress, begin, current);
    if (chunk == head && walk(stress, chunk, &previous) < chunks_max) {
        uint64_t new = add_chunk(stress);
        put(stress, new, "StressLogChunk.Next", head);
        put(stress, tail, "StressLogChunk.Next", new);
        put(stress, thread, "ThreadStressLog.ChunkListHead", new);
    }
    walk(stress, chunk, &previous);
    if (previous == tail)
        put(stress, thread, "ThreadStressLog.WriteHasWrapped", 1);
    put(stress, thread, "ThreadStressLog.CurrentWriteChunk", previous);
    return begin_of(stress, previous) + STRESS_MOCK_CHUNK;
}

static uint64_t offset_of(struct stress_mock *stress, const char *format)
{
    uint64_t address = stress_mock_string(stress, stress->messages.count % 2, format);
    return address - stress->images[0] < STRESS_MOCK_STRINGS ? address - stress->images[0]
                                                             : STRESS_MOCK_STRINGS + address - stress->images[1];
}

void stress_mock_header(struct stress_mock *stress, uint64_t address, const struct stress_mock_message *message)
{
    uint64_t offset = message->format ? offset_of(stress, message->format) : 0;
    uint64_t time = (stress->start + message->time) & ((UINT64_C(1) << 51) - 1);
    uint64_t at = address + mock_offset_of(stress->mock, "StressMsg.Header");
    mock_write_uint(stress->mock, at, 8,
                    message->facility | (uint64_t)message->count << 32 | (offset & 0x3ffffff) << 38);
    mock_write_uint(stress->mock, at + 8, 8, offset >> 26 | time << 13);
}

void stress_mock_write(struct stress_mock *stress, uint64_t thread, unsigned chunks_max,
                       const struct stress_mock_message *message)
{
    struct stress_mock_message written = *message;
    unsigned word = mock_pointer_size(stress->mock);
    uint64_t chunk = get(stress, thread, "ThreadStressLog.CurrentWriteChunk");
    uint64_t current = get(stress, thread, "ThreadStressLog.CurrentPtr");
    written.thread = thread;
    written.size = mock_size_of(stress->mock, "StressMsgHeader") + (uint64_t)message->count * word;
    if (current - begin_of(stress, chunk) < written.size)
        current = leave_chunk(stress, thread, chunks_max);
    written.address = current - written.size;
    overwrite(stress, written.address, current);
    put(stress, thread, "ThreadStressLog.CurrentPtr", written.address);
    stress_mock_header(stress, written.address, &written);
    for (unsigned i = 0; i < written.count; i++)
        mock_write_pointer(stress->mock, written.address + mock_offset_of(stress->mock, "StressMsg.Args") + i * word,
                           written.arguments[i]);
    stress_mock_messages_append(&stress->messages, written);
}
