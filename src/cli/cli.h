/*
 * cli.h: what every command of the tool shares: the invocation that arguments.c has parsed, exit codes and opening
 * the target. One thread; nothing outlives main.
 */
#ifndef CDACQ_CLI_CLI_H
#define CDACQ_CLI_CLI_H

#include "cdacq.h"

enum {
    EXIT_ANSWERED = 0, /* everything that was asked */
    EXIT_PARTLY = 1,   /* some of it was not; also: two descriptors differ */
    EXIT_FAILED = 2,   /* nothing could be; a message says why */
    EXIT_USAGE = 64,   /* EX_USAGE of sysexits.h */
};

struct command;

/* --r2r; without it each command has its own default. */
enum r2r_methods { R2R_DEFAULT, R2R_PREPARED, R2R_ALL };

/* The command line, parsed and checked. */
struct invocation {
    const struct command *command;
    const char **strings;       /* owns the arrays below, not the strings */
    const char *const *targets; /* TARGET, and OTHER of `descriptor` */
    size_t target_count;
    const char *file;       /* FILE of commands that take one after TARGET */
    const char *const *ips; /* what follows TARGET, for commands that take IPs; not parsed */
    size_t ip_count;
    struct cdacq_options options;
    const char *output; /* NULL: standard output */
    bool json;
    bool stubs;
    enum r2r_methods r2r;
    bool follow;
};

/* Opens a core by its path or a process by its decimal pid. On failure says why and returns NULL. */
struct cdacq_target *target_open(const char *name, const struct cdacq_options *options);

/*
 * What a command about one target does: opens TARGET with the invocation's options and `more_flags`, runs `run`,
 * closes. Returns run's exit code, EXIT_FAILED where there was nothing to run on. With CDACQ_OPEN_PARTIAL `run` gets no
 * session where no method can be found; a message has said why.
 */
int target_run(const struct invocation *invocation, unsigned more_flags,
               int (*run)(const struct invocation *invocation, struct cdacq_target *target,
                          struct cdacq_session *session));

/* Whether --output names one of the targets: writing there would destroy the core that is read. Says so where it is. */
bool output_is_a_target(const struct invocation *invocation);

#endif
