/*
 * Threads: eight of them share the targets of bundled cores, each with a session of its own, and ask everything at
 * once; open and close the same core at once; and reach a bound on work together. What they are told is what one thread
 * is told. The preset `tsan` runs this program under ThreadSanitizer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdacq.h"
#include "cdacq/lock.h"
#include "cdacq/perf.h"
#include "tests/support/check_main.h"
#include "util/base.h"
#include "util/hash_table.h"

enum { THREADS = 8, IPS = 128, BATCH = 64, PARTS = 5 };

static const char *const cores[] = {"crash-net10-x64", "net8-x64"};

static const char *core_path(int index)
{
    static char path[512];
    const char *fixtures = getenv("CDACQ_FIXTURES");
    snprintf(path, sizeof path, "%s/%s/core", fixtures ? fixtures : "tests/fixtures", cores[index]);
    return path;
}

/* ---- What a thread asks ---- */

struct asker {
    pthread_t thread;
    pthread_barrier_t *barrier; /* NULL: begin at once */
    const char *path;           /* of a core to open; or */
    struct cdacq_target *target;
    const uint64_t *ips;
    size_t count;
    unsigned first, part_count; /* which parts, so that threads do different things at once */
    uint64_t parts[PARTS];      /* 0: not asked */
    enum cdacq_status status;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return hash_u64(value, hash * 31 + 7);
}

static uint64_t mix_method(uint64_t hash, const struct cdacq_method *method)
{
    hash = mix(mix(mix(hash, method->answer), method->code_start), method->offset);
    hash = mix(mix(hash, method->line), (uint64_t)method->il_offset);
    if (method->name)
        hash = hash_string(method->name, hash);
    return hash;
}

static uint64_t ask_in_batches(struct cdacq_session *session, const struct asker *asker)
{
    struct cdacq_method methods[BATCH];
    uint64_t hash = 1;
    for (size_t i = 0; i < asker->count; i += BATCH) {
        size_t n = MIN(asker->count - i, (size_t)BATCH);
        methods[0].size = sizeof methods[0];
        hash = mix(hash, (uint64_t)cdacq_session_methods_at(session, asker->ips + i, n, methods, NULL));
        for (size_t k = 0; k < n; k++)
            hash = mix_method(hash, &methods[k]);
    }
    return hash;
}

static uint64_t ask_one_by_one(struct cdacq_session *session, const struct asker *asker)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < asker->count; i++) {
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_source source = {.size = sizeof source};
        hash = mix(hash, (uint64_t)cdacq_session_method_at(session, asker->ips[i], &method, NULL));
        hash = mix_method(hash, &method);
        hash = mix(hash, (uint64_t)cdacq_session_source_at(session, asker->ips[i], &source, NULL));
        hash = mix(hash, source.line);
    }
    return hash;
}

static int mix_visited(const struct cdacq_method *method, void *context)
{
    uint64_t *hash = context;
    *hash = mix_method(*hash, method);
    return 0;
}

static uint64_t list_methods(struct cdacq_session *session, const struct asker *asker)
{
    uint64_t hash = 1;
    (void)asker;
    return mix(cdacq_session_visit_methods(session, CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL, mix_visited, &hash, NULL) <
                   0,
               hash);
}

struct walk {
    struct cdacq_session *session;
    struct cdacq_wait_graph *graph;
    uint64_t hash;
};

static int mix_frame(const struct cdacq_frame *frame, void *context)
{
    struct walk *walk = context;
    walk->hash = mix(mix(walk->hash, frame->pc), frame->sp);
    if (frame->method)
        walk->hash = mix_method(walk->hash, frame->method);
    cdacq_wait_graph_add_frame(walk->graph, frame);
    return 0;
}

static int walk_thread(const struct cdacq_thread *thread, void *context)
{
    struct walk *walk = context;
    cdacq_wait_graph_add_thread(walk->graph, thread);
    walk->hash =
        mix(walk->hash, (uint64_t)cdacq_session_visit_frames(walk->session, thread, NULL, 0, mix_frame, walk, NULL));
    return 0;
}

static uint64_t walk_stacks(struct cdacq_session *session, const struct asker *asker)
{
    struct walk walk = {.session = session, .hash = 1};
    (void)asker;
    (void)cdacq_wait_graph_create(session, &walk.graph, NULL);
    walk.hash = mix(walk.hash, (uint64_t)cdacq_session_visit_threads(session, walk_thread, &walk, NULL));
    if (walk.graph)
        walk.hash = mix(walk.hash, (uint64_t)cdacq_wait_graph_complete(walk.graph, NULL));
    cdacq_wait_graph_destroy(walk.graph);
    return walk.hash;
}

static int mix_file(const struct cdacq_code_file *file, void *context)
{
    uint64_t *hash = context;
    *hash = mix(hash_string(file->path ? file->path : "", *hash), file->has_code);
    return 0;
}

static uint64_t list_files(struct cdacq_session *session, const struct asker *asker)
{
    uint64_t hash = 1;
    (void)asker;
    return mix(cdacq_session_visit_code_files(session, mix_file, &hash, NULL) < 0, hash);
}

static void ask_session(struct asker *asker, struct cdacq_target *target)
{
    static uint64_t (*const parts[PARTS])(struct cdacq_session *, const struct asker *) = {
        ask_in_batches, ask_one_by_one, list_methods, walk_stacks, list_files};
    struct cdacq_session *session;
    asker->status = cdacq_session_create(target, &session, NULL);
    if (asker->status < 0)
        return;
    for (unsigned i = 0; i < asker->part_count; i++) {
        unsigned part = (asker->first + i) % PARTS;
        asker->parts[part] = parts[part](session, asker);
    }
    cdacq_session_destroy(session);
}

/* Check's asserts work only on its main thread. */
static void *ask(void *context)
{
    struct asker *asker = context;
    struct cdacq_target *target = asker->target;
    if (asker->barrier)
        pthread_barrier_wait(asker->barrier);
    if (asker->path)
        asker->status = cdacq_target_open_core(asker->path, NULL, &target, NULL);
    if (target)
        ask_session(asker, target);
    if (asker->path)
        cdacq_target_close(target);
    return NULL;
}

/* Lets all threads ask the same, and checks the answers against those of one. `alone` is NULL if they may differ. */
static void ask_all(const struct asker *model, const struct asker *alone)
{
    struct asker askers[THREADS];
    pthread_barrier_t barrier;
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        askers[i] = *model;
        askers[i].barrier = &barrier;
        askers[i].first = i;
        askers[i].part_count = 2;
        ck_assert_int_eq(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(askers[i].thread, NULL);
        ck_assert_int_eq(askers[i].status, CDACQ_OK);
        for (unsigned k = 0; alone && k < ARRAY_SIZE(alone->parts); k++)
            ck_assert_msg(!askers[i].parts[k] || askers[i].parts[k] == alone->parts[k], "thread %u, part %u", i, k);
    }
    pthread_barrier_destroy(&barrier);
}

/* ---- Addresses ---- */

struct starts {
    uint64_t ips[IPS];
    size_t count;
};

static int take_start(const struct cdacq_method *method, void *context)
{
    struct starts *starts = context;
    if (method->answer == CDACQ_ANSWER_MANAGED)
        starts->ips[starts->count++] = method->code_start + method->code_size / 2;
    return starts->count == IPS;
}

static struct starts list_starts(struct cdacq_target *target)
{
    struct starts starts = {.count = 0};
    struct cdacq_session *session;
    ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    (void)cdacq_session_visit_methods(session, 0, take_start, &starts, NULL);
    cdacq_session_destroy(session);
    ck_assert_uint_gt(starts.count, 0);
    return starts;
}

static struct cdacq_target *open_core(int index, const struct cdacq_options *options)
{
    struct cdacq_target *target;
    struct cdacq_error error;
    if (cdacq_target_open_core(core_path(index), options, &target, &error) < 0)
        ck_abort_msg("%s", error.message);
    return target;
}

/* ---- Tests ---- */

START_TEST(threads_share_a_core)
{
    int core = _i > 1;
    const struct cdacq_options options = {.size = sizeof options, .flags = _i > 0 ? CDACQ_OPEN_PREAD : 0};
    struct cdacq_target *target = open_core(core, &options);
    struct starts starts = list_starts(target);
    struct asker alone = {.target = target, .ips = starts.ips, .count = starts.count, .part_count = PARTS};
    ask(&alone);
    cdacq_target_close(target);
    target = open_core(core, &options); /* nothing is cached */
    ask_all(&(struct asker){.target = target, .ips = starts.ips, .count = starts.count}, &alone);
    cdacq_target_close(target);
}
END_TEST

START_TEST(threads_open_a_core_at_once)
{
    struct cdacq_target *target = open_core(_i, NULL);
    struct starts starts = list_starts(target);
    cdacq_target_close(target);
    struct asker model = {.path = core_path(_i), .ips = starts.ips, .count = starts.count}, alone = model;
    alone.part_count = PARTS;
    ask(&alone);
    ask_all(&model, &alone);
}
END_TEST

START_TEST(threads_reach_a_bound_together)
{
    char text[160];
    struct cdacq_target *target = open_core(_i, NULL);
    struct starts starts = list_starts(target);
    cdacq_target_close(target);
    const struct cdacq_options options = {.size = sizeof options, .work_max = 30000, .memory_max = 8 << 20};
    target = open_core(_i, &options);
    ask_all(&(struct asker){.target = target, .ips = starts.ips, .count = starts.count}, NULL);
    ck_assert(cdacq_target_bound_reached(target, text, sizeof text));
    cdacq_target_close(target);
}
END_TEST

static Suite *sharing_suite(void)
{
    Suite *suite = suite_create("sharing");
    TCase *tests = tcase_create("threads");
    tcase_add_loop_test(tests, threads_share_a_core, 0, rounds(3, 1));
    tcase_add_loop_test(tests, threads_open_a_core_at_once, 1, rounds(2, 1));
    tcase_add_loop_test(tests, threads_reach_a_bound_together, 1, 2);
    suite_add_tcase(suite, tests);
    return suite;
}

CHECK_MAIN(sharing_suite)
