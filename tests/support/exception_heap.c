#include "tests/support/exception_heap.h"

#include <stdlib.h>

#include "formats/metadata_members.h"
#include "formats/names/signature.h"
#include "target/memory.h"
#include "tests/support/layout_support.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/no_files.h"

const char exception_heap_text[] = "System.AggregateException: several (m (Parameter 'p')) (stored \xc3\xbc)\n"
                                   " ---> System.ArgumentException: m (Parameter 'p')\n"
                                   " ---> N.Bad: stored \xc3\xbc\n"
                                   "   --- End of inner exception stack trace ---\n"
                                   "   at N.Outer.M[T](String s, Int32& i)\n"
                                   "   at N.Outer.Run()\n"
                                   "   at N.Outer.M[T](String s, Int32& i)\n"
                                   "--- End of stack trace from previous location ---\n"
                                   "   at N.Outer.Hidden()\n"
                                   "   --- End of inner exception stack trace ---\n"
                                   " ---> (Inner Exception #1) N.Bad: stored \xc3\xbc<---\n";

const char exception_heap_text_of_keys[] =
    "System.AggregateException: several (m Arg_ParamName_Name, p) (stored \xc3\xbc)\n"
    " ---> System.ArgumentException: m Arg_ParamName_Name, p\n"
    " ---> N.Bad: stored \xc3\xbc\n"
    "   Exception_EndOfInnerExceptionStack\n"
    "   at N.Outer.M[T](String s, Int32& i)\n"
    "   at N.Outer.Run()\n"
    "   at N.Outer.M[T](String s, Int32& i)\n"
    "--- End of stack trace from previous location ---\n"
    "   at N.Outer.Hidden()\n"
    "   Exception_EndOfInnerExceptionStack\n"
    " ---> AggregateException_InnerExceptionN.Bad: stored \xc3\xbc<---\n";

enum {
    TYPE_OBJECT = 2,
    TYPE_EXCEPTION,
    TYPE_AGGREGATE,
    TYPE_ARGUMENT,
    TYPE_BAD,
    TYPE_OUTER,
    TYPE_MACHINE,
    TYPE_LOADER,
    TYPE_FILE,
    TYPE_DIRECTORY,
    TYPE_LIST,
    TYPE_ENVIRONMENT,
    TYPE_RESOURCES,
    TYPE_APP_CONTEXT,
    TYPE_DICTIONARY,
    TYPE_ENTRY,
    TYPE_END,
    METHOD_GET_MESSAGE = 1,
    METHOD_M,
    METHOD_RUN,
    METHOD_HIDDEN,
    METHOD_MOVE_NEXT,
    METHOD_CALL_ENTRY_POINT,
    METHOD_AWAIT,
    METHOD_COUNT = METHOD_AWAIT,
    FIELD_LOADER = 3,
    FIELD_FILE,
    FIELD_DIRECTORY = FIELD_FILE + 3,
    FIELD_LIST,
    FIELD_RESOURCES = FIELD_LIST + 2,
    FIELD_APP_CONTEXT,
    FIELD_DICTIONARY,
    FIELD_ENTRY,
    FIELD_END = FIELD_ENTRY + 2,
    FRAME_COUNT = 5,
    ENTRY_SIZE = 24,        /* of a dictionary: the key, the value, and two numbers */
    STATIC_FIELD = 1 << 24, /* of FieldDesc.DWord1 */
};

/* ---- Metadata ---- */

static uint32_t string(struct metadata_writer *w, const char *s)
{
    return *s ? metadata_writer_string(w, s) : 0;
}

static void add_type(struct metadata_writer *w, const char *space, const char *name, uint32_t fields, uint32_t methods)
{
    METADATA_ROW(w, METADATA_TYPE_DEF, 1, string(w, name), string(w, space), 0, fields, methods);
}

static void add_method(struct metadata_writer *w, const char *name, uint32_t flags, uint32_t signature, uint32_t params)
{
    uint32_t impl_flags = strcmp(name, "Await") == 0 ? METHOD_IMPL_ASYNC : 0;
    METADATA_ROW(w, METADATA_METHOD_DEF, 0, impl_flags, flags, string(w, name), signature, params);
}

/* The MemberRef of an attribute's constructor, as a CustomAttributeType. */
static uint32_t add_attribute_type(struct metadata_writer *w, const char *space, const char *name)
{
    static const uint8_t signature[] = {SIGNATURE_HAS_THIS, 0, ELEMENT_VOID};
    uint32_t type = METADATA_ROW(w, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, string(w, name), string(w, space));
    uint32_t member = METADATA_ROW(w, METADATA_MEMBER_REF, type << 3 | CODED_PARENT_TYPE_REF, string(w, ".ctor"),
                                   metadata_writer_blob(w, signature, sizeof signature));
    return member << 3 | 3;
}

static void add_members(struct metadata_writer *w)
{
    static const uint8_t none[] = {SIGNATURE_HAS_THIS, 0, ELEMENT_VOID}, field[] = {0x06, ELEMENT_OBJECT};
    static const uint8_t generic[] = {SIGNATURE_GENERIC, 1, 2, ELEMENT_VOID, ELEMENT_STRING, ELEMENT_BYREF, ELEMENT_I4};
    uint32_t nothing = metadata_writer_blob(w, none, sizeof none),
             object = metadata_writer_blob(w, field, sizeof field);
    static const char *const fields[] = {"_innerExceptions",
                                         "_paramName",
                                         "<LoaderExceptions>k__BackingField",
                                         "<FileName>k__BackingField",
                                         "<FusionLog>k__BackingField",
                                         "_requestingAssemblyChain",
                                         "<DirectoryPath>k__BackingField",
                                         "_items",
                                         "_size",
                                         "s_usingResourceKeys",
                                         "s_dataStore",
                                         "_entries",
                                         "key",
                                         "value"};
    _Static_assert(ARRAY_SIZE(fields) == FIELD_END - 1, "the rows of the fields");
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        METADATA_ROW(w, METADATA_FIELD, 1, string(w, fields[i]), object);
    add_method(w, "get_Message", 0x46, nothing, 1);
    add_method(w, "M", 0x16, metadata_writer_blob(w, generic, sizeof generic), 1);
    add_method(w, "Run", 6, nothing, 3);
    add_method(w, "Hidden", 6, nothing, 3);
    add_method(w, "MoveNext", 0x46, nothing, 3);
    add_method(w, "CallEntryPoint", 0x16, nothing, 3);
    add_method(w, "Await", 6, nothing, 3);
    METADATA_ROW(w, METADATA_PARAM, 0, 1, string(w, "s"));
    METADATA_ROW(w, METADATA_PARAM, 0, 2, string(w, "i"));
    METADATA_ROW(w, METADATA_GENERIC_PARAM, 0, 0, METHOD_M << 1 | 1, string(w, "T"));
    METADATA_ROW(w, METADATA_NESTED_CLASS, TYPE_MACHINE, TYPE_OUTER);
}

static uint8_t *write_metadata(size_t *ret_size)
{
    static const char machine_name[] = "\x01\0\x0fN.Outer+<Run>d0\0";
    static const char services[] = "System.Runtime.CompilerServices";
    struct metadata_writer w;
    metadata_writer_init(&w);
    METADATA_ROW(&w, METADATA_ASSEMBLY, 0, 1, 0, 0, 0, 0, 0, string(&w, "System.Private.CoreLib"), 0);
    add_type(&w, "System", "Object", 1, 1);
    add_type(&w, "System", "Exception", 1, 1);
    add_type(&w, "System", "AggregateException", 1, 1);
    add_type(&w, "System", "ArgumentException", 2, 1);
    add_type(&w, "N", "Bad", 3, METHOD_GET_MESSAGE);
    add_type(&w, "N", "Outer", 3, METHOD_M);
    add_type(&w, "", "<Run>d0", 3, METHOD_MOVE_NEXT);
    add_type(&w, "System.Reflection", "ReflectionTypeLoadException", FIELD_LOADER, METHOD_CALL_ENTRY_POINT);
    add_type(&w, "System.IO", "FileNotFoundException", FIELD_FILE, METHOD_CALL_ENTRY_POINT);
    add_type(&w, "System.IO", "DirectoryNotFoundException", FIELD_DIRECTORY, METHOD_CALL_ENTRY_POINT);
    add_type(&w, "System.Collections.Generic", "List`1", FIELD_LIST, METHOD_CALL_ENTRY_POINT);
    add_type(&w, "System", "Environment", FIELD_LIST + 2, METHOD_CALL_ENTRY_POINT);
    add_type(&w, "System", "SR", FIELD_RESOURCES, METHOD_COUNT + 1);
    add_type(&w, "System", "AppContext", FIELD_APP_CONTEXT, METHOD_COUNT + 1);
    add_type(&w, "System.Collections.Generic", "Dictionary`2", FIELD_DICTIONARY, METHOD_COUNT + 1);
    add_type(&w, "", "Entry", FIELD_ENTRY, METHOD_COUNT + 1);
    add_members(&w);
    METADATA_ROW(&w, METADATA_ASSEMBLY_REF, 8, 0, 0, 0, 0, 0, string(&w, "System.Runtime"), 0, 0);
    uint32_t machine = add_attribute_type(&w, services, "AsyncStateMachineAttribute");
    uint32_t hidden = add_attribute_type(&w, "System.Diagnostics", "StackTraceHiddenAttribute");
    uint32_t generated = add_attribute_type(&w, services, "CompilerGeneratedAttribute");
    uint32_t interface = METADATA_ROW(&w, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF,
                                      string(&w, "IAsyncStateMachine"), string(&w, services));
    METADATA_ROW(&w, METADATA_INTERFACE_IMPL, TYPE_MACHINE, interface << 2 | CODED_TYPE_REF);
    /* Sorted by the owner: a rid, then 5 bits of its table. */
    METADATA_ROW(&w, METADATA_CUSTOM_ATTRIBUTE, METHOD_RUN << 5 | 0, machine,
                 metadata_writer_blob(&w, machine_name, sizeof machine_name - 1));
    METADATA_ROW(&w, METADATA_CUSTOM_ATTRIBUTE, METHOD_HIDDEN << 5 | 0, hidden, 0);
    METADATA_ROW(&w, METADATA_CUSTOM_ATTRIBUTE, TYPE_MACHINE << 5 | 3, generated, 0);
    uint8_t *metadata = metadata_writer_finish(&w, ret_size);
    metadata_writer_deinit(&w);
    return metadata;
}

/* ---- Memory ---- */

void exception_heap_put(struct exception_heap *heap, uint64_t address, uint64_t value, unsigned width)
{
    uint8_t *at = heap->bytes + (address - HEAP_BASE);
    for (unsigned i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void exception_heap_set(struct exception_heap *heap, uint64_t base, enum layout_field field, uint64_t value)
{
    const struct layout_slot *slot = &heap->layout.fields[field];
    exception_heap_put(heap, base + slot->offset, value, slot->width);
}

static uint64_t allocate(struct exception_heap *heap, uint64_t size)
{
    uint64_t address = heap->end;
    heap->end += align_up(size, 8);
    if (heap->end > HEAP_BASE + HEAP_SIZE)
        abort();
    return address;
}

static uint64_t add_table(struct exception_heap *heap, uint32_t rid, uint32_t flags, uint32_t base_size,
                          uint64_t parent)
{
    uint64_t table = allocate(heap, 64), class = allocate(heap, 64);
    exception_heap_set(heap, table, F_MethodTable_MTFlags, flags);
    exception_heap_set(heap, table, F_MethodTable_BaseSize, base_size);
    exception_heap_set(heap, table, F_MethodTable_TypeDefRid, rid);
    exception_heap_set(heap, table, F_MethodTable_ParentMethodTable, parent);
    exception_heap_set(heap, table, F_MethodTable_Module, heap->module);
    exception_heap_set(heap, table, F_MethodTable_EEClassOrCanonMT, class);
    return table;
}

/* Fields of a type, of which the first is at `offset` of its objects' fields. */
static void add_fields(struct exception_heap *heap, uint64_t table, uint32_t offset, uint32_t field, uint32_t count)
{
    uint64_t descs = allocate(heap, 16 * (uint64_t)count), class = table + 64;
    exception_heap_set(heap, class, F_EEClass_FieldDescList, descs);
    for (uint32_t i = 0; i < count; i++) {
        exception_heap_set(heap, descs + 16 * (uint64_t)i, F_FieldDesc_DWord1, field + i);
        exception_heap_set(heap, descs + 16 * (uint64_t)i, F_FieldDesc_DWord2,
                           (offset + 8 * i) | (uint32_t)ELEMENT_CLASS << 27);
    }
}

/* A type derived from Exception, whose fields begin at offset 120. */
static uint64_t add_exception_table(struct exception_heap *heap, uint32_t rid, uint32_t field, uint32_t count)
{
    uint64_t table = add_table(heap, rid, 0, 136 + 8 * count, heap->exception_table);
    add_fields(heap, table, 120, field, count);
    return table;
}

static uint64_t add_object(struct exception_heap *heap, uint64_t table, uint64_t size)
{
    uint64_t object = allocate(heap, size + 8) + 8; /* after its header */
    exception_heap_set(heap, object, F_Object_m_pMethTab, table);
    return object;
}

static uint64_t add_string(struct exception_heap *heap, const char *latin1)
{
    uint64_t object = add_object(heap, heap->string_table, 14 + 2 * strlen(latin1));
    exception_heap_set(heap, object, F_String_m_StringLength, strlen(latin1));
    for (size_t i = 0; latin1[i]; i++)
        exception_heap_put(heap, object + heap->layout.fields[F_String_m_FirstChar].offset + 2 * i, (uint8_t)latin1[i],
                           2);
    return object;
}

static uint64_t add_array(struct exception_heap *heap, uint64_t table, uint32_t count, unsigned element_size)
{
    uint64_t object = add_object(heap, table, 16 + (uint64_t)count * element_size);
    exception_heap_set(heap, object, F_Array_m_NumComponents, count);
    return object;
}

static uint64_t add_exception(struct exception_heap *heap, uint64_t table, const char *message, uint64_t inner)
{
    uint64_t object = add_object(heap, table, table == heap->file_table ? 152 : 136);
    exception_heap_set(heap, object, F_Exception__message, add_string(heap, message));
    exception_heap_set(heap, object, F_Exception__innerException, inner);
    exception_heap_set(heap, object, F_Exception__HResult, 0x80131500);
    return object;
}

static void add_frames(struct exception_heap *heap, uint64_t method_descs)
{
    static const uint8_t methods[FRAME_COUNT] = {METHOD_M, METHOD_MOVE_NEXT, METHOD_HIDDEN, METHOD_M, METHOD_HIDDEN};
    static const uint8_t flags[FRAME_COUNT] = {2, 3, 0, 3, 2};
    uint32_t header = heap->layout.sizes[T_StackTraceArrayHeader], size = heap->layout.sizes[T_StackTraceElement];
    heap->frames = add_array(heap, heap->bytes_table, header + FRAME_COUNT * size, 1);
    exception_heap_set(heap, heap->frames + 16, F_StackTraceArrayHeader_Size, FRAME_COUNT);
    for (unsigned i = 0; i < FRAME_COUNT; i++) {
        uint64_t element = heap->frames + 16 + header + i * (uint64_t)size;
        exception_heap_set(heap, element, F_StackTraceElement_Ip, 0x1000 + i);
        exception_heap_set(heap, element, F_StackTraceElement_MethodDesc, method_descs + (methods[i] - 1u) * 8);
        exception_heap_set(heap, element, F_StackTraceElement_Flags, flags[i]);
    }
    exception_heap_set(heap, heap->argument, F_Exception__stackTrace, heap->frames);
}

/* One chunk of the methods of all types: the tests need no more of them than the module. */
static uint64_t add_method_descs(struct exception_heap *heap, uint64_t table)
{
    uint32_t chunk_size = heap->layout.sizes[T_MethodDescChunk];
    uint64_t chunk = allocate(heap, chunk_size + METHOD_COUNT * 8);
    exception_heap_set(heap, chunk, F_MethodDescChunk_MethodTable, table);
    for (unsigned i = 0; i < METHOD_COUNT; i++) {
        exception_heap_set(heap, chunk + chunk_size + i * 8, F_MethodDesc_Flags3AndTokenRemainder, i + 1);
        exception_heap_set(heap, chunk + chunk_size + i * 8, F_MethodDesc_ChunkIndex, i);
    }
    return chunk + chunk_size;
}

static void add_types(struct exception_heap *heap)
{
    size_t size;
    uint8_t *metadata = write_metadata(&size);
    uint64_t buffer = allocate(heap, 32), data = allocate(heap, size);
    memcpy(heap->bytes + (data - HEAP_BASE), metadata, size);
    free(metadata);
    heap->module = allocate(heap, 2048);
    exception_heap_set(heap, buffer, F_SBuffer_Size, size);
    exception_heap_set(heap, buffer, F_SBuffer_Buffer, data);
    exception_heap_set(heap, heap->module, F_Module_DynamicMetadataSBuffer, buffer);
    uint64_t object = add_table(heap, TYPE_OBJECT, 0, 24, 0);
    heap->string_table = add_table(heap, TYPE_OBJECT, 0x80000002, 22, object);
    heap->bytes_table = add_table(heap, TYPE_OBJECT, 0x800a0001, 24, object);
    heap->references_table = add_table(heap, TYPE_OBJECT, 0x800a0008, 24, object);
    heap->exception_table = add_table(heap, TYPE_EXCEPTION, 0, 136, object);
}

/* A static field of a type that has no other fields, at an offset of its module's statics. */
static uint64_t add_static(struct exception_heap *heap, uint32_t rid, uint32_t field, uint8_t element, uint32_t offset)
{
    uint64_t table = add_table(heap, rid, 0, 24, 0);
    add_fields(heap, table, offset, field | STATIC_FIELD, 1);
    uint64_t desc = table + 128; /* which follows the table and the class */
    exception_heap_set(heap, desc, F_FieldDesc_DWord2, offset | (uint32_t)element << 27);
    return table;
}

/* The map from TypeDefs to their MethodTables. */
static void add_type_map(struct exception_heap *heap, const uint64_t tables[TYPE_END])
{
    uint64_t places = allocate(heap, TYPE_END * 8);
    uint64_t map = heap->module + heap->layout.fields[F_Module_TypeDefToMethodTableMap].offset;
    exception_heap_set(heap, map, F_ModuleLookupMap_Count, TYPE_END);
    exception_heap_set(heap, map, F_ModuleLookupMap_TableData, places);
    for (unsigned i = 0; i < TYPE_END; i++)
        exception_heap_put(heap, places + 8 * (uint64_t)i, tables[i], 8);
}

/* How a process keeps whether it has the texts of resources. */
static void add_resources(struct exception_heap *heap)
{
    enum { KEYS_OFFSET = 48, STORE_OFFSET = 8 };
    uint64_t tables[TYPE_END] = {
        [TYPE_RESOURCES] = add_static(heap, TYPE_RESOURCES, FIELD_RESOURCES, ELEMENT_BOOLEAN, KEYS_OFFSET),
        [TYPE_APP_CONTEXT] = add_static(heap, TYPE_APP_CONTEXT, FIELD_APP_CONTEXT, ELEMENT_CLASS, STORE_OFFSET),
    };
    uint64_t statics = allocate(heap, 64), references = allocate(heap, 16), core = allocate(heap, 8);
    uint64_t dictionary = add_table(heap, TYPE_DICTIONARY, 0, 24, 0), entry = add_table(heap, TYPE_ENTRY, 0, 40, 0);
    uint64_t array = add_table(heap, TYPE_OBJECT, 0x800a0000 | ENTRY_SIZE, 24, 0);
    add_type_map(heap, tables);
    exception_heap_set(heap, heap->module, F_Module_m_ModuleID, statics);
    exception_heap_set(heap, statics, F_DomainLocalModule_m_pGCStatics, references);
    add_fields(heap, dictionary, 0, FIELD_DICTIONARY, 1);
    add_fields(heap, entry, 0, FIELD_ENTRY, 2);
    exception_heap_set(heap, array, F_MethodTable_PerInstInfo, entry);
    uint64_t object = add_object(heap, dictionary, 16), entries = add_array(heap, array, 3, ENTRY_SIZE);
    heap->on = add_string(heap, " True\n");
    heap->keys_answer = statics + KEYS_OFFSET;
    heap->properties = references + STORE_OFFSET;
    heap->switch_value = entries + 16 + 2 * ENTRY_SIZE + 8;
    exception_heap_put(heap, heap->properties, object, 8);
    exception_heap_put(heap, object + 8, entries, 8);
    exception_heap_put(heap, entries + 16, add_string(heap, "RUNTIME_IDENTIFIER"), 8);
    exception_heap_put(heap, entries + 24, heap->on, 8);
    exception_heap_put(heap, heap->switch_value - 8, add_string(heap, "System.Resources.UseSystemResourceKeys"), 8);
    exception_heap_put(heap, heap->switch_value, add_string(heap, "false"), 8);
    exception_heap_put(heap, core, heap->string_table, 8);
    heap->layout.globals[G_StringMethodTable] = core;
    heap->layout.global_present[G_StringMethodTable] = true;
}

static void add_objects(struct exception_heap *heap)
{
    uint64_t aggregate_table = add_exception_table(heap, TYPE_AGGREGATE, 1, 1);
    uint64_t argument_table = add_exception_table(heap, TYPE_ARGUMENT, 2, 1);
    heap->loader_table = add_exception_table(heap, TYPE_LOADER, FIELD_LOADER, 1);
    uint64_t bad_table = add_table(heap, TYPE_BAD, 0, 136, heap->exception_table);
    heap->file_table = add_exception_table(heap, TYPE_FILE, FIELD_FILE, 3);
    uint64_t directory_table = add_exception_table(heap, TYPE_DIRECTORY, FIELD_DIRECTORY, 1);
    uint64_t list_table = add_table(heap, TYPE_LIST, 0, 32, 0);
    add_fields(heap, list_table, 0, FIELD_LIST, 2);
    heap->method_descs = add_method_descs(heap, bad_table);
    heap->objects_begin = heap->end;
    heap->bad = add_exception(heap, bad_table, "stored \xfc", 0);
    heap->argument = add_exception(heap, argument_table, "m", heap->bad);
    exception_heap_put(heap, heap->argument + 128, add_string(heap, "p"), 8);
    add_frames(heap, heap->method_descs);
    heap->aggregate = add_exception(heap, aggregate_table, "several", heap->argument);
    heap->list = add_array(heap, heap->references_table, 2, 8);
    exception_heap_put(heap, heap->list + 16, heap->argument, 8);
    exception_heap_put(heap, heap->list + 24, heap->bad, 8);
    exception_heap_put(heap, heap->aggregate + 128, heap->list, 8);
    heap->file = add_exception(heap, heap->file_table, "no file", heap->bad);
    heap->directory = add_exception(heap, directory_table, "", heap->bad);
    heap->chain = add_string(heap, "B\n --> A");
    heap->generic_list = add_object(heap, list_table, 24);
    exception_heap_put(heap, heap->generic_list + 8, heap->list, 8);
    exception_heap_put(heap, heap->generic_list + 16, 1, 4);
    add_resources(heap);
}

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    static const uint8_t zeros[PAGE_SIZE];
    const struct exception_heap *heap = context;
    if (heap->endless && address >= HEAP_BASE + HEAP_SIZE) {
        *ret_begin = align_down(address, sizeof zeros);
        *ret_end = *ret_begin + sizeof zeros;
        *ret_bytes = zeros;
        return true;
    }
    if (address < HEAP_BASE || address >= HEAP_BASE + HEAP_SIZE)
        return false;
    *ret_begin = HEAP_BASE;
    *ret_end = HEAP_BASE + HEAP_SIZE;
    *ret_bytes = heap->bytes;
    return true;
}

static void add_thread(struct exception_heap *heap)
{
    const uint64_t objects[] = {heap->aggregate, 0, heap->bad};
    heap->thread = allocate(heap, 1216);
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        uint64_t handle = allocate(heap, 8);
        heap->infos[i] = allocate(heap, 72);
        exception_heap_put(heap, handle, objects[i], 8);
        exception_heap_set(heap, heap->infos[i], F_ExceptionInfo_ThrownObject, objects[i] ? handle : 0);
        if (i)
            exception_heap_set(heap, heap->infos[i - 1], F_ExceptionInfo_PreviousNestedInfo, heap->infos[i]);
    }
    exception_heap_set(heap, heap->thread, F_Thread_ExceptionTracker, heap->infos[0]);
}

void exception_heap_init(struct exception_heap *heap)
{
    struct cdacq_error error;
    *heap = (struct exception_heap){.end = HEAP_BASE};
    layout_of_net8_x64(&heap->layout);
    add_types(heap);
    add_objects(heap);
    add_thread(heap);
    const struct cdacq_memory memory = {.size = sizeof memory, .context = heap, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &heap->target, &error) < 0)
        abort();
    reader_init_fields(&heap->reader, heap->target, &heap->layout, 8, false);
    module_cache_init(&heap->cache, &heap->reader, no_files);
    reader_begin(&heap->reader, FUEL_INDEX);
}

void exception_heap_deinit(struct exception_heap *heap)
{
    module_cache_deinit(&heap->cache);
    target_destroy(heap->target);
}
