/*
 * core_memory.h: makes the memory of this process what an ELF core says, of either class and byte order: same bytes at
 * the same addresses, files mapped where NT_FILE has them. Memory comes in pages: what shares one with dumped bytes is
 * there too, and is zero.
 */
#ifndef CDACQ_TESTS_CARRIER_CORE_MEMORY_H
#define CDACQ_TESTS_CARRIER_CORE_MEMORY_H

#include "util/base.h"

enum {
    CORE_RANGE_MAX = 8192,
    CORE_ADDRESS_TAKEN = 3, /* the exit code if an address is taken, which the next run's layout may not have */
};

/* What is mapped. */
extern struct core_range {
    uint64_t begin, end;
    const char *path; /* of the mapped file, or NULL */
    bool is_code;     /* a PT_LOAD that is executable begins in it */
} core_ranges[CORE_RANGE_MAX];
extern size_t core_range_count;

/*
 * The files are made below `directory`, which exists; with NULL, in memory (memfd). Ends the process, with a message,
 * if that fails.
 */
void core_memory_load(const char *path, const char *directory);

/* Makes the mappings of code in files executable, as the core has them; without it, none is. */
void core_memory_make_executable(void);

#endif
