#include "contracts/execution_manager/il_offsets.h"

/* Target memory from an address on, as a source of bytes. */
struct memory_source {
    struct reader *reader;
    uint64_t address;
    struct window copy; /* of bytes that are not in one span */
    uint64_t missing;   /* the end of what was last asked for in vain; 0: nothing was */
};

static const void *memory_window(void *context, uint64_t offset, size_t count)
{
    struct memory_source *source = context;
    uint64_t address = source->address + offset;
    const uint8_t *bytes = reader_try_view(source->reader, address, count);
    uint8_t last;
    if (bytes)
        return bytes;
    if (count == 1 || !reader_try_copy(source->reader, address + count - 1, &last, 1)) {
        source->missing = address + count - 1;
        return NULL;
    }
    window_deinit(&source->copy);
    return reader_window(source->reader, address, count, "debug info", &source->copy) ? source->copy.bytes : NULL;
}

/* The encoding changed with version 16 of images; a newer or unknown one has the runtime's own. */
static const struct debug_info_encoding *encoding_of_image(const struct r2r_image *image,
                                                           const struct debug_info_encoding *runtime)
{
    if (image->major_version == 16)
        return &debug_info_packed;
    return image->major_version && image->major_version < 16 ? &debug_info_nibbles : runtime;
}

bool block_il_map(const struct debug_info_encoding *encoding, struct reader *reader, const struct code_block *block,
                  struct il_map *ret)
{
    struct debug_info info;
    struct il_map map = {0};
    uint64_t address;
    bool has_flag_byte;
    if (block->image)
        encoding = encoding_of_image(block->image, encoding);
    if (!encoding)
        return reader_fail(reader, CDACQ_ERR_CONTRACT, block->start, "DebugInfo");
    if (!block->manager->debug_info(reader, block, &address, &has_flag_byte))
        return false;
    struct memory_source source = {.reader = reader, .address = address};
    struct bytes bytes = {.window = memory_window, .context = &source, .size = UINT64_MAX - address};
    if (address && !(debug_info_open(encoding, &bytes, has_flag_byte, &info) && debug_info_il_map(&info, &map)))
        reader_fail(reader, source.missing ? CDACQ_ERR_MEMORY : CDACQ_ERR_CORRUPT,
                    source.missing ? source.missing : address, "debug info");
    window_deinit(&source.copy);
    if (reader_failed(reader)) {
        il_map_deinit(&map);
        return false;
    }
    *ret = map;
    return true;
}
