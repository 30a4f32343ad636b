#include "src/api/module_files.h"

static const char *path_at(void *context, uint64_t address)
{
    const struct mapping *mapping = target_mapping_at(context, address);
    return mapping ? mapping->path : NULL;
}

static bool next_assembly(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base)
{
    const struct target *target = context;
    while (*position < target->mapping_count && reader_step(reader, "mapped files")) {
        const struct mapping *mapping = &target->mappings[(*position)++];
        const char *base = path_basename(mapping->path);
        if (mapping->offset == 0 && strncmp(base, name, length) == 0 && strcmp(base + length, ".dll") == 0) {
            *ret_base = mapping->begin;
            return true;
        }
    }
    return false;
}

struct module_files module_files_of(struct target *target)
{
    return (struct module_files){.path_at = path_at, .next_assembly = next_assembly, .context = target};
}
