/*
 * metadata_members.h: fields, parameters, custom attributes and interfaces of types and methods.
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

/* The fields of a TypeDef, the parameters of a MethodDef: rids [begin, end). FORMAT if the tables are indirect. */
enum cdacq_status metadata_fields(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                  uint32_t *ret_end);
enum cdacq_status metadata_params(const struct metadata *metadata, uint32_t method, uint32_t *ret_begin,
                                  uint32_t *ret_end);

/* The name (index into #Strings) of a method's parameter `sequence`, from 1; false in *ret_found if it has no row. */
enum cdacq_status metadata_param_name(const struct metadata *metadata, uint32_t method, uint32_t sequence,
                                      bool *ret_found, uint32_t *ret_name);

/* The value (index into #Blob) of a literal field; false in *ret_found if it has none. */
enum cdacq_status metadata_field_constant(const struct metadata *metadata, uint32_t field, bool *ret_found,
                                          uint32_t *ret_value);

/* Sets *ret, which is otherwise unchanged, if a MethodDef has no parameters and is not generic. */
enum cdacq_status metadata_method_takes_nothing(const struct metadata *metadata, uint32_t method, bool *ret);

/*
 * The first custom attribute of a TypeDef or MethodDef whose type is namespace.name, after row `after` (0 at first).
 * *ret_rid is 0 if there is none, *ret_value an index into #Blob.
 */
enum cdacq_status metadata_attribute_find(const struct metadata *metadata, uint32_t owner_token, const char *space,
                                          const char *name, uint32_t after, uint32_t *ret_rid, uint32_t *ret_value);

/* Whether a TypeDef implements namespace.name itself. */
enum cdacq_status metadata_implements(const struct metadata *metadata, uint32_t type, const char *space,
                                      const char *name, bool *ret);

/* Whether a TypeDef or TypeRef is namespace.name; false for other tokens. */
enum cdacq_status metadata_type_is(const struct metadata *metadata, uint32_t token, const char *space, const char *name,
                                   bool *ret);

#endif
