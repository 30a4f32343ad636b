#include "target/memory.h"

#include "src/error.h"

struct memory_target {
    struct target base;
    struct cdacq_memory memory;
};

static bool memory_target_at(struct target *target, uint64_t address, struct memory *ret)
{
    const struct cdacq_memory *memory = &((struct memory_target *)target)->memory;
    const void *bytes = NULL;
    uint64_t begin = 0, end = 0;
    if (!memory->span_at(memory->context, address, &begin, &end, &bytes) || !bytes)
        return false;
    if (address < begin || address >= end)
        return false; /* an answer about another place is none */
    *ret = (struct memory){begin, end, bytes, false};
    return true;
}

static void memory_target_destroy(struct target *target)
{
    target_deinit(target);
    free(target);
}

static const struct target_ops memory_target_ops = {
    .memory_at = memory_target_at,
    .dumped_at = memory_target_at,
    .destroy = memory_target_destroy,
};

enum cdacq_status memory_open(const struct cdacq_memory *memory, bool record, struct target **ret,
                              struct cdacq_error *err)
{
    if (!memory || memory->size < sizeof *memory || !memory->span_at || (memory->mapping_count && !memory->mappings))
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "struct cdacq_memory: size, span_at and mappings must be set");
    struct memory_target *target = calloc(1, sizeof *target);
    struct mapping *mappings = calloc(memory->mapping_count + 1, sizeof *mappings);
    struct recording *recording = record ? calloc(1, sizeof *recording) : NULL;
    if (!target || !mappings || (record && !recording)) {
        free(target);
        free(mappings);
        free(recording);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    target->memory = *memory;
    target->base = (struct target){
        .ops = &memory_target_ops,
        .kind = CDACQ_TARGET_MEMORY,
        .mappings = mappings,
        .recording = recording,
    };
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct cdacq_mapping *mapping = &memory->mappings[i];
        if (mapping->begin < mapping->end && mapping->path)
            mappings[target->base.mapping_count++] = (struct mapping){
                .begin = mapping->begin, .end = mapping->end, .offset = mapping->file_offset, .path = mapping->path};
    }
    target_sort_mappings(&target->base);
    *ret = &target->base;
    return CDACQ_OK;
}
