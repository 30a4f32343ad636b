/*
 * code_files.c: visits the mapped files of a target, and says in which of them the runtime has code.
 */
#include "contracts/execution_manager/code_map.h"
#include "src/api/listing.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/index.h"
#include "src/lookup/opened_target.h"
#include "target/mapped_file.h"
#include "util/binary_search.h"
#include "util/error.h"
#include "util/hash_table.h"

struct seen_file {
    const char *name;
    const struct mapping *mapping; /* its first */
    bool has_code, may_execute;
};

static const char *seen_name(const struct seen_file *file)
{
    return file->name;
}

DEFINE_HASH_TABLE(seen_files, struct seen_file, const char *, seen_name, hash_string, equal_strings);

static bool has_code(const struct code_map *map, const struct mapping *mapping)
{
    size_t i = lower_bound(k, map->count, map->ranges[k].section.end <= mapping->begin);
    return i < map->count && map->ranges[i].section.begin < mapping->end;
}

/* Whether compiled code is in memory that no file backs. */
static bool has_anonymous_code(struct target *target, const struct code_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct mapping *mapping =
            map->ranges[i].manager->compiles ? target_mapping_at(target, map->ranges[i].section.begin) : NULL;
        if (map->ranges[i].manager->compiles && !(mapping && mapping->path))
            return true;
    }
    return false;
}

static int report(struct target *target, const struct seen_file *file,
                  int (*visit)(const struct cdacq_code_file *file, void *context), void *context)
{
    struct mapped_file *mapped = file->mapping->file;
    bool is_deleted = mapped && mapped_file_is_deleted(mapped), is_core = target->kind == CDACQ_TARGET_CORE;
    bool is_local = mapped && (is_core || is_deleted) && mapped_file_resolve(mapped);
    const struct cdacq_local_file local = {is_local ? &mapped->content : NULL, is_local ? mapped->local_path : NULL};
    struct cdacq_code_file found = {
        .size = sizeof found,
        .path = file->name,
        .local_path = local.path,
        .has_code = file->has_code,
        .may_execute = file->may_execute,
        .former_path = is_deleted ? mapped->path : NULL,
        .local_file = is_local ? &local : NULL,
    };
    work_add_steps(&target->work, is_local ? WORK_OF_A_FILE : WORK_OF_A_PATH); /* the caller opens it, or links to it */
    return visit(&found, context);
}

enum cdacq_status cdacq_session_visit_code_files(struct cdacq_session *session,
                                                 int (*visit)(const struct cdacq_code_file *file, void *context),
                                                 void *context, struct cdacq_error *err)
{
    struct target *target = session->resolver.target->memory;
    struct seen_files files = {0};
    enum cdacq_status status = target_list_mappings(target, err);
    const struct code_map *map = status < 0 ? NULL : resolver_begin_map(&session->resolver, &status, err);
    if (!map)
        return status;
    bool is_running =
        resolver_is_running(&session->resolver); /* else nothing is listed again, and sessions may run side by side */
    epoch_pin(&session->resolver.epoch);         /* `visit` may use the session, whose map has to stay */
    if (is_running)
        target_owner(session->resolver.target)->mapping_pins++;
    for (size_t i = 0; i < target->mapping_count && status >= 0; i++) {
        const struct mapping *mapping = &target->mappings[i];
        struct seen_file *file =
            mapping->path ? seen_files_insert(
                                &files, (struct seen_file){.name = mapped_file_name(mapping), .mapping = mapping}, NULL)
                          : NULL;
        if (file) {
            file->has_code |= has_code(map, mapping);
            file->may_execute |= mapping->may_execute;
        } else if (mapping->path)
            status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the mapped files");
    }
    for (size_t i = 0; i < target->mapping_count && status == CDACQ_OK; i++) {
        const struct mapping *mapping = &target->mappings[i];
        const struct seen_file *file = mapping->path ? seen_files_find(&files, mapped_file_name(mapping)) : NULL;
        if (file && file->mapping == mapping && report(target, file, visit, context))
            status = CDACQ_STOPPED;
    }
    const struct cdacq_code_file anonymous = {.size = sizeof anonymous, .has_code = true};
    if (status == CDACQ_OK && has_anonymous_code(target, map) && visit(&anonymous, context))
        status = CDACQ_STOPPED;
    if (is_running)
        target_owner(session->resolver.target)->mapping_pins--;
    epoch_unpin(&session->resolver.epoch);
    seen_files_deinit(&files);
    /* Whether the others have code is not known. */
    return status == CDACQ_OK && map->left_out ? listing_report_left_out(map, err) : status;
}
