/*
 * namer.h: the state of a name that is being written, and the metadata that names consist of: strings, types with the
 * types that enclose them, generic parameters, assemblies. Internal to names and to the feeders of types.
 */
#ifndef CDACQ_FORMATS_NAMES_NAMER_H
#define CDACQ_FORMATS_NAMES_NAMER_H

#include "formats/names/names.h"

enum {
    NAME_FUEL = 1 << 18,   /* elements of signatures; real names take some hundreds */
    NAME_BULK = 16,        /* bytes copied or rows searched for one unit of fuel */
    NAME_DEPTH_FREE = 64,  /* types within types, through TypeSpecs too, for which no stack is looked for */
    NAME_NESTING_CAP = 32, /* classes within classes */
};

/* The source of the names of type parameters. */
struct formals {
    const struct metadata *metadata; /* NULL: not known */
    struct metadata_generics generics;
};

/* The assembly of a type: the one that `scope` (of a TypeRef; 0: of a TypeDef) refers to. */
struct origin {
    const struct metadata *metadata; /* NULL: the core library */
    uint32_t scope;
};

/* The generic parameter that an argument is for. */
struct type_parameter {
    const struct metadata *metadata; /* NULL: not known */
    uint32_t owner;                  /* TypeDef or MethodDef */
    uint32_t number;
};

/* A part of the text: a tuple that was just written, with its opening word and its one closing character. */
struct written_tuple {
    size_t begin, end, open;
};

/* The status is sticky: once it is a failure, every step does nothing. */
struct namer {
    const struct name_source *source;
    const struct type_spelling *types; /* how the next type is written */
    struct text *text;
    enum cdacq_status status;
    uint32_t fuel;
    unsigned depth;
    uintptr_t stack_floor; /* which deeper frames may reach; 0: not looked for yet */
    const struct metadata
        *outer;                /* that tokens of generic arguments refer to, even if their type is of another module */
    struct formals formals[2]; /* the names of type parameters: of the type, of the method */
    uint32_t formals_owner[2]; /* their TypeDef, their MethodDef; 0: not known */
    const struct name_instance *instance; /* the arguments for them; NULL: they are not substituted */
    const struct name_instance *bound;    /* the arguments of the next definition of a type; NULL: its formals */
    struct type_parameter parameter;      /* of the argument that is written */
    const char *reference;                /* precedes the next type if that is a reference; NULL: the spelling's word */
    bool written;                         /* types without what the compiler has added to their names */
    bool unabbreviated;                   /* the next type: System.Nullable<int>, not int? */
    struct written_tuple tuple;
    struct origin origin;          /* of the type that was written last */
    size_t brackets, brackets_end; /* in the text, of the last array */
    size_t text_length;            /* before the name */
};

struct namer namer_begin(const struct name_source *source, const struct type_spelling *types, struct text *text);

/* Removes what was appended if the name has failed. */
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

/* Removes what was written after `length` bytes, and the failure. */
static inline void namer_retry(struct namer *n, size_t length)
{
    n->status = CDACQ_OK;
    n->text->length = length;
    if (n->text->data)
        n->text->data[length] = '\0';
}

/* A part of the name is written without what cannot be read, and the source hears of it. OK: nothing is lost. */
static inline void namer_lose(struct namer *n, enum cdacq_status status)
{
    if (UNLIKELY(status < 0) && n->source->part_lost)
        n->source->part_lost(n->source->context, status);
}

/*
 * Whether the stack of this thread has room for a type that is deep within others. Only that and the length bound a
 * name: programs can have arguments of any depth.
 */
bool namer_has_stack(struct namer *n);

/* For `amount` bytes, or for a search by key. */
bool namer_spend_bulk(struct namer *n, size_t amount);
bool namer_spend_search(struct namer *n, const struct metadata *m, enum metadata_table table);

/* NULL, and the name fails, if the source lacks the module. */
const struct metadata *namer_module(struct namer *n, uint32_t index);

/* A blob of metadata, which the caller deinitialises. */
bool namer_blob(struct namer *n, const struct metadata *m, uint32_t index, struct metadata_blob *blob);

/* Exchanges the text from `begin` to `middle` with the rest after it. */
void namer_rotate(struct namer *n, size_t begin, size_t middle);

/*
 * A string of #Strings, printable; the same with a backslash before each character that is reserved in names of types;
 * a namespace with the dot that ends it; the simple name of an assembly.
 */
void namer_put_string(struct namer *n, const struct metadata *m, uint32_t index);
void namer_put_reserved(struct namer *n, const struct metadata *m, uint32_t index);
void namer_put_namespace(struct namer *n, const struct metadata *m, uint32_t index,
                         void (*put)(struct namer *n, const struct metadata *m, uint32_t index));
void namer_put_origin(struct namer *n, struct origin origin);

/*
 * The same with its version, culture and public key token: "A, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null".
 */
void namer_put_identity(struct namer *n, struct origin origin);

/* ---- Types and those that enclose them ---- */

struct type_level {
    uint32_t rid;
    uint32_t name, namespace_name;
    struct formals formals; /* only after path_read_arities */
};

/* A type and the types that enclose it, innermost first. */
struct type_path {
    const struct metadata *metadata;
    uint32_t token;
    unsigned count;
    bool arities_known; /* from each level's own parameters; otherwise from its `N */
    uint32_t scope;     /* of the outermost TypeRef (metadata_type_ref); 0 of a TypeDef */
    struct type_level levels[NAME_NESTING_CAP];
};

/* The path of a TypeDef or TypeRef. False, and the name fails, if it is malformed. */
bool namer_path(struct namer *n, const struct metadata *m, uint32_t token, struct type_path *path);

/* The generic parameters of a TypeDef or MethodDef. */
bool namer_formals(struct namer *n, const struct metadata *m, uint32_t owner, struct formals *ret);

#endif
