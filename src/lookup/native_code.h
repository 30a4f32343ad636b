/*
 * native_code.h: the native code of a session's process.
 */
#ifndef CDACQ_LOOKUP_NATIVE_CODE_H
#define CDACQ_LOOKUP_NATIVE_CODE_H

#include "cdacq/error.h"
#include "util/base.h"

struct cdacq_target;
struct native_modules;

struct native_code {
    struct native_modules *modules; /* created when first needed */
    uint64_t mapping_round;         /* of the memory, when they were created */
    struct cdacq_error error;       /* why that is not possible */
};

/* The native images. NULL, with native->error set, if they cannot be prepared. */
struct native_modules *native_code_modules(struct native_code *native, struct cdacq_target *target);

/* Forgets them if the process may have mapped others since. */
void native_code_follow(struct native_code *native, const struct cdacq_target *target);
void native_code_deinit(struct native_code *native);

#endif
