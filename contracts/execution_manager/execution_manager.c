#include "contracts/execution_manager/execution_manager.h"

#include "contracts/code_lookup/nibble_map.h"
#include "contracts/code_lookup/platform_metadata.h"
#include "contracts/code_lookup/precode_stubs.h"
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/stub_kinds.h"

enum { OF_CORECLR = 1 << LAYOUT_RangeSections | 1 << LAYOUT_Frames };

/* The managed code of a NativeAOT program. */
static bool native_section(struct reader *reader, struct range_section *ret)
{
    struct range_section section = {.flags = RANGE_SECTION_NATIVE_AOT, .whole = true};
    if (!aot_code_range(reader, &section.begin, &section.end))
        return false;
    *ret = section;
    return true;
}

const struct execution_manager_version execution_manager_1 = {&nibble_map_linear, &stub_kinds_10, OF_CORECLR, NULL};
const struct execution_manager_version execution_manager_2 = {&nibble_map_constant, &stub_kinds_10, OF_CORECLR, NULL};
const struct execution_manager_version execution_manager_c1 = {&nibble_map_constant, &stub_kinds_11, OF_CORECLR, NULL};
const struct execution_manager_version execution_manager_n1 = {NULL, &stub_kinds_11, 1u << LAYOUT_NativeCode,
                                                               native_section};

static bool no_section(struct reader *reader, struct range_section *ret)
{
    (void)reader;
    *ret = (struct range_section){0};
    return true;
}

const struct execution_manager_version execution_manager_none = {.only_section = no_section};

void execution_manager_init(struct execution_manager *manager, const struct execution_manager_version *version,
                            const struct layout *layout)
{
    *manager = (struct execution_manager){
        .version = version,
        .managers = {.nibble_map = version->nibble_map, .stub_kinds = version->stub_kinds},
        .layout = layout,
        .map = layout->globals[G_ExecutionManagerCodeRangeMapAddress],
    };
}

void execution_manager_deinit(struct execution_manager *manager)
{
    r2r_images_deinit(&manager->managers.images);
    aot_image_deinit(&manager->managers.aot);
    range_sections_deinit(&manager->sections);
}

void execution_manager_read_globals(struct execution_manager *manager, struct reader *reader)
{
    const struct layout *layout = manager->layout;
    uint64_t code = layout->globals[G_ThePreStubAddress];
    reader_begin(reader, FUEL_LOOKUP);
    if (layout->globals[G_ThePreStub])
        code = read_pointer(reader, layout->globals[G_ThePreStub]);
    manager->the_pre_stub = reader_failed(reader) ? 0 : address_of_code_pointer(reader, code);
    reader_recover(reader, FAILURE_ANY);
}

/* The only section, if it holds `address`. */
static bool in_only_section(const struct execution_manager *manager, struct reader *reader, uint64_t address,
                            struct range_section *ret)
{
    struct range_section section;
    if (!manager->version->only_section(reader, &section) || address < section.begin || address >= section.end)
        return false;
    *ret = section;
    return true;
}

bool execution_manager_current_section(struct execution_manager *manager, struct reader *reader, uint64_t address,
                                       struct range_section *ret)
{
    return manager->version->only_section ? in_only_section(manager, reader, address, ret)
                                          : range_section_map_find(reader, manager->map, address, ret);
}

bool execution_manager_reaches(const struct execution_manager *manager, struct reader *reader, uint64_t address)
{
    return !manager->version->only_section && range_section_map_reaches(reader, manager->map, address);
}

bool execution_manager_list(const struct execution_manager *manager, struct reader *reader,
                            struct range_section_list *ret)
{
    struct range_section section;
    if (!manager->version->only_section)
        return range_section_map_list(reader, manager->map, ret);
    if (!manager->version->only_section(reader, &section))
        return false;
    struct range_section *items = malloc(sizeof *items);
    if (!items)
        return reader_fail(reader, CDACQ_ERR_NOMEM, 0, "code ranges");
    *items = section;
    *ret = (struct range_section_list){.items = items, .count = section.begin < section.end};
    return true;
}

bool execution_manager_section(struct execution_manager *manager, struct reader *reader, uint64_t address,
                               struct range_section *ret)
{
    if (manager->version->only_section)
        return in_only_section(manager, reader, address, ret);
    return range_sections_find(&manager->sections, reader, manager->map, address, ret) ||
           (!reader_failed(reader) && stub_ranges_find(reader, &manager->image, address, ret));
}

const struct jit_manager_ops *jit_manager_of(const struct range_section *section)
{
    if (section->flags & RANGE_SECTION_NATIVE_AOT)
        return &native_aot_manager;
    if (section->flags & RANGE_SECTION_INTERPRETER)
        return &interpreter_jit_manager;
    if (section->r2r_module)
        return &r2r_jit_manager;
    return section->flags & RANGE_SECTION_RANGE_LIST ? &range_list_manager : &ee_jit_manager;
}

/* execution_manager_find() for an address whose section is known. */
static bool find_in(struct execution_manager *manager, struct reader *reader, const struct range_section *section,
                    uint64_t address, struct code_block *ret)
{
    struct code_block block;
    const struct section_reader in = {jit_manager_of(section), &manager->managers, reader, section};
    if (!in.manager->find(&in, address, &block) || reader_failed(reader))
        return false;
    block.unverified |= reader_unverified(reader);
    *ret = block;
    return true;
}

bool execution_manager_find(struct execution_manager *manager, struct reader *reader, uint64_t ip,
                            struct code_block *ret)
{
    struct range_section section;
    if (execution_manager_section(manager, reader, ip, &section))
        return find_in(manager, reader, &section, ip, ret);
    if (reader_failed(reader) || !ip || ip != manager->the_pre_stub)
        return false;
    *ret = (struct code_block){.ip = ip, .start = ip, .kind = CDACQ_CODE_THE_PRE_STUB};
    return true;
}

static uint64_t method_desc_of(struct execution_manager *manager, struct reader *reader, uint64_t entry)
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
        return block.prepared_unknown ? reader_fail(reader, CDACQ_ERR_MEMORY, block.prepared_unknown,
                                                    "ReadyToRunInfo.EntryPointToMethodDescMap")
                                      : block.method_desc;
    }
    /* Ranges without methods hold precodes and other stubs side by side; the code shows which it is. */
    if (!manager->precode_stubs)
        return reader_fail(reader, CDACQ_ERR_CONTRACT, entry, "PrecodeStubs");
    return precode_stubs_method_desc(manager->precode_stubs, reader, entry);
}

bool execution_manager_entry_method_desc(struct execution_manager *manager, struct reader *reader, uint64_t entry,
                                         uint64_t *ret)
{
    uint64_t method_desc = method_desc_of(manager, reader, entry);
    if (reader_failed(reader) || !method_desc)
        return false;
    *ret = method_desc;
    return true;
}
