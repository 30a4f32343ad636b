/* stack.h: what visits of threads share. */
#ifndef CDACQ_STACKS_STACK_H
#define CDACQ_STACKS_STACK_H

#include "cdacq/stack.h"
#include "target/registers.h"

struct cdacq_session;
struct thread_list;

/* Reads the list of the runtime's Threads, as far as possible. */
enum cdacq_status stack_runtime_threads(struct cdacq_session *session, struct thread_list *ret,
                                        struct cdacq_error *err);

struct cdacq_registers stack_registers_of(const struct registers *registers);

/* Whether the process still has what async methods were read from. If not, that is read again for the next try. */
bool stack_objects_hold(struct cdacq_session *session);

#endif
