#include "contracts/objects/sync_block.h"

/* The header: src/coreclr/vm/syncblk.h. */
enum {
    HEADER_IS_HASH_OR_INDEX = 0x08000000,
    HEADER_IS_HASH = 0x04000000,
    HEADER_INDEX_MASK = SYNC_BLOCKS_MAX,
    /* AwareLock::LockState */
    LOCK_IS_LOCKED = 1,
    LOCK_WAITER_SHIFT = 6,
    SYNC_INDEX_MASK = 0x7fffffff, /* of m_dwSyncIndex */
    ENTRY_IS_FREE = 1,            /* a bit of SyncTableEntry.Object */
};

/* A thin lock, as the header and, since .NET 11, SyncBlock.ThinLock have it. */
static void read_thin(const struct layout *layout, uint32_t bits, struct object_monitor *ret)
{
    ret->thread_id = bits & (uint32_t)layout->globals[G_SyncBlockMaskLockThreadId];
    ret->held = ret->thread_id != 0;
    if (ret->held)
        ret->recursion = (bits & (uint32_t)layout->globals[G_SyncBlockMaskLockRecursionLevel]) >>
                         (layout->globals[G_SyncBlockRecursionLevelShift] & 31);
}

/* The AwareLock of .NET 8 to 10. Its recursion counts the first entry too. */
static void read_aware_lock(struct reader *reader, uint64_t sync_block, struct object_monitor *ret)
{
    uint32_t state = (uint32_t)read_field(reader, sync_block, F_SyncBlock_LockState);
    ret->held = state & LOCK_IS_LOCKED;
    ret->waiters = state >> LOCK_WAITER_SHIFT;
    if (!ret->held)
        return;
    if (has_field(reader, F_SyncBlock_HoldingThreadId))
        ret->thread_id = (uint32_t)read_field(reader, sync_block, F_SyncBlock_HoldingThreadId);
    else
        ret->thread = read_field(reader, sync_block, F_SyncBlock_HoldingThread);
    ret->recursion = (uint32_t)read_field(reader, sync_block, F_SyncBlock_Recursion);
    ret->recursion -= ret->recursion > 0;
}

bool sync_block_monitor_read(struct reader *reader, uint64_t sync_block, struct object_monitor *ret)
{
    struct object_monitor monitor = {.sync_block = sync_block};
    if (has_field(reader, F_SyncBlock_Lock)) {
        uint64_t handle = read_field(reader, sync_block, F_SyncBlock_Lock);
        monitor.lock_object = handle ? read_pointer(reader, handle) : 0;
        if (!monitor.lock_object)
            read_thin(reader->layout, (uint32_t)read_optional(reader, sync_block, F_SyncBlock_ThinLock), &monitor);
    } else {
        read_aware_lock(reader, sync_block, &monitor);
    }
    if (reader_failed(reader))
        return false;
    *ret = monitor;
    return true;
}

uint32_t sync_table_count(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    if (!layout->global_present[G_SyncBlockCache] || !layout->global_present[G_SyncTableEntries]) {
        reader_fail(reader, CDACQ_ERR_FIELD, 0, "SyncBlockCache");
        return 0;
    }
    uint64_t cache = read_pointer(reader, layout->globals[G_SyncBlockCache]);
    uint32_t next = cache ? (uint32_t)read_field(reader, cache, F_SyncBlockCache_FreeSyncTableIndex) : 0;
    return next ? MIN(next - 1, (uint32_t)SYNC_BLOCKS_MAX) : 0;
}

bool sync_table_entry(struct reader *reader, uint32_t index, struct sync_entry *ret)
{
    const struct layout *layout = reader->layout;
    if (!layout->global_present[G_SyncTableEntries] || !layout->sizes[T_SyncTableEntry])
        return reader_fail(reader, CDACQ_ERR_FIELD, 0, "SyncTableEntries");
    uint64_t table = read_pointer(reader, layout->globals[G_SyncTableEntries]);
    uint64_t entry = table + (uint64_t)index * layout->sizes[T_SyncTableEntry];
    struct sync_entry found = {
        .sync_block = read_field(reader, entry, F_SyncTableEntry_SyncBlock),
        .object = read_field(reader, entry, F_SyncTableEntry_Object),
    };
    if (reader_failed(reader))
        return false;
    if (found.object & ENTRY_IS_FREE)
        found = (struct sync_entry){0};
    *ret = found;
    return true;
}

bool sync_block_object(struct reader *reader, uint64_t sync_block, uint64_t *ret)
{
    struct sync_entry entry;
    if (!has_field(reader, F_SyncBlock_m_dwSyncIndex) || !has_field(reader, F_SyncTableEntry_Object))
        return false;
    uint32_t index = (uint32_t)read_field(reader, sync_block, F_SyncBlock_m_dwSyncIndex) & SYNC_INDEX_MASK;
    if (!sync_table_entry(reader, index, &entry))
        return false;
    if (entry.sync_block != sync_block || !entry.object)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, sync_block, "SyncTableEntry.SyncBlock");
    *ret = entry.object;
    return true;
}

static void read_sync_block(struct reader *reader, uint64_t object, uint32_t index, struct object_monitor *ret)
{
    struct sync_entry entry;
    if (!sync_table_entry(reader, index, &entry))
        return;
    if (!index || entry.object != object) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, object, "SyncTableEntry.Object");
        return;
    }
    if (entry.sync_block && !sync_block_monitor_read(reader, entry.sync_block, ret))
        return;
    ret->sync_index = index;
}

bool object_monitor_read(struct reader *reader, uint64_t object, struct object_monitor *ret)
{
    struct object_monitor monitor = {0};
    uint32_t header = read_u32(reader, object - reader->layout->globals[G_SyncBlockValueToObjectOffset]);
    if ((header & HEADER_IS_HASH_OR_INDEX) && (header & HEADER_IS_HASH)) {
        monitor.has_hash = true;
        monitor.hash = header & HEADER_INDEX_MASK;
    } else if (header & HEADER_IS_HASH_OR_INDEX) {
        read_sync_block(reader, object, header & HEADER_INDEX_MASK, &monitor);
    } else {
        read_thin(reader->layout, header, &monitor);
        monitor.thin = monitor.held;
    }
    if (reader_failed(reader))
        return false;
    *ret = monitor;
    return true;
}
