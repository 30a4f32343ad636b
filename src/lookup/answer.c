#include "src/lookup/answer.h"

#include "contracts/execution_manager/il_offsets.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/resolver.h"
#include "src/lookup/source_lines.h"
#include "src/lookup/find.h"
#include "util/binary_search.h"

/* The start of the funclet that contains `address`, or of the method; 0 if the functions could not be read. */
static uint64_t funclet_start(const struct method_record *record, uint64_t address)
{
    const struct method_function *functions = record->functions;
    if (!record->function_count)
        return record->functions_unknown ? 0 : record->method.code_start;
    uint32_t after =
        lower_bound_in_memory(i, record->function_count, record->unwind_base + functions[i].begin <= address);
    return record->unwind_base + functions[after ? after - 1 : 0].funclet;
}

void answer_fill_record(const struct method_record *record, uint64_t address, struct cdacq_method *ret)
{
    const struct cdacq_method *method = &record->method;
    *ret = *method;
    ret->ip = address;
    ret->offset = method->cold ? method->code_size + (address - method->cold_start) : address - method->code_start;
    ret->funclet_start = funclet_start(record, address);
}

/* Adds the IL offset, where it is known. */
static void add_il_offset(const struct method_record *record, struct cdacq_method *ret)
{
    if (record->il_is_zero)
        ret->il_offset = 0;
    if (!record->il_point_count || ret->offset > UINT32_MAX)
        return;
    ret->il_offset = (int32_t)il_map_find(record->il_points, record->il_point_count, (uint32_t)ret->offset);
    ret->module_verified &= !record->il_unverified;
}

void answer_add_line(const struct method_record *record, struct cdacq_method *ret)
{
    const struct source_point *point = record_source_point(record, ret);
    if (!point)
        return;
    ret->file = point->document->file;
    ret->source_url = point->document->url;
    ret->line = point->line;
    ret->column = point->column;
    ret->module_verified &= !record->source_unverified;
}

void answer_fill(const struct resolver *resolver, const struct resolution *resolution, uint64_t ip,
                 struct cdacq_method *ret)
{
    if (LIKELY(resolution->kind == RESOLVED_METHOD)) {
        answer_fill_record(resolution->record, resolver_address(resolver, ip), ret);
        add_il_offset(resolution->record, ret);
        answer_add_line(resolution->record, ret);
        ret->ip = ip;
        return;
    }
    *ret = (struct cdacq_method){.size = sizeof *ret,
                                 .ip = ip,
                                 .answer = CDACQ_ANSWER_NONE,
                                 .il_offset = CDACQ_OFFSET_UNKNOWN,
                                 .module_verified = !resolution->unverified};
    if (resolution->kind == RESOLVED_NONE)
        return;
    ret->runtime = resolver->target->runtime;
    if (resolution->kind == RESOLVED_STUB) {
        ret->answer = CDACQ_ANSWER_STUB;
        ret->kind = resolution->stub;
        ret->code_start = resolution->start;
        ret->offset = resolution->offset;
    } else {
        ret->answer = CDACQ_ANSWER_ERROR;
        ret->error = resolver->error.message;
    }
}

void answer_error(const struct resolver *resolver, uint64_t ip, struct cdacq_method *ret)
{
    answer_fill(resolver, &(struct resolution){.kind = RESOLVED_ERROR}, ip, ret);
}

void answer_keep_error(struct resolver *resolver, struct cdacq_method *method)
{
    if (method->answer != CDACQ_ANSWER_ERROR)
        return;
    const char *message = resolver->error.message;
    const char *text = arena_string(&resolver->failure_texts, message, strlen(message));
    method->error = text ? text : "out of memory";
}

const struct method_record *answer_find(struct resolver *resolver, uint64_t ip, struct cdacq_method *ret)
{
    struct resolution found;
    arena_deinit(&resolver->failure_texts);
    resolver_find(resolver, ip, false, &found);
    answer_fill(resolver, &found, ip, ret);
    answer_keep_error(resolver, ret);
    return found.kind == RESOLVED_METHOD ? found.record : NULL;
}

bool answer_is_better(const struct cdacq_method *answer, const struct cdacq_method *other)
{
    static const uint8_t ranks[] = {
        [CDACQ_ANSWER_NONE] = 0, [CDACQ_ANSWER_ERROR] = 1, [CDACQ_ANSWER_STUB] = 2, [CDACQ_ANSWER_MANAGED] = 2};
    return ranks[other->answer] > ranks[answer->answer];
}
