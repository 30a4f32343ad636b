#include "target/link_map.h"

#include <link.h>

enum {
    DYNAMIC_MAX = 128,    /* entries of the program's dynamic section */
    LIBRARIES_MAX = 4096, /* a .NET process has some 20 */
    NAME_SIZE = 512,      /* a longer name is too long */
};

static bool peek_all(const struct link_map_memory *memory, uint64_t address, void *buffer, size_t size)
{
    return memory->peek(memory->context, address, buffer, size) == size;
}

size_t link_map_segments(const struct link_map_memory *memory, const struct program_headers *program,
                         struct elf_segment ret[LINK_MAP_SEGMENTS_MAX])
{
    uint8_t bytes[LINK_MAP_SEGMENTS_MAX * ELF_RECORD_MAX];
    size_t size = elf_segment_size(program->elf);
    size_t count = (size_t)MIN(program->count, (uint64_t)LINK_MAP_SEGMENTS_MAX);
    if (!peek_all(memory, program->address, bytes, count * size))
        return 0;
    for (size_t i = 0; i < count; i++)
        ret[i] = elf_segment_at(program->elf, bytes + i * size);
    return count;
}

/* The address of vaddr 0 of the program, which PT_PHDR shows. False if it is not known. */
static bool find_bias(const struct program_headers *program, const struct elf_segment *segments, size_t count,
                      uint64_t *ret)
{
    for (size_t i = 0; i < count; i++)
        if (segments[i].type == PT_PHDR) {
            *ret = program->address - segments[i].vaddr;
            return true;
        }
    return false;
}

/* The address of the dynamic section; 0 if it is not known. */
static uint64_t dynamic_section(const struct link_map_memory *memory, const struct program_headers *program)
{
    struct elf_segment segments[LINK_MAP_SEGMENTS_MAX];
    size_t count = link_map_segments(memory, program, segments);
    uint64_t bias, dynamic = 0;
    for (size_t i = 0; i < count; i++)
        dynamic = segments[i].type == PT_DYNAMIC ? segments[i].vaddr : dynamic;
    return dynamic && find_bias(program, segments, count, &bias) ? bias + dynamic : 0;
}

/* Word `index` of a structure that consists of words. */
static uint64_t word_of(struct elf_class elf, const uint8_t *bytes, size_t index)
{
    return elf_word(elf, bytes + index * elf_word_size(elf));
}

/* struct r_debug: version, first library, breakpoint, state, base of the dynamic linker; each has a word. */
enum { DEBUG_MAP = 1, DEBUG_STATE = 3, DEBUG_WORDS = 5 };

/* The beginning of struct link_map. */
enum { LIBRARY_ADDRESS, LIBRARY_NAME, LIBRARY_DYNAMIC, LIBRARY_NEXT, LIBRARY_WORDS };

/* The address of the first library; 0 if it is not known, or if the list is just being changed. */
static uint64_t first_library(const struct link_map_memory *memory, const struct program_headers *program)
{
    uint8_t bytes[DYNAMIC_MAX * sizeof(Elf64_Dyn)], debug[DEBUG_WORDS * sizeof(uint64_t)];
    struct elf_class elf = program->elf;
    uint64_t at = dynamic_section(memory, program);
    size_t size = elf_dynamic_size(elf), read = at ? memory->peek(memory->context, at, bytes, sizeof bytes) : 0;
    for (size_t i = 0; i < read / size; i++) {
        struct elf_dynamic entry = elf_dynamic_at(elf, bytes + i * size);
        if (entry.tag == DT_NULL)
            return 0;
        if (entry.tag != DT_DEBUG)
            continue;
        bool is_whole = peek_all(memory, entry.value, debug, DEBUG_WORDS * elf_word_size(elf));
        uint32_t state = is_whole ? load_u32(debug + DEBUG_STATE * elf_word_size(elf), elf.big) : RT_ADD;
        return state == RT_CONSISTENT ? word_of(elf, debug, DEBUG_MAP) : 0;
    }
    return 0;
}

/* The name of a library, "" if it is too long or cannot be read. */
static const char *read_name(const struct link_map_memory *memory, uint64_t address, char name[NAME_SIZE])
{
    size_t size = memory->peek(memory->context, address, name, NAME_SIZE);
    return memchr(name, '\0', size) ? name : "";
}

bool link_map_visit(const struct link_map_memory *memory, const struct program_headers *program,
                    bool (*visit)(uint64_t bias, const char *name, void *context), void *context)
{
    struct elf_class elf = program->elf;
    uint64_t at = first_library(memory, program);
    bool is_known = at != 0;
    for (unsigned i = 0; at && i < LIBRARIES_MAX; i++) {
        uint8_t library[LIBRARY_WORDS * sizeof(uint64_t)];
        char name[NAME_SIZE];
        if (!peek_all(memory, at, library, LIBRARY_WORDS * elf_word_size(elf)))
            return false;
        if (!visit(word_of(elf, library, LIBRARY_ADDRESS), read_name(memory, word_of(elf, library, LIBRARY_NAME), name),
                   context))
            return true;
        at = word_of(elf, library, LIBRARY_NEXT);
    }
    return is_known && !at;
}

struct search {
    bool (*accepts)(const char *name);
    uint64_t *found;
    size_t count; /* LINK_MAP_FOUND_MAX + 1: too many */
};

static bool keep_accepted(uint64_t bias, const char *name, void *context)
{
    struct search *search = context;
    if (!search->accepts(name))
        return true;
    if (search->count++ == LINK_MAP_FOUND_MAX)
        return false;
    size_t place = search->count - 1;
    for (; place && search->found[place - 1] > bias; place--)
        search->found[place] = search->found[place - 1];
    search->found[place] = bias;
    return true;
}

size_t link_map_find(const struct link_map_memory *memory, const struct program_headers *program,
                     bool (*accepts)(const char *name), uint64_t ret[LINK_MAP_FOUND_MAX])
{
    struct search search = {.accepts = accepts, .found = ret};
    bool is_whole = link_map_visit(memory, program, keep_accepted, &search);
    return is_whole && search.count <= LINK_MAP_FOUND_MAX ? search.count : 0;
}
