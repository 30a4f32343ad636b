#include "target/reader.h"

#include <inttypes.h>

#include "target/read_log.h"
#include "util/error.h"
#include "target/mapped_file.h"

enum { COPIED_FOR_A_UNIT = 1024 }; /* bytes of a window */

void reader_init(struct reader *reader, struct target *target, unsigned pointer_size, bool big_endian)
{
    *reader = (struct reader){.target = target, .pointer_size = (uint8_t)pointer_size, .big_endian = big_endian};
    reader_begin(reader, FUEL_LOOKUP);
}

bool reader_begin_slice(struct reader *reader)
{
    struct reader_task *task = &reader->task;
    uint32_t slice = MIN(task->reserve, (uint32_t)FUEL_SLICE);
    reader_count(reader);
    if (reader->target && slice > work_left(&reader->target->work)) {
        slice = (uint32_t)work_left(&reader->target->work);
        task->reserve = slice;
    }
    task->reserve -= slice;
    task->fuel = task->counted = slice;
    return slice;
}

void reader_charge_slices(struct reader *reader, uint32_t units)
{
    while (units > reader->task.fuel) {
        units -= reader->task.fuel;
        reader->task.fuel = 0;
        if (!reader_begin_slice(reader))
            return;
    }
    reader->task.fuel -= units;
}

uint64_t reader_fail(struct reader *reader, enum cdacq_status status, uint64_t address, const char *what)
{
    if (!reader_failed(reader))
        reader->task.failure = (struct reader_failure){.status = status, .address = address, .what = what};
    return 0;
}

enum cdacq_status reader_report(const struct reader *reader, const struct reader_failure *failure,
                                struct cdacq_error *err)
{
    const char *what = failure->what ? failure->what : "memory";
    char why[360];
    bool may_be_end = failure->status < 0 && failure->status != CDACQ_ERR_NOMEM && reader->target;
    if (may_be_end && target_check_gone(reader->target, failure->address, err) < 0) /* whatever else it looks like */
        return CDACQ_ERR_IO;
    switch (failure->status) {
    case CDACQ_ERR_MEMORY:
        mapped_file_explain(reader->target, failure->address, why, sizeof why);
        return error_set(err, failure->status, failure->address, "%s: no memory at 0x%" PRIx64 "%s", what,
                         failure->address, why);
    case CDACQ_ERR_FUEL:
        if (reader->target && work_is_spent(&reader->target->work, why, sizeof why))
            return error_set(err, failure->status, failure->address, "%s", why);
        return error_set(err, failure->status, failure->address, "%s: gave up after too many steps", what);
    case CDACQ_ERR_FIELD:
        return error_set(err, failure->status, 0, "%s is not described by the target's descriptor", what);
    case CDACQ_ERR_CORRUPT:
        return error_set(err, failure->status, failure->address, "%s: impossible value at 0x%" PRIx64, what,
                         failure->address);
    case CDACQ_ERR_NOMEM:
        return error_set(err, failure->status, 0, "out of memory for %s", what);
    default:
        if (failure->status < 0)
            return error_set(err, failure->status, failure->address, "%s: %s", what,
                             cdacq_status_text(failure->status));
        return failure->status;
    }
}

enum cdacq_status reader_status(const struct reader *reader, struct cdacq_error *err)
{
    return reader_report(reader, &reader->task.failure, err);
}

bool reader_take_memory(struct reader *reader, uint64_t bytes, const char *what)
{
    bool taken = work_take_memory(&reader->target->work, bytes);
    if (!taken)
        reader_fail(reader, CDACQ_ERR_FUEL, 0, what);
    return taken;
}

/* A file supplies what the process maps: a line is noted, by which that is checked later. */
static void note_file(struct reader *reader, uint64_t address)
{
    const struct span *span = &reader->hint;
    uint64_t begin = MAX(align_down(address, LINE_SIZE), span->begin);
    uint64_t end = MIN(align_down(address, LINE_SIZE) + LINE_SIZE, span->end);
    struct logged_file line = {span->begin, begin, span->bytes + (begin - span->begin), (size_t)(end - begin)};
    read_log_add_file(reader->log, &line);
}

/* Moves the hint to the span around `address`: the slow path of every read. */
static bool reader_seek(struct reader *reader, uint64_t address)
{
    struct span span = reader->constant;
    const struct target_ops *ops = reader->target->ops;
    bool known = address >= span.begin && address < span.end;
    if (!known)
        reader_charge(reader, reader->target->seek_units);
    if (!known && !(reader->dumped_only ? ops->dumped_at : ops->memory_at)(reader->target, address, &span))
        return false;
    if (!reader->hint.changing)
        reader->constant = reader->hint;
    reader->hint = span;
    reader->is_noted = reader->target->recording || (span.changing && reader->log);
    if (!span.changing && reader->log)
        note_file(reader, address);
    return true;
}

static void note_read(struct reader *reader, uint64_t address, size_t size)
{
    if (reader->target->recording)
        target_record(reader->target, address, size);
    if (reader->hint.changing && reader->log && size)
        read_log_add(reader->log, address, size);
}

/* The bytes at `address` if `size` of them are in one span, otherwise NULL. */
static inline const uint8_t *span_bytes(struct reader *reader, uint64_t address, size_t size)
{
    const struct span *hint = &reader->hint;
    if (UNLIKELY(address < hint->begin || address >= hint->end) && !reader_seek(reader, address))
        return NULL;
    if (UNLIKELY(hint->end - address < size))
        return NULL;
    reader->task.unverified |= hint->unverified;
    if (UNLIKELY(reader->is_noted))
        note_read(reader, address, size);
    return hint->bytes + (address - hint->begin);
}

/* Moves the hint to the span around `address`. Returns the number of its bytes from there on; 0 if it is missing. */
static inline uint64_t reach(struct reader *reader, uint64_t address)
{
    const struct span *hint = &reader->hint;
    if ((address < hint->begin || address >= hint->end) && !reader_seek(reader, address))
        return 0;
    return hint->end - address;
}

/* Copies span by span. Returns the number of bytes before the first missing one. */
static size_t copy_spans(struct reader *reader, uint64_t address, uint8_t *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        uint64_t at = address + done, there = at < address ? 0 : reach(reader, at);
        size_t n = (size_t)MIN(there, (uint64_t)(size - done));
        const uint8_t *bytes = n ? span_bytes(reader, at, n) : NULL;
        if (!bytes)
            break;
        memcpy(buffer + done, bytes, n);
        done += n;
    }
    return done;
}

void reader_distrust_file(struct reader *reader, uint64_t address)
{
    if (target_distrust_file(reader->target, address) && reader->log)
        reader->log->incomplete = true;
}

bool reader_try_copy(struct reader *reader, uint64_t address, void *buffer, size_t size)
{
    return reader_spend(reader) && copy_spans(reader, address, buffer, size) == size;
}

const uint8_t *reader_try_view(struct reader *reader, uint64_t address, size_t size)
{
    return reader_spend(reader) ? span_bytes(reader, address, size) : NULL;
}

const uint8_t *reader_try_run(struct reader *reader, uint64_t address, size_t max, size_t *ret_size)
{
    if (!reader_spend(reader))
        return NULL;
    *ret_size = (size_t)MIN(reach(reader, address), (uint64_t)max);
    return *ret_size ? span_bytes(reader, address, *ret_size) : NULL;
}

const uint8_t *reader_try_lasting_view(struct reader *reader, uint64_t address, size_t size, bool *ret_unverified)
{
    const uint8_t *view = reader->target->recording ? NULL : reader_try_view(reader, address, size);
    *ret_unverified = view && reader->hint.unverified;
    return view && !reader->hint.changing ? view : NULL;
}

bool reader_copy(struct reader *reader, uint64_t address, void *buffer, size_t size)
{
    if (!reader_spend(reader))
        return false;
    size_t done = copy_spans(reader, address, buffer, size);
    if (done < size)
        reader_fail(reader, CDACQ_ERR_MEMORY, address + done, NULL);
    return done == size;
}

/* The bytes of a short read, copied to `joined` where they are in two spans. */
static inline const uint8_t *read_bytes(struct reader *reader, uint64_t address, uint8_t *joined, size_t size)
{
    if (!reader_spend(reader))
        return NULL;
    const uint8_t *bytes = span_bytes(reader, address, size);
    if (LIKELY(bytes != NULL))
        return bytes;
    size_t done = copy_spans(reader, address, joined, size);
    if (done == size)
        return joined;
    reader_fail(reader, CDACQ_ERR_MEMORY, address + done, NULL);
    return NULL;
}

uint8_t read_u8(struct reader *reader, uint64_t address)
{
    uint8_t joined[1];
    const uint8_t *p = read_bytes(reader, address, joined, sizeof joined);
    return p ? *p : 0;
}

uint16_t read_u16(struct reader *reader, uint64_t address)
{
    uint8_t joined[2];
    const uint8_t *p = read_bytes(reader, address, joined, sizeof joined);
    return p ? load_u16(p, reader->big_endian) : 0;
}

uint32_t read_u32(struct reader *reader, uint64_t address)
{
    uint8_t joined[4];
    const uint8_t *p = read_bytes(reader, address, joined, sizeof joined);
    return p ? load_u32(p, reader->big_endian) : 0;
}

uint32_t read_own_u32(struct reader *reader, uint64_t address)
{
    bool dumped_only = reader->dumped_only;
    reader->dumped_only = true;
    reader_forget(reader, reader->log);
    uint32_t value = read_u32(reader, address);
    reader->dumped_only = dumped_only;
    reader_forget(reader, reader->log);
    return value;
}

uint64_t read_u64(struct reader *reader, uint64_t address)
{
    uint8_t joined[8];
    const uint8_t *p = read_bytes(reader, address, joined, sizeof joined);
    return p ? load_u64(p, reader->big_endian) : 0;
}

uint64_t read_pointer(struct reader *reader, uint64_t address)
{
    return reader->pointer_size == 4 ? read_u32(reader, address) : read_u64(reader, address);
}

uint64_t read_uint(struct reader *reader, uint64_t address, unsigned width)
{
    switch (width) {
    case 1:
        return read_u8(reader, address);
    case 2:
        return read_u16(reader, address);
    case 4:
        return read_u32(reader, address);
    default:
        return read_u64(reader, address);
    }
}

void window_deinit(struct window *window)
{
    free(window->owned);
    if (window->owned)
        work_return_memory(window->work, window->size);
    *window = (struct window){0};
}

/* Enlarges a copy that owns its bytes. On failure the reader fails. */
static bool window_grow(struct reader *reader, struct window *copy, size_t size, const char *what)
{
    if (!reader_take_memory(reader, size - copy->size, what))
        return false;
    uint8_t *larger = realloc(copy->owned, size);
    if (!larger) {
        work_return_memory(copy->work, size - copy->size);
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, what);
        return false;
    }
    copy->bytes = copy->owned = larger;
    copy->size = size;
    return true;
}

/* Copies span by span. The copy grows with the bytes found: a corrupt size must not cost memory. */
static bool window_copy(struct reader *reader, uint64_t address, uint64_t size, const char *what, struct window *copy)
{
    for (size_t done = 0; done < size;) {
        size_t n = (size_t)MIN(reach(reader, address + done), size - done);
        if (!n) {
            reader_fail(reader, CDACQ_ERR_MEMORY, address + done, what);
            return false;
        }
        size_t room = (size_t)MIN(MAX((uint64_t)(done + n), (uint64_t)done * 2), size);
        if (room > copy->size && !window_grow(reader, copy, room, what))
            return false;
        size_t got = copy_spans(reader, address + done, (uint8_t *)copy->owned + done, copy->size - done);
        if (!got) {
            reader_fail(reader, CDACQ_ERR_NOMEM, address + done, what);
            return false;
        }
        done += got;
        if (got / COPIED_FOR_A_UNIT > reader_fuel(reader)) {
            reader_charge(reader, UINT32_MAX);
            reader_count(reader);
            reader_fail(reader, CDACQ_ERR_FUEL, 0, what);
            return false;
        }
        reader_charge(reader, (uint32_t)(got / COPIED_FOR_A_UNIT));
    }
    return true;
}

bool reader_window(struct reader *reader, uint64_t address, uint64_t size, const char *what, struct window *ret)
{
    if (!reader_step(reader, what))
        return false;
    if (size > WINDOW_MAX || add_saturated(address, size) == UINT64_MAX) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, address, what);
        return false;
    }
    if (!size) {
        *ret = (struct window){.bytes = (const uint8_t *)""};
        return true;
    }
    const uint8_t *bytes =
        reach(reader, address) && !reader->hint.changing ? span_bytes(reader, address, (size_t)size) : NULL;
    if (bytes) {
        *ret = (struct window){.bytes = bytes, .size = (size_t)size};
        return true;
    }
    struct window copy = {.work = &reader->target->work};
    if (!window_copy(reader, address, size, what, &copy)) {
        window_deinit(&copy);
        return false;
    }
    *ret = copy;
    return true;
}

bool reader_string(struct reader *reader, uint64_t address, size_t max, char **ret)
{
    CLEANUP_FREE char *string = NULL;
    size_t length = 0;
    while (reader_step(reader, "reading a string")) {
        if (length >= max || address + length < address) {
            reader_fail(reader, CDACQ_ERR_CORRUPT, address, "unterminated string");
            break;
        }
        size_t n = (size_t)MIN(reach(reader, address + length), (uint64_t)MIN(max - length, (size_t)256));
        const uint8_t *bytes = n ? span_bytes(reader, address + length, n) : NULL;
        if (!bytes) {
            reader_fail(reader, CDACQ_ERR_MEMORY, address + length, "string");
            break;
        }
        const uint8_t *nul = memchr(bytes, 0, n);
        size_t used = nul ? (size_t)(nul - bytes) : n;
        char *larger = realloc(string, length + used + 1);
        if (!larger) {
            reader_fail(reader, CDACQ_ERR_NOMEM, 0, "string");
            break;
        }
        string = larger;
        memcpy(string + length, bytes, used);
        length += used;
        string[length] = '\0';
        if (nul) {
            *ret = take_ptr(string);
            return true;
        }
    }
    return false;
}
