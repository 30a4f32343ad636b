#include "target/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "formats/core_writer.h"
#include "target/mapped_files.h"
#include "target/reader.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static struct elf_core core;
static struct target *target;
static struct cdacq_error error;
static struct file_policy policy;
static char *one_sysroot[2], *one_module_path[2];
static uint8_t *file, *pages;
static size_t file_size;

/* ---- The comparison: the test sets its result, and its arguments are recorded. ---- */

static struct {
    enum file_match result;
    struct file_extent ranges[4];
    bool constant_when_read_only;
    int asked;
    char last[512];
    uint64_t size;
} comparison;

static enum file_match compare_as_set(struct target *of, const struct mapped_file *mapped,
                                      struct file_candidate *candidate, char *why, size_t why_size)
{
    ck_assert_ptr_eq(of, mapped->target);
    comparison.asked++;
    comparison.size = candidate->size;
    snprintf(comparison.last, sizeof comparison.last, "%s", mapped->path);
    for (size_t i = 0; i < ARRAY_SIZE(comparison.ranges) && comparison.ranges[i].end; i++)
        file_candidate_add_constant(candidate, comparison.ranges[i].begin, comparison.ranges[i].end,
                                    comparison.ranges[i].access);
    if (comparison.constant_when_read_only)
        file_candidate_add_constant(candidate, 0, candidate->size, FILE_EXTENT_READ_ONLY);
    if (comparison.result == FILE_DIFFERS)
        snprintf(why, why_size, "it has another build-id");
    return comparison.result;
}

static void setup(void)
{
    elf_core_init(&core, true, false);
    memset(&error, 0, sizeof error);
    memset(&comparison, 0, sizeof comparison);
    comparison.result = FILE_MATCHES;
    comparison.constant_when_read_only = true;
    policy = (struct file_policy){.compare = compare_as_set};
    pthread_mutex_init(&policy.lock, NULL);
}

/* Begins another core. */
static void begin_core(void)
{
    target_destroy(target);
    target = NULL;
    elf_core_deinit(&core);
    elf_core_init(&core, true, false);
}

static void setup_pread(void)
{
    setup();
    policy.pread = true;
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
    elf_core_deinit(&core);
    free(file);
    free(pages);
    file = pages = NULL;
    test_dir_remove();
    file_policy_deinit(&policy);
    pthread_mutex_destroy(&policy.lock);
}

static enum cdacq_status open_bytes(const void *bytes, size_t size)
{
    int fd;
    const char *path = memory_file(bytes, size, &fd);
    enum cdacq_status status = core_open(path, &policy, false, &target, &error);
    close(fd);
    return status;
}

static void build(void)
{
    free(file);
    file = elf_core_build(&core, &file_size);
}

static void open_core(void)
{
    build();
    enum cdacq_status status = open_bytes(file, file_size);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

/* The bytes at an address: 0..255, or -1 where there is none. */
static int byte_at(uint64_t address)
{
    struct span span;
    if (!target->ops->memory_at(target, address, &span))
        return -1;
    if (address < span.begin || address >= span.end)
        ck_abort_msg("asked for 0x%lx, got 0x%lx-0x%lx", (long)address, (long)span.begin, (long)span.end);
    return span.bytes[address - span.begin];
}

static int dumped_byte_at(uint64_t address)
{
    struct span span;
    return target->ops->dumped_at(target, address, &span) ? span.bytes[address - span.begin] : -1;
}

static uint8_t *filled(size_t size, unsigned seed)
{
    uint8_t *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed);
    return bytes;
}

/* ---- What a core states ---- */

static void put_prpsinfo(struct elf_core_segment *notes, uint32_t pid, bool wide, bool big)
{
    struct elf_buffer desc = {.wide = wide, .big = big};
    elf_put_int(&desc, 0, 4);
    elf_put_word(&desc, 0);
    if (wide)
        elf_put_int(&desc, 0, 4); /* pr_flag is aligned to its 8 bytes: after the four bytes of state */
    elf_put_int(&desc, 1000, wide ? 4 : 2);
    elf_put_int(&desc, 1000, wide ? 4 : 2);
    elf_put_int(&desc, pid, 4);
    elf_put_int(&desc, 1, 4);
    elf_put(&desc, NULL, 16 + 80 + 8);
    elf_note(notes, "CORE", NT_PRPSINFO, desc.data, desc.size);
    free(desc.data);
}

START_TEST(both_classes_and_orders)
{
    bool wide = _i & 1, big = _i & 2;
    elf_core_deinit(&core);
    elf_core_init(&core, wide, big);
    uint8_t *a = filled(0x2000, 1), *b = filled(100, 2);
    const struct elf_mapping mappings[] = {{0x20000, 0x22000, 3, "/usr/lib/b.so"}, {0x10000, 0x12000, 0, "/bin/a"}};
    put_prpsinfo(elf_core_notes(&core), 4242, wide, big);
    elf_core_mappings(&core, 4096, mappings, 2);
    elf_core_load(&core, 0x30000, b, 100, 0x1000, PF_R | PF_W);
    elf_core_load(&core, 0x10000, a, 0x1000, 0x2000, PF_R);
    elf_core_load(&core, 0x20000, NULL, 0, 0x2000, PF_R | PF_W);
    open_core();
    ck_assert_int_eq(target->kind, CDACQ_TARGET_CORE);
    ck_assert_int_eq(target->pid, 4242);
    ck_assert_uint_eq(target->elf_machine, core.machine);
    ck_assert_uint_eq(target->segment_count, 3);
    ck_assert_uint_eq(target->dumped_size, 0x1000 + 100);
    ck_assert_uint_eq(target->missing_size, 0x3000); /* of the mapped files */
    ck_assert(!target->truncated);
    ck_assert_uint_eq(target->mapping_count, 2);
    ck_assert_str_eq(target->mappings[0].path, "/bin/a");
    ck_assert_uint_eq(target->mappings[0].begin, 0x10000);
    ck_assert_uint_eq(target->mappings[0].end, 0x12000);
    ck_assert_int_eq(target->mappings[0].access, MAPPING_READ_ONLY);
    ck_assert_str_eq(target->mappings[1].path, "/usr/lib/b.so");
    ck_assert_uint_eq(target->mappings[1].offset, 0x3000);
    ck_assert_int_eq(target->mappings[1].access, MAPPING_WRITABLE);
    ck_assert_int_eq(byte_at(0x0ffff), -1);
    for (uint64_t i = 0; i < 0x1000; i += 0x111)
        ck_assert_int_eq(byte_at(0x10000 + i), a[i]);
    ck_assert_int_eq(byte_at(0x11000), -1); /* not dumped, and the file is not there: missing, not zero */
    ck_assert_int_eq(byte_at(0x30063), b[99]);
    ck_assert_int_eq(byte_at(0x30064), -1);
    ck_assert_int_eq(byte_at(0x30fff), -1);
    ck_assert_int_eq(byte_at(0), -1);
    ck_assert_int_eq(byte_at(UINT64_MAX), -1);
    free(a);
    free(b);
}
END_TEST

START_TEST(a_read_joins_neighbouring_segments)
{
    uint8_t *a = filled(16, 1), *b = filled(16, 9);
    elf_core_load(&core, 0x1000, a, 16, 16, PF_R);
    elf_core_load(&core, 0x1010, b, 16, 16, PF_R | PF_W);
    open_core();
    struct reader reader;
    reader_init(&reader, target, 8, false);
    uint64_t expected;
    uint8_t joined[8];
    memcpy(joined, a + 12, 4);
    memcpy(joined + 4, b, 4);
    expected = load_u64(joined, false);
    ck_assert_uint_eq(read_u64(&reader, 0x100c), expected);
    read_u64(&reader, 0x101c);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(error.address, 0x1020);
    free(a);
    free(b);
}
END_TEST

START_TEST(no_segments_no_notes)
{
    build();
    ck_assert_int_eq(open_bytes(file, file_size), CDACQ_ERR_FORMAT);
    elf_core_load(&core, 0x1000, "abc", 3, 3, PF_R);
    open_core();
    ck_assert_uint_eq(target->mapping_count, 0);
    ck_assert_ptr_null(target_mapping_at(target, 0x1000));
    ck_assert_int_eq(byte_at(0x1002), 'c');
    ck_assert_int_eq(byte_at(0x1003), -1);
}
END_TEST

START_TEST(segments_that_hold_nothing)
{
    elf_core_load(&core, 0x1000, NULL, 0, 0, PF_R);
    elf_core_load(&core, 0x2000, "abcd", 4, 0, PF_R); /* bytes without memory belong to no address */
    elf_core_load(&core, 0x3000, "abcd", 4, 2, PF_R);
    elf_core_load(&core, 0x4000, NULL, 0, UINT64_MAX, PF_R);
    open_core();
    ck_assert_int_eq(byte_at(0x1000), -1);
    ck_assert_int_eq(byte_at(0x2000), -1);
    ck_assert_int_eq(byte_at(0x3001), 'b');
    ck_assert_int_eq(byte_at(0x3002), -1);
    ck_assert_int_eq(byte_at(0x4000), -1);
    ck_assert_uint_eq(target->dumped_size, 2);
}
END_TEST

START_TEST(segments_that_overlap)
{
    elf_core_load(&core, 0x1000, "aaaaaaaaaa", 10, 10, PF_R);
    elf_core_load(&core, 0x1004, "bb", 2, 2, PF_R);
    elf_core_load(&core, 0x1008, "cccc", 4, 4, PF_R);
    open_core();
    const char *expected = "aaaabbaacccc";
    for (size_t i = 0; i < 12; i++)
        ck_assert_int_eq(byte_at(0x1000 + i), expected[i]);
    ck_assert_int_eq(byte_at(0x100c), -1);
}
END_TEST

START_TEST(a_segment_that_is_missing_hides_nothing)
{
    /* p_filesz 0 says that nothing was dumped here, not that there is nothing. */
    elf_core_load(&core, 0x1000, "aaaa", 4, 4, PF_R);
    elf_core_load(&core, 0x1000, NULL, 0, 4, PF_R);
    open_core();
    ck_assert_int_eq(byte_at(0x1001), 'a');
}
END_TEST

START_TEST(numbers_that_overflow)
{
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, 1 << 30};
    for (size_t i = 0; i < ARRAY_SIZE(huge); i++)
        for (int which = 0; which < 5; which++) {
            struct elf_core_segment *segment = elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
            segment->offset_given = which == 0 || which == 4;
            switch (which) {
            case 0:
                segment->offset = huge[i];
                break;
            case 1:
                segment->file_size = segment->memory_size = huge[i];
                break;
            case 2:
                segment->vaddr = huge[i];
                break;
            case 3:
                segment->vaddr = segment->file_size = segment->memory_size = huge[i];
                break;
            default:
                segment->offset = segment->vaddr = segment->file_size = segment->memory_size = segment->align = huge[i];
                break;
            }
            uint64_t address = segment->vaddr;
            elf_core_load(&core, 0x9000, "efgh", 4, 4, PF_R);
            open_core();
            if (which == 0 || which == 4)
                ck_assert_int_eq(byte_at(address), -1);
            else if (address < UINT64_MAX) /* a range cannot contain the last byte */
                ck_assert_int_eq(byte_at(address), 'a');
            else
                ck_assert_int_eq(byte_at(address), -1);
            if (which == 0 || which == 1)
                ck_assert(target->truncated);
            ck_assert_int_eq(byte_at(0x9003), 'h'); /* the others are still there */
            begin_core();
        }
}
END_TEST

/* ---- Many segments ---- */

START_TEST(more_than_65535_segments)
{
    enum { COUNT = 70 * 1000 };
    bool wide = _i & 1, big = _i & 2;
    elf_core_deinit(&core);
    elf_core_init(&core, wide, big);
    const struct elf_mapping mapping = {0x1000, 0x2000, 0, "/bin/a"};
    elf_core_mappings(&core, 4096, &mapping, 1);
    static uint8_t bytes[COUNT][4];
    for (uint32_t i = 0; i < COUNT; i++) {
        memcpy(bytes[i], &i, 4);
        elf_core_load(&core, 0x100000 + (uint64_t)(COUNT - i) * 64, bytes[i], 4, 64, PF_R);
    }
    double start = cpu_seconds();
    open_core();
    ck_assert_uint_eq(target->segment_count, COUNT);
    ck_assert_uint_eq(target->mapping_count, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t at = 0x100000 + (uint64_t)(COUNT - i) * 64;
        if (byte_at(at) != bytes[i][0] || byte_at(at + 1) != bytes[i][1] || byte_at(at + 2) != bytes[i][2] ||
            byte_at(at + 4) != -1)
            ck_abort_msg("segment %u", i);
    }
    ck_assert(cpu_seconds() - start < time_bound(20));
}
END_TEST

/* Reads that alternate between segments cost more units where there are so many that finding one takes long. */
START_TEST(finding_one_of_many_segments_costs_fuel)
{
    enum { READS = 100 };
    const size_t few = 100, many = 40 * 1000;
    uint32_t costs[2];
    for (unsigned i = 0; i < 2; i++) {
        size_t count = i ? many : few;
        begin_core();
        for (size_t k = 0; k < count; k++)
            elf_core_load(&core, 0x100000 + k * 64, "abcdefgh", 8, 8, PF_R);
        open_core();
        ck_assert(i ? target->open_units >= count : !target->open_units);
        struct reader reader;
        reader_init(&reader, target, 8, false);
        uint32_t before = reader_fuel(&reader);
        for (size_t k = 0; k < READS; k++)
            read_u64(&reader, 0x100000 + k * 7 % count * 64);
        costs[i] = before - reader_fuel(&reader);
        ck_assert_int_eq(reader_status(&reader, &error), CDACQ_OK);
    }
    ck_assert_uint_eq(costs[0], READS);
    ck_assert_uint_gt(costs[1], 4 * READS);
}
END_TEST

START_TEST(few_segments_counted_the_long_way)
{
    core.extended = true;
    elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
    open_core();
    ck_assert_uint_eq(target->segment_count, 1);
    ck_assert_int_eq(byte_at(0x1000), 'a');
}
END_TEST

START_TEST(a_long_count_that_is_cut_off)
{
    /* Linux puts the section header that holds the count at the very end: a cut core has lost it, but nothing else. */
    enum { COUNT = 66 * 1000 };
    elf_note(elf_core_notes(&core), "CORE", NT_PRSTATUS, NULL, 0);
    for (uint32_t i = 0; i < COUNT; i++)
        elf_core_load(&core, 0x100000 + (uint64_t)i * 4096, "abcd", 4, 4, PF_R);
    build();
    for (size_t cut = 0; cut <= 72; cut += 72) {
        ck_assert_int_eq(open_bytes(file, core.section_at + 63 - cut), CDACQ_OK);
        ck_assert(target->truncated);
        ck_assert_uint_eq(target->segment_count, COUNT);
        ck_assert_int_eq(byte_at(0x100000), 'a');
        ck_assert_int_eq(byte_at(0x100000 + (COUNT - 1) * UINT64_C(4096)), cut ? -1 : 'a');
        target_destroy(target);
        target = NULL;
    }
    /* Cut within the table: what is there of it is used. */
    ck_assert_int_eq(open_bytes(file, core.headers_at + 56 * 1000 + 7), CDACQ_OK);
    ck_assert(target->truncated);
    ck_assert_uint_eq(target->segment_count, 999);
    ck_assert_int_eq(byte_at(0x100000), -1);
}
END_TEST

/* Of memory that a core was to have, and that is cut off, the reason is told; of other memory, nothing is known. */
START_TEST(memory_that_is_cut_off)
{
    static const uint8_t bytes[4096];
    struct reader reader;
    elf_core_load(&core, 0x30000, bytes, sizeof bytes, sizeof bytes, PF_R);
    elf_core_load(&core, 0x20000, bytes, sizeof bytes, sizeof bytes, PF_R);
    elf_core_load(&core, 0x10000, bytes, sizeof bytes, 2 * sizeof bytes, PF_R);
    build();
    static const struct {
        uint64_t address;
        bool cut;
    } missing[] = {{0x20064, true}, {0x20fff, true},  {0x10000, true},
                   {0x10fff, true}, {0x11000, false}, {0x21000, false}};
    ck_assert_int_eq(open_bytes(file, core.segments[1].offset + 100), CDACQ_OK);
    ck_assert_int_eq(byte_at(0x30fff), 0);
    ck_assert_int_eq(byte_at(0x20063), 0);
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        reader_init(&reader, target, 8, false);
        read_u8(&reader, missing[i].address);
        ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
        ck_assert_msg(!strstr(error.message, "; the core ends before it") == !missing[i].cut, "%s", error.message);
    }
}
END_TEST

START_TEST(a_long_count_that_lies)
{
    static const uint32_t counts[] = {0, 2, 3, 100, PN_XNUM, 0x00400001, 0x7fffffff, UINT32_MAX};
    core.extended = true;
    elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
    build();
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        memcpy(file + core.section_at + 44, &counts[i], 4);
        enum cdacq_status status = open_bytes(file, file_size);
        ck_assert(status == CDACQ_OK || status == CDACQ_ERR_FORMAT);
        if (status == CDACQ_OK && counts[i])
            ck_assert_int_eq(byte_at(0x1000), 'a');
        if (status < 0)
            ck_assert_str_ne(error.message, "");
        target_destroy(target);
        target = NULL;
    }
}
END_TEST

START_TEST(too_many_segments)
{
    /* Of a file that is nearly all hole. */
    const uint64_t count = UINT64_C(4194305), size = 64 + count * 56 + 64;
    core.extended = true;
    elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
    build();
    store_u64(file + 40, 64 + count * 56, false);
    store_u32(file + core.section_at + 44, (uint32_t)count, false);
    int fd;
    const char *path = memory_file(file, 64 + 56, &fd);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    ck_assert_int_eq(pwrite(fd, file + core.section_at, 64, (off_t)(size - 64)), 64);
    ck_assert_int_eq(core_open(path, &policy, false, &target, &error), CDACQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "4194305 segments are more than the 4194304 that are supported"));
    close(fd);
}
END_TEST

/* ---- Cut files ---- */

static void put_typical(void)
{
    static const struct elf_mapping mappings[] = {{0x1000, 0x2000, 0, "/bin/a"}, {0x2000, 0x3000, 1, "/lib/b.so"}};
    put_prpsinfo(elf_core_notes(&core), 77, true, false);
    elf_core_mappings(&core, 4096, mappings, 2);
    elf_core_load(&core, 0x1000, "AAAAAAAAAAAAAAAA", 16, 16, PF_R);
    elf_core_load(&core, 0x5000, "BBBBBBBBBBBBBBBB", 16, 32, PF_R | PF_W);
    elf_core_load(&core, 0x6000, "CCCCCCCCCCCCCCCC", 16, 16, PF_R | PF_W);
}

/* Cut at every byte: each byte is unchanged or missing, and the core is reported as cut. */
START_TEST(truncated_anywhere)
{
    core.headers_last = _i == 1;
    core.extended = _i == 2;
    put_typical();
    build();
    size_t opened = 0;
    for (size_t size = 0; size < file_size; size++) {
        enum cdacq_status status = open_bytes(file, size);
        if (status < 0) {
            ck_assert_int_eq(status, CDACQ_ERR_FORMAT);
            ck_assert_str_ne(error.message, "");
            ck_assert_ptr_null(target);
            continue;
        }
        opened++;
        int a = byte_at(0x1000), b = byte_at(0x5000), c = byte_at(0x600f);
        if ((a != 'A' && a != -1) || (b != 'B' && b != -1) || (c != 'C' && c != -1) || byte_at(0x5010) != -1)
            ck_abort_msg("cut to %zu bytes", size);
        if (c == -1 && !target->truncated)
            ck_abort_msg("cut to %zu bytes, not noticed", size);
        if (target->mapping_count == 2)
            ck_assert_str_eq(target->mappings[1].path, "/lib/b.so");
        target_destroy(target);
        target = NULL;
    }
    if (_i == 0)
        ck_assert_uint_ge(opened, file_size - core.headers_end);
}
END_TEST

START_TEST(cut_in_the_notes)
{
    put_typical();
    build();
    ck_assert_int_eq(open_bytes(file, core.notes_end - 20), CDACQ_OK);
    ck_assert(target->truncated);
    ck_assert_int_eq(target->pid, 77);
    ck_assert_uint_eq(target->mapping_count, 0);
}
END_TEST

/* With random headers, the results are statuses or the right bytes. */
START_TEST(random_damage)
{
    uint64_t state = (uint64_t)_i + 99;
    elf_core_deinit(&core);
    elf_core_init(&core, _i & 1, _i & 2);
    put_typical();
    build();
    uint8_t *damaged = malloc(file_size);
    for (int round = 0; round < 150; round++) {
        memcpy(damaged, file, file_size);
        for (int i = 0; i < 1 + round % 5; i++) {
            state = state * UINT64_C(6364136223846793005) + 1;
            size_t at = (state >> 33) % core.notes_end;
            damaged[at] = (state >> 20) & 3 ? (uint8_t)(state >> 40) : 0xff;
        }
        if (open_bytes(damaged, file_size) < 0) {
            ck_assert_ptr_null(target);
            continue;
        }
        for (uint64_t at = 0x0ff0; at < 0x7000; at += 0x81)
            byte_at(at);
        target_destroy(target);
        target = NULL;
    }
    free(damaged);
}
END_TEST

/* ---- Not a core ---- */

static void assert_refused(enum cdacq_status expected, const char *path, const char *part)
{
    ck_assert_int_eq(core_open(path, &policy, false, &target, &error), expected);
    ck_assert_ptr_null(target);
    ck_assert_int_eq(error.status, expected);
    ck_assert_msg(strstr(error.message, part) != NULL, "\"%s\" is not in: %s", part, error.message);
    ck_assert_msg(strstr(error.message, path) != NULL, "no path in: %s", error.message);
    ck_assert_int_eq(core_open(path, &policy, false, &target, NULL), expected);
}

START_TEST(what_is_no_core)
{
    assert_refused(CDACQ_ERR_IO, test_path("none"), "No such file");
    assert_refused(CDACQ_ERR_IO, test_dir(), "not a regular file");
    assert_refused(CDACQ_ERR_IO, "/dev/null", "not a regular file");
    const char *fifo = test_path("fifo");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    assert_refused(CDACQ_ERR_IO, fifo, "not a regular file");
    assert_refused(CDACQ_ERR_FORMAT, test_file("nothing", "", 0), ": empty");
    assert_refused(CDACQ_ERR_FORMAT, test_file("text", "hello world\n", 12), "not an ELF file");
    assert_refused(CDACQ_ERR_FORMAT, test_file("magic", "\177ELF", 4), "not an ELF file");
    assert_refused(CDACQ_ERR_FORMAT,
                   test_file("ar",
                             "!<arch>\nfoo/            0           0     0     644     4         "
                             "`\nabcd",
                             72),
                   "not an ELF file");
    static const uint16_t types[] = {ET_NONE, ET_REL, ET_EXEC, ET_DYN, 5, 0xff00, 0xffff};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        core.type = types[i];
        build();
        assert_refused(CDACQ_ERR_FORMAT, test_file("exec", file, file_size), "not a core dump");
    }
    core.type = ET_CORE;
    build();
    file[EI_CLASS] = 3;
    ck_assert_int_lt(open_bytes(file, file_size), 0);
    file[EI_CLASS] = ELFCLASS64;
    file[EI_DATA] = 0;
    ck_assert_int_lt(open_bytes(file, file_size), 0);
    file[EI_DATA] = ELFDATA2LSB;
    file[EI_VERSION] = 9;
    ck_assert_int_lt(open_bytes(file, file_size), 0);
}
END_TEST

START_TEST(an_unreadable_file)
{
    const char *path = test_file("secret", "x", 1);
    ck_assert_int_eq(chmod(path, 0), 0);
    ck_assert_int_eq(chmod(test_dir(), 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (getuid() == 0 && setuid(65534) < 0)
            _exit(2);
        enum cdacq_status status = core_open(path, &policy, false, &target, &error);
        _exit(status == CDACQ_ERR_IO && strstr(error.message, "Permission denied") ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(damage_to_the_header)
{
    elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
    build();
    static const struct {
        size_t at;
        uint64_t value;
        unsigned width;
    } cases[] = {
        {32, UINT64_MAX, 8}, /* e_phoff */
        {32, 1, 8},          {32, 0, 8},      {32, UINT64_C(1) << 63, 8},
        {40, UINT64_MAX, 8}, /* e_shoff */
        {40, 1, 8},          {54, 0, 2},      {54, 1, 2},
        {54, 0xffff, 2}, /* e_phentsize */
        {56, 0xfffe, 2},     {56, 0, 2},      {58, 0, 2},
        {58, 0xffff, 2}, /* e_shentsize */
        {60, 0xffff, 2},     {62, 0xffff, 2}, {52, 0xffff, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t *damaged = malloc(file_size);
        memcpy(damaged, file, file_size);
        memcpy(damaged + cases[i].at, &cases[i].value, cases[i].width);
        if (open_bytes(damaged, file_size) == CDACQ_OK) {
            int byte = byte_at(0x1000);
            ck_assert(byte == 'a' || byte == -1);
        }
        target_destroy(target);
        target = NULL;
        free(damaged);
    }
}
END_TEST

/* ---- Notes ---- */

START_TEST(several_note_segments)
{
    const struct elf_mapping mapping = {0x1000, 0x2000, 0, "/bin/a"}, other = {0x5000, 0x6000, 0, "/bin/other"};
    elf_note(elf_core_notes(&core), "LINUX", 0x202, "xstate", 6);
    put_prpsinfo(elf_core_notes(&core), 55, true, false);
    elf_core_mappings(&core, 4096, &mapping, 1);
    elf_core_mappings(&core, 4096, &other, 1); /* the first one counts */
    open_core();
    ck_assert_int_eq(target->pid, 55);
    ck_assert_uint_eq(target->mapping_count, 1);
    ck_assert_str_eq(target->mappings[0].path, "/bin/a");
}
END_TEST

START_TEST(who_wrote_it)
{
    static const struct {
        uint32_t types[3];
        const char *other, *writer;
    } cases[] = {
        {{NT_PRSTATUS, NT_SIGINFO}, NULL, "the kernel"},
        {{NT_PRSTATUS, NT_SIGINFO}, "GDB", "gdb"},
        {{NT_PRSTATUS, NT_PRSTATUS}, NULL, "createdump"},
        {{NT_PRPSINFO, NT_PRPSINFO}, NULL, NULL}, /* without threads, only a mark tells */
        {{NT_AUXV}, NULL, NULL},
        {{NT_FILE}, NULL, NULL},
        {{NT_PRPSINFO, NT_FILE}, CORE_WRITER_NOTE, "cdacq snapshot"},
        {{NT_PRSTATUS, NT_SIGINFO}, CORE_WRITER_NOTE, "cdacq snapshot"},
        {{NT_PRPSINFO, NT_PRSTATUS, NT_SIGINFO}, NULL, "createdump"}, /* of a crash */
        {{NT_PRSTATUS, NT_PRPSINFO, NT_SIGINFO}, NULL, "the kernel"},
        {{0}, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct elf_core_segment *notes = elf_core_notes(&core);
        for (size_t n = 0; n < ARRAY_SIZE(cases[i].types) && cases[i].types[n]; n++)
            elf_note(notes, "CORE", cases[i].types[n], NULL, 0);
        if (cases[i].other)
            elf_note(notes, cases[i].other, 0xff000000, "x", 1);
        open_core();
        ck_assert_pstr_eq(target->writer, cases[i].writer);
        begin_core();
    }
}
END_TEST

/* What coredump_filter can leave out: the heap, the pages of a memfd, and, once more, neither. */
START_TEST(what_a_filter_has_left_out)
{
    enum { HEAP = 128 * 1024, SHARED = 0x2000 };
    static const struct elf_mapping mapping = {0x10000, 0x12000, 0, "/memfd:doublemapper (deleted)"};
    static uint8_t bytes[HEAP];
    static const char *const others[] = {NULL, "GDB", CORE_WRITER_NOTE};
    for (unsigned left_out = 0; left_out < 4; left_out++)
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
            struct elf_core_segment *notes = elf_core_mappings(&core, 4096, &mapping, 1);
            elf_note(notes, "CORE", NT_PRSTATUS, NULL, 0);
            elf_note(notes, "CORE", NT_SIGINFO, NULL, 0);
            if (others[i])
                elf_note(notes, others[i], 0xff000000, "x", 1);
            elf_core_load(&core, 0x10000, bytes, left_out & CDACQ_FILTER_SHARED ? 0 : SHARED, SHARED, PF_R | PF_W);
            elf_core_load(&core, 0x20000, bytes, left_out & CDACQ_FILTER_PRIVATE ? 0 : HEAP, HEAP, PF_R | PF_W);
            elf_core_load(&core, 0x80000, bytes, 0x2000, 0x2000, PF_R | PF_X); /* the vdso is always there */
            open_core();
            ck_assert_uint_eq(target->missing_filter, i < 2 ? left_out : 0);
            begin_core();
        }
}
END_TEST

START_TEST(notes_aligned_to_eight)
{
    const struct elf_mapping mapping = {0x1000, 0x2000, 0, "/bin/a"};
    struct elf_buffer desc = elf_mappings_desc(true, false, 4096, &mapping, 1);
    struct elf_core_segment *notes = elf_core_notes(&core);
    notes->align = 8;
    elf_note(notes, "CORE", 1, "12345", 5);
    elf_note(notes, "CORE", NT_FILE, desc.data, desc.size);
    free(desc.data);
    open_core();
    ck_assert_uint_eq(target->mapping_count, 1);
    ck_assert_str_eq(target->mappings[0].path, "/bin/a");
}
END_TEST

START_TEST(notes_of_others_are_not_ours)
{
    const struct elf_mapping mapping = {0x1000, 0x2000, 0, "/bin/a"};
    struct elf_buffer desc = elf_mappings_desc(true, false, 4096, &mapping, 1);
    uint8_t pids[64];
    memset(pids, 7, sizeof pids);
    struct elf_core_segment *notes = elf_core_notes(&core);
    elf_note(notes, "GNU", 3, pids, sizeof pids); /* a build-id, not NT_PRPSINFO */
    elf_note(notes, "", NT_FILE, desc.data, desc.size);
    elf_note(notes, "COREX", NT_FILE, desc.data, desc.size);
    free(desc.data);
    open_core();
    ck_assert_int_eq(target->pid, 0);
    ck_assert_uint_eq(target->mapping_count, 0);
}
END_TEST

START_TEST(notes_that_do_not_fit)
{
    /* name and desc sizes of all kinds, with a good note after it, which is found or not */
    static const uint32_t sizes[] = {0, 1, 4, 0x7fffffff, 0x80000000, 0xfffffff0, 0xfffffffd, 0xffffffff};
    const struct elf_mapping mapping = {0x1000, 0x2000, 0, "/bin/a"};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (size_t j = 0; j < ARRAY_SIZE(sizes); j++) {
            struct elf_core_segment *notes = elf_core_mappings(&core, 4096, &mapping, 1);
            struct elf_buffer damaged = {0};
            elf_put_int(&damaged, sizes[i], 4);
            elf_put_int(&damaged, sizes[j], 4);
            elf_put_int(&damaged, NT_FILE, 4);
            elf_put(&damaged, notes->notes.data, notes->notes.size);
            free(notes->notes.data);
            notes->notes.data = damaged.data;
            notes->notes.size = damaged.size;
            open_core();
            ck_assert_uint_le(target->mapping_count, 1);
            begin_core();
        }
}
END_TEST

/* Adds headers for `size` bytes of notes, which begin at `offset` of the file without these headers. */
static void add_headers(size_t count, uint64_t offset, uint64_t size)
{
    for (size_t i = 0; i < count; i++) {
        struct elf_core_segment *notes = elf_core_notes(&core);
        notes->offset_given = true;
        notes->file_size = size;
        notes->offset = offset + sizeof(Elf64_Phdr) * count;
    }
}

/* Ten thousand headers for the same megabyte of notes: neither the time nor the memory of ten thousand megabytes. */
START_TEST(many_headers_for_the_same_notes)
{
    enum { HEADERS = 10 * 1000, SIZE = 1 << 20 };
    bool big = _i & 1;
    elf_core_deinit(&core);
    elf_core_init(&core, true, big);
    struct elf_core_segment *notes = elf_core_notes(&core);
    for (size_t i = 0; i < SIZE / 20; i++)
        elf_note(notes, "CORE", NT_PRSTATUS, NULL, 0);
    build();
    uint64_t offset = core.segments[0].offset + (_i & 2 ? 2 : 0); /* odd, too: every copy would be made */
    add_headers(HEADERS - 1, offset, SIZE);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    double start = cpu_seconds();
    open_core();
    getrusage(RUSAGE_SELF, &after);
    ck_assert_msg(cpu_seconds() - start < time_bound(20), "%g s", cpu_seconds() - start);
    ck_assert_msg(after.ru_maxrss - before.ru_maxrss < 512 * 1024, "%ld KiB", after.ru_maxrss - before.ru_maxrss);
}
END_TEST

/* Opens a core with many headers for the notes of the segment, which is its only one. */
static void open_with_many_headers(const struct elf_core_segment *notes)
{
    enum { HEADERS = 2000 };
    size_t size = notes->notes.size;
    build();
    add_headers(HEADERS - 1, core.segments[0].offset, size);
    double start = cpu_seconds();
    open_core();
    ck_assert_msg(cpu_seconds() - start < time_bound(4), "%g s", cpu_seconds() - start);
}

/* The desc of an NT_AUXV that begins with `count` entries nobody asks for; to be freed. */
static struct elf_buffer auxv_desc(size_t count)
{
    struct elf_buffer desc = {.wide = true};
    for (size_t i = 0; i < count; i++) {
        elf_put_word(&desc, AT_PHDR);
        elf_put_word(&desc, 0);
    }
    return desc;
}

/* One NT_AUXV of which the last of millions of entries is asked for. */
START_TEST(many_headers_for_the_same_auxv)
{
    enum { ENTRIES = 1 << 20 };
    struct elf_buffer auxv = auxv_desc(ENTRIES);
    struct elf_core_segment *notes = elf_core_notes(&core);
    elf_note(notes, "CORE", NT_AUXV, auxv.data, auxv.size);
    free(auxv.data);
    open_with_many_headers(notes);
    ck_assert_uint_eq(target->vdso, 0);
}
END_TEST

/* One NT_FILE in which no mapping makes sense. */
START_TEST(many_headers_for_the_same_nt_file)
{
    enum { ENTRIES = 1 << 18 };
    struct elf_mapping *inverted = calloc(ENTRIES, sizeof *inverted);
    for (size_t i = 0; i < ENTRIES; i++)
        inverted[i] = (struct elf_mapping){0x2000, 0x1000, 0, "/inverted"};
    open_with_many_headers(elf_core_mappings(&core, 4096, inverted, ENTRIES));
    ck_assert_uint_eq(target->mapping_count, 0);
    free(inverted);
}
END_TEST

/* The first NT_AUXV counts, and of it as much as a kernel writes. */
START_TEST(the_first_auxv_counts)
{
    static const struct {
        size_t before; /* entries before the one that is looked for */
        uint64_t vdso;
    } cases[] = {{0, 0x5000}, {255, 0x5000}, {256, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct elf_core_segment *notes = elf_core_notes(&core);
        for (uint64_t n = 0; n < 2; n++) {
            struct elf_buffer auxv = auxv_desc(cases[i].before);
            elf_put_word(&auxv, AT_SYSINFO_EHDR);
            elf_put_word(&auxv, 0x5000 + n);
            elf_note(notes, "CORE", NT_AUXV, auxv.data, auxv.size);
            free(auxv.data);
        }
        open_core();
        ck_assert_uint_eq(target->vdso, cases[i].vdso);
        begin_core();
    }
}
END_TEST

/* ---- NT_FILE ---- */

/* An NT_FILE of no mapping, or of none that makes sense, does not hide the one after it. */
START_TEST(an_nt_file_of_nothing_hides_none)
{
    static const struct elf_mapping inverted = {0x2000, 0x1000, 0, "/inverted"}, good = {0x1000, 0x2000, 0, "/bin/a"};
    for (size_t count = 0; count < 2; count++) {
        elf_core_mappings(&core, 4096, &inverted, count);
        elf_core_mappings(&core, 4096, &good, 1);
        elf_core_mappings(&core, 4096, &inverted, 1);
        open_core();
        ck_assert_uint_eq(target->mapping_count, 1);
        ck_assert_str_eq(target->mappings[0].path, "/bin/a");
        begin_core();
    }
}
END_TEST

static enum cdacq_status open_with_desc(const void *desc, size_t size)
{
    struct elf_core_segment *notes = elf_core_notes(&core);
    elf_note(notes, "CORE", NT_FILE, desc, size);
    elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
    build();
    return open_bytes(file, file_size);
}

static const struct elf_mapping three[] = {
    {0x1000, 0x2000, 0, "/bin/a"}, {0x3000, 0x5000, 2, "/lib/b c.so"}, {0x8000, 0x9000, 0, "/lib/c (deleted)"}};

/* The desc as a whole, cut at every byte: every mapping is right or absent. */
START_TEST(nt_file_cut_anywhere)
{
    struct elf_buffer desc = elf_mappings_desc(true, false, 4096, three, 3);
    for (size_t size = 0; size <= desc.size; size++) {
        enum cdacq_status status = open_with_desc(desc.data, size);
        if (status < 0) {
            ck_assert_int_eq(status, CDACQ_ERR_FORMAT);
            ck_assert_ptr_nonnull(strstr(error.message, "NT_FILE"));
        } else {
            for (size_t i = 0; i < target->mapping_count; i++) {
                ck_assert_str_eq(mapped_file_name(&target->mappings[i]), three[i].path);
                ck_assert_uint_eq(target->mappings[i].begin, three[i].begin);
                ck_assert_uint_eq(target->mappings[i].offset, three[i].page_offset * 4096);
            }
            ck_assert(size < desc.size || target->mapping_count == 3);
            ck_assert_int_eq(byte_at(0x1000), 'a');
        }
        begin_core();
    }
    free(desc.data);
}
END_TEST

START_TEST(nt_file_with_a_count_that_lies)
{
    static const uint64_t counts[] = {4,
                                      5,
                                      100,
                                      0x100000,
                                      0x1000000,
                                      UINT32_MAX,
                                      UINT64_C(0x5555555555555555),
                                      UINT64_C(0xaaaaaaaaaaaaaaaa),
                                      UINT64_MAX / 24,
                                      UINT64_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct elf_buffer desc = elf_mappings_desc(true, false, 4096, three, 3);
        memcpy(desc.data, &counts[i], 8);
        enum cdacq_status status = open_with_desc(desc.data, desc.size);
        free(desc.data);
        if (counts[i] > 5) {
            ck_assert_int_eq(status, CDACQ_ERR_FORMAT);
            ck_assert_ptr_null(target);
        }
        begin_core();
    }
}
END_TEST

START_TEST(nt_file_page_sizes)
{
    static const struct {
        uint64_t page_size, page_offset, offset;
        bool refused, dropped;
    } cases[] = {
        {4096, 3, 0x3000, false, false},           {1, 0x3000, 0x3000, false, false}, /* gdb's gcore */
        {65536, 3, 0x30000, false, false},         {0, 3, 0, true, false},
        {4096, UINT64_C(1) << 60, 0, false, true}, {UINT64_MAX, 2, 0, false, true},
        {1, UINT64_MAX, 0, false, true}, /* the end of the part that is mapped overflows */
        {1, UINT64_MAX - 0x2000, 0, false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct elf_mapping mappings[] = {{0x10000, 0x12000, cases[i].page_offset, "/lib/b.so"},
                                               {0x20000, 0x22000, 0, "/lib/a.so"}};
        struct elf_buffer desc = elf_mappings_desc(true, false, cases[i].page_size, mappings, 2);
        enum cdacq_status status = open_with_desc(desc.data, desc.size);
        free(desc.data);
        ck_assert_int_eq(status, cases[i].refused ? CDACQ_ERR_FORMAT : CDACQ_OK);
        if (!cases[i].refused) {
            ck_assert_uint_eq(target->mapping_count, cases[i].dropped ? 1 : 2);
            ck_assert_str_eq(target->mappings[target->mapping_count - 1].path, "/lib/a.so");
            if (cases[i].offset)
                ck_assert_uint_eq(target->mappings[0].offset, cases[i].offset);
            if (!cases[i].dropped)
                ck_assert_int_eq(byte_at(0x10000), -1);
        }
        begin_core();
    }
}
END_TEST

START_TEST(nt_file_ranges_that_make_no_sense)
{
    static const struct elf_mapping odd[] = {
        {0x2000, 0x1000, 0, "/inverted"},  {0x3000, 0x3000, 0, "/empty"},      {0, UINT64_MAX, 0, "/everything"},
        {0x1000, 0x1800, 0, "/in-it"},     {0x1400, 0x3000, 0, "/half"},       {0x5000, 0x6000, 0, ""},
        {0x7000, 0x8000, 0, "relative/x"}, {0x7000, 0x8000, 0, "/same-place"},
    };
    struct elf_buffer desc = elf_mappings_desc(true, false, 4096, odd, ARRAY_SIZE(odd));
    ck_assert_int_eq(open_with_desc(desc.data, desc.size), CDACQ_OK);
    free(desc.data);
    ck_assert_uint_eq(target->mapping_count, ARRAY_SIZE(odd) - 2);
    ck_assert_int_eq(byte_at(0x1003), 'd');
    for (uint64_t at = 0; at < 0x9000; at += 0x400)
        byte_at(at);
    byte_at(UINT64_MAX - 1);
    ck_assert_int_eq(comparison.asked, 0); /* none of these exist */
}
END_TEST

START_TEST(nt_file_of_many_files_takes_no_quadratic_time)
{
    enum { COUNT = 200 * 1000 };
    struct elf_mapping *mappings = malloc(COUNT * sizeof *mappings);
    char(*paths)[24] = malloc(COUNT * sizeof *paths);
    for (uint64_t i = 0; i < COUNT; i++) {
        snprintf(paths[i], sizeof paths[i], "/lib/%lu.so", (unsigned long)i);
        mappings[i] = (struct elf_mapping){0x100000 + i * 0x2000, 0x101000 + i * 0x2000, 0, paths[i]};
    }
    elf_core_mappings(&core, 4096, mappings, COUNT);
    double start = cpu_seconds();
    open_core();
    ck_assert_msg(cpu_seconds() - start < time_bound(10), "%g s", cpu_seconds() - start);
    ck_assert_uint_eq(target->mapping_count, COUNT);
    free(mappings);
    free(paths);
}
END_TEST

/* Whoever owns the file may write to it while it is read. A path that no record has is kept, too. */
START_TEST(paths_are_not_read_twice)
{
    enum { COUNT = FILE_MAX + 1 };
    struct elf_mapping *mappings = malloc(COUNT * sizeof *mappings);
    char(*paths)[24] = malloc(COUNT * sizeof *paths);
    for (uint64_t i = 0; i < COUNT; i++) {
        snprintf(paths[i], sizeof paths[i], "/lib/%lu.so", (unsigned long)i);
        mappings[i] = (struct elf_mapping){0x100000 + i * 0x2000, 0x101000 + i * 0x2000, 0, paths[i]};
    }
    elf_core_mappings(&core, 4096, mappings, COUNT);
    build();
    int fd;
    const char *path = memory_file(file, file_size, &fd);
    ck_assert_int_eq(core_open(path, &policy, false, &target, &error), CDACQ_OK);
    const struct mapping *last = &target->mappings[COUNT - 1];
    ck_assert_ptr_null(last->file);
    memset(file, 'x', file_size);
    ck_assert_int_eq(pwrite(fd, file, file_size, 0), (ssize_t)file_size);
    close(fd);
    ck_assert_str_eq(last->path, paths[COUNT - 1]);
    ck_assert_str_eq(target->mappings[0].path, paths[0]);
    free(mappings);
    free(paths);
}
END_TEST

/* ---- Files that fill what was not dumped ---- */

/* A file of four pages, mapped at 0x10000 with the second page dumped, in another version. */
static void put_library(const char *path, uint32_t flags)
{
    const struct elf_mapping mapping = {0x10000, 0x14000, 0, path};
    elf_core_mappings(&core, 4096, &mapping, 1);
    static uint8_t dumped[0x1000];
    memset(dumped, 'D', sizeof dumped);
    elf_core_load(&core, 0x10000, NULL, 0, 0x1000, flags);
    elf_core_load(&core, 0x11000, dumped, 0x1000, 0x1000, flags);
    elf_core_load(&core, 0x12000, NULL, 0, 0x2000, flags);
}

static void make_pages(void)
{
    pages = filled(0x4000, 5);
}

START_TEST(filled_from_the_targets_own_path)
{
    make_pages();
    const char *path = test_file("lib.so", pages, 0x4000);
    put_library(path, PF_R);
    open_core();
    ck_assert_int_eq(comparison.asked, 0); /* on first touch only */
    ck_assert_int_eq(byte_at(0x11000), 'D');
    ck_assert_int_eq(comparison.asked, 0);
    ck_assert_int_eq(byte_at(0x10000), pages[0]);
    ck_assert_int_eq(comparison.asked, 1);
    ck_assert_str_eq(comparison.last, path);
    ck_assert_int_eq(byte_at(0x10fff), pages[0xfff]);
    ck_assert_int_eq(byte_at(0x11000), 'D'); /* the dump wins */
    ck_assert_int_eq(byte_at(0x11fff), 'D');
    ck_assert_int_eq(byte_at(0x12000), pages[0x2000]);
    ck_assert_int_eq(byte_at(0x13fff), pages[0x3fff]);
    ck_assert_int_eq(byte_at(0x14000), -1);
    ck_assert_int_eq(comparison.asked, 1);
    ck_assert_int_eq(dumped_byte_at(0x10000), -1);
    ck_assert_int_eq(dumped_byte_at(0x11000), 'D');
    const struct mapped_file *mapped = target->mappings[0].file;
    ck_assert_str_eq(mapped->local_path, path);
    ck_assert(mapped->verified);
    ck_assert_ptr_null(mapped_file_problem(mapped));
    struct span span;
    ck_assert(target->ops->memory_at(target, 0x10000, &span));
    ck_assert(!span.unverified);
    ck_assert_uint_eq(span.begin, 0x10000);
    ck_assert_uint_eq(span.end, 0x11000);
}
END_TEST

START_TEST(the_offset_of_the_mapping_counts)
{
    make_pages();
    const char *path = test_file("lib.so", pages, 0x4000);
    const struct elf_mapping mappings[] = {
        {0x20000, 0x21000, 2, path}, {0x10000, 0x11000, 1, path}, {0x40000, 0x41000, 2, path}};
    elf_core_mappings(&core, 4096, mappings, 3);
    elf_core_load(&core, 0x10000, NULL, 0, 0x1000, PF_R);
    elf_core_load(&core, 0x20000, NULL, 0, 0x1000, PF_R | PF_X);
    open_core();
    ck_assert_int_eq(byte_at(0x10010), pages[0x1010]);
    ck_assert_int_eq(byte_at(0x20010), pages[0x2010]);
    ck_assert_int_eq(byte_at(0x40010), -1); /* the access is not known: only constant ranges may be used */
    ck_assert_int_eq(comparison.asked, 1);  /* one file, however often it is mapped */
}
END_TEST

START_TEST(found_below_a_sysroot_and_in_a_module_path)
{
    make_pages();
    test_file("root/app/lib.so", pages, 0x4000);
    test_file("modules/lib.so", pages, 0x4000);
    put_library("/app/lib.so", PF_R);
    if (_i == 0) {
        one_sysroot[0] = test_path("root");
        policy.sysroots = one_sysroot;
    } else {
        one_module_path[0] = test_path("modules");
        policy.module_paths = one_module_path;
    }
    open_core();
    ck_assert_int_eq(byte_at(0x10000), pages[0]);
    ck_assert_str_eq(target->mappings[0].file->local_path, test_path(_i == 0 ? "root/app/lib.so" : "modules/lib.so"));
    ck_assert_str_eq(comparison.last, "/app/lib.so"); /* the comparison knows it by the target's name */
}
END_TEST

START_TEST(a_contradicted_file_is_refused)
{
    make_pages();
    const char *path = test_file("lib.so", pages, 0x4000);
    put_library(path, PF_R);
    comparison.result = FILE_DIFFERS;
    open_core();
    ck_assert_int_eq(byte_at(0x10000), -1);
    ck_assert_int_eq(byte_at(0x12000), -1);
    ck_assert_int_eq(comparison.asked, 1); /* once, not per touch */
    ck_assert_int_eq(byte_at(0x11000), 'D');
    char expected[400];
    snprintf(expected, sizeof expected, "%s is not the file that was mapped: it has another build-id", path);
    ck_assert_str_eq(mapped_file_problem(target->mappings[0].file), expected);
    struct reader reader;
    reader_init(&reader, target, 8, false);
    read_u8(&reader, 0x10000);
    reader_status(&reader, &error);
    ck_assert_msg(strstr(error.message, "it has another build-id"), "%s", error.message);
}
END_TEST

START_TEST(what_nothing_confirms_is_used_and_said)
{
    make_pages();
    put_library(test_file("lib.so", pages, 0x4000), PF_R);
    comparison.result = FILE_UNKNOWN;
    open_core();
    struct span span;
    ck_assert(target->ops->memory_at(target, 0x10000, &span));
    ck_assert(span.unverified);
    ck_assert_int_eq(span.bytes[0], pages[0]);
    ck_assert(target->ops->memory_at(target, 0x11000, &span));
    ck_assert(!span.unverified);
    struct reader reader;
    reader_init(&reader, target, 8, false);
    read_u8(&reader, 0x11000);
    ck_assert(!reader_unverified(&reader));
    read_u16(&reader, 0x11fff);
    ck_assert(reader_unverified(&reader));
}
END_TEST

START_TEST(without_a_comparison_nothing_is_verified)
{
    make_pages();
    policy.compare = NULL;
    put_library(test_file("lib.so", pages, 0x4000), PF_R);
    open_core();
    ck_assert_int_eq(byte_at(0x10000), -1); /* no callback that states which bytes are constant */
    ck_assert(!target->mappings[0].file->verified);
}
END_TEST

START_TEST(no_policy_no_files)
{
    make_pages();
    put_library(test_file("lib.so", pages, 0x4000), PF_R);
    build();
    int fd;
    const char *path = memory_file(file, file_size, &fd);
    ck_assert_int_eq(core_open(path, NULL, false, &target, &error), CDACQ_OK);
    close(fd);
    ck_assert_int_eq(byte_at(0x10000), -1);
    ck_assert_int_eq(byte_at(0x11000), 'D');
    ck_assert_ptr_null(mapped_file_problem(target->mappings[0].file));
}
END_TEST

START_TEST(writable_memory_is_never_filled)
{
    make_pages();
    comparison.ranges[0] = (struct file_extent){0x2000, 0x2100, FILE_EXTENT_CONSTANT};
    comparison.ranges[1] = (struct file_extent){0x3000, 0x3100, FILE_EXTENT_ALWAYS};
    put_library(test_file("lib.so", pages, 0x4000), PF_R | PF_W);
    open_core();
    ck_assert_int_eq(target->mappings[0].access, MAPPING_WRITABLE);
    ck_assert_int_eq(byte_at(0x10000), -1);
    ck_assert_int_eq(byte_at(0x12000), -1);
    ck_assert_int_eq(byte_at(0x12fff), -1);
    ck_assert_int_eq(byte_at(0x13000), pages[0x3000]); /* a table that is not written to */
    ck_assert_int_eq(byte_at(0x130ff), pages[0x30ff]);
    ck_assert_int_eq(byte_at(0x13100), -1);
    struct span span;
    ck_assert(target->ops->memory_at(target, 0x13050, &span));
    ck_assert_uint_eq(span.begin, 0x13000);
    ck_assert_uint_eq(span.end, 0x13100);
    ck_assert_int_eq(byte_at(0x11000), 'D');
}
END_TEST

START_TEST(one_writable_segment_makes_a_mapping_writable)
{
    make_pages();
    const struct elf_mapping mapping = {0x10000, 0x14000, 0, test_file("lib.so", pages, 0x4000)};
    elf_core_mappings(&core, 4096, &mapping, 1);
    elf_core_load(&core, 0x0f000, NULL, 0, 0x1000, PF_R | PF_W); /* a neighbour's */
    elf_core_load(&core, 0x10000, NULL, 0, 0x2000, PF_R);
    elf_core_load(&core, 0x12000, NULL, 0, 0x2000, _i == 0 ? PF_R : PF_R | PF_W);
    elf_core_load(&core, 0x14000, NULL, 0, 0x1000, PF_R | PF_W); /* another neighbour's */
    open_core();
    ck_assert_int_eq(target->mappings[0].access, _i == 0 ? MAPPING_READ_ONLY : MAPPING_WRITABLE);
    ck_assert_int_eq(byte_at(0x10000), _i == 0 ? pages[0] : -1);
}
END_TEST

START_TEST(segments_may_span_mappings)
{
    make_pages();
    const char *path = test_file("lib.so", pages, 0x4000);
    const struct elf_mapping mappings[] = {
        {0x10000, 0x11000, 0, path}, {0x11000, 0x12000, 1, path}, {0x12000, 0x13000, 2, path}};
    elf_core_mappings(&core, 4096, mappings, 3);
    elf_core_load(&core, 0x10000, NULL, 0, 0x2000, PF_R);
    elf_core_load(&core, 0x12000, NULL, 0, 0x9000, PF_R | PF_W);
    open_core();
    ck_assert_int_eq(target->mappings[0].access, MAPPING_READ_ONLY);
    ck_assert_int_eq(target->mappings[1].access, MAPPING_READ_ONLY);
    ck_assert_int_eq(target->mappings[2].access, MAPPING_WRITABLE);
    ck_assert_int_eq(byte_at(0x11001), pages[0x1001]);
    ck_assert_int_eq(byte_at(0x12001), -1);
}
END_TEST

START_TEST(only_constant_ranges_where_access_is_unknown)
{
    make_pages();
    comparison.ranges[0] = (struct file_extent){0x0800, 0x0900, FILE_EXTENT_CONSTANT};
    const struct elf_mapping mapping = {0x10000, 0x14000, 0, test_file("lib.so", pages, 0x4000)};
    elf_core_mappings(&core, 4096, &mapping, 1);
    open_core();
    ck_assert_int_eq(target->mappings[0].access, MAPPING_UNKNOWN);
    ck_assert_int_eq(byte_at(0x107ff), -1);
    ck_assert_int_eq(byte_at(0x10800), pages[0x800]);
    ck_assert_int_eq(byte_at(0x10900), -1);
}
END_TEST

START_TEST(a_shorter_file_is_refused)
{
    make_pages();
    put_library(test_file("lib.so", pages, _i == 0 ? 0x3000 : 0x3001), PF_R);
    open_core();
    if (_i == 0) { /* the last page is not there at all */
        ck_assert_int_eq(byte_at(0x10000), -1);
        ck_assert_int_eq(comparison.asked, 0);
        ck_assert_ptr_nonnull(
            strstr(mapped_file_problem(target->mappings[0].file), "it has 12288 bytes and 16384 were mapped"));
    } else { /* it ends within the last page: the bytes after its end do not exist */
        ck_assert_int_eq(byte_at(0x10000), pages[0]);
        ck_assert_int_eq(byte_at(0x13000), pages[0x3000]);
        ck_assert_int_eq(byte_at(0x13001), -1);
    }
}
END_TEST

/* What the runtime forgets to unmap of a single-file app begins at the end of the file, and is one page. */
START_TEST(a_page_after_the_end_does_not_make_a_file_short)
{
    static const struct elf_mapping lasts[] = {
        {0x30000, 0x31000, 4, NULL}, {0x30000, 0x32000, 4, NULL}, {0x30000, 0x31000, 5, NULL}};
    make_pages();
    const char *path = test_file("app", pages, 0x3f00);
    struct elf_mapping mappings[] = {{0x10000, 0x14000, 0, path}, lasts[_i]};
    mappings[1].path = path;
    elf_core_mappings(&core, 4096, mappings, 2);
    elf_core_load(&core, 0x10000, NULL, 0, 0x4000, PF_R);
    elf_core_load(&core, 0x30000, NULL, 0, mappings[1].end - 0x30000, PF_R);
    open_core();
    ck_assert_int_eq(byte_at(0x10000), _i == 0 ? pages[0] : -1);
    ck_assert_int_eq(byte_at(0x30000), -1);
}
END_TEST

START_TEST(gaps_without_access_do_not_make_a_file_short)
{
    /* ld.so: segments 2 MiB apart, the gap mapped from the file far beyond its end, then made inaccessible. */
    make_pages();
    const char *path = test_file("lib.so", pages, 0x4000);
    const struct elf_mapping mappings[] = {
        {0x10000, 0x12000, 0, path}, {0x12000, 0x20f000, 2, path}, {0x20f000, 0x210000, 1, path}};
    elf_core_mappings(&core, 4096, mappings, 3);
    elf_core_load(&core, 0x10000, NULL, 0, 0x2000, PF_R | PF_X);
    elf_core_load(&core, 0x12000, NULL, 0, 0x1fd000, _i == 0 ? 0 : PF_R);
    elf_core_load(&core, 0x20f000, NULL, 0, 0x1000, PF_R);
    open_core();
    ck_assert_int_eq(byte_at(0x10000), _i == 0 ? pages[0] : -1);
    ck_assert_int_eq(byte_at(0x20f000), _i == 0 ? pages[0x1000] : -1);
}
END_TEST

/*
 * The same where the core has nothing of the gap: createdump and gdb leave it out. Two images are one after the other.
 */
START_TEST(gaps_of_which_the_core_has_nothing)
{
    make_pages();
    const char *path = test_file("lib.so", pages, 0x2000), *other = test_file("other.so", pages, 0x2000);
    uint64_t gap = _i == 1 ? 0x2000 : 0x1000, next = _i == 2 ? 0x10000 : 0x1000;
    const struct elf_mapping mappings[] = {{0x10000, 0x11000, 0, path},           {0x11000, 0x20000, gap / 4096, path},
                                           {0x20000, 0x21000, next / 4096, path}, {0x21000, 0x22000, 0, other},
                                           {0x22000, 0x30000, 1, other},          {0x30000, 0x31000, 1, other}};
    elf_core_mappings(&core, 4096, mappings, ARRAY_SIZE(mappings));
    elf_core_load(&core, 0x10000, NULL, 0, 0x1000, PF_R | PF_X);
    if (_i == 3) /* it can be read, so it is no gap */
        elf_core_load(&core, 0x12000, NULL, 0, 0x1000, PF_R);
    elf_core_load(&core, 0x20000, NULL, 0, 0x1000, PF_R);
    elf_core_load(&core, 0x21000, NULL, 0, 0x1000, PF_R | PF_X);
    open_core();
    ck_assert_int_eq(byte_at(0x10000), _i == 0 ? pages[0] : -1);
    ck_assert_int_eq(byte_at(0x20000), _i == 0 ? pages[0x1000] : -1);
    ck_assert_int_eq(byte_at(0x21000), pages[0]);
}
END_TEST

START_TEST(large_pages_round_mappings_up)
{
    /* arm64 with pages of 64 KiB: the mapping ends at its page, the file before. */
    make_pages();
    core.machine = _i == 0 ? EM_AARCH64 : EM_X86_64;
    const struct elf_mapping mapping = {0x10000, 0x20000, 0, test_file("lib.so", pages, 0x4000)};
    elf_core_mappings(&core, 65536, &mapping, 1);
    elf_core_load(&core, 0x10000, NULL, 0, 0x10000, PF_R);
    open_core();
    ck_assert_int_eq(byte_at(0x10000), _i == 0 ? pages[0] : -1);
    ck_assert_int_eq(byte_at(0x14000), -1);
}
END_TEST

START_TEST(a_cut_core_is_filled_like_one_that_left_out)
{
    make_pages();
    static uint8_t whole[0x4000];
    memset(whole, 'D', sizeof whole);
    const struct elf_mapping mapping = {0x10000, 0x14000, 0, test_file("lib.so", pages, 0x4000)};
    elf_core_mappings(&core, 4096, &mapping, 1);
    elf_core_load(&core, 0x10000, whole, 0x4000, 0x4000, PF_R);
    elf_core_load(&core, 0x30000, whole, 0x1000, 0x1000, PF_R | PF_W);
    build();
    uint64_t offset = core.segments[1].offset;
    ck_assert_int_eq(open_bytes(file, offset + 0x1800), CDACQ_OK);
    ck_assert(target->truncated);
    ck_assert_int_eq(byte_at(0x117ff), 'D');
    ck_assert_int_eq(byte_at(0x11800), pages[0x1800]);
    ck_assert_int_eq(byte_at(0x30000), -1);
}
END_TEST

START_TEST(opening_leaves_outputs_alone_on_failure)
{
    struct target *untouched = (struct target *)&core;
    ck_assert_int_lt(core_open(test_path("none"), &policy, false, &untouched, &error), 0);
    ck_assert_ptr_eq(untouched, (struct target *)&core);
}
END_TEST

START_TEST(records_when_asked)
{
    elf_core_load(&core, 0x1000, "abcd", 4, 4, PF_R);
    build();
    int fd;
    const char *path = memory_file(file, file_size, &fd);
    ck_assert_int_eq(core_open(path, &policy, true, &target, &error), CDACQ_OK);
    close(fd);
    struct reader reader;
    reader_init(&reader, target, 8, false);
    ck_assert_uint_eq(read_u8(&reader, 0x1000), 'a');
    ck_assert_uint_eq(target->recording->pages.count, 1);
}
END_TEST

/* ---- Threads ---- */

enum { THREADS = 8 };

static void *touch_everything(void *seed)
{
    struct reader reader;
    reader_init(&reader, target, 8, false);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 0x4000; i++)
        sum += read_u8(&reader, 0x10000 + (i * 5 + (uintptr_t)seed * 0x1234) % 0x4000);
    return reader_failed(&reader) ? NULL : (void *)(uintptr_t)sum;
}

START_TEST(threads_share_a_core)
{
    make_pages();
    put_library(test_file("lib.so", pages, 0x4000), PF_R);
    open_core();
    pthread_t threads[THREADS];
    void *sums[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, touch_everything, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], &sums[i]);
    ck_assert_ptr_nonnull(sums[0]);
    for (size_t i = 1; i < THREADS; i++)
        ck_assert_ptr_eq(sums[i], sums[0]);
    ck_assert_int_eq(comparison.asked, 1);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        a_read_joins_neighbouring_segments,
        no_segments_no_notes,
        segments_that_hold_nothing,
        segments_that_overlap,
        a_segment_that_is_missing_hides_nothing,
        numbers_that_overflow,
        few_segments_counted_the_long_way,
        a_long_count_that_is_cut_off,
        memory_that_is_cut_off,
        a_long_count_that_lies,
        too_many_segments,
        cut_in_the_notes,
        what_is_no_core,
        an_unreadable_file,
        damage_to_the_header,
        several_note_segments,
        who_wrote_it,
        what_a_filter_has_left_out,
        notes_aligned_to_eight,
        notes_of_others_are_not_ours,
        notes_that_do_not_fit,
        many_headers_for_the_same_auxv,
        many_headers_for_the_same_nt_file,
        the_first_auxv_counts,
        an_nt_file_of_nothing_hides_none,
        nt_file_cut_anywhere,
        nt_file_with_a_count_that_lies,
        nt_file_page_sizes,
        nt_file_ranges_that_make_no_sense,
        nt_file_of_many_files_takes_no_quadratic_time,
        paths_are_not_read_twice,
        opening_leaves_outputs_alone_on_failure,
        records_when_asked,
    };
    const TTest *const file_tests[] = {
        filled_from_the_targets_own_path,
        the_offset_of_the_mapping_counts,
        a_contradicted_file_is_refused,
        what_nothing_confirms_is_used_and_said,
        without_a_comparison_nothing_is_verified,
        no_policy_no_files,
        writable_memory_is_never_filled,
        segments_may_span_mappings,
        only_constant_ranges_where_access_is_unknown,
        a_cut_core_is_filled_like_one_that_left_out,
        threads_share_a_core,
    };
    Suite *s = suite_create("core");
    for (int pread = 0; pread < 2; pread++) {
        TCase *tc = tcase_create(pread ? "core, by pread" : "core");
        tcase_add_checked_fixture(tc, pread ? setup_pread : setup, teardown);
        for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
            tcase_add_test(tc, tests[i]);
        tcase_add_loop_test(tc, both_classes_and_orders, 0, 4);
        tcase_add_loop_test(tc, more_than_65535_segments, 0, 4);
        tcase_add_test(tc, finding_one_of_many_segments_costs_fuel);
        tcase_add_loop_test(tc, truncated_anywhere, 0, 3);
        tcase_add_loop_test(tc, random_damage, 0, 8);
        tcase_add_loop_test(tc, many_headers_for_the_same_notes, 0, 4);
        suite_add_tcase(s, tc);
        TCase *files = tcase_create(pread ? "files, by pread" : "files");
        tcase_add_checked_fixture(files, pread ? setup_pread : setup, teardown);
        for (size_t i = 0; i < ARRAY_SIZE(file_tests); i++)
            tcase_add_test(files, file_tests[i]);
        tcase_add_loop_test(files, found_below_a_sysroot_and_in_a_module_path, 0, 2);
        tcase_add_loop_test(files, one_writable_segment_makes_a_mapping_writable, 0, 2);
        tcase_add_loop_test(files, a_shorter_file_is_refused, 0, 2);
        tcase_add_loop_test(files, a_page_after_the_end_does_not_make_a_file_short, 0, 3);
        tcase_add_loop_test(files, gaps_without_access_do_not_make_a_file_short, 0, 2);
        tcase_add_loop_test(files, gaps_of_which_the_core_has_nothing, 0, 4);
        tcase_add_loop_test(files, large_pages_round_mappings_up, 0, 2);
        suite_add_tcase(s, files);
    }
    return s;
}

CHECK_MAIN(suite)
