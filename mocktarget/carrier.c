/* carrier.c: a target as memory or as an ELF core file: the mapped spans without the holes. */
#include <errno.h>

#include "mocktarget/mock.h"
#include "util/error.h"
#include "formats/core_writer.h"

enum { MOCK_PID = 4711 };

/* The part of the span around `address` that is not a hole. False if `address` is in a hole. */
static bool part_at(const struct mock *mock, const struct mock_span *span, uint64_t address, struct mock_range *ret)
{
    struct mock_range part = {span->begin, span->begin + span->size};
    for (size_t i = 0; i < mock->holes.count; i++) {
        const struct mock_range *hole = &mock->holes.items[i];
        if (address >= hole->begin && address < hole->end)
            return false;
        if (hole->end <= address)
            part.begin = MAX(part.begin, hole->end);
        else
            part.end = MIN(part.end, hole->begin);
    }
    *ret = part;
    return true;
}

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    const struct mock *mock = context;
    struct mock_range part;
    size_t i = mock_span_index(mock, address), limit = mock->options.span_size;
    const struct mock_span *span = &mock->spans.items[i];
    if (i == mock->spans.count || address < span->begin || !part_at(mock, span, address, &part))
        return false;
    if (limit) {
        uint64_t begin = span->begin + (address - span->begin) / limit * limit;
        part.begin = MAX(part.begin, begin);
        part.end = MIN(part.end, begin + limit);
    }
    *ret_begin = part.begin;
    *ret_end = part.end;
    *ret_bytes = span->bytes + (part.begin - span->begin);
    return true;
}

const struct cdacq_memory *mock_memory(struct mock *mock)
{
    size_t count = 0;
    free(mock->mappings);
    mock->mappings = calloc(mock->spans.count + 1, sizeof *mock->mappings);
    for (size_t i = 0; mock->mappings && i < mock->spans.count; i++) {
        const struct mock_span *span = &mock->spans.items[i];
        if (span->path)
            mock->mappings[count++] = (struct cdacq_mapping){sizeof *mock->mappings, span->begin,
                                                             span->begin + span->size, span->file_offset, span->path};
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

struct core_parts {
    struct segments segments;
    struct core_writer_mapping *mappings;
    size_t mapping_count;
};

static void add_segment(struct mock *mock, struct core_parts *parts, const struct mock_span *span, uint64_t begin,
                        uint64_t size, bool dumped)
{
    struct core_writer_segment segment = {
        .vaddr = begin,
        .bytes = dumped ? span->bytes + (begin - span->begin) : NULL,
        .filesz = dumped ? size : 0,
        .memsz = size,
        .flags = span->access,
    };
    mock_stored(mock, segments_append(&parts->segments, segment));
}

/* A segment for each dumped part of the span, and one without bytes for each hole. */
static void add_span(struct mock *mock, struct core_parts *parts, const struct mock_span *span)
{
    uint64_t at = span->begin, end = span->begin + span->size;
    while (at < end && !mock->failed) {
        struct mock_range part;
        uint64_t next = end;
        bool dumped = part_at(mock, span, at, &part);
        if (dumped) {
            next = part.end;
        } else {
            for (next = at + 1; next < end && !part_at(mock, span, next, &part);)
                next++;
        }
        add_segment(mock, parts, span, at, next - at, dumped);
        at = next;
    }
    if (span->path)
        parts->mappings[parts->mapping_count++] =
            (struct core_writer_mapping){span->begin, end, span->file_offset, span->path};
}

bool mock_write_core(struct mock *mock, const char *path, struct cdacq_error *err)
{
    struct core_parts parts = {0};
    parts.mappings = calloc(mock->spans.count + 1, sizeof *parts.mappings);
    if (!parts.mappings)
        mock_fail(mock, "out of memory");
    for (size_t i = 0; i < mock->spans.count && !mock->failed; i++)
        add_span(mock, &parts, &mock->spans.items[i]);
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
