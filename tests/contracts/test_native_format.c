/* Integers, arrays and hash tables of ReadyToRun images: written by the mock's writer, written by hand, and damaged. */
#include "tests/support/check_main.h"
#include "contracts/ready_to_run/native_format.h"
#include "tests/support/mock_support.h"

static struct native_section section_of(const struct mock_bytes *bytes)
{
    ck_assert(!bytes->failed);
    return (struct native_section){.bytes = bytes->data, .size = (uint32_t)bytes->size};
}

/* An exact copy on the heap, so that a read beyond its end is caught. */
static struct native_section copy_of(const uint8_t *bytes, size_t size, uint8_t **ret)
{
    *ret = malloc(size ? size : 1);
    memcpy(*ret, bytes, size);
    return (struct native_section){.bytes = *ret, .size = (uint32_t)size};
}

/* ---- Integers ---- */

static const uint32_t edges[] = {0,          1,          63,         64,        127,        128,
                                 0x1fff,     0x2000,     0x3fff,     0x4000,    0xfffff,    0x100000,
                                 0x1fffff,   0x200000,   0x7ffffff,  0x8000000, 0x0fffffff, 0x10000000,
                                 0x7fffffff, 0x80000000, 0xfffffff0, UINT32_MAX};

START_TEST(integers_by_hand)
{
    static const struct {
        uint8_t bytes[5];
        uint32_t length, value;
        int32_t signed_value;
    } cases[] = {
        {{0x00}, 1, 0, 0},
        {{0x02}, 1, 1, 1},
        {{0xfe}, 1, 127, -1},
        {{0x7e}, 1, 63, 63},
        {{0x80}, 1, 64, -64},
        {{0x01, 0x02}, 2, 128, 128},
        {{0xfd, 0xff}, 2, 0x3fff, -1},
        {{0x03, 0x00, 0x02}, 3, 0x4000, 0x4000},
        {{0x07, 0x00, 0x00, 0x02}, 4, 0x200000, 0x200000},
        {{0xf7, 0xff, 0xff, 0xff}, 4, 0x0fffffff, -1},
        {{0x0f, 0x78, 0x56, 0x34, 0x12}, 5, 0x12345678, 0x12345678},
        {{0x0f, 0xff, 0xff, 0xff, 0xff}, 5, UINT32_MAX, -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t *copy;
        struct native_section section = copy_of(cases[i].bytes, cases[i].length, &copy);
        uint32_t offset = 0, value;
        int32_t number;
        ck_assert(native_unsigned(&section, &offset, &value));
        ck_assert_uint_eq(offset, cases[i].length);
        ck_assert_uint_eq(value, cases[i].value);
        offset = 0;
        ck_assert(native_signed(&section, &offset, &number));
        ck_assert_int_eq(number, cases[i].signed_value);
        /* Cut anywhere, it is no integer, and nothing after the cut is read. */
        for (section.size = 0; section.size < cases[i].length; section.size++) {
            offset = 0;
            value = 77;
            ck_assert(!native_unsigned(&section, &offset, &value));
            ck_assert_uint_eq(offset, 0);
            ck_assert_uint_eq(value, 77);
        }
        free(copy);
    }
}
END_TEST

START_TEST(integers_there_and_back)
{
    struct mock_bytes bytes = {0};
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
        mock_native_unsigned(&bytes, edges[i]);
        mock_native_signed(&bytes, (int32_t)edges[i]);
        mock_native_signed(&bytes, (int32_t)-edges[i]);
    }
    struct native_section section = section_of(&bytes);
    uint32_t offset = 0;
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
        uint32_t value;
        int32_t number;
        ck_assert(native_unsigned(&section, &offset, &value));
        ck_assert_uint_eq(value, edges[i]);
        ck_assert(native_signed(&section, &offset, &number));
        ck_assert_int_eq(number, (int32_t)edges[i]);
        ck_assert(native_signed(&section, &offset, &number));
        ck_assert_int_eq(number, (int32_t)-edges[i]);
    }
    ck_assert_uint_eq(offset, section.size);
    free(bytes.data);
}
END_TEST

START_TEST(no_integers)
{
    for (unsigned first = 0x1f; first < 256; first += 0x20) {
        uint8_t bytes[8] = {(uint8_t)first};
        struct native_section section = {.bytes = bytes, .size = sizeof bytes};
        uint32_t offset = 0, value;
        ck_assert(!native_unsigned(&section, &offset, &value));
        ck_assert_uint_eq(offset, 0);
    }
    struct native_section section = {.bytes = (const uint8_t *)""};
    uint32_t offset = 0, value;
    ck_assert(!native_unsigned(&section, &offset, &value));
    offset = UINT32_MAX;
    ck_assert(!native_unsigned(&section, &offset, &value));
}
END_TEST

/* ---- Arrays ---- */

enum { ELEMENTS = 700 };

struct elements {
    uint8_t data[ELEMENTS][4];
    struct mock_element items[ELEMENTS];
    size_t count;
};

/* `density` of 8 elements are present; each holds its own number. */
static void random_elements(struct elements *elements, struct random *random, size_t count, uint64_t density)
{
    elements->count = count;
    for (size_t i = 0; i < count; i++) {
        store_u32(elements->data[i], (uint32_t)i, false);
        bool present = random_below(random, 8) < density;
        elements->items[i] =
            (struct mock_element){present ? elements->data[i] : NULL, 4, (uint32_t)random_below(random, UINT32_MAX)};
    }
}

static void check_array(const struct mock_bytes *bytes, const struct elements *elements)
{
    struct native_array array;
    uint8_t *copy;
    ck_assert(native_array_open(copy_of(bytes->data, bytes->size, &copy), &array));
    ck_assert_uint_eq(array.count, elements->count);
    for (uint32_t i = 0; i < elements->count + 40; i++) {
        uint32_t offset = 77;
        bool present = i < elements->count && elements->items[i].data;
        if (native_array_at(&array, i, &offset) != present ||
            (present ? load_u32(copy + offset, false) != i : offset != 77))
            ck_abort_msg("element %u of %zu", i, elements->count);
    }
    free(copy);
}

START_TEST(arrays)
{
    static struct elements elements;
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, ELEMENTS};
    struct random random = {(uint64_t)_i};
    for (size_t n = 0; n < ARRAY_SIZE(counts); n++)
        for (uint64_t density = 0; density <= 8; density++)
            for (unsigned index_size = 1; index_size < 4; index_size++) {
                struct mock_bytes bytes = {0};
                random_elements(&elements, &random, counts[n], density);
                mock_native_array(&bytes, elements.items, counts[n], index_size);
                check_array(&bytes, &elements);
                free(bytes.data);
            }
}
END_TEST

/* Each set of elements that a small block can have. */
START_TEST(every_small_block)
{
    static struct elements elements;
    struct random random = {1};
    for (unsigned set = 0; set < 1u << 11; set++) {
        struct mock_bytes bytes = {0};
        random_elements(&elements, &random, 16, 8);
        for (unsigned i = 0; i < 16; i++)
            if (!((set | set << 8) >> i & 1))
                elements.items[i].data = NULL;
        mock_native_array(&bytes, elements.items, 16, 0);
        check_array(&bytes, &elements);
        free(bytes.data);
    }
}
END_TEST

/* Two elements of a block, the bytes worked out by hand: index 0 and 9 of 16. */
START_TEST(array_by_hand)
{
    static const uint8_t bytes[] = {
        0x80,
        0x02 << 0, /* count 16 << 2, index of bytes: 64 << 1 = 0x80; the first block begins 2 bytes after this one */
        0,         /* not reached */
        0x1e,      /* node of bit 8: left and right; right is 3 on: (3 << 2 | 3) << 1 */
        0x00,      /* left: a leaf for index 0 */
        0xaa,      /* its element */
        0x48,      /* right: a leaf for index 9: (9 << 2) << 1 */
        0xbb,
    };
    struct native_array array;
    uint32_t offset;
    ck_assert(native_array_open((struct native_section){.bytes = bytes, .size = sizeof bytes}, &array));
    ck_assert_uint_eq(array.count, 16);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert(native_array_at(&array, i, &offset) == (i == 0 || i == 9));
        if (i == 0)
            ck_assert_uint_eq(bytes[offset], 0xaa);
        if (i == 9)
            ck_assert_uint_eq(bytes[offset], 0xbb);
    }
}
END_TEST

START_TEST(damaged_arrays)
{
    static struct elements elements;
    struct random random = {2};
    struct mock_bytes bytes = {0};
    struct native_array array;
    ck_assert(!native_array_open((struct native_section){.bytes = (const uint8_t *)"", .size = 0}, &array));
    ck_assert(!native_array_open((struct native_section){.bytes = (const uint8_t *)"\x06", .size = 1},
                                 &array)); /* no index width */
    random_elements(&elements, &random, 300, 5);
    mock_native_array(&bytes, elements.items, 300, 3);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *copy;
        struct native_section cut = copy_of(bytes.data, size, &copy);
        for (uint32_t i = 0; native_array_open(cut, &array) && i < 300; i++) {
            uint32_t offset;
            if (native_array_at(&array, i, &offset) && offset >= size)
                ck_abort_msg("element %u lies behind the end", i);
        }
        free(copy);
    }
    for (int round = 0; round < 3000; round++) {
        uint8_t *copy;
        struct native_section damaged = copy_of(bytes.data, bytes.size, &copy);
        for (uint64_t n = 1 + random_below(&random, 8); n; n--)
            copy[random_below(&random, n % 2 ? bytes.size : MIN(bytes.size, 40))] = (uint8_t)random_below(&random, 256);
        for (uint32_t i = 0; native_array_open(damaged, &array) && i < 300; i++) {
            uint32_t offset;
            native_array_at(&array, i, &offset);
        }
        free(copy);
    }
    free(bytes.data);
}
END_TEST

/* ---- Hash tables ---- */

struct seen {
    const uint8_t *bytes;
    uint32_t size;
    unsigned times[ELEMENTS];
    unsigned total, limit;
};

static bool see(uint32_t offset, void *context)
{
    struct seen *seen = context;
    if (offset >= seen->size)
        ck_abort_msg("an element behind the end");
    if (seen->bytes)
        seen->times[load_u32(seen->bytes + offset, false)]++;
    return ++seen->total != seen->limit;
}

START_TEST(hashtables)
{
    static struct elements elements;
    static const size_t counts[] = {0, 1, 2, 40, ELEMENTS};
    struct random random = {3};
    for (size_t n = 0; n < ARRAY_SIZE(counts); n++)
        for (unsigned bits = 0; bits < 9; bits += 2)
            for (unsigned index_size = counts[n] > 10 ? 2 : 0; index_size < 4; index_size++) {
                struct mock_bytes bytes = {0};
                struct native_hashtable table;
                random_elements(&elements, &random, counts[n], 8);
                mock_native_hashtable(&bytes, elements.items, counts[n], bits, index_size);
                struct seen seen = {bytes.data, (uint32_t)bytes.size, {0}, 0, 0};
                ck_assert(native_hashtable_open(section_of(&bytes), &table));
                ck_assert_uint_eq(table.bucket_count, 1u << bits);
                ck_assert(native_hashtable_each(&table, see, &seen));
                ck_assert_uint_eq(seen.total, counts[n]);
                for (size_t i = 0; i < counts[n]; i++)
                    ck_assert_uint_eq(seen.times[i], 1);
                free(bytes.data);
            }
}
END_TEST

START_TEST(a_visit_that_stops)
{
    static struct elements elements;
    struct random random = {4};
    struct mock_bytes bytes = {0};
    struct native_hashtable table;
    random_elements(&elements, &random, 100, 8);
    mock_native_hashtable(&bytes, elements.items, 100, 3, 3);
    struct seen seen = {bytes.data, (uint32_t)bytes.size, {0}, 0, 7};
    ck_assert(native_hashtable_open(section_of(&bytes), &table));
    native_hashtable_each(&table, see, &seen);
    ck_assert_uint_eq(seen.total, 7);
    free(bytes.data);
}
END_TEST

START_TEST(damaged_hashtables)
{
    static struct elements elements;
    struct random random = {5};
    struct mock_bytes bytes = {0};
    struct native_hashtable table;
    ck_assert(!native_hashtable_open((struct native_section){.bytes = (const uint8_t *)"", .size = 0}, &table));
    ck_assert(!native_hashtable_open((struct native_section){.bytes = (const uint8_t *)"\x03", .size = 1},
                                     &table)); /* no index width */
    ck_assert(!native_hashtable_open((struct native_section){.bytes = (const uint8_t *)"\xfc", .size = 1},
                                     &table)); /* 2^63 buckets */
    random_elements(&elements, &random, 200, 8);
    mock_native_hashtable(&bytes, elements.items, 200, 4, 3);
    for (size_t size = 1; size < bytes.size; size += 7) {
        uint8_t *copy;
        struct native_section cut = copy_of(bytes.data, size, &copy);
        struct seen seen = {.size = (uint32_t)size};
        if (native_hashtable_open(cut, &table))
            ck_assert(!native_hashtable_each(&table, see, &seen)); /* it must report that something is missing */
        free(copy);
    }
    for (int round = 0; round < 3000; round++) {
        uint8_t *copy;
        struct native_section damaged = copy_of(bytes.data, bytes.size, &copy);
        struct seen seen = {.size = (uint32_t)bytes.size};
        for (uint64_t n = 1 + random_below(&random, 8); n; n--)
            copy[random_below(&random, n % 2 ? bytes.size : 40)] = (uint8_t)random_below(&random, 256);
        if (native_hashtable_open(damaged, &table))
            native_hashtable_each(&table, see, &seen);
        ck_assert_uint_le(seen.total, bytes.size + 1);
        free(copy);
    }
    free(bytes.data);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("native_format");
    TCase *tcase = tcase_create("native_format");
    tcase_add_test(tcase, integers_by_hand);
    tcase_add_test(tcase, integers_there_and_back);
    tcase_add_test(tcase, no_integers);
    tcase_add_loop_test(tcase, arrays, 0, 3);
    tcase_add_test(tcase, every_small_block);
    tcase_add_test(tcase, array_by_hand);
    tcase_add_test(tcase, damaged_arrays);
    tcase_add_test(tcase, hashtables);
    tcase_add_test(tcase, a_visit_that_stops);
    tcase_add_test(tcase, damaged_hashtables);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
