/*
 * fuzz_perf_map.c: any bytes as a perf map. Results are within the bytes and in order, and every line is empty, a
 * symbol, or reported as bad.
 */
#include "formats/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perf_map map;
    struct perf_map_symbol symbol;
    const char *problem = NULL, *last = (const char *)data;
    enum perf_map_result result;
    uint64_t line = 0, lines = 0, bad = 0;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || i + 1 == size;
    perf_map_open(data, size, &map);
    while ((result = perf_map_next(&map, &symbol, &problem)) != PERF_MAP_END) {
        if (map.line <= line || map.line > lines)
            abort();
        line = map.line;
        if (result == PERF_MAP_BAD) {
            bad++;
            sink += strlen(problem);
            continue;
        }
        if (symbol.name < last || symbol.name_length > (size_t)((const char *)data + size - symbol.name) ||
            memchr(symbol.name, '\n', symbol.name_length) ||
            (symbol.size && symbol.size - 1 > UINT64_MAX - symbol.address))
            abort();
        last = symbol.name + symbol.name_length;
    }
    if (map.bad_lines != bad)
        abort();
    return 0;
}
