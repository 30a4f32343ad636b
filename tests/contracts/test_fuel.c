/*
 * test_fuel.c: the cost of each question of the ExecutionManager contract in units of fuel: on targets that would keep
 * a careless reader busy for ever and, for comparison, on the bundled cores of real processes. tests/test_docs.py
 * compares the bounds with docs/limits.md.
 */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"
#include "tests/support/visitors.h"

enum question {
    CODE_BLOCK,
    METHOD_REGION,
    UNWIND_INFO,
    FUNCLET_START,
    IS_FUNCLET,
    IS_FILTER_FUNCLET,
    DEBUG_INFO,
    GC_INFO,
    GC_SAFE,
    PARAMETERS,
    EXCEPTION_CLAUSES,
    CODE_KIND,
    R2R_MODULE,
    ENTRY_METHOD_DESC,
    JIT_MANAGER,
    CODE_HEAPS,
    FUNCTION_TABLE,
    QUESTION_COUNT
};

/* The largest allowed cost of a call, and its largest cost on the bundled cores. */
#define BOUND(function, most, usual) \
    {                                \
#function, most, usual       \
    }
static const struct {
    const char *name;
    uint32_t most, usual;
} bounds[QUESTION_COUNT] = {
    [CODE_BLOCK] = BOUND(cdacq_session_code_block_at, 100000, 2000),
    [METHOD_REGION] = BOUND(cdacq_block_get_method_region_info, 100000, 10),
    [UNWIND_INFO] = BOUND(cdacq_block_get_unwind_info, 100000, 20),
    [FUNCLET_START] = BOUND(cdacq_block_get_funclet_start_address, 100000, 20),
    [IS_FUNCLET] = BOUND(cdacq_block_is_funclet, 100000, 20),
    [IS_FILTER_FUNCLET] = BOUND(cdacq_block_is_filter_funclet, 100000, 100),
    [DEBUG_INFO] = BOUND(cdacq_block_get_debug_info, 100000, 40),
    [GC_INFO] = BOUND(cdacq_block_get_gc_info, 100000, 10),
    [GC_SAFE] = BOUND(cdacq_block_is_gc_safe, 100000, 100),
    [PARAMETERS] = BOUND(cdacq_block_get_stack_parameter_size, 100000, 10),
    [EXCEPTION_CLAUSES] = BOUND(cdacq_block_visit_exception_clauses, 100000, 50),
    [CODE_KIND] = BOUND(cdacq_session_code_kind_at, 100000, 2000),
    [R2R_MODULE] = BOUND(cdacq_session_ready_to_run_module_at, 100000, 30),
    [ENTRY_METHOD_DESC] = BOUND(cdacq_session_non_virtual_entry_to_method_desc, 100000, 2000),
    [JIT_MANAGER] = BOUND(cdacq_session_get_jit_manager_info, 64000000, 5000),
    [CODE_HEAPS] = BOUND(cdacq_session_visit_code_heaps, 64000000, 5000),
    [FUNCTION_TABLE] = BOUND(cdacq_session_visit_function_table_entries, 64000000, 10),
};

static uint32_t fuel_of(enum question question)
{
    return question >= JIT_MANAGER ? FUEL_INDEX : FUEL_LOOKUP;
}

/* Each clause is a question: the most expensive one counts. */
struct clause_cost {
    struct cdacq_session *session;
    uint32_t most;
    size_t count;
};

static int note_clause(const struct cdacq_exception_clause *clause, void *context)
{
    struct clause_cost *cost = context;
    (void)clause;
    cost->most = MAX(cost->most, FUEL_LOOKUP - reader_fuel(&cost->session->resolver.reader));
    cost->count++;
    return 0;
}

/* Asks about `ip`, and about its block where the question is about one. *ret_cost is in units. */
static enum cdacq_status ask(struct cdacq_session *session, enum question question, uint64_t ip,
                             const struct cdacq_block *block, uint32_t *ret_cost)
{
    struct clause_cost clauses = {.session = session};
    struct cdacq_block other;
    struct cdacq_jit_manager_info manager = {.size = sizeof manager};
    enum cdacq_code_kind kind;
    enum cdacq_status status = CDACQ_OK;
    uint64_t a, b, c;
    uint32_t version;
    bool yes;
    reader_begin(&session->resolver.reader, 0); /* so that a call that does not start a task shows */
    switch (question) {
    case CODE_BLOCK:
        status = cdacq_session_code_block_at(session, ip, &other, NULL);
        break;
    case METHOD_REGION:
        status = cdacq_block_get_method_region_info(block, session, &a, &b, &c, NULL);
        break;
    case UNWIND_INFO:
        status = cdacq_block_get_unwind_info(block, session, &a, NULL);
        break;
    case FUNCLET_START:
        status = cdacq_block_get_funclet_start_address(block, session, &a, NULL);
        break;
    case IS_FUNCLET:
        status = cdacq_block_is_funclet(block, session, &yes, NULL);
        break;
    case IS_FILTER_FUNCLET:
        status = cdacq_block_is_filter_funclet(block, session, &yes, NULL);
        break;
    case DEBUG_INFO:
        status = cdacq_block_get_debug_info(block, session, &a, &yes, NULL);
        break;
    case GC_INFO:
        status = cdacq_block_get_gc_info(block, session, &a, &version, NULL);
        break;
    case GC_SAFE:
        status = cdacq_block_is_gc_safe(block, session, &yes, NULL);
        break;
    case PARAMETERS:
        status = cdacq_block_get_stack_parameter_size(block, session, &version, NULL);
        break;
    case EXCEPTION_CLAUSES:
        status = cdacq_block_visit_exception_clauses(block, session, note_clause, &clauses, NULL);
        break;
    case CODE_KIND:
        status = cdacq_session_code_kind_at(session, ip, &kind, NULL);
        break;
    case R2R_MODULE:
        status = cdacq_session_ready_to_run_module_at(session, ip, &a, NULL);
        break;
    case ENTRY_METHOD_DESC:
        status = cdacq_session_non_virtual_entry_to_method_desc(session, ip, &a, NULL);
        break;
    case JIT_MANAGER:
        status = cdacq_session_get_jit_manager_info(session, CDACQ_CODE_JITTED, &manager, NULL);
        break;
    case CODE_HEAPS:
        status = cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, ignore_heap, NULL, NULL);
        break;
    case FUNCTION_TABLE:
        status = cdacq_session_visit_function_table_entries(session, ip, ignore_entry, NULL, NULL);
        break;
    case QUESTION_COUNT:
        break;
    }
    *ret_cost = MAX(fuel_of(question) - reader_fuel(&session->resolver.reader), clauses.most);
    return status;
}

static void check(struct cdacq_session *session, enum question question, uint64_t ip, const struct cdacq_block *block,
                  enum cdacq_status expected)
{
    uint32_t cost;
    enum cdacq_status status = ask(session, question, ip, block, &cost);
    if (status != expected)
        ck_abort_msg("%s: status %d, not %d", bounds[question].name, status, expected);
    if (cost > bounds[question].most)
        ck_abort_msg("%s: %u units", bounds[question].name, cost);
    if (status == CDACQ_ERR_FUEL && reader_fuel(&session->resolver.reader) && fuel_of(question) == FUEL_LOOKUP)
        ck_abort_msg("%s: gave up with %u units left", bounds[question].name, reader_fuel(&session->resolver.reader));
}

/* The stated numbers are those of the code. */
START_TEST(stated_bounds)
{
    for (int i = 0; i < QUESTION_COUNT; i++)
        ck_assert_uint_eq(bounds[i].most, fuel_of((enum question)i));
}
END_TEST

/* ---- Hostile targets ---- */

struct hostile {
    struct mock *mock;
    struct cdacq_target *target;
    struct cdacq_session *session;
};

static struct hostile open_hostile(struct mock *mock)
{
    struct hostile hostile = {.mock = mock, .target = mock_publish_and_open(mock)};
    hostile.session = mock_session(hostile.target);
    return hostile;
}

static void close_hostile(struct hostile *hostile)
{
    cdacq_session_destroy(hostile->session);
    cdacq_target_close(hostile->target);
    mock_destroy(hostile->mock);
}

/* A list of fragments that has no end, and no section for the address. */
START_TEST(fragments_in_a_cycle)
{
    struct mock *mock = mock_of_arch(_i, 7);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t stride, ip = heap->begin - 8;
    size_t count;
    uint64_t fragment = mock_section_fragments(mock, heap->section, &count, &stride);
    mock_set(mock, fragment, "RangeSectionFragment.Next", fragment | 1);
    mock_hide(mock, "EEJitManagerAddress"); /* so that heaps are looked for in the map */
    struct hostile hostile = open_hostile(mock);
    check(hostile.session, CODE_BLOCK, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, CODE_KIND, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, R2R_MODULE, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, ENTRY_METHOD_DESC, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, JIT_MANAGER, 0, NULL, CDACQ_OK); /* found in the part before the cycle */
    check(hostile.session, CODE_HEAPS, 0, NULL, CDACQ_ERR_MEMORY);
    close_hostile(&hostile);
}
END_TEST

/* A linear nibble map in which nothing begins for 16 MB. */
START_TEST(an_empty_map)
{
    struct mock *mock = mock_of_version(_i, 5, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x1000000});
    mock_set(mock, heap->node, "CodeHeapListNode.EndAddress", heap->end);
    struct hostile hostile = open_hostile(mock);
    check(hostile.session, CODE_BLOCK, heap->end - 1, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, CODE_KIND, heap->end - 1, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, ENTRY_METHOD_DESC, heap->end - 1, NULL, CDACQ_ERR_FUEL);
    close_hostile(&hostile);
}
END_TEST

/* Nothing in the image is prepared, and nothing else states where its methods begin. */
START_TEST(nothing_to_walk_back_to)
{
    enum { FUNCTIONS = 16000 };
    struct mock *mock = mock_of_arch(_i, 0);
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.bucket_count = 7});
    uint64_t size = 16;
    for (int i = 0; i < FUNCTIONS; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = &size, .hot_count = 1});
    mock_r2r_finish(image);
    struct hostile hostile = open_hostile(mock);
    uint64_t ip = mock_r2r_start(image, FUNCTIONS - 1);
    check(hostile.session, CODE_BLOCK, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, CODE_KIND, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, ENTRY_METHOD_DESC, ip, NULL, CDACQ_ERR_FUEL);
    check(hostile.session, R2R_MODULE, ip, NULL, CDACQ_OK);
    close_hostile(&hostile);
}
END_TEST

enum { PIECES = 40000, PIECE = 4 };

/* A method in 40,000 pieces, each a fragment of the one before it. */
static uint64_t method_of_fragments(struct mock *mock, struct mock_heap *heap)
{
    enum { SIZE = PIECES * PIECE };
    uint64_t start = mock_method(heap, &(struct mock_method){.size = SIZE, .method_desc = 0x1000});
    uint64_t entry_size = mock_size_of(mock, "RuntimeFunction");
    uint64_t header = mock_new(mock, "RealCodeHeader", PIECES * entry_size), unwind = heap->end - 64;
    uint64_t infos = header + mock_offset_of(mock, "RealCodeHeader.UnwindInfos");
    bool arm = mock_map_levels(mock) == 2; /* the header is that of arm, with 64 bits that of arm64 */
    mock_write_uint(mock, unwind, 4, (arm ? 1u << 22 | 1u << 28 | PIECE / 2 : 1u << 27 | PIECE / 4) | 1u << 21);
    mock_write_uint(mock, unwind + 4, 1, 0xe5);
    for (uint64_t i = 0; i < PIECES; i++) {
        mock_set(mock, infos + i * entry_size, "RuntimeFunction.BeginAddress", start - heap->begin + i * PIECE);
        mock_set(mock, infos + i * entry_size, "RuntimeFunction.UnwindData", unwind - heap->begin);
    }
    mock_set(mock, header, "RealCodeHeader.MethodDesc", 0x1000);
    mock_set(mock, header, "RealCodeHeader.NumUnwindInfos", PIECES);
    mock_write_pointer(mock, start - (arm ? 4 : 8), header);
    return start;
}

START_TEST(endless_fragments)
{
    struct mock *mock = mock_create(
        &(struct mock_options){.pointer_size = _i & 1 ? 8 : 4, .big_endian = _i & 2, .unwind = MOCK_UNWIND_HEADER});
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x40000});
    uint64_t start = method_of_fragments(mock, heap);
    struct hostile hostile = open_hostile(mock);
    struct cdacq_block block;
    ck_assert_int_eq(cdacq_session_code_block_at(hostile.session, start + PIECE * (PIECES - 1), &block, NULL),
                     CDACQ_OK);
    check(hostile.session, UNWIND_INFO, 0, &block, CDACQ_ERR_FUEL);
    check(hostile.session, FUNCLET_START, 0, &block, CDACQ_ERR_FUEL);
    check(hostile.session, IS_FUNCLET, 0, &block, CDACQ_ERR_FUEL);
    check(hostile.session, IS_FILTER_FUNCLET, 0, &block, CDACQ_ERR_FUEL);
    check(hostile.session, METHOD_REGION, 0, &block, CDACQ_OK);
    check(hostile.session, DEBUG_INFO, 0, &block, CDACQ_OK);
    check(hostile.session, GC_INFO, 0, &block, CDACQ_OK);
    check(hostile.session, EXCEPTION_CLAUSES, 0, &block, CDACQ_OK);
    close_hostile(&hostile);
}
END_TEST

/*
 * The largest number of clauses: searching them for a filter takes too much fuel. Visiting them does not, since each is
 * a question of its own.
 */
START_TEST(many_clauses)
{
    enum { COUNT = 64 * 1024, CLAUSE_MOST = 8 };
    static const uint64_t funclet = 20;
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(
        heap, &(struct mock_method){.size = 40, .funclets = &funclet, .funclet_count = 1, .method_desc = 0x1000});
    uint64_t word = _i & 1 ? 8 : 4, size = mock_size_of(mock, "EEExceptionClause");
    uint64_t info = mock_alloc(mock, word + mock_size_of(mock, "EEILException") + COUNT * size, 8) + word;
    mock_write_pointer(mock, info - word, COUNT);
    mock_set(mock, mock_method_header(heap, start), "RealCodeHeader.EHInfo", info);
    struct hostile hostile = open_hostile(mock);
    struct cdacq_block block;
    struct clause_cost cost = {.session = hostile.session};
    ck_assert_int_eq(cdacq_session_code_block_at(hostile.session, start + 44, &block, NULL), CDACQ_OK);
    check(hostile.session, IS_FUNCLET, 0, &block, CDACQ_OK);
    check(hostile.session, IS_FILTER_FUNCLET, 0, &block, CDACQ_ERR_FUEL);
    ck_assert_int_eq(cdacq_block_visit_exception_clauses(&block, hostile.session, note_clause, &cost, NULL), CDACQ_OK);
    ck_assert_uint_eq(cost.count, COUNT);
    ck_assert_uint_le(cost.most, CLAUSE_MOST);
    mock_write_pointer(mock, info - word, COUNT + 1);
    check(hostile.session, EXCEPTION_CLAUSES, 0, &block, CDACQ_ERR_CORRUPT);
    close_hostile(&hostile);
}
END_TEST

/* An endless list of heaps: the walk ends long before the fuel runs out. */
START_TEST(heaps_in_a_cycle)
{
    enum { HEAP_MOST = 16 };
    struct mock *mock = mock_of_arch(_i, 5);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000});
    mock_set(mock, heap->node, "CodeHeapListNode.Next", heap->node);
    struct hostile hostile = open_hostile(mock);
    uint32_t cost;
    ck_assert_int_eq(ask(hostile.session, CODE_HEAPS, 0, NULL, &cost), CDACQ_ERR_CORRUPT);
    ck_assert_uint_le(cost, HEAP_MOST * 64 * 1024 + HEAP_MOST);
    check(hostile.session, JIT_MANAGER, 0, NULL, CDACQ_OK);
    close_hostile(&hostile);
}
END_TEST

/* ---- Real processes ---- */

/* Measures the costs of all questions about one address, and also about the middle of a method's block. */
static void note_costs(struct cdacq_target *target, uint64_t ip, uint32_t *most)
{
    struct cdacq_session *session = mock_session(target); /* without any cached answer */
    struct cdacq_block block;
    bool has_block = false;
    for (enum question question = CODE_BLOCK; question < QUESTION_COUNT; question++) {
        bool about_block = question >= METHOD_REGION && question <= EXCEPTION_CLAUSES;
        uint32_t cost;
        if (about_block && !has_block)
            continue;
        ask(session, question, ip, &block, &cost);
        most[question] = MAX(most[question], cost);
        if (question == CODE_BLOCK)
            has_block = cdacq_session_code_block_at(session, ip, &block, NULL) == CDACQ_OK;
    }
    cdacq_session_destroy(session);
}

START_TEST(real_processes)
{
    static const char *const names[] = {"net8-x64", "net9-x64", "net10-x64", "net10-hot-cold-x64"};
    const char *fixtures = getenv("CDACQ_FIXTURES");
    uint32_t most[QUESTION_COUNT] = {0};
    size_t count = 0;
    ck_assert_msg(fixtures != NULL, "CDACQ_FIXTURES is not set");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[512], line[1024];
        struct cdacq_target *target = NULL;
        struct cdacq_error error;
        snprintf(path, sizeof path, "%s/%s/core", fixtures, names[i]);
        if (cdacq_target_open_core(path, NULL, &target, &error) < 0)
            ck_abort_msg("%s", error.message);
        snprintf(path, sizeof path, "%s/%s/expected.txt", fixtures, names[i]);
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        while (fgets(line, sizeof line, file)) {
            unsigned long long begin, size;
            if (sscanf(line, "%llx %llu", &begin, &size) != 2)
                continue;
            note_costs(target, begin, most);
            note_costs(target, begin + size / 2, most);
            count++;
        }
        fclose(file);
        cdacq_target_close(target);
    }
    ck_assert_uint_gt(count, 500);
    for (int i = 0; i < QUESTION_COUNT; i++)
        if (most[i] > bounds[i].usual || (!most[i] && i != PARAMETERS && i != FUNCTION_TABLE))
            ck_abort_msg("%s: %u units", bounds[i].name, most[i]);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("fuel");
    TCase *tcase = tcase_create("fuel");
    tcase_add_test(tcase, stated_bounds);
    tcase_add_loop_test(tcase, fragments_in_a_cycle, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, an_empty_map, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, nothing_to_walk_back_to, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, endless_fragments, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, many_clauses, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, heaps_in_a_cycle, 0, ARCH_COUNT);
    tcase_add_test(tcase, real_processes);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
