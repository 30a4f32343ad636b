#include "contracts/ready_to_run/native_format.h"

enum { BLOCK_SIZE = 16 };

/* [offset, offset + size), which must lie within the section and fit `buffer`. NULL if it cannot be read. */
static const uint8_t *bytes_at(const struct native_section *section, uint64_t offset, size_t size, uint8_t *buffer)
{
    if (LIKELY(section->bytes != NULL))
        return section->bytes + offset;
    return reader_copy(section->reader, section->address + offset, buffer, size) ? buffer : NULL;
}

/* The number of trailing one bits of the first byte is that of the bytes after it; if it is 4, they are the value. */
static bool native_integer(const struct native_section *section, uint32_t *offset, bool is_signed, uint32_t *ret)
{
    enum { LENGTH_MAX = 5 };
    uint8_t buffer[LENGTH_MAX] = {0};
    if (*offset >= section->size)
        return false;
    uint64_t left = section->size - *offset;
    const uint8_t *p = bytes_at(section, *offset, MIN((uint64_t)LENGTH_MAX, left), buffer);
    if (!p)
        return false;
    unsigned length = (unsigned)__builtin_ctz(~(unsigned)p[0]) + 1;
    if (UNLIKELY(length > LENGTH_MAX || length > left))
        return false;
    if (UNLIKELY(left < LENGTH_MAX) && p != buffer)
        p = memcpy(buffer, p, left);
    if (length == LENGTH_MAX) {
        *ret = load_u32(p + 1, false);
    } else { /* the value is the highest bits of `length` bytes: all but the lowest `length` */
        uint32_t high = load_u32(p, false) << (32 - 8 * length);
        *ret = is_signed ? (uint32_t)((int32_t)high >> (32 - 7 * length)) : high >> (32 - 7 * length);
    }
    *offset += length;
    return true;
}

bool native_unsigned(const struct native_section *section, uint32_t *offset, uint32_t *ret)
{
    return native_integer(section, offset, false, ret);
}

bool native_signed(const struct native_section *section, uint32_t *offset, int32_t *ret)
{
    uint32_t value;
    if (!native_integer(section, offset, true, &value))
        return false;
    *ret = (int32_t)value;
    return true;
}

/* An entry of a block or bucket index; widths are 1, 2 and 4 bytes. */
static bool index_entry(const struct native_section *section, uint32_t base, uint8_t index_size, uint64_t i,
                        uint32_t *ret)
{
    uint8_t buffer[4];
    uint64_t at = base + (i << index_size);
    if (!range_fits(at, UINT64_C(1) << index_size, section->size))
        return false;
    const uint8_t *p = bytes_at(section, at, (size_t)1 << index_size, buffer);
    if (!p)
        return false;
    *ret = index_size == 0 ? p[0] : index_size == 1 ? load_u16(p, false) : load_u32(p, false);
    return true;
}

bool native_array_open(struct native_section section, struct native_array *ret)
{
    uint32_t offset = 0, header;
    if (!native_unsigned(&section, &offset, &header) || (header & 3) == 3)
        return false;
    *ret = (struct native_array){section, offset, header >> 2, (uint8_t)(header & 3)};
    return true;
}

bool native_array_at(const struct native_array *array, uint32_t index, uint32_t *ret_offset)
{
    uint32_t relative, node;
    if (index >= array->count ||
        !index_entry(&array->section, array->base, array->index_size, index / BLOCK_SIZE, &relative) ||
        __builtin_add_overflow(array->base, relative, &relative))
        return false;
    uint32_t offset = relative;
    /* A binary tree over the low bits: bit 0 of a node means a left child, which follows it; bit 1 a right one. */
    for (uint32_t bit = BLOCK_SIZE / 2; bit; bit >>= 1) {
        uint32_t after = offset;
        if (!native_unsigned(&array->section, &after, &node))
            return false;
        if (index & bit) {
            if (node & 2) {
                if (__builtin_add_overflow(offset, node >> 2, &offset))
                    return false;
                continue;
            }
        } else if (node & 1) {
            offset = after;
            continue;
        }
        /* No child that way: the node may be the only element of its subtree; then it holds that element's index. */
        if ((node & 3) != 0 || node >> 2 != (index & (BLOCK_SIZE - 1)))
            return false;
        offset = after;
        break;
    }
    if (offset >= array->section.size)
        return false;
    *ret_offset = offset;
    return true;
}

bool native_hashtable_open(struct native_section section, struct native_hashtable *ret)
{
    uint8_t buffer;
    const uint8_t *p = section.size ? bytes_at(&section, 0, 1, &buffer) : NULL;
    if (!p)
        return false;
    uint8_t header = *p;
    if ((header & 3) == 3 || header >> 2 > 24)
        return false;
    *ret = (struct native_hashtable){section, 1, UINT32_C(1) << (header >> 2), header & 3};
    return true;
}

bool native_hashtable_each(const struct native_hashtable *table, bool (*visit)(uint32_t offset, void *context),
                           void *context)
{
    const struct native_section *section = &table->section;
    bool complete = true;
    uint32_t visited = 0;
    for (uint64_t bucket = 0; bucket < table->bucket_count; bucket++) {
        uint32_t offset, end;
        if (!index_entry(section, table->base, table->index_size, bucket, &offset) ||
            !index_entry(section, table->base, table->index_size, bucket + 1, &end))
            return false;
        if (__builtin_add_overflow(offset, table->base, &offset) || __builtin_add_overflow(end, table->base, &end) ||
            end > section->size) {
            complete = false;
            continue;
        }
        while (offset < end) {
            offset++; /* the low byte of the hash */
            uint32_t from = offset, element;
            int32_t delta;
            if (!native_signed(section, &offset, &delta) ||
                __builtin_add_overflow((int64_t)from, (int64_t)delta, &element) || element >= section->size) {
                complete = false;
                break;
            }
            /* Buckets that overlap could repeat entries without end. */
            if (++visited > section->size)
                return false;
            if (!visit(element, context))
                return complete;
        }
    }
    return complete;
}
