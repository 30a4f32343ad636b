/*
 * cdacq/jitdump.h: reading jitdump files. No target is needed.
 */
#ifndef CDACQ_JITDUMP_H
#define CDACQ_JITDUMP_H

#include <cdacq/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reads what a runtime writes of the code that it compiles (/tmp/jit-PID.dump): the format of perf's
 * jitdump-specification.txt, versions 1 and 2 in either byte order, with samply's three extensions. No target is
 * needed. The file is read in blocks with pread, never mapped: it may grow, shrink or be replaced meanwhile. Memory
 * stays bounded whatever the file's size; reading a record allocates nothing.
 *
 *     struct cdacq_jitdump *jitdump;
 *     struct cdacq_jitdump_record record = {.size = sizeof record};
 *     enum cdacq_status status;
 *
 *     if (cdacq_jitdump_open("/tmp/jit-1234.dump", 0, &jitdump, &error) < 0)
 *         errx(2, "%s", error.message);
 *     while ((status = cdacq_jitdump_next(jitdump, &record, &error)) == CDACQ_OK)
 *         if (record.kind == CDACQ_JITDUMP_LOAD && record.has_fields)
 *             printf("%#" PRIx64 " %s\n", record.as.load.vma, record.as.load.name);
 *     if (status < 0)
 *         warnx("%s", error.message);
 *     cdacq_jitdump_close(jitdump);
 */
struct cdacq_jitdump;

enum cdacq_jitdump_flags {
    CDACQ_JITDUMP_FOLLOW = 1 << 0, /* the file is being written: wait for what is not there yet */
    CDACQ_JITDUMP_CODE = 1 << 1,   /* hand out code and unwinding data too; without it they are not even read */
};

/* The text is the `type` in `cdacq records --json`. */
#define CDACQ_JITDUMP_KINDS(X)                  \
    X(HEADER, "header")                         \
    X(LOAD, "load")                             \
    X(MOVE, "move")                             \
    X(DEBUG_INFO, "debug_info")                 \
    X(CLOSE, "close")                           \
    X(UNWINDING_INFO, "unwinding_info")         \
    X(SAMPLY_DEBUG_INFO2, "samply_debug_info2") \
    X(SAMPLY_TIER, "samply_tier")               \
    X(SAMPLY_SOURCE, "samply_source")           \
    X(UNKNOWN, "unknown")

enum cdacq_jitdump_kind {
#define CDACQ_JITDUMP_KIND_(name, text) CDACQ_JITDUMP_##name,
    CDACQ_JITDUMP_KINDS(CDACQ_JITDUMP_KIND_)
#undef CDACQ_JITDUMP_KIND_
};

/* "load"; a static string. */
CDACQ_API const char *cdacq_jitdump_kind_text(enum cdacq_jitdump_kind kind);

/* The file's header. Fields that a short header does not have are 0. */
struct cdacq_jitdump_header {
    uint32_t version, total_size, elf_mach, pad1, pid;
    uint64_t flags; /* bit 0: JITDUMP_FLAGS_ARCH_TIMESTAMP, times are the processor's ticks instead of nanoseconds */
    bool big_endian;
    const char *restart; /* NULL at first; why the file is read from its start again: it was truncated or replaced */
};

/* JIT_CODE_LOAD */
struct cdacq_jitdump_load {
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
    const char *name; /* as in the file, NUL-terminated: any bytes; NULL where the record is damaged */
    size_t name_length;
    const void *code;     /* code_size bytes; NULL without CDACQ_JITDUMP_CODE, or where they are not all there */
    uint64_t code_offset; /* where the code is in the file; 0 where not known */
    /* Offsets of the records before it that are about this function; 0 where there is none. */
    uint64_t debug_info, unwinding_info, samply_debug_info2;
};

/* JIT_CODE_MOVE */
struct cdacq_jitdump_move {
    uint32_t pid, tid;
    uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
    uint64_t load; /* offset of the JIT_CODE_LOAD that it moves; 0 where there is none */
};

/* JIT_CODE_DEBUG_INFO; entries by cdacq_jitdump_record_next_entry */
struct cdacq_jitdump_debug_info {
    uint64_t code_addr, nr_entry;
};

/* JIT_CODE_UNWINDING_INFO */
struct cdacq_jitdump_unwinding_info {
    uint64_t unwind_data_size, eh_frame_hdr_size, mapped_size;
    const void *unwinding_data; /* unwind_data_size bytes, as `code` above */
    uint64_t unwinding_data_offset;
};

/*
 * SAMPLY_JIT_CODE_DEBUG_INFO2. Strings by cdacq_jitdump_record_next_string, the other lists by index. Counts are as the
 * file says them; the functions below give only what is really there.
 */
struct cdacq_jitdump_samply_debug_info2 {
    uint32_t file_count, file_list_size, function_names_count, function_names_list_size, function_count,
        inline_call_record_count, range_count, line_record_count;
};

/*
 * One record, or the file's header, which comes first. The caller sets `size`. Everything it points to is good until
 * the next call on the handle. `error` is a line on what is wrong with the record: lists may be cut then, strings NULL,
 * and without has_fields the record is too short for the fields of its kind, which are 0. Kinds without a member in
 * `as` are described by what stands before it.
 */
struct cdacq_jitdump_record {
    size_t size; /* sizeof(struct cdacq_jitdump_record) of the caller */
    enum cdacq_jitdump_kind kind;
    uint32_t id;                 /* as in the file; 0 for the header */
    uint64_t offset, total_size; /* in the file, its own header included */
    uint64_t timestamp;
    const char *error;
    bool has_fields;
    struct {
        const uint8_t *bytes; /* those that were read */
        size_t size;
        bool big_endian;
    } opaque; /* the library's */
    union {
        struct cdacq_jitdump_header header;
        struct cdacq_jitdump_load load;
        struct cdacq_jitdump_move move;
        struct cdacq_jitdump_debug_info debug_info;
        struct cdacq_jitdump_unwinding_info unwinding_info;
        struct cdacq_jitdump_samply_debug_info2 samply_debug_info2;
    } as; /* last, so that it can grow */
};

/*
 * Opens a regular file. Nothing of it is read yet: what it is shows at the first cdacq_jitdump_next. A handle belongs
 * to one thread at a time. Fails with IO, NOMEM.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_open(const char *path, unsigned flags, struct cdacq_jitdump **ret,
                                               struct cdacq_error *err);

/* NULL is fine. */
CDACQ_API void cdacq_jitdump_close(struct cdacq_jitdump *jitdump);

/*
 * The next record, the header first. A record that is not as it should be is told in its `error`; those behind it are
 * not lost. CDACQ_END: there is no more. FORMAT: it is no jitdump, or the record at err->address, the last one, is cut,
 * or says a size that leads nowhere. The file is read up to the size it had when it was opened.
 *
 * With CDACQ_JITDUMP_FOLLOW only whole records are read, and CDACQ_END means that there is none at present: sleep and
 * ask again. When the file was truncated or rewritten, or another one took its place under the same path and this one
 * has been read to its end, the next record is a header again, with `restart`.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                               struct cdacq_error *err);

/*
 * The lists in a record that cdacq_jitdump_next has filled, as long as what it points to is good. The caller sets the
 * `size` of what is filled. CDACQ_END: there is no more, or no such list in a record of that kind. Fails with ARGUMENT
 * only.
 */

/* One debug_entry of a JIT_CODE_DEBUG_INFO record. */
struct cdacq_jitdump_entry {
    size_t size; /* sizeof(struct cdacq_jitdump_entry) of the caller */
    uint64_t code_addr;
    uint32_t line, discrim;
    const char *name; /* NUL-terminated, any bytes */
    size_t name_length;
};

/* Entries in order: *cursor is 0 at first. */
CDACQ_API enum cdacq_status cdacq_jitdump_record_next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor,
                                                            struct cdacq_jitdump_entry *ret, struct cdacq_error *err);

/* The lists of SAMPLY_JIT_CODE_DEBUG_INFO2. All numbers are as in the file, indexes not checked against their lists. */
enum cdacq_jitdump_strings { CDACQ_JITDUMP_FILES, CDACQ_JITDUMP_FUNCTION_NAMES };

/* Strings of a list in order: *cursor is 0 at first. */
CDACQ_API enum cdacq_status cdacq_jitdump_record_next_string(const struct cdacq_jitdump_record *record,
                                                             enum cdacq_jitdump_strings list, uint64_t *cursor,
                                                             const char **ret, size_t *ret_length,
                                                             struct cdacq_error *err);

struct cdacq_jitdump_function {
    size_t size; /* sizeof(struct cdacq_jitdump_function) of the caller, and so on */
    uint32_t function_name_index, file_index, start_line, start_column, flags;
};

/* The calls are a tree in depth-first order: the caller of a call is the last one before it of a smaller depth. */
struct cdacq_jitdump_inline_call {
    size_t size;
    uint32_t depth, range_count, function_index, call_line_number, call_column_number;
};

/* Each call takes the next `range_count` of them, in the order of calls. Offsets count from the function's start. */
struct cdacq_jitdump_range {
    size_t size;
    uint32_t start_offset, code_size;
};

struct cdacq_jitdump_line_record {
    size_t size;
    uint32_t code_offset, file_index, line_number, column_number;
};

/* Element `index` of a list. */
CDACQ_API enum cdacq_status cdacq_jitdump_record_get_function(const struct cdacq_jitdump_record *record, uint32_t index,
                                                              struct cdacq_jitdump_function *ret,
                                                              struct cdacq_error *err);
CDACQ_API enum cdacq_status cdacq_jitdump_record_get_inline_call(const struct cdacq_jitdump_record *record,
                                                                 uint32_t index, struct cdacq_jitdump_inline_call *ret,
                                                                 struct cdacq_error *err);
CDACQ_API enum cdacq_status cdacq_jitdump_record_get_range(const struct cdacq_jitdump_record *record, uint32_t index,
                                                           struct cdacq_jitdump_range *ret, struct cdacq_error *err);
CDACQ_API enum cdacq_status cdacq_jitdump_record_get_line_record(const struct cdacq_jitdump_record *record,
                                                                 uint32_t index, struct cdacq_jitdump_line_record *ret,
                                                                 struct cdacq_error *err);

/* Where the function of a JIT_CODE_LOAD is, after the JIT_CODE_MOVEs of it. */
struct cdacq_jitdump_place {
    size_t size;
    uint64_t code_index;
    uint64_t load; /* offset of its JIT_CODE_LOAD; of the last one, where several have the same index */
    uint64_t vma, code_addr, code_size;
    uint64_t timestamp; /* of the record that put it there */
};

/*
 * Calls `visit` for every function of the records read so far, where it is now, in no order. `visit` returns 0 to go
 * on; anything else ends the visit with CDACQ_STOPPED. The first call, like the first JIT_CODE_MOVE, reads the file
 * again and makes a table, kept from then on: at most 128 bytes for each function, and 8,388,608 of them (FUEL beyond).
 * What the last record pointed to is no longer good.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_visit_places(struct cdacq_jitdump *jitdump,
                                                       int (*visit)(const struct cdacq_jitdump_place *place,
                                                                    void *context),
                                                       void *context, struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
