/*
 * test_running.c: calls of the library on a process that runs, and changes or ends between two reads. The mock's
 * process does nothing; the target's operations say that it has changed something.
 */
#include <signal.h>
#include <unistd.h>

#include "src/api/question.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

enum { IPS = 300, X64 = 2 };

static struct sample_process sample;
static const struct mock_function *facts;
static size_t fact_count;
static struct cdacq_target *target;
static struct cdacq_session *session;
static struct cdacq_error error;
static struct target_ops ops;
static unsigned changes; /* checks that still fail */

static bool unchanged(struct target *live, const struct read_log *log, size_t from)
{
    (void)live, (void)log, (void)from;
    changes -= changes > 0;
    return !changes;
}

/* Without the permission to read another process's memory there is nothing to test. */
static bool open_process(void)
{
    sample = sample_build(X64, 1, 1, true);
    mock_publish(sample.mock, NULL);
    facts = mock_functions(sample.mock, &fact_count);
    if (mock_carriers() <= CARRIER_PROCESS)
        return false;
    target = mock_open(sample.mock, CARRIER_PROCESS, NULL);
    session = mock_session(target);
    ck_assert(session_is_running(session));
    return true;
}

static void setup(void)
{
    memset(&error, 0, sizeof error);
    changes = 0;
    target = NULL;
    session = NULL;
}

static void teardown(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
    session = NULL;
    target = NULL;
}

/* From now on, as many checks fail as `changes` says. */
static void change_memory(unsigned count)
{
    if (target->target->ops != &ops)
        ops = *target->target->ops;
    ops.unchanged = unchanged;
    target->target->ops = &ops;
    changes = count + 1;
}

static const struct mock_function *jitted(void)
{
    for (size_t i = 0; i < fact_count; i++)
        if (facts[i].code == MOCK_CODE_JIT && !facts[i].funclet)
            return &facts[i];
    ck_abort_msg("the sample has no method");
}

static uint64_t question(void)
{
    return target->target->question;
}

/* ---- Look-ups ---- */

START_TEST(every_answer_is_written_when_the_process_has_ended)
{
    uint64_t ips[IPS];
    struct cdacq_method methods[IPS];
    if (!open_process())
        return;
    for (size_t i = 0; i < IPS; i++)
        ips[i] = jitted()->begin;
    memset(methods, 0x5a, sizeof methods);
    methods->size = sizeof *methods;
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, IPS, methods, &error), CDACQ_OK);
    ck_assert_int_eq(methods[IPS - 1].answer, CDACQ_ANSWER_MANAGED);
    ck_assert_int_eq(kill(target->target->pid, SIGKILL), 0);
    for (int i = 0; i < 20000 && !target_gone(target->target); i++)
        usleep(1000);
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, IPS, methods, &error), CDACQ_ERR_IO);
    for (size_t i = 0; i < IPS; i++) {
        ck_assert_int_eq(methods[i].answer, CDACQ_ANSWER_ERROR);
        ck_assert_uint_eq(methods[i].ip, ips[i]);
        ck_assert_ptr_null(methods[i].name);
        ck_assert_ptr_nonnull(strstr(methods[i].error, "ended"));
    }
}
END_TEST

/* A module that the process replaces is freed, but not the path that an answer refers to. */
START_TEST(paths_of_modules_outlive_the_modules)
{
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    ck_assert_ptr_nonnull(method.module);
    ck_assert_ptr_nonnull(session->answered);
    ck_assert_ptr_nonnull(session->answered->module);
    ck_assert_str_eq(method.module, session->answered->module->path);
    ck_assert_ptr_ne(method.module, session->answered->module->path);
}
END_TEST

/* ---- ELF files and mapped files ---- */

static int drop(const void *bytes, size_t size, void *context)
{
    (void)bytes;
    *(uint64_t *)context += size;
    return 0;
}

static int write_file(const struct cdacq_mapped_file *file, void *context)
{
    uint64_t size = 0;
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = &size, .write = drop};
    if (file->path && file->has_code)
        ck_assert_int_eq(
            cdacq_session_write_elf_of_file(session, file->path, CDACQ_VISIT_STUBS, &sink, &written, &error), CDACQ_OK);
    ++*(unsigned *)context;
    return 0;
}

/* The map of all code is that of the question in which the visit began. */
START_TEST(visits_keep_their_map)
{
    uint64_t size = 0;
    unsigned files = 0;
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = &size, .write = drop};
    if (!open_process())
        return;
    uint64_t before = question();
    ck_assert_int_eq(cdacq_session_write_elf(session, CDACQ_VISIT_STUBS, &sink, &written, &error), CDACQ_OK);
    ck_assert_uint_gt(written.methods, 0);
    ck_assert_uint_eq(size, written.bytes);
    ck_assert_uint_eq(question(), before + 1);
    ck_assert_int_eq(cdacq_session_visit_mapped_files(session, write_file, &files, &error), CDACQ_OK);
    ck_assert_uint_gt(files, 0);
    ck_assert_uint_eq(question(), before + 2);
    ck_assert_uint_eq(session->visits, 0);
}
END_TEST

/* ---- Questions about blocks ---- */

static int ignore_heap(const struct cdacq_code_heap_info *heap, void *context)
{
    (void)heap, (void)context;
    return 0;
}

/* What was read for an earlier call is not taken for what the process has now. */
START_TEST(every_call_is_a_question)
{
    struct cdacq_jit_manager_info info = {.size = sizeof info};
    if (!open_process())
        return;
    uint64_t before = question();
    (void)cdacq_session_get_jit_manager_info(session, CDACQ_CODE_JITTED, &info, &error);
    ck_assert_uint_gt(question(), before);
    before = question();
    (void)cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, ignore_heap, NULL, &error);
    ck_assert_uint_gt(question(), before);
}
END_TEST

START_TEST(answers_about_blocks_are_checked)
{
    struct cdacq_block block;
    uint64_t hot, cold, cold_size, address;
    bool yes;
    if (!open_process())
        return;
    const struct mock_function *fact = jitted();
    change_memory(3);
    ck_assert_int_eq(cdacq_session_get_code_block(session, fact->begin, &block, &error), CDACQ_OK);
    ck_assert_uint_eq(changes, 0);
    change_memory(3);
    ck_assert_int_eq(cdacq_block_get_method_region_info(&block, session, &hot, &cold, &cold_size, &error), CDACQ_OK);
    ck_assert_uint_eq(hot, fact->hot_size);
    ck_assert_uint_eq(changes, 0);
    change_memory(1000);
    ck_assert_int_eq(cdacq_session_get_code_block(session, fact->begin, &block, &error), CDACQ_ERR_CHANGED);
    ck_assert_int_eq(cdacq_block_get_unwind_info(&block, session, &address, &error), CDACQ_ERR_CHANGED);
    ck_assert_int_eq(cdacq_block_is_funclet(&block, session, &yes, &error), CDACQ_ERR_CHANGED);
    ck_assert_int_eq(cdacq_block_get_debug_info(&block, session, &address, &yes, &error), CDACQ_ERR_CHANGED);
    change_memory(0);
    ck_assert_int_eq(cdacq_block_is_funclet(&block, session, &yes, &error), CDACQ_OK);
    ck_assert(!yes);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("running");
    TCase *tcase = tcase_create("running");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_answer_is_written_when_the_process_has_ended);
    tcase_add_test(tcase, paths_of_modules_outlive_the_modules);
    tcase_add_test(tcase, visits_keep_their_map);
    tcase_add_test(tcase, every_call_is_a_question);
    tcase_add_test(tcase, answers_about_blocks_are_checked);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
