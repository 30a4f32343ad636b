/*
 * cdacq.h: reads a .NET process from outside and names the method that owns an instruction pointer.
 *
 * The process is a *target*: an ELF core dump, a live process, or memory that the caller provides. The library reads it
 * through the data contracts that the runtime publishes about itself (DotNetRuntimeContractDescriptor). It loads no
 * component of the runtime, runs no code in the target and never writes to it.
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
 *  - A function returns an enum cdacq_status. 0 is success. A positive value is an answer that is not a failure, such
 *    as CDACQ_NOT_MANAGED. A negative value is a failure, and `err` holds one line of text that names the object and
 *    the address. The caller owns `err`, which may be NULL. After any other value than 0, outputs are untouched unless
 *    the function says otherwise.
 *  - No pointer may be NULL unless the function or the struct allows it, except `err`, `context` and what a function
 *    that ends a lifetime takes. Functions that open a path fail with CDACQ_ERR_ARGUMENT if it is NULL or empty.
 *  - A struct begins with its size unless it never changes (cdacq/error.h lists those). The caller sets the size in the
 *    structs that it provides, also in those that a call fills. The library writes no more than that many bytes and
 *    sets fields that it does not know to zero, so fields can be added without breaking callers. A size that is not set
 *    is CDACQ_ERR_ARGUMENT.
 *  - Flags are sets of the bits of an enum. A bit that the library does not know is CDACQ_ERR_ARGUMENT.
 *  - The first parameter is the handle that the function is named after. Outputs come last, then `err`.
 *  - A callback has its `context` as the last parameter; in a struct, the context follows the callbacks.
 *  - The text of an enum's value (cdacq_status_text and others) is a static string, never NULL.
 *  - A visitor returns 0 to continue. Any other value ends the visit with CDACQ_STOPPED. What its argument points to is
 *    valid until it returns, unless the struct says otherwise. It may use the session, unless the function says
 *    otherwise.
 *  - A target is hostile: sizes are capped and loops are bounded. A call on any input ends with an answer that the data
 *    supports or with a status. The library prefers no answer to a wrong one.
 *  - The library prints nothing and has no state outside of its handles that a caller could notice.
 *  - A code address may be a code pointer from a register, a slot or a return address: the library strips the Thumb
 *    bit and pointer authentication. Answers hold plain addresses.
 *  - Threads: several threads may share a `struct cdacq_target` of a core, an image or caller's memory. One thread at a
 *    time may use a `struct cdacq_session`. One thread at a time may use a target of a live process, or one with
 *    CDACQ_OPEN_RECORD, and all of its sessions together.
 *  - docs/versions.md says what a version may change. A change that breaks the binary interface changes the SONAME.
 */
#ifndef CDACQ_H
#define CDACQ_H

#include <cdacq/async.h>
#include <cdacq/block.h>
#include <cdacq/error.h>
#include <cdacq/exception.h>
#include <cdacq/follow.h>
#include <cdacq/heap.h>
#include <cdacq/jitdump.h>
#include <cdacq/last_words.h>
#include <cdacq/lock.h>
#include <cdacq/object.h>
#include <cdacq/perf.h>
#include <cdacq/processes.h>
#include <cdacq/sample.h>
#include <cdacq/session.h>
#include <cdacq/source.h>
#include <cdacq/stack.h>
#include <cdacq/stress_log.h>
#include <cdacq/target.h>
#include <cdacq/variables.h>
#include <cdacq/work.h>

CDACQ_BEGIN_DECLS

/* The version of the library in use, such as "0.2.0"; a static string. */
CDACQ_API const char *cdacq_version(void);

CDACQ_END_DECLS

#endif
