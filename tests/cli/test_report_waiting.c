/*
 * test_report_waiting.c: which thread of a process is said to wait when nothing is known to be wrong, and for what. The
 * stacks, waits and system calls are built by hand.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tests/support/given_waits.h"

#include "src/cli/report/report_waiting.c"
#include "src/cli/report/wait_lines.c"
#include "tests/support/check_main.h"

enum { THREADS = 4, FRAMES = 3 };

static char written[1024];

static uint64_t awaited; /* the task that a chain of the heap completes */

struct report_place report_place_of_awaited(const struct report *report, uint64_t object)
{
    (void)report;
    return (struct report_place){.method = object && object == awaited ? "Demo.Await()" : NULL};
}

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void output_literal(struct output *out, const char *text)
{
    (void)out;
    strncat(written, text, sizeof written - strlen(written) - 1);
}

void output_text_between(struct output *out, const char *before, const char *text, const char *after)
{
    output_literal(out, before);
    output_literal(out, text);
    output_literal(out, after);
}

void output_note_between(struct output *out, const char *before, const char *text, const char *after)
{
    output_text_between(out, before, text, after);
}

void output_printf(struct output *out, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    output_literal(out, text);
}

void output_note(struct output *out, const char *text)
{
    output_literal(out, text);
}

void report_put_wait(struct output *out, const struct report *report, const struct cdacq_wait *wait)
{
    (void)report, (void)wait;
    output_literal(out, " for a lock");
}

void other_process_put(struct output *out, const struct report *report, int pid)
{
    (void)report;
    output_printf(out, "process %d", pid);
}

void signature_write_name(struct output *out, const char *name, size_t length)
{
    (void)length;
    output_literal(out, name);
}

bool signature_is_of_framework(const char *name, size_t length)
{
    return length > 7 && memcmp(name, "System.", 7) == 0;
}

const struct cdacq_method *report_program_method(const struct stack *stack)
{
    for (size_t i = 0; i < stack->frames.count; i++) {
        const struct cdacq_method *method = &stack->frames.items[i].shared->method;
        if (method->name && strncmp(method->name, "Demo.", 5) == 0)
            return method;
    }
    return NULL;
}

struct report_place report_place_on_stack(const struct stack *stack)
{
    const struct cdacq_method *method = report_program_method(stack);
    return (struct report_place){.method = method ? method->name : NULL};
}

/* The thread 9 ran while it was measured. */
bool busy_is_still(const struct busy_threads *busy, int tid)
{
    (void)busy;
    return tid != 9;
}

static struct stack stacks[THREADS], *pointers[THREADS];
static struct stack_thread threads[THREADS];
static struct stack_frame frames[THREADS][FRAMES];
static struct kept_frame kept[THREADS][FRAMES];
static struct report report;
static struct report_waiting found;

static void setup(void)
{
    static const struct stacks none;
    memset(stacks, 0, sizeof stacks);
    memset(threads, 0, sizeof threads);
    memset(frames, 0, sizeof frames);
    static struct stacks all;
    all = none;
    all.list = (struct stack_list){pointers, 0, THREADS};
    report = (struct report){.all_stacks = &all, .stacks.list = {pointers, 0, THREADS}, .process.pid = 1};
    written[0] = '\0';
    given_count = 0;
}

/* Adds a thread with a stack; names may be NULL. */
static struct stack_thread *add_thread(int tid, const struct cdacq_system_call *call, const char *inner,
                                       const char *called, const char *outer)
{
    struct stacks *all = (struct stacks *)report.all_stacks;
    size_t i = all->list.count++;
    const char *const names[FRAMES] = {inner, called, outer};
    for (size_t k = 0; k < FRAMES; k++) {
        struct cdacq_method *method = &frames[i][k].method;
        *method = (struct cdacq_method){.answer = names[k] ? CDACQ_ANSWER_MANAGED : CDACQ_ANSWER_NONE,
                                        .name = names[k],
                                        .name_length = names[k] ? strlen(names[k]) : 0};
        kept[i][k].shared = &frames[i][k];
    }
    threads[i] = (struct stack_thread){.tid = tid, .call = call, .mode = CDACQ_MODE_KERNEL};
    stacks[i].frames = (struct stack_frames){kept[i], FRAMES, FRAMES};
    stacks[i].threads = (struct stack_threads){&threads[i], 1, 1};
    pointers[i] = &stacks[i];
    return &threads[i];
}

static bool find(bool of_finalizer)
{
    struct shown_waits waits;
    wait_lines_collect(NULL, &waits);
    bool is_found = report_find_waiting(&report, &waits, of_finalizer, &found);
    wait_lines_release(&waits);
    return is_found;
}

static const struct cdacq_system_call call_read = {.kind = CDACQ_CALL_READ, .descriptor = 3, .file = "pipe:[12]"},
                                      call_sleep = {.kind = CDACQ_CALL_SLEEP, .descriptor = -1};

/* The word and the text of each system call. */
START_TEST(calls)
{
    static const struct {
        struct cdacq_system_call call;
        const char *word, *text;
    } rows[] = {
        {{.kind = CDACQ_CALL_READ, .descriptor = 3, .file = "pipe:[12]"}, "pipe", " waits to read from pipe:[12]"},
        {{.kind = CDACQ_CALL_READ, .descriptor = 0, .file = "/dev/pts/1"},
         "console",
         " waits for input from the console, /dev/pts/1"},
        {{.kind = CDACQ_CALL_READ, .descriptor = 4, .file = "/srv/data"}, "file", " waits to read from /srv/data"},
        {{.kind = CDACQ_CALL_WRITE, .descriptor = 4, .file = "socket:[9]"}, "socket", " waits to write to socket:[9]"},
        {{.kind = CDACQ_CALL_READ, .descriptor = 4}, "call", " waits to read from descriptor 4"}, /* of a core */
        {{.kind = CDACQ_CALL_POLL, .descriptor = -1}, "poll", " waits for input or output"},
        {{.kind = CDACQ_CALL_RECEIVE, .descriptor = 5, .file = "socket:[9]", .local = "1.2.3.4:5", .peer = "6.7.8.9:1"},
         "socket",
         " waits to receive from a socket connected to 6.7.8.9:1"},
        {{.kind = CDACQ_CALL_ACCEPT, .descriptor = 5, .file = "socket:[9]", .local = "1.2.3.4:5"},
         "socket",
         " waits for a connection, 1.2.3.4:5"},
        {{.kind = CDACQ_CALL_CONNECT, .descriptor = 5, .file = "socket:[9]", .local = "1.2.3.4:5"},
         "socket",
         " waits to connect a socket, socket:[9]"},
        {{.kind = CDACQ_CALL_SEND, .descriptor = 5}, "socket", " waits to send to a socket, descriptor 5"},
        {{.kind = CDACQ_CALL_CHILD, .descriptor = -1, .child = 77}, "process", " waits for the end of process 77"},
        {{.kind = CDACQ_CALL_CHILD, .descriptor = -1}, "process", " waits for a process to end"},
        {{.kind = CDACQ_CALL_LOCK, .descriptor = 6, .file = "/srv/lock"},
         "file_lock",
         " waits for the lock of the file /srv/lock, which another descriptor or process holds"},
        {{.kind = CDACQ_CALL_LOCK, .descriptor = 6, .file = "/srv/lock", .holder = 78},
         "file_lock",
         " waits for the lock of the file /srv/lock, held by process 78"},
        {{.kind = CDACQ_CALL_LOCK, .descriptor = 6, .file = "/srv/lock", .holder = 1},
         "file_lock",
         " waits for the lock of the file /srv/lock, held by this process itself through another descriptor"},
        {{.kind = CDACQ_CALL_SLEEP, .descriptor = -1, .name = "nanosleep"},
         "sleep",
         " waits for a time in native code (system call nanosleep)"},
        {{.kind = CDACQ_CALL_FUTEX, .descriptor = -1}, "native", " waits in native code for another thread"},
        {{.kind = CDACQ_CALL_OTHER, .descriptor = -1}, "call", " waits in the kernel"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        setup();
        add_thread(1, &rows[i].call, NULL, NULL, "Demo.Main()");
        ck_assert(find(false));
        ck_assert_str_eq(found.word, rows[i].word);
        report_put_waiting(NULL, &report, &found);
        ck_assert_str_eq(written, rows[i].text);
    }
}
END_TEST

/* A pipe or a file that the framework reads for the console is the console. */
START_TEST(console)
{
    add_thread(1, &call_read, "Interop.Read()", "System.IO.StdInReader.ReadLine()", "Demo.Main()");
    ck_assert(find(false));
    ck_assert_str_eq(found.word, "console");
    ck_assert_str_eq(found.place.method, "Demo.Main()");
    ck_assert_str_eq(found.called->name, "System.IO.StdInReader.ReadLine()");
    report_put_waiting(NULL, &report, &found);
    ck_assert_str_eq(written, " waits for input from the console, pipe:[12], in a call of "
                              "System.IO.StdInReader.ReadLine()");
}
END_TEST

/* A part of a public method stands for that one. */
START_TEST(called)
{
    struct cdacq_method method = {.name = "System.Threading.WaitHandle.WaitOneNoCheck(int)", .name_length = 47};
    const struct report_waiting waiting = {.call = &call_read, .word = "pipe", .called = &method};
    report_put_waiting(NULL, &report, &waiting);
    ck_assert_str_eq(written, " waits to read from pipe:[12], in a call of System.Threading.WaitHandle.WaitOne");
}
END_TEST

/* Only threads that run code of the program count, and only those that may be waiting. */
START_TEST(who_waits)
{
    static struct busy_threads busy = {.measured = true, .counts_runs = true};
    add_thread(1, &call_read, "System.Read()", NULL, NULL);
    ck_assert(!find(false));
    struct stack_thread *thread = add_thread(9, &call_read, NULL, NULL, "Demo.Main()");
    ck_assert(find(false));
    ck_assert_int_eq(found.thread->tid, 9);
    report.busy = &busy; /* it ran meanwhile */
    ck_assert(!find(false));
    busy.counts_runs = false;
    ck_assert(find(false));
    thread->mode = CDACQ_MODE_USER;
    ck_assert(!find(false));
    thread->mode = CDACQ_MODE_KERNEL;
    thread->call = NULL;
    ck_assert(!find(false));
    thread->call = &call_read;
    thread->name = ".NET Finalizer";
    ck_assert(!find(false));
    ck_assert(find(true));
}
END_TEST

/* A worker of the pool before the main thread, that before a foreground thread, and what ends by itself last. */
START_TEST(who_matters_most)
{
    static const struct cdacq_wait bounded[] = {{.tid = 1, .kind = CDACQ_WAIT_EVENT, .endless = CDACQ_ENDLESS_NO}};
    struct stack_thread *other = add_thread(5, &call_sleep, NULL, NULL, "Demo.Rest()");
    ck_assert(find(false) && found.thread->tid == 5);
    add_thread(6, &call_read, NULL, NULL, "Demo.Read()");
    ck_assert(find(false) && found.thread->tid == 6); /* without end */
    other->is_foreground = true;
    ck_assert(find(false) && found.thread->tid == 5);
    given_waits = bounded;
    given_count = 1;
    add_thread(1, NULL, NULL, NULL, "Demo.Main()");
    ck_assert(find(false) && found.thread->tid == 1);
    ck_assert_ptr_eq(found.wait, bounded);
    ck_assert_str_eq(found.word, "event");
    struct stack_thread *worker = add_thread(7, &call_sleep, NULL, NULL, "Demo.Work()");
    worker->is_of_pool = true;
    ck_assert(find(false) && found.thread->tid == 7);
}
END_TEST

/* The last task of a chain says what is waited for, and the innermost method of the program where. */
START_TEST(tasks)
{
    static const struct {
        const char *type, *word;
    } rows[] = {
        {"System.Threading.SemaphoreSlim.TaskNode", "semaphore"},
        {"System.Threading.Tasks.Task.DelayPromise", "timer"},
        {"System.Threading.Channels.AsyncOperation<int>", "channel"},
        {"System.Net.Sockets.SocketAsyncEventArgs", "socket"},
        {"System.Threading.Tasks.Task.WhenAllPromise", "tasks"},
        {"Demo.Own", "task"},
        {NULL, "task"},
    };
    struct cdacq_task chain[] = {
        {.method = "Demo.Outer()", .type = "System.Threading.Tasks.Task"},
        {.method = "Demo.Inner()", .file = "/src/Demo.cs", .line = 12},
        {.method = "System.Inner()"},
    };
    struct cdacq_wait wait = {.tid = 1, .kind = CDACQ_WAIT_TASK, .tasks = chain, .task_count = ARRAY_SIZE(chain)};
    given_waits = &wait;
    given_count = 1;
    add_thread(1, NULL, "System.Threading.Tasks.Task.Wait()", NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        chain[2].type = rows[i].type;
        ck_assert(find(false));
        ck_assert_str_eq(found.word, rows[i].word);
        ck_assert_str_eq(found.place.method, "Demo.Inner()");
        ck_assert_uint_eq(found.place.line, 12);
        ck_assert_ptr_null(found.called);
    }
    chain[2].type = "Demo.Own";
    chain[2].others = 3;
    report_put_waiting(NULL, &report, &found);
    ck_assert_str_eq(written, " waits for the task of Demo.Outer(); what it awaits in the end is Demo.Own, and 3 more");
    written[0] = '\0';
    chain[0].method = NULL;
    chain[2].type = "System.Threading.SemaphoreSlim+TaskNode";
    chain[2].others = 0;
    report_put_waiting(NULL, &report, &found);
    ck_assert_str_eq(written, " waits for a lock; what it awaits in the end is a SemaphoreSlim");
    written[0] = '\0';
    wait.task_count = 1; /* a task that nothing is known of says nothing more */
    report_put_waiting(NULL, &report, &found);
    ck_assert_str_eq(written, " waits for a lock");
    written[0] = '\0';
    chain[0].type = "System.Threading.Tasks.Task+WhenAllPromise";
    chain[0].others = 2;
    report_put_waiting(NULL, &report, &found);
    ck_assert_str_eq(written, " waits for several tasks (Task.WhenAll), and 2 more");
    chain[0].object = 0x1000;
    ck_assert(!find(false));
    awaited = 0x1000; /* the heap has the methods that complete it */
    ck_assert(find(false));
    ck_assert_str_eq(found.place.method, "Demo.Await()");
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("report_waiting");
    TCase *tcase = tcase_create("report_waiting");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, calls);
    tcase_add_test(tcase, console);
    tcase_add_test(tcase, called);
    tcase_add_test(tcase, who_waits);
    tcase_add_test(tcase, who_matters_most);
    tcase_add_test(tcase, tasks);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
