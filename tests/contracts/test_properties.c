/*
 * test_properties.c: what must hold for any target, tested on several hundred small random ones: a few heaps and images
 * anywhere in the address space, of every width, byte order, version, architecture and way to write the same thing.
 * test_execution_manager.c looks closely at a few rich targets instead.
 */
#include "contracts/execution_manager/code_block.h"
#include "src/lookup/opened_target.h"
#include "util/binary_search.h"
#include "tests/support/check_main.h"
#include "contracts/code_lookup/nibble_map.h"
#include "tests/support/mock_support.h"

enum { ROUNDS = 24, TARGETS = 20, HEAPS = 3, IMAGES = 2, RANGES = HEAPS + IMAGES + 1, ADDRESSES = 1500 };

#define expect(condition, ip)                                                                                   \
    do {                                                                                                        \
        if (!(condition))                                                                                       \
            ck_abort_msg("target %d, 0x%llx: not so: %s", target_number, (unsigned long long)(ip), #condition); \
    } while (0)

static int target_number; /* of the current target, for messages; the random numbers are the same in every run */

/* ---- A random target ---- */

struct range {
    uint64_t begin, end;
};

struct random_target {
    struct mock *mock;
    struct range ranges[RANGES];
    size_t range_count;
    const struct mock_function *facts;
    size_t fact_count;
};

static struct mock_options random_options(struct random *random, unsigned version)
{
    static const unsigned slots[] = {4, 4, 4, 1, 2, 7};
    struct mock_options options = {
        .pointer_size = random_below(random, 2) ? 8 : 4,
        .big_endian = random_below(random, 3) == 0,
        .seed = random_below(random, 1000),
        .version = version,
        .span_size = random_below(random, 4) ? 0 : 1 + random_below(random, 200),
        .hash_slots = slots[random_below(random, ARRAY_SIZE(slots))],
    };
    options.unwind = (enum mock_unwind)random_below(random, options.pointer_size == 8 ? 5 : 3);
    options.no_funclets = options.unwind == MOCK_UNWIND_FUNCTION_LENGTH && random_below(random, 2);
    options.no_funclets = options.no_funclets && version != MOCK_NET_11; /* which has no such build */
    options.interpreter = version == MOCK_NET_11;
    return options;
}

/* Any page, with room for what follows. Far apart, so that ranges never meet. */
static uint64_t random_place(struct random *random, const struct mock_options *options, size_t i)
{
    uint64_t slice = (options->pointer_size == 4 ? UINT64_C(0x80000000) : UINT64_C(1) << 56) / (RANGES + 2);
    uint64_t base = options->pointer_size == 4 ? 0x60000000 : UINT64_C(1) << 48; /* the mock's own memory is below */
    return align_down(base + i * slice + random_below(random, slice - 0x100000), 4096) +
           (random_below(random, 3) ? 0 : 0x1f000);
}

static void fill_heap(struct mock_heap *heap, struct random *random, uint64_t *next_method_desc)
{
    uint64_t starts[24];
    size_t count = random_below(random, ARRAY_SIZE(starts) + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t funclets[3] = {1 + random_below(random, 60), 1 + random_below(random, 60),
                                1 + random_below(random, 60)};
        *next_method_desc += 8;
        starts[i] = random_below(random, 7)
                        ? mock_method(heap,
                                      &(struct mock_method){
                                          .size = 1 + random_below(random, random_below(random, 6) ? 120 : 1200),
                                          .funclets = funclets,
                                          .funclet_count = random_below(random, 2) ? 0 : random_below(random, 4),
                                          .method_desc = *next_method_desc,
                                          .alignment = 4u << random_below(random, 4),
                                          .skip = random_below(random, 2) ? 0 : random_below(random, 700),
                                          .tail = random_below(random, 2) ? 0 : random_below(random, 70),
                                          .no_debug_info = random_below(random, 2),
                                          .no_gc_info = random_below(random, 4) == 0,
                                      })
                        : mock_stub(heap, (unsigned)random_below(random, 16), 1 + random_below(random, 200));
    }
    for (size_t i = 0; i < count; i++)
        if (!random_below(random, 6))
            mock_code_free(heap, starts[i]);
}

static void add_image(struct mock *mock, const struct mock_options *options, struct random *random, uint64_t begin,
                      uint64_t *next_method_desc, struct range *ret)
{
    unsigned tables = random_below(random, 4) ? MOCK_R2R_METHODDEFS : MOCK_R2R_NO_HEADER;
    struct mock_r2r *image =
        mock_r2r_create(mock, &(struct mock_r2r_options){
                                  .path = begin % 3 ? "/mock/one.dll" : "/mock/two.dll",
                                  .begin = begin,
                                  .tables = tables,
                                  .thunk_size = random_below(random, 2) ? 0 : 1 + random_below(random, 200),
                                  .bucket_count = options->hash_slots < 4 ? 101 : 0,
                                  .composite = random_below(random, 3) == 0,
                                  .sentinel_counted = random_below(random, 2),
                              });
    bool split = !options->no_funclets && random_below(random, 2);
    size_t count = 1 + random_below(random, 20);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sizes[6];
        for (size_t j = 0; j < ARRAY_SIZE(sizes); j++)
            sizes[j] = 1 + random_below(random, 90);
        *next_method_desc += 8;
        mock_r2r_method(image, &(struct mock_r2r_method){
                                   .hot = sizes,
                                   .hot_count = options->no_funclets ? 1 : 1 + random_below(random, 3),
                                   .cold = sizes + 3,
                                   .cold_count = split && random_below(random, 2) ? 1 + random_below(random, 3) : 0,
                                   .skip = random_below(random, 2) ? 0 : random_below(random, 50),
                                   .method_desc = !tables || random_below(random, 2) ? *next_method_desc : 0,
                                   .rid = tables ? i + 1 : 0,
                                   .fixups = random_below(random, 2),
                               });
    }
    mock_r2r_finish(image);
    *ret = (struct range){image->begin, image->end};
}

/* MethodDescs are just numbers, so methods have no names: the test is about the owners of code. */
static struct random_target random_target(struct random *random, unsigned version)
{
    struct mock_options options = random_options(random, version);
    struct random_target target = {.mock = mock_create(&options)};
    uint64_t next_method_desc = 0x1000;
    ck_assert_ptr_nonnull(target.mock);
    size_t heaps = 1 + random_below(random, HEAPS), images = random_below(random, IMAGES + 1);
    for (size_t i = 0; i < heaps + images; i++) {
        uint64_t begin = random_place(random, &options, i);
        mock_check(target.mock);
        if (i >= heaps) {
            add_image(target.mock, &options, random, begin, &next_method_desc, &target.ranges[target.range_count++]);
            continue;
        }
        struct mock_heap *heap = mock_heap_create(
            target.mock, &(struct mock_heap_options){.begin = begin,
                                                     .size = 0x10000 + random_below(random, 8) * 0x8000,
                                                     .collectible = random_below(random, 3) == 0,
                                                     .interpreter = random_below(random, 6) == 0,
                                                     .map_slack = random_below(random, 2) * random_below(random, 300)});
        mock_check(target.mock);
        fill_heap(heap, random, &next_method_desc);
        target.ranges[target.range_count++] = (struct range){heap->begin, heap->end};
    }
    mock_publish(target.mock, NULL);
    mock_check(target.mock);
    target.facts = mock_functions(target.mock, &target.fact_count);
    return target;
}

/* ---- Addresses ---- */

static const struct mock_function *fact_at(const struct random_target *target, uint64_t ip)
{
    size_t after = lower_bound(i, target->fact_count, target->facts[i].begin <= ip);
    return after && ip < target->facts[after - 1].end ? &target->facts[after - 1] : NULL;
}

/* A method's function; NULL for stubs and for nothing. */
static const struct mock_function *method_at(const struct random_target *target, uint64_t ip)
{
    const struct mock_function *fact = fact_at(target, ip);
    bool method =
        fact && (fact->code == MOCK_CODE_JIT || fact->code == MOCK_CODE_R2R || fact->code == MOCK_CODE_INTERPRETER);
    return method ? fact : NULL;
}

/* The edges of all code, then any address in a range, then any address. */
static size_t random_addresses(const struct random_target *target, struct random *random, uint64_t *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < target->fact_count && count + 8 < ADDRESSES; i++) {
        const struct mock_function *fact = &target->facts[i];
        uint64_t edges[] = {fact->begin - 1, fact->begin, fact->end - 1, fact->end,
                            fact->begin + random_below(random, fact->end - fact->begin)};
        memcpy(ret + count, edges, sizeof edges);
        count += ARRAY_SIZE(edges);
    }
    while (count < ADDRESSES - 100) {
        const struct range *range = &target->ranges[random_below(random, target->range_count)];
        ret[count++] = range->begin + random_below(random, range->end - range->begin);
    }
    while (count < ADDRESSES)
        ret[count++] = random_below(random, UINT64_MAX) >> random_below(random, 40);
    return count;
}

/* ---- Properties ---- */

/* An address inside a method belongs to it, and one outside belongs to none. */
static void check_single(const struct random_target *target, struct cdacq_session *session, uint64_t ip)
{
    const struct mock_function *fact = method_at(target, ip);
    struct cdacq_block block;
    expect(cdacq_session_code_block_at(session, ip, &block, NULL) == (fact ? CDACQ_OK : CDACQ_NOT_MANAGED), ip);
    if (!fact)
        return;
    uint64_t hot_size, cold_start, cold_size;
    expect(cdacq_block_get_start_address(&block) == fact->method, ip);
    expect(cdacq_block_get_method_desc(&block) == fact->method_desc, ip);
    expect(cdacq_block_get_relative_offset(&block) == fact->offset + (ip - fact->begin), ip);
    expect(cdacq_block_get_method_region_info(&block, session, &hot_size, &cold_start, &cold_size, NULL) == CDACQ_OK,
           ip);
    expect(hot_size == fact->hot_size && cold_start == fact->cold_start && cold_size == fact->cold_size, ip);
}

static void check_same(const struct cdacq_method *a, const struct cdacq_method *b)
{
    expect(a->answer == b->answer && a->kind == b->kind && a->method_desc == b->method_desc, a->ip);
    expect(a->code_start == b->code_start && a->code_size == b->code_size && a->offset == b->offset, a->ip);
    expect(a->cold_start == b->cold_start && a->cold_size == b->cold_size && a->cold == b->cold, a->ip);
    expect(a->funclet_start == b->funclet_start, a->ip);
}

/* The answers of a new session, of a session in use, and of a batch are the same. */
static void check_bulk(const struct random_target *target, struct cdacq_target *handle, const uint64_t *ips,
                       size_t count, struct random *random)
{
    static struct cdacq_method methods[ADDRESSES] = {{.size = sizeof methods[0]}};
    struct cdacq_session *session = mock_session(handle), *single = mock_session(handle);
    cdacq_session_methods_at(session, ips, count, methods, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct mock_function *fact = method_at(target, ips[i]);
        expect((methods[i].answer == CDACQ_ANSWER_MANAGED) == (fact != NULL), ips[i]);
        expect(methods[i].answer != CDACQ_ANSWER_ERROR, ips[i]);
        expect(!fact || methods[i].code_start == fact->method, ips[i]);
    }
    for (int i = 0; i < 60; i++) {
        const struct cdacq_method *expected = &methods[random_below(random, count)];
        struct cdacq_method method = {.size = sizeof method};
        cdacq_session_method_at(single, expected->ip, &method, NULL);
        check_same(&method, expected);
        if (i % 20 == 19) {
            cdacq_session_destroy(single);
            single = mock_session(handle);
        }
    }
    cdacq_session_destroy(single);
    cdacq_session_destroy(session);
}

struct visit {
    const struct random_target *target;
    struct cdacq_session *session; /* another than the visiting one */
    size_t count;
    uint64_t bytes;
};

static int visit_method(const struct cdacq_method *method, void *context)
{
    struct visit *visit = context;
    struct cdacq_method found = {.size = sizeof found};
    const struct mock_function *fact = method_at(visit->target, method->code_start);
    expect(fact && fact->begin == fact->method, method->code_start);
    expect(cdacq_session_method_at(visit->session, method->code_start, &found, NULL) == CDACQ_OK, method->code_start);
    expect(found.code_size == method->code_size && found.method_desc == method->method_desc, method->code_start);
    expect(found.cold_start == method->cold_start && found.cold_size == method->cold_size, method->code_start);
    visit->bytes += method->code_size + method->cold_size;
    visit->count++;
    return 0;
}

/* A visit reports each method once, as a look-up does, and all reports together cover all code. */
static void check_visit(const struct random_target *target, struct cdacq_target *handle)
{
    struct visit visit = {.target = target, .session = mock_session(handle)};
    struct cdacq_session *session = mock_session(handle);
    struct cdacq_error error;
    size_t methods = 0;
    uint64_t bytes = 0;
    if (cdacq_session_visit_methods(session, CDACQ_VISIT_R2R_ALL, visit_method, &visit, &error) != CDACQ_OK)
        ck_abort_msg("target %d: %s", target_number, error.message);
    for (size_t i = 0; i < target->fact_count; i++)
        if (method_at(target, target->facts[i].begin)) {
            methods += target->facts[i].begin == target->facts[i].method;
            bytes += target->facts[i].end - target->facts[i].begin;
        }
    expect(visit.count == methods && visit.bytes == bytes, methods);
    cdacq_session_destroy(session);
    cdacq_session_destroy(visit.session);
}

START_TEST(any_target)
{
    static const unsigned versions[] = {1, 2, MOCK_NET_11};
    size_t in_methods = 0;
    for (int i = 0; i < TARGETS; i++) {
        target_number = _i * TARGETS + i;
        struct random random = {(uint64_t)target_number * 7919};
        struct random_target target = random_target(&random, versions[target_number % 3]);
        uint64_t ips[ADDRESSES];
        size_t count = random_addresses(&target, &random, ips);
        struct cdacq_target *handle = mock_open(target.mock, target_number % 5 ? CARRIER_MEMORY : CARRIER_CORE, NULL);
        struct cdacq_session *session = mock_session(handle);
        for (size_t j = 0; j < count; j++) {
            check_single(&target, session, ips[j]);
            in_methods += method_at(&target, ips[j]) != NULL;
        }
        check_bulk(&target, handle, ips, count, &random);
        check_visit(&target, handle);
        cdacq_session_destroy(session);
        cdacq_target_close(handle);
        mock_destroy(target.mock);
    }
    ck_assert_uint_gt(in_methods, 2000);
}
END_TEST

/* ---- Two versions of the nibble map ---- */

static struct mock_heap *same_heap(struct mock *mock, uint64_t seed)
{
    struct random random = {seed};
    uint64_t next_method_desc = 0x1000;
    struct mock_heap *heap = mock_heap_create(
        mock, &(struct mock_heap_options){.size = 0x10000,
                                          .map_slack = random_below(&random, 2) * random_below(&random, 300)});
    mock_check(mock);
    fill_heap(heap, &random, &next_method_desc);
    return heap;
}

/*
 * The same code under maps of both versions. The newer one may answer "nothing" where the older one answers with the
 * last method.
 */
START_TEST(both_nibble_maps_agree)
{
    size_t in_methods = 0;
    for (int i = 0; i < TARGETS; i++) {
        uint64_t seed = (uint64_t)(_i * TARGETS + i);
        struct mock *mocks[2];
        struct mock_heap *heaps[2];
        struct cdacq_target *targets[2];
        struct reader readers[2];
        target_number = (int)seed;
        for (unsigned j = 0; j < 2; j++) {
            mocks[j] = mock_of_version((int)seed % ARCH_COUNT, seed, j + 1);
            heaps[j] = same_heap(mocks[j], seed);
            targets[j] = mock_publish_and_open(mocks[j]);
            readers[j] = mock_reader(targets[j]);
        }
        ck_assert_uint_eq(heaps[0]->begin, heaps[1]->begin);
        ck_assert_uint_eq(heaps[0]->cursor, heaps[1]->cursor);
        for (uint64_t ip = heaps[0]->begin; ip < heaps[0]->cursor + 64; ip += 3) {
            static const struct nibble_map_version *const versions[] = {&nibble_map_linear, &nibble_map_constant};
            uint64_t starts[2];
            struct code_block blocks[2];
            bool found[2];
            for (unsigned j = 0; j < 2; j++) {
                struct nibble_map map = {heaps[j]->map_base, heaps[j]->header_map};
                reader_begin(&readers[j], FUEL_LOOKUP);
                starts[j] = versions[j]->find(&readers[j], &map, ip);
                found[j] = execution_manager_find(&targets[j]->manager, &readers[j], ip, &blocks[j]) &&
                           code_block_is_method(&blocks[j]);
                expect(reader_failure(&readers[j]).status == CDACQ_OK, ip);
            }
            expect(starts[1] == starts[0] || !starts[1], ip);
            expect(found[0] == found[1], ip);
            expect(!found[0] || (blocks[0].start == blocks[1].start && blocks[0].method_desc == blocks[1].method_desc &&
                                 starts[0] == starts[1]),
                   ip);
            in_methods += found[0];
        }
        for (unsigned j = 0; j < 2; j++) {
            cdacq_target_close(targets[j]);
            mock_destroy(mocks[j]);
        }
    }
    ck_assert_uint_gt(in_methods, 1000);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("properties");
    TCase *tcase = tcase_create("properties");
    tcase_add_loop_test(tcase, any_target, 0, ROUNDS);
    tcase_add_loop_test(tcase, both_nibble_maps_agree, 0, ROUNDS / 4);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
