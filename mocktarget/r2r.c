/*
 * r2r.c: writes ReadyToRun images as r2r_plan.c has laid them out, and the runtime's structures for them. The map from
 * entry points to MethodDescs holds only the prepared methods.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; src/coreclr/vm/readytoruninfo.cpp.
 */
#include "mocktarget/r2r_plan.h"

/* Appends to a list of sections. The caller writes their number. */
static void write_section(struct mock *mock, uint64_t sections, uint32_t *count, uint32_t type, uint32_t rva,
                          size_t size)
{
    uint64_t at = sections + (uint64_t)*count * R2R_SECTION;
    mock_write_uint(mock, at, 4, type);
    mock_write_uint(mock, at + 4, 4, rva);
    mock_write_uint(mock, at + 8, 4, size);
    ++*count;
}

/* The only component of a composite image, with its MethodDefs in a header of its own. */
static void write_component(struct mock *mock, const struct mock_r2r *r2r, uint32_t *count)
{
    uint32_t list = r2r->plan->header + R2R_HEADER + R2R_SECTION_MAX * R2R_SECTION, core = list + R2R_COMPONENT,
             sections = 0;
    write_section(mock, r2r->header + R2R_HEADER, count, 115, list, R2R_COMPONENT);
    mock_write_uint(mock, r2r->begin + list, 4, r2r->plan->clr);
    mock_write_uint(mock, r2r->begin + list + 4, 4, MOCK_CLR_HEADER);
    mock_write_uint(mock, r2r->begin + list + 8, 4, core);
    mock_write_uint(mock, r2r->begin + list + 12, 4, R2R_CORE_HEADER + R2R_SECTION);
    write_section(mock, r2r->begin + core + R2R_CORE_HEADER, &sections, 103, r2r->plan->methoddefs_at,
                  r2r->plan->methoddefs.size);
    mock_write_uint(mock, r2r->begin + core, 4, 0);
    mock_write_uint(mock, r2r->begin + core + 4, 4, sections);
}

/* Section 104: the starts of the methods that have clauses, each with the address of its clauses; then a sentinel. */
static size_t write_exceptions(struct mock *mock, const struct mock_r2r *r2r)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint64_t entry = r2r->begin + plan->exceptions;
    uint32_t clauses = plan->clauses;
    for (size_t i = 0; i < plan->methods.count; i++) {
        const struct planned_method *method = &plan->methods.items[i];
        if (!method->spec.clause_count)
            continue;
        mock_put(mock, entry, F_ExceptionLookupTableEntry_MethodStartRVA, method->start);
        mock_put(mock, entry, F_ExceptionLookupTableEntry_ExceptionInfoRVA, clauses);
        mock_clauses_write(mock, r2r->begin + clauses, method->clauses, method->spec.clause_count, true);
        clauses += (uint32_t)(method->spec.clause_count * mock_clause_size(mock, true));
        entry += mock->sizes[T_ExceptionLookupTableEntry];
    }
    mock_put(mock, entry, F_ExceptionLookupTableEntry_MethodStartRVA, UINT32_MAX);
    mock_put(mock, entry, F_ExceptionLookupTableEntry_ExceptionInfoRVA, clauses);
    return (size_t)(entry + mock->sizes[T_ExceptionLookupTableEntry] - (r2r->begin + plan->exceptions));
}

/* Writes a cell's signature: its kind and a number. Returns where the next one begins. */
static uint32_t write_signature(struct mock *mock, const struct mock_r2r *r2r, uint64_t entry, uint32_t at,
                                unsigned kind, uint64_t number)
{
    mock_write_uint(mock, entry, 4, at);
    mock_write_uint(mock, r2r->begin + at, 1, kind);
    mock_write_uint(mock, r2r->begin + at + 1, 4, number);
    return at + R2R_SIGNATURE;
}

/* An import section of strings, and one of several kinds, which has the resumption stubs. */
static void write_imports(struct mock *mock, const struct mock_r2r *r2r)
{
    enum { TYPE_UNKNOWN = 0, TYPE_STRING = 3, FIXUP_TYPE = 0x07, FIXUP_STRING = 0x1b, FIXUP_RESUMPTION_STUB = 0x38 };
    const struct mock_r2r_plan *plan = r2r->plan;
    uint32_t cells[R2R_IMPORT_SECTIONS] = {1, 1 + (uint32_t)plan->resumption_stub_count};
    uint32_t signatures = plan->imports + R2R_IMPORT_SECTIONS * R2R_IMPORT_SECTION;
    uint32_t at = signatures + (R2R_OTHER_CELLS + (uint32_t)plan->resumption_stub_count) * 4;
    for (uint32_t i = 0, entries = signatures; i < R2R_IMPORT_SECTIONS; entries += cells[i++] * 4) {
        uint64_t section = r2r->begin + plan->imports + (uint64_t)i * R2R_IMPORT_SECTION;
        mock_write_uint(mock, section + 4, 4, cells[i] * mock->word);
        mock_write_uint(mock, section + 8, 2, 0);
        mock_write_uint(mock, section + 10, 1, i ? TYPE_UNKNOWN : TYPE_STRING);
        mock_write_uint(mock, section + 11, 1, mock->word);
        mock_write_uint(mock, section + 12, 4, entries);
    }
    uint64_t entry = r2r->begin + signatures;
    at = write_signature(mock, r2r, entry, at, FIXUP_STRING, FIXUP_RESUMPTION_STUB);
    at = write_signature(mock, r2r, entry += 4, at, FIXUP_TYPE, FIXUP_RESUMPTION_STUB);
    for (size_t i = 0; i < plan->methods.count; i++)
        if (plan->methods.items[i].spec.resumption_stub)
            at = write_signature(mock, r2r, entry += 4, at, FIXUP_RESUMPTION_STUB, plan->methods.items[i].start);
}

/* The runtime stores a pointer to the directory of a section. */
static void write_directory(struct mock *mock, const struct mock_r2r *r2r, enum mock_field field, uint32_t rva,
                            size_t size)
{
    uint64_t directory = mock_object(mock, T_ImageDataDirectory, 0);
    mock_put(mock, directory, F_ImageDataDirectory_VirtualAddress, rva);
    mock_put(mock, directory, F_ImageDataDirectory_Size, size);
    mock_put(mock, r2r->info, field, directory);
}

static void write_header(struct mock *mock, struct mock_r2r *r2r)
{
    struct mock_r2r_plan *plan = r2r->plan;
    uint32_t count = 0;
    r2r->header = r2r->begin + plan->header;
    mock_write_uint(mock, r2r->header, 4, 0x00525452); /* "RTR" */
    mock_write_uint(mock, r2r->header + 4, 2, plan->options.major);
    mock_write_uint(mock, r2r->header + 6, 2, plan->options.minor);
    mock_write_uint(mock, r2r->header + 8, 4, 0);
    uint64_t sections = r2r->header + R2R_HEADER;
    write_section(mock, sections, &count, 102, plan->functions,
                  (uint32_t)((plan->hot_count + plan->cold_count) * mock->sizes[T_RuntimeFunction]));
    if (plan->options.tables & MOCK_R2R_METHODDEFS) {
        r2r->methoddefs = r2r->begin + plan->methoddefs_at;
        r2r->methoddefs_size = (uint32_t)plan->methoddefs.size;
        mock_write(mock, r2r->methoddefs, plan->methoddefs.data, plan->methoddefs.size);
        if (plan->options.composite)
            write_component(mock, r2r, &count);
        else
            write_section(mock, sections, &count, 103, plan->methoddefs_at, plan->methoddefs.size);
    }
    if (plan->options.tables & MOCK_R2R_INSTANCES) {
        r2r->instances = r2r->begin + plan->instances_at;
        r2r->instances_size = (uint32_t)plan->instances.size;
        mock_write(mock, r2r->instances, plan->instances.data, plan->instances.size);
        write_section(mock, sections, &count, 109, plan->instances_at, plan->instances.size);
    }
    if (plan->resumption_stub_count) {
        write_imports(mock, r2r);
        write_section(mock, sections, &count, 101, plan->imports, R2R_IMPORT_SECTIONS * R2R_IMPORT_SECTION);
    }
    mock_write(mock, r2r->begin + plan->debug_info_at, plan->debug_info.data, plan->debug_info.size);
    write_section(mock, sections, &count, 104, plan->exceptions, write_exceptions(mock, r2r));
    write_section(mock, sections, &count, 105, plan->debug_info_at, plan->debug_info.size);
    mock_write_uint(mock, r2r->header + 12, 4, count);
}

/* .NET 8, 9, 10 and 11; later formats have the runtime's version. */
static unsigned gc_info_version(const struct mock *mock, const struct mock_r2r_options *options)
{
    if (options->major > 26)
        return (unsigned)mock->globals[G_GCInfoVersion];
    return options->major >= 21 ? 5 : options->major >= 11 ? 4 : options->major == 9 && options->minor < 2 ? 2 : 3;
}

/* A function's RUNTIME_FUNCTION, unwind data and expected answer; the GC info of the method follows its first one. */
static void write_function(struct mock *mock, const struct mock_r2r *r2r, uint32_t number, uint64_t begin,
                           uint64_t size, struct mock_function *expected)
{
    uint64_t entry = r2r->functions + (uint64_t)number * mock->sizes[T_RuntimeFunction];
    uint64_t unwind = r2r->plan->unwind + number * (mock_unwind_size(mock) + MOCK_GC_INFO_SIZE);
    uint64_t behind = mock_unwind_write(mock, r2r->begin + unwind, size, expected->cold && !expected->funclet);
    if (r2r->begin + begin == expected->method) {
        unsigned version = gc_info_version(mock, &r2r->plan->options);
        mock_gc_info_write(mock, behind, expected->hot_size + expected->cold_size, version);
        expected->gc_info = behind;
        expected->gc_info_version = version;
    }
    mock_runtime_function(mock, entry, begin, size, unwind);
    expected->begin = r2r->begin + begin;
    expected->end = expected->begin + size;
    expected->unwind_info = entry;
    mock_expect(mock, expected);
}

/* Returns where the next method's cold code begins. */
static uint64_t write_method(struct mock *mock, const struct mock_r2r *r2r, const struct planned_method *method,
                             uint64_t cold)
{
    struct mock_function expected = {
        .code = MOCK_CODE_R2R,
        .method = r2r->begin + method->start,
        .method_desc = method->spec.method_desc,
        .rid = method->spec.rid,
        .debug_info = method->debug_info ? r2r->begin + r2r->plan->debug_info_at + method->debug_info : 0,
        .clauses = method->clauses,
        .clause_count = method->spec.clause_count,
    };
    for (size_t i = 0; i < method->spec.hot_count; i++)
        expected.hot_size += method->sizes[i];
    for (size_t i = 0; i < method->spec.cold_count; i++)
        expected.cold_size += method->sizes[method->spec.hot_count + i];
    expected.cold_start = expected.cold_size ? r2r->begin + cold : 0;
    uint64_t at = method->start;
    for (size_t i = 0; i < method->spec.hot_count; i++) {
        expected.offset = at - method->start;
        expected.funclet = i != 0;
        write_function(mock, r2r, method->hot_function + (uint32_t)i, at, method->sizes[i], &expected);
        at += method->sizes[i];
    }
    expected.cold = true;
    expected.offset = expected.hot_size;
    for (size_t i = 0; i < method->spec.cold_count; i++) {
        uint64_t size = method->sizes[method->spec.hot_count + i];
        /* Only on x64 the runtime takes cold code for a funclet's. */
        expected.funclet = i != 0 && mock->options.unwind == MOCK_UNWIND_END_ADDRESS;
        write_function(mock, r2r, method->cold_function + (uint32_t)i, cold, size, &expected);
        cold += size;
        expected.offset += size;
    }
    return cold;
}

/* The pairs {cold, hot} of the methods that have a cold part. */
static uint32_t write_hot_cold_map(struct mock *mock, struct mock_r2r *r2r)
{
    uint32_t count = 0;
    r2r->hot_cold_map = r2r->begin + r2r->plan->map;
    for (size_t i = 0; i < r2r->plan->methods.count; i++) {
        const struct planned_method *method = &r2r->plan->methods.items[i];
        if (!method->spec.cold_count)
            continue;
        mock_write_uint(mock, r2r->hot_cold_map + count * 4, 4, method->cold_function);
        mock_write_uint(mock, r2r->hot_cold_map + count * 4 + 4, 4, method->hot_function);
        count += 2;
    }
    return count;
}

/* Inserts the prepared methods, starting at a random one. */
static void fill_entry_points(struct mock *mock, struct mock_r2r *r2r)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint32_t buckets = plan->options.bucket_count ? plan->options.bucket_count : 5 + (uint32_t)plan->methods.count;
    mock_hash_map_init(mock, r2r->entry_point_map, buckets);
    size_t first = mock_random(mock, plan->methods.count);
    for (size_t i = 0; i < plan->methods.count; i++) {
        const struct planned_method *method = &plan->methods.items[(first + i) % plan->methods.count];
        if (method->spec.method_desc &&
            !mock_ptr_hash_map_insert(mock, r2r->entry_point_map, r2r->begin + method->start, method->spec.method_desc))
            mock_fail(mock, "%u buckets are too few for the entry points", buckets);
    }
}

static void write_info(struct mock *mock, struct mock_r2r *r2r, uint32_t hot_cold_count)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint64_t composite = r2r->info = mock_object(mock, T_ReadyToRunInfo, 0);
    if (plan->options.composite)
        composite = mock_object(mock, T_ReadyToRunInfo, 0);
    mock_put(mock, composite, F_ReadyToRunInfo_CompositeInfo, composite);
    mock_put(mock, composite, F_ReadyToRunInfo_ReadyToRunHeader, r2r->begin + plan->header);
    r2r->entry_point_map = mock_address_of(mock, composite, F_ReadyToRunInfo_EntryPointToMethodDescMap);
    uint32_t counted = r2r->function_count + (plan->options.sentinel_counted ? R2R_SENTINEL_COUNT : 0);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_CompositeInfo, composite);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_NumRuntimeFunctions, counted);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_RuntimeFunctions, r2r->functions);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_NumHotColdMap, hot_cold_count);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_HotColdMap, hot_cold_count ? r2r->hot_cold_map : 0);
    mock_put(mock, r2r->module, F_Module_ReadyToRunInfo, r2r->info);
    write_directory(mock, r2r, F_ReadyToRunInfo_DebugInfoSection, plan->debug_info_at, plan->debug_info.size);
    write_directory(mock, r2r, F_ReadyToRunInfo_ExceptionInfoSection, plan->exceptions,
                    (plan->method_with_clauses_count + R2R_SENTINEL_COUNT) * mock->sizes[T_ExceptionLookupTableEntry]);
    if (plan->options.thunk_size) {
        write_directory(mock, r2r, F_ReadyToRunInfo_DelayLoadMethodCallThunks, (uint32_t)(r2r->thunks - r2r->begin),
                        r2r->thunks_end - r2r->thunks);
        mock_expect(mock,
                    &(struct mock_function){
                        .begin = r2r->thunks, .end = r2r->thunks_end, .code = MOCK_CODE_THUNK, .method = r2r->thunks});
    }
}

static void write_code(struct mock *mock, struct mock_r2r *r2r)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint64_t cold = plan->end;
    for (size_t i = 0; i < plan->methods.count; i++)
        cold = write_method(mock, r2r, &plan->methods.items[i], cold);
    uint64_t sentinel = r2r->functions + (uint64_t)r2r->function_count * mock->sizes[T_RuntimeFunction];
    mock_put(mock, sentinel, F_RuntimeFunction_BeginAddress, UINT32_MAX);
    mock_put(mock, sentinel, F_RuntimeFunction_UnwindData, 0);
}

void mock_r2r_finish(struct mock_r2r *r2r)
{
    struct mock *mock = r2r ? r2r->mock : NULL;
    if (!mock || mock->failed)
        return;
    struct mock_r2r_plan *plan = r2r->plan;
    if (!mock_r2r_lay_out(r2r))
        return;
    uint32_t size = (uint32_t)r2r->end;
    r2r->begin = mock_map(mock, plan->options.begin, size, MOCK_READ | MOCK_EXECUTE, plan->path, 0);
    r2r->end = r2r->begin + size;
    r2r->thunks += plan->options.thunk_size ? r2r->begin : 0;
    r2r->thunks_end += plan->options.thunk_size ? r2r->begin : 0;
    r2r->functions = r2r->begin + plan->functions;
    r2r->function_count = plan->hot_count + plan->cold_count;
    r2r->first_cold = plan->hot_count;

    struct mock_pe pe = {.size = size,
                         .text = 0x1000,
                         .text_offset = MOCK_PE_HEADERS,
                         .clr = plan->clr,
                         .metadata = plan->metadata_at,
                         .metadata_size = (uint32_t)plan->options.metadata_size,
                         .managed_native = plan->header,
                         .managed_native_size = R2R_HEADER};
    mock_pe_write(mock, r2r->begin, &pe, false);
    mock_write(mock, r2r->begin + plan->metadata_at, plan->metadata, plan->options.metadata_size);
    if (plan->options.metadata)
        mock_module_place(mock, r2r->module, r2r->begin, size, false);
    write_header(mock, r2r);
    write_code(mock, r2r);
    write_info(mock, r2r, write_hot_cold_map(mock, r2r));
    fill_entry_points(mock, r2r);
    r2r->section =
        mock_section_add(mock, &(struct mock_section){.begin = r2r->begin, .end = r2r->end, .r2r_module = r2r->module});
}

uint64_t mock_r2r_start(const struct mock_r2r *r2r, size_t number)
{
    return r2r && number < r2r->plan->methods.count ? r2r->begin + r2r->plan->methods.items[number].start : 0;
}
