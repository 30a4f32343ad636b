#include "contracts/execution_manager/exception_clauses.h"

enum { CLAUSE_MAX = 64 * 1024 }; /* of one method */

/* CorExceptionFlag and a bit of the runtime's own. */
enum clause_flags {
    CLAUSE_FILTER = 1,
    CLAUSE_FINALLY = 2,
    CLAUSE_FAULT = 4,
    CLAUSE_DUPLICATED = 8,
    CLAUSE_CACHED_CLASS = 0x10000000, /* the union holds a TypeHandle, not a token */
};

#define CLAUSE_FIELDS(name)                                                                                          \
    .type = T_##name, .flags = F_##name##_Flags, .try_start = F_##name##_TryStartPC, .try_end = F_##name##_TryEndPC, \
    .handler_start = F_##name##_HandlerStartPC, .handler_end = F_##name##_HandlerEndPC

const struct clause_form clause_form_jit = {CLAUSE_FIELDS(EEExceptionClause), .last = F_EEExceptionClause_TypeHandle,
                                            .has_type_handles = true};
const struct clause_form clause_form_r2r = {CLAUSE_FIELDS(R2RExceptionClause), .last = F_R2RExceptionClause_ClassToken};

bool exception_clauses_at(struct reader *reader, uint64_t info, struct exception_clauses *ret)
{
    *ret = (struct exception_clauses){.form = &clause_form_jit};
    if (!info || reader_failed(reader))
        return !reader_failed(reader);
    uint64_t count = read_pointer(reader, info - reader->pointer_size);
    if (count > CLAUSE_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, info - reader->pointer_size, "number of exception clauses");
    ret->address = field_address(reader, info, F_EEILException_Clauses);
    ret->count = (uint32_t)count;
    return !reader_failed(reader);
}

static enum cdacq_clause_kind kind_of(uint32_t flags)
{
    return flags & CLAUSE_FAULT     ? CDACQ_CLAUSE_FAULT
           : flags & CLAUSE_FINALLY ? CDACQ_CLAUSE_FINALLY
           : flags & CLAUSE_FILTER  ? CDACQ_CLAUSE_FILTER
                                    : CDACQ_CLAUSE_TYPED;
}

bool exception_clause_read(struct reader *reader, const struct exception_clauses *clauses, uint32_t i,
                           struct cdacq_exception_clause *ret)
{
    const struct clause_form *form = clauses->form;
    uint32_t size = reader->layout->sizes[form->type];
    uint64_t at = clauses->address + (uint64_t)i * size;
    if (!size)
        reader_fail(reader, CDACQ_ERR_FIELD, 0, "EEExceptionClause");
    uint32_t flags = (uint32_t)read_field(reader, at, form->flags);
    struct cdacq_exception_clause clause = {
        .size = sizeof clause,
        .kind = kind_of(flags),
        .flags = flags,
        .duplicated = flags & CLAUSE_DUPLICATED,
        .try_start = (uint32_t)read_field(reader, at, form->try_start),
        .try_end = (uint32_t)read_field(reader, at, form->try_end),
        .handler_start = (uint32_t)read_field(reader, at, form->handler_start),
        .handler_end = (uint32_t)read_field(reader, at, form->handler_end),
    };
    /* Dynamic methods have no tokens; they have a type instead. */
    uint64_t address = at + reader->layout->fields[form->last].offset;
    if (!has_field(reader, form->last))
        field_missing(reader, form->last);
    else if (clause.kind == CDACQ_CLAUSE_FILTER)
        clause.filter_offset = (uint32_t)field_read(reader, form->last, read_u32(reader, address));
    else if (clause.kind == CDACQ_CLAUSE_TYPED && flags & CLAUSE_CACHED_CLASS && form->has_type_handles)
        clause.type_handle = field_read(reader, form->last, read_pointer(reader, address));
    else if (clause.kind == CDACQ_CLAUSE_TYPED)
        clause.class_token = (uint32_t)field_read(reader, form->last, read_u32(reader, address));
    if (reader_failed(reader))
        return false;
    *ret = clause;
    return true;
}
