/*
 * fuzz_exception.c: a small heap of exceptions with words overwritten. Each word takes five bytes: a place (2), and a
 * value (3), which is a number or the address of something in the heap. Every text ends, and has no more than its
 * bounds allow.
 */
#include <stdlib.h>

#include "contracts/objects/sync_block.h"
#include "contracts/thread.h"
#include "tests/support/exception_heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 64, LIMIT = 1 << 20, NESTED_MAX = 64 };

static bool count(void *context, const char *bytes, size_t length)
{
    size_t *total = context;
    (void)bytes;
    if (*total > LIMIT)
        abort(); /* after false, nothing more may come */
    *total += length;
    return *total <= LIMIT;
}

static void overwrite(struct exception_heap *heap, const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false);
    uint64_t address = heap->objects_begin + (uint64_t)(place & 0x7fff) * 4 % (heap->end - heap->objects_begin - 8);
    switch (word[2] & 3) {
    case 0: /* something in the heap */
        exception_heap_put(heap, address, HEAP_BASE + value % HEAP_SIZE, 8);
        break;
    case 1: /* an object */
        exception_heap_put(heap, address, heap->objects_begin + value * UINT64_C(8) % (heap->end - heap->objects_begin),
                           8);
        break;
    case 2:
        exception_heap_put(heap, address, value, 4);
        break;
    default:
        exception_heap_put(heap, address, (uint64_t)value << 16, place & 0x8000 ? 8 : 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct exception_heap heap;
    exception_heap_init(&heap);
    for (size_t i = 0; i < WORDS_MAX && i * WORD + WORD <= size; i++)
        overwrite(&heap, data + i * WORD);
    const uint64_t exceptions[] = {heap.aggregate, heap.argument, heap.bad, heap.list, heap.file, heap.directory};
    for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++) {
        struct object_monitor monitor;
        size_t total = 0;
        const struct exception_output output = {
            .cache = &heap.cache, .runtime_types = true, .write = count, .context = &total};
        exception_text_write(&output, exceptions[i]);
        reader_begin(&heap.reader, FUEL_LOOKUP);
        object_monitor_read(&heap.reader, exceptions[i], &monitor);
        reader_begin(&heap.reader, FUEL_INDEX);
    }
    struct exception_info info = {.previous = heap.infos[0]};
    for (unsigned i = 0; i < NESTED_MAX && info.previous; i++) {
        reader_begin(&heap.reader, FUEL_LOOKUP);
        if (!exception_info_read(&heap.reader, info.previous, &info))
            break;
    }
    exception_heap_deinit(&heap);
    return 0;
}
