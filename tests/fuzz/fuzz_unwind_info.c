/*
 * fuzz_unwind_info.c: any bytes as RUNTIME_FUNCTIONs with their unwind data and GC info, on every architecture. The
 * first byte chooses the architecture (low three bits), whether there are funclets, and the byte order; the second the
 * GC info's version. What follows is the memory that everything is in, the table at its start.
 */
#include "contracts/code_info/gc_info.h"
#include "contracts/code_info/unwind_info.h"
#include "target/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BASE = 0x10000, NO_FUNCLETS = 8, BIG_ENDIAN_TARGET = 16, DESCRIBED_LENGTH = 32, ENTRY_MAX = 64 };

struct bytes_at {
    const uint8_t *data;
    size_t size;
};

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    const struct bytes_at *bytes = context;
    if (address < BASE || address - BASE >= bytes->size)
        return false;
    *ret_begin = BASE;
    *ret_end = BASE + bytes->size;
    *ret_bytes = bytes->data;
    return true;
}

static void set_field(struct layout *layout, enum layout_field field, uint32_t offset)
{
    layout->fields[field] = (struct layout_slot){.offset = offset, .width = 4, .present = true};
}

static struct layout layout_of(unsigned options)
{
    struct layout layout = {.architecture = (enum architecture)((options & 7) % ARCHITECTURE_COUNT)};
    bool x64 = layout.architecture == ARCHITECTURE_X64;
    layout.globals[G_FeatureEHFunclets] = !(options & NO_FUNCLETS);
    layout.globals[G_GCInfoVersion] = options;
    layout.sizes[T_RuntimeFunction] = x64 ? 12 : 8;
    set_field(&layout, F_RuntimeFunction_BeginAddress, 0);
    set_field(&layout, F_RuntimeFunction_UnwindData, x64 ? 8 : 4);
    if (x64)
        set_field(&layout, F_RuntimeFunction_EndAddress, 4);
    else if (options & DESCRIBED_LENGTH)
        set_field(&layout, F_UnwindInfo_FunctionLength, 0);
    return layout;
}

static void check_entry(struct reader *reader, const struct unwind_table *table, uint32_t i, unsigned version)
{
    uint64_t address = 0;
    uint32_t length, size = 0;
    reader_begin(reader, 1000);
    length = unwind_table_length(reader, table, i);
    if (reader_failed(reader) && length)
        abort();
    reader_begin(reader, 1000);
    bool found = unwind_table_data(reader, table, i, &address, &size);
    if (found == reader_failed(reader) && found)
        abort();
    if (found && (address < BASE || size > 8 + 4 * (0xffff + 0xff) + 4 || size % 4))
        abort();
    reader_begin(reader, 1000);
    if (found)
        gc_info_code_length(reader, address + size, version);
    gc_info_code_length(reader, BASE + i, version);
    if (reader_failed(reader))
        abort();
    uint32_t root = unwind_table_root(reader, table, i);
    if (root > i || (!reader_failed(reader) && root && unwind_table_is_fragment(reader, table, root)))
        abort();
    reader_begin(reader, 1000);
    unwind_table_is_cold_funclet(reader, table, i);
    reader_begin(reader, 1000);
    uint32_t found_at = unwind_table_find(reader, table, unwind_table_begin(reader, table, i));
    if (found_at != UINT32_MAX && found_at >= table->count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdacq_error error;
    struct target *target;
    if (size < 3)
        return 0;
    struct layout layout = layout_of(data[0]);
    unsigned version = data[1];
    struct bytes_at bytes = {data + 2, size - 2};
    struct cdacq_memory memory = {.size = sizeof memory, .context = &bytes, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &target, &error) != CDACQ_OK)
        abort();
    struct reader reader;
    reader_init_fields(&reader, target, &layout, layout.architecture == ARCHITECTURE_ARM ? 4 : 8,
                       data[0] & BIG_ENDIAN_TARGET);
    uint32_t count = (uint32_t)MIN(bytes.size / layout.sizes[T_RuntimeFunction], (size_t)ENTRY_MAX);
    struct unwind_table table = unwind_table_at(&reader, BASE, count, BASE);
    for (uint32_t i = 0; i < count; i++)
        check_entry(&reader, &table, i, version);
    target_destroy(target);
    return 0;
}
