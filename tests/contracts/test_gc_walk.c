/* test_gc_walk.c: the heap of every kind of GC, whole and damaged. */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/gc_mock.h"

enum { KINDS = 8, LAST_SIZE = 512 };

static struct gc_mock mock;

/* What a walk has found. */
static struct {
    bool read;    /* the heaps */
    bool done;    /* the walk came to its end */
    struct gc gc; /* a copy of its facts; its heaps are freed */
    uint64_t count[CDACQ_GENERATION_COUNT], bytes[CDACQ_GENERATION_COUNT];
    uint64_t problems, missing;
    char last[LAST_SIZE]; /* problem */
    uint64_t most;        /* objects after which the visitor ends the walk; 0: none */
    uint64_t total;
} found;

static struct gc_mock_options kind(int number)
{
    return (struct gc_mock_options){.is_server = number & 1, .has_segments = number & 2, .is_published = number & 4};
}

static int tell(const char *text, void *context)
{
    (void)context;
    snprintf(found.last, sizeof found.last, "%s", text);
    return 0;
}

static bool count_object(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    (void)context;
    ck_assert_uint_ge(object->address, segment->begin);
    ck_assert_uint_le(object->byte_size, segment->end - object->address);
    found.count[segment->generation]++;
    found.bytes[segment->generation] += object->byte_size;
    return ++found.total != found.most;
}

static void walk(void)
{
    bool stopped = false;
    struct gc_problems problems = {.tell = tell, .stopped = &stopped};
    struct gc_segments segments = {0};
    struct gc_holes holes = {0};
    uint64_t most = found.most;
    struct gc gc;
    memset(&found, 0, sizeof found);
    found.most = most;
    reader_begin(&mock.reader, FUEL_INDEX);
    found.read = gc_read(&mock.reader, &gc);
    if (!found.read)
        return;
    const struct gc_visitor visitor = {.object = count_object};
    found.done = gc_segments_read(&mock.reader, &gc, &problems, &segments) &&
                 gc_holes_read(&mock.reader, &gc, &problems, &holes) &&
                 gc_walk(&mock.reader, &segments, &holes, &problems, &visitor);
    found.problems = problems.count;
    found.missing = problems.missing;
    found.gc = gc;
    gc_holes_deinit(&holes);
    gc_segments_deinit(&segments);
    gc_deinit(&gc);
}

/* Generations of `but` (a bit each) may lack objects; all others have theirs. */
static void expect_planted(unsigned but)
{
    for (unsigned i = 0; i < CDACQ_GENERATION_COUNT; i++) {
        if (but >> i & 1) {
            ck_assert_uint_lt(found.count[i], mock.planted[i].count);
            continue;
        }
        ck_assert_uint_eq(found.count[i], mock.planted[i].count);
        ck_assert_uint_eq(found.bytes[i], mock.planted[i].bytes);
    }
}

static void expect_problem(const char *part)
{
    ck_assert(found.read && found.done);
    ck_assert_uint_ge(found.problems, 1);
    ck_assert_msg(strstr(found.last, part), "'%s' is not in '%s'", part, found.last);
}

static void expect_failure(enum cdacq_status status, const char *part)
{
    struct cdacq_error error;
    walk();
    ck_assert(!found.read);
    ck_assert_int_eq(reader_status(&mock.reader, &error), status);
    ck_assert_msg(strstr(error.message, part), "'%s' is not in '%s'", part, error.message);
}

START_TEST(all_objects)
{
    gc_mock_init(&mock, kind(_i));
    walk();
    ck_assert(found.read && found.done);
    ck_assert_msg(found.problems == 0, "%s", found.last);
    expect_planted(0);
    ck_assert_int_eq(found.gc.is_server, kind(_i).is_server);
    ck_assert_int_eq(found.gc.has_regions, !kind(_i).has_segments);
    ck_assert(!found.gc.is_under_way);
    gc_mock_put(&mock, mock.invalid_count, 1, 4);
    walk();
    ck_assert(found.gc.is_under_way);
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(the_visitor_ends_it)
{
    gc_mock_init(&mock, kind(_i));
    found.most = 7;
    walk();
    ck_assert(found.read && !found.done);
    ck_assert_uint_eq(found.total, 7);
    ck_assert(!reader_failed(&mock.reader));
    gc_mock_deinit(&mock);
}
END_TEST

/* ---- Damaged objects: only the rest of their segment is left out ---- */

/* The first object of the large heap, which is the last segment but one of a heap of workstation GC. */
static uint64_t large_object(void)
{
    return mock.firsts[mock.segment_count - 2];
}

START_TEST(damaged_objects)
{
    static const struct {
        int table; /* 0: none; 1: itself; 2: in the middle of the heap; 3: no memory; 4: an array */
        uint32_t count;
        const char *problem;
    } damages[] = {
        {0, 0, "MethodTable"}, {1, 0, "MethodTable"},       {2, 0, "MethodTable"},
        {3, 0, "MethodTable"}, {4, UINT32_MAX, "its size"}, {4, 1000, "its size"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        gc_mock_init(&mock, kind(_i & 6)); /* workstation GC */
        uint64_t object = large_object();
        const uint64_t tables[] = {0, object, mock.firsts[0], 0x7fff00000000, mock.array_table};
        gc_mock_put(&mock, object, tables[damages[i].table], 8);
        gc_mock_put(&mock, object + 8, damages[i].count, 4);
        walk();
        expect_problem(damages[i].problem);
        ck_assert_uint_eq(found.problems, 1);
        expect_planted(1u << CDACQ_GENERATION_LOH);
        gc_mock_deinit(&mock);
    }
}
END_TEST

/* A component size and a count whose product has more than 32 bits; and base sizes that cannot be. */
START_TEST(sizes_that_wrap)
{
    static const struct {
        uint32_t flags, base_size;
    } tables[] = {{0x8000ffff, 24}, {0x80000001, UINT32_MAX}, {0, UINT32_MAX}, {0, 0}, {0, 8}};
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        gc_mock_init(&mock, kind(_i & 6));
        uint64_t object = large_object(), table = mock.thread + 512; /* memory that nothing else uses */
        gc_mock_put(&mock, table, tables[i].flags, 4);
        gc_mock_put(&mock, table + 4, tables[i].base_size, 4);
        gc_mock_put(&mock, object, table, 8);
        gc_mock_put(&mock, object + 8, UINT32_MAX, 4);
        walk();
        expect_problem("cannot be right");
        expect_planted(1u << CDACQ_GENERATION_LOH);
        gc_mock_deinit(&mock);
    }
}
END_TEST

START_TEST(missing_memory)
{
    gc_mock_init(&mock, kind(_i & 6));
    mock.missing = align_down(large_object(), PAGE_SIZE);
    reader_forget(&mock.reader, NULL);
    walk();
    ck_assert(found.read);
    ck_assert_uint_ge(found.problems, 1);
    ck_assert_uint_gt(found.missing, 0);
    gc_mock_deinit(&mock);
}
END_TEST

/* ---- Damaged segments ---- */

START_TEST(cycles_of_segments)
{
    gc_mock_init(&mock, kind(_i));
    uint64_t last = mock.segments[mock.segment_count - 1]; /* of pinned objects */
    gc_mock_put(&mock, last + 48, last, 8);
    walk();
    expect_problem("already in a list");
    expect_planted(0);
    gc_mock_put(&mock, last + 48, mock.segments[mock.segment_count - 2], 8); /* of large objects */
    walk();
    expect_problem("already in a list");
    expect_planted(0);
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(bounds_of_segments)
{
    static const struct {
        unsigned field; /* of the record */
        uint64_t value;
        const char *problem;
    } damages[] = {
        {0, 8, "not in their order"},
        {0, UINT64_MAX, "not in their order"},
        {8, 0, "not in their order"},
        {16, 0, "not in their order"},
        {32, 0, "not in their order"},
        {32, UINT64_MAX, "not in their order"},
        {32, GC_MOCK_BASE + 3, "not in their order"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        gc_mock_init(&mock, kind(_i & 6));
        uint64_t segment = mock.segments[mock.segment_count - 2];
        gc_mock_put(&mock, segment + damages[i].field, damages[i].value, 8);
        walk();
        expect_problem(damages[i].problem);
        expect_planted(1u << CDACQ_GENERATION_LOH);
        gc_mock_deinit(&mock);
    }
}
END_TEST

START_TEST(overlapping_segments)
{
    gc_mock_init(&mock, kind(_i & 6));
    uint64_t large = mock.segments[mock.segment_count - 2], pinned = mock.segments[mock.segment_count - 1];
    for (unsigned field = 0; field <= 32; field += 8)
        gc_mock_put(&mock, pinned + field, gc_mock_get(&mock, large + field), 8);
    walk();
    expect_problem("in another segment");
    ck_assert(found.count[CDACQ_GENERATION_LOH] == 0 || found.count[CDACQ_GENERATION_POH] == 0);
    gc_mock_deinit(&mock);
}
END_TEST

/* A segment that is left out takes none of those that it reaches over. */
START_TEST(a_segment_over_others)
{
    gc_mock_init(&mock, kind(_i & 6));
    gc_mock_put(&mock, mock.segments[mock.segment_count - 2] + 32, mock.firsts[0] + 8, 8);
    walk();
    expect_problem("in another segment");
    ck_assert_uint_eq(found.problems, 1);
    expect_planted(1u << CDACQ_GENERATION_LOH);
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(order_of_generations)
{
    gc_mock_init(&mock, (struct gc_mock_options){.has_segments = true, .is_published = _i});
    gc_mock_put(&mock, mock.generation_tables[0] + 64, GC_MOCK_BASE, 8); /* where generation 0 begins */
    walk();
    expect_problem("generation 0 begins at");
    gc_mock_deinit(&mock);
}
END_TEST

/* ---- A GC that is another one ---- */

START_TEST(variables)
{
    static const struct {
        unsigned word;
        uint64_t value;
        enum cdacq_status status;
        const char *part;
    } damages[] = {
        {0, 0x103, CDACQ_ERR_CONTRACT, "major version"},
        {1, 0x40, CDACQ_ERR_CORRUPT, "generation_size"},
        {1, 0x400, CDACQ_ERR_CORRUPT, "generation_size"},
        {1, 0x101, CDACQ_ERR_CORRUPT, "generation_size"},
        {1, UINT64_MAX, CDACQ_ERR_CORRUPT, "generation_size"},
        {2, 6, CDACQ_ERR_CORRUPT, "total_generation_count"},
        {2, UINT64_MAX, CDACQ_ERR_CORRUPT, "total_generation_count"},
        {7, GC_MOCK_BASE, CDACQ_ERR_CORRUPT, "max_gen"},
        {31, 0, CDACQ_ERR_CORRUPT, "generation_field_offsets"},
        {31, 0x7fff00000000, CDACQ_ERR_MEMORY, "no memory"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        gc_mock_init(&mock, kind(_i & 3));
        gc_mock_put(&mock, mock.vars + 8 * (uint64_t)damages[i].word, damages[i].value, 8);
        expect_failure(damages[i].status, damages[i].part);
        gc_mock_deinit(&mock);
    }
}
END_TEST

START_TEST(number_of_heaps)
{
    static const uint32_t numbers[] = {0, GC_HEAP_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        gc_mock_init(&mock, (struct gc_mock_options){.is_server = true, .is_published = _i});
        gc_mock_put(&mock, mock.count, numbers[i], 4);
        expect_failure(CDACQ_ERR_CORRUPT, "NumHeaps");
        gc_mock_deinit(&mock);
    }
    gc_mock_init(&mock, (struct gc_mock_options){.is_server = true, .is_published = _i});
    gc_mock_put(&mock, mock.heaps, 0, 8);
    expect_failure(CDACQ_ERR_MEMORY, "no memory");
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(what_is_not_published)
{
    gc_mock_init(&mock, (struct gc_mock_options){.is_published = true});
    mock.layout.fields[F_HeapSegment_Next].present = false;
    expect_failure(CDACQ_ERR_FIELD, "HeapSegment.Next");
    mock.layout.fields[F_HeapSegment_Next].present = true;
    mock.layout.globals[G_TotalGenerationCount] = 6;
    expect_failure(CDACQ_ERR_CORRUPT, "TotalGenerationCount");
    gc_mock_deinit(&mock);
}
END_TEST

/* A thread whose allocation context is nowhere, or whose limit is before its pointer. */
START_TEST(allocation_contexts)
{
    gc_mock_init(&mock, kind(_i & 6));
    gc_mock_put(&mock, mock.thread + 88 + 8, UINT64_MAX, 8); /* the hole takes the rest of the segment */
    walk();
    expect_problem("its limit cannot be right");
    ck_assert_uint_eq(found.problems, 1);
    expect_planted(1u << CDACQ_GENERATION_0);
    gc_mock_put(&mock, mock.thread + 88 + 8, 1, 8); /* there is no hole: what is there is no object */
    walk();
    expect_problem("MethodTable");
    expect_planted(1u << CDACQ_GENERATION_0);
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(a_cycle_of_threads)
{
    gc_mock_init(&mock, kind(_i & 6));
    uint64_t next = mock.thread + mock.layout.fields[F_Thread_LinkNext].offset;
    gc_mock_put(&mock, next, next, 8);
    walk();
    expect_problem("the list of threads comes back");
    ck_assert_uint_eq(found.problems, 1);
    expect_planted(0);
    gc_mock_deinit(&mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("gc_walk");
    TCase *tcase = tcase_create("gc_walk");
    tcase_add_loop_test(tcase, all_objects, 0, KINDS);
    tcase_add_loop_test(tcase, the_visitor_ends_it, 0, KINDS);
    tcase_add_loop_test(tcase, damaged_objects, 0, KINDS);
    tcase_add_loop_test(tcase, sizes_that_wrap, 0, KINDS);
    tcase_add_loop_test(tcase, missing_memory, 0, KINDS);
    tcase_add_loop_test(tcase, cycles_of_segments, 0, KINDS);
    tcase_add_loop_test(tcase, bounds_of_segments, 0, KINDS);
    tcase_add_loop_test(tcase, overlapping_segments, 0, KINDS);
    tcase_add_loop_test(tcase, a_segment_over_others, 0, KINDS);
    tcase_add_loop_test(tcase, order_of_generations, 0, 2);
    tcase_add_loop_test(tcase, variables, 0, 4);
    tcase_add_loop_test(tcase, number_of_heaps, 0, 2);
    tcase_add_test(tcase, what_is_not_published);
    tcase_add_loop_test(tcase, allocation_contexts, 0, KINDS);
    tcase_add_loop_test(tcase, a_cycle_of_threads, 0, KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
