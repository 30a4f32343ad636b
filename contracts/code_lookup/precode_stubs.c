#include "contracts/code_lookup/precode_stubs.h"

#include "contracts/code_lookup/platform_metadata.h"

/* ---- The machine descriptor ---- */

/* One value, from the target's memory or else from the supplement (G_COUNT: none has it). False if neither has it. */
static bool machine_value(struct reader *reader, uint64_t descriptor, enum layout_field field,
                          enum layout_global global, uint64_t *ret)
{
    const struct layout *layout = reader->layout;
    if (descriptor && layout->fields[field].present) {
        *ret = read_field(reader, descriptor, field);
        return !reader_failed(reader);
    }
    if (global == G_COUNT || !layout->global_present[global])
        return false;
    *ret = layout->globals[global];
    return true;
}

/* The same for a required value: the reader fails without it. */
static uint64_t needed_value(struct reader *reader, uint64_t descriptor, enum layout_field field,
                             enum layout_global global)
{
    uint64_t value;
    return machine_value(reader, descriptor, field, global, &value) ? value : field_missing(reader, field);
}

#define SUPPLEMENTED(name) F_PrecodeMachineDescriptor_##name, G_PrecodeMachineDescriptor_##name
#define PUBLISHED(name)    F_PrecodeMachineDescriptor_##name, G_COUNT

static void read_types(struct reader *reader, uint64_t descriptor, struct precode_machine *machine)
{
    static const struct {
        enum layout_field field;
        enum layout_global global;
    } types[PRECODE_KIND_COUNT] = {
        [PRECODE_STUB] = {SUPPLEMENTED(StubPrecodeType)},
        [PRECODE_PINVOKE_IMPORT] = {SUPPLEMENTED(PInvokeImportPrecodeType)},
        [PRECODE_FIXUP] = {SUPPLEMENTED(FixupPrecodeType)},
        [PRECODE_THIS_PTR_RET_BUF] = {PUBLISHED(ThisPointerRetBufPrecodeType)},
        [PRECODE_UM_ENTRY] = {PUBLISHED(UMEntryPrecodeType)},
        [PRECODE_INTERPRETER] = {PUBLISHED(InterpreterPrecodeType)},
        [PRECODE_DYNAMIC_HELPER] = {PUBLISHED(DynamicHelperPrecodeType)},
    };
    for (enum precode_kind kind = PRECODE_NONE + 1; kind < PRECODE_KIND_COUNT; kind++) {
        uint64_t value = 0;
        machine->has_type[kind] = machine_value(reader, descriptor, types[kind].field, types[kind].global, &value);
        machine->types[kind] = (uint8_t)value;
    }
}

static enum precode_kind kind_of_type(const struct precode_machine *machine, uint8_t type)
{
    for (enum precode_kind kind = PRECODE_NONE + 1; kind < PRECODE_KIND_COUNT; kind++)
        if (machine->has_type[kind] && machine->types[kind] == type)
            return kind;
    return PRECODE_NONE;
}

/* ---- Versions 1 and 2: a number in an instruction ---- */

static void read_type_location(struct reader *reader, uint64_t descriptor, struct precode_machine *machine)
{
    machine->type_offset = (uint8_t)needed_value(reader, descriptor, SUPPLEMENTED(OffsetOfPrecodeType));
    machine->type_width = (uint8_t)needed_value(reader, descriptor, SUPPLEMENTED(ReadWidthOfPrecodeType));
    machine->type_shift = (uint8_t)needed_value(reader, descriptor, SUPPLEMENTED(ShiftOfPrecodeType));
    if (!reader_failed(reader) && machine->type_width != 1 && machine->type_width != 2)
        reader_fail(reader, CDACQ_ERR_CORRUPT, descriptor, "PrecodeMachineDescriptor.ReadWidthOfPrecodeType");
    if (!reader_failed(reader) && machine->type_shift >= 8 * machine->type_width)
        reader_fail(reader, CDACQ_ERR_CORRUPT, descriptor, "PrecodeMachineDescriptor.ShiftOfPrecodeType");
}

static enum precode_kind kind_by_type_in_code(struct reader *reader, const struct precode_machine *machine,
                                              uint64_t address)
{
    uint64_t word = read_uint(reader, address + machine->type_offset, machine->type_width);
    return reader_failed(reader) ? PRECODE_NONE : kind_of_type(machine, (uint8_t)(word >> machine->type_shift));
}

/* ---- Version 3: all bytes of the code ---- */

static void read_code(struct reader *reader, uint64_t descriptor, enum layout_field size, enum layout_field bytes,
                      enum layout_field ignored, struct precode_code *ret)
{
    ret->size = (uint8_t)needed_value(reader, descriptor, size, G_COUNT);
    uint64_t bytes_at = field_address(reader, descriptor, bytes);
    uint64_t ignored_at = field_address(reader, descriptor, ignored);
    if (reader_failed(reader))
        return;
    if (!reader_copy(reader, bytes_at, ret->bytes, ret->size) ||
        !reader_copy(reader, ignored_at, ret->ignored, ret->size))
        field_read(reader, bytes, 0);
}

static void read_codes(struct reader *reader, uint64_t descriptor, struct precode_machine *machine)
{
    read_code(reader, descriptor, F_PrecodeMachineDescriptor_StubPrecodeSize, F_PrecodeMachineDescriptor_StubBytes,
              F_PrecodeMachineDescriptor_StubIgnoredBytes, &machine->stub);
    /* Not every platform has fixup precodes. */
    if (has_field(reader, F_PrecodeMachineDescriptor_FixupStubPrecodeSize))
        read_code(reader, descriptor, F_PrecodeMachineDescriptor_FixupStubPrecodeSize,
                  F_PrecodeMachineDescriptor_FixupBytes, F_PrecodeMachineDescriptor_FixupIgnoredBytes, &machine->fixup);
}

/* Whether the code at `address` is that of a precode. A pattern that ignores every byte matches nothing. */
static bool is_code(struct reader *reader, const struct precode_code *code, uint64_t address)
{
    size_t compared = 0;
    for (size_t i = 0; i < code->size; i++)
        if (!code->ignored[i]) {
            if (read_u8(reader, address + i) != code->bytes[i] || reader_failed(reader))
                return false;
            compared++;
        }
    return compared > 0;
}

static enum precode_kind kind_by_code(struct reader *reader, const struct precode_machine *machine, uint64_t address)
{
    if (is_code(reader, &machine->stub, address))
        return PRECODE_STUB;
    return is_code(reader, &machine->fixup, address) ? PRECODE_FIXUP : PRECODE_NONE;
}

const struct precode_stubs_version precode_stubs_1 = {
    .code_at = kind_by_type_in_code, .read_code = read_type_location, .stub_target = F_StubPrecodeData_MethodDesc};
const struct precode_stubs_version precode_stubs_2 = {
    .code_at = kind_by_type_in_code, .read_code = read_type_location, .stub_target = F_StubPrecodeData_SecretParam};
const struct precode_stubs_version precode_stubs_3 = {
    .code_at = kind_by_code, .read_code = read_codes, .stub_target = F_StubPrecodeData_SecretParam};

/* ---- From the precode to the MethodDesc ---- */

static bool read_machine(const struct precode_stubs_version *version, struct reader *reader,
                         struct precode_machine *machine)
{
    uint64_t descriptor = platform_metadata_precode_machine_descriptor(reader);
    machine->page_size = needed_value(reader, descriptor, SUPPLEMENTED(StubCodePageSize));
    if (!reader_failed(reader) && (!machine->page_size || machine->page_size % reader->pointer_size))
        reader_fail(reader, CDACQ_ERR_CORRUPT, descriptor, "PrecodeMachineDescriptor.StubCodePageSize");
    read_types(reader, descriptor, machine);
    version->read_code(reader, descriptor, machine);
    return !reader_failed(reader);
}

static uint64_t interpreted_method(struct reader *reader, uint64_t data)
{
    uint64_t code = read_field(reader, data, F_InterpreterPrecodeData_ByteCodeAddr);
    uint64_t method = read_field(reader, code, F_InterpByteCodeStart_Method);
    return read_field(reader, method, F_InterpMethod_MethodDesc);
}

uint64_t precode_stubs_method_desc(const struct precode_stubs_version *version, struct reader *reader, uint64_t address)
{
    struct precode_machine machine = {0};
    if (address % reader->pointer_size || !read_machine(version, reader, &machine))
        return 0;
    enum precode_kind kind = version->code_at(reader, &machine, address);
    reader_name_failure(reader, "precode");
    uint64_t data = address + machine.page_size;
    if (kind == PRECODE_STUB) {
        kind = kind_of_type(&machine, (uint8_t)read_field(reader, data, F_StubPrecodeData_Type));
        if (kind == PRECODE_FIXUP)
            kind = PRECODE_NONE; /* a fixup precode has other code */
    }
    if (reader_failed(reader))
        return 0;
    switch (kind) {
    case PRECODE_STUB:
    case PRECODE_PINVOKE_IMPORT:
        return read_field(reader, data, version->stub_target);
    case PRECODE_FIXUP:
        return read_field(reader, data, F_FixupPrecodeData_MethodDesc);
    case PRECODE_THIS_PTR_RET_BUF:
        return read_field(reader, read_field(reader, data, F_StubPrecodeData_SecretParam),
                          F_ThisPtrRetBufPrecodeData_MethodDesc);
    case PRECODE_INTERPRETER:
        return interpreted_method(reader, data);
    default:
        return 0; /* UMEntry thunks and dynamic helpers have no method */
    }
}
