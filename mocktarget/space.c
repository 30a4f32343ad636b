/*
 * space.c: the mock's address space: spans that never overlap, a bump allocator over spans of its own, and holes.
 */
#include <stdarg.h>
#include <stdio.h>

#include "mocktarget/mock.h"
#include "util/binary_search.h"

enum { PAGE = 4096, HEAP_SIZE = 64 * 1024, SPAN_MAX = 1024 * 1024 * 1024 };

uint64_t mock_fail(struct mock *mock, const char *format, ...)
{
    if (mock->failed)
        return 0;
    va_list args;
    va_start(args, format);
    vsnprintf(mock->error, sizeof mock->error, format, args);
    va_end(args);
    mock->failed = true;
    return 0;
}

const char *mock_error(const struct mock *mock)
{
    return mock->failed ? mock->error : NULL;
}

/* splitmix64 */
static uint64_t next_random(struct mock *mock)
{
    uint64_t z = mock->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t mock_random(struct mock *mock, uint64_t bound)
{
    return mock->options.seed && bound ? next_random(mock) % bound : 0;
}

bool mock_stored(struct mock *mock, bool stored)
{
    if (!stored)
        mock_fail(mock, "out of memory");
    return stored;
}

size_t mock_span_index(const struct mock *mock, uint64_t address)
{
    const struct mock_span *items = mock->spans.items;
    return lower_bound(i, mock->spans.count, items[i].begin + items[i].size <= address);
}

static bool is_free(const struct mock *mock, uint64_t begin, uint64_t size)
{
    size_t i = mock_span_index(mock, begin);
    return i == mock->spans.count || mock->spans.items[i].begin >= begin + size;
}

static uint64_t top(const struct mock *mock)
{
    return mock->word == 4 ? UINT32_MAX : UINT64_MAX;
}

uint64_t mock_free_place(struct mock *mock, uint64_t size, uint64_t alignment)
{
    uint64_t place = align_up(mock->next, MAX(alignment, (uint64_t)PAGE));
    while (!mock->failed && !is_free(mock, place, size)) {
        const struct mock_span *span = &mock->spans.items[mock_span_index(mock, place)];
        place = align_up(span->begin + span->size + PAGE, MAX(alignment, (uint64_t)PAGE));
    }
    if (mock->failed || size > SPAN_MAX || place > top(mock) - size)
        return mock_fail(mock, "no room for %llu bytes", (unsigned long long)size);
    return place;
}

/* Unwritten memory is not zero, so that reading it shows. */
static void fill(struct mock *mock, uint8_t *bytes, uint64_t size)
{
    if (!mock->options.seed) {
        memset(bytes, 0xcd, size);
        return;
    }
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = i % 8 ? (uint8_t)(bytes[i - 1] * 5 + 113) : (uint8_t)next_random(mock);
}

/* Nothing overlaps it. False, and the mock fails, when out of memory. */
static bool insert_span(struct mock *mock, const struct mock_span *span)
{
    size_t i = mock_span_index(mock, span->begin);
    if (!mock_stored(mock, mock_spans_append_items(&mock->spans, 1) != NULL))
        return false;
    memmove(&mock->spans.items[i + 1], &mock->spans.items[i], (mock->spans.count - 1 - i) * sizeof *span);
    mock->spans.items[i] = *span;
    return true;
}

uint64_t mock_map(struct mock *mock, uint64_t begin, uint64_t size, unsigned access, const char *path,
                  uint64_t file_offset)
{
    if (!mock->failed && !begin) {
        begin = mock_free_place(mock, size, PAGE);
        mock->next = begin + size + PAGE * (1 + mock_random(mock, 4));
    }
    if (mock->failed)
        return 0;
    if (!size || size > SPAN_MAX || size - 1 > top(mock) - begin || !is_free(mock, begin, size))
        return mock_fail(mock, "[%#llx, +%#llx) is not free", (unsigned long long)begin, (unsigned long long)size);
    struct mock_span span = {
        .begin = begin, .size = size, .bytes = malloc(size), .access = access, .file_offset = file_offset};
    if (path)
        span.path = strdup(path);
    if (span.bytes)
        fill(mock, span.bytes, size);
    if (!mock_stored(mock, span.bytes && (!path || span.path)) || !insert_span(mock, &span)) {
        free(span.bytes);
        free(span.path);
        return 0;
    }
    return begin;
}

void mock_join(struct mock *mock, struct mock *other)
{
    if (other->failed)
        mock_fail(mock, "%s", other->error);
    if (mock->word != other->word || mock->big != other->big)
        mock_fail(mock, "no process has two widths or byte orders");
    for (size_t i = 0; i < other->holes.count; i++)
        mock_unmap(mock, other->holes.items[i].begin, other->holes.items[i].end - other->holes.items[i].begin);
    while (!mock->failed && other->spans.count) {
        const struct mock_span *span = &other->spans.items[other->spans.count - 1];
        if (!is_free(mock, span->begin, span->size)) {
            mock_fail(mock, "[%#llx, +%#llx) is not free", (unsigned long long)span->begin,
                      (unsigned long long)span->size);
        } else if (insert_span(mock, span)) {
            other->spans.count--;
        }
    }
}

uint8_t *mock_bytes_at(struct mock *mock, uint64_t address, uint64_t size)
{
    if (mock->failed)
        return NULL;
    size_t i = mock_span_index(mock, address);
    const struct mock_span *span = &mock->spans.items[i];
    if (i == mock->spans.count || address < span->begin || !range_fits(address - span->begin, size, span->size)) {
        mock_fail(mock, "[%#llx, +%#llx) is not mapped", (unsigned long long)address, (unsigned long long)size);
        return NULL;
    }
    return span->bytes + (address - span->begin);
}

uint64_t mock_alloc(struct mock *mock, uint64_t size, uint64_t alignment)
{
    uint64_t at = align_up(mock->heap_cursor + 8 * mock_random(mock, 8), alignment);
    if (mock->failed)
        return 0;
    if (!mock->heap_end || !range_fits(at, size, mock->heap_end)) {
        uint64_t taken = MAX((uint64_t)HEAP_SIZE, align_up(size + alignment, PAGE));
        uint64_t begin = mock_map(mock, 0, taken, MOCK_READ | MOCK_WRITE, NULL, 0);
        if (mock->failed)
            return 0;
        mock->heap_end = begin + taken;
        at = align_up(begin, alignment);
    }
    mock->heap_cursor = at + size;
    memset(mock_bytes_at(mock, at, size), 0, size);
    return at;
}

void mock_write(struct mock *mock, uint64_t address, const void *bytes, size_t size)
{
    uint8_t *at = mock_bytes_at(mock, address, size);
    if (at && size)
        memcpy(at, bytes, size);
}

void mock_write_uint(struct mock *mock, uint64_t address, unsigned width, uint64_t value)
{
    uint8_t *at = mock_bytes_at(mock, address, width);
    if (!at)
        return;
    if (width < 8 && value >> (8 * width) != 0)
        mock_fail(mock, "%#llx does not fit the %u bytes at %#llx", (unsigned long long)value, width,
                  (unsigned long long)address);
    else if (width == 1)
        *at = (uint8_t)value;
    else if (width == 2)
        store_u16(at, (uint16_t)value, mock->big);
    else if (width == 4)
        store_u32(at, (uint32_t)value, mock->big);
    else
        store_u64(at, value, mock->big);
}

void mock_write_pointer(struct mock *mock, uint64_t address, uint64_t value)
{
    mock_write_uint(mock, address, mock->word, value);
}

uint64_t mock_read_uint(struct mock *mock, uint64_t address, unsigned width)
{
    const uint8_t *at = mock_bytes_at(mock, address, width);
    if (!at)
        return 0;
    return width == 1   ? *at
           : width == 2 ? load_u16(at, mock->big)
           : width == 4 ? load_u32(at, mock->big)
                        : load_u64(at, mock->big);
}

uint64_t mock_read_pointer(struct mock *mock, uint64_t address)
{
    return mock_read_uint(mock, address, mock->word);
}

void mock_unmap(struct mock *mock, uint64_t begin, uint64_t size)
{
    if (!mock->failed)
        mock_stored(mock, mock_ranges_append(&mock->holes, (struct mock_range){begin, begin + size}));
}

void *mock_keep(struct mock *mock, const void *data, size_t size)
{
    void *kept = mock->failed ? NULL : arena_allocate(&mock->kept, size);
    if (mock_stored(mock, kept) && data)
        memcpy(kept, data, size);
    return kept;
}

void mock_space_free(struct mock *mock)
{
    arena_deinit(&mock->kept);
    for (size_t i = 0; i < mock->spans.count; i++) {
        free(mock->spans.items[i].bytes);
        free(mock->spans.items[i].path);
    }
    mock_spans_deinit(&mock->spans);
    mock_ranges_deinit(&mock->holes);
    free(mock->mappings);
}
