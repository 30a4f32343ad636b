#include "src/perf/jitdump_pending.h"

#include <inttypes.h>
#include <stdio.h>

#include "formats/jitdump_problems.h"
#include "formats/jitdump_samply.h"

static void remove_record(struct jitdump_pending *pending, size_t i)
{
    struct jitdump_pending_record *records = pending->records;
    memmove(&records[i], &records[i + 1], (--pending->count - i) * sizeof *records);
}

static const char *name_of(const struct jitdump_pending_record *kept)
{
    return kept->kind == CDACQ_JITDUMP_DEBUG_INFO       ? "JIT_CODE_DEBUG_INFO"
           : kept->kind == CDACQ_JITDUMP_UNWINDING_INFO ? "JIT_CODE_UNWINDING_INFO"
                                                        : "SAMPLY_JIT_CODE_DEBUG_INFO2";
}

/* The address of the function that a record is of, as text; empty where that is not known. */
static const char *function_of(const struct jitdump_pending_record *kept, char room[40])
{
    room[0] = '\0';
    if (kept->has_address)
        snprintf(room, 40, ", of 0x%" PRIx64 ",", kept->code_addr);
    return room;
}

/* Reports on `record` that a kept one is of no JIT_CODE_LOAD. A damaged one was reported already. */
static void report_unbound(const struct jitdump_pending_record *kept, struct cdacq_jitdump_record *record,
                           struct cdacq_error *problem)
{
    char room[40];
    if (!kept->is_damaged)
        jitdump_set_problem(problem, record, "the %s at offset %" PRIu64 "%s has no JIT_CODE_LOAD", name_of(kept),
                            kept->offset, function_of(kept, room));
}

static bool is_of_same_function(const struct jitdump_pending_record *a, const struct jitdump_pending_record *b)
{
    return a->has_address == b->has_address && (!a->has_address || a->code_addr == b->code_addr);
}

/* What to keep of a record. Most kinds have no address: their function is that of the JIT_CODE_DEBUG_INFO before. */
static struct jitdump_pending_record record_to_keep(struct jitdump_pending *pending,
                                                    const struct cdacq_jitdump_record *record)
{
    struct jitdump_pending_record kept = {
        .offset = record->offset,
        .kind = record->kind,
        .is_damaged = record->error != NULL,
        .has_address = pending->has_debug_info,
        .code_addr = pending->last_debug_info,
    };
    if (record->kind == CDACQ_JITDUMP_DEBUG_INFO) {
        kept.has_address = pending->has_debug_info = true;
        kept.code_addr = pending->last_debug_info = record->as.debug_info.code_addr;
    }
    if (record->kind == CDACQ_JITDUMP_SAMPLY_POSITIONS) {
        kept.kind = CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2;
        kept.has_address = true;
        kept.code_addr = record->as.samply_positions.code_addr;
    }
    if (kept.kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 && !record->error)
        kept.end = jitdump_samply_end(record);
    return kept;
}

void jitdump_pending_add(struct jitdump_pending *pending, struct cdacq_jitdump_record *record,
                         struct cdacq_error *problem)
{
    struct jitdump_pending_record added = record_to_keep(pending, record);
    for (size_t i = 0; i < pending->count; i++)
        if (pending->records[i].kind == added.kind && is_of_same_function(&pending->records[i], &added)) {
            report_unbound(&pending->records[i], record, problem);
            remove_record(pending, i);
            break;
        }
    if (pending->count == JITDUMP_PENDING_MAX) {
        report_unbound(&pending->records[0], record, problem);
        remove_record(pending, 0);
    }
    pending->records[pending->count++] = added;
}

/* Whether a record with the address of a JIT_CODE_DEBUG_INFO is of a function that is still to come. */
static bool is_spoken_for(const struct jitdump_pending *pending, const struct jitdump_pending_record *kept)
{
    const struct jitdump_pending_record *records = pending->records;
    for (size_t i = 0; kept->has_address && i < pending->count; i++)
        if (records[i].kind == CDACQ_JITDUMP_DEBUG_INFO && records[i].code_addr == kept->code_addr)
            return true;
    return false;
}

/* Removes the record of a kind that is of this function. False if there is none. */
static bool take(struct jitdump_pending *pending, const struct cdacq_jitdump_load *load, enum cdacq_jitdump_kind kind,
                 struct jitdump_pending_record *ret)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < pending->count; i++) {
        const struct jitdump_pending_record *kept = &pending->records[i];
        if (kept->kind != kind)
            continue;
        if (kept->has_address && (kept->code_addr == load->code_addr || kept->code_addr == load->vma)) {
            found = i;
            break;
        }
        /* Without an address of its own, it is of the next function, whatever was before it. */
        if (kind != CDACQ_JITDUMP_DEBUG_INFO && found == SIZE_MAX && kept->offset > pending->last_load &&
            !is_spoken_for(pending, kept))
            found = i;
    }
    if (found == SIZE_MAX)
        return false;
    *ret = pending->records[found];
    remove_record(pending, found);
    return true;
}

void jitdump_pending_bind(struct jitdump_pending *pending, struct cdacq_jitdump_record *record,
                          struct cdacq_error *problem)
{
    struct cdacq_jitdump_load *load = &record->as.load;
    struct jitdump_pending_record kept;
    if (take(pending, load, CDACQ_JITDUMP_DEBUG_INFO, &kept))
        load->debug_info = kept.offset;
    if (take(pending, load, CDACQ_JITDUMP_UNWINDING_INFO, &kept))
        load->unwinding_info = kept.offset;
    if (take(pending, load, CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2, &kept)) {
        load->samply_debug_info2 = kept.offset;
        if (kept.end > load->code_size)
            jitdump_set_problem(problem, record,
                                "JIT_CODE_LOAD: code_size is %" PRIu64
                                ", and the SAMPLY_JIT_CODE_DEBUG_INFO2 at offset %" PRIu64 " goes up to %" PRIu64,
                                load->code_size, kept.offset, kept.end);
    }
    pending->last_load = record->offset;
    pending->has_debug_info = false;
}

void jitdump_pending_close(struct jitdump_pending *pending, struct cdacq_jitdump_record *record,
                           struct cdacq_error *problem)
{
    for (size_t i = 0; i < pending->count; i++)
        report_unbound(&pending->records[i], record, problem);
    pending->count = 0;
}

enum cdacq_status jitdump_pending_check_end(const struct jitdump_pending *pending, struct cdacq_error *err)
{
    for (size_t i = 0; i < pending->count; i++) {
        const struct jitdump_pending_record *kept = &pending->records[i];
        char room[40];
        if (!kept->is_damaged)
            return error_set(err, CDACQ_ERR_FORMAT, kept->offset,
                             "the file ends, and the %s at offset %" PRIu64 "%s has no JIT_CODE_LOAD", name_of(kept),
                             kept->offset, function_of(kept, room));
    }
    return CDACQ_OK;
}
