/*
 * test_heap_holders.c: what the largest parts of a heap hang below, of graphs that are made here. The calls of the
 * library are replaced.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cdacq.h"

static enum cdacq_status give_references(struct cdacq_session *session, uint64_t object,
                                         int (*take)(uint64_t offset, uint64_t target, void *context), void *context,
                                         struct cdacq_error *err);

static enum cdacq_status give_name(struct cdacq_session *session, uint64_t object, uint64_t offset, const char **ret,
                                   struct cdacq_error *err)
{
    static char names[8][16];
    static unsigned next;
    (void)session, (void)object, (void)err;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "f%u", (unsigned)offset / 8);
    *ret = name;
    return CDACQ_OK;
}

#define cdacq_session_visit_references   give_references
#define cdacq_session_get_reference_name give_name

#include "src/cli/base/json_writer.c"
#include "src/cli/base/output.c"
#include "src/cli/base/heap_holder.c"
#include "src/cli/base/spill.c"
#include "src/cli/commands/heap_paths.c"
#include "src/cli/commands/heap_holders.c"
#include "tests/cli/mock_console.h"
#include "tests/support/check_main.h"

/* ---- A graph ---------------------------------------------------------------------------------------------------- */

enum { TYPES = 8, OBJECTS_MAX = 4096, EDGES_MAX = 3 * OBJECTS_MAX };

static const char *const type_names[TYPES] = {"List", "Array", "Leaf", "Pair", "Node", "Other", "Six", "Seven"};

struct edge {
    uint32_t from, to;
};

static struct heap_graph graph;
static struct edge edges[EDGES_MAX];
static size_t edge_count;

uint64_t heap_graph_address(const struct heap_graph *given, uint32_t object)
{
    (void)given;
    return (uint64_t)(object + 1) * 0x1000;
}

uint32_t heap_graph_find(const struct heap_graph *given, uint64_t address)
{
    (void)given;
    return (uint32_t)(address / 0x1000) - 1;
}

enum cdacq_generation heap_graph_generation(const struct heap_graph *given, uint32_t object)
{
    (void)given;
    return object % 2 ? CDACQ_GENERATION_2 : CDACQ_GENERATION_0;
}

const char *heap_graph_type_name(struct heap_graph *given, uint32_t type)
{
    (void)given;
    return type_names[type % TYPES];
}

void heap_graph_root_text(const struct heap_graph *given, const struct graph_root *root,
                          char ret[static GRAPH_ROOT_TEXT_SIZE])
{
    (void)given;
    snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "root of 0x%" PRIx64, root->type);
}

static enum cdacq_status give_references(struct cdacq_session *session, uint64_t object,
                                         int (*take)(uint64_t offset, uint64_t target, void *context), void *context,
                                         struct cdacq_error *err)
{
    uint32_t from = heap_graph_find(&graph, object), number = 0;
    (void)session, (void)err;
    for (size_t i = 0; i < edge_count; i++)
        if (edges[i].from == from && take(8 * (uint64_t)++number, heap_graph_address(&graph, edges[i].to), context))
            return CDACQ_STOPPED;
    return CDACQ_OK;
}

static uint32_t add(uint32_t type, uint32_t bytes)
{
    ck_assert(graph_array_append(&graph.places, 0) && graph_array_append(&graph.sizes, bytes / 8) &&
              graph_array_append(&graph.type_of, type));
    return (uint32_t)graph.places.count - 1;
}

static uint32_t add_below(uint32_t parent, uint32_t type, uint32_t bytes)
{
    uint32_t object = add(type, bytes);
    ck_assert_uint_lt(edge_count, EDGES_MAX);
    edges[edge_count++] = (struct edge){parent, object};
    return object;
}

static void add_root(uint32_t object, uint64_t type)
{
    const struct graph_root root = {.kind = CDACQ_ROOT_STATIC, .keeps = true, .object = object, .type = type};
    ck_assert(graph_roots_append(&graph.roots, root));
}

/* Edges are in the order of their objects. */
static void find_holders(const double *shares, int generation, struct heap_holders *ret)
{
    ck_assert(graph_array_resize(&graph.first_edge, graph.places.count + 1));
    graph.edges.count = 0;
    for (uint32_t object = 0; object < graph.places.count; object++) {
        graph.first_edge.items[object] = (uint32_t)graph.edges.count;
        for (size_t i = 0; i < edge_count; i++)
            if (edges[i].from == object)
                ck_assert(graph_array_append(&graph.edges, edges[i].to));
    }
    graph.first_edge.items[graph.places.count] = (uint32_t)graph.edges.count;
    heap_holders_find(&graph, shares, generation, ret);
}

static void setup(void)
{
    graph = (struct heap_graph){0};
    edge_count = 0;
    ck_assert(graph_types_resize(&graph.types, TYPES));
}

static void teardown(void)
{
    graph_array_deinit(&graph.places);
    graph_array_deinit(&graph.sizes);
    graph_array_deinit(&graph.type_of);
    graph_array_deinit(&graph.first_edge);
    graph_array_deinit(&graph.edges);
    graph_types_deinit(&graph.types);
    graph_roots_deinit(&graph.roots);
}

/* A list with its array and that many leaves, below a root or an object. */
static uint32_t add_list(uint32_t list, unsigned leaves, uint32_t leaf_type)
{
    uint32_t array = add_below(list, 1, 64);
    for (unsigned i = 0; i < leaves; i++)
        add_below(array, leaf_type, 40);
    return array;
}

static void check(const struct heap_holder *holder, const char *root, uint32_t last, size_t hops, uint64_t count)
{
    ck_assert_str_eq(holder->root, root);
    ck_assert_uint_eq(holder->hop_count, hops);
    ck_assert_uint_eq(holder->hops[hops - 1].address, heap_graph_address(&graph, last));
    ck_assert_uint_eq(holder->count, count);
}

START_TEST(a_list_and_its_array)
{
    struct heap_holders found;
    uint32_t small = add(0, 24), list = add(0, 24);
    add_root(small, 0x10);
    add_root(list, 0x20);
    add_list(small, 10, 2);
    uint32_t array = add_list(list, 500, 2);
    add(2, 40); /* nothing keeps it */
    find_holders(NULL, -1, &found);
    ck_assert_uint_eq(found.count, 2);
    check(&found.items[0], "root of 0x20", array, 2, 501);
    ck_assert_str_eq(found.items[0].hops[0].type, "List");
    ck_assert_ptr_null(found.items[0].hops[0].by);
    ck_assert_str_eq(found.items[0].hops[1].type, "Array");
    ck_assert_str_eq(found.items[0].hops[1].by, "f1");
    ck_assert_str_eq(found.items[0].most, "Leaf");
    ck_assert_uint_eq(found.items[0].bytes, 64 + 500 * 40);
    ck_assert_uint_eq(found.items[0].percent, 97);
    ck_assert_str_eq(found.items[1].root, "root of 0x10");
    heap_holders_deinit(&found);
}
END_TEST

START_TEST(two_lists_of_one_root)
{
    struct heap_holders found;
    uint32_t pair = add(3, 32);
    add_root(pair, 0x10);
    uint32_t one = add_list(add_below(pair, 0, 24), 300, 2), other = add_list(add_below(pair, 0, 24), 200, 5);
    find_holders(NULL, -1, &found);
    ck_assert_uint_eq(found.count, 2);
    check(&found.items[0], "root of 0x10", one, 3, 301);
    check(&found.items[1], "root of 0x10", other, 3, 201);
    ck_assert_str_eq(found.items[1].hops[1].by, "f2");
    ck_assert_str_eq(found.items[1].most, "Other");
    heap_holders_deinit(&found);
}
END_TEST

/* What two roots keep counts for the one with the shorter path. */
START_TEST(shared)
{
    struct heap_holders found;
    uint32_t direct = add(1, 64), far = add(3, 32);
    add_root(far, 0x10);
    add_root(direct, 0x20);
    uint32_t farther = add_below(far, 5, 24);
    for (unsigned i = 0; i < 100; i++) {
        uint32_t leaf = add_below(direct, 2, 40);
        edges[edge_count++] = (struct edge){farther, leaf};
    }
    find_holders(NULL, -1, &found);
    check(&found.items[0], "root of 0x20", direct, 1, 101);
    heap_holders_deinit(&found);
}
END_TEST

START_TEST(long_chain)
{
    struct heap_holders found;
    uint32_t first = add(4, 24), last = first;
    add_root(first, 0x10);
    for (unsigned i = 0; i < 2000; i++)
        last = add_below(last, 4, 24);
    find_holders(NULL, -1, &found);
    ck_assert_uint_eq(found.count, 1);
    check(&found.items[0], "root of 0x10", first, 1, 2001);
    ck_assert_uint_eq(found.items[0].percent, 100);
    heap_holders_deinit(&found);
}
END_TEST

/* Only what has grown counts, wherever most of the heap is. */
START_TEST(of_one_type)
{
    struct heap_holders found;
    double shares[TYPES] = {[5] = 0.5};
    uint32_t list = add(0, 24), grown = add(0, 24);
    add_root(list, 0x10);
    add_root(grown, 0x20);
    add_list(list, 900, 2);
    uint32_t array = add_list(grown, 50, 5);
    find_holders(shares, -1, &found);
    ck_assert_uint_eq(found.count, 1);
    check(&found.items[0], "root of 0x20", array, 2, 50);
    ck_assert_uint_eq(found.items[0].bytes, 50 * 40);
    ck_assert_uint_eq(found.items[0].percent, 100);
    heap_holders_deinit(&found);
    find_holders(shares, CDACQ_GENERATION_2, &found);
    check(&found.items[0], "root of 0x20", array, 2, 25);
    heap_holders_deinit(&found);
    shares[5] = 0;
    find_holders(shares, -1, &found);
    ck_assert_uint_eq(found.count, 0);
    heap_holders_deinit(&found);
}
END_TEST

/* Cycles, an object that refers to itself and to one twice, weak roots, deep paths. */
START_TEST(odd_graphs)
{
    struct heap_holders found;
    uint32_t first = add(0, 24), second = add_below(first, 1, 4000);
    edges[edge_count++] = (struct edge){first, second};
    edges[edge_count++] = (struct edge){second, first};
    edges[edge_count++] = (struct edge){second, second};
    add_root(first, 0x10);
    graph.roots.items[0].keeps = false;
    find_holders(NULL, -1, &found);
    ck_assert_uint_eq(found.count, 0);
    graph.roots.items[0].keeps = true;
    find_holders(NULL, -1, &found);
    ck_assert_uint_eq(found.count, 1);
    check(&found.items[0], "root of 0x10", second, 2, 1);
    heap_holders_deinit(&found);
    uint32_t last = second;
    for (unsigned i = 0; i < 200; i++) { /* each has another type than those above it */
        ck_assert(graph_types_resize(&graph.types, TYPES + i + 1));
        last = add_below(last, TYPES + i, 24);
    }
    find_holders(NULL, -1, &found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_le(found.items[0].hop_count, HOLDER_HOPS_MAX);
    heap_holders_deinit(&found);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("heap_holders");
    TCase *tcase = tcase_create("heap_holders");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_list_and_its_array);
    tcase_add_test(tcase, two_lists_of_one_root);
    tcase_add_test(tcase, shared);
    tcase_add_test(tcase, long_chain);
    tcase_add_test(tcase, of_one_type);
    tcase_add_test(tcase, odd_graphs);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
