/*
 * fuzz_gc_roots.c: handles, finalizer queues and the references of objects, with words overwritten. The first byte is
 * the kind of GC. Each word takes five bytes: a place (2), a kind of value (1), and the value (2). Every walk ends, and
 * what it gives is where it says.
 */
#include <stdlib.h>

#include "contracts/gc/finalizer_queue.h"
#include "contracts/gc/handle.h"
#include "contracts/gc/references.h"
#include "contracts/type_system/method_table_flags.h"
#include "tests/support/gc_mock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 64 };

static struct gc_mock mock;

static int ignore(const char *text, void *context)
{
    (void)context;
    if (!text[0])
        abort();
    return 0;
}

static bool check_handle(void *context, const struct gc_handle *handle)
{
    (void)context;
    if (!handle->object || (unsigned)handle->kind >= CDACQ_HANDLE_COUNT ||
        gc_mock_get(&mock, handle->address) != handle->object)
        abort();
    return true;
}

static bool check_finalizable(void *context, uint64_t slot, uint64_t object, bool is_ready)
{
    (void)context;
    (void)is_ready;
    if (gc_mock_get(&mock, slot) != object)
        abort();
    return true;
}

static bool check_reference(void *context, uint64_t offset, uint64_t target)
{
    const struct cdacq_heap_object *object = context;
    if (offset == GC_REFERENCE_LOADER)
        return true;
    if (offset + 8 > object->byte_size || gc_mock_get(&mock, object->address + offset) != target)
        abort();
    return true;
}

static bool visit_references(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    struct cdacq_heap_object copy = *object;
    (void)segment;
    return gc_references_visit(context, object, check_reference, &copy);
}

static void overwrite(const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false);
    uint64_t address = GC_MOCK_BASE + (uint64_t)place * 8 % (GC_MOCK_SIZE - 8);
    switch (word[2] & 3) {
    case 0: /* something in the memory */
        gc_mock_put(&mock, address, GC_MOCK_BASE + value * UINT64_C(8) % (GC_MOCK_SIZE - 8), 8);
        break;
    case 1:
        gc_mock_put(&mock, address, value, 4);
        break;
    case 2:
        gc_mock_put(&mock, address + 4, (uint64_t)value << 16, 4);
        break;
    default:
        gc_mock_put(&mock, address, ~(uint64_t)value, 8);
    }
}

/* The types get references, so that damage in front of them counts. */
static void add_references(uint64_t table, uint64_t count, uint64_t offset, uint64_t bytes)
{
    gc_mock_put(&mock, table, gc_mock_get(&mock, table) | MT_CONTAINS_REFERENCES, 4);
    gc_mock_put(&mock, table - 8, count, 8);
    gc_mock_put(&mock, table - 16, offset, 8);
    gc_mock_put(&mock, table - 24, bytes, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool stopped = false;
    struct gc_problems problems = {.tell = ignore, .stopped = &stopped};
    struct gc_references references = {0};
    struct gc_segments segments = {0};
    struct gc_holes holes = {0};
    struct gc gc;
    unsigned kind = size ? data[0] : 0;
    gc_mock_init(&mock,
                 (struct gc_mock_options){.is_server = kind & 1, .has_segments = kind & 2, .is_published = kind & 4});
    add_references(mock.plain_table, 1, 8, (uint64_t)(16 - 40));
    add_references(mock.array_table, (uint64_t)-1, 16, 1 | UINT64_C(4) << 32);
    for (size_t i = 0; i < WORDS_MAX && 1 + (i + 1) * WORD <= size; i++)
        overwrite(data + 1 + i * WORD);
    const struct gc_visitor visitor = {.object = visit_references, .context = &references};
    if (gc_read(&mock.reader, &gc)) {
        gc_handles_visit(&mock.reader, &gc, &problems, check_handle, NULL);
        reader_begin(&mock.reader, FUEL_INDEX);
        gc_finalizable_visit(&mock.reader, &gc, &problems, check_finalizable, NULL);
        reader_begin(&mock.reader, FUEL_INDEX);
        if (gc_references_init(&references, &mock.reader) &&
            gc_segments_read(&mock.reader, &gc, &problems, &segments) &&
            gc_holes_read(&mock.reader, &gc, &problems, &holes))
            gc_walk(&mock.reader, &segments, &holes, &problems, &visitor);
        gc_references_deinit(&references);
        gc_holes_deinit(&holes);
        gc_segments_deinit(&segments);
        gc_deinit(&gc);
    }
    gc_mock_deinit(&mock);
    return 0;
}
