#include "target/memory.h"

#include <stdio.h>

#include "cdacq/stack.h"
#include "target/mapped_files.h"
#include "target/page_cache.h"
#include "target/threads.h"
#include "util/binary_search.h"
#include "util/sized.h"
#include "util/vector.h"

struct interval {
    uint64_t begin, end;
};

DEFINE_VECTOR(intervals, struct interval);

struct memory_target {
    struct target base;
    struct cdacq_memory memory;
    struct page_cache cache; /* of what `read` returned */
    struct intervals held;   /* where the host has memory, sorted and apart */
    bool knows_held;
};

/* What the host supplies around `address`. */
static bool read_host(struct memory_target *own, uint64_t address, struct span *ret)
{
    const struct cdacq_memory *memory = &own->memory;
    if (!memory->span_at)
        return page_cache_at(&own->cache, address, ret);
    const void *bytes = NULL;
    uint64_t begin = 0, end = 0;
    if (!memory->span_at(address, &begin, &end, &bytes, memory->context) || !bytes)
        return false;
    if (address < begin || address >= end)
        return false; /* the span is not around `address` */
    *ret = (struct span){.begin = begin, .end = end, .bytes = bytes};
    return true;
}

/* A host may supply more than it has, such as what a file has there. */
static bool memory_target_own(struct target *target, uint64_t address, struct span *ret)
{
    struct memory_target *own = (struct memory_target *)target;
    if (!own->knows_held)
        return read_host(own, address, ret);
    size_t i = lower_bound(k, own->held.count, own->held.items[k].end <= address);
    if (i == own->held.count || address < own->held.items[i].begin || !read_host(own, address, ret))
        return false;
    uint64_t begin = MAX(ret->begin, own->held.items[i].begin);
    ret->bytes += begin - ret->begin;
    ret->begin = begin;
    ret->end = MIN(ret->end, own->held.items[i].end);
    return true;
}

static bool lacks(struct target *target, uint64_t address)
{
    struct span own;
    return !memory_target_own(target, address, &own);
}

/*
 * Where the gap that begins at `missing` ends, at `limit` at the latest. A host that has its memory at hand is asked
 * for each byte. A call of a host that copies is expensive, so it is asked for the last byte first: if it lacks that
 * too, it counts as lacking all bytes between; otherwise the end is found by bisection.
 */
static uint64_t gap_end(struct target *target, uint64_t missing, uint64_t limit)
{
    uint64_t end = missing + 1, present = limit - 1;
    if (((struct memory_target *)target)->memory.span_at) {
        while (end < limit && lacks(target, end))
            end++;
        return end;
    }
    if (end >= limit || lacks(target, present))
        return limit;
    while (end < present) {
        uint64_t middle = end + (present - end) / 2;
        if (lacks(target, middle))
            end = middle + 1;
        else
            present = middle;
    }
    return end;
}

/* The same downwards: where the gap begins that has `missing`, at `limit` at the earliest. */
static uint64_t gap_begin(struct target *target, uint64_t missing, uint64_t limit)
{
    uint64_t begin = missing, present = limit;
    if (((struct memory_target *)target)->memory.span_at) {
        while (begin > limit && lacks(target, begin - 1))
            begin--;
        return begin;
    }
    if (begin == limit || lacks(target, present))
        return limit;
    while (begin - present > 1) {
        uint64_t middle = present + (begin - present) / 2;
        if (lacks(target, middle))
            begin = middle;
        else
            present = middle;
    }
    return begin;
}

/* Cuts from a file's span, which is a line at most, what the caller supplies. */
static void narrow_to_gap(struct target *target, uint64_t address, struct span *span)
{
    uint64_t begin = gap_begin(target, address, span->begin), end = gap_end(target, address, span->end);
    span->bytes += begin - span->begin;
    span->begin = begin;
    span->end = end;
}

static bool memory_target_at(struct target *target, uint64_t address, struct span *ret)
{
    if (memory_target_own(target, address, ret))
        return true;
    const struct mapping *mapping = target_mapping_at(target, address);
    if (!mapping || !mapping->file)
        return false;
    uint64_t begin = MAX(mapping->begin, align_down(address, LINE_SIZE));
    uint64_t end = MIN(mapping->end, add_saturated(align_down(address, LINE_SIZE), LINE_SIZE));
    const struct mapped_part part = {
        .access = mapping->access, .begin = begin, .end = end, .offset = mapping->offset + (begin - mapping->begin)};
    if (!mapped_file_memory_at(mapping->file, &part, address, ret))
        return false;
    narrow_to_gap(target, address, ret);
    return true;
}

static bool append_thread(struct threads *threads, const struct cdacq_memory_thread *thread)
{
    struct target_thread added = {
        .tid = thread->tid, .inner_tid = thread->tid, .signal = thread->signal, .died = thread->died};
    snprintf(added.name, sizeof added.name, "%s", thread->name ? thread->name : "");
    struct cdacq_registers registers = {.size = sizeof registers};
    if (thread->registers)
        sized_copy(&registers, thread->registers, thread->registers->size);
    for (unsigned i = 0; i < REGISTER_MAX; i++)
        if (registers.known >> i & 1)
            register_set(&added.registers, i, registers.values[i]);
    return threads_append(threads, added);
}

static enum cdacq_status memory_threads(struct target *target, struct threads *ret, struct cdacq_error *err)
{
    const struct cdacq_memory *memory = &((struct memory_target *)target)->memory;
    size_t count = MIN(memory->thread_count, (size_t)THREAD_MAX);
    if (!count)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "%s has no threads",
                         target->kind == CDACQ_TARGET_IMAGE ? "an image" : "memory of the caller");
    for (size_t i = 0; i < count; i++) {
        struct cdacq_memory_thread thread = {.size = sizeof thread};
        size_t stride = memory->threads->size;
        sized_copy(&thread, (const char *)memory->threads + i * stride, stride);
        if (thread.registers && sized_check(thread.registers, "struct cdacq_registers", err) < 0)
            return CDACQ_ERR_ARGUMENT;
        if (!append_thread(ret, &thread))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the threads");
    }
    return CDACQ_OK;
}

static void memory_target_destroy(struct target *target)
{
    page_cache_deinit(&((struct memory_target *)target)->cache);
    intervals_deinit(&((struct memory_target *)target)->held);
    mapped_files_deinit(target);
    target_deinit(target);
    free(target);
}

static const struct target_ops memory_target_ops = {
    .memory_at = memory_target_at,
    .dumped_at = memory_target_own,
    .threads = memory_threads,
    .destroy = memory_target_destroy,
};

/* Copies the caller's struct, which an older header may have made smaller. */
static bool take_memory(const struct cdacq_memory *memory, struct cdacq_memory *ret)
{
    size_t least = offsetof(struct cdacq_memory, mapping_count) + sizeof memory->mapping_count;
    *ret = (struct cdacq_memory){.size = sizeof *ret};
    if (sized_check_least(memory, least, "struct cdacq_memory", NULL) < 0)
        return false;
    sized_copy(ret, memory, memory->size);
    return !ret->span_at != !ret->read && (!ret->mapping_count || ret->mappings);
}

/* Whether the policy names any source of files. */
static bool finds_files(const struct file_policy *policy)
{
    return policy && (!policy->no_own_paths || policy->find || policy->sysroots || policy->module_paths ||
                      policy->fetch || policy->server.fetch);
}

static bool take_mappings(struct target *target, const struct cdacq_memory *memory, struct file_policy *policy)
{
    for (size_t i = 0; i < memory->mapping_count; i++) {
        struct cdacq_mapping mapping = {.size = sizeof mapping};
        size_t stride = memory->mappings->size;
        sized_copy(&mapping, (const char *)memory->mappings + i * stride, stride);
        if (mapping.begin >= mapping.end || !mapping.path ||
            mapping.file_offset > UINT64_MAX - (mapping.end - mapping.begin))
            continue;
        struct mapped_file *file = mapped_files_get(target, finds_files(policy) ? policy : NULL, mapping.path);
        target->mappings[target->mapping_count++] = (struct mapping){.begin = mapping.begin,
                                                                     .end = mapping.end,
                                                                     .offset = mapping.file_offset,
                                                                     .path = file ? file->path : mapping.path,
                                                                     .file = file};
    }
    target_sort_mappings(target);
    return mapped_files_index(target);
}

static bool take_held(struct memory_target *target)
{
    const struct cdacq_memory *memory = &target->memory;
    struct intervals *held = &target->held;
    target->knows_held = memory->held != NULL;
    for (size_t i = 0; memory->held && i < memory->held_count; i++) {
        struct cdacq_mapping mapping = {.size = sizeof mapping};
        size_t stride = memory->held->size;
        sized_copy(&mapping, (const char *)memory->held + i * stride, stride);
        if (mapping.begin < mapping.end && !intervals_append(held, (struct interval){mapping.begin, mapping.end}))
            return false;
    }
    if (!held->count)
        return true;
    sort_u64(held->items, held->count, sizeof *held->items);
    size_t last = 0;
    for (size_t i = 1; i < held->count; i++) {
        if (held->items[i].begin > held->items[last].end)
            held->items[++last] = held->items[i];
        else
            held->items[last].end = MAX(held->items[last].end, held->items[i].end);
    }
    held->count = last + 1;
    return true;
}

enum cdacq_status memory_open(const struct cdacq_memory *memory, struct file_policy *policy, bool record,
                              struct target **ret, struct cdacq_error *err)
{
    struct cdacq_memory taken;
    if (!take_memory(memory, &taken))
        return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                         "struct cdacq_memory: size, one of span_at and read, and mappings must be set");
    if (taken.mapping_count && sized_check(taken.mappings, "struct cdacq_mapping", err) < 0)
        return CDACQ_ERR_ARGUMENT;
    if (taken.thread_count && (!taken.threads || sized_check(taken.threads, "struct cdacq_memory_thread", err) < 0))
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "struct cdacq_memory: threads and their size must be set");
    if (taken.held && taken.held_count && sized_check(taken.held, "struct cdacq_mapping", err) < 0)
        return CDACQ_ERR_ARGUMENT;
    struct memory_target *target = calloc(1, sizeof *target);
    if (!target || !page_cache_init(&target->cache, taken.read, taken.context)) {
        free(target);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    target->memory = taken;
    target->base = (struct target){
        .ops = &memory_target_ops,
        .kind = CDACQ_TARGET_MEMORY,
        .pid = taken.pid,
        .elf_machine = taken.elf_machine,
        .mappings = calloc(taken.mapping_count + 1, sizeof *target->base.mappings),
        .recording = record ? calloc(1, sizeof *target->base.recording) : NULL,
    };
    if (!target->base.mappings || (record && !target->base.recording) ||
        !take_mappings(&target->base, &taken, policy) || !take_held(target)) {
        memory_target_destroy(&target->base);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    *ret = &target->base;
    return CDACQ_OK;
}
