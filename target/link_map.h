/*
 * link_map.h: where a running process has loaded a library, from the list that its dynamic linker keeps for debuggers.
 * It takes a call of the system for each of some 20 libraries, while a .NET process has hundreds of mappings. The
 * process may have written anything there: an address that is found is only a place to look at.
 * Source: struct r_debug and struct link_map in <link.h>, the same in glibc and musl; elf(5), DT_DEBUG; getauxval(3).
 */
#ifndef CDACQ_TARGET_LINK_MAP_H
#define CDACQ_TARGET_LINK_MAP_H

#include "formats/elf.h"
#include "target/live_pages.h"

/* The program headers of the program, by which the list is found: AT_PHDR and AT_PHNUM. */
struct program_headers {
    struct elf_class elf;
    uint64_t address, count;
};

enum { LINK_MAP_FOUND_MAX = 8 };

/*
 * Stores the load addresses, in ascending order, of the libraries whose name `accepts`, up to LINK_MAP_FOUND_MAX.
 * Returns their number; 0 also if the list is damaged or is just being changed, if there are more of them, or unless
 * the process and this program both have 64 bits and the same byte order.
 */
size_t link_map_find(struct live_pages *pages, const struct program_headers *program, bool (*accepts)(const char *name),
                     uint64_t ret[LINK_MAP_FOUND_MAX]);

#endif
