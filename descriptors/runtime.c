#include "descriptors/runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cdacq/target.h"
#include "descriptors/contract_descriptor.h"
#include "descriptors/descriptor.h"
#include "descriptors/json.h"
#include "target/target.h"
#include "util/file.h"
#include "descriptors/embedded.h"
#include "target/mapped_path.h"

enum { PROBE_MAX = 8192 }; /* images: opening one reads its headers and symbols */

static const char symbol_name[] = "DotNetRuntimeContractDescriptor";
static const char native_symbol_name[] = "DotNetRuntimeDebugHeader"; /* only NativeAOT's */

/* Also of a file that was deleted or replaced while the process runs. */
static bool is_named_coreclr(const char *path)
{
    return mapped_path_is_still(path_basename(path), "libcoreclr.so");
}

/*
 * Whether the image's segments are mapped where a loader puts them. A program that reads the file of a runtime maps it,
 * too, as one piece: cdacq itself does. A file without segments is loaded by nobody.
 */
static bool is_loaded(struct target *target, const struct image *image)
{
    bool any = false;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *segment = &image->segments[i];
        uint64_t page = align_down(image->base + segment->vaddr, PAGE_SIZE);
        const struct mapping *mapping = segment->file_size ? target_mapping_at(target, page) : NULL;
        if (mapping && (mapping->file != image->file ||
                        mapping->offset + (page - mapping->begin) != align_down(segment->file_offset, PAGE_SIZE)))
            return false;
        any |= mapping != NULL;
    }
    return any;
}

/* Opens the image that begins at a mapping. Adds it if it publishes a descriptor or is `named` libcoreclr.so. */
static void try_image(struct target *target, const struct mapping *mapping, bool named, struct runtimes *runtimes)
{
    struct runtime runtime = {.has_image = true};
    struct cdacq_error problem;
    uint64_t address, size;
    if (runtimes->count == RUNTIME_MAX)
        return;
    if (image_open(target, mapping, &runtime.image, &problem) < 0) {
        if (named) {
            runtimes->problem_path = mapping->path;
            runtimes->problem = problem;
        }
        return;
    }
    runtime.is_loaded = is_loaded(target, &runtime.image);
    if (target->kind == CDACQ_TARGET_PROCESS && !runtime.is_loaded)
        return;
    bool found = image_find_symbol(&runtime.image, symbol_name, &runtime.descriptor_address, &size);
    if (found || named)
        runtimes->items[runtimes->count++] = runtime;
    else if (!runtimes->native_path && image_find_symbol(&runtime.image, native_symbol_name, &address, &size))
        runtimes->native_path = mapping->path;
}

/*
 * Tries the files named libcoreclr.so that a running process has loaded, while its mappings are not listed. If there is
 * none, they are listed.
 */
static enum cdacq_status try_loaded(struct target *target, struct runtimes *runtimes, struct cdacq_error *err)
{
    uint64_t position = 0;
    const struct mapping *mapping;
    while ((mapping = target_next_loaded(target, is_named_coreclr, &position)))
        try_image(target, mapping, true, runtimes);
    if (target->partial && runtimes->count)
        return CDACQ_OK;
    runtimes->count = 0; /* the list has them all */
    return target_list_mappings(target, err);
}

/* In a core, the list of mappings may be rough: what is not loaded as it says is left out only beside what is. */
static void leave_out_not_loaded(struct runtimes *runtimes)
{
    bool any = false;
    size_t kept = 0;
    for (size_t i = 0; i < runtimes->count; i++)
        any |= runtimes->items[i].is_loaded;
    for (size_t i = 0; any && i < runtimes->count; i++)
        if (runtimes->items[i].is_loaded)
            runtimes->items[kept++] = runtimes->items[i];
    runtimes->count = any ? kept : runtimes->count;
}

void runtimes_deinit(struct runtimes *runtimes)
{
    for (size_t i = 0; i < runtimes->count; i++)
        supplement_deinit(&runtimes->items[i].supplement);
    free(runtimes->items);
    *runtimes = (struct runtimes){0};
}

enum cdacq_status runtimes_find(struct target *target, bool all, struct runtimes *ret, struct cdacq_error *err)
{
    struct runtimes runtimes = {.items = malloc(RUNTIME_MAX * sizeof *runtimes.items)}; /* most stay untouched */
    if (!runtimes.items)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    unsigned probes = 0;
    enum cdacq_status status = all ? target_list_mappings(target, err) : CDACQ_OK;
    if (status == CDACQ_OK)
        status = try_loaded(target, &runtimes, err);
    for (int named = 1; !target->partial && named >= 0 && (all || !runtimes.count); named--)
        for (size_t i = 0; i < target->mapping_count && probes < PROBE_MAX; i++) {
            const struct mapping *mapping = &target->mappings[i];
            bool is_named = is_named_coreclr(mapping->path);
            if (mapping->offset != 0 || is_named != (named == 1))
                continue;
            probes++;
            try_image(target, mapping, named, &runtimes);
        }
    if (target->kind == CDACQ_TARGET_CORE)
        leave_out_not_loaded(&runtimes);
    *ret = runtimes;
    return status;
}

/* The baseline "x" is the embedded file baseline-x.json. */
static bool find_baseline(const char *name, const char **ret_text, size_t *ret_size)
{
    for (size_t i = 0; i < embedded_descriptor_count; i++) {
        const struct embedded_file *file = &embedded_descriptors[i];
        size_t length = strlen(name);
        if (strncmp(file->name, "baseline-", 9) == 0 && strncmp(file->name + 9, name, length) == 0 &&
            strcmp(file->name + 9 + length, ".json") == 0) {
            *ret_text = (const char *)file->data;
            *ret_size = file->size;
            return true;
        }
    }
    return false;
}

enum cdacq_status runtime_override_descriptor(const char *path, struct descriptor *descriptor, struct cdacq_error *err)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > JSON_TEXT_MAX)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "%s: not a regular file of at most %d bytes", path,
                         JSON_TEXT_MAX);
    size_t size;
    CLEANUP_FREE char *text = file_read_all(fd, JSON_TEXT_MAX, &size);
    if (!text)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: cannot be read", path);
    struct json *root;
    enum cdacq_status status = json_parse(text, size, path, &root, err);
    if (status < 0)
        return status;
    struct pointer_data none = {0};
    status = descriptor_add(descriptor, root, path, none, MERGE_OVERRIDE, err);
    json_free(root);
    return status;
}

enum cdacq_status runtime_read_descriptor(struct target *target, struct runtime *runtime, struct descriptor *descriptor,
                                          struct contract_descriptor_info *ret, struct cdacq_error *err)
{
    const struct image *image = runtime->has_image ? &runtime->image : NULL;
    enum cdacq_status status = CDACQ_OK;
    /* .NET 8 has no descriptor: pointer size and byte order come from the image. */
    *ret = (struct contract_descriptor_info){.pointer_size = image && !image->elf.wide ? 4 : 8,
                                             .big_endian = image && image->elf.big};
    if (runtime->descriptor_address)
        status =
            contract_descriptor_read(target, image, runtime->descriptor_address, find_baseline, descriptor, ret, err);
    if (status >= 0 && !runtime->supplement.root && image)
        status = supplement_find_published(image->machine, descriptor, &runtime->supplement, err);
    if (status >= 0 && runtime->supplement.root && !supplement_fits(&runtime->supplement, descriptor))
        supplement_deinit(&runtime->supplement);
    if (status >= 0 && runtime->supplement.root)
        status = supplement_add(&runtime->supplement, image, descriptor, err);
    if (status >= 0 && runtime->supplement.lacks_pointers && !ret->missing[0])
        snprintf(ret->missing, sizeof ret->missing,
                 "variables of the runtime: this servicing version exports another table of them than the versions "
                 "that this build knows");
    return status;
}
