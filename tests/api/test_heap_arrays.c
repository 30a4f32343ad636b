/*
 * test_heap_arrays.c: cdacq_session_read_heap keeps what a visit of the heap tells, in its order. The visit is
 * replaced.
 */
#define cdacq_session_read_heap   read_heap
#define cdacq_heap_arrays_destroy free_arrays
#define cdacq_session_visit_heap  give_heap

#include "src/api/heap_arrays.c"
#include "tests/support/check_main.h"

static const struct cdacq_heap_object objects[] = {
    {.address = 0x1000, .method_table = 0xa0, .byte_size = 24, .generation = CDACQ_GENERATION_2},
    {.address = 0x1018, .method_table = 0xf0, .byte_size = 100, .generation = CDACQ_GENERATION_2, .is_free = true},
    {.address = 0x1080, .method_table = 0xb0, .byte_size = UINT64_C(1) << 33, .generation = CDACQ_GENERATION_LOH},
    {.address = 0x2000, .method_table = 0xa0, .byte_size = 24, .generation = CDACQ_GENERATION_0},
};

static enum cdacq_status result;
static int problem_answer;
static unsigned problems, segments;

enum cdacq_status give_heap(struct cdacq_session *session, const struct cdacq_heap_visitor *visitor,
                            struct cdacq_heap_info *info, struct cdacq_error *err)
{
    (void)session, (void)err;
    visitor->segment(&(struct cdacq_heap_segment){.begin = 0x1000}, visitor->context);
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        ck_assert_int_eq(visitor->object(&objects[i], visitor->context), 0);
        for (uint64_t n = 0; visitor->reference && n < i; n++)
            ck_assert_int_eq(visitor->reference(objects[i].address, 8 * n, objects[n].address, visitor->context), 0);
        if (i == 2 && visitor->problem("a problem", visitor->context))
            return CDACQ_STOPPED;
    }
    if (info)
        info->heap_count = 1;
    return result;
}

static int take_problem(const char *text, void *context)
{
    ck_assert_str_eq(text, "a problem");
    ck_assert_ptr_eq(context, &problems);
    problems++;
    return problem_answer;
}

static int take_segment(const struct cdacq_heap_segment *segment, void *context)
{
    (void)context;
    ck_assert_uint_eq(segment->begin, 0x1000);
    segments++;
    return 0;
}

static int refuse_object(const struct cdacq_heap_object *object, void *context)
{
    (void)object, (void)context;
    ck_abort_msg("objects are not told");
}

static const struct cdacq_heap_visitor visitor = {.size = sizeof visitor,
                                                  .segment = take_segment,
                                                  .object = refuse_object,
                                                  .problem = take_problem,
                                                  .context = &problems};

static void reset(void)
{
    result = CDACQ_OK;
    problem_answer = 0;
    problems = segments = 0;
}

START_TEST(all_that_is_told)
{
    struct cdacq_heap_arrays *arrays = NULL;
    struct cdacq_heap_info info = {.size = sizeof info};
    reset();
    ck_assert_int_eq(read_heap(NULL, CDACQ_HEAP_REFERENCES, &visitor, &arrays, &info, NULL), CDACQ_OK);
    ck_assert_uint_eq(info.heap_count, 1);
    ck_assert_uint_eq(problems, 1);
    ck_assert_uint_eq(segments, 1);
    ck_assert_uint_eq(arrays->size, sizeof *arrays);
    ck_assert_uint_eq(arrays->object_count, ARRAY_SIZE(objects));
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        ck_assert_uint_eq(arrays->addresses[i], objects[i].address);
        ck_assert_uint_eq(arrays->byte_sizes[i], objects[i].byte_size);
        ck_assert_uint_eq(arrays->generations[i], objects[i].generation);
        ck_assert_uint_eq(arrays->method_tables[arrays->types[i]], objects[i].method_table);
        ck_assert_uint_eq(arrays->first_references[i + 1] - arrays->first_references[i], i);
        for (size_t n = 0; n < i; n++)
            ck_assert_uint_eq(arrays->targets[arrays->first_references[i] + n], objects[n].address);
    }
    ck_assert_uint_eq(arrays->type_count, 3);
    ck_assert_uint_eq(arrays->free_type, arrays->types[1]);
    ck_assert_uint_eq(arrays->reference_count, 6);
    free_arrays(arrays);
}
END_TEST

START_TEST(without_references)
{
    struct cdacq_heap_arrays *arrays = NULL;
    reset();
    ck_assert_int_eq(read_heap(NULL, 0, NULL, &arrays, NULL, NULL), CDACQ_OK);
    ck_assert_uint_eq(arrays->object_count, ARRAY_SIZE(objects));
    ck_assert_uint_eq(arrays->reference_count, 0);
    ck_assert_ptr_null(arrays->first_references);
    ck_assert_ptr_null(arrays->targets);
    free_arrays(arrays);
    free_arrays(NULL);
}
END_TEST

/* The references of what was read before are whole. */
START_TEST(a_visit_that_is_stopped)
{
    struct cdacq_heap_arrays *arrays = NULL;
    reset();
    problem_answer = 1;
    ck_assert_int_eq(read_heap(NULL, CDACQ_HEAP_REFERENCES, &visitor, &arrays, NULL, NULL), CDACQ_STOPPED);
    ck_assert_uint_eq(arrays->object_count, 3);
    ck_assert_uint_eq(arrays->first_references[3], arrays->reference_count);
    free_arrays(arrays);
}
END_TEST

START_TEST(failures)
{
    struct cdacq_heap_arrays *arrays = NULL;
    struct cdacq_error error;
    reset();
    ck_assert_int_eq(read_heap(NULL, 0, NULL, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(read_heap(NULL, 2, NULL, &arrays, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(read_heap(NULL, 0, &(struct cdacq_heap_visitor){0}, &arrays, NULL, &error), CDACQ_ERR_ARGUMENT);
    result = CDACQ_ERR_MEMORY;
    ck_assert_int_eq(read_heap(NULL, 0, NULL, &arrays, NULL, &error), CDACQ_ERR_MEMORY);
    ck_assert_ptr_null(arrays);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("heap_arrays");
    TCase *tc = tcase_create("heap_arrays");
    tcase_add_test(tc, all_that_is_told);
    tcase_add_test(tc, without_references);
    tcase_add_test(tc, a_visit_that_is_stopped);
    tcase_add_test(tc, failures);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
