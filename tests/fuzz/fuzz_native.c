/*
 * fuzz_native.c: any bytes as the ELF images of a process: its frames are unwound by their call-frame information, and
 * its symbols are looked up, in memory and in files, compressed and separate ones included. No file of the machine is
 * looked at. The first byte chooses the machine; the second chooses what the file of the image holds.
 */
#include <elf.h>
#include <stdio.h>

#include "target/file_candidate.h"
#include "target/mapped_file.h"
#include "target/memory.h"
#include "target/native/debug_file.h"
#include "target/native/expression.h"
#include "target/native/native_modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BASE = 0x10000, STEPS = 8, FUEL = 3000 };

static const uint8_t *image;
static size_t image_size;

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **bytes, void *context)
{
    (void)context;
    *begin = BASE;
    *end = BASE + image_size;
    *bytes = image;
    return address >= *begin && address < *end;
}

/* Walks from an address, with a stack in the image too. */
static void walk(struct target *target, struct native_modules *modules, uint64_t pc, uint64_t sp)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    struct registers registers = {0};
    struct native_frame_info info = {.is_signal = true};
    struct native_symbol symbol;
    for (unsigned i = 0; i < machine->count; i++)
        register_set(&registers, i, sp + i * 8);
    register_set(&registers, machine->pc, pc);
    for (unsigned i = 0; i < STEPS; i++) {
        struct reader reader;
        struct registers before = registers;
        reader_init(&reader, target, machine->word_size, false);
        reader_begin(&reader, FUEL);
        if (native_modules_symbol(modules, registers.values[machine->pc], &symbol) &&
            (!symbol.module || (symbol.name && strlen(symbol.name) > image_size)))
            abort();
        enum native_step step = native_modules_step(modules, &reader, info.is_signal, &registers, &info);
        if ((step == NATIVE_FAILED) != reader_failed(&reader))
            abort();
        if (step != NATIVE_STEPPED) {
            if (memcmp(&before, &registers, sizeof before) != 0)
                abort();
            return;
        }
        if (!register_is_known(&registers, machine->pc) || (!registers.values[machine->pc] && !info.is_signal) ||
            registers.known >> machine->count)
            abort();
        if (!info.is_signal && registers.values[machine->sp] < before.values[machine->sp])
            abort();
    }
}

/* The input as an expression. */
static void evaluate(struct target *target, const struct register_machine *machine)
{
    struct registers registers = {0};
    struct reader reader;
    uint64_t first = BASE;
    for (unsigned i = 0; i < machine->count; i += 2)
        register_set(&registers, i, BASE + i);
    reader_init(&reader, target, machine->word_size, false);
    reader_begin(&reader, FUEL);
    uint64_t value = expression_evaluate(&reader, machine, &registers, BASE, image_size, &first);
    if ((reader_failed(&reader) && value) || (machine->word_size == 4 && value > UINT32_MAX))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t machines[] = {EM_X86_64, EM_AARCH64, EM_386, EM_ARM, EM_RISCV};
    if (size < 4)
        return 0;
    bool has_file = data[1] & 1;
    image = data + 4;
    image_size = size - 4;
    struct file_policy policy = {.no_own_paths = true, .module_paths = (char *[]){NULL}};
    pthread_mutex_init(&policy.lock, NULL);
    struct cdacq_mapping mapping = {
        .size = sizeof mapping, .begin = BASE, .end = BASE + MAX(image_size, 4096), .path = "/x"};
    struct cdacq_memory memory = {
        .size = sizeof memory,
        .span_at = span_at,
        .elf_machine = machines[data[0] % ARRAY_SIZE(machines)],
        .mappings = &mapping,
        .mapping_count = 1,
    };
    struct target *target;
    if (memory_open(&memory, &policy, false, &target, NULL) < 0)
        abort();
    struct mapped_file *file = target->mappings[0].file;
    if (has_file) {
        file->content = (struct file_candidate){.bytes = image, .size = image_size};
        file->local_path = strdup("/x");
        atomic_store(&file->resolved, true);
    }
    struct native_modules *modules = native_modules_create(target, NULL);
    if (!modules)
        abort();
    for (uint64_t i = 0; i < 16; i++)
        walk(target, modules, BASE + i * image_size / 16, BASE + image_size / 2);
    for (size_t i = 0; i + 8 <= image_size && i < 512; i += 8)
        walk(target, modules, load_u64(image + i, false) + (load_u64(image + i, false) < BASE ? BASE : 0), BASE + i);
    evaluate(target, register_machine_find(memory.elf_machine));
    native_modules_destroy(modules);
    if (has_file)
        file->content.bytes = NULL; /* not its own */
    target_destroy(target);
    pthread_mutex_destroy(&policy.lock);
    return 0;
}
