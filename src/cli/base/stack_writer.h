/*
 * stack_writer.h: writes stacks as text, and their frames as JSON.
 */
#ifndef CDACQ_CLI_BASE_STACK_WRITER_H
#define CDACQ_CLI_BASE_STACK_WRITER_H

#include "src/cli/base/answers.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/stacks.h"

/* Which native frames a text has. For several in a row, one line has their number and their modules. */
enum native_frames {
    /* Only the innermost frame of the stack, and those that are alone. Frames that only wait are one line, too. */
    NATIVE_FRAMES_FOLDED,
    NATIVE_FRAMES_OF_INNER_ROW, /* also those in a row from the innermost: a signal ended the process in them */
    NATIVE_FRAMES_ALL,
};

/* The threads of a stack, its frames with repeated ones folded, and why it ends early if it does. */
void stack_write_text(struct answers *answers, const struct stack *stack, enum native_frames shown);

/* "12 "worker"" or "12, died of SIGSEGV". */
void stack_write_thread(struct output *out, const struct stack_thread *thread);

/*
 * A line for several frames: "... 9 native frames (libcoreclr.so)", with the words before the modules. Async methods do
 * not count.
 */
void stack_write_row(struct output *out, const struct stack *stack, size_t first, size_t count, const char *words);

/* "... 2 frames above repeated 40 times more". */
void stack_write_repeats(struct output *out, const struct stack_run *run);

/* "catch"; NULL: it is none, or of no known kind. */
const char *stack_funclet_text(enum cdacq_funclet_kind kind);

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
