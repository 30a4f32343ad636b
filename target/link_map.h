/*
 * link_map.h: where a process has loaded its libraries, from the list that its dynamic linker keeps for debuggers. Of a
 * running process, it takes a call of the system for each of some 20 libraries, while a .NET process has hundreds of
 * mappings; of a core without NT_FILE, nothing else says it. The process may have written anything there: an address
 * that is found is only a place to look at.
 * Source: struct r_debug and struct link_map in <link.h>, the same in glibc and musl; elf(5), DT_DEBUG; getauxval(3).
 */
#ifndef CDACQ_TARGET_LINK_MAP_H
#define CDACQ_TARGET_LINK_MAP_H

#include "formats/elf.h"

/* The memory of the process. */
struct link_map_memory {
    size_t (*peek)(void *context, uint64_t address, void *buffer, size_t size); /* how many bytes were copied */
    void *context;
};

/* The program headers of the program, by which the list is found: AT_PHDR and AT_PHNUM. */
struct program_headers {
    struct elf_class elf;
    uint64_t address, count;
};

enum { LINK_MAP_SEGMENTS_MAX = 64, LINK_MAP_FOUND_MAX = 8 };

/* Reads up to LINK_MAP_SEGMENTS_MAX program headers. Returns their number; 0 if they cannot be read. */
size_t link_map_segments(const struct link_map_memory *memory, const struct program_headers *program,
                         struct elf_segment ret[LINK_MAP_SEGMENTS_MAX]);

/*
 * Calls `visit` for the program, whose name is empty, and the libraries until it returns false. `bias` is the address
 * of vaddr 0. A name that is too long is empty, too. Returns false if the list is not known, damaged or just being
 * changed; then it may end too early.
 */
bool link_map_visit(const struct link_map_memory *memory, const struct program_headers *program,
                    bool (*visit)(uint64_t bias, const char *name, void *context), void *context);

/*
 * Stores the load addresses, in ascending order, of the libraries whose name `accepts`, up to LINK_MAP_FOUND_MAX.
 * Returns their number; 0 also if link_map_visit() returns false, or if there are more of them.
 */
size_t link_map_find(const struct link_map_memory *memory, const struct program_headers *program,
                     bool (*accepts)(const char *name), uint64_t ret[LINK_MAP_FOUND_MAX]);

#endif
