/*
 * native_exception.h: what differs in the texts of exceptions of NativeAOT programs: which type's Message and
 * ToString() an exception has follows from its virtual methods, and its stack trace is a list of addresses.
 *
 * A method that the program has no stack trace metadata of is written as the runtime writes it: by the name of the
 * module and the distance from its base.
 * Source: dotnet/runtime src/coreclr/nativeaot/System.Private.CoreLib/src/System/{Exception.NativeAot.cs,
 * Diagnostics/StackFrame.NativeAot.cs,Diagnostics/StackTrace.NativeAot.cs}.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_NATIVE_EXCEPTION_H
#define CDACQ_CONTRACTS_OBJECTS_NATIVE_EXCEPTION_H

#include "contracts/native_aot/aot_image.h"
#include "contracts/objects/exception_writer.h"

/* Finds the types whose Message and ToString() are used, and whether the program overrides them or StackTrace. */
void native_exception_find_kinds(struct exception_writer *w, struct writing_exception *e);

/*
 * Writes a frame or mark of a stack trace, without a newline at the end. `first`: nothing of the trace was written yet.
 * Returns whether something was.
 */
bool native_exception_put_frame(struct exception_writer *w, const struct exception_frame *frame, bool first);

/*
 * Appends one frame as the runtime's stack traces write it: "   at Ns.Type.Method(String)". False if they hide it. The
 * flaws are those of the text.
 */
bool native_frame_append(struct aot_image *aot, struct reader *reader, uint64_t ip, struct text *ret,
                         unsigned *ret_flaws);

#endif
