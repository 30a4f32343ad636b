/*
 * method_frames.h: the call-frame information of methods, from the unwind data of the runtime.
 */
#ifndef CDACQ_PERF_METHOD_FRAMES_H
#define CDACQ_PERF_METHOD_FRAMES_H

#include "contracts/unwind/unwinder.h"
#include "util/base.h"

struct cdacq_session;
struct code_block;

struct method_frames {
    struct cdacq_session *session;
    const struct unwinder *unwinder; /* NULL: this build makes no rows for the target's architecture */
    struct frame_rows rows;          /* of the last function */
    uint64_t bytes;                  /* of code that was read for rows */
    uint64_t functions;              /* that have rows */
    uint64_t left_out;               /* functions whose rows cannot be found */
    uint64_t without_epilogs;        /* functions that have none for epilogs, because their code is not at hand */
};

void method_frames_init(struct method_frames *frames, struct cdacq_session *session);
void method_frames_deinit(struct method_frames *frames);

/* The block of the method whose hot or cold part has `address`. False if it cannot be read. */
bool method_block(struct cdacq_session *session, uint64_t address, struct code_block *ret);

/*
 * The record of the method whose hot or cold part has `address`. Its lines are read if `with_lines` is set and the PDB
 * of its module is in use. NULL if there is none or it cannot be read.
 */
const struct method_record *method_record_at(struct cdacq_session *session, uint64_t address, bool with_lines);

/*
 * Calls `visit` for every function of the part of a method that block->ip is in, with its rows. Functions that cannot
 * be read are counted and left out. Starts tasks of the session's reader.
 */
void method_frames_visit(struct method_frames *frames, const struct code_block *block,
                         void (*visit)(const struct unwind_function *function, const struct frame_rows *rows,
                                       void *context),
                         void *context);

/* The machine of the rows; NULL where there are none. */
const struct frame_machine *method_frames_machine(const struct method_frames *frames);

#endif
