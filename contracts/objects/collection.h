/*
 * collection.h: the contents of arrays and of the collections of the core libraries: List, Queue, Stack, HashSet,
 * Dictionary, ConcurrentDictionary, and types that are derived from them. A collection is found by the name of its type
 * and read by the names of its fields: one that has other fields is none.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Collections/Generic/{List,Queue,HashSet,
 * Dictionary}.cs; src/libraries/System.Collections/src/System/Collections/Generic/Stack.cs;
 * src/libraries/System.Collections.Concurrent/src/System/Collections/Concurrent/ConcurrentDictionary.cs.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_COLLECTION_H
#define CDACQ_CONTRACTS_OBJECTS_COLLECTION_H

#include "contracts/objects/value.h"

enum collection_kind {
    COLLECTION_ARRAY,
    COLLECTION_LIST,
    COLLECTION_QUEUE,
    COLLECTION_STACK,
    COLLECTION_SET,
    COLLECTION_DICTIONARY,
    COLLECTION_CONCURRENT_DICTIONARY,
};

struct collection {
    enum collection_kind kind;
    struct object_array array; /* that holds the items, entries or buckets */
    uint64_t count;            /* of items; of a ConcurrentDictionary, as its locks count them */
    /* The rest is private. */
    uint64_t position, passed, head, node;
    struct object_field key, value, next; /* of an entry or a node */
};

struct collection_item {
    uint64_t index; /* counts the items */
    bool has_key;
    struct cdacq_value key, value;
};

/* False: the object is no collection that this build knows, or the reader fails. */
bool collection_open(struct module_cache *cache, uint64_t object, struct collection *ret);

/*
 * The next item, and true. An item that cannot be read makes the reader fail: *ret has its index, and the call after
 * that, with a reader that was recovered, goes on. False, and the reader does not fail: there are no more.
 */
bool collection_next(struct module_cache *cache, struct collection *collection, struct collection_item *ret);

#endif
