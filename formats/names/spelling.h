/*
 * spelling.h: a spelling of names: words and operations that write types, one set for owners and one for parameters,
 * and an operation that writes a method. Each spelling is a file, spelling_*.c; no other code depends on which one it
 * is.
 */
#ifndef CDACQ_FORMATS_NAMES_SPELLING_H
#define CDACQ_FORMATS_NAMES_SPELLING_H

#include "formats/names/namer.h"
#include "formats/names/signature.h"

struct named_type;
struct type_arguments;
struct formals;
struct array_shape;

/* The columns of the table of primitive types. */
enum primitive_column {
    PRIMITIVE_CSHARP,
    PRIMITIVE_SOS,
    PRIMITIVE_IL,
    PRIMITIVE_COLUMNS,
};

struct list_style {
    const char *open, *separator, *close;
};

/* The sentinel precedes the arguments that a call site adds to the parameters of the method. */
struct parameter_style {
    struct list_style list;
    const char *rest;     /* ends the list of a method with variable arguments; NULL: nothing */
    const char *sentinel; /* NULL: is not written */
    bool stops;           /* at the sentinel */

    /* Precedes parameter `number` (from 1) of `count`, whose type is at the cursor; NULL: nothing does. `m` is its. */
    void (*before)(struct namer *n, struct signature s, const struct metadata *m, uint32_t number, uint32_t count);
};

/* A function pointer: its calling convention, its return type, its parameters. */
struct function_style {
    const char *open, *close;
    /* Writes the calling convention. `result` is at the return type, whose modifiers belong to it. NULL: none. */
    void (*convention)(struct namer *n, const struct signature_header *header, struct signature result,
                       const struct metadata *m);
    void (*before_result)(struct namer *n, struct signature result, const struct metadata *m); /* NULL: nothing does */
    struct parameter_style parameters;
    bool result_last;
};

/* How types are written. */
struct type_spelling {
    /* Primitive types; `qualified`: each with its namespace; `simple`: none, not even String and Object. */
    enum primitive_column primitives;
    bool qualified, simple;

    /*
     * Named types. `definition` also writes the formal parameters and returns them; NULL: `named` serves for both.
     * named_takes_arguments: `named` writes the arguments; otherwise they follow as a list. The words precede a type;
     * NULL: nothing does.
     */
    void (*named)(struct namer *n, const struct named_type *type, struct type_arguments *arguments);
    struct formals (*definition)(struct namer *n, const struct metadata *m, uint32_t token);
    bool named_takes_arguments;
    bool type_specs; /* TypeSpecs are followed; otherwise `named` gets them */
    bool handles;    /* a type handle in a signature means the type with its arguments, not only its definition */
    const char *class_word, *valuetype_word;
    const char *module; /* the type that functions of a module belong to; NULL: they have no name */

    /* Lists of arguments; `assemblies`: each is in brackets, with its assembly; `identities`: and with its version. */
    struct list_style arguments;
    bool assemblies, identities;

    /* Composed types. */
    const char *pointer, *byref[2];       /* after the type; before and after it */
    const char *pinned, *modopt, *modreq; /* NULL: modifiers are not written */
    const char *one_dimension;            /* in the brackets of an array of one dimension that is no vector */
    bool outer_brackets_first;            /* of arrays of arrays */
    void (*dimension)(struct namer *n, const struct array_shape *shape, uint32_t i); /* NULL: nothing between commas */
    const struct function_style *function; /* NULL: function pointers have no name, which is an error, or, */
    bool empty_functions;                  /* an empty one */

    /* Type parameters (NULL: they have no name), and unknown types of a feeder (NULL: they have no name). */
    void (*variable)(struct namer *n, bool of_method, uint32_t number);
    const char *unknown_variable[2], *unknown_function;

    /*
     * Writes the namer's `parameter` in place of an argument that is not known: System.__Canon, for which
     * code is shared, or what cannot be read. False if it is not known either. NULL: there is no such substitute.
     */
    bool (*formal)(struct namer *n);

    /* The first element type that has a name among those of ReadyToRun images only; 0: none has. */
    uint8_t first_zapsig;
};

/* Types on their own, as the runtime spells them: without assemblies, with them, and with all of their identity. */
extern const struct type_spelling type_spelling_reflection, type_spelling_reflection_full,
    type_spelling_reflection_identities;

/* How C# writes types and methods. */
extern const struct type_spelling csharp_types;
void csharp_put_method(struct namer *n, const struct named_method *method);

/* `!0`, `!!0` */
void type_variable_number(struct namer *n, bool of_method, uint32_t number);

/* A method, as far as it is known. */
struct named_method {
    const struct metadata *metadata; /* that its tokens belong to; NULL: none */
    uint32_t token;                  /* MethodDef or MemberRef; 0: none, and then owner and name are plain */
    uint32_t parent;                 /* of a MemberRef; the token itself of a MethodDef */
    const char *plain_owner;
    const char *plain_name; /* with a token: replaces the name; NULL: does not */
    uint32_t name;
    struct signature owner; /* of the instantiated type; `at` is NULL: none */
    const struct metadata *owner_metadata;
    uint32_t flags;                       /* of a MethodDef */
    const struct name_instance *instance; /* NULL: not instantiated, or not known */
    bool has_parameters;                  /* `header` and `signature` are known */
    struct signature_header header;
    struct signature signature; /* after its header: the return type and the parameters */
};

/* The type that a method belongs to (which sets the namer's origin), its name, its arguments. */
void method_put_owner(struct namer *n, const struct named_method *method);
void method_put_name(struct namer *n, const struct named_method *method);
struct type_arguments method_arguments(const struct named_method *method);

#endif
