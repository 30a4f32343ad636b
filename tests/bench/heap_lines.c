/*
 * heap_lines.c: the least that a walk of the heap of a core costs: one word of each cache line in which an object
 * begins, in the order of addresses, from the mapped file. Prints key=value lines, the best of several rounds. Uses
 * nothing but cdacq.h to find the objects.
 *
 *     heap_lines CORE
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cdacq.h"

enum { ROUNDS = 5, LINE = 64 };

static volatile uint64_t sink;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "heap_lines: %s: %s\n", what, why);
    exit(2);
}

static double processor_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The lines of the core's objects, each once, in order. */
static uint64_t *find_lines(const char *core, size_t *ret_count)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_heap_arrays *heap;
    struct cdacq_error error;
    if (cdacq_target_open_core(core, NULL, &target, &error) < 0 || cdacq_session_create(target, &session, &error) < 0 ||
        cdacq_session_read_heap(session, 0, NULL, &heap, NULL, &error) < 0)
        fail(core, error.message);
    uint64_t *lines = calloc(heap->object_count + 1, sizeof *lines);
    size_t count = 0;
    if (!lines)
        fail(core, "out of memory");
    for (size_t i = 0; i < heap->object_count; i++)
        lines[i] = heap->addresses[i] / LINE * LINE;
    qsort(lines, heap->object_count, sizeof *lines, by_number);
    for (size_t i = 0; i < heap->object_count; i++)
        if (i == 0 || lines[i] != lines[count - 1])
            lines[count++] = lines[i];
    printf("objects=%zu lines=%zu\n", heap->object_count, count);
    cdacq_heap_arrays_destroy(heap);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    *ret_count = count;
    return lines;
}

/* Puts the place of each line in the file in place of its address. Lines that the core lacks are left out. */
static size_t locate(const unsigned char *bytes, size_t size, uint64_t *lines, size_t count)
{
    Elf64_Ehdr header;
    memcpy(&header, bytes, sizeof header);
    size_t found = 0, next = 0;
    for (unsigned i = 0; i < header.e_phnum; i++) { /* segments are in the order of addresses */
        Elf64_Phdr segment;
        memcpy(&segment, bytes + header.e_phoff + i * sizeof segment, sizeof segment);
        while (segment.p_type == PT_LOAD && next < count && lines[next] < segment.p_vaddr + segment.p_filesz) {
            uint64_t line = lines[next++];
            if (line >= segment.p_vaddr && segment.p_offset + (line - segment.p_vaddr) + sizeof(uint64_t) <= size)
                lines[found++] = segment.p_offset + (line - segment.p_vaddr);
        }
    }
    return found;
}

static const unsigned char *map(int fd, size_t size)
{
    const unsigned char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        fail("the core", "cannot be mapped");
    return bytes;
}

static void unmap(const unsigned char *bytes, size_t size)
{
    munmap((void *)(uintptr_t)bytes, size);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 64;
    size_t count;
    uint64_t *lines = find_lines(argv[1], &count);
    struct stat st;
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        fail(argv[1], "cannot be opened");
    size_t size = (size_t)st.st_size;
    const unsigned char *whole = map(fd, size);
    count = locate(whole, size, lines, count);
    unmap(whole, size);
    double best = 0;
    for (unsigned round = 0; round < ROUNDS; round++) { /* each maps the file again, as a program does that starts */
        double begin = processor_us();
        const unsigned char *bytes = map(fd, size);
        for (size_t i = 0; i < count; i++) {
            uint64_t word;
            memcpy(&word, bytes + lines[i], sizeof word);
            sink += word;
        }
        double took = processor_us() - begin;
        best = round == 0 || took < best ? took : best;
        unmap(bytes, size);
    }
    printf("read=%zu cpu_us=%.0f\n", count, best);
    free(lines);
    close(fd);
    return 0;
}
