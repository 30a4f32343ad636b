/*
 * variables.h: writes the variables of a frame, with values by the rules of object_view.h.
 */
#ifndef CDACQ_CLI_COMMANDS_VARIABLES_H
#define CDACQ_CLI_COMMANDS_VARIABLES_H

#include "cdacq.h"
#include "src/cli/base/json_writer.h"

/* What was written of all frames. */
struct variable_counts {
    uint64_t shown, problems; /* problems: values, or the variables of whole frames, that cannot be read */
};

/* "name: type": a name that is not known is that of the disassemblers, A_0 or V_0, a type "?". */
void variable_put_name(struct output *out, enum cdacq_variable_kind kind, uint32_t number, const char *name,
                       const char *type);

/* A line for each variable, below that of the frame. Nothing if the frame has none that the library finds. */
void variables_write_text(struct output *out, struct cdacq_session *session, const struct cdacq_frame *frame,
                          struct variable_counts *counts);

/* The array "variables" of an object that the caller has begun: null if the frame has none. */
void variables_write_json(struct json_writer *w, struct cdacq_session *session, const struct cdacq_frame *frame,
                          struct variable_counts *counts);

#endif
