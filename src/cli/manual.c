/*
 * manual.c: a program of the build that writes the man pages: what --help prints, from the same rows, and the text that
 * only the pages have. docs/man/NAME.man continues the generated description; its first .SH ends that, and the options
 * come before it. In docs/man/cdacq.man, a line `@commands` or `@options` stands for these lists. docs/man/options.man
 * has, below a line `@ NAME` for an option, what the page of cdacq says beyond the line of --help.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/help.h"
#include "src/cli/base/output.h"
#include "util/base.h"
#include "util/file.h"

enum { TEXT_MAX = 1 << 20 };

struct page {
    struct output out;
    const char *text;    /* NAME.man */
    const char *options; /* options.man */
};

/* A command needs no text of its own: NULL if there is none. */
static char *read_text(const char *folder, const char *name)
{
    char path[4096];
    struct stat st;
    size_t length;
    snprintf(path, sizeof path, "%s/%s.man", folder, name);
    CLEANUP_CLOSE int fd = file_open(path, &st);
    return fd < 0 ? NULL : file_read_all(fd, TEXT_MAX, &length);
}

/* ---- Text as roff ---------------------------------------------------------------------------------------------- */

static void put_plain(struct output *out, const char *text, size_t length)
{
    static const struct {
        char character;
        const char *roff;
    } escapes[] = {{'-', "\\-"}, {'\\', "\\e"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    for (size_t i = 0; i < length; i++) {
        char one[2] = {text[i], '\0'};
        const char *roff = one;
        for (size_t j = 0; j < ARRAY_SIZE(escapes); j++)
            if (escapes[j].character == text[i])
                roff = escapes[j].roff;
        output_literal(out, roff);
    }
}

/* A dot or a quote that begins a line is no request. */
static void put_line(struct output *out, const char *text, size_t length)
{
    if (length && (text[0] == '.' || text[0] == '\''))
        output_literal(out, "\\&");
    put_plain(out, text, length);
    output_literal(out, "\n");
}

/* Paragraphs; lines that are indented are examples. */
static void put_text(struct output *out, const char *text)
{
    bool in_example = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_example = !strncmp(text, "  ", 2);
        if (is_example != in_example)
            output_literal(out, is_example ? ".PP\n.EX\n" : ".EE\n.PP\n");
        in_example = is_example;
        put_line(out, text + 2 * is_example, length - 2 * is_example);
        text += length + (text[length] == '\n');
    }
    if (in_example)
        output_literal(out, ".EE\n");
}

/* Words in capitals are placeholders, options are bold. */
static void put_usage(struct output *out, const char *usage)
{
    while (*usage) {
        bool is_name = isupper((unsigned char)*usage), is_option = *usage == '-';
        size_t length = 1;
        while ((is_name && isupper((unsigned char)usage[length])) ||
               (is_option && islower((unsigned char)usage[length])))
            length++;
        output_literal(out, is_name ? "\\fI" : is_option ? "\\fB" : "");
        put_plain(out, usage, length);
        output_literal(out, is_name || is_option ? "\\fR" : "");
        usage += length;
    }
}

/* A line of --help as a sentence. */
static void put_sentence(struct output *out, const char *text)
{
    char first = (char)toupper((unsigned char)text[0]);
    put_plain(out, &first, 1);
    put_plain(out, text + 1, strlen(text + 1));
    output_literal(out, ".\n");
}

/* ---- Parts of pages -------------------------------------------------------------------------------------------- */

static void put_option(struct page *page, const struct option_row *row, bool long_text)
{
    struct output *out = &page->out;
    char heading[64];
    output_literal(out, ".TP\n\\fB");
    if (row->letter)
        output_printf(out, "\\-%c\\fR, \\fB", row->letter);
    output_literal(out, "\\-\\-");
    put_plain(out, row->name, strlen(row->name));
    output_literal(out, "\\fR");
    if (row->value)
        output_printf(out, " \\fI%s\\fR", row->value);
    output_literal(out, "\n");
    put_sentence(out, row->help);
    snprintf(heading, sizeof heading, "@ %s\n", row->name);
    const char *text = long_text ? strstr(page->options, heading) : NULL;
    if (!text)
        return;
    text += strlen(heading);
    const char *end = strstr(text, "\n@ ");
    size_t length = end ? (size_t)(end + 1 - text) : strlen(text);
    output_bytes(out, text, length);
}

/* Those of a command: its own at length, and a line for each of those that all commands with a target take. */
static void put_options(struct page *page, const struct command *command)
{
    const struct option_row *row;
    output_literal(&page->out, ".SH OPTIONS\n");
    for (size_t i = 0; (row = option_at(i)); i++)
        if (command_takes(command, row) && !option_is_in(row, target_rows))
            put_option(page, row, true);
    if (!command_opens_target(command))
        return;
    output_literal(&page->out, ".SS How TARGET is read\n.BR cdacq (1)\nhas more about these options.\n");
    for (row = target_rows; row->name; row++)
        put_option(page, row, false);
}

static void put_exit_status(struct output *out, const struct command *command)
{
    output_literal(out, ".SH EXIT STATUS\n.TP\n.B 0\nEverything was answered.\n.TP\n.B 1\n");
    put_sentence(out, help_exit_partly(command));
    output_literal(out, ".TP\n.B 2\nNothing could be answered, or the results could not be written.\n"
                        "A message on standard error says why.\n"
                        ".TP\n.B 64\nThe command line is wrong.\n");
}

/* Up to the first section. */
static size_t length_of_prose(const char *text)
{
    const char *section = strstr(text, "\n.SH ");
    return !strncmp(text, ".SH ", 4) ? 0 : section ? (size_t)(section + 1 - text) : strlen(text);
}

static void put_command_page(struct page *page, const struct command *command)
{
    struct output *out = &page->out;
    char usage[USAGE_SIZE];
    output_literal(out, ".TH CDACQ\\-");
    for (const char *c = command->name; *c; c++)
        put_plain(out, &(char){(char)toupper((unsigned char)*c)}, 1);
    output_printf(out, " 1 \"\" \"cdacq %s\" \"User Commands\"\n", cdacq_version());
    output_printf(out, ".SH NAME\ncdacq\\-%s \\- ", command->name);
    put_plain(out, command->summary, strlen(command->summary));
    output_printf(out, "\n.SH SYNOPSIS\n\\fBcdacq %s\\fR [\\fIOPTION\\fR...] ", command->name);
    put_usage(out, command_usage(command, usage));
    output_literal(out, "\n.SH DESCRIPTION\n");
    put_text(out, command->details);
    size_t length = length_of_prose(page->text);
    if (length)
        output_literal(out, ".PP\n");
    output_bytes(out, page->text, length);
    if (command_opens_target(command)) {
        output_literal(out, ".PP\n");
        put_text(out, help_target_text(command));
    }
    put_options(page, command);
    put_exit_status(out, command);
    output_literal(out, page->text + length);
    output_literal(out, ".SH SEE ALSO\n.BR cdacq (1)\n");
}

static void put_commands(struct page *page)
{
    struct output *out = &page->out;
    for (unsigned section = 0; section < SECTION_COUNT; section++) {
        output_printf(out, ".SS %s\n", help_section_title(section));
        for (size_t i = 0; i < command_count; i++) {
            if (commands[i]->section != section)
                continue;
            output_printf(out, ".TP\n.BR cdacq\\-%s (1)\n", commands[i]->name);
            put_sentence(out, commands[i]->summary);
        }
    }
}

static void put_main_page(struct page *page)
{
    const struct option_row *row;
    struct output *out = &page->out;
    output_printf(out, ".TH CDACQ 1 \"\" \"cdacq %s\" \"User Commands\"\n", cdacq_version());
    for (const char *line = page->text, *end; *line; line = end) {
        end = strchr(line, '\n') ? strchr(line, '\n') + 1 : line + strlen(line);
        size_t length = (size_t)(end - line);
        if (!strncmp(line, "@commands\n", length))
            put_commands(page);
        else if (!strncmp(line, "@options\n", length)) {
            for (size_t i = 0; (row = option_at(i)); i++)
                if (option_is_in(row, target_rows) || option_is_in(row, general_rows))
                    put_option(page, row, true);
        } else
            output_bytes(out, line, length);
    }
}

/* `command` NULL: the page of cdacq itself. */
static bool write_page(const struct command *command, const char *texts, const char *options, const char *folder)
{
    const char *name = command ? command->name : "cdacq";
    char path[4096];
    CLEANUP_FREE char *text = read_text(texts, name);
    struct page page = {.text = text ? text : "", .options = options};
    snprintf(path, sizeof path, "%s/cdacq%s%s.1", folder, command ? "-" : "", command ? name : "");
    if (!output_open(&page.out, path))
        return false;
    if (command)
        put_command_page(&page, command);
    else
        put_main_page(&page);
    return output_close(&page.out);
}

/* Takes the folder of docs/man, and one for cdacq.1 and a page for each command. */
int main(int argc, char **argv)
{
    if (argc != 3)
        return EXIT_USAGE;
    const char *texts = argv[1], *folder = argv[2];
    CLEANUP_FREE char *options = read_text(texts, "options");
    bool ok = options && write_page(NULL, texts, options, folder);
    for (size_t i = 0; i < command_count && ok; i++)
        ok = write_page(commands[i], texts, options, folder);
    return ok ? EXIT_ANSWERED : EXIT_FAILED;
}
