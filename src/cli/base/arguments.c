/* arguments.c: parses the command line. Options may be anywhere, even with POSIXLY_CORRECT set. */
#include "src/cli/base/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/console.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/next_steps.h"
#include "util/base.h"
#include "util/similar.h"
#include "util/text.h"

/* An option as given. Its value is right, but the command, which comes later, may not take it. */
struct given {
    const struct option_row *row;
    const char *value;
};

struct arguments {
    struct general_options general;
    const char **operands; /* the name of the command first */
    size_t operand_count;
    struct given *given;
    size_t given_count;
};

/* ---- Words of the command line --------------------------------------------------------------------------------- */

enum { OPTIONS_MAX = 64, FIRST_LONG = 256 /* beyond any letter */ };

/* Makes getopt's tables. `-` returns operands in order, `:` suppresses getopt's messages. */
static void make_tables(char *letters, struct option *longs)
{
    const struct option_row *row;
    *letters++ = '-';
    *letters++ = ':';
    for (size_t i = 0; i < OPTIONS_MAX && (row = option_at(i)); i++) {
        int id = row->letter ? row->letter : FIRST_LONG + (int)i;
        *longs++ = (struct option){row->name, row->value ? required_argument : no_argument, NULL, id};
        if (!row->letter)
            continue;
        *letters++ = row->letter;
        if (row->value)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){0};
}

static const struct option_row *find_row(int id)
{
    const struct option_row *row = option_at(id < FIRST_LONG ? 0 : (size_t)id - FIRST_LONG);
    for (size_t i = 0; id < FIRST_LONG && row->letter != id; i++)
        row = option_at(i);
    return row;
}

/* The option that a word with "--" misspells, or NULL. */
static const char *similar_option(const char *word)
{
    struct similar similar;
    const struct option_row *row;
    char name[32];
    if (snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2) >= (int)sizeof name)
        return NULL;
    similar_begin(&similar, name);
    for (size_t i = 0; (row = option_at(i)); i++)
        similar_consider(&similar, row->name);
    return similar.best;
}

/* What other tools that read a process have. `letter` is an unknown short option, or not a letter. */
static bool is_pid_option(int letter, const char *word)
{
    return letter == 'p' || !strcmp(word, "--pid") || string_begins_with(word, "--pid=");
}

/* `shown` is the argument that getopt read last. */
static bool refuse(int id, const char *shown)
{
    const char *similar = id == '?' && !optopt && string_begins_with(shown, "--") ? similar_option(shown) : NULL;
    if (id == ':')
        message("option '%s' needs an argument", shown);
    else if (is_pid_option(optopt, shown))
        message("unknown option '%s'; the pid is an argument, as in 'cdacq report 4242'", optopt ? "-p" : "--pid");
    else if (optopt && optopt < FIRST_LONG)
        message("unknown option '-%c'; see 'cdacq --help'", optopt);
    else if (optopt)
        message("option '%s' takes no argument", shown);
    else if (similar)
        message("unknown or ambiguous option '%s'; did you mean '--%s'?", shown, similar);
    else
        message("unknown or ambiguous option '%s'; see 'cdacq --help'", shown);
    return false;
}

static bool take_option(struct arguments *arguments, const struct option_row *row, const char *value)
{
    bool is_general = option_is_in(row, general_rows);
    arguments->given[arguments->given_count++] = (struct given){row, value};
    if (!option_read(row, value, is_general ? &arguments->general : NULL))
        return false;
    console_set_colour(arguments->general.colour); /* messages about the next options have it */
    return true;
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
        else if (!take_option(arguments, find_row(id), optarg))
            return false;
    }
    while (optind < argc) /* after "--" */
        arguments->operands[arguments->operand_count++] = argv[optind++];
    return true;
}

/* ---- Options of the command ------------------------------------------------------------------------------------ */

static void *member_at(struct command_line *line, size_t offset)
{
    return (char *)line->options + offset;
}

/* All values of an option that may be repeated, once. They are put at `next`, with a NULL behind. Returns their end. */
static const char **fill_list(const struct arguments *arguments, const struct option_row *row,
                              struct command_line *line, const char **next)
{
    size_t *count = member_at(line, row->given);
    if (*count)
        return next;
    *(const char *const **)member_at(line, row->offset) = next;
    for (size_t i = 0; i < arguments->given_count; i++)
        if (arguments->given[i].row == row)
            next[(*count)++] = arguments->given[i].value;
    return next + *count + 1;
}

static bool fill_options(const struct arguments *arguments, struct command_line *line, const char **next)
{
    const struct option_row *row;
    for (size_t i = 0; (row = option_at(i)); i++)
        for (size_t j = 0; j < arguments->given_count; j++)
            if (arguments->given[j].row == row && !command_takes(line->command, row)) {
                message("'%s' does not take --%s; see 'cdacq help %s'", line->command->name, row->name,
                        line->command->name);
                return false;
            }
    for (size_t i = 0; i < arguments->given_count; i++) {
        row = arguments->given[i].row;
        if (row->kind == OPTION_LIST)
            next = fill_list(arguments, row, line, next);
        else if (!option_is_in(row, general_rows))
            (void)option_read(row, arguments->given[i].value, line->options);
    }
    return true;
}

/* ---- Operands of the command ----------------------------------------------------------------------------------- */

static bool wrong_usage(const struct command *command)
{
    char usage[USAGE_SIZE];
    message("usage: cdacq %s %s; see 'cdacq help %s'", command->name, command_usage(command, usage), command->name);
    return false;
}

static size_t fill_operand(const struct operand_row *row, struct command_line *line, const char *const *words,
                           size_t count)
{
    if (!row->repeats)
        count = MIN(count, (size_t)1);
    if (row->is_list) {
        struct word_list *list = member_at(line, row->offset);
        if (!list->count)
            list->items = words;
        list->count += count;
    } else if (count) {
        *(const char **)member_at(line, row->offset) = words[0];
    }
    return count;
}

static bool fill_operands(struct command_line *line, const char *const *words, size_t count)
{
    const struct command *command = line->command;
    size_t used = 0;
    for (const struct operand_row *row = command->operands; row && row->name; row++) {
        if (row->kind == OPERAND_OPTION)
            continue;
        bool may_lack =
            row->need == OPTIONAL || (row->need == OPTIONAL_FOR_PID && target_is_pid(line->options->targets.items[0]));
        if (used == count && !may_lack)
            return wrong_usage(command);
        used += fill_operand(row, line, words + used, count - used);
    }
    if (used == count)
        return true;
    char usage[USAGE_SIZE];
    message("unexpected argument '%s'; usage: cdacq %s%s%s", words[used], command->name, command->operands ? " " : "",
            command_usage(command, usage));
    return false;
}

/* What follows the pid of a process and is itself one is not an address, as in `cdacq ip2method $(pidof dotnet)`. */
static bool check_addresses(const struct word_list *addresses, const char *target)
{
    char path[40];
    for (size_t i = 0; i < addresses->count; i++) {
        const char *ip = addresses->items[i];
        if (!target_is_pid(target) || !target_is_pid(ip) || ip[0] == '0' || strlen(ip) > 7)
            continue;
        snprintf(path, sizeof path, "/proc/%s", ip);
        if (access(path, F_OK) == 0) {
            message("'%s' is also a pid, and only one process can be read; for the address, write 0x%s", ip, ip);
            return false;
        }
    }
    return true;
}

/* Standard input holds one thing. `target_count` is of targets that are read from it. */
static bool check_stdin(struct command_line *line, const struct operand_row *row, size_t target_count)
{
    if (row->kind == OPERAND_TARGET && target_count > 1)
        message("only one target can be read from standard input ('-')");
    else if (target_count && row->or_stdin && !((struct word_list *)member_at(line, row->offset))->count)
        message("standard input ('-') is the core, so the IPs must be arguments");
    else if (target_count && row->kind == OPERAND_STORED_TARGET)
        message("standard input is the text, so the core must be a file");
    else
        return true;
    return false;
}

static bool check_operands(struct command_line *line, const char *const *words, size_t count)
{
    const struct word_list *targets = &line->options->targets;
    const struct operand_row *rows = line->command->operands;
    size_t in_stdin = 0;
    for (const struct operand_row *row = rows; row && row->name; row++)
        if (row->kind == OPERAND_ADDRESS && !check_addresses(member_at(line, row->offset), targets->items[0]))
            return false;
    if (line->options->output && targets->count > 1 && rows->repeats) {
        message("with --output there can be only one target");
        return false;
    }
    for (size_t i = 0; i < count && i < MAX(targets->count, (size_t)1); i++)
        if (!words[i][0]) {
            message("'' is neither a path nor a pid");
            return false;
        }
    for (size_t i = 0; i < targets->count; i++)
        in_stdin += target_is_stdin(targets->items[i]);
    for (const struct operand_row *row = rows; row && row->name; row++)
        if (!check_stdin(line, row, in_stdin))
            return false;
    return true;
}

/* ---- All of it ------------------------------------------------------------------------------------------------- */

static void begin_options(struct command_line *line)
{
    struct common_options *common = line->options = allocate(line->command->options_size);
    common->command = line->command->name;
    common->open = (struct cdacq_options){
        .size = sizeof common->open,
        .names = line->command->names,
        .work_max = CDACQ_BOUND_BY_SIZE,
        .memory_max = CDACQ_BOUND_BY_SIZE,
        .describe_need = next_steps_describe,
        .describe_need_context = &common->open,
    };
}

/* CDACQ_SYMBOL_SERVER: URLs with blanks between them, for commands that no server is named to. */
static void take_symbol_servers(struct cdacq_options *open)
{
    enum { SERVERS_MAX = 16 };
    static const char *urls[SERVERS_MAX + 1];
    const char *given = getenv("CDACQ_SYMBOL_SERVER");
    if (open->symbol_server_count || !given)
        return;
    size_t size = strlen(given) + 1, count = 0;
    char *copy = allocate(size), *rest = NULL;
    memcpy(copy, given, size);
    for (char *url = strtok_r(copy, " ", &rest); url && count < SERVERS_MAX; url = strtok_r(NULL, " ", &rest))
        urls[count++] = url;
    open->symbol_servers = urls;
    open->symbol_server_count = count;
}

/* `cdacq 4242` and `cdacq ./core` are reports. */
static bool is_target_alone(const char *word)
{
    return !command_find(word) && (target_is_pid(word) || target_is_file(word));
}

/* `next` has room for the values of all options. */
static enum arguments_result resolve(const struct arguments *arguments, struct command_line *line, const char **next)
{
    if (arguments->general.version)
        return ARGUMENTS_VERSION;
    if (!arguments->operand_count) {
        if (arguments->general.help)
            return ARGUMENTS_HELP;
        message("no command given; 'cdacq --help' lists them");
        return ARGUMENTS_WRONG;
    }
    bool is_alone = is_target_alone(arguments->operands[0]);
    line->command = is_alone ? &command_report : command_named(arguments->operands[0]);
    if (!line->command)
        return ARGUMENTS_WRONG;
    if (arguments->general.help)
        return ARGUMENTS_HELP;
    const char *const *operands = arguments->operands + !is_alone;
    size_t count = arguments->operand_count - !is_alone;
    begin_options(line);
    if (!fill_options(arguments, line, next) || !fill_operands(line, operands, count) ||
        !check_operands(line, operands, count))
        return ARGUMENTS_WRONG;
    take_symbol_servers(&line->options->open);
    return ARGUMENTS_RUN;
}

enum arguments_result arguments_parse(int argc, char **argv, struct command_line *ret)
{
    size_t room = (size_t)argc + 1; /* of all arguments; a list of values has a NULL behind */
    *ret = (struct command_line){.words = allocate(3 * room * sizeof *ret->words)};
    CLEANUP_FREE struct given *given = allocate(room * sizeof *given);
    struct arguments arguments = {.operands = ret->words, .given = given};
    return read_arguments(argc, argv, &arguments) ? resolve(&arguments, ret, ret->words + room) : ARGUMENTS_WRONG;
}

void arguments_deinit(struct command_line *line)
{
    free(line->options);
    free(line->words);
    *line = (struct command_line){0};
}
