#include "target/reader.h"

#include "target/mapped_files.h"
#include "target/memory.h"
#include "tests/support/check_main.h"

/* ---- A target made of fragments ---- */

struct fragment {
    uint64_t begin;
    size_t size;
    bool from_file, unverified;
};

enum { FRAGMENT_MAX = 4096 };

static struct fake {
    struct target base;
    struct fragment fragments[FRAGMENT_MAX];
    size_t count;
    size_t lookups;
    uint8_t *bytes[FRAGMENT_MAX];
} fake;

static struct cdacq_error error;
static struct reader reader;

/* What every byte of the target is, so that a read from a wrong place shows. */
static uint8_t pattern(uint64_t address)
{
    return (uint8_t)(address * 0x9d + (address >> 8) * 0x35 + 7);
}

static bool fake_at(struct target *target, uint64_t address, bool files, struct span *ret)
{
    (void)target;
    fake.lookups++;
    for (size_t i = 0; i < fake.count; i++) {
        const struct fragment *fragment = &fake.fragments[i];
        if (address < fragment->begin || address - fragment->begin >= fragment->size || (fragment->from_file && !files))
            continue;
        *ret = (struct span){.begin = fragment->begin,
                             .end = fragment->begin + fragment->size,
                             .bytes = fake.bytes[i],
                             .unverified = fragment->unverified};
        return true;
    }
    return false;
}

static bool fake_memory_at(struct target *target, uint64_t address, struct span *ret)
{
    return fake_at(target, address, true, ret);
}

static bool fake_dumped_at(struct target *target, uint64_t address, struct span *ret)
{
    return fake_at(target, address, false, ret);
}

static const struct target_ops fake_ops = {.memory_at = fake_memory_at, .dumped_at = fake_dumped_at};

/* Each fragment is an allocation of its own, so that AddressSanitizer finds a read beyond its end. */
static uint8_t *fragment(uint64_t begin, size_t size)
{
    ck_assert_uint_lt(fake.count, FRAGMENT_MAX);
    uint8_t *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(begin + i);
    fake.bytes[fake.count] = bytes;
    fake.fragments[fake.count++] = (struct fragment){.begin = begin, .size = size};
    return bytes;
}

static void setup(void)
{
    memset(&fake, 0, sizeof fake);
    fake.base = (struct target){.ops = &fake_ops, .kind = CDACQ_TARGET_MEMORY};
    memset(&error, 0, sizeof error);
    reader_init(&reader, &fake.base, 8, false);
}

static void teardown(void)
{
    for (size_t i = 0; i < fake.count; i++)
        free(fake.bytes[i]);
    mapped_files_deinit(&fake.base);
    target_deinit(&fake.base);
}

static uint64_t pattern_int(uint64_t address, unsigned width, bool big)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)pattern(address + i) << 8 * (big ? width - 1 - i : i);
    return value;
}

/* ---- Widths, orders, joins ---- */

/* Every width and order, at every offset of 32 bytes that are cut into spans at every possible offset. */
START_TEST(joins_spans_in_all_widths_and_orders)
{
    uint64_t base = 0x1000;
    size_t cut = (size_t)_i;
    if (cut)
        fragment(base, cut);
    if (cut < 32)
        fragment(base + cut, 32 - cut);
    for (int big = 0; big < 2; big++)
        for (unsigned width = 1; width <= 8; width *= 2)
            for (uint64_t at = base; at + width <= base + 32; at++) {
                reader_init(&reader, &fake.base, width == 4 ? 4 : 8, big);
                uint64_t expected = pattern_int(at, width, big);
                ck_assert_uint_eq(read_uint(&reader, at, width), expected);
                if (width == 2)
                    ck_assert_uint_eq(read_u16(&reader, at), expected);
                if (width == 4)
                    ck_assert_uint_eq(read_u32(&reader, at), expected);
                if (width == 8)
                    ck_assert_uint_eq(read_u64(&reader, at), expected);
                if (width >= 4)
                    ck_assert_uint_eq(read_pointer(&reader, at), expected);
                ck_assert(!reader_failed(&reader));
            }
}
END_TEST

START_TEST(joins_spans_of_one_byte)
{
    for (uint64_t i = 0; i < 16; i++)
        fragment(0x2000 + i, 1);
    for (int big = 0; big < 2; big++) {
        reader_init(&reader, &fake.base, 8, big);
        ck_assert_uint_eq(read_u64(&reader, 0x2003), pattern_int(0x2003, 8, big));
        ck_assert_uint_eq(read_u32(&reader, 0x2003), pattern_int(0x2003, 4, big));
        ck_assert_uint_eq(read_u16(&reader, 0x2003), pattern_int(0x2003, 2, big));
        ck_assert_uint_eq(read_u8(&reader, 0x2003), pattern(0x2003));
        uint8_t bytes[16];
        ck_assert(reader_copy(&reader, 0x2000, bytes, sizeof bytes));
        for (size_t i = 0; i < sizeof bytes; i++)
            ck_assert_uint_eq(bytes[i], pattern(0x2000 + i));
    }
}
END_TEST

START_TEST(bytes_are_not_sign_extended)
{
    uint8_t *bytes = fragment(0, 16);
    memset(bytes, 0xff, 16);
    ck_assert_uint_eq(read_u8(&reader, 0), 0xff);
    ck_assert_uint_eq(read_u16(&reader, 0), 0xffff);
    ck_assert_uint_eq(read_uint(&reader, 0, 4), 0xffffffff);
    reader.pointer_size = 4;
    ck_assert_uint_eq(read_pointer(&reader, 0), 0xffffffff);
    reader.pointer_size = 8;
    ck_assert_uint_eq(read_pointer(&reader, 0), UINT64_MAX);
}
END_TEST

START_TEST(near_reads_need_no_lookup)
{
    fragment(0x1000, 256);
    fragment(0x5000, 256);
    for (int i = 0; i < 100; i++)
        read_u32(&reader, 0x1000 + (uint64_t)i);
    ck_assert_uint_eq(fake.lookups, 1);
    read_u8(&reader, 0x5000);
    read_u8(&reader, 0x50ff);
    ck_assert_uint_eq(fake.lookups, 2);
    ck_assert(!reader_failed(&reader));
}
END_TEST

/* ---- Failing ---- */

START_TEST(the_first_failure_sticks)
{
    fragment(0x1000, 16);
    ck_assert_uint_ne(read_u64(&reader, 0x1000), 0);
    ck_assert_uint_eq(read_u64(&reader, 0x1ffe), 0);
    ck_assert(reader_failed(&reader));
    size_t lookups = fake.lookups;
    uint32_t fuel = reader_fuel(&reader);
    /* Everything is 0 or false now, and the target is not read. */
    ck_assert_uint_eq(read_u64(&reader, 0x1000), 0);
    ck_assert_uint_eq(read_u8(&reader, 0x9999), 0);
    ck_assert_uint_eq(read_pointer(&reader, 0x1000), 0);
    uint8_t buffer[4] = {1, 2, 3, 4};
    struct window window = {0};
    char *string = NULL;
    ck_assert(!reader_copy(&reader, 0x1000, buffer, 4));
    ck_assert(!reader_try_copy(&reader, 0x1000, buffer, 4));
    ck_assert(!reader_window(&reader, 0x1000, 4, "window", &window));
    ck_assert(!reader_string(&reader, 0x1000, 16, &string));
    ck_assert(!reader_step(&reader, "loop"));
    ck_assert_ptr_null(window.bytes);
    ck_assert_ptr_null(string);
    ck_assert_uint_eq(buffer[0], 1);
    ck_assert_uint_eq(fake.lookups, lookups);
    ck_assert_uint_eq(reader_fuel(&reader), fuel);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(error.address, 0x1ffe);
    ck_assert_str_eq(error.message, "memory: no memory at 0x1ffe");
    /* A later failure does not replace it. */
    ck_assert_uint_eq(reader_fail(&reader, CDACQ_ERR_CORRUPT, 5, "later"), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_MEMORY);
    reader_begin(&reader, 10);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_OK);
    ck_assert_uint_eq(read_u64(&reader, 0x1000), pattern_int(0x1000, 8, false));
}
END_TEST

START_TEST(a_read_fails_at_its_first_missing_byte)
{
    fragment(0x1000, 16);
    fragment(0x1010, 4);
    ck_assert_uint_eq(read_u64(&reader, 0x100e), 0);
    reader_status(&reader, &error);
    ck_assert_uint_eq(error.address, 0x1014);
    reader_begin(&reader, 100);
    uint8_t buffer[64];
    ck_assert(!reader_copy(&reader, 0x1008, buffer, sizeof buffer));
    reader_status(&reader, &error);
    ck_assert_uint_eq(error.address, 0x1014);
}
END_TEST

START_TEST(reads_that_wrap_fail)
{
    fragment(0, 64);
    fragment(UINT64_MAX - 15, 15); /* a range cannot hold the very last byte */
    ck_assert_uint_eq(read_u32(&reader, UINT64_MAX - 15), pattern_int(UINT64_MAX - 15, 4, false));
    ck_assert(!reader_failed(&reader));
    ck_assert_uint_eq(read_u64(&reader, UINT64_MAX - 3), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    reader_begin(&reader, 100);
    uint8_t buffer[64];
    ck_assert(!reader_copy(&reader, UINT64_MAX - 10, buffer, sizeof buffer));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    reader_begin(&reader, 100);
    struct window window;
    ck_assert(!reader_window(&reader, UINT64_MAX - 10, 64, "table", &window));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_CORRUPT);
    ck_assert_uint_eq(error.address, UINT64_MAX - 10);
}
END_TEST

START_TEST(messages_name_the_thing_and_the_address)
{
    static const struct {
        enum cdacq_status status;
        const char *what, *message;
    } cases[] = {
        {CDACQ_ERR_MEMORY, "RangeSection.Flags", "RangeSection.Flags: no memory at 0x7f00dead"},
        {CDACQ_ERR_MEMORY, NULL, "memory: no memory at 0x7f00dead"},
        {CDACQ_ERR_FUEL, "fragment list", "fragment list: gave up after too many steps"},
        {CDACQ_ERR_FIELD, "Module.Base", "Module.Base is not described by the target's descriptor"},
        {CDACQ_ERR_CORRUPT, "nibble map", "nibble map: impossible value at 0x7f00dead"},
        {CDACQ_ERR_NOMEM, "the index", "out of memory for the index"},
        {CDACQ_ERR_MODULE, "a file", "a file: a file that is needed is missing or is not the one that was mapped"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        reader_begin(&reader, 10);
        ck_assert_uint_eq(reader_fail(&reader, cases[i].status, 0x7f00dead, cases[i].what), 0);
        ck_assert_int_eq(reader_status(&reader, &error), cases[i].status);
        ck_assert_int_eq(error.status, cases[i].status);
        ck_assert_str_eq(error.message, cases[i].message);
    }
}
END_TEST

START_TEST(a_message_says_which_file_the_address_belongs_to)
{
    struct mapping *mappings = calloc(2, sizeof *mappings);
    mappings[0] = (struct mapping){.begin = 0x1000, .end = 0x3000, .path = "/usr/lib/lib\x1bx.so"};
    fake.base.mappings = mappings;
    fake.base.mapping_count = 1;
    read_u8(&reader, 0x2fff);
    reader_status(&reader, &error);
    ck_assert_str_eq(error.message, "memory: no memory at 0x2fff; it belongs to /usr/lib/lib\\x1bx.so");
    reader_begin(&reader, 10);
    read_u8(&reader, 0x3000);
    reader_status(&reader, &error);
    ck_assert_str_eq(error.message, "memory: no memory at 0x3000");
}
END_TEST

/* ---- Fuel ---- */

START_TEST(every_read_and_step_costs_fuel)
{
    fragment(0x1000, 64);
    uint8_t buffer[8];
    struct window window;
    char *string = NULL;
    fake.bytes[0][5] = 0;
    reader_begin(&reader, 9);
    read_u8(&reader, 0x1000);
    read_u16(&reader, 0x1000);
    read_u32(&reader, 0x1000);
    read_u64(&reader, 0x1000);
    reader_copy(&reader, 0x1000, buffer, sizeof buffer);
    reader_try_copy(&reader, 0x1000, buffer, sizeof buffer);
    ck_assert(reader_window(&reader, 0x1000, 8, "window", &window));
    window_deinit(&window);
    ck_assert(reader_string(&reader, 0x1000, 16, &string));
    free(string);
    ck_assert_uint_eq(reader_fuel(&reader), 1);
    ck_assert(reader_step(&reader, "loop"));
    ck_assert(!reader_failed(&reader));
    ck_assert(!reader_step(&reader, "fragment list"));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
    ck_assert_str_eq(error.message, "fragment list: gave up after too many steps");
}
END_TEST

START_TEST(a_cycle_ends)
{
    fragment(0x1000, 16);
    store_u64(fake.bytes[0], 0x1008, false);
    store_u64(fake.bytes[0] + 8, 0x1000, false);
    uint64_t at = 0x1000, steps = 0;
    reader_begin(&reader, FUEL_LOOKUP);
    for (; at && reader_step(&reader, "list"); steps++)
        at = read_pointer(&reader, at);
    ck_assert_uint_le(steps, FUEL_LOOKUP);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(try_copy_fails_only_when_fuel_runs_out)
{
    fragment(0x1000, 16);
    uint8_t buffer[32];
    reader_begin(&reader, 3);
    ck_assert(!reader_try_copy(&reader, 0x1008, buffer, 16));
    ck_assert(!reader_failed(&reader));
    ck_assert(reader_try_copy(&reader, 0x1000, buffer, 16));
    ck_assert(reader_try_copy(&reader, 0x9000, buffer, 0));
    ck_assert(!reader_try_copy(&reader, 0x1000, buffer, 16));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(views_are_of_one_span_or_none)
{
    uint8_t *bytes = fragment(0x1000, 16);
    fragment(0x1010, 16);
    reader_begin(&reader, 5);
    ck_assert_ptr_eq(reader_try_view(&reader, 0x1004, 12), bytes + 4);
    ck_assert_ptr_null(reader_try_view(&reader, 0x1004, 13));
    ck_assert_ptr_null(reader_try_view(&reader, 0x2000, 1));
    ck_assert_ptr_null(reader_try_view(&reader, UINT64_MAX, SIZE_MAX));
    ck_assert(!reader_failed(&reader));
    ck_assert_ptr_nonnull(reader_try_view(&reader, 0x1010, 16));
    ck_assert_ptr_null(reader_try_view(&reader, 0x1010, 16)); /* no fuel */
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(running_out_of_fuel_names_the_loop)
{
    fragment(0x1000, 16);
    reader_begin(&reader, 2);
    reader_step(&reader, "fragment list");
    read_u8(&reader, 0x1000);
    read_u8(&reader, 0x1000);
    reader_status(&reader, &error);
    ck_assert_str_eq(error.message, "fragment list: gave up after too many steps");
    reader_begin(&reader, 0);
    read_u8(&reader, 0x1000);
    reader_status(&reader, &error);
    ck_assert_str_eq(error.message, "reading memory: gave up after too many steps");
}
END_TEST

/* ---- Windows ---- */

START_TEST(a_window_in_one_span_is_no_copy)
{
    uint8_t *bytes = fragment(0x1000, 4096);
    struct window window;
    ck_assert(reader_window(&reader, 0x1004, 4092, "table", &window));
    ck_assert_ptr_eq(window.bytes, bytes + 4);
    ck_assert_uint_eq(window.size, 4092);
    ck_assert_ptr_null(window.owned);
    window_deinit(&window);
    ck_assert_ptr_null(window.bytes);
    window_deinit(&window);
}
END_TEST

START_TEST(a_window_across_spans_is_joined)
{
    /* Spans of 1, 2, 3, ... bytes: 100 of them are 5,050 bytes. */
    uint64_t at = 0x1000;
    for (size_t i = 1; i <= 100; i++) {
        fragment(at, i);
        at += i;
    }
    struct window window;
    for (uint64_t begin = 0; begin < 50; begin++)
        for (uint64_t size = 1; begin + size <= 5050; size += 611) {
            ck_assert(reader_window(&reader, 0x1000 + begin, size, "table", &window));
            ck_assert_uint_eq(window.size, size);
            for (uint64_t i = 0; i < size; i++)
                if (window.bytes[i] != pattern(0x1000 + begin + i))
                    ck_abort_msg("byte %lu of window %lu+%lu", (unsigned long)i, (unsigned long)begin,
                                 (unsigned long)size);
            window_deinit(&window);
        }
    ck_assert(reader_window(&reader, 0x1000, 5050, "table", &window));
    window_deinit(&window);
    window = (struct window){0};
    ck_assert(!reader_window(&reader, 0x1000, 5051, "DT_RELA", &window));
    ck_assert_ptr_null(window.bytes);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(error.address, 0x1000 + 5050);
    ck_assert_str_eq(error.message, "DT_RELA: no memory at 0x23ba");
}
END_TEST

START_TEST(an_empty_window_needs_no_memory)
{
    struct window window;
    ck_assert(reader_window(&reader, 0xdead, 0, "table", &window));
    ck_assert_ptr_nonnull(window.bytes);
    ck_assert_uint_eq(window.size, 0);
    window_deinit(&window);
}
END_TEST

START_TEST(window_sizes_are_capped)
{
    static const uint64_t sizes[] = {(uint64_t)WINDOW_MAX + 1, UINT64_MAX / 2, UINT64_MAX};
    fragment(0x1000, 16);
    struct window window;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        reader_begin(&reader, 100);
        ck_assert(!reader_window(&reader, 0x1000, sizes[i], "table", &window));
        ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_CORRUPT);
        ck_assert_str_eq(error.message, "table: impossible value at 0x1000");
    }
    /* Just below the cap, with next to nothing there: no memory is taken for it (under a limit in test runners). */
    reader_begin(&reader, 100);
    ck_assert(!reader_window(&reader, 0x1000, WINDOW_MAX, "table", &window));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(error.address, 0x1010);
}
END_TEST

/*
 * A window that has to be joined costs what copying costs, or a small file could buy hours with the fuel of one call.
 */
START_TEST(joined_windows_cost_fuel_by_size)
{
    enum { RUN = 1 << 20, RUNS = 16 };
    for (uint64_t i = 0; i < RUNS; i++)
        fragment(0x10000000 + i * RUN, RUN);
    struct window window;
    reader_begin(&reader, FUEL_LOOKUP);
    unsigned windows = 0;
    while (reader_window(&reader, 0x10000000, (uint64_t)RUNS * RUN, "table", &window)) {
        window_deinit(&window);
        ck_assert_uint_lt(++windows, 100);
    }
    ck_assert_uint_ge(windows, 5);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
    /* In one span it is not copied, whatever its size. */
    reader_begin(&reader, 2);
    ck_assert(reader_window(&reader, 0x10000000, RUN, "table", &window));
    ck_assert_uint_eq(reader_fuel(&reader), 1);
    window_deinit(&window);
}
END_TEST

/* ---- Strings ---- */

static void store_string(uint64_t address, const char *string, size_t size)
{
    for (size_t i = 0; i < size; i++)
        for (size_t f = 0; f < fake.count; f++)
            if (address + i >= fake.fragments[f].begin &&
                address + i - fake.fragments[f].begin < fake.fragments[f].size)
                fake.bytes[f][address + i - fake.fragments[f].begin] = (uint8_t)string[i];
}

START_TEST(strings_end_at_their_nul)
{
    char *string = NULL;
    fragment(0x1000, 5);
    fragment(0x1005, 1);
    fragment(0x1006, 1000);
    store_string(0x1000, "Hello World!", 13);
    ck_assert(reader_string(&reader, 0x1000, 256, &string));
    ck_assert_str_eq(string, "Hello World!");
    free(string);
    ck_assert(reader_string(&reader, 0x100c, 256, &string));
    ck_assert_str_eq(string, "");
    free(string);
    /* `max` counts the NUL. */
    ck_assert(reader_string(&reader, 0x1000, 13, &string));
    ck_assert_str_eq(string, "Hello World!");
    free(string);
    string = NULL;
    ck_assert(!reader_string(&reader, 0x1000, 12, &string));
    ck_assert_ptr_null(string);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_CORRUPT);
    ck_assert_uint_eq(error.address, 0x1000);
}
END_TEST

START_TEST(long_strings)
{
    enum { SIZE = 10000 };
    char *text = malloc(SIZE + 1), *string = NULL;
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    for (uint64_t at = 0; at < SIZE + 1; at += 333)
        fragment(0x1000 + at, MIN((uint64_t)333, SIZE + 1 - at));
    store_string(0x1000, text, SIZE + 1);
    ck_assert(reader_string(&reader, 0x1000, SIZE + 1, &string));
    ck_assert_str_eq(string, text);
    free(string);
    string = NULL;
    ck_assert(!reader_string(&reader, 0x1000, SIZE, &string));
    ck_assert_ptr_null(string);
    free(text);
}
END_TEST

START_TEST(strings_fail_where_memory_ends)
{
    char *string = NULL;
    fragment(0x1000, 4);
    memset(fake.bytes[0], 'a', 4);
    ck_assert(!reader_string(&reader, 0x1000, 256, &string));
    ck_assert_ptr_null(string);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_str_eq(error.message, "string: no memory at 0x1004");
    reader_begin(&reader, 100);
    ck_assert(!reader_string(&reader, 0x1000, 0, &string));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_CORRUPT);
}
END_TEST

/* ---- Tasks within tasks ---- */

START_TEST(a_nested_task_has_its_own_fuel_and_failure)
{
    fragment(0x1000, 16);
    fragment(0x2000, 16);
    fake.fragments[1].from_file = fake.fragments[1].unverified = true;
    reader_begin(&reader, 3);
    read_u8(&reader, 0x1000);
    struct reader_task outer = reader_enter(&reader, 100);
    ck_assert_uint_eq(reader_fuel(&reader), 100);
    for (unsigned i = 0; i < 10; i++)
        ck_assert(reader_step(&reader, "inner loop"));
    read_u8(&reader, 0x2000);
    ck_assert(reader_unverified(&reader));
    read_u8(&reader, 0x9000);
    reader_name_failure(&reader, "inner");
    reader_name_failure(&reader, "a name that comes too late");
    struct reader_failure failure = reader_leave(&reader, &outer);
    ck_assert_int_eq(failure.status, CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(failure.address, 0x9000);
    ck_assert_str_eq(failure.what, "inner");
    ck_assert_int_eq(reader_report(&reader, &failure, &error), CDACQ_ERR_MEMORY);
    ck_assert_str_eq(error.message, "inner: no memory at 0x9000");
    /* The outer task goes on as if nothing had been in between. */
    ck_assert(!reader_failed(&reader));
    ck_assert(!reader_unverified(&reader));
    ck_assert_uint_eq(reader_fuel(&reader), 2);
    read_u8(&reader, 0x1000);
    read_u8(&reader, 0x1000);
    read_u8(&reader, 0x1000);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_FUEL);
    ck_assert_str_eq(reader_failure(&reader).what, "reading memory"); /* the message does not name the inner loop */
}
END_TEST

START_TEST(a_nested_task_leaves_the_failure_of_the_outer_one)
{
    fragment(0x1000, 16);
    reader_begin(&reader, 5);
    while (reader_step(&reader, "outer loop"))
        ;
    struct reader_task outer = reader_enter(&reader, 10);
    ck_assert(!reader_failed(&reader));
    read_u8(&reader, 0x1000);
    struct reader_failure failure = reader_leave(&reader, &outer);
    ck_assert_int_eq(failure.status, CDACQ_OK);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_FUEL);
    ck_assert_str_eq(reader_failure(&reader).what, "outer loop");
    ck_assert_uint_eq(reader_fuel(&reader), 0);
}
END_TEST

START_TEST(tasks_nest_more_than_once)
{
    fragment(0x1000, 16);
    reader_begin(&reader, 10);
    struct reader_task outer = reader_enter(&reader, 20);
    struct reader_task middle = reader_enter(&reader, 30);
    read_u8(&reader, 0x9000);
    struct reader_failure inner = reader_leave(&reader, &middle);
    ck_assert_int_eq(inner.status, CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(reader_fuel(&reader), 20);
    ck_assert(reader_fail_again(&reader, &inner));
    struct reader_failure failure = reader_leave(&reader, &outer);
    ck_assert_uint_eq(failure.address, inner.address);
    ck_assert(!reader_failed(&reader));
    ck_assert_uint_eq(reader_fuel(&reader), 10);
}
END_TEST

/* What nested tasks, texts and recordings use is not the task's own fuel. */
START_TEST(a_long_task_ends_when_others_have_used_all_work)
{
    uint32_t steps = 0;
    work_set(&fake.base.work, FUEL_INDEX, 0, 0);
    reader_begin(&reader, FUEL_INDEX);
    ck_assert_uint_eq(reader_fuel(&reader), FUEL_INDEX);
    ck_assert(reader_step(&reader, "first"));
    work_add_steps(&fake.base.work, FUEL_INDEX - 3 * FUEL_SLICE);
    while (reader_step(&reader, "a long loop"))
        steps++;
    ck_assert_uint_ge(steps, 2 * FUEL_SLICE);
    ck_assert_uint_le(steps, 3 * FUEL_SLICE);
    ck_assert_uint_eq(work_left(&fake.base.work), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
    work_set(&fake.base.work, 0, 0, 0);
    reader_begin(&reader, 2 * FUEL_SLICE);
    reader_charge(&reader, FUEL_SLICE + 1);
    ck_assert_uint_eq(reader_fuel(&reader), FUEL_SLICE - 1);
    reader_charge(&reader, UINT32_MAX);
    ck_assert_uint_eq(reader_fuel(&reader), 0);
}
END_TEST

START_TEST(an_outer_task_is_charged_and_inherits)
{
    reader_begin(&reader, 10);
    reader_charge(&reader, 4);
    ck_assert_uint_eq(reader_fuel(&reader), 6);
    reader_charge(&reader, 7);
    ck_assert_uint_eq(reader_fuel(&reader), 0);
    reader_add_unverified(&reader, false);
    ck_assert(!reader_unverified(&reader));
    reader_add_unverified(&reader, true);
    reader_add_unverified(&reader, false);
    ck_assert(reader_unverified(&reader));
}
END_TEST

START_TEST(a_reader_recovers_from_the_failures_that_are_named)
{
    ck_assert(!reader_recover(&reader, FAILURE_ANY)); /* from none */
    reader_fail(&reader, CDACQ_ERR_MEMORY, 0x9000, "what");
    ck_assert(!reader_recover(&reader, FAILURE(CDACQ_ERR_FUEL)));
    ck_assert(!reader_recover(&reader, ~FAILURE(CDACQ_ERR_MEMORY)));
    ck_assert(reader_failed(&reader));
    ck_assert(reader_recover(&reader, FAILURE(CDACQ_ERR_FIELD) | FAILURE(CDACQ_ERR_MEMORY)));
    ck_assert(!reader_failed(&reader));
    ck_assert_ptr_null(reader_failure(&reader).what);
    reader_fail(&reader, CDACQ_ERR_MODULE, 0, "the status with the lowest number");
    ck_assert(reader_recover(&reader, FAILURE_ANY));
    struct reader_failure none = reader_failure(&reader);
    ck_assert(!reader_fail_again(&reader, &none));
    ck_assert(!reader_failed(&reader));
}
END_TEST

/* ---- Files' bytes ---- */

START_TEST(unverified_is_remembered_until_the_next_task)
{
    fragment(0x1000, 16);
    fragment(0x2000, 16);
    fake.fragments[1].from_file = fake.fragments[1].unverified = true;
    read_u8(&reader, 0x1000);
    ck_assert(!reader_unverified(&reader));
    read_u8(&reader, 0x2000);
    ck_assert(reader_unverified(&reader));
    read_u8(&reader, 0x1000);
    ck_assert(reader_unverified(&reader));
    reader_begin(&reader, 100);
    ck_assert(!reader_unverified(&reader));
    read_u8(&reader, 0x1000);
    ck_assert(!reader_unverified(&reader));
    read_u16(&reader, 0x200f); /* half of it is missing: what was there still came from the file */
    ck_assert(reader_unverified(&reader));
    /* The same page again, under the hint, in a new task. */
    reader_begin(&reader, 100);
    read_u8(&reader, 0x2001);
    ck_assert(reader_unverified(&reader));
}
END_TEST

START_TEST(dumped_only_takes_no_file)
{
    fragment(0x1000, 16);
    fragment(0x2000, 16);
    fake.fragments[1].from_file = true;
    reader.dumped_only = true;
    uint8_t byte;
    ck_assert(reader_try_copy(&reader, 0x1000, &byte, 1));
    ck_assert(!reader_try_copy(&reader, 0x2000, &byte, 1));
    ck_assert_uint_eq(read_u8(&reader, 0x2000), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
}
END_TEST

START_TEST(a_lasting_view_is_in_one_span)
{
    uint8_t *bytes = fragment(0x1000, 16);
    fragment(0x2000, 16);
    fake.fragments[1].unverified = true;
    bool unverified;
    ck_assert_ptr_eq(reader_try_lasting_view(&reader, 0x1004, 12, &unverified), bytes + 4);
    ck_assert(!unverified);
    ck_assert_ptr_null(reader_try_lasting_view(&reader, 0x1004, 13, &unverified));
    ck_assert(!unverified);
    ck_assert_ptr_nonnull(reader_try_lasting_view(&reader, 0x2000, 16, &unverified));
    ck_assert(unverified);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_OK);
    fake.base.recording = calloc(1, sizeof *fake.base.recording); /* a view would hide which bytes are read */
    ck_assert_ptr_null(reader_try_lasting_view(&reader, 0x1000, 16, &unverified));
    target_deinit(&fake.base);
    fake.base.recording = NULL;
}
END_TEST

/* ---- Recording ---- */

static bool recorded(uint64_t page)
{
    return pages_find(&fake.base.recording->pages, page) != NULL;
}

START_TEST(a_recording_target_notes_every_page_touched)
{
    fragment(0x10000, 0x4000);
    fragment(0x14000, 0x2000);
    fake.base.recording = calloc(1, sizeof *fake.base.recording);
    read_u8(&reader, 0x10fff);
    ck_assert(recorded(0x10000));
    ck_assert_uint_eq(fake.base.recording->pages.count, 1);
    read_u16(&reader, 0x10fff);
    ck_assert(recorded(0x11000));
    struct window window;
    ck_assert(reader_window(&reader, 0x12ff0, 0x2000, "table", &window));
    window_deinit(&window);
    ck_assert(recorded(0x12000) && recorded(0x13000) && recorded(0x14000));
    ck_assert_uint_eq(fake.base.recording->pages.count, 5);
    read_u8(&reader, 0x99999);
    ck_assert_uint_eq(fake.base.recording->pages.count, 5); /* nothing was there */
    target_record(&fake.base, UINT64_MAX - 10, 100);
    target_record(&fake.base, 0, 0);
    ck_assert(recorded(UINT64_MAX - 4095) && !recorded(0));
}
END_TEST

/* A few bytes of a core can be mapped at so many addresses that a snapshot would be larger than any disk. */
START_TEST(a_recording_has_bounds)
{
    struct recording *recording = fake.base.recording = calloc(1, sizeof *recording);
    work_set(&fake.base.work, 100 * 1000, 0, 0);
    target_record(&fake.base, 0x100000, UINT64_C(1) << 30);
    ck_assert_uint_eq(work_left(&fake.base.work), 0);
    ck_assert_uint_ge(recording->pages.count, 50);
    ck_assert_uint_le(recording->pages.count, 200);
    target_record(&fake.base, UINT64_C(1) << 40, 8);
    ck_assert(!recorded(UINT64_C(1) << 40));
    work_set(&fake.base.work, 0, 8192, 0);
    fake.base.work.memory = 0;
    for (uint64_t page = 0; page < 1000; page++)
        target_record(&fake.base, (UINT64_C(2) << 40) + page * PAGE_SIZE, 8);
    ck_assert(recorded(UINT64_C(2) << 40));
    const struct page *last = pages_find(&recording->pages, (UINT64_C(2) << 40) + 999 * PAGE_SIZE);
    ck_assert(!last || !last->lines);
}
END_TEST

START_TEST(a_recording_target_keeps_patches)
{
    fake.base.recording = calloc(1, sizeof *fake.base.recording);
    target_record_patch(&fake.base, 0x1000, "abc", 3);
    target_record_patch(&fake.base, 0x2000, "", 0);
    const struct patch *patch = fake.base.recording->patches;
    ck_assert_uint_eq(patch->address, 0x2000);
    ck_assert_uint_eq(patch->next->address, 0x1000);
    ck_assert_mem_eq(patch->next->bytes, "abc", 3);
    ck_assert_ptr_null(patch->next->next);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        joins_spans_of_one_byte,
        bytes_are_not_sign_extended,
        near_reads_need_no_lookup,
        the_first_failure_sticks,
        a_read_fails_at_its_first_missing_byte,
        reads_that_wrap_fail,
        messages_name_the_thing_and_the_address,
        a_message_says_which_file_the_address_belongs_to,
        every_read_and_step_costs_fuel,
        a_cycle_ends,
        try_copy_fails_only_when_fuel_runs_out,
        views_are_of_one_span_or_none,
        running_out_of_fuel_names_the_loop,
        a_window_in_one_span_is_no_copy,
        a_window_across_spans_is_joined,
        an_empty_window_needs_no_memory,
        window_sizes_are_capped,
        joined_windows_cost_fuel_by_size,
        strings_end_at_their_nul,
        long_strings,
        strings_fail_where_memory_ends,
        a_nested_task_has_its_own_fuel_and_failure,
        a_nested_task_leaves_the_failure_of_the_outer_one,
        tasks_nest_more_than_once,
        a_long_task_ends_when_others_have_used_all_work,
        an_outer_task_is_charged_and_inherits,
        a_reader_recovers_from_the_failures_that_are_named,
        unverified_is_remembered_until_the_next_task,
        dumped_only_takes_no_file,
        a_lasting_view_is_in_one_span,
        a_recording_target_notes_every_page_touched,
        a_recording_has_bounds,
        a_recording_target_keeps_patches,
    };
    Suite *s = suite_create("reader");
    TCase *tc = tcase_create("reader");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, joins_spans_in_all_widths_and_orders, 0, 33);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
