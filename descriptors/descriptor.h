/*
 * descriptor.h: the types, globals and contracts of a runtime, merged from all documents about it into one flat table,
 * which is immutable afterwards.
 *
 * Documents are added in this order: the baseline that the runtime names, the runtime's own (which overrides it), its
 * sub-descriptors and the supplements (which only add), files of the user (which override everything). An indirect
 * value is resolved against the pointer data of its own document before it is merged. Each item records the document
 * that it came from and one that disagreed.
 * Source: dotnet/runtime docs/design/datacontracts/{contract-descriptor,data_descriptor}.md.
 */
#ifndef CDACQ_DESCRIPTORS_DESCRIPTOR_H
#define CDACQ_DESCRIPTORS_DESCRIPTOR_H

#include "cdacq/target.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "util/vector.h"

struct json;

enum { DESCRIPTOR_ITEM_MAX = 128 * 1024 };

struct descriptor_item {
    enum cdacq_descriptor_item_kind kind;
    const char *scope; /* of a field: its type */
    const char *name;
    const char *type; /* declared type, NULL where none */
    const char *text; /* a string value; of a contract its version */
    uint64_t value;
    bool has_value;
    const char *origin;
    const char *other; /* a document with another value, NULL where there is none */
};

struct descriptor_key {
    enum cdacq_descriptor_item_kind kind;
    const char *scope, *name;
};

struct descriptor_slot {
    struct descriptor_key key;
    uint32_t index;      /* into the items */
    uint32_t definition; /* of a field: the last definition of its type that had it */
};

DEFINE_VECTOR(descriptor_items, struct descriptor_item);
DEFINE_HASH_TABLE_TYPE(descriptor_slots, struct descriptor_slot);

struct descriptor {
    struct descriptor_items items; /* in the order of addition */
    struct descriptor_slots slots;
    struct arena strings; /* all strings of the items */
    unsigned schema;      /* "version" of the runtime's own document */
    bool has_schema, schema_is_own;
    uint32_t definitions; /* of types, in all documents so far */
};

enum descriptor_merge {
    MERGE_ADD,      /* existing items stay */
    MERGE_OVERRIDE, /* existing items are replaced */
};

/* The pointer data of one document. `values` is NULL where it may have no indirect values. */
struct pointer_data {
    const uint64_t *values;
    size_t count;
    bool unknown; /* no process has filled the `count` values in: such globals get no value */
};

/*
 * Adds the document `root`, which `origin` names in messages. Fails with NOMEM, or with DESCRIPTOR for an index beyond
 * the pointer data, a duplicate field of a type, and anything else that is not a valid descriptor.
 */
enum cdacq_status descriptor_add(struct descriptor *descriptor, const struct json *root, const char *origin,
                                 struct pointer_data pointer_data, enum descriptor_merge merge,
                                 struct cdacq_error *err);

/* NULL where there is none. `scope` is the type for a field, otherwise "". */
const struct descriptor_item *descriptor_find(const struct descriptor *descriptor, enum cdacq_descriptor_item_kind kind,
                                              const char *scope, const char *name);

void descriptor_deinit(struct descriptor *descriptor);

#endif
