#include "contracts/code_info/unwind_info.h"

#include "util/binary_search.h"

#include "contracts/code_info/gc_info.h"

enum {
    CHAININFO = 4,             /* a flag in the first byte of UNWIND_INFO, above three bits of version */
    REFERENCE = 1,             /* x64: the entry's unwind data is another entry */
    PACKED_MASK = 3,           /* arm, arm64: the entry itself holds the unwind data */
    PACKED_FRAGMENT = 2,       /* arm, arm64: a fragment */
    LENGTH_MASK = 0x3ffff,     /* of the header's first word */
    PACKED_LENGTH_MASK = 0x7ff /* above two bits of flags */
};

struct unwind_table unwind_table_at(const struct reader *reader, uint64_t address, uint32_t count, uint64_t base)
{
    return (struct unwind_table){
        .address = address,
        .count = count,
        .entry_size = reader->layout->sizes[T_RuntimeFunction],
        .base = base,
    };
}

void unwind_table_window(struct reader *reader, struct unwind_table *table)
{
    const struct layout_slot *fields = reader->layout->fields;
    /* A window is read without checks, so every field must lie within an entry. */
    bool fits = range_fits(fields[F_RuntimeFunction_BeginAddress].offset, 4, table->entry_size) &&
                range_fits(fields[F_RuntimeFunction_UnwindData].offset, 4, table->entry_size) &&
                range_fits(fields[F_RuntimeFunction_EndAddress].offset, 4, table->entry_size);
    bool unverified; /* the reads that found the table say it */
    if (fits)
        table->window =
            reader_try_lasting_view(reader, table->address, (size_t)table->count * table->entry_size, &unverified);
}

bool unwind_table_is_before_next(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    if (i + 1 >= table->count)
        return true;
    uint32_t begin = unwind_table_begin(reader, table, i), next = unwind_table_begin(reader, table, i + 1);
    uint32_t end = has_field(reader, F_RuntimeFunction_EndAddress)
                       ? unwind_table_field(reader, table, i, F_RuntimeFunction_EndAddress)
                       : begin;
    return reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)) || (begin < next && end <= next);
}

uint32_t unwind_table_find(struct reader *reader, const struct unwind_table *table, uint32_t relative)
{
    uint32_t after = lower_bound(i, table->count, unwind_table_begin(reader, table, i) <= relative);
    if (!after || reader_failed(reader))
        return UINT32_MAX;
    for (uint32_t i = after > 1 ? after - 2 : 0; i <= after; i++)
        if (!unwind_table_is_before_next(reader, table, i))
            reader_fail(reader, CDACQ_ERR_CORRUPT, table->address + (uint64_t)i * table->entry_size,
                        "the order of runtime functions");
    return reader_failed(reader) ? UINT32_MAX : after - 1;
}

static uint32_t unwind_data_of(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    return unwind_table_field(reader, table, i, F_RuntimeFunction_UnwindData);
}

/* ---- x86 ---- */

/* Without funclets there is no unwind data: the entry leads to the GC info. */
static uint32_t length_x86(struct reader *reader, uint64_t unwind_data)
{
    if (has_field(reader, F_UnwindInfo_FunctionLength))
        return (uint32_t)read_field(reader, unwind_data, F_UnwindInfo_FunctionLength);
    return has_funclets(reader) ? read_u32(reader, unwind_data) : gc_info_code_length(reader, unwind_data, 0);
}

static uint32_t size_x86(struct reader *reader)
{
    if (has_field(reader, F_UnwindInfo_FunctionLength))
        return reader->layout->fields[F_UnwindInfo_FunctionLength].offset + 4;
    return has_funclets(reader) ? 4 : 0;
}

/* ---- x64 ---- */

static bool is_chained(uint8_t first)
{
    return first >> 3 & CHAININFO;
}

static uint32_t size_x64(struct reader *reader, uint64_t address)
{
    uint8_t unwind_info[4];
    if (!reader_copy(reader, address, unwind_info, sizeof unwind_info))
        return 0;
    uint64_t count = unwind_info[2], codes = 4;
    if (has_field(reader, F_UnwindInfo_CountOfUnwindCodes))
        count = read_field(reader, address, F_UnwindInfo_CountOfUnwindCodes);
    if (has_field(reader, F_UnwindInfo_UnwindCodeOffset))
        codes = reader->layout->fields[F_UnwindInfo_UnwindCodeOffset].offset;
    return (uint32_t)align_up(codes + 2 * count, 4) + (is_chained(unwind_info[0]) ? 12 : 4);
}

/* ---- arm, arm64, riscv64, loongarch64 ---- */

struct unwind_header {
    uint32_t first;
    uint32_t size;    /* of the header: 4 or 8 */
    uint32_t epilogs; /* words that describe them */
    uint32_t codes;   /* words of unwind codes */
};

static bool has_unwind_header(enum architecture architecture)
{
    return architecture == ARCHITECTURE_ARM || architecture == ARCHITECTURE_ARM64 ||
           architecture == ARCHITECTURE_RISCV64 || architecture == ARCHITECTURE_LOONGARCH64;
}

/* How many bytes the header's length counts in. */
static uint32_t unit_of(const struct reader *reader)
{
    if (!has_unwind_header(reader->layout->architecture))
        return reader->pointer_size / 2u;
    return reader->layout->architecture == ARCHITECTURE_ARM ? 2 : 4;
}

static bool read_header(struct reader *reader, uint64_t address, struct unwind_header *ret)
{
    bool arm = reader->layout->architecture == ARCHITECTURE_ARM;
    bool arm64 = reader->layout->architecture == ARCHITECTURE_ARM64;
    struct unwind_header header = {.first = read_u32(reader, address), .size = 4};
    bool describes_the_only_epilog = header.first >> 21 & 1;
    header.codes = header.first >> (arm ? 28 : 27);
    header.epilogs = header.first >> (arm ? 23 : 22) & 0x1f;
    /* If the first word counts no codes, the runtime reads a second one; on arm and arm64 only without epilogs. */
    if (!header.codes && !((arm || arm64) && header.epilogs)) {
        uint32_t second = read_u32(reader, address + 4);
        header.size = 8;
        header.epilogs = second & 0xffff;
        header.codes = second >> 16 & 0xff;
    }
    if (describes_the_only_epilog)
        header.epilogs = 0; /* the number is the index of its codes */
    if (header.first >> 18 & 3)
        reader_fail(reader, CDACQ_ERR_CORRUPT, address, "unwind data: version");
    if (reader_failed(reader))
        return false;
    *ret = header;
    return true;
}

/* Only arm and arm64 have packed data, and no runtime has written any yet. */
static bool is_packed(struct reader *reader, uint32_t unwind_data)
{
    enum architecture architecture = reader->layout->architecture;
    return unwind_data & PACKED_MASK && (architecture == ARCHITECTURE_ARM || architecture == ARCHITECTURE_ARM64);
}

static uint32_t length_by_header(struct reader *reader, const struct unwind_table *table, uint32_t unwind_data)
{
    uint32_t units = is_packed(reader, unwind_data) ? unwind_data >> 2 & PACKED_LENGTH_MASK
                                                    : read_u32(reader, table->base + unwind_data) & LENGTH_MASK;
    return units * unit_of(reader);
}

/* ---- All ---- */

uint32_t unwind_table_length(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    enum architecture architecture = reader->layout->architecture;
    if (architecture == ARCHITECTURE_X64 || has_field(reader, F_RuntimeFunction_EndAddress)) {
        if (!has_field(reader, F_RuntimeFunction_EndAddress))
            return (uint32_t)field_missing(reader, F_RuntimeFunction_EndAddress);
        uint32_t begin = unwind_table_begin(reader, table, i);
        uint32_t end = unwind_table_field(reader, table, i, F_RuntimeFunction_EndAddress);
        return end > begin ? end - begin : 0;
    }
    uint32_t unwind_data = unwind_data_of(reader, table, i);
    if (architecture == ARCHITECTURE_X86 || has_field(reader, F_UnwindInfo_FunctionLength))
        return length_x86(reader, table->base + unwind_data);
    return length_by_header(reader, table, unwind_data);
}

bool unwind_table_data(struct reader *reader, const struct unwind_table *table, uint32_t i, uint64_t *ret_address,
                       uint32_t *ret_size)
{
    uint32_t unwind_data = unwind_data_of(reader, table, i), size = 0;
    uint64_t address = table->base + unwind_data;
    struct unwind_header header;
    enum architecture architecture = reader->layout->architecture;
    if (architecture == ARCHITECTURE_X86)
        size = size_x86(reader);
    else if (architecture == ARCHITECTURE_X64 && !(unwind_data & REFERENCE))
        size = size_x64(reader, address);
    else if (has_unwind_header(architecture) && !is_packed(reader, unwind_data) &&
             read_header(reader, address, &header))
        size = header.size + 4 * header.epilogs + 4 * header.codes + 4;
    else
        return false;
    if (reader_failed(reader))
        return false;
    *ret_address = address;
    *ret_size = size;
    return true;
}

bool unwind_table_is_fragment(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    enum { FRAGMENT_ARM = 22, END_C = 0xe5 }; /* a flag of the header; the first code if there is no prolog */
    enum architecture architecture = reader->layout->architecture;
    if (!has_unwind_header(architecture))
        return false;
    uint32_t unwind_data = unwind_data_of(reader, table, i);
    uint64_t address = table->base + unwind_data;
    struct unwind_header header;
    if (is_packed(reader, unwind_data))
        return (unwind_data & PACKED_MASK) == PACKED_FRAGMENT;
    if (reader_failed(reader) || !read_header(reader, address, &header))
        return false;
    if (architecture == ARCHITECTURE_ARM)
        return header.first >> FRAGMENT_ARM & 1;
    return header.codes && read_u8(reader, address + header.size + 4 * header.epilogs) == END_C;
}

uint32_t unwind_table_root(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    while (i > 0 && unwind_table_is_fragment(reader, table, i) && reader_step(reader, "function fragments"))
        i--;
    return i;
}

bool unwind_table_is_cold_funclet(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    if (reader->layout->architecture != ARCHITECTURE_X64)
        return false;
    uint32_t unwind_data = unwind_data_of(reader, table, i);
    return !(unwind_data & REFERENCE) && !is_chained(read_u8(reader, table->base + unwind_data)) &&
           !reader_failed(reader);
}
