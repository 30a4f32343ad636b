#include "contracts/variables/variable_place.h"

#include <inttypes.h>

/* How the debug info numbers the registers of an architecture. */
struct debug_registers {
    const uint8_t *dwarf; /* their DWARF numbers */
    uint32_t count;
    uint32_t frame_sp; /* stands for the stack pointer in code without a frame pointer */
    uint8_t sp, fp;    /* DWARF numbers */
    uint8_t xmm0;      /* the same; 0: there is none */
};

static const uint8_t x64[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}; /* rax, rcx, rdx, rbx, rsp, ... */
static const uint8_t arm64[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static const struct debug_registers *registers_of(enum architecture architecture)
{
    static const struct debug_registers all[ARCHITECTURE_COUNT] = {
        [ARCHITECTURE_X64] =
            {.dwarf = x64, .count = ARRAY_SIZE(x64), .frame_sp = 17, .sp = 7, .fp = 6, .xmm0 = REGISTER_XMM0},
        [ARCHITECTURE_ARM64] = {.dwarf = arm64, .count = ARRAY_SIZE(arm64), .frame_sp = 34, .sp = 31, .fp = 29},
    };
    return all[architecture].count ? &all[architecture] : NULL;
}

/* The DWARF number of a register; REGISTER_NONE: it is not known. */
static unsigned dwarf_number(const struct debug_registers *machine, uint32_t number)
{
    if (machine->xmm0 && number >= BLOCK_XMM0 && number - BLOCK_XMM0 < REGISTER_XMM_COUNT)
        return machine->xmm0 + (number - BLOCK_XMM0);
    return number < machine->count ? machine->dwarf[number] : REGISTER_NONE;
}

/*
 * The same of the base of a place on the stack. A funclet has a stack pointer of its own, and its method's frame
 * pointer: it does not know other bases.
 */
static unsigned stack_base(const struct debug_registers *machine, bool is_funclet, uint32_t number)
{
    unsigned dwarf = number == machine->frame_sp ? machine->sp : dwarf_number(machine, number);
    return is_funclet && dwarf != machine->fp ? REGISTER_NONE : dwarf;
}

static bool read_register(const struct variable_frame *frame, const struct debug_registers *machine, uint32_t number,
                          uint64_t *ret)
{
    unsigned dwarf = dwarf_number(machine, number);
    if (dwarf == REGISTER_NONE || !register_is_known(frame->registers, dwarf))
        return false;
    *ret = frame->registers->values[dwarf];
    return true;
}

static void take_register(const struct variable_frame *frame, const struct debug_registers *machine,
                          const struct debug_info_variable *variable, struct variable_place *ret)
{
    bool is_general = variable->registers[0] < machine->count;
    if (is_general && variable->place == DEBUG_INFO_REG_FP)
        ret->kind = PLACE_UNREAD; /* it contradicts itself */
    else if (read_register(frame, machine, variable->registers[0], &ret->bits))
        ret->kind = is_general ? PLACE_REGISTER : PLACE_XMM;
    else
        ret->kind = is_general ? PLACE_NONE : PLACE_UNREAD;
}

/* The address of a place on the stack. */
static bool stack_address(const struct variable_frame *frame, bool is_funclet, const struct debug_registers *machine,
                          const struct debug_info_variable *variable, uint64_t *ret)
{
    unsigned dwarf = stack_base(machine, is_funclet, variable->registers[0]);
    if (dwarf == REGISTER_NONE || !register_is_known(frame->registers, dwarf))
        return false;
    *ret = frame->registers->values[dwarf] + (uint64_t)(int64_t)variable->offset;
    return true;
}

static void take_place(const struct variable_frame *frame, bool is_funclet, const struct debug_info_variable *variable,
                       struct variable_place *ret)
{
    struct reader *reader = frame->cache->reader;
    const struct debug_registers *machine = registers_of(reader->layout->architecture);
    uint64_t word = 0;
    bool found;
    if (!machine)
        return;
    switch (variable->place) {
    case DEBUG_INFO_REG:
    case DEBUG_INFO_REG_FP:
        take_register(frame, machine, variable, ret);
        break;
    case DEBUG_INFO_REG_BYREF:
        found = read_register(frame, machine, variable->registers[0], &ret->address);
        ret->kind = found ? PLACE_MEMORY : PLACE_NONE;
        break;
    case DEBUG_INFO_STK:
    case DEBUG_INFO_STK2:
        found = stack_address(frame, is_funclet, machine, variable, &ret->address);
        ret->kind = found ? PLACE_MEMORY : PLACE_NONE;
        break;
    case DEBUG_INFO_STK_BYREF:
        found = stack_address(frame, is_funclet, machine, variable, &word);
        ret->address = found ? read_pointer(reader, word) : 0;
        ret->kind = found && !reader_failed(reader) ? PLACE_MEMORY : PLACE_NONE;
        reader_recover(reader, FAILURE_BUT_FUEL);
        break;
    default:
        ret->kind = PLACE_UNREAD;
        break;
    }
}

bool variable_frame_pointer(const struct variable_frame *frame, uint64_t *ret)
{
    const struct debug_registers *machine = registers_of(frame->cache->reader->layout->architecture);
    if (!machine || !register_is_known(frame->registers, machine->fp))
        return false;
    *ret = frame->registers->values[machine->fp];
    return true;
}

static bool is_same_place(const struct debug_info_variable *a, const struct debug_info_variable *b)
{
    return a->place == b->place && a->registers[0] == b->registers[0] && a->registers[1] == b->registers[1] &&
           a->offset == b->offset;
}

const struct debug_info_variable *variable_place_search(const struct block_variables *places, uint32_t number,
                                                        bool *ret_is_doubtful)
{
    const struct debug_info_variable *found = NULL;
    *ret_is_doubtful = false;
    for (size_t i = 0; i < places->count; i++) {
        const struct debug_info_variable *variable = &places->items[i];
        if (variable->number < 0 || (uint32_t)variable->number != number)
            continue;
        *ret_is_doubtful |= found && !is_same_place(found, variable); /* which of the two is right, nobody knows */
        found = variable;
    }
    return *ret_is_doubtful ? NULL : found;
}

void variable_place_find(const struct variable_frame *frame, const struct block_variables *places, bool is_funclet,
                         uint32_t number, struct variable_place *ret)
{
    bool is_doubtful;
    const struct debug_info_variable *found = variable_place_search(places, number, &is_doubtful);
    *ret = (struct variable_place){.kind = PLACE_NONE};
    if (found)
        take_place(frame, is_funclet, found, ret);
}

/* ---- Text ---- */

struct place_writer {
    const struct debug_registers *machine;
    const char *const *names; /* by DWARF numbers */
    bool is_funclet;
    struct text *out;
};

static bool put_register(const struct place_writer *writer, uint32_t number)
{
    unsigned dwarf = dwarf_number(writer->machine, number);
    if (dwarf == REGISTER_NONE)
        return false;
    if (number >= BLOCK_XMM0)
        text_printf(writer->out, "xmm%u", number - BLOCK_XMM0);
    else
        text_puts(writer->out, writer->names[dwarf]);
    return true;
}

static bool put_address(const struct place_writer *writer, uint32_t base, int32_t offset)
{
    unsigned dwarf = stack_base(writer->machine, writer->is_funclet, base);
    if (dwarf == REGISTER_NONE)
        return false;
    text_puts(writer->out, writer->names[dwarf]);
    int64_t wide = offset;
    if (wide)
        text_printf(writer->out, "%c0x%" PRIx64, wide < 0 ? '-' : '+', (uint64_t)(wide < 0 ? -wide : wide));
    return true;
}

static bool put_place(const struct place_writer *writer, const struct debug_info_variable *variable)
{
    const uint32_t *registers = variable->registers;
    struct text *out = writer->out;
    switch (variable->place) {
    case DEBUG_INFO_REG:
    case DEBUG_INFO_REG_FP:
    case DEBUG_INFO_REG_BYREF:
        return put_register(writer, registers[0]);
    case DEBUG_INFO_STK:
    case DEBUG_INFO_STK2:
    case DEBUG_INFO_STK_BYREF:
        return put_address(writer, registers[0], variable->offset);
    case DEBUG_INFO_REG_REG:
        return put_register(writer, registers[0]) && (text_putc(out, ':'), put_register(writer, registers[1]));
    case DEBUG_INFO_REG_STK:
        return put_register(writer, registers[0]) &&
               (text_putc(out, ':'), put_address(writer, registers[1], variable->offset));
    case DEBUG_INFO_STK_REG:
        return put_address(writer, registers[0], variable->offset) &&
               (text_putc(out, ':'), put_register(writer, registers[1]));
    default:
        return false;
    }
}

bool variable_place_text(enum architecture architecture, const struct debug_info_variable *variable, bool is_funclet,
                         struct text *ret)
{
    const struct debug_registers *machine = registers_of(architecture);
    bool has_address = variable->place == DEBUG_INFO_REG_BYREF || variable->place == DEBUG_INFO_STK_BYREF;
    size_t before = ret->length;
    if (!machine)
        return false;
    const struct place_writer writer = {machine, register_machine_find(architecture_elf_machine(architecture))->names,
                                        is_funclet, ret};
    text_puts(ret, has_address ? "[" : "");
    if (!put_place(&writer, variable)) {
        text_cut(ret, before);
        return false;
    }
    text_puts(ret, has_address ? "]" : "");
    return true;
}
