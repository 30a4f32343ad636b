/*
 * jitdump.c: reading a jitdump file record by record, also while it is being written. Everything is read with pread: a
 * file that shrinks or is rewritten gives short reads or other bytes, never a signal. What a record needs is read in
 * blocks; code and unwinding data are passed over unless they are wanted.
 */
#include <errno.h>
#include <inttypes.h>

#include "cdacq/jitdump.h"
#include "util/error.h"
#include "util/file.h"
#include "formats/jitdump.h"
#include "formats/jitdump_places.h"
#include "util/sized.h"

enum {
    BLOCK = 64 * 1024,
    RECORD_MAX = 64 * 1024 * 1024, /* of a record at once; what is longer is told as cut */
    NAME_FIRST = 512,              /* of a JIT_CODE_LOAD: nearly every name ends within */
    FIXED_MAX = 64,                /* the fixed fields of every kind fit */
};

/* A part of the file in memory. */
struct block {
    uint8_t *data;
    size_t capacity, length;
    uint64_t begin;
};

struct cdacq_jitdump {
    int fd;
    unsigned flags;
    char *path;
    dev_t device;
    ino_t inode;
    uint64_t size;   /* of the file, as last looked at */
    uint64_t offset; /* of what is read next */
    struct block block;
    bool has_header;
    struct cdacq_jitdump_record header;
    uint8_t header_bytes[JITDUMP_HEADER_SIZE]; /* a rewritten file is told by them */
    size_t header_size;
    const char *restart;
    struct {
        uint64_t offset, code_addr;
    } debug_info;                                /* of the function that is loaded next */
    uint64_t unwinding_info, samply_debug_info2; /* likewise */
    bool has_places;                             /* all JIT_CODE_LOADs before `offset` are in them */
    struct jitdump_places places;
    struct cdacq_error no_places; /* why they cannot be had: found out once */
    struct cdacq_error problem;   /* of the record that was read last */
};

/* ---- The file ---------------------------------------------------------------------------------------------------- */

static enum cdacq_status io_error(const struct cdacq_jitdump *jitdump, struct cdacq_error *err, int error)
{
    char path[160];
    return error_set(err, CDACQ_ERR_IO, jitdump->offset, "cannot read '%s': %s",
                     error_printable(path, sizeof path, jitdump->path), strerror(error));
}

/* Opens jitdump->path anew. The handle is untouched where that fails. */
static enum cdacq_status open_file(struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(jitdump->path, &st);
    if (fd < 0)
        return io_error(jitdump, err, errno);
    if (!S_ISREG(st.st_mode)) {
        char path[160];
        return error_set(err, CDACQ_ERR_IO, 0, "'%s' is not a regular file",
                         error_printable(path, sizeof path, jitdump->path));
    }
    if (jitdump->fd >= 0)
        close(jitdump->fd);
    jitdump->fd = fd;
    fd = -1;
    jitdump->device = st.st_dev;
    jitdump->inode = st.st_ino;
    jitdump->size = (uint64_t)st.st_size;
    return CDACQ_OK;
}

/* Whether the header on disk is still the one that was read. */
static bool is_rewritten(const struct cdacq_jitdump *jitdump)
{
    uint8_t now[JITDUMP_HEADER_SIZE];
    return jitdump->has_header && (file_read_at(jitdump->fd, 0, now, jitdump->header_size) < jitdump->header_size ||
                                   memcmp(now, jitdump->header_bytes, jitdump->header_size) != 0);
}

/* CDACQ_END: the file is not what it was when its size was looked at. */
static enum cdacq_status fill(struct cdacq_jitdump *jitdump, uint64_t offset, size_t count, struct cdacq_error *err)
{
    struct block *block = &jitdump->block;
    size_t wanted = (size_t)MIN((uint64_t)MAX(count, (size_t)BLOCK), jitdump->size - offset);
    if (wanted > block->capacity) {
        uint8_t *data = malloc(MAX(wanted, (size_t)BLOCK));
        if (!data)
            return error_set(err, CDACQ_ERR_NOMEM, offset, "jitdump: out of memory");
        free(block->data);
        *block = (struct block){.data = data, .capacity = MAX(wanted, (size_t)BLOCK)};
    }
    block->length = 0;
    size_t n = file_read_at(jitdump->fd, offset, block->data, wanted);
    if (n < wanted && errno)
        return io_error(jitdump, err, errno);
    /* Looked at after the block was read: what was read before the file was rewritten is good. */
    if (n < count || ((jitdump->flags & CDACQ_JITDUMP_FOLLOW) && is_rewritten(jitdump)))
        return CDACQ_END;
    block->begin = offset;
    block->length = n;
    return CDACQ_OK;
}

/* The `count` bytes at `offset`, which lie within the file's size. Good until the next call. */
static inline enum cdacq_status window(struct cdacq_jitdump *jitdump, uint64_t offset, size_t count,
                                       const uint8_t **ret, struct cdacq_error *err)
{
    struct block *block = &jitdump->block;
    if (offset < block->begin || !range_fits(offset - block->begin, count, block->length)) {
        enum cdacq_status status = fill(jitdump, offset, count, err);
        if (status != CDACQ_OK)
            return status;
    }
    *ret = block->data + (offset - block->begin);
    return CDACQ_OK;
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* CDACQ_END: the file does not hold the whole of it. */
static enum cdacq_status read_header(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    size_t size = (size_t)MIN(jitdump->size, (uint64_t)JITDUMP_HEADER_SIZE);
    const uint8_t *bytes;
    if (size < JITDUMP_HEADER_SIZE_MIN)
        return CDACQ_END;
    enum cdacq_status status = window(jitdump, 0, size, &bytes, err);
    if (status == CDACQ_OK)
        status = jitdump_decode_header(bytes, size, ret, err);
    if (status != CDACQ_OK || ret->total_size > jitdump->size)
        return status != CDACQ_OK ? status : CDACQ_END;
    jitdump->header_size = (size_t)MIN(ret->total_size, (uint64_t)JITDUMP_HEADER_SIZE);
    memcpy(jitdump->header_bytes, bytes, jitdump->header_size);
    ret->as.header.restart = jitdump->restart;
    jitdump->header = *ret;
    jitdump->has_header = true;
    jitdump->offset = ret->total_size;
    return CDACQ_OK;
}

/* The prefix of the record at `offset`. CDACQ_END: not even its prefix is whole. */
static enum cdacq_status read_prefix(struct cdacq_jitdump *jitdump, uint64_t offset, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    const uint8_t *bytes;
    if (!range_fits(offset, JITDUMP_PREFIX_SIZE, jitdump->size))
        return CDACQ_END;
    enum cdacq_status status = window(jitdump, offset, JITDUMP_PREFIX_SIZE, &bytes, err);
    if (status != CDACQ_OK)
        return status;
    jitdump_decode_prefix(bytes, jitdump->header.as.header.big_endian, offset, ret);
    if (ret->total_size < JITDUMP_PREFIX_SIZE) {
        /* Room that a writer has made and not yet filled: nothing but zeros. */
        if ((jitdump->flags & CDACQ_JITDUMP_FOLLOW) && !ret->id && !ret->total_size && !ret->timestamp)
            return CDACQ_END;
        return error_set(err, CDACQ_ERR_FORMAT, offset,
                         "the record at offset %" PRIu64 " says it has %" PRIu64
                         " bytes, less than its header: what follows cannot be found",
                         offset, ret->total_size);
    }
    return CDACQ_OK;
}

/* How much of a record decoding it takes, for JIT_CODE_LOAD at first. */
static size_t wanted_size(const struct cdacq_jitdump *jitdump, const struct cdacq_jitdump_record *record)
{
    uint64_t size = FIXED_MAX;
    if (jitdump->flags & CDACQ_JITDUMP_CODE || record->kind == CDACQ_JITDUMP_DEBUG_INFO ||
        record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2)
        size = RECORD_MAX;
    else if (record->kind == CDACQ_JITDUMP_LOAD)
        size = NAME_FIRST;
    return (size_t)MIN(record->total_size, size);
}

/* Reads and decodes the fields of a record whose prefix was read and which lies in the file. */
static enum cdacq_status read_fields(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record,
                                     struct cdacq_error *err)
{
    size_t size = wanted_size(jitdump, record), size_max = (size_t)MIN(record->total_size, (uint64_t)RECORD_MAX);
    const uint8_t *bytes;
    enum cdacq_status status;
    for (;;) {
        status = window(jitdump, record->offset, size, &bytes, err);
        if (status != CDACQ_OK)
            return status;
        if (record->kind != CDACQ_JITDUMP_LOAD || size == size_max || size <= JITDUMP_LOAD_FIXED ||
            memchr(bytes + JITDUMP_LOAD_FIXED, '\0', size - JITDUMP_LOAD_FIXED))
            break;
        size = MIN(size * 8, size_max);
    }
    if (jitdump_decode(bytes, size, jitdump->header.as.header.big_endian, record, &jitdump->problem) != CDACQ_OK)
        record->error = jitdump->problem.message;
    return CDACQ_OK;
}

/* ---- What belongs together --------------------------------------------------------------------------------------- */

static void forget_pending(struct cdacq_jitdump *jitdump)
{
    jitdump->debug_info.offset = jitdump->unwinding_info = jitdump->samply_debug_info2 = 0;
}

/* Records about a function come before its JIT_CODE_LOAD; the last of a kind counts. */
static void bind_pending(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_load *load = &record->as.load;
    load->unwinding_info = jitdump->unwinding_info;
    load->samply_debug_info2 = jitdump->samply_debug_info2;
    uint64_t debug_info = jitdump->debug_info.offset, address = jitdump->debug_info.code_addr;
    if (debug_info && (address == load->code_addr || address == load->vma))
        load->debug_info = debug_info;
    else if (debug_info && !record->error) {
        error_set(&jitdump->problem, CDACQ_ERR_FORMAT, record->offset,
                  "JIT_CODE_LOAD: the JIT_CODE_DEBUG_INFO before it, at offset %" PRIu64
                  ", is of a function at 0x%" PRIx64,
                  debug_info, address);
        record->error = jitdump->problem.message;
    }
    forget_pending(jitdump);
}

/* Enters what a record says of places; one that is damaged says nothing. */
static enum cdacq_status collect_place(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record,
                                       struct cdacq_error *err)
{
    const uint8_t *bytes;
    size_t size = (size_t)MIN(record->total_size, (uint64_t)FIXED_MAX);
    if (record->kind != CDACQ_JITDUMP_LOAD && record->kind != CDACQ_JITDUMP_MOVE)
        return CDACQ_OK;
    enum cdacq_status status = window(jitdump, record->offset, size, &bytes, err);
    if (status != CDACQ_OK)
        return status;
    (void)jitdump_decode(bytes, size, jitdump->header.as.header.big_endian, record, NULL);
    if (!record->has_fields)
        return CDACQ_OK;
    if (record->kind == CDACQ_JITDUMP_LOAD)
        return jitdump_places_load(&jitdump->places, record, err);
    (void)jitdump_places_move(&jitdump->places, record, NULL);
    return CDACQ_OK;
}

/* Makes the table of places as of `end`. CDACQ_END: the file is not what it was. */
static enum cdacq_status collect_places(struct cdacq_jitdump *jitdump, uint64_t end, struct cdacq_error *err)
{
    struct cdacq_error *problem = &jitdump->no_places;
    struct cdacq_jitdump_record record;
    enum cdacq_status status = problem->status;
    for (uint64_t offset = jitdump->header.total_size; offset < end && status == CDACQ_OK;
         offset += record.total_size) {
        status = read_prefix(jitdump, offset, &record, problem);
        if (status == CDACQ_OK)
            status = collect_place(jitdump, &record, problem);
    }
    jitdump->has_places = status == CDACQ_OK;
    if (!jitdump->has_places)
        jitdump_places_deinit(&jitdump->places);
    if (status < 0 && err)
        *err = *problem;
    return status;
}

/* CDACQ_END: the file is not what it was. A table that cannot be made is a problem of this record alone. */
static enum cdacq_status apply_move(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record)
{
    enum cdacq_status status = CDACQ_OK;
    if (!jitdump->has_places)
        status = collect_places(jitdump, record->offset, &jitdump->problem);
    if (status == CDACQ_OK)
        status = jitdump_places_move(&jitdump->places, record, &jitdump->problem);
    if (status < 0)
        record->error = jitdump->problem.message;
    return status == CDACQ_END ? CDACQ_END : CDACQ_OK;
}

/* What a record means for others. */
static enum cdacq_status connect(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record)
{
    if (!record->has_fields)
        return CDACQ_OK;
    switch (record->kind) {
    case CDACQ_JITDUMP_LOAD:
        bind_pending(jitdump, record);
        if (jitdump->has_places && jitdump_places_load(&jitdump->places, record, &jitdump->no_places) != CDACQ_OK) {
            jitdump->has_places = false; /* moves say why */
            jitdump_places_deinit(&jitdump->places);
        }
        return CDACQ_OK;
    case CDACQ_JITDUMP_MOVE:
        return apply_move(jitdump, record);
    case CDACQ_JITDUMP_DEBUG_INFO:
        jitdump->debug_info.offset = record->offset;
        jitdump->debug_info.code_addr = record->as.debug_info.code_addr;
        return CDACQ_OK;
    case CDACQ_JITDUMP_UNWINDING_INFO:
        jitdump->unwinding_info = record->offset;
        return CDACQ_OK;
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
        jitdump->samply_debug_info2 = record->offset;
        return CDACQ_OK;
    default:
        return CDACQ_OK;
    }
}

/* CDACQ_END: the file, as far as it was looked at, holds no further whole record. */
static enum cdacq_status read_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                   struct cdacq_error *err)
{
    if (!jitdump->has_header)
        return read_header(jitdump, ret, err);
    struct cdacq_jitdump_record record;
    enum cdacq_status status = read_prefix(jitdump, jitdump->offset, &record, err);
    if (status != CDACQ_OK)
        return status;
    if (!range_fits(record.offset, record.total_size, jitdump->size))
        return CDACQ_END;
    status = read_fields(jitdump, &record, err);
    if (status == CDACQ_OK)
        status = connect(jitdump, &record);
    if (status != CDACQ_OK)
        return status;
    jitdump->offset += record.total_size;
    *ret = record;
    return CDACQ_OK;
}

/* ---- A file that changes ----------------------------------------------------------------------------------------- */

static void restart(struct cdacq_jitdump *jitdump, const char *why)
{
    jitdump->restart = why;
    jitdump->has_header = jitdump->has_places = false;
    jitdump->offset = jitdump->block.length = 0;
    jitdump_places_deinit(&jitdump->places);
    jitdump->no_places = (struct cdacq_error){0};
    forget_pending(jitdump);
}

/* Looks again at a file that has nothing more. CDACQ_OK: it is worth to go on. CDACQ_END: nothing has changed. */
static enum cdacq_status look_again(struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    struct stat st;
    if (fstat(jitdump->fd, &st) < 0)
        return io_error(jitdump, err, errno);
    uint64_t size = (uint64_t)st.st_size, before = jitdump->size;
    jitdump->size = size;
    jitdump->block.length = 0; /* what was not whole may have been written anew */
    if (size < jitdump->offset || is_rewritten(jitdump)) {
        restart(jitdump, size < jitdump->offset ? "the file was truncated" : "the file was rewritten");
        return CDACQ_OK;
    }
    if (size != before)
        return CDACQ_OK;
    /* A path that is gone may be one whose writer still has it open. */
    if (stat(jitdump->path, &st) < 0 || (st.st_dev == jitdump->device && st.st_ino == jitdump->inode))
        return CDACQ_END;
    if (!S_ISREG(st.st_mode) || open_file(jitdump, NULL) != CDACQ_OK)
        return CDACQ_END;
    restart(jitdump, "another file took its place");
    return CDACQ_OK;
}

static enum cdacq_status tell_cut(const struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    if (!jitdump->has_header)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "not a jitdump: the file ends within its header");
    if (jitdump->offset == jitdump->size)
        return CDACQ_END;
    return error_set(err, CDACQ_ERR_FORMAT, jitdump->offset,
                     "the last record, at offset %" PRIu64 ", is cut: the file ends within it", jitdump->offset);
}

/* ---- The public functions ---------------------------------------------------------------------------------------- */

enum cdacq_status cdacq_jitdump_open(const char *path, unsigned flags, struct cdacq_jitdump **ret,
                                     struct cdacq_error *err)
{
    struct cdacq_jitdump *jitdump = calloc(1, sizeof *jitdump);
    if (!jitdump || !(jitdump->path = strdup(path))) {
        free(jitdump);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    }
    jitdump->fd = -1;
    jitdump->flags = flags;
    enum cdacq_status status = open_file(jitdump, err);
    if (status != CDACQ_OK) {
        cdacq_jitdump_close(jitdump);
        return status;
    }
    *ret = jitdump;
    return CDACQ_OK;
}

void cdacq_jitdump_close(struct cdacq_jitdump *jitdump)
{
    if (!jitdump)
        return;
    if (jitdump->fd >= 0)
        close(jitdump->fd);
    jitdump_places_deinit(&jitdump->places);
    free(jitdump->block.data);
    free(jitdump->path);
    free(jitdump);
}

enum cdacq_status cdacq_jitdump_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    enum { LOOKS = 4 }; /* at a file that never stops changing */
    /* What the lists in a record need of it comes last. */
    size_t least = offsetof(struct cdacq_jitdump_record, as) + sizeof(struct cdacq_jitdump_samply_debug_info2);
    enum cdacq_status status = sized_check_least(ret, least, "struct cdacq_jitdump_record", err);
    if (status < 0)
        return status;
    struct cdacq_jitdump_record own;
    if (ret->size != sizeof own) { /* a caller of another version */
        own.size = sizeof own;
        status = cdacq_jitdump_next(jitdump, &own, err);
        if (status == CDACQ_OK)
            sized_copy(ret, &own, sizeof own);
        return status;
    }
    status = read_next(jitdump, ret, err);
    if (status != CDACQ_END)
        return status;
    if (!(jitdump->flags & CDACQ_JITDUMP_FOLLOW))
        return tell_cut(jitdump, err);
    for (int i = 0; i < LOOKS && status == CDACQ_END; i++) {
        status = look_again(jitdump, err);
        if (status == CDACQ_OK)
            status = read_next(jitdump, ret, err);
        else if (status == CDACQ_END)
            break;
    }
    return status;
}

enum cdacq_status cdacq_jitdump_visit_places(struct cdacq_jitdump *jitdump,
                                             int (*visit)(const struct cdacq_jitdump_place *place, void *context),
                                             void *context, struct cdacq_error *err)
{
    if (jitdump->has_header && !jitdump->has_places) {
        enum cdacq_status status = collect_places(jitdump, jitdump->offset, err);
        if (status == CDACQ_END)
            return error_set(err, CDACQ_ERR_IO, jitdump->offset, "the jitdump has changed while it was read");
        if (status != CDACQ_OK)
            return status;
    }
    for (const struct jitdump_place *place = NULL; (place = jitdump_places_next(&jitdump->places, place));) {
        const struct cdacq_jitdump_place info = {
            .size = sizeof info,
            .code_index = place->code_index,
            .load = place->load,
            .vma = place->vma,
            .code_addr = place->code_addr,
            .code_size = place->code_size,
            .timestamp = place->timestamp,
        };
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}
