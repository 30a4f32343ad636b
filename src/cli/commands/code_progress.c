#include "src/cli/commands/code_progress.h"

#include <string.h>

#include "src/cli/base/memory.h"
#include "util/base.h"

enum { STEP = 256 }; /* methods */

struct gathering {
    struct code_progress *progress;
    bool without_images;
};

static int add_extent(const struct cdacq_code_range_info *range, void *context)
{
    const struct gathering *gathering = context;
    struct code_progress *progress = gathering->progress;
    if (gathering->without_images && strcmp(range->kind, "r2r") == 0)
        return 0;
    if (!code_extents_append(&progress->extents, (struct code_extent){range->begin, range->end}))
        out_of_memory();
    progress->all += range->end - range->begin;
    return 0;
}

void code_progress_begin(struct code_progress *progress, struct cdacq_session *session, unsigned flags, int results)
{
    struct gathering gathering = {progress, flags & CDACQ_VISIT_R2R_NONE && !(flags & CDACQ_VISIT_STUBS)};
    *progress = (struct code_progress){0};
    progress_begin(&progress->progress, "methods", results);
    if (progress->progress.wanted) /* errors are those of the visit */
        (void)cdacq_session_visit_code_ranges(session, add_extent, &gathering, NULL);
}

void code_progress_step(struct code_progress *progress, const struct cdacq_method *method)
{
    if (++progress->done % STEP || !progress->progress.wanted)
        return;
    const struct code_extents *extents = &progress->extents;
    uint64_t passed = 0, address = method->code_start;
    for (; progress->next < extents->count && extents->items[progress->next].end <= address; progress->next++)
        progress->passed += extents->items[progress->next].end - extents->items[progress->next].begin;
    if (progress->next < extents->count && extents->items[progress->next].begin < address)
        passed = address - extents->items[progress->next].begin;
    progress_estimate(&progress->progress, progress->done, progress->passed + passed, progress->all);
}

void code_progress_end(struct code_progress *progress)
{
    progress_end(&progress->progress);
    code_extents_deinit(&progress->extents);
}
