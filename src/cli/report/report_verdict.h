/*
 * report_verdict.h: what a report says first. One thread at a time.
 */
#ifndef CDACQ_CLI_REPORT_REPORT_VERDICT_H
#define CDACQ_CLI_REPORT_REPORT_VERDICT_H

#include "src/cli/base/json_writer.h"
#include "src/cli/report/report.h"

struct report_verdict {
    const char *kind;      /* a word for programs: "deadlock" */
    const char *certainty; /* likewise: "certain", "likely", "moment" or "unknown" */
    const char
        *waits_for; /* likewise, of a thread that waits: "socket"; NULL: it does not, or another thread is known */
    const char *slowed_by;             /* likewise, of a busy process: "exceptions"; NULL: nothing special */
    const struct cdacq_method *called; /* the method of the framework that waits for the program; NULL: not known */
    int tid;                           /* the thread that died, waits or is busy; 0: none */
    int holder;                        /* the thread that holds the lock that `tid` waits for; 0: none */
    bool tells_pending;                /* `by` is about the most frequent async methods */
    struct report_place place;
    struct report_place blocked; /* where the thread itself waits, if `place` is of an async method */
    /* Lines of text, escaped. An empty one says nothing. */
    struct output what;
    struct output by;     /* what did it, or which thread has to go on first */
    const char *by_label; /* what the line is called; NULL: "by" */
    struct output sure;   /* why it is as certain as it is */
    struct output next;   /* a command */
};

/* Forms the verdict of a report whose waits and end are known. The caller releases it. */
void report_verdict_form(const struct report *report, struct report_verdict *ret);
void report_verdict_release(struct report_verdict *verdict);

/* Up to five lines, and an empty one. */
void report_verdict_write_text(const struct report_verdict *verdict, const struct report *report, struct output *out);

/* The member "verdict". */
void report_verdict_write_json(struct report_verdict *verdict, const struct report *report, struct json_writer *w);

#endif
