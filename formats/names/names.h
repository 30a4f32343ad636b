/*
 * names.h: names of methods, from metadata and signatures, in four spellings:
 *
 *     csharp  Ns.Outer.Inner<int>.M<U>(int, ref U, Ns.Dictionary<string, int>.Enumerator[])
 *     sos     Ns.Outer`1+Inner[[System.Int32, System.Private.CoreLib]].M[[Ns.Own, Own]](Int32, Ns.Own)
 *     il      instance void [Own] Ns.Outer`1+Inner[System.Int32]::M(!0,class [System.Runtime]Ns.List`1<!!0>&)
 *
 *     source  lambda in Ns.Outer.Inner<int>.M<U>(int)
 *
 * spelling_csharp.c, spelling_sos.c, spelling_il.c and spelling_source.c describe them.
 *
 * Signatures and metadata are not trusted. Work is bounded by fuel, recursion by the stack of the thread and text by
 * its cap (all three CDACQ_ERR_FUEL). Malformed input has no name (CDACQ_ERR_FORMAT). A name is appended to a text and
 * is printable (text_escape); on failure the text is unchanged. The functions are thread-safe if the sources of the
 * metadata are.
 * Source: ECMA-335 II.23.2 (signatures); dotnet/runtime src/coreclr/inc/formattype.cpp,
 * src/coreclr/vm/{typestring,sigformat,method,perfmap}.cpp.
 */
#ifndef CDACQ_FORMATS_NAMES_NAMES_H
#define CDACQ_FORMATS_NAMES_NAMES_H

#include "formats/metadata.h"
#include "formats/names/entry_point.h"
#include "util/text.h"

struct namer;
struct named_method;
struct type_spelling;

/* A spelling. Callers choose one of those below. */
struct name_spelling {
    const struct type_spelling *owner; /* of the type that a method belongs to */
    void (*put_method)(struct namer *n, const struct named_method *method);

    /* Names the definition, List<T>.Add(T), if the instance is not known. Others have no name then. */
    bool formal;
    bool arguments;                         /* shows what the method is instantiated over, and so do its parameters */
    bool result;                            /* shows what the method returns */
    const char *dynamic_class, *stub_class; /* the owner of a DynamicMethod, and of an IL stub (NULL: the same) */
};

extern const struct name_spelling name_spelling_csharp, name_spelling_sos, name_spelling_il, name_spelling_source;

/* `sos` with the identities of assemblies, as the runtime writes a stack when it ends the process. Needs `core`. */
extern const struct name_spelling name_spelling_fatal;

/* As the runtime's stack traces write it: Ns.Outer`1.M[T](T item, String text). */
extern const struct name_spelling name_spelling_stack_trace;

/* What a name is made from. Tokens need only `metadata`; the rest is for signatures that the runtime wrote. */
struct name_source {
    const struct metadata *metadata; /* what tokens refer to; NULL if a signature has none */
    const struct metadata *core;     /* of the core library, for its identity; NULL: not needed */

    /*
     * Feeds the type at a type handle (ELEMENT_TYPE_INTERNAL, in stored signatures) to the namer. NULL: signatures with
     * type handles have no name in spellings that show the whole type.
     */
    void (*type_handle)(void *context, uint64_t address, struct namer *n);

    /*
     * The TypeDef of a type handle. The metadata must outlive the call that asked. NULL: signatures that need it have
     * no name.
     */
    enum cdacq_status (*type_definition)(void *context, uint64_t address, const struct metadata **ret_metadata,
                                         uint32_t *ret_token);
    unsigned pointer_size; /* of the target: 4 or 8; 0: type handles do not occur */
    bool big_endian;

    /* Metadata of module number `index` of a ReadyToRun image, or NULL. No callback: only `metadata` is known. */
    const struct metadata *(*module)(void *context, uint32_t index);

    /*
     * Told why before a formal parameter replaces an argument that has failed. It clears the failure of the reader that
     * the metadata and the feeders read by, if there is one. NULL: the caller does not ask.
     */
    void (*argument_lost)(void *context, enum cdacq_status status);

    /*
     * Told why a part of the name was written without what could not be read: a parameter without its `out`, a type
     * parameter by its number. The same otherwise.
     */
    void (*part_lost)(void *context, enum cdacq_status status);

    void *context;
};

/* What a method returns. Since .NET 11, some callers get what a method's Task would yield, instead of the Task. */
enum name_result {
    NAME_RESULT_DECLARED, /* the type in its signature */
    NAME_RESULT_OF_TASK,  /* what the Task or ValueTask in its signature yields */
    NAME_RESULT_VOID,
};

/* What a method is instantiated over, and which of its variants is meant. */
struct name_instance {
    /* Feeds the type that the method belongs to. NULL: the TypeDef around the MethodDef. */
    void (*owner)(void *context, struct namer *n);

    /* Feeds a type argument of that type, or of the method. Counts of 0: not instantiated, or not known. */
    void (*argument)(void *context, bool of_method, uint32_t index, struct namer *n);
    uint32_t type_count, method_count;
    void *context;
    enum name_result result;
};

/*
 * The name of a MethodDef or MemberRef, with its type and parameters. `instance` may be NULL. The source needs only
 * metadata.
 */
enum cdacq_status name_method(const struct name_source *source, const struct name_spelling *spelling, uint32_t token,
                              const struct name_instance *instance, struct text *ret);

/* A method without metadata of its own. */
struct dynamic_method {
    const char *owner, *name; /* the owner is written as its type, instead of that of `instance` */
    const void *signature;
    size_t length;
    const struct name_instance *instance; /* may be NULL */
};

enum cdacq_status name_dynamic(const struct name_source *source, const struct name_spelling *spelling,
                               const struct dynamic_method *method, struct text *ret);

/*
 * The instantiated method that a signature in a ReadyToRun image refers to. Needs the module callback for all modules
 * that occur in it (CDACQ_ERR_MODULE). The assembly of a type of another module is the one that the reference names,
 * even if that only forwards the type.
 */
enum cdacq_status name_entry_point(const struct name_source *source, const struct name_spelling *spelling,
                                   const struct name_entry_point *entry, struct text *ret);

#endif
