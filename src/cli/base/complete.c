/* complete.c: completes commands, options, their values, pids of .NET processes, and cores. */
#include "src/cli/base/complete.h"

#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/output.h"
#include "util/base.h"
#include "util/file.h"
#include "util/text.h"

enum {
    FILES_MAX = 1000, /* of a folder that are looked into */
};

/* What the words before the last one say about it. */
struct line {
    const struct command *command;
    size_t operands;                 /* after the command */
    const struct option_row *option; /* whose argument it is, or NULL */
    bool only_operands;              /* after "--" */
};

struct words {
    struct output *out;
    const char *typed;  /* what the word must begin with */
    const char *prefix; /* of all words: "--names=" */
    const char *adds;   /* what the shell adds */
};

static void add(struct words *words, const char *word, const char *meaning)
{
    if (!string_begins_with(word, words->typed))
        return;
    output_literal(words->out, words->prefix);
    output_literal(words->out, word);
    output_literal(words->out, "\t");
    output_note(words->out, meaning);
    output_literal(words->out, "\n");
}

/* The row of an option as typed: "--name" or "-l". NULL if there is none. */
static const struct option_row *find_option(const char *word, size_t length)
{
    const struct option_row *row;
    for (size_t i = 0; (row = option_at(i)); i++) {
        if (length == 2 && row->letter && word[1] == row->letter)
            return row;
        if (length > 2 && word[1] == '-' && strlen(row->name) == length - 2 && !memcmp(word + 2, row->name, length - 2))
            return row;
    }
    return NULL;
}

static struct line read_line(const char *const *words, size_t count)
{
    struct line line = {0};
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i];
        if (line.option) {
            if (strcmp(word, "=") != 0) /* bash makes three words of --names=il */
                line.option = NULL;
        } else if (!line.only_operands && !strcmp(word, "--")) {
            line.only_operands = true;
        } else if (!line.only_operands && word[0] == '-' && word[1]) {
            const struct option_row *row = find_option(word, strlen(word));
            line.option = row && row->value ? row : NULL;
        } else if (line.command) {
            line.operands++;
        } else {
            line.command = command_find(word);
        }
    }
    return line;
}

/* ---- Operands -------------------------------------------------------------------------------------------------- */

static int add_process(const struct cdacq_process *process, void *context)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", process->pid);
    add(context, pid, process->arguments ? process->arguments : process->name ? process->name : "");
    return 0;
}

static bool is_core(const char *path, const char *name)
{
    static const struct {
        const char *bytes;
        size_t size;
    } compressed[] = {{"\x28\xb5\x2f\xfd", 4},
                      {"\x1f\x8b", 2},
                      {"\xfd"
                       "7zXZ",
                       5},
                      {"\x04\x22\x4d\x18", 4}};
    uint8_t header[FILE_HEADER_SIZE];
    if (file_elf_type(path, header) == ET_CORE)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(compressed); i++)
        if (!memcmp(header, compressed[i].bytes, compressed[i].size))
            return strstr(name, "core") || strstr(name, "dump") || strstr(name, "dmp");
    return false;
}

/* Cores and folders in the folder of the typed path. Returns false if there are none, or the shell must expand it. */
static bool add_cores(struct words *words)
{
    const char *slash = strrchr(words->typed, '/'), *name = slash ? slash + 1 : words->typed;
    char folder[PATH_MAX], path[PATH_MAX + 256 + 2];
    struct dirent *entry;
    unsigned looked = 0;
    bool any = false;
    snprintf(folder, sizeof folder, "%.*s", (int)(name - words->typed), words->typed);
    DIR *files = strpbrk(folder, "~$\\'\"`") ? NULL : opendir(folder[0] ? folder : ".");
    while (files && looked < FILES_MAX && (entry = readdir(files))) {
        struct stat st;
        if (!string_begins_with(entry->d_name, name) || (entry->d_name[0] == '.' && name[0] != '.') ||
            strpbrk(entry->d_name, "\n\t"))
            continue;
        looked++;
        snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
        if (stat(path, &st) < 0)
            continue;
        bool is_folder = S_ISDIR(st.st_mode); /* devices are not opened: that can start them */
        if (!is_folder && !(S_ISREG(st.st_mode) && is_core(path, entry->d_name)))
            continue;
        any = true;
        if (is_folder)
            strcat(path, "/");
        add(words, path, is_folder ? "folder" : "core");
    }
    if (files)
        closedir(files);
    return any;
}

static void add_targets(struct words *words)
{
    if (!add_cores(words))
        words->adds = "files";
    (void)cdacq_visit_processes(add_process, words, NULL);
}

static void add_commands(struct words *words)
{
    for (size_t i = 0; i < command_count; i++)
        add(words, commands[i]->name, commands[i]->summary);
}

/* The row of an operand; the last one may be repeated. NULL if the command takes no more. */
static const struct operand_row *find_operand(const struct command *command, size_t number)
{
    for (const struct operand_row *row = command->operands; row && row->name; row++)
        if (row->kind != OPERAND_OPTION && (number-- == 0 || row->repeats))
            return row;
    return NULL;
}

static void add_operand(struct words *words, const struct line *line)
{
    const struct operand_row *row = line->command ? find_operand(line->command, line->operands) : NULL;
    if (!line->command || (row && row->kind == OPERAND_COMMAND))
        add_commands(words);
    else if (row && (row->kind == OPERAND_TARGET || row->kind == OPERAND_STORED_TARGET))
        add_targets(words);
    else if (row && (row->kind == OPERAND_FILE || row->kind == OPERAND_FILE_OR_PID))
        words->adds = "files";
    else if (row && row->kind == OPERAND_FOLDER)
        words->adds = "folders";
    if (row && row->kind == OPERAND_FILE_OR_PID)
        (void)cdacq_visit_processes(add_process, words, NULL);
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static void add_values(struct words *words, const struct option_row *row)
{
    char value[32];
    for (size_t i = 0; row->choices && option_choice(row, i, value, sizeof value); i++)
        add(words, value, "");
    if (!strcmp(row->value, "FILE"))
        words->adds = "files";
    else if (!strcmp(row->value, "DIR"))
        words->adds = "folders";
}

static void add_options(struct words *words, const struct command *command)
{
    const struct option_row *row;
    char option[40];
    for (size_t i = 0; (row = option_at(i)); i++) {
        if (!command_takes(command, row))
            continue;
        snprintf(option, sizeof option, "--%s", row->name);
        add(words, option, row->help);
        snprintf(option, sizeof option, "-%c", row->letter);
        if (row->letter && words->typed[1] != '-')
            add(words, option, row->help);
    }
}

static void add_words(struct words *words, const struct line *line)
{
    const char *equals = strchr(words->typed, '=');
    char prefix[40];
    const struct option_row *row = NULL;
    if (line->option) {
        if (!strcmp(words->typed, "=")) /* of --names= */
            words->typed = "";
        add_values(words, line->option);
    } else if (line->only_operands || words->typed[0] != '-') {
        add_operand(words, line);
    } else if (!equals) {
        add_options(words, line->command);
    } else if ((row = find_option(words->typed, (size_t)(equals - words->typed))) && row->value) {
        snprintf(prefix, sizeof prefix, "--%s=", row->name);
        words->typed = equals + 1;
        words->prefix = prefix;
        add_values(words, row);
    }
}

int complete_write(const char *const *words, size_t count)
{
    struct output out;
    output_open(&out, NULL);
    struct words result = {.out = &out, .typed = count ? words[count - 1] : "", .prefix = "", .adds = "words"};
    struct line line = read_line(words, count ? count - 1 : 0);
    add_words(&result, &line);
    output_printf(&out, "\t%s\n", result.adds);
    return output_close(&out) ? EXIT_ANSWERED : EXIT_FAILED;
}
