#include "contracts/threading/reader_writer_lock.h"

/* Bits of _owners. The bits between them say who waits. */
#define WRITES       UINT32_C(0x80000000)
#define READERS_MASK UINT32_C(0x0fffffff)

static bool read_u32_of(struct threading_types *types, uint64_t object, enum threading_field field, uint32_t *ret)
{
    uint64_t value;
    if (!threading_read(types, object, field, &value))
        return false;
    *ret = (uint32_t)value;
    return true;
}

bool reader_writer_lock_read(struct threading_types *types, uint64_t object, struct reader_writer_lock *ret)
{
    static const enum threading_field waiter_fields[] = {THREADING_RW_WAIT_READ, THREADING_RW_WAIT_WRITE,
                                                         THREADING_RW_WAIT_UPGRADEABLE, THREADING_RW_WAIT_UPGRADE};
    struct reader_writer_lock lock = {0};
    uint32_t owners, writer, upgrader, upgrader_reads, waiters;
    if (!read_u32_of(types, object, THREADING_RW_OWNERS, &owners) ||
        !read_u32_of(types, object, THREADING_RW_WRITER, &writer) ||
        !read_u32_of(types, object, THREADING_RW_UPGRADER, &upgrader) ||
        !read_u32_of(types, object, THREADING_RW_UPGRADER_READS, &upgrader_reads))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(waiter_fields); i++) {
        if (!read_u32_of(types, object, waiter_fields[i], &waiters))
            return false;
        lock.waiters += waiters;
    }
    if (owners & WRITES) {
        lock.writer = (int32_t)writer > 0 ? writer : 0; /* -1: a thread is about to enter or to leave */
    } else {
        lock.readers = owners & READERS_MASK;
        lock.upgrader = lock.readers && (int32_t)upgrader > 0 ? upgrader : 0;
        bool twice = lock.upgrader && upgrader_reads; /* the lock keeps this only if it allows recursion */
        lock.readers -= twice && lock.readers > 1;
    }
    *ret = lock;
    return true;
}

enum reader_writer_wait reader_writer_wait_of(struct threading_types *types, uint64_t object, uint64_t handle)
{
    static const struct {
        enum threading_field event;
        enum reader_writer_wait wait;
    } rows[] = {
        {THREADING_RW_READ_EVENT, READER_WRITER_TO_READ},
        {THREADING_RW_WRITE_EVENT, READER_WRITER_TO_WRITE},
        {THREADING_RW_UPGRADEABLE_EVENT, READER_WRITER_TO_READ_UPGRADEABLY},
        {THREADING_RW_UPGRADE_EVENT, READER_WRITER_TO_UPGRADE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (threading_field_has_handle(types, object, rows[i].event, handle))
            return rows[i].wait;
    return READER_WRITER_UNKNOWN;
}

/* A reader does not wait for the upgrader, because both can read at once; a thread that upgrades is the upgrader. */
bool reader_writer_waits_for(bool writes, enum reader_writer_wait wait)
{
    return writes || wait == READER_WRITER_TO_WRITE || wait == READER_WRITER_TO_READ_UPGRADEABLY;
}
