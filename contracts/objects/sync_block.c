#include "contracts/objects/sync_block.h"

/* The header: src/coreclr/vm/syncblk.h. */
enum {
    HEADER_IS_HASH_OR_INDEX = 0x08000000,
    HEADER_IS_HASH = 0x04000000,
    HEADER_INDEX_MASK = 0x03ffffff,
    THIN_THREAD_MASK = 0xffff,
    THIN_RECURSION_MASK = 0x3f0000,
    THIN_RECURSION_SHIFT = 16,
    /* AwareLock::LockState */
    LOCK_IS_LOCKED = 1,
    LOCK_WAITER_SHIFT = 6,
};

static void read_sync_block(struct field_reader *reader, uint64_t object, uint32_t index, struct object_monitor *ret)
{
    struct reader *raw = &reader->raw;
    const struct layout *layout = reader->layout;
    if (!layout->global_present[G_SyncTableEntries]) {
        reader_fail(raw, CDACQ_ERR_FIELD, 0, "SyncTableEntries");
        return;
    }
    uint64_t table = read_pointer(raw, layout->globals[G_SyncTableEntries]);
    uint64_t entry = table + (uint64_t)index * layout->sizes[T_SyncTableEntry];
    if (!index || !layout->sizes[T_SyncTableEntry] ||
        (has_field(reader, F_SyncTableEntry_Object) && read_field(reader, entry, F_SyncTableEntry_Object) != object))
        reader_fail(raw, CDACQ_ERR_CORRUPT, entry, "SyncTableEntry.Object");
    ret->sync_index = index;
    ret->sync_block = read_field(reader, entry, F_SyncTableEntry_SyncBlock);
    if (reader_failed(raw) || !ret->sync_block)
        return;
    uint32_t state = (uint32_t)read_field(reader, ret->sync_block, F_SyncBlock_LockState);
    ret->held = state & LOCK_IS_LOCKED;
    ret->waiters = state >> LOCK_WAITER_SHIFT;
    if (ret->held) {
        ret->thread = read_field(reader, ret->sync_block, F_SyncBlock_HoldingThread);
        ret->recursion = (uint32_t)read_field(reader, ret->sync_block, F_SyncBlock_Recursion);
        ret->recursion -= ret->recursion > 0; /* it counts the first entry too */
    }
}

bool object_monitor_read(struct field_reader *reader, uint64_t object, struct object_monitor *ret)
{
    struct object_monitor monitor = {0};
    uint32_t header = read_u32(&reader->raw, object - reader->layout->globals[G_SyncBlockValueToObjectOffset]);
    if ((header & HEADER_IS_HASH_OR_INDEX) && (header & HEADER_IS_HASH)) {
        monitor.has_hash = true;
        monitor.hash = header & HEADER_INDEX_MASK;
    } else if (header & HEADER_IS_HASH_OR_INDEX) {
        read_sync_block(reader, object, header & HEADER_INDEX_MASK, &monitor);
    } else if (header & THIN_THREAD_MASK) {
        monitor.held = monitor.thin = true;
        monitor.thread_id = header & THIN_THREAD_MASK;
        monitor.recursion = (header & THIN_RECURSION_MASK) >> THIN_RECURSION_SHIFT;
    }
    if (reader_failed(&reader->raw))
        return false;
    *ret = monitor;
    return true;
}
