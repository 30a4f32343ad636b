/*
 * stack_writer.h: writes stacks as text, and their frames as JSON.
 */
#ifndef CDACQ_CLI_STACK_WRITER_H
#define CDACQ_CLI_STACK_WRITER_H

#include "src/cli/answers.h"
#include "src/cli/json_writer.h"
#include "src/cli/stacks.h"

/* The threads of a stack, its frames with repeated ones folded, and why it ends early if it does. */
void stack_write_text(struct answers *answers, const struct stack *stack);

/* A frame as members of an object that the caller has begun. */
void stack_frame_write_members(struct answers *answers, struct json_writer *w, const struct cdacq_frame *frame,
                               const struct cdacq_method *method);

/*
 * Prints a line for each kind of doubt, and one for frames that have no answer. `mark` is what marks a guess in the
 * output; NULL: nothing does.
 */
void stack_doubts_tell(const struct stack_doubts *doubts, const char *mark, uint64_t errors);

enum { SIGNAL_TEXT_SIZE = 32 };

/* "SIGABRT" or "signal 77", in `buffer`. */
const char *signal_text(int signal, char buffer[SIGNAL_TEXT_SIZE]);

#endif
