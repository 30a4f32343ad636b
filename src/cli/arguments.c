/*
 * arguments.c: parses the command line. One table lists the options; getopt's tables, the check whether a command takes
 * an option, and the help are made from it. Options may be anywhere, even with POSIXLY_CORRECT set.
 */
#include "src/cli/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/next_steps.h"
#include "src/cli/ips.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"
#include "util/base.h"

enum option_id {
    OPTION_JSON = 256, /* beyond any letter */
    OPTION_SYSROOT,
    OPTION_MODULE_PATH,
    OPTION_STOP,
    OPTION_DEBUGINFOD,
    OPTION_DESCRIPTOR,
    OPTION_DESCRIPTOR_ADDRESS,
    OPTION_RUNTIME,
    OPTION_STORE_MAX,
    OPTION_WORK_MAX,
    OPTION_MEMORY_MAX,
    OPTION_NAMES,
    OPTION_STUBS,
    OPTION_R2R,
    OPTION_CODE,
    OPTION_FOLLOW,
    OPTION_AT,
    OPTION_TIME,
    OPTION_FOLDED,
    OPTION_STACKS,
    OPTION_BRIEF,
    OPTION_SIGNATURE,
    OPTION_THREAD,
    OPTION_MANAGED,
    OPTION_EACH,
    OPTION_OUTPUT = 'o',
    OPTION_HELP = 'h',
    OPTION_VERSION = 'V',
};

static const struct option_row {
    const char *name;
    const char *argument; /* NULL: takes none */
    const char *help;
    unsigned groups; /* 0: every command takes it */
    int id;
} rows[] = {
    {"json", NULL, "print JSON, one object a line", OPTIONS_RESULT, OPTION_JSON},
    {"output", "FILE", "write to FILE instead of standard output", OPTIONS_RESULT | OPTIONS_FILE, OPTION_OUTPUT},
    {"sysroot", "DIR", "look for the target's files by their paths below DIR (repeatable)", OPTIONS_TARGET,
     OPTION_SYSROOT},
    {"module-path", "DIR", "look for the target's files anywhere below DIR (repeatable)", OPTIONS_TARGET,
     OPTION_MODULE_PATH},
    {"debuginfod", NULL, "ask the servers in DEBUGINFOD_URLS for missing ELF files", OPTIONS_TARGET, OPTION_DEBUGINFOD},
    {"stop", NULL, "stop a running process while it is read", OPTIONS_TARGET, OPTION_STOP},
    {"runtime", "N", "use runtime N, counted from 0, of several in one process", OPTIONS_TARGET, OPTION_RUNTIME},
    {"store-max", "SIZE", "store at most SIZE (8G) of a compressed core or of standard input", OPTIONS_TARGET,
     OPTION_STORE_MAX},
    {"work-max", "STEPS", "stop after STEPS of work; 0: never (for a core, by its size: 2 s)", OPTIONS_TARGET,
     OPTION_WORK_MAX},
    {"memory-max", "SIZE", "keep at most SIZE in memory; 0: any (for a core, by its size: 256M)", OPTIONS_TARGET,
     OPTION_MEMORY_MAX},
    {"descriptor", "FILE", "read JSON that overrides the runtime's descriptor (repeatable)", OPTIONS_TARGET,
     OPTION_DESCRIPTOR},
    {"descriptor-address", "ADDR", "address of DotNetRuntimeContractDescriptor, in hex", OPTIONS_TARGET,
     OPTION_DESCRIPTOR_ADDRESS},
    {"names", "STYLE", "write names as csharp, sos, il or source", OPTIONS_NAMES, OPTION_NAMES},
    {"stubs", NULL, "include the runtime's own stubs", OPTIONS_METHODS, OPTION_STUBS},
    {"r2r", "WHICH", "include ReadyToRun methods: 'prepared' or 'all'", OPTIONS_METHODS | OPTIONS_R2R, OPTION_R2R},
    {"code", NULL, "include the bytes of the code", OPTIONS_ELF, OPTION_CODE},
    {"follow", NULL, "wait for more records", OPTIONS_RECORDS, OPTION_FOLLOW},
    {"folded", NULL, "fold the stacks of 'perf script', for flame graphs", OPTIONS_FILTER, OPTION_FOLDED},
    {"at", "ADDR", "show the function that has this address, moves applied", OPTIONS_RECORDS, OPTION_AT},
    {"time", "T", "with --at: after the records up to this time of the file", OPTIONS_RECORDS, OPTION_TIME},
    {"stacks", NULL, "include the registers and the stack of every thread", OPTIONS_SNAPSHOT, OPTION_STACKS},
    {"brief", NULL, "report only the signal, the exception and the thread that died", OPTIONS_REPORT, OPTION_BRIEF},
    {"signature", NULL, "print one line that is the same for the same defect", OPTIONS_REPORT, OPTION_SIGNATURE},
    {"thread", "TID", "show only the thread with this thread id", OPTIONS_STACK, OPTION_THREAD},
    {"managed", NULL, "show only managed frames", OPTIONS_STACK, OPTION_MANAGED},
    {"each", NULL, "show the stack of each thread, also if several have the same", OPTIONS_STACK, OPTION_EACH},
    {"help", NULL, "print this help, or that of COMMAND, and exit", 0, OPTION_HELP},
    {"version", NULL, "print the version and exit", 0, OPTION_VERSION},
};

static bool has_letter(const struct option_row *row)
{
    return row->id < OPTION_JSON;
}

static const struct option_row *row_of(int id)
{
    const struct option_row *row = rows;
    while (row->id != id)
        row++;
    return row;
}

void arguments_print_options(struct output *out, unsigned groups)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct option_row *row = &rows[i];
        if (row->groups && !(row->groups & groups))
            continue;
        char option[40];
        snprintf(option, sizeof option, "--%s%s%s", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        if (has_letter(row))
            output_printf(out, "  -%c, %-26s %s\n", row->id, option, row->help);
        else
            output_printf(out, "      %-26s %s\n", option, row->help);
    }
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

struct arguments {
    struct invocation *invocation;
    const char **operands, **sysroots, **module_paths, **descriptors; /* each has room for all arguments */
    size_t operand_count;
    uint32_t given; /* one bit for each row */
    bool help, version;
};

static bool wrong_value(int id, const char *value, const char *problem)
{
    message("--%s '%s': %s", row_of(id)->name, value, problem);
    return false;
}

static bool take_runtime(struct cdacq_options *options, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno || number > UINT_MAX)
        return wrong_value(OPTION_RUNTIME, value, "not a number");
    options->runtime = (unsigned)number;
    return true;
}

/* A number with a unit of K, M, G or T: of bytes, powers of 1,024; of steps, powers of 1,000. */
static bool take_number(int id, const char *value, unsigned unit_size, bool zero, uint64_t *ret)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool wrong = value[0] < (zero ? '0' : '1') || value[0] > '9' || errno || end[unit != NULL];
    for (ptrdiff_t i = 0; unit && i <= unit - units; i++)
        wrong |= __builtin_mul_overflow(number, unit_size, &number);
    if (wrong)
        return wrong_value(id, value,
                           unit_size == 1000 ? "expected a number of steps, such as 500M or 8G"
                                             : "expected a number of bytes, such as 500M or 8G");
    *ret = number;
    return true;
}

static bool take_descriptor_address(struct cdacq_options *options, const char *value)
{
    struct bad_ip bad;
    if (!ips_parse(value, strlen(value), &options->descriptor_address, &bad))
        return wrong_value(OPTION_DESCRIPTOR_ADDRESS, value, bad.problem);
    if (!options->descriptor_address)
        return wrong_value(OPTION_DESCRIPTOR_ADDRESS, value, "nothing can be at address 0");
    return true;
}

static bool take_names(struct cdacq_options *options, const char *value)
{
    static const char *const styles[] = {[CDACQ_NAMES_CSHARP] = "csharp",
                                         [CDACQ_NAMES_SOS] = "sos",
                                         [CDACQ_NAMES_IL] = "il",
                                         [CDACQ_NAMES_SOURCE] = "source"};
    for (size_t i = 0; i < ARRAY_SIZE(styles); i++)
        if (!strcmp(value, styles[i])) {
            options->names = (enum cdacq_name_style)i;
            return true;
        }
    return wrong_value(OPTION_NAMES, value, "expected 'csharp', 'sos', 'il' or 'source'");
}

static bool take_r2r(struct invocation *invocation, const char *value)
{
    invocation->r2r = !strcmp(value, "all") ? R2R_ALL : !strcmp(value, "prepared") ? R2R_PREPARED : R2R_DEFAULT;
    return invocation->r2r || wrong_value(OPTION_R2R, value, "expected 'all' or 'prepared'");
}

static bool take_at(struct invocation *invocation, const char *value)
{
    struct bad_ip bad;
    if (!ips_parse(value, strlen(value), &invocation->at, &bad))
        return wrong_value(OPTION_AT, value, bad.problem);
    return invocation->has_at = true;
}

static bool take_time(struct invocation *invocation, const char *value)
{
    char *end;
    errno = 0;
    invocation->time = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno)
        return wrong_value(OPTION_TIME, value, "not a time as the file counts it");
    return invocation->has_time = true;
}

static bool take_thread(struct invocation *invocation, const char *value)
{
    char *end;
    errno = 0;
    long tid = strtol(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno || tid <= 0 || tid > INT_MAX)
        return wrong_value(OPTION_THREAD, value, "not a thread id");
    invocation->thread = (int)tid;
    return true;
}

static bool take_option(struct arguments *arguments, int id, const char *value)
{
    struct invocation *invocation = arguments->invocation;
    struct cdacq_options *options = &invocation->options;
    arguments->given |= UINT32_C(1) << (row_of(id) - rows);
    switch (id) {
    case OPTION_JSON:
        return invocation->json = true;
    case OPTION_OUTPUT:
        invocation->output = value;
        return value[0] || wrong_value(id, value, "not a file name");
    case OPTION_SYSROOT:
        arguments->sysroots[options->sysroot_count++] = value;
        return true;
    case OPTION_MODULE_PATH:
        arguments->module_paths[options->module_path_count++] = value;
        return true;
    case OPTION_DESCRIPTOR:
        arguments->descriptors[options->descriptor_count++] = value;
        return true;
    case OPTION_DEBUGINFOD:
        options->flags |= CDACQ_OPEN_DEBUGINFOD;
        return true;
    case OPTION_STOP:
        options->flags |= CDACQ_OPEN_STOP;
        return true;
    case OPTION_DESCRIPTOR_ADDRESS:
        return take_descriptor_address(options, value);
    case OPTION_RUNTIME:
        return take_runtime(options, value);
    case OPTION_STORE_MAX:
        return take_number(id, value, 1024, false, &options->store_max);
    case OPTION_WORK_MAX:
        return take_number(id, value, 1000, true, &options->work_max);
    case OPTION_MEMORY_MAX:
        return take_number(id, value, 1024, true, &options->memory_max);
    case OPTION_NAMES:
        return take_names(options, value);
    case OPTION_STUBS:
        return invocation->stubs = true;
    case OPTION_R2R:
        return take_r2r(invocation, value);
    case OPTION_CODE:
        return invocation->code = true;
    case OPTION_FOLLOW:
        return invocation->follow = true;
    case OPTION_FOLDED:
        return invocation->folded = true;
    case OPTION_AT:
        return take_at(invocation, value);
    case OPTION_TIME:
        return take_time(invocation, value);
    case OPTION_STACKS:
        return invocation->stacks = true;
    case OPTION_BRIEF:
        return invocation->brief = true;
    case OPTION_SIGNATURE:
        return invocation->signature = true;
    case OPTION_THREAD:
        return take_thread(invocation, value);
    case OPTION_MANAGED:
        return invocation->managed = true;
    case OPTION_EACH:
        return invocation->each = true;
    case OPTION_HELP:
        return arguments->help = true;
    default:
        return arguments->version = true;
    }
}

/* ---- Parsing --------------------------------------------------------------------------------------------------- */

/* Makes getopt's tables. `-` returns operands in order, `:` suppresses getopt's messages. */
static void make_tables(char *letters, struct option *longs)
{
    *letters++ = '-';
    *letters++ = ':';
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        *longs++ = (struct option){rows[i].name, rows[i].argument ? required_argument : no_argument, NULL, rows[i].id};
        if (!has_letter(&rows[i]))
            continue;
        *letters++ = (char)rows[i].id;
        if (rows[i].argument)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){0};
}

/* `shown` is the argument that getopt read last. */
static bool refuse(int id, const char *shown)
{
    if (id == ':')
        message("option '%s' needs an argument", shown);
    else if (optopt && optopt < OPTION_JSON)
        message("unknown option '-%c'; see 'cdacq --help'", optopt);
    else if (optopt)
        message("option '%s' takes no argument", shown);
    else
        message("unknown or ambiguous option '%s'; see 'cdacq --help'", shown);
    return false;
}

static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    enum { OPERAND = 1, END = -1 };
    char letters[2 * ARRAY_SIZE(rows) + 3];
    struct option longs[ARRAY_SIZE(rows) + 1];
    make_tables(letters, longs);
    for (;;) {
        int id = getopt_long(argc, argv, letters, longs, NULL);
        if (id == END)
            break;
        if (id == OPERAND)
            arguments->operands[arguments->operand_count++] = optarg;
        else if (id == '?' || id == ':')
            return refuse(id, argv[optind - 1]);
        else if (!take_option(arguments, id, optarg))
            return false;
    }
    while (optind < argc) /* after "--" */
        arguments->operands[arguments->operand_count++] = argv[optind++];
    return true;
}

static bool takes_options(const struct command *command, uint32_t given)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (!(given >> i & 1) || !rows[i].groups || rows[i].groups & command->options)
            continue;
        message("'%s' does not take --%s; see 'cdacq %s --help'", command->name, rows[i].name, command->name);
        return false;
    }
    return true;
}

static bool wrong_usage(const struct command *command)
{
    message("usage: cdacq %s %s; see 'cdacq %s --help'", command->name, command->usage, command->name);
    return false;
}

/* Standard input holds one thing. */
static bool takes_stdin(const struct invocation *invocation)
{
    size_t count = 0;
    if (!(invocation->command->options & OPTIONS_TARGET))
        return true;
    for (size_t i = 0; i < invocation->target_count; i++)
        count += target_is_stdin(invocation->targets[i]);
    if (count > 1)
        message("only one target can be read from standard input ('-')");
    else if (count && invocation->command->reads_ips && !invocation->ip_count)
        message("standard input ('-') is the core, so the IPs must be arguments");
    else if (count && invocation->command->reads_text)
        message("standard input is the text, so the core must be a file");
    else
        return true;
    return false;
}

/* What follows the pid of a process and is itself one is not an address, as in `cdacq ip2method $(pidof dotnet)`. */
static bool takes_as_addresses(const struct invocation *invocation)
{
    char path[40];
    for (size_t i = 0; i < invocation->ip_count; i++) {
        const char *ip = invocation->ips[i];
        if (!target_is_pid(invocation->targets[0]) || !target_is_pid(ip) || ip[0] == '0' || strlen(ip) > 7)
            continue;
        snprintf(path, sizeof path, "/proc/%s", ip);
        if (access(path, F_OK) == 0) {
            message("'%s' is a process, too, and one process is read at a time; write 0x%s for the address", ip, ip);
            return false;
        }
    }
    return true;
}

static bool takes_operands(const struct command *command, struct arguments *arguments)
{
    struct invocation *invocation = arguments->invocation;
    size_t count = arguments->operand_count - 1;
    if (!count && !(command->reads_text && invocation->folded))
        return wrong_usage(command);
    invocation->targets = arguments->operands + 1;
    invocation->target_count = count < command->targets_max ? count : command->targets_max;
    invocation->ips = invocation->targets + invocation->target_count;
    invocation->ip_count = count - invocation->target_count;
    if (command->takes_file && (invocation->ip_count || !target_is_pid(invocation->targets[0]))) {
        if (!invocation->ip_count)
            return wrong_usage(command);
        invocation->file = *invocation->ips++;
        invocation->ip_count--;
    }
    if (invocation->ip_count && !command->takes_ips) {
        message("unexpected argument '%s'; usage: cdacq %s %s", invocation->ips[0], command->name, command->usage);
        return false;
    }
    if (!takes_as_addresses(invocation))
        return false;
    for (size_t i = 0; i < invocation->target_count; i++)
        if (!invocation->targets[i][0]) {
            message("'' is neither a path nor a pid");
            return false;
        }
    return takes_stdin(invocation);
}

static enum arguments_result resolve(struct arguments *arguments)
{
    struct invocation *invocation = arguments->invocation;
    if (arguments->version)
        return ARGUMENTS_VERSION;
    if (!arguments->operand_count) {
        if (arguments->help)
            return ARGUMENTS_HELP;
        message("no command given; 'cdacq --help' lists them");
        return ARGUMENTS_WRONG;
    }
    const struct command *command = command_find(arguments->operands[0]);
    if (!command) {
        message("unknown command '%s'; 'cdacq --help' lists all", arguments->operands[0]);
        return ARGUMENTS_WRONG;
    }
    invocation->command = command;
    if (arguments->help)
        return ARGUMENTS_HELP;
    if (!(arguments->given >> (row_of(OPTION_NAMES) - rows) & 1))
        invocation->options.names = command->names;
    if (!takes_options(command, arguments->given) || !takes_operands(command, arguments))
        return ARGUMENTS_WRONG;
    return ARGUMENTS_RUN;
}

enum arguments_result arguments_parse(int argc, char **argv, struct invocation *ret)
{
    size_t room = (size_t)argc + 1;
    const char **strings = allocate(4 * room * sizeof *strings);
    struct arguments arguments = {
        .invocation = ret,
        .operands = strings,
        .sysroots = strings + room,
        .module_paths = strings + 2 * room,
        .descriptors = strings + 3 * room,
    };
    *ret = (struct invocation){
        .strings = strings,
        .options =
            {
                .size = sizeof ret->options,
                .work_max = CDACQ_BOUND_BY_SIZE,
                .memory_max = CDACQ_BOUND_BY_SIZE,
                .describe_need = next_steps_describe,
                .describe_need_context = &ret->options,
                .sysroots = arguments.sysroots,
                .module_paths = arguments.module_paths,
                .descriptors = arguments.descriptors,
            },
    };
    return read_arguments(argc, argv, &arguments) ? resolve(&arguments) : ARGUMENTS_WRONG;
}

void arguments_deinit(struct invocation *invocation)
{
    free(invocation->strings);
    invocation->strings = NULL;
}
