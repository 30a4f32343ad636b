/*
 * fuzz_heap.c: a small GC heap with words overwritten. The first byte is the kind of GC. Each word takes five bytes: a
 * place (2), a kind of value (1), and the value (2). Every walk ends; objects are in their segment and do not overlap.
 */
#include <stdlib.h>

#include "tests/support/gc_mock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 64 };

struct seen {
    uint64_t end; /* of the last object */
};

static int ignore(const char *text, void *context)
{
    (void)context;
    if (!text[0])
        abort();
    return 0;
}

static bool check_object(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    struct seen *seen = context;
    if (object->address < seen->end || object->address < segment->begin || !object->byte_size ||
        object->byte_size > segment->end - object->address)
        abort();
    seen->end = object->address + object->byte_size;
    return true;
}

static void overwrite(struct gc_mock *mock, const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false);
    uint64_t whole = mock->end - GC_MOCK_BASE - 8;
    uint64_t address = GC_MOCK_BASE + (uint64_t)place * 8 % whole;
    switch (word[2] & 3) {
    case 0: /* something in the memory */
        gc_mock_put(mock, address, GC_MOCK_BASE + value * UINT64_C(8) % whole, 8);
        break;
    case 1:
        gc_mock_put(mock, address, value, 4);
        break;
    case 2:
        gc_mock_put(mock, address + 4, (uint64_t)value << 16, 4);
        break;
    default:
        gc_mock_put(mock, address, ~(uint64_t)value, 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gc_mock mock;
    bool stopped = false;
    struct gc_problems problems = {.tell = ignore, .stopped = &stopped};
    struct gc_segments segments = {0};
    struct gc_holes holes = {0};
    struct seen seen = {0};
    struct gc gc;
    unsigned kind = size ? data[0] : 0;
    gc_mock_init(&mock,
                 (struct gc_mock_options){.is_server = kind & 1, .has_segments = kind & 2, .is_published = kind & 4});
    for (size_t i = 0; i < WORDS_MAX && 1 + (i + 1) * WORD <= size; i++)
        overwrite(&mock, data + 1 + i * WORD);
    const struct gc_visitor visitor = {.object = check_object, .context = &seen};
    if (gc_read(&mock.reader, &gc)) {
        struct gc_oom oom;
        if (!gc_oom_read(&mock.reader, &gc, &oom))
            reader_begin(&mock.reader, FUEL_INDEX);
        if (gc_segments_read(&mock.reader, &gc, &problems, &segments) &&
            gc_holes_read(&mock.reader, &gc, &problems, &holes))
            gc_walk(&mock.reader, &segments, &holes, &problems, &visitor);
        gc_holes_deinit(&holes);
        gc_segments_deinit(&segments);
        gc_deinit(&gc);
    }
    gc_mock_deinit(&mock);
    return 0;
}
