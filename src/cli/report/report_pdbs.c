/*
 * report_pdbs.c: the PDBs without which methods of the program have no lines on the stacks. Those of the framework's
 * assemblies are on hardly any machine, and nobody needs them.
 */
#include <string.h>

#include "src/cli/report/report.h"

enum { ASSEMBLIES_MAX = 8 };

/* Assemblies about which was asked. */
struct assemblies {
    const char *paths[ASSEMBLIES_MAX];
    size_t count;
};

static bool have(const struct assemblies *assemblies, const char *path)
{
    for (size_t i = 0; i < assemblies->count; i++)
        if (!strcmp(assemblies->paths[i], path))
            return true;
    return false;
}

static bool lacks_line(const struct stack_frame *frame, const struct assemblies *assemblies)
{
    const struct cdacq_method *method = &frame->method;
    return method->module && !method->line && frame->frame.kind == CDACQ_FRAME_MANAGED &&
           !have(assemblies, method->module) && report_is_of_program(method);
}

void report_visit_missing_pdbs(struct report *report, void (*visit)(const struct next_step *step, void *context),
                               void *context)
{
    struct assemblies asked = {.count = 0};
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack *stack = report->stacks.list.items[i];
        for (size_t j = 0; j < stack->frames.count; j++) {
            const struct stack_frame *frame = stack->frames.items[j].shared;
            struct cdacq_source source = {.size = sizeof source};
            if (!lacks_line(frame, &asked))
                continue;
            if (asked.count == ASSEMBLIES_MAX)
                return;
            asked.paths[asked.count++] = frame->method.module;
            if (cdacq_session_source_at(report->session, frame->frame.pc - frame->frame.is_call, &source, NULL) ==
                    CDACQ_OK &&
                source.problem && !source.pdb && !source.pdb_embedded)
                visit(&(struct next_step){.need = "pdb",
                                          .text = source.problem,
                                          .path = frame->method.module,
                                          .options = {"--module-path"}},
                      context);
        }
    }
}
