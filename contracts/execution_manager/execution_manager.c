#include "contracts/execution_manager/execution_manager.h"

#include "contracts/code_lookup/platform_metadata.h"
#include "contracts/code_lookup/precode_stubs.h"

const struct execution_manager_version execution_manager_1 = {&nibble_map_linear, &stub_kinds_10};
const struct execution_manager_version execution_manager_2 = {&nibble_map_constant, &stub_kinds_10};
const struct execution_manager_version execution_manager_c1 = {&nibble_map_constant, &stub_kinds_11};

void execution_manager_init(struct execution_manager *manager, const struct execution_manager_version *version,
                            const struct layout *layout)
{
    *manager = (struct execution_manager){
        .managers = {.nibble_map = version->nibble_map, .stub_kinds = version->stub_kinds},
        .layout = layout,
        .map = layout->globals[G_ExecutionManagerCodeRangeMapAddress],
    };
}

void execution_manager_deinit(struct execution_manager *manager)
{
    r2r_images_deinit(&manager->managers.images);
    range_sections_deinit(&manager->sections);
}

void execution_manager_read_globals(struct execution_manager *manager, struct field_reader *reader)
{
    const struct layout *layout = manager->layout;
    uint64_t code = layout->globals[G_ThePreStubAddress];
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (layout->globals[G_ThePreStub])
        code = read_pointer(&reader->raw, layout->globals[G_ThePreStub]);
    manager->the_pre_stub = reader_failed(&reader->raw) ? 0 : address_of_code_pointer(layout->code_pointer_flags, code);
    reader_recover(&reader->raw, FAILURE_ANY);
}

bool execution_manager_section(struct execution_manager *manager, struct field_reader *reader, uint64_t address,
                               struct range_section *ret)
{
    return range_sections_find(&manager->sections, reader, manager->map, address, ret) ||
           (!reader_failed(&reader->raw) && stub_ranges_find(reader, &manager->image, address, ret));
}

const struct jit_manager_ops *jit_manager_of(const struct range_section *section)
{
    if (section->flags & RANGE_SECTION_INTERPRETER)
        return &interpreter_jit_manager;
    if (section->r2r_module)
        return &r2r_jit_manager;
    return section->flags & RANGE_SECTION_RANGE_LIST ? &range_list_manager : &ee_jit_manager;
}

/* execution_manager_find() for an address whose section is known. */
static bool find_in(struct execution_manager *manager, struct field_reader *reader, const struct range_section *section,
                    uint64_t address, struct code_block *ret)
{
    struct code_block block;
    const struct section_reader in = {jit_manager_of(section), &manager->managers, reader, section};
    if (!in.manager->find(&in, address, &block) || reader_failed(&reader->raw))
        return false;
    block.unverified |= reader_unverified(&reader->raw);
    *ret = block;
    return true;
}

bool execution_manager_find(struct execution_manager *manager, struct field_reader *reader, uint64_t ip,
                            struct code_block *ret)
{
    struct range_section section;
    if (execution_manager_section(manager, reader, ip, &section))
        return find_in(manager, reader, &section, ip, ret);
    if (reader_failed(&reader->raw) || !ip || ip != manager->the_pre_stub)
        return false;
    *ret = (struct code_block){.ip = ip, .start = ip, .kind = CDACQ_CODE_THE_PRE_STUB};
    return true;
}

static uint64_t method_desc_of(struct execution_manager *manager, struct field_reader *reader, uint64_t entry)
{
    struct range_section section;
    struct code_block block;
    if (manager->layout->globals[G_FeaturePortableEntrypoints])
        return read_field(reader, entry, F_PortableEntryPoint_MethodDesc);
    if (!execution_manager_section(manager, reader, entry, &section) || section.stub_kind)
        return 0;
    if (jit_manager_of(&section)->method_kind != CDACQ_CODE_UNKNOWN) {
        if (!find_in(manager, reader, &section, entry, &block))
            return 0;
        return block.prepared_unknown ? reader_fail(&reader->raw, CDACQ_ERR_MEMORY, block.prepared_unknown,
                                                    "ReadyToRunInfo.EntryPointToMethodDescMap")
                                      : block.method_desc;
    }
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
