/*
 * test_running.c: calls of the library on a process that runs, and changes or ends between two reads. The mock's
 * process does nothing; the target's operations say that it has changed something.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/code_map.h"
#include "formats/byte_writer.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/index.h"
#include "src/lookup/opened_target.h"
#include "target/mapped_files.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/kernel_queries.h"
#include "tests/support/mock_support.h"
#include "tests/support/visitors.h"

enum { IPS = 300, X64 = 2 };

static struct sample_process sample;
static const struct mock_function *facts;
static size_t fact_count;
static struct cdacq_target *target;
static struct cdacq_session *session;
static struct cdacq_error error;
static struct target_ops ops;
static const struct target_ops *live_ops; /* those that `ops` replaces */
static unsigned changes;                  /* checks that still fail */

static bool unchanged(struct target *live, const struct read_log *log, size_t from)
{
    (void)live, (void)log, (void)from;
    changes -= changes > 0;
    return !changes;
}

/* Without the permission to read another process's memory there is nothing to test. */
static bool open_process(void)
{
    sample = sample_build(X64, 1, 1, true);
    mock_publish(sample.mock, NULL);
    facts = mock_functions(sample.mock, &fact_count);
    if (mock_carriers() <= CARRIER_PROCESS)
        return false;
    target = mock_open(sample.mock, CARRIER_PROCESS, NULL);
    session = mock_session(target);
    ck_assert(resolver_is_running(&session->resolver));
    return true;
}

static void setup(void)
{
    memset(&error, 0, sizeof error);
    changes = 0;
    target = NULL;
    session = NULL;
}

static void teardown(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
    session = NULL;
    target = NULL;
}

/* From now on, as many checks fail as `changes` says. */
static void change_memory(unsigned count)
{
    if (target->memory->ops != &ops)
        ops = *target->memory->ops;
    ops.unchanged = unchanged;
    target->memory->ops = &ops;
    changes = count + 1;
}

static const struct mock_function *jitted(void)
{
    for (size_t i = 0; i < fact_count; i++)
        if (facts[i].code == MOCK_CODE_JIT && !facts[i].funclet)
            return &facts[i];
    ck_abort_msg("the sample has no method");
}

static uint64_t epoch(void)
{
    return target->memory->epoch;
}

/* ---- Look-ups ---- */

START_TEST(every_answer_is_written_when_the_process_has_ended)
{
    uint64_t ips[IPS];
    struct cdacq_method methods[IPS];
    if (!open_process())
        return;
    for (size_t i = 0; i < IPS; i++)
        ips[i] = jitted()->begin;
    memset(methods, 0x5a, sizeof methods);
    methods->size = sizeof *methods;
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, IPS, methods, &error), CDACQ_OK);
    ck_assert_int_eq(methods[IPS - 1].answer, CDACQ_ANSWER_MANAGED);
    ck_assert_int_eq(kill(target->memory->pid, SIGKILL), 0);
    for (int i = 0; i < 20000 && !target_gone(target->memory); i++)
        usleep(1000);
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, IPS, methods, &error), CDACQ_ERR_IO);
    for (size_t i = 0; i < IPS; i++) {
        ck_assert_int_eq(methods[i].answer, CDACQ_ANSWER_ERROR);
        ck_assert_uint_eq(methods[i].ip, ips[i]);
        ck_assert_ptr_null(methods[i].name);
        ck_assert_ptr_nonnull(strstr(methods[i].error, "ended"));
    }
}
END_TEST

/* The kernel is asked for the mappings that a look-up needs; all are listed only for a call that needs all. */
START_TEST(a_look_up_leaves_the_mappings_partial)
{
    struct cdacq_method method = {.size = sizeof method};
    const bool partial = kernel_has_map_queries();
    setenv("CDACQ_UNDUMP_EXECUTABLE", "1", 1); /* so that the runtime is found among the code that is loaded */
    bool is_open = open_process();
    unsetenv("CDACQ_UNDUMP_EXECUTABLE");
    if (!is_open)
        return;
    const struct target *live = target->memory;
    ck_assert_int_eq(live->partial, partial);
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    ck_assert_ptr_nonnull(method.name);
    ck_assert_int_eq(live->partial, partial);
    ck_assert_int_eq(!live->mapping_count, partial);
    ck_assert_int_eq(cdacq_session_method_at(session, 1, &method, &error), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(live->partial, partial);
    ck_assert_int_eq(cdacq_session_visit_code_files(session, ignore_mapped_file, NULL, &error), CDACQ_OK);
    ck_assert(!live->partial);
    ck_assert_uint_gt(live->mapping_count, 0);
}
END_TEST

/* What is left of it has no code ranges, and does not say that there are none. */
START_TEST(a_process_that_has_ended_has_no_code_ranges)
{
    if (!open_process())
        return;
    ck_assert_int_eq(cdacq_session_visit_code_ranges(session, ignore_range, NULL, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_check_code_range(session, jitted()->begin, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_check_code_range(session, 1, &error), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(kill(target->memory->pid, SIGKILL), 0);
    for (int i = 0; i < 20000 && !target_gone(target->memory); i++)
        usleep(1000);
    ck_assert_int_eq(cdacq_session_visit_code_ranges(session, ignore_range, NULL, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "ended"));
    error.message[0] = '\0';
    ck_assert_int_eq(cdacq_session_check_code_range(session, jitted()->begin, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "ended"));
    ck_assert_int_eq(cdacq_session_check_code_range(session, 1, &error), CDACQ_ERR_IO);
}
END_TEST

static int expect_managed(const struct cdacq_method *method, void *context)
{
    ck_assert_ptr_null(context);
    ck_assert_int_eq(method->answer, CDACQ_ANSWER_MANAGED);
    return 0;
}

static int keep_nothing(const void *bytes, size_t size, void *context)
{
    (void)bytes, (void)context;
    ck_assert_uint_ne(size, 0);
    return 0;
}

/* Calls that go on where something cannot be read: each fails with the same reason. */
START_TEST(listings_fail_when_the_process_has_ended)
{
    const struct cdacq_sink sink = {.size = sizeof sink, .write = keep_nothing};
    struct cdacq_written written = {.size = sizeof written};
    struct cdacq_verification sum = {.size = sizeof sum};
    const char *map = test_file("perf.map", "1000 10 a\n", 10);
    if (!open_process())
        return;
    for (unsigned round = 0; round < 2; round++) {
        const enum cdacq_status expected = round ? CDACQ_ERR_IO : CDACQ_OK;
#define CHECK(call)                                                          \
    do {                                                                     \
        memset(&error, 0, sizeof error);                                     \
        ck_assert_int_eq(call, expected);                                    \
        ck_assert(!round || strstr(error.message, "the process has ended")); \
    } while (0)
        CHECK(cdacq_session_visit_methods(session, 0, expect_managed, NULL, &error));
        CHECK(cdacq_session_write_perf_map(session, 0, &sink, &written, &error));
        CHECK(cdacq_session_write_jitdump(session, 0, &sink, &written, &error));
        CHECK(cdacq_session_write_elf(session, 0, &sink, &written, &error));
        CHECK(cdacq_session_write_elf_of_file(session, "/nowhere", 0, &sink, &written, &error));
        CHECK(cdacq_session_visit_code_files(session, ignore_mapped_file, NULL, &error));
        CHECK(cdacq_session_visit_pdbs(session, ignore_pdb, NULL, &error));
        CHECK(cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, ignore_heap, NULL, &error));
        CHECK(cdacq_target_verify(target, map, NULL, NULL, &sum, &error));
#undef CHECK
        if (!round)
            ck_assert_int_eq(kill(target->memory->pid, SIGKILL), 0);
        for (int i = 0; i < 20000 && !target_gone(target->memory); i++)
            usleep(1000);
    }
    struct cdacq_object object = {.size = sizeof object};
    ck_assert_int_eq(cdacq_session_get_object(session, jitted()->begin, &object, &error), CDACQ_ERR_IO);
    test_dir_remove();
}
END_TEST

/* What was asked before takes no more memory, and many texts are dropped, but not those that somebody keeps. */
START_TEST(texts_have_a_bound)
{
    struct cdacq_method method = {.size = sizeof method};
    struct records *records;
    if (!open_process())
        return;
    records = &session->resolver.records;
    ck_assert_uint_eq(records->arena.size, 0);
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    size_t memory = records->arena.size;
    ck_assert_uint_gt(memory, strlen(method.name));
    for (int i = 0; i < 100; i++) {
        cdacq_target_refresh(target, NULL);
        ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    }
    ck_assert_uint_eq(records->arena.size, memory);
    static char long_text[SESSION_TEXTS_MAX / 4];
    for (unsigned i = 0; i < 4; i++) {
        memset(long_text, 'a' + (char)i, sizeof long_text - 1);
        ck_assert_ptr_nonnull(resolver_text(&session->resolver, long_text, sizeof long_text - 1));
    }
    records->text_users++;
    cdacq_target_refresh(target, NULL);
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    ck_assert_uint_gt(records->arena.size, SESSION_TEXTS_MAX);
    records->text_users--;
    cdacq_target_refresh(target, NULL);
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    ck_assert_ptr_nonnull(method.name);
    ck_assert_uint_le(records->arena.size, memory);
}
END_TEST

/* The bound on work is that of what is asked between two refreshes. */
START_TEST(a_bound_begins_anew)
{
    char text[160];
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    ck_assert_uint_gt(target->memory->own_size, 0);
    target->memory->work.steps_max = 1;
    ck_assert_int_lt(cdacq_session_method_at(session, jitted()->begin, &method, &error), 0);
    ck_assert(cdacq_target_bound_reached(target, text, sizeof text));
    target->memory->work.steps_max = 100 * 1000;
    for (int i = 0; i < 10000 && !cdacq_target_bound_reached(target, text, sizeof text); i++) {
        cdacq_target_refresh(target, NULL);
        ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    }
    ck_assert(!cdacq_target_bound_reached(target, text, sizeof text));
}
END_TEST

/* Each address of a method in turn, in one epoch: the method is looked up once, and again after a refresh. */
START_TEST(an_epoch_that_goes_on_keeps_its_records)
{
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    target->keep = true;
    for (unsigned epochs = 1; epochs <= 2; epochs++) {
        for (uint64_t ip = jitted()->begin; ip < jitted()->end; ip++) {
            ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, &error), CDACQ_OK);
            ck_assert_uint_eq(method.offset, ip - jitted()->begin);
        }
        ck_assert_uint_eq(session->resolver.records.made, epochs);
        ck_assert_int_eq(cdacq_target_refresh(target, &error), CDACQ_OK);
    }
}
END_TEST

static void write_bytes(uint64_t address, const void *bytes, size_t size)
{
    struct iovec local = {(void *)(uintptr_t)bytes, size}, remote = {(void *)(uintptr_t)address, size};
    ck_assert_int_eq(process_vm_writev(target->memory->pid, &local, 1, &remote, 1, 0), (ssize_t)size);
}

/* Writes a value of two to eight bytes in an order of its own: metadata is little-endian everywhere. */
static void write_value(uint64_t address, uint64_t value, unsigned size, bool big_endian)
{
    uint8_t bytes[8];
    store_u64(bytes, big_endian ? value << (64 - 8 * size) : value, big_endian);
    write_bytes(address, bytes, size);
}

/* What a module of a cache was opened by. */
static const struct module_evidence *evidence_of(const struct module *module)
{
    return &((const struct kept_module *)module)->evidence;
}

/*
 * What a module was opened by is copied by reading it again. The last thing that is read of this one, its name, ends
 * where the first one begins, so that a log would take the two for one.
 */
START_TEST(what_a_module_rests_on_has_its_own_size)
{
    enum { NAME_SIZE = 64, TABLES = 38, HEADER = 60 };
    uint64_t block = mock_alloc((sample = sample_build(X64, 1, 1, true)).mock, 2 * PAGE_SIZE, PAGE_SIZE);
    static const uint8_t zeros[2 * PAGE_SIZE];
    mock_write(sample.mock, block, zeros, sizeof zeros);
    mock_publish(sample.mock, NULL);
    if (mock_carriers() <= CARRIER_PROCESS)
        return;
    target = mock_open(sample.mock, CARRIER_PROCESS, NULL);
    session = mock_session(target);
    const struct layout_slot *fields = session->resolver.reader.layout->fields;
    struct reader *reader = &session->resolver.reader;
    uint64_t module = block + PAGE_SIZE, dynamic = block + 128;
    uint64_t metadata = dynamic + fields[F_DynamicMetadata_Data].offset;
    uint64_t end = module + fields[F_Module_PEAssembly].offset, strings = end - NAME_SIZE - 1;
    write_value(module + fields[F_Module_DynamicMetadata].offset, dynamic, reader->pointer_size, reader->big_endian);
    write_value(dynamic + fields[F_DynamicMetadata_Size].offset, end - metadata, 4, reader->big_endian);
    write_bytes(metadata, "BSJB\1\0\1\0\0\0\0\0\0\0\0\0", 16);
    write_value(metadata + 18, 2, 2, false); /* streams */
    write_value(metadata + 20, HEADER, 4, false);
    write_value(metadata + 24, TABLES, 4, false);
    write_bytes(metadata + 28, "#~", 2);
    write_value(metadata + 32, strings - metadata, 4, false);
    write_value(metadata + 36, end - strings, 4, false);
    write_bytes(metadata + 40, "#Strings", 8);
    write_value(metadata + HEADER + 8, 1, 8, false);  /* only the table Module */
    write_value(metadata + HEADER + 24, 1, 4, false); /* has a row */
    write_value(metadata + HEADER + 30, 1, 2, false); /* with that name */
    write_bytes(strings + 1, "name", 4);
    epoch_read_anew(&session->resolver.epoch);
    reader_begin(reader, FUEL_LOOKUP);
    const struct module *found = module_cache_get(&session->resolver.modules, module);
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(found->status, CDACQ_OK);
    ck_assert_str_eq(found->path, "name");
    const struct module_evidence *evidence = evidence_of(found);
    const struct logged_reads *reads = &evidence->reads;
    ck_assert(!evidence->incomplete);
    ck_assert_uint_eq(reads->items[0].address, end);
    ck_assert_uint_eq(reads->items[reads->count - 1].address + reads->items[reads->count - 1].size, end);
}
END_TEST

/* A module that the process replaces is freed, but not the path that an answer refers to. */
START_TEST(paths_of_modules_outlive_the_modules)
{
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    ck_assert_ptr_nonnull(method.module);
    const struct method_record *record = answer_find(&session->resolver, jitted()->begin, &method);
    ck_assert_ptr_nonnull(record);
    ck_assert_ptr_nonnull(record->module);
    ck_assert_str_eq(method.module, record->module->path);
    ck_assert_ptr_ne(method.module, record->module->path);
}
END_TEST

/* Changes a byte of the process. */
static void poke(uint64_t address)
{
    uint8_t byte;
    struct iovec local = {&byte, 1}, remote = {(void *)(uintptr_t)address, 1};
    ck_assert_int_eq(process_vm_readv(target->memory->pid, &local, 1, &remote, 1, 0), 1);
    byte ^= 0x40;
    write_bytes(address, &byte, 1);
}

/* In one epoch, modules that the process replaces are kept without what they were checked by, and up to a bound. */
START_TEST(replaced_modules_have_a_bound)
{
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    struct module_cache *cache = &session->resolver.modules;
    const struct module *before = answer_find(&session->resolver, jitted()->begin, &method)->module;
    uint64_t address = before->address, last = 0;
    const struct logged_reads *reads = &evidence_of(before)->reads;
    for (size_t i = 0; i < reads->count; i++)
        last = reads->items[i].size ? reads->items[i].address : last;
    for (size_t count = 1; count <= 3; count++) {
        poke(last);
        epoch_read_anew(&session->resolver.epoch);
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        const struct module *after = module_cache_get(cache, address);
        ck_assert_ptr_nonnull(after);
        ck_assert_ptr_ne(after, before);
        ck_assert_ptr_eq(&cache->retired->module, before);
        ck_assert_uint_eq(cache->retired_count, count);
        ck_assert_ptr_null(evidence_of(before)->bytes);
        ck_assert_uint_eq(evidence_of(before)->reads.count, 0);
        before = after;
    }
    cache->retired_count = MODULE_MAX;
    poke(last);
    epoch_read_anew(&session->resolver.epoch);
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    ck_assert_ptr_null(module_cache_get(cache, address));
    module_cache_trim(cache);
    ck_assert_ptr_nonnull(module_cache_get(cache, address));
}
END_TEST

/* Each module that a process loads can be at another address than those before it. */
START_TEST(unloaded_modules_are_forgotten)
{
    if (!open_process())
        return;
    struct module_cache *cache = &session->resolver.modules;
    epoch_read_anew(&session->resolver.epoch);
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    for (uint64_t i = 0; i < MODULE_KEPT; i++)
        ck_assert_ptr_nonnull(module_cache_get(cache, 0x1000 + i));
    module_cache_trim(cache);
    ck_assert_uint_eq(cache->modules.count, MODULE_KEPT);
    ck_assert_ptr_nonnull(module_cache_get(cache, 0x1000 + MODULE_KEPT));
    module_cache_trim(cache);
    ck_assert_uint_eq(cache->modules.count, 0);
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    ck_assert_ptr_nonnull(module_cache_get(cache, 0x1000));
}
END_TEST

/* ---- ELF files and mapped files ---- */

static int drop(const void *bytes, size_t size, void *context)
{
    (void)bytes;
    *(uint64_t *)context += size;
    return 0;
}

static int write_file(const struct cdacq_code_file *file, void *context)
{
    uint64_t size = 0;
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = &size, .write = drop};
    if (file->path && file->has_code)
        ck_assert_int_eq(
            cdacq_session_write_elf_of_file(session, file->path, CDACQ_VISIT_STUBS, &sink, &written, &error), CDACQ_OK);
    ++*(unsigned *)context;
    return 0;
}

/* The map of all code is that of the epoch in which the visit began. */
START_TEST(visits_keep_their_map)
{
    uint64_t size = 0;
    unsigned files = 0;
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = &size, .write = drop};
    if (!open_process())
        return;
    uint64_t before = epoch();
    ck_assert_int_eq(cdacq_session_write_elf(session, CDACQ_VISIT_STUBS, &sink, &written, &error), CDACQ_OK);
    ck_assert_uint_gt(written.methods, 0);
    ck_assert_uint_eq(size, written.bytes);
    ck_assert_uint_eq(epoch(), before + 1);
    ck_assert_int_eq(cdacq_session_visit_code_files(session, write_file, &files, &error), CDACQ_OK);
    ck_assert_uint_gt(files, 0);
    ck_assert_uint_eq(epoch(), before + 2);
    ck_assert_uint_eq(*session->resolver.epoch.pins, 0);
}
END_TEST

static bool every_second_check_fails(struct target *live, const struct read_log *log, size_t from)
{
    (void)live, (void)log, (void)from;
    return ++changes % 2 == 0;
}

/* Lists the mappings again, as if the process had changed them. */
static void list_anew(struct target *live)
{
    size_t size = live->mapping_count * sizeof *live->mappings;
    struct mapping *old = live->mappings;
    live->mappings = malloc(size);
    ck_assert_ptr_nonnull(live->mappings);
    memcpy(live->mappings, old, size);
    ck_assert(mapped_files_index(live));
    memset(old, 0x5a, size);
    free(old);
    live->mapping_round++;
}

static int keep_path(const struct cdacq_code_file *file, void *context)
{
    if (file->path && file->has_code)
        *(const char **)context = file->path;
    return !!*(const char **)context;
}

/* While a file is written, other mappings may be listed. */
START_TEST(an_elf_file_outlives_the_mappings)
{
    uint64_t size = 0;
    const char *path = NULL;
    struct cdacq_written before = {.size = sizeof before}, after = {.size = sizeof after};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = &size, .write = drop};
    unsigned flags = (unsigned)CDACQ_VISIT_STUBS | (unsigned)CDACQ_VISIT_R2R_ALL;
    if (!open_process())
        return;
    ck_assert_int_eq(cdacq_session_visit_code_files(session, keep_path, &path, &error), CDACQ_STOPPED);
    ck_assert_int_eq(cdacq_session_write_elf_of_file(session, path, flags, &sink, &before, &error), CDACQ_OK);
    ck_assert_uint_gt(before.methods, 0);
    ops = *target->memory->ops;
    ops.unchanged = every_second_check_fails;
    ops.refresh = list_anew;
    target->memory->ops = &ops;
    uint64_t round = target->memory->mapping_round;
    ck_assert_int_eq(cdacq_session_write_elf_of_file(session, path, flags, &sink, &after, &error), CDACQ_OK);
    ck_assert_uint_gt(target->memory->mapping_round, round + 1);
    ck_assert_uint_eq(after.methods, before.methods);
    ck_assert_uint_eq(after.bytes, before.bytes);
}
END_TEST

static int take_bytes(const void *bytes, size_t size, void *context)
{
    put_bytes(context, bytes, size);
    return 0;
}

/* What happens to a process while an ELF file is written. */
enum event {
    NOTHING,
    CODE_IS_REPLACED,   /* of each method, when the next one is visited */
    METHOD_IS_REPLACED, /* one that is about to be read */
    METHOD_CHANGES,     /* the same, all the time */
};

static enum event event;
static struct cdacq_method visited; /* the JIT-compiled method before */
static size_t visit_count;

/* Puts another method where one is. */
static void replace_method(uint64_t code, uint64_t method_desc)
{
    struct reader *reader = &session->resolver.reader;
    reader_begin(reader, FUEL_LOOKUP);
    uint64_t header = read_pointer(reader, code - reader->pointer_size);
    ck_assert(!reader_failed(reader));
    header += session->resolver.reader.layout->fields[F_RealCodeHeader_MethodDesc].offset;
    write_value(header, method_desc, reader->pointer_size, reader->big_endian);
}

static void happen(const struct cdacq_method *method, void *context)
{
    enum { CHOSEN = 3 }; /* the method that something happens to */
    (void)context;
    if (event == METHOD_CHANGES)
        ops.unchanged = live_ops->unchanged;
    if (method->answer != CDACQ_ANSWER_MANAGED || method->kind != CDACQ_CODE_JITTED)
        return;
    visit_count++;
    if (event == CODE_IS_REPLACED && visit_count > 1)
        poke(visited.code_start);
    if (event == METHOD_CHANGES && visit_count == CHOSEN)
        change_memory(1000);
    if (event == METHOD_IS_REPLACED && visit_count == CHOSEN)
        replace_method(method->code_start, visited.method_desc);
    visited = *method;
}

/* Writes an ELF file while something happens to the process. */
static struct cdacq_written write_while(enum event what, struct byte_writer *to)
{
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = to, .write = take_bytes, .visited = happen};
    event = what;
    visit_count = 0;
    changes = 0;
    if (target->memory->ops != &ops)
        live_ops = target->memory->ops;
    ops = *live_ops;
    if (what == CODE_IS_REPLACED)
        ops.unchanged = every_second_check_fails;
    target->memory->ops = &ops;
    ck_assert_int_eq(cdacq_session_write_elf(session, CDACQ_ELF_CODE, &sink, &written, &error), CDACQ_OK);
    ck_assert(!to->broken);
    return written;
}

/* Code and call-frame information in a file are those of the method that has the symbol. */
START_TEST(an_elf_file_has_no_code_of_later_methods)
{
    struct byte_writer before = {0}, after = {0};
    if (!open_process())
        return;
    struct cdacq_written first = write_while(NOTHING, &before), second = write_while(CODE_IS_REPLACED, &after);
    ck_assert_uint_gt(visit_count, 3);
    ck_assert_uint_eq(second.methods, first.methods);
    ck_assert_uint_eq(after.length, before.length);
    ck_assert_mem_eq(after.data, before.data, before.length);
    byte_writer_deinit(&before);
    byte_writer_deinit(&after);
}
END_TEST

/* A method that is freed is no failure, one that cannot be read because it changes is one. */
START_TEST(an_elf_file_has_no_method_that_is_gone)
{
    static const enum event events[] = {METHOD_CHANGES, METHOD_IS_REPLACED};
    struct byte_writer file = {0};
    if (!open_process())
        return;
    struct cdacq_written first = write_while(NOTHING, &file);
    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        struct cdacq_written second = write_while(events[i], &file);
        ck_assert_uint_gt(visit_count, 3);
        ck_assert_uint_eq(second.methods, first.methods - 1);
        ck_assert_uint_eq(second.left_out, first.left_out + (events[i] == METHOD_CHANGES));
    }
    byte_writer_deinit(&file);
}
END_TEST

/* ---- The map of code and its tables ---- */

/* Memory that is broken until what was read of it is checked. */
static struct {
    uint64_t address;
    uint8_t bytes[96];
    bool is_whole;
} broken;

static void break_memory(uint64_t address)
{
    static const uint8_t zeros[sizeof broken.bytes];
    struct iovec local = {broken.bytes, sizeof broken.bytes};
    struct iovec remote = {(void *)(uintptr_t)address, sizeof broken.bytes};
    ck_assert_int_eq(process_vm_readv(target->memory->pid, &local, 1, &remote, 1, 0), sizeof broken.bytes);
    broken.address = address;
    broken.is_whole = false;
    write_bytes(address, zeros, sizeof zeros);
}

static bool check_and_mend(struct target *live, const struct read_log *log, size_t from)
{
    bool same = live_ops->unchanged(live, log, from);
    for (size_t i = 0; !broken.is_whole && i < log->reads.count; i++) {
        const struct logged_read *read = &log->reads.items[i];
        if (broken.address >= read->address + read->size || read->address >= broken.address + sizeof broken.bytes)
            continue;
        write_bytes(broken.address, broken.bytes, sizeof broken.bytes);
        broken.is_whole = true;
        same = false;
    }
    return same;
}

static int count_answer(const struct cdacq_method *method, void *context)
{
    ((unsigned *)context)[method->answer == CDACQ_ANSWER_ERROR]++;
    return 0;
}

/* A range of JIT code with methods. */
static size_t jit_range(void)
{
    const struct code_map *map = resolver_map(&session->resolver);
    const struct code_range *range = map ? code_map_range(map, jitted()->begin) : NULL;
    ck_assert_ptr_nonnull(range);
    return (size_t)(range - map->ranges);
}

/* A failure that the process has mended when it is checked is no failure. */
START_TEST(what_cannot_be_read_for_a_moment_is_read_again)
{
    unsigned before[2] = {0}, after[2] = {0};
    if (!open_process())
        return;
    ck_assert_int_eq(cdacq_session_visit_methods(session, CDACQ_VISIT_R2R_ALL, count_answer, before, &error), CDACQ_OK);
    const struct range_section section = session->resolver.index.map->ranges[jit_range()].section;
    live_ops = target->memory->ops;
    ops = *live_ops;
    ops.unchanged = check_and_mend;
    target->memory->ops = &ops;
    const uint64_t places[] = {target->manager.map, section.address};
    for (size_t which = 0; which < ARRAY_SIZE(places); which++) {
        memset(after, 0, sizeof after);
        cdacq_target_refresh(target, NULL);
        break_memory(places[which]);
        ck_assert_int_eq(cdacq_session_visit_methods(session, CDACQ_VISIT_R2R_ALL, count_answer, after, &error),
                         CDACQ_OK);
        ck_assert(broken.is_whole);
        ck_assert_uint_eq(after[0], before[0]);
        ck_assert_uint_eq(after[1], before[1]);
    }
}
END_TEST

/* The process has replaced the heap since the map was read, and there is nothing where it was. */
START_TEST(a_range_that_was_freed_is_left_out)
{
    if (!open_process())
        return;
    size_t index = jit_range();
    session->resolver.index.own_map->ranges[index].section.heap_list = 8;
    ck_assert_ptr_null(resolver_table(&session->resolver, index));
    ck_assert_int_eq(resolver_table_error(&session->resolver, index, &error), CDACQ_NOT_MANAGED);
}
END_TEST

/* ---- Questions about blocks ---- */

/* What was read for an earlier call is not taken for what the process has now. */
START_TEST(every_call_is_an_epoch)
{
    struct cdacq_jit_manager_info info = {.size = sizeof info};
    if (!open_process())
        return;
    uint64_t before = epoch();
    (void)cdacq_session_get_jit_manager_info(session, CDACQ_CODE_JITTED, &info, &error);
    ck_assert_uint_gt(epoch(), before);
    before = epoch();
    (void)cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, ignore_heap, NULL, &error);
    ck_assert_uint_gt(epoch(), before);
}
END_TEST

START_TEST(answers_about_blocks_are_checked)
{
    struct cdacq_block block;
    uint64_t hot, cold, cold_size, address;
    bool yes;
    if (!open_process())
        return;
    const struct mock_function *fact = jitted();
    change_memory(3);
    ck_assert_int_eq(cdacq_session_code_block_at(session, fact->begin, &block, &error), CDACQ_OK);
    ck_assert_uint_eq(changes, 0);
    change_memory(3);
    ck_assert_int_eq(cdacq_block_get_method_region_info(&block, session, &hot, &cold, &cold_size, &error), CDACQ_OK);
    ck_assert_uint_eq(hot, fact->hot_size);
    ck_assert_uint_eq(changes, 0);
    change_memory(1000);
    ck_assert_int_eq(cdacq_session_code_block_at(session, fact->begin, &block, &error), CDACQ_ERR_CHANGED);
    ck_assert_int_eq(cdacq_block_get_unwind_info(&block, session, &address, &error), CDACQ_ERR_CHANGED);
    ck_assert_int_eq(cdacq_block_is_funclet(&block, session, &yes, &error), CDACQ_ERR_CHANGED);
    ck_assert_int_eq(cdacq_block_get_debug_info(&block, session, &address, &yes, &error), CDACQ_ERR_CHANGED);
    change_memory(0);
    ck_assert_int_eq(cdacq_block_is_funclet(&block, session, &yes, &error), CDACQ_OK);
    ck_assert(!yes);
}
END_TEST

/* ---- Stopping ---- */

static char state_of_process(void)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", target->memory->pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    ck_assert_ptr_nonnull(strrchr(text, ')'));
    return strrchr(text, ')')[2];
}

static uint64_t stops(void)
{
    struct cdacq_stops stops = {.size = sizeof stops};
    ck_assert_int_eq(cdacq_target_get_stops(target, &stops, &error), CDACQ_OK);
    ck_assert_uint_ge(stops.total_ns, stops.longest_ns);
    ck_assert_int_eq(stops.count > 0, stops.longest_ns > 0);
    return stops.count;
}

START_TEST(a_process_is_stopped_for_as_long_as_it_is_asked)
{
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    ck_assert_uint_eq(stops(), 0);
    for (unsigned i = 1; i <= 3; i++) {
        uint64_t before = epoch();
        ck_assert_int_eq(cdacq_target_stop(target, &error), CDACQ_OK);
        ck_assert_uint_gt(epoch(), before);
        ck_assert_int_eq(state_of_process(), 't');
        ck_assert_int_eq(cdacq_target_stop(target, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
        cdacq_target_resume(target);
        ck_assert_int_ne(state_of_process(), 't');
        ck_assert_uint_eq(stops(), i);
        cdacq_target_resume(target); /* does nothing */
    }
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
}
END_TEST

START_TEST(a_process_that_is_opened_stopped_can_run_on)
{
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_STOP};
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    int pid = target->memory->pid;
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    session = NULL;
    target = NULL;
    ck_assert_int_eq(cdacq_target_open_pid(pid, &options, &target, &error), CDACQ_OK);
    ck_assert_int_eq(state_of_process(), 't');
    session = mock_session(target);
    ck_assert(!resolver_is_running(&session->resolver));
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    cdacq_target_resume(target);
    ck_assert_int_ne(state_of_process(), 't');
    ck_assert_uint_eq(stops(), 1);
    ck_assert_int_eq(cdacq_target_stop(target, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(method.name);
}
END_TEST

static unsigned watches;

/* Looks at the process while it runs, and stops it for a moment. */
static void watch(struct cdacq_target *running, void *context)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_session *own = mock_session(running);
    ck_assert_ptr_eq(context, &watches);
    ck_assert(resolver_is_running(&own->resolver));
    ck_assert_int_eq(cdacq_session_method_at(own, jitted()->begin, &method, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_target_stop(running, &error), CDACQ_OK);
    watches++;
    cdacq_session_destroy(own); /* the library lets the process run on before it stops it again */
}

/* The caller watches the process before it is stopped; what is opened is then one that does not change. */
START_TEST(a_process_is_watched_before_it_is_stopped)
{
    struct cdacq_options options = {.size = sizeof options, .before_stop = watch, .before_stop_context = &watches};
    struct cdacq_method method = {.size = sizeof method};
    if (!open_process())
        return;
    int pid = target->memory->pid;
    for (unsigned stopped = 0; stopped < 2; stopped++) {
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        session = NULL;
        target = NULL;
        options.flags = stopped ? CDACQ_OPEN_STOP : 0;
        ck_assert_int_eq(cdacq_target_open_pid(pid, &options, &target, &error), CDACQ_OK);
        session = mock_session(target);
        ck_assert_uint_eq(watches, stopped);
        ck_assert_int_eq(resolver_is_running(&session->resolver), !stopped);
    }
    ck_assert_int_eq(state_of_process(), 't');
    ck_assert_int_eq(cdacq_session_method_at(session, jitted()->begin, &method, &error), CDACQ_OK);
    cdacq_target_resume(target);
    ck_assert_uint_eq(stops(), 2);
}
END_TEST

START_TEST(only_a_process_can_be_stopped)
{
    sample = sample_build(X64, 1, 1, true);
    target = mock_publish_and_open(sample.mock);
    ck_assert_int_eq(cdacq_target_stop(target, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_target_stop(NULL, &error), CDACQ_ERR_ARGUMENT);
    cdacq_target_resume(target);
    cdacq_target_resume(NULL);
    ck_assert_uint_eq(stops(), 0);
}
END_TEST

/* The tool waits for input: the process is to run meanwhile. */
START_TEST(the_tool_stops_it_for_each_batch)
{
    const char *tool = getenv("CDACQ_TOOL");
    char pid[16], line[1024];
    int in[2], out[2], status;
    if (!open_process())
        return;
    ck_assert_ptr_nonnull(tool);
    snprintf(pid, sizeof pid, "%d", target->memory->pid);
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        execlp(tool, tool, "ip2method", "--stop", "-v", pid, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    FILE *answers = fdopen(out[0], "r");
    for (int i = 0; i < 3; i++) {
        dprintf(in[1], "%llx\n", (unsigned long long)jitted()->begin);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, answers));
        ck_assert_ptr_nonnull(strstr(line, "+0x0"));
        ck_assert_int_ne(state_of_process(), 't');
    }
    close(in[1]);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, answers));
    ck_assert_ptr_nonnull(strstr(line, "was stopped 3 times"));
    fclose(answers);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("running");
    TCase *tcase = tcase_create("running");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_a_process_can_be_stopped);
    suite_add_tcase(suite, tcase);
    if (left_out_emulated("running: all but only_a_process_can_be_stopped", "no process_vm_readv"))
        return suite;
    tcase_add_test(tcase, every_answer_is_written_when_the_process_has_ended);
    tcase_add_test(tcase, a_look_up_leaves_the_mappings_partial);
    tcase_add_test(tcase, a_process_that_has_ended_has_no_code_ranges);
    tcase_add_test(tcase, listings_fail_when_the_process_has_ended);
    tcase_add_test(tcase, texts_have_a_bound);
    tcase_add_test(tcase, a_bound_begins_anew);
    tcase_add_test(tcase, an_epoch_that_goes_on_keeps_its_records);
    tcase_add_test(tcase, what_a_module_rests_on_has_its_own_size);
    tcase_add_test(tcase, paths_of_modules_outlive_the_modules);
    tcase_add_test(tcase, replaced_modules_have_a_bound);
    tcase_add_test(tcase, unloaded_modules_are_forgotten);
    tcase_add_test(tcase, visits_keep_their_map);
    tcase_add_test(tcase, an_elf_file_outlives_the_mappings);
    tcase_add_test(tcase, an_elf_file_has_no_code_of_later_methods);
    tcase_add_test(tcase, an_elf_file_has_no_method_that_is_gone);
    tcase_add_test(tcase, what_cannot_be_read_for_a_moment_is_read_again);
    tcase_add_test(tcase, a_range_that_was_freed_is_left_out);
    tcase_add_test(tcase, every_call_is_an_epoch);
    tcase_add_test(tcase, answers_about_blocks_are_checked);
    if (getenv("CDACQ_VALGRIND")) {
        puts("left out under valgrind: what needs ptrace");
    } else {
        tcase_add_test(tcase, a_process_is_stopped_for_as_long_as_it_is_asked);
        tcase_add_test(tcase, a_process_that_is_opened_stopped_can_run_on);
        tcase_add_test(tcase, a_process_is_watched_before_it_is_stopped);
        tcase_add_test(tcase, the_tool_stops_it_for_each_batch);
    }
    return suite;
}

CHECK_MAIN(suite)
