/*
 * fuzz_link_map.c: any memory in the place of the program headers, the dynamic section and the dynamic linker's list of
 * a process, which is this one. The first byte is the number of program headers; memory follows, the headers first. A
 * word whose upper half is ADDRESS stands for an address in it.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/link_map.h"
#include "target/live_pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 0x10000 };

#define ADDRESS UINT32_C(0xadd4e55e)

static bool is_wanted(const char *name)
{
    return name[0] == 'a';
}

static uint8_t *memory_of(const uint8_t *data, size_t size)
{
    static uint8_t *memory;
    if (!memory)
        memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    memset(memory, 0, MEMORY);
    memcpy(memory, data, size);
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word = load_u64(memory + at, false);
        uintptr_t address = (uintptr_t)memory + (uint32_t)word % MEMORY;
        if (word >> 32 == ADDRESS)
            memcpy(memory + at, &address, sizeof address);
    }
    return memory;
}

static size_t peek(void *pages, uint64_t address, void *buffer, size_t size)
{
    return live_pages_peek(pages, address, buffer, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size - 1 > MEMORY)
        return 0;
    uint64_t found[LINK_MAP_FOUND_MAX];
    struct live_pages pages = {.pid = getpid(), .memory = -1};
    const struct program_headers program = {
        .elf = {.wide = true}, .address = (uintptr_t)memory_of(data + 1, size - 1), .count = data[0]};
    const struct link_map_memory memory = {peek, &pages};
    size_t count = link_map_find(&memory, &program, is_wanted, found);
    if (count > LINK_MAP_FOUND_MAX)
        abort();
    for (size_t i = 1; i < count; i++)
        if (found[i - 1] > found[i])
            abort();
    live_pages_deinit(&pages);
    return 0;
}
