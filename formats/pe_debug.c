#include "formats/pe_debug.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/text.h"

enum {
    DIRECTORY_DEBUG = 6,
    ENTRY_SIZE = 28,
    ENTRY_CAP = 64, /* compilers write up to five */
    ENTRY_CODEVIEW = 2,
    ENTRY_EMBEDDED_PDB = 17,
    ENTRY_PDB_CHECKSUM = 19,
    CODEVIEW_FIXED_SIZE = 24, /* up to the path */
    PORTABLE_MINOR = 0x504d,
    EMBEDDED_HEADER_SIZE = 8,
    EMBEDDED_MINOR = 0x0100,
    DEFLATE_RATIO_MAX = 1032, /* no deflate stream expands more */
};

struct entry {
    uint32_t stamp, type, size, rva, pointer;
    uint16_t minor;
};

static struct entry decode_entry(const uint8_t *p)
{
    return (struct entry){
        .stamp = load_u32(p + 4, false),
        .minor = load_u16(p + 10, false),
        .type = load_u32(p + 12, false),
        .size = load_u32(p + 16, false),
        .rva = load_u32(p + 20, false),
        .pointer = load_u32(p + 24, false),
    };
}

/* The offset of an entry's data in the source. */
static enum cdacq_status entry_offset(const struct pe *pe, const struct entry *entry, uint64_t *ret)
{
    if (!pe->mapped && entry->pointer) {
        *ret = entry->pointer;
        return range_fits(entry->pointer, entry->size, pe->bytes.size) ? CDACQ_OK : CDACQ_ERR_FORMAT;
    }
    return entry->rva ? pe_offset(pe, entry->rva, entry->size, ret) : CDACQ_ERR_FORMAT;
}

/* The first `size` bytes of an entry's data, and the offset of these in the source. */
static enum cdacq_status entry_data(const struct pe *pe, const struct entry *entry, uint32_t size, uint64_t *ret_offset,
                                    const uint8_t **ret)
{
    enum cdacq_status status = entry_offset(pe, entry, ret_offset);
    return status == CDACQ_OK ? bytes_require(&pe->bytes, *ret_offset, size, ret) : status;
}

/* A portable PDB is preferred: an image with native code may name one more for that. */
static enum cdacq_status read_codeview(const struct pe *pe, const struct entry *entry, struct pe_debug *ret)
{
    const uint8_t *p;
    uint64_t offset;
    bool portable = entry->minor == PORTABLE_MINOR;
    if (entry->size <= CODEVIEW_FIXED_SIZE || (ret->has_pdb && (ret->portable || !portable)))
        return CDACQ_OK;
    enum cdacq_status status = entry_data(pe, entry, CODEVIEW_FIXED_SIZE, &offset, &p);
    if (status != CDACQ_OK)
        return status;
    if (memcmp(p, "RSDS", 4) != 0)
        return CDACQ_OK;
    memcpy(ret->id, p + 4, 16);
    store_u32(ret->id + 16, entry->stamp, false);
    ret->age = load_u32(p + 20, false);
    uint32_t room = entry->size - CODEVIEW_FIXED_SIZE, size = MIN(room, (uint32_t)PE_DEBUG_PATH_SIZE);
    status = bytes_require(&pe->bytes, offset + CODEVIEW_FIXED_SIZE, size, &p);
    if (status != CDACQ_OK)
        return status;
    const uint8_t *nul = memchr(p, '\0', size);
    ret->path[0] = '\0';
    if (nul)
        memcpy(ret->path, p, (size_t)(nul - p) + 1);
    ret->portable = portable;
    ret->has_pdb = true;
    return CDACQ_OK;
}

static enum cdacq_status read_embedded(const struct pe *pe, const struct entry *entry, struct pe_debug *ret)
{
    const uint8_t *p;
    uint64_t offset;
    if (ret->embedded_size)
        return CDACQ_OK;
    if (entry->size <= EMBEDDED_HEADER_SIZE || entry->minor < EMBEDDED_MINOR)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = entry_data(pe, entry, EMBEDDED_HEADER_SIZE, &offset, &p);
    if (status != CDACQ_OK)
        return status;
    uint32_t size = entry->size - EMBEDDED_HEADER_SIZE, pdb_size = load_u32(p + 4, false);
    if (memcmp(p, "MPDB", 4) != 0 || !pdb_size || pdb_size > (uint64_t)size * DEFLATE_RATIO_MAX)
        return CDACQ_ERR_FORMAT;
    ret->embedded_offset = offset + EMBEDDED_HEADER_SIZE;
    ret->embedded_size = size;
    ret->embedded_pdb_size = pdb_size;
    return CDACQ_OK;
}

static enum cdacq_status read_checksum(const struct pe *pe, const struct entry *entry, struct pe_debug *ret)
{
    const uint8_t *p;
    uint64_t offset;
    struct pe_checksum checksum = {0};
    if (ret->checksum_count == PE_DEBUG_CHECKSUM_MAX || entry->size > sizeof checksum.algorithm + sizeof checksum.bytes)
        return CDACQ_OK;
    enum cdacq_status status = entry_data(pe, entry, entry->size, &offset, &p);
    if (status != CDACQ_OK)
        return status;
    size_t length = strnlen((const char *)p, entry->size);
    if (length >= MIN((size_t)entry->size, sizeof checksum.algorithm) ||
        entry->size - length - 1 > sizeof checksum.bytes)
        return CDACQ_OK;
    memcpy(checksum.algorithm, p, length);
    checksum.size = (uint8_t)(entry->size - length - 1);
    memcpy(checksum.bytes, p + length + 1, checksum.size);
    ret->checksums[ret->checksum_count++] = checksum;
    return CDACQ_OK;
}

enum cdacq_status pe_read_debug(const struct pe *pe, struct pe_debug *ret)
{
    const struct pe_range *directory = &pe->directories[DIRECTORY_DEBUG];
    uint32_t count = MIN(directory->size / ENTRY_SIZE, (uint32_t)ENTRY_CAP);
    struct pe_debug debug = {0};
    const uint8_t *p;
    uint64_t offset = 0;
    enum cdacq_status status =
        directory->rva && count ? pe_offset(pe, directory->rva, count * ENTRY_SIZE, &offset) : CDACQ_OK;
    for (uint32_t i = 0; i < count && directory->rva && status == CDACQ_OK; i++) {
        status = bytes_require(&pe->bytes, offset + i * ENTRY_SIZE, ENTRY_SIZE, &p);
        if (status != CDACQ_OK)
            break;
        struct entry entry = decode_entry(p);
        if (entry.type == ENTRY_CODEVIEW)
            status = read_codeview(pe, &entry, &debug);
        else if (entry.type == ENTRY_EMBEDDED_PDB)
            status = read_embedded(pe, &entry, &debug);
        else if (entry.type == ENTRY_PDB_CHECKSUM)
            status = read_checksum(pe, &entry, &debug);
        debug.embedded_refused |= entry.type == ENTRY_EMBEDDED_PDB && status == CDACQ_ERR_FORMAT;
        debug.incomplete |= status == CDACQ_ERR_MEMORY;
        if (status == CDACQ_ERR_FORMAT || status == CDACQ_ERR_MEMORY) /* one entry does not spoil the others */
            status = CDACQ_OK;
    }
    if (status == CDACQ_OK)
        *ret = debug;
    return status;
}

const char *pe_debug_pdb_name(const struct pe_debug *debug)
{
    const char *name = debug->path;
    for (const char *p = name; *p; p++)
        if (*p == '/' || *p == '\\')
            name = p + 1;
    return name;
}

void pe_debug_symbol_key(const struct pe_debug *debug, bool by_age, char ret[PE_DEBUG_KEY_SIZE])
{
    const uint8_t *id = debug->id;
    int length = snprintf(ret, PE_DEBUG_KEY_SIZE, "%08" PRIx32 "%04x%04x", load_u32(id, false), load_u16(id + 4, false),
                          load_u16(id + 6, false));
    text_hex(ret + length, id + 8, 8);
    if (debug->portable && !by_age)
        strcpy(ret + 32, "FFFFFFFF");
    else
        snprintf(ret + 32, PE_DEBUG_KEY_SIZE - 32, "%" PRIx32, debug->age);
}
