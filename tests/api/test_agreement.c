/*
 * test_agreement.c: every way to ask what code an address belongs to gives one answer: a session's first look-ups,
 * which walk, its later ones, which use an index, batches of any size, the calls of the contract, the listing and the
 * perf map. Every bundled core is tested, and those that CDACQ_AGREEMENT_CORES names, separated by colons.
 * CDACQ_AGREEMENT_COUNT is the number of addresses of each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cdacq.h"
#include "contracts/execution_manager/code_map.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"
#include "util/binary_search.h"
#include "util/vector.h"

enum {
    FRESH = 8,             /* look-ups of a session that is to walk: fewer than a session makes before it indexes */
    ADDRESSES = 500,       /* of each core, unless CDACQ_AGREEMENT_COUNT says otherwise */
    RANDOM_NEAR = 64,      /* addresses this far from a boundary */
    DIFFERENCES_MAX = 12,  /* that are printed of each comparison */
    METHODS_SAMPLED = 400, /* whose boundaries are looked up */
};

DEFINE_VECTOR(ip_list, uint64_t);

/* A stretch of code that a listing names. */
struct stretch {
    uint64_t begin, end, code_start;
    enum cdacq_code_kind kind;
    enum cdacq_answer answer;
};

DEFINE_VECTOR(stretches, struct stretch);

struct subject {
    const char *path;
    struct cdacq_target *target;
    struct ip_list ips;
    struct stretches listed;  /* by the listing */
    struct stretches written; /* in the perf map */
    struct cdacq_method *answers;
    struct cdacq_session *session; /* owns the strings of `answers` */
    bool lists_all;                /* the listing has no errors */
    int differences;
    uint64_t random;
};

static uint64_t next_random(struct subject *subject)
{
    uint64_t x = subject->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return subject->random = x;
}

static uint64_t below(struct subject *subject, uint64_t limit)
{
    return limit ? next_random(subject) % limit : 0;
}

static struct cdacq_session *new_session(struct subject *subject)
{
    struct cdacq_session *session = NULL;
    struct cdacq_error error;
    ck_assert_msg(cdacq_session_create(subject->target, &session, &error) == CDACQ_OK, "%s", error.message);
    return session;
}

static void open_subject(struct subject *subject, const char *path)
{
    struct cdacq_error error;
    *subject = (struct subject){.path = path, .random = UINT64_C(0x9e3779b97f4a7c15), .lists_all = true};
    enum cdacq_status status = cdacq_target_open_core(path, NULL, &subject->target, &error);
    ck_assert_msg(status == CDACQ_OK, "%s: %s", path, error.message);
}

static void reopen(struct subject *subject)
{
    cdacq_target_close(subject->target);
    ck_assert_int_eq(cdacq_target_open_core(subject->path, NULL, &subject->target, NULL), CDACQ_OK);
}

static void close_subject(struct subject *subject)
{
    cdacq_session_destroy(subject->session);
    cdacq_target_close(subject->target);
    free(subject->answers);
    ip_list_deinit(&subject->ips);
    stretches_deinit(&subject->listed);
    stretches_deinit(&subject->written);
}

/* ---- What the listings name ---- */

static void add_stretch(struct stretches *list, const struct cdacq_method *method, uint64_t begin, uint64_t size)
{
    if (size)
        ck_assert(stretches_append(
            list, (struct stretch){begin, begin + size, method->code_start, method->kind, method->answer}));
}

static int list_method(const struct cdacq_method *method, void *context)
{
    struct subject *subject = context;
    if (method->answer == CDACQ_ANSWER_ERROR)
        subject->lists_all = false;
    add_stretch(&subject->listed, method, method->code_start, method->code_size);
    if (method->answer == CDACQ_ANSWER_MANAGED)
        add_stretch(&subject->listed, method, method->cold_start, method->cold_size);
    return 0;
}

static int compare_stretches(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static const struct stretch *stretch_at(const struct stretches *list, uint64_t ip)
{
    const struct stretch *items = list->items;
    size_t after = lower_bound(i, list->count, items[i].begin <= ip);
    return after && ip < items[after - 1].end ? &items[after - 1] : NULL;
}

struct kept_text {
    char *data;
    size_t size, capacity;
};

static int take_text(const void *bytes, size_t size, void *context)
{
    struct kept_text *text = context;
    if (text->size + size + 1 > text->capacity) {
        text->capacity = 2 * (text->size + size + 1);
        text->data = realloc(text->data, text->capacity);
        ck_assert_ptr_nonnull(text->data);
    }
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
    return 0;
}

static void list_all(struct subject *subject)
{
    struct cdacq_session *session = new_session(subject);
    unsigned all = CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL;
    struct kept_text text = {0};
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .write = take_text, .context = &text};
    if (cdacq_session_visit_methods(session, all, list_method, subject, NULL) != CDACQ_OK)
        subject->lists_all = false;
    if (subject->listed.count)
        qsort(subject->listed.items, subject->listed.count, sizeof *subject->listed.items, compare_stretches);
    if (cdacq_session_write_perf_map(session, all, &sink, &written, NULL) == CDACQ_OK)
        for (char *line = text.data, *end; text.size && line < text.data + text.size; line = end + 1) {
            char *rest;
            end = memchr(line, '\n', (size_t)(text.data + text.size - line));
            ck_assert_ptr_nonnull(end);
            *end = '\0'; /* so that AddressSanitizer checks one line, not all of the text, in each call */
            uint64_t begin = strtoull(line, &rest, 16), size = strtoull(rest, NULL, 16);
            ck_assert(stretches_append(&subject->written, (struct stretch){.begin = begin, .end = begin + size}));
        }
    if (subject->written.count)
        qsort(subject->written.items, subject->written.count, sizeof *subject->written.items, compare_stretches);
    free(text.data);
    cdacq_session_destroy(session);
}

/* ---- The addresses ---- */

static void add_ip(struct subject *subject, uint64_t ip)
{
    ck_assert(ip_list_append(&subject->ips, ip));
}

static void add_boundary(struct subject *subject, uint64_t address)
{
    for (int i = -1; i <= 1; i++)
        add_ip(subject, address + (uint64_t)(int64_t)i);
    add_ip(subject, address + below(subject, RANDOM_NEAR) - RANDOM_NEAR / 2);
}

static int add_range(const struct cdacq_code_range_info *range, void *context)
{
    struct subject *subject = context;
    add_boundary(subject, range->begin);
    add_boundary(subject, range->end);
    for (int i = 0; i < 16; i++)
        add_ip(subject, range->begin + below(subject, range->end - range->begin));
    return 0;
}

static size_t wanted(void)
{
    const char *count = getenv("CDACQ_AGREEMENT_COUNT");
    return count ? strtoul(count, NULL, 10) : ADDRESSES;
}

/* Boundaries and insides of ranges, methods and stubs, and anything else; in a random order. */
static void choose_ips(struct subject *subject)
{
    struct cdacq_session *session = new_session(subject);
    size_t count = wanted();
    (void)cdacq_session_visit_code_ranges(session, add_range, subject, NULL);
    cdacq_session_destroy(session);
    const struct stretches *listed = &subject->listed;
    while (subject->ips.count < count && listed->count) {
        const struct stretch *stretch = &listed->items[below(subject, listed->count)];
        switch (below(subject, 4)) {
        case 0:
            add_boundary(subject, stretch->begin);
            break;
        case 1:
            add_boundary(subject, stretch->end);
            break;
        default:
            add_ip(subject, stretch->begin + below(subject, stretch->end - stretch->begin));
        }
    }
    add_ip(subject, 0);
    add_ip(subject, UINT64_MAX);
    for (size_t i = subject->ips.count; i-- > 1;) {
        size_t j = below(subject, i + 1);
        uint64_t swapped = subject->ips.items[i];
        subject->ips.items[i] = subject->ips.items[j];
        subject->ips.items[j] = swapped;
    }
    if (subject->ips.count > count)
        subject->ips.count = count;
}

/* ---- Comparing ---- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The first field in which two answers differ, or NULL. */
static const char *difference(const struct cdacq_method *a, const struct cdacq_method *b)
{
#define COMPARE(field)        \
    if (a->field != b->field) \
    return #field
    COMPARE(ip);
    COMPARE(answer);
    COMPARE(kind);
    COMPARE(method_desc);
    COMPARE(code_start);
    COMPARE(code_size);
    COMPARE(cold_start);
    COMPARE(cold_size);
    COMPARE(offset);
    COMPARE(funclet_start);
    COMPARE(token);
    COMPARE(il_offset);
    COMPARE(line);
    COMPARE(column);
    COMPARE(cold);
    COMPARE(prepared_unknown);
    COMPARE(name_length);
#undef COMPARE
    return !same_text(a->name, b->name)               ? "name"
           : !same_text(a->module, b->module)         ? "module"
           : !same_text(a->tier, b->tier)             ? "tier"
           : !same_text(a->file, b->file)             ? "file"
           : !same_text(a->error, b->error)           ? "error"
           : a->module_verified != b->module_verified ? "module_verified"
                                                      : NULL;
}

static const char *text_of(const char *text)
{
    return text ? text : "(null)";
}

static void report(struct subject *subject, const char *way, uint64_t ip, const char *what, const char *detail)
{
    if (subject->differences++ < DIFFERENCES_MAX)
        fprintf(stderr, "%s: 0x%" PRIx64 ": %s: %s differs: %s\n", subject->path, ip, way, what, detail);
}

static void expect_same(struct subject *subject, const char *way, const struct cdacq_method *walked,
                        const struct cdacq_method *other)
{
    static const char *const answers[] = {"none", "managed", "stub", "error"};
    const char *what = difference(walked, other);
    char detail[1024];
    if (!what)
        return;
    snprintf(detail, sizeof detail, "%s/%s start %" PRIx64 "/%" PRIx64 " size %" PRIx64 "/%" PRIx64 " %s/%s (%s/%s)",
             answers[walked->answer], answers[other->answer], walked->code_start, other->code_start, walked->code_size,
             other->code_size, text_of(walked->name), text_of(other->name), text_of(walked->error),
             text_of(other->error));
    report(subject, way, walked->ip, what, detail);
}

/* The answers of look-ups that walk; they keep the text of their errors. */
static void walk_all(struct subject *subject)
{
    size_t count = subject->ips.count;
    subject->answers = calloc(count + 1, sizeof *subject->answers);
    ck_assert_ptr_nonnull(subject->answers);
    subject->session = new_session(subject);
    for (size_t i = 0; i < count; i++)
        subject->answers[i].size = sizeof *subject->answers;
    /* One batch keeps the texts of all errors; each of its answers is then compared with that of a fresh session. */
    cdacq_session_methods_at(subject->session, subject->ips.items, count, subject->answers, NULL);
}

static void compare_walks(struct subject *subject)
{
    struct cdacq_session *session = NULL;
    for (size_t i = 0; i < subject->ips.count; i++) {
        struct cdacq_method method = {.size = sizeof method};
        if (i % FRESH == 0) {
            cdacq_session_destroy(session);
            session = new_session(subject);
        }
        cdacq_session_methods_at(session, &subject->ips.items[i], 1, &method, NULL);
        expect_same(subject, "a fresh session", &method, &subject->answers[i]);
    }
    cdacq_session_destroy(session);
}

static void compare_batches(struct subject *subject, size_t batch)
{
    struct cdacq_session *session = new_session(subject);
    struct cdacq_method *methods = calloc(batch, sizeof *methods);
    char way[40];
    snprintf(way, sizeof way, "batches of %zu", batch);
    for (size_t i = 0; i < subject->ips.count; i += batch) {
        size_t count = subject->ips.count - i < batch ? subject->ips.count - i : batch;
        methods[0].size = sizeof *methods;
        cdacq_session_methods_at(session, &subject->ips.items[i], count, methods, NULL);
        for (size_t k = 0; k < count; k++)
            expect_same(subject, way, &subject->answers[i + k], &methods[k]);
    }
    free(methods);
    cdacq_session_destroy(session);
}

static void compare_single(struct subject *subject)
{
    struct cdacq_session *session = new_session(subject);
    for (size_t i = 0; i < subject->ips.count; i++) {
        const struct cdacq_method *known = &subject->answers[i];
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_error error;
        enum cdacq_status status = cdacq_session_method_at(session, known->ip, &method, &error);
        if ((status < 0) != (known->answer == CDACQ_ANSWER_ERROR))
            report(subject, "method_at", known->ip, "status", status < 0 ? error.message : "no error");
        if (status >= 0)
            expect_same(subject, "method_at", known, &method);
        else if (!same_text(known->error, error.message))
            report(subject, "method_at", known->ip, "error", error.message);
    }
    cdacq_session_destroy(session);
}

/* ---- The calls of the contract ---- */

static void compare_block(struct subject *subject, struct cdacq_session *session, const struct cdacq_method *known)
{
    struct cdacq_block block;
    struct cdacq_error error = {0};
    uint64_t funclet;
    enum cdacq_status status = cdacq_session_code_block_at(session, known->ip, &block, &error);
    enum cdacq_answer answer = known->answer;
    if ((status == CDACQ_OK) != (answer == CDACQ_ANSWER_MANAGED) || (status < 0) != (answer == CDACQ_ANSWER_ERROR)) {
        report(subject, "GetCodeBlockHandle", known->ip, "status", error.message);
        return;
    }
    if (status != CDACQ_OK)
        return;
    if (cdacq_block_get_method_desc(&block) != known->method_desc)
        report(subject, "GetMethodDesc", known->ip, "method_desc", "");
    if (cdacq_block_get_start_address(&block) != known->code_start)
        report(subject, "GetStartAddress", known->ip, "code_start", "");
    if (cdacq_block_get_relative_offset(&block) != known->offset)
        report(subject, "GetRelativeOffset", known->ip, "offset", "");
    if (!known->cold && known->funclet_start &&
        (cdacq_block_get_funclet_start_address(&block, session, &funclet, &error) != CDACQ_OK ||
         funclet != known->funclet_start))
        report(subject, "GetFuncletStartAddress", known->ip, "funclet_start", error.message);
}

static void compare_contract(struct subject *subject)
{
    struct cdacq_session *session = new_session(subject);
    for (size_t i = 0; i < subject->ips.count; i++) {
        const struct cdacq_method *known = &subject->answers[i];
        enum cdacq_code_kind kind = CDACQ_CODE_UNKNOWN;
        uint64_t module;
        compare_block(subject, session, known);
        enum cdacq_status status = cdacq_session_code_kind_at(session, known->ip, &kind, NULL);
        bool is_code = known->answer == CDACQ_ANSWER_MANAGED || known->answer == CDACQ_ANSWER_STUB;
        if ((status < 0) != (known->answer == CDACQ_ANSWER_ERROR))
            report(subject, "GetCodeKind", known->ip, "status", "");
        else if (status >= 0 && kind != known->kind && !(known->answer == CDACQ_ANSWER_NONE && !kind))
            report(subject, "GetCodeKind", known->ip, "kind", cdacq_code_kind_text(kind));
        else if (status >= 0 && (status == CDACQ_OK) != is_code)
            report(subject, "GetCodeKind", known->ip, "status", "");
        if (known->kind == CDACQ_CODE_READY_TO_RUN &&
            cdacq_session_ready_to_run_module_at(session, known->ip, &module, NULL) != CDACQ_OK)
            report(subject, "FindReadyToRunModule", known->ip, "module", "");
    }
    cdacq_session_destroy(session);
}

/* ---- The listings ---- */

static void compare_listings(struct subject *subject)
{
    for (size_t i = 0; i < subject->ips.count; i++) {
        const struct cdacq_method *known = &subject->answers[i];
        const struct stretch *listed = stretch_at(&subject->listed, known->ip);
        const struct stretch *written = stretch_at(&subject->written, known->ip);
        bool is_method = known->answer == CDACQ_ANSWER_MANAGED;
        bool is_code = is_method || (known->answer == CDACQ_ANSWER_STUB && known->kind != CDACQ_CODE_THE_PRE_STUB);
        if (listed && listed->answer == CDACQ_ANSWER_ERROR)
            continue; /* it says that it cannot be listed */
        if (is_code != (listed != NULL) && known->answer != CDACQ_ANSWER_ERROR)
            report(subject, "the listing", known->ip, "code", cdacq_code_kind_text(known->kind));
        else if (is_code && listed && (listed->kind != known->kind || listed->code_start != known->code_start))
            report(subject, "the listing", known->ip, "kind or start", cdacq_code_kind_text(listed->kind));
        bool writes = is_method ? known->name != NULL && known->kind != CDACQ_CODE_INTERPRETER : is_code;
        if (known->answer != CDACQ_ANSWER_ERROR && writes != (written != NULL))
            report(subject, "the perf map", known->ip, "code", text_of(known->name));
    }
}

static void check_core(const char *path, bool has_methods)
{
    static const size_t batches[] = {2, 31, 32, 1000};
    struct subject subject;
    open_subject(&subject, path);
    list_all(&subject);
    choose_ips(&subject);
    reopen(&subject); /* so that nothing is indexed yet */
    walk_all(&subject);
    compare_single(&subject);
    for (size_t i = 0; i < ARRAY_SIZE(batches); i++)
        compare_batches(&subject, batches[i]);
    compare_contract(&subject);
    compare_listings(&subject);
    compare_walks(&subject);
    size_t counts[4] = {0};
    for (size_t i = 0; i < subject.ips.count; i++)
        counts[subject.answers[i].answer]++;
    int differences = subject.differences;
    if (getenv("CDACQ_AGREEMENT_CORES"))
        printf("%s: %zu addresses: %zu methods, %zu stubs, %zu none, %zu errors; %d differences\n", path,
               subject.ips.count, counts[CDACQ_ANSWER_MANAGED], counts[CDACQ_ANSWER_STUB], counts[CDACQ_ANSWER_NONE],
               counts[CDACQ_ANSWER_ERROR], differences);
    size_t managed = counts[CDACQ_ANSWER_MANAGED];
    close_subject(&subject);
    ck_assert_msg(managed > 0 || !has_methods, "%s: no address is in a method: this tests nothing", path);
    ck_assert_msg(!differences, "%s: %d differences", path, differences);
}

static const char *const bundled[] = {"net8-x64",       "net9-x64",       "net10-x64",       "net10-hot-cold-x64",
                                      "crash-net8-x64", "crash-net9-x64", "crash-net10-x64", "hello-net10-x64"};

START_TEST(every_way_to_ask_a_bundled_core_gives_one_answer)
{
    const char *fixtures = getenv("CDACQ_FIXTURES");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/core", fixtures ? fixtures : "tests/fixtures", bundled[_i]);
    check_core(path, strncmp(bundled[_i], "crash", 5) != 0);
}
END_TEST

START_TEST(every_way_to_ask_a_given_core_gives_one_answer)
{
    const char *given = getenv("CDACQ_AGREEMENT_CORES");
    char *paths = given ? strdup(given) : NULL, *rest = NULL;
    for (char *path = paths ? strtok_r(paths, ":", &rest) : NULL; path; path = strtok_r(NULL, ":", &rest))
        check_core(path, true);
    free(paths);
}
END_TEST

/* ---- What a core lacks, and what lies ---- */

/* What each way to ask says of one address. */
struct said {
    struct cdacq_method method, batched, late;
    enum cdacq_status block, kind;
    enum cdacq_code_kind code_kind;
};

static struct said ask_all(struct cdacq_target *target, uint64_t ip)
{
    enum { MANY = 40 };
    struct said said = {.method.size = sizeof said.method, .batched.size = sizeof said.batched};
    struct cdacq_session *session = mock_session(target), *other = mock_session(target);
    struct cdacq_method methods[MANY] = {{.size = sizeof methods[0]}};
    struct cdacq_block block;
    uint64_t ips[MANY];
    cdacq_session_methods_at(session, &ip, 1, &said.method, NULL);
    for (int i = 0; i < MANY; i++)
        ips[i] = ip;
    cdacq_session_methods_at(other, ips, MANY, methods, NULL);
    said.batched = methods[0];
    said.late = methods[MANY - 1];
    said.block = cdacq_session_code_block_at(session, ip, &block, NULL);
    said.kind = cdacq_session_code_kind_at(session, ip, &said.code_kind, NULL);
    cdacq_session_destroy(session);
    cdacq_session_destroy(other);
    return said;
}

static void assert_all_say(struct cdacq_target *target, uint64_t ip, enum cdacq_answer answer)
{
    struct said said = ask_all(target, ip);
    ck_assert_int_eq(said.method.answer, answer);
    ck_assert_int_eq(said.batched.answer, answer);
    ck_assert_int_eq(said.late.answer, answer);
    ck_assert_int_eq(said.block == CDACQ_OK, answer == CDACQ_ANSWER_MANAGED);
    ck_assert_int_eq(said.block < 0, answer == CDACQ_ANSWER_ERROR);
    ck_assert_int_eq(said.kind < 0, answer == CDACQ_ANSWER_ERROR);
    ck_assert_int_eq(said.kind == CDACQ_OK, answer == CDACQ_ANSWER_MANAGED || answer == CDACQ_ANSWER_STUB);
}

static int count_stretch(const struct cdacq_method *method, void *context)
{
    struct stretches *list = context;
    add_stretch(list, method, method->code_start, method->code_size);
    return 0;
}

static struct stretches listing(struct cdacq_target *target)
{
    struct stretches list = {0};
    struct cdacq_session *session = mock_session(target);
    ck_assert_int_eq(
        cdacq_session_visit_methods(session, CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL, count_stretch, &list, NULL),
        CDACQ_OK);
    cdacq_session_destroy(session);
    return list;
}

/* A section has a fragment for each chunk; where one was not dumped, the others list the section. */
START_TEST(a_section_with_a_missing_fragment)
{
    struct mock *mock = mock_of_arch(_i, 1);
    uint64_t chunk = mock_chunk_size(mock), begin = 16 * chunk, size = 4 * chunk, methods[64], stride;
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.begin = begin, .size = size});
    size_t count, fragments;
    for (count = 0; count < ARRAY_SIZE(methods); count++)
        methods[count] = mock_method(heap, &(struct mock_method){.size = size / 80 & ~UINT64_C(63)});
    uint64_t section = heap->section;
    uint64_t fragment = mock_section_fragments(mock, section, &fragments, &stride);
    ck_assert_uint_gt(fragments, 2);
    mock_unmap(mock, fragment + stride, stride); /* of the second chunk */
    struct cdacq_target *target = mock_publish_and_open(mock);
    for (size_t i = 0; i < count; i++)
        assert_all_say(target, methods[i] + 5, CDACQ_ANSWER_MANAGED);
    assert_all_say(target, begin + size + 2 * chunk, CDACQ_ANSWER_NONE);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Another section claims a part of the addresses of a heap, so that look-ups there fail: the listing says so, too. */
START_TEST(a_section_claimed_in_part)
{
    enum { BEGIN = 0x30004000, CLAIMED = 0x800, SIZE = 0x2000 };
    struct mock *mock = mock_of_arch(_i, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.begin = BEGIN, .size = SIZE});
    uint64_t methods[8], stride, claimer;
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        methods[i] = mock_method(heap, &(struct mock_method){.size = 0x200});
    claimer = mock_section_add(mock, &(struct mock_section){.begin = 0x30000000, .end = BEGIN});
    size_t count, failed = 0;
    uint64_t fragment = mock_section_fragments(mock, claimer, &count, &stride);
    mock_set(mock, fragment, "RangeSectionFragment.RangeEndOpen", BEGIN + CLAIMED);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct stretches list = listing(target);
    ck_assert_uint_eq(list.count, ARRAY_SIZE(methods));
    for (size_t i = 0; i < list.count; i++) {
        enum cdacq_answer expected = methods[i] < BEGIN + CLAIMED ? CDACQ_ANSWER_ERROR : CDACQ_ANSWER_MANAGED;
        assert_all_say(target, methods[i], expected);
        ck_assert_uint_eq(list.items[i].begin, methods[i]);
        ck_assert_int_eq(list.items[i].answer, expected);
        failed += expected == CDACQ_ANSWER_ERROR;
    }
    ck_assert(failed && failed < list.count);
    stretches_deinit(&list);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static void assert_listed(struct cdacq_target *target, uint64_t start)
{
    struct stretches list = listing(target);
    bool found = false;
    for (size_t i = 0; i < list.count; i++)
        found |= list.items[i].answer == CDACQ_ANSWER_MANAGED && list.items[i].begin == start;
    ck_assert_msg(found, "0x%" PRIx64 " is not listed", start);
    stretches_deinit(&list);
}

/* A listing needs no more of the map than a look-up: the slots and fragments that a snapshot has are enough. */
START_TEST(a_map_of_which_parts_are_missing)
{
    struct mock *mock = mock_of_arch(_i, 1);
    uint64_t chunk = mock_chunk_size(mock), stride;
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.begin = 16 * chunk, .size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 100});
    size_t count, pointer = _i & 1 ? 8 : 4;
    uint64_t fragment = mock_section_fragments(mock, heap->section, &count, &stride);
    uint64_t line = align_down(mock_map_slot(mock, start, 1), 64);
    mock_unmap(mock, line + 64, 64);
    mock_unmap(mock, fragment + mock_offset_of(mock, "RangeSectionFragment.Next"), pointer);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_all_say(target, start + 5, CDACQ_ANSWER_MANAGED);
    assert_listed(target, start);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The same of the nibbles. After those that are missing, a unit can lead to a block that begins before them. */
START_TEST(nibbles_of_which_parts_are_missing)
{
    enum { SIZE = 40 * 256 };
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    uint64_t first = mock_method(heap, &(struct mock_method){.size = 100});
    uint64_t large = mock_method(heap, &(struct mock_method){.size = SIZE});
    uint64_t after = mock_method(heap, &(struct mock_method){.size = 100});
    uint64_t line = align_up(heap->header_map + ((large - heap->map_base) / 256 + 1) * 4, 64);
    mock_unmap(mock, line, 64);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_all_say(target, first, CDACQ_ANSWER_MANAGED);
    assert_all_say(target, large, CDACQ_ANSWER_MANAGED);
    assert_all_say(target, after, CDACQ_ANSWER_MANAGED);
    assert_listed(target, first);
    assert_listed(target, large);
    assert_listed(target, after);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The listing has one stretch of code, [begin, end). */
static void assert_only_stretch(struct cdacq_target *target, uint64_t begin, uint64_t end)
{
    struct stretches list = listing(target);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.items[0].begin, begin);
    ck_assert_uint_eq(list.items[0].end, end);
    stretches_deinit(&list);
}

/* A heap of stubs ends where its use does. */
START_TEST(the_unused_end_of_stubs)
{
    enum { SIZE = 0x8000, USED = 0x1230 };
    static const uint8_t zeros[SIZE];
    uint64_t begin, other;
    struct mock *mock = mock_of_arch(_i, 2);
    mock_range_list(mock, SIZE, 5, false, &begin);
    mock_range_list(mock, SIZE, 5, false, &other);
    mock_write(mock, begin + USED, zeros, SIZE - USED);
    mock_write_uint(mock, begin + USED - 1, 1, 0xc3);
    mock_write(mock, other, zeros, SIZE);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_all_say(target, begin, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + USED - 1, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + USED, CDACQ_ANSWER_NONE);
    assert_all_say(target, begin + SIZE - 1, CDACQ_ANSWER_NONE);
    assert_all_say(target, other, CDACQ_ANSWER_NONE);
    assert_only_stretch(target, begin, begin + USED);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* What is missing of a page may be in use if something after it is known; what is there is seen by all. */
START_TEST(stubs_of_which_parts_are_missing)
{
    enum { SIZE = 0x2000, USED = 0x1230, HOLE = 0x1280 };
    static const uint8_t zeros[SIZE];
    uint64_t begin;
    struct mock *mock = mock_of_arch(_i, 2);
    mock_range_list(mock, SIZE, 5, false, &begin);
    mock_write(mock, begin, zeros, SIZE);
    mock_write_uint(mock, begin + 0x10, 1, 0xc3);
    mock_write_uint(mock, begin + USED - 1, 1, 0xc3);
    mock_unmap(mock, begin + 0x1040, 64);
    mock_unmap(mock, begin + HOLE, 64);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_all_say(target, begin + 0x10, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + 0x1001, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + USED - 1, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + HOLE, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + HOLE + 64, CDACQ_ANSWER_NONE);
    assert_only_stretch(target, begin, begin + HOLE + 64);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A mini core has some pages of a list: zeros at the end of one show nothing if others are missing around it. */
START_TEST(stubs_of_which_most_is_missing)
{
    enum { SIZE = 0x4000, PAGE = 0x1000, USED = 0x1930 };
    static const uint8_t zeros[PAGE];
    uint64_t begin;
    struct mock *mock = mock_of_arch(_i, 2);
    mock_range_list(mock, SIZE, 5, false, &begin);
    mock_write(mock, begin + USED, zeros, 2 * PAGE - USED);
    mock_unmap(mock, begin, PAGE);
    mock_unmap(mock, begin + 2 * PAGE, 2 * PAGE);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_all_say(target, begin, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + USED - 1, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + USED, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + 2 * PAGE, CDACQ_ANSWER_STUB);
    assert_all_say(target, begin + SIZE - 1, CDACQ_ANSWER_STUB);
    assert_only_stretch(target, begin, begin + SIZE);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The unwind info of a method has more code than its nibbles: neither a look-up nor a batch believes it. */
START_TEST(a_method_longer_than_its_nibbles)
{
    enum { SIZE = 4000, HELD = 300 };
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = SIZE});
    uint64_t next = mock_method(heap, &(struct mock_method){.size = 100});
    mock_nibble_delete(mock, heap->header_map, heap->map_base, start);
    mock_nibble_set(mock, heap->header_map, heap->map_base, start, HELD);
    mock_nibble_set(mock, heap->header_map, heap->map_base, align_up(start + 2000, 32), 64); /* another one inside it */
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_all_say(target, start, CDACQ_ANSWER_ERROR);
    assert_all_say(target, start + HELD - 1, CDACQ_ANSWER_ERROR);
    assert_all_say(target, next, CDACQ_ANSWER_MANAGED);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The nibble map has lost the middle of a method, and with it the way from there to the start. */
START_TEST(a_method_with_a_gap_in_its_nibbles)
{
    enum { SIZE = 4000, MIDDLE = 7 * 256 + 128, LOOK_UPS = 20 };
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = SIZE});
    struct cdacq_method method = {.size = sizeof method};
    for (uint64_t i = 6; i < 9; i++)
        mock_write_uint(mock, heap->header_map + ((start - heap->map_base) / 256 + i) * 4, 4, 0);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    enum cdacq_status first = cdacq_session_method_at(session, start + MIDDLE, &method, NULL);
    for (int i = 0; i < LOOK_UPS; i++) {
        ck_assert_int_eq(cdacq_session_method_at(session, start, &method, NULL), CDACQ_OK);
        ck_assert_int_eq(cdacq_session_method_at(session, start + MIDDLE, &method, NULL), first);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/*
 * The methods of a large image are not indexed for a batch that has few of them. What a session answers before, when
 * and after it has a table is what a look-up of its own says.
 */
START_TEST(a_large_image_is_indexed_after_many_look_ups)
{
    enum { COUNT = 1200, BATCH = 40, ROUNDS = 80 };
    static const uint64_t sizes[] = {64, 32};
    struct mock *mock = mock_of_arch(_i, 3);
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS});
    for (int i = 0; i < COUNT; i++)
        mock_r2r_method(image, &(struct mock_r2r_method){.hot = sizes,
                                                         .hot_count = 1 + i % 2,
                                                         .method_desc = i % 3 ? 0x10000 + 16 * (uint64_t)i : 0,
                                                         .rid = 1 + (uint32_t)i});
    mock_r2r_finish(image);
    mock_check(mock);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    bool indexed = false;
    for (int round = 0; round < ROUNDS; round++) {
        struct cdacq_method methods[BATCH] = {{.size = sizeof methods[0]}};
        uint64_t ips[BATCH];
        for (int i = 0; i < BATCH; i++)
            ips[i] = mock_r2r_start(image, (size_t)(round * 977 + i * 31) % COUNT) + (uint64_t)i * 2 + 1;
        ck_assert_int_eq(cdacq_session_methods_at(session, ips, BATCH, methods, NULL), CDACQ_OK);
        ck_assert_uint_ge(session->resolver.index.map->count, 1);
        indexed = session->resolver.index.ranges[0].table;
        ck_assert_msg(round || !indexed, "for %d look-ups", BATCH);
        for (int i = 0; i < BATCH; i++) {
            struct cdacq_session *single = mock_session(target);
            struct cdacq_method method = {.size = sizeof method};
            ck_assert_int_eq(cdacq_session_method_at(single, ips[i], &method, NULL), CDACQ_OK);
            ck_assert_uint_eq(methods[i].code_start, method.code_start);
            ck_assert_uint_eq(methods[i].code_size, method.code_size);
            ck_assert_uint_eq(methods[i].offset, method.offset);
            ck_assert_uint_eq(methods[i].method_desc, method.method_desc);
            ck_assert_uint_eq(methods[i].funclet_start, method.funclet_start);
            ck_assert_int_eq(methods[i].kind, method.kind);
            cdacq_session_destroy(single);
        }
    }
    ck_assert(indexed);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *agreement_suite(void)
{
    Suite *suite = suite_create("agreement");
    TCase *tcase = tcase_create("bundled"), *given = tcase_create("given");
    tcase_add_loop_test(tcase, every_way_to_ask_a_bundled_core_gives_one_answer, 0, ARRAY_SIZE(bundled));
    tcase_set_timeout(given, 600);
    tcase_add_loop_test(tcase, a_section_with_a_missing_fragment, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_section_claimed_in_part, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_map_of_which_parts_are_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, nibbles_of_which_parts_are_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, the_unused_end_of_stubs, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, stubs_of_which_parts_are_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, stubs_of_which_most_is_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_method_longer_than_its_nibbles, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_method_with_a_gap_in_its_nibbles, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_large_image_is_indexed_after_many_look_ups, 0, ARCH_COUNT);
    tcase_add_test(given, every_way_to_ask_a_given_core_gives_one_answer);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, given);
    return suite;
}

CHECK_MAIN(agreement_suite)
