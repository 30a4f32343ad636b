/*
 * unwind_support.h: a mock process of one architecture with an empty RUNTIME_FUNCTION table and room for unwind data
 * and GC info, which the tests write byte by byte from the architecture's own manuals.
 */
#ifndef CDACQ_TESTS_SUPPORT_UNWIND_SUPPORT_H
#define CDACQ_TESTS_SUPPORT_UNWIND_SUPPORT_H

#include "tests/support/mock_support.h"

enum { UNWIND_ENTRIES = 64, UNWIND_ROOM = 0x80000 };

struct unwind_fixture {
    struct mock *mock;
    struct cdacq_target *target;
    struct reader reader;
    struct layout layout; /* of the reader: tests may change it */
    uint64_t base;        /* of addresses in the table, and of the room */
    uint64_t functions;
    uint32_t entry_size;
};

/* The index of a loop test over all architectures; with names for the mock. */
enum { FIRST_ARCHITECTURE = ARCHITECTURE_X86, END_ARCHITECTURE = ARCHITECTURE_COUNT };

/* `seed` shuffles the layout of the table's entries. */
void unwind_fixture_setup(struct unwind_fixture *f, int architecture, uint64_t seed);
void unwind_fixture_teardown(struct unwind_fixture *f);

/* Writes entry `i`, and what an end address says of `length` where entries have one. */
void unwind_fixture_entry(struct unwind_fixture *f, uint32_t i, uint32_t begin, uint32_t length, uint32_t unwind_data);

/* A 32-bit number at `base` + `offset`. */
void unwind_fixture_word(struct unwind_fixture *f, uint32_t offset, uint32_t value);

#endif
