/*
 * The head of GC info: the code length in slim and fat headers, in every version and on every architecture, and which
 * version an image or a runtime has. The bits are written here by the rules of the runtime's encoder.
 */
#include <stdio.h>

#include "descriptors/descriptor.h"
#include "descriptors/json.h"
#include "tests/support/check_main.h"
#include "contracts/code_info/gc_header.h"
#include "contracts/code_info/gc_info.h"
#include "tests/support/unwind_support.h"

static struct unwind_fixture f;

static void setup(int architecture)
{
    unwind_fixture_setup(&f, architecture, 1);
}

static void teardown(void)
{
    unwind_fixture_teardown(&f);
}

#define expect(condition, number)                                                        \
    do {                                                                                 \
        if (!(condition))                                                                \
            ck_abort_msg("%#llx: not so: %s", (unsigned long long)(number), #condition); \
    } while (0)

struct bits {
    uint8_t bytes[64];
    unsigned count;
};

static void put(struct bits *bits, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++, bits->count++)
        if (value >> i & 1)
            bits->bytes[bits->count / 8] |= (uint8_t)(1 << bits->count % 8);
}

/* How each architecture encodes lengths: gcinfotypes.h. */
struct rule {
    unsigned base, unit, fat_return;
};

static struct rule rule_of(int architecture)
{
    switch (architecture) {
    case ARCHITECTURE_X64:
        return (struct rule){8, 1, 4};
    case ARCHITECTURE_ARM:
        return (struct rule){7, 2, 2};
    default:
        return (struct rule){8, 4, 4};
    }
}

/* `filler` is the value of the fields around the length. */
static void encode(struct bits *bits, const struct rule *rule, unsigned version, bool fat, uint64_t length,
                   uint64_t filler)
{
    memset(bits, 0, sizeof *bits);
    put(bits, fat, 1);
    put(bits, filler, fat ? 10 : 1);
    if (version < 4)
        put(bits, filler >> 3, fat ? rule->fat_return : 2);
    uint64_t units = length / rule->unit;
    do {
        put(bits, units, rule->base);
        units >>= rule->base;
        put(bits, units != 0, 1);
    } while (units);
    put(bits, filler, 40);
}

static uint32_t decode(const struct bits *bits, unsigned version)
{
    mock_write(f.mock, f.base + 3, bits->bytes, sizeof bits->bytes);
    reader_begin(&f.reader, FUEL_LOOKUP);
    uint32_t length = gc_info_code_length(&f.reader, f.base + 3, version);
    ck_assert(!reader_failed(&f.reader));
    return length;
}

START_TEST(lengths)
{
    setup(_i);
    struct rule rule = rule_of(_i);
    struct bits bits;
    for (unsigned version = 2; version <= 5; version++)
        for (unsigned fat = 0; fat < 2; fat++)
            for (unsigned shift = 0; shift < 32; shift++)
                for (int delta = -1; delta <= 1; delta++)
                    for (uint64_t filler = 0; filler < 3; filler++) {
                        uint64_t length = ((UINT64_C(1) << shift) + (uint64_t)delta) * rule.unit;
                        if (!length || length > UINT32_MAX)
                            continue;
                        encode(&bits, &rule, version, fat, length, filler == 2 ? 0x5a5a5a5a5 : 0 - filler);
                        expect(decode(&bits, version) == length, length);
                    }
    teardown();
}
END_TEST

/* Lengths that do not fit 32 bits, and lengths that do not end. */
START_TEST(too_long)
{
    setup(_i);
    struct rule rule = rule_of(_i);
    struct bits bits;
    encode(&bits, &rule, 4, false, UINT64_C(0x100000000), 0);
    ck_assert_uint_eq(decode(&bits, 4), 0);
    encode(&bits, &rule, 4, true, UINT64_C(0x1ffffffff) * rule.unit, 0);
    ck_assert_uint_eq(decode(&bits, 4), 0);
    memset(&bits, 0xff, sizeof bits);
    for (unsigned version = 2; version <= 5; version++)
        ck_assert_uint_eq(decode(&bits, version), 0);
    teardown();
}
END_TEST

START_TEST(versions_that_are_none)
{
    setup(_i);
    struct rule rule = rule_of(_i);
    struct bits bits;
    encode(&bits, &rule, 4, false, 64, 0);
    ck_assert_uint_eq(decode(&bits, 4), 64);
    ck_assert_uint_eq(decode(&bits, 0), 0);
    ck_assert_uint_eq(decode(&bits, 1), 0);
    ck_assert_uint_eq(decode(&bits, 6), 0);
    ck_assert_uint_eq(decode(&bits, UINT32_MAX), 0);
    teardown();
}
END_TEST

/* Seven bits a byte, the highest first. */
START_TEST(x86)
{
    setup(ARCHITECTURE_X86);
    for (unsigned shift = 0; shift < 32; shift++)
        for (int delta = -1; delta <= 1; delta++) {
            uint32_t length = (UINT32_C(1) << shift) + (uint32_t)delta;
            struct bits bits = {0};
            unsigned groups = 1, at = 0;
            while (groups < 5 && length >> (7 * groups))
                groups++;
            while (groups--)
                bits.bytes[at++] = (uint8_t)((length >> (7 * groups) & 0x7f) | (groups ? 0x80 : 0));
            bits.bytes[at] = 0x77;
            for (unsigned version = 0; version < 6; version++) /* they differ in what comes later */
                expect(decode(&bits, version) == length, length);
        }
    struct bits bits = {.bytes = {0x90, 0x80, 0x80, 0x80, 0x00}}; /* 1 << 32 */
    ck_assert_uint_eq(decode(&bits, 4), 0);
    memset(&bits, 0x80, sizeof bits);
    ck_assert_uint_eq(decode(&bits, 4), 0);
    bits.bytes[4] = 5;
    ck_assert_uint_eq(decode(&bits, 4), 5); /* leading zeros */
    teardown();
}
END_TEST

START_TEST(missing_memory)
{
    setup(_i);
    struct bits bits;
    memset(&bits, 0xff, sizeof bits);
    ck_assert_uint_eq(gc_info_code_length(&f.reader, f.base + UNWIND_ROOM, 4), 0);
    mock_write(f.mock, f.base + UNWIND_ROOM - 2, "\xff\xff", 2);
    ck_assert_uint_eq(gc_info_code_length(&f.reader, f.base + UNWIND_ROOM - 2, 4), 0);
    ck_assert_uint_eq(gc_info_code_length(&f.reader, UINT64_MAX - 3, 4), 0);
    ck_assert(!reader_failed(&f.reader));
    f.layout.architecture = ARCHITECTURE_UNKNOWN;
    ck_assert_uint_eq(gc_info_code_length(&f.reader, f.base, 4), 0);
    teardown();
}
END_TEST

/* ---- Where a collection can begin ---- */

static void put_number(struct bits *bits, uint64_t value, unsigned base)
{
    do {
        put(bits, value, base);
        value >>= base;
        put(bits, value != 0, 1);
    } while (value);
}

/* The widths of numbers: gcinfotypes.h. */
struct widths {
    unsigned slot, frame_register, preserved, fixed_frame, points, ranges, to_start;
};

static struct widths widths_of(int architecture)
{
    if (architecture == ARCHITECTURE_X64)
        return (struct widths){6, 3, 4, 0, 2, 1, 6};
    if (architecture == ARCHITECTURE_ARM)
        return (struct widths){5, 1, 3, 0, 3, 2, 4};
    return (struct widths){6, 2, 4, architecture == ARCHITECTURE_ARM64 ? 4 : 0, 3, 1, 6};
}

enum { SAFETY_UNITS = 200, SAFETY_POINTS = 4, SAFETY_RANGES = 2 };

static const unsigned safe_units[SAFETY_POINTS] = {3, 17, 99, 180},
                      safe_ranges[SAFETY_RANGES][2] = {{20, 41}, {150, 151}};

/* A fat header with every optional field, or a slim one, with points and, in the fat one, ranges. */
static void encode_safety(struct bits *bits, int architecture, unsigned version, bool fat)
{
    enum { FLAGS = 0x4 | 0x8 | 0x30 | 0x40 | 0x100 | 0x200 };
    struct rule rule = rule_of(architecture);
    struct widths widths = widths_of(architecture);
    unsigned unit = version < 4 ? rule.unit : 1, before = version < 4, width = 0;
    memset(bits, 0, sizeof *bits);
    put(bits, fat, 1);
    put(bits, fat ? FLAGS : 1, fat ? 10 : 1);
    if (version < 4)
        put(bits, 1, fat ? rule.fat_return : 2);
    put_number(bits, SAFETY_UNITS, rule.base);
    if (fat) {
        put_number(bits, 40, 5); /* the prolog's size */
        put_number(bits, 9, 3);
        for (unsigned i = 0; i < 3;
             i++) /* slots of the cookie, the PSP symbol, the generic context; negative numbers */
            put(bits, (1u << widths.slot) - 1, widths.slot + 1);
        put_number(bits, 6, widths.frame_register);
        put_number(bits, 33, widths.preserved);
        if (widths.fixed_frame)
            put_number(bits, 77, widths.fixed_frame);
        put(bits, (1u << widths.slot) - 1, widths.slot + 1);
        put_number(bits, 12, 3); /* outgoing arguments */
    }
    put_number(bits, SAFETY_POINTS, widths.points);
    if (fat)
        put_number(bits, SAFETY_RANGES, widths.ranges);
    while (1u << width < SAFETY_UNITS * unit)
        width++;
    for (unsigned i = 0; i < SAFETY_POINTS; i++)
        put(bits, safe_units[i] * unit - before, width);
    for (unsigned i = 0, stop = 0; fat && i < SAFETY_RANGES; i++) {
        put_number(bits, (safe_ranges[i][0] - stop) * unit, widths.to_start);
        stop = safe_ranges[i][1];
        put_number(bits, (stop - safe_ranges[i][0]) * unit - 1, 6);
    }
}

START_TEST(safe_points_and_ranges)
{
    setup(_i);
    unsigned unit = rule_of(_i).unit;
    const struct gc_encoding *encoding = gc_encoding_of((enum architecture)_i);
    for (unsigned version = 2; version <= 5; version++)
        for (int fat = 0; fat < 2; fat++) {
            struct bits bits;
            encode_safety(&bits, _i, version, fat);
            mock_write(f.mock, f.base, bits.bytes, sizeof bits.bytes);
            for (uint32_t offset = 0; offset < SAFETY_UNITS * unit; offset++) {
                struct gc_bits stream = {.reader = &f.reader, .base = f.base};
                struct gc_header header;
                struct gc_place place;
                reader_begin(&f.reader, FUEL_LOOKUP);
                ck_assert(gc_header_read(&stream, encoding, version, &header));
                ck_assert(gc_header_locate(&stream, encoding, &header, offset, offset, &place));
                ck_assert_uint_eq(header.code_length, SAFETY_UNITS * unit);
                ck_assert_uint_eq(header.stack_area, fat ? 12 : 0);
                ck_assert_int_eq(header.generic_context, fat ? GC_CONTEXT_THIS : GC_CONTEXT_NONE);
                ck_assert_int_eq(header.generic_context_slot, fat ? -(int64_t)f.reader.pointer_size : 0);
                bool point = false, range = false;
                for (unsigned i = 0; i < SAFETY_POINTS; i++)
                    point |= offset == safe_units[i] * unit;
                for (unsigned i = 0; fat && i < SAFETY_RANGES; i++)
                    range |= offset >= safe_ranges[i][0] * unit && offset < safe_ranges[i][1] * unit;
                expect(place.in_range == range, offset);
                expect((place.point < header.point_count) == point, offset);
            }
        }
    teardown();
}
END_TEST

/* Counts that no code has, and a range beyond the code. */
START_TEST(damaged_headers)
{
    setup(_i);
    const struct gc_encoding *encoding = gc_encoding_of((enum architecture)_i);
    for (unsigned at = 0; at < 40 * 8; at++) {
        struct bits bits;
        struct gc_bits stream = {.reader = &f.reader, .base = f.base};
        struct gc_header header;
        struct gc_place place;
        encode_safety(&bits, _i, 4, true);
        bits.bytes[at / 8] ^= (uint8_t)(1 << at % 8);
        mock_write(f.mock, f.base, bits.bytes, sizeof bits.bytes);
        reader_begin(&f.reader, FUEL_LOOKUP);
        if (gc_header_read(&stream, encoding, 4, &header) &&
            gc_header_locate(&stream, encoding, &header, 8, 8, &place)) {
            ck_assert_uint_le(place.point, header.point_count);
            ck_assert_uint_le(place.range_total, header.code_length);
        } else {
            struct cdacq_error error;
            ck_assert_int_eq(reader_status(&f.reader, &error), CDACQ_ERR_CORRUPT);
        }
    }
    for (unsigned version = 0; version < 2; version++) {
        struct gc_bits stream = {.reader = &f.reader, .base = f.base};
        struct gc_header header;
        reader_begin(&f.reader, FUEL_LOOKUP);
        ck_assert(!gc_header_read(&stream, encoding, version, &header));
    }
    teardown();
}
END_TEST

START_TEST(versions_of_images)
{
    static const struct {
        unsigned major, minor, version;
    } rows[] = {
        {0, 0, 0},  {5, 4, 0},  {8, 1, 0},  {9, 0, 2},  {9, 1, 2},  /* .NET 8 */
        {9, 2, 3},  {9, 3, 3},  {10, 0, 3}, {10, 1, 3},             /* .NET 9 */
        {11, 0, 4}, {12, 0, 4}, {14, 0, 4}, {15, 0, 4}, {16, 0, 4}, /* .NET 10 */
        {17, 0, 4}, {20, 0, 4}, {21, 0, 5}, {26, 0, 5}, {26, 1, 5}, /* .NET 11 */
    };
    struct layout layout = {0};
    layout.globals[G_GCInfoVersion] = 7;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_uint_eq(gc_info_version_of_r2r(&layout, rows[i].major, rows[i].minor), rows[i].version);
    /* Newer images have the version of their runtime. */
    ck_assert_uint_eq(gc_info_version_of_r2r(&layout, 27, 0), 7);
    ck_assert_uint_eq(gc_info_version_of_r2r(&layout, UINT16_MAX, UINT16_MAX), 7);
    ck_assert_uint_eq(gc_info_version_of_jit(&layout), 7);
    layout.globals[G_GCInfoVersion] = 0;
    ck_assert_uint_eq(gc_info_version_of_r2r(&layout, 27, 0), 0);
    ck_assert_uint_eq(gc_info_version_of_jit(&layout), 0);
}
END_TEST

/* The descriptor determines the architecture; the ELF machine is used only if it states none. */
START_TEST(architectures)
{
    static const struct {
        const char *name;
        unsigned machine;
        enum architecture architecture;
    } rows[] = {
        {"x86", 3, ARCHITECTURE_X86},           {"x64", 62, ARCHITECTURE_X64},
        {"arm", 40, ARCHITECTURE_ARM},          {"arm64", 183, ARCHITECTURE_ARM64},
        {"riscv64", 243, ARCHITECTURE_RISCV64}, {"loongarch64", 258, ARCHITECTURE_LOONGARCH64},
        {"s390x", 22, ARCHITECTURE_UNKNOWN},    {"wasm", 0, ARCHITECTURE_UNKNOWN},
    };
    static const char *const systems[4][2] = {{"unix", "unix"}, {"1", "unix"}, {"win", "win"}, {"2", NULL}};
    struct descriptor nothing = {0};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct descriptor descriptor = {0};
        struct cdacq_error error;
        struct json *root;
        char text[240];
        snprintf(text, sizeof text,
                 "{\"version\":0,\"baseline\":\"empty\",\"types\":{},\"globals\":{\"Architecture\":[\"%s\",\"string\"],"
                 "\"OperatingSystem\":[\"%s\",\"string\"]},"
                 "\"contracts\":{}}",
                 rows[i].name, systems[i % 4][0]);
        ck_assert_int_eq(json_parse(text, strlen(text), "runtime", &root, &error), CDACQ_OK);
        ck_assert_int_eq(descriptor_add(&descriptor, root, "runtime", (struct pointer_data){0}, MERGE_ADD, &error),
                         CDACQ_OK);
        json_free(root);
        ck_assert_int_eq((int)architecture_find(&descriptor, 21), (int)rows[i].architecture);
        ck_assert_int_eq((int)architecture_find(&nothing, rows[i].machine), (int)rows[i].architecture);
        ck_assert_pstr_eq(operating_system_find(&descriptor), systems[i % 4][1]);
        descriptor_deinit(&descriptor);
    }
    ck_assert_ptr_null(operating_system_find(&nothing));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("gc_info");
    TCase *tc = tcase_create("gc_info");
    tcase_add_loop_test(tc, lengths, ARCHITECTURE_X64, END_ARCHITECTURE);
    tcase_add_loop_test(tc, too_long, ARCHITECTURE_X64, END_ARCHITECTURE);
    tcase_add_loop_test(tc, versions_that_are_none, ARCHITECTURE_X64, END_ARCHITECTURE);
    tcase_add_test(tc, x86);
    tcase_add_loop_test(tc, missing_memory, FIRST_ARCHITECTURE, END_ARCHITECTURE);
    tcase_add_loop_test(tc, safe_points_and_ranges, ARCHITECTURE_X64, END_ARCHITECTURE);
    tcase_add_loop_test(tc, damaged_headers, ARCHITECTURE_X64, END_ARCHITECTURE);
    tcase_add_test(tc, versions_of_images);
    tcase_add_test(tc, architectures);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
