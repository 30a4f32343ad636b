/*
 * test_heap_gcdump.c: the .gcdump that cdacq heap --export writes of a small heap, read back by the rules of
 * FastSerialization, and its compressed integers and strings. The calls of the library are replaced.
 */
#include "tests/cli/mock_heap.h"

static enum cdacq_status give_process(struct cdacq_target *target, struct cdacq_process_info *ret,
                                      struct cdacq_error *err)
{
    (void)target, (void)err;
    ret->pid = 4321;
    ret->program = "/app/\xf0\x9f\x98\x80";
    return CDACQ_OK;
}

#define cdacq_target_get_process_info give_process
#define cdacq_version()               "test"

#include "src/cli/base/output.c"
#include "src/cli/base/spill.c"
#include "src/cli/commands/heap_paths.c"
#define STEP graph_step
#include "src/cli/commands/heap_graph.c"
#undef STEP
#include "src/cli/commands/heap_gcdump.c"
#include "tests/cli/mock_console.h"
#include "tests/support/check_main.h"

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

struct reading {
    const uint8_t *at, *begin;
};

static uint64_t take(struct reading *reading, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)reading->at[i] << 8 * i;
    reading->at += size;
    return value;
}

static void expect_text(struct reading *reading, const char *text)
{
    ck_assert_uint_eq(take(reading, 4), strlen(text));
    ck_assert_mem_eq(reading->at, text, strlen(text));
    reading->at += strlen(text);
}

static void expect_begin(struct reading *reading, const char *type, unsigned version, unsigned least)
{
    ck_assert_uint_eq(take(reading, 3), 4 | 4 << 8 | 1 << 16);
    ck_assert_uint_eq(take(reading, 4), version);
    ck_assert_uint_eq(take(reading, 4), least);
    expect_text(reading, type);
    ck_assert_uint_eq(take(reading, 1), 6);
}

static int32_t take_compressed(struct reading *reading)
{
    int32_t value = (int32_t)((uint32_t)*reading->at << 25) >> 25;
    while (*reading->at++ & 0x80)
        value = (int32_t)((uint32_t)value << 7 | (*reading->at & 0x7f));
    return value;
}

/* Reads a node: its type, and after the nodes that it refers to GRAPH_NONE. */
static uint32_t take_node(struct reading *blob, uint32_t number, int32_t *ret_size, uint32_t ret[static 8])
{
    int32_t type = take_compressed(blob);
    *ret_size = type & 1 ? take_compressed(blob) : -1;
    int32_t count = take_compressed(blob);
    ck_assert_int_lt(count, 8);
    for (int32_t i = 0; i < count; i++)
        ret[i] = number + (uint32_t)take_compressed(blob);
    ret[count] = GRAPH_NONE;
    return (uint32_t)type >> 1;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------ */

static struct work *write_heap(void)
{
    struct work *work = allocate(sizeof *work);
    uint64_t blob_size;
    output_open_memory(&work->out);
    output_open_memory(&work->types_out);
    work->file.out = &work->out;
    work->types.out = &work->types_out;
    ck_assert(heap_graph_read_offsets(&work->graph, NULL, -1));
    ask_all(work, NULL);
    ck_assert(heap_paths_list_unkept(&work->graph, &work->unkept));
    ck_assert(measure(work, &blob_size));
    write_file(work, blob_size);
    return work;
}

/* Nodes: 0 is the root, 1 static fields, 2 handles, 3 what has no root, 4 and 5 the roots, 6 to 11 the objects. */
static const struct {
    const char *type;
    int size; /* -1: as the type has it */
    uint32_t links[8];
} nodes[] = {
    {"[.NET Roots]", -1, {1, 2, 3, GRAPH_NONE}},
    {"[static vars]", -1, {4, GRAPH_NONE}},
    {"[strong Handles]", -1, {5, GRAPH_NONE}},
    {"[not reachable from roots]", -1, {10, GRAPH_NONE}},
    {"[static field App.Node.Head]", -1, {6, GRAPH_NONE}},
    {"[strong Handles]", -1, {7, GRAPH_NONE}},
    {"App.Node", -1, {9, 7, 8, GRAPH_NONE}},
    {"App.Array[]", -1, {6, 6, GRAPH_NONE}},
    {"App.Array[]", -1, {9, 9, 7, GRAPH_NONE}}, /* another type of that name */
    {"App.\"\\x01\"", -1, {GRAPH_NONE}},
    {"? (MethodTable 0xe000)", -1, {11, GRAPH_NONE}},
    {"? (MethodTable 0xe000)", -1, {10, GRAPH_NONE}},
};

static void expect_graph(struct reading *reading)
{
    char names[16][64];
    uint32_t sizes[16], labels[ARRAY_SIZE(nodes)];
    ck_assert_uint_eq(take(reading, 8), 32 + 40 + 56 + 26 + 32 + 32);
    ck_assert_uint_eq(take(reading, 4), 0); /* the root */
    uint32_t types = (uint32_t)take(reading, 4);
    ck_assert_uint_eq(types, 11);
    for (uint32_t i = 0; i < types; i++) {
        size_t length = take(reading, 4);
        ck_assert_uint_lt(length, sizeof names[i]);
        memcpy(names[i], reading->at, length);
        names[i][length] = '\0';
        reading->at += length;
        sizes[i] = (uint32_t)take(reading, 4);
        ck_assert_uint_eq(take(reading, 4), UINT32_MAX);
    }
    ck_assert_str_eq(names[0], "UNDEFINED");
    ck_assert_uint_eq(take(reading, 4), ARRAY_SIZE(nodes));
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        labels[i] = (uint32_t)take(reading, 4);
    uint32_t blob_size = (uint32_t)take(reading, 4);
    const uint8_t *blob = reading->at;
    for (uint32_t i = 0; i < ARRAY_SIZE(nodes); i++) {
        uint32_t links[8], type;
        int32_t size;
        ck_assert_uint_gt(labels[i], 0); /* 0: not defined */
        reading->at = blob + labels[i];
        type = take_node(reading, i, &size, links);
        ck_assert_uint_lt(type, types);
        ck_assert_str_eq(names[type], nodes[i].type);
        ck_assert_int_eq(size, nodes[i].size);
        for (size_t n = 0; n < 8; n++) {
            ck_assert_uint_eq(links[n], nodes[i].links[n]);
            if (links[n] == GRAPH_NONE)
                break;
        }
        if (i >= 6)
            ck_assert_uint_eq(sizes[type], objects[i - 6].byte_size);
    }
    ck_assert_ptr_eq(reading->at, blob + blob_size);
    ck_assert_uint_eq(take(reading, 4), ARRAY_SIZE(nodes));
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        ck_assert_uint_eq(take(reading, 8), i < 6 ? 0 : objects[i - 6].address);
    ck_assert_uint_eq(take(reading, 3), 8 | 1 << 8 | 6 << 16);
}

START_TEST(a_small_heap)
{
    struct work *work = write_heap();
    struct reading reading = {(const uint8_t *)work->out.data, (const uint8_t *)work->out.data};
    expect_text(&reading, "!FastSerialization.1");
    expect_begin(&reading, "GCHeapDump", 10, 8);
    expect_begin(&reading, "Graphs.MemoryGraph", 1, 0);
    expect_graph(&reading);
    ck_assert_uint_eq(take(&reading, 1), 1);
    ck_assert_uint_eq(take(&reading, 4), 0x3f800000);
    ck_assert_uint_eq(take(&reading, 4), 0x3f800000);
    ck_assert_uint_eq(take(&reading, 1), 1);
    expect_begin(&reading, "DotNetHeapInfo", 0, 0);
    ck_assert_uint_eq(take(&reading, 8), END - BEGIN);
    ck_assert_uint_eq(take(&reading, 4), 1);
    expect_begin(&reading, "GCHeapDumpSegment", 1, 1);
    static const uint64_t ends[] = {BEGIN, END, END, BEGIN, BEGIN, BEGIN, BEGIN}; /* of generation 0 */
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        ck_assert_uint_eq(take(&reading, 8), ends[i]);
    ck_assert_uint_eq(take(&reading, 2), 6 | 6 << 8);
    ck_assert_uint_eq(take(&reading, 4), UINT32_MAX);
    ck_assert_uint_eq(take(&reading, 8), 0);
    ck_assert_uint_eq(take(&reading, 4), UINT32_MAX);
    ck_assert_uint_eq(take(&reading, 4), 7); /* UTF-16 units: the last character has two, of three bytes each */
    ck_assert_mem_eq(reading.at, "/app/\xed\xa0\xbd\xed\xb8\x80", 11);
    reading.at += 11;
    ck_assert_uint_eq(take(&reading, 4), 4321);
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(take(&reading, 4), 0);
    ck_assert_uint_eq(take(&reading, 6), 12 | UINT64_C(1) << 40);
    uint32_t region_end = (uint32_t)(reading.at - reading.begin);
    ck_assert_uint_eq(take(&reading, 1), 13);
    expect_text(&reading, "cdacq test");
    ck_assert_uint_eq(take(&reading, 2), 6 | 6 << 8);
    uint32_t table = (uint32_t)(reading.at - reading.begin);
    ck_assert_uint_eq(take(&reading, 4), 1);
    ck_assert_uint_eq(take(&reading, 4), region_end);
    uint32_t trailer = (uint32_t)(reading.at - reading.begin);
    ck_assert_uint_eq(take(&reading, 4), table);
    ck_assert_uint_eq(take(&reading, 4), trailer);
    ck_assert_ptr_eq(reading.at, work->out.data + work->out.length);
    ck_assert_uint_eq(work->unnamed_types, 1);
    output_abandon(&work->out);
    deinit(work);
}
END_TEST

START_TEST(compressed_integers)
{
    static const int32_t values[] = {0,         1,          63,         64,        -64,      -65,      8191,
                                     8192,      -8192,      -8193,      1048575,   1048576,  -1048577, 134217727,
                                     134217728, -134217728, -134217729, INT32_MAX, INT32_MIN};
    static const size_t lengths[] = {1, 1, 1, 2, 1, 2, 2, 3, 2, 3, 3, 4, 4, 4, 5, 4, 5, 5, 5};
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        struct output out = {0};
        output_open_memory(&out);
        put_compressed(&(struct stream){.out = &out}, values[i]);
        ck_assert_uint_eq(out.length, lengths[i]);
        ck_assert_int_eq(take_compressed(&(struct reading){.at = (const uint8_t *)out.data}), values[i]);
        output_abandon(&out);
    }
}
END_TEST

START_TEST(a_text_that_was_cut)
{
    struct output out = {0};
    output_open_memory(&out);
    put_text(&(struct stream){.out = &out}, "a\xc3\xa9\xe2\x82");
    ck_assert_uint_eq(out.length, 4 + 1 + 2 + 2);
    ck_assert_mem_eq(out.data, "\4\0\0\0a\xc3\xa9??", out.length);
    output_abandon(&out);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("heap_gcdump");
    TCase *tc = tcase_create("heap_gcdump");
    tcase_add_test(tc, a_small_heap);
    tcase_add_test(tc, compressed_integers);
    tcase_add_test(tc, a_text_that_was_cut);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
