/*
 * fuzz_object.c: objects of a small heap with words overwritten, of types and tables too. Each word takes five bytes: a
 * place (2), and a value (3), which is a number or the address of something in the heap. Every list of fields and of
 * items ends, and every value has an answer.
 */
#include "contracts/objects/collection.h"
#include "contracts/type_system/field_type.h"
#include "tests/support/exception_heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 64, ITEMS_MAX = 64, FIELDS_MAX = 256, DEPTH_MAX = 3 };

static void overwrite(struct exception_heap *heap, const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false);
    uint64_t address = HEAP_BASE + (uint64_t)place * 4 % (HEAP_SIZE - 8);
    switch (word[2] & 3) {
    case 0: /* something in the heap */
        exception_heap_put(heap, address, HEAP_BASE + value % HEAP_SIZE, 8);
        break;
    case 1: /* the same, tagged */
        exception_heap_put(heap, address, HEAP_BASE + value / 8 * 8 % HEAP_SIZE + 1, 8);
        break;
    case 2:
        exception_heap_put(heap, address, value, 4);
        break;
    default:
        exception_heap_put(heap, address, (uint64_t)value << 16, word[2] & 4 ? 8 : 4);
    }
}

static void read_fields(struct exception_heap *heap, uint64_t type, uint64_t base, unsigned depth);

static void read_value(struct exception_heap *heap, const struct cdacq_value *value, unsigned depth)
{
    struct cdacq_value inner;
    struct text text = {0};
    bool has_value;
    (void)nullable_value_read(&heap->cache, value, &has_value, &inner);
    (void)reader_recover(&heap->reader, FAILURE_BUT_FUEL);
    (void)value_text(&heap->cache, value, &text);
    (void)reader_recover(&heap->reader, FAILURE_BUT_FUEL);
    text_deinit(&text);
    if (value->kind == CDACQ_VALUE_STRUCT && value->method_table && depth < DEPTH_MAX)
        read_fields(heap, value->method_table, value->address, depth + 1);
}

static void read_fields(struct exception_heap *heap, uint64_t type, uint64_t base, unsigned depth)
{
    struct object_fields fields = {0};
    (void)object_fields_read(&heap->cache, type, &fields);
    (void)reader_recover(&heap->reader, FAILURE_BUT_FUEL);
    for (size_t i = 0; i < fields.count && i < FIELDS_MAX; i++) {
        struct cdacq_value value;
        struct text text = {0};
        (void)object_field_name(&heap->cache, &fields.items[i], &text);
        (void)field_type_name(&heap->cache, fields.items[i].owner, fields.items[i].token, &text);
        text_deinit(&text);
        field_value_read(&heap->cache, &fields.items[i], base, &value);
        (void)reader_recover(&heap->reader, FAILURE_BUT_FUEL);
        read_value(heap, &value, depth);
    }
    object_fields_deinit(&fields);
}

static void read_items(struct exception_heap *heap, uint64_t object)
{
    struct collection collection;
    struct collection_item item;
    if (!collection_open(&heap->cache, object, &collection))
        return;
    for (unsigned i = 0; i < ITEMS_MAX; i++) {
        if (!collection_next(&heap->cache, &collection, &item) && !reader_failed(&heap->reader))
            break;
        (void)reader_recover(&heap->reader, FAILURE_BUT_FUEL);
        if (item.has_key)
            read_value(heap, &item.key, 0);
        read_value(heap, &item.value, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct exception_heap heap;
    exception_heap_init(&heap);
    for (size_t i = 0; i < WORDS_MAX && i * WORD + WORD <= size; i++)
        overwrite(&heap, data + i * WORD);
    const uint64_t objects[] = {heap.aggregate, heap.list, heap.file, heap.generic_list, heap.chain, heap.switch_value};
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        struct cdacq_value value;
        reader_begin(&heap.reader, FUEL_LOOKUP);
        (void)object_is_plausible(&heap.reader, objects[i]);
        reader_begin(&heap.reader, FUEL_LOOKUP);
        uint64_t type = object_method_table(&heap.reader, objects[i]);
        if (!reader_failed(&heap.reader))
            read_fields(&heap, type, objects[i] + heap.reader.pointer_size, 0);
        reader_begin(&heap.reader, FUEL_LOOKUP);
        read_items(&heap, objects[i]);
        reader_begin(&heap.reader, FUEL_LOOKUP);
        if (boxed_value_read(&heap.cache, objects[i], &value))
            read_value(&heap, &value, 0);
    }
    exception_heap_deinit(&heap);
    return 0;
}
