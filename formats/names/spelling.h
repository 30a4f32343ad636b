/*
 * spelling.h: what a spelling of names consists of: a row of words and operations for types, one a place where types
 * occur, and an operation that writes a method. A spelling is a file, spelling_*.c; nothing else knows which it is.
 */
#ifndef CDACQ_FORMATS_NAMES_SPELLING_H
#define CDACQ_FORMATS_NAMES_SPELLING_H

#include "formats/names/type_walk.h"

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

struct parameter_style {
    struct list_style list;
    const char *rest;     /* ends a list with variable arguments; NULL: nothing */
    const char *sentinel; /* is written where those of a call site begin; NULL: nothing */
    bool stops;           /* there: they are not written */
};

/* A function pointer: its calling convention, its return type, its parameters. */
struct function_style {
    const char *open, *close;
    void (*convention)(struct namer *n, const struct signature_header *header); /* NULL: not written */
    struct parameter_style parameters;
    bool result_last;
};

/* How types are written in one place. NULL, unless said otherwise: such a type has no name there. */
struct type_spelling {
    enum primitive_column primitives;
    bool qualified; /* all of which have their namespace */
    bool handles;   /* a type handle in a signature is the type itself, not just its definition */
    const char *class_word, *valuetype_word; /* before a token in a signature; NULL: nothing */
    const char *module;                      /* the type of a module's functions */
    const char *pointer, *byref[2];          /* after the type; before and after it */
    const char *pinned, *modopt, *modreq;    /* NULL: modifiers are not written */
    const char *one_dimension;               /* of an array that is no vector */
    bool outer_brackets_first;               /* of arrays of arrays */
    uint8_t first_zapsig; /* of the elements that only ReadyToRun images have, the first that is known; 0: none is */
    bool type_specs;      /* are followed; otherwise they are passed to `named` */
    bool named_takes_arguments; /* otherwise they follow as a list */
    bool assemblies;            /* each argument is in brackets, with its assembly */
    struct list_style arguments;
    const struct function_style *function;
    const char *unknown_variable[2], *unknown_function;
    /* The size and bounds of a dimension; NULL: not written. */
    void (*dimension)(struct namer *n, const struct array_shape *shape, uint32_t i);
    void (*named)(struct namer *n, const struct named_type *type, struct type_arguments *arguments);
    struct formals (*definition)(struct namer *n, const struct metadata *m, uint32_t token); /* NULL: as `named` */
    void (*variable)(struct namer *n, bool of_method, uint32_t number);
};

/* Types that stand by themselves, as the runtime spells them: without assemblies, and with them. */
extern const struct type_spelling type_spelling_reflection, type_spelling_reflection_full;

/* `!0`, `!!0` */
void type_variable_number(struct namer *n, bool of_method, uint32_t number);

/* A method, as far as it is known. */
struct named_method {
    const struct metadata *metadata; /* that its tokens belong to; NULL: none */
    uint32_t token;                  /* MethodDef or MemberRef; 0: none, and then owner and name are plain */
    uint32_t parent;                 /* of a MemberRef; the token itself of a MethodDef */
    const char *plain_owner, *plain_name;
    uint32_t name;
    struct signature owner; /* of the type, where the method's own metadata does not say it all; `at` is NULL: none */
    const struct metadata *owner_metadata;
    const struct name_instance *instance; /* NULL: not instantiated, or not known */
    bool has_parameters;                  /* `header` and `signature` are known */
    struct signature_header header;
    struct signature signature; /* after its header: the return type and the parameters */
};

/* The type that a method belongs to; it sets the namer's origin. Its name. Its arguments, for type_argument_list. */
void method_put_owner(struct namer *n, const struct named_method *method);
void method_put_name(struct namer *n, const struct named_method *method);
struct type_arguments method_arguments(const struct named_method *method);

#endif
