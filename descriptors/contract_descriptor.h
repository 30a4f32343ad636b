/*
 * contract_descriptor.h: DotNetRuntimeContractDescriptor: the structure that holds a runtime's JSON descriptor
 * and the addresses that the JSON refers to.
 *
 *     magic (u64 "DNCCDAC\0"), flags (u32), JSON size (u32), JSON (pointer), pointer count (u32), 0 (u32), pointers
 *
 * The magic gives the byte order and bit 1 of the flags the pointer size; the ELF class of the image gives neither.
 * Source: dotnet/runtime docs/design/datacontracts/contract-descriptor.md.
 */
#ifndef CDACQ_DESCRIPTORS_CONTRACT_DESCRIPTOR_H
#define CDACQ_DESCRIPTORS_CONTRACT_DESCRIPTOR_H

#include "cdacq/error.h"
#include "util/base.h"

struct descriptor;
struct image;
struct target;

enum {
    CONTRACT_SIZE_MAX = 4 * 1024 * 1024, /* bytes of a descriptor and all its sub-descriptors */
    CONTRACT_POINTER_MAX = 64 * 1024,    /* of one descriptor; real ones have a few dozen */
};

/* What the outermost structure says of the target. */
struct contract_descriptor_info {
    unsigned pointer_size;
    bool big_endian;
    bool from_file; /* some bytes came from the image's file, relocated */
    /* One line: the first sub-descriptor that is missing or damaged, and why; or empty. */
    char missing[CDACQ_ERROR_MESSAGE_SIZE + 128];
};

/*
 * Reads the descriptor at `address` and all its sub-descriptors into `descriptor`. `image` exports it, and its file
 * supplies what the target lacks; NULL where only the address is known. `baseline`, which may be NULL, looks up the
 * JSON of a baseline other than "empty" by name. A sub-descriptor that is malformed or that cannot be read is left out
 * and noted.
 * Fails with MEMORY, DESCRIPTOR, NOMEM.
 */
enum cdacq_status contract_descriptor_read(struct target *target, const struct image *image, uint64_t address,
                                           bool (*baseline)(const char *name, const char **ret_text, size_t *ret_size),
                                           struct descriptor *descriptor, struct contract_descriptor_info *ret,
                                           struct cdacq_error *err);

#endif
