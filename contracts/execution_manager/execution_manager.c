#include "contracts/execution_manager/execution_manager.h"

#include "contracts/execution_manager/ee_jit_manager.h"
#include "contracts/execution_manager/interpreter_jit_manager.h"
#include "contracts/platform_metadata.h"
#include "contracts/execution_manager/r2r_jit_manager.h"
#include "contracts/code_info/unwind_info.h"

/*
 * StubCodeBlockKind (src/coreclr/vm/codeman.h). The numbers changed for .NET 11 without a contract version that says
 * so; the schema of the descriptor does. In the older numbering 2 is not used.
 */
static const uint8_t stub_kinds_10[] = {
    [0] = CDACQ_CODE_UNKNOWN,          [1] = CDACQ_CODE_JUMP_STUB,
    [3] = CDACQ_CODE_DYNAMIC_HELPER,   [4] = CDACQ_CODE_STUB_PRECODE,
    [5] = CDACQ_CODE_FIXUP_PRECODE,    [6] = CDACQ_CODE_VSD_DISPATCH_STUB,
    [7] = CDACQ_CODE_VSD_RESOLVE_STUB, [8] = CDACQ_CODE_VSD_LOOKUP_STUB,
    [9] = CDACQ_CODE_VSD_VTABLE_STUB,  [10] = CDACQ_CODE_CALL_COUNTING_STUB,
};
static const uint8_t stub_kinds_11[] = {
    [0] = CDACQ_CODE_UNKNOWN,          [1] = CDACQ_CODE_JUMP_STUB,
    [2] = CDACQ_CODE_DYNAMIC_HELPER,   [3] = CDACQ_CODE_STUB_PRECODE,
    [4] = CDACQ_CODE_FIXUP_PRECODE,    [5] = CDACQ_CODE_VSD_DISPATCH_STUB,
    [6] = CDACQ_CODE_VSD_RESOLVE_STUB, [7] = CDACQ_CODE_VSD_LOOKUP_STUB,
    [8] = CDACQ_CODE_VSD_VTABLE_STUB,  [9] = CDACQ_CODE_CALL_COUNTING_STUB,
    [10] = CDACQ_CODE_WRAPPER_STUB,    [11] = CDACQ_CODE_SHUFFLE_THUNK,
};

#define STUB_KINDS(table) .stub_kinds = (table), .stub_kind_count = ARRAY_SIZE(table)

const struct execution_manager_version execution_manager_1 = {.nibble_map = &nibble_map_linear,
                                                              STUB_KINDS(stub_kinds_10)};
const struct execution_manager_version execution_manager_2 = {.nibble_map = &nibble_map_constant,
                                                              STUB_KINDS(stub_kinds_10)};
const struct execution_manager_version execution_manager_c1 = {.nibble_map = &nibble_map_constant,
                                                               STUB_KINDS(stub_kinds_11)};

void execution_manager_init(struct execution_manager *manager, const struct execution_manager_version *version,
                            const struct layout *layout)
{
    *manager = (struct execution_manager){
        .version = version,
        .layout = layout,
        .map = layout->globals[G_ExecutionManagerCodeRangeMapAddress],
    };
    atomic_init(&manager->images, NULL);
}

void execution_manager_deinit(struct execution_manager *manager)
{
    struct r2r_image *image = atomic_load_explicit(&manager->images, memory_order_acquire);
    while (image) {
        struct r2r_image *next = image->next;
        r2r_image_free(image);
        image = next;
    }
    atomic_store_explicit(&manager->images, NULL, memory_order_release);
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

enum cdacq_code_kind execution_manager_stub_kind(const struct execution_manager *manager, uint64_t number)
{
    const struct execution_manager_version *version = manager->version;
    return number < version->stub_kind_count ? version->stub_kinds[number] : CDACQ_CODE_UNKNOWN;
}

enum code_manager range_section_manager(const struct range_section *section)
{
    if (section->flags & RANGE_SECTION_INTERPRETER)
        return CODE_MANAGER_INTERPRETER;
    if (section->r2r_module)
        return CODE_MANAGER_R2R;
    if (section->flags & RANGE_SECTION_RANGE_LIST)
        return CODE_MANAGER_RANGE_LIST;
    return CODE_MANAGER_EE;
}

/* Precodes and other stubs that live in lists of ranges: what kind they are the list says, where it is described. */
static bool range_list_find(const struct execution_manager *manager, struct field_reader *reader,
                            const struct range_section *section, uint64_t ip, struct code_block *ret)
{
    uint64_t number = 0;
    if (section->range_list && has_field(reader, F_CodeRangeMapRangeList_RangeListType))
        number = read_field(reader, section->range_list, F_CodeRangeMapRangeList_RangeListType);
    if (reader_recover(&reader->raw, FAILURE(CDACQ_ERR_MEMORY)))
        number = 0; /* stubs they are, whatever their kind */
    *ret = (struct code_block){.ip = ip, .start = ip, .kind = (uint8_t)execution_manager_stub_kind(manager, number)};
    return !reader_failed(&reader->raw);
}

bool execution_manager_find_in(struct execution_manager *manager, struct field_reader *reader,
                               const struct range_section *section, uint64_t address, struct code_block *ret)
{
    struct code_block block;
    const struct r2r_image *image;
    bool found = false;
    switch (range_section_manager(section)) {
    case CODE_MANAGER_EE:
        found = ee_jit_manager_find(manager, reader, section, address, &block);
        break;
    case CODE_MANAGER_R2R:
        image = r2r_jit_manager_image(manager, reader, section);
        found = image && r2r_jit_manager_find(image, reader, address, &block);
        break;
    case CODE_MANAGER_INTERPRETER:
        found = interpreter_jit_manager_find(manager, reader, section, address, &block);
        break;
    case CODE_MANAGER_RANGE_LIST:
        found = range_list_find(manager, reader, section, address, &block);
        break;
    }
    if (!found || reader_failed(&reader->raw))
        return false;
    block.unverified |= reader_unverified(&reader->raw);
    *ret = block;
    return true;
}

bool execution_manager_find(struct execution_manager *manager, struct field_reader *reader, uint64_t ip,
                            struct code_block *ret)
{
    struct range_section section;
    if (range_section_map_find(reader, manager->map, ip, &section))
        return execution_manager_find_in(manager, reader, &section, ip, ret);
    if (reader_failed(&reader->raw) || !ip || ip != manager->the_pre_stub)
        return false;
    *ret = (struct code_block){.ip = ip, .start = ip, .kind = CDACQ_CODE_THE_PRE_STUB};
    return true;
}

bool execution_manager_unwind_info(struct field_reader *reader, const struct code_block *block,
                                   struct function_place *ret)
{
    uint64_t first = block->cold ? block->cold_functions : block->runtime_functions;
    uint32_t count = block->cold ? block->cold_function_count : block->runtime_function_count;
    if (block->kind == CDACQ_CODE_INTERPRETER || (!has_funclets(reader) && !count)) {
        *ret = (struct function_place){.start = block->start};
        return true;
    }
    struct unwind_table table = unwind_table_at(reader, first, count, block->unwind_base);
    uint32_t i = unwind_table_find(reader, &table, (uint32_t)(block->ip - block->unwind_base));
    if (i == UINT32_MAX)
        return false;
    uint32_t root = unwind_table_root(reader, &table, i); /* a fragment belongs to the function before it */
    *ret = (struct function_place){
        .entry = first + (uint64_t)i * table.entry_size,
        .start = table.base + unwind_table_begin(reader, &table, root),
        .table = table,
        .index = i,
    };
    return !reader_failed(&reader->raw);
}
