/*
 * mutants.c: files that were changed by their structure, through every command of the tool that takes them, in this
 * process: cores, compressed cores, jitdumps, perf maps, perf's text, folded stacks, descriptors, ELF and PE images,
 * PDBs. The changes know what the bytes are: pointers are made to point to other valid places, to themselves and to
 * what contains them (lists become cycles), counts and sizes become extreme, tables are swapped, texts are edited.
 * Every case is bounded in time and memory.
 *
 *     mutants [--seed N] [--count N] [--seconds N] [--keep FILE] FILE...
 *
 * The kind of a file follows from its first bytes, or, of texts, from its name (.map, .folded). Synthetic and
 * compressed cores, texts, and the jitdumps and perf maps of small cores are added. A case depends on its number and
 * the bases only: after a failure, `--seed NUMBER --count 1` repeats it, and --keep writes the mutant of the first case
 * to FILE.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/fuzz/mutant_bases.h"
#include "tests/fuzz/mutant_commands.h"
#include "tests/support/emulation.h"
#include "util/file.h"

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__) || !defined(__OPTIMIZE__)
    SLOWEST_MS = 30000, /* of a case, CPU time; these builds take ten times as long and more */
    IS_EXACT = false,   /* sanitizers keep what is freed, up to a bound of their own */
#else
    SLOWEST_MS = 1000,
    IS_EXACT = true,
#endif
    HANG = 60,         /* seconds */
    MEMORY_MAX = 256,  /* MiB that a case may add */
    DIFFERENTIAL = 16, /* every so many cases */
    LEAK_CHECK = 4096, /* likewise */
    ADDRESSES = 24,
};

static uint64_t case_number;
static int messages, nowhere;

/* Where there are sanitizers, their reports go where messages go. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void stop_with(const char *what)
{
    dprintf(messages, "mutants: case %llu: %s; the last command: %s\n", (unsigned long long)case_number, what,
            commands_last());
    commands_deinit();
    abort();
}

static void on_alarm(int number)
{
    (void)number;
    stop_with("hangs");
}

/* ---- One answer from every carrier ---- */

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **bytes, void *context)
{
    const struct base *base = context;
    const struct part *part = base_part_at(base, address);
    if (!part)
        return false;
    *begin = part->begin;
    *end = part->begin + part->size;
    *bytes = base->bytes + part->offset;
    return true;
}

static size_t read_at(uint64_t address, void *buffer, size_t size, void *context)
{
    size_t done = 0;
    uint64_t begin, end;
    const void *bytes;
    while (done < size && span_at(address + done, &begin, &end, &bytes, context)) {
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
    uint64_t ips[ADDRESSES], hashes[4];
    struct cdacq_error error;
    struct cdacq_target *target;
    for (int i = 0; i < ADDRESSES; i++)
        ips[i] = base_any_target(base, random);
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
        enum cdacq_status status = i < 2 ? cdacq_target_open_core(base->path, &options, &target, &error)
                                         : cdacq_target_open_memory(&memory, &options, &target, &error);
        hashes[i] = status < 0 ? (uint64_t)error.status : answers(target, ips);
        if (status >= 0)
            cdacq_target_close(target);
    }
    if (hashes[0] != hashes[1] || hashes[2] != hashes[3] ||
        (base->mapping_count && !base_headers_changed(base) && hashes[0] != hashes[2]))
        stop_with("carriers of the same bytes give different answers");
}

/* ---- The run ---- */

static void forget_peak(void)
{
    CLEANUP_CLOSE int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "5", 1);
}

/* The most memory since forget_peak(), or, where the kernel does not count that, ever. */
static long peak_mib(void)
{
    char status[4096] = "";
    CLEANUP_CLOSE int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, status, sizeof status - 1);
    const char *line = size > 0 ? strstr(status, "VmHWM:") : NULL;
    return line ? strtol(line + 6, NULL, 10) / 1024 : 0;
}

static void keep_mutant(const struct base *base, const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "w");
    if (!file || fstat(base->fd, &st) < 0 || fwrite(base->bytes, 1, (size_t)st.st_size, file) != (size_t)st.st_size ||
        fclose(file))
        stop_with("cannot be kept");
}

static double run_case(uint64_t number, const char *keep)
{
    struct random random = {number * UINT64_C(0x9e3779b97f4a7c15)};
    struct base *base = &bases[random_below(&random, base_count)];
    const char *problem = NULL;
    case_number = number;
    alarm((unsigned)time_bound(HANG));
    dup2(nowhere, STDOUT_FILENO); /* which commands close */
    base_mutate(base, &random);
    if (keep)
        keep_mutant(base, keep);
    double begin = cpu_seconds();
    if (base->kind == BASE_CORE && number % DIFFERENTIAL == 0)
        compare_carriers(base, &random);
    else
        problem = commands_run(base, &random);
    double took = cpu_seconds() - begin;
    commands_count(took);
    base_restore(base);
    if (problem)
        stop_with(problem);
    if (took * 1000 > time_bound(SLOWEST_MS))
        stop_with("takes too long");
    return took;
}

static void quiet(void)
{
    messages = dup(STDERR_FILENO);
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)messages);
    nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDERR_FILENO);
    dup2(nowhere, STDIN_FILENO);
    signal(SIGALRM, on_alarm);
}

struct run {
    uint64_t seed, count, done, slowest_case, largest_case;
    double seconds, slowest;
    long before, largest;
    const char *keep;
};

static void run_cases(struct run *run)
{
    double begin = cpu_seconds();
    run->before = peak_mib();
    for (; run->done < run->count && (run->done % 8 || cpu_seconds() - begin < run->seconds); run->done++) {
        uint64_t number = run->seed + run->done;
        if (IS_EXACT)
            forget_peak();
        double took = run_case(number, run->done ? NULL : run->keep);
        long memory = IS_EXACT || run->done % 64 == 0 ? peak_mib() - run->before : 0;
        if (memory > MEMORY_MAX * (IS_EXACT ? 1 : 4))
            stop_with("takes too much memory");
        if (run->done % LEAK_CHECK == LEAK_CHECK - 1 && __lsan_do_recoverable_leak_check &&
            __lsan_do_recoverable_leak_check())
            stop_with("or one since the last check leaks");
        run->slowest_case = took > run->slowest ? number : run->slowest_case;
        run->slowest = MAX(took, run->slowest);
        run->largest_case = memory > run->largest ? number : run->largest_case;
        run->largest = MAX(memory, run->largest);
    }
    dprintf(
        messages,
        "mutants: %llu cases of %zu bases, seed %llu, in %.0f s; slowest %.0f ms (case %llu), largest %ld MiB (case "
        "%llu)\n",
        (unsigned long long)run->done, base_count, (unsigned long long)run->seed, cpu_seconds() - begin,
        run->slowest * 1000, (unsigned long long)run->slowest_case, run->largest,
        (unsigned long long)run->largest_case);
    commands_print(messages);
}

int main(int argc, char **argv)
{
    struct run run = {.seed = 1, .count = UINT64_MAX, .seconds = 1e9};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--seed") == 0)
            run.seed = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--count") == 0)
            run.count = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--seconds") == 0)
            run.seconds = strtod(argv[++i], NULL);
        else if (more && strcmp(argv[i], "--keep") == 0)
            run.keep = argv[++i];
        else
            bases_add_file(argv[i]);
    }
    bases_add_synthetic();
    bases_add_texts();
    bases_add_packed();
    bases_list_mappings();
    commands_init();
    quiet();
    commands_add_bases();
    run_cases(&run);
    commands_deinit();
    return 0;
}
