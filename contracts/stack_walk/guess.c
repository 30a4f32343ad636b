#include "contracts/stack_walk/guess.h"

enum {
    CALL_MAX = 7,    /* bytes of an instruction that calls */
    SCAN_MAX = 1024, /* words */
    JUMPS_MAX = 2,   /* jump stubs in front of the callee */
};

/* The address that a jump stub at `address` leads to; `address` itself if there is none. x64 only. */
static uint64_t skip_jumps(struct reader *reader, uint64_t address)
{
    uint8_t code[12];
    for (unsigned i = 0; i < JUMPS_MAX && reader_try_copy(reader, address, code, sizeof code); i++) {
        if (code[0] == 0xe9)
            address += 5 + (uint64_t)(int64_t)(int32_t)load_u32(code + 1, false);
        else if (code[0] == 0x48 && code[1] == 0xb8 && code[10] == 0xff && code[11] == 0xe0)
            address = load_u64(code + 2, false);
        else
            break;
    }
    return address;
}

bool guess_is_return_address(const struct guess *guess, uint64_t address, struct call_site *ret)
{
    struct reader *reader = &guess->reader->raw;
    uint8_t bytes[CALL_MAX];
    struct code_block block;
    bool is_pointer;
    *ret = (struct call_site){0};
    if (address < PAGE_SIZE || !reader_try_copy(reader, address - CALL_MAX, bytes, CALL_MAX) ||
        !guess->machine->ends_with_call(bytes, CALL_MAX, address, &ret->target, &is_pointer))
        return false;
    if (ret->target && is_pointer) {
        uint8_t pointer[8];
        ret->target = reader_try_copy(reader, ret->target, pointer, 8) ? load_u64(pointer, reader->big_endian) : 0;
    }
    if (ret->target && guess->machine->return_address == NO_REGISTER)
        ret->target = skip_jumps(reader, ret->target);
    ret->is_managed = execution_manager_find(guess->manager, guess->reader, address - 1, &block);
    ret->is_managed &= !reader_failed(reader) && code_block_is_method(&block);
    reader_recover(reader, FAILURE_ANY & ~FAILURE(CDACQ_ERR_FUEL));
    return ret->is_managed || (guess->is_native && guess->is_native(guess->context, address - 1));
}

/* A frame that begins with a saved frame pointer and a return address. */
static bool by_frame_pointer(const struct guess *guess, const struct registers *registers, struct registers *ret)
{
    const struct walk_machine *machine = guess->machine;
    struct reader *reader = &guess->reader->raw;
    uint64_t fp = registers->values[machine->fp], sp = registers->values[machine->sp];
    uint8_t pair[16];
    struct call_site site;
    if (!register_is_known(registers, machine->fp) || fp < sp || fp % 8 ||
        (guess->stack_base && fp >= guess->stack_base))
        return false;
    if (!reader_try_copy(reader, fp, pair, sizeof pair) ||
        !guess_is_return_address(guess, load_u64(pair + 8, reader->big_endian), &site))
        return false;
    *ret = (struct registers){0};
    register_set(ret, machine->fp, load_u64(pair, reader->big_endian));
    register_set(ret, machine->pc, load_u64(pair + 8, reader->big_endian));
    register_set(ret, machine->sp, fp + 16);
    return true;
}

static bool by_scan(const struct guess *guess, const struct registers *registers, struct registers *ret)
{
    const struct walk_machine *machine = guess->machine;
    struct reader *reader = &guess->reader->raw;
    uint64_t sp = registers->values[machine->sp] & ~UINT64_C(7);
    struct call_site site;
    uint8_t word[8];
    for (unsigned i = 0; i < SCAN_MAX && reader_step(reader, "words of the stack"); i++, sp += 8) {
        if ((guess->stack_base && sp >= guess->stack_base) || !reader_try_copy(reader, sp, word, sizeof word))
            return false;
        uint64_t address = load_u64(word, reader->big_endian);
        if (!guess_is_return_address(guess, address, &site))
            continue;
        *ret = (struct registers){0};
        register_set(ret, machine->pc, address);
        register_set(ret, machine->sp, sp + 8);
        if (register_is_known(registers, machine->fp) && registers->values[machine->fp] > sp)
            register_set(ret, machine->fp, registers->values[machine->fp]);
        return true;
    }
    return false;
}

bool guess_caller(const struct guess *guess, bool interrupted, struct registers *registers)
{
    const struct walk_machine *machine = guess->machine;
    struct registers caller;
    struct call_site site;
    if (guess->reader->raw.pointer_size != 8)
        return false;
    /* A function that calls nothing leaves its return address where the call put it. */
    if (interrupted && machine->return_address != NO_REGISTER &&
        register_is_known(registers, machine->return_address) &&
        registers->values[machine->return_address] != registers->values[machine->pc] &&
        guess_is_return_address(guess, registers->values[machine->return_address], &site)) {
        caller = *registers;
        register_set(&caller, machine->pc, registers->values[machine->return_address]);
        registers_keep(&caller, walk_machine_preserved(machine) & ~(UINT64_C(1) << machine->return_address));
    } else if (!by_frame_pointer(guess, registers, &caller) && !by_scan(guess, registers, &caller)) {
        return false;
    }
    *registers = caller;
    return true;
}
