/*
 * async_frames.h: async methods that wait, as frames: the objects that hold their state lead from a method to the one
 * that awaits it. Both kinds of async methods are covered: those with a state machine, and those that the runtime
 * suspends.
 */
#ifndef CDACQ_WAITS_ASYNC_FRAMES_H
#define CDACQ_WAITS_ASYNC_FRAMES_H

#include "cdacq/session.h"
#include "util/hash_table.h"
#include "util/vector.h"

struct resolver;
struct threading_types;

enum {
    ASYNC_FRAMES_MAX = 16 * 1024,  /* of one chain */
    ASYNC_PLACES_MAX = 64 * 1024,  /* places in state machines that are remembered */
    ASYNC_RUNNING_MAX = 64 * 1024, /* tasks that threads run at once */
};

/* An async method that waits. */
struct async_frame {
    uint64_t object; /* a Continuation, or the box of a state machine */
    uint64_t info;   /* what says where its code goes on; 0: its state machine does */
    uint64_t pc;     /* where its code goes on; 0: that is not known */
    uint64_t type;   /* of the state machine, and the number of its state */
    int32_t state;
};

DEFINE_VECTOR(async_frame_list, struct async_frame);

/* What is said of a state of a state machine. */
struct async_place {
    uint64_t type;
    int32_t state;
    struct cdacq_method method;
};

struct async_place_key {
    uint64_t type;
    int32_t state;
};

struct async_running {
    uint64_t running, next; /* as in struct dispatched */
};

DEFINE_HASH_TABLE_TYPE(async_places, struct async_place);
DEFINE_HASH_TABLE_TYPE(async_running_tasks, struct async_running);

struct async_frames {
    struct resolver *resolver;
    struct threading_types *types;
    struct async_places places;
    struct async_running_tasks running;
    bool has_running; /* they were read */
};

void async_frames_init(struct async_frames *frames, struct resolver *resolver, struct threading_types *types);
void async_frames_deinit(struct async_frames *frames);

/*
 * Appends the methods of a task, or of another source of a value (IValueTaskSource), that wait: from the innermost to
 * that which completes it. A method that runs is none of them. False when out of memory.
 */
bool async_frames_of(struct async_frames *frames, uint64_t object, struct async_frame_list *ret);

/*
 * Appends the methods that wait for the completion of `task`: from that which awaits it to the outermost. The list ends
 * where several wait for one task. False when out of memory.
 */
bool async_frames_awaiting(struct async_frames *frames, uint64_t task, struct async_frame_list *ret);

/*
 * The only object that the completion of a task or source leads to: a task, a box, or something else. 0: there is none,
 * or there are several, as *ret_several then says. An event of a thread that is blocked does not count.
 */
uint64_t async_frames_continuation(struct async_frames *frames, uint64_t object, bool *ret_several);

/*
 * The answer for a frame, as that for an address: its method, IL offset and line. False if it is none that a person
 * wrote. Texts are valid as in other answers.
 */
bool async_frame_answer(struct async_frames *frames, const struct async_frame *frame, struct cdacq_method *ret);

#endif
