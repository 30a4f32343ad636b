/*
 * mock_heap.h: a heap of six objects, for tests that include the .c files of the commands: the calls of the library
 * that read it are replaced. Included once, before those files.
 */
#ifndef CDACQ_TESTS_CLI_MOCK_HEAP_H
#define CDACQ_TESTS_CLI_MOCK_HEAP_H

#include <stdio.h>
#include <string.h>

#include "cdacq.h"
#include "src/cli/base/target.h"

enum {
    BEGIN = 0x1000,
    NODE = BEGIN,
    ARRAY = BEGIN + 0x20,
    ENTRIES = BEGIN + 0x48,
    TEXT = BEGIN + 0x80,
    LOST = BEGIN + 0xa0,
    LOST_TOO = BEGIN + 0xc0,
    END = BEGIN + 0xe0,
};

/* The types, whose MethodTables have the numbers. */
enum { NODES = 0xa000, ARRAYS = 0xb000, ENTRY_ARRAYS = 0xc000, TEXTS = 0xd000, UNNAMED = 0xe000 };

static const struct cdacq_heap_object objects[] = {
    {.address = NODE, .method_table = NODES, .byte_size = 32},
    {.address = ARRAY, .method_table = ARRAYS, .byte_size = 40},
    {.address = ENTRIES, .method_table = ENTRY_ARRAYS, .byte_size = 56},
    {.address = TEXT, .method_table = TEXTS, .byte_size = 26}, /* without its padding */
    {.address = LOST, .method_table = UNNAMED, .byte_size = 32},
    {.address = LOST_TOO, .method_table = UNNAMED, .byte_size = 32},
};

static const struct {
    uint64_t object, offset, target;
    const char *name;
} references[] = {
    {NODE, 0, TEXT, "LoaderAllocator of the type"},
    {NODE, 8, ARRAY, "_items"},
    {NODE, 16, 0x5000, "not of the heap"},
    {ARRAY, 16, NODE, "[0]"},
    {ARRAY, 24, NODE, "[1]"},
    {ENTRIES, 0, TEXT, "LoaderAllocator of the type"}, /* not the first field of an element */
    {ENTRIES, 16 + 16, TEXT, "[1].key"},
    {ENTRIES, 16 + 16 + 8, ARRAY, "[1].va\"lue"},
    {LOST, 8, LOST_TOO, NULL},
    {LOST_TOO, 8, LOST, NULL},
};

static enum cdacq_status give_heap(struct cdacq_session *session, const struct cdacq_heap_visitor *visitor,
                                   struct cdacq_heap_info *info, struct cdacq_error *err)
{
    (void)session, (void)info, (void)err;
    if (visitor->segment)
        visitor->segment(&(struct cdacq_heap_segment){.begin = BEGIN, .end = END}, visitor->context);
    for (size_t i = 0; visitor->object && i < sizeof objects / sizeof *objects; i++)
        visitor->object(&objects[i], visitor->context);
    for (size_t i = 0; visitor->reference && i < sizeof references / sizeof *references; i++)
        visitor->reference(references[i].object, references[i].offset, references[i].target, visitor->context);
    return CDACQ_OK;
}

static enum cdacq_status give_roots(struct cdacq_session *session, const struct cdacq_roots_visitor *visitor,
                                    struct cdacq_error *err)
{
    static const struct cdacq_heap_root roots[] = {
        {.kind = CDACQ_ROOT_HANDLE, .handle = CDACQ_HANDLE_STRONG, .keeps = true, .address = 0x20, .object = ARRAY},
        {.kind = CDACQ_ROOT_HANDLE, .handle = CDACQ_HANDLE_WEAK_LONG, .address = 0x28, .object = LOST},
        {.kind = CDACQ_ROOT_DEPENDENT, .address = 0x30, .object = NODE, .dependent = ENTRIES},
        {.kind = CDACQ_ROOT_STATIC, .keeps = true, .method_table = NODES, .token = 0x04000001, .object = NODE},
    };
    (void)session, (void)err;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        visitor->root(&roots[i], visitor->context);
    return CDACQ_OK;
}

static enum cdacq_status give_type_name(struct cdacq_session *session, uint64_t method_table, const char **ret,
                                        struct cdacq_error *err)
{
    (void)session, (void)err;
    if (method_table == UNNAMED)
        return CDACQ_ERR_MEMORY;
    *ret = method_table == NODES ? "App.Node" : method_table == TEXTS ? "App.\"\\x01\"" : "App.Array[]";
    return CDACQ_OK;
}

static enum cdacq_status give_static_name(struct cdacq_session *session, uint64_t type, uint32_t token,
                                          const char **ret, struct cdacq_error *err)
{
    (void)session, (void)type, (void)token, (void)err;
    *ret = "App.Node.Head";
    return CDACQ_OK;
}

#ifdef MOCK_REFERENCE_NAMES /* it asks for them */
static unsigned names_asked;

static enum cdacq_status give_object(struct cdacq_session *session, uint64_t address, struct cdacq_object *ret,
                                     struct cdacq_error *err)
{
    (void)session, (void)err;
    ret->is_array = address == ARRAY || address == ENTRIES;
    ret->length = 2;
    ret->element_size = address == ARRAY ? 8 : 16;
    ret->byte_size = address == ARRAY ? 40 : 56;
    return CDACQ_OK;
}

static enum cdacq_status give_reference_name(struct cdacq_session *session, uint64_t object, uint64_t offset,
                                             const char **ret, struct cdacq_error *err)
{
    (void)session, (void)err;
    names_asked++;
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        if (references[i].object == object && references[i].offset == offset && references[i].name) {
            *ret = references[i].name;
            return CDACQ_OK;
        }
    return CDACQ_NOT_MANAGED;
}

#define cdacq_session_get_object         give_object
#define cdacq_session_get_reference_name give_reference_name
#endif

#define cdacq_session_visit_heap      give_heap
#define cdacq_session_visit_roots     give_roots
#define cdacq_session_get_type_name   give_type_name
#define cdacq_session_get_static_name give_static_name

void target_let_go(struct cdacq_target *target)
{
    (void)target;
}

#endif
