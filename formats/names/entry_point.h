/*
 * entry_point.h: method signatures of ReadyToRun images, decoded. Pure.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md.
 */
#ifndef CDACQ_FORMATS_NAMES_ENTRY_POINT_H
#define CDACQ_FORMATS_NAMES_ENTRY_POINT_H

#include "cdacq/error.h"
#include "util/base.h"

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
 * 0 is the one whose table holds the signature; the image numbers the others: the AssemblyRefs of its own metadata
 * (a composite image counts none), then its manifest metadata itself, then the AssemblyRefs of that.
 */
struct name_entry_point {
    unsigned flags;  /* enum name_entry_point_flags */
    uint32_t module; /* what `token` belongs to */
    uint32_t token;  /* MethodDef or MemberRef token; 0 if there is a slot instead */
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

/* Only how long it is, for tables of thousands. */
enum cdacq_status name_entry_point_skip(const void *blob, size_t length, size_t *ret_length);

#endif
