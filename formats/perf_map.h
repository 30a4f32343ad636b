/*
 * perf_map.h: reads and writes a perf map (/tmp/perf-PID.map). Each line is a symbol: start and size in hex, and a
 * name. Names point into the bytes of the caller; nothing is copied or allocated, and a line may have any length. The
 * reader accepts what runtimes write: 0x before either number, several blanks, blanks in names, size 0, CRLF, empty
 * lines, a last line without a line feed. A malformed line is reported by its number and does not affect others: .NET
 * 8, 9 and 10 overwrite the first 16 bytes of a line whose name is not ASCII.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of Linux.
 *
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_PERF_MAP_H
#define CDACQ_FORMATS_PERF_MAP_H

#include "util/base.h"

struct perf_map {
    const char *next, *end;
    uint64_t line; /* number of the last line read, from 1 */
    uint64_t bad_lines;
};

struct perf_map_symbol {
    uint64_t address, size;
    const char *name; /* not NUL-terminated, any bytes except line feeds; empty if there is none */
    size_t name_length;
};

enum perf_map_result {
    PERF_MAP_END,
    PERF_MAP_SYMBOL,
    PERF_MAP_BAD, /* the line map->line is malformed */
};

/* A reader over bytes that outlive it. */
void perf_map_open(const void *bytes, size_t size, struct perf_map *ret);

/* The next line that is not empty. With PERF_MAP_BAD, *ret_problem is the reason, a static string. */
enum perf_map_result perf_map_next(struct perf_map *map, struct perf_map_symbol *ret, const char **ret_problem);

/*
 * Writes the start of a line as the runtime does, "0x7f21c8a31b40 1a ", to `ret`, which has room for PERF_MAP_HEAD_MAX
 * bytes. Returns its length. The name, without line feeds, and a line feed must follow.
 */
enum { PERF_MAP_HEAD_MAX = 40 };
size_t perf_map_encode(uint64_t address, uint64_t size, char *ret);

#endif
