/*
 * mutants.c: cores and perf files that were changed by structure, through every command of the tool, in this process.
 * The changes know what the bytes are: pointers are made to point to other valid places, to themselves and to what
 * contains them (lists become cycles), counts and sizes become extreme, tables are swapped, the descriptor's text is
 * edited. Every case is bounded in time and memory.
 *
 *     mutants [--seed N] [--count N] [--seconds N] CORE... [FILE.dump | FILE.map]...
 *
 * Without cores, those of synthetic processes are used. A case depends on its number and the bases only: after a
 * failure, `--seed NUMBER --count 1` repeats it.
 */
#include <elf.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "src/cli/arguments.h"
#include "src/cli/commands.h"
#include "tests/support/mock_support.h"
#include "util/file.h"

enum {
    BASE_MAX = 32,
    UNDO_MAX = 64,
    CHANGES_MAX = 6,
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__) || !defined(__OPTIMIZE__)
    SLOWEST_MS = 30000, /* of a case, CPU time; these builds take ten times as long and more */
#else
    SLOWEST_MS = 2000,
#endif
    HANG = 60,         /* seconds */
    MEMORY_MAX = 256,  /* MiB that a case may add */
    DIFFERENTIAL = 16, /* every so many cases */
    ADDRESSES = 24,
};

struct part {
    uint64_t begin, offset, size;
};

DEFINE_VECTOR(parts, struct part);
DEFINE_VECTOR(numbers, uint64_t);

struct base {
    const char *name;
    uint8_t *bytes; /* a shared mapping of `fd` */
    size_t size;
    int fd;
    bool is_core, wide, big;
    struct parts parts;
    struct numbers pointers; /* file offsets of words that point into the core */
    struct numbers texts;    /* file offsets where JSON begins */
    struct cdacq_mapping *mappings;
    size_t mapping_count;
};

static struct {
    uint64_t offset;
    uint8_t bytes[256];
    size_t size;
} undo[UNDO_MAX];

static size_t undo_count;
static struct base bases[BASE_MAX];
static size_t base_count;
static uint64_t case_number;
static int messages, nowhere;

/* Where there are sanitizers, their reports go where messages go. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static void stop_with(const char *what)
{
    dprintf(messages, "mutants: case %llu: %s\n", (unsigned long long)case_number, what);
    abort();
}

static void on_alarm(int number)
{
    (void)number;
    stop_with("hangs");
}

/* ---- Bases ---- */

static uint64_t word_at(const struct base *base, uint64_t offset)
{
    const uint8_t *p = base->bytes + offset;
    return base->wide ? load_u64(p, base->big) : load_u32(p, base->big);
}

static const struct part *part_at(const struct base *base, uint64_t address)
{
    for (size_t low = 0, high = base->parts.count; low < high;) {
        size_t middle = (low + high) / 2;
        const struct part *part = &base->parts.items[middle];
        if (address < part->begin)
            high = middle;
        else if (address - part->begin >= part->size)
            low = middle + 1;
        else
            return part;
    }
    return NULL;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void list_parts(struct base *base)
{
    base->wide = base->bytes[EI_CLASS] == ELFCLASS64;
    base->big = base->bytes[EI_DATA] == ELFDATA2MSB;
    size_t entry = base->wide ? 56 : 32;
    uint64_t table = base->wide ? load_u64(base->bytes + 32, base->big) : load_u32(base->bytes + 28, base->big);
    unsigned count = load_u16(base->bytes + (base->wide ? 56 : 44), base->big);
    for (unsigned i = 0; i < count && range_fits(table + i * entry, entry, base->size); i++) {
        const uint8_t *p = base->bytes + table + i * entry;
        struct part part =
            base->wide
                ? (struct part){load_u64(p + 16, base->big), load_u64(p + 8, base->big), load_u64(p + 32, base->big)}
                : (struct part){load_u32(p + 8, base->big), load_u32(p + 4, base->big), load_u32(p + 16, base->big)};
        if (load_u32(p, base->big) == PT_LOAD && part.size && range_fits(part.offset, part.size, base->size))
            parts_append(&base->parts, part);
    }
    if (base->parts.count)
        qsort(base->parts.items, base->parts.count, sizeof *base->parts.items, compare_parts);
}

static void list_pointers(struct base *base)
{
    size_t word = base->wide ? 8 : 4;
    for (size_t i = 0; i < base->parts.count; i++)
        for (uint64_t at = base->parts.items[i].offset, end = at + base->parts.items[i].size; at + word <= end;
             at += word)
            if (part_at(base, word_at(base, at)))
                numbers_append(&base->pointers, at);
    for (const uint8_t *at = base->bytes; (at = memmem(at, base->size - (size_t)(at - base->bytes), "{\"", 2)); at += 2)
        if (!base->texts.count || (uint64_t)(at - base->bytes) > base->texts.items[base->texts.count - 1] + 4096)
            numbers_append(&base->texts, (uint64_t)(at - base->bytes));
}

/* A copy in memory, with a path, of which the files that a core names cannot be found here. */
static void add_base(const char *path)
{
    struct stat st;
    int fd = base_count < BASE_MAX ? file_open(path, &st) : -1;
    if (fd < 0) {
        fprintf(stderr, "mutants: %s cannot be used\n", path);
        exit(2);
    }
    struct base *base = &bases[base_count++];
    *base = (struct base){.name = strdup(path), .size = (size_t)st.st_size, .fd = memfd_create("mutant", MFD_CLOEXEC)};
    if (base->fd < 0 || ftruncate(base->fd, st.st_size) < 0)
        exit(2);
    base->bytes = mmap(NULL, base->size, PROT_READ | PROT_WRITE, MAP_SHARED, base->fd, 0);
    if (base->bytes == MAP_FAILED || file_read_at(fd, 0, base->bytes, base->size) != base->size)
        exit(2);
    close(fd);
    base->is_core = base->size > EI_NIDENT && memcmp(base->bytes, ELFMAG, SELFMAG) == 0;
    if (!base->is_core)
        return;
    for (uint8_t *at = base->bytes; (at = memmem(at, base->size - (size_t)(at - base->bytes), "/usr/", 5)); at += 5)
        at[1] = 'x';
    list_parts(base);
    list_pointers(base);
}

START_TEST(add_synthetic)
{
    for (int i = 0; i < 12; i++) {
        char path[] = "/tmp/cdacq-mutant-XXXXXX";
        struct cdacq_error error;
        struct sample_process sample = sample_build(i % ARCH_COUNT, (uint64_t)i,
                                                    i % 3 == 0   ? 1
                                                    : i % 3 == 1 ? 2
                                                                 : MOCK_NET_11,
                                                    i % 2 == 0 || i > 7);
        mock_publish(sample.mock, NULL);
        int fd = mkstemp(path);
        if (fd < 0 || !mock_write_core(sample.mock, path, &error))
            exit(2);
        close(fd);
        add_base(path);
        unlink(path);
        sample_destroy(&sample);
    }
}
END_TEST

/* The synthetic processes check themselves, which they can do in a test only. */
static void run_add_synthetic(void)
{
    Suite *suite = suite_create("mutants");
    TCase *tests = tcase_create("bases");
    tcase_add_test(tests, add_synthetic);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    if (srunner_ntests_failed(runner))
        exit(2);
    srunner_free(runner);
}

/* ---- Changes ---- */

static void change(struct base *base, uint64_t offset, const void *bytes, size_t size)
{
    if (undo_count == UNDO_MAX || size > sizeof undo[0].bytes || !range_fits(offset, size, base->size))
        return;
    undo[undo_count].offset = offset;
    undo[undo_count].size = size;
    memcpy(undo[undo_count++].bytes, base->bytes + offset, size);
    memmove(base->bytes + offset, bytes, size);
}

static void restore(struct base *base)
{
    while (undo_count) {
        undo_count--;
        memcpy(base->bytes + undo[undo_count].offset, undo[undo_count].bytes, undo[undo_count].size);
    }
}

static void set_word(struct base *base, uint64_t offset, uint64_t value)
{
    uint8_t bytes[8];
    if (base->wide)
        store_u64(bytes, value, base->big);
    else
        store_u32(bytes, (uint32_t)value, base->big);
    change(base, offset, bytes, base->wide ? 8 : 4);
}

static uint64_t any_of(struct random *random, const struct numbers *numbers)
{
    return numbers->items[random_below(random, numbers->count)];
}

/* The address of a byte of the file. */
static uint64_t address_of(const struct base *base, uint64_t offset)
{
    for (size_t i = 0; i < base->parts.count; i++)
        if (offset - base->parts.items[i].offset < base->parts.items[i].size)
            return base->parts.items[i].begin + (offset - base->parts.items[i].offset);
    return 0;
}

static uint64_t any_offset(struct random *random, const struct base *base)
{
    if (base->pointers.count && random_below(random, 3)) /* structures have pointers; most other bytes are not read */
        return any_of(random, &base->pointers) + 4 * random_below(random, 16);
    if (base->parts.count && random_below(random, 4)) {
        const struct part *part = &base->parts.items[random_below(random, base->parts.count)];
        return part->offset + random_below(random, part->size);
    }
    return random_below(random, base->size);
}

static void change_pointer(struct base *base, struct random *random)
{
    if (!base->pointers.count)
        return;
    uint64_t at = any_of(random, &base->pointers), other = any_of(random, &base->pointers);
    uint64_t old = word_at(base, at);
    switch (random_below(random, 8)) {
    case 0: /* to itself */
        set_word(base, at, address_of(base, at));
        break;
    case 1: /* to what may contain it */
        set_word(base, at, address_of(base, at) - 8 * random_below(random, 12));
        break;
    case 2: /* to another pointer */
        set_word(base, at, address_of(base, other));
        break;
    case 3: /* what another one points to */
        set_word(base, at, word_at(base, other));
        break;
    case 4: /* two are swapped */
        set_word(base, at, word_at(base, other));
        set_word(base, other, old);
        break;
    case 5:
        set_word(base, at, old + random_below(random, 65) - 32);
        break;
    case 6: /* beyond what there is, or at the end of the address space */
        set_word(base, at,
                 random_below(random, 2) ? 0 - random_below(random, 4096) : old + (random_below(random, 4) << 20));
        break;
    default:
        set_word(base, at, random_below(random, 3));
    }
}

static void change_size(struct base *base, struct random *random)
{
    static const uint64_t extremes[] = {
        0,        1,          2,          0x7f,       0x80,       0xff,      0x7fff,     0xffff,           0x10000,
        0xffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, INT64_MAX, UINT64_MAX, UINT64_MAX - 4095};
    uint64_t value = extremes[random_below(random, ARRAY_SIZE(extremes))];
    uint8_t bytes[8];
    unsigned width = 1u << random_below(random, 4);
    store_u64(bytes, value, base->big);
    change(base, any_offset(random, base) & ~(uint64_t)(width - 1), base->big ? bytes + 8 - width : bytes, width);
}

static void change_text(struct base *base, struct random *random)
{
    static const char *const pieces[] = {"0",       "-1",      "99999999999999999999",
                                         "\"",      "[",       "]",
                                         "{",       "}",       ",",
                                         ":",       "\\u0000", "null",
                                         "\"!\":0", "1e9",     "[0]",
                                         "[65535]", "//",      " "};
    if (!base->texts.count)
        return;
    uint64_t at = any_of(random, &base->texts) + random_below(random, 4096);
    const char *piece = pieces[random_below(random, ARRAY_SIZE(pieces))];
    change(base, at, piece, strlen(piece));
}

static void swap_areas(struct base *base, struct random *random)
{
    uint8_t bytes[256];
    uint64_t a = any_offset(random, base) & ~UINT64_C(7), b = any_offset(random, base) & ~UINT64_C(7);
    size_t size = 8u << random_below(random, 6);
    if (!range_fits(a, size, base->size) || !range_fits(b, size, base->size))
        return;
    memcpy(bytes, base->bytes + b, size);
    uint8_t other[256];
    memcpy(other, base->bytes + a, size);
    change(base, a, bytes, size);
    change(base, b, other, size);
}

static void change_byte(struct base *base, struct random *random)
{
    uint8_t byte = (uint8_t)random_below(random, 256);
    change(base, any_offset(random, base), &byte, 1);
}

static void mutate(struct base *base, struct random *random)
{
    static void (*const changes[])(struct base *, struct random *) = {
        change_pointer, change_pointer, change_pointer, change_size, change_size, change_text, swap_areas, change_byte};
    for (uint64_t n = 1 + random_below(random, CHANGES_MAX); n > 0; n--)
        changes[random_below(random, ARRAY_SIZE(changes))](base, random);
}

/* ---- Commands ---- */

static void run_command(char **arguments, int count)
{
    struct invocation invocation;
    optind = 0; /* getopt begins anew */
    if (arguments_parse(count, arguments, &invocation) == ARGUMENTS_RUN) {
        int status = invocation.command->run(&invocation);
        if (status < 0 || status > 2)
            stop_with("an exit code that no command has");
    }
    arguments_deinit(&invocation);
}

static const struct base *any_perf_file(struct random *random)
{
    size_t first = random_below(random, base_count);
    for (size_t i = 0; i < base_count; i++)
        if (!bases[(first + i) % base_count].is_core)
            return &bases[(first + i) % base_count];
    return NULL;
}

static void run_core(const struct base *base, struct random *random)
{
    static char *const names[] = {"info",       "ip2method", "inspect", "methods", "perfmap", "jitdump",
                                  "descriptor", "snapshot",  "stack",   "report",  "verify",  "elf"};
    char path[64], file[64], ips[4][24];
    char *name = names[random_below(random, ARRAY_SIZE(names))];
    if (!command_find(name))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", base->fd);
    char *arguments[24] = {"mutants", name, "--work-max=2M", "--memory-max=32M", path};
    int count = 5;
    const struct base *perf = strcmp(name, "verify") == 0 ? any_perf_file(random) : NULL;
    if (strcmp(name, "verify") == 0) {
        if (!perf)
            return;
        snprintf(file, sizeof file, "/proc/self/fd/%d", perf->fd);
        arguments[count++] = file;
    }
    arguments[count++] = "-o";
    arguments[count++] = "/dev/null";
    if (strcmp(name, "ip2method") == 0 || strcmp(name, "inspect") == 0)
        for (int i = 0; i < 4; i++) {
            uint64_t ip = base->pointers.count ? word_at(base, any_of(random, &base->pointers)) : 0;
            snprintf(ips[i], sizeof ips[i], "%llx", (unsigned long long)(ip + random_below(random, 64)));
            arguments[count++] = ips[i];
        }
    static char *const styles[] = {"--names=csharp", "--names=sos", "--names=il", "--names=source"};
    const struct command *command = command_find(name);
    if (command->options & OPTIONS_NAMES)
        arguments[count++] = styles[random_below(random, ARRAY_SIZE(styles))];
    if (command->options & OPTIONS_METHODS) {
        arguments[count++] = "--r2r=all";
        arguments[count++] = "--stubs";
    }
    if (command->options & OPTIONS_RESULT && random_below(random, 2))
        arguments[count++] = "--json";
    if (command->options & OPTIONS_SNAPSHOT)
        arguments[count++] = "--stacks";
    run_command(arguments, count);
}

static void run_perf_file(const struct base *base)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", base->fd);
    char *arguments[] = {"mutants", "records", path, "-o", "/dev/null", NULL};
    run_command(arguments, 5);
}

/* ---- One answer from every carrier ---- */

static bool span_at(void *context, uint64_t address, uint64_t *begin, uint64_t *end, const void **bytes)
{
    const struct base *base = context;
    const struct part *part = part_at(base, address);
    if (!part)
        return false;
    *begin = part->begin;
    *end = part->begin + part->size;
    *bytes = base->bytes + part->offset;
    return true;
}

static size_t read_at(void *context, uint64_t address, void *buffer, size_t size)
{
    size_t done = 0;
    uint64_t begin, end;
    const void *bytes;
    while (done < size && span_at(context, address + done, &begin, &end, &bytes)) {
        size_t n = (size_t)MIN(end - (address + done), (uint64_t)(size - done));
        memcpy((uint8_t *)buffer + done, (const uint8_t *)bytes + (address + done - begin), n);
        done += n;
    }
    return done;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return hash_u64(value, hash * 31 + 7);
}

/* What the target answers: no texts of errors, which may name what a carrier has and another lacks. */
static uint64_t answers(struct cdacq_target *target, const uint64_t *ips)
{
    struct cdacq_session *session;
    struct cdacq_error error;
    uint64_t hash = 1;
    if (cdacq_session_create(target, &session, &error) < 0)
        return mix(hash, (uint64_t)error.status);
    for (int i = 0; i < ADDRESSES; i++) {
        struct cdacq_method method = {.size = sizeof method};
        enum cdacq_status status = cdacq_session_method_at(session, ips[i], &method, &error);
        hash = mix(hash, (uint64_t)status);
        if (status < 0)
            continue;
        hash = mix(hash, method.answer);
        hash = mix(hash, method.kind);
        hash = mix(hash, method.code_start);
        hash = mix(hash, method.offset);
        hash = mix(hash, (uint64_t)method.il_offset);
        if (method.name)
            hash = hash_string(method.name, hash);
    }
    cdacq_session_destroy(session);
    return hash;
}

static void compare_carriers(const struct base *base, struct random *random)
{
    char path[64];
    uint64_t ips[ADDRESSES], hashes[4];
    struct cdacq_error error;
    struct cdacq_target *target;
    snprintf(path, sizeof path, "/proc/self/fd/%d", base->fd);
    for (int i = 0; i < ADDRESSES; i++)
        ips[i] = base->pointers.count ? word_at(base, any_of(random, &base->pointers)) + random_below(random, 64) : 0;
    for (int i = 0; i < 4; i++) {
        struct cdacq_options options = {.size = sizeof options, .flags = i == 1 ? CDACQ_OPEN_PREAD : 0};
        struct cdacq_memory memory = {
            .size = sizeof memory,
            .context = (void *)(uintptr_t)base,
            .span_at = i == 2 ? span_at : NULL,
            .read = i == 3 ? read_at : NULL,
            .mappings = base->mappings,
            .mapping_count = base->mapping_count,
            .elf_machine = load_u16(base->bytes + 18, base->big),
        };
        enum cdacq_status status = i < 2 ? cdacq_target_open_core(path, &options, &target, &error)
                                         : cdacq_target_open_memory(&memory, &options, &target, &error);
        hashes[i] = status < 0 ? (uint64_t)error.status : answers(target, ips);
        if (status >= 0)
            cdacq_target_close(target);
    }
    if (hashes[0] != hashes[1] || hashes[2] != hashes[3] || (base->mapping_count && hashes[0] != hashes[2]))
        stop_with("carriers of the same bytes give different answers");
}

/* The file mappings that the unchanged core names. */
static void list_mappings(struct base *base)
{
    char path[64];
    struct cdacq_target *target;
    const struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_PARTIAL};
    snprintf(path, sizeof path, "/proc/self/fd/%d", base->fd);
    if (cdacq_target_open_core(path, &options, &target, NULL) < 0)
        return;
    size_t count = target->target->mapping_count;
    base->mappings = calloc(count + 1, sizeof *base->mappings);
    for (size_t i = 0; base->mappings && i < count; i++) {
        const struct mapping *mapping = &target->target->mappings[i];
        base->mappings[base->mapping_count++] = (struct cdacq_mapping){
            sizeof *base->mappings, mapping->begin, mapping->end, mapping->offset, strdup(mapping->path)};
    }
    cdacq_target_close(target);
}

/* ---- The run ---- */

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static long resident_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static double run_case(uint64_t number)
{
    struct random random = {number * UINT64_C(0x9e3779b97f4a7c15)};
    struct base *base = &bases[random_below(&random, base_count)];
    case_number = number;
    alarm(HANG);
    dup2(nowhere, STDOUT_FILENO); /* which commands close */
    mutate(base, &random);
    double begin = cpu_seconds();
    if (!base->is_core)
        run_perf_file(base);
    else if (number % DIFFERENTIAL == 0)
        compare_carriers(base, &random);
    else
        run_core(base, &random);
    double took = cpu_seconds() - begin;
    restore(base);
    if (took * 1000 > SLOWEST_MS)
        stop_with("takes too long");
    return took;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, count = UINT64_MAX;
    double seconds = 1e9, slowest = 0, begin = cpu_seconds();
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(argv[++i], NULL);
        else
            add_base(argv[i]);
    }
    run_add_synthetic();
    for (size_t i = 0; i < base_count; i++)
        if (bases[i].is_core)
            list_mappings(&bases[i]);
    messages = dup(STDERR_FILENO);
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)messages);
    nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDERR_FILENO);
    signal(SIGALRM, on_alarm);
    long before = resident_mib();
    uint64_t done = 0, slowest_case = 0;
    for (; done < count && (done % 8 || cpu_seconds() - begin < seconds); done++) {
        double took = run_case(seed + done);
        slowest_case = took > slowest ? seed + done : slowest_case;
        slowest = MAX(took, slowest);
        if (resident_mib() - before > MEMORY_MAX * 4) /* sanitizers keep what is freed, up to their own bound */
            stop_with("takes too much memory");
    }
    dprintf(messages, "mutants: %llu cases of %zu bases, seed %llu, in %.0f s; slowest %.0f ms (case %llu), %ld MiB\n",
            (unsigned long long)done, base_count, (unsigned long long)seed, cpu_seconds() - begin, slowest * 1000,
            (unsigned long long)slowest_case, resident_mib() - before);
    return 0;
}
