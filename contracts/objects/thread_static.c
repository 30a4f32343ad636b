#include "contracts/objects/thread_static.h"

#include "contracts/objects/field.h"
#include "descriptors/fields.h"
#include "descriptors/layout.h"

/* TLSIndex.TLSIndexRawIndex: the kind in the upper byte, an index or offset below it. */
enum {
    TLS_KIND_SHIFT = 24,
    TLS_OFFSET_MASK = 0xffffff,
    TLS_DIRECT_ON_THREAD_LOCAL_DATA = 2,
};

bool thread_static_find(struct module_cache *cache, uint64_t thread, uint64_t method_table, const char *name,
                        uint64_t *ret)
{
    struct reader *reader = cache->reader;
    struct object_field field;
    if (!reader->layout->sizes[T_ThreadStaticsInfo])
        return field_missing(reader, F_ThreadStaticsInfo_NonGCTlsIndex);
    if (!object_field_declared(cache, method_table, name, &field) || !field.is_static)
        return false;
    uint64_t auxiliary = read_field(reader, method_table, F_MethodTable_AuxiliaryData);
    uint64_t info = auxiliary - reader->layout->sizes[T_ThreadStaticsInfo];
    uint64_t index_at = field_address(reader, info, F_ThreadStaticsInfo_NonGCTlsIndex);
    uint32_t index = (uint32_t)read_field(reader, index_at, F_TLSIndex_TLSIndexRawIndex);
    uint64_t data = read_field(reader, thread, F_Thread_ThreadLocalDataPtr);
    if (reader_failed(reader) || !data || index >> TLS_KIND_SHIFT != TLS_DIRECT_ON_THREAD_LOCAL_DATA)
        return false;
    *ret = data + (index & TLS_OFFSET_MASK) + field.offset;
    return true;
}
