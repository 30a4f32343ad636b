/*
 * namer.h: what the forms of a name (names.c, names_runtime.c) have in common: one name in the making with its bounds,
 * strings of metadata made printable, and a type with those that enclose it. Internal to the formats that write names.
 */
#ifndef CDACQ_FORMATS_NAMER_H
#define CDACQ_FORMATS_NAMER_H

#include "formats/names.h"
#include "formats/signature.h"

enum {
    NAME_FUEL = 1 << 18,   /* elements of signatures; real names take some hundreds */
    NAME_BULK = 16,        /* bytes copied or rows searched for one unit of fuel */
    NAME_DEPTH_CAP = 64,   /* types within types, through TypeSpecs too */
    NAME_NESTING_CAP = 32, /* classes within classes */
};

/* Where VAR or MVAR get their names from. */
struct formals {
    const struct metadata *metadata; /* NULL: not known */
    struct metadata_generics generics;
};

/* One name in the making. The status is sticky: once it is a failure, every step does nothing. */
struct namer {
    const struct name_source *source;
    struct text *text;
    enum cdacq_status status;
    uint32_t fuel;
    unsigned depth;
    const struct metadata *outer; /* what tokens in generic arguments refer to, whatever module their type is from */
    struct formals type_formals, method_formals;
    size_t text_length; /* when we began, to go back to */
};

struct namer namer_begin(const struct name_source *source, struct text *text);

/* Takes back what was appended, where the name has failed. */
enum cdacq_status namer_end(struct namer *n);

static inline bool namer_fail(struct namer *n, enum cdacq_status status)
{
    if (n->status == CDACQ_OK)
        n->status = status;
    return false;
}

static inline bool namer_check(struct namer *n, enum cdacq_status status)
{
    return LIKELY(status == CDACQ_OK) ? n->status == CDACQ_OK : namer_fail(n, status);
}

static inline bool namer_spend(struct namer *n, uint32_t units)
{
    if (UNLIKELY(n->fuel < units || n->text->broken))
        return namer_fail(n, CDACQ_ERR_FUEL);
    n->fuel -= units;
    return n->status == CDACQ_OK;
}

/* For an amount of bytes, or for a search by key. */
bool namer_spend_bulk(struct namer *n, size_t amount);
bool namer_spend_search(struct namer *n, const struct metadata *m, enum metadata_table table);

/* NULL, and the name fails, where the source does not know the module. */
const struct metadata *namer_module(struct namer *n, uint32_t index);

/* A string of #Strings, printable. */
void namer_put_string(struct namer *n, const struct metadata *m, uint32_t index);

/* A cursor over a signature of the source; it takes type handles where the source can name them. */
struct signature namer_cursor(const struct namer *n, const void *data, size_t length);

/* Whether the cursor is good; a bad one fails the name. */
static inline bool namer_good(struct namer *n, const struct signature *s)
{
    return s->failed ? namer_fail(n, CDACQ_ERR_FORMAT) : n->status == CDACQ_OK;
}

struct type_level {
    uint32_t rid;
    uint32_t name, namespace_name;
    struct formals formals; /* only where path_read_arities was called */
};

/* A type with those that enclose it, innermost first. */
struct type_path {
    const struct metadata *metadata;
    unsigned count;
    bool arities_known; /* by each level's own parameters; otherwise by its `N */
    uint32_t scope;     /* of a TypeRef: what the outermost one refers to (metadata_type_ref); 0 of a TypeDef */
    struct type_level levels[NAME_NESTING_CAP];
};

/* The path of a TypeDef or TypeRef. False, and the name fails, where it is malformed. */
bool namer_path(struct namer *n, const struct metadata *m, uint32_t token, struct type_path *path);

#endif
