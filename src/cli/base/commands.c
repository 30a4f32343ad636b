/*
 * commands.c: the commands of the tool, and all their options. A new command takes two steps: write cmd_NAME.c, which
 * ends in its row, and list that here and in commands.h. The options that it takes, its arguments and its help come
 * from the row. A new option is a row in the command's file, or in common_options.c if several commands take it.
 */
#include "src/cli/base/commands.h"

#include <stdio.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "util/base.h"
#include "util/similar.h"

const struct command *const commands[] = {
    &command_ip2method,  &command_info,     &command_ps,      &command_inspect,  &command_methods, &command_perfmap,
    &command_jitdump,    &command_elf,      &command_filter,  &command_flame,    &command_bundle,  &command_symfs,
    &command_descriptor, &command_snapshot, &command_records, &command_stack,    &command_report,  &command_object,
    &command_heap,       &command_async,    &command_record,  &command_complete, &command_verify,  &command_work,
    &command_help,       &command_version,
};

const size_t command_count = ARRAY_SIZE(commands);

/* In the order in which help shows them. */
static const struct option_row *const all_rows[] = {
    json_rows,   output_rows, target_rows,  names_rows,  stubs_rows,   r2r_rows,      elf_rows,      jitdump_rows,
    follow_rows, folded_rows, profile_rows, record_rows, records_rows, snapshot_rows, complete_rows, info_rows,
    report_rows, stack_rows,  whole_rows,   heap_rows,   async_rows,   object_rows,   general_rows,
};

const struct option_row *option_at(size_t number)
{
    for (size_t i = 0; i < ARRAY_SIZE(all_rows); i++)
        for (const struct option_row *row = all_rows[i]; row->name; row++)
            if (number-- == 0)
                return row;
    return NULL;
}

bool command_takes(const struct command *command, const struct option_row *row)
{
    bool takes = !command || option_is_in(row, general_rows);
    for (const struct option_row *const *rows = takes ? NULL : command->options; rows && *rows; rows++)
        takes |= option_is_in(row, *rows);
    return takes;
}

bool command_opens_target(const struct command *command)
{
    return command_takes(command, target_rows);
}

const char *command_usage(const struct command *command, char room[static USAGE_SIZE])
{
    size_t length = 0;
    room[0] = '\0';
    for (const struct operand_row *row = command->operands; row && row->name; row++)
        length += (size_t)snprintf(room + length, USAGE_SIZE - length, "%s%s%s%s%s", length ? " " : "",
                                   row->need ? "[" : "", row->name, row->repeats ? "..." : "", row->need ? "]" : "");
    return room;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

const struct command *command_named(const char *name)
{
    const struct command *command = command_find(name);
    struct similar similar;
    if (command)
        return command;
    similar_begin(&similar, name);
    for (size_t i = 0; i < command_count; i++)
        similar_consider(&similar, commands[i]->name);
    if (similar.best)
        message("unknown command '%s'; did you mean '%s'?", name, similar.best);
    else
        message("unknown command '%s'; 'cdacq --help' lists all", name);
    return NULL;
}
