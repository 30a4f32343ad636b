#include "contracts/native_aot/aot_thread.h"

#include "descriptors/fields.h"
#include "descriptors/layout.h"
#include "target/reader.h"

enum {
    ROOTS_MAX = 64,         /* modules with thread statics of their own */
    STATICS_MAX = 64 * 1024 /* bytes of them */
};

static const char thread_type[] = "System.Threading.Thread";

/* The references of an object to objects of a type: the only one, or 0. *ret_count counts them. */
static uint64_t find_reference(struct reader *reader, uint64_t object, uint64_t method_table, unsigned *ret_count)
{
    uint64_t type = read_pointer(reader, object), found = 0;
    uint64_t size = read_field(reader, type, F_MethodTable_BaseSize), width = reader->pointer_size;
    if (size > STATICS_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, type, "the thread statics of a thread");
    for (uint64_t at = width; at + width < size && reader_step(reader, "thread statics"); at += width) {
        uint8_t head[8] = {0};
        uint64_t value = read_pointer(reader, object + at);
        if (!value || value % width || reader_failed(reader) || value == found ||
            !reader_try_copy(reader, value, head, width))
            continue;
        uint64_t first = width == 8 ? load_u64(head, reader->big_endian) : load_u32(head, reader->big_endian);
        if (first != method_table)
            continue;
        found = value;
        ++*ret_count;
    }
    return found;
}

uint64_t aot_managed_thread(struct aot_image *aot, struct reader *reader, uint64_t thread)
{
    uint64_t root = read_optional(reader, thread, F_Thread_m_pInlinedThreadLocalStatics), found = 0;
    const struct aot_tables *tables = root ? aot_tables_get(aot, reader) : NULL;
    uint64_t method_table = tables ? aot_type_named(tables, thread_type) : 0;
    unsigned count = 0;
    if (!method_table || !has_field(reader, F_InlinedThreadStaticRoot_m_threadStaticsBase))
        return 0;
    for (unsigned i = 0; root && i < ROOTS_MAX && !reader_failed(reader); i++) {
        uint64_t statics = read_field(reader, root, F_InlinedThreadStaticRoot_m_threadStaticsBase);
        uint64_t object = statics ? find_reference(reader, statics, method_table, &count) : 0;
        found = object ? object : found;
        root = read_optional(reader, root, F_InlinedThreadStaticRoot_m_next);
    }
    return reader_failed(reader) || count != 1 ? 0 : found;
}

uint32_t aot_managed_thread_id(struct reader *reader, uint64_t object)
{
    struct managed_field id, number;
    if (!layout_managed_field(reader->layout, thread_type, "_managedThreadId", &id) ||
        !layout_managed_field(reader->layout, "System.Threading.ManagedThreadId", "_managedThreadId", &number))
        return 0;
    uint64_t holder = read_pointer(reader, object + id.offset);
    return holder ? read_u32(reader, holder + number.offset) : 0;
}
