#include "tests/support/aot_program.h"

#include <stdlib.h>

#include "descriptors/json.h"
#include "target/image.h"
#include "target/memory.h"

static const char descriptor_text[] =
    "{\"version\":2,\"baseline\":\"empty\",\"types\":{"
    "\"RuntimeInstance\":{\"ManagedCodeStartRange\":0,\"ManagedCodeRangeSize\":8,\"TypeManagerList\":16},"
    "\"TypeManagerEntry\":{\"Next\":0,\"TypeManager\":8},"
    "\"TypeManager\":{\"OsModule\":0,\"Header\":8},"
    "\"MethodTable\":{\"Flags\":0,\"BaseSize\":4,\"RelatedType\":8,\"NumVtableSlots\":16,\"NumInterfaces\":18,"
    "\"VTable\":24},"
    "\"Thread\":{\"m_pInlinedThreadLocalStatics\":8},"
    "\"InlinedThreadStaticRoot\":{\"m_threadStaticsBase\":0,\"m_next\":8},"
    "\"System.Threading.Thread\":{\"_managedThreadId\":[24,\"pointer\"]},"
    "\"System.Threading.ManagedThreadId\":{\"_managedThreadId\":[8,\"int32\"]}},"
    "\"globals\":{\"RuntimeInstance\":\"0x100000\"},"
    "\"contracts\":{}}";

enum {
    INSTANCE = AOT_BASE + 0x10,
    ENTRY = AOT_BASE + 0x40,
    MANAGER = AOT_BASE + 0x60,
    HEADER = AOT_BASE + 0x80,
    ROOT = AOT_BASE + 0x380,
    ID = AOT_BASE + 0x580, /* the ManagedThreadId of the thread, 77 */
};

enum { IS_DYNAMIC = 0x80000, HAS_FINALIZER = 0x100000, IS_GENERIC = 0x2000000, KIND_SHIFT = 26 };

uint8_t *aot_program_at(struct aot_program *program, uint64_t address)
{
    if (address < AOT_BASE || address >= AOT_BASE + AOT_SIZE)
        abort();
    return program->bytes + (address - AOT_BASE);
}

static void put_u32(struct aot_program *program, uint64_t at, uint64_t value)
{
    store_u32(aot_program_at(program, at), (uint32_t)value, false);
}

static void put_u64(struct aot_program *program, uint64_t at, uint64_t value)
{
    store_u64(aot_program_at(program, at), value, false);
}

/* The distance from where it is stored. */
static void put_distance(struct aot_program *program, uint64_t at, uint64_t to)
{
    put_u32(program, at, to - at);
}

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **bytes, void *context)
{
    struct aot_program *program = context;
    *begin = AOT_BASE;
    *end = AOT_BASE + AOT_SIZE;
    *bytes = program->bytes;
    return address >= *begin && address < *end;
}

/* ---- Metadata ---- */

static uint32_t here(const struct aot_program *program)
{
    return (uint32_t)program->metadata.size;
}

static void put(struct aot_program *program, uint32_t value)
{
    mock_native_unsigned(&program->metadata, value);
}

/* A handle of any type, as records have it. */
static void put_handle(struct aot_program *program, enum aot_handle_type type, uint32_t offset)
{
    put(program, offset << 7 | (uint32_t)type);
}

static uint32_t string(struct aot_program *program, const char *text)
{
    uint32_t at = here(program);
    put(program, (uint32_t)strlen(text));
    mock_bytes_put(&program->metadata, text, strlen(text));
    return at;
}

/* A record of a handle. */
static uint32_t composed(struct aot_program *program, enum aot_handle_type type, uint32_t offset)
{
    uint32_t at = here(program);
    put_handle(program, type, offset);
    return at;
}

/* A namespace, or a reference to a type: what it is in, and its name. */
static uint32_t named(struct aot_program *program, enum aot_handle_type type, uint32_t parent, const char *name)
{
    uint32_t text = *name ? string(program, name) : 0, at = here(program);
    put_handle(program, type, parent);
    put(program, text);
    return at;
}

static uint32_t generic_parameter(struct aot_program *program, uint32_t number, const char *name)
{
    uint32_t text = string(program, name), at = here(program);
    put(program, number);
    put(program, 0); /* flags */
    put(program, 0); /* kind */
    put(program, text);
    return at;
}

struct definition {
    uint32_t space, enclosing;
    const char *name;
    uint32_t parameters[2], parameter_count;
    uint32_t attribute; /* 0: none */
};

static uint32_t define(struct aot_program *program, const struct definition *definition)
{
    uint32_t text = string(program, definition->name), at = here(program);
    put(program, 0x100001); /* flags */
    put(program, 0);        /* base type */
    put(program, definition->space);
    put(program, text);
    put(program, 0); /* size */
    put(program, 0); /* packing */
    put(program, definition->enclosing);
    put(program, 1); /* nested types: one, that nothing reads */
    put(program, 5);
    for (unsigned i = 0; i < 4; i++) /* methods, fields, properties, events */
        put(program, 0);
    put(program, definition->parameter_count);
    for (uint32_t i = 0; i < definition->parameter_count; i++)
        put(program, definition->parameters[i]);
    put(program, 0); /* interfaces */
    put(program, definition->attribute != 0);
    if (definition->attribute)
        put(program, definition->attribute);
    return at;
}

/* Everything that names refer to: offsets of records. */
struct records {
    uint32_t space, core_space, outer, inner, value, pair, int32, thread;
    uint32_t int32_reference, string_reference, list_reference, nullable_reference, tuple_reference;
    uint32_t outer_specification; /* Outer<int> */
    uint32_t method_parameter, method_arguments;
    uint32_t method_name, method_signature, plain_name, plain_signature;
    uint32_t reflected, instance_method; /* records of methods */
};

static uint32_t instance(struct aot_program *program, enum aot_handle_type type, uint32_t definition, uint32_t count,
                         const uint32_t (*arguments)[2])
{
    uint32_t at = here(program);
    put_handle(program, type, definition);
    put(program, count);
    for (uint32_t i = 0; i < count; i++)
        put_handle(program, (enum aot_handle_type)arguments[i][0], arguments[i][1]);
    return at;
}

/* Every kind of type: (int, string, List<int>, T, U, int?, (int, string), int[][,], ref int, int*, U[]). */
static uint32_t long_signature(struct aot_program *p, const struct records *r)
{
    const uint32_t int32[1][2] = {{AOT_TYPE_REFERENCE, r->int32_reference}};
    const uint32_t both[2][2] = {{AOT_TYPE_REFERENCE, r->int32_reference}, {AOT_TYPE_REFERENCE, r->string_reference}};
    uint32_t number = here(p);
    put(p, 0); /* of both variables */
    uint32_t list = instance(p, AOT_TYPE_REFERENCE, r->list_reference, 1, int32);
    uint32_t list_type = composed(p, AOT_TYPE_INSTANCE, list);
    uint32_t nullable = instance(p, AOT_TYPE_REFERENCE, r->nullable_reference, 1, int32);
    uint32_t tuple = instance(p, AOT_TYPE_REFERENCE, r->tuple_reference, 2, both);
    uint32_t matrix = composed(p, AOT_TYPE_REFERENCE, r->int32_reference);
    put(p, 2); /* its rank */
    uint32_t jagged = composed(p, AOT_ARRAY_SIGNATURE, matrix);
    uint32_t reference = composed(p, AOT_TYPE_REFERENCE, r->int32_reference);
    uint32_t of_variable = composed(p, AOT_METHOD_VARIABLE, number);
    uint32_t modified = here(p);
    mock_bytes_put(&p->metadata, "", 1);
    put_handle(p, AOT_TYPE_REFERENCE, r->string_reference);
    put_handle(p, AOT_TYPE_REFERENCE, r->int32_reference);
    const uint32_t types[][2] = {{AOT_TYPE_REFERENCE, r->int32_reference},
                                 {AOT_TYPE_REFERENCE, r->string_reference},
                                 {AOT_TYPE_SPECIFICATION, list_type},
                                 {AOT_TYPE_VARIABLE, number},
                                 {AOT_METHOD_VARIABLE, number},
                                 {AOT_TYPE_INSTANCE, nullable},
                                 {AOT_TYPE_INSTANCE, tuple},
                                 {AOT_VECTOR_SIGNATURE, jagged},
                                 {AOT_BYREF_SIGNATURE, reference},
                                 {AOT_POINTER_SIGNATURE, reference},
                                 {AOT_VECTOR_SIGNATURE, of_variable},
                                 {AOT_FUNCTION_POINTER_SIGNATURE, number},
                                 {AOT_MODIFIED_TYPE, modified}};
    uint32_t at = here(p);
    put(p, 0); /* calling convention */
    put(p, 1); /* generic parameters */
    put_handle(p, AOT_TYPE_REFERENCE, r->int32_reference);
    put(p, ARRAY_SIZE(types));
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        put_handle(p, (enum aot_handle_type)types[i][0], types[i][1]);
    return at;
}

static uint32_t signature(struct aot_program *p, uint32_t count, enum aot_handle_type type, uint32_t offset)
{
    uint32_t at = here(p);
    put(p, 0);
    put(p, 0);
    put_handle(p, type, offset);
    put(p, count);
    for (uint32_t i = 0; i < count; i++)
        put_handle(p, type, offset);
    return at;
}

/* The record of a method with the named parameters "first" and "second". */
static uint32_t method(struct aot_program *p, const char *name, uint32_t of, uint32_t attribute)
{
    static const char *const names[] = {"first", "second"};
    uint32_t text = string(p, name), parameters[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t parameter = string(p, names[i]);
        parameters[i] = here(p);
        put(p, 0); /* flags */
        put(p, i + 1);
        put(p, parameter);
    }
    uint32_t at = here(p);
    put(p, 0x86); /* flags */
    put(p, 0);
    put(p, text);
    put(p, of);
    put(p, 2);
    put(p, parameters[0]);
    put(p, parameters[1]);
    put(p, 0); /* generic parameters */
    put(p, attribute != 0);
    if (attribute)
        put(p, attribute);
    return at;
}

/* A StackTraceHiddenAttribute: by a reference to its constructor. */
static uint32_t hidden_attribute(struct aot_program *p, uint32_t core)
{
    enum { MEMBER_REFERENCE = 39 };
    uint32_t system = named(p, AOT_NAMESPACE_REFERENCE, core, "System");
    uint32_t space = named(p, AOT_NAMESPACE_REFERENCE, system, "Diagnostics");
    uint32_t type = named(p, AOT_NAMESPACE_REFERENCE, space, "StackTraceHiddenAttribute");
    uint32_t constructor = composed(p, AOT_TYPE_REFERENCE, type);
    return composed(p, (enum aot_handle_type)MEMBER_REFERENCE, constructor);
}

static struct records put_metadata(struct aot_program *p)
{
    struct records r = {0};
    mock_bytes_put(&p->metadata, "\xef\xbe\xad\xde", 4);
    uint32_t name = string(p, "Library"), scope = here(p);
    put(p, 0);
    put(p, name);
    name = string(p, "System.Private.CoreLib");
    uint32_t core_scope = here(p);
    put(p, 0);
    put(p, name);
    uint32_t root = named(p, AOT_SCOPE_DEFINITION, scope, "");
    r.space = named(p, AOT_NAMESPACE_DEFINITION, root, "Ns");
    uint32_t core_root = named(p, AOT_SCOPE_DEFINITION, core_scope, "");
    r.core_space = named(p, AOT_NAMESPACE_DEFINITION, core_root, "System");
    uint32_t threading = named(p, AOT_NAMESPACE_DEFINITION, r.core_space, "Threading");
    uint32_t core = named(p, AOT_SCOPE_REFERENCE, core_scope, "");
    uint32_t system = named(p, AOT_NAMESPACE_REFERENCE, core, "System");
    uint32_t collections = named(p, AOT_NAMESPACE_REFERENCE, system, "Collections");
    uint32_t generic = named(p, AOT_NAMESPACE_REFERENCE, collections, "Generic");
    r.int32_reference = named(p, AOT_NAMESPACE_REFERENCE, system, "Int32");
    r.string_reference = named(p, AOT_NAMESPACE_REFERENCE, system, "String");
    r.list_reference = named(p, AOT_NAMESPACE_REFERENCE, generic, "List`1");
    r.nullable_reference = named(p, AOT_NAMESPACE_REFERENCE, system, "Nullable`1");
    r.tuple_reference = named(p, AOT_NAMESPACE_REFERENCE, system, "ValueTuple`2");
    uint32_t hidden = hidden_attribute(p, core), of_type = generic_parameter(p, 0, "T");
    r.outer = define(p, &(struct definition){r.space, 0, "Outer`1", {of_type}, 1, 0});
    r.inner = define(p, &(struct definition){r.space, r.outer, "Inner", {of_type}, 1, 0});
    r.value = define(p, &(struct definition){r.space, 0, "Value", {0}, 0, 0});
    r.pair = define(p, &(struct definition){r.space, 0, "Pair`2", {of_type, of_type}, 2, 0});
    r.int32 = define(p, &(struct definition){r.core_space, 0, "Int32", {0}, 0, 0});
    r.thread = define(p, &(struct definition){threading, 0, "Thread", {0}, 0, 0});
    const uint32_t int32[1][2] = {{AOT_TYPE_REFERENCE, r.int32_reference}};
    uint32_t outer_of_int32 = instance(p, AOT_TYPE_DEFINITION, r.outer, 1, int32);
    r.outer_specification = composed(p, AOT_TYPE_INSTANCE, outer_of_int32);
    name = string(p, "U");
    r.method_arguments = here(p);
    put(p, 1);
    put_handle(p, AOT_STRING, name);
    r.method_name = string(p, "Method");
    r.method_signature = long_signature(p, &r);
    r.plain_name = string(p, "Plain");
    r.plain_signature = signature(p, 0, AOT_TYPE_REFERENCE, r.int32_reference);
    uint32_t two = signature(p, 2, AOT_TYPE_REFERENCE, r.int32_reference);
    r.reflected = method(p, "Reflected", two, 0);
    r.instance_method = method(p, "Instance", two, hidden);
    return r;
}

/* ---- Sections ---- */

/* What follows the header: the sections, of which the first is the metadata. */
struct sections {
    struct aot_program *program;
    uint64_t at; /* the end of the last one */
    unsigned count;
};

/* Adds a section, and returns its address. */
static uint64_t put_section(struct sections *sections, uint32_t id, const void *bytes, size_t size)
{
    struct aot_program *program = sections->program;
    uint64_t entry = HEADER + 16 + 16ull * sections->count++, address = sections->at;
    if (address + size > AOT_BASE + AOT_SIZE)
        abort();
    put_u32(program, entry, id);
    put_u32(program, entry + 4, size);
    put_u64(program, entry + 8, address);
    memcpy(aot_program_at(program, address), bytes, size);
    sections->at = (address + size + 15) & ~UINT64_C(15);
    return address;
}

static void put_stack_traces(struct sections *sections, const struct records *r)
{
    struct aot_program *program = sections->program;
    struct mock_bytes bytes = {0};
    uint8_t handle[4];
    size_t codes[3], count = 0;
    static const uint8_t commands[] = {1 | 2 | 8, 1 | 2 | 4 | 16, 2};
    mock_bytes_put(&bytes, "\3\0\0\0", 4);
    for (unsigned i = 0; i < 3; i++) { /* the last one has no owner: it has only a place */
        mock_bytes_put(&bytes, &commands[i], 1);
        uint32_t owner =
            i ? aot_handle_of(AOT_TYPE_DEFINITION, r->inner) : aot_handle_of(AOT_TYPE_DEFINITION, r->outer);
        store_u32(handle, owner, false);
        if (commands[i] & 1)
            mock_bytes_put(&bytes, handle, 4);
        mock_native_unsigned(&bytes, i ? r->plain_name : r->method_name);
        if (commands[i] & (4 | 8))
            mock_native_unsigned(&bytes, i ? r->plain_signature : r->method_signature);
        if (commands[i] & 8)
            mock_native_unsigned(&bytes, r->method_arguments);
        codes[count++] = bytes.size;
        mock_bytes_put(&bytes, "\0\0\0", 4);
    }
    static const uint32_t where[] = {AOT_OUTER, AOT_PLAIN, AOT_END + 0x20};
    uint64_t address = put_section(sections, 327, bytes.data, bytes.size);
    for (size_t i = 0; i < count; i++)
        put_distance(program, address + codes[i], AOT_CODE + where[i]);
    free(bytes.data);
}

/* External references: first MethodTables, then code. */
enum { CODE_REFERENCES = AOT_TYPES };

static void put_fixups(struct sections *sections)
{
    uint8_t none[4 * (AOT_TYPES + 2)] = {0};
    uint64_t address = put_section(sections, 308, none, sizeof none);
    for (unsigned i = 0; i < AOT_TYPES; i++)
        put_distance(sections->program, address + 4 * i, aot_program_type((enum aot_program_type)i));
    put_distance(sections->program, address + 4 * CODE_REFERENCES, AOT_CODE + AOT_UNBOXING);
    put_distance(sections->program, address + 4 * (CODE_REFERENCES + 1), AOT_CODE + AOT_INSTANTIATING);
}

enum { NUMBERS = 4 };

/* A hash table whose elements are numbers. */
static void put_table(struct sections *sections, uint32_t id, const uint32_t (*numbers)[NUMBERS], unsigned width,
                      size_t count)
{
    struct mock_bytes table = {0}, items[8] = {0};
    struct mock_element elements[8] = {0};
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < width; k++)
            mock_native_unsigned(&items[i], numbers[i][k]);
        elements[i] = (struct mock_element){items[i].data, items[i].size, (uint32_t)(i * 0x9e3779b9u)};
    }
    mock_native_hashtable(&table, elements, count, 1, 0);
    put_section(sections, id, table.data, table.size);
    for (size_t i = 0; i < count; i++)
        free(items[i].data);
    free(table.data);
}

static void put_sections(struct aot_program *program, const struct records *r)
{
    struct sections sections = {.program = program, .at = AOT_SECTIONS};
    put_section(&sections, 313, program->metadata.data, program->metadata.size);
    put_stack_traces(&sections, r);
    put_fixups(&sections);
    const uint32_t types[][NUMBERS] = {{AOT_OUTER_TYPE, aot_handle_of(AOT_TYPE_DEFINITION, r->outer)},
                                       {AOT_INT32, aot_handle_of(AOT_TYPE_DEFINITION, r->int32)},
                                       {AOT_VALUE, aot_handle_of(AOT_TYPE_DEFINITION, r->value)},
                                       {AOT_SYSTEM_THREAD, aot_handle_of(AOT_TYPE_DEFINITION, r->thread)},
                                       {AOT_PAIR, aot_handle_of(AOT_TYPE_DEFINITION, r->pair)}};
    put_table(&sections, 301, types, 2, ARRAY_SIZE(types));
    const uint32_t invoked[][NUMBERS] = {{0x20, r->reflected, AOT_VALUE, CODE_REFERENCES},
                                         {0x20, r->instance_method, AOT_OUTER_OF_INT32, CODE_REFERENCES + 1},
                                         {0, r->reflected, AOT_VALUE, CODE_REFERENCES}}; /* without code */
    put_table(&sections, 306, invoked, NUMBERS, ARRAY_SIZE(invoked));
    memcpy(aot_program_at(program, HEADER), "RTR", 4);
    *aot_program_at(program, HEADER + 12) = (uint8_t)sections.count;
    *aot_program_at(program, HEADER + 14) = 16;
}

/* ---- Code ---- */

/* What precedes an FDE's number of bytes: .eh_frame_hdr with its table, and the CIE. */
enum { FUNCTIONS = 9, TABLE_AT = AOT_FRAMES + 12, CIE = TABLE_AT + FUNCTIONS * 8, LSDA = AOT_FRAMES + 0x400 };

static void put_frames(struct aot_program *p)
{
    static const uint32_t begins[FUNCTIONS + 1] = {AOT_OUTER,     AOT_OUTER_CATCH, AOT_OUTER_FILTER, AOT_PLAIN,
                                                   AOT_REFLECTED, AOT_UNBOXING,    AOT_INSTANCE,     AOT_INSTANTIATING,
                                                   AOT_NAMELESS,  AOT_END};
    static const uint8_t head[] = {1, 0x1b, 3, 0x3b};
    static const uint8_t cie[] = {20, 0, 0,    0,  0, 0,    0,    0,    1, 'z', 'L', 'R',
                                  0,  1, 0x78, 16, 2, 0x1b, 0x1b, 0x0c, 7, 8,   0,   0};
    enum { FDE_SIZE = 24 };
    uint64_t first = CIE + sizeof cie;
    memcpy(aot_program_at(p, AOT_FRAMES), head, sizeof head);
    put_distance(p, AOT_FRAMES + 4, CIE);
    put_u32(p, AOT_FRAMES + 8, FUNCTIONS);
    memcpy(aot_program_at(p, CIE), cie, sizeof cie);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        uint64_t fde = first + FDE_SIZE * i, begin = AOT_CODE + begins[i], lsda = LSDA + 16ull * i;
        put_u32(p, TABLE_AT + 8 * i, begin - AOT_FRAMES);
        put_u32(p, TABLE_AT + 8 * i + 4, fde - AOT_FRAMES);
        put_u32(p, fde, FDE_SIZE - 4);
        put_u32(p, fde + 4, fde + 4 - CIE);
        put_distance(p, fde + 8, begin);
        put_u32(p, fde + 12, begins[i + 1] - begins[i]);
        *aot_program_at(p, fde + 16) = 4;
        if (begins[i] == AOT_PLAIN)
            continue; /* without language-specific data */
        put_u32(p, fde + 17, lsda - (fde + 17));
        uint8_t kind = begins[i] == AOT_OUTER_CATCH ? 1 : begins[i] == AOT_OUTER_FILTER ? 2 : 0;
        *aot_program_at(p, lsda) = kind;
        if (kind) {
            put_distance(p, lsda + 1, LSDA);
            put_u32(p, lsda + 5, begins[i]);
        }
    }
    /* add rdi, 8; jmp */
    memcpy(aot_program_at(p, AOT_CODE + AOT_UNBOXING), "\x48\x83\xc7\x08\xe9", 5);
    put_u32(p, AOT_CODE + AOT_UNBOXING + 5, (uint32_t)(AOT_REFLECTED - (AOT_UNBOXING + 9)));
    /* The associated data of the other stub lead to its code. */
    uint64_t lsda = LSDA + 16ull * 7, data = LSDA + 0x200;
    *aot_program_at(p, lsda) = 0x10;
    put_u32(p, lsda + 1, data - (lsda + 1));
    *aot_program_at(p, data) = 1;
    put_distance(p, data + 1, AOT_CODE + AOT_INSTANCE);
}

/* ---- MethodTables and objects ---- */

static void put_type(struct aot_program *p, enum aot_program_type type, uint32_t flags, uint32_t size, uint64_t related)
{
    uint64_t at = aot_program_type(type);
    put_u32(p, at, flags);
    put_u32(p, at + 4, size);
    put_u64(p, at + 8, related);
}

/* An instance with one slot and one interface, in front of the distances to its module and its writable data. */
static void put_instance(struct aot_program *p, enum aot_program_type type, enum aot_program_type definition,
                         const enum aot_program_type *arguments, unsigned count, bool has_finalizer)
{
    uint64_t at = aot_program_type(type), list = at + 0x60;
    put_type(p, type, IS_GENERIC | (has_finalizer ? HAS_FINALIZER : 0), 24, 0);
    put_u32(p, at + 16, 1 | 1 << 16);
    uint64_t distances = at + 24 + 16 + 8 + (has_finalizer ? 4 : 0);
    put_distance(p, distances, aot_program_type(definition));
    put_distance(p, distances + 4, count == 1 ? aot_program_type(arguments[0]) : list);
    for (unsigned i = 0; count > 1 && i < count; i++)
        put_distance(p, list + 4 * i, aot_program_type(arguments[i]));
}

static void put_types(struct aot_program *p)
{
    static const enum aot_program_type one[] = {AOT_INT32}, both[] = {AOT_INT32, AOT_VALUE};
    put_type(p, AOT_OUTER_TYPE, IS_GENERIC, 1, 0);
    put_type(p, AOT_PAIR, IS_GENERIC, 2, 0);
    put_type(p, AOT_SYSTEM_THREAD, 0, 48, 0);
    put_type(p, AOT_STATICS_TYPE, 0, 0x38, 0);
    put_instance(p, AOT_OUTER_OF_INT32, AOT_OUTER_TYPE, one, 1, true);
    put_instance(p, AOT_PAIR_OF_INT32_VALUE, AOT_PAIR, both, 2, false);
    put_type(p, AOT_VECTOR_OF_INSTANCE, 0x18u << KIND_SHIFT, 24, aot_program_type(AOT_OUTER_OF_INT32));
    put_type(p, AOT_MATRIX_OF_INT32, 0x17u << KIND_SHIFT, 24 + 2 * 8, aot_program_type(AOT_INT32));
    put_type(p, AOT_POINTER_TO_INT32, 0x1au << KIND_SHIFT, 0, aot_program_type(AOT_INT32));
    put_type(p, AOT_REFERENCE_TO_VALUE, 0x19u << KIND_SHIFT, 0, aot_program_type(AOT_VALUE));
    put_type(p, AOT_DYNAMIC, IS_DYNAMIC, 0, 0);
}

static void put_thread(struct aot_program *p)
{
    put_u64(p, AOT_THREAD + 8, ROOT);
    put_u64(p, ROOT, AOT_STATICS);
    put_u64(p, AOT_STATICS, aot_program_type(AOT_STATICS_TYPE));
    put_u64(p, AOT_STATICS + 8, ID); /* an object of another type */
    put_u64(p, AOT_STATICS + 24, AOT_THREAD_OBJECT);
    put_u64(p, AOT_THREAD_OBJECT, aot_program_type(AOT_SYSTEM_THREAD));
    put_u64(p, AOT_THREAD_OBJECT + 24, ID);
    put_u64(p, ID, aot_program_type(AOT_DYNAMIC));
    put_u32(p, ID + 8, 77);
}

/* ---- All of it ---- */

static void bind(struct aot_program *program)
{
    struct json *root;
    struct cdacq_error error;
    if (json_parse(descriptor_text, sizeof descriptor_text - 1, "test", &root, &error) < 0 ||
        descriptor_add(&program->descriptor, root, "test", (struct pointer_data){0}, MERGE_ADD, &error) < 0 ||
        layout_bind(&program->descriptor, 8, 1u << LAYOUT_NativeCode, &program->layout, &error) < 0)
        abort();
    json_free(root);
    program->layout.descriptor = &program->descriptor;
    program->layout.architecture = ARCHITECTURE_X64;
}

void aot_program_init(struct aot_program *program)
{
    *program = (struct aot_program){0};
    const struct cdacq_memory memory = {.size = sizeof memory, .context = program, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &program->target, NULL) < 0)
        abort();
    bind(program);
    put_u64(program, AOT_BASE, INSTANCE);
    put_u64(program, INSTANCE, AOT_CODE);
    put_u32(program, INSTANCE + 8, AOT_CODE_SIZE);
    put_u64(program, INSTANCE + 16, ENTRY);
    put_u64(program, ENTRY + 8, MANAGER);
    put_u64(program, MANAGER, AOT_BASE);
    put_u64(program, MANAGER + 8, HEADER);
    const struct records records = put_metadata(program);
    put_sections(program, &records);
    put_frames(program);
    put_types(program);
    put_thread(program);
    if (program->metadata.failed)
        abort();
    program->image = (struct image){
        .target = program->target,
        .path = "/program",
        .base = AOT_BASE,
        .begin = AOT_BASE,
        .end = AOT_BASE + AOT_SIZE,
        .elf = {.wide = true},
        .eh_frame_hdr_vaddr = AOT_FRAMES - AOT_BASE,
        .eh_frame_hdr_size = CIE - AOT_FRAMES,
    };
    program->aot.image = &program->image;
    reader_init_fields(&program->reader, program->target, &program->layout, 8, false);
}

void aot_program_deinit(struct aot_program *program)
{
    aot_image_deinit(&program->aot);
    target_destroy(program->target);
    descriptor_deinit(&program->descriptor);
    free(program->metadata.data);
}
