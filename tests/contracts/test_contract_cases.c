/*
 * test_contract_cases.c: cases that the ExecutionManager contract names and the tested runtimes do not have: code
 * without funclets, processes without code, counted sentinels, half a pair of hot and cold, images whose tables are
 * missing, flags of debug info, and debug info that refers back.
 */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

#define expect(condition, ip)                                                                             \
    do {                                                                                                  \
        if (!(condition))                                                                                 \
            ck_abort_msg("0x%llx: not so: %s (%s)", (unsigned long long)(ip), #condition, error.message); \
    } while (0)

/* ---- Without funclets ---- */

static struct mock *mock_without_funclets(int arch, uint64_t seed)
{
    struct mock *mock = mock_create(&(struct mock_options){.pointer_size = arch & 1 ? 8 : 4,
                                                           .big_endian = arch & 2,
                                                           .seed = seed,
                                                           .unwind = MOCK_UNWIND_FUNCTION_LENGTH,
                                                           .no_funclets = true});
    ck_assert_ptr_nonnull(mock);
    return mock;
}

static const struct mock_clause handlers[] = {{MOCK_CLAUSE_FILTER, 1, 20, 50, 60, 40},
                                              {MOCK_CLAUSE_TYPED, 1, 20, 60, 70, 0x01000007}};

static void add_heap(struct mock *mock, uint64_t seed)
{
    static const uint64_t sizes[] = {1, 90, 200, 700, 33, 0x900};
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        mock_method(heap, &(struct mock_method){.size = sizes[i] + seed,
                                                .method_desc = 0x1000 + 8 * i,
                                                .skip = i % 3 * 70,
                                                .clauses = handlers,
                                                .clause_count = sizes[i] > 70 ? ARRAY_SIZE(handlers) : 0,
                                                .no_debug_info = i == 2});
    mock_stub(heap, 4, 100);
}

/* Every other method is prepared. In an image without tables the others have no names, but they are methods. */
static void add_image(struct mock *mock, unsigned tables)
{
    struct mock_r2r *image = mock_r2r_create(
        mock, &(struct mock_r2r_options){.path = tables ? "/mock/a.dll" : "/mock/b.dll", .tables = tables});
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t size = 1 + i * 37 % 150;
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = &size,
                                                         .hot_count = 1,
                                                         .skip = i % 4 * 20,
                                                         .method_desc = i % 2 ? 0x2000 + 8 * i : 0,
                                                         .rid = tables ? i + 1 : 0,
                                                         .clauses = handlers,
                                                         .clause_count = size > 70 ? ARRAY_SIZE(handlers) : 0});
    }
    mock_r2r_finish(image);
}

static int count_clause(const struct cdacq_exception_clause *clause, void *context)
{
    (void)clause;
    ++*(size_t *)context;
    return 0;
}

static void check_questions(struct cdacq_session *session, const struct mock_function *fact, uint64_t ip)
{
    struct cdacq_error error = {0};
    struct cdacq_block block;
    uint64_t hot_size, cold_start, cold_size, address;
    uint32_t version;
    size_t clauses = 0;
    bool yes;
    expect(cdacq_session_code_block_at(session, ip, &block, &error) == CDACQ_OK, ip);
    expect(cdacq_block_get_method_desc(&block) == fact->method_desc, ip);
    expect(cdacq_block_get_start_address(&block) == fact->method, ip);
    expect(cdacq_block_get_relative_offset(&block) == ip - fact->method, ip);
    expect(cdacq_block_get_method_region_info(&block, session, &hot_size, &cold_start, &cold_size, &error) == CDACQ_OK,
           ip);
    expect(hot_size == fact->hot_size && !cold_start && !cold_size, ip);
    expect(cdacq_block_get_unwind_info(&block, session, &address, &error) == CDACQ_OK && address == fact->unwind_info,
           ip);
    expect(cdacq_block_get_funclet_start_address(&block, session, &address, &error) == CDACQ_OK &&
               address == fact->method,
           ip);
    expect(cdacq_block_is_funclet(&block, session, &yes, &error) == CDACQ_OK && !yes, ip);
    expect(cdacq_block_is_filter_funclet(&block, session, &yes, &error) == CDACQ_OK && !yes, ip);
    expect(cdacq_block_get_debug_info(&block, session, &address, &yes, &error) == CDACQ_OK, ip);
    expect(address == fact->debug_info && !yes, ip);
    expect(cdacq_block_get_gc_info(&block, session, &address, &version, &error) == CDACQ_OK, ip);
    expect(address == fact->gc_info && version == fact->gc_info_version, ip);
    expect(cdacq_block_visit_exception_clauses(&block, session, count_clause, &clauses, &error) == CDACQ_OK, ip);
    expect(clauses == fact->clause_count, ip);
}

static bool is_method(const struct mock_function *fact)
{
    return fact && (fact->code == MOCK_CODE_JIT || fact->code == MOCK_CODE_R2R);
}

static void check_bulk(struct cdacq_session *session, const uint64_t *ips, size_t count, struct mock *mock)
{
    struct cdacq_method *methods = calloc(count, sizeof *methods);
    struct cdacq_error error = {0};
    ck_assert_ptr_nonnull(methods);
    methods->size = sizeof *methods;
    cdacq_session_methods_at(session, ips, count, methods, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct mock_function *fact = mock_function_at(mock, ips[i]);
        expect((methods[i].answer == CDACQ_ANSWER_MANAGED) == is_method(fact), ips[i]);
        if (is_method(fact))
            expect(methods[i].code_start == fact->method && methods[i].code_size == fact->hot_size &&
                       methods[i].funclet_start == fact->method && methods[i].method_desc == fact->method_desc,
                   ips[i]);
    }
    free(methods);
}

/* Every address of every function and around it: alone in a new session, and in a batch. */
START_TEST(without_funclets)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct mock *mock = mock_without_funclets(_i, seed);
        uint64_t ips[2000];
        size_t count, ip_count = 0;
        add_heap(mock, seed);
        add_image(mock, MOCK_R2R_METHODDEFS);
        add_image(mock, MOCK_R2R_NO_HEADER);
        struct cdacq_target *target = mock_publish_and_open(mock);
        const struct mock_function *facts = mock_functions(mock, &count);
        for (size_t i = 0; i < count; i++)
            for (uint64_t ip = facts[i].begin - 3; ip < facts[i].end + 3 && ip_count < ARRAY_SIZE(ips);
                 ip += 1 + ip % 29)
                ips[ip_count++] = ip;
        struct cdacq_session *session = mock_session(target);
        for (size_t i = 0; i < ip_count; i++) {
            const struct mock_function *fact = mock_function_at(mock, ips[i]);
            struct cdacq_error error = {0};
            struct cdacq_block block;
            if (is_method(fact))
                check_questions(session, fact, ips[i]);
            else
                expect(cdacq_session_code_block_at(session, ips[i], &block, &error) == CDACQ_NOT_MANAGED, ips[i]);
        }
        check_bulk(session, ips, ip_count, mock);
        mock_check(mock);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Only GC info states a length then: without it, even a method's start has no answer. */
START_TEST(without_funclets_and_gc_info)
{
    static const char *const said[] = {"RealCodeHeader.GCInfo", "RealCodeHeader.GCInfo", "RealCodeHeader.GCInfo"};
    static const enum cdacq_status statuses[] = {CDACQ_ERR_FIELD, CDACQ_ERR_CORRUPT, CDACQ_ERR_CORRUPT};
    for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
        struct mock *mock = mock_without_funclets(_i, i);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
        uint64_t gc_info = mock_function_at(mock, start)->gc_info;
        if (i == 0)
            mock_hide(mock, "RealCodeHeader.GCInfo");
        else if (i == 1)
            mock_set(mock, mock_method_header(heap, start), "RealCodeHeader.GCInfo", 0);
        else
            mock_unmap(mock, gc_info, 16);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_block block;
        struct cdacq_error error = {0};
        ck_assert_int_eq(cdacq_session_code_block_at(session, start + 5, &block, &error), statuses[i]);
        ck_assert_msg(strstr(error.message, said[i]) != NULL, "%s", error.message);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* ---- Nothing ---- */

static void check_no_code(struct cdacq_session *session, uint64_t ip)
{
    struct cdacq_error error = {0};
    struct cdacq_block block;
    struct cdacq_method method = {.size = sizeof method};
    enum cdacq_code_kind kind = CDACQ_CODE_JITTED;
    uint64_t address = 1;
    expect(cdacq_session_code_block_at(session, ip, &block, &error) == CDACQ_NOT_MANAGED, ip);
    expect(cdacq_session_code_kind_at(session, ip, &kind, &error) == CDACQ_NOT_MANAGED && kind == CDACQ_CODE_UNKNOWN,
           ip);
    expect(cdacq_session_ready_to_run_module_at(session, ip, &address, &error) == CDACQ_NOT_MANAGED && address == 1,
           ip);
    expect(cdacq_session_non_virtual_entry_to_method_desc(session, ip, &address, &error) == CDACQ_NOT_MANAGED, ip);
    expect(cdacq_session_method_at(session, ip, &method, &error) == CDACQ_NOT_MANAGED, ip);
    expect(method.answer == CDACQ_ANSWER_NONE, ip);
}

static int count_method(const struct cdacq_method *method, void *context)
{
    (void)method;
    ++*(size_t *)context;
    return 0;
}

static int count_heap(const struct cdacq_code_heap_info *heap, void *context)
{
    (void)heap;
    ++*(size_t *)context;
    return 0;
}

/* A process that has no range of code, and one with a range in which nothing was compiled. */
START_TEST(no_code)
{
    for (int ranges = 0; ranges < 2; ranges++)
        for (unsigned version = 1; version <= 2; version++) {
            struct mock *mock = mock_of_version(_i, version, version);
            struct mock_heap *heap =
                ranges ? mock_heap_create(mock, &(struct mock_heap_options){.size = 0xc000}) : NULL;
            uint64_t begin = heap ? heap->begin : 0x0a0a0000, end = begin + 0xc000;
            uint64_t ips[] = {0, 1, begin - 1, begin, begin + 0x6000, end - 1, end, UINT32_MAX, UINT64_MAX};
            if (heap)
                mock_set(mock, heap->node, "CodeHeapListNode.EndAddress", heap->end);
            struct cdacq_target *target = mock_publish_and_open(mock);
            struct cdacq_session *session = mock_session(target);
            struct cdacq_jit_manager_info manager = {.size = sizeof manager};
            size_t methods = 0, heaps = 0, interpreted = 0;
            for (int round = 0; round < 8; round++) /* by walking, then by the index */
                for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
                    check_no_code(session, ips[i]);
            ck_assert_int_eq(cdacq_session_visit_methods(session, CDACQ_VISIT_STUBS, count_method, &methods, NULL),
                             CDACQ_OK);
            ck_assert_int_eq(cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, count_heap, &heaps, NULL),
                             CDACQ_OK);
            ck_assert_int_eq(
                cdacq_session_visit_code_heaps(session, CDACQ_CODE_INTERPRETER, count_heap, &interpreted, NULL),
                CDACQ_OK);
            ck_assert_uint_eq(methods, 0);
            ck_assert_uint_eq(heaps, (size_t)ranges);
            ck_assert_uint_eq(interpreted, 0);
            ck_assert_int_eq(cdacq_session_get_jit_manager_info(session, CDACQ_CODE_INTERPRETER, &manager, NULL),
                             CDACQ_NOT_MANAGED);
            cdacq_session_destroy(session);
            cdacq_target_close(target);
            mock_destroy(mock);
        }
}
END_TEST

/* A descriptor's magic number identifies it and its byte order. */
START_TEST(another_magic_number)
{
    for (unsigned byte = 0; byte < 8; byte++) {
        struct mock *mock = mock_of_arch(_i, byte);
        struct cdacq_error error;
        struct cdacq_options options = {.size = sizeof options};
        uint64_t address = mock_publish(mock, NULL);
        uint8_t magic = (uint8_t)mock_read_uint(mock, address + byte, 1);
        mock_write_uint(mock, address + byte, 1, magic ^ 0xff);
        ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_DESCRIPTOR);
        options.descriptor_address = address;
        ck_assert_int_eq(mock_open_fails(mock, &options, &error), CDACQ_ERR_DESCRIPTOR);
        ck_assert_ptr_nonnull(strstr(error.message, "its magic number is not there"));
        mock_write_uint(mock, address + byte, 1, magic);
        cdacq_target_close(mock_open(mock, CARRIER_MEMORY, &options));
        mock_destroy(mock);
    }
}
END_TEST

/* ---- ReadyToRun images ---- */

static struct mock_r2r *small_image(struct mock *mock, const struct mock_r2r_options *options, bool split)
{
    static const uint64_t sizes[] = {48, 32, 16, 24, 20, 12};
    struct mock_r2r *image = mock_r2r_create(mock, options);
    for (uint32_t i = 0; i < 6; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = sizes,
                                                         .hot_count = 1 + i % 3,
                                                         .cold = sizes + 3,
                                                         .cold_count = split && i % 2 ? i % 3 + 1 : 0,
                                                         .method_desc = 0x3000 + 8 * i,
                                                         .rid = options->tables ? i + 1 : 0});
    mock_r2r_finish(image);
    return image;
}

/* The sentinel after the last function is not a function, whether the runtime counts it or not. */
START_TEST(sentinels)
{
    for (int counted = 0; counted < 2; counted++)
        for (unsigned tables = 0; tables < 2; tables++) {
            struct mock *mock = mock_of_arch(_i, 2 + (uint64_t)counted);
            struct mock_r2r *image = small_image(
                mock, &(struct mock_r2r_options){.sentinel_counted = counted, .tables = tables * MOCK_R2R_METHODDEFS},
                false);
            struct cdacq_target *target = mock_publish_and_open(mock);
            struct cdacq_session *session = mock_session(target);
            size_t count;
            const struct mock_function *last = mock_functions(mock, &count) + count - 1;
            struct cdacq_error error = {0};
            struct cdacq_block block;
            ck_assert_uint_eq(mock_get(mock, image->info, "ReadyToRunInfo.NumRuntimeFunctions"),
                              image->function_count + (unsigned)counted);
            expect(cdacq_session_code_block_at(session, last->end - 1, &block, &error) == CDACQ_OK, last->end - 1);
            expect(cdacq_block_get_start_address(&block) == last->method, last->end - 1);
            for (uint64_t ip = last->end; ip <= image->end; ip += 1 + (ip - last->end) / 3)
                expect(cdacq_session_code_block_at(session, ip, &block, &error) == CDACQ_NOT_MANAGED, ip);
            cdacq_session_destroy(session);
            cdacq_target_close(target);
            mock_destroy(mock);
        }
}
END_TEST

/*
 * The numbers of the hot/cold map come in pairs. With one number more or less, the owner of the last cold code is
 * unknown.
 */
START_TEST(half_a_pair)
{
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_r2r *image = small_image(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS}, true);
    struct mock_r2r *other =
        small_image(mock, &(struct mock_r2r_options){.path = "/mock/other.dll", .tables = MOCK_R2R_METHODDEFS}, true);
    uint64_t count = mock_get(mock, image->info, "ReadyToRunInfo.NumHotColdMap");
    ck_assert_uint_gt(count, 2);
    mock_set(mock, image->info, "ReadyToRunInfo.NumHotColdMap", count - 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    size_t fact_count, others = 0;
    const struct mock_function *facts = mock_functions(mock, &fact_count);
    for (size_t i = 0; i < fact_count; i++) {
        struct cdacq_error error = {0};
        struct cdacq_block block;
        enum cdacq_status status = cdacq_session_code_block_at(session, facts[i].begin, &block, &error);
        bool damaged = facts[i].begin >= image->begin && facts[i].begin < image->end;
        expect(status == (damaged ? CDACQ_ERR_CORRUPT : CDACQ_OK), facts[i].begin);
        expect(!damaged || strstr(error.message, "NumHotColdMap"), facts[i].begin);
        expect(damaged || cdacq_block_get_start_address(&block) == facts[i].method, facts[i].begin);
        others += !damaged;
    }
    ck_assert_uint_eq(others, other->function_count);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/*
 * The hot numbers of the last two pairs are exchanged, so that they are not sorted: a cold function whose method, by
 * the map, has other cold code or none belongs to no method.
 */
START_TEST(pairs_that_contradict_each_other)
{
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_r2r *image = small_image(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS}, true);
    uint64_t map = mock_get(mock, image->info, "ReadyToRunInfo.HotColdMap");
    uint64_t count = mock_get(mock, image->info, "ReadyToRunInfo.NumHotColdMap");
    uint64_t last = map + (count - 1) * 4, before = last - 8, hot = mock_read_uint(mock, last, 4);
    ck_assert_uint_gt(count, 4);
    mock_write_uint(mock, last, 4, mock_read_uint(mock, before, 4));
    mock_write_uint(mock, before, 4, hot);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    size_t fact_count, refused = 0;
    const struct mock_function *facts = mock_functions(mock, &fact_count);
    for (size_t i = 0; i < fact_count; i++) {
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_error error = {0};
        expect(cdacq_session_methods_at(session, &facts[i].begin, 1, &method, &error) == CDACQ_OK, facts[i].begin);
        uint64_t into = facts[i].begin - (method.cold ? method.cold_start : method.code_start);
        bool is_managed = method.answer == CDACQ_ANSWER_MANAGED;
        refused += !is_managed;
        expect(facts[i].cold || (is_managed && method.code_start == facts[i].method), facts[i].begin);
        expect(!is_managed || into < (method.cold ? method.cold_size : method.code_size), facts[i].begin);
    }
    ck_assert_uint_gt(refused, 0);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/*
 * Where an image's tables are missing, as in a snapshot, a prepared method is found without them: alone, among many,
 * and after others that could not be found.
 */
START_TEST(prepared_methods_need_no_tables)
{
    struct mock *mock = mock_of_arch(_i, 0);
    struct mock_r2r *image =
        mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS, .major = 16});
    uint64_t sizes[] = {64, 32}, ips[200];
    struct cdacq_method methods[ARRAY_SIZE(ips)] = {{.size = sizeof methods[0]}};
    for (uint32_t i = 0; i < 40; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = sizes,
                                                         .hot_count = 1 + i % 2,
                                                         .method_desc = i % 4 < 2 ? 0x3000 + 8 * i : 0,
                                                         .rid = i + 1});
    mock_r2r_finish(image);
    mock_unmap(mock, image->methoddefs, image->methoddefs_size);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
        ips[i] = mock_r2r_start(image, i % 40) + 7 * (i / 40);
    for (int round = 0; round < 2; round++) {
        cdacq_session_methods_at(session, ips, ARRAY_SIZE(ips), methods, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
            const struct mock_function *fact = mock_function_at(mock, ips[i]);
            struct cdacq_error error = {0};
            struct cdacq_block block;
            enum cdacq_status status = cdacq_session_code_block_at(session, ips[i], &block, &error);
            expect(status == (fact->method_desc ? CDACQ_OK : CDACQ_ERR_MEMORY), ips[i]);
            expect(methods[i].answer == (fact->method_desc ? CDACQ_ANSWER_MANAGED : CDACQ_ANSWER_ERROR), ips[i]);
            expect(!fact->method_desc ||
                       (methods[i].code_start == fact->method && methods[i].code_size == fact->hot_size &&
                        cdacq_block_get_start_address(&block) == fact->method),
                   ips[i]);
        }
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Debug info ---- */

/*
 * A byte of flags comes first where the JIT stores rich debug info; the variable that leads to the manager may be null.
 */
START_TEST(rich_debug_info)
{
    static const struct {
        bool rich, hidden, null, expected;
    } cases[] = {{false, false, false, false},
                 {true, false, false, true},
                 {true, true, false, false},
                 {true, false, true, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_of_arch(_i, 4 + i);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1000});
        uint64_t no_debug_info =
            mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1008, .no_debug_info = true});
        struct mock_r2r *image = small_image(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS}, false);
        mock_set(mock, mock_jit_manager(mock), "EEJitManager.StoreRichDebugInfo", cases[i].rich);
        if (cases[i].hidden)
            mock_hide(mock, "EEJitManager.StoreRichDebugInfo");
        uint64_t variable = mock_alloc(mock, 8, 8); /* zero */
        if (cases[i].null)
            mock_global(mock, "EEJitManagerAddress", variable);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_block block;
        uint64_t ips[] = {start, no_debug_info, mock_r2r_start(image, 0)}, debug_info;
        for (size_t j = 0; j < ARRAY_SIZE(ips); j++) {
            bool has_flag_byte = true;
            ck_assert_int_eq(cdacq_session_code_block_at(session, ips[j], &block, NULL), CDACQ_OK);
            ck_assert_int_eq(cdacq_block_get_debug_info(&block, session, &debug_info, &has_flag_byte, NULL), CDACQ_OK);
            ck_assert_uint_eq(debug_info, mock_function_at(mock, ips[j])->debug_info);
            ck_assert(has_flag_byte == (cases[i].expected && j == 0)); /* images never have it */
        }
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* An element of an image's debug info that refers back leads to the earlier blob; there is none before the section. */
static size_t check_elements_that_refer_back(int arch, uint64_t seed)
{
    struct mock *mock = mock_of_arch(arch, seed);
    small_image(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS, .major = 16}, false);
    size_t count, shared = 0;
    const struct mock_function *facts = mock_functions(mock, &count);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    struct cdacq_error error = {0};
    struct cdacq_block block;
    uint64_t debug_info, first = facts[0].debug_info;
    bool has_flag_byte;
    for (size_t i = 0; i < count; i++) {
        expect(cdacq_session_code_block_at(session, facts[i].begin, &block, &error) == CDACQ_OK, facts[i].begin);
        expect(cdacq_block_get_debug_info(&block, session, &debug_info, &has_flag_byte, &error) == CDACQ_OK,
               facts[i].begin);
        expect(debug_info == facts[i].debug_info, facts[i].begin);
        for (size_t j = 0; j < i; j++)
            shared += facts[j].method != facts[i].method && facts[j].debug_info == debug_info;
    }
    /* The distance of the first element, 0, precedes its blob in the longest form: 15, then four bytes. */
    ck_assert_uint_eq(mock_read_uint(mock, first - 5, 1), 15);
    mock_write_uint(mock, first - 3, 1, 0xff);
    expect(cdacq_session_code_block_at(session, facts[0].begin, &block, &error) == CDACQ_OK, facts[0].begin);
    expect(cdacq_block_get_debug_info(&block, session, &debug_info, &has_flag_byte, &error) == CDACQ_ERR_CORRUPT, 0);
    ck_assert_ptr_nonnull(strstr(error.message, "section 105"));
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
    return shared;
}

START_TEST(debug_info_that_refers_back)
{
    size_t shared = 0;
    for (uint64_t seed = 1; seed < 8; seed++)
        shared += check_elements_that_refer_back(_i, seed);
    ck_assert_uint_gt(shared, 2);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("contract_cases");
    TCase *tcase = tcase_create("contract_cases");
    tcase_add_loop_test(tcase, without_funclets, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, without_funclets_and_gc_info, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, no_code, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, another_magic_number, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, sentinels, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, half_a_pair, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, pairs_that_contradict_each_other, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, prepared_methods_need_no_tables, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, rich_debug_info, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, debug_info_that_refers_back, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
