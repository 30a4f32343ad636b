/*
 * bench.c: the cost of the library in a program that links it: opening a target, the first question, many questions in
 * batches, and single questions once everything is warm. Prints key=value lines, times by the monotonic clock; counts
 * are those of the whole process up to there. Uses nothing but cdacq.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cdacq.h"

enum { DEFAULT_BATCH = 1024, DEFAULT_PASSES = 2 };

struct bench {
    const char *target_name;
    uint64_t *ips;
    size_t count, batch;
    unsigned passes;
    struct cdacq_target *target;
    struct cdacq_session *session;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "cdacq_bench: %s: %s\n", what, why);
    exit(2);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void print_usage_counts(const char *when)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%s_minor_faults=%ld\n%s_major_faults=%ld\n%s_peak_rss_kb=%ld\n", when, usage.ru_minflt, when,
           usage.ru_majflt, when, usage.ru_maxrss);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        fail("memory", "out of memory");
    return memory;
}

/* One hexadecimal address a line, with or without 0x. */
static void read_ips(struct bench *bench, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, strerror(errno));
    size_t capacity = 0;
    for (char line[64]; fgets(line, sizeof line, file);) {
        if (bench->count == capacity) {
            capacity = capacity ? 2 * capacity : 4096;
            bench->ips = realloc(bench->ips, capacity * sizeof *bench->ips);
            if (!bench->ips)
                fail("memory", "out of memory");
        }
        char *end;
        bench->ips[bench->count++] = strtoull(line, &end, 16);
        if (end == line)
            fail(path, "a line that is not an address");
    }
    fclose(file);
    if (!bench->count)
        fail(path, "no addresses");
}

static void open_target(struct bench *bench)
{
    struct cdacq_error error;
    char *end;
    unsigned long pid = strtoul(bench->target_name, &end, 10);
    bool is_pid = *bench->target_name && !*end;
    /* All addresses are one question about a process, as for the tool. */
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_KEEP};
    uint64_t start = now_ns();
    enum cdacq_status status = is_pid ? cdacq_target_open_pid((int)pid, &options, &bench->target, &error)
                                      : cdacq_target_open_core(bench->target_name, NULL, &bench->target, &error);
    if (status == CDACQ_OK)
        status = cdacq_session_create(bench->target, &bench->session, &error);
    if (status < 0)
        fail(bench->target_name, error.message);
    printf("open_ms=%.4f\n", (double)(now_ns() - start) / 1e6);
}

static void ask_first(struct bench *bench)
{
    struct cdacq_error error;
    struct cdacq_method method = {.size = sizeof method};
    uint64_t start = now_ns();
    enum cdacq_status status = cdacq_session_method_at(bench->session, bench->ips[0], &method, &error);
    printf("first_ms=%.4f\n", (double)(now_ns() - start) / 1e6);
    if (status < 0)
        fail("the first address", error.message);
    printf("first=%s\n", status == CDACQ_OK && method.name ? method.name : "-");
}

/* All addresses, a batch at a time. The first pass forms the names. */
static void ask_all(struct bench *bench, unsigned pass, struct cdacq_method *methods)
{
    size_t managed = 0, named = 0, errors = 0;
    uint64_t name_bytes = 0, start = now_ns();
    for (size_t i = 0; i < bench->count; i += bench->batch) {
        size_t count = bench->count - i < bench->batch ? bench->count - i : bench->batch;
        cdacq_session_methods_at(bench->session, bench->ips + i, count, methods, NULL);
        for (size_t k = 0; k < count; k++) {
            managed += methods[k].answer == CDACQ_ANSWER_MANAGED;
            errors += methods[k].answer == CDACQ_ANSWER_ERROR;
            named += methods[k].name != NULL;
            name_bytes += methods[k].name_length;
        }
    }
    uint64_t took = now_ns() - start;
    printf("pass%u_ms=%.3f\npass%u_ns_each=%.2f\n", pass, (double)took / 1e6, pass,
           (double)took / (double)bench->count);
    if (pass == 1)
        printf("managed=%zu\nnamed=%zu\nerrors=%zu\nname_bytes=%" PRIu64 "\n", managed, named, errors, name_bytes);
}

static void ask_each(struct bench *bench)
{
    struct cdacq_method method = {.size = sizeof method};
    uint64_t start = now_ns();
    size_t named = 0;
    for (size_t i = 0; i < bench->count; i++)
        named += cdacq_session_method_at(bench->session, bench->ips[i], &method, NULL) == CDACQ_OK && method.name;
    printf("single_ns=%.2f\nsingle_named=%zu\n", (double)(now_ns() - start) / (double)bench->count, named);
}

static bool parse_arguments(struct bench *bench, int argc, char **argv)
{
    if (argc < 3)
        return false;
    bench->target_name = argv[1];
    for (int i = 3; i < argc; i += 2) {
        uint64_t value = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (!value || value > 1 << 20)
            return false;
        if (!strcmp(argv[i], "--batch"))
            bench->batch = (size_t)value;
        else if (!strcmp(argv[i], "--passes"))
            bench->passes = (unsigned)value;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench bench = {.batch = DEFAULT_BATCH, .passes = DEFAULT_PASSES};
    if (!parse_arguments(&bench, argc, argv)) {
        fprintf(stderr, "usage: cdacq_bench CORE|PID IP_FILE [--batch N] [--passes N]\n");
        return 64;
    }
    read_ips(&bench, argv[2]);
    struct cdacq_method *methods = allocate(bench.batch, sizeof *methods);
    methods->size = sizeof *methods;
    printf("addresses=%zu\nbatch=%zu\n", bench.count, bench.batch);
    print_usage_counts("start"); /* the list of addresses is in there */
    open_target(&bench);
    print_usage_counts("open");
    ask_first(&bench);
    print_usage_counts("first");
    for (unsigned pass = 1; pass <= bench.passes; pass++)
        ask_all(&bench, pass, methods);
    print_usage_counts("passes");
    ask_each(&bench);
    cdacq_session_destroy(bench.session);
    cdacq_target_close(bench.target);
    free(methods);
    free(bench.ips);
    return 0;
}
