#include "contracts/execution_manager/exception_clauses.h"

#include "contracts/execution_manager/code_heap.h"
#include "contracts/execution_manager/r2r_jit_manager.h"

/* CorExceptionFlag, and the runtime's own bit beyond. */
enum clause_flags {
    CLAUSE_FILTER = 1,
    CLAUSE_FINALLY = 2,
    CLAUSE_FAULT = 4,
    CLAUSE_DUPLICATED = 8,
    CLAUSE_CACHED_CLASS = 0x10000000, /* the union holds a TypeHandle, not a token */
};

static bool jit_clauses(struct field_reader *reader, const struct code_block *block, struct exception_clauses *ret)
{
    uint64_t info = code_block_field(reader, block, F_RealCodeHeader_EHInfo, F_InterpreterRealCodeHeader_JitEHInfo);
    *ret = (struct exception_clauses){0};
    if (!info || reader_failed(&reader->raw))
        return !reader_failed(&reader->raw);
    uint64_t count = read_pointer(&reader->raw, info - reader->raw.pointer_size);
    if (count > EXCEPTION_CLAUSE_MAX)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, info - reader->raw.pointer_size, "number of exception clauses");
    ret->address = field_address(reader, info, F_EEILException_Clauses);
    ret->count = (uint32_t)count;
    return !reader_failed(&reader->raw);
}

static uint32_t entry_field(struct field_reader *reader, uint64_t table, uint32_t i, enum layout_field field)
{
    return (uint32_t)read_field(reader, table + (uint64_t)i * reader->layout->sizes[T_ExceptionLookupTableEntry],
                                field);
}

static bool r2r_clauses(const struct execution_manager *manager, struct field_reader *reader,
                        const struct code_block *block, struct exception_clauses *ret)
{
    struct r2r_section_place place;
    *ret = (struct exception_clauses){.r2r = true};
    const struct r2r_image *image = r2r_jit_manager_image_of(manager, block);
    if (!image || !r2r_image_section(image, reader, R2R_EXCEPTION_INFO, &place))
        return !reader_failed(&reader->raw);
    uint32_t entry_size = reader->layout->sizes[T_ExceptionLookupTableEntry];
    uint32_t clause_size = reader->layout->sizes[T_R2RExceptionClause];
    if (!entry_size || !clause_size) {
        reader_fail(&reader->raw, CDACQ_ERR_FIELD, 0, entry_size ? "R2RExceptionClause" : "ExceptionLookupTableEntry");
        return false;
    }
    /* The first entry behind the method's: the last one is a sentinel, which no method reaches. */
    uint64_t table = image->base + place.rva;
    uint32_t method = (uint32_t)(block->start - image->base), low = 0, high = place.size / entry_size;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (entry_field(reader, table, middle, F_ExceptionLookupTableEntry_MethodStartRVA) <= method)
            low = middle + 1;
        else
            high = middle;
        if (!reader_step(&reader->raw, "ReadyToRun section 104"))
            return false;
    }
    if (!low || low * (uint64_t)entry_size >= place.size ||
        entry_field(reader, table, low - 1, F_ExceptionLookupTableEntry_MethodStartRVA) != method)
        return !reader_failed(&reader->raw);
    uint32_t begin = entry_field(reader, table, low - 1, F_ExceptionLookupTableEntry_ExceptionInfoRVA);
    uint32_t end = entry_field(reader, table, low, F_ExceptionLookupTableEntry_ExceptionInfoRVA);
    if (end < begin || (end - begin) % clause_size || (end - begin) / clause_size > EXCEPTION_CLAUSE_MAX ||
        end > image->end - image->base)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, table + (uint64_t)(low - 1) * entry_size,
                    "ReadyToRun section 104");
    ret->address = image->base + begin;
    ret->count = reader_failed(&reader->raw) ? 0 : (end - begin) / clause_size;
    return !reader_failed(&reader->raw);
}

bool exception_clauses_of(const struct execution_manager *manager, struct field_reader *reader,
                          const struct code_block *block, struct exception_clauses *ret)
{
    return block->kind == CDACQ_CODE_READY_TO_RUN ? r2r_clauses(manager, reader, block, ret)
                                                  : jit_clauses(reader, block, ret);
}

static enum cdacq_clause_kind kind_of(uint32_t flags)
{
    return flags & CLAUSE_FAULT     ? CDACQ_CLAUSE_FAULT
           : flags & CLAUSE_FINALLY ? CDACQ_CLAUSE_FINALLY
           : flags & CLAUSE_FILTER  ? CDACQ_CLAUSE_FILTER
                                    : CDACQ_CLAUSE_TYPED;
}

/* The fields of the two forms, which have the same names. */
#define CLAUSE_FIELD(clauses, field) ((clauses)->r2r ? F_R2RExceptionClause_##field : F_EEExceptionClause_##field)

bool exception_clause_read(struct field_reader *reader, const struct exception_clauses *clauses, uint32_t i,
                           struct cdacq_exception_clause *ret)
{
    uint32_t size = reader->layout->sizes[clauses->r2r ? T_R2RExceptionClause : T_EEExceptionClause];
    uint64_t at = clauses->address + (uint64_t)i * size;
    if (!size)
        reader_fail(&reader->raw, CDACQ_ERR_FIELD, 0, "EEExceptionClause");
    uint32_t flags = (uint32_t)read_field(reader, at, CLAUSE_FIELD(clauses, Flags));
    struct cdacq_exception_clause clause = {
        .size = sizeof clause,
        .kind = kind_of(flags),
        .flags = flags,
        .duplicated = flags & CLAUSE_DUPLICATED,
        .try_start = (uint32_t)read_field(reader, at, CLAUSE_FIELD(clauses, TryStartPC)),
        .try_end = (uint32_t)read_field(reader, at, CLAUSE_FIELD(clauses, TryEndPC)),
        .handler_start = (uint32_t)read_field(reader, at, CLAUSE_FIELD(clauses, HandlerStartPC)),
        .handler_end = (uint32_t)read_field(reader, at, CLAUSE_FIELD(clauses, HandlerEndPC)),
    };
    /* A union: what a filter needs, a token, or, of dynamic methods, which have none, a type. */
    enum layout_field last = clauses->r2r ? F_R2RExceptionClause_ClassToken : F_EEExceptionClause_TypeHandle;
    uint64_t address = at + reader->layout->fields[last].offset;
    if (!has_field(reader, last))
        field_missing(reader, last);
    else if (clause.kind == CDACQ_CLAUSE_FILTER)
        clause.filter_offset = (uint32_t)field_read(reader, last, read_u32(&reader->raw, address));
    else if (clause.kind == CDACQ_CLAUSE_TYPED && flags & CLAUSE_CACHED_CLASS && !clauses->r2r)
        clause.type_handle = field_read(reader, last, read_pointer(&reader->raw, address));
    else if (clause.kind == CDACQ_CLAUSE_TYPED)
        clause.class_token = (uint32_t)field_read(reader, last, read_u32(&reader->raw, address));
    if (reader_failed(&reader->raw))
        return false;
    *ret = clause;
    return true;
}
