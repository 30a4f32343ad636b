/*
 * test_unwind_x86.c: the x86 unwinder against real code. Every function of an image that crossgen2 has compiled is
 * swept from its first instruction to its last, with a stack on which its pushes and pops are carried out, and the
 * caller's registers are asked for at each instruction and at each return address. The sweep takes from the GC info
 * where the prolog ends, and how much of what is pushed a call removes. The latter is checked by what follows: each way
 * to an instruction must have pushed the same, and each return must find the return address.
 * What these images do not have is made by hand.
 * CDACQ_R2R_X86 names another image, without ".dll", whose listing is beside it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "contracts/unwind/gc_info_x86.h"
#include "contracts/unwind/unwinder.h"
#include "tests/support/unwind_image.h"

enum { EAX, EBX = 3, ESP, EBP, ESI, EDI, EIP, EM_386_ = 3 };
enum { RETURN_ADDRESS = 0x123456, JUNK = 0xdead0000, FUNCTION_MAX = 0x40000 };

static void setup(void)
{
    unwind_image_open(EM_386_, 4);
}

/* ---- Lengths of instructions ------------------------------------------------------------------------------------- */

static unsigned modrm_length(const uint8_t *code)
{
    unsigned mode = code[0] >> 6, rm = code[0] & 7, length = 1;
    if (mode == 3)
        return 1;
    bool base_is_5 = rm == 5;
    if (rm == 4) {
        base_is_5 = (code[1] & 7) == 5;
        length++;
    }
    return length + (mode == 1 ? 1 : mode == 2 || base_is_5 ? 4 : 0);
}

/* Of an instruction of the maps 0F, 0F38, 0F3A (1, 2, 3), from its opcode on. */
static unsigned map_length(unsigned map, const uint8_t *code)
{
    uint8_t op = code[0];
    if (map == 1 && op >= 0x80 && op < 0x90)
        return 5;
    if (map == 1 && (op == 0x77 || op == 0x0b || op == 0xa2 || op == 0x31 || op == 0x05 || (op >= 0xc8 && op < 0xd0)))
        return 1;
    bool has_byte = map == 3 || (map == 1 && ((op >= 0x70 && op < 0x74) || op == 0xa4 || op == 0xac || op == 0xba ||
                                              op == 0xc2 || (op >= 0xc4 && op < 0xc7)));
    return 1 + modrm_length(code + 1) + has_byte;
}

static unsigned one_byte_length(const uint8_t *code, unsigned word)
{
    uint8_t op = code[0];
    if (op < 0x40)
        return (op & 7) < 4 ? 1 + modrm_length(code + 1) : (op & 7) == 4 ? 2 : (op & 7) == 5 ? 1 + word : 1;
    if ((op >= 0x70 && op < 0x80) || op == 0x6a || op == 0xa8 || (op >= 0xb0 && op < 0xb8) || op == 0xcd || op == 0xeb)
        return 2;
    if (op == 0x68 || op == 0xa9 || (op >= 0xb8 && op < 0xc0))
        return 1 + word;
    if ((op >= 0xa0 && op < 0xa4) || op == 0xe8 || op == 0xe9)
        return 5;
    if (op == 0xc2)
        return 3;
    if (op == 0x69 || op == 0x81 || op == 0xc7)
        return 1 + modrm_length(code + 1) + word;
    if (op == 0x6b || op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6)
        return 2 + modrm_length(code + 1);
    if (op == 0xf6 || op == 0xf7)
        return 1 + modrm_length(code + 1) + (code[1] & 0x30 ? 0 : op == 0xf6 ? 1 : word);
    if ((op >= 0x84 && op < 0x90) || (op >= 0xd0 && op < 0xd4) || (op >= 0xd8 && op < 0xe0) || op == 0xfe ||
        op == 0xff || op == 0x63)
        return 1 + modrm_length(code + 1);
    return 1;
}

static unsigned length_of(const uint8_t *code)
{
    unsigned prefixes = 0, word = 4;
    for (; strchr("\x66\xf2\xf3\xf0\x64\x65\x2e\x36\x3e\x26", code[prefixes]) && code[prefixes]; prefixes++)
        word = code[prefixes] == 0x66 ? 2 : word;
    const uint8_t *at = code + prefixes;
    if (at[0] == 0x0f)
        return prefixes + (at[1] == 0x38   ? 2 + map_length(2, at + 2)
                           : at[1] == 0x3a ? 2 + map_length(3, at + 2)
                                           : 1 + map_length(1, at + 1));
    if (at[0] == 0xc5 && at[1] >= 0xc0)
        return prefixes + 2 + map_length(1, at + 2);
    if (at[0] == 0xc4 && at[1] >= 0xc0)
        return prefixes + 3 + map_length(at[1] & 31, at + 3);
    if (at[0] == 0x62 && at[1] >= 0xc0)
        return prefixes + 4 + map_length(at[1] & 7, at + 4);
    return prefixes + one_byte_length(at, word);
}

/* ---- The sweep --------------------------------------------------------------------------------------------------- */

static uint64_t top; /* the stack pointer of the caller, but for arguments */
static unsigned returns, calls, pushed_sites, nested, merged;

static uint8_t *slot(uint64_t address)
{
    if (address < STACK || address + 4 > STACK + STACK_SIZE)
        ck_abort_msg("the interpreter leaves its stack: %#" PRIx64, address);
    return stack + (address - STACK);
}

static void push(struct registers *r, uint64_t value)
{
    store_u32(slot(r->values[ESP] -= 4), (uint32_t)value, false);
}

static struct registers initial(void)
{
    struct registers r = {.known = UINT64_MAX};
    for (unsigned i = 0; i < EIP; i++)
        r.values[i] = 0x1000 + i;
    r.values[ESP] = top;
    push(&r, RETURN_ADDRESS);
    return r;
}

static void check_caller(const struct unwind_function *function, const struct gc_info_x86 *info, bool interrupted,
                         struct registers r, uint64_t pc)
{
    register_set(&r, EIP, pc);
    reader_begin(&reader, FUEL_LOOKUP);
    if (!unwinder_x86.unwind(&reader, function, interrupted, &r))
        ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": not unwound: %s", pc, function->begin,
                     reader_failure(&reader).what);
    uint64_t sp = top + (info->caller_pops || function->funclet ? 0 : info->arguments);
    if (r.values[EIP] != RETURN_ADDRESS || r.values[ESP] != sp)
        ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": caller %#" PRIx64 ", stack %#" PRIx64 " not %#" PRIx64, pc,
                     function->begin, r.values[EIP], r.values[ESP], sp);
    for (unsigned i = EBX; i <= EDI && !function->funclet; i++)
        if (i != ESP && r.values[i] != 0x1000 + i)
            ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": register %u is %#" PRIx64, pc, function->begin, i, r.values[i]);
}

/* A sweep over a function. */
struct sweep {
    const struct unwind_function *function;
    const struct gc_info_x86 *info;
    struct registers r, body; /* now; where the prolog ends, which the body returns to */
    uint64_t body_begin;
    bool has_returned, has_jumped;
    uint32_t *sp_at; /* by offset: what a jump has left; 0: none has */
};

static const uint8_t *code_at(uint64_t address)
{
    return image + (address - IMAGE);
}

static void jump_to(struct sweep *sweep, uint64_t address)
{
    uint64_t begin = sweep->function->begin;
    if (address < begin || address >= sweep->function->end)
        return;
    uint32_t *at = &sweep->sp_at[address - begin];
    bool matters = !sweep->info->has_frame || sweep->function->funclet; /* a body may allocate by a loop */
    if (matters && *at && *at != sweep->r.values[ESP])
        ck_abort_msg("%#" PRIx64 ": what is pushed depends on where it comes from", address);
    merged += *at != 0;
    *at = (uint32_t)sweep->r.values[ESP];
}

static void leave(struct sweep *sweep, uint64_t pc)
{
    const uint8_t *code = code_at(pc);
    uint64_t sp = sweep->r.values[ESP], removed = code[0] == 0xc2 ? load_u16(code + 1, false) : 0;
    if (load_u32(slot(sp), false) != RETURN_ADDRESS || sp != top - 4)
        ck_abort_msg("%#" PRIx64 ": the sweep does not return", pc);
    if (!sweep->function->funclet && removed != (sweep->info->caller_pops ? 0 : sweep->info->arguments))
        ck_abort_msg("%#" PRIx64 ": arguments", pc);
    returns++;
    sweep->has_returned = true;
}

static void call(struct sweep *sweep, uint64_t pc, unsigned length)
{
    if (pc < sweep->body_begin) /* it probes the stack */
        return;
    uint64_t pushed = sweep->body.values[ESP] - sweep->r.values[ESP];
    uint32_t left = 0, offset = (uint32_t)(pc + length - sweep->function->method);
    pushed_sites += pushed != 0;
    reader_begin(&reader, FUEL_LOOKUP);
    if (pushed) {
        gc_info_x86_pushed(&reader, sweep->info, offset, &left);
        ck_assert_uint_le(left, pushed);
        sweep->r.values[ESP] = sweep->body.values[ESP] - left;
        nested += left != 0;
    }
    check_caller(sweep->function, sweep->info, false, sweep->r, pc + length);
    calls++;
}

static int32_t constant(const uint8_t *code, bool is_byte)
{
    return is_byte ? (int8_t)code[0] : (int32_t)load_u32(code, false);
}

static void execute(struct sweep *sweep, uint64_t pc, unsigned length)
{
    struct registers *r = &sweep->r;
    const uint8_t *code = code_at(pc);
    bool is_prolog = pc < sweep->body_begin, is_byte = code[0] == 0x83;
    uint64_t *sp = &r->values[ESP];
    if (code[0] >= 0x50 && code[0] < 0x58) {
        unsigned number = code[0] & 7;
        push(r, r->values[number]);
        if (is_prolog && number >= EBX) /* from now on the body may change it */
            r->values[number] = JUNK;
    } else if (code[0] >= 0x58 && code[0] < 0x60) {
        r->values[code[0] & 7] = load_u32(slot(*sp), false);
        *sp += 4;
    } else if (code[0] == 0x68 || code[0] == 0x6a || (code[0] == 0xff && (code[1] & 0x38) == 0x30)) {
        push(r, JUNK);
    } else if ((is_byte || code[0] == 0x81) && code[1] == 0xc4) {
        *sp += (uint64_t)constant(code + 2, is_byte);
    } else if ((is_byte || code[0] == 0x81) && code[1] == 0xec) {
        *sp -= (uint64_t)constant(code + 2, is_byte);
    } else if ((is_byte || code[0] == 0x81) && code[1] == 0xe4) {
        *sp &= (uint64_t)constant(code + 2, is_byte);
    } else if (code[0] == 0x8b && code[1] == 0xec) {
        r->values[EBP] = is_prolog ? *sp : r->values[EBP];
    } else if (code[0] == 0x8b && code[1] == 0xe5) {
        *sp = r->values[EBP];
    } else if (code[0] == 0x8d && (code[1] == 0x65 || code[1] == 0xa5)) {
        *sp = r->values[EBP] + (uint64_t)constant(code + 2, code[1] == 0x65);
    } else if (code[0] == 0x8d && (code[1] == 0x44 || code[1] == 0x84) && code[2] == 0x24) {
        r->values[EAX] = *sp + (uint64_t)constant(code + 3, code[1] == 0x44);
    } else if (code[0] == 0x8b && code[1] == 0xe0 && is_prolog) {
        *sp = r->values[EAX];
    } else if (code[0] == 0xe8 || (code[0] == 0xff && (code[1] & 0x38) == 0x10)) {
        call(sweep, pc, length);
    } else if ((code[0] >= 0x70 && code[0] < 0x80) || code[0] == 0xeb) {
        jump_to(sweep, pc + 2 + (uint64_t)(int8_t)code[1]);
    } else if (code[0] == 0x0f && code[1] >= 0x80 && code[1] < 0x90) {
        jump_to(sweep, pc + 6 + (uint64_t)constant(code + 2, false));
    } else if (code[0] == 0xe9) {
        jump_to(sweep, pc + 5 + (uint64_t)constant(code + 1, false));
    } else if (code[0] == 0xc3 || code[0] == 0xc2) {
        leave(sweep, pc);
    }
    sweep->has_jumped =
        code[0] == 0xeb || code[0] == 0xe9 || (code[0] == 0xff && (code[1] & 0x38) == 0x20) || code[0] == 0xcc;
}

static unsigned check_function(const struct unwind_function *function)
{
    static uint32_t sp_at[FUNCTION_MAX];
    struct gc_info_x86 info;
    unsigned checked = 0;
    uint64_t length = function->end - function->begin;
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(gc_info_x86_read(&reader, function->gc_info, function->gc_info_version, &info));
    ck_assert_uint_lt(length, FUNCTION_MAX);
    memset(sp_at, 0, 4 * length);
    struct sweep sweep = {.function = function, .info = &info, .r = initial(), .sp_at = sp_at};
    sweep.body_begin = function->begin + (function->funclet ? 0 : info.prolog_size);
    for (uint64_t pc = function->begin; pc < function->end; checked++) {
        if (pc == sweep.body_begin)
            sweep.body = sweep.r;
        if (pc >= sweep.body_begin && (sweep.has_returned || sweep.has_jumped)) {
            sweep.r = sweep.body;
            sweep.r.values[ESP] = sp_at[pc - function->begin] ? sp_at[pc - function->begin] : sweep.r.values[ESP];
            sweep.has_returned = false;
        }
        if (pc > sweep.body_begin)
            jump_to(&sweep, pc);
        unsigned size = length_of(code_at(pc));
        check_caller(function, &info, true, sweep.r, pc);
        execute(&sweep, pc, size);
        pc += size;
    }
    return checked;
}

START_TEST(every_instruction_of_real_code)
{
    unsigned checked = 0, functions = 0, funclets = 0, frameless = 0, f[LISTING_NUMBERS], count;
    char *text = unwind_image_load("windows-x86", "CDACQ_R2R_X86");
    const char *line = text;
    ck_assert_int_eq(sscanf(text, "# x86, ReadyToRun %*u.%*u, %u functions", &count), 1);
    while (count-- && unwind_image_next(&line, f)) {
        struct unwind_function function = {
            .base = IMAGE,
            .begin = IMAGE + f[0],
            .end = IMAGE + f[0] + f[1],
            .method = IMAGE + f[2],
            .unwind_data = IMAGE + f[10],
            .gc_info = IMAGE + f[12],
            .gc_info_version = f[13],
            .funclet = f[8],
        };
        struct gc_info_x86 info;
        for (top = TOP; top >= TOP - 4; top -= 4) /* a frame may be aligned to eight */
            checked += check_function(&function);
        gc_info_x86_read(&reader, function.gc_info, f[13], &info);
        functions++;
        funclets += f[8];
        frameless += !info.has_frame;
    }
    free(text);
    if (getenv("CDACQ_R2R_X86"))
        printf("%u functions, %u funclets, %u without a frame pointer, %u instructions, %u calls, %u with pushes, %u "
               "nested, %u returns, %u merges\n",
               functions, funclets, frameless, checked, calls, pushed_sites, nested, returns, merged);
    ck_assert_uint_ge(functions, 60);
    ck_assert_uint_ge(checked, 2 * 1000);
}
END_TEST

/* ---- By hand ----------------------------------------------------------------------------------------------------- */

/* The head of GC info, from the first of the usual ones, which is empty but for an epilog of a byte. */
static unsigned encode(const struct gc_info_x86 *info, uint8_t *ret)
{
    const bool flags[] = {info->saves_edi, info->saves_esi,     info->saves_ebx,      info->saves_ebp,
                          info->has_frame, info->interruptible, info->double_aligned, info->caller_pops};
    static const uint8_t flips[] = {0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x40, 0x41, 0x48};
    unsigned size = 0;
    ret[size++] = (uint8_t)(0x80 | info->code_size >> 7);
    ret[size++] = info->code_size & 0x7f;
    ret[size++] = 0x80;
    for (int shift = 12; shift >= 0; shift -= 4) {
        ret[size++] = (uint8_t)(0xd0 | (info->frame_size / 4 >> shift & 15));
        ret[size++] = (uint8_t)(0xe0 | (info->arguments / 4 >> shift & 15));
    }
    for (int shift = 6; shift >= 0; shift -= 3)
        ret[size++] = (uint8_t)(0xf0 | (info->prolog_size >> shift & 7));
    for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
        if (flags[i])
            ret[size++] = 0x80 | flips[i];
    ret[size++] = (uint8_t)(0x80 | (0x2d + 2 * info->epilog_count + info->epilog_at_end));
    ret[size++] = (uint8_t)(0x22 + info->epilog_size);
    return size;
}

/* A method at the image's start whose GC info is at 0x800. */
static struct unwind_function method_of(const uint8_t *code, const struct gc_info_x86 *info, const uint8_t *table,
                                        unsigned table_size)
{
    unwind_image_by_hand();
    memcpy(image, code, info->code_size);
    unsigned size = encode(info, image + 0x800);
    memcpy(image + 0x800 + size, table, table_size);
    return (struct unwind_function){.base = IMAGE,
                                    .begin = IMAGE,
                                    .end = IMAGE + info->code_size,
                                    .method = IMAGE,
                                    .gc_info = IMAGE + 0x800,
                                    .gc_info_version = 4};
}

#define METHOD(size, prolog, epilog) \
    .code_size = (size), .prolog_size = (prolog), .epilog_size = (epilog), .epilog_count = 1, .epilog_at_end = true
/* push edi; push 1; push 2; call; nop; pop edi; ret */
#define PUSHES                                                                 \
    {                                                                          \
        0x57, 0x6a, 0x01, 0x6a, 0x02, 0xff, 0x15, 0, 0, 0, 0, 0x90, 0x5f, 0xc3 \
    }

START_TEST(forms_of_methods)
{
    static const struct {
        struct gc_info_x86 info;
        uint8_t code[40], table[32];
    } cases[] = {
        /* and esp, -8 after the frame pointer; mov esp, ebp */
        {{METHOD(21, 11, 9), .saves_edi = true, .saves_esi = true, .saves_ebp = true, .double_aligned = true,
          .frame_size = 16},
         {0x55, 0x8b, 0xec, 0x83, 0xe4, 0xf8, 0x57, 0x56, 0x83, 0xec, 0x10,
          0x90, 0x83, 0xc4, 0x10, 0x5e, 0x5f, 0x8b, 0xe5, 0x5d, 0xc3},
         {0xff}},
        /* a probe of the stack: push eax; lea eax, [esp - n + 4]; call; pop eax; sub esp, n */
        {{METHOD(30, 21, 8), .saves_edi = true, .frame_size = 0x2000},
         {0x57, 0x50, 0x8d, 0x84, 0x24, 0x04, 0xe0, 0xff, 0xff, 0xe8, 0,    0, 0, 0,    0x58,
          0x81, 0xec, 0x00, 0x20, 0,    0,    0x90, 0x81, 0xc4, 0x00, 0x20, 0, 0, 0x5f, 0xc3},
         {0xff}},
        /* lea eax, [esp - n]; call; mov esp, eax */
        {{METHOD(24, 15, 8), .saves_edi = true, .frame_size = 0x2000},
         {0x57, 0x8d, 0x84, 0x24, 0x00, 0xe0, 0xff, 0xff, 0xe8, 0, 0,    0,
          0,    0x8b, 0xe0, 0x90, 0x81, 0xc4, 0x00, 0x20, 0,    0, 0x5f, 0xc3},
         {0xff}},
        /* lea esp, [ebp - 4] after an allocation; the callee leaves its arguments */
        {{METHOD(16, 5, 6), .saves_edi = true, .saves_ebp = true, .has_frame = true, .arguments = 8, .frame_size = 4,
          .caller_pops = true},
         {0x55, 0x8b, 0xec, 0x57, 0x51, 0x90, 0x83, 0xec, 0x20, 0x90, 0x8d, 0x65, 0xfc, 0x5f, 0x5d, 0xc3},
         {0xff}},
        /* vzeroupper; pop ecx; a return that removes arguments */
        {{METHOD(11, 2, 8), .saves_edi = true, .arguments = 12, .frame_size = 4},
         {0x57, 0x51, 0x90, 0xc5, 0xf8, 0x77, 0x59, 0x5f, 0xc2, 0x0c, 0x00},
         {0xff}},
        /* what is pushed, if a method is interruptible at calls only */
        {{METHOD(14, 1, 2), .saves_edi = true}, PUSHES, {0x03, 0x02, 0xd0, 0x10, 0xff}},
        {{METHOD(14, 1, 2), .saves_edi = true}, PUSHES, {0x40, 0x03, 0x20, 0x01, 0x02, 0x46, 0xe0, 0x02, 0x00, 0xff}},
        {{METHOD(14, 1, 2), .saves_edi = true}, PUSHES, {0x03, 0x02, 0xf0, 0x01, 0xf8, 0x01, 6, 0, 0, 0, 2,    0,
                                                         0,    0,    0,    0,    0,    0,    1, 0, 0, 0, 0x7f, 0xff}},
        {{METHOD(14, 1, 2), .saves_edi = true}, PUSHES, {0xf4, 0x03, 0x02, 0x66, 0xff}},
        {{METHOD(19, 1, 2), .saves_edi = true},
         {0x57, 0x90, 0x6a, 0x01, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x15, 0, 0, 0, 0, 0x90, 0x5f, 0xc3},
         {0x04, 0x82, 0xff}},
        /* the same everywhere */
        {{METHOD(14, 1, 2), .saves_edi = true, .interruptible = true}, PUSHES, {0xb3, 0xb2, 0xd6, 0xff}},
        {{METHOD(14, 1, 2), .saves_edi = true, .interruptible = true},
         PUSHES,
         {0xbf, 0x83, 0xbc, 0x8a, 0x4a, 0xd4, 0xff}},
        {{METHOD(14, 1, 2), .saves_edi = true, .interruptible = true},
         PUSHES,
         {0xb8, 0x03, 0xf8, 0x00, 0xb8, 0x02, 0xf9, 0x01, 0xb8, 0x06, 0xfd, 0x01, 0xfc, 0x02, 0xff}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct unwind_function function =
            method_of(cases[i].code, &cases[i].info, cases[i].table, sizeof cases[i].table);
        for (top = TOP; top >= TOP - 4; top -= 4)
            ck_assert_uint_ge(check_function(&function), 4);
    }
}
END_TEST

/* sub esp, 12; nop; add esp, 12; ret: a funclet that keeps the stack aligned */
/* A collection can begin in interruptible code, outside of prolog, epilogs, and regions that exclude it. */
START_TEST(safe_instructions)
{
    static const struct gc_info_x86 info = {.code_size = 60,
                                            .prolog_size = 5,
                                            .epilog_size = 4,
                                            .epilog_count = 1,
                                            .epilog_at_end = true,
                                            .saves_ebp = true,
                                            .has_frame = true,
                                            .interruptible = true};
    static const uint8_t code[60] = {0x55};
    struct gc_info_x86 read, other;
    struct unwind_function function = method_of(code, &info, (const uint8_t[]){20, 6, 0xff}, 3);
    ck_assert(gc_info_x86_read(&reader, function.gc_info, 4, &read));
    for (uint32_t offset = 0; offset < 60; offset++) {
        ck_assert_int_eq(gc_info_x86_is_safe(&reader, &read, offset), offset >= 5 && offset <= 56);
        other = read; /* a region */
        other.regions = read.pushes;
        other.region_count = 1;
        ck_assert_int_eq(gc_info_x86_is_safe(&reader, &other, offset),
                         offset >= 5 && offset <= 56 && !(offset >= 20 && offset < 26));
        other.interruptible = false;
        ck_assert(!gc_info_x86_is_safe(&reader, &other, offset));
    }
}
END_TEST

START_TEST(aligned_funclets)
{
    static const struct gc_info_x86 info = {
        .code_size = 14, .prolog_size = 3, .saves_ebp = true, .has_frame = true, .interruptible = true};
    static const uint8_t code[] = {0x55, 0x8b, 0xec, 0x90, 0x5d, 0xc3, 0x83, 0xec, 0x0c, 0x90, 0x83, 0xc4, 0x0c, 0xc3};
    struct unwind_function function = method_of(code, &info, (const uint8_t[]){0xff}, 1);
    function.begin += 6;
    function.funclet = true;
    top = TOP;
    ck_assert_uint_eq(check_function(&function), 4);
    struct registers r = initial();
    register_set(&r, EIP, function.begin);
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(unwinder_x86.unwind(&reader, &function, true, &r));
    ck_assert_uint_eq(r.known, 1u << EIP | 1u << ESP | 1u << EBP); /* it may have changed the others */
}
END_TEST

START_TEST(damage)
{
    static const struct {
        struct gc_info_x86 info;
        unsigned version, at;
        bool funclet;
        uint8_t code[16], table[8];
    } cases[] = {
        {{METHOD(8, 4, 2), .saves_edi = true},
         4,
         2,
         false,
         {0x33, 0xc0, 0x57, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}}, /* a prolog */
        {{METHOD(8, 4, 2), .saves_edi = true},
         4,
         1,
         false,
         {0x56, 0x57, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}}, /* that saves esi */
        {{METHOD(8, 4, 2), .saves_edi = true, .frame_size = 16},
         4,
         2,
         false,
         {0x57, 0x83, 0xec, 0x10, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}},
        {{METHOD(8, 1, 4), .saves_edi = true},
         4,
         5,
         false,
         {0x57, 0x90, 0x90, 0x90, 0x33, 0xc0, 0x5f, 0xc3},
         {0xff}}, /* an epilog */
        {{METHOD(8, 1, 4), .saves_edi = true},
         4,
         9,
         false,
         {0x57, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}}, /* outside */
        {{METHOD(8, 1, 4), .saves_edi = true},
         5,
         2,
         false,
         {0x57, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}}, /* a version */
        {{METHOD(8, 1, 4), .saves_edi = true},
         4,
         3,
         false,
         {0x57, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0x52, 0xff}}, /* pops */
        {{METHOD(8, 1, 4), .saves_edi = true}, 4, 3, false, {0x57, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3}, {0xf9}},
        {{METHOD(8, 1, 4), .saves_edi = true, .has_frame = true},
         4,
         3,
         false,
         {0x57, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}},
        {{METHOD(8, 1, 4), .saves_ebp = true, .has_frame = true},
         4,
         3,
         true,
         {0x57, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5f, 0xc3},
         {0xff}},
    };
    top = TOP;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct unwind_function function =
            method_of(cases[i].code, &cases[i].info, cases[i].table, sizeof cases[i].table);
        struct registers r = initial(), before;
        function.gc_info_version = cases[i].version;
        function.funclet = cases[i].funclet;
        register_set(&r, EIP, function.begin + cases[i].at);
        before = r;
        reader_begin(&reader, FUEL_LOOKUP);
        if (unwinder_x86.unwind(&reader, &function, true, &r))
            ck_abort_msg("case %zu is unwound", i);
        ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_CORRUPT);
        ck_assert_mem_eq(&before, &r, sizeof r);
    }
}
END_TEST

/* Heads that end within a pair of bytes, or that have numbers no method has. */
START_TEST(damaged_heads)
{
    static const uint8_t heads[][12] = {
        {8, 0x80, 0x4f},                                                       /* a second byte is missing */
        {8, 0x80, 0xcf, 0x0a},                                                 /* of no meaning */
        {8, 0x80, 0xd1, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0x50}, /* a frame */
        {8, 0x80, 0xe1, 0xe0, 0xe0, 0xe0, 0x60},                               /* arguments */
        {8, 0x80, 0x3f},                                                       /* a frame pointer that is not saved */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},                            /* a size */
    };
    static const uint8_t code[8] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};
    static const struct gc_info_x86 any = {METHOD(8, 0, 1)};
    top = TOP;
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        struct unwind_function function = method_of(code, &any, heads[0], 0);
        struct registers r = initial();
        memcpy(image + 0x800, heads[i], sizeof heads[i]);
        register_set(&r, EIP, function.begin + 2);
        reader_begin(&reader, FUEL_LOOKUP);
        if (unwinder_x86.unwind(&reader, &function, true, &r))
            ck_abort_msg("head %zu is read", i);
        ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_CORRUPT);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("unwind_x86");
    TCase *tc = tcase_create("unwind_x86");
    tcase_add_checked_fixture(tc, setup, unwind_image_close);
    tcase_add_test(tc, every_instruction_of_real_code);
    tcase_add_test(tc, forms_of_methods);
    tcase_add_test(tc, aligned_funclets);
    tcase_add_test(tc, safe_instructions);
    tcase_add_test(tc, damage);
    tcase_add_test(tc, damaged_heads);
    tcase_set_timeout(tc, 300);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
