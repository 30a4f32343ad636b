/*
 * heap_strings.c: the strings of the heap, each with a hash of its characters. The hash has 128 bits and a random seed:
 * a target cannot choose strings that it takes for equal ones.
 */
#include "cdacq/heap.h"
#include "contracts/objects/string.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "target/target.h"
#include "util/error.h"
#include "util/hash_table.h"

enum {
    PIECE = 16 * 1024,     /* bytes that are hashed at a time; a multiple of 8 */
    STEPS_OF_A_STRING = 8, /* of work: it is read, hashed and looked up */
};

struct string_visit {
    struct target *target;
    uint64_t method_table; /* of strings */
    uint64_t length_offset, first_offset;
    bool big_endian;
    uint64_t seed;
    int (*visit)(const struct cdacq_heap_string *string, void *context);
    void *context;
    struct span span; /* the last; of a target that keeps its bytes */
    uint64_t unread;
    uint8_t piece[PIECE];
};

/* Bytes of the target, in `piece` or where they are. NULL: they are missing. */
static const uint8_t *get(struct string_visit *work, uint64_t address, size_t size)
{
    struct target *target = work->target;
    struct span *span = &work->span;
    if (target->ops->peek && !target->recording)
        return target->ops->peek(target, address, work->piece, size) == size ? work->piece : NULL;
    if (target->recording)
        target_record(target, address, size);
    for (size_t done = 0; done < size;) {
        uint64_t at = address + done;
        if ((at < span->begin || at >= span->end || target->ops->peek) && !target->ops->memory_at(target, at, span))
            return NULL;
        if (!done && span->end - at >= size)
            return span->bytes + (at - span->begin);
        size_t part = (size_t)MIN(span->end - at, (uint64_t)(size - done));
        memcpy(work->piece + done, span->bytes + (at - span->begin), part);
        done += part;
    }
    return work->piece;
}

static void hash_word(uint64_t hash[2], uint64_t word)
{
    hash[0] = hash_u64(word, hash[0]);
    hash[1] = hash_u64(word, hash[1] ^ UINT64_C(0xd6e8feb86659fd93));
}

/* Hashes `size` bytes of the target. False if they are missing. */
static bool hash_characters(struct string_visit *work, uint64_t address, uint64_t size, uint64_t hash[2])
{
    for (uint64_t done = 0; done < size;) {
        size_t part = (size_t)MIN(size - done, (uint64_t)PIECE), at = 0;
        const uint8_t *bytes = get(work, address + done, part);
        uint64_t word = 0;
        if (!bytes)
            return false;
        for (; at + 8 <= part; at += 8)
            hash_word(hash, load_u64(bytes + at, false));
        memcpy(&word, bytes + at, part - at);
        if (at < part)
            hash_word(hash, word);
        done += part;
    }
    return true;
}

static int visit_object(const struct cdacq_heap_object *object, void *context)
{
    struct string_visit *work = context;
    struct cdacq_heap_string string = {.address = object->address, .byte_size = object->byte_size};
    if (object->method_table != work->method_table)
        return 0;
    work_add_steps(&work->target->work, STEPS_OF_A_STRING + object->byte_size / WORK_BYTES_OF_A_STEP);
    const uint8_t *length = get(work, object->address + work->length_offset, 4);
    string.length = length ? load_u32(length, work->big_endian) : UINT32_MAX;
    if (string.length > STRING_LENGTH_MAX || work->first_offset + 2 * (uint64_t)string.length > object->byte_size) {
        work->unread++;
        return 0;
    }
    string.hash[0] = hash_u64(string.length, work->seed);
    string.hash[1] = hash_u64(string.length, ~work->seed);
    if (!hash_characters(work, object->address + work->first_offset, 2 * (uint64_t)string.length, string.hash)) {
        work->unread++;
        return 0;
    }
    return work->visit(&string, work->context);
}

/* Reads where a string has its length and its characters, and the MethodTable of strings. */
static enum cdacq_status find_strings(struct cdacq_session *session, struct string_visit *work, struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    resolver_begin(&session->resolver);
    reader_begin(reader, FUEL_LOOKUP);
    if (!reader->layout->global_present[G_StringMethodTable])
        return error_set(err, CDACQ_ERR_FIELD, 0, "the runtime does not say what a string is (StringMethodTable)");
    work->method_table = read_pointer(reader, reader->layout->globals[G_StringMethodTable]);
    work->length_offset = field_address(reader, 0, F_String_m_StringLength);
    work->first_offset = field_address(reader, 0, F_String_m_FirstChar);
    work->big_endian = reader->big_endian;
    return reader_failed(reader) ? reader_status(reader, err) : CDACQ_OK;
}

enum cdacq_status cdacq_session_visit_strings(struct cdacq_session *session,
                                              int (*visit)(const struct cdacq_heap_string *string, void *context),
                                              void *context, struct cdacq_heap_info *ret, uint64_t *ret_unread,
                                              struct cdacq_error *err)
{
    if (!session || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, session ? "no visitor" : "no session");
    CLEANUP_FREE struct string_visit *work = calloc(1, sizeof *work);
    if (!work)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    work->target = session->resolver.target->memory;
    work->seed = hash_table_seed();
    work->visit = visit;
    work->context = context;
    const struct cdacq_heap_visitor visitor = {.size = sizeof visitor, .object = visit_object, .context = work};
    enum cdacq_status status = find_strings(session, work, err);
    if (status >= 0)
        status = cdacq_session_visit_heap(session, &visitor, ret, err);
    if (status >= 0 && ret_unread)
        *ret_unread = work->unread;
    return status;
}
