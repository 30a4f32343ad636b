/* Strings and blobs. The source may lack parts of a heap. */
#include "formats/metadata_access.h"

enum {
    WINDOW_CAP = 256,   /* bytes asked for at once if a length is large or not known */
    STRING_WINDOW = 64, /* a guess that most strings fit into */
};

/*
 * At least one byte of [offset, offset + *count), and sets *count to the number: bytes after the last one needed may be
 * missing.
 */
static enum cdacq_status heap_window(const struct metadata *metadata, const struct metadata_heap *heap, uint32_t offset,
                                     size_t *count, const uint8_t **ret)
{
    if (offset >= heap->size)
        return CDACQ_ERR_FORMAT;
    size_t n = MIN(*count, (size_t)(heap->size - offset));
    enum cdacq_status status = bytes_require(&metadata->bytes, heap->offset + offset, n, ret);
    while (status == CDACQ_ERR_MEMORY && n > 1) {
        n /= 2;
        status = bytes_require(&metadata->bytes, heap->offset + offset, n, ret);
    }
    *count = n;
    return status;
}

/* A string that does not end in its first window. */
static enum cdacq_status read_long_string(const struct metadata *metadata, uint32_t index, char *buffer,
                                          size_t *ret_length)
{
    for (size_t length = 0; length < METADATA_STRING_CAP;) {
        size_t count = MIN((size_t)WINDOW_CAP, METADATA_STRING_CAP - length);
        const uint8_t *p;
        enum cdacq_status status = heap_window(metadata, &metadata->strings, index + (uint32_t)length, &count, &p);
        if (status != CDACQ_OK)
            return status;
        const uint8_t *nul = memchr(p, '\0', count);
        size_t n = nul ? (size_t)(nul - p) : count;
        memcpy(buffer + length, p, n);
        length += n;
        if (nul) {
            *ret_length = length;
            return CDACQ_OK;
        }
    }
    return CDACQ_ERR_FORMAT;
}

enum cdacq_status metadata_string(const struct metadata *metadata, uint32_t index, char buffer[METADATA_STRING_CAP],
                                  const char **ret, size_t *ret_length)
{
    size_t count = STRING_WINDOW, length = 0;
    const uint8_t *p;
    if (index == 0) { /* the empty string, even without a heap */
        *ret = "";
        *ret_length = 0;
        return CDACQ_OK;
    }
    enum cdacq_status status = heap_window(metadata, &metadata->strings, index, &count, &p);
    if (status != CDACQ_OK)
        return status;
    const uint8_t *nul = memchr(p, '\0', count);
    if (nul) {
        *ret = (const char *)p;
        *ret_length = (size_t)(nul - p);
        return CDACQ_OK;
    }
    status = read_long_string(metadata, index, buffer, &length);
    if (status == CDACQ_OK) {
        *ret = buffer;
        *ret_length = length;
    }
    return status;
}

enum cdacq_status metadata_string_equals(const struct metadata *metadata, uint32_t index, const char *string,
                                         size_t length, bool *ret)
{
    char buffer[METADATA_STRING_CAP];
    const char *found;
    size_t found_length;
    enum cdacq_status status = metadata_string(metadata, index, buffer, &found, &found_length);
    if (status == CDACQ_OK)
        *ret = found_length == length && memcmp(found, string, length) == 0;
    return status;
}

/* The compressed length at `index` of #Blob (II.24.2.4); *ret_offset is where the bytes begin. */
static enum cdacq_status read_blob_length(const struct metadata *metadata, uint32_t index, uint32_t *ret_offset,
                                          uint32_t *ret_length)
{
    size_t count = 4;
    const uint8_t *p;
    enum cdacq_status status = heap_window(metadata, &metadata->blobs, index, &count, &p);
    if (status != CDACQ_OK)
        return status;
    size_t width = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 2 : p[0] < 0xe0 ? 4 : 0;
    if (!width || width > metadata->blobs.size - index)
        return CDACQ_ERR_FORMAT;
    if (width > count)
        return CDACQ_ERR_MEMORY;
    *ret_length = width == 1   ? p[0]
                  : width == 2 ? (p[0] & 0x3fu) << 8 | p[1]
                               : (p[0] & 0x1fu) << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    *ret_offset = index + (uint32_t)width;
    return CDACQ_OK;
}

static enum cdacq_status copy_blob(const struct metadata *metadata, uint64_t offset, size_t length, uint8_t *to)
{
    for (size_t done = 0; done < length;) {
        size_t count = MIN((size_t)WINDOW_CAP, length - done);
        const uint8_t *p;
        enum cdacq_status status = bytes_require(&metadata->bytes, offset + done, count, &p);
        if (status != CDACQ_OK)
            return status;
        memcpy(to + done, p, count);
        done += count;
    }
    return CDACQ_OK;
}

enum cdacq_status metadata_blob_extent(const struct metadata *metadata, uint32_t index, uint64_t *ret_offset,
                                       uint32_t *ret_length)
{
    uint32_t offset = 0, length = 0;
    enum cdacq_status status = index ? read_blob_length(metadata, index, &offset, &length) : CDACQ_OK;
    if (status != CDACQ_OK)
        return status;
    if (!range_fits(offset, length, MAX(metadata->blobs.size, offset)))
        return CDACQ_ERR_FORMAT;
    *ret_offset = metadata->blobs.offset + offset;
    *ret_length = length;
    return CDACQ_OK;
}

enum cdacq_status metadata_blob_read(const struct metadata *metadata, uint32_t index, struct metadata_blob *ret)
{
    CLEANUP_FREE uint8_t *allocated = NULL;
    uint64_t offset;
    uint32_t length;
    enum cdacq_status status = metadata_blob_extent(metadata, index, &offset, &length);
    if (status != CDACQ_OK)
        return status;
    if (length > METADATA_BLOB_CAP)
        return CDACQ_ERR_FORMAT;
    if (length > sizeof ret->small) {
        allocated = malloc(length);
        if (!allocated)
            return CDACQ_ERR_NOMEM;
    }
    uint8_t *data = allocated ? allocated : ret->small;
    status = copy_blob(metadata, offset, length, data);
    if (status != CDACQ_OK)
        return status;
    ret->data = data;
    ret->length = length;
    ret->allocated = take_ptr(allocated);
    return CDACQ_OK;
}

void metadata_blob_deinit(struct metadata_blob *blob)
{
    if (!blob)
        return;
    free(blob->allocated);
    blob->allocated = NULL;
}

enum cdacq_status metadata_guid(const struct metadata *metadata, uint32_t index, uint8_t ret[16])
{
    const uint8_t *p;
    uint64_t offset = ((uint64_t)index - 1) * 16; /* 0, none, lands far outside */
    if (!range_fits(offset, 16, metadata->guids.size))
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = bytes_require(&metadata->bytes, metadata->guids.offset + offset, 16, &p);
    if (status == CDACQ_OK)
        memcpy(ret, p, 16);
    return status;
}
