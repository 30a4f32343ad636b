#include "formats/pe.h"

enum {
    DOS_NEW_HEADER_FIELD = 0x3c,
    COFF_HEADER_SIZE = 24, /* with the signature "PE\0\0" before it */
    OPTIONAL_MAGIC_PE32 = 0x10b,
    OPTIONAL_MAGIC_PE32_PLUS = 0x20b,
    SECTION_HEADER_SIZE = 40,
    CLR_HEADER_SIZE = 72,
    EXPORT_DIRECTORY_SIZE = 40,
    EXPORT_NAME_CAP = 1 << 16, /* names that a look-up compares */
    RELOCATION_BLOCK_HEADER_SIZE = 8,
    RELOCATION_BLOCK_CAP = 1 << 15, /* a block is of 4 KiB of the image */
    RELOCATION_PAGE_SIZE = 4096,
};

/* What a base relocation changes. */
enum {
    IMAGE_REL_BASED_HIGH = 1,
    IMAGE_REL_BASED_LOW = 2,
    IMAGE_REL_BASED_HIGHLOW = 3,
    IMAGE_REL_BASED_ARM_MOV32 = 5,
    IMAGE_REL_BASED_THUMB_MOV32 = 7,
    IMAGE_REL_BASED_DIR64 = 10,
};

static enum cdacq_status pe_window_at_rva(const struct pe *pe, uint32_t rva, uint32_t count, const uint8_t **ret)
{
    uint64_t offset;
    enum cdacq_status status = pe_offset(pe, rva, count, &offset);
    return status != CDACQ_OK ? status : bytes_require(&pe->bytes, offset, count, ret);
}

static void read_directories(struct pe *pe, const uint8_t *optional, size_t size)
{
    size_t first = pe->wide ? 112 : 96;
    uint32_t count = MIN(load_u32(optional + first - 4, false), (uint32_t)PE_DIRECTORY_COUNT);
    for (uint32_t i = 0; i < count && first + 8 * (i + 1) <= size; i++) {
        const uint8_t *p = optional + first + 8 * i;
        pe->directories[i] = (struct pe_range){load_u32(p, false), load_u32(p + 4, false)};
    }
}

static enum cdacq_status read_optional_header(struct pe *pe, uint64_t offset, size_t size)
{
    enum { PE32_FIXED = 96, PE32_PLUS_FIXED = 112 };
    const uint8_t *p;
    size = MIN(size, (size_t)PE32_PLUS_FIXED + 8 * PE_DIRECTORY_COUNT);
    if (size < PE32_FIXED)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = bytes_require(&pe->bytes, offset, size, &p);
    if (status != CDACQ_OK)
        return status;
    uint16_t magic = load_u16(p, false);
    if (magic != OPTIONAL_MAGIC_PE32 && magic != OPTIONAL_MAGIC_PE32_PLUS)
        return CDACQ_ERR_FORMAT;
    pe->wide = magic == OPTIONAL_MAGIC_PE32_PLUS;
    if (pe->wide && size < PE32_PLUS_FIXED)
        return CDACQ_ERR_FORMAT;
    pe->image_base = pe->wide ? load_u64(p + 24, false) : load_u32(p + 28, false);
    pe->image_size = load_u32(p + 56, false);
    pe->headers_size = load_u32(p + 60, false);
    read_directories(pe, p, size);
    return CDACQ_OK;
}

static enum cdacq_status read_sections(struct pe *pe, uint64_t offset)
{
    for (unsigned i = 0; i < pe->section_count; i++, offset += SECTION_HEADER_SIZE) {
        const uint8_t *p;
        enum cdacq_status status = bytes_require(&pe->bytes, offset, SECTION_HEADER_SIZE, &p);
        if (status != CDACQ_OK)
            return status;
        struct pe_section *section = &pe->sections[i];
        memcpy(section->name, p, 8);
        section->virtual_size = load_u32(p + 8, false);
        section->rva = load_u32(p + 12, false);
        section->file_size = load_u32(p + 16, false);
        section->file_offset = load_u32(p + 20, false);
        section->characteristics = load_u32(p + 36, false);
    }
    return CDACQ_OK;
}

enum cdacq_status pe_open(const struct bytes *bytes, bool mapped, struct pe *ret)
{
    struct pe pe = {.bytes = *bytes, .mapped = mapped};
    const uint8_t *p;
    enum cdacq_status status = bytes_require(&pe.bytes, 0, 64, &p);
    if (status != CDACQ_OK)
        return status;
    if (p[0] != 'M' || p[1] != 'Z')
        return CDACQ_ERR_FORMAT;
    uint64_t header = load_u32(p + DOS_NEW_HEADER_FIELD, false);

    status = bytes_require(&pe.bytes, header, COFF_HEADER_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    if (memcmp(p, "PE\0\0", 4) != 0)
        return CDACQ_ERR_FORMAT;
    pe.machine = load_u16(p + 4, false);
    pe.section_count = load_u16(p + 6, false);
    pe.time_stamp = load_u32(p + 8, false);
    size_t optional_size = load_u16(p + 20, false);
    if (pe.section_count > PE_SECTION_CAP)
        return CDACQ_ERR_FORMAT;

    status = read_optional_header(&pe, header + COFF_HEADER_SIZE, optional_size);
    if (status == CDACQ_OK)
        status = read_sections(&pe, header + COFF_HEADER_SIZE + optional_size);
    if (status == CDACQ_OK)
        *ret = pe;
    return status;
}

enum cdacq_status pe_offset(const struct pe *pe, uint32_t rva, uint32_t size, uint64_t *ret)
{
    if (pe->mapped || range_fits(rva, size, pe->headers_size)) {
        if (!range_fits(rva, size, pe->mapped ? pe->image_size : pe->headers_size))
            return CDACQ_ERR_FORMAT;
        *ret = rva;
        return CDACQ_OK;
    }
    for (unsigned i = 0; i < pe->section_count; i++) {
        const struct pe_section *section = &pe->sections[i];
        if (rva >= section->rva && range_fits(rva - section->rva, size, section->file_size)) {
            *ret = (uint64_t)section->file_offset + (rva - section->rva);
            return CDACQ_OK;
        }
    }
    return CDACQ_ERR_FORMAT;
}

bool pe_rva(const struct pe *pe, uint64_t offset, uint32_t *ret)
{
    for (unsigned i = 0; i < pe->section_count; i++) {
        const struct pe_section *section = &pe->sections[i];
        if (offset >= section->file_offset && offset - section->file_offset < section->file_size) {
            *ret = section->rva + (uint32_t)(offset - section->file_offset);
            return true;
        }
    }
    return false;
}

enum cdacq_status pe_read_clr(const struct pe *pe, struct pe_clr *ret)
{
    const struct pe_range *directory = &pe->directories[PE_DIRECTORY_CLR];
    const uint8_t *p;
    if (!directory->rva)
        return CDACQ_ERR_MODULE;
    if (directory->size < CLR_HEADER_SIZE)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = pe_window_at_rva(pe, directory->rva, CLR_HEADER_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    if (load_u32(p, false) < CLR_HEADER_SIZE)
        return CDACQ_ERR_FORMAT;
    *ret = (struct pe_clr){
        .metadata = {load_u32(p + 8, false), load_u32(p + 12, false)},
        .flags = load_u32(p + 16, false),
        .managed_native_header = {load_u32(p + 64, false), load_u32(p + 68, false)},
    };
    return CDACQ_OK;
}

/* Whether the NUL-terminated string at `rva` is `name`; `length` includes the NUL. */
static enum cdacq_status export_name_equals(const struct pe *pe, uint32_t rva, const char *name, size_t length,
                                            bool *ret)
{
    const uint8_t *p;
    enum cdacq_status status = pe_window_at_rva(pe, rva, (uint32_t)length, &p);
    if (status == CDACQ_ERR_FORMAT) { /* too close to the end to be that name */
        *ret = false;
        return CDACQ_OK;
    }
    if (status == CDACQ_OK)
        *ret = memcmp(p, name, length) == 0;
    return status;
}

/* The index of `name` in the export directory's name table; `count` if it is not there. */
static enum cdacq_status find_export_name(const struct pe *pe, uint32_t names, uint32_t count, const char *name,
                                          uint32_t *ret)
{
    size_t length = strlen(name) + 1;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *p;
        bool equal;
        enum cdacq_status status = pe_window_at_rva(pe, names + 4 * i, 4, &p);
        if (status == CDACQ_OK)
            status = export_name_equals(pe, load_u32(p, false), name, length, &equal);
        if (status != CDACQ_OK)
            return status;
        if (equal) {
            *ret = i;
            return CDACQ_OK;
        }
    }
    *ret = count;
    return CDACQ_OK;
}

/* The address of an export, through the table of ordinals, which is parallel to the names. */
static enum cdacq_status read_export(const struct pe *pe, uint32_t functions, uint32_t function_count,
                                     uint32_t ordinals, uint32_t element, uint32_t *ret)
{
    const uint8_t *p;
    enum cdacq_status status = pe_window_at_rva(pe, ordinals + 2 * element, 2, &p);
    if (status != CDACQ_OK)
        return status;
    uint32_t ordinal = load_u16(p, false);
    if (ordinal >= function_count)
        return CDACQ_ERR_FORMAT;
    status = pe_window_at_rva(pe, functions + 4 * ordinal, 4, &p);
    if (status == CDACQ_OK)
        *ret = load_u32(p, false);
    return status;
}

enum cdacq_status pe_find_export(const struct pe *pe, const char *name, uint32_t *ret_rva)
{
    const struct pe_range *directory = &pe->directories[PE_DIRECTORY_EXPORT];
    const uint8_t *p;
    if (!directory->rva) {
        *ret_rva = 0;
        return CDACQ_OK;
    }
    enum cdacq_status status = pe_window_at_rva(pe, directory->rva, EXPORT_DIRECTORY_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint32_t function_count = load_u32(p + 20, false), name_count = load_u32(p + 24, false);
    uint32_t functions = load_u32(p + 28, false), names = load_u32(p + 32, false), ordinals = load_u32(p + 36, false);
    if (name_count > EXPORT_NAME_CAP || function_count > EXPORT_NAME_CAP)
        return CDACQ_ERR_FUEL;

    uint32_t element = 0, rva = 0;
    status = find_export_name(pe, names, name_count, name, &element);
    if (status == CDACQ_OK && element < name_count)
        status = read_export(pe, functions, function_count, ordinals, element, &rva);
    if (status != CDACQ_OK)
        return status;
    bool forwarder = rva >= directory->rva && rva - directory->rva < directory->size;
    *ret_rva = forwarder ? 0 : rva;
    return CDACQ_OK;
}

/* The blocks of base relocations that have not been visited. */
struct relocation_blocks {
    const struct pe *pe;
    struct pe_range left;
    unsigned count; /* of those that have been */
};

static struct relocation_blocks relocation_blocks_of(const struct pe *pe)
{
    return (struct relocation_blocks){.pe = pe, .left = pe->directories[PE_DIRECTORY_BASE_RELOCATION]};
}

/* The next block: its page, and where its entries are. ERR_MODULE: there is none. */
static enum cdacq_status next_block(struct relocation_blocks *blocks, uint32_t *ret_page, struct pe_range *ret_entries)
{
    struct pe_range *left = &blocks->left;
    const uint8_t *p;
    if (left->size < RELOCATION_BLOCK_HEADER_SIZE)
        return CDACQ_ERR_MODULE;
    enum cdacq_status status = pe_window_at_rva(blocks->pe, left->rva, RELOCATION_BLOCK_HEADER_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint32_t page = load_u32(p, false), size = load_u32(p + 4, false);
    if (size < RELOCATION_BLOCK_HEADER_SIZE || size > left->size)
        return CDACQ_ERR_FORMAT;
    if (blocks->count++ == RELOCATION_BLOCK_CAP)
        return CDACQ_ERR_FUEL;
    *ret_page = page;
    *ret_entries = (struct pe_range){left->rva + RELOCATION_BLOCK_HEADER_SIZE, size - RELOCATION_BLOCK_HEADER_SIZE};
    *left = (struct pe_range){left->rva + size, left->size - size};
    return CDACQ_OK;
}

/* Whether a block's entries have one of a 64-bit pointer at `in_page`. */
static enum cdacq_status has_relocation(const struct pe *pe, struct pe_range entries, uint32_t in_page, bool *ret)
{
    const uint8_t *p;
    enum cdacq_status status = pe_window_at_rva(pe, entries.rva, entries.size, &p);
    if (status != CDACQ_OK)
        return status;
    *ret = false;
    for (uint32_t at = 0; at + 2 <= entries.size && !*ret; at += 2)
        *ret = load_u16(p + at, false) == (IMAGE_REL_BASED_DIR64 << 12 | in_page);
    return CDACQ_OK;
}

/* ERR_MODULE: the image does not relocate the pointer at `rva`. */
static enum cdacq_status find_relocation(const struct pe *pe, uint32_t rva)
{
    struct relocation_blocks blocks = relocation_blocks_of(pe);
    struct pe_range entries;
    uint32_t page, in_page = rva % RELOCATION_PAGE_SIZE;
    bool found = false;
    enum cdacq_status status;
    while (!found && (status = next_block(&blocks, &page, &entries)) == CDACQ_OK)
        if (page == rva - in_page && (status = has_relocation(pe, entries, in_page, &found)) != CDACQ_OK)
            return status;
    return found ? CDACQ_OK : status;
}

/* Bytes that a base relocation changes; 0: none, or not known. */
static unsigned relocated_size(unsigned type)
{
    switch (type) {
    case IMAGE_REL_BASED_HIGH:
    case IMAGE_REL_BASED_LOW:
        return 2;
    case IMAGE_REL_BASED_HIGHLOW:
        return 4;
    case IMAGE_REL_BASED_ARM_MOV32: /* MOVW and MOVT */
    case IMAGE_REL_BASED_THUMB_MOV32:
    case IMAGE_REL_BASED_DIR64:
        return 8;
    default:
        return 0;
    }
}

/* Takes from a budget, unless that has less left. */
static bool take_budget(unsigned *budget, unsigned cost)
{
    bool enough = cost <= *budget;
    *budget -= enough ? cost : *budget;
    return enough;
}

/* Marks what the entries of a block relocate. */
static enum cdacq_status mark_block(const struct pe *pe, uint32_t page, struct pe_range entries, uint32_t rva,
                                    uint32_t size, bool *ret)
{
    const uint8_t *p;
    enum cdacq_status status = pe_window_at_rva(pe, entries.rva, entries.size, &p);
    if (status != CDACQ_OK)
        return status;
    for (uint32_t at = 0; at + 2 <= entries.size; at += 2) {
        unsigned entry = load_u16(p + at, false);
        uint64_t begin = (uint64_t)page + entry % RELOCATION_PAGE_SIZE, end = begin + relocated_size(entry >> 12);
        begin = MAX(begin, (uint64_t)rva);
        end = MIN(end, (uint64_t)rva + size);
        if (begin < end)
            memset(ret + (begin - rva), true, (size_t)(end - begin));
    }
    return CDACQ_OK;
}

enum cdacq_status pe_mark_relocated(const struct pe *pe, uint32_t rva, uint32_t size, unsigned *budget, bool *ret)
{
    const unsigned block_cost = 2 + pe->section_count / 8; /* to find its bytes, each section is looked at */
    struct relocation_blocks blocks = relocation_blocks_of(pe);
    struct pe_range entries;
    uint32_t page;
    enum cdacq_status status;
    memset(ret, 0, size * sizeof *ret);
    while (take_budget(budget, block_cost)) {
        if ((status = next_block(&blocks, &page, &entries)) != CDACQ_OK)
            return status == CDACQ_ERR_MODULE ? CDACQ_OK : status;
        uint64_t end = (uint64_t)page + RELOCATION_PAGE_SIZE + sizeof(uint64_t); /* the last word may cross the end */
        if (page >= (uint64_t)rva + size || end <= rva)
            continue;
        if (!take_budget(budget, block_cost + entries.size / 2))
            break;
        if ((status = mark_block(pe, page, entries, rva, size, ret)) != CDACQ_OK)
            return status;
    }
    return CDACQ_ERR_FUEL;
}

enum cdacq_status pe_relocated_pointer(const struct pe *pe, uint32_t rva, uint32_t *ret)
{
    const uint8_t *p;
    enum cdacq_status status = find_relocation(pe, rva);
    if (status == CDACQ_OK)
        status = pe_window_at_rva(pe, rva, sizeof(uint64_t), &p);
    if (status != CDACQ_OK)
        return status;
    uint64_t target = load_u64(p, false) - pe->image_base;
    if (target >= pe->image_size)
        return CDACQ_ERR_FORMAT;
    *ret = (uint32_t)target;
    return CDACQ_OK;
}

static const void *bytes_extent_window(void *context, uint64_t offset, size_t count)
{
    struct bytes_extent *extent = context;
    return bytes_window(&extent->whole, extent->offset + offset, count);
}

struct bytes bytes_of_extent(const struct bytes *whole, uint64_t offset, uint64_t size, struct bytes_extent *extent)
{
    offset = MIN(offset, whole->size);
    size = MIN(size, whole->size - offset);
    *extent = (struct bytes_extent){.whole = *whole, .offset = offset};
    return (struct bytes){.window = bytes_extent_window, .context = extent, .size = size};
}

enum cdacq_status pe_metadata(const struct pe *pe, struct bytes_extent *extent, struct bytes *ret)
{
    struct pe_clr clr;
    uint64_t offset;
    enum cdacq_status status = pe_read_clr(pe, &clr);
    if (status == CDACQ_OK)
        status = pe_offset(pe, clr.metadata.rva, clr.metadata.size, &offset);
    if (status != CDACQ_OK)
        return status;
    *ret = bytes_of_extent(&pe->bytes, offset, clr.metadata.size, extent);
    return CDACQ_OK;
}
