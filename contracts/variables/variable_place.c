#include "contracts/variables/variable_place.h"

/* How the debug info numbers the registers of an architecture. */
struct debug_registers {
    const uint8_t *dwarf; /* their DWARF numbers */
    uint32_t count;
    uint32_t frame_sp; /* stands for the stack pointer in code without a frame pointer */
    uint8_t sp, fp;    /* DWARF numbers */
};

static const uint8_t x64[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}; /* rax, rcx, rdx, rbx, rsp, ... */
static const uint8_t arm64[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static const struct debug_registers *registers_of(enum architecture architecture)
{
    static const struct debug_registers all[ARCHITECTURE_COUNT] = {
        [ARCHITECTURE_X64] = {.dwarf = x64, .count = ARRAY_SIZE(x64), .frame_sp = 17, .sp = 7, .fp = 6},
        [ARCHITECTURE_ARM64] = {.dwarf = arm64, .count = ARRAY_SIZE(arm64), .frame_sp = 34, .sp = 31, .fp = 29},
    };
    return all[architecture].count ? &all[architecture] : NULL;
}

static bool read_register(const struct variable_frame *frame, const struct debug_registers *machine, uint32_t number,
                          uint64_t *ret)
{
    unsigned dwarf = number < machine->count ? machine->dwarf[number] : REGISTER_NONE;
    if (dwarf == REGISTER_NONE || !register_is_known(frame->registers, dwarf))
        return false;
    *ret = frame->registers->values[dwarf];
    return true;
}

/* The address of a place on the stack. A funclet has a stack pointer of its own, and its method's frame pointer. */
static bool stack_address(const struct variable_frame *frame, bool is_funclet, const struct debug_registers *machine,
                          const struct debug_info_variable *variable, uint64_t *ret)
{
    uint64_t base;
    bool is_sp = variable->registers[0] == machine->frame_sp;
    unsigned dwarf = is_sp                                     ? machine->sp
                     : variable->registers[0] < machine->count ? machine->dwarf[variable->registers[0]]
                                                               : REGISTER_NONE;
    if (dwarf == REGISTER_NONE || (is_funclet && dwarf != machine->fp) || !register_is_known(frame->registers, dwarf))
        return false;
    base = frame->registers->values[dwarf];
    *ret = base + (uint64_t)(int64_t)variable->offset;
    return true;
}

static void take_place(const struct variable_frame *frame, bool is_funclet, const struct debug_info_variable *variable,
                       struct variable_place *ret)
{
    struct reader *reader = frame->cache->reader;
    const struct debug_registers *machine = registers_of(reader->layout->architecture);
    uint64_t word = 0;
    bool found = false;
    if (!machine)
        return;
    switch (variable->place) {
    case DEBUG_INFO_REG:
        found = read_register(frame, machine, variable->registers[0], &ret->bits);
        ret->kind = found ? PLACE_REGISTER : variable->registers[0] >= machine->count ? PLACE_UNREAD : PLACE_NONE;
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

void variable_place_find(const struct variable_frame *frame, const struct block_variables *places, bool is_funclet,
                         uint32_t number, struct variable_place *ret)
{
    const struct debug_info_variable *found = NULL;
    *ret = (struct variable_place){.kind = PLACE_NONE};
    for (size_t i = 0; i < places->count; i++) {
        const struct debug_info_variable *variable = &places->items[i];
        if (variable->number < 0 || (uint32_t)variable->number != number)
            continue;
        if (found && !is_same_place(found, variable))
            return; /* which of the two is right, nobody knows */
        found = variable;
    }
    if (found)
        take_place(frame, is_funclet, found, ret);
}
