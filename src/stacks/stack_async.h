/*
 * stack_async.h: where the async methods that wait belong among the frames of a stack. It is asked about each frame in
 * turn, and has the methods that come before it.
 */
#ifndef CDACQ_STACKS_STACK_ASYNC_H
#define CDACQ_STACKS_STACK_ASYNC_H

#include "src/waits/async_frames.h"

struct cdacq_frame;
struct cdacq_session;
struct cdacq_thread;

struct stack_async;

/* NULL if the runtime does not describe what it takes, or when out of memory. */
struct stack_async *stack_async_create(struct cdacq_session *session);
void stack_async_destroy(struct stack_async *async);

/* Begins with the frames of another thread. */
void stack_async_begin(struct stack_async *async, const struct cdacq_thread *thread);

/* The methods that come before a frame, from the innermost, valid until the next call; *ret_count may be 0. */
const struct async_frame *stack_async_before(struct stack_async *async, const struct cdacq_frame *frame,
                                             size_t *ret_count);

/* As async_frame_answer(). */
bool stack_async_answer(struct stack_async *async, const struct async_frame *frame, struct cdacq_method *ret);

#endif
