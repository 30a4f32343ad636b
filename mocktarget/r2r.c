/*
 * r2r.c: ReadyToRun images: methods are collected, then laid out: headers and tables, hot code, thunks, cold code.
 *
 * Runtime functions are numbered as in a real image: all hot functions in the order of their methods, then all cold
 * ones in the same order, then a sentinel that begins at 0xffffffff. The map from entry points to MethodDescs holds the
 * prepared methods alone.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; src/coreclr/vm/readytoruninfo.cpp.
 */
#include "mocktarget/mock.h"

enum { HEADER = 16, SECTION = 12, SECTION_MAX = 6, CODE_ALIGNMENT = 16, SENTINEL_COUNT = 1 };

enum { COMPONENT = 16, CORE_HEADER = 8 }; /* an entry of section 115, and the header with sections that it leads to */

/* A method as it was asked for, with copies of everything. */
struct planned_method {
    struct mock_r2r_method spec;
    uint64_t *sizes; /* hot ones, then cold ones */
    uint8_t *instance;
    const struct mock_clause *clauses;
    uint32_t hot_function, cold_function; /* the first ones' numbers */
    uint32_t debug_info;                  /* in its section */
    uint64_t start;                       /* relative to the image */
};

struct mock_r2r_plan {
    struct mock_r2r_options options;
    char *path;
    uint8_t *metadata;
    struct planned_method *methods;
    size_t count, capacity;
    uint32_t hot_count, cold_count;
    struct mock_bytes methoddefs, instances, debug_info;
    size_t method_with_clauses_count, clause_count;
    uint32_t clr, metadata_at, header, methoddefs_at, instances_at, debug_info_at, exceptions, clauses, functions, map,
        unwind, code, end; /* RVAs */
};

void mock_images_free(struct mock *mock)
{
    while (mock->images) {
        struct mock_r2r *r2r = mock->images;
        mock->images = r2r->next;
        for (size_t i = 0; r2r->plan && i < r2r->plan->count; i++) {
            free(r2r->plan->methods[i].sizes);
            free(r2r->plan->methods[i].instance);
        }
        if (r2r->plan) {
            free(r2r->plan->methods);
            free(r2r->plan->path);
            free(r2r->plan->metadata);
            free(r2r->plan->methoddefs.data);
            free(r2r->plan->instances.data);
            free(r2r->plan->debug_info.data);
        }
        free(r2r->plan);
        free(r2r);
    }
}

struct mock_r2r *mock_r2r_create(struct mock *mock, const struct mock_r2r_options *options)
{
    const char *path = options->path ? options->path : "/mock/r2r.dll";
    struct mock_r2r *r2r = mock->failed ? NULL : calloc(1, sizeof *r2r);
    if (!r2r) {
        mock_fail(mock, "out of memory");
        return NULL;
    }
    r2r->next = mock->images;
    mock->images = r2r;
    r2r->mock = mock;
    r2r->plan = calloc(1, sizeof *r2r->plan);
    if (r2r->plan) {
        r2r->plan->options = *options;
        r2r->plan->path = strdup(path);
        r2r->plan->metadata = malloc(options->metadata_size + 1);
    }
    if (!r2r->plan || !r2r->plan->path || !r2r->plan->metadata) {
        mock_fail(mock, "out of memory");
        return NULL;
    }
    if (!options->major) {
        static const uint16_t versions[][2] = {{16, 0}, {10, 1}, {9, 1}, {11, 0}, {99, 0}};
        size_t i = mock_random(mock, ARRAY_SIZE(versions));
        r2r->plan->options.major = versions[i][0];
        r2r->plan->options.minor = versions[i][1];
    }
    if (options->metadata)
        memcpy(r2r->plan->metadata, options->metadata, options->metadata_size);
    r2r->module = mock_module_object(mock, path);
    return r2r;
}

size_t mock_r2r_method(struct mock_r2r *r2r, const struct mock_r2r_method *method)
{
    struct mock *mock = r2r ? r2r->mock : NULL;
    if (!mock ||
        !mock_grow(mock, &r2r->plan->methods, r2r->plan->count, &r2r->plan->capacity, sizeof *r2r->plan->methods))
        return 0;
    struct planned_method planned = {.spec = *method};
    uint64_t unit = mock_length_unit(mock);
    planned.sizes = calloc(method->hot_count + method->cold_count + 1, sizeof *planned.sizes);
    planned.instance = malloc(method->instance_size + 1);
    if (mock->options.no_funclets && (method->hot_count > 1 || method->cold_count))
        mock_fail(mock, "a method of several functions, without funclets");
    if (!planned.sizes || !planned.instance || !method->hot_count) {
        free(planned.sizes);
        free(planned.instance);
        return mock_fail(mock, method->hot_count ? "out of memory" : "a method without code");
    }
    for (size_t i = 0; i < method->hot_count + method->cold_count; i++) {
        uint64_t size = i < method->hot_count ? method->hot[i] : method->cold[i - method->hot_count];
        planned.sizes[i] = align_up(MAX(size, UINT64_C(1)), unit);
    }
    if (method->instance)
        memcpy(planned.instance, method->instance, method->instance_size);
    planned.clauses = mock_keep(mock, method->clauses, method->clause_count * sizeof *method->clauses);
    r2r->plan->method_with_clauses_count += method->clause_count != 0;
    r2r->plan->clause_count += method->clause_count;
    r2r->plan->hot_count += (uint32_t)method->hot_count;
    r2r->plan->cold_count += (uint32_t)method->cold_count;
    r2r->plan->methods[r2r->plan->count] = planned;
    return r2r->plan->count++;
}

/* ---- Tables ---- */

/* The number of the runtime function, as both tables keep it; fixups may stand somewhere in front of it. */
static void put_entry(struct mock *mock, struct mock_bytes *bytes, const struct planned_method *method)
{
    if (!method->spec.fixups) {
        mock_native_unsigned(bytes, method->hot_function << 1);
    } else if (mock_random(mock, 2)) {
        mock_native_unsigned(bytes, method->hot_function << 2 | 3);
        mock_native_unsigned(bytes, 1);
    } else {
        mock_native_unsigned(bytes, method->hot_function << 2 | 1);
    }
}

static uint32_t last_rid(const struct mock_r2r_plan *plan)
{
    uint32_t last = 0;
    for (size_t i = 0; i < plan->count; i++)
        last = MAX(last, plan->methods[i].spec.rid);
    return last;
}

static void build_methoddefs(struct mock *mock, struct mock_r2r_plan *plan)
{
    uint32_t count = last_rid(plan);
    struct mock_element *elements = calloc(count + 1, sizeof *elements);
    struct mock_bytes *entries = calloc(count + 1, sizeof *entries);
    for (size_t i = 0; elements && entries && i < plan->count; i++) {
        uint32_t rid = plan->methods[i].spec.rid;
        if (!rid)
            continue;
        put_entry(mock, &entries[rid - 1], &plan->methods[i]);
        elements[rid - 1] = (struct mock_element){entries[rid - 1].data, entries[rid - 1].size, 0};
    }
    if (elements && entries)
        mock_native_array(&plan->methoddefs, elements, count, 3);
    plan->methoddefs.failed |= !elements || !entries;
    for (uint32_t i = 0; entries && i < count; i++)
        free(entries[i].data);
    free(entries);
    free(elements);
}

static void build_instances(struct mock *mock, struct mock_r2r_plan *plan)
{
    struct mock_element *elements = calloc(plan->count + 1, sizeof *elements);
    struct mock_bytes *entries = calloc(plan->count + 1, sizeof *entries);
    size_t count = 0;
    for (size_t i = 0; elements && entries && i < plan->count; i++) {
        if (!plan->methods[i].spec.instance)
            continue;
        mock_bytes_put(&entries[count], plan->methods[i].instance, plan->methods[i].spec.instance_size);
        put_entry(mock, &entries[count], &plan->methods[i]);
        elements[count] =
            (struct mock_element){entries[count].data, entries[count].size, (uint32_t)mock_random(mock, UINT32_MAX)};
        count++;
    }
    if (elements && entries)
        mock_native_hashtable(&plan->instances, elements, count, (unsigned)mock_random(mock, 4), 3);
    plan->instances.failed |= !elements || !entries;
    for (size_t i = 0; entries && i < count; i++)
        free(entries[i].data);
    free(entries);
    free(elements);
}

/* An element of the debug info: a distance in the five bytes of its longest form, then what tells it from others. */
enum { DEBUG_ELEMENT = 12, DEBUG_DISTANCE = 5 };

static void make_debug_element(uint8_t *element, uint32_t number)
{
    static const uint8_t zero[DEBUG_DISTANCE] = {0x0f};
    memcpy(element, zero, sizeof zero);
    store_u32(element + DEBUG_DISTANCE, number, false);
    memcpy(element + DEBUG_DISTANCE + 4, "DBG", 3);
}

/*
 * Debug info by a method's first function: an element is a distance back to the blob of an equal one, or 0 and then its
 * own blob. The blobs here are a few bytes that nobody decodes.
 */
static void build_debug_info(struct mock *mock, struct mock_r2r_plan *plan)
{
    struct mock_element *elements = calloc(plan->hot_count + 1, sizeof *elements);
    uint8_t *data = calloc(plan->hot_count + 1, DEBUG_ELEMENT);
    for (size_t i = 0; elements && data && i < plan->count; i++) {
        uint32_t function = plan->methods[i].hot_function;
        make_debug_element(data + function * DEBUG_ELEMENT, function);
        if (!plan->methods[i].spec.no_debug_info)
            elements[function] = (struct mock_element){data + function * DEBUG_ELEMENT, DEBUG_ELEMENT, 0};
    }
    if (elements && data)
        mock_native_array(&plan->debug_info, elements, plan->hot_count, 3);
    plan->debug_info.failed |= !elements || !data;
    uint32_t earlier = 0;
    for (size_t i = 0; !plan->debug_info.failed && i < plan->count; i++) {
        if (plan->methods[i].spec.no_debug_info)
            continue;
        uint8_t *place = memmem(plan->debug_info.data, plan->debug_info.size,
                                data + plan->methods[i].hot_function * DEBUG_ELEMENT, DEBUG_ELEMENT);
        uint32_t at = (uint32_t)(place - plan->debug_info.data);
        bool shared = earlier && at > earlier && mock_random(mock, 3) == 1;
        if (shared)
            store_u32(place + 1, at - earlier, false);
        else
            earlier = at + DEBUG_DISTANCE;
        plan->methods[i].debug_info = earlier;
    }
    free(elements);
    free(data);
}

/* ---- Layout ---- */

static uint32_t reserve(uint32_t *at, uint64_t size, uint32_t alignment)
{
    uint32_t place = (uint32_t)align_up(*at, alignment);
    *at = place + (uint32_t)size;
    return place;
}

/* Numbers the functions and places the code, whose size is also the image's. */
static void place_code(struct mock *mock, struct mock_r2r *r2r)
{
    struct mock_r2r_plan *plan = r2r->plan;
    uint32_t at = plan->code, hot = 0, cold = plan->hot_count;
    for (size_t i = 0; i < plan->count; i++) {
        struct planned_method *method = &plan->methods[i];
        at = (uint32_t)align_up(at + method->spec.skip, CODE_ALIGNMENT);
        method->start = at;
        method->hot_function = hot;
        method->cold_function = cold;
        hot += (uint32_t)method->spec.hot_count;
        cold += (uint32_t)method->spec.cold_count;
        for (size_t j = 0; j < method->spec.hot_count; j++)
            at += (uint32_t)method->sizes[j];
    }
    if (plan->options.thunk_size) {
        r2r->thunks = reserve(&at, plan->options.thunk_size, CODE_ALIGNMENT);
        r2r->thunks_end = at;
    }
    at = (uint32_t)align_up(at + mock_random(mock, 64), CODE_ALIGNMENT);
    plan->end = at; /* of what is hot; cold code follows */
    for (size_t i = 0; i < plan->count; i++)
        for (size_t j = 0; j < plan->methods[i].spec.cold_count; j++)
            at += (uint32_t)plan->methods[i].sizes[plan->methods[i].spec.hot_count + j];
    r2r->end = align_up(at + 1, 4096);
}

static void place_tables(struct mock *mock, struct mock_r2r *r2r)
{
    struct mock_r2r_plan *plan = r2r->plan;
    uint32_t at = 0x1000, functions = plan->hot_count + plan->cold_count + SENTINEL_COUNT;
    plan->clr = reserve(&at, MOCK_CLR_HEADER, 8);
    plan->metadata_at = reserve(&at, plan->options.metadata_size, 4);
    plan->header = reserve(&at, HEADER + SECTION_MAX * SECTION + COMPONENT + CORE_HEADER + SECTION, 4);
    plan->methoddefs_at = reserve(&at, plan->methoddefs.size, 1);
    plan->instances_at = reserve(&at, plan->instances.size, 1);
    plan->debug_info_at = reserve(&at, plan->debug_info.size, 1);
    plan->exceptions =
        reserve(&at, (plan->method_with_clauses_count + SENTINEL_COUNT) * mock->sizes[T_ExceptionLookupTableEntry], 4);
    plan->clauses = reserve(&at, plan->clause_count * mock_clause_size(mock, true), 4);
    plan->functions = reserve(&at, (uint64_t)functions * mock->sizes[T_RuntimeFunction], 4);
    /* Real images do not align this one. */
    plan->map = reserve(&at, 8 * plan->count + 1, 1) + (uint32_t)mock_random(mock, 2);
    plan->unwind = reserve(&at, functions * (mock_unwind_size(mock) + MOCK_GC_INFO_SIZE), 4);
    plan->code = (uint32_t)align_up(at, 4096);
}

/* ---- Contents ---- */

/* Appends to a list of sections, whose number the caller writes. */
static void write_section(struct mock *mock, uint64_t sections, uint32_t *count, uint32_t type, uint32_t rva,
                          size_t size)
{
    uint64_t at = sections + (uint64_t)*count * SECTION;
    mock_write_uint(mock, at, 4, type);
    mock_write_uint(mock, at + 4, 4, rva);
    mock_write_uint(mock, at + 8, 4, size);
    ++*count;
}

/* A composite image's one component, which keeps its MethodDefs in a header of its own. */
static void write_component(struct mock *mock, const struct mock_r2r *r2r, uint32_t *count)
{
    uint32_t list = r2r->plan->header + HEADER + SECTION_MAX * SECTION, core = list + COMPONENT, sections = 0;
    write_section(mock, r2r->header + HEADER, count, 115, list, COMPONENT);
    mock_write_uint(mock, r2r->begin + list, 4, r2r->plan->clr);
    mock_write_uint(mock, r2r->begin + list + 4, 4, MOCK_CLR_HEADER);
    mock_write_uint(mock, r2r->begin + list + 8, 4, core);
    mock_write_uint(mock, r2r->begin + list + 12, 4, CORE_HEADER + SECTION);
    write_section(mock, r2r->begin + core + CORE_HEADER, &sections, 103, r2r->plan->methoddefs_at,
                  r2r->plan->methoddefs.size);
    mock_write_uint(mock, r2r->begin + core, 4, 0);
    mock_write_uint(mock, r2r->begin + core + 4, 4, sections);
}

/* Section 104: the methods that have clauses, by their starts, each with where those are; a sentinel ends the last. */
static size_t write_exceptions(struct mock *mock, const struct mock_r2r *r2r)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint64_t entry = r2r->begin + plan->exceptions;
    uint32_t clauses = plan->clauses;
    for (size_t i = 0; i < plan->count; i++) {
        const struct planned_method *method = &plan->methods[i];
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

/* The runtime keeps a pointer to the directory of a section, where the target describes that. */
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
    uint64_t sections = r2r->header + HEADER;
    write_section(mock, sections, &count, 102, plan->functions, plan->hot_count + plan->cold_count);
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
    mock_write(mock, r2r->begin + plan->debug_info_at, plan->debug_info.data, plan->debug_info.size);
    write_section(mock, sections, &count, 104, plan->exceptions, write_exceptions(mock, r2r));
    write_section(mock, sections, &count, 105, plan->debug_info_at, plan->debug_info.size);
    mock_write_uint(mock, r2r->header + 12, 4, count);
}

/* .NET 8, 9, and 10 and later. */
static unsigned gc_info_version(const struct mock_r2r_options *options)
{
    return options->major >= 11 ? 4 : options->major == 9 && options->minor < 2 ? 2 : 3;
}

/* A function's RUNTIME_FUNCTION, unwind data and fact; the method's first one has its GC info behind it. */
static void write_function(struct mock *mock, const struct mock_r2r *r2r, uint32_t number, uint64_t begin,
                           uint64_t size, struct mock_function *fact)
{
    uint64_t entry = r2r->functions + (uint64_t)number * mock->sizes[T_RuntimeFunction];
    uint64_t unwind = r2r->plan->unwind + number * (mock_unwind_size(mock) + MOCK_GC_INFO_SIZE);
    uint64_t behind = mock_unwind_write(mock, r2r->begin + unwind, size, fact->cold && !fact->funclet);
    if (r2r->begin + begin == fact->method) {
        unsigned version = gc_info_version(&r2r->plan->options);
        mock_gc_info_write(mock, behind, fact->hot_size + fact->cold_size, version);
        fact->gc_info = behind;
        fact->gc_info_version = version;
    }
    mock_runtime_function(mock, entry, begin, size, unwind);
    fact->begin = r2r->begin + begin;
    fact->end = fact->begin + size;
    fact->unwind_info = entry;
    mock_fact(mock, fact);
}

/* Returns where the next method's cold code begins. */
static uint64_t write_method(struct mock *mock, const struct mock_r2r *r2r, const struct planned_method *method,
                             uint64_t cold)
{
    struct mock_function fact = {
        .code = MOCK_CODE_R2R,
        .method = r2r->begin + method->start,
        .method_desc = method->spec.method_desc,
        .rid = method->spec.rid,
        .debug_info = method->debug_info ? r2r->begin + r2r->plan->debug_info_at + method->debug_info : 0,
        .clauses = method->clauses,
        .clause_count = method->spec.clause_count,
    };
    for (size_t i = 0; i < method->spec.hot_count; i++)
        fact.hot_size += method->sizes[i];
    for (size_t i = 0; i < method->spec.cold_count; i++)
        fact.cold_size += method->sizes[method->spec.hot_count + i];
    fact.cold_start = fact.cold_size ? r2r->begin + cold : 0;
    uint64_t at = method->start;
    for (size_t i = 0; i < method->spec.hot_count; i++) {
        fact.offset = at - method->start;
        fact.funclet = i != 0;
        write_function(mock, r2r, method->hot_function + (uint32_t)i, at, method->sizes[i], &fact);
        at += method->sizes[i];
    }
    fact.cold = true;
    fact.offset = fact.hot_size;
    for (size_t i = 0; i < method->spec.cold_count; i++) {
        uint64_t size = method->sizes[method->spec.hot_count + i];
        /* The runtime takes cold code for a funclet's on x64 alone. */
        fact.funclet = i != 0 && mock->options.unwind == MOCK_UNWIND_END_ADDRESS;
        write_function(mock, r2r, method->cold_function + (uint32_t)i, cold, size, &fact);
        cold += size;
        fact.offset += size;
    }
    return cold;
}

/* The pairs {cold, hot} of the methods that are split. */
static uint32_t write_hot_cold_map(struct mock *mock, struct mock_r2r *r2r)
{
    uint32_t count = 0;
    r2r->hot_cold_map = r2r->begin + r2r->plan->map;
    for (size_t i = 0; i < r2r->plan->count; i++) {
        const struct planned_method *method = &r2r->plan->methods[i];
        if (!method->spec.cold_count)
            continue;
        mock_write_uint(mock, r2r->hot_cold_map + count * 4, 4, method->cold_function);
        mock_write_uint(mock, r2r->hot_cold_map + count * 4 + 4, 4, method->hot_function);
        count += 2;
    }
    return count;
}

/* The prepared methods, in an order that is not theirs. */
static void fill_entry_points(struct mock *mock, struct mock_r2r *r2r)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint32_t buckets = plan->options.bucket_count ? plan->options.bucket_count : 5 + (uint32_t)plan->count;
    mock_hash_map_init(mock, r2r->entry_point_map, buckets);
    size_t first = mock_random(mock, plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        const struct planned_method *method = &plan->methods[(first + i) % plan->count];
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
    uint32_t counted = r2r->function_count + (plan->options.sentinel_counted ? SENTINEL_COUNT : 0);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_CompositeInfo, composite);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_NumRuntimeFunctions, counted);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_RuntimeFunctions, r2r->functions);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_NumHotColdMap, hot_cold_count);
    mock_put(mock, r2r->info, F_ReadyToRunInfo_HotColdMap, hot_cold_count ? r2r->hot_cold_map : 0);
    mock_put(mock, r2r->module, F_Module_ReadyToRunInfo, r2r->info);
    write_directory(mock, r2r, F_ReadyToRunInfo_DebugInfoSection, plan->debug_info_at, plan->debug_info.size);
    write_directory(mock, r2r, F_ReadyToRunInfo_ExceptionInfoSection, plan->exceptions,
                    (plan->method_with_clauses_count + SENTINEL_COUNT) * mock->sizes[T_ExceptionLookupTableEntry]);
    if (plan->options.thunk_size) {
        write_directory(mock, r2r, F_ReadyToRunInfo_DelayLoadMethodCallThunks, (uint32_t)(r2r->thunks - r2r->begin),
                        r2r->thunks_end - r2r->thunks);
        mock_fact(mock,
                  &(struct mock_function){
                      .begin = r2r->thunks, .end = r2r->thunks_end, .code = MOCK_CODE_THUNK, .method = r2r->thunks});
    }
}

static void write_code(struct mock *mock, struct mock_r2r *r2r)
{
    const struct mock_r2r_plan *plan = r2r->plan;
    uint64_t cold = plan->end;
    for (size_t i = 0; i < plan->count; i++)
        cold = write_method(mock, r2r, &plan->methods[i], cold);
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
    uint32_t hot = 0;
    for (size_t i = 0; i < plan->count; i++) {
        plan->methods[i].hot_function = hot;
        hot += (uint32_t)plan->methods[i].spec.hot_count;
    }
    if (plan->options.tables & MOCK_R2R_METHODDEFS)
        build_methoddefs(mock, plan);
    if (plan->options.tables & MOCK_R2R_INSTANCES)
        build_instances(mock, plan);
    build_debug_info(mock, plan);
    if (plan->methoddefs.failed || plan->instances.failed || plan->debug_info.failed) {
        mock_fail(mock, "out of memory");
        return;
    }
    place_tables(mock, r2r);
    place_code(mock, r2r);
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
                         .managed_native_size = HEADER};
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
    return r2r && number < r2r->plan->count ? r2r->begin + r2r->plan->methods[number].start : 0;
}
