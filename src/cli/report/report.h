/*
 * report.h: what cmd_report.c collects about a target that has died, hangs or is slow, and report_text.c, report_json.c
 * and report_signature.c write; report_waits_text.c and report_waits_json.c write the part about locks and waits, and
 * report_threads.c that about busy threads and suspension, and report_verdict.c the summary of all.
 */
#ifndef CDACQ_CLI_REPORT_REPORT_H
#define CDACQ_CLI_REPORT_REPORT_H

#include <string.h>

#include <signal.h>

#include "src/cli/base/busy_threads.h"
#include "src/cli/base/console.h"
#include "src/cli/base/heap_holder.h"
#include "src/cli/base/next_steps.h"
#include "src/cli/base/stack_writer.h"
#include "src/cli/base/type_sums.h"
#include "util/vector.h"

/* Why the process ended. */
enum report_cause {
    REPORT_ALIVE,     /* it did not end, or nothing says why */
    REPORT_SIGNAL,    /* a signal, from the kernel or from a process */
    REPORT_UNHANDLED, /* an exception that no handler caught */
    REPORT_FATAL,     /* the runtime ended it: FailFast or a fatal error */
};

DEFINE_VECTOR(report_deadlocks, const struct cdacq_deadlock *);
DEFINE_VECTOR(report_tids, int);

/* An exception in whose handling the process ended, or the exception before it in the list was thrown. */
struct report_nested {
    uint64_t object;
    bool shown;   /* an inner exception of what is shown before it */
    bool is_last; /* it is only known that the thread threw it last, and C++ ended the process */
};

DEFINE_VECTOR(report_nested_list, struct report_nested);
DEFINE_VECTOR(report_thread_list, struct cdacq_thread);

/* A thread and its stack. */
struct thread_stack {
    int tid;
    const struct stack *stack;
};

DEFINE_VECTOR(thread_stacks, struct thread_stack);

/* Where a thread is in the program. The strings are those of a method. */
struct report_place {
    const char *method; /* NULL: not known */
    const char *file;   /* NULL: not known */
    uint32_t line;
    bool is_guess; /* a frame up to it rests on a guess, or frames may be missing before it */
};

enum { REPORT_HEAP_TYPES = 3 };

/*
 * The GC heap of a process that died of an OutOfMemoryException, is near the limit on its memory, or was refused memory
 * by the GC. Without objects: it is not known, or no such process.
 */
struct report_heap {
    uint64_t objects, bytes, free_bytes, committed;
    struct type_sum types[REPORT_HEAP_TYPES]; /* the largest */
    unsigned type_count;
    bool is_partial;                  /* a part of it cannot be read */
    enum cdacq_oom_reason oom_reason; /* of the last allocation that the GC could not make */
    uint64_t oom_bytes;               /* that were asked for */
    uint64_t limit, limit_used;       /* of a running process: of its control group; 0: none, or not known */
    struct heap_holders holders;
    bool has_no_room; /* for the search of holders: little is left of the limit */
};

enum { REPORT_ASYNC_GROUPS = 4, REPORT_AWAITED = 64 };

/* Equal chains of async methods that are pending. It owns the texts. */
struct report_async_group {
    uint64_t count;
    char *waits_for;
    char *method; /* the innermost one of the program */
    char *file;   /* NULL: not known */
    uint32_t line;
    char *called; /* the method of the framework that it called, without parameters; NULL: it awaits something itself */
    bool is_cycle;
    uint64_t completes; /* the task that it completes and that a thread waits for */
};

/* Async operations, which no thread has to wait for or run. They are searched for if threads do not explain a hang. */
struct report_async {
    uint64_t of_program, of_framework;                     /* operations with and without methods of the program */
    uint64_t failed;                                       /* tasks whose exceptions nobody has observed */
    struct report_async_group groups[REPORT_ASYNC_GROUPS]; /* of the program: deadlocks, then the most frequent */
    unsigned count, cycles;                                /* groups; those that are deadlocks */
    struct report_async_group awaited[REPORT_AWAITED]; /* without `method` if no chain was found that completes it */
    unsigned awaited_count;
    bool is_known;
    bool is_partial;   /* a part of the heap cannot be read */
    bool is_too_large; /* the heap, to be searched while a process is stopped */
};

struct report {
    const char *target_name;
    const struct cdacq_options *options;
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct answers answers;
    struct cdacq_target_info facts;
    struct cdacq_process_info process;
    struct stacks stacks;
    const struct stacks *all_stacks;        /* the same; of one of the others: those of the report that leads */
    struct thread_stacks by_tid;            /* sorted; of one of the others: empty */
    const struct thread_stacks *all_by_tid; /* like `all_stacks` */
    const struct stack *dead;               /* the stack of the thread that died; NULL: none did */
    struct cdacq_thread thread;             /* that thread; its strings and registers are not set */
    enum report_cause cause;
    struct cdacq_end end;
    uint64_t exception;               /* the object to show; 0: none */
    struct report_nested_list nested; /* without `exception` */
    struct report_heap heap;
    struct report_async async;
    const char *nested_problem; /* why some of them may be missing; NULL: none is */
    uint64_t incomplete;        /* other parts than stacks that could not be read; not the waits */
    struct stack_doubts doubts;
    struct answers_unread unread;   /* names on the stacks that the signature is made of */
    unsigned flaws;                 /* of the last words and of all exceptions */
    struct cdacq_wait_graph *graph; /* NULL: locks cannot be read */
    struct report_deadlocks deadlocks;
    struct report_tids deadlocked;  /* the threads in them, sorted */
    struct cdacq_thread_pool pool;  /* without workers if the graph has none */
    struct cdacq_error waits_error; /* of the graph */
    const char *waits_problem;      /* why some waits may be missing; NULL: none is */
    struct busy_threads *busy;      /* NULL: not measured */
    int verdict_tid;                /* the thread that the verdict is about, once that is formed; 0: none */
    int verdict_holder;             /* the thread for which it waits; 0: none */
    bool tells_pending;             /* the verdict shows the first of the groups of async methods */
    bool tells_runtime;             /* results say which runtime they are of */
    struct report *others;          /* of the other runtimes of the process: without stacks */
    size_t other_count;
    struct report_thread_list threads; /* of one of the others: those of its runtime, without names and registers */
};

/* An exception and those within it, one after the other; begins as `{.exception.inner = ADDRESS}`. */
struct report_chain {
    struct cdacq_exception exception;
    unsigned count; /* up to this one */
};

/* False: there is none any more, or it cannot be read; the chain stays where it is. */
static inline bool report_next_inner(const struct report *report, struct report_chain *chain)
{
    enum { CHAIN_MAX = 64 };
    struct cdacq_exception *exception = &chain->exception;
    exception->size = sizeof *exception;
    if (!exception->inner || chain->count == CHAIN_MAX ||
        cdacq_session_get_exception(report->session, exception->inner, exception, NULL) < 0)
        return false;
    chain->count++;
    return true;
}

/*
 * The reports of all runtimes in the order of their numbers, from *next on, which counts from 0. NULL: there are no
 * more.
 */
static inline const struct report *report_next_runtime(const struct report *report, size_t *next)
{
    const struct report *found = NULL;
    for (size_t i = 0; i <= report->other_count; i++) {
        const struct report *one = i < report->other_count ? &report->others[i] : report;
        if (one->facts.runtime >= *next && (!found || one->facts.runtime < found->facts.runtime))
            found = one;
    }
    *next = found ? found->facts.runtime + (size_t)1 : *next;
    return found;
}

/* " of runtime 1", after `word`, where there are several. */
static inline void report_put_runtime(struct output *out, const struct report *report, const char *word)
{
    if (report->tells_runtime)
        output_printf(out, " %s runtime %u", word, report->facts.runtime);
}

/*
 * Whether nothing that was read of the stacks and exceptions is in doubt or missing. Waits do not count, because small
 * cores always lack some.
 */
static inline bool report_is_complete(const struct report *report)
{
    return !report->answers.errors && !report->incomplete && !stack_doubts_any(&report->doubts) &&
           !report->unread.count && !(report->flaws & CDACQ_EXCEPTION_MISSING);
}

/* Whether further files could make the report more complete. A snapshot has what its report needs. */
static inline bool report_needs_more(const struct report *report)
{
    bool is_snapshot = report->facts.writer && strcmp(report->facts.writer, "cdacq snapshot") == 0;
    return !is_snapshot || !report_is_complete(report);
}

/*
 * Whether what makes a process hang may be why the core was taken: nothing ended the process, or somebody did, such as
 * a watchdog. abort() and raise() send a signal to the thread itself (SI_TKILL). The runtime sends one that it handled
 * to the process again.
 */
static inline bool report_may_hang(const struct report *report)
{
    const struct cdacq_process_info *process = &report->process;
    bool by_itself = process->sender_pid == process->pid && process->signal_code == SI_TKILL;
    bool was_sent = process->signal_code <= 0 && process->sender_pid && !by_itself;
    return report->cause == REPORT_ALIVE || (report->cause == REPORT_SIGNAL && was_sent);
}

/* Why some waits of a runtime may be missing: of the first that may lack some. NULL: none is. */
static inline const char *report_any_waits_problem(const struct report *report)
{
    const struct report *one;
    const char *problem = NULL;
    for (size_t next = 0; !problem && (one = report_next_runtime(report, &next));)
        problem = one->waits_problem;
    return problem;
}

/* Whether the signature depends on waits that could not be read: it says "alive" where the process hangs. */
static inline bool report_misses_waits(const struct report *report)
{
    return report_may_hang(report) && report_any_waits_problem(report);
}

/* Whether it is known that a wait ends after a time. */
static inline bool report_wait_is_bounded(const struct cdacq_wait *wait)
{
    return wait->has_timeout && wait->timeout_ms >= 0;
}

/* Counts a part that could not be read, and prints why; once, because a bound stops one part after the other. */
static inline void report_fail(struct report *report, const char *problem)
{
    if (!report->incomplete || !message_was_shown(problem))
        message("%s", problem);
    report->incomplete++;
}

/* Writes "TID 12 "worker"". `name` may be NULL. */
static inline void report_put_thread(struct output *out, int tid, const char *name)
{
    output_printf(out, "TID %d", tid);
    if (name && name[0])
        output_text_between(out, " \"", name, "\"");
}

void report_write_text(struct report *report, bool brief);
void report_write_json(struct report *report);

/* A line, without its end, that is the same for the same defect in other processes, runtimes and builds. */
void report_write_signature(struct report *report);

/* It as an object, with what the target is: a row for a table of many. */
void report_write_signature_json(struct report *report);

/* The deadlocks; with `brief`, a line for each. */
void report_write_deadlocks_text(const struct report *report, bool brief);

/* The thread pool, and who waits for whom; with `brief`, a line for a thread pool that starves. */
void report_write_waits_text(const struct report *report, bool brief);

/* What a thread waits for, and who has to go on first, as the end of "TID 12 waits". */
void report_put_wait(struct output *out, const struct report *report, const struct cdacq_wait *wait);

/* Whether each wait of a cycle is known to end only with what it waits for. */
bool report_deadlock_is_certain(const struct cdacq_deadlock *deadlock);

/* The members "locks", "waits", "deadlocks" and "thread_pool". */
void report_write_waits_json(const struct report *report, struct json_writer *w);

/* ---- report_hang.c ---- */

/* Lists the stacks by their threads, once all threads were visited: for the others as well. */
void report_list_stacks(struct report *report);

/* NULL: the thread has no stack here. */
const struct stack *report_stack_of(const struct report *report, int tid);

/* Lists the threads that are in a deadlock, once the deadlocks are known. */
void report_list_deadlocked(struct report *report);

bool report_is_deadlocked(const struct report *report, int tid);

/* Whether a thread that has the stack is in a deadlock, or a busy worker of a thread pool that starves. */
bool report_hangs(const struct report *report, const struct stack *stack);

/* A method without a name may be one of the program: the file that has its name may be missing. */
bool report_is_of_program(const struct cdacq_method *method);

/* The innermost method of the program whose name is known; NULL: there is none. `stack` may be NULL. */
const struct cdacq_method *report_program_method(const struct stack *stack);

/* Whether a method of the program is on the stack, or one whose name is not known. `stack` may be NULL. */
bool report_runs_program(const struct stack *stack);

/* Writes why the process hangs, for the signature: "starvation: Demo.Fetch". False, and nothing, if nothing says so. */
bool report_write_hang(const struct report *report);

/* ---- report_pdbs.c ---- */

/* Visits a step for each PDB that is missing. */
void report_visit_missing_pdbs(struct report *report, void (*visit)(const struct next_step *step, void *context),
                               void *context);

/* ---- report_threads.c ---- */

/*
 * Removes threads of the runtime from the busy ones if they wait for work and used next to no processor time: on an
 * overloaded machine, a thread that only looks for work waits for a processor, too.
 */
void report_drop_idle(struct report *report);

/* The section of the thread that suspends the others, and of those that delay that; nothing if there are none. */
void report_write_suspension_text(const struct report *report);

/* The section of the threads that use the processors; nothing if there is none, or if that is not known. */
void report_write_busy_text(const struct report *report);

/* Writes each of the causes between two texts. */
void report_put_causes(struct output *out, const struct busy_threads *busy, const struct busy_causes *causes,
                       const char *before, const char *after);

/* Whether a caller that is found up to a method rests on a guess, or frames may be missing before it. */
bool report_is_doubtful(const struct stack *stack, const struct cdacq_method *method);

enum stack_rank {
    STACK_DEAD,  /* of the thread that died */
    STACK_HANGS, /* of threads that make it hang, suspend the others or delay that; those of the verdict */
    STACK_BUSY,  /* of threads that make it slow, the busiest first; of a core, of those that ran */
    STACK_OTHER, /* in the order of the target */
    STACK_IDLE,  /* of threads of the runtime that wait for work */
};

struct ordered_stack {
    const struct stack *stack;
    size_t index;
    unsigned percent;
    enum stack_rank rank;
};

struct ordered_stacks {
    struct ordered_stack *items; /* the caller frees them */
    size_t count;
};

/*
 * All stacks, in the order in which the text has them: those up to STACK_HANGS before the waits. One line stands for
 * those of STACK_IDLE.
 */
struct ordered_stacks report_order_stacks(const struct report *report);

/* Writes that line; nothing if there are none. */
void report_write_idle_text(const struct report *report, const struct ordered_stacks *ordered);

/* ---- report_verdict.c ---- */

/* What si_code says of a fault; NULL: nothing. */
const char *report_signal_reason(const struct report *report);

/* ---- report_heap.c ---- */

/* Reads the heap, if the report is to have it, but for its holders. The cause is known. */
void report_find_heap(struct report *report);

/* Writes what was found: nothing if that is nothing; and the member "heap". */
void report_write_heap_text(const struct report *report, struct output *out);
void report_write_heap_json(const struct report *report, struct json_writer *w);

/* ---- report_async.c ---- */

/* Searches the heap. */
void report_find_async(struct report *report);
void report_release_async(struct report *report);

/* Writes the section, or nothing if there is none; and the member "async". */
void report_write_async_text(const struct report *report, struct output *out);
void report_write_async_json(const struct report *report, struct json_writer *w);

/* Where the async methods wait that complete a task for which a thread waits. */
struct report_place report_place_of_awaited(const struct report *report, uint64_t object);

struct report_place report_place_of_group(const struct report_async_group *group);

/* Writes "50 in Demo.Shop.Load() Shop.cs:12, waiting for: SemaphoreSlim ...". */
void report_put_group(struct output *out, const struct report_async_group *group);

/* ---- report_places.c ---- */

/* `method` and `stack` may be NULL: the place is not known then. */
struct report_place report_place_of_method(const struct cdacq_method *method);
struct report_place report_place_on_stack(const struct stack *stack);

/* The innermost method of the program that a thread runs. */
struct report_place report_place_of(const struct report *report, int tid);

/* Writes "Demo.Program.Main() Program.cs:12", of a place that is known. */
void report_put_place(struct output *out, const struct report_place *place);

/* Writes " in " and the place; nothing if it is not known. */
void report_put_in_place(struct output *out, const struct report_place *place);

/* The members of a place. */
void report_write_place_members(struct json_writer *w, const struct report_place *place);

/* A member with an object, or null if the place is not known. */
void report_write_place_json(struct json_writer *w, const char *key, const struct report_place *place);

/* ---- report_text.c ---- */

/* "unhandled", "fatal", "alive" or the signal, which is written to `buffer`. */
const char *report_cause_text(const struct report *report, char buffer[SIGNAL_TEXT_SIZE]);

/* Whether the runtime ended the process and wrote a text about it. */
bool report_has_last_words(const struct report *report);

/*
 * Whether an exception that looks handled may be one that the process printed as unhandled: since .NET 9, finally
 * blocks run after that.
 */
bool report_may_be_printed(const struct report *report);

#endif
