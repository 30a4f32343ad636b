/*
 * commands.h: a command is a row too, at the end of its cmd_NAME.c. How to add one: commands.c.
 */
#ifndef CDACQ_CLI_BASE_COMMANDS_H
#define CDACQ_CLI_BASE_COMMANDS_H

#include "src/cli/base/target.h"
#include "src/cli/base/common_options.h"

enum operand_kind {
    OPERAND_TARGET,        /* a core, '-' for one on standard input, or a pid */
    OPERAND_STORED_TARGET, /* the same without '-': standard input is the command's text */
    OPERAND_FILE,
    OPERAND_FILE_OR_PID,
    OPERAND_FOLDER,
    OPERAND_ADDRESS,
    OPERAND_NAME,    /* of a method */
    OPERAND_COMMAND, /* its name */
    OPERAND_OPTION,  /* none: an option that the usage shows here */
};

enum operand_need {
    REQUIRED,
    OPTIONAL,
    OPTIONAL_FOR_PID, /* required if the target is no process */
};

struct operand_row {
    const char *name; /* NULL after the last row */
    enum operand_kind kind;
    enum operand_need need;
    bool repeats;
    bool or_stdin; /* it is read from standard input if there is none */
    bool is_list;  /* it goes to a struct word_list, after others that do; else to a string */
    size_t offset; /* of the member of the command's struct */
};

#define TO_WORDS(STRUCT, MEMBER) .is_list = true, .offset = OPTION_MEMBER(struct word_list, STRUCT, MEMBER)
#define TO_WORD(STRUCT, MEMBER)  .offset = OPTION_MEMBER(const char *, STRUCT, MEMBER)
/* A target, or several, which target_run reads in turn. */
#define TARGET_OPERAND "TARGET", OPERAND_TARGET, TO_WORDS(struct common_options, targets)
#define IP_OPERAND     "IP", OPERAND_ADDRESS, OPTIONAL, .repeats = true, TO_WORDS(struct address_options, ips)
/* The function, and the struct of options that it takes. */
#define RUNS(FUNCTION, STRUCT) .run = (FUNCTION), .options_size = sizeof(STRUCT)
#define OPERANDS(...)          ((const struct operand_row[]){__VA_ARGS__, {0}})
/* Lists of option rows, besides those that every command takes. */
#define OPTIONS(...) ((const struct option_row *const[]){__VA_ARGS__, NULL})

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
    int (*run)(const void *options);         /* the command's own struct; returns an exit code */
    size_t options_size;                     /* of that struct */
    const struct operand_row *operands;      /* OPERANDS(...); NULL: takes none */
    const struct option_row *const *options; /* OPTIONS(...); NULL: takes none of its own */
    const char *summary;                     /* one line, for the list of commands */
    const char *details;                     /* lines for the command's own help */
    const char *exit_partly;                 /* meaning of exit code 1; NULL for the usual one */
    enum cdacq_name_style names;             /* without --names */
};

extern const struct command *const commands[];
extern const size_t command_count;

/* Returns NULL if there is no such command. */
const struct command *command_find(const char *name);

/* The same, with a message that may name a similar command. */
const struct command *command_named(const char *name);

/* The option of this number, in the order in which options are shown. NULL: there are not so many. */
const struct option_row *option_at(size_t number);

/* Whether a command takes the option; NULL: any command. */
bool command_takes(const struct command *command, const struct option_row *row);

/* Whether it takes the options that say how a target is opened. */
bool command_opens_target(const struct command *command);

/* The arguments after the name: "TARGET [IP...]". */
enum { USAGE_SIZE = 64 };
const char *command_usage(const struct command *command, char room[static USAGE_SIZE]);

extern const struct command command_async, command_bundle, command_complete, command_descriptor, command_elf,
    command_filter, command_flame, command_heap, command_help, command_info, command_inspect, command_ip2method,
    command_jitdump, command_methods, command_object, command_perfmap, command_ps, command_record, command_records,
    command_report, command_snapshot, command_stack, command_symfs, command_verify, command_version, command_work;

/* The options of one command. */
extern const struct option_row async_rows[], complete_rows[], elf_rows[], heap_rows[], info_rows[], jitdump_rows[],
    object_rows[], record_rows[], records_rows[], report_rows[], snapshot_rows[], stack_rows[];

#endif
