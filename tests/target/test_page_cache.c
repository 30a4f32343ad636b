#include "target/page_cache.h"

#include "tests/support/check_main.h"

enum { SIZE = 4 * 4096, BASE = 0x10000 };

/* The source of the bytes, and the reads that it was asked for. */
static struct source {
    uint8_t bytes[SIZE];
    bool there[SIZE];
    bool all_or_nothing;
    unsigned calls;
    size_t widest;
    bool crossed; /* a page's end */
} source;

static struct page_cache cache;

static size_t read_source(uint64_t address, void *buffer, size_t size, void *context)
{
    struct source *from = context;
    size_t done = 0;
    from->calls++;
    from->widest = MAX(from->widest, size);
    from->crossed |= address / PAGE_SIZE != (address + size - 1) / PAGE_SIZE;
    for (; done < size; done++) {
        uint64_t at = address + done - BASE;
        if (at >= SIZE || !from->there[at])
            break;
        ((uint8_t *)buffer)[done] = from->bytes[at];
    }
    return from->all_or_nothing && done < size ? 0 : done;
}

static void setup(void)
{
    source = (struct source){0};
    for (size_t i = 0; i < SIZE; i++)
        source.bytes[i] = (uint8_t)(i * 7 + i / 256);
    memset(source.there, 1, sizeof source.there);
    ck_assert(page_cache_init(&cache, read_source, &source));
}

static void teardown(void)
{
    page_cache_deinit(&cache);
}

static struct span at(uint64_t address)
{
    struct span run = {0};
    ck_assert(page_cache_at(&cache, address, &run));
    ck_assert_uint_le(run.begin, address);
    ck_assert_uint_gt(run.end, address);
    return run;
}

START_TEST(a_page_is_read_once)
{
    struct span run = at(BASE + 4096 + 5);
    ck_assert_uint_eq(run.begin, BASE + 4096);
    ck_assert_uint_eq(run.end, BASE + 2 * 4096);
    ck_assert_mem_eq(run.bytes, source.bytes + 4096, 4096);
    ck_assert_uint_eq(source.calls, 1);
    at(BASE + 4096);
    at(BASE + 2 * 4096 - 1);
    ck_assert_uint_eq(source.calls, 1);
    at(BASE);
    ck_assert_uint_eq(source.calls, 2);
    ck_assert(!source.crossed);
}
END_TEST

START_TEST(what_was_handed_out_stays)
{
    struct span run = at(BASE);
    memset(source.bytes, 0xee, sizeof source.bytes);
    memset(source.there, 0, sizeof source.there);
    struct span again = at(BASE + 100);
    ck_assert_ptr_eq(again.bytes, run.bytes);
    ck_assert_uint_eq(run.bytes[100], (uint8_t)(100 * 7));
    struct span other;
    ck_assert(!page_cache_at(&cache, BASE + 4096, &other));
    /* What was not there is not asked for again, though more of its page is. */
    memset(source.there, 1, sizeof source.there);
    ck_assert(!page_cache_at(&cache, BASE + 4096, &other));
    ck_assert_uint_eq(at(BASE + 4097).bytes[0], 0xee);
}
END_TEST

/* Every byte of a page with gaps, asked in an order that the loop index decides, by both manners of reading. */
START_TEST(gaps_are_exact)
{
    uint64_t order = (uint64_t)_i * 2 + 1; /* odd: goes through all */
    source.all_or_nothing = _i & 1;
    for (size_t i = 0; i < SIZE; i++)
        source.there[i] = i / 4096 == 1 ? i % 97 < 60 && i % 4096 >= 40 && i % 4096 < 4000 : i / 4096 != 2 || i & 1;
    for (uint64_t i = 0; i < SIZE; i++) {
        struct span run;
        uint64_t offset = (i * order * 1021) % SIZE, address = BASE + offset;
        bool found = page_cache_at(&cache, address, &run);
        bool whole_line = true; /* a reader of all or nothing can only be asked to the end of a line */
        for (uint64_t k = offset; k < align_up(offset + 1, LINE_SIZE); k++)
            whole_line &= source.there[k];
        if (found != source.there[offset] && (found || !source.all_or_nothing || whole_line))
            ck_abort_msg("0x%lx", (unsigned long)offset);
        if (!found)
            continue;
        if (address < run.begin || address >= run.end)
            ck_abort_msg("0x%lx is not in its run", (unsigned long)offset);
        for (uint64_t k = run.begin; k < run.end; k++)
            if (!source.there[k - BASE] || run.bytes[k - run.begin] != source.bytes[k - BASE])
                ck_abort_msg("0x%lx in the run at 0x%lx", (unsigned long)(k - BASE), (unsigned long)offset);
    }
    for (uint64_t i = 0; !source.all_or_nothing && i < SIZE; i++) { /* all that is there was read: runs are complete */
        if (!source.there[i])
            continue;
        struct span run = {0};
        if (!page_cache_at(&cache, BASE + i, &run) ||
            (run.begin % PAGE_SIZE != 0 && source.there[run.begin - 1 - BASE]) ||
            (run.end % PAGE_SIZE != 0 && source.there[run.end - BASE]))
            ck_abort_msg("the run at 0x%lx is not complete", (unsigned long)i);
    }
    ck_assert(!source.crossed);
    ck_assert_uint_eq(source.widest, 4096);
}
END_TEST

/* Lists are read through spans of such pages in turn. */
START_TEST(an_incomplete_page_takes_no_time)
{
    source.there[4095] = false;
    double start = cpu_seconds();
    for (int i = 0, n = rounds(1000000, 10000); i < n; i++) {
        struct span run; /* ck_assert() takes longer than all else */
        if (!page_cache_at(&cache, BASE + (uint64_t)i % 4095, &run) || run.end != BASE + 4095)
            ck_abort_msg("%d", i);
    }
    double took = cpu_seconds() - start;
    ck_assert_msg(took < time_bound(1), "%g s", took);
}
END_TEST

START_TEST(nothing_is_kept_of_what_is_not_there)
{
    struct span run;
    for (uint64_t i = 0; i < 1000; i++)
        ck_assert(!page_cache_at(&cache, BASE + SIZE + i * 4096, &run));
    ck_assert(!page_cache_at(&cache, UINT64_MAX, &run));
    ck_assert(!page_cache_at(&cache, 0, &run));
    ck_assert_uint_eq(cache.pages.count, 0);
}
END_TEST

static size_t read_too_much(uint64_t address, void *buffer, size_t size, void *context)
{
    (void)context, (void)address;
    memset(buffer, 1, size);
    return size * 2;
}

START_TEST(a_reader_that_says_more_than_it_was_asked_for)
{
    page_cache_deinit(&cache);
    ck_assert(page_cache_init(&cache, read_too_much, NULL));
    struct span run = at(BASE + 7);
    ck_assert_uint_eq(run.end - run.begin, 4096);
}
END_TEST

/* Loop index: what is there of the page, up to half of it. */
START_TEST(what_is_missing_is_asked_for_once)
{
    struct span run;
    memset(source.there + _i * 64, 0, sizeof source.there - (size_t)_i * 64);
    if (_i)
        at(BASE);
    source.calls = 0;
    for (int i = 0; i < 1000; i++)
        ck_assert(!page_cache_at(&cache, BASE + 0x900, &run));
    ck_assert_uint_eq(source.calls, _i ? 1 : 2); /* the page and the line */
    source.calls = 0;
    for (uint64_t i = 0x900; i < 0x980; i++)
        ck_assert(!page_cache_at(&cache, BASE + i, &run));
    ck_assert_uint_eq(source.calls, 0x7f); /* one for each byte but the first: the page is known not to be there */
}
END_TEST

/* What exceeds the cache is asked for again, and no byte gets lost. */
START_TEST(what_is_missing_takes_no_more_room)
{
    struct span run;
    memset(source.there, 0, sizeof source.there / 2);
    for (uint64_t i = 0; i < 100 * 1000; i++)
        ck_assert(!page_cache_at(&cache, BASE + SIZE + i * 4093, &run));
    for (uint64_t i = 0; i < SIZE; i++)
        ck_assert(page_cache_at(&cache, BASE + i, &run) == source.there[i]);
    ck_assert_uint_eq(cache.pages.count, SIZE / 4096 / 2);
}
END_TEST

enum { THREADS = 4 };

static void *ask_all(void *context)
{
    size_t *wrong = context;
    for (uint64_t i = 0; i < SIZE; i++) {
        struct span run;
        uint64_t offset = (i * 4093) % SIZE;
        if (!page_cache_at(&cache, BASE + offset, &run))
            *wrong += source.there[offset];
        else if (!source.there[offset] || run.bytes[BASE + offset - run.begin] != source.bytes[offset])
            ++*wrong;
    }
    return NULL;
}

START_TEST(threads_share_one)
{
    pthread_t threads[THREADS];
    size_t wrong[THREADS] = {0};
    for (size_t i = 0; i < SIZE; i++)
        source.there[i] = i % 100 < 90;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_all, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(wrong[i], 0);
    }
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        a_page_is_read_once,
        what_was_handed_out_stays,
        nothing_is_kept_of_what_is_not_there,
        a_reader_that_says_more_than_it_was_asked_for,
        what_is_missing_takes_no_more_room,
        threads_share_one,
    };
    Suite *s = suite_create("page_cache");
    TCase *tc = tcase_create("page_cache");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_test(tc, an_incomplete_page_takes_no_time);
    tcase_add_loop_test(tc, gaps_are_exact, 0, 6);
    tcase_add_loop_test(tc, what_is_missing_is_asked_for_once, 0, 33);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
