/*
 * test_heap_export.c: the V8 heap snapshot that cdacq heap --export writes of a heap of six objects, to the byte. The
 * calls of the library are replaced.
 */
#define MOCK_REFERENCE_NAMES
#include "tests/cli/mock_heap.h"

#include "src/cli/base/json_writer.c"
#include "src/cli/base/output.c"
#include "src/cli/base/spill.c"
#include "src/cli/commands/heap_paths.c"
#define STEP graph_step
#include "src/cli/commands/heap_graph.c"
#undef STEP
#include "src/cli/commands/heap_export.c"
#include "tests/cli/mock_console.h"
#include "tests/support/check_main.h"

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
    ck_assert(heap_paths_list_unkept(&work->graph, &work->unkept));
    write_file(work);
    heap_graph_tell_problems(&work->graph, false);
    heap_graph_tell_unnamed(work->unnamed_types, work->unnamed_edges);
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
