/*
 * report.h: what cmd_report.c collects about a target that has died, hangs or is slow, and report_text.c, report_json.c
 * and report_signature.c write; report_waits_text.c and report_waits_json.c write the part about locks and waits, and
 * report_threads.c that about busy threads and suspension.
 */
#ifndef CDACQ_CLI_REPORT_H
#define CDACQ_CLI_REPORT_H

#include <string.h>

#include "src/cli/busy_threads.h"
#include "src/cli/console.h"
#include "src/cli/next_steps.h"
#include "src/cli/stack_writer.h"
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

struct report {
    const char *target_name;
    const struct cdacq_options *options;
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct answers answers;
    struct cdacq_target_info facts;
    struct cdacq_process_info process;
    struct stacks stacks;
    const struct stack *dead;   /* the stack of the thread that died; NULL: none did */
    struct cdacq_thread thread; /* that thread; its strings and registers are not set */
    enum report_cause cause;
    struct cdacq_end end;
    uint64_t exception;               /* the object to show; 0: none */
    struct report_nested_list nested; /* without `exception` */
    const char *nested_problem;       /* why some of them may be missing; NULL: none is */
    uint64_t incomplete;              /* other parts than stacks that could not be read; not the waits */
    struct stack_doubts doubts;
    struct answers_unread unread;   /* names on the stacks that the signature is made of */
    unsigned flaws;                 /* of the last words and of all exceptions */
    struct cdacq_wait_graph *graph; /* NULL: locks cannot be read */
    struct report_deadlocks deadlocks;
    struct report_tids deadlocked;   /* the threads in them, sorted */
    struct cdacq_thread_pool pool;   /* without workers if the graph has none */
    const char *waits_problem;       /* why some waits may be missing; NULL: none is */
    const struct busy_threads *busy; /* NULL: not measured */
};

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

/* Whether the signature depends on waits that could not be read: it says "alive" where the process hangs. */
static inline bool report_misses_waits(const struct report *report)
{
    return report->cause == REPORT_ALIVE && report->waits_problem;
}

/* Whether it is known that a wait ends after a time. */
static inline bool report_wait_is_bounded(const struct cdacq_wait *wait)
{
    return wait->has_timeout && wait->timeout >= 0;
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

/* Who waits for whom, the deadlocks, and the thread pool; with `brief`, a line for what makes the process hang. */
void report_write_waits_text(const struct report *report, bool brief);

/* The members "locks", "waits", "deadlocks" and "thread_pool". */
void report_write_waits_json(const struct report *report, struct json_writer *w);

/* ---- report_hang.c ---- */

/* Lists the threads that are in a deadlock, once the deadlocks are known. */
void report_list_deadlocked(struct report *report);

/* Whether a thread that has the stack is in a deadlock, or a busy worker of a thread pool that starves. */
bool report_hangs(const struct report *report, const struct stack *stack);

/* The innermost method of the program whose name is known; NULL: there is none. `stack` may be NULL. */
const struct cdacq_method *report_program_method(const struct stack *stack);

/* Writes why the process hangs, for the signature: "starvation: Demo.Fetch". False, and nothing, if nothing says so. */
bool report_write_hang(const struct report *report);

/* ---- report_threads.c ---- */

/* The section of the thread that suspends the others, and of those that delay that; nothing if there are none. */
void report_write_suspension_text(const struct report *report);

/* The section of the threads that use the processors; nothing if there is none, or if that is not known. */
void report_write_busy_text(const struct report *report);

enum stack_rank {
    STACK_DEAD,  /* of the thread that died */
    STACK_HANGS, /* of threads that make the process hang, or suspend the others, or delay that */
    STACK_BUSY,  /* of threads that make it slow, the busiest first; of a core, of those that ran */
    STACK_OTHER, /* in the order of the target */
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

/* All stacks, in the order in which the text has them. */
struct ordered_stacks report_order_stacks(const struct report *report);

/* ---- report_text.c ---- */

/* "unhandled", "fatal", "alive" or the signal, which is written to `buffer`. */
const char *report_cause_text(const struct report *report, char buffer[SIGNAL_TEXT_SIZE]);

/* What si_code says of a fault; NULL: nothing. */
const char *report_signal_reason(const struct report *report);

/* Whether the runtime ended the process and wrote a text about it. */
bool report_has_last_words(const struct report *report);

/*
 * Whether an exception that looks handled may be one that the process printed as unhandled: since .NET 9, finally
 * blocks run after that.
 */
bool report_may_be_printed(const struct report *report);

#endif
