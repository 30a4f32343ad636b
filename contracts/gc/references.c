#include "contracts/gc/references.h"

#include "contracts/load_context.h"
#include "contracts/type_system/method_table_flags.h"

enum {
    SERIES_MAX = 1 << 16, /* runs of a type */
    RUNS_MAX = 1 << 24,   /* of all types */
    TYPE_MAX = 1 << 22,
    CHUNK = 4096,             /* bytes of an object that must be in one block */
    STEPS_OF_A_REFERENCE = 3, /* of work: who is told of it keeps it, sorts it and may write a line of text */
};

bool gc_references_init(struct gc_references *references, struct reader *reader)
{
    *references = (struct gc_references){.reader = reader, .block.buffer = malloc(HEAP_BLOCK_LAST)};
    if (!references->block.buffer)
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "references of objects");
    return !reader_failed(reader);
}

void gc_references_deinit(struct gc_references *references)
{
    gc_reference_types_deinit(&references->types);
    gc_runs_deinit(&references->runs);
    free(references->block.buffer);
    *references = (struct gc_references){0};
}

/* ---- Types ---- */

static bool append(struct gc_references *references, struct gc_run run)
{
    if (references->runs.count < RUNS_MAX && gc_runs_append(&references->runs, run))
        return true;
    return reader_fail(references->reader, CDACQ_ERR_NOMEM, 0, "references of objects");
}

/* A signed number as wide as a pointer. */
static int64_t read_signed(struct reader *reader, uint64_t address)
{
    uint64_t value = read_pointer(reader, address);
    return reader->pointer_size == 8 ? (int64_t)value : (int64_t)(int32_t)value;
}

/* Runs of references: below the count, the size and the offset of each, the first one on top. */
static bool read_runs(struct gc_references *references, uint64_t top, uint32_t count)
{
    struct reader *reader = references->reader;
    unsigned pointer = reader->pointer_size;
    for (uint32_t i = 0; i < count && reader_step(reader, "the GCDesc of a type"); i++) {
        top -= 2 * (uint64_t)pointer;
        struct gc_run run = {.offset = read_pointer(reader, top + pointer), .extra = read_signed(reader, top)};
        if (!reader_failed(reader) && (run.offset < pointer || run.offset % pointer || run.offset > INT32_MAX))
            reader_fail(reader, CDACQ_ERR_CORRUPT, top, "the GCDesc of a type");
        if (reader_failed(reader) || !append(references, run))
            return false;
    }
    return !reader_failed(reader);
}

/* An array of structs: the offset of the first element, and below it pairs of numbers half as wide as a pointer. */
static bool read_repeated(struct gc_references *references, uint64_t top, uint32_t count,
                          struct gc_type_references *type)
{
    struct reader *reader = references->reader;
    unsigned pointer = reader->pointer_size, half = pointer / 2;
    uint64_t total = 0;
    type->is_repeated = true;
    type->first = read_pointer(reader, top - pointer);
    for (uint32_t i = 0; i < count && reader_step(reader, "the GCDesc of a type"); i++) {
        uint64_t at = top - (2 + (uint64_t)i) * pointer;
        struct gc_run run = {.offset = read_uint(reader, at, half),
                             .extra = (int64_t)read_uint(reader, at + half, half)};
        total += run.offset * pointer + (uint64_t)run.extra;
        if (reader_failed(reader) || !append(references, run))
            return false;
    }
    if (!reader_failed(reader) && (!total || type->first < pointer || type->first % pointer || total % pointer))
        reader_fail(reader, CDACQ_ERR_CORRUPT, top, "the GCDesc of a type");
    return !reader_failed(reader);
}

static uint64_t read_loader(struct reader *reader, uint64_t method_table)
{
    uint64_t module;
    if (has_field(reader, F_MethodTableAuxiliaryData_LoaderModule)) {
        uint64_t auxiliary = read_optional(reader, method_table, F_MethodTable_AuxiliaryData);
        module = read_optional(reader, auxiliary, F_MethodTableAuxiliaryData_LoaderModule);
    } else {
        module = read_field(reader, method_table, F_MethodTable_Module); /* .NET 8 has that module there */
    }
    return module_allocator(reader, module);
}

/* Reads the description of a type. One that cannot be right leaves the type without references. */
static struct gc_type_references read_type(struct gc_references *references, uint64_t method_table)
{
    struct reader *reader = references->reader;
    struct gc_type_references type = {.method_table = method_table, .run = (uint32_t)references->runs.count};
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    bool good = true;
    if (!reader_failed(reader) && flags & MT_CONTAINS_REFERENCES) {
        uint64_t top = method_table - reader->pointer_size;
        int64_t count = read_signed(reader, top);
        if (count > SERIES_MAX || count < -SERIES_MAX)
            reader_fail(reader, CDACQ_ERR_CORRUPT, top, "the GCDesc of a type");
        good = !reader_failed(reader) && (count < 0 ? read_repeated(references, top, (uint32_t)-count, &type)
                                                    : read_runs(references, top, (uint32_t)count));
        type.runs = (uint32_t)references->runs.count - type.run;
    }
    if (good && method_table_is_collectible(reader, method_table))
        type.loader = read_loader(reader, method_table);
    if (reader_recover(reader, FAILURE_BUT_FUEL & ~FAILURE(CDACQ_ERR_NOMEM))) {
        references->damaged++;
        references->runs.count = type.run;
        type = (struct gc_type_references){.method_table = method_table};
    }
    return type;
}

static const struct gc_type_references *find_type(struct gc_references *references, uint64_t method_table)
{
    if (LIKELY(references->recent.method_table == method_table))
        return &references->recent;
    const struct gc_type_references *known = gc_reference_types_find(&references->types, method_table);
    if (!known) {
        struct gc_type_references type = read_type(references, method_table);
        if (!reader_failed(references->reader) && references->types.count < TYPE_MAX)
            known = gc_reference_types_insert(&references->types, type, NULL);
        if (!known) {
            reader_fail(references->reader, CDACQ_ERR_NOMEM, method_table, "references of objects");
            return NULL;
        }
    }
    references->recent = *known;
    return &references->recent;
}

/* ---- Objects ---- */

struct visit {
    struct gc_references *references;
    const struct cdacq_heap_object *object;
    bool (*visit)(void *context, uint64_t offset, uint64_t target);
    void *context;
};

/* False: no work is left. */
static bool charge(struct reader *reader, uint64_t references)
{
    return work_take_steps(&reader->target->work, STEPS_OF_A_REFERENCE * references) ||
           reader_fail(reader, CDACQ_ERR_FUEL, 0, "references of objects");
}

/* Visits the references in [begin, end), offsets from the object within it. */
static bool visit_run(const struct visit *v, uint64_t begin, uint64_t end)
{
    struct gc_references *references = v->references;
    struct reader *reader = references->reader;
    struct heap_block *block = &references->block;
    unsigned pointer = reader->pointer_size;
    uint64_t object_end = v->object->address + v->object->byte_size;
    while (begin < end) {
        uint64_t at = v->object->address + begin, size = MIN(end - begin, (uint64_t)CHUNK);
        if (!heap_block_have(reader, block, at, object_end, (size_t)size)) {
            if (reader_failed(reader))
                return false;
            size = block->size & ~(uint64_t)(pointer - 1);
            if (!size) { /* nothing is there: what may follow is on another page */
                begin = align_down(at, PAGE_SIZE) + PAGE_SIZE - v->object->address;
                continue;
            }
        }
        const uint8_t *bytes = block->bytes + (at - block->address);
        uint64_t told = 0;
        for (uint64_t i = 0; i + pointer <= size; i += pointer) {
            uint64_t target =
                pointer == 8 ? load_u64(bytes + i, reader->big_endian) : load_u32(bytes + i, reader->big_endian);
            told += target != 0;
            if (target && !v->visit(v->context, begin + i, target))
                return false;
        }
        if (!charge(reader, told))
            return false;
        begin += size;
    }
    return true;
}

static bool visit_repeated(const struct visit *v, const struct gc_type_references *type)
{
    const struct gc_run *runs = v->references->runs.items + type->run;
    unsigned pointer = v->references->reader->pointer_size;
    uint64_t size = v->object->byte_size - pointer; /* the header of the next object is not part of it */
    uint64_t at = type->first;
    while (at < size)
        for (uint32_t i = 0; i < type->runs && at < size; i++) {
            if (!reader_step(v->references->reader, "references of an array"))
                return false;
            uint64_t bytes = MIN(runs[i].offset * pointer, size - at);
            if (!visit_run(v, at, at + (bytes & ~(uint64_t)(pointer - 1))))
                return false;
            at += runs[i].offset * pointer + (uint64_t)runs[i].extra;
        }
    return true;
}

bool gc_references_visit(struct gc_references *references, const struct cdacq_heap_object *object,
                         bool (*visit)(void *context, uint64_t offset, uint64_t target), void *context)
{
    const struct visit v = {.references = references, .object = object, .visit = visit, .context = context};
    const struct gc_type_references *found = find_type(references, object->method_table);
    if (!found)
        return false;
    const struct gc_type_references type = *found; /* `visit` may ask for other objects */
    if (type.loader && !visit(context, GC_REFERENCE_LOADER, type.loader))
        return false;
    if (type.is_repeated)
        return visit_repeated(&v, &type);
    for (uint32_t i = 0; i < type.runs; i++) {
        struct gc_run run = references->runs.items[type.run + i];
        uint64_t length = object->byte_size + (uint64_t)run.extra; /* wraps: `extra` is negative */
        if (!reader_step(references->reader, "references of an object"))
            return false;
        if (run.offset >= object->byte_size || length > object->byte_size - run.offset)
            continue;
        if (!visit_run(&v, run.offset, run.offset + length))
            return false;
    }
    return true;
}
