#include "target/command_line.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "target/live.h"
#include "tests/support/check_main.h"
#include "util/file.h"

/* ---- The top of a stack that is built by hand ---- */

#define TOP UINT64_C(0x7fff00004000)

enum { SIZE = 0x4000, WORD = 8, PROGRAM = SIZE - 0x100 };

static uint8_t memory[SIZE];
static uint64_t missing_below;
static char text[64];
static bool cut;

static bool memory_at(struct target *target, uint64_t address, struct span *ret)
{
    (void)target;
    *ret = (struct span){.begin = TOP - SIZE + missing_below, .end = TOP, .bytes = memory + missing_below};
    return address >= ret->begin && address < TOP;
}

static const struct target_ops ops = {.memory_at = memory_at, .dumped_at = memory_at};
static struct target target = {.ops = &ops};

static void setup(void)
{
    memset(memory, 0, sizeof memory);
    missing_below = 0;
    strcpy((char *)memory + PROGRAM, "/usr/bin/program");
    memset(text, '?', sizeof text - 1);
}

static void teardown(void)
{
    target_deinit(&target);
}

static void put(size_t *at, uint64_t word)
{
    store_u64(memory + *at, word, false);
    *at += WORD;
}

/* Writes `count` arguments, no or one variable, and a vector, from `at` on. Strings are below the path. */
static void build(size_t at, const char *const *arguments, size_t count, bool has_variable)
{
    size_t strings = PROGRAM - 0x100;
    put(&at, count);
    for (size_t i = 0; i < count; i++) {
        put(&at, TOP - SIZE + strings);
        strcpy((char *)memory + strings, arguments[i]);
        strings += strlen(arguments[i]) + 1;
    }
    put(&at, 0);
    if (has_variable)
        put(&at, TOP - SIZE + strings);
    put(&at, 0);
    put(&at, AT_PAGESZ);
    put(&at, 4096);
    put(&at, AT_EXECFN);
    put(&at, TOP - SIZE + PROGRAM);
    put(&at, AT_NULL);
    put(&at, 0);
}

static bool read_text(size_t size)
{
    const struct elf_class elf = {.wide = true};
    return command_line_read(&target, elf, TOP - SIZE + PROGRAM, text, size, &cut);
}

static const char *const three[] = {"dotnet", "", "a b"};

START_TEST(arguments_with_spaces_between)
{
    /* Wherever a page begins. */
    for (size_t at = 0x2f00; at <= 0x3000; at += WORD)
        for (unsigned has_variable = 0; has_variable < 2; has_variable++) {
            setup();
            build(at, three, ARRAY_SIZE(three), has_variable);
            ck_assert(read_text(sizeof text));
            ck_assert_str_eq(text, "dotnet  a b");
            ck_assert(!cut);
        }
}
END_TEST

START_TEST(what_does_not_fit_is_cut)
{
    static const char all[] = "dotnet  a b";
    build(0x2000, three, ARRAY_SIZE(three), true);
    for (size_t size = 1; size <= sizeof all; size++) {
        ck_assert(read_text(size));
        ck_assert_uint_eq(strlen(text), size - 1);
        ck_assert_int_eq(strncmp(text, all, size - 1), 0);
        ck_assert_int_eq(cut, size < sizeof all);
    }
}
END_TEST

START_TEST(no_arguments_are_made_up)
{
    build(0x2000, three, ARRAY_SIZE(three), true);
    store_u64(memory + 0x2000, 4, false); /* their number */
    ck_assert(!read_text(sizeof text));
    setup();
    build(0x2000, three, ARRAY_SIZE(three), true);
    store_u64(memory + 0x2010, TOP + 1, false); /* the address of one */
    ck_assert(!read_text(sizeof text));
    setup();
    build(0x2000, three, 0, true);
    ck_assert(!read_text(sizeof text));
    setup();
    ck_assert(!read_text(sizeof text)); /* no vector */
    build(0x2000, three, ARRAY_SIZE(three), true);
    missing_below = 0x2008;
    ck_assert(!read_text(sizeof text));
    missing_below = 0x3000;
    ck_assert(!read_text(sizeof text));
    const struct elf_class elf = {.wide = true};
    ck_assert(!command_line_read(&target, elf, 0, text, sizeof text, &cut));
    ck_assert(!command_line_read(&target, elf, UINT64_MAX, text, sizeof text, &cut));
    ck_assert_int_eq(text[0], '?');
}
END_TEST

/* What the kernel gave to this program. */
START_TEST(own_arguments)
{
    struct file_policy policy = {.pread = false};
    struct target *self;
    struct cdacq_error error;
    char expected[4096], found[4096];
    size_t length = file_read_text(AT_FDCWD, "/proc/self/cmdline", expected, sizeof expected);
    for (size_t i = 0; i + 1 < length; i++)
        expected[i] = expected[i] ? expected[i] : ' ';
    pthread_mutex_init(&policy.lock, NULL);
    ck_assert_int_eq(live_open(getpid(), &policy, false, false, &self, &error), CDACQ_OK);
    const struct elf_class elf = {.wide = sizeof(void *) == 8, .big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    ck_assert(command_line_read(self, elf, getauxval(AT_EXECFN), found, sizeof found, &cut));
    ck_assert_str_eq(found, expected);
    target_destroy(self);
    pthread_mutex_destroy(&policy.lock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("command_line");
    TCase *tc = tcase_create("command_line");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, arguments_with_spaces_between);
    tcase_add_test(tc, what_does_not_fit_is_cut);
    tcase_add_test(tc, no_arguments_are_made_up);
    tcase_add_test(tc, own_arguments);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
