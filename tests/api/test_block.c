/*
 * test_block.c: every question of the ExecutionManager contract about every function of a sample process, over widths,
 * byte orders, versions, layouts and carriers; and each with data that it needs removed.
 */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

enum { VERSIONS = 3, SEEDS = CARRIER_COUNT, COMBINATIONS = ARCH_COUNT * VERSIONS * SEEDS };

struct opened {
    struct sample_process sample;
    const struct mock_function *facts;
    size_t fact_count;
    struct cdacq_target *target;
    struct cdacq_session *session;
};

/* The loop index selects architecture, contract version and seed; the seed selects the carrier. */
static struct sample_process sample_of(int i)
{
    static const unsigned versions[VERSIONS] = {1, 2, MOCK_NET_11};
    return sample_build(i % ARCH_COUNT, (uint64_t)(i / ARCH_COUNT / VERSIONS), versions[i / ARCH_COUNT % VERSIONS],
                        true);
}

static struct opened open_sample(struct sample_process sample, int i)
{
    struct opened opened = {.sample = sample};
    mock_publish(opened.sample.mock, NULL);
    opened.facts = mock_functions(opened.sample.mock, &opened.fact_count);
    opened.target = mock_open(opened.sample.mock, i / ARCH_COUNT / VERSIONS % mock_carriers(), NULL);
    opened.session = mock_session(opened.target);
    return opened;
}

static void close_sample(struct opened *opened)
{
    mock_check(opened->sample.mock);
    cdacq_session_destroy(opened->session);
    cdacq_target_close(opened->target);
    sample_destroy(&opened->sample);
}

static bool is_method(const struct mock_function *fact)
{
    return fact->code == MOCK_CODE_JIT || fact->code == MOCK_CODE_R2R || fact->code == MOCK_CODE_INTERPRETER;
}

#define expect(condition, ip)                                                                             \
    do {                                                                                                  \
        if (!(condition))                                                                                 \
            ck_abort_msg("0x%llx: not so: %s (%s)", (unsigned long long)(ip), #condition, error.message); \
    } while (0)

struct clause_check {
    const struct mock_function *fact;
    size_t count;
    bool same;
};

static int check_clause(const struct cdacq_exception_clause *clause, void *context)
{
    static const enum cdacq_clause_kind kinds[] = {
        [MOCK_CLAUSE_TYPED] = CDACQ_CLAUSE_TYPED,
        [MOCK_CLAUSE_FILTER] = CDACQ_CLAUSE_FILTER,
        [MOCK_CLAUSE_FINALLY] = CDACQ_CLAUSE_FINALLY,
        [MOCK_CLAUSE_FAULT] = CDACQ_CLAUSE_FAULT,
    };
    struct clause_check *check = context;
    if (check->count >= check->fact->clause_count)
        return 1;
    const struct mock_clause *expected = &check->fact->clauses[check->count++];
    bool typed = !(expected->flags & 7), cached = expected->flags & MOCK_CLAUSE_CACHED_CLASS;
    check->same &= clause->kind == kinds[expected->flags & 7] && clause->flags == expected->flags &&
                   clause->duplicated == !!(expected->flags & MOCK_CLAUSE_DUPLICATED) &&
                   clause->try_start == expected->try_start && clause->try_end == expected->try_end &&
                   clause->handler_start == expected->handler_start && clause->handler_end == expected->handler_end &&
                   clause->filter_offset == (clause->kind == CDACQ_CLAUSE_FILTER ? expected->what : 0) &&
                   clause->class_token == (typed && !cached ? expected->what : 0) &&
                   clause->type_handle == (typed && cached ? expected->what : 0);
    return 0;
}

static bool is_filter(const struct mock_function *fact)
{
    for (size_t i = 0; fact->funclet && i < fact->clause_count; i++)
        if (fact->clauses[i].flags & MOCK_CLAUSE_FILTER && fact->clauses[i].what == fact->offset)
            return true;
    return false;
}

/* Checks a block's fields by themselves. */
static void check_handle(const struct opened *opened, const struct cdacq_block *block, const struct mock_function *fact,
                         uint64_t ip)
{
    struct cdacq_error error = {0};
    expect(cdacq_block_get_method_desc(block) == fact->method_desc, ip);
    expect(cdacq_block_get_start_address(block) == fact->method, ip);
    expect(cdacq_block_get_relative_offset(block) == fact->offset + (ip - fact->begin), ip);
    expect(cdacq_block_get_jit_type(block) == (fact->code == MOCK_CODE_JIT   ? CDACQ_JIT_TYPE_JIT
                                               : fact->code == MOCK_CODE_R2R ? CDACQ_JIT_TYPE_READY_TO_RUN
                                                                             : CDACQ_JIT_TYPE_INTERPRETER),
           ip);
    (void)opened;
}

static void check_questions(const struct opened *opened, const struct cdacq_block *block,
                            const struct mock_function *fact, uint64_t ip)
{
    struct cdacq_session *session = opened->session;
    struct cdacq_error error = {0};
    uint64_t hot_size, cold_start, cold_size, address;
    uint32_t version;
    bool yes;
    enum cdacq_code_kind kind;
    expect(cdacq_block_get_method_region_info(block, session, &hot_size, &cold_start, &cold_size, &error) == CDACQ_OK,
           ip);
    expect(hot_size == fact->hot_size && cold_start == fact->cold_start && cold_size == fact->cold_size, ip);
    expect(cdacq_block_get_unwind_info(block, session, &address, &error) == CDACQ_OK && address == fact->unwind_info,
           ip);
    uint64_t base = cdacq_block_get_unwind_info_base_address(block);
    expect(!address || base + mock_get(opened->sample.mock, address, "RuntimeFunction.BeginAddress") == fact->begin,
           ip);
    expect(cdacq_block_get_funclet_start_address(block, session, &address, &error) == CDACQ_OK &&
               address == fact->begin,
           ip);
    expect(cdacq_block_is_funclet(block, session, &yes, &error) == CDACQ_OK && yes == fact->funclet, ip);
    expect(cdacq_block_is_filter_funclet(block, session, &yes, &error) == CDACQ_OK && yes == is_filter(fact), ip);
    expect(cdacq_block_get_debug_info(block, session, &address, &yes, &error) == CDACQ_OK &&
               address == fact->debug_info,
           ip);
    expect(!yes, ip); /* no contract that these targets publish needs it */
    expect(cdacq_block_get_gc_info(block, session, &address, &version, &error) == CDACQ_OK, ip);
    expect(address == fact->gc_info && version == fact->gc_info_version, ip);
    expect(cdacq_session_code_kind_at(session, ip, &kind, &error) == CDACQ_OK &&
               kind == (fact->code == MOCK_CODE_JIT   ? CDACQ_CODE_JITTED
                        : fact->code == MOCK_CODE_R2R ? CDACQ_CODE_READY_TO_RUN
                                                      : CDACQ_CODE_INTERPRETER),
           ip);
    struct clause_check check = {fact, 0, true};
    expect(cdacq_block_visit_exception_clauses(block, session, check_clause, &check, &error) == CDACQ_OK, ip);
    expect(check.same && check.count == fact->clause_count, ip);
}

START_TEST(every_question_about_every_function)
{
    struct opened opened = open_sample(sample_of(_i), _i);
    struct cdacq_block block;
    struct cdacq_error error = {0};
    enum cdacq_code_kind kind;
    size_t methods = 0, filters = 0;
    for (size_t i = 0; i < opened.fact_count; i++) {
        const struct mock_function *fact = &opened.facts[i];
        uint64_t ips[] = {fact->begin, fact->begin + (fact->end - fact->begin) / 2, fact->end - 1};
        for (size_t j = 0; j < ARRAY_SIZE(ips); j++) {
            enum cdacq_status status = cdacq_session_code_block_at(opened.session, ips[j], &block, &error);
            expect(status == (is_method(fact) ? CDACQ_OK : CDACQ_NOT_MANAGED), ips[j]);
            if (status != CDACQ_OK) {
                expect(cdacq_session_code_kind_at(opened.session, ips[j], &kind, &error) >= 0, ips[j]);
                expect(kind == sample_code_kind(fact), ips[j]);
                continue;
            }
            check_handle(&opened, &block, fact, ips[j]);
            check_questions(&opened, &block, fact, ips[j]);
            methods++;
            filters += is_filter(fact);
        }
    }
    ck_assert_uint_gt(methods, 300);
    ck_assert_uint_gt(filters, 3);
    ck_assert_int_eq(cdacq_session_code_block_at(opened.session, 0, &block, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(cdacq_session_code_kind_at(opened.session, 0, &kind, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(kind, CDACQ_CODE_UNKNOWN);
    close_sample(&opened);
}
END_TEST

START_TEST(modules_of_images)
{
    struct opened opened = open_sample(sample_of(_i), _i);
    struct cdacq_error error = {0};
    for (size_t i = 0; i < opened.fact_count; i++) {
        const struct mock_function *fact = &opened.facts[i];
        uint64_t module = 0;
        enum cdacq_status status = cdacq_session_ready_to_run_module_at(opened.session, fact->begin, &module, &error);
        bool image = fact->code == MOCK_CODE_R2R || fact->code == MOCK_CODE_THUNK;
        expect(status == (image ? CDACQ_OK : CDACQ_NOT_MANAGED) && !module == !image, fact->begin);
    }
    struct mock_r2r *image = opened.sample.unsplit;
    uint64_t module = 0; /* any address in it, including its headers */
    ck_assert_int_eq(cdacq_session_ready_to_run_module_at(opened.session, image->begin, &module, &error), CDACQ_OK);
    ck_assert_uint_eq(module, image->module);
    close_sample(&opened);
}
END_TEST

/* ---- Cold code of the JIT ---- */

/* Methods with and without cold parts, with and without funclets. Unwind data and architecture differ with the seed. */
static struct opened open_cold(int arch, uint64_t seed, unsigned version)
{
    static const uint64_t funclets[] = {80, 96, 60};
    struct mock_options options = {.pointer_size = arch & 1 ? 8 : 4,
                                   .big_endian = arch & 2,
                                   .seed = seed,
                                   .version = version,
                                   .unwind = (enum mock_unwind)(seed % (arch & 1 ? 5 : 3)),
                                   .cold_jit_code = true};
    struct opened opened = {.sample.mock = mock_create(&options)};
    struct mock *mock = opened.sample.mock;
    ck_assert_ptr_nonnull(mock);
    struct mock_heap *heap =
        mock_heap_create(mock, &(struct mock_heap_options){.size = 0x20000, .map_slack = seed % 2});
    uint64_t unit = arch & 1 ? 4 : 2;
    for (unsigned i = 0; i < 24; i++) {
        size_t count = i % 4;
        uint64_t size = 40 + 24 * i, cold = i % 3 ? 200 + 300 * (i % 5) : 0;
        uint64_t handler = align_up(size, unit) + align_up(cold, unit);
        struct mock_clause clause = {MOCK_CLAUSE_FINALLY, 0, 20, (uint32_t)handler, (uint32_t)handler + 16, 0};
        mock_method(heap, &(struct mock_method){.size = size,
                                                .funclets = funclets,
                                                .funclet_count = count,
                                                .cold = cold,
                                                .method_desc = 0x1000 + 16 * i,
                                                .clauses = &clause,
                                                .clause_count = count ? 1 : 0});
        if (i % 5 == 2)
            mock_stub(heap, 1, 48);
    }
    mock_check(mock);
    mock_publish(mock, NULL);
    opened.facts = mock_functions(mock, &opened.fact_count);
    opened.target = mock_open(mock, CARRIER_MEMORY, NULL);
    opened.session = mock_session(opened.target);
    return opened;
}

static int count_parts(const struct cdacq_method *method, void *context)
{
    size_t *parts = context;
    if (method->answer == CDACQ_ANSWER_MANAGED)
        ++*parts;
    return 0;
}

START_TEST(cold_code_of_the_jit)
{
    static const unsigned versions[VERSIONS] = {1, 2, MOCK_NET_11};
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct opened opened = open_cold(_i % ARCH_COUNT, seed, versions[_i / ARCH_COUNT]);
        struct cdacq_block block;
        struct cdacq_error error = {0};
        size_t cold = 0, listed = 0, expected = 0;
        for (size_t i = 0; i < opened.fact_count; i++) {
            const struct mock_function *fact = &opened.facts[i];
            for (uint64_t ip = fact->begin; ip < fact->end && is_method(fact); ip += 7) {
                struct cdacq_method method = {.size = sizeof method};
                expect(cdacq_session_code_block_at(opened.session, ip, &block, &error) == CDACQ_OK, ip);
                check_handle(&opened, &block, fact, ip);
                check_questions(&opened, &block, fact, ip);
                expect(cdacq_session_method_at(opened.session, ip, &method, &error) == CDACQ_OK, ip);
                expect(method.code_start == fact->method && method.cold == fact->cold, ip);
                expect(method.cold_start == fact->cold_start && method.cold_size == fact->cold_size, ip);
                expect(method.offset == fact->offset + (ip - fact->begin), ip);
                cold += fact->cold;
            }
            expected += is_method(fact) && fact->begin == fact->method;
            /* what follows the code of a part is in no method, unless the next one begins there */
            if (is_method(fact) && !mock_function_at(opened.sample.mock, fact->end))
                expect(cdacq_session_code_block_at(opened.session, fact->end, &block, &error) == CDACQ_NOT_MANAGED,
                       fact->end);
        }
        ck_assert_uint_gt(cold, 100);
        ck_assert_int_eq(cdacq_session_visit_methods(opened.session, 0, count_parts, &listed, &error), CDACQ_OK);
        ck_assert_uint_eq(listed, expected);
        cdacq_session_destroy(opened.session);
        cdacq_target_close(opened.target);
        mock_destroy(opened.sample.mock);
    }
}
END_TEST

/* Pointers of cold parts that lead nowhere, to themselves, or to another method. */
START_TEST(damaged_cold_code)
{
    struct opened opened = open_cold(_i, 5, 2);
    struct mock *mock = opened.sample.mock;
    uint64_t word = _i & 1 ? 8 : 4, other = opened.facts[0].method;
    for (size_t i = 0; i < opened.fact_count; i++) {
        const struct mock_function *fact = &opened.facts[i];
        if (!fact->cold || fact->begin != fact->cold_start)
            continue;
        uint64_t wrong[] = {0, fact->cold_start - word, other - word, fact->method, 1};
        uint64_t right = mock_read_pointer(mock, fact->cold_start - word);
        for (size_t j = 0; j < ARRAY_SIZE(wrong); j++) {
            struct cdacq_block block;
            mock_write_pointer(mock, fact->cold_start - word, wrong[j]);
            enum cdacq_status status = cdacq_session_code_block_at(opened.session, fact->begin + 1, &block, NULL);
            if (wrong[j] != right && status == CDACQ_OK)
                ck_abort_msg("%#llx: a method by a wrong pointer", (unsigned long long)fact->begin);
        }
        mock_write_pointer(mock, fact->cold_start - word, right);
    }
    cdacq_session_destroy(opened.session);
    cdacq_target_close(opened.target);
    mock_destroy(mock);
}
END_TEST

/* ---- Tables of functions ---- */

struct entries {
    uint64_t items[200];
    size_t count;
};

static int take_entry(uint64_t entry, void *context)
{
    struct entries *entries = context;
    if (entries->count == ARRAY_SIZE(entries->items))
        return 1;
    entries->items[entries->count++] = entry;
    return 0;
}

START_TEST(function_tables)
{
    static const uint64_t funclets[] = {40, 60};
    struct mock *mock = mock_of_arch(_i, 5);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    struct mock_heap *other = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    for (unsigned i = 0; i < 12; i++) {
        mock_method(heap, &(struct mock_method){.size = 100, .funclets = funclets, .funclet_count = i % 3});
        if (i % 4 == 1)
            mock_stub(heap, 1, 800);
    }
    mock_method(other, &(struct mock_method){.size = 100});
    uint64_t routine = mock_alloc(mock, 16, 16), table = mock_new(mock, "DynamicFunctionTable", 0);
    mock_set(mock, heap->node, "CodeHeapListNode.CLRPersonalityRoutine", routine);
    mock_set(mock, table, "DynamicFunctionTable.MinimumAddress", routine);
    mock_set(mock, table, "DynamicFunctionTable.Context", mock_jit_manager(mock) | 3);
    mock_publish(mock, NULL);
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct cdacq_session *session = mock_session(target);
    struct entries entries = {0};
    struct cdacq_error error = {0};
    size_t fact_count, n = 0;
    const struct mock_function *facts = mock_functions(mock, &fact_count);
    expect(cdacq_session_visit_function_table_entries(session, table, take_entry, &entries, &error) == CDACQ_OK, table);
    for (size_t end = fact_count; end;) { /* the last method first, its functions in order */
        size_t i = end - 1;
        while (i && facts[i].begin != facts[i].method)
            i--;
        for (size_t j = i; j < end; j++)
            if (is_method(&facts[j]) && facts[j].begin < heap->end && facts[j].begin >= heap->begin)
                ck_assert_uint_eq(entries.items[n++], facts[j].unwind_info);
        end = i;
    }
    ck_assert_uint_eq(entries.count, n);
    ck_assert_uint_eq(n, 24);
    /* By the map's base where there is no personality routine; none where no heap matches. */
    mock_set(mock, table, "DynamicFunctionTable.MinimumAddress", other->map_base);
    entries.count = 0;
    expect(cdacq_session_visit_function_table_entries(session, table, take_entry, &entries, &error) == CDACQ_OK, table);
    ck_assert_uint_eq(entries.count, 1);
    mock_set(mock, table, "DynamicFunctionTable.MinimumAddress", 0x77);
    expect(cdacq_session_visit_function_table_entries(session, table, take_entry, &entries, &error) == CDACQ_OK, table);
    ck_assert_uint_eq(entries.count, 1);
    expect(cdacq_session_visit_function_table_entries(session, 8, take_entry, &entries, &error) == CDACQ_ERR_MEMORY, 8);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Heaps ---- */

struct heaps {
    struct cdacq_code_heap_info items[16];
    size_t count;
};

static int take_heap(const struct cdacq_code_heap_info *heap, void *context)
{
    struct heaps *heaps = context;
    if (heaps->count == ARRAY_SIZE(heaps->items))
        return 1;
    heaps->items[heaps->count++] = *heap;
    return 0;
}

static struct heaps heaps_of(struct cdacq_session *session)
{
    struct heaps heaps = {0};
    struct cdacq_error error = {0};
    enum cdacq_status status = cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, take_heap, &heaps, &error);
    if (status != CDACQ_OK)
        ck_abort_msg("%s", error.message);
    return heaps;
}

/* The runtime's list begins with the newest heap. */
START_TEST(heaps_by_the_list)
{
    struct mock *mock = mock_of_arch(_i, 5);
    struct mock_heap *first = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
    struct mock_heap *second =
        mock_heap_create(mock, &(struct mock_heap_options){.size = 0x1000, .collectible = true, .map_slack = 0x10});
    mock_method(first, &(struct mock_method){.size = 100, .method_desc = 0x1000});
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    struct heaps heaps = heaps_of(session);
    ck_assert_uint_eq(heaps.count, 2);
    const struct cdacq_code_heap_info *host = &heaps.items[0], *loader = &heaps.items[1];
    ck_assert_uint_eq(host->node, second->node);
    ck_assert_int_eq(host->type, CDACQ_CODE_HEAP_HOST);
    ck_assert_uint_eq(host->base, second->begin);
    ck_assert_uint_ge(host->current, second->begin);
    ck_assert_uint_eq(host->map_base, second->map_base);
    ck_assert_uint_eq(host->loader_heap, 0);
    ck_assert_uint_eq(loader->node, first->node);
    ck_assert_int_eq(loader->type, CDACQ_CODE_HEAP_LOADER);
    ck_assert_uint_eq(loader->begin, first->begin);
    ck_assert_uint_gt(loader->end, first->begin);
    ck_assert_uint_eq(loader->header_map, first->header_map);
    ck_assert_uint_ne(loader->heap, 0);
    ck_assert_uint_eq(loader->loader_heap, loader->heap + mock_offset_of(mock, "LoaderCodeHeap.LoaderHeap"));
    struct cdacq_jit_manager_info manager = {.size = sizeof manager};
    ck_assert_int_eq(cdacq_session_get_jit_manager_info(session, CDACQ_CODE_JITTED, &manager, NULL), CDACQ_OK);
    ck_assert_uint_eq(manager.address, mock_jit_manager(mock));
    ck_assert_uint_eq(manager.heap_list, second->node);
    ck_assert_int_eq(cdacq_session_get_jit_manager_info(session, CDACQ_CODE_READY_TO_RUN, &manager, NULL),
                     CDACQ_NOT_MANAGED);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The interpreter has a manager and a list of its own; by the list, and by the range sections. */
START_TEST(heaps_of_the_interpreter)
{
    for (int published = 0; published < 2; published++) {
        struct mock *mock = mock_of_arch(_i, 5);
        struct mock_heap *jit = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
        struct mock_heap *heap =
            mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000, .interpreter = true});
        if (!published)
            mock_hide(mock, "InterpreterJitManagerAddress");
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_jit_manager_info manager = {.size = sizeof manager};
        struct heaps heaps = {0};
        ck_assert_int_eq(cdacq_session_get_jit_manager_info(session, CDACQ_CODE_INTERPRETER, &manager, NULL), CDACQ_OK);
        ck_assert_uint_eq(manager.address, mock_interpreter_manager(mock));
        ck_assert_uint_eq(manager.heap_list, published ? heap->node : 0);
        ck_assert_int_eq(cdacq_session_visit_code_heaps(session, CDACQ_CODE_INTERPRETER, take_heap, &heaps, NULL),
                         CDACQ_OK);
        ck_assert_uint_eq(heaps.count, 1);
        ck_assert_uint_eq(heaps.items[0].node, heap->node);
        heaps = heaps_of(session);
        ck_assert_uint_eq(heaps.count, 1);
        ck_assert_uint_eq(heaps.items[0].node, jit->node);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* The byte of flags in front of debug info is the JIT's: interpreted methods have none. */
START_TEST(flag_bytes)
{
    for (int interpreter = 0; interpreter < 2; interpreter++) {
        struct mock *mock = mock_of_arch(_i, 5);
        struct mock_heap *heap =
            mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000, .interpreter = interpreter});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1000}), debug_info = 0;
        mock_global(mock, "FeatureOnStackReplacement", 1);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_block block;
        bool has_flag_byte = interpreter;
        ck_assert_int_eq(cdacq_session_code_block_at(session, start, &block, NULL), CDACQ_OK);
        ck_assert_int_eq(cdacq_block_get_debug_info(&block, session, &debug_info, &has_flag_byte, NULL), CDACQ_OK);
        ck_assert_uint_ne(debug_info, 0);
        ck_assert(has_flag_byte == !interpreter);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* As .NET 8, 9 and 10 publish it: neither the list nor the types of heaps. */
START_TEST(heaps_by_the_range_sections)
{
    struct mock *mock = mock_of_arch(_i, 5);
    struct mock_heap *first = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
    struct mock_heap *second = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x1000, .collectible = true});
    mock_hide(mock, "EEJitManagerAddress");
    mock_hide(mock, "EEJitManager");
    mock_hide(mock, "CodeHeap");
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    struct heaps heaps = heaps_of(session);
    ck_assert_uint_eq(heaps.count, 2);
    bool ascending = first->begin < second->begin;
    ck_assert_uint_eq(heaps.items[0].node, ascending ? first->node : second->node);
    ck_assert_uint_eq(heaps.items[1].node, ascending ? second->node : first->node);
    ck_assert_int_eq(heaps.items[0].type, CDACQ_CODE_HEAP_UNKNOWN);
    struct cdacq_jit_manager_info manager = {.size = sizeof manager};
    ck_assert_int_eq(cdacq_session_get_jit_manager_info(session, CDACQ_CODE_JITTED, &manager, NULL), CDACQ_OK);
    ck_assert_uint_eq(manager.address, mock_jit_manager(mock));
    ck_assert_uint_eq(manager.heap_list, 0);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

START_TEST(heaps_in_a_cycle)
{
    struct mock *mock = mock_of_arch(_i, 5);
    struct mock_heap *first = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
    struct mock_heap *second = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
    mock_set(mock, first->node, "CodeHeapListNode.Next", second->node);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    struct heaps heaps = {0};
    struct cdacq_error error;
    ck_assert_int_eq(cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, take_heap, &heaps, &error),
                     CDACQ_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "CodeHeapListNode.Next"));
    ck_assert_uint_eq(heaps.count, 0);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A heap that cannot be read does not affect the others. */
START_TEST(heaps_in_part)
{
    for (int described = 0; described < 2; described++) {
        struct mock *mock = mock_of_arch(_i, 5);
        struct mock_heap *heaps[3];
        for (size_t i = 0; i < ARRAY_SIZE(heaps); i++)
            heaps[i] = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
        if (described)
            mock_unmap(mock, mock_get(mock, heaps[1]->node, "CodeHeapListNode.Heap"), mock_size_of(mock, "CodeHeap"));
        else
            mock_unmap(mock, heaps[1]->node, mock_size_of(mock, "CodeHeapListNode"));
        if (!described)
            mock_hide(mock, "EEJitManagerAddress");
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_session *session = mock_session(target);
        struct heaps told = {0};
        struct cdacq_error error = {0};
        enum cdacq_status status = cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, take_heap, &told, &error);
        ck_assert_int_eq(status, described ? CDACQ_OK : CDACQ_ERR_MEMORY);
        ck_assert_uint_eq(told.count, described ? 3 : 2);
        for (size_t i = 0; i < told.count; i++)
            ck_assert_int_eq(told.items[i].type,
                             told.items[i].node == heaps[1]->node ? CDACQ_CODE_HEAP_UNKNOWN : CDACQ_CODE_HEAP_LOADER);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Funclets whose unwind table has a hole: the funclet of an address is then not known. */
START_TEST(a_hole_among_the_functions)
{
    enum { FUNCLETS = 300 };
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    uint64_t funclets[FUNCLETS];
    for (size_t i = 0; i < FUNCLETS; i++)
        funclets[i] = 16;
    uint64_t start = mock_method(
        heap, &(struct mock_method){.size = 64, .funclets = funclets, .funclet_count = FUNCLETS, .method_desc = 8});
    uint64_t table = mock_method_header(heap, start) + mock_offset_of(mock, "RealCodeHeader.UnwindInfos");
    mock_unmap(mock, table + 100 * mock_size_of(mock, "RuntimeFunction"), mock_size_of(mock, "RuntimeFunction"));
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    ck_assert_int_eq(cdacq_session_method_at(session, start + 64 + 16 * (FUNCLETS - 1), &method, NULL), CDACQ_OK);
    ck_assert_uint_eq(method.code_start, start);
    ck_assert_uint_eq(method.funclet_start, 0);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- What is missing ---- */

/* One method with everything, JIT-compiled or of an image. */
struct one {
    struct mock *mock;
    struct mock_function fact;
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_block block;
};

static const struct mock_clause one_clause[] = {{MOCK_CLAUSE_FINALLY, 1, 2, 3, 4, 0}};

static uint64_t add_one(struct mock *mock, bool r2r)
{
    static const uint64_t sizes[] = {40, 20};
    if (!r2r) {
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
        return mock_method(heap, &(struct mock_method){.size = 40,
                                                       .funclets = sizes + 1,
                                                       .funclet_count = 1,
                                                       .method_desc = 0x1000,
                                                       .clauses = one_clause,
                                                       .clause_count = 1});
    }
    struct mock_r2r *image =
        mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS, .major = 16});
    mock_r2r_method(
        image,
        &(struct mock_r2r_method){
            .hot = sizes, .hot_count = 2, .method_desc = 0x1000, .rid = 1, .clauses = one_clause, .clause_count = 1});
    mock_r2r_finish(image);
    return mock_r2r_start(image, 0);
}

static struct one prepare_one(int i, bool r2r)
{
    struct one one = {.mock = mock_of_arch(i, 3)};
    uint64_t start = add_one(one.mock, r2r);
    mock_check(one.mock);
    one.fact = *mock_function_at(one.mock, start);
    return one;
}

static void open_prepared(struct one *one)
{
    one->target = mock_publish_and_open(one->mock);
    one->session = mock_session(one->target);
    ck_assert_int_eq(cdacq_session_code_block_at(one->session, one->fact.method, &one->block, NULL), CDACQ_OK);
}

static void close_one(struct one *one)
{
    cdacq_session_destroy(one->session);
    cdacq_target_close(one->target);
    mock_destroy(one->mock);
}

static int count_clause(const struct cdacq_exception_clause *clause, void *context)
{
    (void)clause;
    ++*(size_t *)context;
    return 0;
}

/* The statuses of all questions, in a fixed order. */
enum question { REGION, UNWIND, FUNCLET, IS_FUNCLET, IS_FILTER, DEBUG_INFO, GC_INFO, CLAUSES, QUESTION_COUNT };

static void ask_all(struct one *one, struct cdacq_error *errors, enum cdacq_status *ret)
{
    uint64_t a, b, c;
    uint32_t version;
    bool yes;
    size_t count = 0;
    ret[REGION] = cdacq_block_get_method_region_info(&one->block, one->session, &a, &b, &c, &errors[REGION]);
    ret[UNWIND] = cdacq_block_get_unwind_info(&one->block, one->session, &a, &errors[UNWIND]);
    ret[FUNCLET] = cdacq_block_get_funclet_start_address(&one->block, one->session, &a, &errors[FUNCLET]);
    ret[IS_FUNCLET] = cdacq_block_is_funclet(&one->block, one->session, &yes, &errors[IS_FUNCLET]);
    ret[IS_FILTER] = cdacq_block_is_filter_funclet(&one->block, one->session, &yes, &errors[IS_FILTER]);
    ret[DEBUG_INFO] = cdacq_block_get_debug_info(&one->block, one->session, &a, &yes, &errors[DEBUG_INFO]);
    ret[GC_INFO] = cdacq_block_get_gc_info(&one->block, one->session, &a, &version, &errors[GC_INFO]);
    ret[CLAUSES] =
        cdacq_block_visit_exception_clauses(&one->block, one->session, count_clause, &count, &errors[CLAUSES]);
}

/* Exactly one question fails, with this status and message. All others are answered. */
static void fails_alone(struct one *one, enum question question, enum cdacq_status status, const char *words)
{
    struct cdacq_error errors[QUESTION_COUNT] = {0};
    enum cdacq_status statuses[QUESTION_COUNT];
    ask_all(one, errors, statuses);
    for (int i = 0; i < QUESTION_COUNT; i++)
        if (statuses[i] != (i == (int)question ? status : CDACQ_OK))
            ck_abort_msg("question %d: status %d: %s", i, statuses[i], errors[i].message);
    if (question < QUESTION_COUNT && !strstr(errors[question].message, words))
        ck_abort_msg("'%s' does not tell of '%s'", errors[question].message, words);
    close_one(one);
}

START_TEST(one_field_is_not_described)
{
    static const struct {
        const char *hidden;
        bool r2r;
        enum question fails;
    } cases[] = {
        {"RealCodeHeader.DebugInfo", false, DEBUG_INFO},
        {"RealCodeHeader.GCInfo", false, GC_INFO},
        {"RealCodeHeader.EHInfo", false, CLAUSES},
        {"EEILException", false, CLAUSES},
        {"EEExceptionClause.TypeHandle", false, CLAUSES},
        {"EEExceptionClause.!", false, CLAUSES},
        {"R2RExceptionClause.!", true, CLAUSES},
        {"R2RExceptionClause.Flags", true, CLAUSES},
        {"ExceptionLookupTableEntry.!", true, CLAUSES},
        {"ReadyToRunInfo.DebugInfoSection", true, QUESTION_COUNT}, /* the image's header has it too */
        {"ReadyToRunInfo.ExceptionInfoSection", true, QUESTION_COUNT},
        {"GCInfoVersion", false, QUESTION_COUNT},
        {"EEJitManager", false, QUESTION_COUNT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct one one = prepare_one(_i, cases[i].r2r);
        mock_hide(one.mock, cases[i].hidden);
        open_prepared(&one);
        char words[64];
        snprintf(words, sizeof words, "%.*s", (int)strcspn(cases[i].hidden, ".!"), cases[i].hidden);
        fails_alone(&one, cases[i].fails, CDACQ_ERR_FIELD, words);
    }
}
END_TEST

/* Memory that is not in the target: the message names the field, and the rest is reported. */
START_TEST(clauses_are_missing)
{
    struct one one = prepare_one(_i, false);
    uint64_t header = mock_read_pointer(one.mock, one.fact.method - (_i & 1 ? 8 : 4));
    uint64_t info = mock_get(one.mock, header, "RealCodeHeader.EHInfo");
    uint64_t clause = info + mock_offset_of(one.mock, "EEILException.Clauses");
    mock_unmap(one.mock, clause + mock_offset_of(one.mock, "EEExceptionClause.HandlerStartPC"), 4);
    open_prepared(&one);
    fails_alone(&one, CLAUSES, CDACQ_ERR_MEMORY, "EEExceptionClause.HandlerStartPC");
}
END_TEST

/* The length then comes from the unwind data. */
START_TEST(gc_info_is_missing)
{
    struct one one = prepare_one(_i, false);
    mock_unmap(one.mock, one.fact.gc_info, 8);
    open_prepared(&one);
    fails_alone(&one, QUESTION_COUNT, CDACQ_OK, "");
}
END_TEST

/* Lengths that contradict each other: neither is reported. */
START_TEST(gc_info_contradicts_unwind_info)
{
    struct one one = prepare_one(_i, false);
    open_prepared(&one);
    mock_write_uint(one.mock, one.fact.gc_info, 1, 1 << 2); /* a slim header: two bits, then a length of 1 */
    mock_write_uint(one.mock, one.fact.gc_info + 1, 1, 0);
    fails_alone(&one, REGION, CDACQ_ERR_CORRUPT, "GC info");
}
END_TEST

/* ---- Code pointers ---- */

/* Passes a code pointer to every function that takes a code address. */
static void check_code_pointer(struct cdacq_session *session, uint64_t pointer, uint64_t plain, uint64_t module)
{
    struct cdacq_error error = {0};
    struct cdacq_block block, expected;
    struct cdacq_method method[2] = {{.size = sizeof method[0]}, {.size = sizeof method[1]}};
    enum cdacq_code_kind kind;
    uint64_t unwind_info[2], found = 0, entered[2];
    expect(cdacq_session_code_block_at(session, plain, &expected, &error) == CDACQ_OK, plain);
    expect(cdacq_session_code_block_at(session, pointer, &block, &error) == CDACQ_OK, pointer);
    expect(cdacq_block_get_start_address(&block) == cdacq_block_get_start_address(&expected), pointer);
    expect(cdacq_block_get_relative_offset(&block) == cdacq_block_get_relative_offset(&expected), pointer);
    expect(cdacq_block_get_unwind_info(&expected, session, &unwind_info[0], &error) == CDACQ_OK, plain);
    expect(cdacq_block_get_unwind_info(&block, session, &unwind_info[1], &error) == CDACQ_OK, pointer);
    expect(unwind_info[0] == unwind_info[1], pointer);
    expect(cdacq_session_code_kind_at(session, pointer, &kind, &error) == CDACQ_OK, pointer);
    expect(kind == (module ? CDACQ_CODE_READY_TO_RUN : CDACQ_CODE_JITTED), pointer);
    expect(cdacq_session_ready_to_run_module_at(session, pointer, &found, &error) ==
               (module ? CDACQ_OK : CDACQ_NOT_MANAGED),
           pointer);
    expect(found == module, pointer);
    expect(cdacq_session_non_virtual_entry_to_method_desc(session, plain, &entered[0], &error) == CDACQ_OK, plain);
    expect(cdacq_session_non_virtual_entry_to_method_desc(session, pointer, &entered[1], &error) == CDACQ_OK, pointer);
    expect(entered[0] == entered[1], pointer);
    expect(cdacq_session_check_code_range(session, pointer, &error) == CDACQ_OK, pointer);
    expect(cdacq_session_method_at(session, pointer, &method[0], &error) == CDACQ_OK, pointer);
    cdacq_session_methods_at(session, &pointer, 1, &method[1], NULL);
    for (int i = 0; i < 2; i++) {
        expect(method[i].ip == pointer && method[i].answer == CDACQ_ANSWER_MANAGED, pointer);
        expect(method[i].code_start == cdacq_block_get_start_address(&expected), pointer);
        expect(method[i].offset == cdacq_block_get_relative_offset(&expected), pointer);
    }
}

/* The Thumb bit of arm, the authentication code of arm64. */
START_TEST(code_pointers_everywhere)
{
    bool wide = _i & 1;
    struct mock *mock = mock_create(&(struct mock_options){.pointer_size = wide ? 8 : 4,
                                                           .big_endian = _i & 2,
                                                           .seed = 6,
                                                           .unwind = MOCK_UNWIND_HEADER,
                                                           .code_pointer_flags = wide ? 2 : 1});
    uint64_t sizes[2] = {64, 32}, signature = wide ? UINT64_C(0x93d1) << 48 : 1;
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(
        heap, &(struct mock_method){.size = 96, .method_desc = 0x1238, .funclets = sizes, .funclet_count = 2});
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS});
    for (uint32_t rid = 1; rid <= 9; rid++)
        mock_r2r_method(image, &(struct mock_r2r_method){
                                   .hot = sizes, .hot_count = 2, .rid = rid, .method_desc = 0x2000 + rid * 8});
    mock_r2r_finish(image);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    for (uint64_t offset = 0; offset < 96 + 64 + 32; offset += 4)
        check_code_pointer(session, (start + offset) | signature, start + offset, 0);
    for (size_t i = 0; i < 9; i++)
        for (uint64_t offset = 0; offset < 64; offset += 4)
            check_code_pointer(session, (mock_r2r_start(image, i) + offset) | signature,
                               mock_r2r_start(image, i) + offset, image->module);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("execution_manager_api");
    TCase *tcase = tcase_create("execution_manager_api");
    tcase_add_loop_test(tcase, every_question_about_every_function, 0, rounds(COMBINATIONS, ARCH_COUNT * VERSIONS));
    tcase_add_loop_test(tcase, modules_of_images, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, cold_code_of_the_jit, 0, ARCH_COUNT * VERSIONS);
    tcase_add_loop_test(tcase, damaged_cold_code, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, function_tables, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, heaps_by_the_list, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, heaps_of_the_interpreter, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, code_pointers_everywhere, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, flag_bytes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, heaps_by_the_range_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, heaps_in_a_cycle, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, heaps_in_part, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_hole_among_the_functions, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, one_field_is_not_described, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, clauses_are_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, gc_info_is_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, gc_info_contradicts_unwind_info, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
