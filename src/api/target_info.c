/*
 * target_info.c: describes a target: the process, its runtimes, their contracts and descriptor, the mapped files.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "contracts/contracts.h"
#include "descriptors/descriptor.h"
#include "descriptors/runtime_version.h"
#include "formats/elf_machine.h"
#include "src/lookup/opened_session.h"
#include "src/files/file_match.h"
#include "src/lookup/opened_target.h"
#include "target/abort_message.h"
#include "target/command_line.h"
#include "target/mapped_path.h"
#include "target/proc_status.h"
#include "target/target_process.h"
#include "util/file.h"
#include "util/proc_file.h"
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
    pthread_mutex_lock(&target->policy->lock);
    bool known = target->has_version;
    pthread_mutex_unlock(&target->policy->lock);
    if (known)
        return &target->version;
    const struct runtime *runtime = runtime_of(target);
    runtime_version_find(runtime, &target->descriptor, &version);
    if (runtime->has_image && runtime->image.file && atomic_load(&runtime->image.file->resolved))
        file_candidate_release_pages(&runtime->image.file->content);
    pthread_mutex_lock(&target->policy->lock);
    if (!target->has_version)
        target->version = version;
    target->has_version = true;
    pthread_mutex_unlock(&target->policy->lock);
    return &target->version;
}

static const char *or_null(const char *string)
{
    return string[0] ? string : NULL;
}

const char *cdacq_target_truncation(const struct cdacq_target *target)
{
    return target->memory->truncation;
}

bool cdacq_target_bound_reached(const struct cdacq_target *target, char *ret_text, size_t size)
{
    if (size)
        ret_text[0] = '\0';
    return work_is_spent(&target->memory->work, ret_text, size);
}

enum cdacq_status cdacq_target_get_info(struct cdacq_target *target, struct cdacq_target_info *ret,
                                        struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_target_info", err);
    if (status < 0)
        return status;
    const struct runtime_version *version = version_of(target);
    const struct target *memory = target->memory;
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
        .missing_filter = memory->missing_filter,
        .native_aot = contracts_native_aot(&target->descriptor) ||
                      (target->problem.status == CDACQ_ERR_NO_RUNTIME && target->runtimes.native_path),
    };
    sized_copy(ret, &info, sizeof info);
    return CDACQ_OK;
}

/* The path of the program and the command line. No snapshot is to have what is read: the environment is beside them. */
static void read_top_of_stack(struct target *memory, struct target_process *process)
{
    struct recording *recording = memory->recording;
    struct reader reader;
    char *path;
    memory->recording = NULL;
    reader_init(&reader, memory, 8, false);
    reader_begin(&reader, FUEL_LOOKUP);
    if (reader_string(&reader, process->program_address, sizeof process->program - 1, &path)) {
        snprintf(process->program, sizeof process->program, "%s", path);
        free(path);
    }
    (void)command_line_read(memory, process->elf, process->program_address, process->arguments,
                            sizeof process->arguments, &process->arguments_cut);
    memory->recording = recording;
}

/* The process, read when it is first needed. NULL when out of memory. */
static const struct target_process *process_of(struct cdacq_target *target)
{
    struct target_process *process = atomic_load_explicit(&target->process, memory_order_acquire), *other = NULL;
    if (process || !(process = calloc(1, sizeof *process)))
        return process;
    if (target->memory->ops->process)
        target->memory->ops->process(target->memory, process);
    if (process->program_address)
        read_top_of_stack(target->memory, process);
    bool may_be_abort = !process->signal.signal || process->signal.signal == SIGABRT;
    if (target->memory->kind == CDACQ_TARGET_CORE && may_be_abort)
        (void)abort_message_read(target->memory, process->abort_message, sizeof process->abort_message);
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
        .pid = target->memory->pid,
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
        .time_s = process->time,
        .is_stopped = process->is_stopped,
        .abort_message = or_null(process->abort_message),
        .is_frozen = process->is_frozen,
    };
    sized_copy(ret, &info, sizeof info);
    return CDACQ_OK;
}

/* Of a running process. *ret_stopped: `visit` returned non-zero. */
static enum cdacq_status visit_own_environment(int pid, int (*visit)(const char *variable, void *context),
                                               void *context, bool *ret_stopped, struct cdacq_error *err)
{
    enum { SIZE = 8 * 1024 * 1024 }; /* Linux limits the strings to 6 MiB */
    CLEANUP_FREE char *text = malloc(SIZE);
    CLEANUP_CLOSE int fd = proc_file_open(pid, "environ");
    if (!text)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the environment");
    if (fd < 0)
        return proc_error(pid, err);
    size_t n = file_read_at(fd, 0, text, SIZE - 1);
    text[n] = '\0';
    for (size_t at = 0; at < n && !*ret_stopped; at += strlen(text + at) + 1)
        *ret_stopped = visit(text + at, context) != 0;
    return CDACQ_OK;
}

enum cdacq_status cdacq_target_visit_environment(struct cdacq_target *target,
                                                 int (*visit)(const char *variable, void *context), void *context,
                                                 struct cdacq_error *err)
{
    bool stopped = false;
    const struct target_process *process = process_of(target);
    if (!process)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (target->memory->kind == CDACQ_TARGET_PROCESS) {
        enum cdacq_status status = visit_own_environment(target->memory->pid, visit, context, &stopped, err);
        return status < 0 ? status : stopped ? CDACQ_STOPPED : CDACQ_OK;
    }
    struct recording *recording = target->memory->recording;
    target->memory->recording = NULL; /* no snapshot is to have it */
    bool is_read =
        process->program_address &&
        command_line_environment(target->memory, process->elf, process->program_address, visit, context, &stopped);
    target->memory->recording = recording;
    return stopped   ? CDACQ_STOPPED
           : is_read ? CDACQ_OK
                     : error_set(err, CDACQ_ERR_MEMORY, 0, "the target lacks the environment, or a part of it");
}

/* The version of a runtime that is not the selected one: its descriptor, which may publish it, has to be read. */
static void find_version_of_other(struct cdacq_target *target, struct runtime *runtime, struct runtime_version *ret)
{
    struct descriptor descriptor = {0};
    struct contract_descriptor_info info;
    struct cdacq_error ignored;
    enum cdacq_status status = runtime_read_descriptor(target->memory, runtime, &descriptor, &info, &ignored);
    runtime_version_find(runtime, status < 0 ? NULL : &descriptor, ret);
    descriptor_deinit(&descriptor);
}

unsigned cdacq_target_runtime_count(const struct cdacq_target *target)
{
    return target ? (unsigned)target->runtimes.count : 0;
}

enum cdacq_status cdacq_target_visit_runtimes(struct cdacq_target *target,
                                              int (*visit)(const struct cdacq_runtime_info *runtime, void *context),
                                              void *context, struct cdacq_error *err)
{
    (void)err;
    for (size_t i = 0; i < target->runtimes.count; i++) {
        struct runtime *runtime = &target->runtimes.items[i];
        struct runtime_version version;
        char build_id[2 * BUILD_ID_MAX + 1];
        text_hex(build_id, runtime->image.build_id, runtime->image.build_id_size);
        const struct target_group *group = target->group;
        if (i == target->runtime)
            runtime_version_find(runtime, &target->descriptor, &version);
        else if (group && group->items[i])
            runtime_version_find(runtime, &group->items[i]->descriptor, &version);
        else
            find_version_of_other(target, runtime, &version);
        struct cdacq_runtime_info info = {
            .size = sizeof info,
            .path = runtime->has_image ? runtime->image.path : NULL,
            .base = runtime->has_image ? runtime->image.base : 0,
            .build_id = or_null(build_id),
            .version = or_null(version.version[0] ? version.version : version.release),
            .descriptor_address = runtime->descriptor_address,
            .in_use = group ? group->items[i] != NULL : i == target->runtime,
            .problem = group                  ? or_null(group->problems[i].message)
                       : i == target->runtime ? or_null(target->problem.message)
                                              : NULL,
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
        contracts_known(item->name, descriptor->schema, item->text, known, sizeof known);
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

enum cdacq_status cdacq_local_file_open(const struct cdacq_local_file *file, int *ret_fd, struct cdacq_error *err)
{
    char path[160];
    struct stat st;
    if (!file || !ret_fd)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no file, or no place for its descriptor");
    int fd = file_candidate_reopen(file->content, file->path, &st);
    if (fd < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", error_printable(path, sizeof path, file->path),
                         errno == ESTALE ? "the file was replaced or changed since it was compared" : strerror(errno));
    *ret_fd = fd;
    return CDACQ_OK;
}

/* What `info` of a mapped file points to. */
struct module_room {
    char build_id[2 * sizeof((struct file_identity *)0)->build_id + 1];
    struct cdacq_local_file file;
};

/* Describes a mapped file. */
static void describe_module(struct mapped_file *file, struct module_room *room, struct cdacq_mapped_file *ret)
{
    struct cdacq_mapped_file info = {.size = sizeof info,
                                     .path = file->path,
                                     .begin = file->begin,
                                     .end = file->end,
                                     .missing_size = file->missing_size};
    bool known = atomic_load(&file->resolved);
    const struct file_identity *identity = mapped_file_identity(file, identify_mapped_file);
    /* Which bytes of a file the caller's memory lacks is known only once the file has been needed. */
    bool needed = file->target->kind == CDACQ_TARGET_MEMORY && atomic_load(&file->resolved);
    if ((info.missing_size || needed) && mapped_file_resolve(file)) {
        room->file = (struct cdacq_local_file){&file->content, file->local_path};
        info.local_path = file->local_path;
        info.local_file = &room->file;
        info.verified = file->verified;
    }
    if (info.local_path && !identity->key[0])
        identity = mapped_file_content_identity(file, identify_local_file);
    text_hex(room->build_id, identity->build_id, identity->build_id_size);
    info.build_id = or_null(room->build_id);
    info.symbol_key = or_null(identity->key);
    info.problem = info.missing_size || needed ? mapped_file_problem(file) : NULL;
    if (!known && atomic_load(&file->resolved)) /* the file was only checked; a process maps hundreds of files */
        file_candidate_release_pages(&file->content);
    *ret = info;
}

enum cdacq_status cdacq_target_visit_mapped_files(struct cdacq_target *target,
                                                  int (*visit)(const struct cdacq_mapped_file *module, void *context),
                                                  void *context, struct cdacq_error *err)
{
    enum cdacq_status status = target_list_mappings(target->memory, err);
    if (status < 0)
        return status;
    for (struct mapped_file *file = target->memory->files; file; file = file->next) {
        struct cdacq_mapped_file info;
        struct module_room room;
        if (!file->mapping_count) /* a running process has unmapped it */
            continue;
        if (file->path[0] != '/' || mapped_path_is_memory(file->path))
            continue;
        describe_module(file, &room, &info);
        if (mapped_path_is_below_dev(file->path) && !info.symbol_key && !info.local_path) /* a device */
            continue;
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
