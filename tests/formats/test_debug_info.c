/*
 * test_debug_info.c: native offsets to IL offsets, and places of variables, on blobs that are written here, number by
 * number, from the format's description. Blobs of real processes are read by the tests on runtimes.
 */
#include "tests/support/check_main.h"
#include "formats/debug_info.h"

/* ---- A writer --------------------------------------------------------------------------------------------------- */

struct blob {
    uint8_t data[4096];
    size_t nibbles; /* written; two a byte */
    uint64_t bits;  /* written, where bits follow */
};

static void put_nibble(struct blob *blob, unsigned nibble)
{
    blob->data[blob->nibbles / 2] |= (uint8_t)(nibble << 4 * (blob->nibbles % 2));
    blob->nibbles++;
}

static void put_number(struct blob *blob, uint32_t value)
{
    unsigned digits = 1;
    while (digits < 11 && value >> 3 * digits)
        digits++;
    while (digits-- > 0)
        put_nibble(blob, (value >> 3 * digits & 7) | (digits ? 8 : 0));
}

static void put_byte(struct blob *blob, uint8_t byte)
{
    blob->nibbles += blob->nibbles % 2;
    blob->data[blob->nibbles / 2] = byte;
    blob->nibbles += 2;
}

static void put_u32(struct blob *blob, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        put_byte(blob, (uint8_t)(value >> 8 * i));
}

static void put_bits(struct blob *blob, uint32_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++, blob->bits++)
        blob->data[blob->bits / 8] |= (uint8_t)((value >> i & 1) << blob->bits % 8);
}

static size_t size_of(const struct blob *blob)
{
    return blob->bits ? (size_t)(blob->bits + 7) / 8 : (blob->nibbles + 1) / 2;
}

static void append(struct blob *blob, const struct blob *more)
{
    blob->nibbles += blob->nibbles % 2;
    memcpy(blob->data + blob->nibbles / 2, more->data, size_of(more));
    blob->nibbles += 2 * size_of(more);
}

enum { CALL = DEBUG_INFO_CALL_INSTRUCTION, EMPTY = DEBUG_INFO_STACK_EMPTY };

static const struct debug_info_bound some_bounds[] = {
    {0, DEBUG_INFO_PROLOG, EMPTY},
    {0, 0, EMPTY},
    {12, 7, 0},
    {12, 5, EMPTY},
    {20, 5, CALL},
    {30, DEBUG_INFO_NO_MAPPING, 0},
    {40, 1000000, EMPTY},
    {700, 9, EMPTY | CALL},
    {70000, DEBUG_INFO_EPILOG, EMPTY},
};

static struct blob nibble_bounds(const struct debug_info_bound *bounds, size_t count)
{
    struct blob blob = {0};
    uint32_t last = 0;
    put_number(&blob, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        put_number(&blob, bounds[i].native_offset - last);
        put_number(&blob, (uint32_t)bounds[i].il_offset + 3);
        put_number(&blob, (bounds[i].source & CALL ? 16u : 1u) | (bounds[i].source & EMPTY ? 2 : 0));
        last = bounds[i].native_offset;
    }
    return blob;
}

static struct blob packed_bounds(const struct debug_info_bound *bounds, size_t count, unsigned source_bits)
{
    struct blob blob = {0};
    uint32_t last = 0;
    unsigned native_bits = 17, il_bits = 20;
    put_number(&blob, (uint32_t)count);
    put_number(&blob, native_bits - 1);
    put_number(&blob, il_bits - 1);
    blob.bits = 8 * ((blob.nibbles + 1) / 2);
    for (size_t i = 0; i < count; i++) {
        put_bits(&blob, bounds[i].source, source_bits);
        put_bits(&blob, bounds[i].native_offset - last, native_bits);
        put_bits(&blob, (uint32_t)bounds[i].il_offset + 3, il_bits);
        last = bounds[i].native_offset;
    }
    return blob;
}

/* ---- What is read ----------------------------------------------------------------------------------------------- */

struct seen {
    struct debug_info_bound bounds[16];
    size_t count;
};

static bool see(const struct debug_info_bound *bound, void *context)
{
    struct seen *seen = context;
    ck_assert_uint_lt(seen->count, 16);
    seen->bounds[seen->count++] = *bound;
    return true;
}

static void check_bounds(const struct debug_info *info)
{
    struct seen seen = {0};
    ck_assert(debug_info_each(info, see, &seen));
    ck_assert_uint_eq(seen.count, ARRAY_SIZE(some_bounds));
    for (size_t i = 0; i < seen.count; i++) {
        ck_assert_uint_eq(seen.bounds[i].native_offset, some_bounds[i].native_offset);
        ck_assert_int_eq(seen.bounds[i].il_offset, some_bounds[i].il_offset);
        ck_assert_uint_eq(seen.bounds[i].source, some_bounds[i].source);
    }
}

/* Every shorter blob is refused or has other bounds, and none reads beyond its end: each has memory of its own. */
static void check_prefixes(const struct debug_info_encoding *encoding, const struct blob *blob, bool has_flag_byte)
{
    for (size_t size = 0; size < size_of(blob); size++) {
        uint8_t *data = malloc(size + 1);
        memcpy(data + 1, blob->data, size);
        struct bytes bytes = bytes_of_buffer(data + 1, size);
        struct debug_info info;
        struct seen seen = {0};
        if (debug_info_open(encoding, &bytes, has_flag_byte, &info))
            ck_assert(!debug_info_each(&info, see, &seen) || seen.count < ARRAY_SIZE(some_bounds) ||
                      info.offset + info.size <= size);
        free(data);
    }
}

START_TEST(numbers_as_the_specification_has_them)
{
    static const struct {
        uint32_t value;
        uint8_t bytes[2];
    } examples[] = {{7, {0x07}},         {8, {0x09}},         {9, {0x19}},        {63, {0x7f}},
                    {64, {0x89, 0x00}},  {65, {0x89, 0x01}}, /* the specification's f9 x0 and f9 x1 are 120 and 121 */
                    {511, {0xff, 0x07}}, {512, {0x89, 0x08}}, {513, {0x89, 0x18}}};
    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        struct blob blob = {0};
        put_number(&blob, examples[i].value);
        ck_assert_mem_eq(blob.data, examples[i].bytes, 2);
        memset(blob.data, 0, sizeof blob.data);
        memcpy(blob.data, examples[i].bytes, 2); /* the size of the bounds; that of the variables follows: 0 */
        struct bytes bytes = bytes_of_buffer(blob.data, sizeof blob.data);
        struct debug_info info;
        ck_assert(debug_info_open(&debug_info_nibbles, &bytes, false, &info));
        ck_assert_uint_eq(info.size, examples[i].value);
    }
}
END_TEST

START_TEST(bounds_of_8_and_9)
{
    struct blob bounds = nibble_bounds(some_bounds, ARRAY_SIZE(some_bounds)), blob = {0};
    put_number(&blob, (uint32_t)size_of(&bounds));
    put_number(&blob, 5);
    append(&blob, &bounds);
    struct bytes bytes = bytes_of_buffer(blob.data, size_of(&blob));
    struct debug_info info;
    ck_assert(debug_info_open(&debug_info_nibbles, &bytes, false, &info));
    check_bounds(&info);
    check_prefixes(&debug_info_nibbles, &blob, false);
}
END_TEST

START_TEST(bounds_of_10)
{
    struct blob bounds = packed_bounds(some_bounds, ARRAY_SIZE(some_bounds), 2), blob = {0};
    put_number(&blob, (uint32_t)size_of(&bounds));
    put_number(&blob, 5);
    append(&blob, &bounds);
    struct bytes bytes = bytes_of_buffer(blob.data, size_of(&blob));
    struct debug_info info;
    ck_assert(debug_info_open(&debug_info_packed, &bytes, false, &info));
    check_bounds(&info);
    check_prefixes(&debug_info_packed, &blob, false);
}
END_TEST

START_TEST(instrumented_code_has_its_own_bounds)
{
    struct blob other = packed_bounds(some_bounds, 2, 2),
                bounds = packed_bounds(some_bounds, ARRAY_SIZE(some_bounds), 2);
    struct blob blob = {0};
    put_number(&blob, UINT32_MAX);
    put_number(&blob, (uint32_t)size_of(&other));
    put_number(&blob, (uint32_t)size_of(&bounds));
    put_number(&blob, 0);
    append(&blob, &other);
    append(&blob, &bounds);
    struct bytes bytes = bytes_of_buffer(blob.data, size_of(&blob));
    struct debug_info info;
    ck_assert(debug_info_open(&debug_info_packed, &bytes, false, &info));
    check_bounds(&info);
    check_prefixes(&debug_info_packed, &blob, false);
}
END_TEST

START_TEST(bounds_of_11)
{
    struct blob bounds = packed_bounds(some_bounds, ARRAY_SIZE(some_bounds), 3), slim = {0}, fat = {0}, vars = {0};
    struct debug_info info;
    put_number(&slim, (uint32_t)size_of(&bounds));
    put_number(&slim, 5);
    append(&slim, &bounds);
    struct bytes bytes = bytes_of_buffer(slim.data, size_of(&slim));
    ck_assert(debug_info_open(&debug_info_chunked, &bytes, true, &info)); /* the flag byte is of earlier versions */
    check_bounds(&info);

    struct blob other = packed_bounds(some_bounds, 1, 3);
    put_number(&fat, 0);
    put_number(&fat, (uint32_t)size_of(&other));
    put_number(&fat, 3); /* variables */
    put_number(&fat, (uint32_t)size_of(&bounds));
    for (unsigned i = 0; i < 3; i++)
        put_number(&fat, 100 * i);
    append(&fat, &other);
    vars.nibbles = 6;
    append(&fat, &vars);
    append(&fat, &bounds);
    bytes = bytes_of_buffer(fat.data, size_of(&fat));
    ck_assert(debug_info_open(&debug_info_chunked, &bytes, false, &info));
    check_bounds(&info);
    check_prefixes(&debug_info_chunked, &fat, false);
}
END_TEST

START_TEST(flag_byte)
{
    const struct debug_info_encoding *const encodings[] = {&debug_info_nibbles, &debug_info_packed};
    static const unsigned fixed[] = {32, 40}, count_at[] = {8, 16};
    for (unsigned e = 0; e < 2; e++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            struct blob bounds = e ? packed_bounds(some_bounds, ARRAY_SIZE(some_bounds), 2)
                                   : nibble_bounds(some_bounds, ARRAY_SIZE(some_bounds));
            struct blob blob = {0};
            put_byte(&blob, (uint8_t)flags);
            if (flags & 1)
                for (unsigned i = 0; i < fixed[e] + 4 * 3; i++)
                    put_byte(&blob, i == count_at[e] ? 3 : i > count_at[e] && i < count_at[e] + 4 ? 0 : 0xcc);
            if (flags & 2) {
                put_u32(&blob, 5);
                for (unsigned i = 0; i < 5; i++)
                    put_byte(&blob, 0xdd);
            }
            put_number(&blob, (uint32_t)size_of(&bounds));
            put_number(&blob, 0);
            append(&blob, &bounds);
            struct bytes bytes = bytes_of_buffer(blob.data, size_of(&blob));
            struct debug_info info;
            ck_assert(debug_info_open(encodings[e], &bytes, true, &info));
            check_bounds(&info);
            check_prefixes(encodings[e], &blob, true);
        }
    }
}
END_TEST

START_TEST(il_offsets_as_stack_traces_have_them)
{
    static const struct {
        uint32_t native_offset, il_offset;
    } expected[] = {
        {0, 0},  /* in the prolog */
        {11, 0}, /* still */
        {12, 5}, /* the lower one of two */
        {19, 5},
        {20, 5}, /* a call instruction starts nothing */
        {29, 5},
        {30, 0}, /* without a mapping */
        {40, 1000000},
        {699, 1000000},
        {700, 1000000},   /* a call again */
        {70000, 1000000}, /* in the epilog: the greatest one */
        {UINT32_MAX, 1000000},
    };
    struct blob bounds = packed_bounds(some_bounds, ARRAY_SIZE(some_bounds), 2), blob = {0};
    put_number(&blob, (uint32_t)size_of(&bounds));
    put_number(&blob, 0);
    append(&blob, &bounds);
    struct bytes bytes = bytes_of_buffer(blob.data, size_of(&blob));
    struct debug_info info;
    ck_assert(debug_info_open(&debug_info_packed, &bytes, false, &info));
    struct il_map map = {0};
    ck_assert(debug_info_il_map(&info, &map));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        ck_assert_uint_eq(il_map_find(map.items, map.count, expected[i].native_offset), expected[i].il_offset);
    il_map_deinit(&map);
}
END_TEST

START_TEST(no_bounds_no_offset)
{
    static const uint8_t empty[4];
    struct bytes bytes = bytes_of_buffer(empty, sizeof empty);
    struct debug_info info;
    struct il_map map = {0};
    ck_assert(debug_info_open(&debug_info_nibbles, &bytes, false, &info));
    ck_assert(debug_info_il_map(&info, &map));
    ck_assert_uint_eq(map.count, 0);
}
END_TEST

START_TEST(damage)
{
    struct debug_info info;
    struct il_map map = {0};
    uint8_t data[64];
    memset(data, 0xff, sizeof data); /* a number without an end */
    struct bytes bytes = bytes_of_buffer(data, sizeof data);
    ck_assert(!debug_info_open(&debug_info_nibbles, &bytes, false, &info));
    ck_assert(!debug_info_open(&debug_info_packed, &bytes, true, &info)); /* and too many locals */
    struct blob wraps = {0}, blob = {0};                                  /* native offsets beyond 32 bits */
    put_number(&wraps, 2);
    for (unsigned i = 0; i < 2; i++) {
        put_number(&wraps, 0x80000000);
        put_number(&wraps, 3);
        put_number(&wraps, 1);
    }
    put_number(&blob, (uint32_t)size_of(&wraps));
    put_number(&blob, 0);
    append(&blob, &wraps);
    bytes = bytes_of_buffer(blob.data, size_of(&blob));
    ck_assert(debug_info_open(&debug_info_nibbles, &bytes, false, &info));
    ck_assert(!debug_info_il_map(&info, &map));
    struct blob wide = {0}, packed = {0}; /* fields of more than 32 bits; more records than bytes */
    put_number(&wide, 1);
    put_number(&wide, 32);
    put_number(&wide, 0);
    put_number(&packed, 20);
    put_number(&packed, 0);
    append(&packed, &wide);
    bytes = bytes_of_buffer(packed.data, 64);
    ck_assert(debug_info_open(&debug_info_packed, &bytes, false, &info));
    ck_assert(!debug_info_il_map(&info, &map));
}
END_TEST

/* ---- Variables ---- */

/* In each kind of place, as ICorDebugInfo::NativeVarInfo has them. */
static const struct debug_info_variable some_variables[] = {
    {0, 10, 0, DEBUG_INFO_REG, {7}, 0},
    {10, 4000000, 0, DEBUG_INFO_STK, {5}, -16},
    {3, 3, 1, DEBUG_INFO_REG_BYREF, {1}, 0},
    {3, 90, 2, DEBUG_INFO_REG_FP, {15}, 0},
    {3, 90, 3, DEBUG_INFO_STK_BYREF, {17}, 1 << 20},
    {3, 90, 4, DEBUG_INFO_REG_REG, {7, 6}, 0},
    {3, 90, 5, DEBUG_INFO_REG_STK, {7, 5}, -1},
    {3, 90, 6, DEBUG_INFO_STK_REG, {5, 7}, 8},
    {3, 90, 7, DEBUG_INFO_STK2, {5}, 24},
    {3, 90, 8, DEBUG_INFO_FPSTK, {2}, 0},
    {3, 90, 9, DEBUG_INFO_FIXED_VA, {0}, 40},
    {3, 90, DEBUG_INFO_TYPE_CONTEXT, DEBUG_INFO_STK, {5}, -8},
};

static void put_signed(struct blob *blob, int32_t value)
{
    put_number(blob, value < 0 ? (uint32_t)-value << 1 | 1 : (uint32_t)value << 1);
}

static struct blob variables_blob(bool of_11)
{
    struct blob blob = {0};
    put_number(&blob, ARRAY_SIZE(some_variables));
    for (size_t i = 0; i < ARRAY_SIZE(some_variables); i++) {
        const struct debug_info_variable *variable = &some_variables[i];
        if (of_11)
            put_number(&blob, (uint32_t)(variable->number + 6));
        put_number(&blob, variable->begin);
        put_number(&blob, variable->end - variable->begin);
        if (!of_11)
            put_number(&blob, (uint32_t)(variable->number + 4));
        put_number(&blob, variable->place);
        if (variable->place == DEBUG_INFO_STK_REG)
            put_signed(&blob, variable->offset);
        if (variable->place != DEBUG_INFO_FIXED_VA)
            put_number(&blob, variable->registers[0]);
        if (variable->place >= DEBUG_INFO_REG_REG && variable->place <= DEBUG_INFO_STK_REG)
            put_number(&blob, variable->registers[1]);
        if (variable->place == DEBUG_INFO_STK || variable->place == DEBUG_INFO_STK_BYREF ||
            variable->place == DEBUG_INFO_REG_STK || variable->place == DEBUG_INFO_STK2)
            put_signed(&blob, variable->offset);
        if (variable->place == DEBUG_INFO_FIXED_VA)
            put_number(&blob, (uint32_t)variable->offset);
    }
    return blob;
}

static bool see_variable(const struct debug_info_variable *variable, void *context)
{
    size_t *count = context;
    ck_assert_uint_lt(*count, ARRAY_SIZE(some_variables));
    const struct debug_info_variable *expected = &some_variables[(*count)++];
    ck_assert_uint_eq(variable->begin, expected->begin);
    ck_assert_uint_eq(variable->end, expected->end);
    ck_assert_int_eq(variable->number, expected->number);
    ck_assert_int_eq(variable->place, expected->place);
    ck_assert_mem_eq(variable->registers, expected->registers, sizeof expected->registers);
    ck_assert_int_eq(variable->offset, expected->offset);
    return true;
}

static void check_variables(const struct debug_info_encoding *encoding, const struct blob *blob)
{
    for (size_t size = 0; size <= size_of(blob); size++) {
        uint8_t *data = malloc(size + 1);
        memcpy(data + 1, blob->data, size);
        struct bytes bytes = bytes_of_buffer(data + 1, size);
        struct debug_info info;
        size_t count = 0;
        bool is_whole = debug_info_open(encoding, &bytes, false, &info) && info.variables_size &&
                        debug_info_variables(&info, see_variable, &count);
        ck_assert(is_whole == (size == size_of(blob)));
        ck_assert(!is_whole || count == ARRAY_SIZE(some_variables));
        free(data);
    }
}

START_TEST(variables_of_all_versions)
{
    struct blob vars = variables_blob(false), vars_of_11 = variables_blob(true),
                bounds = packed_bounds(some_bounds, 2, 2), nibbles = {0}, packed = {0}, two = {0}, slim = {0},
                fat = {0};
    put_number(&nibbles, (uint32_t)size_of(&bounds)); /* the bounds are not read */
    put_number(&nibbles, (uint32_t)size_of(&vars));
    packed = nibbles;
    append(&nibbles, &bounds);
    append(&nibbles, &vars);
    check_variables(&debug_info_nibbles, &nibbles);
    append(&packed, &bounds);
    append(&packed, &vars);
    check_variables(&debug_info_packed, &packed);
    put_number(&slim, (uint32_t)size_of(&bounds));
    put_number(&slim, (uint32_t)size_of(&vars_of_11));
    append(&slim, &bounds);
    append(&slim, &vars_of_11);
    check_variables(&debug_info_chunked, &slim);

    put_number(&two, UINT32_MAX);
    put_number(&two, (uint32_t)size_of(&bounds));
    put_number(&two, (uint32_t)size_of(&bounds));
    put_number(&two, (uint32_t)size_of(&vars));
    append(&two, &bounds);
    append(&two, &bounds);
    append(&two, &vars);
    check_variables(&debug_info_packed, &two);

    put_number(&fat, 0);
    put_number(&fat, (uint32_t)size_of(&bounds));
    put_number(&fat, (uint32_t)size_of(&vars_of_11));
    put_number(&fat, 7); /* uninstrumented bounds, which follow */
    for (unsigned i = 0; i < 3; i++)
        put_number(&fat, 0);
    append(&fat, &bounds);
    append(&fat, &vars_of_11);
    check_variables(&debug_info_chunked, &fat);
}
END_TEST

static bool count_variable(const struct debug_info_variable *variable, void *context)
{
    (void)variable;
    ++*(size_t *)context;
    return true;
}

START_TEST(damaged_variables)
{
    static const uint32_t bad[][5] = {
        {1, UINT32_MAX, 1, 4, DEBUG_INFO_REG}, /* the end wraps */
        {1, 0, 1, 4, DEBUG_INFO_PLACE_COUNT},  /* a place of no kind */
        {UINT32_MAX, 0, 1, 4, DEBUG_INFO_REG}, /* more than there are */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct blob vars = {0}, blob = {0};
        size_t count = 0;
        for (unsigned j = 0; j < 5; j++)
            put_number(&vars, bad[i][j]);
        put_number(&vars, 0);
        put_number(&blob, 0);
        put_number(&blob, (uint32_t)size_of(&vars));
        append(&blob, &vars);
        struct bytes bytes = bytes_of_buffer(blob.data, size_of(&blob));
        struct debug_info info;
        ck_assert(debug_info_open(&debug_info_nibbles, &bytes, false, &info));
        ck_assert(!debug_info_variables(&info, count_variable, &count));
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("debug_info");
    TCase *tc = tcase_create("debug_info");
    tcase_add_test(tc, numbers_as_the_specification_has_them);
    tcase_add_test(tc, bounds_of_8_and_9);
    tcase_add_test(tc, bounds_of_10);
    tcase_add_test(tc, instrumented_code_has_its_own_bounds);
    tcase_add_test(tc, bounds_of_11);
    tcase_add_test(tc, flag_byte);
    tcase_add_test(tc, il_offsets_as_stack_traces_have_them);
    tcase_add_test(tc, no_bounds_no_offset);
    tcase_add_test(tc, damage);
    tcase_add_test(tc, variables_of_all_versions);
    tcase_add_test(tc, damaged_variables);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
