/*
 * StressLog: the messages of a thread, as the runtime writes them: in one chunk, in a list that grows, in a ring that
 * was written several times; and what is damaged. On every architecture of the mock.
 */
#include "contracts/stress_log/stress_log.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"
#include "tests/support/stress_mock.h"

enum { THREAD = 4711, SEEDS = 4 };

struct fixture {
    struct mock *mock;
    struct stress_mock stress;
    uint64_t thread;
    struct cdacq_target *target;
    struct reader reader;
    struct stress_log log;
    struct stress_cursor cursor;
};

/* With the log of one thread, which holds `count` messages in up to `chunks` chunks. */
static void build(struct fixture *f, int arch, uint64_t seed, unsigned chunks, unsigned count)
{
    bool is_net11 = seed & 1;
    *f = (struct fixture){.mock = mock_of_version(arch, seed, is_net11 ? MOCK_NET_11 : 2)};
    stress_mock_init(&f->stress, f->mock, is_net11);
    f->thread = stress_mock_thread(&f->stress, THREAD);
    for (unsigned i = 0; i < count; i++)
        stress_mock_write(&f->stress, f->thread, chunks,
                          &(struct stress_mock_message){.time = 10 + i * 7,
                                                        .facility = 1u << i % 32,
                                                        .format = "m %d",
                                                        .count = i % 5,
                                                        .arguments = {i, i + 1, i + 2, i + 3}});
}

/* Opens what was built. */
static void begin(struct fixture *f)
{
    struct stress_thread thread;
    mock_publish(f->mock, NULL);
    f->target = mock_open(f->mock, CARRIER_MEMORY, NULL);
    f->reader = mock_reader(f->target);
    reader_begin(&f->reader, FUEL_OPEN);
    ck_assert(stress_log_read(&f->reader, &f->log));
    ck_assert(f->log.is_on);
    ck_assert(stress_thread_read(&f->reader, f->log.first, &thread));
    ck_assert_uint_eq(thread.address, f->thread);
    ck_assert_uint_eq(thread.id, THREAD);
    stress_cursor_begin(&thread, &f->cursor);
}

static void end(struct fixture *f)
{
    cdacq_target_close(f->target);
    stress_mock_deinit(&f->stress);
    mock_check(f->mock);
    mock_destroy(f->mock);
}

static enum stress_step step(struct fixture *f, struct stress_message *ret, struct cdacq_error *flaw)
{
    enum stress_step step = stress_cursor_next(&f->reader, &f->log, &f->cursor, ret, flaw);
    ck_assert(!reader_failed(&f->reader));
    ck_assert((step == STRESS_FLAW) == (flaw->status < 0));
    return step;
}

static void check_message(struct fixture *f, const struct stress_message *message,
                          const struct stress_mock_message *expected)
{
    ck_assert_uint_eq(message->address, expected->address);
    ck_assert_uint_eq(message->time, expected->time);
    ck_assert_uint_eq(message->facility, expected->facility);
    ck_assert_uint_eq(message->argument_count, expected->count);
    for (unsigned i = 0; i < expected->count; i++)
        ck_assert_uint_eq(read_pointer(&f->reader, message->arguments + i * (uint64_t)f->reader.pointer_size),
                          expected->arguments[i]);
    char format[5];
    ck_assert(reader_copy(&f->reader, message->format, format, sizeof format));
    ck_assert_str_eq(format, expected->format);
}

/* The messages that are left, the newest first, and nothing else. */
static void check_all(struct fixture *f)
{
    struct stress_message message;
    struct cdacq_error flaw;
    for (size_t i = f->stress.messages.count; i-- > 0;) {
        const struct stress_mock_message *expected = &f->stress.messages.items[i];
        if (expected->is_gone)
            continue;
        ck_assert_int_eq(step(f, &message, &flaw), STRESS_MESSAGE);
        check_message(f, &message, expected);
    }
    ck_assert_int_eq(step(f, &message, &flaw), STRESS_DONE);
    ck_assert_int_eq(step(f, &message, &flaw), STRESS_DONE);
}

static size_t gone(const struct fixture *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->stress.messages.count; i++)
        count += f->stress.messages.items[i].is_gone;
    return count;
}

START_TEST(rings)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (unsigned chunks = 1; chunks <= 4; chunks++)
            for (unsigned count = 0; count < 130; count += 1 + count / 3) {
                struct fixture f;
                build(&f, _i, seed, chunks, count);
                begin(&f);
                check_all(&f);
                ck_assert(count < 100 || chunks > 2 || gone(&f) > 0);
                end(&f);
            }
}
END_TEST

/* Of a log that is off: a variable without an address, a StressLog of zeros, and a runtime without one. */
START_TEST(off)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        struct stress_log log;
        struct mock *mock = mock_of_version(_i, kind, kind < 2 ? 2 : MOCK_NET_11);
        struct stress_mock stress;
        stress_mock_init(&stress, mock, kind >= 2);
        if (kind == 0)
            mock_global(mock, "StressLog", mock_alloc(mock, 8, 8));
        else if (kind == 3)
            mock_global(mock, "StressLogEnabled", 0);
        else
            mock_set(mock, stress.log, "StressLog.MaxSizePerThread", 0);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct reader reader = mock_reader(target);
        reader_begin(&reader, FUEL_OPEN);
        ck_assert(stress_log_read(&reader, &log));
        ck_assert(!log.is_on);
        ck_assert_uint_eq(log.address, kind == 0 || kind == 3 ? 0 : stress.log);
        cdacq_target_close(target);
        stress_mock_deinit(&stress);
        mock_destroy(mock);
    }
}
END_TEST

START_TEST(impossible_logs)
{
    static const struct {
        const char *field;
        uint64_t value;
        const char *said;
    } cases[] = {{"StressLog.TickFrequency", 0, "StressLog.TickFrequency"},
                 {"StressLog.TickFrequency", UINT64_MAX, "StressLog.TickFrequency"},
                 {"StressLogChunkSize", 8, "StressLogChunkSize"},
                 {"StressLogChunkSize", UINT32_MAX, "StressLogChunkSize"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;
        struct cdacq_error error;
        build(&f, _i, i, 1, 3);
        if (strchr(cases[i].field, '.'))
            mock_set(f.mock, f.stress.log, cases[i].field, cases[i].value);
        else
            mock_global(f.mock, cases[i].field, cases[i].value);
        f.target = mock_publish_and_open(f.mock);
        f.reader = mock_reader(f.target);
        reader_begin(&f.reader, FUEL_OPEN);
        ck_assert(!stress_log_read(&f.reader, &f.log));
        ck_assert_int_eq(reader_status(&f.reader, &error), CDACQ_ERR_CORRUPT);
        ck_assert_msg(strstr(error.message, cases[i].said) != NULL, "%s", error.message);
        end(&f);
    }
}
END_TEST

/* Reads all, and counts messages and flaws. `said` is in the first flaw. */
static void check_flaws(struct fixture *f, size_t messages, size_t flaws, enum cdacq_status status, const char *said)
{
    struct stress_message message;
    struct cdacq_error flaw, first = {0};
    size_t found = 0, flawed = 0;
    enum stress_step last;
    while ((last = step(f, &message, &flaw)) != STRESS_DONE) {
        found += last == STRESS_MESSAGE;
        first = last == STRESS_FLAW && !flawed ? flaw : first;
        flawed += last == STRESS_FLAW;
        ck_assert_uint_lt(found + flawed, 1000);
    }
    ck_assert_msg(strstr(first.message, said) != NULL, "%s", first.message);
    ck_assert_int_eq(first.status, status);
    ck_assert_uint_eq(flawed, flaws);
    ck_assert_uint_eq(found, messages);
}

/* Which of the messages, counted from the newest, are in the chunk that is written to. */
static size_t in_first_chunk(struct fixture *f)
{
    uint64_t begin = mock_get(f->mock, f->thread, "ThreadStressLog.CurrentWriteChunk");
    size_t count = 0;
    for (size_t i = 0; i < f->stress.messages.count; i++) {
        uint64_t address = f->stress.messages.items[i].address;
        count += address > begin && address - begin < STRESS_MOCK_CHUNK + 64;
    }
    return count;
}

/* In a list of three chunks, damage of one leaves the others. */
START_TEST(damaged_chunks)
{
    enum { COUNT = 60 };
    struct fixture f;
    for (unsigned kind = 0; kind < 3; kind++) {
        build(&f, _i, kind, 9, COUNT);
        size_t newest = in_first_chunk(&f);
        uint64_t write = mock_get(f.mock, f.thread, "ThreadStressLog.CurrentWriteChunk");
        uint64_t second = mock_get(f.mock, write, "StressLogChunk.Next");
        size_t others = 0;
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t address = f.stress.messages.items[i].address;
            others += address < second || address - second > STRESS_MOCK_CHUNK + 64;
        }
        ck_assert_uint_gt(newest, 0);
        ck_assert_uint_gt(others, newest);
        if (kind == 0)
            mock_set(f.mock, second, "StressLogChunk.Sig1", 1);
        else if (kind == 1)
            mock_set(f.mock, second, "StressLogChunk.Sig2", 1);
        else /* nothing leads to what comes after a chunk that is not there */
            mock_unmap(f.mock, second, mock_size_of(f.mock, "StressLogChunk") + STRESS_MOCK_CHUNK);
        begin(&f);
        if (kind == 2)
            check_flaws(&f, newest, 2, CDACQ_ERR_MEMORY, "StressLogChunk.Sig1: no memory at");
        else
            check_flaws(&f, others, 1, CDACQ_ERR_CORRUPT, "the signature of a StressLogChunk");
        end(&f);
    }
}
END_TEST

START_TEST(damaged_links)
{
    struct fixture f;
    build(&f, _i, 1, 9, 30);
    uint64_t write = mock_get(f.mock, f.thread, "ThreadStressLog.CurrentWriteChunk");
    mock_set(f.mock, write, "StressLogChunk.Next", write); /* the tail is never met */
    begin(&f);
    check_flaws(&f, in_first_chunk(&f), 1, CDACQ_ERR_CORRUPT, "which leads back");
    end(&f);

    build(&f, _i, 2, 9, 30);
    write = mock_get(f.mock, f.thread, "ThreadStressLog.CurrentWriteChunk");
    mock_set(f.mock, write, "StressLogChunk.Next", 0);
    begin(&f);
    check_flaws(&f, in_first_chunk(&f), 1, CDACQ_ERR_CORRUPT, "StressLogChunk.Next");
    end(&f);

    build(&f, _i, 3, 1, 5);
    mock_set(f.mock, f.thread, "ThreadStressLog.CurrentPtr", f.thread);
    begin(&f);
    check_flaws(&f, 0, 1, CDACQ_ERR_CORRUPT, "ThreadStressLog.CurrentPtr");
    end(&f);

    build(&f, _i, 4, 1, 5); /* the runtime has not begun to write */
    mock_set(f.mock, f.thread, "ThreadStressLog.CurrentWriteChunk", 0);
    begin(&f);
    struct stress_message message;
    struct cdacq_error flaw;
    ck_assert_int_eq(step(&f, &message, &flaw), STRESS_DONE);
    end(&f);
}
END_TEST

/* A message in the middle of a chunk: what is newer than it, and the other chunks, are left. */
START_TEST(damaged_messages)
{
    static const struct {
        struct stress_mock_message message;
        const char *said;
    } cases[] = {{{.time = 5, .facility = 1, .count = 63}, "extends beyond its chunk"},
                 {{.time = 1000000, .facility = 1, .count = 1}, "is newer than the one that was written after it"},
                 {{.time = 5}, "there is no message at"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;
        build(&f, _i, i, 1, 6);
        stress_mock_header(&f.stress, f.stress.messages.items[3].address, &cases[i].message);
        begin(&f);
        check_flaws(&f, 2, 1, CDACQ_ERR_CORRUPT, cases[i].said);
        end(&f);
    }
}
END_TEST

/* The newest message is not complete, and the others are read. */
START_TEST(unfinished_messages)
{
    static const struct stress_mock_message unfinished[] = {
        {.time = 0},                             /* nothing is written yet */
        {.time = 1, .facility = 2, .count = 4}}; /* the time of an old one */
    for (size_t i = 0; i < ARRAY_SIZE(unfinished); i++) {
        struct fixture f;
        build(&f, _i, i, 1, 5);
        const struct stress_mock_message *newest = &f.stress.messages.items[4];
        if (i == 0)
            for (uint64_t at = 0; at < newest->size; at++)
                mock_write_uint(f.mock, newest->address + at, 1, 0);
        else
            stress_mock_header(&f.stress, newest->address, &unfinished[i]);
        begin(&f);
        check_flaws(&f, 4, 1, CDACQ_ERR_CHANGED, "was being written");
        end(&f);
    }
}
END_TEST

/* A host that has run for long has a counter of more than 51 bits, and the bits that are kept wrap. */
START_TEST(times_wrap)
{
    struct fixture f;
    build(&f, _i, 1, 2, 0);
    uint64_t most = (UINT64_C(1) << 51) - 1;
    const uint64_t times[] = {0, most / 2, most - 1, 3}; /* the last one is 4 ticks after the one before */
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        stress_mock_write(&f.stress, f.thread, 2,
                          &(struct stress_mock_message){.time = times[i], .facility = 1, .format = "m %d"});
    begin(&f);
    check_all(&f);
    end(&f);
}
END_TEST

/* Beyond all modules there is no string; without a table, an offset is one from a single image. */
START_TEST(format_strings)
{
    for (unsigned has_table = 0; has_table < 2; has_table++) {
        struct fixture f;
        struct stress_message message;
        struct cdacq_error flaw;
        build(&f, _i, has_table, 1, 1);
        mock_global(f.mock, "StressLogHasModuleTable", has_table);
        uint64_t at = f.stress.messages.items[0].address + mock_offset_of(f.mock, "StressMsg.Header");
        uint64_t offset = 2 * STRESS_MOCK_STRINGS + 5;
        mock_write_uint(f.mock, at, 8, 1 | offset << 38);
        begin(&f);
        ck_assert_int_eq(step(&f, &message, &flaw), STRESS_MESSAGE);
        ck_assert_uint_eq(message.format, has_table ? 0 : f.stress.images[0] + offset);
        end(&f);
    }
}
END_TEST

START_TEST(facilities)
{
    ck_assert_int_eq(_i, 0);
    ck_assert_str_eq(stress_facility_name(0), "GC");
    ck_assert_str_eq(stress_facility_name(8), "GCALLOC");
    ck_assert_str_eq(stress_facility_name(31), "ALWAYS");
    ck_assert_ptr_null(stress_facility_name(32));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("stress_log");
    TCase *t = tcase_create("stress_log");
    tcase_add_loop_test(t, rings, 0, ARCH_COUNT);
    tcase_add_loop_test(t, off, 0, ARCH_COUNT);
    tcase_add_loop_test(t, impossible_logs, 0, ARCH_COUNT);
    tcase_add_loop_test(t, damaged_chunks, 0, ARCH_COUNT);
    tcase_add_loop_test(t, damaged_links, 0, ARCH_COUNT);
    tcase_add_loop_test(t, damaged_messages, 0, ARCH_COUNT);
    tcase_add_loop_test(t, unfinished_messages, 0, ARCH_COUNT);
    tcase_add_loop_test(t, times_wrap, 0, ARCH_COUNT);
    tcase_add_loop_test(t, format_strings, 0, ARCH_COUNT);
    tcase_add_loop_test(t, facilities, 0, 1);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
