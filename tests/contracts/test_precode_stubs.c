/*
 * From entry points to MethodDescs, and what kind of stub an address is in: precodes of every kind in every version of
 * PrecodeStubs, range lists, interpreted methods, portable entry points, on every width, byte order and carrier.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "contracts/execution_manager/execution_manager.h"
#include "contracts/code_lookup/precode_stubs.h"
#include "tests/support/mock_support.h"

enum { VERSIONS = 3, SEEDS = 6, COMBINATIONS = ARCH_COUNT * VERSIONS * SEEDS };
enum { UNTOUCHED = 0x5a5a5a };

static struct mock *mock_with(int arch, unsigned version, uint64_t seed)
{
    struct mock_options options = {
        .pointer_size = arch & 1 ? 8 : 4,
        .big_endian = arch & 2,
        .seed = seed,
        .precode_version = version,
        .unwind = MOCK_UNWIND_HEADER,
        .code_pointer_flags = seed % 3 == 2 ? (arch & 1 ? 2 : 1) : 0,
        .span_size = seed % 5 == 4 ? 7 : 0,
    };
    struct mock *mock = mock_create(&options);
    ck_assert_ptr_nonnull(mock);
    return mock;
}

/* An entry point and the MethodDesc that it must lead to; 0: none. */
struct entry {
    uint64_t address, method_desc;
};

static void check_entry(struct cdacq_session *session, const struct entry *entry)
{
    struct cdacq_error error = {0};
    uint64_t method_desc = UNTOUCHED;
    enum cdacq_status status =
        cdacq_session_non_virtual_entry_to_method_desc(session, entry->address, &method_desc, &error);
    if (status != (entry->method_desc ? CDACQ_OK : CDACQ_NOT_MANAGED) ||
        method_desc != (entry->method_desc ? entry->method_desc : UNTOUCHED))
        ck_abort_msg("%#" PRIx64 ": %#" PRIx64 " instead of %#" PRIx64 ", status %d: %s", entry->address, method_desc,
                     entry->method_desc, status, error.message);
}

static void check_failure(struct cdacq_target *target, uint64_t entry, enum cdacq_status expected, const char *said)
{
    struct cdacq_session *session = mock_session(target);
    struct cdacq_error error = {0};
    uint64_t method_desc = UNTOUCHED;
    ck_assert_int_eq(cdacq_session_non_virtual_entry_to_method_desc(session, entry, &method_desc, &error), expected);
    ck_assert_uint_eq(method_desc, UNTOUCHED);
    ck_assert_msg(strstr(error.message, said) != NULL, "%s is not in: %s", said, error.message);
    cdacq_session_destroy(session);
}

static void check_one(struct cdacq_target *target, uint64_t entry, uint64_t method_desc)
{
    struct cdacq_session *session = mock_session(target);
    check_entry(session, &(struct entry){entry, method_desc});
    cdacq_session_destroy(session);
}

/* ---- Precodes ---- */

enum { ENTRIES = 400 };

struct entries {
    struct entry items[ENTRIES];
    size_t count;
};

static void add_entry(struct entries *entries, uint64_t address, uint64_t method_desc)
{
    ck_assert_uint_lt(entries->count, ENTRIES);
    entries->items[entries->count++] = (struct entry){address, method_desc};
}

/* Kinds that a version of the contract identifies and that belong to a method. */
static bool leads_to_method(unsigned version, enum mock_precode kind)
{
    switch (kind) {
    case MOCK_PRECODE_UM_ENTRY:
    case MOCK_PRECODE_DYNAMIC_HELPER:
        return false;
    case MOCK_PRECODE_INTERPRETER:
        return version == 3;
    default:
        return true;
    }
}

/* Precodes of all kinds on several pages, and unused ones. */
static void add_precodes(struct mock *mock, unsigned version, struct entries *entries)
{
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 4, false);
    struct mock_precodes *fixups = mock_precodes_create(mock, true, 3, true);
    mock_check(mock);
    for (uint64_t i = 0; i < 160; i++) {
        enum mock_precode kind = (enum mock_precode)(i % MOCK_PRECODE_COUNT);
        uint64_t method_desc = 0x10000 + i * 8;
        if (version == 1 && kind == MOCK_PRECODE_THIS_PTR_RET_BUF)
            continue;
        add_entry(entries, mock_precode(kind == MOCK_PRECODE_FIXUP ? fixups : stubs, kind, method_desc),
                  leads_to_method(version, kind) ? method_desc : 0);
    }
    add_entry(entries, mock_precode(fixups, MOCK_PRECODE_FIXUP, 0), 0);
    for (uint64_t i = 0; i < 10; i++) {
        add_entry(entries, stubs->next + i * mock_precode_size(mock), 0);
        add_entry(entries, fixups->next + i * mock_precode_size(mock), 0);
    }
}

START_TEST(every_precode_leads_back)
{
    int arch = _i % ARCH_COUNT;
    unsigned version = 1 + (unsigned)(_i / ARCH_COUNT) % VERSIONS;
    struct mock *mock = mock_with(arch, version, (uint64_t)(_i / ARCH_COUNT / VERSIONS));
    struct entries entries = {.count = 0};
    add_precodes(mock, version, &entries);
    mock_publish(mock, NULL);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        struct cdacq_target *target = mock_open(mock, carrier, NULL);
        struct cdacq_session *session = mock_session(target);
        for (size_t i = 0; i < entries.count; i++)
            check_entry(session, &entries.items[i]);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
    mock_destroy(mock);
}
END_TEST

/* Version 3 compares all of the code: no other address in the pages passes for a precode. */
START_TEST(nowhere_else_are_precodes)
{
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    uint64_t entry = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1238);
    for (int i = 0; i < 20; i++)
        mock_precode(stubs, MOCK_PRECODE_STUB, 0x2000 + (uint64_t)i * 8);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    uint64_t size = mock_precode_size(mock);
    for (uint64_t at = 1; at < size; at++)
        check_entry(session, &(struct entry){entry + at, 0});
    for (uint64_t at = 0; at < 20 * size; at++)
        check_entry(session, &(struct entry){mock_precode_data(mock, entry) + at, 0});
    check_entry(session, &(struct entry){entry, 0x1238});
    check_entry(session, &(struct entry){stubs->begin - 1, 0});
    check_entry(session, &(struct entry){stubs->end, 0});
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The same code and data where no precode can start. */
START_TEST(precodes_are_aligned)
{
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    uint64_t entry = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1238), size = mock_precode_size(mock);
    uint64_t word = _i & 1 ? 8 : 4, copies[] = {entry + 3 * size + word, entry + 6 * size + word / 2};
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
        for (uint64_t at = 0; at < size; at++) {
            mock_write_uint(mock, copies[i] + at, 1, mock_read_uint(mock, entry + at, 1));
            mock_write_uint(mock, mock_precode_data(mock, copies[i]) + at, 1,
                            mock_read_uint(mock, mock_precode_data(mock, entry) + at, 1));
        }
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_one(target, copies[0], 0x1238);
    check_one(target, copies[1], 0);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Numbers of no kind, or of a kind with other code; and code that is no precode. */
START_TEST(unknown_precodes)
{
    int arch = _i % ARCH_COUNT;
    unsigned version = 1 + (unsigned)(_i / ARCH_COUNT);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct mock *mock = mock_with(arch, version, seed);
        struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
        uint64_t entries[4];
        for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
            entries[i] = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1000 + i * 8);
        mock_set(mock, mock_precode_data(mock, entries[0]), "StubPrecodeData.Type", 0x55);
        mock_set(mock, mock_precode_data(mock, entries[1]), "StubPrecodeData.Type", version == 3 ? 2 : 0xff);
        mock_write(mock, entries[2] & ~UINT64_C(1), "\0\0\0\0\0\0\0\0\0\0", 10);
        struct cdacq_target *target = mock_publish_and_open(mock);
        for (size_t i = 0; i < 3; i++)
            check_one(target, entries[i], 0);
        check_one(target, entries[3], 0x1018);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* .NET 8 and 9 have no PrecodeMachineDescriptor in memory: a supplement gives its values. */
START_TEST(values_from_a_supplement)
{
    struct mock *mock = mock_with(_i, 1, 3);
    struct entries entries = {.count = 0};
    add_precodes(mock, 1, &entries);
    mock_precode_values(mock);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    for (size_t i = 0; i < entries.count; i++)
        check_entry(session, &entries.items[i]);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Bits of a code pointer that do not belong to the address. */
START_TEST(signed_and_thumb_pointers)
{
    struct mock_options options = {.pointer_size = _i & 1 ? 8 : 4,
                                   .big_endian = _i & 2,
                                   .seed = 9,
                                   .unwind = MOCK_UNWIND_HEADER,
                                   .code_pointer_flags = _i & 1 ? 2 : 1};
    struct mock *mock = mock_create(&options);
    struct mock_precodes *fixups = mock_precodes_create(mock, true, 1, false);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
    uint64_t precode = mock_precode(fixups, MOCK_PRECODE_FIXUP, 0x1240);
    uint64_t size = 64;
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS});
    for (uint32_t i = 1; i <= 20; i++)
        mock_r2r_method(
            image, &(struct mock_r2r_method){.hot = &size, .hot_count = 1, .rid = i, .method_desc = 0x2000 + i * 8});
    mock_r2r_finish(image);
    struct cdacq_target *target = mock_publish_and_open(mock);
    uint64_t signature = _i & 1 ? UINT64_C(0x7f1) << 52 : 1;
    ck_assert_uint_eq(precode & 1, !(_i & 1));
    check_one(target, start | signature, 0x1238);
    check_one(target, precode | signature, 0x1240);
    check_one(target, start, 0x1238);
    for (uint32_t i = 0; i < 20; i++)
        check_one(target, mock_r2r_start(image, i) | signature, 0x2008 + i * 8);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Code ---- */

START_TEST(entries_of_code)
{
    struct sample_process sample = sample_build(_i % ARCH_COUNT, (uint64_t)(_i / ARCH_COUNT), 2, true);
    size_t count;
    mock_publish(sample.mock, NULL);
    const struct mock_function *facts = mock_functions(sample.mock, &count);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        struct cdacq_target *target = mock_open(sample.mock, carrier, NULL);
        struct cdacq_session *session = mock_session(target);
        for (size_t i = 0; i < count; i++) {
            if (facts[i].code == MOCK_CODE_RANGE_LIST)
                continue; /* not precodes: other tests */
            check_entry(session, &(struct entry){facts[i].begin, facts[i].method_desc});
            check_entry(session, &(struct entry){facts[i].end - 1, facts[i].method_desc});
        }
        check_entry(session, &(struct entry){0, 0});
        check_entry(session, &(struct entry){UINT64_MAX, 0});
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
    sample_destroy(&sample);
}
END_TEST

START_TEST(portable_entry_points)
{
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
    uint64_t entry = mock_portable_entry_point(mock, 0x1240), none = mock_portable_entry_point(mock, 0);
    uint64_t missing = mock_portable_entry_point(mock, 0x1248);
    mock_unmap(mock, missing, mock_size_of(mock, "PortableEntryPoint"));
    mock_global(mock, "FeaturePortableEntrypoints", 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_one(target, entry, 0x1240);
    check_one(target, none, 0);
    check_failure(target, missing, CDACQ_ERR_MEMORY, "PortableEntryPoint.MethodDesc: no memory at");
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A feature that is switched off is equivalent to one that is not published. */
START_TEST(portable_entry_points_off)
{
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
    uint64_t entry = mock_portable_entry_point(mock, 0x1240);
    mock_global(mock, "FeaturePortableEntrypoints", 0);
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_one(target, entry, 0);
    check_one(target, start, 0x1238);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Damage ---- */

/* The message names type, field and address. */
static void check_missing(struct cdacq_target *target, uint64_t entry, const char *field, uint64_t address)
{
    char said[120];
    snprintf(said, sizeof said, "%s: no memory at %#" PRIx64, field, address);
    check_failure(target, entry, CDACQ_ERR_MEMORY, said);
}

START_TEST(missing_data)
{
    struct mock *mock = mock_with(_i, 3, 5);
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    struct mock_precodes *fixups = mock_precodes_create(mock, true, 1, false);
    uint64_t word = _i & 1 ? 8 : 4;
    uint64_t stub = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1000),
             other = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1008);
    uint64_t fixup = mock_precode(fixups, MOCK_PRECODE_FIXUP, 0x1010);
    uint64_t buffer = mock_precode(stubs, MOCK_PRECODE_THIS_PTR_RET_BUF, 0x1018);
    uint64_t interpreter = mock_precode(stubs, MOCK_PRECODE_INTERPRETER, 0x1020);
    uint64_t kept = mock_precode(stubs, MOCK_PRECODE_INTERPRETER, 0x1028);
    uint64_t type = mock_precode_data(mock, stub) + mock_offset_of(mock, "StubPrecodeData.Type");
    uint64_t parameter = mock_precode_data(mock, other) + mock_offset_of(mock, "StubPrecodeData.SecretParam");
    uint64_t method = mock_precode_data(mock, fixup) + mock_offset_of(mock, "FixupPrecodeData.MethodDesc");
    uint64_t own = mock_get(mock, mock_precode_data(mock, buffer), "StubPrecodeData.SecretParam") +
                   mock_offset_of(mock, "ThisPtrRetBufPrecodeData.MethodDesc");
    uint64_t code = mock_get(mock, mock_precode_data(mock, interpreter), "InterpreterPrecodeData.ByteCodeAddr") +
                    mock_offset_of(mock, "InterpByteCodeStart.Method");
    mock_unmap(mock, type, 1);
    mock_unmap(mock, parameter, word);
    mock_unmap(mock, method, word);
    mock_unmap(mock, own, word);
    mock_unmap(mock, code, word);
    mock_unmap(mock, stubs->list, mock_size_of(mock, "CodeRangeMapRangeList"));
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_missing(target, stub, "StubPrecodeData.Type", type);
    check_missing(target, other, "StubPrecodeData.SecretParam", parameter);
    check_missing(target, fixup, "FixupPrecodeData.MethodDesc", method);
    check_missing(target, buffer, "ThisPtrRetBufPrecodeData.MethodDesc", own);
    check_missing(target, interpreter, "InterpByteCodeStart.Method", code);
    check_one(target, kept, 0x1028);
    /* Without its list a range still holds stubs. */
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method answer = {.size = sizeof answer};
    ck_assert_int_eq(cdacq_session_method_at(session, kept, &answer, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(answer.answer, CDACQ_ANSWER_STUB);
    ck_assert_int_eq(answer.kind, CDACQ_CODE_UNKNOWN);
    ck_assert_int_eq(cdacq_session_method_at(session, fixup, &answer, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(answer.kind, CDACQ_CODE_FIXUP_PRECODE);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A page of code that was not dumped; everything else still answers. */
START_TEST(missing_pages)
{
    for (unsigned version = 1; version <= VERSIONS; version++) {
        struct mock *mock = mock_with(_i, version, 3);
        struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
        uint64_t entry = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1000);
        mock_unmap(mock, entry, 16);
        struct cdacq_target *target = mock_publish_and_open(mock);
        check_failure(target, entry, CDACQ_ERR_MEMORY, "precode: no memory at");
        check_one(target, start, 0x1238);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Where the machine descriptor of a target is: the mock has it in PlatformMetadata. */
static uint64_t machine_of(struct mock *mock, struct cdacq_target *target)
{
    return target->layout.globals[G_PlatformMetadata] +
           mock_offset_of(mock, "PlatformMetadata.PrecodeMachineDescriptor");
}

START_TEST(impossible_machines)
{
    static const struct {
        const char *field;
        uint64_t value;
        unsigned version;
    } cases[] = {
        {"PrecodeMachineDescriptor.StubCodePageSize", 0, 3},
        {"PrecodeMachineDescriptor.StubCodePageSize", 0x1001, 3},
        {"PrecodeMachineDescriptor.StubCodePageSize", 0, 1},
        {"PrecodeMachineDescriptor.ReadWidthOfPrecodeType", 0, 1},
        {"PrecodeMachineDescriptor.ReadWidthOfPrecodeType", 3, 2},
        {"PrecodeMachineDescriptor.ReadWidthOfPrecodeType", 255, 2},
        {"PrecodeMachineDescriptor.ShiftOfPrecodeType", 16, 1},
        {"PrecodeMachineDescriptor.ShiftOfPrecodeType", 255, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_with(_i, cases[i].version, 1);
        struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
        uint64_t entry = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1000);
        struct cdacq_target *target = mock_publish_and_open(mock);
        check_one(target, entry, 0x1000);
        mock_set(mock, machine_of(mock, target), cases[i].field, cases[i].value);
        mock_check(mock);
        check_failure(target, entry, CDACQ_ERR_CORRUPT, cases[i].field);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Code of which no byte counts, or more of it than there is. */
START_TEST(odd_code_sizes)
{
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    uint64_t entry = mock_precode(stubs, MOCK_PRECODE_STUB, 0x1000);
    struct cdacq_target *target = mock_publish_and_open(mock);
    uint64_t machine = machine_of(mock, target);
    check_one(target, entry, 0x1000);
    mock_set(mock, machine, "PrecodeMachineDescriptor.StubPrecodeSize", 0);
    check_one(target, entry, 0);
    mock_set(mock, machine, "PrecodeMachineDescriptor.StubPrecodeSize", 12); /* a part is enough */
    check_one(target, entry, 0x1000);
    mock_set(mock, machine, "PrecodeMachineDescriptor.StubPrecodeSize", 255);
    struct cdacq_session *session = mock_session(target);
    uint64_t method_desc; /* whatever follows the bytes, the comparison ends */
    cdacq_session_non_virtual_entry_to_method_desc(session, entry, &method_desc, NULL);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Data that leads back to itself: a precode costs a fixed number of reads. */
START_TEST(precodes_in_a_cycle)
{
    enum { READS = 1200 };
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    uint64_t interpreter = mock_precode(stubs, MOCK_PRECODE_INTERPRETER, 0x1000);
    uint64_t buffer = mock_precode(stubs, MOCK_PRECODE_THIS_PTR_RET_BUF, 0x1008);
    uint64_t stub = mock_precode(stubs, MOCK_PRECODE_STUB, stubs->begin);
    uint64_t data = mock_precode_data(mock, interpreter);
    mock_set(mock, data, "InterpreterPrecodeData.ByteCodeAddr",
             data + mock_offset_of(mock, "InterpreterPrecodeData.ByteCodeAddr") -
                 mock_offset_of(mock, "InterpByteCodeStart.Method"));
    data = mock_precode_data(mock, buffer);
    mock_set(mock, data, "StubPrecodeData.SecretParam", data);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct reader reader = mock_reader(target);
    uint64_t entries[] = {interpreter, buffer, stub}, method_desc;
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        reader_begin(&reader, FUEL_LOOKUP);
        execution_manager_entry_method_desc(&target->manager, &reader, entries[i], &method_desc);
        ck_assert_int_ne(reader_failure(&reader).status, CDACQ_ERR_FUEL);
        ck_assert_uint_gt(reader_fuel(&reader), FUEL_LOOKUP - READS);
        /* And no longer than the fuel lasts. */
        for (uint32_t fuel = 0; fuel < 300; fuel += 7) {
            reader_begin(&reader, fuel);
            if (execution_manager_entry_method_desc(&target->manager, &reader, entries[i], &method_desc))
                break;
            ck_assert_uint_le(reader_fuel(&reader), fuel);
        }
    }
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Any bytes in the pages of data, and pointers from anywhere to anywhere. */
START_TEST(random_data)
{
    struct random random = {(uint64_t)_i};
    int arch = _i % ARCH_COUNT;
    unsigned version = 1 + (unsigned)(_i / ARCH_COUNT);
    struct mock *mock = mock_with(arch, version, 1);
    struct entries entries = {.count = 0};
    add_precodes(mock, version, &entries);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    uint64_t word = arch & 1 ? 8 : 4;
    for (int i = 0; i < 3000; i++) {
        uint64_t entry = entries.items[random_below(&random, entries.count)].address;
        uint64_t data = mock_precode_data(mock, entry) + random_below(&random, 3) * word, method_desc;
        mock_write_pointer(mock, align_down(data, word), random_below(&random, 2) ? entry : random_below(&random, 300));
        cdacq_session_non_virtual_entry_to_method_desc(session, entry, &method_desc, NULL);
    }
    mock_check(mock);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Contracts ---- */

static void set_contracts(struct mock *mock, unsigned schema, const char *version)
{
    mock_contract(mock, "PrecodeStubs", version);
    static const char *const others[] = {"ExecutionManager", "PlatformMetadata", "RuntimeTypeSystem", "Loader",
                                         "EcmaMetadata"};
    for (size_t i = 0; schema == 2 && i < ARRAY_SIZE(others); i++)
        mock_contract(mock, others[i], "c1");
}

START_TEST(contract_versions)
{
    static const struct {
        unsigned schema;
        const char *version;
        unsigned precodes; /* 0: nobody here reads it */
    } cases[] = {{0, "1", 1},  {0, "2", 2}, {0, "3", 3},  {0, "c3", 3},
                 {2, "c1", 3}, {0, "4", 0}, {0, NULL, 0}, {2, "3", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_with(_i, cases[i].precodes ? cases[i].precodes : 3, 1);
        struct mock_precodes *fixups = mock_precodes_create(mock, true, 1, false);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
        uint64_t entry = mock_precode(fixups, MOCK_PRECODE_FIXUP, 0x1000);
        set_contracts(mock, cases[i].schema, cases[i].version);
        mock_publish(mock, &(struct mock_publish_options){.schema = cases[i].schema});
        struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
        if (cases[i].precodes)
            check_one(target, entry, 0x1000);
        else
            check_failure(target, entry, CDACQ_ERR_CONTRACT, "PrecodeStubs: a contract is missing");
        check_one(target, start, 0x1238);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Messages name missing fields. */
START_TEST(missing_fields)
{
    static const struct {
        unsigned version;
        const char *field;
        enum mock_precode kind;
    } cases[] = {
        {1, "StubPrecodeData.MethodDesc", MOCK_PRECODE_STUB},
        {2, "StubPrecodeData.SecretParam", MOCK_PRECODE_PINVOKE},
        {3, "StubPrecodeData.Type", MOCK_PRECODE_STUB},
        {3, "FixupPrecodeData.MethodDesc", MOCK_PRECODE_FIXUP},
        {3, "ThisPtrRetBufPrecodeData.MethodDesc", MOCK_PRECODE_THIS_PTR_RET_BUF},
        {1, "StubPrecodeData.SecretParam", MOCK_PRECODE_THIS_PTR_RET_BUF},
        {3, "InterpreterPrecodeData.ByteCodeAddr", MOCK_PRECODE_INTERPRETER},
        {3, "InterpByteCodeStart.Method", MOCK_PRECODE_INTERPRETER},
        {3, "InterpMethod.MethodDesc", MOCK_PRECODE_INTERPRETER},
        {3, "PrecodeMachineDescriptor.StubCodePageSize", MOCK_PRECODE_STUB},
        {3, "PrecodeMachineDescriptor.StubPrecodeSize", MOCK_PRECODE_STUB},
        {3, "PrecodeMachineDescriptor.StubBytes", MOCK_PRECODE_STUB},
        {3, "PrecodeMachineDescriptor.StubIgnoredBytes", MOCK_PRECODE_FIXUP},
        {3, "PrecodeMachineDescriptor.FixupBytes", MOCK_PRECODE_FIXUP},
        {2, "PrecodeMachineDescriptor.OffsetOfPrecodeType", MOCK_PRECODE_STUB},
        {1, "PrecodeMachineDescriptor.ReadWidthOfPrecodeType", MOCK_PRECODE_FIXUP},
        {2, "PrecodeMachineDescriptor.ShiftOfPrecodeType", MOCK_PRECODE_STUB},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_with(_i, cases[i].version, 1);
        struct mock_precodes *precodes = mock_precodes_create(mock, cases[i].kind == MOCK_PRECODE_FIXUP, 1, false);
        bool writable = cases[i].version > 1 || cases[i].kind != MOCK_PRECODE_THIS_PTR_RET_BUF;
        uint64_t entry = mock_precode(precodes, writable ? cases[i].kind : MOCK_PRECODE_STUB, 0x1000);
        if (writable)
            mock_hide(mock, cases[i].field);
        else
            mock_set(mock, mock_precode_data(mock, entry), "StubPrecodeData.Type", 8);
        struct cdacq_target *target = mock_publish_and_open(mock);
        check_failure(target, entry, CDACQ_ERR_FIELD, cases[i].field);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* ---- Kinds ---- */

static void check_stub(struct cdacq_session *session, uint64_t ip, enum cdacq_code_kind kind)
{
    struct cdacq_method method = {.size = sizeof method};
    ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(method.answer, CDACQ_ANSWER_STUB);
    ck_assert_msg(method.kind == kind, "%#" PRIx64 " is %s, not %s", ip, cdacq_code_kind_text(method.kind),
                  cdacq_code_kind_text(kind));
}

static enum cdacq_code_kind kind_at(struct mock *mock, uint64_t ip)
{
    const struct mock_function *fact = mock_function_at(mock, ip);
    ck_assert_ptr_nonnull(fact);
    return sample_code_kind(fact);
}

/* Every number in a range list and before a block, asked one by one and in a batch. */
START_TEST(kinds_of_stubs)
{
    enum { NUMBERS = 16 };
    int arch = _i % ARCH_COUNT;
    struct mock *mock = mock_of_version(arch, 2, _i < ARCH_COUNT ? 2 : MOCK_NET_11);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x8000});
    uint64_t lists[NUMBERS + 2], blocks[NUMBERS];
    for (unsigned number = 0; number < ARRAY_SIZE(lists); number++)
        mock_range_list(mock, 0x1000, number < NUMBERS ? number : UINT32_MAX - number, number & 1, &lists[number]);
    for (unsigned number = 0; number < NUMBERS; number++)
        blocks[number] = mock_stub(heap, number, 100);
    mock_publish(mock, NULL);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        struct cdacq_target *target = mock_open(mock, carrier, NULL);
        struct cdacq_session *session = mock_session(target);
        for (int round = 0; round < 3; round++) { /* by walking, then by the index */
            for (unsigned number = 0; number < ARRAY_SIZE(lists); number++)
                check_stub(session, lists[number] + 0x123, kind_at(mock, lists[number]));
            for (unsigned number = 0; number < NUMBERS; number++)
                check_stub(session, blocks[number] + 50, kind_at(mock, blocks[number]));
        }
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
    mock_destroy(mock);
}
END_TEST

/* The code that all precodes jump to is in the runtime's image, outside all code ranges. */
START_TEST(the_pre_stub)
{
    for (int published = 0; published < 3; published++) {
        struct mock *mock = mock_with(_i, 3, 2);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
        uint64_t code = mock_map(mock, 0, 0x1000, MOCK_READ | MOCK_EXECUTE, "/mock/code.so", 0) + 0x340;
        uint64_t variable = mock_alloc(mock, 8, 8), thumb = _i & 1 ? 0 : 1;
        mock_write_pointer(mock, variable, code | thumb);
        if (published == 2)
            mock_unmap(mock, variable, 8);
        if (published)
            mock_global(mock, "ThePreStub", variable);
        else
            mock_global(mock, "ThePreStubAddress", code);
        mock_publish(mock, NULL);
        struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_method method = {.size = sizeof method};
        for (int round = 0; round < 40; round++) {
            if (published == 2) {
                ck_assert_int_eq(cdacq_session_method_at(session, code, &method, NULL), CDACQ_NOT_MANAGED);
                ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
                continue;
            }
            check_stub(session, code, CDACQ_CODE_THE_PRE_STUB);
            check_stub(session, code | thumb, CDACQ_CODE_THE_PRE_STUB);
            ck_assert_int_eq(cdacq_session_method_at(session, code + 4, &method, NULL), CDACQ_NOT_MANAGED);
            ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
        }
        check_entry(session, &(struct entry){code, 0});
        check_entry(session, &(struct entry){start, 0x1238});
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* ---- The interpreter ---- */

static int count_kind(const struct cdacq_method *method, void *context)
{
    *(int *)context += method->answer == CDACQ_ANSWER_MANAGED && method->kind == CDACQ_CODE_INTERPRETER;
    return 0;
}

/* A precode that enters the interpreter is a stub; what it enters is a method with the same MethodDesc. */
START_TEST(interpreted_methods)
{
    struct mock *mock = mock_with(_i, 3, 3);
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000, .interpreter = true});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 300, .method_desc = 0x1238});
    uint64_t entry = mock_precode(stubs, MOCK_PRECODE_INTERPRETER, 0x1238);
    mock_publish(mock, NULL);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        struct cdacq_target *target = mock_open(mock, carrier, NULL);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_block block;
        struct cdacq_method method = {.size = sizeof method};
        check_entry(session, &(struct entry){entry, 0x1238});
        check_entry(session, &(struct entry){start, 0x1238});
        ck_assert_int_eq(cdacq_session_code_block_at(session, entry, &block, NULL), CDACQ_NOT_MANAGED);
        check_stub(session, entry, CDACQ_CODE_STUB_PRECODE);
        for (uint64_t ip = start; ip < start + 320; ip++) {
            enum cdacq_status status = cdacq_session_method_at(session, ip, &method, NULL);
            uint64_t at = ip & ~(uint64_t)(target->layout.code_pointer_flags & 1);
            ck_assert_int_eq(status, at < start + 300 ? CDACQ_OK : CDACQ_NOT_MANAGED);
            if (status == CDACQ_OK)
                ck_assert(method.kind == CDACQ_CODE_INTERPRETER && method.code_size == 300 &&
                          method.offset == at - start && method.funclet_start == start);
        }
        int count = 0;
        ck_assert_int_eq(cdacq_session_visit_methods(session, 0, count_kind, &count, NULL), CDACQ_OK);
        ck_assert_int_eq(count, 1);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
    mock_destroy(mock);
}
END_TEST

/* Without a length a method answers at its start, where nothing else can be, and is listed. */
START_TEST(interpreted_methods_without_length)
{
    for (int why = 0; why < 4; why++) {
        struct mock *mock = mock_with(_i, 3, 4);
        struct mock_heap *heap =
            mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000, .interpreter = true});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 300, .method_desc = 0x1238});
        uint64_t header = mock_method_header(heap, start);
        if (why == 0)
            mock_hide(mock, "InterpreterRealCodeHeader.GCInfo");
        else if (why == 1)
            mock_set(mock, header, "InterpreterRealCodeHeader.GCInfo", 0);
        else if (why == 2)
            mock_unmap(mock, mock_get(mock, header, "InterpreterRealCodeHeader.GCInfo"), 4);
        else
            mock_global(mock, "GCInfoVersion", 99);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_error error;
        for (int round = 0; round < 40; round++) {
            ck_assert_int_eq(cdacq_session_method_at(session, start, &method, &error), CDACQ_OK);
            ck_assert(method.method_desc == 0x1238 && method.code_start == start && !method.code_size);
            ck_assert_int_eq(cdacq_session_method_at(session, start + 8, &method, &error), CDACQ_ERR_CORRUPT);
            ck_assert_ptr_nonnull(strstr(error.message, "InterpreterRealCodeHeader.GCInfo"));
        }
        int count = 0;
        ck_assert_int_eq(cdacq_session_visit_methods(session, 0, count_kind, &count, NULL), CDACQ_OK);
        ck_assert_int_eq(count, 1);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

START_TEST(interpreted_methods_damaged)
{
    struct mock *mock = mock_with(_i, 3, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000, .interpreter = true});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 300, .method_desc = 0x1238});
    uint64_t kept = mock_method(heap, &(struct mock_method){.size = 300, .method_desc = 0x1240});
    uint64_t stub = mock_stub(heap, 1, 40), word = _i & 1 ? 8 : 4;
    uint64_t field = mock_method_header(heap, start) + mock_offset_of(mock, "InterpreterRealCodeHeader.MethodDesc");
    mock_unmap(mock, field, word);
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_missing(target, start, "InterpreterRealCodeHeader.MethodDesc", field);
    check_one(target, kept + 2, 0x1240);
    check_one(target, stub, 0);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Stubs outside of the range section map ---- */

/* The mock's list of the ranges of stubs that its assembler made. */
struct stub_list {
    struct mock *mock;
    uint64_t block;
};

static uint64_t range_at(const struct stub_list *list, unsigned i)
{
    return list->block + mock_offset_of(list->mock, "RangeListBlock.Ranges") +
           i * mock_size_of(list->mock, "RangeListRange");
}

static void add_range(struct stub_list *list, unsigned i, uint64_t begin, uint64_t end, uint64_t id)
{
    uint64_t at = range_at(list, i);
    mock_set(list->mock, at, "RangeListRange.Start", begin);
    mock_set(list->mock, at, "RangeListRange.End", end);
    mock_set(list->mock, at, "RangeListRange.Id", id);
}

static struct stub_list list_at(struct mock *mock, uint64_t block)
{
    struct stub_list list = {.mock = mock, .block = block};
    for (unsigned i = 0; i < 10; i++) /* of unused ranges, only the id is 0 */
        add_range(&list, i, i << 12, (uint64_t)i << 20, 0);
    mock_set(mock, list.block, "RangeListBlock.Next", 0);
    return list;
}

static struct stub_list stub_list_create(struct mock *mock, unsigned word)
{
    uint64_t manager = mock_new(mock, "StubLinkStubManager", 0), variable = mock_alloc(mock, word, word);
    mock_write_pointer(mock, variable, manager);
    mock_global(mock, "StubLinkStubManager", variable);
    return list_at(mock, manager + mock_offset_of(mock, "StubLinkStubManager.StarterBlock"));
}

/* That of the stubs that count calls. */
static struct stub_list counting_list_create(struct mock *mock, unsigned word)
{
    uint64_t manager = mock_new(mock, "CallCountingManager", 0), domain = mock_new(mock, "SystemDomain", 0);
    uint64_t variable = mock_alloc(mock, word, word);
    mock_set(mock, domain, "SystemDomain.m_callCountingManager", manager);
    mock_write_pointer(mock, variable, domain);
    mock_global(mock, "SystemDomain", variable);
    return list_at(mock, manager + mock_offset_of(mock, "CallCountingManager.StarterBlock"));
}

/* One by one, by a batch, and in a listing. Addresses from `end` on are no code. */
struct stretch {
    uint64_t begin, end;
    enum cdacq_code_kind kind;
};

static int is_listed(const struct cdacq_method *method, void *context)
{
    struct stretch *wanted = context;
    if (method->answer == CDACQ_ANSWER_STUB && method->code_start == wanted->begin &&
        method->code_size == wanted->end - wanted->begin && method->kind == wanted->kind)
        wanted->begin = 0;
    return 0;
}

static void check_stretch(struct cdacq_target *target, struct stretch wanted)
{
    uint64_t ips[40];
    struct cdacq_method answers[ARRAY_SIZE(ips)], one = {.size = sizeof one};
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
        ips[i] = i % 4 == 3 ? wanted.end : wanted.begin + (wanted.end - 1 - wanted.begin) * (i % 4) / 2;
    struct cdacq_session *session = mock_session(target);
    for (int round = 0; round < 2; round++) {
        memset(answers, 0, sizeof answers);
        for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
            answers[i].size = sizeof answers[i];
        ck_assert_int_eq(cdacq_session_methods_at(session, ips, ARRAY_SIZE(ips), answers, NULL), CDACQ_OK);
        for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
            bool is_stub = ips[i] != wanted.end;
            cdacq_session_method_at(session, ips[i], &one, NULL);
            ck_assert_msg(one.answer == (is_stub ? CDACQ_ANSWER_STUB : CDACQ_ANSWER_NONE), "%#" PRIx64 ": %s", ips[i],
                          one.error ? one.error : "");
            ck_assert_int_eq(one.kind, is_stub ? wanted.kind : CDACQ_CODE_UNKNOWN);
            ck_assert_int_eq(answers[i].answer, one.answer);
            ck_assert_int_eq(answers[i].kind, one.kind);
        }
    }
    cdacq_session_visit_methods(session, CDACQ_VISIT_STUBS, is_listed, &wanted, NULL);
    ck_assert_msg(!wanted.begin, "not listed: %#" PRIx64 " %s", wanted.begin, cdacq_code_kind_text(wanted.kind));
    cdacq_session_destroy(session);
}

/* Memory of stubs: `used` bytes that are not zero. */
static uint64_t stub_memory(struct mock *mock, uint64_t size, uint64_t used)
{
    uint8_t bytes[0x3000];
    uint64_t begin = mock_map(mock, 0, size, MOCK_READ | MOCK_EXECUTE, NULL, 0);
    memset(bytes, 0, sizeof bytes);
    mock_write(mock, begin, bytes, (size_t)MIN(size, sizeof bytes));
    memset(bytes, 0xc3, sizeof bytes);
    mock_write(mock, begin, bytes, (size_t)used);
    return begin;
}

START_TEST(stubs_outside_of_the_map)
{
    struct mock *mock = mock_with(_i, 3, 2);
    struct stub_list list = stub_list_create(mock, _i & 1 ? 8 : 4), second = {.mock = mock};
    struct stub_list counting = counting_list_create(mock, _i & 1 ? 8 : 4);
    uint64_t word = _i & 1 ? 8 : 4, section;
    mock_range_list(mock, 0x1000, 4, false, &section);
    uint64_t first = stub_memory(mock, 0x3000, 0x3b0), other = stub_memory(mock, 0x2000, 0x2000),
             unused = stub_memory(mock, 0x1000, 0x100), large = stub_memory(mock, 0x80000, 0x100),
             barriers = stub_memory(mock, 0x1000, 0x10c), table = mock_alloc(mock, 100 * word, word),
             counters = stub_memory(mock, 0x2000, 0x1800);
    add_range(&list, 0, first, first + 0x3000, 1);
    add_range(&list, 3, unused, unused + 0x1000, 0);
    add_range(&list, 4, large, large + 0x80000, 3);    /* no such list is */
    add_range(&list, 5, section, section + 0x1000, 3); /* the section's kind holds */
    add_range(&counting, 2, counters, counters + 0x2000, 1);
    second.block = mock_new(mock, "RangeListBlock", 0);
    for (unsigned i = 0; i < 10; i++)
        add_range(&second, i, 0, 0, 0);
    add_range(&second, 9, other, other + 0x2000, 7);
    mock_set(mock, list.block, "RangeListBlock.Next", second.block);
    mock_set(mock, second.block, "RangeListBlock.Next", list.block); /* a cycle ends, too */
    mock_write_pointer(mock, table + 49 * word, barriers + 0x40);
    mock_global(mock, "hlpDynamicFuncTable", table);
    mock_global(mock, "DYNAMIC_CORINFO_HELP_ASSIGN_REF", 49);
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_stretch(target, (struct stretch){first, first + 0x3b0, CDACQ_CODE_STUB_LINK_STUB});
    check_stretch(target, (struct stretch){other, other + 0x2000, CDACQ_CODE_STUB_LINK_STUB});
    check_stretch(target, (struct stretch){barriers, barriers + 0x110, CDACQ_CODE_COPIED_WRITE_BARRIERS});
    check_stretch(target, (struct stretch){counters, counters + 0x1800, CDACQ_CODE_CALL_COUNTING_STUB});
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    for (int round = 0; round < 40; round++) { /* by walking, then by the index */
        check_stub(session, section + 0x10, kind_at(mock, section));
        cdacq_session_method_at(session, unused, &method, NULL);
        ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
        cdacq_session_method_at(session, large, &method, NULL);
        ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Since .NET 11, the write barrier is an AuxiliarySymbol. */
START_TEST(barriers_by_their_symbol)
{
    struct mock *mock = mock_of_version(_i, 3, MOCK_NET_11);
    uint64_t barriers = stub_memory(mock, 0x1000, 0x10c), count = mock_alloc(mock, 4, 4),
             name = mock_alloc(mock, 17, 1);
    uint64_t symbol = mock_new(mock, "AuxiliarySymbolInfo", 0);
    mock_write(mock, name, "JIT_WriteBarrier", 17);
    mock_set(mock, symbol, "AuxiliarySymbolInfo.Name", name);
    mock_set(mock, symbol, "AuxiliarySymbolInfo.Address", barriers + 0x40);
    mock_write_uint(mock, count, 4, 1);
    mock_global(mock, "AuxiliarySymbols", symbol);
    mock_global(mock, "AuxiliarySymbolCount", count);
    struct cdacq_target *target = mock_publish_and_open(mock);
    check_stretch(target, (struct stretch){barriers, barriers + 0x110, CDACQ_CODE_COPIED_WRITE_BARRIERS});
    uint64_t helper = target->runtimes.items[0].image.begin + 0x10;
    cdacq_target_close(target);
    mock_set(mock, symbol, "AuxiliarySymbolInfo.Address", helper); /* the runtime made no copies */
    target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    ck_assert_int_eq(cdacq_session_method_at(session, helper, &method, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
    ck_assert_int_eq(cdacq_session_method_at(session, barriers + 0x40, &method, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Without a list, or with a helper that is in the runtime's image, there are no stubs, and all else is answered. */
START_TEST(no_stubs_outside_of_the_map)
{
    struct mock *mock = mock_with(_i, 3, 2);
    unsigned word = _i & 1 ? 8 : 4;
    struct stub_list list = stub_list_create(mock, word);
    uint64_t stubs = stub_memory(mock, 0x1000, 0x100), table = mock_alloc(mock, 8, 8), section;
    mock_range_list(mock, 0x1000, 4, false, &section);
    add_range(&list, 0, stubs, stubs + 0x1000, 1);
    mock_global(mock, "hlpDynamicFuncTable", table);
    mock_global(mock, "DYNAMIC_CORINFO_HELP_ASSIGN_REF", 0);
    mock_publish(mock, NULL);
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    uint64_t helper = target->runtimes.items[0].image.begin + 0x10;
    cdacq_target_close(target);
    mock_write_pointer(mock, table, helper);
    mock_unmap(mock, list.block, mock_size_of(mock, "RangeListBlock"));
    target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    for (int round = 0; round < 40; round++) {
        check_stub(session, section + 0x10, kind_at(mock, section));
        ck_assert_int_eq(cdacq_session_method_at(session, helper, &method, NULL), CDACQ_NOT_MANAGED);
        ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
        ck_assert_int_eq(cdacq_session_method_at(session, stubs, &method, NULL), CDACQ_NOT_MANAGED);
        ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("precode_stubs");
    TCase *tcase = tcase_create("precode_stubs");
    tcase_add_loop_test(tcase, every_precode_leads_back, 0, COMBINATIONS);
    tcase_add_loop_test(tcase, nowhere_else_are_precodes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, precodes_are_aligned, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, unknown_precodes, 0, ARCH_COUNT * VERSIONS);
    tcase_add_loop_test(tcase, values_from_a_supplement, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, signed_and_thumb_pointers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, entries_of_code, 0, ARCH_COUNT * 3);
    tcase_add_loop_test(tcase, portable_entry_points, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, portable_entry_points_off, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_data, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_pages, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, impossible_machines, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, odd_code_sizes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, precodes_in_a_cycle, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, random_data, 0, ARCH_COUNT * VERSIONS);
    tcase_add_loop_test(tcase, contract_versions, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_fields, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, kinds_of_stubs, 0, ARCH_COUNT * 2);
    tcase_add_loop_test(tcase, the_pre_stub, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, stubs_outside_of_the_map, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, barriers_by_their_symbol, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, no_stubs_outside_of_the_map, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, interpreted_methods, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, interpreted_methods_without_length, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, interpreted_methods_damaged, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
