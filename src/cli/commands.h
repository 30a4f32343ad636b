/*
 * commands.h: the table of commands. How to add one: commands.c.
 */
#ifndef CDACQ_CLI_COMMANDS_H
#define CDACQ_CLI_COMMANDS_H

#include "src/cli/cli.h"

/* Which options a command takes, besides --help and --version. */
enum option_group {
    OPTIONS_TARGET = 1 << 0, /* how a target is opened */
    OPTIONS_RESULT = 1 << 1, /* --json, --output */
    OPTIONS_NAMES = 1 << 2,
    OPTIONS_METHODS = 1 << 3, /* which methods are listed */
    OPTIONS_RECORDS = 1 << 4,
    OPTIONS_FILE = 1 << 5,     /* only --output: there is no JSON */
    OPTIONS_STACK = 1 << 6,    /* which threads and frames are shown */
    OPTIONS_SNAPSHOT = 1 << 7, /* what a snapshot holds */
    OPTIONS_REPORT = 1 << 8,   /* how much a report has */
    OPTIONS_ELF = 1 << 9,      /* what an ELF file holds */
    OPTIONS_FILTER = 1 << 10,  /* what becomes of the text */
    OPTIONS_FOLLOW = 1 << 11,  /* whether the command goes on with what is new */
    OPTIONS_R2R = 1 << 12,     /* which ReadyToRun methods there are */
    OPTIONS_JITDUMP = 1 << 13, /* what a jitdump holds */
};

/* Where the list of commands has it. */
enum command_section {
    SECTION_PROCESS,
    SECTION_ADDRESSES,
    SECTION_FILES,
    SECTION_CORES,
    SECTION_RECORDS,
    SECTION_TOOL,
    SECTION_COUNT,
};

struct command {
    const char *name;
    enum command_section section;
    int (*run)(const struct invocation *invocation); /* NULL: `help` and `version`, which arguments.c resolves */
    const char *usage;                               /* arguments after the name */
    const char *summary;                             /* one line, for the list of commands */
    const char *details;                             /* lines for the command's own help */
    const char *exit_partly;                         /* meaning of exit code 1; NULL for the usual one */
    unsigned options;                                /* enum option_group */
    enum cdacq_name_style names;                     /* without --names */
    size_t targets_max;
    bool takes_targets; /* any number, which target_run reads in turn */
    bool takes_ips;
    bool takes_names;  /* in place of IPs */
    bool reads_ips;    /* from standard input, if there are no arguments for them */
    bool reads_text;   /* from standard input; TARGET may be missing with --folded */
    bool takes_file;   /* FILE after TARGET */
    bool finds_file;   /* that of a process, if there is no argument for it */
    bool stops_itself; /* with --stop: the process is stopped for each question, not until the end */
    bool target_is_optional;
};

extern const struct command commands[];
extern const size_t command_count;

/* Returns NULL if there is no such command. */
const struct command *command_find(const char *name);

/* The same, with a message that may name a similar command. */
const struct command *command_named(const char *name);

int cmd_bundle(const struct invocation *invocation);
int cmd_descriptor(const struct invocation *invocation);
int cmd_elf(const struct invocation *invocation);
int cmd_filter(const struct invocation *invocation);
int cmd_flame(const struct invocation *invocation);
int cmd_info(const struct invocation *invocation);
int cmd_inspect(const struct invocation *invocation);
int cmd_ip2method(const struct invocation *invocation);
int cmd_jitdump(const struct invocation *invocation);
int cmd_methods(const struct invocation *invocation);
int cmd_perfmap(const struct invocation *invocation);
int cmd_ps(const struct invocation *invocation);
int cmd_records(const struct invocation *invocation);
int cmd_report(const struct invocation *invocation);
int cmd_snapshot(const struct invocation *invocation);
int cmd_stack(const struct invocation *invocation);
int cmd_symfs(const struct invocation *invocation);
int cmd_verify(const struct invocation *invocation);

#endif
