/*
 * test_unwind_x64.c: the x64 unwinder. The main test makes random functions together with their UNWIND_INFO, has a
 * child process step through them one instruction at a time, and asks for the caller's registers at each: they are
 * known, because the test has set them. The others are cases that no compiler writes.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#ifdef __x86_64__
#include <sys/ptrace.h>
#include <sys/user.h>
#undef PAGE_SIZE /* target/pages.h has its own */
#endif

#include "tests/support/check_main.h"
#include "contracts/unwind/unwinder.h"
#include "target/memory.h"

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13, R14, R15, RIP };
enum { CODE = 0, DATA = 0x1000, STACK = 0x2000, SIZE = 0x12000 };

__attribute__((unused)) /* where the machine is another */
static const uint8_t saved[] = {RBX, RBP, R12, R13, R14, R15};

static uint8_t *memory; /* code, unwind data and stack; shared with the child, at the same addresses */
static struct target *target;
static struct reader reader;

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    (void)context;
    *ret_begin = (uintptr_t)memory;
    *ret_end = *ret_begin + SIZE;
    *ret_bytes = memory;
    return address >= *ret_begin && address < *ret_end;
}

static void setup(void)
{
    static struct cdacq_memory source = {.size = sizeof source, .span_at = span_at, .elf_machine = 62};
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(memory_open(&source, NULL, false, &target, NULL), CDACQ_OK);
    reader_init(&reader, target, 8, false);
}

static void teardown(void)
{
    target_destroy(target);
    munmap(memory, SIZE);
}

static uint64_t address_of(unsigned offset)
{
    return (uintptr_t)memory + offset;
}

static void put_u64(unsigned offset, uint64_t value)
{
    store_u64(memory + offset, value, false);
}

/* ---- A function and its UNWIND_INFO ----------------------------------------------------------------------------- */

struct function {
    unsigned size; /* of the code */
    /* Codes in the order of the prolog, which is the reverse of theirs: slots of a code and its operand. */
    uint16_t slots[64][3];
    uint8_t slot_counts[64];
    unsigned count;
    unsigned prolog_size, frame_register, frame_offset;
};

static void emit(struct function *f, const void *bytes, size_t size)
{
    memcpy(memory + CODE + f->size, bytes, size);
    f->size += (unsigned)size;
}

#define EMIT(f, ...) emit(f, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void emit_u32(struct function *f, uint32_t value)
{
    emit(f, &value, sizeof value);
}

/* The number of an instruction or code for a DWARF number. */
static unsigned encoded(unsigned number)
{
    static const uint8_t numbers[] = {0, 2, 1, 3, 6, 7, 5, 4};
    return number < 8 ? numbers[number] : number;
}

static void note(struct function *f, unsigned operation, unsigned info, unsigned operands, uint32_t value)
{
    uint16_t *slots = f->slots[f->count];
    slots[0] = (uint16_t)(f->size | operation << 8 | info << 12);
    slots[1] = (uint16_t)value;
    slots[2] = (uint16_t)(value >> 16);
    f->slot_counts[f->count++] = (uint8_t)(1 + operands);
}

static void push(struct function *f, unsigned number)
{
    if (number >= 8)
        EMIT(f, 0x41);
    EMIT(f, (uint8_t)(0x50 | (encoded(number) & 7)));
    note(f, 0, encoded(number), 0, 0);
}

static void pop(struct function *f, unsigned number)
{
    if (number >= 8)
        EMIT(f, 0x41);
    EMIT(f, (uint8_t)(0x58 | (encoded(number) & 7)));
}

/* add rsp, size: of a negative size the `sub` of a prolog */
static void adjust(struct function *f, int32_t size, bool wide)
{
    EMIT(f, 0x48, wide ? 0x81 : 0x83, size < 0 ? 0xec : 0xc4);
    if (wide)
        emit_u32(f, (uint32_t)abs(size));
    else
        EMIT(f, (uint8_t)abs(size));
}

static void allocate(struct function *f, unsigned size, bool wide)
{
    adjust(f, -(int32_t)size, wide);
    if (size <= 128)
        note(f, 2, size / 8 - 1, 0, 0);
    else if (size < 8 * 65536)
        note(f, 1, 0, 1, size / 8);
    else
        note(f, 1, 1, 2, size);
}

/* mov [rsp + offset], register; or the reverse */
__attribute__((unused)) static void move(struct function *f, unsigned number, uint32_t offset, bool load)
{
    EMIT(f, number >= 8 ? 0x4c : 0x48, load ? 0x8b : 0x89, (uint8_t)(0x84 | (encoded(number) & 7) << 3), 0x24);
    emit_u32(f, offset);
}

/* lea to, [from + offset] */
static void lea(struct function *f, unsigned to, unsigned from, int32_t offset)
{
    EMIT(f, 0x48, 0x8d, (uint8_t)(0x80 | (encoded(to) & 7) << 3 | (encoded(from) & 7)));
    if (from == RSP)
        EMIT(f, 0x24);
    emit_u32(f, (uint32_t)offset);
}

static struct unwind_function finish(const struct function *f)
{
    uint8_t *info = memory + DATA;
    unsigned slots = 0;
    for (unsigned i = f->count; i-- > 0;)
        for (unsigned j = 0; j < f->slot_counts[i]; j++)
            store_u16(info + 4 + 2 * slots++, f->slots[i][j], false);
    ck_assert_uint_le(slots, 255);
    info[0] = 1;
    info[1] = (uint8_t)f->prolog_size;
    info[2] = (uint8_t)slots;
    info[3] = (uint8_t)(encoded(f->frame_register) | f->frame_offset << 4);
    if (!f->frame_register)
        info[3] = 0;
    return (struct unwind_function){
        .base = address_of(0),
        .begin = address_of(CODE),
        .end = address_of(CODE) + f->size,
        .unwind_data = address_of(DATA),
    };
}

/* ---- Stepping --------------------------------------------------------------------------------------------------- */

#ifdef __x86_64__

static uint64_t seed;

static unsigned random_below(unsigned limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % limit;
}

/* A function as compilers write them; *ret_phantom is the size of a replaced method's frame, or 0. */
static struct unwind_function random_function(unsigned *ret_phantom)
{
    struct function f = {0};
    unsigned pushed[6], pushes = 0, moved[6], moves = 0;
    bool frame = random_below(2), localloc = frame && random_below(2);
    unsigned phantom = random_below(4) ? 0 : 16 * (1 + random_below(20));
    uint32_t size = 16 * (1 + random_below(4)) + 8 * random_below(2);
    if (!random_below(4))
        size += random_below(2) ? 0x800 : 0x8000;
    if (phantom) { /* the frame of the replaced method, undone wherever this one is */
        note(&f, 0, encoded(RBP), 0, 0);
        note(&f, 1, 0, 1, phantom / 8);
    }
    for (unsigned i = 0; i < 6; i++) {
        bool needed = frame && saved[i] == RBP;
        if (needed || !random_below(3))
            push(&f, pushed[pushes++] = saved[i]);
        else if (!random_below(3) && moves < size / 8)
            moved[moves++] = saved[i];
    }
    allocate(&f, size, size > 127 || random_below(2));
    if (frame) {
        unsigned offset = random_below(3) ? 16 * random_below(16) : 16 * random_below(1000);
        f.frame_register = RBP;
        f.frame_offset = MIN(offset / 16, 15u);
        lea(&f, RBP, RSP, (int32_t)offset);
        if (offset / 16 >= 15)
            note(&f, 11, 0, 2, offset / 16);
        else
            note(&f, 3, 0, 0, 0);
        for (unsigned i = 0; i < moves; i++) {
            move(&f, moved[i], 8 * i, false);
            note(&f, 4, encoded(moved[i]), 1, i);
        }
        f.prolog_size = f.size;
        if (localloc)
            adjust(&f, -64, false);
        for (unsigned i = 0; i < 6; i++)
            if (saved[i] != RBP)
                for (unsigned j = 0; j < pushes + moves; j++)
                    if ((j < pushes ? pushed[j] : moved[j - pushes]) == saved[i])
                        EMIT(&f, saved[i] >= 8 ? 0x49 : 0x48, 0xc7, (uint8_t)(0xc0 | (encoded(saved[i]) & 7)), 1, 2, 3,
                             4);
        EMIT(&f, 0x90);
        if (localloc)
            lea(&f, RSP, RBP, -(int32_t)offset);
        for (unsigned i = 0; i < moves; i++)
            move(&f, moved[i], 8 * i, true);
        lea(&f, RSP, RBP, (int32_t)size - (int32_t)offset);
    } else {
        for (unsigned i = 0; i < moves; i++) {
            move(&f, moved[i], 8 * i, false);
            if (random_below(2))
                note(&f, 4, encoded(moved[i]), 1, i);
            else
                note(&f, 5, encoded(moved[i]), 2, 8 * i);
        }
        f.prolog_size = f.size;
        for (unsigned j = 0; j < pushes + moves; j++) {
            unsigned number = j < pushes ? pushed[j] : moved[j - pushes];
            EMIT(&f, number >= 8 ? 0x49 : 0x48, 0xc7, (uint8_t)(0xc0 | (encoded(number) & 7)), 1, 2, 3, 4);
        }
        EMIT(&f, 0x90);
        for (unsigned i = 0; i < moves; i++)
            move(&f, moved[i], 8 * i, true);
        adjust(&f, (int32_t)size, size > 127 || random_below(2));
    }
    while (pushes > 0)
        pop(&f, pushed[--pushes]);
    if (phantom) {
        adjust(&f, (int32_t)phantom, true);
        pop(&f, RBP);
    }
    if (random_below(4) == 0)
        EMIT(&f, 0xf3);
    EMIT(&f, 0xc3);
    *ret_phantom = phantom;
    return finish(&f);
}

static struct registers registers_of(const struct user_regs_struct *from)
{
    struct registers ret = {0};
    const uint64_t values[] = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
                               from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
                               from->r12, from->r13, from->r14, from->r15, from->rip};
    for (unsigned i = 0; i < ARRAY_SIZE(values); i++)
        register_set(&ret, i, values[i]);
    return ret;
}

/* Steps the child through a function and checks the caller at every instruction; returns how many there were. */
static unsigned step_through(pid_t child, const struct unwind_function *function, unsigned phantom,
                             const struct user_regs_struct *idle)
{
    uint64_t caller_sp = address_of(SIZE - 0x200), return_address = address_of(DATA + 0x800), sp = caller_sp - 8;
    struct user_regs_struct now = *idle;
    unsigned steps = 0;
    memset(memory + STACK, 0xa5, SIZE - STACK);
    put_u64((unsigned)(sp - address_of(0)), return_address);
    now.rbx = 0x1111;
    now.rbp = 0x2222;
    now.r12 = 0x3333;
    now.r13 = 0x4444;
    now.r14 = 0x5555;
    now.r15 = 0x6666;
    const struct registers expected = registers_of(&now);
    if (phantom) { /* the replaced method has pushed rbp and made its frame */
        put_u64((unsigned)((sp -= 8) - address_of(0)), now.rbp);
        sp -= phantom;
        now.rbp = 0x7777;
    }
    now.rsp = sp;
    now.rip = function->begin;
    now.orig_rax = UINT64_MAX;
    ck_assert_int_eq(ptrace(PTRACE_SETREGS, child, NULL, &now), 0);
    for (; now.rip != return_address; steps++) {
        int status;
        struct registers registers = registers_of(&now);
        reader_begin(&reader, FUEL_LOOKUP);
        if (!unwinder_x64.unwind(&reader, function, true, &registers))
            ck_abort_msg("seed %" PRIu64 ", +%#" PRIx64 ": not unwound", seed, (uint64_t)now.rip - function->begin);
        for (unsigned i = 0; i < ARRAY_SIZE(saved); i++)
            if (registers.values[saved[i]] != expected.values[saved[i]] || !register_is_known(&registers, saved[i]))
                ck_abort_msg("seed %" PRIu64 ", +%#" PRIx64 ": register %u is %#" PRIx64, seed,
                             (uint64_t)now.rip - function->begin, saved[i], registers.values[saved[i]]);
        if (registers.values[RIP] != return_address || registers.values[RSP] != caller_sp)
            ck_abort_msg("seed %" PRIu64 ", +%#" PRIx64 ": caller %#" PRIx64 ", stack %#" PRIx64, seed,
                         (uint64_t)now.rip - function->begin, registers.values[RIP], registers.values[RSP]);
        ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            ck_abort_msg("seed %" PRIu64 ": the function itself fails, status %#x", seed, status);
        ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &now), 0);
    }
    return steps;
}

START_TEST(every_instruction_of_random_functions)
{
    unsigned steps = 0, phantom;
    struct user_regs_struct idle;
    int status;
    if (getenv("CDACQ_VALGRIND")) /* the child would run valgrind's code */
        return;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(errno);
        raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        ck_assert_msg(!getenv("CDACQ_REQUIRE_PTRACE"), "ptrace: %s", strerror(WEXITSTATUS(status)));
        return;
    }
    ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &idle), 0);
    for (unsigned i = 0; i < 400; i++) {
        seed = i;
        struct unwind_function function = random_function(&phantom);
        steps += step_through(child, &function, phantom, &idle);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ck_assert_uint_gt(steps, 4000);
}
END_TEST

#endif

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static struct registers at(uint64_t pc, uint64_t sp)
{
    struct registers ret = {0};
    register_set(&ret, RIP, pc);
    register_set(&ret, RSP, sp);
    reader_begin(&reader, FUEL_LOOKUP);
    return ret;
}

/* push rbx; sub rsp, 32 */
static struct unwind_function small_function(void)
{
    struct function f = {0};
    push(&f, RBX);
    allocate(&f, 32, false);
    f.prolog_size = f.size;
    EMIT(&f, 0x90, 0x90);
    adjust(&f, 32, false);
    pop(&f, RBX);
    EMIT(&f, 0xc3);
    return finish(&f);
}

static void fails(const struct unwind_function *function, struct registers registers, enum cdacq_status expected)
{
    struct registers before = registers;
    ck_assert(!unwinder_x64.unwind(&reader, function, true, &registers));
    ck_assert_int_eq(reader_status(&reader, NULL), expected);
    ck_assert_mem_eq(&before, &registers, sizeof before);
}

START_TEST(volatile_registers_are_not_known)
{
    struct unwind_function function = small_function();
    struct registers registers = at(function.begin + 6, address_of(STACK));
    register_set(&registers, 0, 1);
    register_set(&registers, R12, 2);
    put_u64(STACK + 32, 3);
    put_u64(STACK + 40, 0x1234);
    ck_assert(unwinder_x64.unwind(&reader, &function, false, &registers));
    ck_assert(!register_is_known(&registers, 0) && !register_is_known(&registers, R13));
    ck_assert_uint_eq(registers.values[0], 0);
    ck_assert_uint_eq(registers.values[R12], 2);
    ck_assert_uint_eq(registers.values[RBX], 3);
    ck_assert_uint_eq(registers.values[RIP], 0x1234);
    ck_assert_uint_eq(registers.values[RSP], address_of(STACK + 48));
}
END_TEST

START_TEST(a_return_address_is_in_no_epilog)
{
    struct unwind_function function = small_function();
    struct registers registers = at(function.begin + 7, address_of(STACK)); /* at `add rsp`, after a call */
    put_u64(STACK + 40, 0x1234);
    ck_assert(unwinder_x64.unwind(&reader, &function, false, &registers));
    ck_assert_uint_eq(registers.values[RIP], 0x1234);
    registers = at(function.begin + 11, address_of(STACK + 32)); /* at `pop rbx`, interrupted */
    ck_assert(unwinder_x64.unwind(&reader, &function, true, &registers));
    ck_assert_uint_eq(registers.values[RIP], 0x1234);
}
END_TEST

START_TEST(chained_functions)
{
    struct unwind_function function = small_function();
    uint8_t *info = memory + DATA + 0x100; /* a later part of it: nothing of its own */
    memset(info, 0, 16);
    info[0] = 1 | 4 << 3;
    store_u32(info + 4, (uint32_t)(function.begin - function.base), false);
    store_u32(info + 8, (uint32_t)(function.end - function.base), false);
    store_u32(info + 12, DATA, false);
    struct unwind_function part = {
        .base = function.base,
        .begin = address_of(CODE + 0x400),
        .end = address_of(CODE + 0x410),
        .unwind_data = address_of(DATA + 0x100),
    };
    struct registers registers = at(part.begin, address_of(STACK));
    put_u64(STACK + 40, 0x1234);
    ck_assert(unwinder_x64.unwind(&reader, &part, true, &registers));
    ck_assert_uint_eq(registers.values[RIP], 0x1234);
    store_u32(info + 12, DATA + 0x100, false); /* chained to itself */
    fails(&part, at(part.begin, address_of(STACK)), CDACQ_ERR_CORRUPT);
}
END_TEST

START_TEST(machine_frames)
{
    for (unsigned has_error_code = 0; has_error_code < 2; has_error_code++) {
        struct function f = {0};
        note(&f, 10, has_error_code, 0, 0);
        EMIT(&f, 0x90);
        struct unwind_function function = finish(&f);
        struct registers registers = at(function.begin, address_of(STACK));
        put_u64(STACK + 8 * has_error_code, 0x1234);
        put_u64(STACK + 8 * has_error_code + 24, address_of(STACK + 0x80));
        ck_assert(unwinder_x64.unwind(&reader, &function, true, &registers));
        ck_assert_uint_eq(registers.values[RIP], 0x1234);
        ck_assert_uint_eq(registers.values[RSP], address_of(STACK + 0x80));
    }
}
END_TEST

START_TEST(a_jump_to_the_other_part_is_no_epilog)
{
    struct function f = {0};
    push(&f, RBX);
    f.prolog_size = f.size;
    EMIT(&f, 0xe9, 0, 1, 0, 0);
    struct unwind_function function = finish(&f);
    put_u64(STACK, 0x1111);
    put_u64(STACK + 8, 0x2222);
    struct registers registers = at(function.begin + 1, address_of(STACK));
    ck_assert(unwinder_x64.unwind(&reader, &function, true, &registers)); /* it calls another function in its place */
    ck_assert_uint_eq(registers.values[RIP], 0x1111);
    function.other_begin = function.begin + 0x100;
    function.other_end = function.begin + 0x200;
    registers = at(function.begin + 1, address_of(STACK));
    ck_assert(unwinder_x64.unwind(&reader, &function, true, &registers));
    ck_assert_uint_eq(registers.values[RIP], 0x2222);
}
END_TEST

START_TEST(damage)
{
    struct unwind_function function = small_function();
    struct registers registers = {0};
    register_set(&registers, RIP, function.begin);
    reader_begin(&reader, FUEL_LOOKUP);
    fails(&function, registers, CDACQ_ERR_CORRUPT); /* no stack pointer */
    fails(&function, at(function.end + 1, address_of(STACK)), CDACQ_ERR_CORRUPT);
    fails(&function, at(function.begin + 6, 0x1000), CDACQ_ERR_MEMORY);
    fails(&function, at(function.begin + 6, UINT64_MAX - 15), CDACQ_ERR_MEMORY);
    memory[DATA] = 2; /* another version */
    fails(&function, at(function.begin + 6, address_of(STACK)), CDACQ_ERR_CORRUPT);
    memory[DATA] = 1;
    memory[DATA + 5] |= 15; /* a code that there is none of */
    fails(&function, at(function.begin + 6, address_of(STACK)), CDACQ_ERR_CORRUPT);
    memory[DATA + 5] = 1; /* a large allocation without its operand */
    memory[DATA + 2] = 1;
    fails(&function, at(function.begin + 6, address_of(STACK)), CDACQ_ERR_CORRUPT);
    function.unwind_data = 0x1000;
    fails(&function, at(function.begin + 6, address_of(STACK)), CDACQ_ERR_MEMORY);

    struct function f = {0}; /* a frame register below the stack pointer */
    lea(&f, RBP, RSP, 0);
    f.frame_register = RBP;
    note(&f, 3, 0, 0, 0);
    f.prolog_size = f.size;
    EMIT(&f, 0x90);
    function = finish(&f);
    fails(&function, at(function.begin + f.prolog_size, address_of(STACK + 64)), CDACQ_ERR_CORRUPT); /* not known */
    registers = at(function.begin + f.prolog_size, address_of(STACK + 64));
    register_set(&registers, RBP, address_of(STACK));
    fails(&function, registers, CDACQ_ERR_CORRUPT);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("unwind_x64");
    TCase *tc = tcase_create("unwind_x64");
    tcase_add_checked_fixture(tc, setup, teardown);
#ifdef __x86_64__
    tcase_add_test(tc, every_instruction_of_random_functions);
#else
    puts("left out: every_instruction_of_random_functions: its code runs on x86-64 only");
#endif
    tcase_add_test(tc, volatile_registers_are_not_known);
    tcase_add_test(tc, a_return_address_is_in_no_epilog);
    tcase_add_test(tc, chained_functions);
    tcase_add_test(tc, machine_frames);
    tcase_add_test(tc, a_jump_to_the_other_part_is_no_epilog);
    tcase_add_test(tc, damage);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
