/*
 * reader_writer_lock.h: System.Threading.ReaderWriterLockSlim: who has entered it to write or to read with the right to
 * upgrade, how many threads have entered it to read, and in which way a thread waits for it.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/ReaderWriterLockSlim.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_READER_WRITER_LOCK_H
#define CDACQ_CONTRACTS_THREADING_READER_WRITER_LOCK_H

#include "contracts/threading/threading_types.h"

struct reader_writer_lock {
    uint32_t writer;   /* the id (Thread.ManagedThreadId) of the thread that writes; 0: none */
    uint32_t upgrader; /* that of the thread that reads and may go on to write; 0: none, or it writes already */
    uint32_t readers;  /* threads that read, also the one above; they are not recorded */
    uint32_t waiters;  /* of all kinds */
};

/* What a thread waits for, by the event that it waits for. */
enum reader_writer_wait {
    READER_WRITER_UNKNOWN,
    READER_WRITER_TO_READ,
    READER_WRITER_TO_WRITE,
    READER_WRITER_TO_READ_UPGRADEABLY,
    READER_WRITER_TO_UPGRADE, /* to write: it reads already */
};

/* False if it cannot be read. `object` must be of THREADING_READER_WRITER; so below. */
bool reader_writer_lock_read(struct threading_types *types, uint64_t object, struct reader_writer_lock *ret);

/* `handle` is the SafeWaitHandle that the thread waits for. */
enum reader_writer_wait reader_writer_wait_of(struct threading_types *types, uint64_t object, uint64_t handle);

/* Whether a thread that waits in this way can enter only after the writer (`writes`) or the upgrader has left. */
bool reader_writer_waits_for(bool writes, enum reader_writer_wait wait);

#endif
