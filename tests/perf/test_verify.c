/*
 * test_verify.c: a jitdump or perf map of a sample's methods against that sample: everything matches, and every change
 * of a record is reported in its class and changes nothing else. Over widths, byte orders, both kinds of file,
 * carriers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/mock_support.h"
#include "src/perf/record_file.h"

enum { KINDS = 2, SEEDS = 2, COMBINATIONS = ARCH_COUNT * KINDS * SEEDS, RECORD_ROOM = 1024, NAME_ROOM = 96 };

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static char path[64];
static FILE *file;
static bool big, perf_map;
static uint64_t now;

static void begin_file(bool of_perf_map, bool of_big)
{
    strcpy(path, "/tmp/test_verify.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    file = fdopen(fd, "r+");
    ck_assert_ptr_nonnull(file);
    perf_map = of_perf_map;
    big = of_big;
    now = 1000;
}

static void end_file(void)
{
    fclose(file);
    unlink(path);
}

static void put32(uint32_t value)
{
    store_u32(&value, value, big);
    ck_assert_uint_eq(fwrite(&value, sizeof value, 1, file), 1);
}

static void put64(uint64_t value)
{
    store_u64(&value, value, big);
    ck_assert_uint_eq(fwrite(&value, sizeof value, 1, file), 1);
}

static void put_header(void)
{
    const uint32_t fields[] = {0x4A695444, 1, 40, 62, 0, 1};
    for (size_t i = 0; i < ARRAY_SIZE(fields) && !perf_map; i++)
        put32(fields[i]);
    if (!perf_map) {
        put64(5);
        put64(0);
    }
}

/* `code` NULL: the bytes in the mock. */
struct record {
    uint64_t vma, address, size;
    char name[NAME_ROOM];
    const uint8_t *code;
    bool jit;
    uint64_t method; /* where its hot code starts */
};

static void put_record(struct mock *mock, const struct record *record)
{
    if (perf_map) {
        fprintf(file, "0x%" PRIx64 " %" PRIx64 " %s\n", record->address, record->size, record->name);
        return;
    }
    put32(0);
    put32((uint32_t)(56 + strlen(record->name) + 1 + record->size));
    put64(now++);
    put64(0);
    put64(record->vma);
    put64(record->address);
    put64(record->size);
    put64(now);
    fwrite(record->name, strlen(record->name) + 1, 1, file);
    for (uint64_t i = 0; i < record->size; i++)
        fputc(record->code ? record->code[i] : (int)mock_read_uint(mock, record->address + i, 1), file);
}

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

struct outcome {
    enum cdacq_status status;
    struct cdacq_verification sum;
    struct cdacq_error error;
    uint64_t told[CDACQ_VERDICT_COUNT];
    uint64_t address, code_start; /* of the last record that was no match and no missing method */
    char detail[256];
    uint64_t stop_after, done;
    uint64_t offset;
};

static int take(const struct cdacq_comparison *comparison, void *context)
{
    struct outcome *outcome = context;
    ck_assert_uint_lt(comparison->verdict, CDACQ_VERDICT_COUNT);
    outcome->told[comparison->verdict]++;
    if (comparison->verdict == CDACQ_VERDICT_MISSING_FROM_FILE) {
        ck_assert_ptr_nonnull(comparison->method);
        ck_assert_int_eq(comparison->method->kind, CDACQ_CODE_JITTED);
        ck_assert_uint_eq(comparison->method->ip, comparison->method->code_start);
    } else {
        ck_assert_uint_ge(comparison->offset, outcome->offset); /* in the order of the file */
        outcome->offset = comparison->offset;
        ck_assert_int_eq(comparison->line != 0, perf_map);
        if (comparison->verdict != CDACQ_VERDICT_MATCH) {
            outcome->address = comparison->address;
            outcome->code_start = comparison->method ? comparison->method->code_start : 0;
            snprintf(outcome->detail, sizeof outcome->detail, "%s", comparison->detail ? comparison->detail : "");
        }
        if (cdacq_verdict_is_contradiction(comparison->verdict))
            ck_assert_ptr_nonnull(comparison->detail);
    }
    return ++outcome->done == outcome->stop_after;
}

static struct outcome verify(struct cdacq_target *target, uint64_t stop_after)
{
    struct outcome outcome = {.stop_after = stop_after};
    fflush(file);
    outcome.sum.size = sizeof outcome.sum;
    outcome.status = cdacq_target_verify(target, path, take, &outcome, &outcome.sum, &outcome.error);
    if (outcome.status == CDACQ_OK) {
        uint64_t records = 0;
        for (int i = 0; i < CDACQ_VERDICT_COUNT; i++) {
            ck_assert_uint_eq(outcome.sum.counts[i], outcome.told[i]);
            records += i == CDACQ_VERDICT_MISSING_FROM_FILE ? 0 : outcome.told[i];
        }
        ck_assert_uint_eq(outcome.sum.records, records);
        ck_assert_int_eq(outcome.sum.perf_map, perf_map);
    }
    return outcome;
}

static void assert_counts(const struct outcome *outcome, const uint64_t *expected)
{
    if (outcome->status != CDACQ_OK)
        ck_abort_msg("%s", outcome->error.message);
    for (int i = 0; i < CDACQ_VERDICT_COUNT; i++)
        ck_assert_msg(outcome->told[i] == expected[i], "%" PRIu64 " are %s, expected %" PRIu64 " (0x%" PRIx64 ": %s)",
                      outcome->told[i], cdacq_verdict_text((enum cdacq_verdict)i), expected[i], outcome->address,
                      outcome->detail);
}

/* ---- The sample's records ---------------------------------------------------------------------------------------- */

struct opened {
    struct sample_process sample;
    struct cdacq_target *target;
    struct record records[RECORD_ROOM]; /* one for each part of a method, by address */
    size_t count, jit_count, unnamed;
};

static bool is_part(const struct mock_function *fact)
{
    bool method = fact->code == MOCK_CODE_JIT || fact->code == MOCK_CODE_R2R || fact->code == MOCK_CODE_INTERPRETER;
    return method && fact->begin == (fact->cold ? fact->cold_start : fact->method);
}

/* The names are the library's own, which other tests check. */
static void collect_records(struct opened *opened)
{
    size_t fact_count;
    struct cdacq_session *session = mock_session(opened->target);
    session->resolver.names = CDACQ_NAMES_IL;
    const struct mock_function *facts = mock_functions(opened->sample.mock, &fact_count);
    for (size_t i = 0; i < fact_count; i++) {
        struct record *record = &opened->records[opened->count];
        struct cdacq_method method = {.size = sizeof method};
        if (!is_part(&facts[i]))
            continue;
        ck_assert_uint_lt(++opened->count, RECORD_ROOM);
        *record = (struct record){.vma = facts[i].begin,
                                  .address = facts[i].begin,
                                  .size = facts[i].cold ? facts[i].cold_size : facts[i].hot_size,
                                  .jit = facts[i].code == MOCK_CODE_JIT,
                                  .method = facts[i].method};
        cdacq_session_methods_at(session, &facts[i].begin, 1, &method, NULL);
        ck_assert_int_eq(method.answer, CDACQ_ANSWER_MANAGED);
        snprintf(record->name, sizeof record->name, "%s", method.name ? method.name : "void nobody knows");
        opened->unnamed += !method.name;
        opened->jit_count += record->jit;
    }
    cdacq_session_destroy(session);
}

static struct opened *open_sample_with(int i, unsigned flags)
{
    const struct cdacq_options options = {.size = sizeof options, .flags = flags};
    struct opened *opened = calloc(1, sizeof *opened);
    ck_assert_ptr_nonnull(opened);
    opened->sample = sample_build(i % ARCH_COUNT, (uint64_t)(i / ARCH_COUNT / KINDS), 1 + (unsigned)i % 2, true);
    mock_publish(opened->sample.mock, NULL);
    opened->target = mock_open(opened->sample.mock, i % mock_carriers(), &options);
    collect_records(opened);
    begin_file(i / ARCH_COUNT % KINDS, i % 3 == 1);
    return opened;
}

/* A process is stopped: it is one moment then. */
static struct opened *open_sample(int i)
{
    return open_sample_with(i, CDACQ_OPEN_STOP);
}

static void close_sample(struct opened *opened)
{
    end_file();
    mock_check(opened->sample.mock);
    cdacq_target_close(opened->target);
    sample_destroy(&opened->sample);
    free(opened);
}

static void put_all(const struct opened *opened)
{
    for (size_t i = 0; i < opened->count; i++)
        put_record(opened->sample.mock, &opened->records[i]);
}

START_TEST(what_the_target_has_matches)
{
    struct opened *opened = open_sample_with(_i, 0);
    uint64_t expected[CDACQ_VERDICT_COUNT] = {[CDACQ_VERDICT_MATCH] = opened->count};
    put_header();
    put_all(opened);
    struct outcome outcome = verify(opened->target, 0);
    assert_counts(&outcome, expected);
    ck_assert_uint_gt(opened->jit_count, 20);
    ck_assert_uint_gt(opened->count, opened->jit_count + 50);
    ck_assert_uint_eq(outcome.sum.names_not_compared, opened->unnamed);
    ck_assert_uint_eq(outcome.sum.code_not_compared, 0);
    ck_assert_uint_eq(outcome.sum.contradictions, 0);
    ck_assert_ptr_null(outcome.sum.advice);
    ck_assert_str_eq(outcome.sum.cut, "");
    ck_assert_str_eq(outcome.sum.methods_problem, "");
    close_sample(opened);
}
END_TEST

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

enum place { FIXED, COLLECTIBLE, IMAGE };

/* The `number`th record of some length in a heap or an image, whose name is known. */
static size_t pick(const struct opened *opened, enum place place, int number)
{
    uint64_t begin = opened->sample.ranges[place].begin, end = opened->sample.ranges[place].end;
    for (size_t i = 0; i < opened->count; i++) {
        const struct record *record = &opened->records[i];
        bool in = place == IMAGE ? strchr(record->name, 'M') && !record->jit && record->method == record->address
                                 : record->jit && record->address >= begin && record->address < end;
        if (in && record->size >= 12 && strstr(record->name, "::") && !number--)
            return i;
    }
    ck_abort_msg("the sample has too few methods in range %d", place);
    return 0;
}

/* A record of code that does not exist; `code` has room for it. */
static struct record stranger(uint64_t address, uint64_t size)
{
    static const uint8_t code[64] = {0xcc, 1, 2, 3};
    ck_assert_uint_le(size, sizeof code);
    return (struct record){
        .vma = address, .address = address, .size = size, .name = "void [Gone] Gone::Gone(int32)[Tier0]", .code = code};
}

/* The expected effect of a change on the counts, from all records that match. */
struct expected {
    int64_t counts[CDACQ_VERDICT_COUNT];
    uint64_t address, code_start; /* 0: not looked at */
    const char *detail;
};

static void expect(struct expected *expected, enum cdacq_verdict verdict, bool instead_of_match)
{
    expected->counts[verdict]++;
    expected->counts[CDACQ_VERDICT_MATCH] -= instead_of_match;
}

static void put_with(const struct opened *opened, size_t changed, const struct record *instead)
{
    for (size_t i = 0; i < opened->count; i++)
        if (i != changed || instead)
            put_record(opened->sample.mock, i == changed ? instead : &opened->records[i]);
}

static void change_name(struct opened *opened, struct expected *expected)
{
    static const enum place places[] = {FIXED, COLLECTIBLE, IMAGE};
    struct record before[ARRAY_SIZE(places)];
    size_t picked[ARRAY_SIZE(places)];
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        picked[i] = pick(opened, places[i], 1);
        before[i] = opened->records[picked[i]];
        strstr(opened->records[picked[i]].name, "::")[2] ^= 1;
        expect(expected, CDACQ_VERDICT_NAME_DIFFERS, true);
    }
    put_all(opened);
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        opened->records[picked[i]] = before[i];
}

static void change_size(struct opened *opened, struct expected *expected)
{
    struct record record = opened->records[pick(opened, FIXED, 1)];
    record.size -= 4;
    put_with(opened, pick(opened, FIXED, 1), &record);
    expect(expected, CDACQ_VERDICT_RANGE_DIFFERS, true);
    expected->address = record.address;
    expected->code_start = record.address;
}

static uint8_t *code_of(const struct opened *opened, const struct record *record)
{
    uint8_t *code = malloc((size_t)record->size);
    for (uint64_t i = 0; i < record->size; i++)
        code[i] = (uint8_t)mock_read_uint(opened->sample.mock, record->address + i, 1);
    return code;
}

static void change_start(struct opened *opened, struct expected *expected)
{
    struct record record = opened->records[pick(opened, COLLECTIBLE, 1)];
    CLEANUP_FREE uint8_t *code = code_of(opened, &record);
    record.code = code;
    record.vma = record.address += 4;
    put_with(opened, pick(opened, COLLECTIBLE, 1), &record);
    expect(expected, CDACQ_VERDICT_RANGE_DIFFERS, true);
    expected->code_start = record.method;
}

/* Its bytes are those of the middle of the method; a perf map has none. */
static void change_both_ends(struct opened *opened, struct expected *expected)
{
    size_t picked = pick(opened, COLLECTIBLE, 0);
    struct record record = opened->records[picked];
    record.vma = record.address += 3;
    record.size -= 7;
    put_with(opened, picked, &record);
    expect(expected, perf_map ? CDACQ_VERDICT_FREED : CDACQ_VERDICT_RANGE_DIFFERS, true);
    expected->counts[CDACQ_VERDICT_MISSING_FROM_FILE] += perf_map;
}

/* As above, beside the record that the method has, and before it. In a perf map it is of code that was there before. */
static void add_a_middle(struct opened *opened, struct expected *expected)
{
    static const enum place places[] = {FIXED, COLLECTIBLE};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct record record = opened->records[pick(opened, places[i], 0)];
        record.vma = record.address += 3;
        record.size -= 7;
        put_record(opened->sample.mock, &record);
        expect(expected, perf_map ? CDACQ_VERDICT_FREED : CDACQ_VERDICT_RANGE_DIFFERS, false);
    }
    put_all(opened);
}

/* JIT_CODE_MOVE of the function that the last record loaded. */
static void put_move(const struct record *from, uint64_t to, uint64_t code_index)
{
    put32(1);
    put32(64);
    put64(now++);
    put64(0);
    put64(to);
    put64(from->address);
    put64(to);
    put64(from->size);
    put64(code_index);
}

/* The method is where it was moved to. */
static void moved(struct opened *opened, struct expected *expected)
{
    size_t picked = pick(opened, FIXED, 0);
    struct record record = opened->records[picked];
    CLEANUP_FREE uint8_t *code = code_of(opened, &record);
    uint64_t to = record.address;
    put_with(opened, picked, perf_map ? &record : NULL);
    if (perf_map)
        return;
    record.code = code;
    record.vma = record.address = opened->sample.ranges[FIXED].end - 0x1000;
    put_record(opened->sample.mock, &record);
    put_move(&record, to, now);
    (void)expected;
}

static void change_place(struct opened *opened, struct expected *expected)
{
    struct record record = opened->records[pick(opened, FIXED, 3)];
    CLEANUP_FREE uint8_t *code = code_of(opened, &record);
    record.code = code;
    record.vma = record.address = opened->sample.ranges[FIXED].end - 0x1000;
    put_with(opened, pick(opened, FIXED, 3), &record);
    expect(expected, CDACQ_VERDICT_RANGE_DIFFERS, true);
    expected->code_start = record.method;
    expected->detail = "the target has it at";
}

static void change_vma(struct opened *opened, struct expected *expected)
{
    struct record record = opened->records[pick(opened, FIXED, 1)];
    record.vma += 8;
    put_with(opened, pick(opened, FIXED, 1), &record);
    expect(expected, perf_map ? CDACQ_VERDICT_MATCH : CDACQ_VERDICT_RANGE_DIFFERS, true);
    expected->detail = perf_map ? NULL : "vma";
}

static void change_code(struct opened *opened, struct expected *expected)
{
    struct record record = opened->records[pick(opened, IMAGE, 4)];
    CLEANUP_FREE uint8_t *code = code_of(opened, &record);
    record.code = code;
    code[record.size - 1] ^= 0x80;
    put_with(opened, pick(opened, IMAGE, 4), &record);
    expect(expected, perf_map ? CDACQ_VERDICT_MATCH : CDACQ_VERDICT_BYTES_DIFFER, true);
    expected->code_start = perf_map ? 0 : record.method;
    expected->detail = perf_map ? NULL : "first byte";
}

static void leave_out(struct opened *opened, struct expected *expected)
{
    put_with(opened, pick(opened, FIXED, 0), NULL);
    expect(expected, CDACQ_VERDICT_MISSING_FROM_FILE, true);
}

/* Only JIT-compiled methods are missed. */
static void leave_image_out(struct opened *opened, struct expected *expected)
{
    put_with(opened, pick(opened, IMAGE, 0), NULL);
    expected->counts[CDACQ_VERDICT_MATCH]--;
}

static void put_before(struct opened *opened, struct expected *expected, struct record record,
                       enum cdacq_verdict verdict)
{
    put_record(opened->sample.mock, &record);
    put_all(opened);
    expect(expected, verdict, false);
    expected->address = record.address;
}

static void nothing_there(struct opened *opened, struct expected *expected)
{
    put_before(opened, expected, stranger(opened->sample.ranges[FIXED].end - 0x1000, 40),
               CDACQ_VERDICT_UNKNOWN_TO_TARGET);
    expected->detail = "no code there";
}

static void nothing_near(struct opened *opened, struct expected *expected)
{
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(opened->target, &info, NULL);
    bool small = info.pointer_size == 4; /* every address is near one: there may have been a section */
    put_before(opened, expected, stranger(small ? 0x02340000 : 0x123456780000, 40),
               small ? CDACQ_VERDICT_FREED : CDACQ_VERDICT_UNKNOWN_TO_TARGET);
}

/* Newer than the method that it lies in, older than another one: there is no other time for it. */
static void in_another_method(struct opened *opened, struct expected *expected)
{
    struct record record = stranger(opened->records[pick(opened, FIXED, 5)].address + 4, 4);
    size_t last = pick(opened, FIXED, 6);
    put_with(opened, last, NULL);
    put_record(opened->sample.mock, &record);
    put_record(opened->sample.mock, &opened->records[last]);
    expect(expected, CDACQ_VERDICT_RANGE_DIFFERS, false);
    expected->detail = "another method";
}

static void later(struct opened *opened, struct expected *expected)
{
    struct record records[] = {stranger(opened->sample.ranges[FIXED].end - 0x1000, 40),
                               stranger(opened->records[pick(opened, COLLECTIBLE, 2)].address, 7)};
    put_all(opened);
    for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
        put_record(opened->sample.mock, &records[i]);
        expect(expected, CDACQ_VERDICT_LATER, false);
    }
}

static void freed(struct opened *opened, struct expected *expected)
{
    put_before(opened, expected, stranger(opened->sample.ranges[COLLECTIBLE].end - 0x100, 40), CDACQ_VERDICT_FREED);
}

/* The fourth heap's section is being deleted. */
static void freed_with_its_section(struct opened *opened, struct expected *expected)
{
    put_before(opened, expected, stranger(opened->sample.ranges[3].begin + 0x100, 40), CDACQ_VERDICT_FREED);
}

/* The range after it holds only stubs. */
static void freed_for_stubs(struct opened *opened, struct expected *expected)
{
    put_before(opened, expected, stranger(opened->sample.ranges[4].begin + 0x100, 40), CDACQ_VERDICT_FREED);
}

static void overwritten(struct opened *opened, struct expected *expected)
{
    const struct record *newer = &opened->records[pick(opened, FIXED, 4)];
    put_before(opened, expected, stranger(newer->address + 4, 8), CDACQ_VERDICT_FREED);
    expected->code_start = newer->method;
}

/* Code that was released and replaced by other code of that name, which has no record yet. */
static void freed_for_its_namesake(struct opened *opened, struct expected *expected)
{
    const struct record *newer = &opened->records[pick(opened, COLLECTIBLE, 3)];
    struct record record = stranger(newer->address + 4, newer->size > 40 ? 32 : newer->size - 5);
    memcpy(record.name, newer->name, sizeof record.name);
    put_record(opened->sample.mock, &record);
    put_with(opened, pick(opened, COLLECTIBLE, 3), NULL);
    expect(expected, CDACQ_VERDICT_FREED, false);
    expect(expected, CDACQ_VERDICT_MISSING_FROM_FILE, true);
}

/* Two records with one name, start and size: the time of the first is not known any more. */
static void looks_the_same(struct opened *opened, struct expected *expected)
{
    struct record records[] = {stranger(opened->sample.ranges[FIXED].end - 0x1000, 40),
                               opened->records[pick(opened, COLLECTIBLE, 2)]};
    put_all(opened);
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        put_record(opened->sample.mock, &records[i]);
    expect(expected, CDACQ_VERDICT_LATER, false);
    expect(expected, CDACQ_VERDICT_MATCH, false);
}

static void replaced(struct opened *opened, struct expected *expected)
{
    put_before(opened, expected, stranger(opened->records[pick(opened, COLLECTIBLE, 0)].address, 9),
               CDACQ_VERDICT_REPLACED);
}

static void replaced_in_a_new_heap(struct opened *opened, struct expected *expected)
{
    put_before(opened, expected, stranger(opened->records[pick(opened, FIXED, 0)].address, 9), CDACQ_VERDICT_REPLACED);
}

static void replaced_while_gone(struct opened *opened, struct expected *expected)
{
    struct record record = stranger(opened->sample.ranges[COLLECTIBLE].end - 0x100, 40);
    put_record(opened->sample.mock, &record);
    put_before(opened, expected, record, CDACQ_VERDICT_FREED);
    expect(expected, CDACQ_VERDICT_REPLACED, false);
}

static void stubs(struct opened *opened, struct expected *expected)
{
    static const char *const names[] = {"stub GenerateLookupStub<GenerateLookupStub>",
                                        "stub<17> Allocate<FixupPrecode>", "stub<> x"};
    struct record record = stranger(opened->sample.ranges[FIXED].end - 0x1000, 40);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        strcpy(record.name, names[i]);
        put_record(opened->sample.mock, &record);
        expect(expected, CDACQ_VERDICT_STUB, false);
        record.address = opened->records[pick(opened, FIXED, 0)].address; /* a temporary mapping of it, perhaps */
    }
    put_all(opened);
}

static void tiers(struct opened *opened, struct expected *expected)
{
    (void)expected;
    for (size_t i = 0; i < opened->count; i++) {
        struct record record = opened->records[i];
        const char *name = opened->records[i].name;
        if (i % 3 == 1 && 2 * strlen(name) + 24 < sizeof record.name)
            snprintf(record.name, sizeof record.name, "%.36s[PreJIT]%.36s[PreJit-cold]", name, name);
        else if (i % 3 == 2)
            snprintf(record.name, sizeof record.name, "%.80s[Tier1]", name);
        put_record(opened->sample.mock, &record);
    }
}

/* Records after a damaged one are still read. */
static void damaged(struct opened *opened, struct expected *expected)
{
    if (perf_map) {
        fprintf(file, "`=\x8aV\x05\n0x10 zz name\n");
        expect(expected, CDACQ_VERDICT_DAMAGED, false);
    } else {
        put32(0);
        put32(56 + 4); /* its name has no end */
        put64(now++);
        for (int i = 0; i < 5; i++)
            put64(0);
        put32(0x41414141);
    }
    expect(expected, CDACQ_VERDICT_DAMAGED, false);
    put_all(opened);
}

static const struct {
    const char *name;
    void (*put)(struct opened *opened, struct expected *expected);
} changes[] = {
#define CHANGE(name) \
    {                \
#name, name  \
    }
    CHANGE(change_name),
    CHANGE(change_size),
    CHANGE(change_start),
    CHANGE(change_both_ends),
    CHANGE(add_a_middle),
    CHANGE(moved),
    CHANGE(change_place),
    CHANGE(change_vma),
    CHANGE(change_code),
    CHANGE(leave_out),
    CHANGE(leave_image_out),
    CHANGE(nothing_there),
    CHANGE(nothing_near),
    CHANGE(in_another_method),
    CHANGE(later),
    CHANGE(freed),
    CHANGE(freed_with_its_section),
    CHANGE(freed_for_stubs),
    CHANGE(overwritten),
    CHANGE(freed_for_its_namesake),
    CHANGE(looks_the_same),
    CHANGE(replaced),
    CHANGE(replaced_in_a_new_heap),
    CHANGE(replaced_while_gone),
    CHANGE(stubs),
    CHANGE(tiers),
    CHANGE(damaged),
};

START_TEST(a_change_is_reported_only_in_its_class)
{
    struct opened *opened = open_sample(_i);
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        struct expected expected = {.counts[CDACQ_VERDICT_MATCH] = (int64_t)opened->count};
        uint64_t counts[CDACQ_VERDICT_COUNT], contradictions = 0;
        rewind(file);
        fflush(file);
        ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
        put_header();
        changes[i].put(opened, &expected);
        for (int j = 0; j < CDACQ_VERDICT_COUNT; j++) {
            counts[j] = (uint64_t)expected.counts[j];
            contradictions += cdacq_verdict_is_contradiction((enum cdacq_verdict)j) ? counts[j] : 0;
        }
        struct outcome outcome = verify(opened->target, 0);
        if (memcmp(outcome.told, counts, sizeof counts) != 0)
            fprintf(stderr, "change: %s\n", changes[i].name);
        assert_counts(&outcome, counts);
        ck_assert_uint_eq(outcome.sum.contradictions, contradictions);
        ck_assert_uint_eq(expected.address ? outcome.address : 0, expected.address);
        ck_assert_uint_eq(expected.code_start ? outcome.code_start : 0, expected.code_start);
        if (expected.detail)
            ck_assert_msg(strstr(outcome.detail, expected.detail) != NULL, "%s: %s", changes[i].name, outcome.detail);
    }
    close_sample(opened);
}
END_TEST

/* What differs where a running process can release code may be due to time; elsewhere it is not. */
START_TEST(a_running_process_is_not_one_moment)
{
    static const enum place places[] = {FIXED, COLLECTIBLE};
    struct opened *opened = open_sample_with(_i, 0);
    bool running = opened->target->memory->changes;
    uint64_t expected[CDACQ_VERDICT_COUNT] = {[CDACQ_VERDICT_NAME_DIFFERS] = running ? 1 : 2,
                                              [CDACQ_VERDICT_FREED] = running ? 1 : 0,
                                              [CDACQ_VERDICT_MISSING_FROM_FILE] = running ? 1 : 2,
                                              [CDACQ_VERDICT_MATCH] = opened->count - 4};
    put_header();
    for (size_t i = 0; i < opened->count; i++) {
        bool left_out = false;
        for (size_t j = 0; j < ARRAY_SIZE(places); j++) {
            left_out |= i == pick(opened, places[j], 2);
            if (i == pick(opened, places[j], 1))
                strstr(opened->records[i].name, "::")[2] ^= 1;
        }
        if (!left_out)
            put_record(opened->sample.mock, &opened->records[i]);
    }
    struct outcome outcome = verify(opened->target, 0);
    assert_counts(&outcome, expected);
    close_sample(opened);
}
END_TEST

/* ---- What the target lacks, and kinds of files ----------------------------------------------------------------- */

/* A target without types: methods have no names, and part of a heap's nibble map is not there. */
START_TEST(what_cannot_be_compared_is_no_contradiction)
{
    struct mock *mock = mock_of_arch(_i, 0);
    struct mock_heap *whole = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    struct mock_heap *lost = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    struct mock_method method = {.size = 40, .method_desc = 0x1230};
    uint64_t starts[] = {mock_method(whole, &method), mock_method(lost, &method)};
    mock_publish(mock, NULL);
    mock_unmap(mock, lost->header_map, 8);
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    begin_file(false, _i & 1);
    put_header();
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        struct record record = stranger(starts[i], 40);
        record.code = NULL;
        put_record(mock, &record);
    }
    struct outcome outcome = verify(target, 0);
    uint64_t expected[CDACQ_VERDICT_COUNT] = {[CDACQ_VERDICT_MATCH] = 1, [CDACQ_VERDICT_NOT_COMPARED] = 1};
    assert_counts(&outcome, expected);
    ck_assert_uint_eq(outcome.sum.names_not_compared, 1);
    ck_assert_ptr_nonnull(strstr(outcome.sum.methods_problem, "memory"));
    ck_assert_ptr_nonnull(strstr(outcome.detail, "memory"));
    ck_assert_uint_eq(outcome.address, starts[1]);

    cdacq_target_close(target);
    mock_unmap(mock, starts[0] + 10, 8); /* of the code */
    target = mock_open(mock, CARRIER_MEMORY, NULL);
    outcome = verify(target, 0);
    assert_counts(&outcome, expected);
    ck_assert_uint_eq(outcome.sum.code_not_compared, 1);
    cdacq_target_close(target);
    mock_check(mock);
    mock_destroy(mock);
    end_file();
}
END_TEST

/* The header's pid is 1, and the core's is another one: that counts only if nothing matches. */
START_TEST(a_file_of_another_process)
{
    struct opened *opened = open_sample(0);
    struct outcome outcome;
    struct record records[] = {stranger(opened->records[0].address, 40), stranger(opened->records[1].address, 40)};
    opened->target->memory->pid = 4711;
    put_header();
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        put_record(opened->sample.mock, &records[i]);
    outcome = verify(opened->target, 0);
    ck_assert_int_eq(outcome.status, CDACQ_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "process 1, the target is process 4711"));
    ck_assert_uint_eq(outcome.done, 0);
    opened->target->memory->pid = 1;
    ck_assert_int_eq(verify(opened->target, 0).status, CDACQ_OK);
    opened->target->memory->pid = 4711;
    put_all(opened);
    ck_assert_int_eq(verify(opened->target, 0).status, CDACQ_OK);
    close_sample(opened);
}
END_TEST

/* Nothing is said to be freed, replaced or newer unless a record shows that the file is one of the target. */
START_TEST(a_file_without_a_match)
{
    struct opened *opened = open_sample(_i);
    uint64_t end = opened->sample.ranges[COLLECTIBLE].end;
    struct record records[] = {stranger(end - 0x200, 40), stranger(end - 0x200, 40), stranger(end - 0x100, 40)};
    opened->target->memory->pid = 1; /* as in the header */
    put_header();
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        put_record(opened->sample.mock, &records[i]);
    struct outcome outcome = verify(opened->target, 0);
    uint64_t expected[CDACQ_VERDICT_COUNT] = {[CDACQ_VERDICT_NOT_COMPARED] = ARRAY_SIZE(records)};
    assert_counts(&outcome, expected);
    ck_assert_ptr_nonnull(strstr(outcome.sum.advice, "no record matches the target"));
    put_all(opened);
    outcome = verify(opened->target, 0);
    ck_assert_ptr_null(outcome.sum.advice);
    ck_assert_uint_eq(outcome.sum.counts[CDACQ_VERDICT_NOT_COMPARED], 0);
    close_sample(opened);
}
END_TEST

START_TEST(a_visitor_may_stop)
{
    struct opened *opened = open_sample(_i);
    put_header();
    put_all(opened);
    struct outcome outcome = verify(opened->target, 3);
    ck_assert_int_eq(outcome.status, CDACQ_STOPPED);
    ck_assert_uint_eq(outcome.sum.records, 3);
    ck_assert_uint_eq(outcome.sum.counts[CDACQ_VERDICT_MATCH], 3);
    ck_assert_int_eq(cdacq_target_verify(opened->target, path, NULL, NULL, &outcome.sum, NULL), CDACQ_OK);
    ck_assert_uint_eq(outcome.sum.records, opened->count);
    close_sample(opened);
}
END_TEST

/* The jitdump that .NET 10 leaves, and one that is just cut. */
START_TEST(a_jitdump_that_was_given_up)
{
    struct opened *opened = open_sample(_i);
    struct record stub = stranger(opened->sample.ranges[FIXED].end - 0x1000, 40);
    strcpy(stub.name, "stub InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>");
    put_header();
    put_record(opened->sample.mock, &stub);
    strcpy(stub.name, "stub ReportStubBlock<Unknown>");
    put_record(opened->sample.mock, &stub);
    fflush(file);
    ck_assert_int_eq(ftruncate(fileno(file), ftell(file) - 20), 0);
    struct outcome outcome = verify(opened->target, 0);
    uint64_t expected[CDACQ_VERDICT_COUNT] = {
        [CDACQ_VERDICT_STUB] = 1, [CDACQ_VERDICT_MISSING_FROM_FILE] = opened->jit_count};
    assert_counts(&outcome, expected);
    ck_assert_ptr_nonnull(outcome.sum.advice);
    ck_assert_ptr_nonnull(strstr(outcome.sum.advice, "DOTNET_PerfMapStubGranularity=2"));
    ck_assert_ptr_nonnull(strstr(outcome.sum.cut, "is cut"));

    rewind(file);
    put_header();
    put_all(opened);
    fflush(file);
    ck_assert_int_eq(ftruncate(fileno(file), ftell(file) - 1), 0);
    outcome = verify(opened->target, 0);
    ck_assert_int_eq(outcome.status, CDACQ_OK);
    ck_assert_ptr_null(outcome.sum.advice);
    ck_assert_str_ne(outcome.sum.cut, "");
    ck_assert_uint_eq(outcome.sum.counts[CDACQ_VERDICT_MATCH], opened->count - 1);
    close_sample(opened);
}
END_TEST

START_TEST(the_last_line_may_be_half)
{
    struct opened *opened = open_sample(ARCH_COUNT);
    ck_assert(perf_map);
    put_all(opened);
    fflush(file);
    for (int cut = 1; cut < 4; cut++) { /* the line's end, then its name's */
        ck_assert_int_eq(ftruncate(fileno(file), ftell(file) - cut), 0);
        struct outcome outcome = verify(opened->target, 0);
        ck_assert_uint_eq(outcome.told[CDACQ_VERDICT_MATCH], opened->count - (cut > 1));
        ck_assert_uint_eq(outcome.told[CDACQ_VERDICT_NOT_COMPARED], cut > 1);
        ck_assert_uint_eq(outcome.told[CDACQ_VERDICT_DAMAGED], 0);
        ck_assert_uint_eq(outcome.sum.contradictions, 0);
        ck_assert_str_ne(outcome.sum.cut, "");
    }
    fputs("\n0x12", file); /* a line without a size is no symbol */
    struct outcome outcome = verify(opened->target, 0);
    ck_assert_uint_eq(outcome.told[CDACQ_VERDICT_NOT_COMPARED], 1);
    ck_assert_uint_eq(outcome.told[CDACQ_VERDICT_DAMAGED], 0);
    close_sample(opened);
}
END_TEST

/* A module whose type N.T has the static methods `name` and `other`. */
static uint64_t module_with(struct mock *mock, const char *name)
{
    static const uint8_t signature[] = {0, 0, 1}; /* static void () */
    struct metadata_writer writer;
    size_t size;
    metadata_writer_init(&writer);
    uint32_t blob = metadata_writer_blob(&writer, signature, sizeof signature);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "T"),
                 metadata_writer_string(&writer, "N"), 0, 1, 1);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x16, metadata_writer_string(&writer, name), blob, 1);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x16, metadata_writer_string(&writer, "other"), blob, 1);
    uint8_t *metadata = metadata_writer_finish(&writer, &size);
    metadata_writer_deinit(&writer);
    uint64_t module = mock_module(
        mock, &(struct mock_module_options){.path = "/mock/names.dll", .metadata = metadata, .metadata_size = size});
    free(metadata);
    return module;
}

/* Runtimes write names with newlines as they are. Lines of such a name may look like symbols. */
START_TEST(names_of_several_lines)
{
    static const char name[] = "a\nth\x02\\\n\n \n\tc\t\r\n0x10 4 d\n";
    struct mock *mock = mock_of_arch(_i, 0);
    uint64_t stride,
        descs = mock_method_descs(mock, mock_method_table(mock, module_with(mock, name), 2), 1, 2, &stride);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000, .collectible = true});
    const struct mock_method several = {.size = 40, .method_desc = descs};
    const struct mock_method other = {.size = 24, .method_desc = descs + stride};
    const uint64_t starts[] = {mock_method(heap, &several), mock_method(heap, &other)};
    mock_publish(mock, NULL);
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct cdacq_method methods[2] = {{.size = sizeof *methods}, {.size = sizeof *methods}};
    struct cdacq_session *session = mock_session(target);
    session->resolver.names = CDACQ_NAMES_IL;
    cdacq_session_methods_at(session, starts, 2, methods, NULL);
    const char *place = methods[1].name ? strstr(methods[1].name, "other") : NULL;
    ck_assert_ptr_nonnull(place);
    begin_file(true, false);
    for (int tampered = 0; tampered < 2; tampered++) {
        rewind(file);
        fprintf(file, "0x%" PRIx64 " 28 %.*s%s%s[Tier1]\n", starts[0], (int)(place - methods[1].name), methods[1].name,
                name, place + strlen("other"));
        fputs(tampered ? "no symbol\n0x18 6 y\n" : "", file);
        /* Of a method that was freed, the target does not have the name. */
        fprintf(file, "0x%" PRIx64 " 14 void Gone::go\nne\n0x10 5 x(int32)[Tier0]\n", heap->end - 0x100);
        fputs("0x20 4 z()\n", file);
        fprintf(file, "0x%" PRIx64 " 18 %s\n", starts[1], methods[1].name);
        struct outcome outcome = verify(target, 0);
        uint64_t expected[CDACQ_VERDICT_COUNT] = {[CDACQ_VERDICT_MATCH] = 2, [CDACQ_VERDICT_FREED] = 1};
        bool small = starts[0] >> 32 == 0; /* every address is near one: there may have been a section */
        expected[CDACQ_VERDICT_DAMAGED] = tampered ? 1 : 0;
        expected[small ? CDACQ_VERDICT_FREED : CDACQ_VERDICT_NOT_COMPARED]++;
        expected[small ? CDACQ_VERDICT_FREED : CDACQ_VERDICT_UNKNOWN_TO_TARGET] += tampered ? 2 : 1;
        assert_counts(&outcome, expected);
    }
    end_file();
    mock_check(mock);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/*
 * Lines of every length and blocks that end anywhere in them, carriage returns, empty lines, a line beyond all bounds.
 */
START_TEST(lines_are_read_in_blocks)
{
    struct record_file lines;
    struct file_record record;
    uint64_t offset = 0, line = 0;
    size_t lengths[] = {1, 100, 65000, 600, 65536, 3, 200000, 1048000, 4000000, 2, 70000};
    begin_file(true, false);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        fprintf(file, "%zx 10 %*s\r\n\n", i + 1, (int)lengths[i], "x");
    fprintf(file, "%zx 10 last", ARRAY_SIZE(lengths) + 1);
    fflush(file);
    ck_assert_int_eq(record_file_open(path, &lines, NULL), CDACQ_OK);
    for (int round = 0; round < 2; round++) {
        offset = line = 0;
        for (size_t i = 0; i < ARRAY_SIZE(lengths) + 1; i++) {
            bool last = i == ARRAY_SIZE(lengths);
            ck_assert_int_eq(record_file_next(&lines, &record, NULL), CDACQ_OK);
            ck_assert_uint_eq(record.number, i + 1);
            ck_assert_uint_eq(record.address, i + 1);
            ck_assert_uint_eq(record.size, 0x10);
            ck_assert_uint_eq(record.offset, offset);
            ck_assert_uint_eq(record.line, line + 1);
            ck_assert_int_eq(record.problem != NULL, !last && lengths[i] > 1048576);
            ck_assert_int_eq(record.unfinished && !record.problem, last);
            if (!record.problem)
                ck_assert_int_eq(record.name[record.name_length - 1], last ? 't' : 'x');
            if (record.name)
                ck_assert_uint_eq(strlen(record.name), record.name_length);
            offset += last ? 0 : lengths[i] + 8 + (i + 1 > 15);
            line += 2;
        }
        ck_assert_int_eq(record_file_next(&lines, &record, NULL), CDACQ_DONE);
        ck_assert(lines.cut);
        ck_assert_int_eq(record_file_rewind(&lines, NULL), CDACQ_OK);
    }
    record_file_close(&lines);
    end_file();
}
END_TEST

START_TEST(a_file_that_is_neither)
{
    struct opened *opened = open_sample(ARCH_COUNT);
    struct cdacq_verification sum = {.size = sizeof sum, .records = 77};
    struct cdacq_error error;
    fprintf(file, "\x7f"
                  "ELF\n\nno line of this is one\n");
    fflush(file);
    ck_assert_int_eq(cdacq_target_verify(opened->target, path, NULL, NULL, &sum, &error), CDACQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "neither"));
    ck_assert_int_eq(cdacq_target_verify(opened->target, "/tmp", NULL, NULL, &sum, &error), CDACQ_ERR_IO);
    ck_assert_int_eq(cdacq_target_verify(opened->target, "/nowhere/at\nall", NULL, NULL, &sum, &error), CDACQ_ERR_IO);
    ck_assert_ptr_null(strchr(error.message, '\n'));
    ck_assert_uint_eq(sum.records, 77);
    rewind(file);
    fprintf(file, "DTiJ\t\t\t\t a header of no version");
    fflush(file);
    ck_assert_int_eq(cdacq_target_verify(opened->target, path, NULL, NULL, &sum, &error), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
    ck_assert_int_eq(cdacq_target_verify(opened->target, path, NULL, NULL, &sum, &error), CDACQ_OK);
    ck_assert_uint_eq(sum.records, 0);
    ck_assert_uint_eq(sum.counts[CDACQ_VERDICT_MISSING_FROM_FILE], opened->jit_count);
    close_sample(opened);
}
END_TEST

START_TEST(outcomes_have_texts)
{
    ck_assert_str_eq(cdacq_verdict_text(CDACQ_VERDICT_UNKNOWN_TO_TARGET), "unknown-to-target");
    ck_assert_str_eq(cdacq_verdict_text(CDACQ_VERDICT_COUNT), "unknown");
    ck_assert_str_eq(cdacq_verdict_meaning(CDACQ_VERDICT_COUNT), "unknown");
    ck_assert(!cdacq_verdict_is_contradiction(CDACQ_VERDICT_COUNT));
    ck_assert(!cdacq_verdict_is_contradiction(CDACQ_VERDICT_MISSING_FROM_FILE));
    ck_assert(cdacq_verdict_is_contradiction(CDACQ_VERDICT_BYTES_DIFFER));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("verify");
    TCase *samples = tcase_create("samples"), *files = tcase_create("files");
    tcase_add_loop_test(samples, what_the_target_has_matches, 0, COMBINATIONS);
    tcase_add_loop_test(samples, a_change_is_reported_only_in_its_class, 0, rounds(COMBINATIONS, ARCH_COUNT * KINDS));
    tcase_add_loop_test(samples, a_running_process_is_not_one_moment, 0, COMBINATIONS);
    tcase_add_loop_test(samples, what_cannot_be_compared_is_no_contradiction, 0, ARCH_COUNT);
    tcase_add_test(samples, a_file_of_another_process);
    tcase_add_loop_test(samples, a_file_without_a_match, 0, ARCH_COUNT * KINDS);
    tcase_add_loop_test(samples, a_visitor_may_stop, 0, ARCH_COUNT * KINDS);
    tcase_add_loop_test(files, a_jitdump_that_was_given_up, 0, ARCH_COUNT);
    tcase_add_test(files, the_last_line_may_be_half);
    tcase_add_loop_test(files, names_of_several_lines, 0, ARCH_COUNT);
    tcase_add_test(files, lines_are_read_in_blocks);
    tcase_add_test(files, a_file_that_is_neither);
    tcase_add_test(files, outcomes_have_texts);
    suite_add_tcase(s, samples);
    suite_add_tcase(s, files);
    return s;
}

CHECK_MAIN(suite)
