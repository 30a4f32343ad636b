#include "target/mapped_files.h"

#include "target/mapped_path.h"

static const char *file_name(struct mapped_file *const *file)
{
    return (*file)->name;
}

DEFINE_HASH_TABLE_FUNCTIONS(file_table, struct mapped_file *, const char *, file_name, hash_string, equal_strings);

static void record_destroy(struct mapped_file *file)
{
    if (!file)
        return;
    file_candidate_close(&file->content);
    free(file->identity);
    free(file->content_identity);
    free(file->local_path);
    free(file->problem);
    free(file->path);
    free(file->name);
    free(file);
}

static struct mapped_file *record_create(struct target *target, struct file_policy *policy, const char *name)
{
    struct mapped_file *file = calloc(1, sizeof *file);
    if (!file || !(file->name = strdup(name)) || !(file->path = strndup(name, mapped_path_length(name)))) {
        record_destroy(file);
        return NULL;
    }
    file->target = target;
    file->policy = policy;
    return file;
}

/*
 * Whether one more file can be known. Files without a mapping, as of the last index, do not count among those at once.
 */
static bool has_room(const struct target *target)
{
    return target->file_count - target->unmapped_file_count < FILE_MAX && target->file_count < FILE_EVER_MAX;
}

static struct mapped_file *record_add(struct target *target, struct mapped_file *file)
{
    file->next = target->files;
    target->files = file;
    target->file_count++;
    return file;
}

struct mapped_file *mapped_files_get(struct target *target, struct file_policy *policy, const char *name)
{
    struct mapped_file **known = file_table_find(&target->file_table, name);
    if (known || !has_room(target))
        return known ? *known : NULL;
    struct mapped_file *file = record_create(target, policy, name);
    if (file && file_table_insert(&target->file_table, file, NULL))
        return record_add(target, file);
    record_destroy(file);
    return NULL;
}

struct mapped_file *mapped_files_replace(struct target *target, struct file_policy *policy, const char *name)
{
    struct mapped_file **known = file_table_find(&target->file_table, name);
    struct mapped_file *file = has_room(target) ? record_create(target, policy, name) : NULL;
    if (!known || !file) {
        record_destroy(file);
        return NULL;
    }
    return *known = record_add(target, file);
}

static int compare_by_file(const void *a, const void *b)
{
    const struct mapping *x = *(const struct mapping *const *)a, *y = *(const struct mapping *const *)b;
    if (x->file != y->file)
        return ((uintptr_t)x->file > (uintptr_t)y->file) - ((uintptr_t)x->file < (uintptr_t)y->file);
    if (x->offset != y->offset)
        return (x->offset > y->offset) - (x->offset < y->offset);
    return (x->begin < y->begin) - (x->begin > y->begin); /* a descending walk meets the lowest first */
}

bool mapped_files_index(struct target *target)
{
    const struct mapping **mappings = calloc(target->mapping_count + 1, sizeof *mappings);
    size_t count = 0;
    if (!mappings)
        return false;
    free(target->file_mappings);
    target->file_mappings = mappings;
    for (struct mapped_file *file = target->files; file; file = file->next)
        file->mapping_count = 0, file->mappings = NULL, file->begin = file->end = 0;
    target->unmapped_file_count = target->file_count;
    for (size_t i = 0; i < target->mapping_count; i++)
        if (target->mappings[i].file)
            mappings[count++] = &target->mappings[i];
    qsort(mappings, count, sizeof *mappings, compare_by_file);
    for (size_t i = 0; i < count; i++) {
        struct mapping *mapping = &target->mappings[mappings[i] - target->mappings];
        struct mapped_file *file = mapping->file;
        mapping->reach = mapping->offset + (mapping->end - mapping->begin);
        if (!file->mapping_count) {
            file->mappings = &mappings[i];
            file->begin = mapping->begin;
        } else {
            mapping->reach = MAX(mapping->reach, mappings[i - 1]->reach);
        }
        target->unmapped_file_count -= !file->mapping_count;
        file->mapping_count++;
        file->begin = MIN(file->begin, mapping->begin);
        file->end = MAX(file->end, mapping->end);
    }
    return true;
}

void mapped_files_deinit(struct target *target)
{
    file_table_deinit(&target->file_table);
    while (target->files) {
        struct mapped_file *file = target->files;
        target->files = file->next;
        record_destroy(file);
    }
    free(target->file_mappings);
}
