/*
 * metadata_members.h: fields, constants and interfaces of types, and which type or method a token is.
 * Source: ECMA-335 II.22. Statuses are those of metadata.h.
 */
#ifndef CDACQ_FORMATS_METADATA_MEMBERS_H
#define CDACQ_FORMATS_METADATA_MEMBERS_H

#include "formats/metadata.h"

enum {
    FIELD_FLAG_STATIC = 0x10,
    FIELD_FLAG_LITERAL = 0x40, /* a constant, which takes no memory */
    METHOD_FLAG_STATIC = 0x10,
    METHOD_FLAG_VIRTUAL = 0x40,
    METHOD_IMPL_AGGRESSIVE_INLINING = 0x100,
    METHOD_IMPL_ASYNC = 0x2000, /* .NET 11 suspends the method itself: it has no state machine */
};

struct metadata_field {
    uint32_t flags, name, signature;
};

struct metadata_interface_impl {
    uint32_t type;      /* rid of a TypeDef */
    uint32_t interface; /* TypeDef, TypeRef or TypeSpec */
};

METADATA_ROW_READER(field, FIELD)
METADATA_ROW_READER(interface_impl, INTERFACE_IMPL)

/* The value (index into #Blob) of a literal field; false in *ret_found if it has none. */
enum cdacq_status metadata_field_constant(const struct metadata *metadata, uint32_t field, bool *ret_found,
                                          uint32_t *ret_value);

/* Sets *ret, which is otherwise unchanged, if a MethodDef has no parameters and is not generic. */
enum cdacq_status metadata_method_takes_nothing(const struct metadata *metadata, uint32_t method, bool *ret);

/* The method of a TypeDef by its name: its rid, or 0 if none has it, several have, or the table is indirect. */
enum cdacq_status metadata_method_named(const struct metadata *metadata, uint32_t type, const char *name, size_t length,
                                        uint32_t *ret);

/* Whether a TypeDef declares an event of that name. False in *ret, too, if the table is indirect. */
enum cdacq_status metadata_has_event(const struct metadata *metadata, uint32_t type, const char *name, size_t length,
                                     bool *ret);

/* Whether a TypeDef implements namespace.name itself. */
enum cdacq_status metadata_implements(const struct metadata *metadata, uint32_t type, const char *space,
                                      const char *name, bool *ret);

/* Whether a TypeDef names the interface `token` as one of its own. */
enum cdacq_status metadata_implements_token(const struct metadata *metadata, uint32_t type, uint32_t token, bool *ret);

/* Whether a TypeDef or TypeRef is namespace.name; false for other tokens. */
enum cdacq_status metadata_type_is(const struct metadata *metadata, uint32_t token, const char *space, const char *name,
                                   bool *ret);

/* Whether the metadata are those of the assembly with this simple name. */
enum cdacq_status metadata_assembly_is(const struct metadata *metadata, const char *name, bool *ret);

/* Whether a MethodDef token is the method `method` of namespace.type. */
enum cdacq_status metadata_method_is(const struct metadata *metadata, uint32_t token, const char *space,
                                     const char *type, const char *method, bool *ret);

#endif
