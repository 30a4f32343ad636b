/* test_wait_lines.c: which waits of a report are one line. The waits are built by hand; a core may make them up. */
#include "tests/support/given_waits.h"

#include "src/cli/report/wait_lines.c"
#include "tests/support/check_main.h"

enum { NAME = 64 * 1024, TASKS = 1024, WAITS = 10 * 1000 };

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

static size_t lines_of(const struct cdacq_wait *waits, size_t count)
{
    struct shown_waits shown;
    size_t lines = 0;
    given_waits = waits;
    given_count = count;
    wait_lines_collect(NULL, &shown);
    for (size_t i = 0; i < shown.count; i += wait_lines_count(&shown, i))
        lines++;
    wait_lines_release(&shown);
    return lines;
}

/* Waits for foreground threads have no object, and are all the same; of other waits, what is not known is not. */
START_TEST(without_an_object)
{
    struct cdacq_wait waits[3];
    for (unsigned i = 0; i < 3; i++)
        waits[i] = (struct cdacq_wait){.size = sizeof *waits, .tid = 1 + (int)i, .kind = CDACQ_WAIT_FOREGROUND};
    ck_assert_uint_eq(lines_of(waits, 3), 1);
    for (unsigned i = 0; i < 3; i++)
        waits[i].kind = CDACQ_WAIT_EVENT;
    ck_assert_uint_eq(lines_of(waits, 3), 3);
}
END_TEST

/* Texts that are one in memory are not compared byte by byte: that would be 4 TB here. */
START_TEST(long_names)
{
    static char name[NAME];
    static struct cdacq_task tasks[TASKS];
    static struct cdacq_wait waits[WAITS];
    memset(name, 'a', sizeof name - 1);
    for (unsigned i = 0; i < TASKS; i++)
        tasks[i] = (struct cdacq_task){.size = sizeof *tasks, .type = name, .method = name, .status = "Running"};
    for (unsigned i = 0; i < WAITS; i++)
        waits[i] = (struct cdacq_wait){.size = sizeof *waits,
                                       .tid = 1 + (int)i,
                                       .kind = CDACQ_WAIT_TASK,
                                       .object = 8 * (WAITS - i),
                                       .type = name,
                                       .tasks = tasks,
                                       .task_count = TASKS};
    ck_assert_uint_eq(lines_of(waits, WAITS), 1);
    for (unsigned i = 1; i < TASKS; i++)
        ck_assert(wait_lines_tasks_alike(&tasks[0], &tasks[i]));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("wait_lines");
    TCase *tc = tcase_create("lines");
    tcase_add_test(tc, without_an_object);
    tcase_add_test(tc, long_names);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
