#include "contracts/execution_manager/non_virtual_entry.h"

#include "contracts/code_lookup/precode_stubs.h"

static uint64_t method_desc_of(struct execution_manager *manager, struct field_reader *reader, uint64_t entry)
{
    struct range_section section;
    struct code_block block;
    if (manager->layout->globals[G_FeaturePortableEntrypoints])
        return read_field(reader, entry, F_PortableEntryPoint_MethodDesc);
    if (!range_section_map_find(reader, manager->map, entry, &section))
        return 0;
    if (jit_manager_of(&section)->method_kind != CDACQ_CODE_UNKNOWN)
        return execution_manager_find_in(manager, reader, &section, entry, &block) ? block.method_desc : 0;
    /* Ranges without methods hold precodes and other stubs side by side; the code shows which it is. */
    if (!manager->precode_stubs)
        return reader_fail(&reader->raw, CDACQ_ERR_CONTRACT, entry, "PrecodeStubs");
    return precode_stubs_method_desc(manager->precode_stubs, reader, entry);
}

bool execution_manager_entry_method_desc(struct execution_manager *manager, struct field_reader *reader, uint64_t entry,
                                         uint64_t *ret)
{
    uint64_t method_desc = method_desc_of(manager, reader, entry);
    if (reader_failed(&reader->raw) || !method_desc)
        return false;
    *ret = method_desc;
    return true;
}
