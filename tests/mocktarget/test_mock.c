/*
 * The mock target by itself: its address space, its layouts, its descriptor and the image around it, and the contents
 * of the sample process that other tests use, so that the mock does not become easier by mistake.
 */
#include <stdio.h>

#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/mock_support.h"

/* ---- The address space ---- */

START_TEST(memory_does_not_overlap)
{
    static const struct {
        uint64_t begin, size;
        bool free;
    } cases[] = {
        {0x50000000, 0x1000, true},  {0x50000000, 1, false},     {0x50000fff, 1, false}, {0x4ffff000, 0x1001, false},
        {0x4ffff000, 0x3000, false}, {0x4ffff000, 0x1000, true}, {0x50001000, 1, true},  {0x50001001, 7, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_of_arch(_i, 1);
        for (size_t j = 0; j < i; j++)
            if (cases[j].free)
                mock_map(mock, cases[j].begin, cases[j].size, MOCK_READ, NULL, 0);
        mock_check(mock);
        ck_assert_uint_eq(mock_map(mock, cases[i].begin, cases[i].size, MOCK_READ, NULL, 0),
                          cases[i].free ? cases[i].begin : 0);
        ck_assert(!!mock_error(mock) == !cases[i].free);
        mock_destroy(mock);
    }
}
END_TEST

START_TEST(places_are_found)
{
    struct mock *mock = mock_of_arch(_i, 2);
    uint64_t taken = mock_map(mock, 0, 0x5000, MOCK_READ, NULL, 0);
    mock_map(mock, taken + 0x10000, 0x5000, MOCK_READ, NULL, 0);
    for (int i = 0; i < 100; i++)
        mock_map(mock, 0, 0x3000, MOCK_READ, NULL, 0); /* around what is there */
    mock_check(mock);
    mock_map(mock, 0, _i & 1 ? UINT64_C(1) << 63 : UINT64_C(1) << 32, MOCK_READ, NULL, 0);
    ck_assert_ptr_nonnull(mock_error(mock));
    mock_destroy(mock);
}
END_TEST

/* The first failure is kept, and later calls have no effect. */
START_TEST(errors_are_sticky)
{
    struct mock *mock = mock_of_arch(_i, 3);
    uint64_t place = mock_alloc(mock, 16, 8);
    mock_write_uint(mock, place, 2, 0x10000);
    ck_assert_ptr_nonnull(strstr(mock_error(mock), "0x10000 does not fit the 2 bytes"));
    mock_write_uint(mock, 8, 2, 1);
    ck_assert_ptr_nonnull(strstr(mock_error(mock), "0x10000"));
    ck_assert_uint_eq(mock_alloc(mock, 1, 1), 0);
    ck_assert_uint_eq(mock_map(mock, 0x60000000, 1, MOCK_READ, NULL, 0), 0);
    ck_assert_uint_eq(mock_new(mock, "RangeSection", 0), 0);
    ck_assert_ptr_null(mock_heap_create(mock, &(struct mock_heap_options){.size = 0x1000}));
    ck_assert_uint_eq(mock_method(NULL, &(struct mock_method){.size = 1}), 0);
    ck_assert_ptr_null(mock_r2r_create(mock, &(struct mock_r2r_options){0}));
    ck_assert_uint_eq(mock_publish(mock, NULL), 0);
    struct cdacq_error error;
    ck_assert(!mock_write_core(mock, "/dev/null", &error));
    ck_assert_ptr_nonnull(strstr(error.message, "0x10000"));
    mock_destroy(mock);
}
END_TEST

START_TEST(names_that_are_none)
{
    for (int i = 0; i < 6; i++) {
        struct mock *mock = mock_of_arch(_i, 4);
        uint64_t place = mock_alloc(mock, 64, 8);
        if (i == 0)
            mock_new(mock, "RangeSectoin", 0);
        else if (i == 1)
            mock_set(mock, place, "RangeSection.Flag", 1);
        else if (i == 2)
            mock_global(mock, "StubCodeBlockFirst", 1);
        else if (i == 3)
            mock_hide(mock, "RangeSection.!!");
        else if (i == 4)
            mock_size_of(mock, "");
        else
            mock_section_delete(mock, place);
        ck_assert_ptr_nonnull(mock_error(mock));
        mock_destroy(mock);
    }
}
END_TEST

static bool byte_at(struct mock *mock, uint64_t address, uint8_t *ret)
{
    const struct cdacq_memory *memory = mock_memory(mock);
    uint64_t begin, end;
    const void *bytes;
    if (!memory->span_at(address, &begin, &end, &bytes, memory->context))
        return false;
    if (address < begin || address >= end)
        ck_abort_msg("a run that does not hold the address");
    *ret = ((const uint8_t *)bytes)[address - begin];
    return true;
}

START_TEST(unmapped_memory)
{
    struct mock *mock = mock_of_arch(_i, 3 + (uint64_t)_i); /* also in small spans */
    uint64_t begin = mock_map(mock, 0x50000000, 0x2000, MOCK_READ, NULL, 0);
    for (uint64_t i = 0; i < 0x2000; i++)
        mock_write_uint(mock, begin + i, 1, i & 255);
    mock_unmap(mock, begin + 100, 10);
    mock_unmap(mock, begin + 105, 20);
    mock_unmap(mock, begin + 0x1fff, 100);
    for (uint64_t i = 0; i < 0x2000; i++) {
        uint8_t byte;
        bool there = byte_at(mock, begin + i, &byte), expected = (i < 100 || i >= 125) && i < 0x1fff;
        if (there != expected || (there && byte != (i & 255)))
            ck_abort_msg("byte %llu", (unsigned long long)i);
    }
    uint8_t byte;
    ck_assert(!byte_at(mock, begin - 1, &byte));
    ck_assert(!byte_at(mock, begin + 0x2000, &byte));
    mock_destroy(mock);
}
END_TEST

/* ---- The same calls, the same bytes; another seed, another layout ---- */

static uint64_t checksum(struct mock *mock)
{
    const struct cdacq_memory *memory = mock_memory(mock);
    uint64_t sum = 14695981039346656037u, at = 0x10000000; /* the addresses that the mock uses, by width */
    for (int big = 0; big < 2; big++, at = UINT64_C(0x7f0010000000))
        for (uint64_t address = at; address < at + 0x100000;) {
            uint64_t begin, end;
            const void *bytes;
            if (!memory->span_at(address, &begin, &end, &bytes, memory->context)) {
                address += 4096;
                continue;
            }
            for (uint64_t i = address; i < end; i++)
                sum = (sum ^ ((const uint8_t *)bytes)[i - begin]) * 1099511628211u;
            address = end;
        }
    return sum;
}

START_TEST(deterministic)
{
    uint64_t sums[3], count = (uint64_t)rounds(ARRAY_SIZE(sums), 2);
    for (uint64_t seed = 0; seed < count; seed++) {
        struct sample_process first = sample_build(_i, seed, 2, true), second = sample_build(_i, seed, 2, true);
        mock_publish(first.mock, NULL);
        mock_publish(second.mock, NULL);
        sums[seed] = checksum(first.mock);
        ck_assert_uint_eq(checksum(second.mock), sums[seed]);
        for (uint64_t other = 0; other < seed; other++)
            ck_assert_uint_ne(sums[other], sums[seed]);
        sample_destroy(&first);
        sample_destroy(&second);
    }
}
END_TEST

/* Every field of every type, as the reader's table has them. */
static const struct {
    enum layout_type type;
    enum layout_field field;
    const char *name, *kind;
} fields[] = {
#define CDAC_FIELD(type, kind, field, contract, need) {T_##type, F_##type##_##field, #type "." #field, #kind},
#include "descriptors/layout.def"
};

static unsigned width_of(int arch, const char *kind)
{
    if (strcmp(kind, "INLINE") == 0)
        return 1;
    if (kind[0] == 'U')
        return (unsigned)atoi(kind + 1) / 8;
    return arch & 1 ? 8 : 4;
}

/* Fields of targets with cold JIT code, and descriptions of unwind codes. */
static bool is_of_other_heaps(enum layout_field field)
{
    switch ((int)field) {
    case F_CodeHeapListNode_BottomEndAddress:
    case F_CodeHeapListNode_TopStartAddress:
    case F_RealCodeHeader_ColdCodeHeader:
    case F_UnwindInfo_CountOfUnwindCodes:
    case F_UnwindInfo_UnwindCodeOffset:
    case F_AuxiliarySymbolInfo_Address: /* of .NET 11 */
    case F_AuxiliarySymbolInfo_Name:
    case F_AsyncMethodData_Flags:
        return true;
    default:
        return false;
    }
}

/* Fields that version 3 of PrecodeStubs, the default of the mock, lacks. */
static bool is_old_precode_field(enum layout_field field)
{
    return field == F_StubPrecodeData_MethodDesc || field == F_PrecodeMachineDescriptor_OffsetOfPrecodeType ||
           field == F_PrecodeMachineDescriptor_ReadWidthOfPrecodeType ||
           field == F_PrecodeMachineDescriptor_ShiftOfPrecodeType;
}

/* Fields are aligned, inside their type and do not overlap; and the descriptor has their offsets. */
static void check_layout(struct mock *mock, int arch, const struct layout *layout)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        unsigned width = width_of(arch, fields[i].kind), offset = mock_offset_of(mock, fields[i].name);
        bool is_inline = strcmp(fields[i].kind, "INLINE") == 0;
        if (!layout->fields[fields[i].field].present) {
            /* The three ways in which targets state lengths, and the versions of PrecodeStubs. */
            ck_assert_msg(fields[i].field == F_RuntimeFunction_EndAddress ||
                              fields[i].field == F_UnwindInfo_FunctionLength || is_of_other_heaps(fields[i].field) ||
                              is_old_precode_field(fields[i].field),
                          "%s", fields[i].name);
            continue;
        }
        ck_assert_uint_eq(layout->fields[fields[i].field].offset, offset);
        ck_assert_uint_le(offset + width, mock_size_of(mock, layout_type_name(fields[i].type)) + is_inline);
        ck_assert(is_inline || offset % MIN(width, arch & 1 ? 8u : 4u) == 0);
        for (size_t j = 0; j < i; j++) {
            if (fields[j].type != fields[i].type)
                continue;
            unsigned other = mock_offset_of(mock, fields[j].name), other_width = width_of(arch, fields[j].kind);
            ck_assert_msg(!layout->fields[fields[j].field].present || offset + width <= other ||
                              other + other_width <= offset,
                          "%s and %s", fields[i].name, fields[j].name);
        }
    }
    mock_check(mock);
}

START_TEST(layouts)
{
    unsigned flags[16], different = 0, count = (unsigned)rounds(ARRAY_SIZE(flags), 5);
    for (uint64_t seed = 0; seed < count; seed++) {
        struct mock *mock = mock_of_arch(_i, seed);
        struct cdacq_target *target = mock_publish_and_open(mock);
        check_layout(mock, _i, &target->layout);
        flags[seed] = mock_offset_of(mock, "RangeSection.Flags");
        for (uint64_t other = 0; other < seed; other++)
            different += flags[other] != flags[seed];
        cdacq_target_close(target);
        mock_destroy(mock);
    }
    ck_assert_uint_gt(different, count * (count - 1) / 5); /* of n * (n - 1) / 2 pairs */
}
END_TEST

/* ---- The descriptor and its image ---- */

START_TEST(every_way_to_find_it)
{
    static const enum mock_symbols symbols[] = {MOCK_SYMBOLS_GNU_HASH, MOCK_SYMBOLS_HASH, MOCK_SYMBOLS_BOTH};
    const char *machine = NULL; /* static strings; also of a process, which runs on this one */
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
        for (uint64_t seed = 0; seed < (uint64_t)rounds(6, 1); seed++)
            for (unsigned k = 0; k < 2; k++) { /* as memory, and by one of the other carriers */
                enum carrier carrier = k ? 1 + (i + seed) % ((unsigned)mock_carriers() - 1) : CARRIER_MEMORY;
                struct mock *mock = mock_of_arch(_i, seed);
                struct cdacq_target_info info = {.size = sizeof info};
                uint64_t address = mock_publish(mock, &(struct mock_publish_options){.symbols = symbols[i]});
                struct cdacq_target *target = mock_open(mock, carrier, NULL);
                cdacq_target_get_info(target, &info, NULL);
                ck_assert_uint_eq(info.descriptor_address, address);
                ck_assert_uint_eq(info.pointer_size, _i & 1 ? 8 : 4);
                ck_assert(info.big_endian == !!(_i & 2));
                ck_assert_str_eq(mock_path_of(info.runtime_path), "/mock/libcoreclr.so");
                ck_assert_uint_eq(strlen(info.runtime_build_id), 40);
                if (carrier == CARRIER_MEMORY)
                    machine = info.elf_machine;
                ck_assert_pstr_eq(info.elf_machine, machine);
                if (carrier == CARRIER_PROCESS)
                    ck_assert_int_eq(info.kind, CDACQ_TARGET_PROCESS);
                else
                    ck_assert_int_eq(info.pid, info.kind == CDACQ_TARGET_CORE ? 4711 : 0);
                cdacq_target_close(target);
                mock_destroy(mock);
            }
}
END_TEST

/* A single-file app: the runtime is in an executable of any name. */
START_TEST(another_path)
{
    struct mock *mock = mock_of_arch(_i, 1);
    struct cdacq_target_info info = {.size = sizeof info};
    mock_publish(mock, &(struct mock_publish_options){.path = "/mock/app"});
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, NULL);
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_str_eq(info.runtime_path, "/mock/app");
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

START_TEST(only_its_address)
{
    struct mock *mock = mock_of_arch(_i, 2);
    struct cdacq_error error;
    struct cdacq_options options = {.size = sizeof options};
    options.descriptor_address = mock_publish(mock, &(struct mock_publish_options){.no_image = true});
    ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_NO_RUNTIME);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++)
        cdacq_target_close(mock_open(mock, carrier, &options));
    mock_destroy(mock);
}
END_TEST

START_TEST(not_exported)
{
    struct mock *mock = mock_of_arch(_i, 3);
    struct cdacq_error error;
    mock_publish(mock, &(struct mock_publish_options){.symbols = MOCK_SYMBOLS_NONE});
    ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_NO_DESCRIPTOR);
    mock_destroy(mock);
}
END_TEST

START_TEST(other_json)
{
    static const char *const texts[] = {"", "{", "[]", "{\"version\":0,\"types\":3}", "{\"version\":\"x\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct mock *mock = mock_of_arch(_i, 4);
        struct cdacq_error error;
        mock_publish(mock, &(struct mock_publish_options){.json = texts[i]});
        ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_DESCRIPTOR);
        mock_destroy(mock);
    }
}
END_TEST

START_TEST(published_once)
{
    struct mock *mock = mock_of_arch(_i, 5);
    ck_assert_uint_ne(mock_publish(mock, NULL), 0);
    ck_assert_uint_eq(mock_publish(mock, NULL), 0);
    ck_assert_ptr_nonnull(mock_error(mock));
    mock_destroy(mock);
}
END_TEST

/* The image's two segments as the file that they came from, for a tool that shares nothing with us. */
START_TEST(readelf_reads_the_image)
{
    static const enum mock_symbols symbols[] = {MOCK_SYMBOLS_GNU_HASH, MOCK_SYMBOLS_HASH};
    static char output[64 * 1024];
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        struct mock *mock = mock_of_arch(_i, 0); /* its dynamic section is not relocated */
        struct elf_buffer file = {0};
        mock_publish(mock, &(struct mock_publish_options){.symbols = symbols[i]});
        const struct cdacq_memory *memory = mock_memory(mock);
        for (size_t j = 0; j < memory->mapping_count; j++) {
            uint64_t begin, end;
            const void *bytes;
            ck_assert(memory->span_at(memory->mappings[j].begin, &begin, &end, &bytes, memory->context));
            ck_assert_uint_eq(memory->mappings[j].file_offset, file.size);
            elf_put(&file, bytes, end - begin);
        }
        test_dir();
        char command[512];
        snprintf(command, sizeof command, "LC_ALL=C readelf -WDs -n %s 2>&1",
                 test_file("image.so", file.data, file.size));
        FILE *pipe = popen(command, "r");
        output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
        if (pclose(pipe) == 0) {
            ck_assert_msg(strstr(output, "DotNetRuntimeContractDescriptor") != NULL, "%s", output);
            ck_assert_msg(strstr(output, "MetaDataGetDispenser") != NULL, "%s", output);
            ck_assert_msg(strstr(output, "000102030405060708090a0b0c0d0e0f10111213") != NULL, "%s", output);
            ck_assert_msg(strstr(output, "arning") == NULL, "%s", output);
        }
        test_dir_remove();
        free(file.data);
        mock_destroy(mock);
    }
}
END_TEST

/* ---- The contents of the sample process ---- */

START_TEST(the_sample_is_rich)
{
    unsigned jit = 0, funclets = 0, dynamic = 0, stubs = 0, lists = 0, thunks = 0, prepared = 0, unprepared = 0,
             cold = 0, cold_funclets = 0, instances = 0, long_ones = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct sample_process sample = sample_build(_i, seed, 2, true);
        size_t count;
        const struct mock_function *facts = mock_functions(sample.mock, &count);
        for (size_t i = 0; i < count; i++) {
            const struct mock_function *fact = &facts[i];
            ck_assert_uint_lt(fact->begin, fact->end);
            ck_assert(!i || facts[i - 1].end <= fact->begin);
            ck_assert_ptr_eq(mock_function_at(sample.mock, fact->end - 1), fact);
            bool r2r = fact->code == MOCK_CODE_R2R;
            jit += fact->code == MOCK_CODE_JIT;
            funclets += fact->code == MOCK_CODE_JIT && fact->begin != fact->method;
            dynamic += fact->method_desc == sample.dynamic_method_desc;
            long_ones += fact->code == MOCK_CODE_JIT && fact->end - fact->begin > 0x1000;
            stubs += fact->code == MOCK_CODE_STUB;
            lists += fact->code == MOCK_CODE_RANGE_LIST;
            thunks += fact->code == MOCK_CODE_THUNK;
            prepared += r2r && fact->method_desc;
            unprepared += r2r && !fact->method_desc;
            instances += r2r && !fact->rid;
            cold += fact->cold;
            cold_funclets += fact->cold && fact->begin != fact->cold_start;
        }
        sample_destroy(&sample);
    }
    ck_assert_uint_gt(jit, 300);
    ck_assert_uint_gt(funclets, 50);
    ck_assert_uint_gt(dynamic, 3);
    ck_assert_uint_gt(long_ones, 2);
    ck_assert_uint_gt(stubs, 20);
    ck_assert_uint_eq(lists, 18);
    ck_assert_uint_eq(thunks, 12);
    ck_assert_uint_gt(prepared, 100);
    ck_assert_uint_gt(unprepared, 100);
    ck_assert_uint_gt(instances, 100);
    ck_assert_uint_gt(cold, 50);
    ck_assert_uint_gt(cold_funclets, 20);
}
END_TEST

/* Calls that request what is impossible. */
START_TEST(impossible_requests)
{
    struct mock *mock = mock_of_arch(_i, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x1000});
    ck_assert_uint_ne(mock_method(heap, &(struct mock_method){.size = 0x800}), 0);
    ck_assert_uint_eq(mock_method(heap, &(struct mock_method){.size = 0x800}), 0);
    ck_assert_ptr_nonnull(strstr(mock_error(mock), "is full"));
    mock_destroy(mock);

    mock = mock_of_arch(_i, 1);
    uint64_t map = mock_alloc(mock, 64, 4);
    mock_nibble_set(mock, map, 0x1000, 0x1004, 10);
    mock_nibble_set(mock, map, 0x1000, 0x1040, 10);
    mock_check(mock);
    mock_nibble_set(mock, map, 0x1000, 0x1058, 10); /* the same bucket */
    ck_assert_ptr_nonnull(mock_error(mock));
    mock_destroy(mock);

    mock = mock_of_arch(_i, 1);
    uint64_t table = mock_method_table(mock, mock_module(mock, &(struct mock_module_options){0}), 2);
    ck_assert_uint_ne(mock_method_descs(mock, table, 0xffe, 2, NULL), 0);
    ck_assert_uint_eq(mock_method_descs(mock, table, 0xfff, 2, NULL), 0); /* another token range */
    ck_assert_ptr_nonnull(mock_error(mock));
    mock_destroy(mock);

    ck_assert_ptr_null(mock_create(&(struct mock_options){.pointer_size = 2}));
    ck_assert_ptr_null(mock_create(&(struct mock_options){.version = 3}));
    mock_destroy(NULL);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("mock");
    TCase *tcase = tcase_create("mock");
    tcase_add_loop_test(tcase, memory_does_not_overlap, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, places_are_found, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, errors_are_sticky, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, names_that_are_none, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, unmapped_memory, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, deterministic, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, layouts, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, every_way_to_find_it, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, another_path, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, only_its_address, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, not_exported, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, other_json, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, published_once, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, readelf_reads_the_image, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, the_sample_is_rich, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, impossible_requests, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
