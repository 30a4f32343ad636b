#include "target/core_libraries.h"

enum { PATH_SIZE = 4096 };

DEFINE_VECTOR(mappings, struct mapping);

struct listing {
    const struct link_map_memory *memory;
    const struct program_headers *program;
    uint64_t program_path;
    uint16_t elf_machine;
    struct arena *paths;
    struct mappings found;
    bool is_first, failed; /* the program comes first; there was no memory */
};

static bool add_segment(struct listing *listing, uint64_t bias, const char *path, const struct elf_segment *segment)
{
    uint64_t address = bias + segment->vaddr; /* a bias may be negative */
    if (!listing->program->elf.wide)
        address = (uint32_t)address;
    uint64_t begin = align_down(address, PAGE_SIZE), offset = align_down(segment->offset, PAGE_SIZE);
    uint64_t last = address + segment->file_size - 1;
    /* What follows the bytes of the file is no mapping of it. */
    if (segment->type != PT_LOAD || !segment->file_size || last < begin || last > UINT64_MAX - PAGE_SIZE ||
        offset > UINT64_MAX - (last - begin) - PAGE_SIZE)
        return true;
    return mappings_append(&listing->found, (struct mapping){.begin = begin,
                                                             .end = align_down(last, PAGE_SIZE) + PAGE_SIZE,
                                                             .offset = offset,
                                                             .path = path});
}

/* The program headers of a library, whose ELF header is at its beginning. */
static bool read_library(const struct listing *listing, uint64_t bias, struct program_headers *ret)
{
    uint8_t bytes[ELF_RECORD_MAX];
    struct elf_class elf;
    if (listing->memory->peek(listing->memory->context, bias, bytes, sizeof bytes) < sizeof bytes ||
        !elf_class_of(bytes, &elf))
        return false;
    struct elf_header header = elf_header_at(elf, bytes);
    *ret = (struct program_headers){.elf = elf, .address = bias + header.segments, .count = header.segment_count};
    return header.machine == listing->elf_machine && header.segment_size == elf_segment_size(elf);
}

/* Reads the path of the program. False if it is not known. */
static bool read_program_path(const struct listing *listing, char path[PATH_SIZE])
{
    size_t size = listing->program_path
                      ? listing->memory->peek(listing->memory->context, listing->program_path, path, PATH_SIZE)
                      : 0;
    return memchr(path, '\0', size) != NULL;
}

/* A relative path says nothing without the folder of the process. */
static bool add_image(uint64_t bias, const char *name, void *context)
{
    struct listing *listing = context;
    struct elf_segment segments[LINK_MAP_SEGMENTS_MAX];
    struct program_headers headers = *listing->program;
    char program_path[PATH_SIZE];
    bool is_program = listing->is_first;
    listing->is_first = false;
    if (is_program && !read_program_path(listing, program_path))
        return true;
    const char *path = is_program ? program_path : name;
    if (path[0] != '/' || (!is_program && !read_library(listing, bias, &headers)))
        return true;
    size_t count = link_map_segments(listing->memory, &headers, segments);
    const char *copy = arena_string(listing->paths, path, strlen(path));
    listing->failed |= !copy;
    for (size_t i = 0; i < count && !listing->failed; i++)
        listing->failed |= !add_segment(listing, bias, copy, &segments[i]);
    return !listing->failed;
}

bool core_libraries_list(struct target *target, const struct link_map_memory *memory,
                         const struct program_headers *program, uint64_t program_path, struct arena *paths)
{
    struct listing listing = {
        .memory = memory,
        .program = program,
        .program_path = program_path,
        .elf_machine = target->elf_machine,
        .paths = paths,
        .is_first = true,
    };
    (void)link_map_visit(memory, program, add_image, &listing); /* a list that is cut off has what it has */
    target->mappings = listing.found.items;
    target->mapping_count = listing.found.count;
    return !listing.failed;
}
