/*
 * cdacq/follow.h: follows the code that a running process compiles.
 */
#ifndef CDACQ_FOLLOW_H
#define CDACQ_FOLLOW_H

#include <cdacq/perf.h>

CDACQ_BEGIN_DECLS

/*
 * A follower of a running process: each call reads the process again and returns what is new since the last call. The
 * runtime keeps no list of what it has compiled, so a call lists all code and compares it with what is known. Code that
 * was made and freed between two calls is not seen. Freed code is not reported; code that is made in its place later is
 * new. A method with the same name, MethodDesc, start and size as before counts as the same method. The follower
 * belongs to the thread that uses its target.
 */
struct cdacq_follower;

/*
 * Follows the target, which stays open until the follower is destroyed. `flags` are enum cdacq_visit_flags and, for
 * cdacq_follower_write_jitdump, enum cdacq_jitdump_write_flags. Reads nothing. Fails with NOMEM, or with ARGUMENT
 * unless the target is a process that was opened without CDACQ_OPEN_STOP and CDACQ_OPEN_RECORD.
 */
CDACQ_API enum cdacq_status cdacq_follower_create(struct cdacq_target *target, unsigned flags,
                                                  struct cdacq_follower **ret, struct cdacq_error *err);

/* Frees the follower. Does not end a jitdump. NULL is allowed. */
CDACQ_API void cdacq_follower_destroy(struct cdacq_follower *follower);

/*
 * Visits the new methods as cdacq_session_visit_methods does; the first call visits all. If code cannot be read, the
 * next calls try again, and after a few calls it is visited once, as an error. The strings of a method are valid until
 * `visit` returns. CDACQ_STOPPED: `visit` returned non-zero. CDACQ_DONE: the process has ended or executed another
 * program, before or during the call. Fails as cdacq_session_visit_methods does, if several calls in a row fail.
 */
CDACQ_API enum cdacq_status cdacq_follower_visit_methods(struct cdacq_follower *follower,
                                                         int (*visit)(const struct cdacq_method *method, void *context),
                                                         void *context, struct cdacq_error *err);

/*
 * Writes the records of a jitdump for the new methods; the first call also writes the header. Each call of `write` gets
 * one or more whole records. *ret counts what all calls have written. The code that the first call finds has the
 * timestamps 1, 2, 3, ... nanoseconds, so that it is older than any sample of it. Code that a later call finds has the
 * time, of CLOCK_MONOTONIC, at which the process was last read without it. A method that replaces another at its
 * address is a JIT_CODE_LOAD with a code_index of its own. Do not mix with cdacq_follower_visit_methods. Returns and
 * fails as that function does.
 */
CDACQ_API enum cdacq_status cdacq_follower_write_jitdump(struct cdacq_follower *follower, const struct cdacq_sink *sink,
                                                         struct cdacq_written *ret, struct cdacq_error *err);

/* Writes the JIT_CODE_CLOSE, after which both calls fail with ARGUMENT. Fails with NOMEM, and with CDACQ_STOPPED. */
CDACQ_API enum cdacq_status cdacq_follower_close_jitdump(struct cdacq_follower *follower, const struct cdacq_sink *sink,
                                                         struct cdacq_written *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
