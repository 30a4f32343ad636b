#include "util/own_stack.h"

#include <pthread.h>
#include <ucontext.h>

#include "tests/support/check_main.h"

enum { STACK = 1 << 20, RESERVE = 64 * 1024 };

static uintptr_t here(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

static void *look(void *floor)
{
    *(uintptr_t *)floor = own_stack_floor(RESERVE);
    ck_assert_uint_lt(*(uintptr_t *)floor, here());
    ck_assert_uint_gt(*(uintptr_t *)floor, here() - STACK);
    ck_assert_uint_eq(own_stack_floor(STACK), UINTPTR_MAX); /* that much is never left */
    return NULL;
}

START_TEST(threads_know_their_stacks)
{
    pthread_attr_t attributes;
    pthread_t thread;
    uintptr_t floor = 0;
    ck_assert_uint_lt(own_stack_floor(RESERVE), here());
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, look, &floor), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    ck_assert_uint_ne(floor, 0);
}
END_TEST

static ucontext_t outer, inner;
static uintptr_t found;

static void look_on_another_stack(void)
{
    found = own_stack_floor(RESERVE);
    swapcontext(&inner, &outer);
}

START_TEST(another_stack_is_not_known)
{
    void *stack = malloc(STACK);
    ck_assert_ptr_nonnull(stack);
    ck_assert_int_eq(getcontext(&inner), 0);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = STACK;
    inner.uc_link = NULL;
    makecontext(&inner, look_on_another_stack, 0);
    ck_assert_int_eq(swapcontext(&outer, &inner), 0);
    ck_assert_uint_eq(found, UINTPTR_MAX);
    free(stack);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("own_stack");
    TCase *tc = tcase_create("own_stack");
    tcase_add_test(tc, threads_know_their_stacks);
    tcase_add_test(tc, another_stack_is_not_known);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
