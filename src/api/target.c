/*
 * target.c: opening and closing targets: the memory, the runtime in it, its descriptor, the contracts.
 */
#include <elf.h>
#include <stdio.h>

#include "contracts/code_lookup/platform_metadata.h"
#include "src/api/debuginfod.h"
#include "src/api/handles.h"
#include "src/api/file_match.h"
#include "target/image_file.h"
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

enum cdacq_status cdacq_target_refresh(struct cdacq_target *target, struct cdacq_error *err)
{
    if (!target)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no target");
    target->refresh++;
    return target_check_gone(target->target, 0, err);
}

enum cdacq_status cdacq_target_stop(struct cdacq_target *target, struct cdacq_error *err)
{
    if (!target || !target->target->ops->stop || !target->target->changes)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "only a process that runs can be stopped");
    if (target->visits) /* stopping lists the mappings again */
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a process cannot be stopped while its mapped files are visited");
    target->refresh++;
    return target->target->ops->stop(target->target, false, err);
}

void cdacq_target_resume(struct cdacq_target *target)
{
    if (target && target->target->ops->resume)
        target->target->ops->resume(target->target);
}

enum cdacq_status cdacq_target_get_stops(const struct cdacq_target *target, struct cdacq_stops *ret,
                                         struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_stops", err);
    if (status < 0)
        return status;
    if (!target)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no target");
    const struct target_stops *stops = &target->target->stops;
    struct cdacq_stops found = {
        .size = sizeof found, .count = stops->count, .total = stops->total, .longest = stops->longest};
    sized_copy(ret, &found, sizeof found);
    return CDACQ_OK;
}

void cdacq_target_close(struct cdacq_target *target)
{
    if (!target)
        return;
    code_map_free(atomic_load_explicit(&target->code_map, memory_order_acquire));
    module_pdbs_deinit(&target->module_pdbs);
    execution_manager_deinit(&target->manager);
    descriptor_deinit(&target->descriptor);
    runtimes_deinit(&target->runtimes);
    threads_deinit(&target->snapshot_threads);
    free(atomic_load_explicit(&target->process, memory_order_acquire));
    target_destroy(target->target);
    free(target->image_path);
    file_policy_deinit(&target->policy);
    free_strings(target->policy.sysroots);
    free_strings(target->policy.module_paths);
    pthread_mutex_destroy(&target->policy.lock);
    free(target);
}

/* Copies the caller's options. Fields that the caller's struct lacks are zero. */
enum {
    OPEN_FLAGS = CDACQ_OPEN_STOP | CDACQ_OPEN_RECORD | CDACQ_OPEN_DEBUGINFOD | CDACQ_OPEN_PARTIAL | CDACQ_OPEN_PREAD |
                 CDACQ_OPEN_KEEP,
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
    return error_check_flags(ret->flags, OPEN_FLAGS, err);
}

static struct cdacq_target *target_new(const struct cdacq_options *options, struct cdacq_error *err)
{
    struct cdacq_target *target = calloc(1, sizeof *target);
    if (!target || pthread_mutex_init(&target->policy.lock, NULL) != 0) {
        free(target);
        error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    target->policy.compare = compare_mapped_file;
    target->policy.identify = identify_mapped_file;
    target->policy.find = options->find_file;
    target->policy.find_context = options->find_file_context;
    target->policy.describe = options->describe_need;
    target->policy.describe_context = options->describe_need_context;
    target->policy.pread = options->flags & CDACQ_OPEN_PREAD;
    target->progress = options->progress;
    target->progress_context = options->progress_context;
    target->names = options->names;
    target->keep = options->flags & CDACQ_OPEN_KEEP;
    if (options->flags & CDACQ_OPEN_DEBUGINFOD) {
        target->listener = (struct debuginfod_listener){options->fetching, options->fetching_context};
        target->policy.fetch_context = &target->listener;
        target->policy.fetch = debuginfod_fetch;
        target->policy.fetch_debug_file = debuginfod_fetch_debug_file;
    }
    if (!copy_strings(options->sysroots, options->sysroot_count, &target->policy.sysroots) ||
        !copy_strings(options->module_paths, options->module_path_count, &target->policy.module_paths)) {
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
    file_policy_describe(&target->policy, &need, err->message, sizeof err->message);
    return err->status;
}

static enum cdacq_status no_runtime(const struct cdacq_target *target, struct cdacq_error *err)
{
    if (target->runtimes.problem_path) {
        *err = target->runtimes.problem;
        return err->status;
    }
    char name[32] = "the target", path[160];
    if (target->target->kind == CDACQ_TARGET_PROCESS)
        snprintf(name, sizeof name, "process %d", target->target->pid);
    if (target->runtimes.native_path)
        return error_set(err, CDACQ_ERR_NO_RUNTIME, 0,
                         "no .NET runtime in %s that cdacq reads: %s was compiled by NativeAOT, and publishes no "
                         "contract descriptor",
                         name, error_printable(path, sizeof path, target->runtimes.native_path));
    if (target->target->mapping_count)
        return error_set(err, CDACQ_ERR_NO_RUNTIME, 0,
                         "no .NET runtime in %s: none of its %zu file mappings is libcoreclr.so or exports a contract "
                         "descriptor",
                         name, target->target->mapping_count);
    error_set(err, CDACQ_ERR_NO_RUNTIME, 0, "no .NET runtime in %s: it names no mapped files%s", name,
              target->target->kind == CDACQ_TARGET_CORE ? ", for which a core has an NT_FILE note" : "");
    return target->target->truncated ? err->status : describe_need(target, CDACQ_NEED_DESCRIPTOR_ADDRESS, err);
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
    runtime_version_find(runtime, &version);
    return version.of_image[0] ? supplement_find(&runtime->image, version.of_image, &runtime->supplement, err)
                               : CDACQ_OK;
}

/* Selects the runtime and finds its descriptor. */
static enum cdacq_status choose_runtime(struct cdacq_target *target, const struct cdacq_options *options,
                                        struct cdacq_error *err)
{
    struct runtimes *runtimes = &target->runtimes;
    bool all = options->runtime || options->flags & CDACQ_OPEN_PARTIAL;
    enum cdacq_status status = runtimes_find(target->target, all, runtimes, err);
    if (status < 0)
        return status;
    if (options->descriptor_address && !runtimes->count)
        runtimes->items[runtimes->count++] = (struct runtime){0};
    status = select_runtime(target, options->runtime, err);
    if (status < 0)
        return status;
    struct runtime *runtime = &runtimes->items[target->runtime];
    if (options->descriptor_address)
        runtime->descriptor_address = options->descriptor_address;
    /* The executable of an emulator is for another machine than the runtime. */
    if (runtime->has_image && target->target->kind != CDACQ_TARGET_CORE)
        target->target->elf_machine = runtime->image.machine;
    text_hex(target->build_id, runtime->image.build_id, runtime->image.build_id_size);
    target->module_pdbs.runtime_path = runtime->image.path;
    status = find_supplement(runtime, err);
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

/* Reads the descriptor, selects the contracts and binds their fields. */
static enum cdacq_status read_contracts(struct cdacq_target *target, const struct cdacq_options *options,
                                        struct cdacq_error *err)
{
    const struct runtime *runtime = &target->runtimes.items[target->runtime];
    enum cdacq_status status =
        runtime_read_descriptor(target->target, runtime, &target->descriptor, &target->descriptor_info, err);
    for (size_t i = 0; i < options->descriptor_count && status >= 0; i++)
        status = runtime_override_descriptor(options->descriptors[i], &target->descriptor, err);
    if (status < 0)
        descriptor_deinit(&target->descriptor); /* an incomplete one is not used */
    else if ((status = contracts_select(&target->descriptor, &target->contracts, err)) < 0 &&
             contracts_need_descriptor(&target->descriptor))
        describe_need(target, CDACQ_NEED_DESCRIPTOR, err);
    /* NativeAOT has no Modules, and no images with code. */
    uint32_t needed = 1u << LAYOUT_ExecutionManager;
    if (descriptor_find(&target->descriptor, CDACQ_ITEM_TYPE, "", "Module"))
        needed |= 1u << LAYOUT_ReadyToRun;
    if (status >= 0)
        status = layout_bind(&target->descriptor, target->descriptor_info.pointer_size, needed, &target->layout, err);
    if (status < 0)
        return status;
    target->layout.architecture = architecture_find(&target->descriptor, target->target->elf_machine);
    /* .NET 8 and 9 set this global when they start. */
    if (!target->layout.globals[G_ExecutionManagerCodeRangeMapAddress])
        return error_set(
            err, CDACQ_ERR_NO_RUNTIME, 0,
            "the runtime has not started yet: it has no map of code ranges (the process ended early, or is "
            "still loading)");
    uint32_t types = 1u << LAYOUT_RuntimeTypeSystem | 1u << LAYOUT_Loader | 1u << LAYOUT_EcmaMetadata;
    target->layout.usable &= target->contracts.usable;
    target->runtime_types = (target->layout.usable & types) == types;
    execution_manager_init(&target->manager, target->contracts.execution_manager, &target->layout);
    struct field_reader reader;
    field_reader_init(&reader, target->target, &target->layout, target->descriptor_info.pointer_size,
                      target->descriptor_info.big_endian);
    target->manager.sections.changes = target->target->kind == CDACQ_TARGET_PROCESS;
    target->layout.code_pointer_flags = platform_metadata_code_pointer_flags(&reader);
    target->manager.precode_stubs = target->contracts.precode_stubs;
    execution_manager_read_globals(&target->manager, &reader);
    if (runtime->has_image)
        target->manager.image = (struct image_bounds){runtime->image.begin, runtime->image.end};
    return CDACQ_OK;
}

/* Whether a failure is the fault of the target, not of the caller or this machine. */
static bool is_of_the_target(enum cdacq_status status)
{
    return status < 0 && status != CDACQ_ERR_ARGUMENT && status != CDACQ_ERR_NOMEM && status != CDACQ_ERR_IO;
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
    if (work_is_spent(&target->target->work, bound, sizeof bound))
        error_set(&target->problem, CDACQ_ERR_FUEL, 0, "%s", bound);
    (void)target_check_gone(target->target, 0, &target->problem);
    return target->problem.status;
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
    work_set(&target->target->work, options->work_max, options->memory_max, target->target->file_size);
    work_add_steps(&target->target->work, target->target->open_units);
    status = choose_runtime(target, options, &target->problem);
    if (status >= 0)
        status = read_contracts(target, options, &target->problem);
    if (status < 0)
        status = find_cause(target);
    if (status < 0)
        add_truncation(target->target, &target->problem);
    if (status < 0 && !(options->flags & CDACQ_OPEN_PARTIAL && is_of_the_target(status))) {
        if (err)
            *err = target->problem;
        cdacq_target_close(target);
        return status;
    }
    bool stop = options->flags & CDACQ_OPEN_STOP && target->target->ops->stop && target->target->changes;
    struct cdacq_error error;
    if (stop && target->target->ops->stop(target->target, true, &error) < 0) {
        if (err)
            *err = error;
        cdacq_target_close(target);
        return error.status;
    }
    if (status >= 0)
        target->problem = (struct cdacq_error){0};
    else if (target->target->kind == CDACQ_TARGET_IMAGE && status == CDACQ_ERR_FIELD)
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
        status = core_open_source(&source, &opening.target->policy, opening.record, &opening.target->target, err);
    }
    status = finish_open(&opening, status, ret, err);
    if (status >= 0)
        core_release_pages((*ret)->target);
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
        status = pid <= 0 ? error_set(err, CDACQ_ERR_ARGUMENT, 0, "%d is no process id", pid)
                          : live_open(pid, &opening.target->policy,
                                      opening.record && opening.options.flags & CDACQ_OPEN_STOP, opening.record,
                                      &opening.target->target, err);
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
        status = image_file_open(path, &opening.target->policy, opening.record, &opening.target->image_path,
                                 &opening.target->target, err);
    return finish_open(&opening, status, ret, err);
}

enum cdacq_status cdacq_target_open_memory(const struct cdacq_memory *memory, const struct cdacq_options *options,
                                           struct cdacq_target **ret, struct cdacq_error *err)
{
    struct opening opening;
    enum cdacq_status status = begin_open(&opening, options, err);
    if (status >= 0) {
        opening.target->policy.no_own_paths = true;
        status = memory_open(memory, &opening.target->policy, opening.record, &opening.target->target, err);
    }
    return finish_open(&opening, status, ret, err);
}
