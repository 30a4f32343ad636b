#include "target/link_map.h"

#include <link.h>

enum {
    SEGMENTS_MAX = 64,
    DYNAMIC_MAX = 128,    /* entries of the program's dynamic section */
    LIBRARIES_MAX = 4096, /* a .NET process has some 20 */
    NAME_SIZE = 512,      /* a longer name is too long */
};

/* The beginning of struct link_map in a 64-bit process. */
struct library {
    uint64_t address, name, dynamic, next;
};

/* The address of the dynamic section; 0 if it is not known. */
static uint64_t dynamic_section(struct live_pages *pages, const struct program_headers *program)
{
    uint8_t bytes[SEGMENTS_MAX * ELF_RECORD_MAX];
    size_t size = elf_segment_size(program->elf), count = (size_t)MIN(program->count, (uint64_t)SEGMENTS_MAX);
    uint64_t bias = 0, dynamic = 0;
    bool has_bias = false;
    if (live_pages_peek(pages, program->address, bytes, count * size) < count * size)
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct elf_segment segment = elf_segment_at(program->elf, bytes + i * size);
        if (segment.type == PT_PHDR) {
            bias = program->address - segment.vaddr;
            has_bias = true;
        } else if (segment.type == PT_DYNAMIC) {
            dynamic = segment.vaddr;
        }
    }
    return has_bias && dynamic ? bias + dynamic : 0;
}

/* The address of the first library; 0 if it is not known, or if the list is just being changed. */
static uint64_t first_library(struct live_pages *pages, const struct program_headers *program)
{
    uint8_t bytes[DYNAMIC_MAX * sizeof(Elf64_Dyn)];
    struct r_debug debug;
    uint64_t at = dynamic_section(pages, program);
    size_t size = elf_dynamic_size(program->elf), read = at ? live_pages_peek(pages, at, bytes, sizeof bytes) : 0;
    for (size_t i = 0; i < read / size; i++) {
        struct elf_dynamic entry = elf_dynamic_at(program->elf, bytes + i * size);
        if (entry.tag == DT_NULL)
            return 0;
        if (entry.tag != DT_DEBUG)
            continue;
        bool is_whole = live_pages_peek(pages, entry.value, &debug, sizeof debug) == sizeof debug;
        return is_whole && debug.r_state == RT_CONSISTENT ? (uintptr_t)debug.r_map : 0;
    }
    return 0;
}

static bool has_name(struct live_pages *pages, uint64_t address, bool (*accepts)(const char *name))
{
    char name[NAME_SIZE];
    size_t size = live_pages_peek(pages, address, name, sizeof name);
    return memchr(name, '\0', size) && accepts(name);
}

size_t link_map_find(struct live_pages *pages, const struct program_headers *program, bool (*accepts)(const char *name),
                     uint64_t ret[LINK_MAP_FOUND_MAX])
{
    const bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    bool is_native = program->elf.wide && program->elf.big == is_big && sizeof(uintptr_t) == sizeof(uint64_t);
    struct library library;
    uint64_t at = is_native ? first_library(pages, program) : 0;
    size_t count = 0;
    for (unsigned i = 0; at && i < LIBRARIES_MAX; i++, at = library.next) {
        if (live_pages_peek(pages, at, &library, sizeof library) < sizeof library)
            return 0;
        if (!has_name(pages, library.name, accepts))
            continue;
        if (count == LINK_MAP_FOUND_MAX)
            return 0;
        size_t place = count++;
        for (; place && ret[place - 1] > library.address; place--)
            ret[place] = ret[place - 1];
        ret[place] = library.address;
    }
    return at ? 0 : count;
}
