/*
 * exception.h: the Exception contract: the fields of System.Exception and the frames of its stack trace. .NET 8 keeps
 * the frames in an array of bytes; .NET 9 and later in that or in an array of objects, whose first is the array of
 * bytes and whose others keep what the frames refer to alive. NativeAOT keeps an array of addresses.
 * Source: dotnet/runtime docs/design/datacontracts/Exception.md; src/coreclr/vm/{clrex,object}.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_H

#include "descriptors/fields.h"

struct exception {
    uint64_t address, method_table;
    uint64_t message, inner;                         /* objects, or 0 */
    uint64_t stack_trace_string, remote_stack_trace; /* strings, or 0 */
    int32_t hresult;
    bool thrown;          /* it has a stack trace, perhaps without frames */
    uint32_t frame_count; /* 0 if the runtime does not describe the frames */
    uint64_t frames;      /* the address of the first, the frame that threw */
};

/* False, and the reader fails, if it cannot be read or is corrupt. The object must be an exception. */
bool exception_read(struct reader *reader, uint64_t address, struct exception *ret);

struct exception_frame {
    uint64_t ip; /* within the instruction: that of a return address is one less, that of a continuation is exact */
    uint64_t method_desc;
    bool faulted;         /* the instruction at `ip` itself threw */
    bool last_of_foreign; /* what follows was added when the exception was thrown again elsewhere */
    bool is_separator;    /* of NativeAOT: no frame, but the mark of that after the last one */
};

/* False, and the reader fails, if it cannot be read. */
bool exception_frame_at(struct reader *reader, const struct exception *exception, uint32_t index,
                        struct exception_frame *ret);

#endif
