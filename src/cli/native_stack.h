/*
 * native_stack.h: unwinds the stacks of all threads of a core or a process by elfutils' libdwfl. libdw is loaded on
 * demand, because linking it would slow every start of the tool.
 */
#ifndef CDACQ_CLI_NATIVE_STACK_H
#define CDACQ_CLI_NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cdacq.h"

struct native_frame {
    unsigned index;     /* 0 is the innermost */
    uint64_t pc;        /* where execution continues */
    bool is_call;       /* pc is a return address: the frame is at the call before it */
    const char *symbol; /* of native code; NULL if unknown */
    uint64_t symbol_offset;
    const char *module; /* path of the ELF file; NULL if unknown */
};

struct native_stack_visitor {
    void (*thread)(pid_t tid, void *context);
    void (*frame)(pid_t tid, const struct native_frame *frame, void *context);
    /* The stack cannot be unwound further; `problem` is one line. */
    void (*broken)(pid_t tid, const char *problem, void *context);
    void *context;
};

/*
 * Visits every frame of every thread of the core at `core` or, if that is NULL, of process `pid`, which is stopped
 * meanwhile. Returns false, with a message, if nothing can be visited.
 */
bool native_stack_visit(const char *core, pid_t pid, const struct cdacq_options *options,
                        const struct native_stack_visitor *visitor);

#endif
