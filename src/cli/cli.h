/*
 * cli.h: what all commands share: the parsed invocation, exit codes and opening the target. One thread; nothing
 * outlives main.
 */
#ifndef CDACQ_CLI_CLI_H
#define CDACQ_CLI_CLI_H

#include "cdacq.h"

enum {
    EXIT_ANSWERED = 0, /* every question */
    EXIT_PARTLY = 1,   /* some questions have no answer, or two descriptors differ */
    EXIT_FAILED = 2,   /* no question has an answer; a message says why */
    EXIT_USAGE = 64,   /* EX_USAGE of sysexits.h */
};

struct command;

/* --r2r; the default depends on the command. */
enum r2r_methods { R2R_DEFAULT, R2R_PREPARED, R2R_ALL };

/* The command line, parsed and checked. */
struct busy_threads;

struct invocation {
    const struct command *command;
    const char **strings;       /* owns the arrays below, not the strings */
    const char *const *targets; /* TARGET, and OTHER of `descriptor` */
    size_t target_count;
    bool is_one_of_several; /* targets that are read in turn: results say which one they are of */
    const char *file;       /* FILE after TARGET */
    const char *const *ips; /* arguments after TARGET, not parsed */
    size_t ip_count;
    struct cdacq_options options;
    const char *output; /* NULL: standard output */
    bool json;
    bool verbose;
    bool stubs;
    enum r2r_methods r2r;
    bool code;   /* of `elf` */
    bool samply; /* of `jitdump` */
    bool follow;
    bool has_at, has_time; /* of `records` */
    uint64_t at, time;
    bool folded;               /* of `filter` */
    bool stacks;               /* of `snapshot` */
    bool brief, signature;     /* of `report` */
    struct busy_threads *busy; /* filled before a process is opened; NULL: not wanted */
    int thread;                /* of `stack`: the only one to show; 0: all */
    bool managed;              /* of `stack`: no other frames */
    bool each;                 /* of `stack`: identical stacks are not merged */
};

/* Whether TARGET is "-". */
bool target_is_stdin(const char *name);

/* Whether it is an ELF image, which has no code of a process. A message says so. */
bool target_is_refused(const char *name);

/* Whether TARGET is a pid: digits. A core of that name is "./1234". */
bool target_is_pid(const char *name);

/* The pid. 0 if no process can have the number. */
int target_pid(const char *name);

enum { FILE_HEADER_SIZE = 18 }; /* bytes: up to the type of an ELF file */

/*
 * Reads the header of a regular file. Returns the type of an ELF file (ET_CORE and others); ET_NONE for what is none,
 * or cannot be read, with a header of zeros then. Never waits for a pipe or a device.
 */
unsigned file_elf_type(const char *path, uint8_t header[FILE_HEADER_SIZE]);

/* The size of a file; 0 if there is none. */
uint64_t path_size(const char *path);

/* TARGET as messages and results name it. */
const char *target_display_name(const char *name);

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

/*
 * Opens TARGET with the invocation's options and `more_flags`, calls `run` and closes TARGET. Returns run's exit code,
 * or EXIT_FAILED with a message. With CDACQ_OPEN_PARTIAL, `session` is NULL if no method can be found.
 */
int target_run(const struct invocation *invocation, unsigned more_flags,
               int (*run)(const struct invocation *invocation, struct cdacq_target *target,
                          struct cdacq_session *session));

/* Set the total of a count of mapped files or threads, if it is shown. */
struct progress;
void expect_modules(struct progress *progress, struct cdacq_target *target);
void expect_threads(struct progress *progress, struct cdacq_session *session);

/* Whether --stop was given for a process. Commands whose row has `stops_itself` stop it while they ask. */
bool stop_is_wanted(const struct invocation *invocation);

/* How a core that is cut off ends, or how much of it was read. */
const char *target_truncation(const struct cdacq_target_info *info);

/* Stops the process until cdacq_target_resume. False, with a message, if that is not possible. */
bool target_stop(struct cdacq_target *target);

/* Returns whether --output names the file `path`, which writing would destroy. If so, a message says so. */
bool output_is_input(const struct invocation *invocation, const char *path);

/* The same of all files that the command line gives as input. */
bool output_is_a_target(const struct invocation *invocation);

#endif
