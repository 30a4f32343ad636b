#include "src/perf/jitdump_stream.h"

#include <inttypes.h>

#include "formats/jitdump_problems.h"
#include "util/hash_table.h"

enum {
    RECORD_MAX = 64 * 1024 * 1024, /* bytes of a record that are read; a longer one is reported as cut */
    NAME_FIRST = 512,              /* bytes of a JIT_CODE_LOAD that contain nearly every name */
    HASHED_MAX = 128,              /* bytes of a record by which a rewritten file is noticed */
    FIXED_MAX = 64,                /* at least the fixed fields of any kind */
};

/* ---- The file ---------------------------------------------------------------------------------------------------- */

enum cdacq_status jitdump_stream_open(const char *path, unsigned flags, struct jitdump_stream *ret,
                                      struct cdacq_error *err)
{
    struct jitdump_stream stream = {.flags = flags};
    enum cdacq_status status = jitdump_file_open(path, flags & CDACQ_JITDUMP_FOLLOW, &stream.file, err);
    if (status == CDACQ_OK)
        *ret = stream;
    return status;
}

enum cdacq_status jitdump_stream_open_again(const struct jitdump_stream *stream, struct jitdump_stream *ret,
                                            struct cdacq_error *err)
{
    struct jitdump_stream again = {0};
    enum cdacq_status status = jitdump_file_open_again(&stream->file, &again.file, err);
    if (status == CDACQ_OK)
        *ret = again;
    return status;
}

void jitdump_stream_close(struct jitdump_stream *stream)
{
    if (!stream)
        return;
    jitdump_places_deinit(&stream->places);
    jitdump_file_close(&stream->file);
    *stream = (struct jitdump_stream){0};
}

void jitdump_stream_restart(struct jitdump_stream *stream, const char *why)
{
    stream->restart = why;
    stream->has_header = stream->has_places = stream->has_load = false;
    stream->file.header_size = 0;
    jitdump_file_forget(&stream->file);
    jitdump_places_deinit(&stream->places);
    stream->no_places = (struct cdacq_error){0};
    stream->pending = (struct jitdump_pending){0};
    stream->offset = stream->closed = stream->last_record = stream->content = 0;
}

/* ---- One record -------------------------------------------------------------------------------------------------- */

/* Whether a writer may have extended the file and not written its header yet, or only the first field of it. */
static bool is_unwritten_header(const uint8_t *bytes)
{
    return !load_u32(bytes, false) ||
           (jitdump_is_magic(bytes) && (!load_u32(bytes + 4, false) || !load_u32(bytes + 8, false)));
}

/* CDACQ_DONE: the header is not complete. */
static enum cdacq_status read_header(struct jitdump_stream *stream, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    size_t size = (size_t)MIN(stream->file.size, (uint64_t)JITDUMP_HEADER_SIZE);
    const uint8_t *bytes;
    if (size < JITDUMP_HEADER_SIZE_MIN)
        return CDACQ_DONE;
    enum cdacq_status status = jitdump_file_window(&stream->file, 0, size, &bytes, err);
    if (status == CDACQ_OK && stream->flags & CDACQ_JITDUMP_FOLLOW && is_unwritten_header(bytes))
        return CDACQ_DONE;
    if (status == CDACQ_OK)
        status = jitdump_decode_header(bytes, size, ret, err);
    if (status != CDACQ_OK || ret->total_size > stream->file.size)
        return status != CDACQ_OK ? status : CDACQ_DONE;
    jitdump_file_keep_header(&stream->file, bytes, (size_t)MIN(ret->total_size, (uint64_t)JITDUMP_HEADER_SIZE));
    ret->as.header.restart = stream->restart;
    if (ret->as.header.flags & ~(uint64_t)JITDUMP_FLAGS_KNOWN)
        jitdump_set_problem(&stream->problem, ret, "jitdump header: its flags 0x%" PRIx64 " are not known",
                            ret->as.header.flags & ~(uint64_t)JITDUMP_FLAGS_KNOWN);
    stream->header = *ret;
    stream->has_header = true;
    stream->offset = ret->total_size;
    return CDACQ_OK;
}

enum cdacq_status jitdump_stream_prefix(struct jitdump_stream *stream, uint64_t offset,
                                        struct cdacq_jitdump_record *ret, struct cdacq_error *err)
{
    const uint8_t *bytes;
    if (!range_fits(offset, JITDUMP_PREFIX_SIZE, stream->file.size))
        return CDACQ_DONE;
    enum cdacq_status status = jitdump_file_window(&stream->file, offset, JITDUMP_PREFIX_SIZE, &bytes, err);
    if (status != CDACQ_OK)
        return status;
    jitdump_decode_prefix(bytes, stream->header.as.header.big_endian, offset, ret);
    if (ret->total_size < JITDUMP_PREFIX_SIZE) {
        /* A writer may have extended the file and not filled it yet: all zeros. */
        if ((stream->flags & CDACQ_JITDUMP_FOLLOW) && !ret->id && !ret->total_size && !ret->timestamp)
            return CDACQ_DONE;
        return error_set(err, CDACQ_ERR_FORMAT, offset,
                         "the record at offset %" PRIu64 " says it has %" PRIu64
                         " bytes, less than its header: what follows cannot be found",
                         offset, ret->total_size);
    }
    return CDACQ_OK;
}

/* How many bytes of a record to decode; for JIT_CODE_LOAD at first. */
static size_t wanted_size(const struct jitdump_stream *stream, const struct cdacq_jitdump_record *record)
{
    uint64_t size = FIXED_MAX;
    if (stream->flags & CDACQ_JITDUMP_CODE || record->kind == CDACQ_JITDUMP_DEBUG_INFO ||
        record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 || record->kind == CDACQ_JITDUMP_SAMPLY_TIER ||
        record->kind == CDACQ_JITDUMP_UNWINDING_INFO)
        size = RECORD_MAX;
    else if (record->kind == CDACQ_JITDUMP_LOAD)
        size = NAME_FIRST;
    return (size_t)MIN(record->total_size, size);
}

/* Decodes the fields of a complete record whose prefix was read. */
static enum cdacq_status read_fields(struct jitdump_stream *stream, struct cdacq_jitdump_record *record,
                                     struct cdacq_error *err)
{
    size_t size = wanted_size(stream, record), size_max = (size_t)MIN(record->total_size, (uint64_t)RECORD_MAX);
    const uint8_t *bytes;
    enum cdacq_status status;
    for (;;) {
        status = jitdump_file_window(&stream->file, record->offset, size, &bytes, err);
        if (status != CDACQ_OK)
            return status;
        if (record->kind != CDACQ_JITDUMP_LOAD || size == size_max || size <= JITDUMP_LOAD_FIXED ||
            memchr(bytes + JITDUMP_LOAD_FIXED, '\0', size - JITDUMP_LOAD_FIXED))
            break;
        size = MIN(size * 8, size_max);
    }
    if (jitdump_decode(bytes, size, stream->header.as.header.big_endian, record, &stream->problem) != CDACQ_OK)
        record->error = stream->problem.message;
    if (record->kind == CDACQ_JITDUMP_UNWINDING_INFO && !(stream->flags & CDACQ_JITDUMP_CODE))
        record->as.unwinding_info.unwinding_data = NULL; /* as code is */
    return CDACQ_OK;
}

/* ---- A record and those before it -------------------------------------------------------------------------------- */

/* Enters a JIT_CODE_LOAD or JIT_CODE_MOVE into the table of places; a damaged one is skipped. */
static enum cdacq_status collect_place(struct jitdump_stream *stream, struct cdacq_jitdump_record *record,
                                       struct cdacq_error *err)
{
    const uint8_t *bytes;
    size_t size = (size_t)MIN(record->total_size, (uint64_t)FIXED_MAX);
    if (record->kind != CDACQ_JITDUMP_LOAD && record->kind != CDACQ_JITDUMP_MOVE)
        return CDACQ_OK;
    enum cdacq_status status = jitdump_file_window(&stream->file, record->offset, size, &bytes, err);
    if (status != CDACQ_OK)
        return status;
    (void)jitdump_decode(bytes, size, stream->header.as.header.big_endian, record, NULL);
    if (!record->has_fields)
        return CDACQ_OK;
    if (record->kind == CDACQ_JITDUMP_LOAD)
        return jitdump_places_load(&stream->places, record, err);
    (void)jitdump_places_move(&stream->places, record, NULL);
    return CDACQ_OK;
}

enum cdacq_status jitdump_stream_collect_places(struct jitdump_stream *stream, uint64_t end, struct cdacq_error *err)
{
    struct cdacq_error *problem = &stream->no_places;
    struct cdacq_jitdump_record record;
    enum cdacq_status status = problem->status;
    for (uint64_t offset = stream->header.total_size; offset < end && status == CDACQ_OK; offset += record.total_size) {
        status = jitdump_stream_prefix(stream, offset, &record, problem);
        if (status == CDACQ_OK)
            status = collect_place(stream, &record, problem);
    }
    stream->has_places = status == CDACQ_OK;
    if (!stream->has_places)
        jitdump_places_deinit(&stream->places);
    if (status < 0 && err)
        *err = *problem;
    return status;
}

/* CDACQ_DONE: the file has changed. A table that cannot be built is an error of this record only. */
static enum cdacq_status apply_move(struct jitdump_stream *stream, struct cdacq_jitdump_record *record)
{
    enum cdacq_status status = CDACQ_OK;
    if (!stream->has_places)
        status = jitdump_stream_collect_places(stream, record->offset, &stream->problem);
    if (status == CDACQ_OK)
        status = jitdump_places_move(&stream->places, record, &stream->problem);
    if (status < 0)
        record->error = stream->problem.message;
    return status == CDACQ_DONE ? CDACQ_DONE : CDACQ_OK;
}

/*
 * Checks that the code_index is new. As long as it grows, it is; otherwise the table of places says so. CDACQ_DONE: the
 * file has changed.
 */
static enum cdacq_status check_index(struct jitdump_stream *stream, struct cdacq_jitdump_record *record,
                                     struct cdacq_error *err)
{
    uint64_t index = record->as.load.code_index;
    enum cdacq_status status = CDACQ_OK;
    if (stream->has_load && index <= stream->highest && !stream->has_places && stream->no_places.status >= 0) {
        status = jitdump_stream_collect_places(stream, record->offset, NULL);
        if (status != CDACQ_DONE) /* the table has read other parts of the file */
            status = read_fields(stream, record, err);
    }
    const struct jitdump_place *known =
        status == CDACQ_OK && stream->has_places ? jitdump_places_find(&stream->places, index) : NULL;
    if (known)
        jitdump_set_problem(&stream->problem, record,
                            "JIT_CODE_LOAD: that at offset %" PRIu64 " has the same code_index, %" PRIu64, known->load,
                            index);
    stream->highest = stream->has_load ? MAX(stream->highest, index) : index;
    stream->has_load = true;
    return status;
}

static enum cdacq_status connect_load(struct jitdump_stream *stream, struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err)
{
    enum cdacq_status status = check_index(stream, record, err);
    if (status != CDACQ_OK)
        return status;
    jitdump_pending_bind(&stream->pending, record, &stream->problem);
    if (stream->closed)
        jitdump_set_problem(&stream->problem, record, "JIT_CODE_LOAD: after the JIT_CODE_CLOSE at offset %" PRIu64,
                            stream->closed);
    if (stream->has_places && jitdump_places_load(&stream->places, record, &stream->no_places) != CDACQ_OK) {
        stream->has_places = false; /* later moves report why */
        jitdump_places_deinit(&stream->places);
    }
    return CDACQ_OK;
}

/* Applies a record to the table of places and to the JIT_CODE_LOADs after it. CDACQ_DONE: the file has changed. */
static enum cdacq_status connect(struct jitdump_stream *stream, struct cdacq_jitdump_record *record,
                                 struct cdacq_error *err)
{
    if (!record->has_fields)
        return CDACQ_OK;
    switch (record->kind) {
    case CDACQ_JITDUMP_LOAD:
        return connect_load(stream, record, err);
    case CDACQ_JITDUMP_MOVE:
        return apply_move(stream, record);
    case CDACQ_JITDUMP_CLOSE:
        jitdump_pending_close(&stream->pending, record, &stream->problem);
        stream->closed = record->offset;
        return CDACQ_OK;
    case CDACQ_JITDUMP_DEBUG_INFO:
    case CDACQ_JITDUMP_UNWINDING_INFO:
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
    case CDACQ_JITDUMP_SAMPLY_POSITIONS:
        jitdump_pending_add(&stream->pending, record, &stream->problem);
        return CDACQ_OK;
    default:
        return CDACQ_OK;
    }
}

enum cdacq_status jitdump_stream_hash(struct jitdump_stream *stream, const struct cdacq_jitdump_record *record,
                                      uint64_t *hash)
{
    const uint8_t *bytes;
    size_t size = (size_t)MIN(record->total_size, (uint64_t)HASHED_MAX);
    enum cdacq_status status = jitdump_file_window(&stream->file, record->offset, size, &bytes, NULL);
    if (status == CDACQ_OK)
        *hash = hash_bytes(*hash, bytes, size);
    return status;
}

/* ---- The stream -------------------------------------------------------------------------------------------------- */

enum cdacq_status jitdump_stream_next(struct jitdump_stream *stream, struct cdacq_jitdump_record *ret,
                                      struct cdacq_error *err)
{
    if (!stream->has_header)
        return read_header(stream, ret, err);
    struct cdacq_jitdump_record record;
    enum cdacq_status status = jitdump_stream_prefix(stream, stream->offset, &record, err);
    if (status != CDACQ_OK)
        return status;
    if (!range_fits(record.offset, record.total_size, stream->file.size))
        return CDACQ_DONE;
    uint64_t content = stream->content;
    if (stream->flags & CDACQ_JITDUMP_FOLLOW && jitdump_stream_hash(stream, &record, &content) != CDACQ_OK)
        return CDACQ_DONE;
    status = read_fields(stream, &record, err);
    if (status == CDACQ_OK)
        status = connect(stream, &record, err);
    if (status != CDACQ_OK)
        return status;
    stream->content_before = stream->content;
    stream->content = content;
    stream->last_record = record.offset;
    stream->offset += record.total_size;
    *ret = record;
    return CDACQ_OK;
}

enum cdacq_status jitdump_stream_check_end(const struct jitdump_stream *stream, struct cdacq_error *err)
{
    if (!stream->has_header)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "not a jitdump: the file ends within its header");
    if (stream->offset == stream->file.size)
        return jitdump_pending_check_end(&stream->pending, err);
    return error_set(err, CDACQ_ERR_FORMAT, stream->offset,
                     "the last record, at offset %" PRIu64 ", is cut: the file ends within it", stream->offset);
}
