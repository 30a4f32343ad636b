/*
 * test_unwind_arm.c: the arm unwinder against real code, as test_unwind_arm64.c does it: prologs and epilogs of an
 * image that crossgen2 has compiled are interpreted one Thumb instruction at a time, and the caller's registers are
 * asked for at each. What these images do not have is made by hand: packed entries, codes for large frames, conditions.
 * CDACQ_R2R_ARM names another image, without ".dll", whose listing is beside it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "contracts/unwind/unwinder.h"
#include "tests/support/unwind_image.h"

enum { R4 = 4, R11 = 11, SP = 13, LR, PC, FLAGS, EM_ARM_ = 40 };

static void setup(void)
{
    unwind_image_open(EM_ARM_, 4);
}

/* ---- An interpreter of prologs and epilogs ---------------------------------------------------------------------- */

static uint8_t *slot(uint64_t address)
{
    if (address < STACK || address + 4 > STACK + STACK_SIZE || address % 4)
        ck_abort_msg("the interpreter leaves its stack: %#" PRIx64, address);
    return stack + (address - STACK);
}

static void push(struct registers *r, unsigned mask)
{
    for (unsigned number = 16; number-- > 0;)
        if (mask >> number & 1)
            store_u32(slot(r->values[SP] -= 4), (uint32_t)r->values[number], false);
}

static void pop(struct registers *r, unsigned mask)
{
    for (unsigned number = 0; number < 16; number++)
        if (mask >> number & 1) {
            r->values[number] = load_u32(slot(r->values[SP]), false);
            r->values[SP] += 4;
        }
}

/* A constant of a 32-bit data instruction: eight bits in one of five patterns. */
static uint32_t constant(uint32_t code)
{
    uint32_t bits = (code >> 15 & 0x800) | (code >> 4 & 0x700) | (code & 0xff), low = bits & 0xff;
    static const uint32_t patterns[] = {1, 0x10001, 0x1000100, 0x1010101};
    if (bits >> 10 == 0)
        return low * patterns[bits >> 8];
    uint32_t value = low | 0x80;
    return value >> (bits >> 7) | value << (32 - (bits >> 7));
}

static bool is_wide(uint32_t code)
{
    return code >> 11 >= 0x1d && code <= 0xffff;
}

static uint32_t code_at(uint64_t address)
{
    uint32_t first = load_u16(image + (address - IMAGE), false);
    return is_wide(first) ? first << 16 | load_u16(image + (address - IMAGE) + 2, false) : first;
}

static unsigned length_of(uint32_t code)
{
    return code > 0xffff ? 4 : 2;
}

/* Narrow instructions that change the stack pointer, or set the frame pointer. */
static bool narrow(struct registers *r, uint32_t code)
{
    if ((code & 0xfe00) == 0xb400)
        push(r, (code & 0xff) | (code >> 8 & 1) << LR);
    else if ((code & 0xfe00) == 0xbc00)
        pop(r, (code & 0xff) | (code >> 8 & 1) << PC);
    else if ((code & 0xff80) == 0xb080)
        r->values[SP] -= 4 * (code & 0x7f);
    else if ((code & 0xff80) == 0xb000)
        r->values[SP] += 4 * (code & 0x7f);
    else if ((code & 0xff00) == 0x4600 && ((code >> 3 & 15) == SP || (code >> 4 & 8) + (code & 7) == SP)) /* mov */
        r->values[(code >> 4 & 8) + (code & 7)] = r->values[code >> 3 & 15];
    else if ((code & 0xff87) == 0x4485) /* add sp, r */
        r->values[SP] = (uint32_t)(r->values[SP] + r->values[code >> 3 & 15]);
    else
        return false;
    return true;
}

/* The same for wide ones, and those that load constants for large frames. */
static bool wide(struct registers *r, uint32_t code)
{
    unsigned to = code >> 8 & 15, from = code >> 16 & 15;
    uint32_t plain = (code >> 15 & 0x800) | (code >> 4 & 0x700) | (code & 0xff);
    if (code >> 16 == 0xe92d)
        push(r, code & 0x5fff);
    else if (code >> 16 == 0xe8bd)
        pop(r, code & 0xdfff);
    else if ((code & 0xffff0fff) == 0xf84d0d04)
        push(r, 1u << (code >> 12 & 15));
    else if ((code & 0xffff0fff) == 0xf85d0b04)
        pop(r, 1u << (code >> 12 & 15));
    else if ((code & 0xffbf0f00) == 0xed2d0b00) /* vpush, vpop */
        r->values[SP] -= 4 * (code & 0xff);
    else if ((code & 0xffbf0f00) == 0xecbd0b00)
        r->values[SP] += 4 * (code & 0xff);
    else if ((code & 0xfbf08000) == 0xf2400000) /* movw, movt */
        r->values[to] = plain | from << 12;
    else if ((code & 0xfbf08000) == 0xf2c00000)
        r->values[to] = (uint32_t)(r->values[to] & 0xffff) | (plain | from << 12) << 16;
    else if ((code & 0xfff0f0f0) == 0xeba00000 && to == SP && from == SP) /* sub sp, r */
        r->values[SP] -= r->values[code & 15];
    else if (to != SP && to != R11)
        return false;
    else if (from != SP && from != R11)
        return false;
    else if ((code & 0xfbe08000) == 0xf1000000)
        r->values[to] = r->values[from] + constant(code);
    else if ((code & 0xfbe08000) == 0xf1a00000)
        r->values[to] = r->values[from] - constant(code);
    else if ((code & 0xfbf08000) == 0xf2000000)
        r->values[to] = r->values[from] + plain;
    else if ((code & 0xfbf08000) == 0xf2a00000)
        r->values[to] = r->values[from] - plain;
    else
        return false;
    return true;
}

static bool interpret(struct registers *r, uint32_t code)
{
    return code > 0xffff ? wide(r, code) : narrow(r, code);
}

static bool is_return(uint32_t code)
{
    return code == 0x4770 || (code & 0xffffff00) == 0xbd00 || (code & 0xffff8000) == 0xe8bd8000 ||
           (code & 0xfffff000) == 0xf85df000;
}

static bool is_branch(uint32_t code)
{
    bool conditional = code >> 12 == 0xd || (code & 0xfffff500) == 0xb100;
    return conditional || code >> 11 == 0x1c || (code & 0xffffff00) == 0x4700 || (code & 0xf8008000) == 0xf0008000;
}

static struct registers initial(void)
{
    struct registers r = {.known = UINT64_MAX};
    for (unsigned i = 0; i < SP; i++)
        r.values[i] = 0x1000 + i;
    r.values[LR] = 0x123457; /* with the Thumb bit */
    r.values[SP] = TOP;
    return r;
}

static void check_caller(const struct unwind_function *function, bool interrupted, struct registers r, uint64_t pc)
{
    struct registers expected = initial();
    register_set(&r, PC, pc);
    reader_begin(&reader, FUEL_LOOKUP);
    if (!unwinder_arm.unwind(&reader, function, interrupted, &r))
        ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": not unwound", pc, function->begin);
    if (r.values[PC] != (expected.values[LR] & ~UINT64_C(1)) || r.values[SP] != TOP)
        ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": caller %#" PRIx64 ", stack %#" PRIx64, pc, function->begin,
                     r.values[PC], r.values[SP]);
    for (unsigned i = R4; i <= R11; i++)
        if (r.values[i] != expected.values[i])
            ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": r%u is %#" PRIx64, pc, function->begin, i, r.values[i]);
}

/* Instructions of the prolog, in bytes: by its last instruction that matters before anything branches. */
static uint64_t prolog_end(const struct unwind_function *function)
{
    uint64_t end = function->begin;
    bool has_frame_pointer = false;
    for (uint64_t pc = function->begin; pc < function->end; pc += length_of(code_at(pc))) {
        struct registers r = initial();
        uint32_t code = code_at(pc);
        r.values[SP] = r.values[R11] = STACK + 0x8000;
        if (is_branch(code) || is_return(code))
            break;
        bool matters = interpret(&r, code);
        if (has_frame_pointer && !matters) /* what follows may allocate for the body */
            break;
        has_frame_pointer |= r.values[R11] != STACK + 0x8000;
        if (r.values[SP] < STACK + 0x8000 || r.values[R11] != STACK + 0x8000)
            end = pc + length_of(code);
    }
    return end;
}

/* The instructions before a return that belong to its epilog. */
static uint64_t epilog_begin(const struct unwind_function *function, uint64_t at)
{
    uint64_t found = at;
    for (uint64_t pc = function->begin; pc < at; pc += length_of(code_at(pc))) {
        struct registers r = initial();
        for (unsigned i = R4; i <= SP; i++)
            r.values[i] = STACK + 0x8000 + (i < R11 ? 0x100 : 0); /* `mov sp, r9` undoes what the body has allocated */
        bool of_epilog = interpret(&r, code_at(pc)) && r.values[SP] > STACK + 0x8000;
        if (!of_epilog || is_return(code_at(pc)))
            found = at;
        else if (found == at)
            found = pc;
    }
    return found;
}

static unsigned check_function(const struct unwind_function *function)
{
    struct registers r = initial();
    uint64_t pc = function->begin, body = prolog_end(function);
    unsigned checked = 0;
    for (; pc < body; pc += length_of(code_at(pc)), checked++) {
        check_caller(function, true, r, pc);
        interpret(&r, code_at(pc));
    }
    check_caller(function, true, r, pc);
    check_caller(function, false, r, pc); /* as if the next instruction had called */
    for (uint64_t at = pc; at < function->end; at += length_of(code_at(at))) {
        if (!is_return(code_at(at)))
            continue;
        struct registers after = r;
        for (uint64_t i = epilog_begin(function, at); i <= at; i += length_of(code_at(i)), checked++) {
            check_caller(function, true, after, i);
            interpret(&after, code_at(i));
        }
        uint64_t reached = code_at(at) == 0x4770 ? after.values[LR] : after.values[PC];
        if (reached != initial().values[LR] || after.values[SP] != TOP)
            ck_abort_msg("%#" PRIx64 ": the interpreter does not return", at);
    }
    return checked;
}

START_TEST(every_prolog_and_epilog_of_real_code)
{
    unsigned checked = 0, functions = 0, f[LISTING_NUMBERS], count;
    char *text = unwind_image_load("linux-arm", "CDACQ_R2R_ARM");
    const char *line = text;
    ck_assert_int_eq(sscanf(text, "# arm, ReadyToRun %*u.%*u, %u functions", &count), 1);
    while (count-- && unwind_image_next(&line, f)) {
        struct unwind_function function = {
            .base = IMAGE,
            .begin = IMAGE + f[0],
            .end = IMAGE + f[0] + f[1],
            .unwind_data = IMAGE + f[10],
        };
        if (!f[10] || image[f[10] + 2] & 0x40) /* of a fragment the prolog is elsewhere */
            continue;
        checked += check_function(&function);
        functions++;
    }
    free(text);
    if (getenv("CDACQ_R2R_ARM"))
        printf("%u functions, %u instructions\n", functions, checked);
    ck_assert_uint_ge(functions, 60);
    ck_assert_uint_ge(checked, 150);
}
END_TEST

/* ---- By hand ---------------------------------------------------------------------------------------------------- */

static struct unwind_function code_of(const uint16_t *code, unsigned count)
{
    unwind_image_by_hand();
    for (unsigned i = 0; i < count; i++)
        store_u16(image + 2 * i, code[i], false);
    return (struct unwind_function){
        .base = IMAGE, .begin = IMAGE, .end = IMAGE + 2 * count, .unwind_data = IMAGE + 0x800};
}

static void full(const uint8_t *codes, unsigned size, unsigned length, unsigned epilog)
{
    memset(image + 0x800, 0, 64);
    store_u32(image + 0x800, length | 1u << 21 | epilog << 23 | (size + 3) / 4 << 28, false);
    memcpy(image + 0x804, codes, size);
}

START_TEST(every_code)
{
    static const struct {
        unsigned code_count, size, epilog;
        uint16_t code[16];
        uint8_t codes[12];
    } cases[] = {
        /* push.w {r4-r8, lr}; vpush {d8, d9}; sub sp, 8; nop; and the reverse */
        {11,
         4,
         0,
         {0xe92d, 0x41f0, 0xed2d, 0x8b04, 0xb082, 0xbf00, 0xb002, 0xecbd, 0x8b04, 0xe8bd, 0x81f0},
         {0x02, 0xe1, 0xdc, 0xff}},
        /* push {r4, lr}; movw r12, 0x2000; sub sp, r12; nop; add sp, 0x2000; pop {r4, pc} */
        {9,
         11,
         6,
         {0xb510, 0xf242, 0x0c00, 0xebad, 0x0d0c, 0xbf00, 0xf50d, 0x5d00, 0xbd10},
         {0xf9, 0x08, 0x00, 0xfc, 0xd4, 0xff, 0xf9, 0x08, 0x00, 0xd4, 0xff}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct unwind_function function = code_of(cases[i].code, cases[i].code_count);
        full(cases[i].codes, cases[i].size, cases[i].code_count, cases[i].epilog);
        ck_assert_uint_ge(check_function(&function), 5);
    }
}
END_TEST

START_TEST(packed_entries)
{
    /* ret, H, Reg, R, L, C, adjustment in words, as the architecture's document has them; and code that is that */
    static const struct {
        unsigned returns, homes, number, vectors, links, chains, adjust, count;
        uint16_t code[16];
    } cases[] = {
        {0, 0, 3, 0, 1, 0, 2, 5, {0xb5f0, 0xb082, 0xbf00, 0xb002, 0xbdf0}},         /* r4-r7, lr; sub sp, 8 */
        {0, 0, 4, 0, 1, 0, 0, 5, {0xe92d, 0x41f0, 0xbf00, 0xe8bd, 0x81f0}},         /* r4-r8, lr */
        {1, 0, 0, 0, 0, 0, 1, 6, {0xb410, 0xb081, 0xbf00, 0xb001, 0xbc10, 0x4770}}, /* r4; bx lr */
        {0, 0, 0, 0, 1, 1, 1, 9, {0xe92d, 0x4810, 0xf10d, 0x0b04, 0xb081, 0xb001, 0xe8bd, 0x8810, 0}}, /* r4, r11, lr */
        {0, 0, 1, 1, 1, 0, 2, 9, {0xb500, 0xed2d, 0x8b04, 0xb082, 0xbf00, 0xb002, 0xecbd, 0x8b04, 0xbd00}}, /* d8, d9 */
        {0, 0, 0, 0, 1, 0, 0x3fc | 1, 3, {0xb51c, 0xbf00, 0xbd1c}},                 /* two words within the push */
        {0, 1, 0, 0, 1, 0, 0, 6, {0xb40f, 0xb510, 0xbf00, 0xbc10, 0xf85d, 0xfb14}}, /* r0-r3 homed */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        unsigned count = cases[i].count - (cases[i].code[cases[i].count - 1] == 0);
        struct unwind_function function = code_of(cases[i].code, count);
        function.unwind_data = 0;
        function.packed = 1 | count << 2 | cases[i].returns << 13 | cases[i].homes << 15 | cases[i].number << 16 |
                          cases[i].vectors << 19 | cases[i].links << 20 | cases[i].chains << 21 | cases[i].adjust << 22;
        if (cases[i].homes) { /* `ldr pc, [sp], 20` is not interpreted */
            struct registers r = initial();
            push(&r, 15);
            check_caller(&function, true, r, function.begin + 2);
            push(&r, 1 << R4 | 1 << LR);
            check_caller(&function, true, r, function.begin + 4);
            check_caller(&function, true, r, function.begin + 6);
            pop(&r, 1 << R4);
            check_caller(&function, true, r, function.begin + 8);
        } else {
            ck_assert_uint_ge(check_function(&function), 2);
        }
    }
}
END_TEST

/* An epilog in an IT block: where the condition does not hold, its instructions have no effect. */
START_TEST(conditional_epilogs)
{
    /* push {r4, lr}; nop; it eq; popeq {r4, pc}; nop; pop {r4, pc} */
    static const uint16_t code[] = {0xb510, 0xbf00, 0xb082, 0xbf08, 0xb002, 0xbd10, 0xbf00, 0xbf00};
    struct unwind_function function = code_of(code, ARRAY_SIZE(code));
    static const uint8_t codes[] = {2, 0xfb, 0xd4, 0xff, 2, 0xd4, 0xff, 0};
    store_u32(image + 0x800, ARRAY_SIZE(code) | 1u << 23 | 2u << 28, false);
    store_u32(image + 0x804, 4 | 0u << 20 | 4u << 24, false); /* at 4, EQ, codes from 4 on */
    memcpy(image + 0x808, codes, sizeof codes);
    struct registers r = initial();
    push(&r, 1 << R4 | 1 << LR);
    r.values[FLAGS] = 1u << 30;
    check_caller(&function, true, r, function.begin + 10); /* the frame is gone but for the pushes */
    r.values[SP] -= 8;
    r.values[FLAGS] = 0;
    check_caller(&function, true, r, function.begin + 10); /* the frame is whole */
    register_set(&r, PC, function.begin + 10);
    r.known &= ~(UINT64_C(1) << FLAGS);
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(!unwinder_arm.unwind(&reader, &function, true, &r));
}
END_TEST

START_TEST(damage)
{
    static const uint16_t code[] = {0xbf00, 0xbf00, 0xbf00, 0xbf00};
    static const uint8_t unknown[] = {0xf0, 0xff}, system[] = {0xee, 0x01, 0xff}, nothing[] = {0xff};
    static const struct {
        const uint8_t *codes;
        unsigned size;
        bool interrupted;
    } cases[] = {{unknown, 2, true}, {system, 3, true}, {nothing, 1, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct unwind_function function = code_of(code, ARRAY_SIZE(code));
        full(cases[i].codes, cases[i].size, ARRAY_SIZE(code), cases[i].size - 1);
        struct registers r = initial(), before;
        register_set(&r, PC, function.begin + 2);
        before = r;
        reader_begin(&reader, FUEL_LOOKUP);
        ck_assert(!unwinder_arm.unwind(&reader, &function, cases[i].interrupted, &r));
        ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_CORRUPT);
        ck_assert_mem_eq(&before, &r, sizeof r);
    }
    struct unwind_function leaf = code_of(code, ARRAY_SIZE(code)); /* a leaf keeps the stack pointer, if innermost */
    full(nothing, sizeof nothing, ARRAY_SIZE(code), 0);
    check_caller(&leaf, true, initial(), leaf.begin + 2);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("unwind_arm");
    TCase *tc = tcase_create("unwind_arm");
    tcase_add_checked_fixture(tc, setup, unwind_image_close);
    tcase_add_test(tc, every_prolog_and_epilog_of_real_code);
    tcase_add_test(tc, every_code);
    tcase_add_test(tc, packed_entries);
    tcase_add_test(tc, conditional_epilogs);
    tcase_add_test(tc, damage);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
