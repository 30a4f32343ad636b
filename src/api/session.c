/*
 * session.c: creates and destroys sessions.
 */
#include "src/ending/ending.h"
#include "src/lookup/opened_target.h"
#include "target/mapped_file.h"
#include "util/error.h"

static uint64_t file_offset_of(const struct mapping *mapping, uint64_t address)
{
    return mapping->offset + (address - mapping->begin);
}

/* The path of an image; NULL if it does not begin where its file does: it is part of a single-file application then. */
static const char *path_at(void *context, uint64_t address)
{
    const struct mapping *mapping = target_mapping_at(context, address);
    return mapping && file_offset_of(mapping, address) == 0 ? mapping->path : NULL;
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

static bool relocated_pointer(void *context, struct reader *reader, uint64_t address, uint64_t *ret)
{
    const struct mapping *mapping = target_mapping_at(context, address);
    struct mapped_file *file = mapping ? mapping->file : NULL;
    struct pe pe;
    uint32_t rva, to;
    if (!file || !mapped_file_resolve(file))
        return false;
    const struct bytes bytes = bytes_of_buffer(file->content.bytes, file->content.size);
    if (pe_open(&bytes, false, &pe) < 0 || !pe_rva(&pe, file_offset_of(mapping, address), &rva))
        return false;
    reader_charge(reader, pe.directories[PE_DIRECTORY_BASE_RELOCATION].size / 8);
    if (!reader_step(reader, "base relocations") || pe_relocated_pointer(&pe, rva, &to) < 0)
        return false;
    reader_add_unverified(reader, !file->verified);
    *ret = address - rva + to;
    return true;
}

/* A session for the runtime of a target. NULL when out of memory. */
static struct cdacq_session *create(struct cdacq_target *target)
{
    struct cdacq_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    const struct module_files files = {.path_at = path_at,
                                       .next_assembly = next_assembly,
                                       .relocated_pointer = relocated_pointer,
                                       .context = target->memory};
    resolver_init(&session->resolver, target, files);
    return session;
}

/* Frees what belongs to one runtime. */
static void destroy(struct cdacq_session *session)
{
    if (!session)
        return;
    ending_forget(session);
    thrown_list_deinit(&session->thrown);
    resolver_deinit(&session->resolver);
    free(session);
}

static void destroy_group(struct session_group *group)
{
    for (size_t i = 0; i < RUNTIME_MAX; i++)
        destroy(group->items[i]);
    free(group);
}

/* A session for each runtime that can be read; there is one. NULL when out of memory. */
static struct cdacq_session *create_group(const struct target_group *targets)
{
    struct session_group *group = calloc(1, sizeof *group);
    for (size_t i = 0; group && i < RUNTIME_MAX; i++) {
        if (!targets->items[i])
            continue;
        struct cdacq_session *session = create(targets->items[i]);
        if (!session) {
            destroy_group(group);
            return NULL;
        }
        group->items[i] = session;
        if (!group->owner || targets->items[i] == targets->owner)
            group->owner = session;
        session->group = group;
        session->resolver.epoch.pins = &group->pins;
    }
    return group ? group->owner : NULL;
}

/* Whether any runtime of the group of a target can be read. */
static bool has_runtimes(const struct target_group *targets)
{
    bool any = false;
    for (size_t i = 0; targets && i < RUNTIME_MAX; i++)
        any |= targets->items[i] != NULL;
    return any;
}

enum cdacq_status cdacq_session_create(struct cdacq_target *target, struct cdacq_session **ret, struct cdacq_error *err)
{
    if (!target)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a session needs a target");
    bool is_group = target_owner(target) == target && has_runtimes(target->group);
    if (!is_group && target->problem.status < 0 && !target->is_native) {
        if (err)
            *err = target->problem;
        return target->problem.status;
    }
    struct cdacq_session *session = is_group ? create_group(target->group) : create(target);
    if (!session)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    resolver_begin(&session->resolver);
    *ret = session;
    return CDACQ_OK;
}

void cdacq_session_destroy(struct cdacq_session *session)
{
    if (session && session->group)
        destroy_group(session->group);
    else
        destroy(session);
}

struct cdacq_session *cdacq_session_of_runtime(struct cdacq_session *session, unsigned runtime)
{
    if (session && session->group)
        return runtime < RUNTIME_MAX ? session->group->items[runtime] : NULL;
    return session && session->resolver.target->runtime == runtime ? session : NULL;
}

struct cdacq_target *cdacq_session_target(const struct cdacq_session *session)
{
    return session ? session->resolver.target : NULL;
}
