/*
 * Perf maps and jitdumps of synthetic processes: the files must contain exactly the methods that the mock expects, over
 * widths, byte orders, versions, layouts and carriers; also with missing code, hostile names, and a sink that stops.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "src/lookup/opened_target.h"
#include "util/vector.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"
#include "formats/jitdump_writer.h"
#include "formats/perf_map.h"

enum { VERSIONS = 3, SEEDS = 3, COMBINATIONS = ARCH_COUNT * VERSIONS * SEEDS, MACHINE_LOONGARCH = 258 };

#define expect(condition, at)                                                        \
    do {                                                                             \
        if (!(condition))                                                            \
            ck_abort_msg("at %#" PRIx64 ": not so: %s", (uint64_t)(at), #condition); \
    } while (0)

/* ---- A sink that keeps everything ---- */

struct kept {
    char *bytes;
    size_t size, capacity;
    size_t writes, left_out;
    uint64_t visited, last_visited;  /* how many, and the address of the last */
    size_t writes_max, left_out_max; /* 0: no bound; reaching it, it asks to stop */
    struct cdacq_method last_left_out;
    char last_error[CDACQ_ERROR_MESSAGE_SIZE];
    struct cdacq_written written;
    enum cdacq_status status;
    struct cdacq_error error;
};

static int keep(const void *bytes, size_t size, void *context)
{
    struct kept *kept = context;
    ck_assert_uint_gt(size, 0);
    if (++kept->writes == kept->writes_max)
        return 1;
    if (kept->size + size > kept->capacity) {
        kept->bytes = vector_grow(kept->bytes, &kept->capacity, kept->size + size, 1);
        ck_assert_ptr_nonnull(kept->bytes);
    }
    memcpy(kept->bytes + kept->size, bytes, size);
    kept->size += size;
    return 0;
}

static int keep_left_out(const struct cdacq_method *method, void *context)
{
    struct kept *kept = context;
    kept->last_left_out = *method;
    ck_assert_int_eq(method->answer, CDACQ_ANSWER_ERROR);
    snprintf(kept->last_error, sizeof kept->last_error, "%s", method->error);
    return ++kept->left_out == kept->left_out_max;
}

static void count_visited(const struct cdacq_method *method, void *context)
{
    struct kept *kept = context;
    ck_assert_uint_ge(method->code_start, kept->last_visited);
    kept->last_visited = method->code_start;
    kept->visited++;
}

enum file { PERF_MAP, JITDUMP };

static void write_into(struct cdacq_session *session, enum file file, unsigned flags, struct kept *kept)
{
    const struct cdacq_sink sink = {
        .size = sizeof sink, .context = kept, .write = keep, .left_out = keep_left_out, .visited = count_visited};
    kept->written = (struct cdacq_written){.size = sizeof kept->written, .bytes = 77};
    kept->status = (file == PERF_MAP ? cdacq_session_write_perf_map : cdacq_session_write_jitdump)(
        session, flags, &sink, &kept->written, &kept->error);
    if (kept->status < 0)
        return;
    ck_assert_uint_eq(kept->written.bytes, kept->size);
    ck_assert_uint_eq(kept->written.left_out, kept->left_out);
    ck_assert(kept->visited || !kept->written.methods);
}

/* All of it, and nothing left out. */
static struct kept write_file(struct cdacq_session *session, enum file file, unsigned flags)
{
    struct kept kept = {0};
    write_into(session, file, flags, &kept);
    if (kept.left_out)
        ck_abort_msg("left out: %#" PRIx64 ": %s", kept.last_left_out.code_start, kept.last_error);
    ck_assert_int_eq(kept.status, CDACQ_OK);
    return kept;
}

/* ---- What should be there ---- */

struct expected {
    uint64_t begin, size;
    char name[64];
};

/*
 * The hot and cold parts of all methods that the flags ask for, by the start of the methods; a cold part follows its
 * hot part.
 */
static size_t expected_pieces(struct sample_process *sample, unsigned flags, struct expected **ret)
{
    size_t fact_count, count = 0;
    const struct mock_function *facts = mock_functions(sample->mock, &fact_count);
    struct expected *all = calloc(2 * fact_count + 1, sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i < fact_count; i++) {
        const struct mock_function *fact = &facts[i];
        bool r2r = fact->code == MOCK_CODE_R2R;
        if (fact->begin != fact->method || !(r2r || fact->code == MOCK_CODE_JIT))
            continue;
        if (r2r && (flags & CDACQ_VISIT_R2R_NONE || !(fact->method_desc || flags & CDACQ_VISIT_R2R_ALL)))
            continue;
        all[count] = (struct expected){.begin = fact->method, .size = fact->hot_size};
        snprintf(all[count++].name, sizeof all->name, "%s%s", sample_name(sample, fact), r2r ? "[PreJIT]" : "");
        if (!fact->cold_start)
            continue;
        all[count] = (struct expected){.begin = fact->cold_start, .size = fact->cold_size};
        snprintf(all[count++].name, sizeof all->name, "%s[PreJit-cold]", sample_name(sample, fact));
    }
    *ret = all;
    return count;
}

static bool is_stub_name(const char *name, size_t length)
{
    return length > 6 && memcmp(name, "stub <", 6) == 0 && name[length - 1] == '>';
}

/* A line or record about stubs: its start is a stub of the kind that it states. */
static void check_stub(struct sample_process *sample, uint64_t begin, const char *name, size_t length)
{
    const struct mock_function *fact = mock_function_at(sample->mock, begin);
    expect(fact &&
               (fact->code == MOCK_CODE_STUB || fact->code == MOCK_CODE_RANGE_LIST || fact->code == MOCK_CODE_THUNK),
           begin);
    const char *kind = cdacq_code_kind_text(sample_code_kind(fact));
    expect(length == strlen(kind) + 7 && memcmp(name + 6, kind, strlen(kind)) == 0, begin);
}

/* ---- Reading back ---- */

/* Every line is one of those expected, in their order, or about stubs. Returns the number of the latter. */
static size_t check_perf_map(struct sample_process *sample, const struct kept *kept, const struct expected *expected,
                             size_t count)
{
    struct perf_map map;
    struct perf_map_symbol symbol;
    const char *problem;
    enum perf_map_result result;
    size_t found = 0, stubs = 0;
    perf_map_open(kept->bytes, kept->size, &map);
    while ((result = perf_map_next(&map, &symbol, &problem)) != PERF_MAP_END) {
        expect(result == PERF_MAP_SYMBOL, map.line);
        if (is_stub_name(symbol.name, symbol.name_length)) {
            check_stub(sample, symbol.address, symbol.name, symbol.name_length);
            stubs++;
            continue;
        }
        expect(found < count, symbol.address);
        const struct expected *one = &expected[found++];
        expect(symbol.address == one->begin && symbol.size == one->size, symbol.address);
        expect(symbol.name_length == strlen(one->name) && memcmp(symbol.name, one->name, symbol.name_length) == 0,
               symbol.address);
    }
    ck_assert_uint_eq(found, count);
    ck_assert_uint_eq(kept->written.methods, found);
    ck_assert_uint_eq(kept->written.stubs, stubs);
    return stubs;
}

static struct cdacq_jitdump *open_jitdump(const struct kept *kept)
{
    char path[64];
    struct cdacq_jitdump *jitdump = NULL;
    struct cdacq_error error = {0};
    int fd = memfd_create("jitdump", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, kept->bytes, kept->size), (ssize_t)kept->size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum cdacq_status status = cdacq_jitdump_open(path, CDACQ_JITDUMP_CODE, &jitdump, &error);
    close(fd);
    if (status < 0)
        ck_abort_msg("%s", error.message);
    return jitdump;
}

/* The next record, which is as it should be, one nanosecond after the last. */
static struct cdacq_jitdump_record next_record(struct cdacq_jitdump *jitdump, enum cdacq_jitdump_kind kind,
                                               uint64_t time)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error error = {0};
    if (cdacq_jitdump_next(jitdump, &record, &error) != CDACQ_OK || record.error)
        ck_abort_msg("record %" PRIu64 ": %s%s", time, error.message, record.error ? record.error : "");
    expect(record.kind == kind && record.has_fields && record.timestamp == time, record.offset);
    return record;
}

static void check_end(struct cdacq_jitdump *jitdump)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    ck_assert_int_eq(cdacq_jitdump_next(jitdump, &record, NULL), CDACQ_DONE);
    cdacq_jitdump_close(jitdump);
}

static void check_code(struct sample_process *sample, const struct cdacq_jitdump_load *load)
{
    expect(load->code || !load->code_size, load->vma);
    for (uint64_t i = 0; i < load->code_size; i++)
        expect(((const uint8_t *)load->code)[i] == mock_read_uint(sample->mock, load->vma + i, 1), load->vma + i);
}

static void check_header(const struct cdacq_jitdump_record *record, const struct cdacq_target *target)
{
    const struct cdacq_jitdump_header *header = &record->as.header;
    ck_assert_uint_eq(header->version, 1);
    ck_assert_uint_eq(header->total_size, 40);
    ck_assert_uint_eq(header->pad1, 0);
    ck_assert_uint_eq(header->pid, (uint32_t)target->memory->pid);
    ck_assert_uint_eq(header->flags, 0);
    ck_assert_int_eq(header->big_endian, target->descriptor_info.big_endian);
    if (target->memory->elf_machine)
        ck_assert_uint_eq(header->elf_mach, target->memory->elf_machine);
    else
        ck_assert_uint_ne(header->elf_mach, 0); /* by the descriptor */
}

static size_t check_jitdump(struct sample_process *sample, const struct cdacq_target *target, const struct kept *kept,
                            const struct expected *expected, size_t count)
{
    struct cdacq_jitdump *jitdump = open_jitdump(kept);
    uint64_t time = 1, pieces = kept->written.methods + kept->written.stubs;
    size_t found = 0, stubs = 0;
    struct cdacq_jitdump_record record = next_record(jitdump, CDACQ_JITDUMP_HEADER, time++);
    check_header(&record, target);
    for (uint64_t i = 1; i <= pieces; i++) {
        record = next_record(jitdump, CDACQ_JITDUMP_LOAD, time++);
        const struct cdacq_jitdump_load *load = &record.as.load;
        expect(load->pid == (uint32_t)target->memory->pid && load->tid == load->pid, i);
        expect(load->vma == load->code_addr && load->code_index == i, i);
        check_code(sample, load);
        if (is_stub_name(load->name, load->name_length)) {
            check_stub(sample, load->vma, load->name, load->name_length);
            stubs++;
            continue;
        }
        expect(found < count, load->vma);
        const struct expected *one = &expected[found++];
        expect(load->vma == one->begin && load->code_size == one->size && strcmp(load->name, one->name) == 0,
               load->vma);
    }
    next_record(jitdump, CDACQ_JITDUMP_CLOSE, time);
    check_end(jitdump);
    ck_assert_uint_eq(found, count);
    return stubs;
}

/* ---- The tests ---- */

START_TEST(everything_that_is_asked_for)
{
    static const unsigned versions[VERSIONS] = {1, 2, MOCK_NET_11};
    static const unsigned which[] = {CDACQ_VISIT_R2R_NONE, 0, CDACQ_VISIT_R2R_ALL,
                                     CDACQ_VISIT_R2R_NONE | CDACQ_VISIT_R2R_ALL};
    int seed = _i / ARCH_COUNT / VERSIONS;
    struct sample_process sample =
        sample_build(_i % ARCH_COUNT, (uint64_t)seed, versions[_i / ARCH_COUNT % VERSIONS], true);
    mock_publish(sample.mock, NULL);
    struct cdacq_target *target = mock_open(sample.mock, seed % mock_carriers(), NULL);
    struct cdacq_session *session = mock_session(target);
    size_t last = 0;
    for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
        struct expected *expected;
        size_t count = expected_pieces(&sample, which[i], &expected);
        for (unsigned stubs = 0; stubs <= CDACQ_VISIT_STUBS; stubs += CDACQ_VISIT_STUBS) {
            struct kept map = write_file(session, PERF_MAP, which[i] | stubs);
            struct kept jitdump = write_file(session, JITDUMP, which[i] | stubs);
            size_t lines = check_perf_map(&sample, &map, expected, count);
            ck_assert_int_eq(lines > 0, stubs != 0);
            ck_assert_uint_ge(check_jitdump(&sample, target, &jitdump, expected, count), lines);
            free(map.bytes);
            free(jitdump.bytes);
        }
        ck_assert_uint_gt(count, i < 3 ? last + 20 : 20);
        last = count;
        free(expected);
    }
    mock_check(sample.mock);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

/* A process with just these two methods, the second of which has a name of its own. */
struct pair {
    struct mock *mock;
    struct mock_heap *heap;
    uint64_t starts[2];
    struct cdacq_target *target;
    struct cdacq_session *session;
};

static struct pair open_pair(struct mock *mock, const char *name, enum cdacq_name_style names)
{
    struct pair pair = {.mock = mock, .heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000})};
    const char *const all[] = {"First", name};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        uint64_t method_desc = mock_dynamic_method_desc(mock, all[i]);
        pair.starts[i] = mock_method(pair.heap, &(struct mock_method){.size = 40, .method_desc = method_desc});
    }
    mock_publish(mock, NULL);
    pair.target =
        mock_open(mock, CARRIER_CORE, &(struct cdacq_options){.size = sizeof(struct cdacq_options), .names = names});
    pair.session = mock_session(pair.target);
    return pair;
}

static void close_pair(struct pair *pair)
{
    cdacq_session_destroy(pair->session);
    cdacq_target_close(pair->target);
    mock_check(pair->mock);
    mock_destroy(pair->mock);
}

START_TEST(to_the_letter)
{
    char text[256];
    struct pair pair = open_pair(mock_of_arch(_i, 0), "Second", CDACQ_NAMES_CSHARP);
    struct kept map = write_file(pair.session, PERF_MAP, 0);
    snprintf(text, sizeof text, "0x%" PRIx64 " 28 dynamicClass.First(...)\n0x%" PRIx64 " 28 dynamicClass.Second(...)\n",
             pair.starts[0], pair.starts[1]);
    ck_assert_uint_eq(map.size, strlen(text));
    ck_assert_mem_eq(map.bytes, text, map.size);
    free(map.bytes);
    close_pair(&pair);
}
END_TEST

/* Spelled as the runtime does in these files. The tier of the first code is not known. */
START_TEST(tiers)
{
    static const char *const written[] = {"",
                                          "[QuickJitted]",
                                          "[OptimizedTier1]",
                                          "[OptimizedTier1OSR]",
                                          "[Optimized]",
                                          "[InstrumentedTier]",
                                          "[InstrumentedTierOptimized]",
                                          ""};
    enum { COUNT = ARRAY_SIZE(written) };
    struct mock *mock = mock_of_arch(_i, 0);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t method_desc = mock_dynamic_method_desc(mock, "A");
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 40, .method_desc = method_desc});
        if (i)
            mock_code_version(mock, method_desc, start, i - 1);
    }
    mock_publish(mock, NULL);
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, NULL);
    struct cdacq_session *session = mock_session(target);
    struct kept map = write_file(session, PERF_MAP, 0), jitdump = write_file(session, JITDUMP, 0);
    struct cdacq_jitdump *reader = open_jitdump(&jitdump);
    const char *line = map.bytes;
    next_record(reader, CDACQ_JITDUMP_HEADER, 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        char name[64];
        int length = snprintf(name, sizeof name, "dynamicClass.A(...)%s", written[i]);
        ck_assert_str_eq(next_record(reader, CDACQ_JITDUMP_LOAD, i + 2).as.load.name, name);
        const char *end = memchr(line, '\n', (size_t)(map.bytes + map.size - line));
        ck_assert_ptr_nonnull(end);
        ck_assert_int_gt(end - line, length);
        ck_assert_mem_eq(end - length, name, (size_t)length);
        line = end + 1;
    }
    cdacq_jitdump_close(reader);
    free(map.bytes);
    free(jitdump.bytes);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_check(mock);
    mock_destroy(mock);
}
END_TEST

START_TEST(hostile_names)
{
    static const char *const hostile[] = {"a\nb",     "a\r\n0x1 1 b", "\n",    "\x1b[2J",
                                          "\xff\xfe", "\xc2\x85",     "a\\nb", "\xe2\x80\xa8"};
    static const char *const written[] = {"a\\x0ab",    "a\\x0d\\x0a0x1 1 b", "\\x0a",   "\\x1b[2J",
                                          "\\xff\\xfe", "\\xc2\\x85",         "a\\\\nb", "\\u{2028}"};
    struct pair pair = open_pair(mock_of_arch(1, 0), hostile[_i], CDACQ_NAMES_CSHARP);
    struct kept map = write_file(pair.session, PERF_MAP, 0), jitdump = write_file(pair.session, JITDUMP, 0);
    char name[128];
    snprintf(name, sizeof name, "dynamicClass.%s(...)", written[_i]);
    struct cdacq_jitdump *reader = open_jitdump(&jitdump);
    next_record(reader, CDACQ_JITDUMP_HEADER, 1);
    next_record(reader, CDACQ_JITDUMP_LOAD, 2);
    ck_assert_str_eq(next_record(reader, CDACQ_JITDUMP_LOAD, 3).as.load.name, name);
    cdacq_jitdump_close(reader);
    size_t lines = 0;
    for (size_t i = 0; i < map.size; i++)
        lines += map.bytes[i] == '\n';
    ck_assert_uint_eq(lines, 2);
    ck_assert_ptr_nonnull(memmem(map.bytes, map.size, name, strlen(name)));
    free(map.bytes);
    free(jitdump.bytes);
    close_pair(&pair);
}
END_TEST

/* One missing byte leaves a method out of a jitdump, but not out of a perf map. */
START_TEST(code_is_missing)
{
    struct mock *mock = mock_of_arch(_i, 0);
    struct pair pair = {.mock = mock, .heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000})};
    struct kept map = {0}, jitdump = {0};
    for (size_t i = 0; i < 2; i++)
        pair.starts[i] = mock_method(
            pair.heap, &(struct mock_method){.size = 40, .method_desc = mock_dynamic_method_desc(mock, "A")});
    mock_publish(mock, NULL);
    mock_unmap(mock, pair.starts[0] + 39, 1);
    pair.target = mock_open(mock, CARRIER_CORE, NULL);
    pair.session = mock_session(pair.target);
    map = write_file(pair.session, PERF_MAP, CDACQ_VISIT_R2R_NONE);
    ck_assert_uint_eq(map.written.methods, 2);
    write_into(pair.session, JITDUMP, CDACQ_VISIT_R2R_NONE, &jitdump);
    ck_assert_int_eq(jitdump.status, CDACQ_OK);
    ck_assert_uint_eq(jitdump.written.methods, 1);
    ck_assert_uint_eq(jitdump.left_out, 1);
    ck_assert_uint_eq(jitdump.last_left_out.code_start, pair.starts[0]);
    ck_assert_uint_eq(jitdump.last_left_out.code_size, 40);
    ck_assert_ptr_nonnull(strstr(jitdump.last_error, "no memory at"));
    struct cdacq_jitdump *reader = open_jitdump(&jitdump);
    next_record(reader, CDACQ_JITDUMP_HEADER, 1);
    struct cdacq_jitdump_record record = next_record(reader, CDACQ_JITDUMP_LOAD, 2);
    ck_assert_uint_eq(record.as.load.vma, pair.starts[1]);
    ck_assert_uint_eq(record.as.load.code_index, 1);
    next_record(reader, CDACQ_JITDUMP_CLOSE, 3);
    check_end(reader);
    free(map.bytes);
    free(jitdump.bytes);
    close_pair(&pair);
}
END_TEST

/* A method without its MethodDesc has code, but no name. */
START_TEST(name_is_missing)
{
    struct mock *mock = mock_of_arch(1, 0);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t good = mock_dynamic_method_desc(mock, "A"), bad = mock_dynamic_method_desc(mock, "B");
    mock_method(heap, &(struct mock_method){.size = 40, .method_desc = good});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 40, .method_desc = bad});
    mock_publish(mock, NULL);
    mock_unmap(mock, bad, 4);
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, NULL);
    struct cdacq_session *session = mock_session(target);
    for (enum file file = PERF_MAP; file <= JITDUMP; file++) {
        struct kept kept = {0};
        write_into(session, file, 0, &kept);
        ck_assert_int_eq(kept.status, CDACQ_OK);
        ck_assert_uint_eq(kept.written.methods, 1);
        ck_assert_uint_eq(kept.left_out, 1);
        ck_assert_uint_eq(kept.last_left_out.code_start, start);
        ck_assert_ptr_nonnull(strstr(kept.last_error, "no memory at"));
        free(kept.bytes);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_check(mock);
    mock_destroy(mock);
}
END_TEST

/* The range of stubs is reserved as a whole; the part that is not memory yet is neither written nor reported. */
START_TEST(stubs_where_there_is_memory)
{
    enum { SIZE = 0x8000, PAGE = 0x1000 };
    uint64_t begin;
    struct mock *mock = mock_of_arch(_i, 0);
    mock_range_list(mock, SIZE, 5, false, &begin);
    mock_publish(mock, NULL);
    ck_assert_uint_eq(begin % PAGE, 0);
    mock_unmap(mock, begin + PAGE, PAGE);
    mock_unmap(mock, begin + 6 * PAGE, 2 * PAGE);
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, NULL);
    struct cdacq_session *session = mock_session(target);
    struct kept jitdump = write_file(session, JITDUMP, CDACQ_VISIT_STUBS),
                map = write_file(session, PERF_MAP, CDACQ_VISIT_STUBS);
    ck_assert_uint_eq(map.written.stubs, 1);
    ck_assert_uint_eq(jitdump.written.stubs, 2);
    struct cdacq_jitdump *reader = open_jitdump(&jitdump);
    next_record(reader, CDACQ_JITDUMP_HEADER, 1);
    struct cdacq_jitdump_record record = next_record(reader, CDACQ_JITDUMP_LOAD, 2);
    ck_assert_str_eq(record.as.load.name, "stub <FixupPrecode>");
    ck_assert_uint_eq(record.as.load.vma, begin);
    ck_assert_uint_eq(record.as.load.code_size, PAGE);
    record = next_record(reader, CDACQ_JITDUMP_LOAD, 3);
    ck_assert_uint_eq(record.as.load.vma, begin + 2 * PAGE);
    ck_assert_uint_eq(record.as.load.code_size, 4 * PAGE);
    cdacq_jitdump_close(reader);
    free(jitdump.bytes);
    free(map.bytes);
    cdacq_session_destroy(session);
    cdacq_target_close(target);

    mock_unmap(mock, begin, SIZE); /* a range without any memory is reported */
    target = mock_open(mock, CARRIER_CORE, NULL);
    session = mock_session(target);
    jitdump = (struct kept){0};
    write_into(session, JITDUMP, CDACQ_VISIT_STUBS, &jitdump);
    ck_assert_uint_eq(jitdump.left_out, 1);
    ck_assert_uint_eq(jitdump.written.stubs, 0);
    free(jitdump.bytes);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_check(mock);
    mock_destroy(mock);
}
END_TEST

/* After the sink has stopped, it is not called again. */
START_TEST(sink_stops)
{
    struct pair pair = open_pair(mock_of_arch(0, 0), "Second", CDACQ_NAMES_CSHARP);
    for (enum file file = PERF_MAP; file <= JITDUMP; file++) {
        struct kept whole = write_file(pair.session, file, 0);
        ck_assert_uint_gt(whole.writes, 5);
        for (size_t i = 1; i <= whole.writes; i++) {
            struct kept kept = {.writes_max = i};
            write_into(pair.session, file, 0, &kept);
            ck_assert_int_eq(kept.status, CDACQ_STOPPED);
            ck_assert_uint_eq(kept.writes, i);
            ck_assert_uint_lt(kept.size, whole.size);
            if (kept.size)
                ck_assert_mem_eq(kept.bytes, whole.bytes, kept.size);
            free(kept.bytes);
        }
        free(whole.bytes);
    }
    close_pair(&pair);
}
END_TEST

START_TEST(sink_stops_at_what_is_left_out)
{
    struct mock *mock = mock_of_arch(1, 0);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    for (int i = 0; i < 3; i++) {
        uint64_t start =
            mock_method(heap, &(struct mock_method){.size = 40, .method_desc = mock_dynamic_method_desc(mock, "A")});
        mock_unmap(mock, start, 40);
    }
    mock_publish(mock, NULL);
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, NULL);
    struct cdacq_session *session = mock_session(target);
    struct kept kept = {.left_out_max = 2};
    write_into(session, JITDUMP, 0, &kept);
    ck_assert_int_eq(kept.status, CDACQ_STOPPED);
    ck_assert_uint_eq(kept.left_out, 2);
    ck_assert_uint_eq(kept.size, JITDUMP_HEADER_SIZE);
    free(kept.bytes);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

START_TEST(bad_sinks)
{
    struct pair pair = open_pair(mock_of_arch(1, 0), "Second", CDACQ_NAMES_IL);
    const struct cdacq_sink sinks[] = {{.size = sizeof *sinks}, {.write = keep}, {.size = 8, .write = keep}};
    for (size_t i = 0; i <= ARRAY_SIZE(sinks); i++) {
        const struct cdacq_sink *sink = i < ARRAY_SIZE(sinks) ? &sinks[i] : NULL;
        struct cdacq_written written = {.size = sizeof written, .bytes = 5};
        struct cdacq_error error;
        ck_assert_int_eq(cdacq_session_write_perf_map(pair.session, 0, sink, &written, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_int_eq(cdacq_session_write_jitdump(pair.session, 0, sink, &written, NULL), CDACQ_ERR_ARGUMENT);
        ck_assert_uint_eq(written.bytes, 5);
        ck_assert_ptr_nonnull(strstr(error.message, "sink"));
    }
    close_pair(&pair);
}
END_TEST

/* Code that cannot be found is reported as left out: an empty file must not look complete. */
START_TEST(holes_in_the_map)
{
    struct pair pair = open_pair(mock_of_arch(_i, 0), "Second", CDACQ_NAMES_CSHARP);
    cdacq_session_destroy(pair.session);
    cdacq_target_close(pair.target);
    mock_unmap(pair.mock, mock_map_slot(pair.mock, pair.starts[0], 1), 4); /* the slot that leads to its fragments */
    pair.target = mock_open(pair.mock, CARRIER_CORE, NULL);
    pair.session = mock_session(pair.target);
    for (enum file file = PERF_MAP; file <= JITDUMP; file++) {
        struct kept kept = {0};
        write_into(pair.session, file, 0, &kept);
        ck_assert_int_eq(kept.status, CDACQ_OK);
        ck_assert_uint_eq(kept.written.methods, 0);
        ck_assert_uint_eq(kept.left_out, 1);
        ck_assert_ptr_nonnull(strstr(kept.last_error, "range section map"));
        free(kept.bytes);
    }
    close_pair(&pair);
}
END_TEST

/* Where no list of the code ranges can be made at all, nothing is written, not even a header. */
START_TEST(no_map)
{
    struct mock *mock = mock_of_arch(_i, 0);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    mock_method(heap, &(struct mock_method){.size = 40, .method_desc = mock_dynamic_method_desc(mock, "A")});
    unsigned top = _i & 1 ? 5 : 2, word = _i & 1 ? 8 : 4; /* on 64-bit targets */
    uint64_t slots = mock_map_slot(mock, 0, top), full = mock_read_pointer(mock, mock_map_slot(mock, heap->begin, top));
    for (unsigned i = 0; i < 256; i++)
        mock_write_pointer(mock, slots + i * word, full); /* all lead to one table */
    mock_publish(mock, NULL);
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, NULL);
    struct cdacq_session *session = mock_session(target);
    for (enum file file = PERF_MAP; file <= JITDUMP; file++) {
        struct kept kept = {0};
        write_into(session, file, 0, &kept);
        ck_assert_int_eq(kept.status, CDACQ_ERR_FUEL);
        ck_assert_int_eq(kept.error.status, CDACQ_ERR_FUEL);
        ck_assert_uint_eq(kept.writes, 0);
        ck_assert_uint_eq(kept.written.bytes, 77);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* As memory of which only the address of the descriptor is known. */
static struct cdacq_target *open_bare(struct mock *mock, uint64_t descriptor)
{
    struct cdacq_memory memory = *mock_memory(mock);
    struct cdacq_options options = {.size = sizeof options, .descriptor_address = descriptor};
    struct cdacq_target *target = NULL;
    struct cdacq_error error;
    memory.mappings = NULL;
    memory.mapping_count = 0;
    if (cdacq_target_open_memory(&memory, &options, &target, &error) < 0)
        ck_abort_msg("%s", error.message);
    return target;
}

/* elf_mach of a core is that of the core; for memory without images it comes from the descriptor's architecture. */
START_TEST(machines)
{
    static const struct {
        struct mock_options options;
        unsigned of_core, of_memory;
    } cases[] = {
        {{.machine = EM_X86_64}, EM_X86_64, EM_X86_64},
        {{.machine = EM_AARCH64, .unwind = MOCK_UNWIND_HEADER}, EM_AARCH64, EM_AARCH64},
        {{.machine = EM_RISCV, .unwind = MOCK_UNWIND_RISCV64}, EM_RISCV, EM_RISCV},
        {{.machine = MACHINE_LOONGARCH, .unwind = MOCK_UNWIND_LOONGARCH64}, MACHINE_LOONGARCH, MACHINE_LOONGARCH},
        {{.machine = EM_ARM, .pointer_size = 4, .unwind = MOCK_UNWIND_HEADER}, EM_ARM, EM_ARM},
        {{.machine = EM_386, .pointer_size = 4, .unwind = MOCK_UNWIND_FUNCTION_LENGTH}, EM_386, EM_386},
        {{.machine = EM_S390, .big_endian = true}, EM_S390, EM_X86_64}, /* as the mock's descriptor has it */
    };
    for (enum carrier carrier = 0; carrier < CARRIER_COUNT; carrier++) {
        struct mock *mock = mock_create(&cases[_i].options);
        uint64_t descriptor = mock_publish(mock, NULL);
        struct cdacq_target *target =
            carrier == CARRIER_CORE ? mock_open(mock, carrier, NULL) : open_bare(mock, descriptor);
        struct cdacq_session *session = mock_session(target);
        struct kept kept = write_file(session, JITDUMP, CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL);
        struct cdacq_jitdump *jitdump = open_jitdump(&kept);
        struct cdacq_jitdump_record record = next_record(jitdump, CDACQ_JITDUMP_HEADER, 1);
        ck_assert_uint_eq(record.as.header.elf_mach, carrier == CARRIER_CORE ? cases[_i].of_core : cases[_i].of_memory);
        ck_assert_int_eq(record.as.header.big_endian, cases[_i].options.big_endian);
        next_record(jitdump, CDACQ_JITDUMP_CLOSE, 2); /* no methods: only the header */
        check_end(jitdump);
        free(kept.bytes);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* ---- Encoding ---- */

START_TEST(encoding_is_what_is_decoded)
{
    bool big = _i;
    uint8_t bytes[JITDUMP_ENCODED_MAX + 16];
    struct cdacq_jitdump_record decoded,
        records[] = {
            {.kind = CDACQ_JITDUMP_HEADER,
             .timestamp = UINT64_MAX - 1,
             .as.header = {.version = 2, .elf_mach = 183, .pad1 = 3, .pid = UINT32_MAX, .flags = UINT64_C(1) << 63}},
            {.kind = CDACQ_JITDUMP_LOAD,
             .timestamp = 0x0102030405060708,
             .as.load = {.pid = 1,
                         .tid = 2,
                         .vma = 3,
                         .code_addr = UINT64_MAX - 9,
                         .code_size = 5,
                         .code_index = UINT64_C(1) << 40,
                         .name_length = 4}},
            {.kind = CDACQ_JITDUMP_CLOSE, .timestamp = 9},
        };
    memset(bytes, 0xee, sizeof bytes);
    ck_assert_uint_eq(jitdump_encode(&records[0], big, bytes), JITDUMP_HEADER_SIZE);
    ck_assert_int_eq(jitdump_decode_header(bytes, JITDUMP_HEADER_SIZE, &decoded, NULL), CDACQ_OK);
    ck_assert_int_eq(decoded.as.header.big_endian, big);
    ck_assert_uint_eq(decoded.as.header.total_size, JITDUMP_HEADER_SIZE);
    ck_assert_uint_eq(decoded.timestamp, records[0].timestamp);
    const struct cdacq_jitdump_header *header = &decoded.as.header;
    ck_assert(header->version == 2 && header->elf_mach == 183 && header->pad1 == 3 && header->pid == UINT32_MAX &&
              header->flags == UINT64_C(1) << 63);

    ck_assert_uint_eq(jitdump_encode(&records[1], big, bytes), JITDUMP_LOAD_FIXED);
    memcpy(bytes + JITDUMP_LOAD_FIXED, "name\0code!", 10);
    jitdump_decode_prefix(bytes, big, 40, &decoded);
    ck_assert_uint_eq(decoded.total_size, JITDUMP_LOAD_FIXED + 10);
    ck_assert_int_eq(jitdump_decode(bytes, decoded.total_size, big, &decoded, NULL), CDACQ_OK);
    const struct cdacq_jitdump_load *load = &decoded.as.load;
    ck_assert_int_eq(decoded.kind, CDACQ_JITDUMP_LOAD);
    ck_assert_uint_eq(decoded.timestamp, records[1].timestamp);
    ck_assert(load->pid == 1 && load->tid == 2 && load->vma == 3 && load->code_addr == UINT64_MAX - 9 &&
              load->code_size == 5 && load->code_index == UINT64_C(1) << 40);
    ck_assert_str_eq(load->name, "name");

    ck_assert_uint_eq(jitdump_encode(&records[2], big, bytes), JITDUMP_PREFIX_SIZE);
    jitdump_decode_prefix(bytes, big, 40, &decoded);
    ck_assert_int_eq(decoded.kind, CDACQ_JITDUMP_CLOSE);
    ck_assert_uint_eq(decoded.total_size, JITDUMP_PREFIX_SIZE);
    ck_assert_uint_eq(decoded.timestamp, 9);
}
END_TEST

START_TEST(what_cannot_be_encoded)
{
    uint8_t bytes[JITDUMP_ENCODED_MAX] = {0};
    struct cdacq_jitdump_record record = {.kind = CDACQ_JITDUMP_LOAD};
    record.as.load.code_size = UINT32_MAX - JITDUMP_LOAD_FIXED - 1;
    ck_assert_uint_eq(jitdump_encode(&record, false, bytes), JITDUMP_LOAD_FIXED);
    ck_assert_uint_eq(load_u32(bytes + 4, false), UINT32_MAX);
    record.as.load.name_length = 1;
    ck_assert_uint_eq(jitdump_encode(&record, false, bytes), 0);
    record.as.load.code_size = UINT64_MAX;
    ck_assert_uint_eq(jitdump_encode(&record, false, bytes), 0);
    record = (struct cdacq_jitdump_record){.kind = CDACQ_JITDUMP_DEBUG_INFO, .total_size = UINT64_C(1) << 32};
    ck_assert_uint_eq(jitdump_encode(&record, false, bytes), 0);
    record = (struct cdacq_jitdump_record){.kind = CDACQ_JITDUMP_UNWINDING_INFO};
    record.as.unwinding_info.unwind_data_size = UINT32_MAX;
    ck_assert_uint_eq(jitdump_encode(&record, false, bytes), 0);
    for (enum cdacq_jitdump_kind kind = CDACQ_JITDUMP_HEADER; kind <= CDACQ_JITDUMP_UNKNOWN; kind++) {
        record = (struct cdacq_jitdump_record){.kind = kind};
        ck_assert_int_eq(jitdump_encode(&record, true, bytes) > 0,
                         kind != CDACQ_JITDUMP_MOVE && kind < CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2);
    }
}
END_TEST

START_TEST(heads_of_lines)
{
    char head[PERF_MAP_HEAD_MAX];
    ck_assert_uint_eq(perf_map_encode(UINT64_MAX, UINT64_MAX, head), 36);
    ck_assert_mem_eq(head, "0xffffffffffffffff ffffffffffffffff ", 36);
    ck_assert_uint_eq(perf_map_encode(0x1a, 0, head), 7);
    ck_assert_mem_eq(head, "0x1a 0 ", 7);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("perf_files");
    TCase *tcase = tcase_create("perf_files");
    tcase_add_loop_test(tcase, everything_that_is_asked_for, 0, COMBINATIONS);
    tcase_add_loop_test(tcase, to_the_letter, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, tiers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, hostile_names, 0, 8);
    tcase_add_loop_test(tcase, code_is_missing, 0, ARCH_COUNT);
    tcase_add_test(tcase, name_is_missing);
    tcase_add_loop_test(tcase, stubs_where_there_is_memory, 0, ARCH_COUNT);
    tcase_add_test(tcase, sink_stops);
    tcase_add_test(tcase, sink_stops_at_what_is_left_out);
    tcase_add_test(tcase, bad_sinks);
    tcase_add_loop_test(tcase, holes_in_the_map, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, no_map, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, machines, 0, 7);
    tcase_add_loop_test(tcase, encoding_is_what_is_decoded, 0, 2);
    tcase_add_test(tcase, what_cannot_be_encoded);
    tcase_add_test(tcase, heads_of_lines);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
