#include "src/cli/commands/info.h"

const char *info_target_kind(const struct info *info)
{
    static const char *const texts[] = {[CDACQ_TARGET_CORE] = "core",
                                        [CDACQ_TARGET_PROCESS] = "process",
                                        [CDACQ_TARGET_MEMORY] = "memory",
                                        [CDACQ_TARGET_IMAGE] = "image"};
    return texts[info->facts.kind];
}

void info_visit_next_steps(const struct info *info, void (*visit)(const struct next_step *step, void *context),
                           void *context)
{
    uint64_t ranges = 0;
    for (size_t i = 0; i < info->unreadable_count; i++)
        ranges += info->unreadable[i] != 0;
    next_steps_visit(info->target, info->options, ranges, visit, context);
}
