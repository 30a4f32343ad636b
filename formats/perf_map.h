/*
 * perf_map.h: reads and writes a perf map (/tmp/perf-PID.map), one symbol a line: start, size and name, the numbers in
 * hex. Bytes in, lines out: names lead into the bytes that were handed in, nothing is copied or allocated, a line may
 * be of any length. It takes what runtimes write: 0x before either number, more than one blank, blanks in names, size
 * 0, CRLF, empty lines, a last line without its end. A line that makes no sense is told with its number and takes no
 * other with it.
 *
 * Such lines are real: .NET 8, 9 and 10 write 16 bytes of something else over the start of a line whose name is not
 * ASCII.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of Linux.
 *
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_PERF_MAP_H
#define CDACQ_FORMATS_PERF_MAP_H

#include "util/base.h"

/* Where a reader stands. */
struct perf_map {
    const char *next, *end;
    uint64_t line; /* number of the line that was read last, from 1 */
    uint64_t bad_lines;
};

struct perf_map_symbol {
    uint64_t address, size;
    const char *name; /* not NUL-terminated, any bytes but line feeds; empty where there is none */
    size_t name_length;
};

enum perf_map_result {
    PERF_MAP_END,
    PERF_MAP_SYMBOL,
    PERF_MAP_BAD, /* a line, map->line, that is none */
};

/* A reader over bytes that outlive it. */
void perf_map_open(const void *bytes, size_t size, struct perf_map *ret);

/* The next line that is not empty. With PERF_MAP_BAD, *ret_problem says why it is none: a static string. */
enum perf_map_result perf_map_next(struct perf_map *map, struct perf_map_symbol *ret, const char **ret_problem);

/*
 * The start of a line, as the runtime writes it: "0x7f21c8a31b40 1a ", at `ret`, which has room for PERF_MAP_HEAD_MAX
 * bytes. Returns its length. The name, which must have no line feed, and a line feed are to follow.
 */
enum { PERF_MAP_HEAD_MAX = 40 };
size_t perf_map_encode(uint64_t address, uint64_t size, char *ret);

#endif
