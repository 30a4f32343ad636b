#include "target/target.h"

#include <errno.h>

#include "util/error.h"
#include "util/file_root.h"
#include "util/binary_search.h"

void target_destroy(struct target *target)
{
    if (target)
        target->ops->destroy(target);
}

void target_begin_epoch(struct target *target)
{
    if (target->ops->begin_epoch)
        target->ops->begin_epoch(target);
}

void target_refresh(struct target *target)
{
    if (target->ops->refresh)
        target->ops->refresh(target);
}

bool target_unchanged(struct target *target, const struct read_log *log, size_t from)
{
    return !target->ops->unchanged || target->ops->unchanged(target, log, from);
}

bool target_distrust_file(struct target *target, uint64_t address)
{
    return target->ops->distrust_file && target->ops->distrust_file(target, address);
}

const char *target_gone(struct target *target)
{
    return target->ops->gone ? target->ops->gone(target) : NULL;
}

enum cdacq_status target_check_gone(struct target *target, uint64_t address, struct cdacq_error *err)
{
    const char *gone = target_gone(target);
    return gone ? error_set(err, CDACQ_ERR_IO, address, "process %d: %s", target->pid, gone) : CDACQ_OK;
}

void target_deinit(struct target *target)
{
    target_pdbs_deinit(&target->pdbs);
    if (target->own_root)
        file_root_close(target->own_root);
    free(target->own_root);
    free(target->mappings);
    if (target->recording) {
        pages_deinit(&target->recording->pages);
        while (target->recording->patches) {
            struct patch *patch = target->recording->patches;
            target->recording->patches = patch->next;
            free(patch);
        }
        free(target->recording);
    }
}

void target_sort_mappings(struct target *target)
{
    sort_u64(target->mappings, target->mapping_count, sizeof *target->mappings);
}

const struct mapping *target_mapping_at(struct target *target, uint64_t address)
{
    if (target->partial)
        return target->ops->mapping_at(target, address);
    size_t after = lower_bound(i, target->mapping_count, target->mappings[i].begin <= address);
    return after && address < target->mappings[after - 1].end ? &target->mappings[after - 1] : NULL;
}

const struct mapping *target_next_loaded(struct target *target, bool (*accepts)(const char *path), uint64_t *position)
{
    return target->partial ? target->ops->next_loaded(target, accepts, position) : NULL;
}

enum cdacq_status target_list_mappings(struct target *target, struct cdacq_error *err)
{
    enum cdacq_status status = target->partial ? target->ops->list_mappings(target) : CDACQ_OK;
    if (status == CDACQ_OK)
        return status;
    int problem = errno;
    if (status == CDACQ_ERR_NOMEM)
        return error_set(err, status, 0, "out of memory for the mappings");
    if (target_check_gone(target, 0, err) < 0)
        return CDACQ_ERR_IO;
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: its mappings cannot be read: %s", target->pid,
                     status == CDACQ_NOT_MANAGED ? "it has no memory any more" : strerror(problem));
}

enum {
    /* In the time of so many reads, a page or a line that was not recorded is written, sorted in among the others. */
    UNITS_OF_A_PAGE = 32,
    UNITS_OF_A_LINE = 12,
    MEMORY_OF_A_PAGE = 64, /* in the set, and where its lines are listed */
    MEMORY_OF_A_LINE = 64,
};

/* Adds a line to those that a snapshot will have, up to the bounds on all work. */
static void record_line(struct target *target, uint64_t line)
{
    struct work *work = &target->work;
    bool added = false;
    uint64_t bit = UINT64_C(1) << (line % PAGE_SIZE / LINE_SIZE);
    const struct page empty = {.address = align_down(line, PAGE_SIZE)};
    struct page *page = work_left(work) ? pages_insert(&target->recording->pages, empty, &added) : NULL;
    work_add_steps(work, 1 + (added ? UNITS_OF_A_PAGE : 0));
    if (!page || (added && !work_take_memory(work, MEMORY_OF_A_PAGE)))
        return;
    if (!(page->lines & bit)) {
        work_add_steps(work, UNITS_OF_A_LINE);
        if (!work_take_memory(work, MEMORY_OF_A_LINE))
            return;
    }
    page->lines |= bit;
    target->recording->recent[line / LINE_SIZE % RECENT_LINES] = line + 1;
}

void target_record(struct target *target, uint64_t address, uint64_t size)
{
    if (!size)
        return;
    uint64_t line = align_down(address, LINE_SIZE), last = align_down(add_saturated(address, size - 1), LINE_SIZE);
    for (;; line += LINE_SIZE) {
        if (target->recording->recent[line / LINE_SIZE % RECENT_LINES] != line + 1)
            record_line(target, line);
        if (line == last)
            return;
    }
}

void target_record_patch(struct target *target, uint64_t address, const void *bytes, size_t size)
{
    struct patch *patch = malloc(sizeof *patch + size);
    if (!patch)
        return;
    patch->address = address;
    patch->size = size;
    memcpy(patch->bytes, bytes, size);
    patch->next = target->recording->patches;
    target->recording->patches = patch;
}
