/*
 * cdacq/jitdump.h: reads jitdump files. No target is needed.
 */
#ifndef CDACQ_JITDUMP_H
#define CDACQ_JITDUMP_H

#include <cdacq/error.h>

CDACQ_BEGIN_DECLS

/*
 * Reads the file with a runtime's records of the code that it compiles (/tmp/jit-PID.dump), in the format of perf's
 * jitdump-specification.txt: versions 1 and 2, either byte order, with samply's three extensions. The file is read in
 * blocks with pread, never mapped, so it may grow, shrink or be replaced meanwhile. Memory use does not depend on the
 * size of the file unless its functions are moved or its code_index does not grow: then there is a table of them, as
 * for cdacq_jitdump_visit_places. One thread at a time may use a handle.
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
    CDACQ_JITDUMP_FOLLOW = 1 << 0, /* the file is still being written: return only whole records */
    CDACQ_JITDUMP_CODE = 1 << 1,   /* also return code and unwinding data, which otherwise are not read */
};

/* The kind of a record in a jitdump: name, text. The text is the `type` in `cdacq records --json`. */
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
    X(UNKNOWN, "unknown")                       \
    X(SAMPLY_POSITIONS, "samply_positions")

enum cdacq_jitdump_kind {
#define CDACQ_JITDUMP_KIND_(name, text) CDACQ_JITDUMP_##name,
    CDACQ_JITDUMP_KINDS(CDACQ_JITDUMP_KIND_)
#undef CDACQ_JITDUMP_KIND_
};

/* The text of a kind, such as "load"; a static string. */
CDACQ_API const char *cdacq_jitdump_kind_text(enum cdacq_jitdump_kind kind);

/* The file's header. Fields that a short header lacks are 0. */
struct cdacq_jitdump_header {
    uint32_t version, total_size, elf_mach, pad1, pid;
    uint64_t flags; /* bit 0: JITDUMP_FLAGS_ARCH_TIMESTAMP, timestamps are processor ticks, not nanoseconds */
    bool big_endian;
    const char *restart; /* NULL at first; later why reading has restarted: the file was truncated or replaced */
};

/* JIT_CODE_LOAD */
struct cdacq_jitdump_load {
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
    const char *name; /* as in the file: any bytes, NUL-terminated; NULL if the record is damaged */
    size_t name_length;
    const void *code;     /* code_size bytes; NULL without CDACQ_JITDUMP_CODE, or if some are missing */
    uint64_t code_offset; /* of the code in the file; 0 when not known */
    /*
     * Offsets of the preceding records about this function; 0 if there is none. A JIT_CODE_DEBUG_INFO belongs to the
     * next JIT_CODE_LOAD of its address. The other two have no address: they belong to the same JIT_CODE_LOAD as the
     * JIT_CODE_DEBUG_INFO before them, or to the next one. samply_debug_info2 is of either form of that record. One
     * without a JIT_CODE_LOAD is an `error` of the record that shows it, or FORMAT at the end.
     */
    uint64_t debug_info, unwinding_info, samply_debug_info2;
};

/* JIT_CODE_MOVE */
struct cdacq_jitdump_move {
    uint32_t pid, tid;
    uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
    uint64_t load; /* offset of the JIT_CODE_LOAD that it moves; 0 if there is none */
};

/* JIT_CODE_DEBUG_INFO. cdacq_jitdump_record_next_entry returns the entries. */
struct cdacq_jitdump_debug_info {
    uint64_t code_addr, nr_entry;
};

/* JIT_CODE_UNWINDING_INFO */
struct cdacq_jitdump_unwinding_info {
    uint64_t unwind_data_size, eh_frame_hdr_size, mapped_size;
    const void *unwinding_data; /* unwind_data_size bytes; NULL as for `code` above */
    uint64_t unwinding_data_offset;
    uint64_t fde_count; /* entries of .eh_frame_hdr, which is after .eh_frame in the data, or before it; 0: none */
};

/*
 * SAMPLY_JIT_CODE_DEBUG_INFO2. cdacq_jitdump_record_next_string returns the strings; the other lists are read by index.
 * Counts are as stored in the file; the functions below return only elements that the record really holds.
 */
struct cdacq_jitdump_samply_debug_info2 {
    uint32_t file_count, file_list_size, function_names_count, function_names_list_size, function_count,
        inline_call_record_count, range_count, line_record_count;
};

/*
 * The SAMPLY_JIT_CODE_DEBUG_INFO2 that samply's own source reads (samply-symbols/src/jitdump.rs). It has the id that
 * the published text gives to SAMPLY_JIT_TIER; a record of that id with other contents is a SAMPLY_TIER. Counts of:
 * code offsets (two u32: offset, index of a source position), source positions (seven u32: caller or -1, name, file or
 * -1, first line and column of the function, line, column) and strings, which follow each other.
 */
struct cdacq_jitdump_samply_positions {
    uint64_t code_addr, code_offset_count, source_position_count, string_count;
};

/*
 * One record, or the file's header, which comes first. The caller sets `size`. What it points to is valid until the
 * next call on the handle. `error` is one line that says what is wrong with the record, or NULL: lists may then be cut
 * and strings NULL. Without has_fields the record is too short for the fields of its kind, which are 0. A kind without
 * a member in `as` has no fields besides the common ones.
 */
struct cdacq_jitdump_record {
    size_t size; /* sizeof(struct cdacq_jitdump_record) of the caller */
    enum cdacq_jitdump_kind kind;
    uint32_t id;                 /* kind as stored in the file; 0 for the header */
    uint64_t offset, total_size; /* in the file, including the record header */
    uint64_t timestamp;
    const char *error;
    bool has_fields;
    struct {
        const uint8_t *bytes; /* as far as they were read */
        size_t size;
        bool big_endian;
    } opaque; /* private to the library */
    union {
        struct cdacq_jitdump_header header;
        struct cdacq_jitdump_load load;
        struct cdacq_jitdump_move move;
        struct cdacq_jitdump_debug_info debug_info;
        struct cdacq_jitdump_unwinding_info unwinding_info;
        struct cdacq_jitdump_samply_debug_info2 samply_debug_info2;
        struct cdacq_jitdump_samply_positions samply_positions;
    } as; /* last, so that it can grow */
};

/*
 * Opens a regular file; the caller closes the handle. `flags` are enum cdacq_jitdump_flags. The first
 * cdacq_jitdump_next reads the header and checks the format. Fails with ARGUMENT, IO, NOMEM.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_open(const char *path, unsigned flags, struct cdacq_jitdump **ret,
                                               struct cdacq_error *err);

/* Closes the file and frees the handle. NULL is allowed. */
CDACQ_API void cdacq_jitdump_close(struct cdacq_jitdump *jitdump);

/*
 * Reads the next record; the header comes first. A damaged record is described by its `error` and does not affect later
 * ones. CDACQ_DONE: there are no more records. FORMAT: the file is not a jitdump, or the record at err->address is cut
 * or has a size that makes the following records unreachable. The file is read up to its size when it was opened. Other
 * failures: ARGUMENT, IO, NOMEM. If the table of moved functions cannot be built, for example because there are too
 * many of them, this call does not fail: each JIT_CODE_MOVE has an `error`.
 *
 * With CDACQ_JITDUMP_FOLLOW only whole records are returned, and CDACQ_DONE means that there is none at present: sleep
 * and call again. If the file was truncated or rewritten, or was replaced under the same path and has been read to its
 * end, the next record is a header with `restart`.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                               struct cdacq_error *err);

/*
 * CDACQ_OK if the file ends as it should after the last record that cdacq_jitdump_next has returned. FORMAT: a record
 * is cut, or is about a function whose JIT_CODE_LOAD is missing. This is for a file that was followed and no longer is;
 * without CDACQ_JITDUMP_FOLLOW, cdacq_jitdump_next itself reports a bad end.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_check_end(struct cdacq_jitdump *jitdump, struct cdacq_error *err);

/*
 * The functions below read the lists in a record that cdacq_jitdump_next has filled, while what it points to is valid.
 * The caller sets the `size` of the struct that is filled. CDACQ_DONE: there are no more elements, or a record of that
 * kind has no such list. Fails with ARGUMENT only.
 */

/* One debug_entry of a JIT_CODE_DEBUG_INFO record. */
struct cdacq_jitdump_entry {
    size_t size; /* sizeof(struct cdacq_jitdump_entry) of the caller */
    uint64_t code_addr;
    uint32_t line, discrim;
    const char *name; /* NUL-terminated, any bytes */
    size_t name_length;
};

/*
 * Returns the entries in order. Set *cursor to 0 before the first call. perf takes the name "\xff" to mean that of the
 * entry before.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_record_next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor,
                                                            struct cdacq_jitdump_entry *ret, struct cdacq_error *err);

/* The string lists of SAMPLY_JIT_CODE_DEBUG_INFO2. Numbers are as in the file; indexes are not checked. */
enum cdacq_jitdump_strings { CDACQ_JITDUMP_FILES, CDACQ_JITDUMP_FUNCTION_NAMES };

/* Returns the strings of a list in order. Set *cursor to 0 before the first call. */
CDACQ_API enum cdacq_status cdacq_jitdump_record_next_string(const struct cdacq_jitdump_record *record,
                                                             enum cdacq_jitdump_strings list, uint64_t *cursor,
                                                             const char **ret, size_t *ret_length,
                                                             struct cdacq_error *err);

struct cdacq_jitdump_function {
    size_t size; /* sizeof(struct cdacq_jitdump_function) of the caller */
    uint32_t function_name_index, file_index, start_line, start_column, flags;
};

/* The calls form a tree in depth-first order: the parent of a call is the last one before it with a smaller depth. */
struct cdacq_jitdump_inline_call {
    size_t size;
    uint32_t depth, range_count, function_index, call_line_number, call_column_number;
};

/* Each inline call owns the next `range_count` ranges. Offsets are relative to the function's start. */
struct cdacq_jitdump_range {
    size_t size;
    uint32_t start_offset, code_size;
};

struct cdacq_jitdump_line_record {
    size_t size;
    uint32_t code_offset, file_index, line_number, column_number;
};

/* Each returns element `index` of its list. */
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

/* The current address of the function of a JIT_CODE_LOAD, after the JIT_CODE_MOVEs of it. */
struct cdacq_jitdump_place {
    size_t size;
    uint64_t code_index;
    uint64_t load; /* offset of its JIT_CODE_LOAD, the last one if several have the same index */
    uint64_t vma, code_addr, code_size;
    uint64_t timestamp; /* of the record that gave it this address */
    /*
     * cdacq_jitdump_find sets these: the number of damaged records among those that say where code is, including a last
     * one that is cut, and what is wrong with the first of them, or NULL. The answer may be wrong if there are any. If
     * no function was found, the other members are 0.
     */
    uint64_t damaged;
    const char *problem;
};

/*
 * Calls `visit` for every function of the records read so far, with its current address, in no particular order. The
 * first call, like the first JIT_CODE_MOVE, reads the file again and builds a table that is kept: at most 128 bytes for
 * each of at most 8,388,608 functions (FUEL beyond). It invalidates what the last record points to. CDACQ_STOPPED:
 * `visit` returned non-zero. Other failures: IO, NOMEM, FORMAT.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_visit_places(struct cdacq_jitdump *jitdump,
                                                       int (*visit)(const struct cdacq_jitdump_place *place,
                                                                    void *context),
                                                       void *context, struct cdacq_error *err);

/*
 * Finds the function that has an address, from the file alone: at the end of the file or, where `time` is not
 * CDACQ_JITDUMP_LAST, after the records up to that time, as the file counts it. Moves are applied; code that a later
 * function overlaps is gone. *ret is its JIT_CODE_LOAD, with the code if the handle was opened with CDACQ_JITDUMP_CODE,
 * and *ret_place its place then; both are valid until the next call on the handle. The caller sets the `size` of both.
 * cdacq_jitdump_next continues as before. CDACQ_NOT_MANAGED: no function has the address then. A damaged record does
 * not make the search fail: see `damaged`. Reads the whole file. Fails with ARGUMENT, FORMAT, IO, NOMEM.
 */
#define CDACQ_JITDUMP_LAST UINT64_MAX

CDACQ_API enum cdacq_status cdacq_jitdump_find(struct cdacq_jitdump *jitdump, uint64_t address, uint64_t time,
                                               struct cdacq_jitdump_record *ret, struct cdacq_jitdump_place *ret_place,
                                               struct cdacq_error *err);

/*
 * Finds the jitdump of a running process: the one that it maps (as /proc/PID/fd/N if it was deleted; of several, the
 * one whose header names the process, and that is where a .NET runtime writes), or else
 * jit-PID.dump in a directory that its environment names (DOTNET_PerfMapJitDumpPath, JITDUMPDIR, TMPDIR) or in /tmp. A
 * file that it does not map is not its own if it was last written to before the process began, or if its header names
 * another pid. Writes its path, as this process reaches it, to `ret`, which has room for `size` bytes.
 * CDACQ_NOT_MANAGED: there is none, perhaps not yet. Fails with IO; also if it finds none and is not permitted to read
 * what the process maps.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_find_file(int pid, char *ret, size_t size, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
