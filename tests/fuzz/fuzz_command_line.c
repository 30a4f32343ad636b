/*
 * fuzz_command_line.c: any memory in the place of the top of a stack, with the arguments of a program. The first byte
 * has the word size in bit 0, and the byte order in bit 1; then come two bytes, the place of AT_EXECFN's string, and
 * the memory. A word whose upper half is ADDRESS stands for an address in it.
 */
#include <stdlib.h>

#include "target/command_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 0x10000, HEADER = 3, ROOM = 100 };

#define BASE    UINT64_C(0x70000000)
#define ADDRESS UINT32_C(0xadd4e55e)

static uint8_t memory[MEMORY];

static bool memory_at(struct target *target, uint64_t address, struct span *ret)
{
    (void)target;
    *ret = (struct span){.begin = BASE, .end = BASE + MEMORY, .bytes = memory};
    return address >= BASE && address - BASE < MEMORY;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct target_ops ops = {.memory_at = memory_at, .dumped_at = memory_at};
    struct target target = {.ops = &ops};
    char text[ROOM];
    bool cut;
    if (size < HEADER || size - HEADER > MEMORY)
        return 0;
    struct elf_class elf = {.wide = !(data[0] & 1), .big = data[0] & 2};
    memset(memory, 0, MEMORY);
    memcpy(memory, data + HEADER, size - HEADER);
    for (size_t at = 0; elf.wide && at + 8 <= size - HEADER; at += 8) {
        uint64_t word = load_u64(memory + at, elf.big);
        uint64_t address = BASE + (uint32_t)word % MEMORY;
        if (word >> 32 == ADDRESS)
            for (unsigned i = 0; i < 8; i++)
                memory[at + (elf.big ? 7 - i : i)] = (uint8_t)(address >> 8 * i);
    }
    uint64_t program = BASE + load_u16(data + 1, false);
    memset(text, 'x', sizeof text);
    if (!command_line_read(&target, elf, program, text, sizeof text, &cut) ? text[0] != 'x'
                                                                           : strnlen(text, ROOM) == ROOM)
        abort();
    target_deinit(&target);
    return 0;
}
