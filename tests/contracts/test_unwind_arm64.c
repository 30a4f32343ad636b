/*
 * test_unwind_arm64.c: the arm64 unwinder against real code: prologs and epilogs of images that crossgen2 has compiled
 * are interpreted one instruction at a time, and the caller's registers are asked for at each: they are known, because
 * the test has set them. Packed entries, of which there are none in these images, are compared with unwind data that
 * say the same; the other cases are made by hand.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "contracts/unwind/unwinder.h"
#include "tests/support/unwind_image.h"

enum { X19 = 19, FP = 29, LR = 30, SP = 31, PC = 32 };

static void setup(void)
{
    unwind_image_open(183, 8);
}

/* ---- An interpreter of prologs and epilogs ---------------------------------------------------------------------- */

static uint8_t *slot(uint64_t address)
{
    if (address < STACK || address + 8 > STACK + STACK_SIZE || address % 8)
        ck_abort_msg("the interpreter leaves its stack: %#" PRIx64, address);
    return stack + (address - STACK);
}

static void transfer(struct registers *r, bool load, unsigned number, uint64_t address)
{
    if (number == 31) /* xzr */
        store_u64(slot(address), load ? load_u64(slot(address), false) : 0, false);
    else if (load)
        r->values[number] = load_u64(slot(address), false);
    else
        store_u64(slot(address), r->values[number], false);
}

static int64_t field(uint32_t code, unsigned low, unsigned bits, bool is_signed)
{
    uint64_t value = code >> low & ((1u << bits) - 1);
    return is_signed && value >> (bits - 1) ? (int64_t)value - (INT64_C(1) << bits) : (int64_t)value;
}

/* stp, ldp of x and d registers, at an offset or with a change of the base */
static bool pair(struct registers *r, uint32_t code)
{
    uint32_t kind = code & 0x7fc00000, mode = code >> 23 & 3;
    bool vector = code >> 26 & 1, loads = code >> 22 & 1;
    unsigned base = code >> 5 & 31;
    if ((code >> 30 != 2 || vector) && (code >> 30 != 1 || !vector))
        return false;
    if ((kind & 0x3a000000) != 0x28000000 || mode == 0 || base < FP || base == LR)
        return false;
    int64_t offset = 8 * field(code, 15, 7, true);
    uint64_t address = r->values[base] + (uint64_t)(mode == 1 ? 0 : offset);
    if (!vector) {
        transfer(r, loads, code & 31, address);
        transfer(r, loads, code >> 10 & 31, address + 8);
    }
    if (mode != 2)
        r->values[base] += (uint64_t)offset;
    return true;
}

/* str, ldr of an x register, the same */
static bool single(struct registers *r, uint32_t code)
{
    unsigned base = code >> 5 & 31, number = code & 31;
    if (base < FP || base == LR)
        return false;
    if ((code & 0xff800000) == 0xf9000000) {
        transfer(r, code >> 22 & 1, number, r->values[base] + (uint64_t)(8 * field(code, 10, 12, false)));
        return true;
    }
    bool before = (code & 0xffe00c00) == 0xf8000c00, after = (code & 0xffe00c00) == 0xf8400400;
    if (!before && !after)
        return false;
    int64_t offset = field(code, 12, 9, true);
    transfer(r, after, number, r->values[base] + (uint64_t)(before ? offset : 0));
    r->values[base] += (uint64_t)offset;
    return true;
}

/* add and sub that make or remove frames; constants for large ones */
static bool arithmetic(struct registers *r, uint32_t code)
{
    unsigned to = code & 31, from = code >> 5 & 31;
    if ((code & 0xbf000000) == 0x91000000 && (to == SP || to == FP) && (from == SP || from == FP)) {
        uint64_t value = (uint64_t)field(code, 10, 12, false) << (code >> 22 & 1 ? 12 : 0);
        r->values[to] = code >> 30 & 1 ? r->values[from] - value : r->values[from] + value;
        return true;
    }
    if ((code & 0xff800000) == 0xd2800000 || (code & 0xff800000) == 0xf2800000) { /* movz, movk */
        unsigned shift = 16 * (code >> 21 & 3);
        uint64_t kept = (code & 0xff800000) == 0xf2800000 ? r->values[to] & ~(UINT64_C(0xffff) << shift) : 0;
        if (to < X19)
            r->values[to] = kept | (uint64_t)field(code, 5, 16, false) << shift;
        return to < X19;
    }
    if ((code & 0xffe0ffff) == 0xcb2063ff || (code & 0xffe0ffff) == 0x8b2063ff) { /* sub, add sp, sp, x */
        uint64_t value = r->values[code >> 16 & 31];
        r->values[SP] += code >> 30 & 1 ? 0 - value : value;
        return true;
    }
    return false;
}

static bool is_branch(uint32_t code)
{
    return (code & 0x7c000000) == 0x14000000 || (code & 0xfe000000) == 0x54000000 ||
           (code & 0x7c000000) == 0x34000000 || (code & 0xfe000000) == 0xd6000000 || (code & 0xff000000) == 0xd4000000;
}

/* False for what is none of these: it has no effect that matters here, unless it is a branch. */
static bool interpret(struct registers *r, uint32_t code)
{
    return pair(r, code) || single(r, code) || arithmetic(r, code);
}

static struct registers initial(void)
{
    struct registers r = {.known = UINT64_MAX};
    for (unsigned i = 0; i < LR; i++)
        r.values[i] = 0x1000 + i;
    r.values[LR] = 0x123456;
    r.values[SP] = TOP;
    return r;
}

static void check_caller(const struct unwind_function *function, bool interrupted, struct registers r, uint64_t pc)
{
    struct registers expected = initial();
    register_set(&r, PC, pc);
    reader_begin(&reader, FUEL_LOOKUP);
    if (!unwinder_arm64.unwind(&reader, function, interrupted, &r))
        ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": not unwound", pc, function->begin);
    if (r.values[PC] != expected.values[LR] || r.values[SP] != TOP)
        ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": caller %#" PRIx64 ", stack %#" PRIx64, pc, function->begin,
                     r.values[PC], r.values[SP]);
    for (unsigned i = X19; i <= FP; i++)
        if (r.values[i] != expected.values[i])
            ck_abort_msg("%#" PRIx64 " of %#" PRIx64 ": x%u is %#" PRIx64, pc, function->begin, i, r.values[i]);
}

static uint32_t code_at(uint64_t address)
{
    return load_u32(image + (address - IMAGE), false);
}

static bool is_of_epilog(uint32_t code)
{
    struct registers r = initial();
    bool loads = code >> 22 & 1, adds = (code & 0xff0003ff) == 0x910003ff || (code & 0xff0003ff) == 0x910003bf ||
                                        (code & 0xffc003ff) == 0xd10003bf;
    r.values[SP] = r.values[FP] = STACK + 0x8000;
    return adds || ((pair(&r, code) || single(&r, code)) && loads);
}

/* Interprets from `pc` while nothing branches, checking each instruction; returns how many there were. */
static unsigned run(const struct unwind_function *function, struct registers *r, uint64_t *pc, uint64_t end)
{
    unsigned checked = 0;
    for (; *pc < end && !is_branch(code_at(*pc)); *pc += 4, checked++) {
        check_caller(function, true, *r, *pc);
        interpret(r, code_at(*pc));
    }
    return checked;
}

static unsigned check_function(const struct unwind_function *function)
{
    struct registers r = initial();
    uint64_t pc = function->begin;
    uint64_t body = function->begin;
    while (body < function->end && !is_of_epilog(code_at(body)))
        body += 4;
    unsigned checked = run(function, &r, &pc, body);
    uint32_t code = pc < function->end ? code_at(pc) : 0;
    if (code >> 26 == 0x25 || (code & 0xfffffc1f) == 0xd63f0000) /* bl, blr: as a return address */
        check_caller(function, false, r, pc + 4);
    for (uint64_t at = function->begin; at < function->end; at += 4) {
        if (code_at(at) != 0xd65f03c0 && (code_at(at) & 0xfffffc1f) != 0xd61f0000) /* ret, br */
            continue;
        uint64_t start = at;
        while (start > function->begin && is_of_epilog(code_at(start - 4)))
            start -= 4;
        if (start == at)
            continue; /* a jump to a table's entry */
        struct registers after = r;
        checked += run(function, &after, &start, at);
        check_caller(function, true, after, at);
    }
    return checked;
}

static void check_image(const char *name, unsigned least_functions, unsigned least_instructions)
{
    unsigned checked = 0, functions = 0, f[LISTING_NUMBERS], count;
    char *text = unwind_image_load(name, NULL);
    const char *line = text;
    ck_assert_int_eq(sscanf(text, "# arm64, ReadyToRun %*u.%*u, %u functions", &count), 1);
    while (count-- && unwind_image_next(&line, f)) {
        struct unwind_function function = {
            .base = IMAGE,
            .begin = IMAGE + f[0],
            .end = IMAGE + f[0] + f[1],
            .unwind_data = IMAGE + f[10],
        };
        const uint8_t *data = image + f[10];
        unsigned scopes = data[2] & 0x20 ? 0 : data[2] >> 6 | (data[3] & 7) << 2; /* E; the number of epilogs */
        if (!f[10] || data[4 + 4 * scopes] == 0xe5)
            continue; /* of a fragment the prolog is elsewhere */
        checked += check_function(&function);
        functions++;
    }
    free(text);
    ck_assert_uint_ge(functions, least_functions);
    if (checked < least_instructions)
        ck_abort_msg("%u instructions", checked);
}

START_TEST(every_prolog_and_epilog_of_real_code)
{
    check_image("linux-arm64", 60, 500);
}
END_TEST

START_TEST(and_of_code_in_fragments)
{
    check_image("linux-arm64-split", 40, 400);
}
END_TEST

/* ---- Packed entries --------------------------------------------------------------------------------------------- */

static struct unwind_function full(const uint8_t *codes, unsigned size, unsigned length, unsigned epilog)
{
    unsigned words = (size + 3) / 4;
    unwind_image_by_hand();
    store_u32(image + 0x800, length | 1u << 21 | epilog << 22 | words << 27, false);
    memset(image + 0x804, 0, 64);
    memcpy(image + 0x804, codes, size);
    return (struct unwind_function){
        .base = IMAGE, .begin = IMAGE, .end = IMAGE + 4 * length, .unwind_data = IMAGE + 0x800};
}

START_TEST(packed_entries)
{
    /* flag, length, RegF, RegI, H, CR, FrameSize: as the architecture's document has them; and the same codes */
    static const struct {
        unsigned fp, integers, homes, chain, frame; /* frame in 16 bytes */
        unsigned size;
        uint8_t codes[24];
    } cases[] = {
        {0, 0, 0, 3, 2, 3, {0xe1, 0x83, 0xe4}},                   /* stp x29, x30, [sp, -32]! */
        {0, 2, 0, 3, 3, 5, {0xe1, 0x83, 0xcc, 0x01, 0xe4}},       /* and x19, x20 */
        {0, 3, 0, 0, 2, 5, {0xd0, 0x82, 0xcc, 0x03, 0xe4}},       /* three, without a chain */
        {0, 1, 0, 1, 1, 4, {0xd6, 0x00, 0x01, 0xe4}},             /* x19 and lr */
        {0, 0, 0, 1, 1, 3, {0xd5, 0x61, 0xe4}},                   /* lr alone */
        {1, 2, 0, 0, 2, 5, {0xd8, 0x02, 0xcc, 0x03, 0xe4}},       /* d8 and d9 */
        {2, 0, 0, 0, 2, 5, {0xdc, 0x82, 0xda, 0x03, 0xe4}},       /* three of them, d10 alone */
        {0, 0, 0, 3, 66, 5, {0xe1, 0x40, 0xc0, 0x42, 0xe4}},      /* a frame over 512 bytes */
        {0, 2, 0, 2, 3, 6, {0xe1, 0x83, 0xcc, 0x01, 0xfc, 0xe4}}, /* with pointer authentication */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t entry = 1 | 20u << 2 | cases[i].fp << 13 | cases[i].integers << 16 | cases[i].homes << 20 |
                         cases[i].chain << 21 | cases[i].frame << 23;
        unsigned epilog = cases[i].codes[0] == 0xe1;
        struct unwind_function by_data = full(cases[i].codes, cases[i].size, 20, epilog), by_entry = by_data;
        by_entry.packed = entry;
        by_entry.unwind_data = 0;
        for (unsigned at = 0; at < 20; at++) {
            struct registers a = initial(), b;
            for (size_t j = 0; j < STACK_SIZE; j += 8)
                store_u64(stack + j, 0x10000 + j, false);
            a.values[SP] = a.values[FP] = TOP - 0x1000;
            register_set(&a, PC, by_data.begin + 4 * at);
            b = a;
            reader_begin(&reader, FUEL_LOOKUP);
            bool known = unwinder_arm64.unwind(&reader, &by_data, true, &a);
            reader_begin(&reader, FUEL_LOOKUP);
            if (!known || !unwinder_arm64.unwind(&reader, &by_entry, true, &b) || memcmp(&a, &b, sizeof a))
                ck_abort_msg("case %zu, +%u: sp %#" PRIx64 " and %#" PRIx64 ", pc %#" PRIx64 " and %#" PRIx64, i, at,
                             a.values[SP], b.values[SP], a.values[PC], b.values[PC]);
        }
    }
}
END_TEST

START_TEST(damage)
{
    static const uint8_t registers_beyond[] = {0xe6, 0xe6, 0xe6, 0xe6, 0xe6, 0xe6, 0xc8, 0x00, 0xe4},
                         system[] = {0xe9, 0xe4};
    struct unwind_function function = full(registers_beyond, sizeof registers_beyond, 20, 0);
    struct registers r = initial(), before;
    register_set(&r, PC, function.begin + 40);
    before = r;
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(!unwinder_arm64.unwind(&reader, &function, true, &r));
    ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_CORRUPT);
    ck_assert_mem_eq(&before, &r, sizeof r);
    function = full(system, sizeof system, 20, 0);
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(!unwinder_arm64.unwind(&reader, &function, true, &r));
    function.unwind_data = 0x10;
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(!unwinder_arm64.unwind(&reader, &function, true, &r));
    ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_MEMORY);
    static const uint8_t nothing[] = {0xe4};
    function = full(nothing, sizeof nothing, 20, 0); /* a return address in a frame that is none */
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(!unwinder_arm64.unwind(&reader, &function, false, &r));
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(unwinder_arm64.unwind(&reader, &function, true, &r)); /* a leaf */
    ck_assert_uint_eq(r.values[SP], TOP);
}
END_TEST

/*
 * pacibsp; stp x29, x30, [sp, -32]!: the return address is signed in the register and on the stack, or not signed yet.
 */
START_TEST(signed_return_addresses)
{
    static const uint8_t codes[] = {0x83, 0xfc, 0xe4};
    static const struct {
        uint64_t mask, signature, kept;
    } cases[] = {
        {0, UINT64_C(0x7b) << 48, 0},
        {0, UINT64_C(0xff7f) << 48, 0},
        {UINT64_C(0x7f) << 48, UINT64_C(0x2a) << 48, 0},
        {UINT64_C(0x70) << 48, UINT64_C(0x50) << 48, UINT64_C(5) << 48}, /* addresses of 52 bits */
        {UINT64_C(0x7fff) << 40, UINT64_C(0x1234) << 40, 0},             /* and of 40 */
    };
    struct unwind_function function = full(codes, sizeof codes, 20, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (unsigned at = 0; at < 4; at++) {
            struct registers r = initial();
            uint64_t address = r.values[LR] | cases[i].kept, signed_address = address | cases[i].signature;
            target->pac_mask = cases[i].mask;
            register_set(&r, PC, function.begin + 4 * at);
            r.values[LR] = at ? signed_address : address;
            if (at >= 2) {
                r.values[SP] = TOP - 32;
                store_u64(slot(TOP - 32), initial().values[FP], false);
                store_u64(slot(TOP - 24), signed_address, false);
            }
            reader_begin(&reader, FUEL_LOOKUP);
            ck_assert(unwinder_arm64.unwind(&reader, &function, true, &r));
            ck_assert_uint_eq(r.values[PC], address);
            ck_assert_uint_eq(r.values[LR], address);
            ck_assert_uint_eq(r.values[SP], TOP);
        }
    target->pac_mask = 0;
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("unwind_arm64");
    TCase *tc = tcase_create("unwind_arm64");
    tcase_add_checked_fixture(tc, setup, unwind_image_close);
    tcase_add_test(tc, every_prolog_and_epilog_of_real_code);
    tcase_add_test(tc, and_of_code_in_fragments);
    tcase_add_test(tc, packed_entries);
    tcase_add_test(tc, signed_return_addresses);
    tcase_add_test(tc, damage);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
