/*
 * The stack that a caller's thread needs (docs/limits.md): the main calls in a thread that has no more.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cdacq.h"
#include "cdacq/lock.h"
#include "cdacq/perf.h"
#include "tests/support/check_main.h"
#include "util/base.h"

#ifdef CDACQ_SANITIZED
enum { STACK = 4 * 256 * 1024 }; /* sanitizers put room around each variable */
#else
enum { STACK = 256 * 1024 };
#endif

enum { IPS = 4096 };

static const char *const cores[] = {"crash-net8-x64", "crash-net10-x64", "net10-x64", "net10-hot-cold-x64"};

struct asked {
    struct cdacq_session *session;
    struct cdacq_wait_graph *graph;
    uint64_t ips[IPS];
    struct cdacq_method methods[IPS];
    size_t count, frames, stack_methods;
};

static struct asked asked; /* not on the stack */

static int take_method(const struct cdacq_method *method, void *context)
{
    struct asked *to = context;
    if (to->count < IPS)
        to->ips[to->count++] = method->code_start + 1;
    return 0;
}

static int take_frame(const struct cdacq_frame *frame, void *context)
{
    struct asked *to = context;
    to->frames++;
    to->stack_methods += frame->method != NULL;
    cdacq_wait_graph_add_frame(to->graph, frame);
    return 0;
}

static int take_thread(const struct cdacq_thread *thread, void *context)
{
    struct asked *to = context;
    cdacq_wait_graph_add_thread(to->graph, thread);
    (void)cdacq_session_visit_frames(to->session, thread, NULL, CDACQ_FRAMES_ASYNC, take_frame, context, NULL);
    return 0;
}

static int take_file(const struct cdacq_code_file *file, void *context)
{
    (void)file;
    (void)context;
    return 0;
}

static void look_up(struct asked *to)
{
    ck_assert_int_ge(
        cdacq_session_visit_methods(to->session, CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL, take_method, to, NULL), 0);
    ck_assert_uint_gt(to->count, 0);
    for (size_t i = 0; i < to->count; i++) {
        struct cdacq_source source = {.size = sizeof source};
        to->methods[0].size = sizeof to->methods[0];
        (void)cdacq_session_method_at(to->session, to->ips[i], &to->methods[0], NULL);
        (void)cdacq_session_source_at(to->session, to->ips[i], &source, NULL);
    }
    to->methods[0].size = sizeof to->methods[0];
    ck_assert_int_ge(cdacq_session_methods_at(to->session, to->ips, to->count, to->methods, NULL), 0);
}

static void *ask(void *path)
{
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_RECORD};
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_target *target;
    struct cdacq_error err;
    ck_assert_msg(cdacq_target_open_core(path, &options, &target, &err) >= 0, "%s", err.message);
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_int_ge(cdacq_session_create(target, &asked.session, NULL), 0);
    look_up(&asked);
    ck_assert_int_ge(cdacq_wait_graph_create(asked.session, &asked.graph, NULL), 0);
    (void)cdacq_session_visit_threads(asked.session, take_thread, &asked, NULL);
    (void)cdacq_wait_graph_complete(asked.graph, NULL);
    cdacq_wait_graph_destroy(asked.graph);
    (void)cdacq_session_visit_code_files(asked.session, take_file, NULL, NULL);
    ck_assert_msg(cdacq_target_write_snapshot(target, "/dev/null", NULL, &err) >= 0 || err.message[0], "no message");
    cdacq_session_destroy(asked.session);
    cdacq_target_close(target);
    return NULL;
}

START_TEST(main_calls_fit)
{
    char path[512];
    const char *fixtures = getenv("CDACQ_FIXTURES");
    pthread_attr_t attributes;
    pthread_t thread;
    snprintf(path, sizeof path, "%s/%s/core", fixtures ? fixtures : "tests/fixtures", cores[_i]);
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, ask, path), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    if (strncmp(cores[_i], "crash", strlen("crash")) == 0)
        ck_assert_uint_gt(asked.stack_methods, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("small_stack");
    TCase *tc = tcase_create("small_stack");
    tcase_add_loop_test(tc, main_calls_fit, 0, ARRAY_SIZE(cores));
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
