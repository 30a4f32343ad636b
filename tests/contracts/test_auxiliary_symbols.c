/*
 * AuxiliarySymbols: helpers by their name. On every architecture of the mock.
 */
#include "contracts/code_lookup/auxiliary_symbols.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

struct symbol {
    const char *name; /* NULL: its name is at no address */
    uint64_t address;
};

/* An array of symbols; the runtime's variable says that it has `count`. Returns where it is. */
static uint64_t add_symbols(struct mock *mock, const struct symbol *symbols, size_t written, uint32_t count)
{
    uint32_t size = mock_size_of(mock, "AuxiliarySymbolInfo");
    uint64_t array = mock_alloc(mock, written * size, 8), variable = mock_alloc(mock, 4, 4);
    for (size_t i = 0; i < written; i++) {
        size_t length = symbols[i].name ? strlen(symbols[i].name) + 1 : 0;
        uint64_t name = length ? mock_alloc(mock, length, 1) : 0;
        if (length)
            mock_write(mock, name, symbols[i].name, length);
        mock_set(mock, array + i * size, "AuxiliarySymbolInfo.Name", name);
        mock_set(mock, array + i * size, "AuxiliarySymbolInfo.Address", symbols[i].address);
    }
    mock_write_uint(mock, variable, 4, count);
    mock_global(mock, "AuxiliarySymbols", array);
    mock_global(mock, "AuxiliarySymbolCount", variable);
    return array;
}

static const struct symbol helpers[] = {
    {NULL, 0x1000},
    {"JIT_Write", 0x2000}, /* the beginning of another name */
    {"JIT_WriteBarrier", 0x3000},
    {"JIT_WriteBarrier", 0x4000}, /* of two, the first counts */
    {"CORINFO_HELP_NEWFAST", 0x5000},
};

/* Fails the test if the reader has not the `status`, or finds another address. */
static void check(struct mock *mock, const char *name, uint64_t expected, enum cdacq_status status)
{
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct reader reader = mock_reader(target);
    struct cdacq_error error;
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert_uint_eq(auxiliary_symbols_find(&reader, name), expected);
    ck_assert_int_eq(reader_failed(&reader) ? reader_status(&reader, &error) : CDACQ_OK, status);
    cdacq_target_close(target);
}

START_TEST(symbols_by_name)
{
    struct mock *mock = mock_of_version(_i, 5, MOCK_NET_11);
    add_symbols(mock, helpers, ARRAY_SIZE(helpers), ARRAY_SIZE(helpers));
    mock_publish(mock, NULL);
    check(mock, "JIT_WriteBarrier", 0x3000, CDACQ_OK);
    check(mock, "CORINFO_HELP_NEWFAST", 0x5000, CDACQ_OK);
    check(mock, "CORINFO_HELP_NEW", 0, CDACQ_OK);
    mock_destroy(mock);
}
END_TEST

/* A symbol is found whatever the count is; what is missing before it is a failure. */
START_TEST(damaged_symbols)
{
    struct mock *mock = mock_of_version(_i, 5, MOCK_NET_11);
    uint64_t array = add_symbols(mock, helpers, ARRAY_SIZE(helpers), UINT32_MAX);
    uint32_t size = mock_size_of(mock, "AuxiliarySymbolInfo");
    mock_publish(mock, NULL);
    check(mock, "JIT_WriteBarrier", 0x3000, CDACQ_OK);
    mock_unmap(mock, array + size, size);
    check(mock, "JIT_WriteBarrier", 0, CDACQ_ERR_MEMORY);
    mock_destroy(mock);
}
END_TEST

START_TEST(more_symbols_than_any_runtime_has)
{
    struct symbol many[300];
    struct mock *mock = mock_of_version(_i, 5, MOCK_NET_11);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = (struct symbol){i == 299 ? "Last" : i == 255 ? "Within" : "Other", 0x1000 + i};
    add_symbols(mock, many, ARRAY_SIZE(many), ARRAY_SIZE(many));
    mock_publish(mock, NULL);
    check(mock, "Within", 0x1000 + 255, CDACQ_OK);
    check(mock, "Last", 0, CDACQ_OK);
    mock_destroy(mock);
}
END_TEST

/* A version that this build does not read, and a runtime that publishes none. */
START_TEST(no_symbols)
{
    struct mock *mock = mock_of_version(_i, 5, MOCK_NET_11);
    add_symbols(mock, helpers, ARRAY_SIZE(helpers), ARRAY_SIZE(helpers));
    mock_contract(mock, "AuxiliarySymbols", "c99");
    mock_publish(mock, NULL);
    check(mock, "JIT_WriteBarrier", 0, CDACQ_OK);
    mock_destroy(mock);
    mock = mock_of_version(_i, 5, 2);
    mock_publish(mock, NULL);
    check(mock, "JIT_WriteBarrier", 0, CDACQ_OK);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("auxiliary_symbols");
    TCase *t = tcase_create("auxiliary_symbols");
    tcase_add_loop_test(t, symbols_by_name, 0, ARCH_COUNT);
    tcase_add_loop_test(t, damaged_symbols, 0, ARCH_COUNT);
    tcase_add_loop_test(t, more_symbols_than_any_runtime_has, 0, ARCH_COUNT);
    tcase_add_loop_test(t, no_symbols, 0, ARCH_COUNT);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
