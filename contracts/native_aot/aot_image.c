#include "contracts/native_aot/aot_image.h"

#include "contracts/native_aot/aot_method_table.h"
#include "contracts/ready_to_run/native_format.h"
#include "target/native/call_frame.h"
#include "util/binary_search.h"
#include "util/text.h"
#include "util/vector.h"

enum {
    /* The flags with which the language-specific data of a function begin. */
    FUNCTION_KIND_MASK = 3,
    KIND_HANDLER = 1,
    KIND_FILTER = 2,
    HAS_ASSOCIATED_DATA = 0x10,
    HAS_UNBOXING_TARGET = 1, /* the flag with which associated data begin */

    TYPE_MANAGERS_MAX = 64,
    METHODS_MAX = 8 * 1024 * 1024,
};

/* Sections of the image: those of reflection have the number of their blob and 300. */
enum section_id {
    SECTION_TYPE_MAP = 301,
    SECTION_INVOKE_MAP = 306,
    SECTION_COMMON_FIXUPS = 308,
    SECTION_METADATA = 313,
    SECTION_STACK_TRACE_METHODS = 327,
};

DEFINE_VECTOR(aot_methods, struct aot_method);

struct aot_type {
    uint64_t method_table;
    aot_handle definition;
};

DEFINE_VECTOR(aot_types, struct aot_type);

struct aot_tables {
    struct window metadata_window;
    struct native_section metadata;
    struct aot_methods methods; /* sorted by begin */
    struct aot_types types;     /* sorted by method_table */
    bool unverified;            /* they were read from a file that nothing confirms */
};

static void tables_destroy(struct aot_tables *tables)
{
    if (!tables)
        return;
    window_deinit(&tables->metadata_window);
    aot_methods_deinit(&tables->methods);
    aot_types_deinit(&tables->types);
    free(tables);
}

void aot_image_deinit(struct aot_image *aot)
{
    tables_destroy(atomic_load_explicit(&aot->tables, memory_order_acquire));
}

bool aot_code_range(struct reader *reader, uint64_t *ret_begin, uint64_t *ret_end)
{
    uint64_t instance = read_pointer(reader, reader->layout->globals[G_RuntimeInstance]);
    uint64_t begin = read_field(reader, instance, F_RuntimeInstance_ManagedCodeStartRange);
    uint64_t size = read_field(reader, instance, F_RuntimeInstance_ManagedCodeRangeSize);
    if (reader_failed(reader))
        return false;
    *ret_begin = begin;
    *ret_end = add_saturated(begin, size);
    return true;
}

/* ---- Functions ---- */

/* A funclet's data go on with the distances to the data of its method and, back, to the code of its method. */
static bool read_function(struct reader *reader, const struct call_frame_function *function, struct aot_function *ret)
{
    struct aot_function found = {.begin = function->begin, .end = function->end, .method = function->begin};
    uint8_t flags = function->lsda ? read_u8(reader, function->lsda) : 0;
    unsigned kind = flags & FUNCTION_KIND_MASK;
    if (kind) {
        found.kind = kind == KIND_FILTER ? AOT_FILTER : AOT_HANDLER;
        found.method = function->begin - (uint64_t)(int32_t)read_u32(reader, function->lsda + 1 + 4);
        if (found.method >= found.begin)
            reader_fail(reader, CDACQ_ERR_CORRUPT, function->lsda, "the method of a funclet");
    }
    reader_name_failure(reader, "the language-specific data of a function");
    if (reader_failed(reader))
        return false;
    *ret = found;
    return true;
}

bool aot_function_at(const struct aot_image *aot, struct reader *reader, uint64_t address, struct aot_function *ret)
{
    struct call_frame_function function;
    return aot->image && call_frame_function_at(reader, aot->image, address, &function) == CALL_FRAME_FOUND &&
           read_function(reader, &function, ret);
}

struct functions_visit {
    struct reader *reader;
    bool (*visit)(const struct aot_function *function, void *context);
    void *context;
};

static bool visit_function(const struct call_frame_function *function, void *context)
{
    const struct functions_visit *visit = context;
    struct aot_function found;
    return read_function(visit->reader, function, &found) && visit->visit(&found, visit->context);
}

bool aot_functions_each(const struct aot_image *aot, struct reader *reader, uint64_t begin, uint64_t end,
                        bool (*visit)(const struct aot_function *function, void *context), void *context)
{
    struct functions_visit functions = {.reader = reader, .visit = visit, .context = context};
    return aot->image && call_frame_each(reader, aot->image, begin, end, visit_function, &functions) &&
           !reader_failed(reader);
}

size_t aot_function_count(const struct aot_image *aot, struct reader *reader)
{
    return aot->image ? (size_t)call_frame_count(reader, aot->image) : 0;
}

struct method_extent {
    uint64_t begin, end;
};

/* The funclets of a method follow its body. */
static bool extend_method(const struct aot_function *function, void *context)
{
    struct method_extent *extent = context;
    if (function->method != extent->begin)
        return false;
    extent->end = function->end;
    return true;
}

uint64_t aot_method_end(const struct aot_image *aot, struct reader *reader, uint64_t begin)
{
    struct method_extent extent = {.begin = begin};
    return aot_functions_each(aot, reader, begin, UINT64_MAX, extend_method, &extent) ? extent.end : 0;
}

/* ---- Sections ---- */

struct section {
    uint64_t address;
    uint32_t size;
};

/* The header of the first type manager; 0 if there is none. Others are of modules that no program has. */
static uint64_t find_header(struct reader *reader)
{
    uint64_t instance = read_pointer(reader, reader->layout->globals[G_RuntimeInstance]);
    uint64_t entry = read_optional(reader, instance, F_RuntimeInstance_TypeManagerList);
    uint64_t header = 0;
    for (unsigned i = 0; entry && !header && i < TYPE_MANAGERS_MAX; i++) {
        uint64_t manager = read_optional(reader, entry, F_TypeManagerEntry_TypeManager);
        header = read_optional(reader, manager, F_TypeManager_Header);
        entry = read_optional(reader, entry, F_TypeManagerEntry_Next);
    }
    return reader_failed(reader) ? 0 : header;
}

#define HEADER_SIGNATURE UINT32_C(0x00525452) /* "RTR" */

/* Finds a section by its number: an identifier, a size and a pointer. */
static struct section find_section(struct reader *reader, uint64_t header, enum section_id id)
{
    enum { COUNT = 12, ENTRY_SIZE = 14, ENTRIES = 16, SECTIONS_MAX = 1024 };
    struct section ret = {0};
    if (read_u32(reader, header) != HEADER_SIGNATURE) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, header, "the header of a NativeAOT image");
        return ret;
    }
    unsigned count = read_u16(reader, header + COUNT), size = read_u8(reader, header + ENTRY_SIZE);
    if (count > SECTIONS_MAX || size < 8u + reader->pointer_size)
        reader_fail(reader, CDACQ_ERR_CORRUPT, header, "the sections of a NativeAOT image");
    for (unsigned i = 0; i < count && !ret.address && !reader_failed(reader); i++) {
        uint64_t entry = header + ENTRIES + (uint64_t)i * size;
        if (read_u32(reader, entry) == (unsigned)id)
            ret = (struct section){read_pointer(reader, entry + 8), read_u32(reader, entry + 4)};
    }
    return reader_failed(reader) ? (struct section){0} : ret;
}

/* Opens a section. The caller deinits *ret_window. False if the image has none, or the reader fails. */
static bool open_section(struct reader *reader, uint64_t header, enum section_id id, struct window *ret_window,
                         struct section *ret)
{
    *ret = find_section(reader, header, id);
    return ret->size && reader_window(reader, ret->address, ret->size, "a section of a NativeAOT image", ret_window);
}

/* ---- Tables ---- */

/* Tables that are being read. */
struct building {
    const struct aot_image *aot;
    struct reader *reader;
    struct aot_tables *tables;
    uint64_t header;
    struct window fixups;
    struct section fixups_section;
};

static struct native_section section_of(const struct window *window)
{
    return (struct native_section){.bytes = window->bytes, .size = (uint32_t)window->size};
}

/* Element `index` of the table of external references: the distance from itself. 0: there is none. */
static uint64_t external_reference(const struct building *b, uint32_t index)
{
    uint64_t at = (uint64_t)index * 4;
    if (!range_fits(at, 4, b->fixups.size))
        return 0;
    return b->fixups_section.address + at + (uint64_t)(int32_t)load_u32(b->fixups.bytes + at, b->reader->big_endian);
}

static bool add_method(struct building *b, const struct aot_method *method)
{
    struct aot_methods *methods = &b->tables->methods;
    if (methods->count == METHODS_MAX ||
        (methods->count == methods->capacity &&
         !reader_take_memory(b->reader, MAX(methods->capacity, (size_t)64) * sizeof *method, "names of methods")) ||
        !aot_methods_append(methods, *method))
        reader_fail(b->reader, CDACQ_ERR_NOMEM, method->begin, "names of methods");
    return !reader_failed(b->reader);
}

/*
 * The methods that stack traces name: a command for each says which of the names differ from those of the method
 * before, and is followed by the distance to the code.
 */
static void read_stack_trace_methods(struct building *b)
{
    enum { OWNER = 1, NAME = 2, SIGNATURE = 4, GENERIC_SIGNATURE = 8, HIDDEN = 16, HEADER = 4 };
    struct window window = {0};
    struct section section;
    struct aot_method_name name = {0};
    if (!open_section(b->reader, b->header, SECTION_STACK_TRACE_METHODS, &window, &section))
        return;
    const struct native_section bytes = section_of(&window);
    bool big = b->reader->big_endian, valid = true;
    for (uint32_t at = HEADER; at < bytes.size && valid && reader_step(b->reader, "names of methods");) {
        uint8_t command = bytes.bytes[at++];
        uint32_t value = 0;
        if (command & OWNER) {
            valid = range_fits(at, 4, bytes.size);
            name.owner = valid ? load_u32(bytes.bytes + at, big) : 0;
            at += 4;
        }
        if (valid && command & NAME) {
            valid = native_unsigned(&bytes, &at, &value);
            name.name = aot_handle_of(AOT_STRING, value);
        }
        if (valid && command & (SIGNATURE | GENERIC_SIGNATURE)) {
            valid = native_unsigned(&bytes, &at, &value);
            name.signature = aot_handle_of(AOT_METHOD_SIGNATURE, value);
            name.arguments = 0;
        }
        if (valid && command & GENERIC_SIGNATURE) {
            valid = native_unsigned(&bytes, &at, &value);
            name.arguments = aot_handle_offset(value) ? aot_handle_of(AOT_STRING_ARRAY, value) : 0;
        }
        if (!valid || !range_fits(at, 4, bytes.size))
            break;
        const struct aot_method method = {.begin =
                                              section.address + at + (uint64_t)(int32_t)load_u32(bytes.bytes + at, big),
                                          .name = name,
                                          .has_name = aot_handle_offset(name.owner) != 0,
                                          .is_hidden = command & HIDDEN};
        at += 4;
        if (!add_method(b, &method))
            break;
    }
    window_deinit(&window);
}

/* The table of types: the MethodTable and the definition of each. */
struct table_visit {
    struct building *b;
    struct native_section section;
};

static bool take_type(uint32_t offset, void *context)
{
    const struct table_visit *visit = context;
    struct building *b = visit->b;
    uint32_t index, definition;
    if (!reader_step(b->reader, "types"))
        return false;
    if (!native_unsigned(&visit->section, &offset, &index) || !native_unsigned(&visit->section, &offset, &definition))
        return true;
    const struct aot_type type = {external_reference(b, index), definition};
    if (type.method_table && aot_handle_type(definition) == AOT_TYPE_DEFINITION &&
        !aot_types_append(&b->tables->types, type))
        reader_fail(b->reader, CDACQ_ERR_NOMEM, 0, "types");
    return !reader_failed(b->reader);
}

/*
 * The code that a pointer to a method of a value type leads to: the stub that unboxes the object adds the size of the
 * object's head to the pointer and jumps. 0: it is no such stub.
 */
static uint64_t behind_unboxing(struct reader *reader, uint64_t address)
{
    static const uint8_t stub[] = {0x48, 0x83, 0xc7, 0x08, 0xe9}; /* add rdi, 8; jmp */
    uint8_t code[sizeof stub + 4];
    if (!reader_try_copy(reader, address, code, sizeof code) || memcmp(code, stub, sizeof stub) != 0)
        return 0;
    return address + sizeof code + (uint64_t)(int32_t)load_u32(code + sizeof stub, false);
}

/* The same for a method of a generic value type: the data of the stub lead to the code. */
static uint64_t behind_instantiating(const struct building *b, uint64_t address)
{
    struct reader *reader = b->reader;
    struct call_frame_function function;
    uint64_t target = 0;
    if (b->aot->image && call_frame_function_at(reader, b->aot->image, address, &function) == CALL_FRAME_FOUND &&
        function.begin == address && function.lsda && read_u8(reader, function.lsda) & HAS_ASSOCIATED_DATA) {
        uint64_t data = function.lsda + 1 + (uint64_t)(int32_t)read_u32(reader, function.lsda + 1);
        if (read_u8(reader, data) & HAS_UNBOXING_TARGET)
            target = data + 1 + (uint64_t)(int32_t)read_u32(reader, data + 1);
    }
    return reader_failed(reader) ? 0 : target;
}

/* The definition of a type, or of the generic type that it is an instance of; 0: not known. */
static aot_handle definition_of(const struct building *b, uint64_t method_table)
{
    struct reader *reader = b->reader;
    aot_handle type = aot_type_of(b->tables, method_table);
    struct aot_instance instance;
    if (!type && method_table && aot_type_kind(b->reader, method_table) == AOT_GENERIC_INSTANCE &&
        aot_instance_read(b->reader, method_table, &instance))
        type = aot_type_of(b->tables, instance.definition);
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY) | FAILURE(CDACQ_ERR_CORRUPT)); /* a small core lacks some */
    return type;
}

/* The methods that reflection calls: flags, the record of the method, its type, its code. */
static bool take_invoked(uint32_t offset, void *context)
{
    enum { HAS_ENTRY_POINT = 0x20 };
    const struct table_visit *visit = context;
    struct building *b = visit->b;
    uint32_t flags, method, type, code;
    if (!reader_step(b->reader, "methods of reflection"))
        return false;
    if (!native_unsigned(&visit->section, &offset, &flags) || !(flags & HAS_ENTRY_POINT) ||
        !native_unsigned(&visit->section, &offset, &method) || !native_unsigned(&visit->section, &offset, &type) ||
        !native_unsigned(&visit->section, &offset, &code))
        return true;
    struct aot_method found = {.begin = external_reference(b, code), .has_name = true};
    found.name.method = aot_handle_of(AOT_METHOD, method);
    found.name.owner = definition_of(b, external_reference(b, type));
    if (!found.begin || !found.name.owner)
        return true;
    found.is_hidden = aot_is_hidden(&b->tables->metadata, &found.name);
    uint64_t target = b->reader->layout->architecture == ARCHITECTURE_X64 ? behind_unboxing(b->reader, found.begin) : 0;
    if (!target)
        target = behind_instantiating(b, found.begin);
    if (!add_method(b, &found))
        return false;
    found.begin = target;
    return !target || add_method(b, &found);
}

static void read_hash_table(struct building *b, enum section_id id, bool (*visit)(uint32_t offset, void *context))
{
    struct window window = {0};
    struct section section;
    struct native_hashtable table;
    if (!open_section(b->reader, b->header, id, &window, &section))
        return;
    struct table_visit context = {.b = b, .section = section_of(&window)};
    if (native_hashtable_open(context.section, &table))
        (void)native_hashtable_each(&table, visit, &context); /* malformed parts name nothing */
    window_deinit(&window);
}

static struct aot_tables *read_tables(const struct aot_image *aot, struct reader *reader)
{
    struct building b = {.aot = aot, .reader = reader, .tables = calloc(1, sizeof *b.tables)};
    struct section section;
    if (!b.tables) {
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "names of methods");
        return NULL;
    }
    b.header = find_header(reader);
    if (b.header && open_section(reader, b.header, SECTION_METADATA, &b.tables->metadata_window, &section)) {
        b.tables->metadata = section_of(&b.tables->metadata_window);
        read_stack_trace_methods(&b);
        if (open_section(reader, b.header, SECTION_COMMON_FIXUPS, &b.fixups, &b.fixups_section)) {
            read_hash_table(&b, SECTION_TYPE_MAP, take_type);
            sort_u64(b.tables->types.items, b.tables->types.count, sizeof *b.tables->types.items);
            read_hash_table(&b, SECTION_INVOKE_MAP, take_invoked);
        }
        sort_u64(b.tables->methods.items, b.tables->methods.count, sizeof *b.tables->methods.items);
    }
    window_deinit(&b.fixups);
    b.tables->unverified = reader_unverified(reader);
    if (!reader_failed(reader))
        return b.tables;
    tables_destroy(b.tables);
    return NULL;
}

const struct aot_tables *aot_tables_get(struct aot_image *aot, struct reader *reader)
{
    struct aot_tables *existing = atomic_load_explicit(&aot->tables, memory_order_acquire);
    if (!existing) {
        struct reader_task outer = reader_enter(reader, FUEL_INDEX);
        struct aot_tables *tables = read_tables(aot, reader);
        struct reader_failure failure = reader_leave(reader, &outer);
        if (!tables) {
            reader_fail_again(reader, &failure);
            return NULL;
        }
        if (atomic_compare_exchange_strong_explicit(&aot->tables, &existing, tables, memory_order_acq_rel,
                                                    memory_order_acquire))
            existing = tables;
        else
            tables_destroy(tables);
    }
    reader_add_unverified(reader, existing->unverified);
    return existing;
}

const struct native_section *aot_metadata(const struct aot_tables *tables)
{
    return &tables->metadata;
}

const struct aot_method *aot_method_at(const struct aot_tables *tables, uint64_t begin)
{
    const struct aot_method *items = tables->methods.items, *found = NULL;
    size_t first = lower_bound_in_memory(i, tables->methods.count, items[i].begin < begin);
    for (size_t i = first; i < tables->methods.count && items[i].begin == begin; i++)
        if (!found || (found->name.method && !items[i].name.method)) /* the runtime asks the other table first */
            found = &items[i];
    return found;
}

aot_handle aot_type_of(const struct aot_tables *tables, uint64_t method_table)
{
    const struct aot_type *items = tables->types.items;
    size_t first = lower_bound_in_memory(i, tables->types.count, items[i].method_table < method_table);
    return first < tables->types.count && items[first].method_table == method_table ? items[first].definition : 0;
}

uint64_t aot_type_named(const struct aot_tables *tables, const char *name)
{
    struct text text = {0};
    uint64_t found = 0;
    for (size_t i = 0; i < tables->types.count && !found; i++) {
        text_clear(&text);
        if (aot_put_type(&tables->metadata, tables->types.items[i].definition, &text) && text_equals(&text, name))
            found = tables->types.items[i].method_table;
    }
    text_deinit(&text);
    return found;
}
