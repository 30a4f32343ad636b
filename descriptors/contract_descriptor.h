/*
 * contract_descriptor.h: DotNetRuntimeContractDescriptor: the structure by which a runtime publishes its JSON
 * descriptor and the addresses that it refers to.
 *
 *     magic (u64 "DNCCDAC\0"), flags (u32), JSON size (u32), JSON (pointer), pointer count (u32), 0 (u32), pointers
 *
 * Byte order follows from the magic, pointer size from bit 1 of the flags: neither from the ELF class around it.
 * Source: dotnet/runtime docs/design/datacontracts/contract-descriptor.md.
 */
#ifndef CDACQ_DESCRIPTORS_CONTRACT_DESCRIPTOR_H
#define CDACQ_DESCRIPTORS_CONTRACT_DESCRIPTOR_H

#include "descriptors/descriptor.h"
#include "target/image.h"

enum {
    CONTRACT_POINTER_MAX = 64 * 1024, /* pointer data of one descriptor; real ones have a few dozen */
    CONTRACT_DEPTH_MAX = 4,           /* sub-descriptors of sub-descriptors */
};

/* What the outermost structure tells before anything is read through it. */
struct contract_descriptor_info {
    unsigned pointer_size;
    bool big_endian;
    bool from_file; /* a part of it came from the image's file, relocated */
};

/*
 * Reads the descriptor at `address` with all its sub-descriptors into `descriptor`. `image` is the one that exports it,
 * whose file supplies what the target lacks; NULL where only an address is known. `baseline` looks up a baseline's JSON
 * by the name that a descriptor gives ("empty" needs none); it may be NULL. Fails with MEMORY, DESCRIPTOR, NOMEM.
 */
enum cdacq_status contract_descriptor_read(struct target *target, const struct image *image, uint64_t address,
                                           bool (*baseline)(const char *name, const char **ret_text, size_t *ret_size),
                                           struct descriptor *descriptor, struct contract_descriptor_info *ret,
                                           struct cdacq_error *err);

#endif
