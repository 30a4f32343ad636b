/*
 * native_format.c: a writer of the compressed tables of ReadyToRun images. They are little-endian by definition.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; src/coreclr/vm/nativeformatreader.h, inverted.
 */
#include "mocktarget/mock.h"
#include "util/vector.h"

enum { BLOCK = 16, NO_SUCH_ELEMENT = 16 << 2 /* a leaf with an index that no element of a block has */ };

void mock_bytes_put(struct mock_bytes *bytes, const void *data, size_t size)
{
    if (bytes->size + size > bytes->capacity) {
        uint8_t *grown = vector_grow(bytes->data, &bytes->capacity, bytes->size + size, 1);
        if (!grown) {
            bytes->failed = true;
            return;
        }
        bytes->data = grown;
    }
    if (size)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

/* Writes the `size` low bytes of `value`. */
static void put_low(struct mock_bytes *bytes, uint32_t value, size_t size)
{
    uint8_t low[4];
    store_u32(low, value, false);
    mock_bytes_put(bytes, low, size);
}

/* Writes the value in `size` bytes. The low bits of the first byte give the size: 0, 01, 011, 0111. */
static void put_prefixed(struct mock_bytes *bytes, uint32_t value, unsigned size)
{
    put_low(bytes, value << size | ((1u << (size - 1)) - 1), size);
}

static void put_long(struct mock_bytes *bytes, uint32_t value)
{
    mock_bytes_put(bytes, "\x0f", 1);
    put_low(bytes, value, 4);
}

void mock_native_unsigned(struct mock_bytes *bytes, uint32_t value)
{
    for (unsigned size = 1; size <= 4; size++)
        if (value < UINT32_C(1) << (7 * size)) {
            put_prefixed(bytes, value, size);
            return;
        }
    put_long(bytes, value);
}

void mock_native_signed(struct mock_bytes *bytes, int32_t value)
{
    for (unsigned size = 1; size <= 4; size++) {
        int64_t limit = INT64_C(1) << (7 * size - 1);
        if (value >= -limit && value < limit) {
            put_prefixed(bytes, (uint32_t)value, size);
            return;
        }
    }
    put_long(bytes, (uint32_t)value);
}

static void append(struct mock_bytes *bytes, struct mock_bytes *part)
{
    mock_bytes_put(bytes, part->data, part->size);
    bytes->failed |= part->failed;
    free(part->data);
    *part = (struct mock_bytes){0};
}

/* Writes the elements [low, low + 2 * bit) of a block as a tree; with `bit` 0 the element itself. */
static void put_tree(struct mock_bytes *bytes, const struct mock_element *block, unsigned low, unsigned bit)
{
    unsigned count = bit ? 2 * bit : 1, present = 0, last = 0;
    for (unsigned i = low; i < low + count; i++)
        if (block[i].data) {
            present++;
            last = i;
        }
    if (!bit || present == 1) {
        if (bit)
            mock_native_unsigned(bytes, last << 2);
        mock_bytes_put(bytes, block[last].data, block[last].size);
        return;
    }
    struct mock_bytes left = {0}, right = {0}, node = {0};
    bool has_left = false, has_right = false;
    for (unsigned i = 0; i < bit; i++) {
        has_left |= block[low + i].data != NULL;
        has_right |= block[low + bit + i].data != NULL;
    }
    if (has_left)
        put_tree(&left, block, low, bit / 2);
    if (has_right)
        put_tree(&right, block, low + bit, bit / 2);
    /* The node holds the distance to the right child, which depends on the node's own length. */
    size_t length;
    do {
        length = node.size;
        node.size = 0;
        uint32_t distance = has_right ? (uint32_t)(length + left.size) : 0;
        mock_native_unsigned(&node, distance << 2 | (has_right ? 2 : 0) | (has_left ? 1 : 0));
    } while (node.size != length);
    append(bytes, &node);
    append(bytes, &left);
    append(bytes, &right);
}

/* Returns the offset of each block from the first one. The caller frees the array. */
static uint32_t *put_blocks(struct mock_bytes *body, const struct mock_element *elements, size_t count)
{
    size_t block_count = (count + BLOCK - 1) / BLOCK;
    uint32_t *offsets = calloc(block_count + 1, sizeof *offsets);
    for (size_t i = 0; offsets && i < block_count; i++) {
        struct mock_element block[BLOCK] = {0};
        bool empty = true;
        for (size_t j = 0; j < BLOCK && i * BLOCK + j < count; j++) {
            block[j] = elements[i * BLOCK + j];
            empty &= !block[j].data;
        }
        offsets[i] = (uint32_t)body->size;
        if (empty)
            mock_native_unsigned(body, NO_SUCH_ELEMENT);
        else
            put_tree(body, block, 0, BLOCK / 2);
    }
    body->failed |= !offsets;
    return offsets;
}

void mock_native_array(struct mock_bytes *bytes, const struct mock_element *elements, size_t count, unsigned index_size)
{
    struct mock_bytes body = {0};
    size_t block_count = (count + BLOCK - 1) / BLOCK;
    uint32_t *offsets = put_blocks(&body, elements, count);
    if (index_size == 3)
        for (index_size = 0; index_size < 2; index_size++)
            if ((block_count << index_size) + body.size <= UINT64_C(1) << (8 << index_size))
                break;
    mock_native_unsigned(bytes, (uint32_t)(count << 2 | index_size));
    for (size_t i = 0; offsets && i < block_count; i++)
        put_low(bytes, (uint32_t)(block_count << index_size) + offsets[i], 1u << index_size);
    append(bytes, &body);
    free(offsets);
}

/* The entries of one bucket, ordered by the low byte of their hashes. Each holds the distance to its element. */
static void put_bucket(struct mock_bytes *bytes, const struct mock_element *elements, const uint32_t *places,
                       size_t count, uint32_t bucket, uint32_t bucket_count)
{
    for (unsigned low = 0; low < 256; low++)
        for (size_t i = 0; i < count; i++)
            if ((elements[i].hash & 255) == low && (elements[i].hash >> 8) % bucket_count == bucket) {
                put_low(bytes, low, 1);
                mock_native_signed(bytes, (int32_t)places[i] - (int32_t)bytes->size);
            }
}

void mock_native_hashtable(struct mock_bytes *bytes, const struct mock_element *elements, size_t count,
                           unsigned bucket_bits, unsigned index_size)
{
    uint32_t bucket_count = UINT32_C(1) << bucket_bits;
    CLEANUP_FREE uint32_t *places = calloc(count + 1, sizeof *places);
    CLEANUP_FREE uint32_t *starts = calloc(bucket_count + 1, sizeof *starts);
    if (!places || !starts) {
        bytes->failed = true;
        return;
    }
    /* Header, index, elements, entries. The least index width is known only at the end. */
    struct mock_bytes table = {0};
    for (unsigned width = index_size == 3 ? 0 : index_size;; width++) {
        table.size = 0;
        put_low(&table, bucket_bits << 2 | width, 1);
        for (uint32_t i = 0; i <= bucket_count; i++)
            put_low(&table, 0, 1u << width);
        for (size_t i = 0; i < count; i++) {
            places[i] = (uint32_t)table.size;
            mock_bytes_put(&table, elements[i].data, elements[i].size);
        }
        for (uint32_t bucket = 0; bucket <= bucket_count; bucket++) {
            starts[bucket] = (uint32_t)table.size - 1; /* counted from the byte after the header */
            if (bucket < bucket_count)
                put_bucket(&table, elements, places, count, bucket, bucket_count);
        }
        if (table.failed || width == 2 || starts[bucket_count] < UINT32_C(1) << (8 << width)) {
            index_size = width;
            break;
        }
    }
    for (uint32_t i = 0; i <= bucket_count && !table.failed; i++)
        for (unsigned byte = 0; byte < 1u << index_size; byte++)
            table.data[1 + (i << index_size) + byte] = (uint8_t)(starts[i] >> (8 * byte));
    append(bytes, &table);
}
