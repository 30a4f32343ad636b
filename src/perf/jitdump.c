/*
 * jitdump.c: reads a jitdump record by record, also while it is being written. It uses pread only: a file that shrinks
 * or is rewritten gives short reads or other bytes, never a signal. Records are read in blocks; code and unwinding data
 * are skipped unless requested.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "cdacq/jitdump.h"
#include "util/error.h"
#include "util/file.h"
#include "formats/jitdump.h"
#include "formats/jitdump_places.h"
#include "util/sized.h"

enum {
    BLOCK = 64 * 1024,
    RECORD_MAX = 64 * 1024 * 1024, /* bytes of a record that are read; a longer one is reported as cut */
    NAME_FIRST = 512,              /* bytes of a JIT_CODE_LOAD that contain nearly every name */
    PENDING_MAX = 64,              /* records about functions whose JIT_CODE_LOADs have not come yet */
    HASHED_MAX = 128,              /* bytes of a record by which a rewritten file is noticed */
    FIXED_MAX = 64,                /* at least the fixed fields of any kind */
};

/* An extent of the file in memory. */
struct extent {
    uint8_t *data;
    size_t capacity, length;
    uint64_t begin;
};

/* A record about a function whose JIT_CODE_LOAD has not come yet. */
struct pending {
    uint64_t offset, code_addr;
    uint64_t end; /* of samply's ranges and lines */
    enum cdacq_jitdump_kind kind;
    bool has_address, is_damaged;
};

struct cdacq_jitdump {
    int fd;
    unsigned flags;
    char *path;
    dev_t device;
    ino_t inode;
    uint64_t size;   /* of the file when last checked */
    uint64_t offset; /* of the next record */
    struct extent extent;
    bool has_header;
    struct cdacq_jitdump_record header;
    uint8_t header_bytes[JITDUMP_HEADER_SIZE]; /* to detect a rewritten file */
    size_t header_size;
    const char *restart;
    struct pending pending[PENDING_MAX]; /* in file order */
    size_t pending_count;
    bool has_debug_info; /* since the last JIT_CODE_LOAD; of last_debug_info */
    uint64_t last_debug_info, last_load;
    struct timespec written; /* when the file was, as far as it was read */
    uint64_t content;        /* of a followed file: a hash of the records before `offset` */
    uint64_t last_record;    /* of that: offset of the last of these; 0: there is none */
    uint64_t content_before; /* and the hash without it */
    uint64_t closed;         /* offset of the JIT_CODE_CLOSE; 0: there is none yet */
    uint64_t highest;        /* code_index of all JIT_CODE_LOADs */
    bool has_load;           /* there was one */
    bool has_places;         /* `places` holds all JIT_CODE_LOADs before `offset` */
    struct jitdump_places places;
    struct cdacq_error no_places; /* why `places` cannot be built */
    struct cdacq_error problem;   /* of the last record */
    struct cdacq_jitdump *found;  /* has the record of the last cdacq_jitdump_find; NULL: there is none */
    struct cdacq_error find_problem;
};

/* ---- The file ---------------------------------------------------------------------------------------------------- */

static enum cdacq_status io_error(const struct cdacq_jitdump *jitdump, struct cdacq_error *err, int error)
{
    char path[160];
    return error_set(err, CDACQ_ERR_IO, jitdump->offset, "cannot read '%s': %s",
                     error_printable(path, sizeof path, jitdump->path), strerror(error));
}

/* Opens jitdump->path again. On failure the handle is untouched. */
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
    jitdump->written = st.st_mtim;
    return CDACQ_OK;
}

/* Whether the header on disk is still the one that was read. */
static bool is_rewritten(const struct cdacq_jitdump *jitdump)
{
    uint8_t now[JITDUMP_HEADER_SIZE];
    return jitdump->has_header && (file_read_at(jitdump->fd, 0, now, jitdump->header_size) < jitdump->header_size ||
                                   memcmp(now, jitdump->header_bytes, jitdump->header_size) != 0);
}

/* Reads a block of at least `count` bytes. CDACQ_END: the file has changed since its size was checked. */
static enum cdacq_status fill(struct cdacq_jitdump *jitdump, uint64_t offset, size_t count, struct cdacq_error *err)
{
    struct extent *extent = &jitdump->extent;
    size_t wanted = (size_t)MIN((uint64_t)MAX(count, (size_t)BLOCK), jitdump->size - offset);
    if (wanted > extent->capacity) {
        uint8_t *data = malloc(MAX(wanted, (size_t)BLOCK));
        if (!data)
            return error_set(err, CDACQ_ERR_NOMEM, offset, "jitdump: out of memory");
        free(extent->data);
        *extent = (struct extent){.data = data, .capacity = MAX(wanted, (size_t)BLOCK)};
    }
    extent->length = 0;
    size_t n = file_read_at(jitdump->fd, offset, extent->data, wanted);
    if (n < wanted && errno)
        return io_error(jitdump, err, errno);
    /* Checked after the read: a block that was read before the file was rewritten is valid. */
    if (n < count || ((jitdump->flags & CDACQ_JITDUMP_FOLLOW) && is_rewritten(jitdump)))
        return CDACQ_END;
    extent->begin = offset;
    extent->length = n;
    return CDACQ_OK;
}

/* The `count` bytes at `offset`, which are below the file's size. Valid until the next call. */
static inline enum cdacq_status window(struct cdacq_jitdump *jitdump, uint64_t offset, size_t count,
                                       const uint8_t **ret, struct cdacq_error *err)
{
    struct extent *extent = &jitdump->extent;
    if (offset < extent->begin || !range_fits(offset - extent->begin, count, extent->length)) {
        enum cdacq_status status = fill(jitdump, offset, count, err);
        if (status != CDACQ_OK)
            return status;
    }
    *ret = extent->data + (offset - extent->begin);
    return CDACQ_OK;
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* Adds a problem to a record that has none. */
static void set_problem(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void set_problem(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record, const char *format, ...)
{
    char line[256];
    va_list args;
    if (record->error)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    error_set(&jitdump->problem, CDACQ_ERR_FORMAT, record->offset, "%s", line);
    record->error = jitdump->problem.message;
}

/* CDACQ_END: the header is not complete. */
static enum cdacq_status read_header(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    size_t size = (size_t)MIN(jitdump->size, (uint64_t)JITDUMP_HEADER_SIZE);
    const uint8_t *bytes;
    if (size < JITDUMP_HEADER_SIZE_MIN)
        return CDACQ_END;
    enum cdacq_status status = window(jitdump, 0, size, &bytes, err);
    /* A writer may have extended the file and not written its header yet. */
    if (status == CDACQ_OK && jitdump->flags & CDACQ_JITDUMP_FOLLOW && !load_u32(bytes, false))
        return CDACQ_END;
    if (status == CDACQ_OK)
        status = jitdump_decode_header(bytes, size, ret, err);
    if (status != CDACQ_OK || ret->total_size > jitdump->size)
        return status != CDACQ_OK ? status : CDACQ_END;
    jitdump->header_size = (size_t)MIN(ret->total_size, (uint64_t)JITDUMP_HEADER_SIZE);
    memcpy(jitdump->header_bytes, bytes, jitdump->header_size);
    ret->as.header.restart = jitdump->restart;
    if (ret->as.header.flags & ~(uint64_t)JITDUMP_FLAGS_KNOWN)
        set_problem(jitdump, ret, "jitdump header: its flags 0x%" PRIx64 " are not known",
                    ret->as.header.flags & ~(uint64_t)JITDUMP_FLAGS_KNOWN);
    jitdump->header = *ret;
    jitdump->has_header = true;
    jitdump->offset = ret->total_size;
    return CDACQ_OK;
}

/* Reads the prefix of the record at `offset`. CDACQ_END: the prefix is not complete. */
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
        /* A writer may have extended the file and not filled it yet: all zeros. */
        if ((jitdump->flags & CDACQ_JITDUMP_FOLLOW) && !ret->id && !ret->total_size && !ret->timestamp)
            return CDACQ_END;
        return error_set(err, CDACQ_ERR_FORMAT, offset,
                         "the record at offset %" PRIu64 " says it has %" PRIu64
                         " bytes, less than its header: what follows cannot be found",
                         offset, ret->total_size);
    }
    return CDACQ_OK;
}

/* How many bytes of a record to decode; for JIT_CODE_LOAD at first. */
static size_t wanted_size(const struct cdacq_jitdump *jitdump, const struct cdacq_jitdump_record *record)
{
    uint64_t size = FIXED_MAX;
    if (jitdump->flags & CDACQ_JITDUMP_CODE || record->kind == CDACQ_JITDUMP_DEBUG_INFO ||
        record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 || record->kind == CDACQ_JITDUMP_SAMPLY_TIER ||
        record->kind == CDACQ_JITDUMP_UNWINDING_INFO)
        size = RECORD_MAX;
    else if (record->kind == CDACQ_JITDUMP_LOAD)
        size = NAME_FIRST;
    return (size_t)MIN(record->total_size, size);
}

/* Decodes the fields of a complete record whose prefix was read. */
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
    if (record->kind == CDACQ_JITDUMP_UNWINDING_INFO && !(jitdump->flags & CDACQ_JITDUMP_CODE))
        record->as.unwinding_info.unwinding_data = NULL; /* as code is */
    return CDACQ_OK;
}

/* ---- Records about one function ---------------------------------------------------------------------------------- */

static void clear_pending(struct cdacq_jitdump *jitdump)
{
    jitdump->pending_count = 0;
}

static void remove_pending(struct cdacq_jitdump *jitdump, size_t i)
{
    struct pending *pending = jitdump->pending;
    memmove(&pending[i], &pending[i + 1], (--jitdump->pending_count - i) * sizeof *pending);
}

static const char *name_of(const struct pending *pending)
{
    return pending->kind == CDACQ_JITDUMP_DEBUG_INFO       ? "JIT_CODE_DEBUG_INFO"
           : pending->kind == CDACQ_JITDUMP_UNWINDING_INFO ? "JIT_CODE_UNWINDING_INFO"
                                                           : "SAMPLY_JIT_CODE_DEBUG_INFO2";
}

/* The address of the function that a pending record is of, as text; empty where that is not known. */
static const char *function_of(const struct pending *pending, char room[40])
{
    room[0] = '\0';
    if (pending->has_address)
        snprintf(room, 40, ", of 0x%" PRIx64 ",", pending->code_addr);
    return room;
}

/* Reports on `record` that a pending one is of no JIT_CODE_LOAD. A damaged one was reported already. */
static void report_pending(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record,
                           const struct pending *pending)
{
    char room[40];
    if (!pending->is_damaged)
        set_problem(jitdump, record, "the %s at offset %" PRIu64 "%s has no JIT_CODE_LOAD", name_of(pending),
                    pending->offset, function_of(pending, room));
}

/* Keeps a record about a function until its JIT_CODE_LOAD comes. A later one of the same kind and function counts. */
static void add_pending(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record)
{
    struct pending added = {.offset = record->offset, .kind = record->kind, .is_damaged = record->error != NULL};
    if (record->kind == CDACQ_JITDUMP_DEBUG_INFO) {
        added.has_address = true;
        added.code_addr = jitdump->last_debug_info = record->as.debug_info.code_addr;
        jitdump->has_debug_info = true;
    } else {
        added.has_address = jitdump->has_debug_info;
        added.code_addr = jitdump->last_debug_info;
    }
    if (record->kind == CDACQ_JITDUMP_SAMPLY_POSITIONS) {
        added.kind = CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2;
        added.has_address = true;
        added.code_addr = record->as.samply_positions.code_addr;
    }
    if (added.kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 && !record->error)
        added.end = jitdump_samply_end(record);
    for (size_t i = 0; i < jitdump->pending_count; i++) {
        struct pending *known = &jitdump->pending[i];
        if (known->kind != added.kind || known->has_address != added.has_address ||
            (added.has_address && known->code_addr != added.code_addr))
            continue;
        report_pending(jitdump, record, known);
        remove_pending(jitdump, i);
        break;
    }
    if (jitdump->pending_count == PENDING_MAX) {
        report_pending(jitdump, record, &jitdump->pending[0]);
        remove_pending(jitdump, 0);
    }
    jitdump->pending[jitdump->pending_count++] = added;
}

/* Whether a pending record with the address of a JIT_CODE_DEBUG_INFO is of a function that is still to come. */
static bool is_spoken_for(const struct cdacq_jitdump *jitdump, const struct pending *pending)
{
    for (size_t i = 0; pending->has_address && i < jitdump->pending_count; i++)
        if (jitdump->pending[i].kind == CDACQ_JITDUMP_DEBUG_INFO && jitdump->pending[i].code_addr == pending->code_addr)
            return true;
    return false;
}

/* Removes the pending record of a kind that is of this function. False if there is none. */
static bool take_pending(struct cdacq_jitdump *jitdump, const struct cdacq_jitdump_load *load,
                         enum cdacq_jitdump_kind kind, struct pending *ret)
{
    const struct pending *pending = jitdump->pending;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < jitdump->pending_count; i++) {
        bool same =
            pending[i].has_address && (pending[i].code_addr == load->code_addr || pending[i].code_addr == load->vma);
        /* Without an address of its own, it is of the next function, whatever was before it. */
        if (pending[i].kind == kind &&
            (same || (kind != CDACQ_JITDUMP_DEBUG_INFO && found == SIZE_MAX && pending[i].offset > jitdump->last_load &&
                      !is_spoken_for(jitdump, &pending[i]))))
            found = i;
        if (pending[i].kind == kind && same)
            break;
    }
    if (found == SIZE_MAX)
        return false;
    *ret = pending[found];
    remove_pending(jitdump, found);
    return true;
}

static void bind_pending(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_load *load = &record->as.load;
    struct pending pending;
    if (take_pending(jitdump, load, CDACQ_JITDUMP_DEBUG_INFO, &pending))
        load->debug_info = pending.offset;
    if (take_pending(jitdump, load, CDACQ_JITDUMP_UNWINDING_INFO, &pending))
        load->unwinding_info = pending.offset;
    if (take_pending(jitdump, load, CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2, &pending)) {
        load->samply_debug_info2 = pending.offset;
        if (pending.end > load->code_size)
            set_problem(jitdump, record,
                        "JIT_CODE_LOAD: code_size is %" PRIu64
                        ", and the SAMPLY_JIT_CODE_DEBUG_INFO2 at offset %" PRIu64 " goes up to %" PRIu64,
                        load->code_size, pending.offset, pending.end);
    }
    jitdump->last_load = record->offset;
    jitdump->has_debug_info = false;
}

/* Enters a JIT_CODE_LOAD or JIT_CODE_MOVE into the table of places; a damaged one is skipped. */
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

/* Builds the table of places from the records before `end`. CDACQ_END: the file has changed. */
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

/* CDACQ_END: the file has changed. A table that cannot be built is an error of this record only. */
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

/*
 * Checks that the code_index is new. As long as it grows, it is; otherwise the table of places says so. CDACQ_END: the
 * file has changed.
 */
static enum cdacq_status check_index(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record,
                                     struct cdacq_error *err)
{
    uint64_t index = record->as.load.code_index;
    enum cdacq_status status = CDACQ_OK;
    if (jitdump->has_load && index <= jitdump->highest && !jitdump->has_places && jitdump->no_places.status >= 0) {
        status = collect_places(jitdump, record->offset, NULL);
        if (status != CDACQ_END) /* the table has read other parts of the file */
            status = read_fields(jitdump, record, err);
    }
    const struct jitdump_place *known =
        status == CDACQ_OK && jitdump->has_places ? jitdump_places_find(&jitdump->places, index) : NULL;
    if (known)
        set_problem(jitdump, record, "JIT_CODE_LOAD: that at offset %" PRIu64 " has the same code_index, %" PRIu64,
                    known->load, index);
    jitdump->highest = jitdump->has_load ? MAX(jitdump->highest, index) : index;
    jitdump->has_load = true;
    return status;
}

static enum cdacq_status connect_load(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err)
{
    enum cdacq_status status = check_index(jitdump, record, err);
    if (status != CDACQ_OK)
        return status;
    bind_pending(jitdump, record);
    if (jitdump->closed)
        set_problem(jitdump, record, "JIT_CODE_LOAD: after the JIT_CODE_CLOSE at offset %" PRIu64, jitdump->closed);
    if (jitdump->has_places && jitdump_places_load(&jitdump->places, record, &jitdump->no_places) != CDACQ_OK) {
        jitdump->has_places = false; /* later moves report why */
        jitdump_places_deinit(&jitdump->places);
    }
    return CDACQ_OK;
}

static void connect_close(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record)
{
    for (size_t i = 0; i < jitdump->pending_count; i++)
        report_pending(jitdump, record, &jitdump->pending[i]);
    clear_pending(jitdump);
    jitdump->closed = record->offset;
}

/* Applies a record to the table of places and to the JIT_CODE_LOADs after it. CDACQ_END: the file has changed. */
static enum cdacq_status connect(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *record,
                                 struct cdacq_error *err)
{
    if (!record->has_fields)
        return CDACQ_OK;
    switch (record->kind) {
    case CDACQ_JITDUMP_LOAD:
        return connect_load(jitdump, record, err);
    case CDACQ_JITDUMP_MOVE:
        return apply_move(jitdump, record);
    case CDACQ_JITDUMP_CLOSE:
        connect_close(jitdump, record);
        return CDACQ_OK;
    case CDACQ_JITDUMP_DEBUG_INFO:
    case CDACQ_JITDUMP_UNWINDING_INFO:
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
    case CDACQ_JITDUMP_SAMPLY_POSITIONS:
        add_pending(jitdump, record);
        return CDACQ_OK;
    default:
        return CDACQ_OK;
    }
}

/* Adds the first bytes of a record to a hash. CDACQ_END: the file has changed. */
static enum cdacq_status hash_record(struct cdacq_jitdump *jitdump, const struct cdacq_jitdump_record *record,
                                     uint64_t *hash)
{
    const uint8_t *bytes;
    size_t size = (size_t)MIN(record->total_size, (uint64_t)HASHED_MAX);
    enum cdacq_status status = window(jitdump, record->offset, size, &bytes, NULL);
    for (size_t i = 0; status == CDACQ_OK && i < size; i++)
        *hash = (*hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return status;
}

/* CDACQ_END: the file, up to the size last checked, holds no further complete record. */
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
    uint64_t content = jitdump->content;
    if (jitdump->flags & CDACQ_JITDUMP_FOLLOW && hash_record(jitdump, &record, &content) != CDACQ_OK)
        return CDACQ_END;
    status = read_fields(jitdump, &record, err);
    if (status == CDACQ_OK)
        status = connect(jitdump, &record, err);
    if (status != CDACQ_OK)
        return status;
    jitdump->content_before = jitdump->content;
    jitdump->content = content;
    jitdump->last_record = record.offset;
    jitdump->offset += record.total_size;
    *ret = record;
    return CDACQ_OK;
}

/* ---- A file that changes ----------------------------------------------------------------------------------------- */

static void restart(struct cdacq_jitdump *jitdump, const char *why)
{
    jitdump->restart = why;
    jitdump->has_header = jitdump->has_places = false;
    jitdump->offset = jitdump->extent.length = 0;
    jitdump_places_deinit(&jitdump->places);
    jitdump->no_places = (struct cdacq_error){0};
    clear_pending(jitdump);
    jitdump->has_debug_info = jitdump->has_load = false;
    jitdump->closed = jitdump->last_load = jitdump->last_record = jitdump->content = 0;
}

/*
 * Whether the last record is no longer that which was read, as far as its first bytes show. If it is, a file that has
 * grown is taken for the same one: reading all of it again whenever it grows would take too long.
 */
static bool is_other_record(struct cdacq_jitdump *jitdump)
{
    struct cdacq_jitdump_record record;
    uint64_t hash = jitdump->content_before;
    return jitdump->last_record && (read_prefix(jitdump, jitdump->last_record, &record, NULL) != CDACQ_OK ||
                                    record.offset + record.total_size != jitdump->offset ||
                                    hash_record(jitdump, &record, &hash) != CDACQ_OK || hash != jitdump->content);
}

/* Whether the records before `offset` are no longer those that were read, as far as the first bytes of each show. */
static bool is_other_content(struct cdacq_jitdump *jitdump)
{
    struct cdacq_jitdump_record record;
    uint64_t hash = 0;
    for (uint64_t offset = jitdump->header.total_size; offset < jitdump->offset; offset += record.total_size)
        if (read_prefix(jitdump, offset, &record, NULL) != CDACQ_OK ||
            !range_fits(offset, record.total_size, jitdump->offset) || hash_record(jitdump, &record, &hash) != CDACQ_OK)
            return true;
    jitdump->extent.length = 0;
    return hash != jitdump->content;
}

/* Checks whether a file that was read to its end has changed. CDACQ_OK: read on. CDACQ_END: it has not. */
static enum cdacq_status check_again(struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    struct stat st;
    if (fstat(jitdump->fd, &st) < 0)
        return io_error(jitdump, err, errno);
    uint64_t size = (uint64_t)st.st_size, before = jitdump->size;
    jitdump->size = size;
    jitdump->extent.length = 0; /* an incomplete record may have been rewritten */
    bool written = st.st_mtim.tv_sec != jitdump->written.tv_sec || st.st_mtim.tv_nsec != jitdump->written.tv_nsec;
    jitdump->written = st.st_mtim;
    if (size == before && written && jitdump->has_header && is_other_content(jitdump)) {
        restart(jitdump, "the file was rewritten");
        return CDACQ_OK;
    }
    if (size < jitdump->offset || is_rewritten(jitdump) || (size > before && is_other_record(jitdump))) {
        restart(jitdump, size < jitdump->offset ? "the file was truncated" : "the file was rewritten");
        return CDACQ_OK;
    }
    if (size != before)
        return CDACQ_OK;
    /* The path may be gone while the writer still has the file open. */
    if (stat(jitdump->path, &st) < 0 || (st.st_dev == jitdump->device && st.st_ino == jitdump->inode))
        return CDACQ_END;
    if (!S_ISREG(st.st_mode) || open_file(jitdump, NULL) != CDACQ_OK)
        return CDACQ_END;
    restart(jitdump, "another file took its place");
    return CDACQ_OK;
}

static enum cdacq_status report_cut(const struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    if (!jitdump->has_header)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "not a jitdump: the file ends within its header");
    for (size_t i = 0; jitdump->offset == jitdump->size && i < jitdump->pending_count; i++) {
        const struct pending *pending = &jitdump->pending[i];
        char room[40];
        if (!pending->is_damaged)
            return error_set(err, CDACQ_ERR_FORMAT, pending->offset,
                             "the file ends, and the %s at offset %" PRIu64 "%s has no JIT_CODE_LOAD", name_of(pending),
                             pending->offset, function_of(pending, room));
    }
    if (jitdump->offset == jitdump->size)
        return CDACQ_END;
    return error_set(err, CDACQ_ERR_FORMAT, jitdump->offset,
                     "the last record, at offset %" PRIu64 ", is cut: the file ends within it", jitdump->offset);
}

/* ---- The public functions ---------------------------------------------------------------------------------------- */

enum cdacq_status cdacq_jitdump_open(const char *path, unsigned flags, struct cdacq_jitdump **ret,
                                     struct cdacq_error *err)
{
    enum cdacq_status status = error_check_path(path, err);
    if (status < 0)
        return status;
    struct cdacq_jitdump *jitdump = calloc(1, sizeof *jitdump);
    if (!jitdump || !(jitdump->path = strdup(path))) {
        free(jitdump);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    }
    jitdump->fd = -1;
    jitdump->flags = flags;
    status = open_file(jitdump, err);
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
    cdacq_jitdump_close(jitdump->found);
    jitdump_places_deinit(&jitdump->places);
    free(jitdump->extent.data);
    free(jitdump->path);
    free(jitdump);
}

enum cdacq_status cdacq_jitdump_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    enum { CHECKS = 4 }; /* of a file that keeps changing */
    /* The smallest record that the functions for its lists can use. */
    size_t least = offsetof(struct cdacq_jitdump_record, as) + sizeof(struct cdacq_jitdump_samply_debug_info2);
    enum cdacq_status status = sized_check_least(ret, least, "struct cdacq_jitdump_record", err);
    if (status < 0)
        return status;
    struct cdacq_jitdump_record own;
    if (ret->size != sizeof own) { /* the caller has another version */
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
        return report_cut(jitdump, err);
    for (int i = 0; i < CHECKS && status == CDACQ_END; i++) {
        status = check_again(jitdump, err);
        if (status == CDACQ_OK)
            status = read_next(jitdump, ret, err);
        else if (status == CDACQ_END)
            break;
    }
    return status;
}

enum cdacq_status cdacq_jitdump_check_end(struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    return report_cut(jitdump, err);
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

/* ---- The function at an address ---------------------------------------------------------------------------------- */

/* A search: the function that had the address last. */
struct search {
    uint64_t address;
    bool found;
    struct cdacq_jitdump_place place;
};

/* Whether [begin, begin + size) has the address; it may end with the address space. */
static bool has_address(uint64_t begin, uint64_t size, uint64_t address)
{
    return address >= begin && address - begin < size;
}

static bool overlap(const struct cdacq_jitdump_place *a, const struct cdacq_jitdump_place *b)
{
    return (b->code_size && has_address(a->vma, a->code_size, b->vma)) ||
           (a->code_size && has_address(b->vma, b->code_size, a->vma));
}

/* A function comes to be at a place: it may have the address, or overwrite the function that had it. */
static void take_place_of(struct search *search, const struct cdacq_jitdump_place *place)
{
    const struct cdacq_jitdump_place *old = &search->place;
    if (has_address(place->vma, place->code_size, search->address)) {
        search->found = true;
        search->place = *place;
    } else if (old->load == place->load || overlap(old, place)) {
        search->found = false;
    }
}

/* What moves is of the size that it was loaded with. */
static void search_move(struct search *search, const struct cdacq_jitdump *scan,
                        const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_move *move = &record->as.move;
    const struct jitdump_place *known = scan->has_places ? jitdump_places_find(&scan->places, move->code_index) : NULL;
    struct cdacq_jitdump_place place = {.size = sizeof place,
                                        .code_index = move->code_index,
                                        .load = move->load,
                                        .vma = move->vma,
                                        .code_addr = move->new_code_addr,
                                        .code_size = known ? known->code_size : move->code_size,
                                        .timestamp = record->timestamp};
    if (move->load)
        take_place_of(search, &place);
}

static void search_load(struct search *search, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    struct cdacq_jitdump_place place = {.size = sizeof place,
                                        .code_index = load->code_index,
                                        .load = record->offset,
                                        .vma = load->vma,
                                        .code_addr = load->code_addr,
                                        .code_size = load->code_size,
                                        .timestamp = record->timestamp};
    take_place_of(search, &place);
}

static void search_record(struct search *search, const struct cdacq_jitdump *scan,
                          const struct cdacq_jitdump_record *record)
{
    if (record->kind == CDACQ_JITDUMP_LOAD && record->has_fields)
        search_load(search, record);
    else if (record->kind == CDACQ_JITDUMP_MOVE && record->has_fields)
        search_move(search, scan, record);
}

/* A handle of its own on the same file, which need not have its path any more. */
static enum cdacq_status open_again(const struct cdacq_jitdump *jitdump, struct cdacq_jitdump **ret,
                                    struct cdacq_error *err)
{
    struct cdacq_jitdump *again = calloc(1, sizeof *again);
    struct stat st;
    if (!again || !(again->path = strdup(jitdump->path))) {
        free(again);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    }
    again->fd = fcntl(jitdump->fd, F_DUPFD_CLOEXEC, 0);
    if (again->fd < 0 || fstat(again->fd, &st) < 0) {
        enum cdacq_status status = io_error(again, err, errno);
        cdacq_jitdump_close(again);
        return status;
    }
    again->size = (uint64_t)st.st_size;
    *ret = again;
    return CDACQ_OK;
}

/* Counts what is wrong with the records that a search has seen. The text of the first problem is kept. */
static void note_problem(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_place *found, const char *text)
{
    if (!found->damaged++) {
        error_set(&jitdump->find_problem, CDACQ_ERR_FORMAT, 0, "%s", text);
        found->problem = jitdump->find_problem.message;
    }
}

/* Searches all records. CDACQ_NOT_MANAGED: no function has the address. */
static enum cdacq_status search_all(struct cdacq_jitdump *jitdump, struct cdacq_jitdump *scan, uint64_t time,
                                    struct search *search, struct cdacq_jitdump_place *ret, struct cdacq_error *err)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error problem;
    enum cdacq_status status;
    while ((status = read_next(scan, &record, &problem)) == CDACQ_OK) {
        if (record.error && (record.kind == CDACQ_JITDUMP_LOAD || record.kind == CDACQ_JITDUMP_MOVE))
            note_problem(jitdump, ret, record.error);
        if (record.kind != CDACQ_JITDUMP_HEADER && (time == CDACQ_JITDUMP_LAST || record.timestamp <= time))
            search_record(search, scan, &record);
    }
    if (status == CDACQ_END)
        status = report_cut(scan, &problem);
    if (status == CDACQ_ERR_FORMAT && scan->has_header) { /* the records before it are valid */
        note_problem(jitdump, ret, problem.message);
        status = CDACQ_END;
    }
    if (status < 0 && err)
        *err = problem;
    return status < 0 ? status : search->found ? CDACQ_OK : CDACQ_NOT_MANAGED;
}

/* Reads the JIT_CODE_LOAD at an offset, after the records before it, which may be about it. */
static enum cdacq_status read_load(struct cdacq_jitdump *again, uint64_t offset, unsigned flags,
                                   struct cdacq_jitdump_record *ret, struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    while (status == CDACQ_OK && again->offset <= offset) {
        again->flags = again->offset == offset ? flags : 0;
        status = read_next(again, ret, err);
    }
    return status == CDACQ_END || (status == CDACQ_OK && (ret->kind != CDACQ_JITDUMP_LOAD || ret->offset != offset))
               ? error_set(err, CDACQ_ERR_IO, offset, "the jitdump has changed while it was read")
               : status;
}

enum cdacq_status cdacq_jitdump_find(struct cdacq_jitdump *jitdump, uint64_t address, uint64_t time,
                                     struct cdacq_jitdump_record *ret, struct cdacq_jitdump_place *ret_place,
                                     struct cdacq_error *err)
{
    struct cdacq_jitdump *scan = NULL;
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_jitdump_place found = {.size = sizeof found};
    struct search search = {.address = address};
    enum cdacq_status status = sized_check(ret_place, "struct cdacq_jitdump_place", err);
    if (status >= 0)
        status = sized_check(ret, "struct cdacq_jitdump_record", err);
    if (status >= 0)
        status = open_again(jitdump, &scan, err);
    if (status < 0)
        return status;
    status = search_all(jitdump, scan, time, &search, &found, err);
    cdacq_jitdump_close(scan);
    cdacq_jitdump_close(jitdump->found);
    jitdump->found = NULL;
    if (status == CDACQ_OK)
        status = open_again(jitdump, &jitdump->found, err); /* which keeps what *ret points to */
    if (status == CDACQ_OK)
        status = read_load(jitdump->found, search.place.load, jitdump->flags & CDACQ_JITDUMP_CODE, &record, err);
    if (status < 0)
        return status;
    if (status == CDACQ_OK) {
        search.place.damaged = found.damaged;
        search.place.problem = found.problem;
        found = search.place;
        sized_copy(ret, &record, sizeof record);
    }
    sized_copy(ret_place, &found, sizeof found);
    return status;
}
