/*
 * cdacq/stress_log.h: the StressLog, a log of the runtime's own events that it keeps in memory if the process was
 * started with DOTNET_StressLog=1. .NET 10 and 11 describe it. Source: dotnet/runtime
 * docs/design/datacontracts/StressLog.md.
 */
#ifndef CDACQ_STRESS_LOG_H
#define CDACQ_STRESS_LOG_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* The log as a whole. The caller sets `size`. */
struct cdacq_stress_log {
    size_t size;
    uint64_t address;    /* of the runtime's StressLog; 0: there is none */
    bool is_on;          /* false: the process was started without the log, and the fields below are 0 */
    uint32_t facilities; /* a bit for each facility that is logged; see cdacq_stress_facility_name */
    uint32_t level;      /* up to which messages are logged: 0 is the most important one, 10 the usual maximum */
    uint64_t max_size_per_thread, max_size_total; /* bytes */
    uint64_t chunk_count;                         /* pieces of memory in use */
    uint64_t ticks_per_second;                    /* of the clock in messages */
    int64_t start_time_ns;                        /* since 1970-01-01 UTC; 0: not published (.NET 10) */
};

/*
 * Describes the log. Fails with CONTRACT if the runtime does not publish its StressLog in a version that this build
 * reads, as .NET 8 and 9, and with ARGUMENT, MEMORY or CORRUPT.
 */
CDACQ_API enum cdacq_status cdacq_session_get_stress_log(struct cdacq_session *session, struct cdacq_stress_log *ret,
                                                         struct cdacq_error *err);

/* The name of the facility of one bit, from 0 to 31: "GC", "JIT"; a static string. NULL for any other number. */
CDACQ_API const char *cdacq_stress_facility_name(unsigned bit);

/* What may be wrong with the text of a message: a bit each. */
enum cdacq_stress_flaw {
    CDACQ_STRESS_NO_ARGUMENT = 1 << 0, /* the format has more conversions than there are arguments */
    CDACQ_STRESS_MISSING = 1 << 1,     /* memory of a string is missing; the text has "(no string at 0x..)" instead */
    CDACQ_STRESS_CUT = 1 << 2,         /* the text, or a string in it, is cut */
    /* A string is in memory that the process could change after it wrote the message: it may be another one. */
    CDACQ_STRESS_CHANGEABLE = 1 << 3,
    CDACQ_STRESS_UNVERIFIED = 1 << 4, /* the format comes from a file that nothing in the target could confirm */
};

/*
 * A message, or, if `text` is NULL, what cannot be read of the log: `problem` is then one line that says what and why.
 * What pointers point to is valid during the visit.
 */
struct cdacq_stress_message {
    size_t size;
    uint64_t address; /* of the message, or of what cannot be read */
    uint64_t tid;     /* the kernel's id of the thread that wrote it, which may have ended; 0: not known */
    /*
     * From the start of the log. The runtime keeps 51 bits of its clock, which counts nanoseconds on Linux:
     * of a process that runs for more than 26 days, multiples of 2^51 ns are missing.
     */
    uint64_t time_ns;
    uint32_t facilities; /* bits */
    uint32_t argument_count;
    const uint64_t *arguments;
    const char *format; /* of printf, with the runtime's %pT, %pM, %pV and %pK; printable UTF-8 */
    const char *text;   /* printable UTF-8, without a newline at its end */
    unsigned flaws;     /* enum cdacq_stress_flaw */
    const char *problem;
};

/*
 * Calls `visit` for each message of all threads, the newest first. Addresses that the format marks as those of a type
 * (%pT), a method (%pM), a C++ class (%pV) or code (%pK) are followed by the name in parentheses, if there is one; it
 * is that of what is at the address now. A thread or a part of the log that cannot be read is visited as one element
 * with a problem, and the rest is visited. Of a process that runs, what it writes during the visit is not visited; a
 * message that it overwrites meanwhile is left out. Stop the process to see all of one moment.
 *
 * `visit` may use the session. CDACQ_STOPPED: `visit` returned non-zero. Nothing is visited if the log is off. Fails as
 * cdacq_session_get_stress_log does, and with NOMEM; with FUEL, after the messages that were visited, if there are more
 * messages or threads than any log has; with IO if a running process has ended.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_stress_log(struct cdacq_session *session,
                                                           int (*visit)(const struct cdacq_stress_message *message,
                                                                        void *context),
                                                           void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
