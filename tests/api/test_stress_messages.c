/*
 * The calls of cdacq/stress_log.h on mock processes: the messages of several threads in the order of time, the names
 * of what they point to, and what cannot be read.
 */
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"
#include "tests/support/stress_mock.h"

enum { THREADS = 5, MESSAGES = 300 };

struct fixture {
    struct sample_process sample;
    struct stress_mock stress;
    uint64_t threads[THREADS];
    struct cdacq_target *target;
    struct cdacq_session *session;
    /* What was visited. */
    struct cdacq_stress_message messages[MESSAGES + 10];
    char texts[MESSAGES + 10][128];
    size_t count, problems;
    size_t stop_after;
};

static struct cdacq_error error;

static void build(struct fixture *f, int arch, bool is_net11)
{
    memset(f, 0, sizeof *f);
    f->sample = sample_build(arch, 3, is_net11 ? MOCK_NET_11 : 2, true);
    stress_mock_init(&f->stress, f->sample.mock, is_net11);
    for (unsigned i = 0; i < THREADS; i++)
        f->threads[i] = stress_mock_thread(&f->stress, 100 + i);
}

static void put(struct fixture *f, unsigned thread, uint64_t time, const char *format, uint64_t argument)
{
    stress_mock_write(&f->stress, f->threads[thread], 9,
                      &(struct stress_mock_message){
                          .time = time, .facility = 0x101, .format = format, .count = 1, .arguments = {argument}});
}

static void begin(struct fixture *f)
{
    mock_publish(f->sample.mock, NULL);
    f->target = mock_open(f->sample.mock, CARRIER_MEMORY, NULL);
    f->session = mock_session(f->target);
}

static void end(struct fixture *f)
{
    cdacq_session_destroy(f->session);
    cdacq_target_close(f->target);
    stress_mock_deinit(&f->stress);
    sample_destroy(&f->sample);
}

static int note(const struct cdacq_stress_message *message, void *context)
{
    struct fixture *f = context;
    ck_assert_uint_lt(f->count, ARRAY_SIZE(f->messages));
    ck_assert_uint_eq(message->size, sizeof *message);
    ck_assert_int_eq(message->text == NULL, message->problem != NULL);
    f->messages[f->count] = *message;
    snprintf(f->texts[f->count], sizeof f->texts[0], "%s", message->text ? message->text : message->problem);
    f->problems += message->problem != NULL;
    f->count++;
    return f->count == f->stop_after;
}

static enum cdacq_status visit(struct fixture *f)
{
    f->count = f->problems = 0;
    return cdacq_session_visit_stress_log(f->session, note, f, &error);
}

/* The text of the only message, without problems. */
static void check_text(struct fixture *f, const char *expected)
{
    ck_assert_int_eq(visit(f), CDACQ_OK);
    ck_assert_uint_eq(f->count, 1);
    ck_assert_str_eq(f->texts[0], expected);
    ck_assert_uint_eq(f->problems, 0);
}

/* Random times, later from one message of a thread to its next one: all are visited, the newest first. */
START_TEST(in_the_order_of_time)
{
    static const uint64_t ticks_of_ns = STRESS_MOCK_FREQUENCY / 1000000000;
    struct fixture f;
    struct random random = {7};
    uint64_t time = 0, sum = 0, expected = 0;
    build(&f, _i, _i & 1);
    for (unsigned i = 0; i < MESSAGES; i++) {
        time += random_below(&random, 1000);
        put(&f, (unsigned)random_below(&random, THREADS), time * ticks_of_ns, "number %d", i);
        expected += time;
    }
    begin(&f);
    ck_assert_int_eq(visit(&f), CDACQ_OK);
    ck_assert_uint_eq(f.count, MESSAGES);
    ck_assert_uint_eq(f.problems, 0);
    for (size_t i = 0; i < f.count; i++) {
        const struct cdacq_stress_message *message = &f.messages[i];
        ck_assert(!i || message->time_ns <= message[-1].time_ns);
        ck_assert_uint_ge(message->tid, 100);
        ck_assert_uint_lt(message->tid, 100 + THREADS);
        ck_assert_uint_eq(message->facilities, 0x101);
        ck_assert_uint_eq(message->argument_count, 1);
        ck_assert_uint_eq(message->flaws, 0);
        sum += message->time_ns;
    }
    ck_assert_uint_eq(sum, expected);
    f.stop_after = 3;
    ck_assert_int_eq(visit(&f), CDACQ_STOPPED);
    ck_assert_uint_eq(f.count, 3);
    end(&f);
}
END_TEST

START_TEST(the_log_as_a_whole)
{
    struct fixture f;
    struct cdacq_stress_log log = {.size = sizeof log};
    build(&f, _i, _i & 1);
    begin(&f);
    ck_assert_int_eq(cdacq_session_get_stress_log(f.session, &log, &error), CDACQ_OK);
    ck_assert(log.is_on);
    ck_assert_uint_eq(log.address, f.stress.log);
    ck_assert_uint_eq(log.facilities, 0x80000101);
    ck_assert_uint_eq(log.level, 6);
    ck_assert_uint_eq(log.max_size_per_thread, 3 * STRESS_MOCK_CHUNK);
    ck_assert_uint_eq(log.max_size_total, 64 * STRESS_MOCK_CHUNK);
    ck_assert_uint_eq(log.chunk_count, THREADS);
    ck_assert_uint_eq(log.ticks_per_second, STRESS_MOCK_FREQUENCY);
    ck_assert_int_eq(log.start_time_ns, _i & 1 ? INT64_C(1700000000000000000) : 0);
    ck_assert_int_eq(visit(&f), CDACQ_OK);
    ck_assert_uint_eq(f.count, 0);
    end(&f);
}
END_TEST

START_TEST(names)
{
    struct fixture f;
    char expected[160];
    size_t count;
    build(&f, _i, false);
    const struct mock_function *functions = mock_functions(f.sample.mock, &count), *method = functions;
    while (method->code != MOCK_CODE_JIT || !method->method_desc || method->funclet ||
           method->method_desc == f.sample.dynamic_method_desc)
        method++;
    const struct mock_function found = *method;
    put(&f, 1, 5, "method %pM", found.method_desc);
    begin(&f);
    snprintf(expected, sizeof expected, "method 0x%llx (%s)", (unsigned long long)found.method_desc,
             sample_name(&f.sample, &found));
    check_text(&f, expected);
    end(&f);

    build(&f, _i, false);
    put(&f, 1, 5, "at %pK", found.begin + 1);
    begin(&f);
    snprintf(expected, sizeof expected, "at 0x%llx (%s+0x1)", (unsigned long long)found.begin + 1,
             sample_name(&f.sample, &found));
    check_text(&f, expected);
    end(&f);

    build(&f, _i, false);
    put(&f, 1, 5, "%pT", 0x10);
    begin(&f);
    check_text(&f, "0x10");
    end(&f);
}
END_TEST

/* The garbage collector marks MethodTables in the lowest bits. */
START_TEST(types)
{
    for (unsigned mark = 0; mark < 3; mark++) {
        struct fixture f;
        char expected[160];
        build(&f, _i, false);
        uint64_t chunk = f.sample.method_descs[0][0] - mock_size_of(f.sample.mock, "MethodDescChunk");
        uint64_t table = mock_get(f.sample.mock, chunk, "MethodDescChunk.MethodTable");
        put(&f, 2, 5, "MT = %pT\n", table | mark);
        begin(&f);
        snprintf(expected, sizeof expected, "MT = 0x%llx (N.T)", (unsigned long long)(table | mark));
        check_text(&f, expected);
        end(&f);
    }
}
END_TEST

/* Each is one element, which says what and why, and the messages beside it are visited. */
START_TEST(what_cannot_be_read)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        static const char *const said[] = {"no module of the log has its format string",
                                           "the list of logs of threads has a cycle", "ThreadStressLog.Next: no memory",
                                           "the signature of a StressLogChunk"};
        struct fixture f;
        build(&f, _i, kind & 1);
        struct mock *mock = f.sample.mock;
        for (unsigned i = 0; i < THREADS; i++)
            put(&f, i, 10 + i, "number %d", i);
        uint64_t last = f.threads[0]; /* of the list, which begins with the newest */
        if (kind == 0)
            mock_write_uint(mock, f.stress.messages.items[2].address, 8,
                            1 | UINT64_C(1) << 32 | UINT64_C(0x3ffffff) << 38);
        else if (kind == 1)
            mock_set(mock, last, "ThreadStressLog.Next", f.threads[THREADS - 1]);
        else if (kind == 2)
            mock_set(mock, last, "ThreadStressLog.Next", 0x10);
        else
            mock_set(mock, mock_get(mock, f.threads[2], "ThreadStressLog.CurrentWriteChunk"), "StressLogChunk.Sig2", 0);
        begin(&f);
        enum cdacq_status status = visit(&f);
        ck_assert_int_eq(status, CDACQ_OK);
        ck_assert_uint_eq(f.problems, 1);
        ck_assert_uint_eq(f.count, kind == 0 || kind == 3 ? THREADS : THREADS + 1);
        size_t at = 0;
        while (!f.messages[at].problem)
            at++;
        ck_assert_msg(strstr(f.texts[at], said[kind]) != NULL, "%s", f.texts[at]);
        if (kind == 0 || kind == 3)
            ck_assert_uint_eq(f.messages[at].tid, 102);
        end(&f);
    }
}
END_TEST

START_TEST(no_log)
{
    static const char *const versions[] = {NULL, "9", "2"};
    static const char *const said[] = {"does not publish its stress log", "publishes StressLog 9",
                                       "lacks what StressLog needs: ThreadStressLog.CurrentPtr"};
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        struct fixture f;
        struct cdacq_stress_log log = {.size = sizeof log};
        build(&f, _i, false);
        mock_contract(f.sample.mock, "StressLog", versions[i]);
        if (i == 2)
            mock_hide(f.sample.mock, "ThreadStressLog.CurrentPtr");
        begin(&f);
        ck_assert_int_eq(cdacq_session_get_stress_log(f.session, &log, &error), CDACQ_ERR_CONTRACT);
        ck_assert_msg(strstr(error.message, said[i]) != NULL, "%s", error.message);
        ck_assert_int_eq(visit(&f), CDACQ_ERR_CONTRACT);
        end(&f);
    }
    struct fixture f;
    struct cdacq_stress_log log = {.size = sizeof log, .is_on = true, .level = 7};
    build(&f, _i, false);
    put(&f, 0, 1, "number %d", 1);
    mock_set(f.sample.mock, f.stress.log, "StressLog.MaxSizePerThread", 0);
    mock_set(f.sample.mock, f.stress.log, "StressLog.Logs", 0);
    begin(&f);
    ck_assert_int_eq(cdacq_session_get_stress_log(f.session, &log, &error), CDACQ_OK);
    ck_assert(!log.is_on);
    ck_assert_uint_eq(log.level, 0);
    ck_assert_int_eq(visit(&f), CDACQ_OK);
    ck_assert_uint_eq(f.count, 0);
    end(&f);
}
END_TEST

START_TEST(wrong_arguments)
{
    struct fixture f;
    struct cdacq_stress_log log = {0};
    build(&f, _i, false);
    begin(&f);
    ck_assert_int_eq(cdacq_session_get_stress_log(f.session, &log, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_stress_log(f.session, NULL, NULL), CDACQ_ERR_ARGUMENT);
    log.size = sizeof log;
    ck_assert_int_eq(cdacq_session_get_stress_log(NULL, &log, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_stress_log(f.session, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_stress_log(NULL, note, &f, &error), CDACQ_ERR_ARGUMENT);
    end(&f);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("stress_messages");
    TCase *t = tcase_create("stress_messages");
    tcase_add_loop_test(t, in_the_order_of_time, 0, ARCH_COUNT);
    tcase_add_loop_test(t, the_log_as_a_whole, 0, ARCH_COUNT);
    tcase_add_loop_test(t, names, 0, ARCH_COUNT);
    tcase_add_loop_test(t, types, 0, ARCH_COUNT);
    tcase_add_loop_test(t, what_cannot_be_read, 0, ARCH_COUNT);
    tcase_add_loop_test(t, no_log, 0, ARCH_COUNT);
    tcase_add_loop_test(t, wrong_arguments, 0, 1);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
