/*
 * added_code.h: a process whose module has a method and a type that its image lacks: the module's metadata is in
 * pieces, as the runtime keeps it after an edit, and the method's IL is a version that an edit has made.
 */
#ifndef CDACQ_TESTS_SUPPORT_ADDED_CODE_H
#define CDACQ_TESTS_SUPPORT_ADDED_CODE_H

#include "formats/metadata.h"
#include "mocktarget/mocktarget.h"

enum { ADDED_CODE_METHOD = 2 }; /* the row of the added method */

/* Names: Ns.First.Old() and, only in the pieces, Ns.Added<T>.New(T). */
struct added_code {
    struct mock *mock;
    uint64_t module, assembly;
    uint64_t import, store;        /* MDInternalRW, CMiniMdRW */
    uint64_t begin, end;           /* of these and the pieces */
    uint64_t old_code, added_code; /* addresses of the two methods */
};

/* `wide`: every index has four bytes, as after an edit; otherwise they are as narrow as they can be. */
struct added_code added_code_make(struct mock *mock, bool wide);

/* The pool of a table, which has its first piece. */
uint64_t added_code_table(const struct added_code *added, enum metadata_table table);

/* Where the store has the number of its rows. */
uint64_t added_code_row_count(const struct added_code *added, enum metadata_table table);

#endif
