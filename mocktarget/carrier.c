/*
 * carrier.c: one target, several carriers: the regions less the holes, as memory or as an ELF core file.
 */
#include <errno.h>

#include "mocktarget/mock.h"
#include "util/error.h"
#include "formats/core_writer.h"

enum { MOCK_PID = 4711 };

/* What is left of the region around `address`; false where nothing is. */
static bool piece_at(const struct mock *mock, const struct mock_region *region, uint64_t address,
                     struct mock_range *ret)
{
    struct mock_range piece = {region->begin, region->begin + region->size};
    for (size_t i = 0; i < mock->holes.count; i++) {
        const struct mock_range *hole = &mock->holes.items[i];
        if (address >= hole->begin && address < hole->end)
            return false;
        if (hole->end <= address)
            piece.begin = MAX(piece.begin, hole->end);
        else
            piece.end = MIN(piece.end, hole->begin);
    }
    *ret = piece;
    return true;
}

static bool span_at(void *context, uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes)
{
    const struct mock *mock = context;
    struct mock_range piece;
    size_t i = mock_region_index(mock, address), run = mock->options.run_size;
    const struct mock_region *region = &mock->regions.items[i];
    if (i == mock->regions.count || address < region->begin || !piece_at(mock, region, address, &piece))
        return false;
    if (run) {
        uint64_t begin = region->begin + (address - region->begin) / run * run;
        piece.begin = MAX(piece.begin, begin);
        piece.end = MIN(piece.end, begin + run);
    }
    *ret_begin = piece.begin;
    *ret_end = piece.end;
    *ret_bytes = region->bytes + (piece.begin - region->begin);
    return true;
}

const struct cdacq_memory *mock_memory(struct mock *mock)
{
    size_t count = 0;
    free(mock->mappings);
    mock->mappings = calloc(mock->regions.count + 1, sizeof *mock->mappings);
    for (size_t i = 0; mock->mappings && i < mock->regions.count; i++) {
        const struct mock_region *region = &mock->regions.items[i];
        if (region->path)
            mock->mappings[count++] = (struct cdacq_mapping){
                sizeof *mock->mappings, region->begin, region->begin + region->size, region->file_offset, region->path};
    }
    mock->memory = (struct cdacq_memory){
        .size = sizeof mock->memory,
        .context = mock,
        .span_at = span_at,
        .mappings = mock->mappings,
        .mapping_count = count,
    };
    return &mock->memory;
}

DEFINE_VECTOR(segments, struct core_writer_segment);

/* What a core file is made of. */
struct core_parts {
    struct segments segments;
    struct core_writer_mapping *mappings;
    size_t mapping_count;
};

static void add_segment(struct mock *mock, struct core_parts *parts, const struct mock_region *region, uint64_t begin,
                        uint64_t size, bool dumped)
{
    struct core_writer_segment segment = {
        .vaddr = begin,
        .bytes = dumped ? region->bytes + (begin - region->begin) : NULL,
        .filesz = dumped ? size : 0,
        .memsz = size,
        .flags = region->access,
    };
    mock_stored(mock, segments_append(&parts->segments, segment));
}

/* A segment for each piece of the region, and one without bytes for each hole in it. */
static void add_region(struct mock *mock, struct core_parts *parts, const struct mock_region *region)
{
    uint64_t at = region->begin, end = region->begin + region->size;
    while (at < end && !mock->failed) {
        struct mock_range piece;
        uint64_t next = end;
        bool dumped = piece_at(mock, region, at, &piece);
        if (dumped) {
            next = piece.end;
        } else {
            for (next = at + 1; next < end && !piece_at(mock, region, next, &piece);)
                next++;
        }
        add_segment(mock, parts, region, at, next - at, dumped);
        at = next;
    }
    if (region->path)
        parts->mappings[parts->mapping_count++] =
            (struct core_writer_mapping){region->begin, end, region->file_offset, region->path};
}

bool mock_write_core(struct mock *mock, const char *path, struct cdacq_error *err)
{
    struct core_parts parts = {0};
    parts.mappings = calloc(mock->regions.count + 1, sizeof *parts.mappings);
    if (!parts.mappings)
        mock_fail(mock, "out of memory");
    for (size_t i = 0; i < mock->regions.count && !mock->failed; i++)
        add_region(mock, &parts, &mock->regions.items[i]);
    enum cdacq_status status = CDACQ_ERR_ARGUMENT;
    FILE *file = mock->failed ? NULL : fopen(path, "wb");
    if (mock->failed) {
        status = error_set(err, status, 0, "%s", mock->error);
    } else if (!file) {
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    } else {
        struct core_writer_image image = {
            .wide = mock->word == 8,
            .big_endian = mock->big,
            .machine = mock->options.machine,
            .pid = MOCK_PID,
            .name = "mock",
            .mappings = parts.mappings,
            .mapping_count = parts.mapping_count,
            .segments = parts.segments.items,
            .segment_count = parts.segments.count,
        };
        status = core_writer_write(file, &image, NULL, err);
    }
    if (file && fclose(file) != 0 && status >= 0)
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    segments_deinit(&parts.segments);
    free(parts.mappings);
    return status >= 0;
}
