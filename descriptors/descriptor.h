/*
 * descriptor.h: what a runtime says of itself, from all documents that speak of it, as one immutable flat table.
 *
 * Documents are added in this order: the baseline that the runtime names, the runtime's own (which overrides it), its
 * sub-descriptors and the supplements (which only ever add), files given by the user (which override everything). An
 * indirect value is resolved against its own document's pointer data before anything is merged. Each value remembers
 * which document it came from, and which other one disagreed.
 * Source: dotnet/runtime docs/design/datacontracts/{contract-descriptor,data_descriptor}.md.
 */
#ifndef CDACQ_DESCRIPTORS_DESCRIPTOR_H
#define CDACQ_DESCRIPTORS_DESCRIPTOR_H

#include "cdacq/target.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "util/vector.h"
#include "descriptors/json.h"

enum { DESCRIPTOR_DOCUMENT_MAX = 64, DESCRIPTOR_ITEM_MAX = 128 * 1024 };

struct descriptor_item {
    enum cdacq_descriptor_item_kind kind;
    const char *scope; /* of a field: its type */
    const char *name;
    const char *type; /* declared type, NULL where none */
    const char *text; /* a string value; of a contract its version */
    uint64_t value;
    bool has_value;
    const char *origin;
    const char *other; /* a document that said something else, NULL where none did */
};

struct descriptor_key {
    enum cdacq_descriptor_item_kind kind;
    const char *scope, *name;
};

struct descriptor_slot {
    struct descriptor_key key;
    uint32_t index; /* into the items */
};

DEFINE_VECTOR(descriptor_items, struct descriptor_item);
DEFINE_HASH_TABLE_TYPE(descriptor_slots, struct descriptor_slot);

struct descriptor {
    struct descriptor_items items; /* in the order in which they came */
    struct descriptor_slots slots;
    struct arena strings; /* all strings of the items */
    unsigned schema;      /* "version" of the runtime's own document */
    bool has_schema, schema_is_own;
};

enum descriptor_merge {
    MERGE_ADD,      /* what is there stays */
    MERGE_OVERRIDE, /* what is there is replaced */
};

/* The pointer data of one document; NULL `values` where it may have no indirect values at all. */
struct pointer_data {
    const uint64_t *values;
    size_t count;
    bool unknown; /* there are `count`, but no process that has filled them in: such globals are left without a value */
};

/*
 * Adds the document `root`. `origin` names it. Without pointer data an indirect value is an error; so is an index
 * beyond it, a duplicate field within a type, and anything else that is no descriptor.
 */
enum cdacq_status descriptor_add(struct descriptor *descriptor, const struct json *root, const char *origin,
                                 struct pointer_data pointer_data, enum descriptor_merge merge,
                                 struct cdacq_error *err);

/* NULL where there is none. `scope` is the type of a field, "" else. */
const struct descriptor_item *descriptor_find(const struct descriptor *descriptor, enum cdacq_descriptor_item_kind kind,
                                              const char *scope, const char *name);

void descriptor_deinit(struct descriptor *descriptor);

#endif
