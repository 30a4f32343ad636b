/*
 * precodes.c: precodes and the structures that describe them: PrecodeMachineDescriptor, pages of code and data, range
 * lists.
 *
 * Versions 1 and 2 of PrecodeStubs recognise precodes by a number in an instruction, version 3 by all bytes of code
 * that every precode shares. Source: src/coreclr/vm/precode.h, precode.cpp.
 */
#include "mocktarget/mock.h"

static const struct {
    enum mock_field field;
    uint8_t old_type, type; /* up to version 2, and in version 3 */
} kinds[MOCK_PRECODE_COUNT] = {
    [MOCK_PRECODE_STUB] = {F_PrecodeMachineDescriptor_StubPrecodeType, 0x4c, 3},
    [MOCK_PRECODE_PINVOKE] = {F_PrecodeMachineDescriptor_PInvokeImportPrecodeType, 5, 5},
    [MOCK_PRECODE_FIXUP] = {F_PrecodeMachineDescriptor_FixupPrecodeType, 0xff, 2},
    [MOCK_PRECODE_THIS_PTR_RET_BUF] = {F_PrecodeMachineDescriptor_ThisPointerRetBufPrecodeType, 8, 8},
    [MOCK_PRECODE_UM_ENTRY] = {F_PrecodeMachineDescriptor_UMEntryPrecodeType, 7, 7},
    [MOCK_PRECODE_INTERPRETER] = {F_PrecodeMachineDescriptor_InterpreterPrecodeType, 6, 6},
    [MOCK_PRECODE_DYNAMIC_HELPER] = {F_PrecodeMachineDescriptor_DynamicHelperPrecodeType, 10, 10},
};

static uint64_t largest_data(const struct mock *mock)
{
    uint64_t size = MAX(mock->sizes[T_StubPrecodeData], mock->sizes[T_FixupPrecodeData]);
    return MAX(size, (uint64_t)mock->sizes[T_InterpreterPrecodeData]);
}

/* As in x64 and arm64, arm, loongarch64. */
static void choose_type_place(struct mock *mock, struct mock_precode_machine *machine)
{
    static const uint8_t places[][3] = {{0, 1, 0}, {7, 1, 0}, {0, 2, 5}};
    const uint8_t *place = places[mock_random(mock, ARRAY_SIZE(places))];
    machine->type_offset = place[0];
    machine->type_width = place[1];
    machine->type_shift = place[2];
}

/* The first byte differs between the two; some of the other bytes are ignored. */
static void choose_code(struct mock *mock, struct mock_precode_machine *machine)
{
    for (unsigned fixup = 0; fixup < 2; fixup++)
        for (unsigned i = 0; i < MOCK_PRECODE_CODE; i++) {
            machine->code[fixup][i] = i ? (uint8_t)mock_random(mock, 256) : (uint8_t)(0x80 + fixup);
            machine->ignored[fixup][i] = i && !mock_random(mock, 4);
        }
}

static void write_code(struct mock *mock, uint64_t descriptor, enum mock_field size, enum mock_field bytes,
                       enum mock_field ignored, unsigned fixup)
{
    mock_put(mock, descriptor, size, MOCK_PRECODE_CODE);
    mock_write(mock, mock_address_of(mock, descriptor, bytes), mock->precode_machine.code[fixup], MOCK_PRECODE_CODE);
    mock_write(mock, mock_address_of(mock, descriptor, ignored), mock->precode_machine.ignored[fixup],
               MOCK_PRECODE_CODE);
}

void mock_precode_machine_write(struct mock *mock, uint64_t descriptor)
{
    struct mock_precode_machine *machine = &mock->precode_machine;
    bool compared = mock->options.precode_version == 3;
    machine->page = mock_random(mock, 2) ? 0x1000 : 0x4000;
    machine->stride = align_up(MAX(largest_data(mock), (uint64_t)MOCK_PRECODE_CODE), mock->word);
    choose_type_place(mock, machine);
    choose_code(mock, machine);
    mock_put(mock, descriptor, F_PrecodeMachineDescriptor_StubCodePageSize, machine->page);
    for (int kind = 0; kind < MOCK_PRECODE_COUNT; kind++) {
        machine->types[kind] = compared ? kinds[kind].type : kinds[kind].old_type;
        if (mock->fields[kinds[kind].field].present)
            mock_put(mock, descriptor, kinds[kind].field, machine->types[kind]);
    }
    if (compared) {
        write_code(mock, descriptor, F_PrecodeMachineDescriptor_StubPrecodeSize, F_PrecodeMachineDescriptor_StubBytes,
                   F_PrecodeMachineDescriptor_StubIgnoredBytes, 0);
        write_code(mock, descriptor, F_PrecodeMachineDescriptor_FixupStubPrecodeSize,
                   F_PrecodeMachineDescriptor_FixupBytes, F_PrecodeMachineDescriptor_FixupIgnoredBytes, 1);
        return;
    }
    mock_put(mock, descriptor, F_PrecodeMachineDescriptor_OffsetOfPrecodeType, machine->type_offset);
    mock_put(mock, descriptor, F_PrecodeMachineDescriptor_ReadWidthOfPrecodeType, machine->type_width);
    mock_put(mock, descriptor, F_PrecodeMachineDescriptor_ShiftOfPrecodeType, machine->type_shift);
}

void mock_precode_values(struct mock *mock)
{
    const struct mock_precode_machine *machine = &mock->precode_machine;
    mock_hide(mock, "PlatformMetadata");
    mock_global(mock, "PrecodeMachineDescriptor_StubCodePageSize", machine->page);
    mock_global(mock, "PrecodeMachineDescriptor_OffsetOfPrecodeType", machine->type_offset);
    mock_global(mock, "PrecodeMachineDescriptor_ReadWidthOfPrecodeType", machine->type_width);
    mock_global(mock, "PrecodeMachineDescriptor_ShiftOfPrecodeType", machine->type_shift);
    mock_global(mock, "PrecodeMachineDescriptor_StubPrecodeType", machine->types[MOCK_PRECODE_STUB]);
    mock_global(mock, "PrecodeMachineDescriptor_PInvokeImportPrecodeType", machine->types[MOCK_PRECODE_PINVOKE]);
    mock_global(mock, "PrecodeMachineDescriptor_FixupPrecodeType", machine->types[MOCK_PRECODE_FIXUP]);
}

/* ---- Pages ---- */

/* The code of one precode. Ignored bytes, and the bits around a type, are random. */
static void write_precode(struct mock *mock, uint64_t address, unsigned fixup)
{
    const struct mock_precode_machine *machine = &mock->precode_machine;
    uint8_t type = machine->types[fixup ? MOCK_PRECODE_FIXUP : MOCK_PRECODE_STUB];
    if (mock->options.precode_version < 3) {
        uint64_t word = (uint64_t)type << machine->type_shift, above = UINT64_C(256) << machine->type_shift;
        word |= mock_random(mock, UINT64_C(1) << machine->type_shift);
        word |= mock_random(mock, 256) * above;
        mock_write_uint(mock, address + machine->type_offset, machine->type_width,
                        word & ((UINT64_C(1) << 8 * machine->type_width) - 1));
        return;
    }
    for (unsigned i = 0; i < MOCK_PRECODE_CODE; i++)
        mock_write_uint(mock, address + i, 1,
                        machine->ignored[fixup][i] ? mock_random(mock, 256) : machine->code[fixup][i]);
}

static void write_pages(struct mock *mock, uint64_t begin, uint64_t end, unsigned fixup)
{
    const struct mock_precode_machine *machine = &mock->precode_machine;
    for (uint64_t page = begin; page < end && !mock->failed; page += 2 * machine->page) {
        memset(mock_bytes_at(mock, page + machine->page, machine->page), 0, machine->page);
        for (uint64_t at = 0; at + machine->stride <= machine->page; at += machine->stride)
            write_precode(mock, page + at, fixup);
    }
}

struct mock_precodes *mock_precodes_create(struct mock *mock, bool fixup, size_t pages, bool collectible)
{
    enum { STUB_KIND = 4, FIXUP_KIND = 5 }; /* StubCodeBlockKind up to .NET 10 */
    struct mock_precodes *precodes = mock_keep(mock, &(struct mock_precodes){.mock = mock}, sizeof *precodes);
    if (!precodes)
        return NULL;
    uint64_t size = 2 * pages * mock->precode_machine.page;
    precodes->section = mock_range_list(mock, size, fixup ? FIXUP_KIND : STUB_KIND, collectible, &precodes->begin);
    precodes->end = precodes->begin + size;
    precodes->next = precodes->begin;
    precodes->list = mock_fetch(mock, precodes->section, F_RangeSection_RangeList);
    if (!mock->failed)
        write_pages(mock, precodes->begin, precodes->end, fixup);
    return precodes;
}

uint64_t mock_precode_size(const struct mock *mock)
{
    return mock->precode_machine.stride;
}

uint64_t mock_precode_data(const struct mock *mock, uint64_t address)
{
    return (address & ~(uint64_t)(mock->options.code_pointer_flags & 1)) + mock->precode_machine.page;
}

/* Byte code that leads back to its method. */
static uint64_t byte_code(struct mock *mock, uint64_t method_desc)
{
    uint64_t code = mock_object(mock, T_InterpByteCodeStart, 64), method = mock_object(mock, T_InterpMethod, 0);
    mock_put(mock, code, F_InterpByteCodeStart_Method, method);
    mock_put(mock, method, F_InterpMethod_MethodDesc, method_desc);
    return code;
}

static void write_data(struct mock *mock, uint64_t data, enum mock_precode kind, uint64_t method_desc)
{
    enum mock_field parameter =
        mock->options.precode_version == 1 ? F_StubPrecodeData_MethodDesc : F_StubPrecodeData_SecretParam;
    if (kind == MOCK_PRECODE_FIXUP) {
        mock_put(mock, data, F_FixupPrecodeData_MethodDesc, method_desc);
        return;
    }
    mock_put(mock, data, F_StubPrecodeData_Type, mock->precode_machine.types[kind]);
    if (kind == MOCK_PRECODE_INTERPRETER) {
        mock_put(mock, data, F_InterpreterPrecodeData_ByteCodeAddr, byte_code(mock, method_desc));
        return;
    }
    if (kind == MOCK_PRECODE_THIS_PTR_RET_BUF) {
        uint64_t own = mock_object(mock, T_ThisPtrRetBufPrecodeData, 0);
        mock_put(mock, own, F_ThisPtrRetBufPrecodeData_MethodDesc, method_desc);
        method_desc = own;
    }
    mock_put(mock, data, parameter, method_desc);
}

uint64_t mock_precode(struct mock_precodes *precodes, enum mock_precode kind, uint64_t method_desc)
{
    struct mock *mock = precodes ? precodes->mock : NULL;
    if (!mock || mock->failed)
        return 0;
    const struct mock_precode_machine *machine = &mock->precode_machine;
    uint64_t at = precodes->next, page = align_down(at - precodes->begin, 2 * machine->page);
    if (at + machine->stride > precodes->begin + page + machine->page) /* the rest of the page is too short */
        at = precodes->begin + page + 2 * machine->page;
    if (at >= precodes->end)
        return mock_fail(mock, "the precodes at %#llx are full", (unsigned long long)precodes->begin);
    precodes->next = at + machine->stride;
    write_data(mock, mock_precode_data(mock, at), kind, method_desc);
    return at | (mock->options.code_pointer_flags & 1);
}

uint64_t mock_portable_entry_point(struct mock *mock, uint64_t method_desc)
{
    uint64_t entry = mock_object(mock, T_PortableEntryPoint, 0);
    mock_put(mock, entry, F_PortableEntryPoint_MethodDesc, method_desc);
    return entry;
}
