/*
 * test_record_index.c: the index of records against a plain list.
 */
#include "src/lookup/record_index.h"
#include "tests/support/check_main.h"

enum { STARTS = 2000 };

/* The index stores pointers and does not follow them. */
static struct method_record *record(size_t number)
{
    return (struct method_record *)(number + 1);
}

START_TEST(finds_the_record_before_an_address)
{
    static size_t by_start[STARTS]; /* the number of the record that was added last, plus 1 */
    uint64_t addresses[RECORD_INDEX_BATCH];
    struct method_record *expected[RECORD_INDEX_BATCH], *found[RECORD_INDEX_BATCH];
    struct record_index index = {0};
    uint64_t random = 1;
    ck_assert_ptr_null(record_index_find(&index, 100));
    for (size_t i = 0; i < 3 * STARTS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        size_t start = (random >> 33) % STARTS;
        ck_assert(record_index_add(&index, 10 * start, record(i)));
        by_start[start] = i + 1;
        if (i % 100)
            continue;
        size_t count = 0, most = i / 100 % RECORD_INDEX_BATCH + 1;
        for (size_t at = 0, last = 0; at < STARTS; at++) {
            last = by_start[at] ? by_start[at] : last;
            addresses[count] = 10 * at + at % 10;
            expected[count] = last ? record(last - 1) : NULL;
            ck_assert_ptr_eq(record_index_find(&index, addresses[count]), expected[count]);
            if (++count < most && at < STARTS - 1)
                continue;
            record_index_find_batch(&index, addresses, count, found);
            ck_assert_mem_eq(found, expected, count * sizeof *found);
            count = 0;
        }
    }
    record_index_deinit(&index);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("record_index");
    TCase *tcase = tcase_create("record_index");
    tcase_add_test(tcase, finds_the_record_before_an_address);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
