/*
 * cmd_complete.c: writes a core again with the pages of its mapped files, for programs that take nothing from files.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/written_core.h"
#include "util/base.h"
#include "util/vector.h"

enum { FILES_SHOWN = 10 };

struct complete_options {
    struct common_options common;
    bool unconfirmed;
};

/* A file that still lacks bytes, or that nothing confirms. */
struct unfilled {
    char *path, *problem;
    uint64_t size;
    bool unconfirmed;
};

DEFINE_VECTOR(unfilled_list, struct unfilled);

static int add_unfilled(const struct cdacq_unfilled_file *file, void *context)
{
    struct unfilled_list *list = context;
    struct unfilled one = {strdup(file->path), strdup(file->problem), file->missing_size, file->unverified};
    if (!one.path || !one.problem || !unfilled_list_append(list, one))
        out_of_memory();
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const struct unfilled *left = a, *right = b;
    return left->size != right->size ? (left->size < right->size ? 1 : -1) : strcmp(left->path, right->path);
}

static void write_json(struct output *out, const char *path, const struct cdacq_complete_core *core,
                       const struct unfilled_list *list)
{
    struct json_writer writer = json_begin_line(out), *w = &writer;
    json_string(w, "file", path);
    json_number(w, "size", core->file_size);
    json_number(w, "segments", core->segment_count);
    json_number(w, "filled", core->filled_size);
    json_number(w, "unconfirmed", core->unverified_size);
    json_number(w, "missing", core->missing_size);
    json_begin_array(w, "files");
    for (size_t i = 0; i < list->count; i++) {
        json_begin_object(w, NULL);
        json_string(w, "path", list->items[i].path);
        json_number(w, "missing", list->items[i].size);
        json_note(w, "problem", list->items[i].problem);
        json_bool(w, "unconfirmed", list->items[i].unconfirmed);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_line(w);
}

static void write_text(struct output *out, const char *path, const struct cdacq_complete_core *core,
                       const struct unfilled_list *list)
{
    output_text(out, path);
    output_printf(out, ": %" PRIu64 " bytes, %" PRIu64 " of them filled in from files\n", core->file_size,
                  core->filled_size);
    for (size_t i = 0; i < MIN(list->count, (size_t)FILES_SHOWN); i++) {
        if (list->items[i].size)
            output_printf(out, "%14" PRIu64 " bytes missing: ", list->items[i].size);
        else
            output_literal(out, "            used unconfirmed: ");
        output_text(out, list->items[i].path);
        output_note_between(out, ": ", list->items[i].problem, "\n");
    }
    if (list->count > FILES_SHOWN)
        output_printf(out, "... %zu more (--json)\n", list->count - FILES_SHOWN);
}

static int complete(const void *given, const struct opened_target *opened)
{
    const struct complete_options *options = given;
    const char *path = options->common.output;
    struct cdacq_complete_core core = {.size = sizeof core};
    struct unfilled_list list = {0};
    struct cdacq_error error;
    struct output out;
    sigset_t before;
    if (!written_core_check(path))
        return EXIT_FAILED;
    unsigned flags = options->unconfirmed ? CDACQ_COMPLETE_UNVERIFIED : 0;
    bool is_held = written_core_begin(path, &before);
    enum cdacq_status status =
        cdacq_target_write_complete_core(opened->target, path, flags, add_unfilled, &list, &core, &error);
    written_core_end(is_held, &before);
    int code = list.count || cdacq_target_truncation(opened->target) ? EXIT_PARTLY : EXIT_ANSWERED;
    if (status < 0) {
        message("%s", error.message);
        code = EXIT_FAILED;
    } else if (output_open(&out, NULL)) {
        if (list.count)
            qsort(list.items, list.count, sizeof *list.items, by_size);
        (options->common.json ? write_json : write_text)(&out, path, &core, &list);
        code = output_close(&out) ? code : EXIT_FAILED;
    } else {
        code = EXIT_FAILED;
    }
    for (size_t i = 0; i < list.count; i++) {
        free(list.items[i].path);
        free(list.items[i].problem);
    }
    unfilled_list_deinit(&list);
    return code;
}

static int run(const void *given)
{
    const struct complete_options *options = given;
    if (!options->common.output) {
        message("complete: give -o FILE, which cannot be standard output");
        return EXIT_USAGE;
    }
    return target_run(&options->common, &(const struct target_use){.run = complete, .flags = CDACQ_OPEN_PARTIAL});
}

const struct option_row complete_rows[] = {
    {"unconfirmed", NULL, "also use files that nothing in the core confirms or contradicts, and list them",
     TO_FLAG(struct complete_options, unconfirmed)},
    {0},
};

const struct command command_complete = {
    .name = "complete",
    .section = SECTION_CORES,
    RUNS(run, struct complete_options),
    .operands = OPERANDS({TARGET_OPERAND}, {.name = "-o FILE", .kind = OPERAND_OPTION}),
    .options = OPTIONS(json_rows, output_rows, target_rows, complete_rows),
    .summary = "fill the pages of mapped files into a core, for other tools",
    .details =
        "Writes a core of the kernel or of gcore again, with the pages that it lacks of mapped files. Debuggers\n"
        "that take memory from the core alone, such as dotnet-dump, ClrMD and lldb, can then read it. Only\n"
        "files that the core confirms, by their build-id or contents, are used; the files that still lack\n"
        "bytes are listed. TARGET is a core, and FILE cannot be standard output.\n",
    .exit_partly = "files that the core lacks bytes of could not be filled in",
};
