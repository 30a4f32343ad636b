/*
 * target_process.h: what is known of the process of a target as such.
 */
#ifndef CDACQ_TARGET_TARGET_PROCESS_H
#define CDACQ_TARGET_TARGET_PROCESS_H

#include "formats/core_notes.h"

/* Nothing is known in a zeroed struct. */
struct target_process {
    int inner_pid; /* of a running process: its id in its own pid namespace */
    char name[17];
    char arguments[4096]; /* the command line, separated by spaces */
    bool arguments_cut;
    struct elf_class elf;       /* of a core */
    uint64_t program_address;   /* of the program's path, in the target; or */
    char program[4096];         /* the path itself */
    struct core_siginfo signal; /* what ended the process */
    char abort_message[4096];   /* what the C library printed as it ended the process (target/abort_message.h) */
    int64_t time;               /* seconds since 1970: when a core was last written to, when a process started */
    bool is_stopped;            /* by a signal such as SIGSTOP; before it was held, if it is */
    bool is_frozen;             /* by the freezer of its control group */
};

#endif
