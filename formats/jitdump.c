#include "formats/jitdump.h"

#include <inttypes.h>

#include "formats/cfi.h"
#include "formats/jitdump_lists.h"
#include "formats/jitdump_samply.h"

enum {
    MAGIC = 0x4A695444,
    VERSION_MAX = 2,
    DEBUG_FIXED = 32,
    ENTRY_FIXED = 16,
    UNWINDING_FIXED = 40,
};

/* ---- Headers ---------------------------------------------------------------------------------------------------- */

bool jitdump_is_magic(const void *bytes)
{
    return load_u32(bytes, true) == MAGIC || load_u32(bytes, false) == MAGIC;
}

enum cdacq_status jitdump_decode_header(const void *bytes, size_t size, struct cdacq_jitdump_record *ret,
                                        struct cdacq_error *err)
{
    uint8_t fields[JITDUMP_HEADER_SIZE] = {0};
    if (size < JITDUMP_HEADER_SIZE_MIN)
        return CDACQ_DONE;
    bool big = load_u32(bytes, true) == MAGIC;
    if (!big && load_u32(bytes, false) != MAGIC)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "not a jitdump: it begins with %08" PRIx32 ", not with \"JiTD\"",
                         load_u32(bytes, true));
    uint32_t version = load_u32((const uint8_t *)bytes + 4, big);
    uint32_t total_size = load_u32((const uint8_t *)bytes + 8, big);
    if (version < 1 || version > VERSION_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 4, "jitdump version %" PRIu32 " is not known: 1 and 2 are", version);
    if (total_size < JITDUMP_HEADER_SIZE_MIN)
        return error_set(err, CDACQ_ERR_FORMAT, 8,
                         "jitdump header: total_size %" PRIu32 " is less than the fields up to it", total_size);
    /* A short header is followed by records. */
    size_t own = MIN((size_t)total_size, sizeof fields);
    if (size < own)
        return CDACQ_DONE;
    memcpy(fields, bytes, own);
    *ret = (struct cdacq_jitdump_record){
        .size = sizeof *ret,
        .kind = CDACQ_JITDUMP_HEADER,
        .total_size = total_size,
        .has_fields = true,
        .opaque.big_endian = big,
        .timestamp = load_u64(fields + 24, big),
        .as.header =
            {
                .version = version,
                .total_size = total_size,
                .elf_mach = load_u32(fields + 12, big),
                .pad1 = load_u32(fields + 16, big),
                .pid = load_u32(fields + 20, big),
                .flags = load_u64(fields + 32, big),
                .big_endian = big,
            },
    };
    return CDACQ_OK;
}

const char *cdacq_jitdump_kind_text(enum cdacq_jitdump_kind kind)
{
    static const char *const texts[] = {
#define KIND_TEXT(name, text) text,
        CDACQ_JITDUMP_KINDS(KIND_TEXT)
#undef KIND_TEXT
    };
    return (unsigned)kind < ARRAY_SIZE(texts) ? texts[kind] : "unknown";
}

static enum cdacq_jitdump_kind kind_of(uint32_t id)
{
    enum { PERF_LAST = 4, SAMPLY_FIRST = 827346259, SAMPLY_LAST = 827346261 };
    /* The kinds are in the order of the ids. */
    if (id <= PERF_LAST)
        return (enum cdacq_jitdump_kind)(CDACQ_JITDUMP_LOAD + id);
    if (id >= SAMPLY_FIRST && id <= SAMPLY_LAST)
        return (enum cdacq_jitdump_kind)(CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 + (id - SAMPLY_FIRST));
    return CDACQ_JITDUMP_UNKNOWN;
}

void jitdump_decode_prefix(const void *bytes, bool big_endian, uint64_t offset, struct cdacq_jitdump_record *ret)
{
    const uint8_t *p = bytes;
    *ret = (struct cdacq_jitdump_record){
        .size = sizeof *ret,
        .id = load_u32(p, big_endian),
        .offset = offset,
        .total_size = load_u32(p + 4, big_endian),
        .timestamp = load_u64(p + 8, big_endian),
        .opaque.big_endian = big_endian,
    };
    ret->kind = kind_of(ret->id);
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

static bool next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor, struct cdacq_jitdump_entry *ret)
{
    if (record->kind != CDACQ_JITDUMP_DEBUG_INFO || !record->has_fields ||
        jitdump_cursor_count(*cursor) >= record->as.debug_info.nr_entry)
        return false;
    uint64_t at = DEBUG_FIXED + (uint64_t)jitdump_cursor_bytes(*cursor);
    size_t length;
    const char *name = jitdump_string_at(record, at + ENTRY_FIXED, record->opaque.size, &length);
    if (!name)
        return false;
    const uint8_t *p = record->opaque.bytes + at;
    *ret = (struct cdacq_jitdump_entry){
        .code_addr = load_u64(p, record->opaque.big_endian),
        .line = load_u32(p + 8, record->opaque.big_endian),
        .discrim = load_u32(p + 12, record->opaque.big_endian),
        .name = name,
        .name_length = length,
    };
    jitdump_cursor_advance(cursor, ENTRY_FIXED + length + 1);
    return true;
}

JITDUMP_LIST_FUNCTION(next_entry, uint64_t *cursor, entry, next_entry(record, cursor, &own))

/*
 * Whether a record without its code is as .NET 11 writes it: a block of stubs whose pages do not exist yet. .NET 10
 * ends the file there (dotnet/runtime#120419).
 */
static bool is_stub_block_without_code(const struct cdacq_jitdump_record *record, uint64_t code)
{
    static const char prefix[] = "stub ReportStubBlock<";
    return record->total_size == code && record->as.load.name_length > strlen(prefix) &&
           !memcmp(record->as.load.name, prefix, strlen(prefix));
}

static void finish_load(const uint8_t *p, struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    struct cdacq_jitdump_load *load = &record->as.load;
    size_t size = record->opaque.size;
    const char *name = (const char *)p + JITDUMP_LOAD_FIXED;
    const char *end = memchr(name, '\0', size - JITDUMP_LOAD_FIXED);
    if (!end) {
        jitdump_problem(problems, "JIT_CODE_LOAD: its name has no end");
        return;
    }
    load->name = name;
    load->name_length = (size_t)(end - name);
    uint64_t code = JITDUMP_LOAD_FIXED + (uint64_t)load->name_length + 1;
    load->code_offset = record->offset + code;
    if (!range_fits(code, load->code_size, record->total_size) && is_stub_block_without_code(record, code))
        load->code = NULL;
    else if (!range_fits(code, load->code_size, record->total_size))
        jitdump_problem(problems,
                        "JIT_CODE_LOAD: code_size is %" PRIu64 ", and %" PRIu64 " bytes are left for the code",
                        load->code_size, record->total_size - code);
    else if (range_fits(code, load->code_size, size))
        load->code = p + code;
    if (load->code_size && load->code_size - 1 > UINT64_MAX - load->vma)
        jitdump_problem(problems, "JIT_CODE_LOAD: %" PRIu64 " bytes at 0x%" PRIx64 " go beyond the last address",
                        load->code_size, load->vma);
}

static void finish_debug_info(struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    const struct cdacq_jitdump_debug_info *info = &record->as.debug_info;
    struct cdacq_jitdump_entry entry;
    uint64_t count = 0, wrong = 0, first = 0, first_address = 0;
    for (uint64_t cursor = 0; next_entry(record, &cursor, &entry); count++)
        if (entry.code_addr - info->code_addr > UINT32_MAX && !wrong++) { /* farther than the code of any record goes */
            first = count + 1;
            first_address = entry.code_addr;
        }
    if (count < info->nr_entry)
        jitdump_problem(problems, "JIT_CODE_DEBUG_INFO: nr_entry is %" PRIu64 ", and %" PRIu64 " entries are there",
                        info->nr_entry, count);
    if (wrong)
        jitdump_problem(problems,
                        "JIT_CODE_DEBUG_INFO: %" PRIu64 " of %" PRIu64 " entries are not in the function at 0x%" PRIx64
                        ": number %" PRIu64 " is at 0x%" PRIx64
                        " (Node.js 20 writes wrong memory for scripts with a sourceURL)",
                        wrong, count, info->code_addr, first, first_address);
}

static int32_t offset_at(const struct cfi_bytes *bytes, uint64_t at)
{
    return (int32_t)load_u32(bytes->bytes + at, bytes->big);
}

/* The parts of the data of a JIT_CODE_UNWINDING_INFO, as offsets in it: nothing says where the data will be. */
struct unwinding_parts {
    uint64_t header, frame, frame_end;
};

/* The table of .eh_frame_hdr: every entry has an FDE in the data, and they are in order. */
static void check_index_table(const struct cfi_bytes *header, const struct cfi_index *index,
                              const struct unwinding_parts *parts, struct jitdump_problems *problems)
{
    uint64_t table = index->table - parts->header, room = header->size - MIN(table, (uint64_t)header->size);
    if (index->count > room / CFI_INDEX_ENTRY) {
        jitdump_problem(problems,
                        "JIT_CODE_UNWINDING_INFO: its eh_frame_hdr has %" PRIu64 " entries, and %" PRIu64
                        " bytes for them",
                        index->count, room);
        return;
    }
    for (uint64_t i = 0; i < index->count; i++) {
        uint64_t at = table + i * CFI_INDEX_ENTRY;
        uint64_t fde = parts->header + (uint64_t)(int64_t)offset_at(header, at + 4);
        if (fde < parts->frame || fde >= parts->frame_end)
            jitdump_problem(problems,
                            "JIT_CODE_UNWINDING_INFO: entry %" PRIu64 " of its eh_frame_hdr has no FDE in its data", i);
        if (i && offset_at(header, at - CFI_INDEX_ENTRY) > offset_at(header, at))
            jitdump_problem(problems, "JIT_CODE_UNWINDING_INFO: entry %" PRIu64 " of its eh_frame_hdr is not in order",
                            i);
    }
}

/*
 * Checks .eh_frame_hdr at a place where it may be. Sets *ret_count to the entries of its table. False: the bytes there
 * are no .eh_frame_hdr. V8 writes an empty one for functions that are unwound by frame pointers. That of LLVM has the
 * address of .eh_frame in the process, which cannot be compared with anything here.
 */
static bool check_index_at(const struct cdacq_jitdump_record *record, const struct unwinding_parts *parts,
                           uint64_t *ret_count, struct jitdump_problems *problems)
{
    const struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    const uint8_t *bytes = (const uint8_t *)info->unwinding_data + parts->header;
    struct cfi_bytes header = {.bytes = bytes,
                               .size = (size_t)info->eh_frame_hdr_size,
                               .address = parts->header,
                               .word_size = 8,
                               .big = record->opaque.big_endian};
    struct cfi_index index = {0};
    bool is_empty = header.size >= 4 && bytes[0] == 1 && bytes[1] == CFI_ENCODING_OMITTED;
    if (!is_empty && !cfi_index_read(&header, &index)) {
        jitdump_problem(problems, "JIT_CODE_UNWINDING_INFO: its eh_frame_hdr is damaged");
        return false;
    }
    bool is_relative = !is_empty && (bytes[1] & 0x70) != CFI_ENCODING_ABSOLUTE;
    bool has_frame = parts->frame < parts->frame_end || index.count;
    *ret_count = index.count;
    if (is_relative && has_frame && (index.eh_frame < parts->frame || index.eh_frame >= parts->frame_end))
        jitdump_problem(problems, "JIT_CODE_UNWINDING_INFO: the eh_frame of its eh_frame_hdr is not in its data");
    else if (index.count)
        check_index_table(&header, &index, parts, problems);
    return true;
}

/*
 * perf reads .eh_frame_hdr after .eh_frame, where V8 writes it. The specification has it before .eh_frame, where LLVM
 * writes it. It is where it is sound; problems are those of the first place that has one.
 */
static void check_eh_frame_hdr(struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    uint64_t size = info->unwind_data_size, header_size = info->eh_frame_hdr_size;
    const struct unwinding_parts places[] = {
        {.header = size - header_size, .frame = 0, .frame_end = size - header_size},
        {.header = 0, .frame = header_size, .frame_end = size},
    };
    const struct unwinding_parts *found = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct jitdump_problems unseen = {.offset = record->offset};
        bool is_header = check_index_at(record, &places[i], &info->fde_count, &unseen);
        if (!unseen.count)
            return;
        if (is_header && !found)
            found = &places[i];
    }
    check_index_at(record, found ? found : &places[0], &info->fde_count, problems);
}

static void finish_unwinding_info(const uint8_t *p, struct cdacq_jitdump_record *record,
                                  struct jitdump_problems *problems)
{
    struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    info->unwinding_data_offset = record->offset + UNWINDING_FIXED;
    if (!range_fits(UNWINDING_FIXED, info->unwind_data_size, record->total_size))
        jitdump_problem(problems,
                        "JIT_CODE_UNWINDING_INFO: unwind_data_size is %" PRIu64 ", and %" PRIu64 " bytes are left",
                        info->unwind_data_size, record->total_size - UNWINDING_FIXED);
    else if (range_fits(UNWINDING_FIXED, info->unwind_data_size, record->opaque.size))
        info->unwinding_data = p + UNWINDING_FIXED;
    if (info->eh_frame_hdr_size > info->unwind_data_size)
        jitdump_problem(problems,
                        "JIT_CODE_UNWINDING_INFO: eh_frame_hdr_size %" PRIu64 " is more than unwind_data_size %" PRIu64,
                        info->eh_frame_hdr_size, info->unwind_data_size);
    else if (info->eh_frame_hdr_size && info->unwinding_data)
        check_eh_frame_hdr(record, problems);
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* The fields that every record of a kind has after its prefix, as load_fields copies them to the struct of the kind. */
static const struct {
    uint8_t narrow, wide;
} fixed_fields[] = {
    [CDACQ_JITDUMP_LOAD] = {2, 4},
    [CDACQ_JITDUMP_MOVE] = {2, 5},
    [CDACQ_JITDUMP_DEBUG_INFO] = {0, 2},
    [CDACQ_JITDUMP_UNWINDING_INFO] = {0, 3},
    [CDACQ_JITDUMP_UNKNOWN] = {0, 0},
    [CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2] = {8, 0},
    [CDACQ_JITDUMP_SAMPLY_POSITIONS] = {0, 4},
};

_Static_assert(offsetof(struct cdacq_jitdump_load, name) == 2 * 4 + 4 * 8, "fields are as in the file");
_Static_assert(offsetof(struct cdacq_jitdump_move, load) == 2 * 4 + 5 * 8, "fields are as in the file");
_Static_assert(sizeof(struct cdacq_jitdump_debug_info) == 2 * 8, "fields are as in the file");
_Static_assert(offsetof(struct cdacq_jitdump_unwinding_info, unwinding_data) == 3 * 8, "fields are as in the file");
_Static_assert(sizeof(struct cdacq_jitdump_samply_debug_info2) == 8 * 4, "fields are as in the file");
_Static_assert(sizeof(struct cdacq_jitdump_samply_positions) == 4 * 8, "fields are as in the file");

enum cdacq_status jitdump_decode(const void *bytes, size_t size, bool big_endian, struct cdacq_jitdump_record *record,
                                 struct cdacq_error *err)
{
    struct jitdump_problems problems = {.err = err, .offset = record->offset};
    record->opaque.bytes = bytes;
    record->opaque.size = (size_t)MIN((uint64_t)size, record->total_size);
    record->opaque.big_endian = big_endian;
    if (jitdump_is_samply_positions(record))
        record->kind = CDACQ_JITDUMP_SAMPLY_POSITIONS;
    size_t narrow = fixed_fields[record->kind].narrow, wide = fixed_fields[record->kind].wide;
    size_t fixed = JITDUMP_PREFIX_SIZE + 4 * narrow + 8 * wide;
    record->has_fields = record->opaque.size >= fixed;
    memset(&record->as, 0, sizeof record->as);
    if (!record->has_fields)
        return error_set(err, CDACQ_ERR_FORMAT, record->offset,
                         "%s: the record has %" PRIu64 " bytes, and its fields take %zu",
                         cdacq_jitdump_kind_text(record->kind), record->total_size, fixed);
    jitdump_load_fields((const uint8_t *)bytes + JITDUMP_PREFIX_SIZE, narrow, wide, big_endian, &record->as);
    if (record->kind == CDACQ_JITDUMP_LOAD)
        finish_load(bytes, record, &problems);
    else if (record->kind == CDACQ_JITDUMP_DEBUG_INFO)
        finish_debug_info(record, &problems);
    else if (record->kind == CDACQ_JITDUMP_UNWINDING_INFO)
        finish_unwinding_info(bytes, record, &problems);
    else if (record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2)
        jitdump_check_samply(record, &problems);
    else if (record->kind == CDACQ_JITDUMP_SAMPLY_POSITIONS)
        jitdump_check_samply_positions(record, &problems);
    else if (record->kind == CDACQ_JITDUMP_CLOSE && record->total_size > JITDUMP_PREFIX_SIZE)
        jitdump_problem(&problems, "JIT_CODE_CLOSE: %" PRIu64 " bytes after its header belong to nothing",
                        record->total_size - JITDUMP_PREFIX_SIZE);
    return jitdump_problems_end(&problems);
}
