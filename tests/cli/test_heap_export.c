/*
 * test_heap_export.c: the V8 heap snapshot that cdacq heap --export writes of a heap of six objects, to the byte. The
 * calls of the library are replaced.
 */
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

static unsigned names_asked;

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

#define cdacq_session_visit_heap         give_heap
#define cdacq_session_visit_roots        give_roots
#define cdacq_session_get_type_name      give_type_name
#define cdacq_session_get_static_name    give_static_name
#define cdacq_session_get_object         give_object
#define cdacq_session_get_reference_name give_reference_name

#include "src/cli/base/json_writer.c"
#include "src/cli/base/output.c"
#include "src/cli/commands/heap_paths.c"
#define STEP graph_step
#include "src/cli/commands/heap_graph.c"
#undef STEP
#include "src/cli/commands/heap_export.c"
#include "tests/support/check_main.h"

static unsigned messages;

_Noreturn void out_of_memory(void)
{
    ck_abort();
}

void message(const char *format, ...)
{
    (void)format;
    messages++;
}

int watchdog_set(int pid)
{
    return pid;
}

void watchdog_remove(int folder, const char *name)
{
    (void)folder, (void)name;
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigemptyset(ret_before);
}

bool console_has_colour(int fd)
{
    (void)fd;
    return false;
}

const char *console_style(enum style style)
{
    (void)style;
    return "";
}

void progress_begin(struct progress *progress, const char *what, int results)
{
    (void)progress, (void)what, (void)results;
}

void progress_step(struct progress *progress, uint64_t done)
{
    (void)progress, (void)done;
}

void progress_end(struct progress *progress)
{
    (void)progress;
}

void progress_end_all(void)
{
}

void target_let_go(struct cdacq_target *target)
{
    (void)target;
}

void *allocate(size_t size)
{
    void *data = calloc(1, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

void *reallocate(void *data, size_t size)
{
    data = realloc(data, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

static const char expected[] =
    "\"node_count\":11,\"edge_count\":19,\"trace_function_count\":0},\"nodes\":["
    "9,0,1,0,4,0,0\n,9,2,3,0,2,0,0\n"
    ",8,10,5,0,1,0,0\n,8,12,7,0,1,0,0\n" /* static fields, handles */
    ",9,3,9,0,1,0,0\n"                   /* what has no root */
    ",3,5,11,32,3,0,0\n,3,6,13,40,2,0,0\n,3,6,15,56,3,0,0\n,3,7,17,26,0,0,0\n"
    ",3,8,19,32,1,0,0\n,3,8,21,32,1,0,0\n"
    "],\"edges\":["
    "1,1,7\n,1,2,14\n,1,3,21\n,1,4,28\n" /* of the root */
    ",1,1,14\n,1,2,21\n"                 /* of "(GC roots)" */
    ",3,9,35\n,3,11,42\n,1,1,63\n"       /* of the groups */
    ",3,13,56\n,2,14,42\n,3,4,49\n"      /* of the node: the loader, a field, a dependent handle */
    ",1,0,35\n,1,1,35\n"                 /* elements */
    ",3,13,56\n,2,18,56\n,2,20,42\n"     /* fields of an element */
    ",2,1,70\n,2,1,63\n"                 /* names that are not known */
    "],\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\"strings\":["
    "\"\"\n,\"?\"\n,\"(GC roots)\"\n,\"(no root found)\"\n,\"dependent handle\"\n"
    ",\"App.Node\"\n,\"App.Array[]\"\n,\"App.\\\"\\\\x01\\\"\"\n,\"? (MethodTable 0xe000)\"\n";

START_TEST(a_small_heap)
{
    struct work *work = allocate(sizeof *work);
    output_open_memory(&work->out);
    messages = names_asked = 0;
    ck_assert(heap_graph_read_offsets(&work->graph, NULL, -1));
    name_all(work);
    list_unkept(work);
    write_file(work);
    tell_problems(work);
    *output_reserve(&work->out, 1) = '\0';
    const char *found = strstr(work->out.data, "\"node_count\"");
    ck_assert_ptr_nonnull(found);
    ck_assert_msg(strncmp(found, expected, strlen(expected)) == 0, "%s", found);
    ck_assert_msg(strstr(found, ",\"[0].key\"\n,\"[1].key\"\n,\"[0].va\\\"lue\"\n,\"[1].va\\\"lue\"\n]}"), "%s", found);
    /* Elements of an array share a name, and so do objects of a type. */
    ck_assert_uint_eq(names_asked, 7);
    ck_assert_uint_eq(work->unnamed_types, 1);
    ck_assert_uint_eq(work->unnamed_edges, 2);
    ck_assert_uint_eq(messages, 2);
    output_abandon(&work->out);
    deinit(work);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("heap_export");
    TCase *tc = tcase_create("heap_export");
    tcase_add_test(tc, a_small_heap);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
