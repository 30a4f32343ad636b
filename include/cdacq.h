/*
 * cdacq.h: read a .NET process from outside and say which method owns an instruction pointer.
 *
 * The process is a *target*: an ELF core dump, a live process, or memory that the caller hands over. The library
 * reads it through the data contracts that the runtime publishes about itself (DotNetRuntimeContractDescriptor).
 * It loads no component of the runtime, runs no code in the target and never writes to it.
 *
 *     struct cdacq_error error;
 *     struct cdacq_target *target;
 *     struct cdacq_session *session;
 *     struct cdacq_method method = {.size = sizeof method};
 *
 *     if (cdacq_target_open_core("core.1234", NULL, &target, &error) < 0 ||
 *         cdacq_session_create(target, &session, &error) < 0)
 *         errx(2, "%s", error.message);
 *     if (cdacq_session_method_at(session, 0x7f21c8a31b47, &method, &error) == CDACQ_OK)
 *         printf("%s +%#" PRIx64 "\n", method.name, method.offset);
 *     cdacq_session_destroy(session);
 *     cdacq_target_close(target);
 *
 * Rules that hold throughout:
 *  - A target address is a uint64_t, a range is [begin, end), a size is in bytes.
 *  - A function returns an enum cdacq_status: 0 is success, a positive value is an answer that is not a failure
 *    (CDACQ_NOT_MANAGED), a negative one is a failure. On failure outputs are untouched, and `err`, which the caller
 *    owns and which may be NULL, holds one line of text that names the thing and the address.
 *  - Every struct, given or filled, begins with its size. The caller sets it in the structs that it provides, also in
 *    those that a call fills; no more than that many bytes are written, and what the library does not know is zero. So
 *    fields can be added without breaking callers. A size that is not set is CDACQ_ERR_ARGUMENT.
 *  - The first parameter is the handle that the function is named after; outputs come last, then `err`. Visitors return
 *    0 to go on; anything else ends the visit with CDACQ_STOPPED.
 *  - A target is hostile: sizes are capped and loops bounded, so a call ends on any input, with an answer that the
 *    data supports or with a status. No answer is preferred over a wrong one.
 *  - The library prints nothing and has no global or thread-local state.
 *  - An address of code may be a code pointer as it stands in a register, a slot or a return address: a Thumb bit and
 *    pointer authentication are taken off. What answers hold are plain addresses.
 *  - Threads: a `struct cdacq_target` of a dump or of caller's memory is immutable to its users and may be shared
 *    between threads. A `struct cdacq_session` belongs to one thread at a time. A live target and its sessions belong
 *    to one thread at a time together.
 *  - Version 0 promises no stable ABI; the SONAME changes with it.
 */
#ifndef CDACQ_H
#define CDACQ_H

#include <cdacq/block.h>
#include <cdacq/error.h>
#include <cdacq/jitdump.h>
#include <cdacq/perf.h>
#include <cdacq/session.h>
#include <cdacq/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": the version of the library in use. */
CDACQ_API const char *cdacq_version(void);

#ifdef __cplusplus
}
#endif

#endif
