/* test_pdb_budget.c: what PDBs may take together, to the byte, and that what is refused is not taken. */
#include "src/files/pdb_budget.h"

#include "tests/support/check_main.h"

#define MIB (UINT64_C(1) << 20)

static struct pdb_budget budget;
static struct work work;

static void setup(void)
{
    budget = (struct pdb_budget){0};
    work = (struct work){0};
}

START_TEST(memory_ends_at_1_gib)
{
    ck_assert_ptr_null(pdb_budget_take_memory(&budget, &work, 1024 * MIB - 5));
    ck_assert_str_eq(pdb_budget_take_memory(&budget, &work, 6), "the PDBs of other modules take 1 GiB already");
    ck_assert_str_eq(pdb_budget_take_memory(&budget, &work, SIZE_MAX), "the PDBs of other modules take 1 GiB already");
    ck_assert_ptr_null(pdb_budget_take_memory(&budget, &work, 5));
    ck_assert_ptr_nonnull(pdb_budget_take_memory(&budget, &work, 1));
    pdb_budget_return_memory(&budget, &work, 5);
    ck_assert_ptr_null(pdb_budget_take_memory(&budget, &work, 5));
}
END_TEST

START_TEST(memory_is_that_of_the_target)
{
    work_set(&work, 0, 100, 0);
    ck_assert(work_take_memory(&work, 60));
    ck_assert_str_eq(pdb_budget_take_memory(&budget, &work, 41), "the bound on memory was reached");
    ck_assert_uint_eq(budget.memory, 0);
    ck_assert_ptr_null(pdb_budget_take_memory(&budget, &work, 40));
    ck_assert(!work_take_memory(&work, 1));
    pdb_budget_return_memory(&budget, &work, 40);
    ck_assert(work_take_memory(&work, 40));
}
END_TEST

START_TEST(hashing_ends_at_2_gib)
{
    ck_assert_ptr_null(pdb_budget_take_hashing(&budget, &work, 2048 * MIB - 5));
    ck_assert_str_eq(pdb_budget_take_hashing(&budget, &work, 6), "too many other files had to be compared");
    ck_assert_ptr_nonnull(pdb_budget_take_hashing(&budget, &work, UINT64_MAX));
    ck_assert_ptr_null(pdb_budget_take_hashing(&budget, &work, 5));
    ck_assert_ptr_nonnull(pdb_budget_take_hashing(&budget, &work, 1));
}
END_TEST

START_TEST(hashing_is_work_of_the_target)
{
    work_set(&work, 5, 0, 0);
    ck_assert_ptr_null(pdb_budget_take_hashing(&budget, &work, 100));
    ck_assert_uint_eq(work_left(&work), 0);
    ck_assert_str_eq(pdb_budget_take_hashing(&budget, &work, 1),
                     "the bound on work was reached before it was compared");
    ck_assert_uint_eq(budget.hashed, 100);
}
END_TEST

START_TEST(notes_leave_half_of_it_for_files)
{
    ck_assert_ptr_null(pdb_budget_take_note(&budget, 1024 * MIB));
    ck_assert_ptr_null(pdb_budget_take_hashing(&budget, &work, 1024 * MIB));
    ck_assert_str_eq(pdb_budget_take_note(&budget, 1), "too many other files had to be compared");
    ck_assert_ptr_null(pdb_budget_take_hashing(&budget, &work, 1024 * MIB));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("pdb_budget");
    TCase *tcase = tcase_create("pdb_budget");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, memory_ends_at_1_gib);
    tcase_add_test(tcase, memory_is_that_of_the_target);
    tcase_add_test(tcase, hashing_ends_at_2_gib);
    tcase_add_test(tcase, hashing_is_work_of_the_target);
    tcase_add_test(tcase, notes_leave_half_of_it_for_files);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
