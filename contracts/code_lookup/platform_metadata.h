/*
 * platform_metadata.h: PlatformMetadata: how code pointers differ from addresses, and where precodes are described.
 * Source: dotnet/runtime docs/design/datacontracts/PlatformMetadata.md.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_PLATFORM_METADATA_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_PLATFORM_METADATA_H

#include "descriptors/fields.h"

enum code_pointer_flags {
    CODE_POINTER_ARM32_THUMB = 1,    /* bit 0 means Thumb and is not part of the address */
    CODE_POINTER_ARM64_PTR_AUTH = 2, /* the upper bits hold an authentication code */
};

static inline uint64_t address_of_code_pointer(const struct reader *reader, uint64_t pointer)
{
    unsigned flags = reader->layout->code_pointer_flags;
    if (flags & CODE_POINTER_ARM32_THUMB)
        pointer &= ~UINT64_C(1);
    if (flags & CODE_POINTER_ARM64_PTR_AUTH)
        pointer = target_unsigned_address(reader->target, pointer);
    return pointer;
}

/* The published flags; 0 (code pointers are addresses) if there are none or they cannot be read. */
unsigned platform_metadata_code_pointer_flags(struct reader *reader);

/* GetPrecodeMachineDescriptor: its address; 0 if the target publishes none. */
uint64_t platform_metadata_precode_machine_descriptor(const struct reader *reader);

#endif
