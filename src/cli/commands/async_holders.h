/*
 * async_holders.h: what holds the objects that async methods wait for: who could complete a TaskCompletionSource, which
 * field a semaphore is in.
 */
#ifndef CDACQ_CLI_COMMANDS_ASYNC_HOLDERS_H
#define CDACQ_CLI_COMMANDS_ASYNC_HOLDERS_H

#include "cdacq.h"
#include "util/hash_table.h"

struct async_holder {
    uint64_t object;
    uint64_t operation; /* the one that waits for it */
    char *text;         /* "static field Ns.Type.Field: _items[3]._gate"; the struct that follows owns it */
};

DEFINE_U64_TABLE(async_holder_table, struct async_holder, object);

struct async_holders {
    struct async_holder_table table; /* with objects that have no text yet */
};

/* Notes an object to be searched for; 0: none. Exits when out of memory. */
void async_holders_add(struct async_holders *holders, uint64_t object, uint64_t operation);

/*
 * Finds the texts of all of them. False, with a message: some are not known, because a part of the heap or of the roots
 * was left out, or it cannot be read at all. `results` is where results go.
 */
bool async_holders_find(struct async_holders *holders, struct cdacq_session *session, int results);

/* NULL: it was not added. */
const char *async_holders_text(const struct async_holders *holders, uint64_t object);

void async_holders_deinit(struct async_holders *holders);

#endif
