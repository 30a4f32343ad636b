/*
 * From an address to the method that owns it, on synthetic processes of every width, byte order, contract version and
 * carrier, with layouts shuffled by seed. Answers must be those that the mock expects.
 */
#include <inttypes.h>
#include <stdio.h>

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/execution_manager.h"
#include "contracts/ready_to_run/r2r_image.h"
#include "src/lookup/opened_target.h"
#include "util/binary_search.h"
#include "util/vector.h"
#include "tests/support/check_main.h"
#include "contracts/code_info/gc_info.h"
#include "contracts/execution_manager/block_function.h"
#include "tests/support/mock_support.h"

enum { VERSIONS = 3, SEEDS = 6, COMBINATIONS = ARCH_COUNT * VERSIONS * SEEDS, PROBES = 400 };

/* The combination for the index of a loop test. */
struct combination {
    int arch;
    unsigned version;
    uint64_t seed;
};

static struct combination combination_of(int i)
{
    static const unsigned versions[VERSIONS] = {1, 2, MOCK_NET_11};
    return (struct combination){i % ARCH_COUNT, versions[i / ARCH_COUNT % VERSIONS],
                                (uint64_t)(i / ARCH_COUNT / VERSIONS)};
}

/* Check records each assertion that passes, which takes longer than a look-up, so frequent checks use this macro. */
#define expect(condition, ip)                                                        \
    do {                                                                             \
        if (!(condition))                                                            \
            ck_abort_msg("at %#" PRIx64 ": not so: %s", (uint64_t)(ip), #condition); \
    } while (0)

/* ---- Which addresses ---- */

DEFINE_VECTOR(addresses, uint64_t);

static void add_address(struct addresses *addresses, uint64_t address)
{
    if (!addresses_append(addresses, address))
        ck_abort();
}

/*
 * The edges of every function, an address inside it, any address in every section, and addresses outside all sections.
 */
static struct addresses interesting_addresses(struct sample_process *sample, struct random *random)
{
    struct addresses addresses = {0};
    size_t count;
    const struct mock_function *functions = mock_functions(sample->mock, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = functions[i].begin, end = functions[i].end;
        add_address(&addresses, begin - 1);
        add_address(&addresses, begin);
        add_address(&addresses, begin + random_below(random, end - begin));
        add_address(&addresses, end - 1);
        add_address(&addresses, end);
    }
    for (size_t i = 0; i < sample->range_count; i++) {
        uint64_t begin = sample->ranges[i].begin, end = sample->ranges[i].end;
        add_address(&addresses, begin - 1);
        add_address(&addresses, end - 1);
        add_address(&addresses, end);
        for (int n = 0; n < PROBES; n++)
            add_address(&addresses, begin + random_below(random, end - begin));
    }
    add_address(&addresses, 0);
    add_address(&addresses, 1);
    add_address(&addresses, 0x7fffffff);
    add_address(&addresses, UINT32_MAX);
    add_address(&addresses, UINT64_MAX);
    return addresses;
}

/* The facts, sorted, for a search. */
struct facts {
    const struct mock_function *items;
    size_t count;
};

/* The last function that begins at or before the address; NULL if there is none. */
static const struct mock_function *fact_before(const struct facts *facts, uint64_t address)
{
    size_t after = lower_bound(i, facts->count, facts->items[i].begin <= address);
    return after ? &facts->items[after - 1] : NULL;
}

static bool is_method(const struct mock_function *fact)
{
    return fact->code == MOCK_CODE_JIT || fact->code == MOCK_CODE_R2R || fact->code == MOCK_CODE_INTERPRETER;
}

/*
 * No map records where a block of stubs ends: after one, up to the next start, its kind may be reported, but never a
 * method.
 */
static bool may_be_taken_for_stub(const struct facts *facts, uint64_t ip, uint64_t start)
{
    const struct mock_function *before = fact_before(facts, ip);
    return before && before->code == MOCK_CODE_STUB && before->begin == start;
}

/* ---- The contract itself ---- */

static void check_block(struct reader *reader, const struct mock_function *fact, const struct code_block *block,
                        uint64_t ip)
{
    struct block_function function = {0};
    expect(block->ip == ip, ip);
    expect(block->kind == sample_code_kind(fact), ip);
    expect(block->start == fact->method, ip);
    expect(code_block_is_method(block) == is_method(fact), ip);
    if (!is_method(fact))
        return;
    expect(block->method_desc == fact->method_desc, ip);
    expect(block->offset == fact->offset + (ip - fact->begin), ip);
    expect(block->hot_size == fact->hot_size, ip);
    expect(block->cold_start == fact->cold_start && block->cold_size == fact->cold_size, ip);
    expect(block->cold == fact->cold, ip);
    expect(block_function_find(reader, block, &function), ip);
    expect(function.entry == fact->unwind_info, ip);
    expect(function.start == fact->begin, ip);
}

static void check_address(struct cdacq_target *target, struct reader *reader, const struct facts *facts, uint64_t ip)
{
    const struct mock_function *fact = fact_before(facts, ip);
    struct code_block block;
    if (fact && ip >= fact->end)
        fact = NULL;
    reader_begin(reader, FUEL_LOOKUP);
    bool found = execution_manager_find(&target->manager, reader, ip, &block);
    expect(reader_failure(reader).status == CDACQ_OK, ip);
    if (fact) {
        expect(found, ip);
        check_block(reader, fact, &block, ip);
    } else {
        expect(!found || (!code_block_is_method(&block) && may_be_taken_for_stub(facts, ip, block.start)), ip);
    }
}

START_TEST(every_address_has_its_method)
{
    struct combination c = combination_of(_i);
    struct sample_process sample = sample_build(c.arch, c.seed, c.version, true);
    struct random random = {(uint64_t)_i};
    struct addresses addresses = interesting_addresses(&sample, &random);
    struct facts facts;
    mock_publish(sample.mock, NULL);
    facts.items = mock_functions(sample.mock, &facts.count);
    /* As memory, and by one of the other carriers. */
    enum carrier other = 1 + (unsigned)_i / ARCH_COUNT % ((unsigned)mock_carriers() - 1);
    for (enum carrier carrier = 0; carrier <= other; carrier += other) {
        struct cdacq_target *target = mock_open(sample.mock, carrier, NULL);
        struct reader reader = mock_reader(target);
        for (size_t i = 0; i < addresses.count; i++)
            check_address(target, &reader, &facts, addresses.items[i]);
        cdacq_target_close(target);
    }
    free(addresses.items);
    sample_destroy(&sample);
}
END_TEST

/* ---- The public API ---- */

static void check_answer(const struct sample_process *sample, const struct facts *facts,
                         const struct cdacq_method *method, uint64_t ip, bool types)
{
    const struct mock_function *fact = fact_before(facts, ip);
    if (fact && ip >= fact->end)
        fact = NULL;
    expect(method->ip == ip, ip);
    if (!fact) {
        expect(method->answer == CDACQ_ANSWER_NONE ||
                   (method->answer == CDACQ_ANSWER_STUB && may_be_taken_for_stub(facts, ip, method->code_start)),
               ip);
        return;
    }
    expect(method->answer == (is_method(fact) ? CDACQ_ANSWER_MANAGED : CDACQ_ANSWER_STUB), ip);
    expect(method->kind == sample_code_kind(fact), ip);
    if (!is_method(fact))
        return;
    expect(method->method_desc == fact->method_desc, ip);
    expect(method->code_start == fact->method, ip);
    expect(method->code_size == fact->hot_size, ip);
    expect(method->cold_start == fact->cold_start && method->cold_size == fact->cold_size, ip);
    expect(method->offset == fact->offset + (ip - fact->begin), ip);
    expect(method->cold == fact->cold, ip);
    expect(method->funclet_start == (fact->funclet ? fact->begin : fact->method), ip);
    if (types && (!method->name || strcmp(method->name, sample_name(sample, fact)) != 0))
        ck_abort_msg("at %#" PRIx64 ": \"%s\" is \"%s\" (%s)", ip, sample_name(sample, fact),
                     method->name ? method->name : "", method->error ? method->error : "");
    if (types)
        expect(method->name_length == strlen(method->name) && !method->error, ip);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void check_same(const struct cdacq_method *a, const struct cdacq_method *b)
{
    expect(a->answer == b->answer && a->kind == b->kind && a->method_desc == b->method_desc, a->ip);
    expect(a->code_start == b->code_start && a->code_size == b->code_size, a->ip);
    expect(a->cold_start == b->cold_start && a->cold_size == b->cold_size && a->cold == b->cold, a->ip);
    expect(a->offset == b->offset && a->funclet_start == b->funclet_start && a->token == b->token, a->ip);
    expect(same_text(a->name, b->name) && same_text(a->module, b->module), a->ip);
    expect(a->module_verified == b->module_verified && a->il_offset == b->il_offset, a->ip);
}

/* A session's first look-ups walk; only later ones use an index. So every few addresses are asked in a new session. */
static void check_single(struct cdacq_target *target, const struct cdacq_method *bulk, size_t count,
                         struct random *random)
{
    enum { SESSIONS = 12, QUESTIONS = 12 };
    for (int i = 0; i < SESSIONS; i++) {
        struct cdacq_session *session = mock_session(target);
        for (int j = 0; j < QUESTIONS; j++) {
            const struct cdacq_method *expected = &bulk[random_below(random, count)];
            struct cdacq_method method = {.size = sizeof method};
            enum cdacq_status status = cdacq_session_method_at(session, expected->ip, &method, NULL);
            expect(status == (expected->answer == CDACQ_ANSWER_MANAGED ? CDACQ_OK : CDACQ_NOT_MANAGED), expected->ip);
            check_same(&method, expected);
        }
        cdacq_session_destroy(session);
    }
}

START_TEST(bulk_equals_single)
{
    struct combination c = combination_of(_i);
    struct sample_process sample = sample_build(c.arch, c.seed, c.version, true);
    struct random random = {(uint64_t)_i + 1000};
    struct addresses addresses = interesting_addresses(&sample, &random);
    struct cdacq_method *methods = calloc(addresses.count, sizeof *methods);
    struct facts facts;
    mock_publish(sample.mock, NULL);
    facts.items = mock_functions(sample.mock, &facts.count);
    struct cdacq_target *target = mock_open(sample.mock, (enum carrier)(_i % mock_carriers()), NULL);
    struct cdacq_session *session = mock_session(target);
    methods->size = sizeof *methods;
    cdacq_session_methods_at(session, addresses.items, addresses.count, methods, NULL);
    for (size_t i = 0; i < addresses.count; i++)
        check_answer(&sample, &facts, &methods[i], addresses.items[i], true);
    check_single(target, methods, addresses.count, &random);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    free(methods);
    free(addresses.items);
    sample_destroy(&sample);
}
END_TEST

/*
 * The first question to an image may be answered without its tables. The answer must agree with the tables, so each
 * address here is asked in a new target.
 */
static void check_first_questions(struct sample_process *sample, struct random *random, bool types)
{
    struct facts facts;
    struct cdacq_target *indexed = mock_open(sample->mock, CARRIER_MEMORY, NULL);
    struct cdacq_session *session = mock_session(indexed);
    uint64_t ips[64];
    struct cdacq_method methods[ARRAY_SIZE(ips)] = {{.size = sizeof methods[0]}};
    facts.items = mock_functions(sample->mock, &facts.count);
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
        do
            ips[i] = sample->unsplit->begin + random_below(random, sample->unsplit->end - sample->unsplit->begin);
        while (!mock_function_at(sample->mock, ips[i]) && random_below(random, 40));
    cdacq_session_methods_at(session, ips, ARRAY_SIZE(ips), methods, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        struct cdacq_target *fresh = mock_open(sample->mock, CARRIER_MEMORY, NULL);
        struct cdacq_session *first = mock_session(fresh);
        struct reader reader = mock_reader(fresh);
        struct cdacq_method method = {.size = sizeof method};
        check_address(fresh, &reader, &facts, ips[i]);
        check_answer(sample, &facts, &methods[i], ips[i], types);
        cdacq_session_methods_at(first, &ips[i], 1, &method, NULL);
        check_same(&method, &methods[i]);
        cdacq_session_destroy(first);
        cdacq_target_close(fresh);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(indexed);
}

START_TEST(first_questions)
{
    for (uint64_t seed = 0; seed <= 6; seed += 3) { /* lengths stated by end addresses */
        struct sample_process sample = sample_build(_i, seed, 2, true);
        struct random random = {(uint64_t)_i + seed};
        mock_publish(sample.mock, NULL);
        check_first_questions(&sample, &random, true);
        sample_destroy(&sample);
    }
}
END_TEST

START_TEST(first_questions_without_types)
{
    static const char *const others[] = {"RuntimeTypeSystem", "Loader", "EcmaMetadata"};
    struct sample_process sample = sample_build(_i, 3, 2, false);
    struct random random = {(uint64_t)_i};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        mock_hide(sample.mock, others[i]);
    mock_publish(sample.mock, NULL);
    check_first_questions(&sample, &random, false);
    sample_destroy(&sample);
}
END_TEST

/* The state of a visit: the facts that it must report, in order. */
struct visit {
    const struct sample_process *sample;
    struct facts facts;
    size_t at, count;
    unsigned flags;
    uint64_t last;
};

static bool is_visited(const struct mock_function *fact, unsigned flags)
{
    if (is_method(fact))
        return fact->begin == fact->method && (fact->method_desc || flags & CDACQ_VISIT_R2R_ALL);
    return flags & CDACQ_VISIT_STUBS && fact->code != MOCK_CODE_THUNK;
}

static int visit_one(const struct cdacq_method *method, void *context)
{
    struct visit *visit = context;
    expect(method->answer != CDACQ_ANSWER_ERROR, method->code_start);
    expect(method->code_start > visit->last || !visit->count, method->code_start);
    if (method->kind == CDACQ_CODE_METHOD_CALL_THUNK)
        return 0;
    while (visit->at < visit->facts.count && !is_visited(&visit->facts.items[visit->at], visit->flags))
        visit->at++;
    expect(visit->at < visit->facts.count, method->code_start);
    const struct mock_function *fact = &visit->facts.items[visit->at++];
    expect(method->code_start == fact->begin, method->code_start);
    if (is_method(fact))
        check_answer(visit->sample, &visit->facts, method, fact->begin, true);
    visit->last = method->code_start;
    visit->count++;
    return 0;
}

START_TEST(a_visit_reports_everything)
{
    static const unsigned flags[] = {0, CDACQ_VISIT_STUBS, CDACQ_VISIT_R2R_ALL,
                                     CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL};
    struct combination c = combination_of(_i);
    struct sample_process sample = sample_build(c.arch, c.seed, c.version, true);
    struct facts facts;
    mock_publish(sample.mock, NULL);
    facts.items = mock_functions(sample.mock, &facts.count);
    struct cdacq_target *target = mock_open(sample.mock, CARRIER_MEMORY, NULL);
    struct cdacq_session *session = mock_session(target);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        struct visit visit = {.sample = &sample, .facts = facts, .flags = flags[i]};
        struct cdacq_error error;
        if (cdacq_session_visit_methods(session, flags[i], visit_one, &visit, &error) != CDACQ_OK)
            ck_abort_msg("%s", error.message);
        for (; visit.at < facts.count; visit.at++)
            expect(!is_visited(&facts.items[visit.at], flags[i]), facts.items[visit.at].begin);
        ck_assert_uint_gt(visit.count, 20);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

static int stop_at_third(const struct cdacq_method *method, void *context)
{
    (void)method;
    return ++*(int *)context == 3;
}

START_TEST(a_visit_can_be_stopped)
{
    struct sample_process sample = sample_build(_i, 1, 2, true);
    int count = 0;
    struct cdacq_target *target = mock_publish_and_open(sample.mock);
    struct cdacq_session *session = mock_session(target);
    ck_assert_int_eq(cdacq_session_visit_methods(session, 0, stop_at_third, &count, NULL), CDACQ_STOPPED);
    ck_assert_int_eq(count, 3);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

/* An image without tables whose first methods are not prepared: neither they nor their cold parts have an owner. */
START_TEST(nothing_to_walk_back_to)
{
    struct mock *mock = mock_of_arch(_i, 4);
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){0});
    uint64_t sizes[] = {48, 32};
    for (int i = 0; i < 4; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = sizes,
                                                         .hot_count = 1,
                                                         .cold = sizes,
                                                         .cold_count = 2,
                                                         .method_desc = i < 2 ? 0 : 0x1000 + (uint64_t)i * 8});
    mock_r2r_finish(image);
    struct facts facts;
    mock_publish(mock, NULL);
    facts.items = mock_functions(mock, &facts.count);
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct reader reader = mock_reader(target);
    struct cdacq_session *session = mock_session(target);
    for (uint64_t ip = image->begin; ip < image->end; ip++) {
        const struct mock_function *fact = mock_function_at(mock, ip);
        struct code_block block;
        struct cdacq_method method = {.size = sizeof method};
        bool known = fact && fact->method_desc;
        reader_begin(&reader, FUEL_LOOKUP);
        expect(execution_manager_find(&target->manager, &reader, ip, &block) == known, ip);
        expect(cdacq_session_method_at(session, ip, &method, NULL) == (known ? CDACQ_OK : CDACQ_NOT_MANAGED), ip);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Components of a composite image have separate MethodDefs. An unprepared method is not identified yet. */
START_TEST(composite_images)
{
    enum { METHODS = 40 };
    struct mock *mock = mock_of_arch(_i, 8);
    struct mock_r2r *image =
        mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS, .composite = true});
    uint64_t sizes[] = {40, 24};
    for (uint32_t i = 0; i < METHODS; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = sizes,
                                                         .hot_count = 1 + i % 2,
                                                         .rid = 1 + i * 2,
                                                         .method_desc = i % 3 ? 0 : 0x1000 + i * 8});
    mock_r2r_finish(image);
    struct facts facts;
    mock_publish(mock, NULL);
    facts.items = mock_functions(mock, &facts.count);
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct reader reader = mock_reader(target);
    for (uint64_t ip = image->begin; ip < image->end; ip += 5)
        check_address(target, &reader, &facts, ip);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The GC info of a ReadyToRun method follows the unwind data on every architecture, and states the method's length. */
START_TEST(gc_info_of_images)
{
    struct sample_process sample = sample_build(_i % ARCH_COUNT, (uint64_t)(_i / ARCH_COUNT), 2, true);
    struct facts facts;
    mock_publish(sample.mock, NULL);
    facts.items = mock_functions(sample.mock, &facts.count);
    struct cdacq_target *target = mock_open(sample.mock, CARRIER_MEMORY, NULL);
    struct reader reader = mock_reader(target);
    size_t asked = 0;
    for (size_t i = 0; i < facts.count; i++) {
        const struct mock_function *fact = &facts.items[i];
        struct range_section section;
        struct code_block block;
        uint64_t gc_info;
        uint32_t version;
        if (fact->code != MOCK_CODE_R2R)
            continue;
        reader_begin(&reader, FUEL_INDEX);
        expect(range_section_map_find(&reader, target->manager.map, fact->begin, &section), fact->begin);
        if (!r2r_images_get(&target->manager.managers.images, &reader, &section)->gc_info_version)
            continue; /* it has no header */
        expect(execution_manager_find(&target->manager, &reader, fact->begin, &block), fact->begin);
        expect(block.manager->gc_info(&reader, &block, &gc_info, &version), fact->begin);
        expect(gc_info_code_length(&reader, gc_info, version) == fact->hot_size + fact->cold_size, fact->begin);
        asked++;
    }
    ck_assert_uint_gt(asked, 0);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

/* Code pointers carry more than an address: the Thumb bit of arm, the authentication code of arm64. */
START_TEST(code_pointers)
{
    struct mock_options options = {.pointer_size = _i & 1 ? 8 : 4,
                                   .big_endian = _i & 2,
                                   .seed = 3,
                                   .unwind = MOCK_UNWIND_HEADER,
                                   .code_pointer_flags = _i & 1 ? 2 : 1};
    struct mock *mock = mock_create(&options);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1234});
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    /* Thumb instructions are two bytes apart, and the pointer to one is odd. */
    uint64_t ips[64], signature = _i & 1 ? UINT64_C(0x2a5) << 52 : 1, step = _i & 1 ? 1 : 2;
    struct cdacq_method methods[64];
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        ips[i] = (start + i) | signature;
        methods[i].size = sizeof methods[i];
    }
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < (round ? ARRAY_SIZE(ips) : 10); i++) {
            if (round)
                cdacq_session_methods_at(session, &ips[i], 1, &methods[i], NULL);
            else
                expect(cdacq_session_method_at(session, ips[i], &methods[i], NULL) == CDACQ_OK, ips[i]);
            expect(methods[i].answer == CDACQ_ANSWER_MANAGED, ips[i]);
            expect(methods[i].ip == ips[i], ips[i]);
            expect(methods[i].code_start == start && methods[i].offset == i / step * step, ips[i]);
            expect(methods[i].method_desc == 0x1234, ips[i]);
        }
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- What targets leave out ---- */

/* ExecutionManager only: methods without names. */
START_TEST(execution_manager_alone)
{
    struct sample_process sample = sample_build(_i, 3, 2, false);
    struct random random = {5};
    struct addresses addresses = interesting_addresses(&sample, &random);
    struct cdacq_method *methods = calloc(addresses.count, sizeof *methods);
    struct facts facts;
    static const char *const others[] = {"RuntimeTypeSystem", "Loader", "EcmaMetadata", "PlatformMetadata"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        mock_hide(sample.mock, others[i]);
    mock_publish(sample.mock, NULL);
    facts.items = mock_functions(sample.mock, &facts.count);
    struct cdacq_target *target = mock_open(sample.mock, CARRIER_MEMORY, NULL);
    struct cdacq_session *session = mock_session(target);
    methods->size = sizeof *methods;
    cdacq_session_methods_at(session, addresses.items, addresses.count, methods, NULL);
    for (size_t i = 0; i < addresses.count; i++) {
        check_answer(&sample, &facts, &methods[i], addresses.items[i], false);
        if (methods[i].answer == CDACQ_ANSWER_MANAGED && methods[i].kind == CDACQ_CODE_JITTED)
            expect(!methods[i].name && methods[i].error, addresses.items[i]);
    }
    check_single(target, methods, addresses.count, &random);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    free(methods);
    free(addresses.items);
    sample_destroy(&sample);
}
END_TEST

START_TEST(missing_names)
{
    static const char *const hidden[] = {"RangeSection.Flags", "Bucket.!", "StubCodeBlockLast",
                                         "RealCodeHeader.MethodDesc", "HashMap"};
    static const char *const said[] = {"RangeSection.Flags", "Bucket.size", "StubCodeBlockLast",
                                       "RealCodeHeader.MethodDesc", "HashMap.Buckets"};
    struct mock *mock = mock_of_arch(_i, 1);
    struct cdacq_error error;
    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
        mock_hide(mock, hidden[i]);
    mock_publish(mock, NULL);
    ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_FIELD);
    for (size_t i = 0; i < ARRAY_SIZE(said); i++)
        ck_assert_msg(strstr(error.message, said[i]) != NULL, "%s is not in: %s", said[i], error.message);
    mock_destroy(mock);
}
END_TEST

/* Every name that is required, alone. */
START_TEST(each_missing_name)
{
    static const char *const names[] = {
#define CDAC_SIZE(type, contract, need)               CDAC_REQUIRED_##contract##_##need(#type ".!")
#define CDAC_FIELD(type, kind, field, contract, need) CDAC_REQUIRED_##contract##_##need(#type "." #field)
#define CDAC_GLOBAL(kind, name, contract, need)       CDAC_REQUIRED_##contract##_##need(#name)
#define CDAC_REQUIRED_ExecutionManager_REQUIRED(name) name,
#define CDAC_REQUIRED_RangeSections_REQUIRED(name)    name,
#define CDAC_REQUIRED_ExecutionManager_OPTIONAL(name)
#define CDAC_REQUIRED_RangeSections_OPTIONAL(name)
#define CDAC_REQUIRED_ReadyToRun_REQUIRED(name) name,
#define CDAC_REQUIRED_ExecutionManager_PUBLISHED_X64(name)
#define CDAC_REQUIRED_PrecodeStubs_PUBLISHED_X64(name)
#define CDAC_REQUIRED_StackWalk_PUBLISHED_X64(name)
#define CDAC_REQUIRED_AuxiliarySymbols_PUBLISHED(name)
#define CDAC_REQUIRED_CodeVersions_PUBLISHED(name)
#define CDAC_REQUIRED_EcmaMetadata_PUBLISHED(name)
#define CDAC_REQUIRED_Exception_PUBLISHED(name)
#define CDAC_REQUIRED_ExecutionManager_PUBLISHED(name)
#define CDAC_REQUIRED_Loader_PUBLISHED(name)
#define CDAC_REQUIRED_Object_PUBLISHED(name)
#define CDAC_REQUIRED_PlatformMetadata_PUBLISHED(name)
#define CDAC_REQUIRED_PrecodeStubs_PUBLISHED(name)
#define CDAC_REQUIRED_ReadyToRun_PUBLISHED(name)
#define CDAC_REQUIRED_RuntimeTypeSystem_PUBLISHED(name)
#define CDAC_REQUIRED_StackWalk_PUBLISHED(name)
#define CDAC_REQUIRED_SyncBlock_PUBLISHED(name)
#define CDAC_REQUIRED_Thread_PUBLISHED(name)
#define CDAC_REQUIRED_Thread_REQUIRED(name)
#define CDAC_REQUIRED_Thread_OPTIONAL(name)
#define CDAC_REQUIRED_StackWalk_REQUIRED(name)
#define CDAC_REQUIRED_StackWalk_OPTIONAL(name)
#define CDAC_REQUIRED_AuxiliarySymbols_REQUIRED(name)
#define CDAC_REQUIRED_AuxiliarySymbols_OPTIONAL(name)
#define CDAC_REQUIRED_PlatformMetadata_REQUIRED(name)
#define CDAC_REQUIRED_PlatformMetadata_OPTIONAL(name)
#define CDAC_REQUIRED_PrecodeStubs_REQUIRED(name)
#define CDAC_REQUIRED_PrecodeStubs_OPTIONAL(name)
#define CDAC_REQUIRED_RuntimeTypeSystem_REQUIRED(name)
#define CDAC_REQUIRED_RuntimeTypeSystem_OPTIONAL(name)
#define CDAC_REQUIRED_CodeVersions_REQUIRED(name)
#define CDAC_REQUIRED_Frames_REQUIRED(name)
#define CDAC_REQUIRED_NativeCode_REQUIRED(name)
#define CDAC_REQUIRED_CodeVersions_OPTIONAL(name)
#define CDAC_REQUIRED_Frames_OPTIONAL(name)
#define CDAC_REQUIRED_NativeCode_OPTIONAL(name)
#define CDAC_REQUIRED_Loader_REQUIRED(name)
#define CDAC_REQUIRED_Loader_OPTIONAL(name)
#define CDAC_REQUIRED_EcmaMetadata_REQUIRED(name)
#define CDAC_REQUIRED_EcmaMetadata_OPTIONAL(name)
#define CDAC_REQUIRED_GC_OPTIONAL(name)
#define CDAC_REQUIRED_GC_PUBLISHED(name)
#define CDAC_REQUIRED_Object_REQUIRED(name)
#define CDAC_REQUIRED_Object_OPTIONAL(name)
#define CDAC_REQUIRED_SyncBlock_REQUIRED(name)
#define CDAC_REQUIRED_SyncBlock_OPTIONAL(name)
#define CDAC_REQUIRED_Exception_REQUIRED(name)
#define CDAC_REQUIRED_Exception_OPTIONAL(name)
#define CDAC_REQUIRED_StressLog_REQUIRED(name)
#define CDAC_REQUIRED_StressLog_OPTIONAL(name)
#define CDAC_REQUIRED_StressLog_PUBLISHED(name)
#include "descriptors/layout.def"
    };
    ck_assert_uint_gt(ARRAY_SIZE(names), 20);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct mock *mock = mock_of_arch(_i, 0);
        struct cdacq_error error;
        char said[80];
        size_t length = strcspn(names[i], "!");
        snprintf(said, sizeof said, "%.*s%s", (int)length, names[i], names[i][length] ? "size" : "");
        mock_hide(mock, names[i]);
        mock_publish(mock, NULL);
        ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_FIELD);
        ck_assert_msg(strstr(error.message, said) != NULL, "%s is not in: %s", said, error.message);
        mock_destroy(mock);
    }
}
END_TEST

START_TEST(unsupported_versions)
{
    static const struct {
        const char *version;
        unsigned schema;
        const char *said;
    } cases[] = {{"3", 0, "ExecutionManager 3"},
                 {"c9", 0, "ExecutionManager c9"},
                 {"2", 7, "descriptor version 7"},
                 {NULL, 0, "no ExecutionManager contract"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_of_arch(_i, i);
        struct cdacq_error error;
        mock_contract(mock, "ExecutionManager", cases[i].version);
        mock_publish(mock, &(struct mock_publish_options){.schema = cases[i].schema});
        ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_CONTRACT);
        ck_assert_msg(strstr(error.message, cases[i].said) != NULL, "%s is not in: %s", cases[i].said, error.message);
        mock_destroy(mock);
    }
}
END_TEST

START_TEST(a_runtime_that_has_not_started)
{
    struct mock *mock = mock_of_arch(_i, 1);
    struct cdacq_error error;
    mock_global(mock, "ExecutionManagerCodeRangeMapAddress", 0);
    mock_publish(mock, NULL);
    ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_NO_RUNTIME);
    ck_assert_msg(strstr(error.message, "has not started yet") != NULL, "%s", error.message);
    mock_destroy(mock);
}
END_TEST

/* ---- Damage ---- */

static void assert_error(struct cdacq_target *target, uint64_t ip, enum cdacq_status status, const char *said)
{
    struct cdacq_error error = {0};
    struct cdacq_method method;
    struct cdacq_session *session = mock_session(target);
    memset(&method, 0x5a, sizeof method);
    method.size = sizeof method;
    struct cdacq_method untouched = method;
    ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, &error), status);
    ck_assert_mem_eq(&method, &untouched, sizeof method);
    ck_assert_msg(strstr(error.message, said) != NULL, "%s is not in: %s", said, error.message);
    /* The same among many. */
    uint64_t ips[40];
    struct cdacq_method methods[40] = {{.size = sizeof methods[0]}};
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
        ips[i] = ip;
    cdacq_session_methods_at(session, ips, ARRAY_SIZE(ips), methods, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        ck_assert_int_eq(methods[i].answer, CDACQ_ANSWER_ERROR);
        ck_assert_msg(strstr(methods[i].error, said) != NULL, "%s is not in: %s", said, methods[i].error);
    }
    cdacq_session_destroy(session);
}

static void assert_managed(struct cdacq_target *target, uint64_t ip, uint64_t start)
{
    struct cdacq_error error;
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_session *session = mock_session(target);
    if (cdacq_session_method_at(session, ip, &method, &error) != CDACQ_OK)
        ck_abort_msg("%#" PRIx64 ": %s", ip, error.message);
    ck_assert_uint_eq(method.code_start, start);
    cdacq_session_destroy(session);
}

/* Messages name missing memory by type, field and address; neighbours still have answers. */
START_TEST(missing_memory)
{
    struct mock *mock = mock_of_arch(_i, 6); /* span_size 0 */
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x8000});
    uint64_t starts[5], word = _i & 1 ? 8 : 4;
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
        starts[i] = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000 + i, .skip = 40});
    mock_unmap(mock, starts[1] - word, word);
    mock_unmap(mock, mock_method_header(heap, starts[2]) + mock_offset_of(mock, "RealCodeHeader.MethodDesc"), word);
    mock_unmap(mock, mock_method_header(heap, starts[3]) + mock_offset_of(mock, "RealCodeHeader.UnwindInfos"),
               mock_size_of(mock, "RuntimeFunction"));
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS});
    uint64_t size = 64;
    mock_r2r_method(image, &(struct mock_r2r_method){.hot = &size, .hot_count = 1, .rid = 1});
    mock_r2r_finish(image);
    mock_unmap(mock, image->methoddefs, image->methoddefs_size);
    struct mock_heap *no_node = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t lost = mock_method(no_node, &(struct mock_method){.size = 90, .method_desc = 0x1000});
    mock_unmap(mock, no_node->node, mock_size_of(mock, "CodeHeapListNode"));
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_managed(target, starts[0], starts[0]);
    assert_error(target, starts[1], CDACQ_ERR_MEMORY, "no memory at");
    assert_error(target, starts[2], CDACQ_ERR_MEMORY, "RealCodeHeader.MethodDesc: no memory at");
    assert_error(target, starts[3] + 5, CDACQ_ERR_MEMORY, "no memory at");
    assert_managed(target, starts[4] + 89, starts[4]);
    assert_error(target, mock_r2r_start(image, 0), CDACQ_ERR_MEMORY, "section 103: no memory at");
    assert_error(target, lost, CDACQ_ERR_MEMORY, "CodeHeapListNode.");
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Headers that contradict their code. */
START_TEST(impossible_headers)
{
    struct mock *mock = mock_of_arch(_i, 6);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x8000});
    uint64_t starts[4];
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
        starts[i] = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000 + i});
    mock_set(mock, mock_method_header(heap, starts[0]), "RealCodeHeader.NumUnwindInfos", 0);
    mock_set(mock, mock_method_header(heap, starts[1]), "RealCodeHeader.NumUnwindInfos", UINT32_MAX);
    uint64_t info = mock_method_header(heap, starts[2]) + mock_offset_of(mock, "RealCodeHeader.UnwindInfos");
    mock_set(mock, info, "RuntimeFunction.BeginAddress", 4);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_error(target, starts[0], CDACQ_ERR_CORRUPT, "RealCodeHeader.NumUnwindInfos");
    assert_error(target, starts[1], CDACQ_ERR_CORRUPT, "RealCodeHeader.NumUnwindInfos");
    assert_error(target, starts[2], CDACQ_ERR_CORRUPT, "RealCodeHeader.UnwindInfos");
    assert_managed(target, starts[3], starts[3]);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Fuel ---- */

START_TEST(cyclic_fragments)
{
    struct mock *mock = mock_of_arch(_i, 7);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000}), stride;
    size_t count;
    uint64_t fragment = mock_section_fragments(mock, heap->section, &count, &stride);
    mock_set(mock, fragment, "RangeSectionFragment.Next", fragment | 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct reader reader = mock_reader(target);
    struct code_block block;
    ck_assert(!execution_manager_find(&target->manager, &reader, heap->begin - 8, &block));
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_FUEL);
    ck_assert_uint_eq(reader_fuel(&reader), 0); /* not one unit more than stated: it counts down from FUEL_LOOKUP */
    assert_managed(target, start, start);
    assert_error(target, heap->begin - 8, CDACQ_ERR_FUEL, "RangeSectionFragment.Next list");
    struct cdacq_session *session = mock_session(target);
    struct cdacq_error error;
    int calls = -100;
    ck_assert_int_eq(cdacq_session_visit_methods(session, 0, stop_at_third, &calls, &error), CDACQ_OK);
    ck_assert_int_eq(calls, -98); /* the method, and that there may be more */
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* An image without tables in which nothing was prepared: walking back to a prepared method ends. */
START_TEST(endless_walk_back)
{
    enum { FUNCTIONS = 30000 };
    struct mock *mock = mock_of_arch(_i, 0);
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.bucket_count = 7});
    uint64_t size = 16;
    for (int i = 0; i < FUNCTIONS; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = &size, .hot_count = 1});
    mock_r2r_finish(image);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct reader reader = mock_reader(target);
    struct code_block block;
    ck_assert(!execution_manager_find(&target->manager, &reader, mock_r2r_start(image, FUNCTIONS - 1), &block));
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_FUEL);
    assert_error(target, mock_r2r_start(image, FUNCTIONS - 1), CDACQ_ERR_FUEL, "gave up after too many steps");
    /* Near the beginning there is an answer: no method. */
    reader_begin(&reader, FUEL_LOOKUP);
    ck_assert(!execution_manager_find(&target->manager, &reader, mock_r2r_start(image, 3), &block));
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_OK);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Every pointer of the bookkeeping replaced by every other: whatever the answers, calls end and stay within memory. */
START_TEST(random_damage)
{
    struct combination c = combination_of(_i);
    struct random random = {(uint64_t)_i};
    for (int round = 0; round < rounds(6, 1); round++) {
        struct sample_process sample = sample_build(c.arch, c.seed + (uint64_t)round, c.version, true);
        struct addresses addresses = interesting_addresses(&sample, &random);
        mock_publish(sample.mock, NULL);
        struct cdacq_target *target = mock_open(sample.mock, CARRIER_MEMORY, NULL);
        uint64_t begin = mock_map_address(sample.mock), word = c.arch & 1 ? 8 : 4;
        for (int i = 0; i < 400; i++) {
            uint64_t from = begin + random_below(&random, 0xc000) / word * word,
                     to = begin + random_below(&random, 0xc000) / word * word;
            mock_write_pointer(sample.mock, to,
                               random_below(&random, 3) ? mock_read_pointer(sample.mock, from)
                                                        : random_below(&random, 5000));
        }
        mock_check(sample.mock);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_method method = {.size = sizeof method};
        for (int i = 0; i < 300; i++) {
            uint64_t ip = addresses.items[random_below(&random, addresses.count)];
            if (i < 150)
                cdacq_session_method_at(session, ip, &method, NULL);
            else
                cdacq_session_methods_at(session, &ip, 1, &method, NULL);
        }
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        free(addresses.items);
        sample_destroy(&sample);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("execution_manager");
    TCase *tcase = tcase_create("execution_manager");
    tcase_add_loop_test(tcase, every_address_has_its_method, 0, rounds(COMBINATIONS, ARCH_COUNT * VERSIONS));
    tcase_add_loop_test(tcase, bulk_equals_single, 0, rounds(COMBINATIONS, ARCH_COUNT * VERSIONS));
    tcase_add_loop_test(tcase, a_visit_reports_everything, 0, rounds(COMBINATIONS, ARCH_COUNT * VERSIONS));
    tcase_add_loop_test(tcase, first_questions, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, first_questions_without_types, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_visit_can_be_stopped, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, nothing_to_walk_back_to, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, composite_images, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, gc_info_of_images, 0, rounds(ARCH_COUNT * SEEDS, ARCH_COUNT));
    tcase_add_loop_test(tcase, code_pointers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, execution_manager_alone, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_names, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, each_missing_name, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, unsupported_versions, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_runtime_that_has_not_started, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_memory, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, impossible_headers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, cyclic_fragments, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, endless_walk_back, 0, rounds(ARCH_COUNT, 1));
    tcase_add_loop_test(tcase, random_damage, 0, ARCH_COUNT * VERSIONS);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
