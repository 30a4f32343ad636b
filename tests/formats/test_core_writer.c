/*
 * Cores that core_writer writes, read back by the library, by this file's own code, and by readelf if it is installed.
 */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "tests/support/check_main.h"
#include "util/base.h"
#include "formats/core_writer.h"
#include "target/core.h"
#include "target/file_policy.h"
#include "target/target_process.h"
#include "target/threads.h"

enum { ARCH_COUNT = 4, PAGE = CORE_WRITER_PAGE };

static const uint16_t machines[ARCH_COUNT] = {EM_386, EM_X86_64, EM_PPC, EM_PPC64};

/* An unnamed file with a path. */
struct scratch {
    int fd;
    FILE *file;
    char path[40];
};

static struct scratch scratch_open(void)
{
    struct scratch scratch = {.fd = memfd_create("core", MFD_CLOEXEC)};
    ck_assert_int_ge(scratch.fd, 0);
    snprintf(scratch.path, sizeof scratch.path, "/proc/self/fd/%d", scratch.fd);
    scratch.file = fopen(scratch.path, "w+b");
    ck_assert_ptr_nonnull(scratch.file);
    return scratch;
}

static void scratch_close(struct scratch *scratch)
{
    fclose(scratch->file);
    close(scratch->fd);
}

static uint64_t write_image(struct scratch *scratch, const struct core_writer_image *image)
{
    struct cdacq_error error;
    uint64_t size = 0;
    if (core_writer_write(scratch->file, image, &size, &error) != CDACQ_OK)
        ck_abort_msg("%s", error.message);
    ck_assert_uint_eq((uint64_t)ftello(scratch->file), size);
    return size;
}

static struct target *open_core(const char *path, struct file_policy *policy)
{
    struct target *target = NULL;
    struct cdacq_error error;
    pthread_mutex_init(&policy->lock, NULL);
    if (core_open(path, policy, false, &target, &error) != CDACQ_OK)
        ck_abort_msg("%s", error.message);
    return target;
}

static void fill(uint8_t *bytes, size_t size, unsigned salt)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256 + salt);
}

static uint8_t page_bytes[4 * PAGE];

static const struct core_writer_mapping mappings[] = {
    {0x10000, 0x20000, 0x3000, "/mock/first.so"},
    {0x20000, 0x21000, 0, "/mock/second one.dll"},
};

static const struct core_writer_segment segments[] = {
    {0x10000, page_bytes, PAGE, 0x10000, CORE_WRITER_R | CORE_WRITER_X},
    {0x30010, page_bytes + 16, 100, 100, CORE_WRITER_R | CORE_WRITER_W},
    {0x40000, page_bytes, 4 * PAGE, 4 * PAGE, CORE_WRITER_R},
    {0x50ff0, page_bytes, 32, 0x2000, CORE_WRITER_R},
    {0x60000, NULL, 0, 0x2000, CORE_WRITER_R},
    {0x70000, NULL, 0, 0, CORE_WRITER_R},
};

static struct core_writer_image usual_image(int arch)
{
    fill(page_bytes, sizeof page_bytes, 1);
    return (struct core_writer_image){
        .wide = arch & 1,
        .big_endian = arch & 2,
        .machine = machines[arch],
        .pid = 123456,
        .name = "a name that is too long",
        .mappings = mappings,
        .mapping_count = ARRAY_SIZE(mappings),
        .segments = segments,
        .segment_count = ARRAY_SIZE(segments),
    };
}

static size_t read_some(void *context, uint64_t address, size_t size, const void **ret_bytes)
{
    const uint64_t *begin = context;
    *ret_bytes = address - *begin < PAGE ? page_bytes + (address - *begin) : NULL; /* then zeros */
    return MIN(size, (size_t)64);
}

/* Bytes of a segment that come piece by piece, and notes of another core. */
START_TEST(given_notes_and_bytes)
{
    static const struct core_writer_segment given = {0x10000, NULL, 2 * PAGE, 3 * PAGE, CORE_WRITER_R};
    uint8_t bytes[PAGE];
    struct core_writer_image image = usual_image(_i);
    struct scratch scratch = scratch_open(), second = scratch_open();
    struct file_policy policy = {0};
    uint64_t begin = given.vaddr;
    struct elf_class class;
    write_image(&scratch, &image);
    ck_assert_int_eq(pread(scratch.fd, bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
    ck_assert(elf_class_of(bytes, &class));
    struct elf_segment note = elf_segment_at(class, bytes + elf_header_at(class, bytes).segments);
    ck_assert_uint_eq(note.type, PT_NOTE);
    ck_assert_uint_le(note.offset + note.file_size, sizeof bytes);
    const struct core_writer_notes both[] = {{bytes + note.offset, 0}, {bytes + note.offset, note.file_size}};
    image.notes = both;
    image.note_count = ARRAY_SIZE(both);
    image.pid = 1; /* of no effect */
    image.segments = &given;
    image.segment_count = 1;
    image.read = read_some;
    image.context = &begin;
    write_image(&second, &image);
    struct target *target = open_core(second.path, &policy);
    ck_assert_int_eq(target->pid, 123456);
    ck_assert_uint_eq(target->mapping_count, ARRAY_SIZE(mappings));
    struct span span;
    for (uint64_t at = 0; at < 2 * PAGE; at++) {
        ck_assert(target->ops->dumped_at(target, begin + at, &span));
        ck_assert_uint_eq(span.bytes[begin + at - span.begin], at < PAGE ? page_bytes[at] : 0);
    }
    ck_assert(!target->ops->dumped_at(target, begin + 2 * PAGE, &span));
    target_destroy(target);
    scratch_close(&scratch);
    scratch_close(&second);
}
END_TEST

static void check_segment(struct target *target, const struct core_writer_segment *segment)
{
    struct span span;
    for (uint64_t at = 0; at < segment->filesz; at++) {
        ck_assert(target->ops->dumped_at(target, segment->vaddr + at, &span));
        ck_assert_uint_eq(span.bytes[segment->vaddr + at - span.begin], ((const uint8_t *)segment->bytes)[at]);
    }
    ck_assert(!target->ops->dumped_at(target, segment->vaddr + segment->filesz, &span));
    ck_assert(!target->ops->dumped_at(target, segment->vaddr - 1, &span));
}

START_TEST(round_trip)
{
    struct core_writer_image image = usual_image(_i);
    struct scratch scratch = scratch_open();
    struct file_policy policy = {0};
    write_image(&scratch, &image);
    struct target *target = open_core(scratch.path, &policy);
    for (size_t i = 0; i < ARRAY_SIZE(segments); i++)
        check_segment(target, &segments[i]);
    ck_assert_int_eq(target->pid, 123456);
    ck_assert_uint_eq(target->elf_machine, machines[_i]);
    ck_assert_uint_eq(target->segment_count, ARRAY_SIZE(segments));
    ck_assert(!target->truncated);
    ck_assert_uint_eq(target->mapping_count, ARRAY_SIZE(mappings));
    for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
        ck_assert_uint_eq(target->mappings[i].begin, mappings[i].begin);
        ck_assert_uint_eq(target->mappings[i].end, mappings[i].end);
        ck_assert_uint_eq(target->mappings[i].offset, mappings[i].offset);
        ck_assert_str_eq(target->mappings[i].path, mappings[i].path);
    }
    target_destroy(target);
    scratch_close(&scratch);
}
END_TEST

/* By the specification alone: what mmap() of the file needs. */
START_TEST(pages_can_be_mapped)
{
    struct core_writer_image image = usual_image(_i);
    struct scratch scratch = scratch_open();
    uint64_t size = write_image(&scratch, &image);
    uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, scratch.fd, 0);
    ck_assert_ptr_ne(file, MAP_FAILED);
    bool big = image.big_endian;
    uint64_t count = load_u16(file + (image.wide ? 56 : 44), big), at = image.wide ? 64 : 52;
    ck_assert_uint_eq(count, ARRAY_SIZE(segments) + 1);
    ck_assert_uint_eq(load_u32(file + at, big), PT_NOTE);
    for (size_t i = 0; i < ARRAY_SIZE(segments); i++) {
        const uint8_t *header = file + at + (i + 1) * (image.wide ? 56 : 32);
        uint64_t offset = image.wide ? load_u64(header + 8, big) : load_u32(header + 4, big);
        ck_assert_uint_eq(load_u32(header, big), PT_LOAD);
        ck_assert_uint_eq(load_u32(header + (image.wide ? 4 : 24), big), segments[i].flags);
        if (!segments[i].filesz)
            continue;
        ck_assert_uint_eq(offset % PAGE, segments[i].vaddr % PAGE);
        ck_assert_mem_eq(file + offset, segments[i].bytes, segments[i].filesz);
    }
    munmap(file, size);
    scratch_close(&scratch);
}
END_TEST

START_TEST(same_image_same_bytes)
{
    struct core_writer_image image = usual_image(_i);
    struct scratch first = scratch_open(), second = scratch_open();
    uint64_t size = write_image(&first, &image);
    ck_assert_uint_eq(write_image(&second, &image), size);
    uint8_t *a = malloc(size), *b = malloc(size);
    ck_assert_int_eq(pread(first.fd, a, size, 0), (ssize_t)size);
    ck_assert_int_eq(pread(second.fd, b, size, 0), (ssize_t)size);
    ck_assert_mem_eq(a, b, size);
    free(a);
    free(b);
    scratch_close(&first);
    scratch_close(&second);
}
END_TEST

/* Offsets that are no multiples of a page, and page sizes that the caller chooses. */
START_TEST(page_sizes)
{
    static const struct {
        unsigned page_size;
        uint64_t offset;
    } cases[] = {{0, 0x123}, {0, 0x5000}, {1, 0x5000}, {4096, 0x5000}, {65536, 0x30000}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct core_writer_mapping mapping = {0x10000, 0x20000, cases[i].offset, "/mock/x"};
        struct core_writer_image image = usual_image(_i);
        struct scratch scratch = scratch_open();
        struct file_policy policy = {0};
        image.page_size = cases[i].page_size;
        image.mappings = &mapping;
        image.mapping_count = 1;
        write_image(&scratch, &image);
        struct target *target = open_core(scratch.path, &policy);
        ck_assert_uint_eq(target->mapping_count, 1);
        ck_assert_uint_eq(target->mappings[0].offset, cases[i].offset);
        target_destroy(target);
        scratch_close(&scratch);
    }
}
END_TEST

START_TEST(nothing_in_it)
{
    struct core_writer_image image = {.wide = _i & 1, .big_endian = _i & 2, .machine = machines[_i]};
    struct scratch scratch = scratch_open();
    struct file_policy policy = {0};
    write_image(&scratch, &image);
    struct target *target = open_core(scratch.path, &policy);
    ck_assert_int_eq(target->pid, 0);
    ck_assert_uint_eq(target->segment_count, 0);
    ck_assert_uint_eq(target->mapping_count, 0);
    target_destroy(target);
    scratch_close(&scratch);
}
END_TEST

/* More segments than e_phnum can hold; one fewer and one more than the limit. */
START_TEST(many_segments)
{
    static const uint32_t counts[] = {65533, 65534, 70000};
    enum { STRIDE = PAGE + 16 };
    for (size_t n = 0; n < ARRAY_SIZE(counts); n++) {
        struct core_writer_segment *many = calloc(counts[n], sizeof *many);
        fill(page_bytes, sizeof page_bytes, 3);
        for (uint32_t i = 0; i < counts[n]; i++)
            many[i] = (struct core_writer_segment){0x10000 + (uint64_t)i * STRIDE, page_bytes + i % 4096, 16, 16,
                                                   CORE_WRITER_R};
        struct core_writer_image image = {.wide = _i & 1,
                                          .big_endian = _i & 2,
                                          .machine = machines[_i],
                                          .segments = many,
                                          .segment_count = counts[n]};
        struct scratch scratch = scratch_open();
        struct file_policy policy = {0};
        uint64_t size = write_image(&scratch, &image);
        ck_assert_uint_lt(size, 16 * 1024 * 1024); /* congruent offsets cost nothing where the addresses allow it */
        struct target *target = open_core(scratch.path, &policy);
        ck_assert_uint_eq(target->segment_count, counts[n]);
        for (uint32_t i = 0; i < counts[n]; i += 997)
            check_segment(target, &many[i]);
        check_segment(target, &many[counts[n] - 1]);
        target_destroy(target);
        scratch_close(&scratch);
        free(many);
    }
}
END_TEST

START_TEST(what_does_not_fit)
{
    uint8_t byte = 0;
    static const struct core_writer_segment wrong[] = {
        {0x1000, &page_bytes, 32, 16, 0},                /* more bytes than memory */
        {UINT64_C(0x100000000), &page_bytes, 16, 16, 0}, /* no 32-bit address */
        {0xfffffff0, &page_bytes, 16, 17, 0},            /* wraps */
        {0x1000, &page_bytes, 16, UINT64_C(1) << 40, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct core_writer_image image = {.segments = &wrong[i], .segment_count = 1};
        struct scratch scratch = scratch_open();
        struct cdacq_error error = {0};
        uint64_t size = 77;
        ck_assert_int_eq(core_writer_write(scratch.file, &image, &size, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_int_ne(error.message[0], '\0');
        ck_assert_uint_eq(size, 77);
        ck_assert_int_eq(ftello(scratch.file), 0);
        scratch_close(&scratch);
    }
    struct core_writer_mapping mapping = {0x2000, 0x1000, 0, "/x"};
    struct core_writer_image image = {.mappings = &mapping, .mapping_count = 1};
    struct scratch scratch = scratch_open();
    ck_assert_int_eq(core_writer_write(scratch.file, &image, NULL, NULL), CDACQ_ERR_ARGUMENT);
    mapping = (struct core_writer_mapping){0x1000, 0x2000, 0x1001, "/x"};
    image.page_size = 4096;
    ck_assert_int_eq(core_writer_write(scratch.file, &image, NULL, NULL), CDACQ_ERR_ARGUMENT);
    /* The last byte of the address space can be written. */
    struct core_writer_segment last = {0xffffffff, &byte, 1, 1, 0};
    image = (struct core_writer_image){.segments = &last, .segment_count = 1};
    ck_assert_int_eq(core_writer_write(scratch.file, &image, NULL, NULL), CDACQ_OK);
    last.vaddr = UINT64_MAX;
    image.wide = true;
    ck_assert_int_eq(core_writer_write(scratch.file, &image, NULL, NULL), CDACQ_OK);
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_full_disk)
{
    struct core_writer_image image = usual_image(1);
    struct cdacq_error error = {0};
    FILE *full = fopen("/dev/full", "wb");
    if (!full)
        return;
    ck_assert_int_eq(core_writer_write(full, &image, NULL, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "space"));
    fclose(full);
}
END_TEST

/* A pipe cannot seek. */
START_TEST(a_stream)
{
    struct core_writer_image image = usual_image(_i);
    int ends[2];
    uint64_t size;
    static uint8_t read_back[256 * 1024];
    ck_assert_int_eq(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, sizeof read_back);
    FILE *file = fdopen(ends[1], "wb");
    ck_assert_int_eq(core_writer_write(file, &image, &size, NULL), CDACQ_OK);
    fclose(file);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], read_back + got, sizeof read_back - got)) > 0;)
        got += (size_t)n;
    ck_assert_uint_eq(got, size);
    ck_assert_mem_eq(read_back, ELFMAG, SELFMAG);
    close(ends[0]);
}
END_TEST

/* The output of a command, without what depends on the version of the tool. */
static size_t run(const char *command, const char *path, char *output, size_t size)
{
    char line[256];
    snprintf(line, sizeof line, "LC_ALL=C %s %s 2>&1", command, path);
    FILE *pipe = popen(line, "r");
    size_t got = pipe ? fread(output, 1, size - 1, pipe) : 0;
    output[got] = '\0';
    return pipe && pclose(pipe) == 0 ? got : 0;
}

static char output[1024 * 1024];

START_TEST(readelf_agrees)
{
    struct core_writer_image image = usual_image(_i);
    struct scratch scratch = scratch_open();
    char path[64];
    image.vdso = 0x7ff000;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), scratch.fd);
    write_image(&scratch, &image);
    if (run("readelf", "--version", output, sizeof output)) {
        ck_assert_uint_gt(run("readelf -aW", path, output, sizeof output), 0);
        ck_assert_ptr_null(strstr(output, "Warning"));
        ck_assert_ptr_null(strstr(output, "Error"));
        ck_assert_ptr_nonnull(strstr(output, "CORE (Core file)"));
        ck_assert_ptr_nonnull(strstr(output, "NT_PRPSINFO"));
        ck_assert_ptr_nonnull(strstr(output, "NT_FILE"));
        ck_assert_ptr_nonnull(strstr(output, "NT_AUXV"));
    }
    if (run("eu-readelf", "--version", output, sizeof output)) {
        ck_assert_uint_gt(run("eu-readelf -n", path, output, sizeof output), 0);
        ck_assert_ptr_nonnull(strstr(output, "SYSINFO_EHDR: 0x7ff000"));
        ck_assert_ptr_nonnull(strstr(output, "2 files:"));
        ck_assert_ptr_nonnull(strstr(output, "/mock/second one.dll"));
        ck_assert_ptr_nonnull(strstr(output, "00010000-00020000 00003000"));
    }
    scratch_close(&scratch);
}
END_TEST

#define PAC_MASK UINT64_C(0x7f000000000000)

static const uint16_t thread_machines[] = {EM_386, EM_X86_64, EM_ARM, EM_AARCH64, EM_RISCV};

START_TEST(threads_with_registers)
{
    const struct register_machine *machine = register_machine_find(thread_machines[_i]);
    struct core_writer_image image = usual_image(0);
    struct core_writer_thread written[3] = {0};
    struct registers registers[3] = {0};
    uint8_t words[3][REGISTERS_KERNEL_SIZE];
    image.machine = machine->elf_machine;
    image.wide = machine->word_size == 8;
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < machine->count; k++)
            register_set(&registers[i], k, UINT32_MAX / (i + 2) + k);
        written[i] = (struct core_writer_thread){
            .tid = (int)(i + 4),
            .signal = SIGSEGV,
            .died = !i,
            .registers = words[i],
            .registers_size = registers_to_kernel(machine, &registers[i], image.big_endian, words[i]),
            .pac_mask = machine->elf_machine == EM_AARCH64 ? PAC_MASK : 0,
        };
    }
    image.threads = written;
    image.thread_count = ARRAY_SIZE(written);
    struct scratch scratch = scratch_open();
    struct file_policy policy = {0};
    struct threads threads;
    struct cdacq_error error;
    write_image(&scratch, &image);
    struct target *target = open_core(scratch.path, &policy);
    ck_assert_msg(target_threads(target, &threads, &error) == CDACQ_OK, "%s", error.message);
    ck_assert_uint_eq(threads.count, ARRAY_SIZE(written));
    ck_assert_uint_eq(target->pac_mask, written[0].pac_mask);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(threads.items[i].tid, written[i].tid);
        ck_assert_int_eq(threads.items[i].signal, i ? 0 : SIGSEGV);
        ck_assert(threads.items[i].died == written[i].died);
        for (unsigned k = 0; k < machine->count; k++)
            if (register_is_known(&threads.items[i].registers, k))
                ck_assert_uint_eq(threads.items[i].registers.values[k], registers[i].values[k]);
        ck_assert_uint_eq(threads.items[i].registers.values[machine->pc], registers[i].values[machine->pc]);
        ck_assert_uint_eq(threads.items[i].registers.values[machine->sp], registers[i].values[machine->sp]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(segments); i++)
        check_segment(target, &segments[i]);
    threads_deinit(&threads);
    target_destroy(target);
    scratch_close(&scratch);
}
END_TEST

/* A snapshot has zeros for registers that could not be read. Of other cores, they are what the core says. */
START_TEST(a_thread_without_registers)
{
    bool is_snapshot = _i;
    const struct register_machine *machine = register_machine_find(EM_X86_64);
    struct core_writer_image image = usual_image(0);
    const struct registers none = {.known = 0};
    uint8_t words[REGISTERS_KERNEL_SIZE];
    const struct core_writer_thread written = {
        .tid = 4,
        .registers = words,
        .registers_size = registers_to_kernel(machine, &none, image.big_endian, words),
    };
    image.machine = EM_X86_64;
    image.wide = true;
    image.marked = is_snapshot;
    image.threads = &written;
    image.thread_count = 1;
    struct scratch scratch = scratch_open();
    struct file_policy policy = {0};
    struct threads threads;
    struct cdacq_error error;
    write_image(&scratch, &image);
    struct target *target = open_core(scratch.path, &policy);
    ck_assert_msg(target_threads(target, &threads, &error) == CDACQ_OK, "%s", error.message);
    ck_assert_uint_eq(threads.count, 1);
    ck_assert_int_eq(threads.items[0].tid, 4);
    ck_assert_int_eq(threads.items[0].registers.known == 0, is_snapshot);
    threads_deinit(&threads);
    target_destroy(target);
    scratch_close(&scratch);
}
END_TEST

static void check_process(const struct core_writer_image *image, const char *arguments, bool is_cut)
{
    static struct target_process process;
    struct scratch scratch = scratch_open();
    struct file_policy policy = {0};
    struct threads threads = {0};
    struct cdacq_error error;
    write_image(&scratch, image);
    struct target *target = open_core(scratch.path, &policy);
    process = (struct target_process){0};
    target->ops->process(target, &process);
    ck_assert_str_eq(process.arguments, arguments);
    ck_assert_int_eq(process.arguments_cut, is_cut);
    ck_assert_str_eq(process.program, image->program ? image->program : "");
    ck_assert_msg(target_threads(target, &threads, &error) == CDACQ_OK, "%s", error.message);
    for (size_t i = 0; i < threads.count; i++) {
        const char *name = image->threads[i].name ? image->threads[i].name : i ? "" : image->name;
        ck_assert_int_eq(strncmp(threads.items[i].name, name, sizeof threads.items[i].name - 1), 0);
        ck_assert_uint_eq(strlen(threads.items[i].name), MIN(strlen(name), sizeof threads.items[i].name - 1));
    }
    threads_deinit(&threads);
    target_destroy(target);
    scratch_close(&scratch);
}

/* Texts for which the kernel's notes have no room. */
START_TEST(texts_of_the_process)
{
    static char arguments[5000], kept[4096];
    struct core_writer_image image = usual_image(0);
    const uint8_t words[REGISTERS_KERNEL_SIZE] = {1, 1, 1, 1};
    struct core_writer_thread written[] = {
        {.tid = 4, .registers = words, .registers_size = sizeof words, .name = "dotnet"},
        {.tid = 5, .registers = words, .registers_size = sizeof words, .name = ".NET SynchManag"},
        {.tid = 6, .registers = words, .registers_size = sizeof words},
        {.tid = 7, .registers = words, .registers_size = sizeof words, .name = "a name that no kernel has"},
    };
    image.machine = EM_X86_64;
    image.wide = true;
    image.marked = true;
    image.pid = 4;
    image.name = "first";
    image.threads = written;
    image.thread_count = ARRAY_SIZE(written);
    const size_t lengths[] = {1, 78, 79, 80, 81, 300, 4094, 4095, 4096, 4999};
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        memset(arguments, 'a', lengths[i]);
        arguments[lengths[i]] = '\0';
        memcpy(kept, arguments, sizeof kept - 1);
        image.arguments = arguments;
        image.program = i % 2 ? "/usr/share/dotnet/dotnet" : NULL;
        written[0].name = i % 2 ? "dotnet" : NULL;
        check_process(&image, kept, lengths[i] >= 4095);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("core_writer");
    TCase *tcase = tcase_create("core_writer");
    tcase_add_loop_test(tcase, round_trip, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, given_notes_and_bytes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, pages_can_be_mapped, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, same_image_same_bytes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, page_sizes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, nothing_in_it, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, many_segments, 0, ARCH_COUNT);
    tcase_add_test(tcase, what_does_not_fit);
    tcase_add_test(tcase, a_full_disk);
    tcase_add_loop_test(tcase, a_stream, 0, ARCH_COUNT);
    tcase_add_test(tcase, texts_of_the_process);
    tcase_add_loop_test(tcase, a_thread_without_registers, 0, 2);
    tcase_add_loop_test(tcase, readelf_agrees, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, threads_with_registers, 0, ARRAY_SIZE(thread_machines));
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
