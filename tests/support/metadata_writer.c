#include "tests/support/metadata_writer.h"

#include "util/vector.h"

/*
 * The columns of the tables that can be written, one letter each: 2 and 4 bytes; S, G, B index a heap; the rest is a
 * row or a coded index, whose width depends on the tables that it can mean (indexed_tables).
 */
static const char *const columns[METADATA_TABLE_COUNT] = {
    [METADATA_MODULE] = "2SGGG",      [METADATA_TYPE_REF] = "rSS",         [METADATA_TYPE_DEF] = "4SSdfm",
    [METADATA_FIELD] = "2SB",         [METADATA_METHOD_PTR] = "m",         [METADATA_METHOD_DEF] = "422SBa",
    [METADATA_PARAM] = "22S",         [METADATA_MEMBER_REF] = "pSB",       [METADATA_MODULE_REF] = "S",
    [METADATA_TYPE_SPEC] = "B",       [METADATA_ASSEMBLY] = "422224BSS",   [METADATA_ASSEMBLY_REF] = "22224BSSB",
    [METADATA_NESTED_CLASS] = "tt",   [METADATA_GENERIC_PARAM] = "22oS",   [METADATA_METHOD_SPEC] = "hB",
    [METADATA_INTERFACE_IMPL] = "td", [METADATA_CUSTOM_ATTRIBUTE] = "cyB",
};

static const struct indexed_tables {
    char column;
    uint8_t tag_bits;
    int8_t tables[5]; /* up to -1 */
} indexed_tables[] = {
    {'r', 2, {0x00, 0x1a, 0x23, 0x01, -1}},
    {'d', 2, {0x02, 0x01, 0x1b, -1}},
    {'p', 3, {0x02, 0x01, 0x1a, 0x06, 0x1b}},
    {'o', 1, {0x02, 0x06, -1}},
    {'h', 1, {0x06, 0x0a, -1}},
    {'f', 0, {0x04, 0x03, -1}},
    {'m', 0, {0x06, 0x05, -1}},
    {'a', 0, {0x08, 0x07, -1}},
    {'t', 0, {0x02, -1}},
    {'c', 5, {0x06, 0x04, 0x01, 0x02, 0x08}}, /* of 22 tables those that the tests fill */
    {'y', 3, {0x06, 0x0a, -1}},
};

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

void metadata_writer_init(struct metadata_writer *writer)
{
    memset(writer, 0, sizeof *writer);
    writer->strings = checked(calloc(1, 1));
    writer->blobs = checked(calloc(1, 1));
    writer->strings_size = writer->blobs_size = 1;
    METADATA_ROW(writer, METADATA_MODULE, 0, metadata_writer_string(writer, "Written.dll"), 1, 0, 0);
    METADATA_ROW(writer, METADATA_TYPE_DEF, 0, metadata_writer_string(writer, "<Module>"), 0, 0, 1, 1);
}

void metadata_writer_deinit(struct metadata_writer *writer)
{
    for (unsigned i = 0; i < METADATA_TABLE_COUNT; i++)
        free(writer->tables[i].cells);
    free(writer->strings);
    free(writer->blobs);
}

static uint32_t heap_append(uint8_t **heap, uint32_t *size, const void *data, size_t count)
{
    uint32_t index = *size;
    *heap = checked(realloc(*heap, *size + count + 1));
    if (count)
        memcpy(*heap + *size, data, count);
    *size += (uint32_t)count;
    return index;
}

uint32_t metadata_writer_string(struct metadata_writer *writer, const char *string)
{
    return heap_append(&writer->strings, &writer->strings_size, string, strlen(string) + 1);
}

uint32_t metadata_writer_blob(struct metadata_writer *writer, const void *data, size_t size)
{
    uint8_t head[4] = {(uint8_t)(0xc0 | size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size};
    size_t width = size < 0x80 ? 1 : size < 0x4000 ? 2 : 4;
    if (width == 2)
        head[2] |= 0x80;
    uint32_t index = heap_append(&writer->blobs, &writer->blobs_size, head + 4 - width, width);
    heap_append(&writer->blobs, &writer->blobs_size, data, size);
    return index;
}

uint32_t metadata_writer_row(struct metadata_writer *writer, enum metadata_table table, const uint32_t *cells)
{
    struct metadata_writer_table *t = &writer->tables[table];
    size_t width = strlen(columns[table]);
    if (t->rows == t->capacity) {
        t->capacity = t->capacity * 2 + 8;
        t->cells = checked(realloc(t->cells, t->capacity * width * sizeof *cells));
    }
    memcpy(t->cells + t->rows * width, cells, width * sizeof *cells);
    return ++t->rows;
}

static bool is_wide(const struct metadata_writer *writer, char column)
{
    switch (column) {
    case '2':
        return false;
    case '4':
        return true;
    case 'S':
        return writer->wide_heaps & 1;
    case 'G':
        return writer->wide_heaps & 2;
    case 'B':
        return writer->wide_heaps & 4;
    default:
        break;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(indexed_tables); i++) {
        const struct indexed_tables *indexed = &indexed_tables[i];
        if (indexed->column != column)
            continue;
        for (unsigned k = 0; k < ARRAY_SIZE(indexed->tables) && indexed->tables[k] >= 0; k++)
            if (writer->tables[indexed->tables[k]].rows >= UINT32_C(0x10000) >> indexed->tag_bits)
                return true;
    }
    return writer->minimal_delta;
}

struct output {
    uint8_t *data;
    size_t size, capacity;
};

static void put(struct output *out, const void *data, size_t size)
{
    if (out->size + size > out->capacity)
        out->data = checked(vector_grow(out->data, &out->capacity, out->size + size, 1));
    if (size)
        memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_number(struct output *out, uint64_t value, unsigned width)
{
    uint8_t bytes[8];
    store_u64(bytes, value, false);
    put(out, bytes, width);
}

static void put_tables(struct output *out, const struct metadata_writer *writer)
{
    uint64_t valid = 0;
    for (unsigned i = 0; i < METADATA_TABLE_COUNT; i++)
        if (writer->tables[i].rows || writer->claimed_rows[i])
            valid |= UINT64_C(1) << i;
    put_number(out, 0, 4);
    put_number(out, 2, 2); /* version 2.0 */
    put_number(out, writer->wide_heaps | (writer->extra_data ? 0x40 : 0), 1);
    put_number(out, 1, 1);
    put_number(out, valid, 8);
    put_number(out, writer->sorted, 8);
    for (unsigned i = 0; i < METADATA_TABLE_COUNT; i++)
        if (valid >> i & 1)
            put_number(out, writer->claimed_rows[i] ? writer->claimed_rows[i] : writer->tables[i].rows, 4);
    if (writer->extra_data)
        put_number(out, 0xeeeeeeee, 4);
    for (unsigned i = 0; i < METADATA_TABLE_COUNT; i++) {
        const struct metadata_writer_table *table = &writer->tables[i];
        size_t width = table->rows ? strlen(columns[i]) : 0;
        for (size_t cell = 0; cell < table->rows * width; cell++)
            put_number(out, table->cells[cell], is_wide(writer, columns[i][cell % width]) ? 4 : 2);
    }
}

uint8_t *metadata_writer_finish(const struct metadata_writer *writer, size_t *ret_size)
{
    static const uint8_t mvid[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct output tables = {0}, out = {0};
    put_tables(&tables, writer);
    const struct {
        const char *name; /* padded to four bytes with its NUL */
        size_t name_size;
        const void *data;
        size_t size;
    } streams[] = {
        {writer->uncompressed ? "#-\0\0" : "#~\0\0", 4, tables.data, tables.size},
        {"#Strings\0\0\0\0", 12, writer->strings, writer->strings_size},
        {"#GUID\0\0\0", 8, mvid, sizeof mvid},
        {"#Blob\0\0\0", 8, writer->blobs, writer->blobs_size},
        {"#JTD\0\0\0\0", 8, NULL, 0},
    };
    size_t count = writer->minimal_delta ? 5 : 4, offset = 16 + 4 + 4;
    for (size_t i = 0; i < count; i++)
        offset += 8 + streams[i].name_size;
    put(&out, "BSJB\1\0\1\0\0\0\0\0\4\0\0\0v4\0\0", 20);
    put_number(&out, 0, 2);
    put_number(&out, count, 2);
    for (size_t i = 0; i < count; i++) {
        put_number(&out, offset, 4);
        put_number(&out, streams[i].size, 4);
        put(&out, streams[i].name, streams[i].name_size);
        offset += streams[i].size;
    }
    for (size_t i = 0; i < count; i++)
        put(&out, streams[i].data, streams[i].size);
    free(tables.data);
    *ret_size = out.size;
    return checked(realloc(out.data, out.size)); /* so that AddressSanitizer knows the end */
}
