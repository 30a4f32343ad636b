#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/carrier/core_memory.h"

#ifndef MAP_FIXED_NOREPLACE /* glibc of Debian 12 has it */
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE = 4096 };

static const uint8_t *core;
static size_t core_size;
static bool wide, big;

struct core_range core_ranges[CORE_RANGE_MAX];
size_t core_range_count;

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static uint64_t word(uint64_t at, unsigned wide_offset, unsigned narrow_offset)
{
    return wide ? load_u64(core + at + wide_offset, big) : load_u32(core + at + narrow_offset, big);
}

static bool is_ours(uint64_t page)
{
    for (size_t i = 0; i < core_range_count; i++)
        if (page >= core_ranges[i].begin && page < core_ranges[i].end)
            return true;
    return false;
}

static void map(uint64_t begin, uint64_t end, int fd, uint64_t offset, const char *path)
{
    void *wanted = (void *)(uintptr_t)begin;
    int flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_ANONYMOUS : 0);
    void *got = mmap(wanted, end - begin, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
    if (got != wanted || core_range_count == CORE_RANGE_MAX) {
        fprintf(stderr, "0x%llx: cannot be mapped\n", (unsigned long long)begin);
        _exit(CORE_ADDRESS_TAKEN);
    }
    core_ranges[core_range_count++] = (struct core_range){begin, end, path ? strdup(path) : NULL, false};
}

/* Pages that no file is mapped to, and what the core holds. */
static void load_segment(uint64_t at)
{
    uint64_t offset = word(at, 8, 4), vaddr = word(at, 16, 8), size = word(at, 32, 16), whole = word(at, 40, 20);
    if (!size && whole)
        for (uint64_t page = align_up(vaddr, PAGE); page + PAGE <= vaddr + whole; page += PAGE)
            if (is_ours(page))
                munmap((void *)(uintptr_t)page, PAGE); /* a hole in a mapped file */
    if (!size)
        return;
    uint64_t begin = align_down(vaddr, PAGE), end = align_up(vaddr + size, PAGE);
    while (begin < end) {
        uint64_t stop = begin;
        while (stop < end && !is_ours(stop))
            stop += PAGE;
        if (begin < stop)
            map(begin, stop, -1, 0, NULL);
        begin = MAX(stop, begin + PAGE);
    }
    if (!range_fits(offset, size, core_size))
        fail("the core is cut");
    for (size_t i = 0; i < core_range_count; i++)
        if (vaddr >= core_ranges[i].begin && vaddr < core_ranges[i].end)
            core_ranges[i].is_code |= load_u32(core + at + (wide ? 4 : 24), big) & PF_X;
    memcpy((void *)(uintptr_t)vaddr, core + offset, size);
}

/* A file in memory of zeros that is long enough, again for the same name. */
static int make_memory_file(const char *name, uint64_t size)
{
    enum { FILES = 256 };
    static struct {
        const char *name;
        int fd;
    } files[FILES];
    size_t i = 0;
    struct stat st;
    while (i < FILES && files[i].name && strcmp(files[i].name, name) != 0)
        i++;
    if (i == FILES)
        fail("too many files");
    if (!files[i].name) {
        files[i].name = strdup(name);
        files[i].fd = memfd_create(path_basename(name), MFD_CLOEXEC);
    }
    if (fstat(files[i].fd, &st) < 0 || (st.st_size < (off_t)size && ftruncate(files[i].fd, (off_t)size) < 0))
        fail(name);
    return dup(files[i].fd);
}

/* A file of zeros that is long enough; its contents are private to the mapping. */
static int make_file(const char *directory, const char *name, uint64_t size)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s%s", directory, name);
    for (char *slash = strchr(path + strlen(directory) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_size < (off_t)size && ftruncate(fd, (off_t)size) < 0))
        fail(path);
    return fd;
}

static void map_files(uint64_t at, const char *directory)
{
    uint64_t note = word(at, 8, 4), size = word(at, 32, 16), unit = wide ? 8 : 4;
    for (uint64_t next; size >= 12; note += next, size -= MIN(next, size)) {
        uint64_t desc = 12 + align_up(load_u32(core + note, big), 4), desc_size = load_u32(core + note + 4, big);
        next = desc + align_up(desc_size, 4);
        if (load_u32(core + note + 8, big) != NT_FILE)
            continue;
        uint64_t list = note + desc, count = word(list, 0, 0), page = word(list, 8, 4);
        const char *path = (const char *)core + list + (2 + 3 * count) * unit;
        for (uint64_t i = 0; i < count; i++, path += strlen(path) + 1) {
            uint64_t entry = list + (2 + 3 * i) * unit;
            uint64_t begin = word(entry, 0, 0), end = align_up(word(entry, 8, 4), PAGE);
            uint64_t offset = word(entry, 16, 8) * page;
            if (begin % PAGE || offset % PAGE)
                continue; /* no kernel maps a file like this: just memory */
            uint64_t file_size = offset + (end - begin);
            int fd = directory ? make_file(directory, path, file_size) : make_memory_file(path, file_size);
            map(begin, end, fd, offset, path);
            close(fd);
        }
    }
}

void core_memory_load(const char *path, const char *directory)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        fail(path);
    core_size = (size_t)st.st_size;
    core = mmap(NULL, core_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (core == MAP_FAILED)
        fail(path);
    close(fd);
    wide = core[EI_CLASS] == ELFCLASS64;
    big = core[EI_DATA] == ELFDATA2MSB;
    uint64_t table = word(0, 32, 28), count = load_u16(core + (wide ? 56 : 44), big), entry_size = wide ? 56 : 32;
    for (uint32_t type = PT_NOTE;; type = PT_LOAD) {
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = table + i * entry_size;
            if (load_u32(core + at, big) == type && type == PT_NOTE)
                map_files(at, directory);
            else if (load_u32(core + at, big) == type)
                load_segment(at);
        }
        if (type == PT_LOAD)
            break;
    }
    munmap((void *)(uintptr_t)core, core_size);
}

void core_memory_make_executable(void)
{
    for (size_t i = 0; i < core_range_count; i++) {
        const struct core_range *range = &core_ranges[i];
        void *bytes = (void *)(uintptr_t)range->begin;
        if (range->path && range->is_code &&
            mprotect(bytes, range->end - range->begin, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
            fail(range->path);
    }
}
