/*
 * r2r_plan.c: plans ReadyToRun images: collects methods, builds tables, then lays out headers and tables, hot code,
 * thunks, cold code.
 *
 * Runtime functions are numbered as in a real image: all hot functions in the order of their methods, then all cold
 * ones in the same order, then a sentinel that begins at 0xffffffff.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md.
 */
#include "mocktarget/r2r_plan.h"

enum { CODE_ALIGNMENT = 16 };

void mock_images_free(struct mock *mock)
{
    for (; mock->images; mock->images = mock->images->next) {
        planned_methods_deinit(&mock->images->plan->methods);
        free(mock->images->plan->methoddefs.data);
        free(mock->images->plan->instances.data);
        free(mock->images->plan->debug_info.data);
    }
}

struct mock_r2r *mock_r2r_create(struct mock *mock, const struct mock_r2r_options *options)
{
    const char *path = options->path ? options->path : "/mock/r2r.dll";
    struct mock_r2r_plan *plan = mock_keep(mock, &(struct mock_r2r_plan){.options = *options}, sizeof *plan);
    struct mock_r2r *r2r = mock_keep(mock, &(struct mock_r2r){.mock = mock, .plan = plan}, sizeof *r2r);
    if (!r2r)
        return NULL;
    r2r->next = mock->images;
    mock->images = r2r;
    plan->path = mock_keep(mock, path, strlen(path) + 1);
    plan->metadata = mock_keep(mock, options->metadata, options->metadata_size);
    if (!options->major) {
        static const uint16_t versions[][2] = {{16, 0}, {10, 1}, {9, 1}, {11, 0}, {99, 0}};
        size_t i = mock_random(mock, ARRAY_SIZE(versions));
        plan->options.major = versions[i][0];
        plan->options.minor = versions[i][1];
    }
    r2r->module = mock_module_object(mock, path);
    return mock->failed ? NULL : r2r;
}

size_t mock_r2r_method(struct mock_r2r *r2r, const struct mock_r2r_method *method)
{
    struct mock *mock = r2r ? r2r->mock : NULL;
    if (!mock || mock->failed)
        return 0;
    if (mock->options.no_funclets && (method->hot_count > 1 || method->cold_count))
        return mock_fail(mock, "a method of several functions, without funclets");
    if (!method->hot_count)
        return mock_fail(mock, "a method without code");
    struct planned_method planned = {.spec = *method};
    planned.sizes = arena_allocate(&mock->kept, (method->hot_count + method->cold_count) * sizeof *planned.sizes);
    planned.instance = mock_keep(mock, method->instance, method->instance_size);
    planned.clauses = mock_keep(mock, method->clauses, method->clause_count * sizeof *method->clauses);
    if (!mock_stored(mock, planned.sizes && planned.instance && planned.clauses) ||
        !mock_stored(mock, planned_methods_append(&r2r->plan->methods, planned)))
        return 0;
    for (size_t i = 0; i < method->hot_count + method->cold_count; i++) {
        uint64_t size = i < method->hot_count ? method->hot[i] : method->cold[i - method->hot_count];
        planned.sizes[i] = align_up(MAX(size, UINT64_C(1)), mock_length_unit(mock));
    }
    r2r->plan->method_with_clauses_count += method->clause_count != 0;
    r2r->plan->clause_count += method->clause_count;
    r2r->plan->resumption_stub_count += method->resumption_stub;
    r2r->plan->hot_count += (uint32_t)method->hot_count;
    r2r->plan->cold_count += (uint32_t)method->cold_count;
    return r2r->plan->methods.count - 1;
}

/* ---- Tables ---- */

/* The number of the runtime function as both tables store it. Fixups may precede it. */
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
    for (size_t i = 0; i < plan->methods.count; i++)
        last = MAX(last, plan->methods.items[i].spec.rid);
    return last;
}

static void build_methoddefs(struct mock *mock, struct mock_r2r_plan *plan)
{
    uint32_t count = last_rid(plan);
    struct mock_element *elements = calloc(count + 1, sizeof *elements);
    struct mock_bytes *entries = calloc(count + 1, sizeof *entries);
    for (size_t i = 0; elements && entries && i < plan->methods.count; i++) {
        uint32_t rid = plan->methods.items[i].spec.rid;
        if (!rid)
            continue;
        put_entry(mock, &entries[rid - 1], &plan->methods.items[i]);
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
    struct mock_element *elements = calloc(plan->methods.count + 1, sizeof *elements);
    struct mock_bytes *entries = calloc(plan->methods.count + 1, sizeof *entries);
    size_t count = 0;
    for (size_t i = 0; elements && entries && i < plan->methods.count; i++) {
        if (!plan->methods.items[i].spec.instance)
            continue;
        mock_bytes_put(&entries[count], plan->methods.items[i].instance, plan->methods.items[i].spec.instance_size);
        put_entry(mock, &entries[count], &plan->methods.items[i]);
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

/* An element of the debug info: a distance in its longest form of five bytes, then bytes that no other element has. */
enum { DEBUG_ELEMENT = 12, DEBUG_DISTANCE = 5 };

static void make_debug_element(uint8_t *element, uint32_t number)
{
    static const uint8_t zero[DEBUG_DISTANCE] = {0x0f};
    memcpy(element, zero, sizeof zero);
    store_u32(element + DEBUG_DISTANCE, number, false);
    memcpy(element + DEBUG_DISTANCE + 4, "DBG", 3);
}

/*
 * Debug info by a method's first function: an element is a distance back to an equal blob, or 0 and then its own blob.
 * The blobs here are a few bytes that are not decoded.
 */
static void build_debug_info(struct mock *mock, struct mock_r2r_plan *plan)
{
    struct mock_element *elements = calloc(plan->hot_count + 1, sizeof *elements);
    uint8_t *data = calloc(plan->hot_count + 1, DEBUG_ELEMENT);
    for (size_t i = 0; elements && data && i < plan->methods.count; i++) {
        uint32_t function = plan->methods.items[i].hot_function;
        make_debug_element(data + function * DEBUG_ELEMENT, function);
        if (!plan->methods.items[i].spec.no_debug_info)
            elements[function] = (struct mock_element){data + function * DEBUG_ELEMENT, DEBUG_ELEMENT, 0};
    }
    if (elements && data)
        mock_native_array(&plan->debug_info, elements, plan->hot_count, 3);
    plan->debug_info.failed |= !elements || !data;
    uint32_t earlier = 0;
    uint8_t *from = plan->debug_info.data; /* elements are in the order of functions, as most methods are */
    for (size_t i = 0; !plan->debug_info.failed && i < plan->methods.count; i++) {
        if (plan->methods.items[i].spec.no_debug_info)
            continue;
        const uint8_t *element = data + plan->methods.items[i].hot_function * DEBUG_ELEMENT;
        uint8_t *place =
            memmem(from, (size_t)(plan->debug_info.data + plan->debug_info.size - from), element, DEBUG_ELEMENT);
        if (!place)
            place = memmem(plan->debug_info.data, plan->debug_info.size, element, DEBUG_ELEMENT);
        from = place;
        uint32_t at = (uint32_t)(place - plan->debug_info.data);
        bool shared = earlier && at > earlier && mock_random(mock, 3) == 1;
        if (shared)
            store_u32(place + 1, at - earlier, false);
        else
            earlier = at + DEBUG_DISTANCE;
        plan->methods.items[i].debug_info = earlier;
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
    for (size_t i = 0; i < plan->methods.count; i++) {
        struct planned_method *method = &plan->methods.items[i];
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
    plan->end = at; /* of hot code; cold code follows */
    for (size_t i = 0; i < plan->methods.count; i++)
        for (size_t j = 0; j < plan->methods.items[i].spec.cold_count; j++)
            at += (uint32_t)plan->methods.items[i].sizes[plan->methods.items[i].spec.hot_count + j];
    r2r->end = align_up(at + 1, 4096);
}

static void place_tables(struct mock *mock, struct mock_r2r *r2r)
{
    struct mock_r2r_plan *plan = r2r->plan;
    uint32_t at = 0x1000, functions = plan->hot_count + plan->cold_count + R2R_SENTINEL_COUNT;
    plan->clr = reserve(&at, MOCK_CLR_HEADER, 8);
    plan->metadata_at = reserve(&at, plan->options.metadata_size, 4);
    plan->header =
        reserve(&at, R2R_HEADER + R2R_SECTION_MAX * R2R_SECTION + R2R_COMPONENT + R2R_CORE_HEADER + R2R_SECTION, 4);
    plan->methoddefs_at = reserve(&at, plan->methoddefs.size, 1);
    plan->instances_at = reserve(&at, plan->instances.size, 1);
    plan->debug_info_at = reserve(&at, plan->debug_info.size, 1);
    plan->exceptions = reserve(
        &at, (plan->method_with_clauses_count + R2R_SENTINEL_COUNT) * mock->sizes[T_ExceptionLookupTableEntry], 4);
    plan->clauses = reserve(&at, plan->clause_count * mock_clause_size(mock, true), 4);
    uint64_t cells = R2R_OTHER_CELLS + plan->resumption_stub_count;
    uint64_t imports = R2R_IMPORT_SECTIONS * R2R_IMPORT_SECTION + cells * (4 + R2R_SIGNATURE);
    plan->imports = reserve(&at, plan->resumption_stub_count ? imports : 0, 4);
    plan->functions = reserve(&at, (uint64_t)functions * mock->sizes[T_RuntimeFunction], 4);
    /* Real images do not align this table. */
    plan->map = reserve(&at, 8 * plan->methods.count + 1, 1) + (uint32_t)mock_random(mock, 2);
    plan->unwind = reserve(&at, functions * (mock_unwind_size(mock) + MOCK_GC_INFO_SIZE), 4);
    plan->code = (uint32_t)align_up(at, 4096);
}

bool mock_r2r_lay_out(struct mock_r2r *r2r)
{
    struct mock *mock = r2r->mock;
    struct mock_r2r_plan *plan = r2r->plan;
    uint32_t hot = 0;
    for (size_t i = 0; i < plan->methods.count; i++) {
        plan->methods.items[i].hot_function = hot;
        hot += (uint32_t)plan->methods.items[i].spec.hot_count;
    }
    if (plan->options.tables & MOCK_R2R_METHODDEFS)
        build_methoddefs(mock, plan);
    if (plan->options.tables & MOCK_R2R_INSTANCES)
        build_instances(mock, plan);
    build_debug_info(mock, plan);
    if (plan->methoddefs.failed || plan->instances.failed || plan->debug_info.failed)
        return mock_fail(mock, "out of memory");
    place_tables(mock, r2r);
    place_code(mock, r2r);
    return true;
}
