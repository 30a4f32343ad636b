/*
 * sync_block.h: the header before an object, and its sync block: who owns its monitor. .NET 8 to 10 keep the monitor in
 * the header (a thin lock) or in the sync block (an AwareLock).
 * Source: dotnet/runtime docs/design/datacontracts/{Object,SyncBlock}.md; src/coreclr/vm/syncblk.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_SYNC_BLOCK_H
#define CDACQ_CONTRACTS_OBJECTS_SYNC_BLOCK_H

#include "descriptors/field_reader.h"

struct object_monitor {
    bool held;
    bool thin;           /* the lock is in the header */
    uint32_t thread_id;  /* of the owner (Thread.Id), of a thin lock */
    uint64_t thread;     /* the owner's Thread, of a sync block */
    uint32_t recursion;  /* how often the owner entered again: 0 for once */
    uint32_t waiters;    /* threads that wait to enter; of a sync block only */
    uint32_t sync_index; /* of the sync block; 0: there is none */
    uint64_t sync_block;
    bool has_hash;
    uint32_t hash; /* of the header */
};

/* False, and the reader fails, if it cannot be read or is corrupt. */
bool object_monitor_read(struct field_reader *reader, uint64_t object, struct object_monitor *ret);

#endif
