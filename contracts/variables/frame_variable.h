/*
 * frame_variable.h: the value of an argument or a local of a frame.
 */
#ifndef CDACQ_CONTRACTS_VARIABLES_FRAME_VARIABLE_H
#define CDACQ_CONTRACTS_VARIABLES_FRAME_VARIABLE_H

#include "cdacq/object.h"
#include "contracts/variables/frame_method.h"

enum frame_value_kind {
    FRAME_VALUE_NONE,    /* the code does not hold it here */
    FRAME_VALUE_KNOWN,   /* `value` */
    FRAME_VALUE_BY_REF,  /* `value` is an address, `referent` what is there */
    FRAME_VALUE_UNREAD,  /* in registers that are not read */
    FRAME_VALUE_NO_TYPE, /* of a type that is not known, or not loaded */
};

struct frame_value {
    enum frame_value_kind kind;
    struct cdacq_value value, referent;
    struct cdacq_error error; /* status below 0: why it, or its referent, cannot be read */
};

/*
 * The value of variable `number` of the IL, whose type is at the cursor; `this` is NULL's. The reader's failures are
 * taken, except that of fuel.
 */
void frame_variable_read(const struct variable_frame *frame, const struct frame_method *method, uint32_t number,
                         const struct signature *type, struct frame_value *ret);

#endif
