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
 * What such a signature refers to. Its formal name is name_method over the metadata of `module` with `token`. Module 0
 * is the one whose table holds the signature. The others are, in order, the AssemblyRefs of its own metadata (none in a
 * composite image), the manifest metadata of the image, and the AssemblyRefs of that.
 */
struct name_entry_point {
    unsigned flags;  /* enum name_entry_point_flags */
    uint32_t module; /* that `token` belongs to */
    uint32_t token;  /* MethodDef or MemberRef token; 0 if there is a slot instead */
    uint32_t slot;

    /*
     * The element type of the owner; 0 without an owner. If it is ELEMENT_TYPE_CLASS or _VALUETYPE, owner_token is its
     * TypeDef or TypeRef in owner_module (with a TypeRef, a MethodDef token belongs to the module that this resolves
     * to). If it is a primitive type's, such as ELEMENT_TYPE_STRING, a MethodDef token is one of
     * System.Private.CoreLib, and `module` does not matter.
     */
    uint8_t owner_element;
    uint32_t owner_token, owner_module;
    uint32_t context; /* the module of the tokens in the owner's signature */

    const uint8_t *owner; /* its signature, in the blob; NULL without */
    size_t owner_length;
    const uint8_t *arguments; /* of the method, `argument_count` types, in the blob */
    size_t arguments_length;
    uint32_t argument_count;
    size_t length; /* of the whole signature */
};

/* Decodes the signature at the start of `blob`. Needs no metadata. */
enum cdacq_status name_entry_point_decode(const void *blob, size_t length, struct name_entry_point *ret);

/* The length of a signature, without decoding it. */
enum cdacq_status name_entry_point_skip(const void *blob, size_t length, size_t *ret_length);

#endif
