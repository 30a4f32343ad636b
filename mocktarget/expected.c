/*
 * expected.c: the answers that tests expect: all code in the target, never derived from the structures that are written
 * into it.
 */
#include "mocktarget/mock.h"

/* StubCodeBlockKind of src/coreclr/vm/codeman.h: .NET 11 has closed the gap at 2. */
const char *mock_stub_kind(const struct mock *mock, unsigned number)
{
    static const char *const until_10[] = {"Unknown",          "JumpStub",        NULL,
                                           "DynamicHelper",    "StubPrecode",     "FixupPrecode",
                                           "VSD_DispatchStub", "VSD_ResolveStub", "VSD_LookupStub",
                                           "VSD_VTableStub",   "CallCountingStub"};
    static const char *const since_11[] = {"Unknown",        "JumpStub",         "DynamicHelper",   "StubPrecode",
                                           "FixupPrecode",   "VSD_DispatchStub", "VSD_ResolveStub", "VSD_LookupStub",
                                           "VSD_VTableStub", "CallCountingStub", "WrapperStub",     "ShuffleThunk"};
    bool new = mock->is_net11;
    const char *const *names = new ? since_11 : until_10;
    const char *name = number < (new ? ARRAY_SIZE(since_11) : ARRAY_SIZE(until_10)) ? names[number] : NULL;
    return name ? name : "Unknown";
}

void mock_expect(struct mock *mock, const struct mock_function *function)
{
    if (!mock->failed)
        mock_stored(mock, mock_expected_append(&mock->functions, *function));
}

void mock_expect_nothing(struct mock *mock, uint64_t begin, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < mock->functions.count; i++)
        if (mock->functions.items[i].method < begin || mock->functions.items[i].method >= end)
            mock->functions.items[kept++] = mock->functions.items[i];
    mock->functions.count = kept;
}

const struct mock_function *mock_functions(struct mock *mock, size_t *ret_count)
{
    sort_u64(mock->functions.items, mock->functions.count, sizeof *mock->functions.items);
    *ret_count = mock->functions.count;
    return mock->functions.items;
}

const struct mock_function *mock_function_at(struct mock *mock, uint64_t address)
{
    for (size_t i = 0; i < mock->functions.count; i++)
        if (address >= mock->functions.items[i].begin && address < mock->functions.items[i].end)
            return &mock->functions.items[i];
    return NULL;
}
