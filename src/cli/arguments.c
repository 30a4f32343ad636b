/* arguments.c: parses the command line. Options may be anywhere, even with POSIXLY_CORRECT set. */
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
#include "src/cli/ips.h"
#include "src/cli/memory.h"
#include "src/cli/next_steps.h"
#include "src/cli/options.h"
#include "util/base.h"
#include "util/similar.h"

/* ---- Values ---------------------------------------------------------------------------------------------------- */

struct arguments {
    struct invocation *invocation;
    const char **operands, **sysroots, **module_paths, **descriptors; /* each has room for all arguments */
    size_t operand_count;
    uint64_t given; /* one bit for each row of the table of options */
    bool help, version;
};

static bool wrong_value(int id, const char *value, const char *problem)
{
    message("--%s '%s': %s", option_row(id)->name, value, problem);
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

/* Returns the index of the value among all that the option can have. */
static bool take_choice(int id, const char *value, size_t *ret)
{
    const char *values = option_row(id)->values;
    char one[32], next[32], problem[160] = "";
    for (size_t i = 0; option_value(values, i, one, sizeof one); i++) {
        if (!strcmp(value, one)) {
            *ret = i;
            return true;
        }
        size_t length = strlen(problem);
        bool is_last = !option_value(values, i + 1, next, sizeof next);
        snprintf(problem + length, sizeof problem - length, "%s'%s'", !i ? "expected " : is_last ? " or " : ", ", one);
    }
    return wrong_value(id, value, problem);
}

static bool take_names(struct cdacq_options *options, const char *value)
{
    size_t style;
    if (!take_choice(OPTION_NAMES, value, &style))
        return false;
    options->names = (enum cdacq_name_style)style;
    return true;
}

static bool take_color(const char *value)
{
    size_t when;
    if (!take_choice(OPTION_COLOR, value, &when))
        return false;
    console_set_colour((enum colour)when);
    return true;
}

static bool take_r2r(struct invocation *invocation, const char *value)
{
    size_t which;
    if (!take_choice(OPTION_R2R, value, &which))
        return false;
    invocation->r2r = which ? R2R_ALL : R2R_PREPARED;
    return true;
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

/* What an option sets that has no argument and sets nothing else; NULL for the others. */
static bool *find_switch(struct arguments *arguments, int id)
{
    struct invocation *invocation = arguments->invocation;
    switch (id) {
    case OPTION_JSON:
        return &invocation->json;
    case OPTION_VERBOSE:
        return &invocation->verbose;
    case OPTION_STUBS:
        return &invocation->stubs;
    case OPTION_CODE:
        return &invocation->code;
    case OPTION_SAMPLY:
        return &invocation->samply;
    case OPTION_FOLLOW:
        return &invocation->follow;
    case OPTION_FOLDED:
        return &invocation->folded;
    case OPTION_STACKS:
        return &invocation->stacks;
    case OPTION_BRIEF:
        return &invocation->brief;
    case OPTION_SIGNATURE:
        return &invocation->signature;
    case OPTION_MANAGED:
        return &invocation->managed;
    case OPTION_EACH:
        return &invocation->each;
    case OPTION_HELP:
        return &arguments->help;
    case OPTION_VERSION:
        return &arguments->version;
    default:
        return NULL;
    }
}

static bool take_output(struct invocation *invocation, const char *value)
{
    invocation->output = strcmp(value, "-") != 0 ? value : NULL;
    return value[0] || wrong_value(OPTION_OUTPUT, value, "not a file name");
}

/* An option that is no switch: it has an argument, or sets a flag of the library. */
static bool take_value(struct arguments *arguments, int id, const char *value)
{
    struct invocation *invocation = arguments->invocation;
    struct cdacq_options *options = &invocation->options;
    switch (id) {
    case OPTION_OUTPUT:
        return take_output(invocation, value);
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
    case OPTION_R2R:
        return take_r2r(invocation, value);
    case OPTION_AT:
        return take_at(invocation, value);
    case OPTION_TIME:
        return take_time(invocation, value);
    case OPTION_THREAD:
        return take_thread(invocation, value);
    case OPTION_COLOR:
        return take_color(value);
    default: /* each row of options.c has a case here or above */
        return false;
    }
}

static bool take_option(struct arguments *arguments, int id, const char *value)
{
    bool *set = find_switch(arguments, id);
    arguments->given |= UINT64_C(1) << (option_row(id) - option_rows);
    return set ? *set = true : take_value(arguments, id, value);
}

/* ---- Parsing --------------------------------------------------------------------------------------------------- */

/* Makes getopt's tables. `-` returns operands in order, `:` suppresses getopt's messages. */
static void make_tables(char *letters, struct option *longs)
{
    *letters++ = '-';
    *letters++ = ':';
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *row = &option_rows[i];
        *longs++ = (struct option){row->name, row->argument ? required_argument : no_argument, NULL, row->id};
        if (!option_has_letter(row))
            continue;
        *letters++ = (char)row->id;
        if (row->argument)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){0};
}

/* The option of which a word that begins with "--" is a misspelling, or NULL. */
static const char *similar_option(const char *word)
{
    struct similar similar;
    char name[32];
    if (snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2) >= (int)sizeof name)
        return NULL;
    similar_begin(&similar, name);
    for (size_t i = 0; i < option_count; i++)
        similar_consider(&similar, option_rows[i].name);
    return similar.best;
}

/* `shown` is the argument that getopt read last. */
static bool refuse(int id, const char *shown)
{
    const char *similar = id == '?' && !optopt && !strncmp(shown, "--", 2) ? similar_option(shown) : NULL;
    if (id == ':')
        message("option '%s' needs an argument", shown);
    else if (optopt && optopt < OPTION_JSON)
        message("unknown option '-%c'; see 'cdacq --help'", optopt);
    else if (optopt)
        message("option '%s' takes no argument", shown);
    else if (similar)
        message("unknown or ambiguous option '%s'; did you mean '--%s'?", shown, similar);
    else
        message("unknown or ambiguous option '%s'; see 'cdacq --help'", shown);
    return false;
}

static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    enum { OPERAND = 1, END = -1 };
    char letters[2 * OPTIONS_MAX + 3];
    struct option longs[OPTIONS_MAX + 1];
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

static bool takes_options(const struct command *command, uint64_t given)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(given >> i & 1) || option_is_of(row, command->options))
            continue;
        message("'%s' does not take --%s; see 'cdacq help %s'", command->name, row->name, command->name);
        return false;
    }
    return true;
}

static bool wrong_usage(const struct command *command)
{
    message("usage: cdacq %s %s; see 'cdacq help %s'", command->name, command->usage, command->name);
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
            message("'%s' is also a pid, and only one process can be read; for the address, write 0x%s", ip, ip);
            return false;
        }
    }
    return true;
}

static bool takes_operands(const struct command *command, struct arguments *arguments)
{
    struct invocation *invocation = arguments->invocation;
    size_t count = arguments->operand_count - 1;
    if (!count && command->reads_text && !invocation->folded) {
        message("give a TARGET, or --folded; see 'cdacq help %s'", command->name);
        return false;
    }
    if (!count && !command->target_is_optional && !command->reads_text)
        return wrong_usage(command);
    invocation->targets = arguments->operands + 1;
    invocation->target_count = count < command->targets_max ? count : command->targets_max;
    invocation->ips = invocation->targets + invocation->target_count;
    invocation->ip_count = count - invocation->target_count;
    if (command->takes_file && invocation->ip_count) {
        invocation->file = *invocation->ips++;
        invocation->ip_count--;
    } else if (command->takes_file && !(command->finds_file && target_is_pid(invocation->targets[0]))) {
        return wrong_usage(command);
    }
    if (invocation->ip_count && !command->takes_ips && !command->takes_names) {
        message("unexpected argument '%s'; usage: cdacq %s%s%s", invocation->ips[0], command->name,
                *command->usage ? " " : "", command->usage);
        return false;
    }
    if (command->takes_ips && !takes_as_addresses(invocation))
        return false;
    if (invocation->output && command->takes_targets && invocation->target_count > 1) {
        message("with --output there can be only one target");
        return false;
    }
    for (size_t i = 0; i < invocation->target_count; i++)
        if (!invocation->targets[i][0]) {
            message("'' is neither a path nor a pid");
            return false;
        }
    return takes_stdin(invocation);
}

/* `help` and `version` mean what the options of these names mean. */
static enum arguments_result resolve_text(struct invocation *invocation)
{
    if (!invocation->command->targets_max)
        return ARGUMENTS_VERSION;
    invocation->command = invocation->target_count ? command_named(invocation->targets[0]) : NULL;
    return invocation->target_count && !invocation->command ? ARGUMENTS_WRONG : ARGUMENTS_HELP;
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
    const struct command *command = command_named(arguments->operands[0]);
    if (!command)
        return ARGUMENTS_WRONG;
    invocation->command = command;
    if (arguments->help)
        return ARGUMENTS_HELP;
    if (!(arguments->given >> (option_row(OPTION_NAMES) - option_rows) & 1))
        invocation->options.names = command->names;
    if (!takes_options(command, arguments->given) || !takes_operands(command, arguments))
        return ARGUMENTS_WRONG;
    return command->run ? ARGUMENTS_RUN : resolve_text(invocation);
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
