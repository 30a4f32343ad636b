/*
 * visit.c: going through everything: methods, code ranges, modules, contracts, the descriptor.
 */
#include <inttypes.h>
#include <stdio.h>

#include "contracts/platform_metadata.h"
#include "formats/elf_machine.h"
#include "src/api/handles.h"
#include "src/api/file_match.h"
#include "util/sized.h"
#include "util/text.h"

/* A visit of methods on its way. */
struct visit {
    struct cdacq_session *session;
    unsigned flags;
    int (*visit)(const struct cdacq_method *method, void *context);
    void *context;
};

static enum cdacq_status stopped(int result)
{
    return result ? CDACQ_STOPPED : CDACQ_OK;
}

/* A range, or a part of one, that cannot be told. */
static enum cdacq_status visit_failure(const struct visit *visit, uint64_t begin, uint64_t end)
{
    struct cdacq_method method = {
        .size = sizeof method,
        .ip = begin,
        .answer = CDACQ_ANSWER_ERROR,
        .code_start = begin,
        .code_size = end - begin,
        .il_offset = CDACQ_OFFSET_UNKNOWN,
        .error = visit->session->error.message,
    };
    return stopped(visit->visit(&method, visit->context));
}

/* A stub block: what kind it is stands in front of it; a list of stubs is told as one. */
static enum cdacq_status visit_stub(const struct visit *visit, uint64_t begin, uint64_t end)
{
    struct cdacq_method method;
    if (!(visit->flags & CDACQ_VISIT_STUBS))
        return CDACQ_OK;
    session_answer(visit->session, begin, &method);
    method.code_start = begin;
    method.code_size = end - begin;
    return stopped(visit->visit(&method, visit->context));
}

/* A block of which the index does not know enough: its start tells what there is, or why there is nothing. */
static enum cdacq_status visit_unknown(const struct visit *visit, uint64_t begin, uint64_t end)
{
    struct cdacq_method method;
    session_answer(visit->session, begin, &method);
    if (method.answer != CDACQ_ANSWER_MANAGED)
        return visit_failure(visit, begin, end);
    return stopped(visit->visit(&method, visit->context));
}

static enum cdacq_status visit_run(const struct visit *visit, size_t index, const struct code_run *run)
{
    const struct code_range *range = &visit->session->map->ranges[index];
    uint64_t base = range->section.begin;
    struct cdacq_method method;
    if (run->kind == RUN_STUB)
        return visit_stub(visit, base + run->begin, base + run->end);
    if (run->kind == RUN_COLD || (range->manager->in_images && visit->flags & CDACQ_VISIT_R2R_NONE))
        return CDACQ_OK; /* the former is told with its hot part */
    if (run->kind == RUN_UNKNOWN)
        return visit_unknown(visit, base + run->begin, base + run->end);
    const struct method_record *record = session_record(visit->session, index, run);
    if (!record)
        return visit_failure(visit, base + run->begin, base + run->end);
    if (record->method.code_start != base + run->begin)
        return CDACQ_OK; /* a later run of the same method */
    if (range->manager->in_images && !record->method.method_desc && !(visit->flags & CDACQ_VISIT_R2R_ALL))
        return CDACQ_OK;
    record_answer(record, record->method.code_start, &method);
    return stopped(visit->visit(&method, visit->context));
}

static enum cdacq_status visit_range(const struct visit *visit, size_t index)
{
    struct cdacq_session *session = visit->session;
    const struct code_range *range = &session->map->ranges[index];
    if (range->manager->in_images && (visit->flags & CDACQ_VISIT_R2R_NONE) &&
        !(visit->flags & CDACQ_VISIT_STUBS)) /* which ReadyToRun images have too */
        return CDACQ_OK;
    struct session_range *table = session_table(session, index);
    if (!table) {
        session_table_error(session, index, &session->error);
        return visit_failure(visit, range->section.begin, range->section.end);
    }
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < table->table->count && status == CDACQ_OK; i++)
        status = visit_run(visit, index, &table->table->runs[i]);
    return status;
}

/* Ranges of which not even the start is known. */
static enum cdacq_status visit_holes(const struct visit *visit, size_t count)
{
    error_set(&visit->session->error, CDACQ_ERR_MEMORY, 0,
              "%zu parts of the range section map cannot be read: there may be more code", count);
    return visit_failure(visit, 0, 0);
}

enum cdacq_status cdacq_session_visit_methods(struct cdacq_session *session, unsigned flags,
                                              int (*visit)(const struct cdacq_method *method, void *context),
                                              void *context, struct cdacq_error *err)
{
    const struct code_map *map = session_map(session);
    if (!map)
        return session_map_error(session, err);
    struct visit all = {session, flags, visit, context};
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < map->count && status == CDACQ_OK; i++)
        status = visit_range(&all, i);
    return status == CDACQ_OK && map->unreadable ? visit_holes(&all, map->unreadable) : status;
}

enum cdacq_status cdacq_session_visit_code_ranges(struct cdacq_session *session,
                                                  int (*visit)(const struct cdacq_code_range_info *range,
                                                               void *context),
                                                  void *context, struct cdacq_error *err)
{
    const struct code_map *map = session_map(session);
    if (!map)
        return session_map_error(session, err);
    for (size_t i = 0; i < map->count; i++) {
        const struct code_range *range = &map->ranges[i];
        const struct mapping *mapping =
            range->manager->in_images ? target_mapping_at(session->target->target, range->section.begin) : NULL;
        struct cdacq_code_range_info info = {
            .size = sizeof info,
            .begin = range->section.begin,
            .end = range->section.end,
            .kind = range->manager->range_kind,
            .module = mapping ? mapping->path : NULL,
            .collectible = range->section.flags & RANGE_SECTION_COLLECTIBLE,
        };
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_check_code_range(struct cdacq_session *session, uint64_t address,
                                                 struct cdacq_error *err)
{
    const struct code_map *map = session_map(session);
    uint64_t plain = session_address(session, address);
    const struct code_range *range = map ? code_map_range(map, plain) : NULL;
    if (!range)
        return error_set(err, CDACQ_NOT_MANAGED, address, "no code range holds 0x%" PRIx64, address);
    size_t index = (size_t)(range - map->ranges);
    return session_table(session, index) ? CDACQ_OK : session_table_error(session, index, err);
}

/* Looking for it reads much of the image: not at every open. */
static const struct runtime_version *version_of(struct cdacq_target *target)
{
    struct runtime_version version;
    bool known;
    pthread_mutex_lock(&target->policy.lock);
    known = target->has_version;
    pthread_mutex_unlock(&target->policy.lock);
    if (known)
        return &target->version;
    runtime_version_find(&target->runtimes.items[target->runtime], &version);
    pthread_mutex_lock(&target->policy.lock);
    if (!target->has_version)
        target->version = version;
    target->has_version = true;
    pthread_mutex_unlock(&target->policy.lock);
    return &target->version;
}

static const char *or_null(const char *string)
{
    return string[0] ? string : NULL;
}

enum cdacq_status cdacq_target_get_info(struct cdacq_target *target, struct cdacq_target_info *ret,
                                        struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_target_info", err);
    if (status < 0)
        return status;
    const struct runtime_version *version = version_of(target);
    const struct target *memory = target->target;
    const struct runtime *runtime = &target->runtimes.items[target->runtime];
    const struct elf_machine *machine = elf_machine_find(memory->elf_machine);
    const struct descriptor_item *architecture =
        descriptor_find(&target->descriptor, CDACQ_ITEM_GLOBAL, "", "Architecture");
    struct cdacq_target_info info = {
        .kind = memory->kind,
        .pid = memory->pid,
        .pointer_size = target->descriptor_info.pointer_size,
        .big_endian = target->descriptor_info.big_endian,
        .architecture = architecture ? architecture->text : NULL,
        .elf_machine = machine ? machine->name : NULL,
        .runtime_count = (unsigned)target->runtimes.count,
        .runtime = target->runtime,
        .runtime_path = runtime->has_image ? runtime->image.path : NULL,
        .runtime_base = runtime->has_image ? runtime->image.base : 0,
        .runtime_build_id = or_null(target->build_id),
        .runtime_release = or_null(version->release),
        .runtime_version = or_null(version->version),
        .runtime_file_version = or_null(version->file_version),
        .descriptor_address = runtime->descriptor_address,
        .descriptor_origin = !runtime->descriptor_address || !target->descriptor.count ? NULL
                             : target->descriptor_info.from_file                       ? "the runtime's file, relocated"
                                                                                       : "memory",
        .supplement = target->descriptor.count ? runtime->supplement.name : NULL,
        .schema = target->descriptor.schema,
        .writer = memory->writer,
        .segment_count = memory->segment_count,
        .dumped_size = memory->dumped_size,
        .missing_size = memory->missing_size,
        .truncated = memory->truncated,
        .problem_status = target->problem.status,
        .problem = or_null(target->problem.message),
        .native_aot = target->problem.status == CDACQ_ERR_CONTRACT && contracts_native_aot(&target->descriptor),
    };
    sized_copy(ret, &info, sizeof info);
    return CDACQ_OK;
}

enum cdacq_status cdacq_target_visit_runtimes(struct cdacq_target *target,
                                              int (*visit)(const struct cdacq_runtime_info *runtime, void *context),
                                              void *context, struct cdacq_error *err)
{
    (void)err;
    for (size_t i = 0; i < target->runtimes.count; i++) {
        const struct runtime *runtime = &target->runtimes.items[i];
        struct runtime_version version;
        char build_id[2 * BUILD_ID_MAX + 1];
        text_hex(build_id, runtime->image.build_id, runtime->image.build_id_size);
        runtime_version_find(runtime, &version);
        struct cdacq_runtime_info info = {
            .size = sizeof info,
            .path = runtime->has_image ? runtime->image.path : NULL,
            .base = runtime->has_image ? runtime->image.base : 0,
            .build_id = or_null(build_id),
            .version = or_null(version.version[0] ? version.version : version.release),
            .descriptor_address = runtime->descriptor_address,
            .in_use = i == target->runtime,
        };
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

enum cdacq_status cdacq_target_visit_contracts(struct cdacq_target *target,
                                               int (*visit)(const struct cdacq_contract_info *contract, void *context),
                                               void *context, struct cdacq_error *err)
{
    (void)err;
    const struct descriptor *descriptor = &target->descriptor;
    for (size_t i = 0; i < descriptor->count; i++) {
        const struct descriptor_item *item = &descriptor->items[i];
        char known[64];
        if (item->kind != CDACQ_ITEM_CONTRACT)
            continue;
        contracts_known(item->name, descriptor->schema, known, sizeof known);
        struct cdacq_contract_info info = {
            .size = sizeof info,
            .name = item->name,
            .version = item->text,
            .origin = item->origin,
            .supported = contracts_supported(item->name, descriptor->schema, item->text),
            .known = known,
        };
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

/* `build_id` has room for the text of one. */
static void describe_module(struct mapped_file *file, char *build_id, struct cdacq_module_info *ret)
{
    struct cdacq_module_info info = {.size = sizeof info,
                                     .path = file->path,
                                     .begin = file->begin,
                                     .end = file->end,
                                     .missing_size = file->missing_size};
    const struct file_identity *identity = mapped_file_identity(file, identify_mapped_file);
    text_hex(build_id, identity->build_id, identity->build_id_size);
    info.build_id = or_null(build_id);
    info.symbol_key = or_null(identity->key);
    /* What the caller of cdacq_target_open_memory lacks of it is not known before it is asked for. */
    bool asked = file->target->kind == CDACQ_TARGET_MEMORY && atomic_load(&file->resolved);
    if ((info.missing_size || asked) && mapped_file_resolve(file)) {
        info.local_path = file->local_path;
        info.verified = file->verified;
    }
    info.problem = info.missing_size || asked ? mapped_file_problem(file) : NULL;
    *ret = info;
}

enum cdacq_status cdacq_target_visit_modules(struct cdacq_target *target,
                                             int (*visit)(const struct cdacq_module_info *module, void *context),
                                             void *context, struct cdacq_error *err)
{
    (void)err;
    for (struct mapped_file *file = target->target->files; file; file = file->next) {
        struct cdacq_module_info info;
        char build_id[2 * sizeof((struct file_identity *)0)->build_id + 1];
        if (file->path[0] != '/' || strncmp(file->path, "/memfd:", 7) == 0 || strncmp(file->path, "/dev/", 5) == 0)
            continue;
        describe_module(file, build_id, &info);
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

static int visit_item(const struct descriptor_item *item,
                      int (*visit)(const struct cdacq_descriptor_item *item, void *context), void *context)
{
    struct cdacq_descriptor_item info = {
        .size = sizeof info,
        .kind = item->kind,
        .name = item->name,
        .type = item->type,
        .text = item->text,
        .value = item->value,
        .has_value = item->has_value,
        .origin = item->origin,
        .overrides = item->other,
    };
    return visit(&info, context);
}

enum cdacq_status cdacq_target_visit_descriptor(struct cdacq_target *target,
                                                int (*visit)(const struct cdacq_descriptor_item *item, void *context),
                                                void *context, struct cdacq_error *err)
{
    (void)err;
    const struct descriptor *descriptor = &target->descriptor;
    for (size_t i = 0; i < descriptor->count; i++) {
        const struct descriptor_item *type = &descriptor->items[i];
        if (type->kind != CDACQ_ITEM_TYPE)
            continue;
        if (visit_item(type, visit, context))
            return CDACQ_STOPPED;
        for (size_t j = 0; j < descriptor->count; j++)
            if (descriptor->items[j].kind == CDACQ_ITEM_FIELD && strcmp(descriptor->items[j].scope, type->name) == 0 &&
                visit_item(&descriptor->items[j], visit, context))
                return CDACQ_STOPPED;
    }
    static const enum cdacq_descriptor_item_kind rest[] = {CDACQ_ITEM_GLOBAL, CDACQ_ITEM_CONTRACT};
    for (size_t k = 0; k < ARRAY_SIZE(rest); k++)
        for (size_t i = 0; i < descriptor->count; i++)
            if (descriptor->items[i].kind == rest[k] && visit_item(&descriptor->items[i], visit, context))
                return CDACQ_STOPPED;
    return CDACQ_OK;
}
