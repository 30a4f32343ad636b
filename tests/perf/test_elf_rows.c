/*
 * test_elf_rows.c: the call-frame information of the ELF files that the library writes, against the unwinder, at every
 * instruction of every function of real processes. The stack is one whose words are their own addresses, so that a
 * register that was restored shows where from.
 *
 * CDACQ_ROWS_TARGETS may name more cores, separated by colons; CDACQ_ROWS_SYSROOT is where their files are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cdacq.h"
#include "contracts/execution_manager/execution_manager.h"
#include "formats/cfi.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/stack_walk/unwind_entry.h"
#include "formats/elf.h"
#include "formats/x64_instruction.h"
#include "src/lookup/opened_session.h"
#include "src/perf/method_frames.h"
#include "target/memory.h"
#include "target/native/call_frame.h"

enum { STACK_SIZE = 8 << 20, SP_AT = 4 << 20, FP_AT = 5 << 20, FAULTS_MAX = 10 };

static const uint64_t stack_base = UINT64_C(0x4d0000000000); /* where no process has memory */

static uint64_t *stack;
static struct cdacq_target *opened;
static struct cdacq_session *session;
static struct target *both; /* the process's memory, and the stack */
static uint8_t *elf;
static size_t elf_size, elf_capacity;
static uint64_t functions, instructions, faults;

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    struct target *target = context;
    struct span span;
    if (address >= stack_base && address < stack_base + STACK_SIZE) {
        *ret_begin = stack_base;
        *ret_end = stack_base + STACK_SIZE;
        *ret_bytes = stack;
        return true;
    }
    if (!target->ops->memory_at(target, address, &span))
        return false;
    *ret_begin = span.begin;
    *ret_end = span.end;
    *ret_bytes = span.bytes;
    return true;
}

static int keep(const void *bytes, size_t size, void *context)
{
    (void)context;
    while (size > elf_capacity - elf_size) {
        elf_capacity = elf_capacity ? 2 * elf_capacity : 1 << 20;
        elf = realloc(elf, elf_capacity);
        ck_assert_ptr_nonnull(elf);
    }
    memcpy(elf + elf_size, bytes, size);
    elf_size += size;
    return 0;
}

static void setup(void)
{
    stack = malloc(STACK_SIZE);
    ck_assert_ptr_nonnull(stack);
    for (size_t i = 0; i < STACK_SIZE / 8; i++)
        stack[i] = stack_base + 8 * i;
    functions = instructions = faults = 0;
}

static void teardown(void)
{
    free(stack);
    free(elf);
    elf = NULL;
    elf_size = elf_capacity = 0;
}

static struct registers first_registers(const struct register_machine *machine, uint64_t pc)
{
    struct registers registers = {0};
    for (unsigned i = 0; i < machine->count; i++)
        register_set(&registers, i, stack_base + FP_AT + 0x2000 * i);
    register_set(&registers, machine->sp, stack_base + SP_AT);
    register_set(&registers, machine->pc, pc);
    return registers;
}

static void fault(uint64_t pc, const char *what, uint64_t by_row, uint64_t by_unwinder)
{
    if (faults++ < FAULTS_MAX)
        fprintf(stderr, "0x%" PRIx64 ": %s: row 0x%" PRIx64 ", unwinder 0x%" PRIx64 "\n", pc, what, by_row,
                by_unwinder);
}

/* Compares the caller's registers at one instruction. */
static void compare(const struct register_machine *machine, const struct unwinder *unwinder,
                    const struct unwind_function *function, const struct cfi_row *row, uint64_t pc)
{
    struct registers registers = first_registers(machine, pc), by_unwinder = registers;
    struct calling_frame caller;
    const struct registers *by_row = &caller.registers;
    struct reader reader;
    reader_init(&reader, both, machine->word_size, false);
    reader_begin(&reader, FUEL_LOOKUP);
    if (!unwinder->unwind(&reader, function, true, &by_unwinder)) {
        fault(pc, "the unwinder fails", 0, 0);
        return;
    }
    reader_begin(&reader, FUEL_LOOKUP);
    if (!call_frame_apply(&reader, machine, row, &registers, &caller)) {
        fault(pc, "the row cannot be applied", 0, 0);
        return;
    }
    if (by_row->values[machine->pc] != by_unwinder.values[machine->pc])
        fault(pc, "program counter", by_row->values[machine->pc], by_unwinder.values[machine->pc]);
    if (by_row->values[machine->sp] != by_unwinder.values[machine->sp] || caller.cfa != by_unwinder.values[machine->sp])
        fault(pc, "stack pointer", by_row->values[machine->sp], by_unwinder.values[machine->sp]);
    for (unsigned i = 0; i < machine->count; i++) {
        if (!(machine->preserved >> i & 1) || i == machine->sp || i == machine->pc)
            continue;
        if (register_is_known(by_row, i) != register_is_known(&by_unwinder, i))
            fault(pc, machine->names[i], register_is_known(by_row, i), register_is_known(&by_unwinder, i));
        else if (by_row->values[i] != by_unwinder.values[i])
            fault(pc, machine->names[i], by_row->values[i], by_unwinder.values[i]);
    }
    instructions++;
}

/* The function as the walk of a stack finds it. */
static bool find_function(uint64_t begin, struct unwind_function *ret)
{
    struct code_block block;
    struct block_function function;
    bool is_funclet;
    struct reader *reader = &session->resolver.reader;
    reader_begin(reader, FUEL_LOOKUP);
    return execution_manager_find(&opened->manager, reader, begin, &block) &&
           block_function_find(reader, &block, &function) && block_is_funclet(reader, &block, &is_funclet) &&
           unwind_entry_read(reader, &block, &function.table, function.index, is_funclet, ret);
}

static void compare_function(const struct cfi_bytes *cie_bytes, const struct cfi_cie *cie,
                             const struct cfi_bytes *fde_bytes, const struct cfi_fde *fde)
{
    const struct walk_machine *walk = walk_machine_find(opened->layout.architecture);
    const struct register_machine *machine = register_machine_find(opened->memory->elf_machine);
    struct unwind_function function;
    struct reader reader;
    struct window code;
    if (!find_function(fde->begin, &function) || function.begin != fde->begin || function.end != fde->end) {
        fault(fde->begin, "the function differs", fde->end - fde->begin, function.end - function.begin);
        return;
    }
    reader_init(&reader, opened->memory, machine->word_size, false);
    reader_begin(&reader, FUEL_LOOKUP);
    if (!reader_window(&reader, fde->begin, fde->end - fde->begin, "code", &code))
        return;
    functions++;
    for (size_t at = 0; at < code.size;) {
        struct cfi_row row;
        if (cfi_row_at(cie_bytes, cie, fde_bytes, fde, fde->begin + at, &row))
            compare(machine, walk->unwinder, &function, &row, fde->begin + at);
        else
            fault(fde->begin + at, "no row", 0, 0);
        unsigned length = x64_instruction_length(code.bytes + at, code.size - at);
        if (!length) {
            fault(fde->begin + at, "unknown instruction", code.bytes[at], 0);
            break;
        }
        at += length;
    }
    window_deinit(&code);
}

static void compare_all(void)
{
    struct bytes bytes = bytes_of_buffer(elf, elf_size);
    struct elf_file file;
    struct elf_section section;
    struct cfi_cie cie = {0};
    struct cfi_bytes cie_bytes = {0};
    ck_assert(elf_file_open(&bytes, &file));
    ck_assert(elf_file_section_named(&file, ".debug_frame", &section));
    const uint8_t *contents = elf_file_contents(&file, &section);
    ck_assert_ptr_nonnull(contents);
    for (uint64_t at = 0; at < section.size;) {
        struct cfi_bytes record = {.bytes = contents + at,
                                   .size = (size_t)(section.size - at),
                                   .address = at,
                                   .word_size = 8,
                                   .is_debug_frame = true};
        struct cfi_head head;
        struct cfi_fde fde;
        ck_assert(cfi_head_at(&record, &head) && head.size);
        record.size = (size_t)head.size;
        if (head.is_cie) {
            ck_assert(cfi_cie_read(&record, &cie));
            cie_bytes = record;
        } else {
            ck_assert_uint_eq(head.cie, 0);
            ck_assert(cfi_fde_read(&record, &cie, &fde));
            compare_function(&cie_bytes, &cie, &record, &fde);
        }
        at += head.size;
    }
}

static void compare_core(const char *path, const char *sysroot)
{
    struct cdacq_options options = {.size = sizeof options, .sysroots = &sysroot, .sysroot_count = sysroot ? 1 : 0};
    struct cdacq_error error;
    ck_assert_msg(cdacq_target_open_core(path, &options, &opened, &error) == CDACQ_OK, "%s", error.message);
    ck_assert_int_eq(cdacq_session_create(opened, &session, &error), CDACQ_OK);
    const struct cdacq_memory memory = {.size = sizeof memory,
                                        .context = opened->memory,
                                        .span_at = span_at,
                                        .elf_machine = opened->memory->elf_machine};
    ck_assert_int_eq(memory_open(&memory, NULL, false, &both, NULL), CDACQ_OK);
    struct cdacq_sink sink = {.size = sizeof sink, .write = keep};
    struct cdacq_written written = {.size = sizeof written};
    elf_size = 0;
    ck_assert_int_eq(cdacq_session_write_elf(session, 0, &sink, &written, &error), CDACQ_OK);
    compare_all();
    fprintf(stderr,
            "%s: %" PRIu64 " functions, %" PRIu64 " instructions, %" PRIu64 " differences; left out %" PRIu64
            ", without epilogs %" PRIu64 "\n",
            path, functions, instructions, faults, written.functions_left_out, written.without_epilogs);
    target_destroy(both);
    cdacq_session_destroy(session);
    cdacq_target_close(opened);
    both = NULL;
    session = NULL;
    opened = NULL;
}

START_TEST(rows_equal_the_unwinder_at_every_instruction)
{
    char path[4096];
    const char *fixtures = getenv("CDACQ_FIXTURES");
    snprintf(path, sizeof path, "%s/hello-net10-x64/core", fixtures ? fixtures : "tests/fixtures");
    compare_core(path, NULL);
    /* Most functions are in an image of the framework that the core lacks. */
    bool has_framework = access("/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12", F_OK) == 0;
    ck_assert_uint_gt(functions, has_framework ? 250 : 3);
    ck_assert_uint_gt(instructions, has_framework ? 25 * functions : 10 * functions);
    ck_assert_uint_eq(faults, 0);
}
END_TEST

START_TEST(rows_equal_the_unwinder_in_other_cores)
{
    CLEANUP_FREE char *targets = strdup(getenv("CDACQ_ROWS_TARGETS") ? getenv("CDACQ_ROWS_TARGETS") : "");
    for (char *rest = targets, *path; (path = strsep(&rest, ":"));) {
        if (!*path)
            continue;
        functions = instructions = 0;
        compare_core(path, getenv("CDACQ_ROWS_SYSROOT"));
        ck_assert_uint_gt(functions, 1000);
    }
    ck_assert_uint_eq(faults, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("elf_rows");
    TCase *tcase = tcase_create("rows");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, rows_equal_the_unwinder_at_every_instruction);
    tcase_add_test(tcase, rows_equal_the_unwinder_in_other_cores);
    suite_add_tcase(s, tcase);
    return s;
}

CHECK_MAIN(suite)
