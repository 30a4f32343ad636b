/*
 * target_info.c: describes a target: the process, its runtimes, their contracts and descriptor, the mapped files.
 */
#include <signal.h>
#include <stdio.h>

#include "formats/elf_machine.h"
#include "src/api/handles.h"
#include "src/api/file_match.h"
#include "target/abort_message.h"
#include "util/sized.h"
#include "util/text.h"

/* The runtime that was selected. An empty one if the target has none. */
static const struct runtime *runtime_of(const struct cdacq_target *target)
{
    static const struct runtime none;
    return target->runtimes.count ? &target->runtimes.items[target->runtime] : &none;
}

/* The version of the runtime. It is searched for when it is first needed, because that reads much of the image. */
static const struct runtime_version *version_of(struct cdacq_target *target)
{
    struct runtime_version version;
    pthread_mutex_lock(&target->policy.lock);
    bool known = target->has_version;
    pthread_mutex_unlock(&target->policy.lock);
    if (known)
        return &target->version;
    const struct runtime *runtime = runtime_of(target);
    runtime_version_find(runtime, &version);
    if (runtime->has_image && runtime->image.file && atomic_load(&runtime->image.file->resolved))
        file_candidate_release_pages(&runtime->image.file->content);
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

const char *cdacq_target_truncation(const struct cdacq_target *target)
{
    return target->target->truncation;
}

bool cdacq_target_bound_reached(const struct cdacq_target *target, char *ret_text, size_t size)
{
    if (size)
        ret_text[0] = '\0';
    return work_is_spent(&target->target->work, ret_text, size);
}

enum cdacq_status cdacq_target_get_info(struct cdacq_target *target, struct cdacq_target_info *ret,
                                        struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_target_info", err);
    if (status < 0)
        return status;
    const struct runtime_version *version = version_of(target);
    const struct target *memory = target->target;
    const struct runtime *runtime = runtime_of(target);
    const struct elf_machine *machine = elf_machine_find(memory->elf_machine);
    const struct descriptor_item *architecture =
        descriptor_find(&target->descriptor, CDACQ_ITEM_GLOBAL, "", "Architecture");
    struct cdacq_target_info info = {
        .kind = memory->kind,
        .pid = memory->pid,
        .pointer_size = target->descriptor_info.pointer_size,
        .big_endian = target->descriptor_info.big_endian,
        .architecture = architecture ? architecture->text : NULL,
        .operating_system = operating_system_find(&target->descriptor),
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
        .descriptor_origin = !runtime->descriptor_address || !target->descriptor.items.count ? NULL
                             : target->descriptor_info.from_file ? "the runtime's file, relocated"
                                                                 : "memory",
        .supplement = target->descriptor.items.count ? runtime->supplement.name : NULL,
        .schema = target->descriptor.schema,
        .descriptor_missing = target->descriptor_info.missing[0] ? target->descriptor_info.missing : NULL,
        .writer = memory->writer,
        .segment_count = memory->segment_count,
        .dumped_size = memory->dumped_size,
        .missing_size = memory->missing_size,
        .truncated = memory->truncated,
        .problem_status = target->problem.status,
        .problem = or_null(target->problem.message),
        .truncation = memory->truncation,
        .native_aot = (target->problem.status == CDACQ_ERR_CONTRACT && contracts_native_aot(&target->descriptor)) ||
                      (target->problem.status == CDACQ_ERR_NO_RUNTIME && target->runtimes.native_path),
    };
    sized_copy(ret, &info, sizeof info);
    return CDACQ_OK;
}

/* The process, read when it is first needed. NULL when out of memory. */
static const struct target_process *process_of(struct cdacq_target *target)
{
    struct target_process *process = atomic_load_explicit(&target->process, memory_order_acquire), *other = NULL;
    if (process || !(process = calloc(1, sizeof *process)))
        return process;
    if (target->target->ops->process)
        target->target->ops->process(target->target, process);
    if (process->program_address) {
        struct reader reader;
        reader_init(&reader, target->target, 8, false);
        reader_begin(&reader, FUEL_LOOKUP);
        char *path;
        if (reader_string(&reader, process->program_address, sizeof process->program - 1, &path)) {
            snprintf(process->program, sizeof process->program, "%s", path);
            free(path);
        }
    }
    bool may_be_abort = !process->signal.signal || process->signal.signal == SIGABRT;
    if (target->target->kind == CDACQ_TARGET_CORE && may_be_abort)
        (void)abort_message_read(target->target, process->abort_message, sizeof process->abort_message);
    if (atomic_compare_exchange_strong_explicit(&target->process, &other, process, memory_order_acq_rel,
                                                memory_order_acquire))
        return process;
    free(process);
    return other;
}

enum cdacq_status cdacq_target_get_process_info(struct cdacq_target *target, struct cdacq_process_info *ret,
                                                struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_process_info", err);
    const struct target_process *process = status < 0 ? NULL : process_of(target);
    if (!process)
        return status < 0 ? status : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    const struct core_siginfo *signal = &process->signal;
    struct cdacq_process_info info = {
        .pid = target->target->pid,
        .program = or_null(process->program),
        .name = or_null(process->name),
        .arguments = or_null(process->arguments),
        .arguments_cut = process->arguments_cut,
        .signal = signal->signal,
        .signal_code = signal->code,
        .has_signal_address = signal->has_address,
        .signal_address = signal->address,
        .sender_pid = signal->pid,
        .sender_uid = signal->uid,
        .time = process->time,
        .is_stopped = process->is_stopped,
        .abort_message = or_null(process->abort_message),
        .is_frozen = process->is_frozen,
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
    for (size_t i = 0; i < descriptor->items.count; i++) {
        const struct descriptor_item *item = &descriptor->items.items[i];
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

/* Describes a mapped file. `build_id` and `local` are buffers for the strings of *ret. */
static void describe_module(struct mapped_file *file, char *build_id, struct file_identity *local,
                            struct cdacq_module_info *ret)
{
    struct cdacq_module_info info = {.size = sizeof info,
                                     .path = file->path,
                                     .begin = file->begin,
                                     .end = file->end,
                                     .missing_size = file->missing_size};
    bool known = atomic_load(&file->resolved);
    const struct file_identity *identity = mapped_file_identity(file, identify_mapped_file);
    /* Which bytes of a file the caller's memory lacks is known only once the file has been needed. */
    bool needed = file->target->kind == CDACQ_TARGET_MEMORY && atomic_load(&file->resolved);
    if ((info.missing_size || needed) && mapped_file_resolve(file)) {
        info.local_path = file->local_path;
        info.verified = file->verified;
    }
    if (info.local_path && !identity->key[0]) {
        identify_local_file(file, local);
        identity = local;
    }
    text_hex(build_id, identity->build_id, identity->build_id_size);
    info.build_id = or_null(build_id);
    info.symbol_key = or_null(identity->key);
    info.problem = info.missing_size || needed ? mapped_file_problem(file) : NULL;
    if (!known && atomic_load(&file->resolved)) /* the file was only checked; a process maps hundreds of files */
        file_candidate_release_pages(&file->content);
    *ret = info;
}

enum cdacq_status cdacq_target_visit_modules(struct cdacq_target *target,
                                             int (*visit)(const struct cdacq_module_info *module, void *context),
                                             void *context, struct cdacq_error *err)
{
    enum cdacq_status status = target_list_mappings(target->target, err);
    if (status < 0)
        return status;
    for (struct mapped_file *file = target->target->files; file; file = file->next) {
        struct cdacq_module_info info;
        char build_id[2 * sizeof((struct file_identity *)0)->build_id + 1];
        if (!file->mapping_count) /* a running process has unmapped it */
            continue;
        if (file->path[0] != '/' || strncmp(file->path, "/memfd:", 7) == 0 || strncmp(file->path, "/dev/", 5) == 0)
            continue;
        struct file_identity local;
        describe_module(file, build_id, &local, &info);
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

/* The links of an item: each type has a list of its fields. A link is the number of an item plus 1; 0: none. */
struct field_link {
    uint32_t first, last; /* of a type */
    uint32_t next;        /* of a field: the next field of its type */
};

/* The lists of fields in the order of the descriptor, one element for each item. NULL when out of memory. */
static struct field_link *link_fields(const struct descriptor *descriptor)
{
    struct field_link *links = calloc(descriptor->items.count + 1, sizeof *links);
    for (size_t i = 0; links && i < descriptor->items.count; i++) {
        const struct descriptor_item *item = &descriptor->items.items[i];
        const struct descriptor_item *type =
            item->kind == CDACQ_ITEM_FIELD ? descriptor_find(descriptor, CDACQ_ITEM_TYPE, "", item->scope) : NULL;
        if (!type)
            continue;
        struct field_link *list = &links[type - descriptor->items.items];
        *(list->last ? &links[list->last - 1].next : &list->first) = (uint32_t)i + 1;
        list->last = (uint32_t)i + 1;
    }
    return links;
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

/* Visits the items of one kind, types each followed by its fields. */
static bool visit_items(const struct descriptor *descriptor, const struct field_link *links,
                        enum cdacq_descriptor_item_kind kind,
                        int (*visit)(const struct cdacq_descriptor_item *item, void *context), void *context)
{
    const struct descriptor_item *items = descriptor->items.items;
    for (size_t i = 0; i < descriptor->items.count; i++) {
        if (items[i].kind != kind)
            continue;
        if (visit_item(&items[i], visit, context))
            return false;
        for (uint32_t field = links[i].first; field; field = links[field - 1].next)
            if (visit_item(&items[field - 1], visit, context))
                return false;
    }
    return true;
}

enum cdacq_status cdacq_target_visit_descriptor(struct cdacq_target *target,
                                                int (*visit)(const struct cdacq_descriptor_item *item, void *context),
                                                void *context, struct cdacq_error *err)
{
    CLEANUP_FREE struct field_link *links = link_fields(&target->descriptor);
    if (!links)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the fields of the descriptor");
    static const enum cdacq_descriptor_item_kind kinds[] = {CDACQ_ITEM_TYPE, CDACQ_ITEM_GLOBAL, CDACQ_ITEM_CONTRACT};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (!visit_items(&target->descriptor, links, kinds[i], visit, context))
            return CDACQ_STOPPED;
    return CDACQ_OK;
}
