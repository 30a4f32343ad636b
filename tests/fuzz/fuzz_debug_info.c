/*
 * fuzz_debug_info.c: a byte that chooses the encoding and whether a flag byte comes first, then any bytes as the debug
 * info of a method. Bounds come by ascending native offset, every native offset gets an IL offset, and no variable ends
 * before it begins or has a place of no kind.
 */
#include "formats/debug_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool check(const struct debug_info_bound *bound, void *context)
{
    uint32_t *last = context;
    if (bound->native_offset < *last || bound->source > 7)
        abort();
    *last = bound->native_offset;
    return true;
}

static bool check_variable(const struct debug_info_variable *variable, void *context)
{
    size_t *left = context;
    if (variable->end < variable->begin || (unsigned)variable->place >= DEBUG_INFO_PLACE_COUNT || !(*left)--)
        abort();
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct debug_info_encoding *const encodings[] = {&debug_info_nibbles, &debug_info_packed,
                                                                  &debug_info_chunked, &debug_info_packed};
    static const uint32_t asked[] = {0, 1, 100, 10000, UINT32_MAX};
    struct debug_info info;
    if (!size)
        return 0;
    struct bytes bytes = bytes_of_buffer(data + 1, size - 1);
    if (!debug_info_open(encodings[data[0] & 3], &bytes, data[0] & 4, &info))
        return 0;
    uint32_t last = 0;
    struct il_map map = {0};
    bool whole = debug_info_each(&info, check, &last);
    if (debug_info_il_map(&info, &map) != whole)
        abort();
    for (size_t i = 0; i < ARRAY_SIZE(asked) && map.count; i++)
        if ((int32_t)il_map_find(map.items, map.count, asked[i]) < 0)
            abort();
    il_map_deinit(&map);
    size_t left = size; /* each takes more than a byte */
    (void)debug_info_variables(&info, check_variable, &left);
    return 0;
}
