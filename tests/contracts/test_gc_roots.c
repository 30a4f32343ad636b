/* test_gc_roots.c: handles, finalizer queues and the references of objects, whole and damaged. */
#include <stdio.h>

#include "contracts/gc/finalizer_queue.h"
#include "contracts/gc/handle.h"
#include "contracts/gc/references.h"
#include "contracts/type_system/method_table_flags.h"
#include "tests/support/check_main.h"
#include "tests/support/gc_mock.h"

enum { KINDS = 8, MOST = 256, LAST_SIZE = 512, BLOCK_TYPE = 1560, HANDLE_TAIL = 1920 };

static struct gc_mock mock;

static struct {
    struct gc_handle handles[MOST];
    uint64_t waiting, ready;
    uint64_t offsets[MOST], targets[MOST];
    size_t count, most;
    uint64_t problems;
    char last[LAST_SIZE];
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

static bool take_handle(void *context, const struct gc_handle *handle)
{
    (void)context;
    ck_assert_uint_lt(found.count, MOST);
    found.handles[found.count++] = *handle;
    return found.count != found.most;
}

static bool walk_handles(void)
{
    bool stopped = false;
    struct gc_problems problems = {.tell = tell, .stopped = &stopped};
    struct gc gc;
    size_t most = found.most;
    memset(&found, 0, sizeof found);
    found.most = most;
    reader_begin(&mock.reader, FUEL_INDEX);
    ck_assert(gc_read(&mock.reader, &gc));
    bool done = gc_handles_visit(&mock.reader, &gc, &problems, take_handle, NULL);
    found.problems = problems.count;
    gc_deinit(&gc);
    return done;
}

static void expect_problem(const char *part)
{
    ck_assert_uint_ge(found.problems, 1);
    ck_assert_msg(strstr(found.last, part), "'%s' is not in '%s'", part, found.last);
}

START_TEST(handles)
{
    static const struct gc_handle expected[] = {
        {.object = 0x1000, .kind = CDACQ_HANDLE_STRONG},
        {.object = 0x1001, .kind = CDACQ_HANDLE_STRONG},
        {.object = 0x1002, .kind = CDACQ_HANDLE_STRONG},
        {.object = 0x1003, .dependent = 0x2003, .kind = CDACQ_HANDLE_DEPENDENT},
        {.object = 0x1004, .dependent = 0x2004, .kind = CDACQ_HANDLE_DEPENDENT},
        {.object = 0x1005, .kind = CDACQ_HANDLE_WEAK_SHORT},
    };
    gc_mock_init(&mock, kind(_i));
    ck_assert(walk_handles());
    ck_assert_msg(found.problems == 0, "%s", found.last);
    ck_assert_uint_eq(found.count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        ck_assert_uint_eq(found.handles[i].object, expected[i].object);
        ck_assert_uint_eq(found.handles[i].dependent, expected[i].dependent);
        ck_assert_int_eq(found.handles[i].kind, expected[i].kind);
        ck_assert_uint_eq(gc_mock_get(&mock, found.handles[i].address), expected[i].object);
    }
    found.most = 4;
    ck_assert(!walk_handles());
    ck_assert_uint_eq(found.count, 4);
    ck_assert(!reader_failed(&mock.reader));
    found.most = 0;
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(damaged_handles)
{
    gc_mock_init(&mock, kind(_i));
    uint64_t next = GC_MOCK_HANDLES + HANDLE_TAIL + 6 * (uint64_t)mock.handle_kinds;
    gc_mock_put(&mock, next, GC_MOCK_HANDLES, 8); /* a cycle */
    ck_assert(walk_handles());
    ck_assert_uint_eq(found.count, 6);
    expect_problem("in two lists");
    gc_mock_put(&mock, next, 0x7fff00000000, 8); /* no memory */
    ck_assert(walk_handles());
    ck_assert_uint_eq(found.count, 6);
    expect_problem("no memory");
    gc_mock_put(&mock, next, 0, 8);
    gc_mock_put(&mock, GC_MOCK_HANDLES + BLOCK_TYPE + 1, 77, 1); /* a kind that does not exist */
    ck_assert(walk_handles());
    ck_assert_uint_eq(found.count, 4);
    expect_problem("kind 77");
    gc_mock_put(&mock, mock.handle_map + 8, mock.handle_map, 8); /* a cycle of maps */
    ck_assert(walk_handles());
    expect_problem("in the list twice");
    if (!mock.options.is_published) {
        gc_mock_put(&mock, next + 8, 0x1234, 8); /* the segment does not lead back */
        ck_assert(walk_handles());
        ck_assert_uint_eq(found.count, 0);
    }
    gc_mock_deinit(&mock);
}
END_TEST

/* ---- Finalizers ---- */

static bool take_finalizable(void *context, uint64_t slot, uint64_t object, bool is_ready)
{
    (void)context;
    ck_assert_uint_eq(gc_mock_get(&mock, slot), object);
    ++*(is_ready ? &found.ready : &found.waiting);
    return found.ready + found.waiting != found.most;
}

static bool walk_queues(void)
{
    bool stopped = false;
    struct gc_problems problems = {.tell = tell, .stopped = &stopped};
    struct gc gc;
    size_t most = found.most;
    memset(&found, 0, sizeof found);
    found.most = most;
    reader_begin(&mock.reader, FUEL_INDEX);
    ck_assert(gc_read(&mock.reader, &gc));
    bool done = gc_finalizable_visit(&mock.reader, &gc, &problems, take_finalizable, NULL);
    found.problems = problems.count;
    gc_deinit(&gc);
    return done;
}

START_TEST(finalizer_queues)
{
    gc_mock_init(&mock, kind(_i));
    uint64_t heaps = mock.options.is_server ? GC_MOCK_HEAPS : 1;
    ck_assert(walk_queues());
    ck_assert_uint_eq(found.problems, 0);
    ck_assert_uint_eq(found.waiting, 5 * heaps);
    ck_assert_uint_eq(found.ready, 2 * heaps);
    found.most = 3;
    ck_assert(!walk_queues());
    ck_assert_uint_eq(found.waiting + found.ready, 3);
    found.most = 0;
    gc_mock_put(&mock, mock.finalize_queues[0] + 8 * 2, 1, 8); /* an end before the begin: what precedes it counts */
    ck_assert(walk_queues());
    ck_assert_uint_eq(found.waiting, 2 + 5 * (heaps - 1));
    expect_problem("bounds cannot be right");
    gc_mock_put(&mock, mock.finalize_queues[0] + 8 * 2, UINT64_MAX - 7, 8);
    ck_assert(walk_queues());
    expect_problem("bounds cannot be right");
    gc_mock_deinit(&mock);
}
END_TEST

/* ---- Allocations that failed ---- */

static struct gc_oom newest_refused(void)
{
    struct gc_oom oom = {.reason = UINT32_MAX};
    struct gc gc;
    reader_begin(&mock.reader, FUEL_INDEX);
    ck_assert(gc_read(&mock.reader, &gc));
    ck_assert(gc_oom_read(&mock.reader, &gc, &oom));
    gc_deinit(&gc);
    return oom;
}

START_TEST(refused)
{
    gc_mock_init(&mock, kind(_i));
    ck_assert_uint_eq(newest_refused().reason, 0);
    gc_mock_refuse(&mock, 0, 2, 1000, 0);
    ck_assert_uint_eq(newest_refused().reason, 2);
    ck_assert_uint_eq(newest_refused().size, 1000);
    if (mock.options.is_server) { /* the newest of all heaps */
        gc_mock_refuse(&mock, 1, 5, 3000, 8);
        ck_assert_uint_eq(newest_refused().size, 3000);
        gc_mock_refuse(&mock, 0, 6, 4000, 9);
        ck_assert_uint_eq(newest_refused().reason, 6);
        gc_mock_refuse(&mock, 0, 0, 4000, 9);
        ck_assert_uint_eq(newest_refused().reason, 5);
    }
    gc_mock_deinit(&mock);
}
END_TEST

/* ---- References ---- */

static bool take_reference(void *context, uint64_t offset, uint64_t target)
{
    (void)context;
    ck_assert_uint_lt(found.count, MOST);
    found.offsets[found.count] = offset;
    found.targets[found.count++] = target;
    return found.count != found.most;
}

/* A MethodTable with `words` in front of it, the one next to it first, and an object of it. */
static struct cdacq_heap_object make_object(const uint64_t *words, size_t count, uint32_t flags, uint64_t size)
{
    uint64_t table = mock.end + 256;
    mock.end += 512;
    gc_mock_put(&mock, table, flags | MT_CONTAINS_REFERENCES, 4);
    for (size_t i = 0; i < count; i++)
        gc_mock_put(&mock, table - 8 * (i + 1), words[i], 8);
    struct cdacq_heap_object object = {.address = mock.end, .method_table = table, .byte_size = size};
    mock.end += (size + 15) & ~UINT64_C(15);
    gc_mock_put(&mock, object.address, table, 8);
    for (uint64_t at = 8; at + 8 <= size; at += 8)
        gc_mock_put(&mock, object.address + at, 0x5000 + at, 8);
    return object;
}

static bool visit(const struct cdacq_heap_object *object, uint64_t *ret_damaged)
{
    struct gc_references references;
    size_t most = found.most;
    memset(&found, 0, sizeof found);
    found.most = most;
    reader_begin(&mock.reader, FUEL_INDEX);
    ck_assert(gc_references_init(&references, &mock.reader));
    bool done = gc_references_visit(&references, object, take_reference, NULL);
    *ret_damaged = references.damaged;
    gc_references_deinit(&references);
    return done;
}

static void expect_offsets(const uint64_t *offsets, size_t count)
{
    ck_assert_uint_eq(found.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(found.offsets[i], offsets[i]);
        ck_assert_uint_eq(found.targets[i], 0x5000 + offsets[i]);
    }
}

START_TEST(references)
{
    uint64_t damaged;
    gc_mock_init(&mock, kind(4));
    /* Two runs: words 1 and 2, and word 4, of an object of 48 bytes. */
    const uint64_t two[] = {2, 8, (uint64_t)(16 - 48), 32, (uint64_t)(8 - 48)};
    struct cdacq_heap_object object = make_object(two, ARRAY_SIZE(two), 0, 48);
    ck_assert(visit(&object, &damaged) && !damaged);
    expect_offsets((const uint64_t[]){8, 16, 32}, 3);
    gc_mock_put(&mock, object.address + 16, 0, 8); /* null */
    ck_assert(visit(&object, &damaged) && !damaged);
    expect_offsets((const uint64_t[]){8, 32}, 2);
    found.most = 1;
    ck_assert(!visit(&object, &damaged) && found.count == 1);
    found.most = 0;
    /* An array of three references: all but the header and the count. */
    const uint64_t array[] = {1, 16, (uint64_t)-24};
    object = make_object(array, ARRAY_SIZE(array), 0, 16 + 24 + 8);
    ck_assert(visit(&object, &damaged) && !damaged);
    expect_offsets((const uint64_t[]){16, 24, 32}, 3);
    /* An array of two structs of 40 bytes: two references, 8 bytes, one reference, 8 bytes. */
    const uint64_t structs[] = {(uint64_t)-2, 16, 2 | UINT64_C(8) << 32, 1 | UINT64_C(8) << 32};
    object = make_object(structs, ARRAY_SIZE(structs), 0, 16 + 80 + 8);
    ck_assert(visit(&object, &damaged) && !damaged);
    expect_offsets((const uint64_t[]){16, 24, 40, 56, 64, 80}, 6);
    gc_mock_deinit(&mock);
}
END_TEST

START_TEST(damaged_references)
{
    static const struct {
        uint64_t words[5];
        size_t count;
    } bad[] = {
        {{UINT64_C(1) << 40}, 1},           /* runs */
        {{(uint64_t)-1, 16, 0}, 3},         /* structs of no bytes */
        {{(uint64_t)-1, 0, 1}, 3},          /* the header */
        {{1, 4, 0}, 3},                     /* not aligned */
        {{1, UINT64_C(1) << 40, 0}, 3},     /* beyond any object */
        {{(uint64_t)-100000, 16, 1, 1}, 4}, /* parts */
    };
    uint64_t damaged;
    gc_mock_init(&mock, kind(4));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct cdacq_heap_object object = make_object(bad[i].words, bad[i].count, 0, 64);
        ck_assert_msg(visit(&object, &damaged), "%zu", i);
        ck_assert_msg(damaged == 1 && !found.count, "%zu", i);
    }
    /* A run that ends beyond the object is left out. */
    const uint64_t beyond[] = {1, 8, 4096};
    struct cdacq_heap_object object = make_object(beyond, ARRAY_SIZE(beyond), 0, 64);
    ck_assert(visit(&object, &damaged) && !found.count);
    /* Of an object without memory there are no references. */
    const uint64_t good[] = {1, 8, (uint64_t)(16 - 64)};
    object = make_object(good, ARRAY_SIZE(good), 0, 64);
    object.address = 0x7fff00000000;
    ck_assert(visit(&object, &damaged) && !found.count);
    gc_mock_deinit(&mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("gc_roots");
    TCase *tcase = tcase_create("gc_roots");
    tcase_add_loop_test(tcase, handles, 0, KINDS);
    tcase_add_loop_test(tcase, damaged_handles, 0, KINDS);
    tcase_add_loop_test(tcase, finalizer_queues, 0, KINDS);
    tcase_add_loop_test(tcase, refused, 0, KINDS);
    tcase_add_test(tcase, references);
    tcase_add_test(tcase, damaged_references);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
