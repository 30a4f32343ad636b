/* help.c: prints the tables of commands and options as help. */
#include "src/cli/base/help.h"

#include <stdio.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/output.h"

static const char *const section_titles[SECTION_COUNT] = {
    [SECTION_PROCESS] = "What a process does, or why it died", [SECTION_ADDRESSES] = "Addresses and methods",
    [SECTION_FILES] = "Files for profilers and debuggers",     [SECTION_CORES] = "Cores and runtimes",
    [SECTION_RECORDS] = "Files that a runtime writes",         [SECTION_TOOL] = "This tool",
};

const char *help_section_title(unsigned section)
{
    return section_titles[section];
}

const char *help_exit_partly(const struct command *command)
{
    return command && command->exit_partly ? command->exit_partly : "some of it was not answered";
}

const char *help_target_text(const struct command *command)
{
    if (command && command->operands->kind == OPERAND_STORED_TARGET)
        return "TARGET is a core, which may be compressed by zstd, gzip, xz or lz4, or the decimal pid of a running\n"
               "process.\n";
    return "TARGET is a core, which may be compressed by zstd, gzip, xz or lz4; '-' for a core\n"
           "on standard input; or the decimal pid of a running process.\n";
}

static void print_heading(struct output *out, const char *title)
{
    output_style(out, STYLE_HEADING);
    output_printf(out, "\n%s:\n", title);
    output_style(out, STYLE_NONE);
}

static void print_exit_codes(struct output *out, const struct command *command)
{
    print_heading(out, "Exit status");
    output_literal(out, "   0  everything was answered\n"
                        "   1  ");
    output_literal(out, help_exit_partly(command));
    output_literal(out, "\n"
                        "   2  nothing could be answered, or the results could not be written\n"
                        "  64  the command line is wrong\n");
}

static void print_option(struct output *out, const struct option_row *row)
{
    char option[40], letter[8] = "   ";
    snprintf(option, sizeof option, "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c,", row->letter);
    output_printf(out, "  %s %-26s %s\n", letter, option, row->help);
}

/* The command's own options, and then those that say how its target is read. */
static void print_options(struct output *out, const struct command *command)
{
    const struct option_row *row;
    print_heading(out, "Options");
    for (size_t i = 0; (row = option_at(i)); i++)
        if (command_takes(command, row) && !option_is_in(row, target_rows))
            print_option(out, row);
    if (!command_opens_target(command))
        return;
    print_heading(out, "How TARGET is read");
    for (row = target_rows; row->name; row++)
        print_option(out, row);
}

static void print_command(struct output *out, const struct command *command)
{
    char usage[USAGE_SIZE];
    output_printf(out, "Usage: cdacq [OPTION...] %s%s%s\n\n", command->name, command->operands ? " " : "",
                  command_usage(command, usage));
    output_literal(out, command->details);
    if (command_opens_target(command)) {
        output_literal(out, "\n");
        output_literal(out, help_target_text(command));
    }
    print_options(out, command);
    print_exit_codes(out, command);
}

/* On one screen: the options of a command are in its own help. */
static void print_commands(struct output *out)
{
    output_literal(out, "Usage: cdacq [OPTION...] COMMAND TARGET [ARGUMENT...]\n"
                        "Reads a .NET process from outside: its stacks, and the methods that own addresses.\n\n");
    output_literal(out, help_target_text(NULL));
    for (unsigned section = 0; section < SECTION_COUNT; section++) {
        print_heading(out, section_titles[section]);
        for (size_t i = 0; i < command_count; i++)
            if (commands[i]->section == section)
                output_printf(out, "  %-11s %s\n", commands[i]->name, commands[i]->summary);
    }
    output_literal(out, "\n'cdacq help COMMAND' shows a command's arguments and options, 'man cdacq' all about it.\n");
    print_exit_codes(out, NULL);
    print_heading(out, "Examples");
    output_literal(out, "  cdacq report core.1234\n"
                        "  cdacq ip2method core.1234 7f21c8a31b47\n");
}

int help_print(const struct command *command)
{
    struct output out;
    output_open(&out, NULL);
    if (command)
        print_command(&out, command);
    else
        print_commands(&out);
    return output_close(&out) ? EXIT_ANSWERED : EXIT_FAILED;
}

int help_print_version(void)
{
    struct output out;
    output_open(&out, NULL);
    output_printf(&out, "cdacq %s\n", cdacq_version());
    return output_close(&out) ? EXIT_ANSWERED : EXIT_FAILED;
}
