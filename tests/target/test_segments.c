#include "target/segments.h"

#include "tests/support/check_main.h"

static struct segments segments;

static void teardown(void)
{
    segments_deinit(&segments);
}

/* The addresses of segments' bytes; they are used only for arithmetic. */
static uint8_t memory[3][4096];

static void add(uint64_t begin, uint64_t end, size_t which)
{
    struct segment segment = {begin, end, memory[which], NULL, 0};
    if (!segments_add(&segments, segment)) /* ck_assert writes to a file each time: too slow for many */
        ck_abort();
}

static void add_hole(uint64_t begin, uint64_t end, struct mapped_file *file, uint64_t offset)
{
    struct segment segment = {begin, end, NULL, file, offset};
    if (!segments_add(&segments, segment))
        ck_abort();
}

/* Sorted, not empty, not overlapping. */
static void assert_sealed(void)
{
    for (size_t i = 0; i < segments.count; i++)
        if (segments.items[i].begin >= segments.items[i].end ||
            (i && segments.items[i - 1].end > segments.items[i].begin))
            ck_abort_msg("segment %zu of %zu", i, segments.count);
}

START_TEST(nothing)
{
    ck_assert(segments_seal(&segments));
    ck_assert_ptr_null(segments_find(&segments, 0));
    ck_assert_ptr_null(segments_next(&segments, 0));
    ck_assert_ptr_null(segments_find(&segments, UINT64_MAX));
}
END_TEST

START_TEST(one)
{
    add(100, 200, 0);
    ck_assert(segments_seal(&segments));
    ck_assert_ptr_null(segments_find(&segments, 99));
    ck_assert_ptr_eq(segments_find(&segments, 100), &segments.items[0]);
    ck_assert_ptr_eq(segments_find(&segments, 199), &segments.items[0]);
    ck_assert_ptr_null(segments_find(&segments, 200));
    ck_assert_ptr_eq(segments_next(&segments, 0), &segments.items[0]);
    ck_assert_ptr_eq(segments_next(&segments, 199), &segments.items[0]);
    ck_assert_ptr_null(segments_next(&segments, 200));
}
END_TEST

START_TEST(empty_and_inverted_are_ignored)
{
    add(100, 100, 0);
    add(100, 99, 0);
    add(UINT64_MAX, 0, 0);
    ck_assert_uint_eq(segments.count, 0);
    ck_assert(segments_seal(&segments));
    ck_assert_ptr_null(segments_find(&segments, 100));
}
END_TEST

/* How a later segment B = [begin, end) may lie to an earlier A = [100, 200): each end before, at or after A's. */
static const struct overlap {
    uint64_t begin, end;
    struct {
        uint64_t begin, end;
        char who;
    } expected[3];
} overlaps[] = {
    {50, 150, {{50, 150, 'B'}, {150, 200, 'A'}}},
    {50, 200, {{50, 200, 'B'}}},
    {50, 250, {{50, 250, 'B'}}},
    {100, 150, {{100, 150, 'B'}, {150, 200, 'A'}}},
    {100, 200, {{100, 200, 'B'}}},
    {100, 250, {{100, 250, 'B'}}},
    {120, 180, {{100, 120, 'A'}, {120, 180, 'B'}, {180, 200, 'A'}}},
    {150, 200, {{100, 150, 'A'}, {150, 200, 'B'}}},
    {150, 250, {{100, 150, 'A'}, {150, 250, 'B'}}},
    /* no overlap: apart, and touching */
    {50, 90, {{50, 90, 'B'}, {100, 200, 'A'}}},
    {50, 100, {{50, 100, 'B'}, {100, 200, 'A'}}},
    {200, 250, {{100, 200, 'A'}, {200, 250, 'B'}}},
    {210, 250, {{100, 200, 'A'}, {210, 250, 'B'}}},
};

START_TEST(a_later_span_overlays_an_earlier_one)
{
    const struct overlap *c = &overlaps[_i];
    struct mapped_file *file = (struct mapped_file *)memory; /* a name, which is never read */
    add_hole(100, 200, file, 5000);
    add(c->begin, c->end, 1);
    ck_assert(segments_seal(&segments));
    assert_sealed();
    size_t count = 0;
    while (count < 3 && c->expected[count].who)
        count++;
    ck_assert_uint_eq(segments.count, count);
    for (size_t i = 0; i < count; i++) {
        const struct segment *segment = &segments.items[i];
        ck_assert_uint_eq(segment->begin, c->expected[i].begin);
        ck_assert_uint_eq(segment->end, c->expected[i].end);
        if (c->expected[i].who == 'B') {
            ck_assert_ptr_eq(segment->bytes, memory[1] + (segment->begin - c->begin));
            ck_assert_ptr_null(segment->file);
        } else {
            ck_assert_ptr_null(segment->bytes);
            ck_assert_ptr_eq(segment->file, file);
            ck_assert_uint_eq(segment->file_offset, 5000 + (segment->begin - 100));
        }
        ck_assert_ptr_eq(segments_find(&segments, segment->begin), segment);
        ck_assert_ptr_eq(segments_find(&segments, segment->end - 1), segment);
    }
}
END_TEST

START_TEST(neighbours_stay_apart)
{
    add(200, 300, 1);
    add(100, 200, 0);
    ck_assert(segments_seal(&segments));
    ck_assert_uint_eq(segments.count, 2);
    ck_assert_ptr_eq(segments_find(&segments, 199)->bytes, memory[0]);
    ck_assert_ptr_eq(segments_find(&segments, 200)->bytes, memory[1]);
    ck_assert_ptr_eq(segments_next(&segments, 200), segments_find(&segments, 200));
}
END_TEST

START_TEST(an_overlaid_span_continues_after_the_other)
{
    /* Three deep: the middle one ends before the top one does, the lowest shows on both sides. */
    add(0, 1000, 0);
    add(100, 500, 1);
    add(200, 600, 2);
    ck_assert(segments_seal(&segments));
    assert_sealed();
    ck_assert_uint_eq(segments.count, 4);
    ck_assert_ptr_eq(segments_find(&segments, 0)->bytes, memory[0]);
    ck_assert_ptr_eq(segments_find(&segments, 100)->bytes, memory[1]);
    ck_assert_ptr_eq(segments_find(&segments, 200)->bytes, memory[2]);
    ck_assert_ptr_eq(segments_find(&segments, 600)->bytes, memory[0] + 600);
}
END_TEST

START_TEST(cut_by_a_neighbour_that_loses)
{
    /* A lower segment begins within a higher one: the higher stays one segment. */
    add(150, 300, 0);
    add(100, 200, 1);
    ck_assert(segments_seal(&segments));
    ck_assert_uint_eq(segments.count, 2);
    ck_assert_uint_eq(segments.items[0].end, 200);
    ck_assert_ptr_eq(segments.items[1].bytes, memory[0] + 50);
}
END_TEST

START_TEST(the_top_of_the_address_space)
{
    add(UINT64_MAX - 100, UINT64_MAX, 0);
    add(UINT64_MAX - 50, UINT64_MAX, 1);
    add(0, UINT64_MAX, 2);
    add(UINT64_MAX - 10, UINT64_MAX, 1);
    ck_assert(segments_seal(&segments));
    assert_sealed();
    ck_assert_uint_eq(segments.count, 2);
    ck_assert_ptr_eq(segments_find(&segments, UINT64_MAX - 11)->bytes, memory[2]);
    ck_assert_ptr_eq(segments_find(&segments, UINT64_MAX - 1)->bytes, memory[1]);
    ck_assert_ptr_null(segments_find(&segments, UINT64_MAX)); /* the one byte that no range reaches */
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

START_TEST(as_painting_every_byte_would_do)
{
    enum { SIZE = 300 };
    uint64_t state = (uint64_t)_i + 1;
    int owner[SIZE];
    uint64_t begins[40];
    size_t count = 1 + next_random(&state) % ARRAY_SIZE(begins);
    memset(owner, -1, sizeof owner);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = next_random(&state) % SIZE, end = begin + next_random(&state) % (SIZE - begin + 1);
        begins[i] = begin;
        add_hole(begin, end, (struct mapped_file *)(memory[0] + i), 10000 * i);
        for (uint64_t at = begin; at < end; at++)
            owner[at] = (int)i;
    }
    ck_assert(segments_seal(&segments));
    assert_sealed();
    ck_assert_uint_le(segments.count, 2 * count);
    for (uint64_t at = 0; at < SIZE; at++) {
        const struct segment *segment = segments_find(&segments, at);
        size_t i = (size_t)owner[at];
        bool right = segment ? owner[at] >= 0 && segment->file == (struct mapped_file *)(memory[0] + i) &&
                                   segment->file_offset + (at - segment->begin) == 10000 * i + (at - begins[i])
                             : owner[at] < 0;
        if (!right)
            ck_abort_msg("byte %lu is the %d'th segment's", (unsigned long)at, owner[at]);
    }
}
END_TEST

/* The shapes that make a naive cut quadratic. The bound is generous: sanitizers, valgrind, a slow machine. */
START_TEST(huge_counts_take_no_quadratic_time)
{
    enum { COUNT = 200 * 1000 };
    double start = cpu_seconds();
    for (uint64_t i = 0; i < COUNT; i++)
        switch (_i) {
        case 0: /* apart, in order */
            add(i * 16, i * 16 + 8, 0);
            break;
        case 1: /* apart, backwards */
            add((COUNT - i) * 16, (COUNT - i) * 16 + 8, 0);
            break;
        case 2: /* nested, the widest last */
            add(COUNT - i, COUNT + i + 1, 0);
            break;
        case 3: /* nested, the narrowest last: every one shows on both sides */
            add(i, 2 * COUNT - i, 0);
            break;
        case 4: /* all the same */
            add(100, 200, 0);
            break;
        case 5: /* a staircase */
            add(i, i + 1000, 0);
            break;
        default: /* the same begin, ever shorter */
            add(0, COUNT - i, 0);
            break;
        }
    ck_assert(segments_seal(&segments));
    assert_sealed();
    static const size_t expected[] = {COUNT, COUNT, 1, 2 * COUNT - 1, 1, COUNT, COUNT};
    ck_assert_uint_eq(segments.count, expected[_i]);
    for (size_t i = 0; i < segments.count; i++)
        if (segments_find(&segments, segments.items[i].end - 1) != &segments.items[i])
            ck_abort_msg("segment %zu of %zu is not found", i, segments.count);
    ck_assert_msg(cpu_seconds() - start < time_bound(30), "%g s", cpu_seconds() - start);
}
END_TEST

START_TEST(sealing_again_changes_nothing)
{
    add(0, 100, 0);
    add(50, 150, 1);
    add(120, 130, 2);
    ck_assert(segments_seal(&segments));
    size_t count = segments.count;
    struct segment before[8];
    memcpy(before, segments.items, count * sizeof *before);
    ck_assert(segments_seal(&segments));
    ck_assert_uint_eq(segments.count, count);
    ck_assert_mem_eq(before, segments.items, count * sizeof *before);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        nothing,
        one,
        empty_and_inverted_are_ignored,
        neighbours_stay_apart,
        an_overlaid_span_continues_after_the_other,
        cut_by_a_neighbour_that_loses,
        the_top_of_the_address_space,
        sealing_again_changes_nothing,
    };
    Suite *s = suite_create("segments");
    TCase *tc = tcase_create("segments");
    tcase_add_checked_fixture(tc, NULL, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, a_later_span_overlays_an_earlier_one, 0, ARRAY_SIZE(overlaps));
    tcase_add_loop_test(tc, as_painting_every_byte_would_do, 0, 200);
    tcase_add_loop_test(tc, huge_counts_take_no_quadratic_time, 0, 7);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
