/*
 * opened_session.h: struct cdacq_session, the public handle: a resolver, and what calls keep of stacks and of the
 * process's end. One for each runtime of a process that has several.
 */
#ifndef CDACQ_LOOKUP_OPENED_SESSION_H
#define CDACQ_LOOKUP_OPENED_SESSION_H

#include "descriptors/runtime.h"
#include "src/lookup/resolver.h"

struct ending;
struct stack_async;
struct thread_data;

/* A session for each target of a group. */
struct session_group {
    struct cdacq_session *owner;
    struct cdacq_session *items[RUNTIME_MAX];
    unsigned pins; /* of the epochs of all of them */
};

/* A visit of threads in progress. */
struct thread_visit {
    uint64_t *fuel;            /* of all walks of stacks; NULL: no threads are visited */
    struct stack_async *async; /* what finds async methods, if they are visited, too */
    /* Of a group: the runtime's data of the thread that another session visits. */
    const struct thread_data *thread;
    int tid; /* 0: none is visited */
};

/* The last exception of a Thread when cdacq_session_get_activity was called last. */
struct thrown {
    uint64_t thread, object; /* addresses */
};

DEFINE_VECTOR(thrown_list, struct thrown);

DEFINE_U64_SET(native_addresses);

/* What a walk has met while threads are sampled, and memory stays from one to the next. */
struct session_sampling {
    struct native_addresses native; /* at which no runtime has code */
    struct read_log log;            /* of objects */
    bool is_strict;                 /* what they were read from is compared at once, not after the walk */
    bool is_doubtful;               /* code that is not known, as if it were new */
    bool has_changed;               /* objects, while they were read */
    bool may_be_freed;              /* code: other code may be there soon */
};

struct cdacq_session {
    struct resolver resolver;
    struct session_group *group; /* NULL: its target has no group */
    struct thread_visit threads;
    struct ending *ending;             /* how the process ended, if that was asked */
    struct thrown_list thrown;         /* sorted by Thread */
    bool has_thrown;                   /* it was asked before */
    struct session_sampling *sampling; /* NULL: no threads are sampled */
};

/* Another session of the group, from *next on, which counts from 0. NULL: there are no more. */
static inline struct cdacq_session *session_next_other(const struct cdacq_session *session, unsigned *next)
{
    while (session->group && *next < RUNTIME_MAX) {
        struct cdacq_session *other = session->group->items[(*next)++];
        if (other && other != session)
            return other;
    }
    return NULL;
}

/*
 * Asks the other sessions of the group for an address that no method and no stub of the session owns. Returns the
 * session whose answer it is.
 */
const struct cdacq_session *session_ask_others(struct cdacq_session *session, struct cdacq_method *answer);

#endif
