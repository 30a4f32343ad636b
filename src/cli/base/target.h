/*
 * target.h: opens targets and runs a command on them. One thread; nothing outlives main.
 */
#ifndef CDACQ_CLI_BASE_TARGET_H
#define CDACQ_CLI_BASE_TARGET_H

#include "cdacq.h"
#include "src/cli/base/common_options.h"
#include "src/cli/base/exit_code.h"
#include "src/cli/base/target_name.h"

/*
 * Opens a core by its path, a process by its decimal pid, or the core on standard input ("-"). Returns NULL on failure,
 * with a message. A message also says that a compressed core, or one from standard input, is incomplete.
 */
struct cdacq_target *target_open(const char *name, const struct cdacq_options *options);

/*
 * Shows how much of a file cdacq_options.progress reports as read: "12 of 40 MiB of core.1 read". One at a time. The
 * target must be one of target_open. `results` as for progress_begin.
 */
void bytes_begin(const char *name, int results);
void bytes_end(void);

/* A target that target_run has opened. */
struct opened_target {
    const char *name; /* as the command line has it */
    struct cdacq_target *target;
    struct cdacq_session *session; /* NULL if no method can be found, which CDACQ_OPEN_PARTIAL allows */
    bool is_one_of_several;        /* they are read in turn: results say which one they are of */
    bool tells_runtime;            /* results say which runtime they are of: several are asked */
    struct busy_threads *busy;     /* of before it was stopped; NULL: not wanted */
};

/* How a command reads its targets. */
struct target_use {
    int (*run)(const void *options, const struct opened_target *opened); /* returns an exit code */
    unsigned flags;            /* CDACQ_OPEN_*; not ALL_RUNTIMES where an option is about one runtime */
    bool stops_itself;         /* with --stop: the process is stopped for each question, not until the end */
    bool shows_runtime;        /* it says itself which runtime it is about */
    bool no_heading;           /* between the results of several targets */
    const char *file;          /* another operand, which --output must not name; NULL: none */
    struct busy_threads *busy; /* NULL: not wanted; else emptied for each target, and filled by: */
    /* Watches a process that is open, before it is stopped. Sessions that it creates are destroyed when it returns. */
    void (*watch)(struct cdacq_target *target, int pid, struct busy_threads *ret);
};

/*
 * Opens each target in turn, runs the command on it with its own options, and closes it. Returns the worst exit code;
 * EXIT_FAILED, with a message, for a target that cannot be opened.
 */
int target_run(const struct common_options *options, const struct target_use *use);

/* Set the total of a count of mapped files or threads, if it is shown. */
struct progress;
void expect_modules(struct progress *progress, struct cdacq_target *target);
void expect_threads(struct progress *progress, struct cdacq_session *session);

/* Whether --stop was given for a process. Commands with `stops_itself` stop it while they ask. */
bool stop_is_wanted(const struct common_options *options, const char *target);

/* How a core that is cut off ends, or how much of it was read. */
const char *target_truncation(const struct cdacq_target_info *info);

/* Stops the process until target_let_go(). False, with a message, if that is not possible. */
bool target_stop(struct cdacq_target *target);

/* Lets the process run on, if it is stopped. A signal that came meanwhile, and stops the tool, does so now. */
void target_let_go(struct cdacq_target *target);

/* Whether --output names the file `path`, which writing would destroy. If so, a message says so. */
bool output_is_input(const struct common_options *options, const char *path);

/* The same of a file that is the target; "-" is one, unless the command opens targets. */
bool output_is_file(const struct common_options *options, const char *path);

/* The same of all targets that the command opens. */
bool output_is_a_target(const struct common_options *options);

#endif
