#include "src/lookup/index.h"

#include <inttypes.h>

#include "contracts/execution_manager/code_map.h"
#include "contracts/execution_manager/execution_manager.h"
#include "src/lookup/epoch.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/resolver.h"
#include "util/error.h"

/* The map of all code as a running process has it now. NULL, and the reader fails, as code_map_build() does. */
static struct code_map *build_running_map(struct resolver *resolver)
{
    struct epoch_tries tries = {0};
    struct read_log log = {0};
    struct code_map *map = NULL;
    do {
        code_map_free(map);
        epoch_begin_aside(&resolver->epoch, &log);
        map = code_map_build(&resolver->target->manager, &resolver->reader);
    } while (epoch_again_aside(&resolver->epoch, &tries, &log, true));
    return map;
}

const struct code_map *resolver_map(struct resolver *resolver)
{
    struct cdacq_target *target = resolver->target;
    if (resolver->index.map || resolver->index.no_map)
        return resolver->index.map;
    bool running = resolver_is_running(resolver);
    struct code_map *map = running ? NULL : atomic_load_explicit(&target->code_map, memory_order_acquire);
    if (running) {
        map = resolver->index.own_map = build_running_map(resolver);
    } else if (!map) {
        reader_begin(&resolver->reader, FUEL_INDEX);
        map = code_map_build(&target->manager, &resolver->reader);
        struct code_map *other = NULL;
        if (map && !atomic_compare_exchange_strong_explicit(&target->code_map, &other, map, memory_order_acq_rel,
                                                            memory_order_acquire)) {
            code_map_free(map);
            map = other;
        }
    }
    resolver->index.ranges = map ? calloc(map->count + 1, sizeof *resolver->index.ranges) : NULL;
    resolver->index.no_map = !resolver->index.ranges;
    if (resolver->index.no_map && (map || reader_status(&resolver->reader, &resolver->index.map_error) >= 0))
        error_set(&resolver->index.map_error, CDACQ_ERR_NOMEM, 0, "out of memory for the code ranges");
    resolver->index.map = resolver->index.ranges ? map : NULL;
    return resolver->index.map;
}

static enum cdacq_status map_error(const struct resolver *resolver, struct cdacq_error *err)
{
    if (err)
        *err = resolver->index.map_error;
    return resolver->index.map_error.status;
}

const struct code_map *resolver_begin_map(struct resolver *resolver, enum cdacq_status *ret_status,
                                          struct cdacq_error *err)
{
    resolver_begin(resolver);
    const struct code_map *map = resolver_map(resolver);
    *ret_status = epoch_check_process(&resolver->epoch, err);
    if (*ret_status >= 0 && !map)
        *ret_status = map_error(resolver, err);
    return *ret_status < 0 ? NULL : map;
}

/* Whether a running process has freed a range since the map was read. */
static bool range_is_gone(struct resolver *resolver, const struct range_section *section)
{
    struct reader *reader = &resolver->reader;
    struct range_section now;
    if (!resolver_is_running(resolver) || section->stub_kind)
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool found = execution_manager_current_section(&resolver->target->manager, &resolver->reader, section->begin, &now);
    struct reader_failure failure = reader_leave(reader, &outer);
    return failure.status >= 0 && (!found || now.address != section->address || now.begin != section->begin ||
                                   now.end != section->end || now.heap_list != section->heap_list ||
                                   now.range_list != section->range_list || now.r2r_module != section->r2r_module);
}

/*
 * Builds the table of a range. The table is used even if a running process has changed meanwhile: if methods are made
 * and freed all the time, a large table never stays the same, and each method is looked up anyway. A failure counts
 * only if the process has not changed what was read, and still has the range.
 */
static void build_table(struct resolver *resolver, size_t index)
{
    struct index_range *range = &resolver->index.ranges[index];
    struct code_range *code = &resolver->index.map->ranges[index];
    struct epoch_tries tries = {0};
    struct read_log log = {0};
    bool again;
    do {
        epoch_begin_aside(&resolver->epoch, &log);
        range->table = code_range_table(&resolver->target->manager, &resolver->reader, code);
        bool may_pass = !range->table && reader_failure(&resolver->reader).status != CDACQ_ERR_FUEL;
        again = epoch_again_aside(&resolver->epoch, &tries, &log, may_pass);
        if (range->table)
            return;
        if (resolver_is_running(resolver) && !again)
            epoch_read_anew(&resolver->epoch); /* the map may have changed since, in pages that were read earlier */
        range->is_gone = range_is_gone(resolver, &code->section);
    } while (again && !range->is_gone);
}

struct index_range *resolver_table(struct resolver *resolver, size_t index)
{
    struct index_range *range = &resolver->index.ranges[index];
    if (range->table || range->no_table)
        return range->table ? range : NULL;
    build_table(resolver, index);
    if (range->table &&
        reader_take_memory(&resolver->reader, range->table->count * sizeof *range->records, "code runs"))
        range->records = calloc(range->table->count + 1, sizeof *range->records);
    if (!range->records) {
        reader_fail(&resolver->reader, CDACQ_ERR_NOMEM, 0, "code runs"); /* unless it has failed already */
        range->failure = reader_failure(&resolver->reader);
        range->table = NULL;
        range->no_table = true;
        return NULL;
    }
    return range;
}

enum cdacq_status resolver_table_error(struct resolver *resolver, size_t index, struct cdacq_error *err)
{
    uint64_t begin = resolver->index.map->ranges[index].section.begin;
    if (resolver->index.ranges[index].is_gone)
        return error_set(err, CDACQ_NOT_MANAGED, begin, "the process has freed the code at 0x%" PRIx64, begin);
    return reader_report(&resolver->reader, &resolver->index.ranges[index].failure, err);
}

size_t resolver_find_range(struct resolver *resolver, uint64_t address)
{
    const struct code_map *map = resolver->index.map;
    const struct range_section *hint = map->count ? &map->ranges[resolver->index.hint].section : NULL;
    if (hint && address >= hint->begin && address < hint->end)
        return resolver->index.hint;
    struct code_range *range = code_map_range(map, address);
    if (!range)
        return SIZE_MAX;
    return resolver->index.hint = (size_t)(range - map->ranges);
}
