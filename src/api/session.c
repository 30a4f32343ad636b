/*
 * session.c: creates and destroys sessions.
 */
#include "src/api/session.h"
#include "src/api/source_lines.h"

/* The path of an image; NULL if it does not begin where its file does: it is part of a single-file application then. */
static const char *path_at(void *context, uint64_t address)
{
    const struct mapping *mapping = target_mapping_at(context, address);
    return mapping && mapping->offset + (address - mapping->begin) == 0 ? mapping->path : NULL;
}

static bool next_assembly(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base)
{
    struct target *target = context;
    if (target_list_mappings(target, NULL) < 0)
        return false;
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

enum cdacq_status cdacq_session_create(struct cdacq_target *target, struct cdacq_session **ret, struct cdacq_error *err)
{
    if (target && target->problem.status < 0) {
        if (err)
            *err = target->problem;
        return target->problem.status;
    }
    struct cdacq_session *session = target ? calloc(1, sizeof *session) : NULL;
    if (!session)
        return error_set(err, target ? CDACQ_ERR_NOMEM : CDACQ_ERR_ARGUMENT, 0,
                         target ? "out of memory" : "a session needs a target");
    session->target = target;
    session->names = target->names;
    field_reader_init(&session->reader, target->target, &target->layout, target->descriptor_info.pointer_size,
                      target->descriptor_info.big_endian);
    module_cache_init(
        &session->modules, &session->reader,
        (struct module_files){.path_at = path_at, .next_assembly = next_assembly, .context = target->target});
    session_begin_question(session);
    *ret = session;
    return CDACQ_OK;
}

void cdacq_session_destroy(struct cdacq_session *session)
{
    if (!session)
        return;
    session_forget_ending(session);
    session_question_deinit(session);
    native_modules_destroy(session->native);
    session_sources_deinit(session);
    module_cache_deinit(&session->modules);
    arena_deinit(&session->arena);
    arena_deinit(&session->scratch);
    free(session);
}

size_t cdacq_session_memory(const struct cdacq_session *session)
{
    return session->arena.size + session->texts.capacity * (sizeof *session->texts.slots + 1);
}
