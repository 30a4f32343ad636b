/*
 * names.h: names of methods and types as C# writes them, from metadata and signatures:
 *
 *     Ns.Outer.Inner<T>.M<U>(int, ref U, Ns.Dictionary<string, T>.Enumerator[])
 *
 * Names are metadata's own, unmangled (`<>c.<Main>b__0_0`); a level of a type lists the generic parameters that it adds
 * to those around it, and then loses its `N suffix. Types are named in full, primitive ones by keyword, generic
 * parameters by their formal names, `!0` and `!!0` where those are not known. Return types and custom modifiers are
 * left out.
 *
 * Signatures and metadata are not trusted: work is bounded by fuel, recursion by a depth, text by its cap (all three
 * CDACQ_ERR_FUEL), and what is malformed has no name (CDACQ_ERR_FORMAT). A name is appended to a text, printable
 * (text_escape); on failure the text is as it was. No state: thread-safe as far as the metadata's sources are.
 * Source: ECMA-335 II.23.2 (signatures); dotnet/runtime docs/design/coreclr/botr/readytorun-format.md.
 */
#ifndef CDACQ_FORMATS_NAMES_H
#define CDACQ_FORMATS_NAMES_H

#include "formats/metadata.h"
#include "util/text.h"

/* How a type is written: what stands around it decides. */
enum name_type_form {
    NAME_TYPE_CSHARP,    /* Ns.Outer<string>.Inner<int> */
    NAME_TYPE_BARE,      /* Ns.Outer`1+Inner`1[System.__Canon,System.Int32] */
    NAME_TYPE_FULL,      /* Ns.Outer`1+Inner`1[[System.__Canon, System.Private.CoreLib],[System.Int32, ...]] */
    NAME_TYPE_SIGNATURE, /* Inner`1<System.__Canon,Int32>: in a parameter list of CDACQ_NAMES_SOS */
};

/* What a name is made from. Only `metadata` is needed for tokens; the rest serves signatures that the runtime wrote. */
struct name_source {
    const struct metadata *metadata; /* what tokens refer to; NULL where a signature has none */

    /*
     * Appends the name of the type at a type handle (ELEMENT_TYPE_INTERNAL, in stored signatures). Its failure is the
     * name's failure. NULL: signatures with type handles have no name.
     */
    enum cdacq_status (*type_handle)(void *context, uint64_t address, struct text *ret);

    /*
     * The TypeDef that a type handle means, where a stored signature instantiates it (GENERICINST INTERNAL ...). The
     * metadata must live as long as the call that asked. NULL: such signatures have no name.
     */
    enum cdacq_status (*type_definition)(void *context, uint64_t address, const struct metadata **ret_metadata,
                                         uint32_t *ret_token);
    unsigned pointer_size; /* of the target: 4 or 8 */
    bool big_endian;

    /*
     * Metadata of the module that a ReadyToRun image calls `index`, or NULL. NULL: no module but `metadata` is known.
     */
    const struct metadata *(*module)(void *context, uint32_t index);

    void *context;
};

/*
 * The name of a MethodDef or MemberRef token, with its type and parameters. A MemberRef knows no formal parameter
 * names, and shows the instantiation of its type where it has one: `Ns.List<int>.Add(!0)`.
 */
enum cdacq_status name_method(const struct name_source *source, uint32_t token, struct text *ret);

/* The name of a TypeDef (with its formal parameters), TypeRef (as stored) or TypeSpec token. */
enum cdacq_status name_type(const struct name_source *source, uint32_t token, struct text *ret);

/*
 * The name of a TypeDef or TypeRef instantiated over `count` arguments: `argument` appends the name of each in turn.
 */
enum cdacq_status name_type_instance(const struct name_source *source, uint32_t token, uint32_t count,
                                     enum cdacq_status (*argument)(void *context, uint32_t index, struct text *ret),
                                     void *context, struct text *ret);

/* `(int, string)`: the parameters of a method signature that stands alone, as dynamic methods have. */
enum cdacq_status name_parameters(const struct name_source *source, const void *signature, size_t length,
                                  struct text *ret);

/* One type of a signature. *ret_length, which may be NULL, is how many bytes it took. */
enum cdacq_status name_signature_type(const struct name_source *source, const void *signature, size_t length,
                                      struct text *ret, size_t *ret_length);

/* ---- Method signatures of ReadyToRun images ---- */

enum name_entry_point_flags {
    NAME_ENTRY_UNBOXING_STUB = 0x01,
    NAME_ENTRY_INSTANTIATING_STUB = 0x02,
    NAME_ENTRY_METHOD_INSTANTIATION = 0x04,
    NAME_ENTRY_SLOT_INSTEAD_OF_TOKEN = 0x08,
    NAME_ENTRY_MEMBER_REF_TOKEN = 0x10,
    NAME_ENTRY_CONSTRAINED = 0x20,
    NAME_ENTRY_OWNER_TYPE = 0x40,
    NAME_ENTRY_UPDATE_CONTEXT = 0x80,
    NAME_ENTRY_ASYNC_VARIANT = 0x100,
};

/*
 * What such a signature refers to. To name it formally: name_method over the metadata of `module` with `token`. Module
 * 0 is the one whose table the signature stands in; the image numbers the others: the AssemblyRefs of its own metadata
 * (a composite image counts none), then its manifest metadata itself, then the AssemblyRefs of that.
 */
struct name_entry_point {
    unsigned flags;  /* enum name_entry_point_flags */
    uint32_t module; /* what `token` belongs to */
    uint32_t token;  /* MethodDef or MemberRef token; 0 where there is a slot instead */
    uint32_t slot;

    /*
     * The element type of the owner: ELEMENT_TYPE_CLASS or _VALUETYPE, and then owner_token is its TypeDef or TypeRef
     * in owner_module (with a TypeRef, a MethodDef token belongs to whatever module that resolves to). A primitive's,
     * such as ELEMENT_TYPE_STRING: a MethodDef token is one of System.Private.CoreLib, whatever `module` says. 0
     * without an owner.
     */
    uint8_t owner_element;
    uint32_t owner_token, owner_module;
    uint32_t context; /* the module that tokens of the owner's signature start from */

    const uint8_t *owner; /* its signature, in the blob; NULL without */
    size_t owner_length;
    const uint8_t *arguments; /* of the method, `argument_count` types, in the blob */
    size_t arguments_length;
    uint32_t argument_count;
    size_t length; /* of the whole signature */
};

/* Decodes the signature at `blob`, which may be followed by anything within its `length`. Needs no metadata. */
enum cdacq_status name_entry_point_decode(const void *blob, size_t length, struct name_entry_point *ret);

/* Only how long it is: for going through a table of thousands. */
enum cdacq_status name_entry_point_skip(const void *blob, size_t length, size_t *ret_length);

/*
 * `Ns.List<int>.ConvertAll<string>`: the method as it is instantiated, without parameters, for where the formal name
 * cannot be had. Needs the module callback for all modules that occur in it (CDACQ_ERR_MODULE).
 */
enum cdacq_status name_entry_point(const struct name_source *source, const struct name_entry_point *entry,
                                   struct text *ret);

#endif
