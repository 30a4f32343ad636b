/*
 * exception_heap.h: a few exceptions in a small memory, laid out as .NET 8 for x64 does, for tests and fuzzing. Bytes
 * may be overwritten before they are read.
 */
#ifndef CDACQ_TESTS_SUPPORT_EXCEPTION_HEAP_H
#define CDACQ_TESTS_SUPPORT_EXCEPTION_HEAP_H

#include "contracts/module_cache.h"
#include "contracts/objects/exception_text.h"

enum { HEAP_BASE = 0x10000, HEAP_SIZE = 0x8000 };

/* Methods whose MethodDescs tests use. */
enum exception_heap_method {
    HEAP_METHOD_HIDDEN = 4,
    HEAP_METHOD_CALL_ENTRY_POINT = 6, /* of System.Environment */
    HEAP_METHOD_AWAIT,                /* of the same type; MethodImplAttributes.Async */
};

struct exception_heap {
    uint8_t bytes[HEAP_SIZE];
    uint64_t end;           /* the next free address */
    bool endless;           /* zeros follow the memory, up to the end of the address space */
    uint64_t objects_begin; /* what precedes it are types and metadata */
    struct layout layout;
    struct target *target;
    struct reader reader;
    struct module_cache cache;

    uint64_t module;
    uint64_t method_descs; /* of the methods from 1 on, 8 bytes each */
    uint64_t loader_table; /* of ReflectionTypeLoadException, which has its list at offset 128; no object is one */
    uint64_t string_table, bytes_table, references_table, exception_table; /* MethodTables */
    uint64_t bad, argument, aggregate;                                     /* exceptions, each within the next */
    uint64_t frames;                                                       /* of `argument`: the array of bytes */
    /* A Thread that throws `aggregate` in the handling of an exception without an object, in the handling of `bad`. */
    uint64_t thread, infos[3];
    uint64_t list; /* of `aggregate`: the array of exceptions */
    /* Exceptions as .NET 11 has them. Their strings, null, are at offset 128, 136 and 144; `chain` is a string. */
    uint64_t file_table, file, directory, chain;
    /*
     * SR.s_usingResourceKeys, a byte that is 0. AppContext.s_dataStore, which is a dictionary; its value at
     * `switch_value` is `on` or, at first, another string.
     */
    uint64_t keys_answer, properties, switch_value, on;
    uint64_t generic_list; /* a List<T> of the first element of `list`; its _size is at offset 16 */
};

/* What exception_text_write() gives for `aggregate`, and in a process without texts. It has the flaw OVERRIDDEN. */
extern const char exception_heap_text[], exception_heap_text_of_keys[];

void exception_heap_init(struct exception_heap *heap);
void exception_heap_deinit(struct exception_heap *heap);

/* Writes a word, or a field of a structure. */
void exception_heap_put(struct exception_heap *heap, uint64_t address, uint64_t value, unsigned width);
void exception_heap_set(struct exception_heap *heap, uint64_t base, enum layout_field field, uint64_t value);

#endif
