/*
 * sync_block.h: the header before an object, its sync block, and the table of sync blocks: who owns a monitor, and how
 * many threads wait to enter it. A monitor is in the header (a thin lock) until a thread waits for it or the header is
 * needed for something else. .NET 8 to 10 then keep it in the sync block (an AwareLock), .NET 11 in an object of type
 * System.Threading.Lock that the sync block refers to.
 * Source: dotnet/runtime docs/design/datacontracts/{Object,SyncBlock}.md; src/coreclr/vm/syncblk.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_SYNC_BLOCK_H
#define CDACQ_CONTRACTS_OBJECTS_SYNC_BLOCK_H

#include "descriptors/fields.h"

enum { SYNC_BLOCKS_MAX = 0x3ffffff }; /* of a process: an index has 26 bits */

struct object_monitor {
    bool held;
    bool thin;            /* the lock is in the header */
    uint32_t thread_id;   /* of the owner (Thread.Id); 0: see `thread` */
    uint64_t thread;      /* the owner's Thread, of a sync block of .NET 8 and 9 */
    uint32_t recursion;   /* how often the owner entered again: 0 for once */
    uint32_t waiters;     /* threads that wait to enter; of a sync block only */
    uint32_t sync_index;  /* of the sync block; 0: there is none */
    uint64_t sync_block;  /* 0: there is none */
    uint64_t lock_object; /* the System.Threading.Lock that has the state instead; 0: the fields above have it */
    bool has_hash;
    uint32_t hash; /* of the header */
};

/* An entry of the table. */
struct sync_entry {
    uint64_t sync_block;
    uint64_t object; /* 0: the entry is free */
};

/* False, and the reader fails, if it cannot be read or is corrupt. */
bool object_monitor_read(struct reader *reader, uint64_t object, struct object_monitor *ret);

/* The monitor of a sync block, without its index. False, and the reader fails, if it cannot be read. */
bool sync_block_monitor_read(struct reader *reader, uint64_t sync_block, struct object_monitor *ret);

/*
 * The object of a sync block. False, without failing, if the runtime does not describe the way to it; false, and the
 * reader fails, if it cannot be read or the table disagrees.
 */
bool sync_block_object(struct reader *reader, uint64_t sync_block, uint64_t *ret);

/*
 * GetSyncBlockCount: entries are 1 to this number, at most SYNC_BLOCKS_MAX. 0 if there are none; 0, and the reader
 * fails, if that cannot be read.
 */
uint32_t sync_table_count(struct reader *reader);

/* False, and the reader fails, if the entry cannot be read. */
bool sync_table_entry(struct reader *reader, uint32_t index, struct sync_entry *ret);

#endif
