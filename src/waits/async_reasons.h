/*
 * async_reasons.h: what a chain of async operations waits for, in words. What waits for what is read from the objects
 * themselves: a semaphore and a channel list those that wait, and a TaskCompletionSource has its task.
 */
#ifndef CDACQ_WAITS_ASYNC_REASONS_H
#define CDACQ_WAITS_ASYNC_REASONS_H

#include "src/waits/async_operations.h"

struct text;

enum async_reason_kind {
    ASYNC_REASON_UNKNOWN,
    ASYNC_REASON_COMPLETED,    /* what it awaited has completed */
    ASYNC_REASON_OPERATION,    /* another operation */
    ASYNC_REASON_RUNNING,      /* an async method that a thread runs */
    ASYNC_REASON_DELAY,        /* a time */
    ASYNC_REASON_CANCELLATION, /* Task.Delay without end, with a token */
    ASYNC_REASON_ENDLESS,      /* the same without a token */
    ASYNC_REASON_PERIODIC,
    ASYNC_REASON_SEMAPHORE,
    ASYNC_REASON_CHANNEL,
    ASYNC_REASON_SOURCE,    /* a TaskCompletionSource */
    ASYNC_REASON_NO_SOURCE, /* a task that nothing completes */
    ASYNC_REASON_WORK,      /* a delegate that runs, or will */
    ASYNC_REASON_ALL,
    ASYNC_REASON_ANY,
    ASYNC_REASON_UNWRAP,
    ASYNC_REASON_SOCKET,
    ASYNC_REASON_FILE,
    ASYNC_REASON_OTHER, /* an object of another type */
};

struct async_reason {
    enum async_reason_kind kind;
    uint64_t awaited; /* what is awaited itself */
    uint64_t thing;   /* what that leads to, as a semaphore; or the same */
    uint64_t type;    /* the method table of `awaited` */
    bool has_due;     /* it ends at a time */
    int64_t due;      /* in milliseconds of the target's clock */
};

struct async_reasons {
    struct async_operations *operations;
    struct async_indices semaphores;    /* from the task of a wait to the SemaphoreSlim */
    struct async_indices waiters;       /* from a SemaphoreSlim to the number of tasks that it lists */
    struct async_indices channels;      /* from a read or write to the channel; its lowest bit: it is a write */
    struct async_indices sources;       /* from a task to its TaskCompletionSource */
    struct async_objects request_types; /* method tables of HttpRequestMessage and of types derived from it */
    uint32_t looks_left;                /* at the objects of channels */
    int64_t now;                        /* of a process, in the same unit; 0: not known */
    int64_t latest;                     /* the time at which the last of the timers that were read was started */
};

/* The time of the clock that timers go by, in milliseconds; 0 of a core, which does not say it. */
int64_t async_time_of(const struct resolver *resolver);

/* False when out of memory. `now`: see above. */
bool async_reasons_init(struct async_reasons *reasons, struct async_operations *operations, int64_t now);
void async_reasons_deinit(struct async_reasons *reasons);

/* What a chain waits for. */
struct async_reason async_reason_of(struct async_reasons *reasons, const struct async_chain *chain);

/* What equal chains have in common. */
struct async_common {
    struct async_reason reason; /* of the first */
    int64_t due_begin, due_end; /* of all */
    bool differs;               /* they wait for different things */
};

/* Appends what they wait for, in words. */
void async_reason_put(struct async_reasons *reasons, const struct async_chain *chain, const struct async_common *common,
                      struct text *ret);

/* Appends a string of the target, escaped. False: there is none. */
bool async_string_put(struct async_operations *operations, uint64_t string, struct text *ret);

/* Appends the method and URI of a HttpRequestMessage: "GET http://host/path". False: they are not known. */
bool async_request_put(struct async_operations *operations, uint64_t request, struct text *ret);

/* Appends the name of the method at an entry point; nothing if it is not known. */
void async_entry_put(struct resolver *resolver, uint64_t entry, struct text *ret);

/* Marks the chains that wait for themselves, perhaps through others. */
bool async_reasons_mark_cycles(struct async_reasons *reasons);

#endif
