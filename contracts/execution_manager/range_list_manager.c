/*
 * range_list_manager.c: lists of ranges of precodes and other stubs, without methods. The list says which kind of stub
 * it holds if the target describes that.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "RangeList"; src/coreclr/vm/codeman.h.
 */
#include "contracts/execution_manager/jit_manager.h"

static bool find(const struct section_reader *section, uint64_t ip, struct code_block *ret)
{
    struct field_reader *reader = section->reader;
    uint64_t number = read_optional(reader, section->section->range_list, F_CodeRangeMapRangeList_RangeListType);
    reader_recover(&reader->raw, FAILURE(CDACQ_ERR_MEMORY)); /* stubs of an unknown kind are still stubs */
    uint8_t kind = (uint8_t)stub_kind_of(section->managers->stub_kinds, number);
    *ret = (struct code_block){.ip = ip, .start = ip, .kind = kind};
    return !reader_failed(&reader->raw);
}

static void each(const struct section_reader *section, block_part_visitor *visit, void *context)
{
    visit(section->section->begin, section->section->end, PART_STUB, PART_NO_NUMBER, context);
}

const struct jit_manager_ops range_list_manager = {
    .range_kind = "stubs",
    .find = find,
    .each = each,
};
