/*
 * perf_script.h: the lines of the text that `perf script` writes. A sample is a line with some of the fields that -F
 * chooses, always in the order
 *     COMM PID/TID [CPU] MISC TIME: PERIOD EVENT: ADDR DATA
 * and the frames of its call chain, innermost first, one a line after a tab, "ADDRESS SYMBOL+0xOFFSET (FILE)"; then an
 * empty line. A sample without a call chain has its only frame, or none, at the end of its line. Other records of the
 * file (--show-mmap-events and others) have PERF_RECORD_TYPE after the time. Without any field but those of frames, the
 * first line of a sample is empty.
 */
#ifndef CDACQ_CLI_COMMANDS_PERF_SCRIPT_H
#define CDACQ_CLI_COMMANDS_PERF_SCRIPT_H

#include "util/base.h"

/* A part of a line; NULL if the line has none. */
struct perf_script_part {
    const char *text;
    size_t length;
};

enum perf_script_evidence {
    PERF_SCRIPT_NO_HEADER,
    PERF_SCRIPT_TENTATIVE,    /* one if a frame follows in the next line: has only an id or an event */
    PERF_SCRIPT_HEADER,       /* lacks the id, or has nothing before it */
    PERF_SCRIPT_ID_HEADER,    /* a thread, its id, and an event */
    PERF_SCRIPT_TIMED_HEADER, /* a thread, its id, and a time */
};

/* The first line of a sample, or that of another record. */
struct perf_script_header {
    enum perf_script_evidence evidence;
    bool is_record; /* PERF_RECORD_TYPE, which is no sample */
    struct perf_script_part thread, event;
    const char *rest; /* what follows the fields, to the end of the line */
};

/* Finds the fields of a line, which is not empty and neither begins nor ends with a blank. */
void perf_script_header(const char *text, const char *end, struct perf_script_header *ret);

struct perf_script_frame {
    uint64_t ip;
    struct perf_script_part rest; /* the symbol and the file; may be empty */
};

/* "ADDRESS SYMBOL (FILE)", without the blanks before it. */
bool perf_script_frame(const char *text, const char *end, struct perf_script_frame *ret);

/* The frame at the end of the header of a sample without a call chain: the last address, which is 16 columns wide. */
bool perf_script_only_frame(const struct perf_script_header *header, const char *end, struct perf_script_frame *ret);

/* What `rest` of a frame has. */
struct perf_script_symbol {
    struct perf_script_part name; /* without the offset; NULL for "[unknown]" and where there is none */
    struct perf_script_part file; /* without parentheses */
    bool is_inlined;              /* "(inlined)" takes the place of the file */
    bool is_start;                /* the offset is 0 */
};

/* `has_file` is false if the frames of this event are without the field dso: what ends in parentheses is a name. */
void perf_script_symbol(struct perf_script_part rest, bool has_file, struct perf_script_symbol *ret);

#endif
