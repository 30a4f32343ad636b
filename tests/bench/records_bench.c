/*
 * records_bench.c: what reading a jitdump costs, as a program sees it that links the library: every record, with and
 * without its code, beside reading the same bytes in the same blocks and looking for the end of every string. Prints
 * key=value lines, the best of several rounds. Uses nothing but cdacq.h.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cdacq.h"

enum { ROUNDS = 7, BLOCK = 64 * 1024 };

static volatile uint64_t sink;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "records_bench: %s: %s\n", what, why);
    exit(2);
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The least that any reader does: read every byte, and find every NUL. */
static uint64_t read_plainly(const char *path)
{
    static char block[BLOCK];
    uint64_t size = 0;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail(path, "cannot be opened");
    while ((n = read(fd, block, sizeof block)) > 0) {
        size += (uint64_t)n;
        for (const char *p = block, *end = block + n; p && (p = memchr(p, '\0', (size_t)(end - p)));) {
            sink++;
            while (p < end && !*p) /* a call each would be more than the reader does */
                p++;
        }
    }
    close(fd);
    return size;
}

static uint64_t read_records(const char *path, unsigned flags)
{
    struct cdacq_jitdump *jitdump;
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error error;
    enum cdacq_status status;
    uint64_t count = 0;
    if (cdacq_jitdump_open(path, flags, &jitdump, &error) < 0)
        fail(path, error.message);
    while ((status = cdacq_jitdump_next(jitdump, &record, &error)) == CDACQ_OK) {
        count++;
        if (record.kind == CDACQ_JITDUMP_LOAD)
            sink += record.as.load.name_length;
    }
    if (status < 0)
        fail(path, error.message);
    cdacq_jitdump_close(jitdump);
    return count;
}

int main(int argc, char **argv)
{
    double plain = 1e300, records = 1e300, with_code = 1e300;
    uint64_t count = 0, bytes = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: records_bench JITDUMP\n");
        return 64;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double t0 = now_ns();
        bytes = read_plainly(argv[1]);
        double t1 = now_ns();
        count = read_records(argv[1], 0);
        double t2 = now_ns();
        read_records(argv[1], CDACQ_JITDUMP_CODE);
        double t3 = now_ns();
        plain = t1 - t0 < plain ? t1 - t0 : plain;
        records = t2 - t1 < records ? t2 - t1 : records;
        with_code = t3 - t2 < with_code ? t3 - t2 : with_code;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("records=%" PRIu64 "\nbytes=%" PRIu64 "\nplain_ms=%.2f\nrecords_ms=%.2f\nwith_code_ms=%.2f\n", count, bytes,
           plain / 1e6, records / 1e6, with_code / 1e6);
    printf("records_ratio=%.2f\nwith_code_ratio=%.2f\nper_s=%.0f\npeak_rss_kb=%ld\n", records / plain,
           with_code / plain, (double)count / records * 1e9, usage.ru_maxrss);
    return 0;
}
