/*
 * The nibble map as a function of a map and an address: maps written out by hand, and maps written as the runtime does.
 */
#include "tests/support/check_main.h"
#include "contracts/code_lookup/nibble_map.h"
#include "tests/support/mock_support.h"

enum { UNITS = 64 };

static const uint64_t base = 0x40000000;

/* Check records each assertion that passes, which takes longer than a look-up, so loops call abort. */

/* A map of UNITS units, written to before it is opened. */
struct fixture {
    struct mock *mock;
    struct cdacq_target *target;
    uint64_t header_map;
    const struct nibble_map_version *version;
};

static struct fixture fixture_of_version(int arch, uint64_t seed, unsigned version)
{
    struct fixture fixture = {.mock = mock_of_version(arch, seed, version),
                              .version = version == 1 ? &nibble_map_linear : &nibble_map_constant};
    fixture.header_map = mock_alloc(fixture.mock, UNITS * 4, 4);
    return fixture;
}

static struct fixture fixture(int arch, uint64_t seed)
{
    return fixture_of_version(arch, seed, 2);
}

static void set_unit(struct fixture *fixture, unsigned i, uint32_t unit)
{
    mock_write_uint(fixture->mock, fixture->header_map + i * 4, 4, unit);
}

static void open_fixture(struct fixture *fixture)
{
    fixture->target = mock_publish_and_open(fixture->mock);
}

static void close_fixture(struct fixture *fixture)
{
    cdacq_target_close(fixture->target);
    mock_destroy(fixture->mock);
}

static uint64_t find_status(const struct fixture *fixture, uint64_t offset, enum cdacq_status *ret)
{
    struct nibble_map map = {base, fixture->header_map};
    struct reader reader = mock_reader(fixture->target);
    uint64_t start = fixture->version->find(&reader, &map, base + offset);
    *ret = reader_failure(&reader).status;
    if (FUEL_LOOKUP - reader_fuel(&reader) > (fixture->version == &nibble_map_constant ? 2 : 2 * UNITS))
        ck_abort_msg("more units were read than the format takes");
    return start;
}

/* Relative to the base; -1 where there is none. */
static int64_t find(const struct fixture *fixture, uint64_t offset)
{
    enum cdacq_status status;
    uint64_t start = find_status(fixture, offset, &status);
    if (status != CDACQ_OK)
        ck_abort_msg("at %#llx: status %d", (unsigned long long)offset, status);
    return start ? (int64_t)(start - base) : -1;
}

static void assert_find(const struct fixture *fixture, uint64_t offset, int64_t expected)
{
    int64_t found = find(fixture, offset);
    if (found != expected)
        ck_abort_msg("at %#llx: %lld, not %lld", (unsigned long long)offset, (long long)found, (long long)expected);
}

/* The shift of a bucket's nibble: the first one is the most significant. */
START_TEST(shifts)
{
    static const unsigned expected[] = {28, 24, 20, 16, 12, 8, 4, 0};
    for (uint64_t bucket = 0; bucket < 64; bucket++)
        ck_assert_uint_eq(nibble_shift(bucket), expected[bucket % 8]);
}
END_TEST

START_TEST(nothing)
{
    struct fixture f = fixture(_i, 1);
    open_fixture(&f);
    for (uint64_t offset = 0; offset < UNITS * 256; offset += 13)
        assert_find(&f, offset, -1);
    ck_assert_int_eq(find(&f, (uint64_t)-1), -1); /* before the map */
    close_fixture(&f);
}
END_TEST

/* Every position of a start in a unit, and every address of that unit and the next two. */
START_TEST(every_start)
{
    for (unsigned word = 0; word < 64; word += 1 + word / 9) {
        struct fixture f = fixture(_i, 2 + word % 3);
        int64_t start = 256 + 4 * (int64_t)word;
        set_unit(&f, 1, (uint32_t)(word % 8 + 1) << (28 - 4 * (word / 8)));
        open_fixture(&f);
        for (int64_t offset = 0; offset < 4 * 256; offset += 2)
            assert_find(&f, (uint64_t)offset, offset >= start && offset < 3 * 256 ? start : -1);
        close_fixture(&f);
    }
}
END_TEST

/* A start after the address in the same bucket is ignored; the start before it is used. */
START_TEST(starts_after_the_address)
{
    struct fixture f = fixture(_i, 3);
    set_unit(&f, 0, 0x10000000); /* 0 */
    set_unit(&f, 1, 0x80000005); /* 256 + 28, 256 + 7 * 32 + 16 */
    set_unit(&f, 2, 0x00300000); /* 512 + 2 * 32 + 8 */
    open_fixture(&f);
    assert_find(&f, 0, 0);
    assert_find(&f, 256 + 27, 0);
    assert_find(&f, 256 + 28, 256 + 28);
    assert_find(&f, 256 + 7 * 32 + 15, 256 + 28);
    assert_find(&f, 256 + 7 * 32 + 16, 256 + 7 * 32 + 16);
    assert_find(&f, 512 + 2 * 32 + 7, 256 + 7 * 32 + 16);
    assert_find(&f, 512 + 2 * 32 + 8, 512 + 2 * 32 + 8);
    close_fixture(&f);
}
END_TEST

/*
 * A unit that points: the four encodings of the low bits, those that have no meaning, and the unit after one that
 * points.
 */
START_TEST(pointers)
{
    static const struct {
        uint32_t unit;
        int64_t start;
    } cases[] = {{0x139, 304}, {0x009, 0}, {0x00a, 4}, {0x00b, 8}, {0x00c, 12}, {0x10c, 268}, {0x3fc, 0x3fc}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f = fixture(_i, 4);
        set_unit(&f, 10, cases[i].unit);
        open_fixture(&f);
        assert_find(&f, 10 * 256, cases[i].start);
        assert_find(&f, 10 * 256 + 255, cases[i].start);
        assert_find(&f, 11 * 256, cases[i].start);
        assert_find(&f, 11 * 256 + 255, cases[i].start);
        assert_find(&f, 12 * 256, -1);
        assert_find(&f, 10 * 256 - 1, -1);
        close_fixture(&f);
    }
}
END_TEST

START_TEST(corrupt_units)
{
    static const uint32_t units[] = {0x10d, 0x10e, 0x10f, 0xfffffffd, 0xffffffff};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        struct fixture f = fixture(_i, 5);
        enum cdacq_status status;
        set_unit(&f, 10, units[i]);
        open_fixture(&f);
        ck_assert_uint_eq(find_status(&f, 10 * 256 + 40, &status), 0);
        ck_assert_int_eq(status, CDACQ_ERR_CORRUPT);
        ck_assert_uint_eq(find_status(&f, 11 * 256 + 40, &status), 0);
        ck_assert_int_eq(status, CDACQ_ERR_CORRUPT);
        close_fixture(&f);
    }
}
END_TEST

/* A linear map: the last start at or before the address, however far before. */
START_TEST(linear)
{
    struct fixture f = fixture_of_version(_i, 8, 1);
    set_unit(&f, 2, 0x00002005); /* 512 + 4 * 32 + 4, 512 + 7 * 32 + 16 */
    set_unit(&f, 50, 0x80000000);
    open_fixture(&f);
    assert_find(&f, 0, -1);
    assert_find(&f, 512 + 4 * 32 + 3, -1);
    assert_find(&f, 512 + 4 * 32 + 4, 512 + 4 * 32 + 4);
    assert_find(&f, 512 + 7 * 32 + 15, 512 + 4 * 32 + 4);
    assert_find(&f, 512 + 7 * 32 + 16, 512 + 7 * 32 + 16);
    assert_find(&f, 50 * 256 + 27, 512 + 7 * 32 + 16);
    assert_find(&f, 50 * 256 + 28, 50 * 256 + 28);
    assert_find(&f, UNITS * 256 - 1, 50 * 256 + 28);
    close_fixture(&f);
}
END_TEST

/* A nibble above 8 in the middle of a unit is no start. */
START_TEST(corrupt_nibbles)
{
    for (unsigned version = 1; version <= 2; version++) {
        struct fixture f = fixture_of_version(_i, 6, version);
        enum cdacq_status status;
        set_unit(&f, 10, 0x09000000);
        open_fixture(&f);
        for (uint64_t offset = 10 * 256; offset < 12 * 256; offset++) {
            uint64_t start = find_status(&f, offset, &status);
            if (start || status != (offset < 10 * 256 + 64 ? CDACQ_OK : CDACQ_ERR_CORRUPT))
                ck_abort_msg("at %#llx: %#llx, status %d", (unsigned long long)offset, (unsigned long long)start,
                             status);
        }
        close_fixture(&f);
    }
}
END_TEST

START_TEST(missing_map)
{
    struct fixture f = fixture(_i, 7);
    enum cdacq_status status;
    set_unit(&f, 20, 0x10000000);
    mock_unmap(f.mock, f.header_map + 21 * 4, (UNITS - 21) * 4);
    open_fixture(&f);
    assert_find(&f, 20 * 256 + 9, 20 * 256);
    ck_assert_uint_eq(find_status(&f, 21 * 256, &status), 0);
    ck_assert_int_eq(status, CDACQ_ERR_MEMORY);
    close_fixture(&f);
}
END_TEST

/* ---- As the runtime writes it ---- */

struct block {
    uint64_t begin, end;
};

enum { BLOCKS = 120 };

struct collected {
    uint64_t reaches[BLOCKS + 1];
    uint64_t starts[BLOCKS + 1];
    size_t count, limit;
};

static bool collect(const struct nibble_block *block, void *context)
{
    struct collected *collected = context;
    ck_assert(!block->unknown);
    collected->reaches[collected->count] = block->reach - base;
    collected->starts[collected->count++] = block->start - base;
    return collected->count < collected->limit;
}

/* Random blocks, from tiny to many units long, each in a bucket of its own. */
static size_t random_blocks(struct fixture *f, struct random *random, struct block *blocks)
{
    uint64_t at = random_below(random, 200);
    size_t count = 0;
    while (count < BLOCKS) {
        uint64_t begin = align_up(at, 4) + 4 * random_below(random, 12);
        if (count && begin / 32 == blocks[count - 1].begin / 32)
            begin = align_up(begin, 32);
        uint64_t end = begin + 1 + random_below(random, count % 7 ? 120 : 1500);
        if (end > UNITS * 256)
            break;
        blocks[count++] = (struct block){begin, end};
        mock_nibble_set(f->mock, f->header_map, base, base + begin, end - begin);
        at = end + (random_below(random, 4) ? 0 : random_below(random, 900));
    }
    return count;
}

/*
 * Inside a block: its start. Elsewhere: the nearest start before it in a linear map; that or nothing in a constant one.
 */
static void check_blocks(const struct fixture *f, const struct block *blocks, size_t count)
{
    size_t next = 0;
    for (uint64_t offset = 0; offset < UNITS * 256; offset++) {
        while (next < count && blocks[next].begin <= offset)
            next++;
        int64_t nearest = next ? (int64_t)blocks[next - 1].begin : -1, found = find(f, offset);
        bool inside = next && offset < blocks[next - 1].end;
        if (found != nearest && (inside || found != -1 || f->version == &nibble_map_linear))
            ck_abort_msg("at %#llx: %#llx, not %#llx", (unsigned long long)offset, (unsigned long long)found,
                         (unsigned long long)nearest);
        /* Two units after a block's last whole unit there is nothing. */
        if (f->version == &nibble_map_constant && nearest >= 0 && offset >= align_up(blocks[next - 1].end, 256) + 512 &&
            found != -1)
            ck_abort_msg("at %#llx: a block that has ended long before", (unsigned long long)offset);
    }
}

static void check_listing(const struct fixture *f, const struct block *blocks, size_t count)
{
    struct nibble_map map = {base, f->header_map};
    struct reader reader = mock_reader(f->target);
    struct collected all = {.limit = BLOCKS + 1}, some = {.limit = 2}, part = {.limit = BLOCKS + 1};
    ck_assert(nibble_map_each(&reader, f->version, &map, base, base + UNITS * 256, collect, &all));
    ck_assert_uint_eq(all.count, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t next = i + 1 < count ? blocks[i + 1].begin : UNITS * 256;
        ck_assert_uint_eq(all.starts[i], blocks[i].begin);
        ck_assert_uint_ge(all.reaches[i], blocks[i].end);
        /* The reach is what look-ups find, and no more. */
        for (uint64_t offset = blocks[i].begin; offset < next; offset++)
            ck_assert_int_eq(find(f, offset), offset < all.reaches[i] ? (int64_t)blocks[i].begin : -1);
    }
    ck_assert(!nibble_map_each(&reader, f->version, &map, base, base + UNITS * 256, collect, &some));
    ck_assert_uint_eq(some.count, 2);
    /* A part of the map: from the second start up to, but not including, the last but one. */
    ck_assert(nibble_map_each(&reader, f->version, &map, base + blocks[1].begin, base + blocks[count - 2].begin,
                              collect, &part));
    ck_assert_uint_eq(part.count, count - 3);
    ck_assert_uint_eq(part.starts[0], blocks[1].begin);
}

START_TEST(random_maps)
{
    for (uint64_t seed = 0; seed < (uint64_t)rounds(8, 2); seed++) {
        struct fixture f = fixture_of_version(_i, seed, 1 + seed % 2);
        struct random random = {seed * 4 + (uint64_t)_i};
        struct block blocks[BLOCKS];
        size_t count = random_blocks(&f, &random, blocks);
        ck_assert_uint_gt(count, 10);
        open_fixture(&f);
        check_blocks(&f, blocks, count);
        check_listing(&f, blocks, count);
        close_fixture(&f);
    }
}
END_TEST

/* Freed blocks are as if they had never existed. */
START_TEST(deleted_blocks)
{
    for (uint64_t seed = 0; seed < (uint64_t)rounds(8, 2); seed++) {
        struct fixture f = fixture_of_version(_i, seed, 1 + seed % 2);
        struct random random = {seed * 4 + (uint64_t)_i + 1000};
        struct block blocks[BLOCKS], kept[BLOCKS];
        size_t count = random_blocks(&f, &random, blocks), kept_count = 0;
        for (size_t i = 0; i < count; i++) {
            if (i > 2 && i + 3 < count && random_below(&random, 2))
                mock_nibble_delete(f.mock, f.header_map, base, base + blocks[i].begin);
            else
                kept[kept_count++] = blocks[i];
        }
        open_fixture(&f);
        check_blocks(&f, kept, kept_count);
        check_listing(&f, kept, kept_count);
        close_fixture(&f);
    }
}
END_TEST

/* Sizes around those at which a unit starts to point. */
START_TEST(where_pointers_begin)
{
    for (uint64_t begin = 256; begin < 512; begin += 36)
        for (int64_t slack = -4; slack <= 4; slack += 4) {
            struct fixture f = fixture(_i, 1);
            uint64_t end = (uint64_t)(4 * 256 + slack);
            struct block block = {begin, end};
            mock_nibble_set(f.mock, f.header_map, base, base + begin, end - begin);
            open_fixture(&f);
            check_blocks(&f, &block, 1);
            close_fixture(&f);
        }
}
END_TEST

START_TEST(too_large)
{
    struct fixture f = fixture(_i, 1);
    struct nibble_map map = {base, f.header_map};
    struct collected all = {.limit = BLOCKS};
    open_fixture(&f);
    struct reader reader = mock_reader(f.target);
    ck_assert(nibble_map_each(&reader, &nibble_map_constant, &map, base, base, collect, &all));
    ck_assert(nibble_map_each(&reader, &nibble_map_constant, &map, base - 8, base + 8, collect, &all));
    ck_assert(!nibble_map_each(&reader, &nibble_map_constant, &map, base, base + (UINT64_C(1) << 40), collect, &all));
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_CORRUPT);
    ck_assert_uint_eq(all.count, 0);
    close_fixture(&f);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("nibble_map");
    TCase *tcase = tcase_create("nibble_map");
    tcase_add_test(tcase, shifts);
    tcase_add_loop_test(tcase, nothing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, every_start, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, starts_after_the_address, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, pointers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, corrupt_units, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, linear, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, corrupt_nibbles, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_map, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, random_maps, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, deleted_blocks, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, where_pointers_begin, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, too_large, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
