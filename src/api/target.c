/*
 * target.c: opening and closing targets: the memory, the runtime in it, its descriptor, the contracts.
 */
#include <elf.h>
#include <stdio.h>

#include "contracts/code_lookup/platform_metadata.h"
#include "contracts/execution_manager/code_map.h"
#include "contracts/execution_manager/execution_manager.h"
#include "descriptors/descriptor.h"
#include "src/files/debuginfod.h"
#include "src/files/symbol_key.h"
#include "src/files/symbol_server.h"
#include "src/lookup/opened_session.h"
#include "src/files/file_match.h"
#include "src/lookup/opened_target.h"
#include "target/core_file.h"
#include "target/image_file.h"
#include "target/target_process.h"
#include "util/helper.h"
#include "util/sized.h"
#include "util/text.h"
#include "target/core.h"
#include "target/live.h"
#include "target/memory.h"

static void free_strings(char **strings)
{
    for (char **string = strings; string && *string; string++)
        free(*string);
    free(strings);
}

/* A NULL-terminated copy; *ret is NULL for an empty array. False when out of memory. */
static bool copy_strings(const char *const *strings, size_t count, char ***ret)
{
    if (!count)
        return true;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = strdup(strings[i]))) {
            free_strings(copy);
            copy = NULL;
        }
    *ret = copy;
    return copy != NULL;
}

/* What is asked of a running process from now on is about what it is now, and the bound on work is that of this. */
static void begin_anew(struct cdacq_target *target)
{
    target_owner(target)->refresh++;
    if (target->memory->kind == CDACQ_TARGET_PROCESS)
        work_begin_anew(&target->memory->work);
}

enum cdacq_status cdacq_target_refresh(struct cdacq_target *target, struct cdacq_error *err)
{
    if (!target)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no target");
    begin_anew(target);
    return target_check_gone(target->memory, 0, err);
}

enum cdacq_status cdacq_target_stop(struct cdacq_target *target, struct cdacq_error *err)
{
    if (!target || !target->memory->ops->stop || !target->memory->changes)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "only a process that runs can be stopped");
    if (target_owner(target)->mapping_pins) /* stopping lists the mappings again */
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a process cannot be stopped while its mapped files are visited");
    begin_anew(target);
    return target->memory->ops->stop(target->memory, false, err);
}

void cdacq_target_resume(struct cdacq_target *target)
{
    if (target && target->memory->ops->resume)
        target->memory->ops->resume(target->memory);
}

enum cdacq_status cdacq_target_get_stops(const struct cdacq_target *target, struct cdacq_stops *ret,
                                         struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_stops", err);
    if (status < 0)
        return status;
    if (!target)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no target");
    const struct target_stops *stops = &target->memory->stops;
    struct cdacq_stops found = {
        .size = sizeof found, .count = stops->count, .total_ns = stops->total, .longest_ns = stops->longest};
    sized_copy(ret, &found, sizeof found);
    return CDACQ_OK;
}

/* Frees what a target has for its runtime alone. */
static void close_runtime(struct cdacq_target *target)
{
    code_map_free(atomic_load_explicit(&target->code_map, memory_order_acquire));
    module_pdbs_deinit(&target->module_pdbs);
    execution_manager_deinit(&target->manager);
    descriptor_deinit(&target->descriptor);
    threads_deinit(&target->snapshot_threads);
    free(atomic_load_explicit(&target->process, memory_order_acquire));
}

static void close_others(struct cdacq_target *target)
{
    for (size_t i = 0; target->group && i < RUNTIME_MAX; i++) {
        struct cdacq_target *other = target->group->items[i];
        if (!other || other == target)
            continue;
        close_runtime(other);
        free(other);
    }
    free(target->group);
}

void cdacq_target_close(struct cdacq_target *target)
{
    if (!target || target_owner(target) != target)
        return;
    close_others(target);
    close_runtime(target);
    runtimes_deinit(&target->runtimes);
    target_destroy(target->memory);
    free(target->image_path);
    file_policy_deinit(&target->own_policy);
    free_strings(target->own_policy.sysroots);
    free_strings(target->own_policy.module_paths);
    free_strings(target->symbol_server.urls);
    symbol_server_deinit(&target->symbol_server);
    pthread_mutex_destroy(&target->own_policy.lock);
    free(target);
}

/* Copies the caller's options. Fields that the caller's struct lacks are zero. */
enum {
    OPEN_FLAGS = CDACQ_OPEN_STOP | CDACQ_OPEN_RECORD | CDACQ_OPEN_DEBUGINFOD | CDACQ_OPEN_PARTIAL | CDACQ_OPEN_PREAD |
                 CDACQ_OPEN_KEEP | CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_NATIVE,
};

static enum cdacq_status take_options(const struct cdacq_options *options, struct cdacq_options *ret,
                                      struct cdacq_error *err)
{
    *ret = (struct cdacq_options){.size = sizeof *ret};
    enum cdacq_status status = options ? sized_check(options, "struct cdacq_options", err) : CDACQ_OK;
    if (!options || status < 0)
        return status;
    sized_copy(ret, options, options->size);
    if ((unsigned)ret->names > CDACQ_NAMES_SOURCE)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "struct cdacq_options: no such style of names: %u",
                         (unsigned)ret->names);
    for (size_t i = 0; i < ret->symbol_server_count; i++)
        if (!symbol_key_is_url(ret->symbol_servers[i])) {
            char url[160];
            return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                             "symbol server '%s': expected a URL without query, user and password, such as "
                             "https://example.com/symbols",
                             error_printable(url, sizeof url, ret->symbol_servers[i]));
        }
    return error_check_flags(ret->flags, OPEN_FLAGS, err);
}

/* False when out of memory. */
static bool set_symbol_servers(struct cdacq_target *target, const struct cdacq_options *options)
{
    struct symbol_server *server = &target->symbol_server;
    if (!options->symbol_server_count)
        return true;
    server->file_max = options->store_max ? MIN(options->store_max, SERVER_FILE_MAX) : SERVER_FILE_MAX;
    server->fetching = options->fetching;
    server->failed = options->fetch_failed;
    server->context = options->fetching_context;
    target->own_policy.server = (struct file_server){symbol_server_fetch, symbol_server_refuse, server};
    return copy_strings(options->symbol_servers, options->symbol_server_count, &server->urls) &&
           symbol_server_set_cache(server, options->symbol_cache);
}

static struct cdacq_target *target_new(const struct cdacq_options *options, struct cdacq_error *err)
{
    struct cdacq_target *target = calloc(1, sizeof *target);
    helper_renew(); /* for its files */
    if (!target || pthread_mutex_init(&target->own_policy.lock, NULL) != 0) {
        free(target);
        error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    target->policy = &target->own_policy;
    target->own_policy.compare = compare_mapped_file;
    target->own_policy.identify = identify_mapped_file;
    target->own_policy.find = options->find_file;
    target->own_policy.find_context = options->find_file_context;
    target->own_policy.describe = options->describe_need;
    target->own_policy.describe_context = options->describe_need_context;
    target->own_policy.pread = options->flags & CDACQ_OPEN_PREAD;
    target->progress = options->progress;
    target->progress_context = options->progress_context;
    target->names = options->names;
    target->keep = options->flags & CDACQ_OPEN_KEEP;
    if (options->flags & CDACQ_OPEN_DEBUGINFOD) {
        target->listener = (struct debuginfod_listener){options->fetching, options->fetching_context};
        target->own_policy.fetch_context = &target->listener;
        target->own_policy.fetch = debuginfod_fetch;
        target->own_policy.fetch_debug_file = debuginfod_fetch_debug_file;
    }
    if (!copy_strings(options->sysroots, options->sysroot_count, &target->own_policy.sysroots) ||
        !copy_strings(options->module_paths, options->module_path_count, &target->own_policy.module_paths) ||
        !set_symbol_servers(target, options)) {
        error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
        cdacq_target_close(target);
        return NULL;
    }
    return target;
}

/* Appends the host's description of what opening needs to the message in *err. Returns err->status. */
static enum cdacq_status describe_need(const struct cdacq_target *target, enum cdacq_need_kind kind,
                                       struct cdacq_error *err)
{
    const struct cdacq_need need = {.size = sizeof need, .kind = kind};
    file_policy_describe(target->policy, &need, err->message, sizeof err->message);
    return err->status;
}

static enum cdacq_status no_runtime(const struct cdacq_target *target, struct cdacq_error *err)
{
    if (target->runtimes.problem_path) {
        *err = target->runtimes.problem;
        return err->status;
    }
    char name[32] = "the target", path[160];
    if (target->memory->kind == CDACQ_TARGET_PROCESS)
        snprintf(name, sizeof name, "process %d", target->memory->pid);
    if (target->runtimes.native_path)
        return error_set(err, CDACQ_ERR_NO_RUNTIME, 0,
                         "no .NET runtime in %s that cdacq reads: %s was compiled by NativeAOT, and publishes no "
                         "contract descriptor",
                         name, error_printable(path, sizeof path, target->runtimes.native_path));
    if (target->memory->mapping_count)
        return error_set(err, CDACQ_ERR_NO_RUNTIME, 0,
                         "no .NET runtime in %s: none of its %zu file mappings is libcoreclr.so or exports a contract "
                         "descriptor",
                         name, target->memory->mapping_count);
    error_set(err, CDACQ_ERR_NO_RUNTIME, 0, "no .NET runtime in %s: it names no mapped files%s", name,
              target->memory->kind == CDACQ_TARGET_CORE ? ", for which a core has an NT_FILE note" : "");
    return target->memory->truncated ? err->status : describe_need(target, CDACQ_NEED_DESCRIPTOR_ADDRESS, err);
}

static enum cdacq_status select_runtime(struct cdacq_target *target, unsigned number, struct cdacq_error *err)
{
    size_t count = target->runtimes.count;
    if (!count)
        return no_runtime(target, err);
    if (number >= count && count == 1)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "runtime %u: the target has one, number 0", number);
    if (number >= count)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "runtime %u: the target has %zu, numbers 0 to %zu", number, count,
                         count - 1);
    target->runtime = number;
    return CDACQ_OK;
}

/* Finds the supplement of the runtime, or that of other servicing versions of its release. */
static enum cdacq_status find_supplement(struct runtime *runtime, struct cdacq_error *err)
{
    struct runtime_version version;
    char by_path[sizeof version.release];
    if (!runtime->has_image)
        return CDACQ_OK;
    enum cdacq_status status = supplement_find(&runtime->image, NULL, &runtime->supplement, err);
    if (status < 0 || runtime->supplement.root || !runtime->descriptor_address)
        return status;
    runtime_version_of_path(runtime->image.path, by_path);
    if (by_path[0]) { /* of a release that needs none, the image is not searched for its version: it has 6 MB */
        status = supplement_find(&runtime->image, by_path, &runtime->supplement, err);
        if (status < 0 || !runtime->supplement.root)
            return status;
        supplement_deinit(&runtime->supplement);
    }
    runtime_version_find(runtime, NULL, &version);
    return version.of_image[0] ? supplement_find(&runtime->image, version.of_image, &runtime->supplement, err)
                               : CDACQ_OK;
}

/* Finds the descriptor of the runtime in use. `descriptor_address`: where it is; 0: not known. */
static enum cdacq_status use_runtime(struct cdacq_target *target, uint64_t descriptor_address, struct cdacq_error *err)
{
    struct runtime *runtime = &target->runtimes.items[target->runtime];
    if (descriptor_address)
        runtime->descriptor_address = descriptor_address;
    /* The executable of an emulator is for another machine than the runtime. */
    if (runtime->has_image && target->memory->kind != CDACQ_TARGET_CORE)
        target->memory->elf_machine = runtime->image.machine;
    text_hex(target->build_id, runtime->image.build_id, runtime->image.build_id_size);
    target->module_pdbs.runtime_path = runtime->image.path;
    enum cdacq_status status = find_supplement(runtime, err);
    if (status < 0 || runtime->descriptor_address || runtime->supplement.root)
        return status;
    char path[120];
    error_printable(path, sizeof path, runtime->image.path);
    const char *problem = runtime->image.file ? mapped_file_problem(runtime->image.file) : NULL;
    if (problem)
        return error_set(err, CDACQ_ERR_NO_DESCRIPTOR, runtime->image.base, "no contract descriptor found: %s",
                         problem);
    return error_set(
        err, CDACQ_ERR_NO_DESCRIPTOR, runtime->image.base,
        "%s (build-id %s) exports no contract descriptor and is no runtime that this build knows (.NET 8.0, "
        "9.0 and 10.0 for x86-64)",
        path, target->build_id[0] ? target->build_id : "unknown");
}

/* Selects the runtime and finds its descriptor. */
static enum cdacq_status choose_runtime(struct cdacq_target *target, const struct cdacq_options *options,
                                        struct cdacq_error *err)
{
    struct runtimes *runtimes = &target->runtimes;
    bool all = options->runtime || options->flags & CDACQ_OPEN_PARTIAL;
    enum cdacq_status status = runtimes_find(target->memory, all, runtimes, err);
    if (status < 0)
        return status;
    if (options->descriptor_address && !runtimes->count)
        runtimes->items[runtimes->count++] = (struct runtime){0};
    status = select_runtime(target, options->runtime, err);
    return status < 0 ? status : use_runtime(target, options->descriptor_address, err);
}

/* Reads the descriptor, selects the contracts and binds their fields. */
static enum cdacq_status read_contracts(struct cdacq_target *target, const struct cdacq_options *options,
                                        struct cdacq_error *err)
{
    struct runtime *runtime = &target->runtimes.items[target->runtime];
    enum cdacq_status status =
        runtime_read_descriptor(target->memory, runtime, &target->descriptor, &target->descriptor_info, err);
    for (size_t i = 0; i < options->descriptor_count && status >= 0; i++)
        status = runtime_override_descriptor(options->descriptors[i], &target->descriptor, err);
    if (status < 0)
        descriptor_deinit(&target->descriptor); /* an incomplete one is not used */
    else if ((status = contracts_select(&target->descriptor, &target->contracts, err)) < 0 &&
             contracts_need_descriptor(&target->descriptor))
        describe_need(target, CDACQ_NEED_DESCRIPTOR, err);
    uint32_t needed = 1u << LAYOUT_ExecutionManager;
    if (status >= 0)
        needed |= target->contracts.execution_manager->parts;
    if (descriptor_find(&target->descriptor, CDACQ_ITEM_TYPE, "", "Module"))
        needed |= 1u << LAYOUT_ReadyToRun;
    if (status >= 0)
        status = layout_bind(&target->descriptor, target->descriptor_info.pointer_size, needed, &target->layout, err);
    if (status < 0)
        return status;
    target->layout.descriptor = &target->descriptor;
    target->layout.architecture = architecture_find(&target->descriptor, target->memory->elf_machine);
    /* .NET 8 and 9 set this global when they start. */
    if (needed & 1u << LAYOUT_RangeSections && !target->layout.globals[G_ExecutionManagerCodeRangeMapAddress])
        return error_set(
            err, CDACQ_ERR_NO_RUNTIME, 0,
            "the runtime has not started yet: it has no map of code ranges (the process ended early, or is "
            "still loading)");
    uint32_t types = 1u << LAYOUT_RuntimeTypeSystem | 1u << LAYOUT_Loader | 1u << LAYOUT_EcmaMetadata;
    target->layout.usable &= target->contracts.usable;
    target->runtime_types = (target->layout.usable & types) == types;
    execution_manager_init(&target->manager, target->contracts.execution_manager, &target->layout);
    struct reader reader;
    reader_init_fields(&reader, target->memory, &target->layout, target->descriptor_info.pointer_size,
                       target->descriptor_info.big_endian);
    target->manager.sections.changes = target->memory->kind == CDACQ_TARGET_PROCESS;
    target->layout.code_pointer_flags = platform_metadata_code_pointer_flags(&reader);
    target->manager.precode_stubs = target->contracts.precode_stubs;
    execution_manager_read_globals(&target->manager, &reader);
    if (runtime->has_image) {
        target->manager.image = (struct image_bounds){runtime->image.begin, runtime->image.end};
        target->manager.managers.aot.image = &runtime->image;
    }
    return CDACQ_OK;
}

/* Whether a failure is the fault of the target, not of the caller or this machine. */
static bool is_of_the_target(enum cdacq_status status)
{
    return status < 0 && status != CDACQ_ERR_ARGUMENT && status != CDACQ_ERR_NOMEM && status != CDACQ_ERR_IO;
}

/* Opens another runtime of the same process. NULL, with *err set, if it cannot be read. */
static struct cdacq_target *open_other(struct cdacq_target *target, unsigned number, struct cdacq_error *err)
{
    static const struct cdacq_options none = {.size = sizeof none};
    struct cdacq_target *other = calloc(1, sizeof *other);
    if (!other) {
        error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    other->group = target->group;
    other->keep = target->keep;
    other->policy = target->policy;
    other->progress = target->progress;
    other->progress_context = target->progress_context;
    other->names = target->names;
    other->memory = target->memory;
    other->runtimes = target->runtimes;
    other->runtime = number;
    enum cdacq_status status = use_runtime(other, 0, err);
    if (status >= 0)
        status = read_contracts(other, &none, err);
    if (status >= 0)
        return other;
    close_runtime(other);
    free(other);
    return NULL;
}

/* Opens the other runtimes, if there are any. False: none of them can be read. */
static bool open_others(struct cdacq_target *target)
{
    bool any = false;
    if (target->runtimes.count < 2 || !(target->group = calloc(1, sizeof *target->group)))
        return false;
    target->group->owner = target;
    for (unsigned i = 0; i < target->runtimes.count; i++) {
        if (i == target->runtime)
            continue;
        target->group->items[i] = open_other(target, i, &target->group->problems[i]);
        any |= target->group->items[i] != NULL;
    }
    if (target->problem.status >= 0)
        target->group->items[target->runtime] = target;
    else
        target->group->problems[target->runtime] = target->problem;
    return any;
}

/* A target that is being opened. */
struct opening {
    struct cdacq_options options;
    struct cdacq_target *target;
    bool record;
};

/* Checks the options and creates a target without memory. */
static enum cdacq_status begin_open(struct opening *opening, const struct cdacq_options *options,
                                    struct cdacq_error *err)
{
    *opening = (struct opening){0};
    enum cdacq_status status = take_options(options, &opening->options, err);
    if (status < 0)
        return status;
    opening->record = opening->options.flags & CDACQ_OPEN_RECORD;
    opening->target = target_new(&opening->options, err);
    return opening->target ? CDACQ_OK : CDACQ_ERR_NOMEM;
}

/* Puts the fact that the core is cut off first in the message: that may be why opening it failed. */
static void add_truncation(const struct target *target, struct cdacq_error *err)
{
    char message[sizeof err->message];
    memcpy(message, err->message, sizeof message);
    if (target->truncated)
        error_set(err, err->status, err->address, "the core is cut off (%s): %s",
                  target->truncation ? target->truncation : "the file ends before its last segment does", message);
}

/*
 * What is not found once the bound on work is reached, or in a process that has ended, says nothing: that is then the
 * problem. Returns its status.
 */
static enum cdacq_status find_cause(struct cdacq_target *target)
{
    char bound[160];
    if (work_is_spent(&target->memory->work, bound, sizeof bound))
        error_set(&target->problem, CDACQ_ERR_FUEL, 0, "%s", bound);
    (void)target_check_gone(target->memory, 0, &target->problem);
    return target->problem.status;
}

/* Of a process whose runtime cannot be read, native code is all that there is. False if the machine is not known. */
static bool use_native_code(struct cdacq_target *target)
{
    struct target_process process = {0};
    descriptor_deinit(&target->descriptor);
    enum architecture architecture = architecture_find(&target->descriptor, target->memory->elf_machine);
    if (!target->runtimes.count || architecture == ARCHITECTURE_UNKNOWN || target->memory->kind == CDACQ_TARGET_IMAGE)
        return false;
    if (target->memory->ops->process)
        target->memory->ops->process(target->memory, &process);
    bool is_wide = target->memory->kind == CDACQ_TARGET_PROCESS ? sizeof(void *) == 8 : process.elf.wide;
    target->contracts = (struct contracts){0};
    target->descriptor_info =
        (struct contract_descriptor_info){.pointer_size = is_wide ? 8 : 4, .big_endian = process.elf.big};
    target->layout = (struct layout){.descriptor = &target->descriptor, .architecture = architecture};
    target->runtime_types = false;
    execution_manager_init(&target->manager, &execution_manager_none, &target->layout);
    target->is_native = true;
    return true;
}

/* Finds the runtime in the memory of the target. Closes the target on failure. */
static enum cdacq_status finish_open(struct opening *opening, enum cdacq_status status, struct cdacq_target **ret,
                                     struct cdacq_error *err)
{
    struct cdacq_target *target = opening->target;
    const struct cdacq_options *options = &opening->options;
    if (status < 0) {
        cdacq_target_close(target);
        return status;
    }
    work_set(&target->memory->work, options->work_max, options->memory_max, target->memory->own_size);
    work_add_steps(&target->memory->work, target->memory->open_units);
    status = choose_runtime(target, options, &target->problem);
    if (status >= 0)
        status = read_contracts(target, options, &target->problem);
    if (status < 0)
        status = find_cause(target);
    else
        target->problem = (struct cdacq_error){0};
    if (status < 0)
        add_truncation(target->memory, &target->problem);
    bool may_go_on = is_of_the_target(status) && options->flags & CDACQ_OPEN_PARTIAL;
    if (options->flags & CDACQ_OPEN_ALL_RUNTIMES && (status >= 0 || is_of_the_target(status)))
        may_go_on |= open_others(target);
    if (!may_go_on && is_of_the_target(status) && options->flags & CDACQ_OPEN_NATIVE)
        may_go_on = use_native_code(target);
    if (status < 0 && !may_go_on) {
        if (err)
            *err = target->problem;
        cdacq_target_close(target);
        return status;
    }
    bool stop = options->flags & CDACQ_OPEN_STOP && target->memory->ops->stop && target->memory->changes;
    struct cdacq_error error;
    if (stop && options->before_stop) {
        options->before_stop(target, options->before_stop_context);
        cdacq_target_resume(target);
        begin_anew(target);
    }
    if (stop && target->memory->ops->stop(target->memory, true, &error) < 0) {
        if (err)
            *err = error;
        cdacq_target_close(target);
        return error.status;
    }
    if (target->memory->kind == CDACQ_TARGET_IMAGE && status == CDACQ_ERR_FIELD)
        error_set(&target->problem, CDACQ_ERR_FIELD, 0, "a file lacks what this runtime writes to memory as it starts");
    *ret = target;
    return CDACQ_OK;
}

static enum cdacq_status open_core(int fd, const char *path, const struct cdacq_options *options,
                                   struct cdacq_target **ret, struct cdacq_error *err)
{
    struct opening opening;
    enum cdacq_status status = error_check_path(path, err);
    if (status < 0)
        return status;
    status = begin_open(&opening, options, err);
    if (status >= 0) {
        const struct cdacq_options *given = &opening.options;
        const struct core_source source = {
            .path = path,
            .fd = fd,
            .store = {given->store_max, given->progress, given->progress_context},
        };
        status = core_open_source(&source, opening.target->policy, opening.record, &opening.target->memory, err);
    }
    status = finish_open(&opening, status, ret, err);
    if (status >= 0)
        core_release_pages((*ret)->memory);
    return status;
}

enum cdacq_status cdacq_target_open_core(const char *path, const struct cdacq_options *options,
                                         struct cdacq_target **ret, struct cdacq_error *err)
{
    return open_core(-1, path, options, ret, err);
}

enum cdacq_status cdacq_target_open_core_fd(int fd, const char *name, const struct cdacq_options *options,
                                            struct cdacq_target **ret, struct cdacq_error *err)
{
    if (fd < 0)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "%d is not a file descriptor", fd);
    return open_core(fd, name, options, ret, err);
}

enum cdacq_status cdacq_target_open_pid(int pid, const struct cdacq_options *options, struct cdacq_target **ret,
                                        struct cdacq_error *err)
{
    struct opening opening;
    enum cdacq_status status = begin_open(&opening, options, err);
    if (status >= 0)
        status = pid <= 0
                     ? error_set(err, CDACQ_ERR_ARGUMENT, 0, "%d is no process id", pid)
                     : live_open(pid, opening.target->policy, opening.record && opening.options.flags & CDACQ_OPEN_STOP,
                                 opening.record, &opening.target->memory, err);
    return finish_open(&opening, status, ret, err);
}

enum cdacq_status cdacq_target_open_image(const char *path, const struct cdacq_options *options,
                                          struct cdacq_target **ret, struct cdacq_error *err)
{
    struct opening opening;
    enum cdacq_status status = error_check_path(path, err);
    if (status < 0)
        return status;
    status = begin_open(&opening, options, err);
    if (status >= 0)
        status = image_file_open(path, opening.target->policy, opening.record, &opening.target->image_path,
                                 &opening.target->memory, err);
    return finish_open(&opening, status, ret, err);
}

enum cdacq_status cdacq_target_open_memory(const struct cdacq_memory *memory, const struct cdacq_options *options,
                                           struct cdacq_target **ret, struct cdacq_error *err)
{
    struct opening opening;
    enum cdacq_status status = begin_open(&opening, options, err);
    if (status >= 0) {
        opening.target->policy->no_own_paths = true;
        status = memory_open(memory, opening.target->policy, opening.record, &opening.target->memory, err);
    }
    return finish_open(&opening, status, ret, err);
}
