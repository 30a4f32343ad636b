#include "target/core_loads.h"

#include "tests/support/check_main.h"

static struct core_loads loads;

static void add(uint64_t begin, uint64_t end, unsigned flags)
{
    const struct elf_segment header = {.vaddr = begin, .flags = flags};
    core_loads_add(&loads, &header, end);
}

static void setup(void)
{
    ck_assert(core_loads_init(&loads, 8));
}

static void teardown(void)
{
    core_loads_deinit(&loads);
}

/* Checks what is found of [begin, end). */
static void check(uint64_t begin, uint64_t end, enum mapping_access access, bool may_execute, bool is_readable)
{
    struct mapping mapping = {.begin = begin, .end = end};
    ck_assert_msg(core_loads_set_access(&loads, &mapping) == is_readable, "0x%llx", (unsigned long long)begin);
    ck_assert_msg(mapping.access == access, "0x%llx", (unsigned long long)begin);
    ck_assert_msg(mapping.may_execute == may_execute, "0x%llx", (unsigned long long)begin);
}

START_TEST(a_mapping_has_the_access_of_the_loads_in_it)
{
    add(0x4000, 0x5000, PF_R | PF_W); /* in any order */
    add(0x1000, 0x2000, PF_R);
    add(0x2000, 0x3000, PF_R | PF_X);
    add(0x3000, 0x4000, 0);
    core_loads_sort(&loads);
    check(0x1000, 0x2000, MAPPING_READ_ONLY, false, true);
    check(0x2000, 0x3000, MAPPING_READ_ONLY, true, true);
    check(0x3000, 0x4000, MAPPING_READ_ONLY, false, false); /* a guard */
    check(0x4000, 0x5000, MAPPING_WRITABLE, false, true);
    check(0x1000, 0x5000, MAPPING_WRITABLE, true, true);
    check(0x1fff, 0x2001, MAPPING_READ_ONLY, true, true);
    check(0x3800, 0x4800, MAPPING_WRITABLE, false, true);
}
END_TEST

START_TEST(a_mapping_without_loads_may_be_anything)
{
    add(0x2000, 0x3000, PF_R);
    core_loads_sort(&loads);
    check(0x1000, 0x2000, MAPPING_UNKNOWN, true, true);
    check(0x3000, 0x4000, MAPPING_UNKNOWN, true, true);
    check(0x0, 0x1000, MAPPING_UNKNOWN, true, true);
}
END_TEST

START_TEST(a_core_without_loads)
{
    core_loads_sort(&loads);
    check(0x1000, 0x2000, MAPPING_UNKNOWN, true, true);
}
END_TEST

/* A later load, which begins within an earlier one, hides nothing of it. */
START_TEST(loads_of_a_damaged_core_overlap)
{
    add(0x1000, 0x9000, PF_R | PF_W);
    add(0x2000, 0x3000, PF_R);
    core_loads_sort(&loads);
    check(0x2000, 0x3000, MAPPING_WRITABLE, false, true);
    check(0x1000, 0x2000, MAPPING_WRITABLE, false, true);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("core_loads");
    TCase *tc = tcase_create("core_loads");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_mapping_has_the_access_of_the_loads_in_it);
    tcase_add_test(tc, a_mapping_without_loads_may_be_anything);
    tcase_add_test(tc, a_core_without_loads);
    tcase_add_test(tc, loads_of_a_damaged_core_overlap);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
