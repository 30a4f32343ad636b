/*
 * range_list_manager.c: precodes and other stubs in lists of ranges, which hold no methods. The list says of which kind
 * they are, where the target describes it.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "RangeList"; src/coreclr/vm/codeman.h.
 */
#include "contracts/execution_manager/jit_manager.h"

static bool find(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                 uint64_t ip, struct code_block *ret)
{
    uint64_t number = 0;
    if (section->range_list && has_field(reader, F_CodeRangeMapRangeList_RangeListType))
        number = read_field(reader, section->range_list, F_CodeRangeMapRangeList_RangeListType);
    if (reader_recover(&reader->raw, FAILURE(CDACQ_ERR_MEMORY)))
        number = 0; /* they are stubs, whatever their kind */
    *ret = (struct code_block){.ip = ip, .start = ip, .kind = (uint8_t)stub_kind_of(managers->stub_kinds, number)};
    return !reader_failed(&reader->raw);
}

static void each(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                 block_part_visitor *visit, void *context)
{
    (void)managers;
    (void)reader;
    visit(section->begin, section->end, PART_STUB, PART_NO_NUMBER, context);
}

const struct jit_manager_ops range_list_manager = {
    .range_kind = "stubs",
    .heaps_variable = G_COUNT,
    .find = find,
    .each = each,
};
