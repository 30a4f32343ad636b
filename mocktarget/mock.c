/* mock.c: creating and destroying a mock; what every target contains from the start. */
#include "mocktarget/mock.h"

#include <elf.h>

static uint16_t usual_machine(const struct mock_options *options)
{
    if (options->big_endian)
        return options->pointer_size == 4 ? EM_PPC : EM_PPC64;
    switch (options->unwind) {
    case MOCK_UNWIND_HEADER:
        return options->pointer_size == 4 ? EM_ARM : EM_AARCH64;
    case MOCK_UNWIND_RISCV64:
        return EM_RISCV;
    case MOCK_UNWIND_LOONGARCH64:
        return 258; /* EM_LOONGARCH, which older elf.h lack */
    default:
        return options->pointer_size == 4 ? EM_386 : EM_X86_64;
    }
}

static void set_globals(struct mock *mock)
{
    uint64_t value_mask = (mock->word == 4 ? UINT32_MAX : UINT64_MAX) >> 1;
    mock_global(mock, "StubCodeBlockLast", 0xf);
    mock_global(mock, "HashMapSlotsPerBucket", mock->options.hash_slots);
    mock_global(mock, "HashMapValueMask", value_mask);
    if (!mock->is_net11)
        mock_global(mock, "GCInfoVersion", 4);
    mock_global(mock, "MethodDescTokenRemainderBitCount", 12);
    mock_global(mock, "MethodDescAlignment", 8);
    mock_global(mock, "ExecutionManagerCodeRangeMapAddress", mock->map);
    if (mock->options.no_funclets)
        mock_global(mock, "FeatureEHFunclets", 0);
}

/* What the runtime publishes besides: numbers, and addresses of variables that it has not set yet. */
static void set_globals_of_11(struct mock *mock)
{
    uint64_t value;
    for (int global = 0; global < G_COUNT; global++) {
        const char *name = mock_global_rows[global].name;
        if (mock->global_set[global])
            continue;
        if (net11_number(name, &value))
            mock_global(mock, name, value);
        else if (net11_pointer(name))
            mock_global(mock, name, mock_alloc(mock, mock->word, mock->word));
    }
}

static void set_contracts(struct mock *mock)
{
    static const char *const names[] = {"ExecutionManager", "PlatformMetadata", "RuntimeTypeSystem", "Loader",
                                        "EcmaMetadata",     "PrecodeStubs",     "CodeVersions"};
    for (const struct net11_text *contract = net11_contracts; mock->is_net11 && contract->name; contract++)
        mock_contract(mock, contract->name, contract->text);
    if (mock->is_net11)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        mock_contract(mock, names[i], "1");
    if (mock->options.version == 2)
        mock_contract(mock, "ExecutionManager", "2");
    mock_contract(mock, "PrecodeStubs", (const char *const[]){"1", "2", "3"}[mock->options.precode_version - 1]);
}

static bool has_fields(const struct mock *mock, enum mock_type type)
{
    for (int field = 0; field < F_COUNT; field++)
        if (mock_field_rows[field].type == type && mock->fields[field].present)
            return true;
    return false;
}

/* Names in layout.def that only other releases have. */
static void hide_other_names(struct mock *mock)
{
    static const char *const since_11[] = {"AsyncMethodData", "AuxiliarySymbolInfo"};
    uint64_t size;
    for (size_t i = 0; !mock->is_net11 && i < ARRAY_SIZE(since_11); i++)
        mock_hide(mock, since_11[i]);
    for (int type = 0; mock->is_net11 && type < T_COUNT; type++) {
        bool is_published = net11_type(mock_type_rows[type].name, &size);
        mock->type_hidden[type] = !is_published && !has_fields(mock, type);
        mock->size_hidden[type] = is_published && !size;
    }
}

struct mock *mock_create(const struct mock_options *options)
{
    struct mock_options known = *options;
    if (!known.pointer_size)
        known.pointer_size = 8;
    if (!known.version)
        known.version = 2;
    if (!known.precode_version)
        known.precode_version = 3;
    if (!known.hash_slots)
        known.hash_slots = 4;
    if (!known.machine)
        known.machine = usual_machine(&known);
    if (!known.base)
        known.base = known.pointer_size == 4 ? 0x10000000 : UINT64_C(0x7f0010000000);
    if ((known.pointer_size != 4 && known.pointer_size != 8) || known.precode_version > 3 ||
        (known.version > 2 && known.version != MOCK_NET_11) ||
        (known.version == MOCK_NET_11 && known.precode_version != 3) ||
        (known.unwind >= MOCK_UNWIND_RISCV64 && known.pointer_size == 4) ||
        (known.no_funclets && (known.unwind != MOCK_UNWIND_FUNCTION_LENGTH || known.version == MOCK_NET_11)))
        return NULL;
    struct mock *mock = calloc(1, sizeof *mock);
    if (!mock)
        return NULL;
    mock->options = known;
    mock->word = known.pointer_size;
    mock->big = known.big_endian;
    mock->random = known.seed;
    mock->is_net11 = known.version == MOCK_NET_11;
    bool is_another_build = known.interpreter || known.cold_jit_code || known.hash_slots != 4;
    mock->has_net11_offsets = mock->is_net11 && known.pointer_size == 8 && !known.big_endian && !is_another_build &&
                              known.unwind == MOCK_UNWIND_END_ADDRESS && !(known.seed & 1);
    mock->next = align_up(known.base, 4096);
    mock_layout(mock);
    mock->map = mock_object(mock, T_RangeSectionMap, mock->word);
    mock->jit_manager = mock_new_manager(mock, "EEJitManagerAddress");
    set_globals(mock);
    set_contracts(mock);
    hide_other_names(mock);
    if (mock->is_net11)
        set_globals_of_11(mock);
    uint64_t platform = mock_object(mock, T_PlatformMetadata, 0);
    mock_put(mock, platform, F_PlatformMetadata_CodePointerFlags, known.code_pointer_flags);
    mock_global(mock, "PlatformMetadata", platform);
    mock_precode_machine_write(mock, mock_address_of(mock, platform, F_PlatformMetadata_PrecodeMachineDescriptor));
    return mock;
}

void mock_destroy(struct mock *mock)
{
    if (!mock)
        return;
    mock_images_free(mock);
    mock_space_free(mock);
    mock_sections_deinit(&mock->sections);
    mock_expected_deinit(&mock->functions);
    free(mock);
}
