#include "contracts/stack_walk/guess.h"

#include "contracts/execution_manager/code_block.h"
#include "contracts/execution_manager/execution_manager.h"
#include "target/registers.h"

enum {
    CALL_MAX = 7,    /* bytes of a call instruction */
    SCAN_MAX = 1024, /* words of the stack that are searched for a return address */
    JUMPS_MAX = 2,   /* jump stubs between a call and its callee */
};

/* The address that the jump stubs at `address` lead to; `address` itself if there is none. x64 only. */
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

/* Reads a pointer. False, without failing the reader and with *ret untouched, if it cannot be read. */
static bool try_word(struct reader *reader, uint64_t address, uint64_t *ret)
{
    uint8_t bytes[8];
    if (!reader_try_copy(reader, address, bytes, reader->pointer_size))
        return false;
    *ret = reader->pointer_size == 8 ? load_u64(bytes, reader->big_endian) : load_u32(bytes, reader->big_endian);
    return true;
}

/* Whether a word may be a return address. On arm it must have the bit for Thumb code, which *ret does not have. */
static bool is_return_address_word(const struct guess *guess, uint64_t word, uint64_t *ret)
{
    struct call_site site;
    *ret = walk_machine_code_address(guess->machine, guess->reader, word);
    return (word & guess->machine->thumb) == guess->machine->thumb && guess_is_return_address(guess, *ret, &site);
}

/* The bytes in front of an address. False: they are not known. */
static bool read_call(struct reader *reader, uint64_t address, uint8_t ret[CALL_MAX])
{
    return address >= PAGE_SIZE && reader_try_copy(reader, address - CALL_MAX, ret, CALL_MAX);
}

bool guess_is_return_address(const struct guess *guess, uint64_t address, struct call_site *ret)
{
    struct reader *reader = guess->reader;
    uint8_t bytes[CALL_MAX];
    struct code_block block;
    bool is_pointer;
    *ret = (struct call_site){0};
    if (!read_call(reader, address, bytes) ||
        !guess->machine->ends_with_call(bytes, CALL_MAX, address, &ret->target, &is_pointer))
        return false;
    if (ret->target && is_pointer && !try_word(reader, ret->target, &ret->target))
        ret->target = 0;
    if (ret->target && guess->machine->return_address == NO_REGISTER)
        ret->target = skip_jumps(reader, ret->target);
    ret->is_managed = execution_manager_find(guess->manager, guess->reader, address - 1, &block);
    ret->is_managed = ret->is_managed && !reader_failed(reader) && code_block_is_method(&block);
    reader_recover(reader, FAILURE_BUT_FUEL);
    return ret->is_managed || (guess->is_native && guess->is_native(guess->context, address - 1));
}

bool guess_is_refuted(const struct walk_machine *machine, struct reader *reader, uint64_t address)
{
    uint8_t bytes[CALL_MAX];
    uint64_t target;
    bool is_pointer;
    return read_call(reader, address, bytes) &&
           !machine->ends_with_call(bytes, CALL_MAX, address, &target, &is_pointer);
}

/* Takes the caller from the frame pointer, if the saved frame pointer and a return address are there. */
static bool by_frame_pointer(const struct guess *guess, const struct registers *registers, struct registers *ret)
{
    const struct walk_machine *machine = guess->machine;
    struct reader *reader = guess->reader;
    uint64_t fp = registers->values[machine->fp], sp = registers->values[machine->sp], saved, address;
    if (!register_is_known(registers, machine->fp) || fp < sp || fp % reader->pointer_size ||
        (guess->stack_base && fp >= guess->stack_base))
        return false;
    if (!try_word(reader, fp, &saved) || !try_word(reader, fp + reader->pointer_size, &address) ||
        !is_return_address_word(guess, address, &address))
        return false;
    *ret = (struct registers){0};
    register_set(ret, machine->fp, saved);
    register_set(ret, machine->pc, address);
    register_set(ret, machine->sp, fp + 2 * (uint64_t)reader->pointer_size);
    return true;
}

/* Takes the first word of the stack that may be a return address. */
static bool by_scan(const struct guess *guess, const struct registers *registers, struct registers *ret)
{
    const struct walk_machine *machine = guess->machine;
    struct reader *reader = guess->reader;
    unsigned size = reader->pointer_size;
    uint64_t sp = registers->values[machine->sp] & ~(uint64_t)(size - 1), address;
    for (unsigned i = 0; i < SCAN_MAX && reader_step(reader, "words of the stack"); i++, sp += size) {
        if ((guess->stack_base && sp >= guess->stack_base) || !try_word(reader, sp, &address))
            return false;
        if (!is_return_address_word(guess, address, &address))
            continue;
        *ret = (struct registers){0};
        register_set(ret, machine->pc, address);
        register_set(ret, machine->sp, sp + size);
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
    uint64_t address;
    /* The innermost function may call nothing. It then leaves its return address in the register. */
    if (interrupted && machine->return_address != NO_REGISTER &&
        register_is_known(registers, machine->return_address) &&
        is_return_address_word(guess, registers->values[machine->return_address], &address) &&
        address != registers->values[machine->pc]) {
        caller = *registers;
        register_set(&caller, machine->pc, address);
        registers_keep(&caller, walk_machine_preserved(machine) & ~(UINT64_C(1) << machine->return_address));
    } else if (!by_frame_pointer(guess, registers, &caller) && !by_scan(guess, registers, &caller)) {
        return false;
    }
    *registers = caller;
    return true;
}
