/*
 * report_waiting.c: what a thread waits for that no other thread of the process is known to hold up: input, another
 * process, a socket, an event, a time. Whether that is wrong, only the program's author knows. Of all threads that run
 * code of the program, one is chosen: a worker of the thread pool, which is to do its work and return, before the main
 * thread, and that before others; a wait without end before one with a timeout.
 */
#include <inttypes.h>
#include <string.h>

#include "src/cli/report/other_process.h"
#include "src/cli/report/report_waiting.h"
#include "src/cli/report/signature_names.h"
#include "util/base.h"
#include "util/text.h"

/* ---- Words for programs ---- */

/* What the last task of a chain stands for, by its type. */
struct task_meaning {
    const char *part; /* of the name of the type */
    const char *word, *text;
};

static const struct task_meaning *task_meaning(const char *type)
{
    static const struct task_meaning rows[] = {
        {"System.Threading.SemaphoreSlim", "semaphore", "a SemaphoreSlim"},
        {"DelayPromise", "timer", "Task.Delay"},
        {"System.Threading.PeriodicTimer", "timer", "a PeriodicTimer"},
        {"System.Threading.Channels.", "channel", "a channel"},
        {"System.Net.Sockets.", "socket", "a socket"},
        {"WhenAllPromise", "tasks", "several tasks (Task.WhenAll)"},
        {"UnwrapPromise", "tasks", "an async method that Task.Run started"},
        {"CompleteOnInvokePromise", "tasks", "one of several tasks (Task.WhenAny)"},
        {"TwoTaskWhenAnyPromise", "tasks", "one of several tasks (Task.WhenAny)"},
    };
    for (size_t i = 0; type && i < ARRAY_SIZE(rows); i++)
        if (strstr(type, rows[i].part))
            return &rows[i];
    return NULL;
}

static const char *last_type(const struct cdacq_wait *wait)
{
    return wait->task_count ? wait->tasks[wait->task_count - 1].type : wait->type;
}

static const char *task_word(const struct cdacq_wait *wait)
{
    const struct task_meaning *meaning = task_meaning(last_type(wait));
    return meaning ? meaning->word : "task";
}

static const char *wait_word(const struct cdacq_wait *wait)
{
    static const char *const words[] = {
        [CDACQ_WAIT_ENTER] = "lock",    [CDACQ_WAIT_PULSE] = "pulse",           [CDACQ_WAIT_TASKS] = "tasks",
        [CDACQ_WAIT_EVENT] = "event",   [CDACQ_WAIT_SEMAPHORE] = "semaphore",   [CDACQ_WAIT_JOIN] = "thread",
        [CDACQ_WAIT_HANDLE] = "handle", [CDACQ_WAIT_FOREGROUND] = "foreground", [CDACQ_WAIT_INITIALIZER] = "lock",
        [CDACQ_WAIT_SLEEP] = "sleep",   [CDACQ_WAIT_FINALIZERS] = "finalizer",  [CDACQ_WAIT_PROCESS] = "process",
    };
    return wait->kind == CDACQ_WAIT_TASK ? task_word(wait) : words[wait->kind];
}

static const char *file_word(const struct cdacq_system_call *call, bool is_console)
{
    if (is_console || string_begins_with(call->file, "/dev/pts/") || string_begins_with(call->file, "/dev/tty"))
        return "console";
    if (string_begins_with(call->file, "pipe:"))
        return "pipe";
    if (string_begins_with(call->file, "socket:"))
        return "socket";
    return call->kind == CDACQ_CALL_POLL ? "poll" : call->file ? "file" : "call";
}

static const char *call_word(const struct cdacq_system_call *call, bool is_console)
{
    switch (call->kind) {
    case CDACQ_CALL_READ:
    case CDACQ_CALL_WRITE:
    case CDACQ_CALL_POLL:
        return file_word(call, is_console);
    case CDACQ_CALL_RECEIVE:
    case CDACQ_CALL_SEND:
    case CDACQ_CALL_ACCEPT:
    case CDACQ_CALL_CONNECT:
        return "socket";
    case CDACQ_CALL_LOCK:
        return "file_lock";
    case CDACQ_CALL_CHILD:
        return "process";
    case CDACQ_CALL_SLEEP:
        return "sleep";
    case CDACQ_CALL_FUTEX:
        return "native";
    case CDACQ_CALL_OTHER:
        break;
    }
    return "call";
}

/* ---- The chosen thread ---- */

/* The method of the framework that the innermost method of the program called; NULL: none is known. */
static const struct cdacq_method *called_method(const struct stack *stack, const struct cdacq_method *of_program)
{
    const struct cdacq_method *called = NULL;
    for (size_t i = 0; i < stack->frames.count; i++) {
        const struct stack_frame *frame = stack->frames.items[i].shared;
        if (&frame->method == of_program)
            return called;
        if (frame->frame.kind != CDACQ_FRAME_ASYNC && frame->method.answer == CDACQ_ANSWER_MANAGED &&
            frame->method.name_length)
            called = &frame->method;
    }
    return NULL;
}

/* Whether the framework reads the console for the thread. */
static bool reads_console(const struct stack *stack)
{
    static const char *const types[] = {"System.ConsolePal", "System.IO.StdInReader", "System.IO.ConsoleStream",
                                        "System.Console."};
    for (size_t i = 0; i < stack->frames.count; i++)
        for (size_t k = 0; k < ARRAY_SIZE(types); k++)
            if (string_begins_with(stack->frames.items[i].shared->method.name, types[k]))
                return true;
    return false;
}

/* The innermost awaiting method of the program behind a wait. */
static struct report_place place_of_tasks(const struct report *report, const struct cdacq_wait *wait)
{
    struct report_place place = {.method = NULL};
    for (size_t i = 0; wait && i < wait->task_count; i++) {
        const struct cdacq_task *task = &wait->tasks[i];
        if (task->method && !signature_is_of_framework(task->method, strlen(task->method)))
            place = (struct report_place){.method = task->method, .file = task->file, .line = task->line};
    }
    if (!place.method && wait && wait->task_count) /* the task of Task.Run does not lead to them: the heap does */
        place = report_place_of_awaited(report, wait->tasks[wait->task_count - 1].object);
    return place;
}

static bool is_finalizer(const struct stack_thread *thread)
{
    return thread->name && strcmp(thread->name, ".NET Finalizer") == 0;
}

bool report_may_wait(const struct report *report, const struct stack_thread *thread)
{
    const struct busy_threads *busy = report->busy;
    return thread->mode != CDACQ_MODE_USER && (!busy || !busy->counts_runs || busy_is_still(busy, thread->tid));
}

/* The higher, the more a thread's wait tells. */
static unsigned rank_of(const struct report *report, const struct report_waiting *waiting)
{
    enum { WITHOUT_END = 1, FOREGROUND = 2, MAIN = 4, OF_POOL = 8 };
    const struct stack_thread *thread = waiting->thread;
    const struct cdacq_wait *wait = waiting->wait;
    bool is_bounded = wait ? wait->endless == CDACQ_ENDLESS_NO : waiting->call->kind == CDACQ_CALL_SLEEP;
    return (is_bounded ? 0 : WITHOUT_END) | (thread->is_foreground ? FOREGROUND : 0) |
           (thread->tid == report->process.pid ? MAIN : 0) | (thread->is_of_pool ? OF_POOL : 0);
}

/* What a thread waits for; false if it does not, or runs no code of the program. */
static bool describe(const struct report *report, const struct shown_waits *waits, const struct stacks_cursor *at,
                     struct report_waiting *ret)
{
    const struct cdacq_method *of_program = report_program_method(at->stack);
    const struct cdacq_wait *wait = wait_lines_of(waits, at->thread->tid);
    const struct cdacq_system_call *call = at->thread->call;
    const struct report_place awaiting = place_of_tasks(report, wait);
    if ((!of_program && !awaiting.method) || !report_may_wait(report, at->thread) || (!wait && !call))
        return false;
    *ret = (struct report_waiting){
        .thread = at->thread,
        .wait = wait,
        .call = call,
        .word = wait ? wait_word(wait) : call_word(call, reads_console(at->stack)),
        .place = awaiting.method ? awaiting : report_place_on_stack(at->stack),
        .blocked = awaiting.method ? report_place_on_stack(at->stack) : (struct report_place){.method = NULL},
        .called = of_program ? called_method(at->stack, of_program) : NULL,
    };
    return true;
}

bool report_describe_waiting(const struct report *report, const struct shown_waits *waits, int tid,
                             struct report_waiting *ret)
{
    struct stacks_cursor at;
    return stacks_find_thread(report->all_stacks, tid, &at) && describe(report, waits, &at, ret);
}

bool report_find_waiting(const struct report *report, const struct shown_waits *waits, bool of_finalizer,
                         struct report_waiting *ret)
{
    bool found = false;
    unsigned best = 0;
    for (struct stacks_cursor at = {0}; stacks_next_thread(report->all_stacks, &at);) {
        struct report_waiting waiting;
        if (is_finalizer(at.thread) != of_finalizer || !describe(report, waits, &at, &waiting))
            continue;
        unsigned rank = rank_of(report, &waiting);
        if (!found || rank > best) {
            *ret = waiting;
            best = rank;
        }
        found = true;
    }
    return found;
}

/* ---- Text ---- */

/* What the call uses: "pipe:[12]", or the addresses of a socket. */
static void put_descriptor(struct output *out, const struct cdacq_system_call *call, bool is_console)
{
    bool is_read = call->kind == CDACQ_CALL_READ && !is_console, is_write = call->kind == CDACQ_CALL_WRITE;
    const char *before = is_read ? " from " : is_write ? " to " : ", ";
    if (call->peer)
        output_note_between(out, " connected to ", call->peer, "");
    else if (call->local && call->kind != CDACQ_CALL_CONNECT)
        output_note_between(out, ", ", call->local, "");
    else if (call->file)
        output_note_between(out, before, call->file, "");
    else if (call->descriptor >= 0)
        output_printf(out, "%sdescriptor %d", before, call->descriptor);
}

/* "the lock of the file /srv/lock, which process 12 (flock /srv/lock sh: sleeping) holds" */
static void put_file_lock(struct output *out, const struct report *report, const struct cdacq_system_call *call)
{
    output_literal(out, " for the lock of ");
    if (call->file)
        output_note_between(out, "the file ", call->file, "");
    else
        output_literal(out, "a file");
    output_literal(out, call->holder ? ", held by " : ", which another descriptor or process holds");
    if (call->holder == report->process.pid)
        output_literal(out, "this process itself through another descriptor");
    else if (call->holder)
        other_process_put(out, report, call->holder);
}

static void put_call(struct output *out, const struct report *report, const struct report_waiting *waiting)
{
    static const char *const texts[] = {
        [CDACQ_CALL_OTHER] = " in the kernel",
        [CDACQ_CALL_READ] = " to read",
        [CDACQ_CALL_WRITE] = " to write",
        [CDACQ_CALL_RECEIVE] = " to receive from a socket",
        [CDACQ_CALL_SEND] = " to send to a socket",
        [CDACQ_CALL_ACCEPT] = " for a connection",
        [CDACQ_CALL_CONNECT] = " to connect a socket",
        [CDACQ_CALL_POLL] = " for input or output",
        [CDACQ_CALL_LOCK] = NULL,
        [CDACQ_CALL_CHILD] = " for a process to end",
        [CDACQ_CALL_SLEEP] = " for a time in native code",
        [CDACQ_CALL_FUTEX] = " in native code for another thread",
    };
    const struct cdacq_system_call *call = waiting->call;
    bool is_console = strcmp(waiting->word, "console") == 0;
    if (call->kind == CDACQ_CALL_LOCK) {
        put_file_lock(out, report, call);
    } else {
        output_literal(out, is_console    ? " for input from the console"
                            : call->child ? " for the end of "
                                          : texts[call->kind]);
        if (call->child)
            other_process_put(out, report, call->child);
        put_descriptor(out, call, is_console);
    }
    if (call->name)
        output_text_between(out, " (system call ", call->name, ")");
}

/* A task by its method, as the names of types that the compiler forms say little. */
static void put_task(struct output *out, const struct report *report, const struct cdacq_wait *wait)
{
    const char *method = wait->task_count ? wait->tasks[0].method : NULL;
    const struct task_meaning *meaning = wait->task_count ? task_meaning(wait->tasks[0].type) : NULL;
    if (!method && !meaning) {
        report_put_wait(out, report, wait);
        return;
    }
    uint32_t others = wait->task_count > 1 ? wait->tasks[0].others : 0;
    if (!method && others) /* one follows */
        output_printf(out, " for %s%" PRIu32 " tasks (Task.WhenAll)", others < TASK_OTHERS_MAX ? "" : "at least ",
                      others + 1);
    else
        output_note_between(out, method ? " for the task of " : " for ", method ? method : meaning->text, "");
    if (report_wait_is_bounded(wait))
        output_printf(out, " (at most %d ms)", wait->timeout_ms);
}

/* What the chain of tasks behind a wait ends with. */
static void put_last_task(struct output *out, const struct cdacq_wait *wait)
{
    const struct cdacq_task *last = &wait->tasks[wait->task_count - 1];
    const struct task_meaning *meaning = task_meaning(last->type);
    if (wait->task_count > 1)
        output_note_between(out, "; what it awaits in the end is ",
                            meaning      ? meaning->text
                            : last->type ? last->type
                                         : wait_lines_task(last),
                            "");
    if (last->others)
        output_printf(out, ", and %s%" PRIu32 " more", last->others < TASK_OTHERS_MAX ? "" : "at least ", last->others);
}

/* The public method that a method of the framework is a part of: the JIT compiler inlines the public one. */
static void put_called(struct output *out, const struct cdacq_method *called)
{
    static const struct {
        const char *inner, *name;
    } rows[] = {
        {"System.Runtime.CompilerServices.TaskAwaiter.HandleNonSuccessAndDebuggerNotification",
         "System.Runtime.CompilerServices.TaskAwaiter.GetResult"},
        {"System.Threading.WaitHandle.WaitOneNoCheck", "System.Threading.WaitHandle.WaitOne"},
    };
    output_literal(out, ", in a call of ");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (string_begins_with(called->name, rows[i].inner)) {
            output_literal(out, rows[i].name);
            return;
        }
    signature_write_name(out, called->name, called->name_length);
}

void report_put_waiting(struct output *out, const struct report *report, const struct report_waiting *waiting)
{
    output_literal(out, " waits");
    if (waiting->wait && waiting->wait->kind == CDACQ_WAIT_TASK)
        put_task(out, report, waiting->wait);
    else if (waiting->wait)
        report_put_wait(out, report, waiting->wait);
    else
        put_call(out, report, waiting);
    if (waiting->called)
        put_called(out, waiting->called);
    if (waiting->wait && waiting->wait->task_count)
        put_last_task(out, waiting->wait);
}
