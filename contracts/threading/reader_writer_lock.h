/*
 * reader_writer_lock.h: System.Threading.ReaderWriterLockSlim: which thread writes, which one reads and may upgrade,
 * how many threads read, and what a waiting thread waits to do.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/ReaderWriterLockSlim.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_READER_WRITER_LOCK_H
#define CDACQ_CONTRACTS_THREADING_READER_WRITER_LOCK_H

#include "contracts/threading/threading_types.h"

struct reader_writer_lock {
    uint32_t writer;   /* id (Thread.ManagedThreadId) of the thread that writes; 0: none, or not known */
    uint32_t upgrader; /* id of the thread that reads and may go on to write; 0: none, or it writes already */
    uint32_t readers;  /* number of threads that read, with the upgrader; the lock does not record the others */
    uint32_t waiters;  /* number of threads that wait, in any way */
};

/* What a thread waits to do. The lock has an event for each. */
enum reader_writer_wait {
    READER_WRITER_UNKNOWN,
    READER_WRITER_TO_READ,
    READER_WRITER_TO_WRITE,
    READER_WRITER_TO_READ_UPGRADEABLY,
    READER_WRITER_TO_UPGRADE, /* to write: it reads already */
};

/* In these functions, `object` must be of THREADING_READER_WRITER. */

/* Reads the state of the lock. False, and *ret is untouched, if it cannot be read. */
bool reader_writer_lock_read(struct threading_types *types, uint64_t object, struct reader_writer_lock *ret);

/* What a thread waits to do that waits for `handle`, a SafeWaitHandle. UNKNOWN: the handle is that of no event. */
enum reader_writer_wait reader_writer_wait_of(struct threading_types *types, uint64_t object, uint64_t handle);

/*
 * Whether a thread that waits in this way can enter only after the owner has left: the writer if `writes`, otherwise
 * the upgrader.
 */
bool reader_writer_waits_for(bool writes, enum reader_writer_wait wait);

#endif
