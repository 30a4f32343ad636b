#include "src/lookup/find.h"

#include "contracts/execution_manager/code_map.h"
#include "contracts/execution_manager/execution_manager.h"
#include "contracts/execution_manager/jit_manager.h"
#include "src/lookup/epoch.h"
#include "src/lookup/il_offsets.h"
#include "src/lookup/index.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/record_index.h"
#include "src/lookup/records.h"
#include "src/lookup/resolver.h"
#include "src/lookup/source_lines.h"
#include "util/error.h"

enum {
    WALKS_BEFORE_INDEX = 16, /* indexing a range costs about as much as this many look-ups that touch new pages */
    PARTS_OF_A_WALK = 32,    /* parts of a table that take about as long to build as one look-up */
    SMALL_TABLE = WALKS_BEFORE_INDEX * PARTS_OF_A_WALK, /* parts: it is built at once for a batch */
};

/* Adds to a record what answers for addresses need. `block` is the record's, or NULL. */
static void complete(struct resolver *resolver, struct method_record *record, const struct code_block *block)
{
    if (LIKELY(record->has_il_map))
        return;
    record_read_il_map(resolver, record, block);
    record_read_source(resolver, record);
}

static void take_record(struct resolver *resolver, struct method_record *record, const struct code_block *block,
                        struct resolution *ret)
{
    complete(resolver, record, block);
    *ret = (struct resolution){.kind = RESOLVED_METHOD, .record = record};
}

/* ---- Without an index ---- */

/* The record of a block that a walk has found. NULL when out of memory. */
static struct method_record *walked_record(struct resolver *resolver, const struct code_block *block)
{
    struct walked_records *walked = &resolver->records.walked;
    struct method_record **known = walked_records_find(walked, (struct walked_key){block->start, block->cold});
    /* In a running process, other code may be there since the last confirmation. */
    if (known && !(*known)->is_void && (*known)->round == resolver->epoch.round)
        return *known;
    struct method_record *record = record_make(resolver, block);
    if (record && known)
        return *known = record;
    if (record && !walked_records_insert(walked, record, NULL)) {
        error_set(&resolver->error, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    return record;
}

/* Looks up one address as the specification does. */
static void walk(struct resolver *resolver, uint64_t address, struct resolution *ret)
{
    struct reader *reader = &resolver->reader;
    struct code_block block;
    epoch_follow(&resolver->epoch);
    reader_begin(reader, FUEL_LOOKUP);
    *ret = (struct resolution){.kind = RESOLVED_ERROR};
    if (!execution_manager_find(&resolver->target->manager, &resolver->reader, address, &block)) {
        if (reader_status(reader, &resolver->error) >= 0)
            *ret = (struct resolution){.kind = RESOLVED_NONE, .unverified = reader_unverified(reader)};
    } else if (!code_block_is_method(&block)) {
        *ret = (struct resolution){.kind = RESOLVED_STUB,
                                   .unverified = block.unverified,
                                   .stub = block.kind,
                                   .start = block.start,
                                   .offset = block.offset};
    } else {
        struct method_record *record = walked_record(resolver, &block);
        if (record)
            take_record(resolver, record, &block, ret);
    }
}

static bool record_contains(const struct method_record *record, uint64_t address)
{
    const struct cdacq_method *method = &record->method;
    return method->cold ? address - method->cold_start < method->cold_size
                        : address - method->code_start < method->code_size;
}

/*
 * Whether a look-up finds the method at its last address, too. If so, no other method begins within it, and its record
 * answers all of its addresses. The reads of this look-up are confirmed together with the answer that needs it.
 */
static bool is_whole(struct resolver *resolver, struct method_record *record)
{
    const struct cdacq_method *method = &record->method;
    uint64_t end = method->cold ? method->cold_start + method->cold_size : method->code_start + method->code_size;
    struct code_block block;
    if (record->is_whole)
        return true;
    epoch_follow(&resolver->epoch);
    reader_begin(&resolver->reader, FUEL_LOOKUP);
    record->is_whole = execution_manager_find(&resolver->target->manager, &resolver->reader, end - 1, &block) &&
                       code_block_is_method(&block) && block.start == method->code_start &&
                       block.cold == method->cold && epoch_note(&resolver->epoch, &record->is_void);
    return record->is_whole;
}

/* Whether a record of the index is the answer for an address. */
static bool is_record_of(struct resolver *resolver, struct method_record *record, uint64_t address)
{
    return record && !record->is_void && record_contains(record, address) && is_whole(resolver, record);
}

bool resolver_find_singly(struct resolver *resolver, uint64_t ip, bool many, struct method_record *known,
                          struct resolution *ret)
{
    uint64_t address = resolver_address(resolver, ip);
    struct record_index *formed = &resolver->records.formed;
    struct method_record *record = known;
    if (many && !is_record_of(resolver, record, address)) {
        record = record_index_find(formed, address); /* an earlier item may have formed it */
        record = is_record_of(resolver, record, address) ? record : NULL;
    }
    if (record) {
        take_record(resolver, record, NULL, ret);
        return false;
    }
    walk(resolver, address, ret);
    if (many && ret->kind == RESOLVED_METHOD) {
        const struct cdacq_method *method = &ret->record->method;
        (void)record_index_add(formed, method->cold ? method->cold_start : method->code_start, ret->record);
    }
    return true;
}

/* ---- With an index ---- */

/* Reads the block of a part, as a task of its own. */
static bool part_block(struct resolver *resolver, size_t index, const struct block_part *part, struct code_block *ret)
{
    reader_begin(&resolver->reader, FUEL_LOOKUP);
    return code_map_block(&resolver->target->manager, &resolver->reader, &resolver->index.map->ranges[index], part,
                          ret);
}

struct method_record *resolver_record(struct resolver *resolver, size_t index, const struct block_part *part)
{
    struct index_range *range = &resolver->index.ranges[index];
    size_t i = (size_t)(part - range->table->items);
    struct method_record **slot = &range->records[i];
    struct code_block block;
    if (resolver_is_running(resolver) && (!*slot || (*slot)->is_void))
        resolver_prepare_records(resolver, index, i, i + 1, NULL);
    if (*slot || resolver_is_running(resolver))
        return *slot;
    if (!part_block(resolver, index, part, &block)) {
        reader_status(&resolver->reader, &resolver->error);
        return NULL;
    }
    block.unverified |= reader_unverified(&resolver->reader);
    struct method_record **walked =
        walked_records_find(&resolver->records.walked, (struct walked_key){block.start, block.cold});
    *slot = walked ? *walked : record_make(resolver, &block);
    return *slot;
}

/* Whether a range is a list of stubs whose table has exactly the used part, so that nothing is after it. */
static bool is_past_stubs(const struct code_range *range)
{
    return range->manager->method_kind == CDACQ_CODE_UNKNOWN && range->section.end - range->section.begin <= UINT32_MAX;
}

/*
 * Whether look-ups in a range have taken so long that a table of it pays. `batch`: more will follow, so a small table
 * pays at once.
 */
static bool table_pays(struct resolver *resolver, size_t index, bool batch)
{
    struct index_range *range = &resolver->index.ranges[index];
    if (!range->table_price) {
        size_t parts =
            code_range_part_count(&resolver->target->manager, &resolver->reader, &resolver->index.map->ranges[index]);
        range->table_price = MAX(parts, (size_t)SMALL_TABLE);
    }
    return range->spent >= range->table_price || (batch && range->table_price == SMALL_TABLE);
}

static void find_in_table(struct resolver *resolver, size_t index, uint64_t address, struct resolution *ret)
{
    const struct index_range *range = &resolver->index.ranges[index];
    const struct code_range *code = &resolver->index.map->ranges[index];
    uint64_t offset = address - code->section.begin;
    const struct block_part *part = offset <= UINT32_MAX ? code_table_find(range->table, (uint32_t)offset) : NULL;
    *ret = (struct resolution){.kind = RESOLVED_NONE};
    if (!part && is_past_stubs(code)) /* a walk would look for their end again */
        return;
    if (!part || part->kind == PART_STUB || part->kind == PART_UNKNOWN) {
        walk(resolver, address, ret);
        return;
    }
    struct method_record *record = resolver_record(resolver, index, part);
    struct code_block block;
    bool has_block = record && !record->has_il_map && part_block(resolver, index, part, &block);
    if (record)
        take_record(resolver, record, has_block ? &block : NULL, ret);
    else
        ret->kind = RESOLVED_ERROR;
}

/* Looks up an address in memory that does not change. */
static void find_settled(struct resolver *resolver, uint64_t ip, bool batch, struct resolution *ret)
{
    bool many = batch || ++resolver->index.lookups > WALKS_BEFORE_INDEX;
    uint64_t address = resolver_address(resolver, ip);
    /* A recording target reads only what a look-up needs, not what an index needs. */
    bool has_map = !resolver->target->memory->recording && (resolver->index.map || (many && resolver_map(resolver)));
    size_t index = has_map ? resolver_find_range(resolver, address) : SIZE_MAX;
    struct index_range *range = index != SIZE_MAX ? &resolver->index.ranges[index] : NULL;
    if (has_map && !range && !resolver->index.map->left_out && address != resolver->target->manager.the_pre_stub) {
        *ret = (struct resolution){.kind = RESOLVED_NONE}; /* ThePreStub is of no range */
        return;
    }
    if (!range || !resolver->index.map->ranges[index].section.whole) { /* not all that is there is in the index */
        walk(resolver, address, ret);
        return;
    }
    if (range->table || (!range->no_table && table_pays(resolver, index, batch) && resolver_table(resolver, index))) {
        find_in_table(resolver, index, address, ret);
        return;
    }
    bool is_large = range->table_price > SMALL_TABLE; /* it takes many look-ups until there is a table */
    range->spent += resolver_find_singly(resolver, ip, many && is_large, NULL, ret) ? PARTS_OF_A_WALK : 1;
}

/* ---- In a running process ---- */

void resolver_fail_changed(struct resolver *resolver, uint64_t ip, struct resolution *ret)
{
    const char *gone = target_gone(resolver->target->memory);
    error_set(&resolver->error, gone ? CDACQ_ERR_IO : CDACQ_ERR_CHANGED, ip, "%s",
              gone ? gone : cdacq_status_text(CDACQ_ERR_CHANGED));
    *ret = (struct resolution){.kind = RESOLVED_ERROR};
}

/* Looks up one address. If the epoch goes on after it, records of earlier look-ups are used again. */
static void find_running(struct resolver *resolver, uint64_t ip, struct resolution *ret)
{
    struct epoch_tries tries = {0};
    epoch_watch(&resolver->epoch);
    do
        resolver_find_singly(resolver, ip, resolver->target->keep, NULL, ret);
    while (epoch_again(&resolver->epoch, &tries));
    if (tries.verdict != EPOCH_HELD || (ret->kind == RESOLVED_ERROR && target_gone(resolver->target->memory)))
        resolver_fail_changed(resolver, ip, ret);
}

void resolver_find(struct resolver *resolver, uint64_t ip, bool batch, struct resolution *ret)
{
    if (resolver_is_running(resolver))
        find_running(resolver, ip, ret);
    else
        find_settled(resolver, ip, batch, ret);
}

/* Records of a range that are formed together. */
struct forming {
    struct resolver *resolver;
    size_t index;
};

/* Forms the record of a part unless it exists. */
static void form_record(void *context, size_t i)
{
    const struct forming *forming = context;
    struct resolver *resolver = forming->resolver;
    struct index_range *range = &resolver->index.ranges[forming->index];
    const struct block_part *part = &range->table->items[i];
    struct method_record **slot = &range->records[i];
    struct resolution found;
    uint64_t begin = resolver->index.map->ranges[forming->index].section.begin + part->begin;
    if ((part->kind != PART_HOT && part->kind != PART_COLD) || (*slot && !(*slot)->is_void))
        return;
    walk(resolver, begin, &found);
    *slot = found.record;
    if (found.kind == RESOLVED_NONE || found.kind == RESOLVED_STUB)
        error_set(&resolver->error, CDACQ_NOT_MANAGED, begin, "%s", cdacq_status_text(CDACQ_NOT_MANAGED));
}

void resolver_prepare_records(struct resolver *resolver, size_t index, size_t from, size_t to, const bool *wanted)
{
    struct index_range *range = &resolver->index.ranges[index];
    struct forming forming = {resolver, index};
    struct resolution changed;
    size_t parts[RESOLVER_AT_ONCE], count = 0;
    for (size_t i = from; i < to && count < RESOLVER_AT_ONCE; i++)
        if (!wanted || wanted[i - from])
            parts[count++] = i;
    count = epoch_form_items(&resolver->epoch, form_record, &forming, parts, count);
    for (size_t i = 0; i < count; i++) {
        range->records[parts[i]] = NULL;
        resolver_fail_changed(
            resolver, resolver->index.map->ranges[index].section.begin + range->table->items[parts[i]].begin, &changed);
    }
}

bool resolver_confirms(struct resolver *resolver, const struct cdacq_method *method)
{
    struct resolution found;
    walk(resolver, method->code_start, &found);
    const struct cdacq_method *now = found.record ? &found.record->method : NULL;
    return epoch_confirm(&resolver->epoch) && now && now->name == method->name &&
           now->code_start == method->code_start && now->code_size == method->code_size &&
           now->method_desc == method->method_desc;
}
