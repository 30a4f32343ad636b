/*
 * precode_stubs.h: PrecodeStubs: from a precode, an entry point of a method that may have no code, to a MethodDesc.
 *
 * Pages of code hold precodes of equal size; the data of each, StubPrecodeData or FixupPrecodeData, is one page after
 * it. All but fixup precodes have the same code; their data holds their kind. The versions of the contract differ in
 * how they recognise code (versions 1 and 2 by a number in an instruction, version 3 by all bytes that every precode
 * has) and in what StubPrecodeData calls the MethodDesc. A precode costs a fixed number of reads.
 * Source: dotnet/runtime docs/design/datacontracts/PrecodeStubs.md; src/coreclr/vm/precode.h, precode.cpp.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_PRECODE_STUBS_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_PRECODE_STUBS_H

#include "descriptors/fields.h"

/* In the order in which the specification compares types. */
enum precode_kind {
    PRECODE_NONE, /* not a precode, or one of an unknown type */
    PRECODE_STUB,
    PRECODE_PINVOKE_IMPORT,
    PRECODE_FIXUP,
    PRECODE_THIS_PTR_RET_BUF,
    PRECODE_UM_ENTRY,
    PRECODE_INTERPRETER,
    PRECODE_DYNAMIC_HELPER,
    PRECODE_KIND_COUNT
};

/* PrecodeMachineDescriptor: what this target's precodes look like. */
struct precode_machine {
    uint64_t page_size;
    bool has_type[PRECODE_KIND_COUNT];
    uint8_t types[PRECODE_KIND_COUNT]; /* the number of each kind */
    uint8_t type_offset, type_width, type_shift;
    struct precode_code {
        uint8_t size; /* of all three */
        uint8_t bytes[UINT8_MAX], ignored[UINT8_MAX];
    } stub, fixup;
};

/* What differs between versions of the contract. */
struct precode_stubs_version {
    /* The kind of precode at `address` as far as its code shows. */
    enum precode_kind (*code_at)(struct reader *reader, const struct precode_machine *machine, uint64_t address);
    /* Reads the part of the machine descriptor that code_at needs. */
    void (*read_code)(struct reader *reader, uint64_t descriptor, struct precode_machine *machine);
    /* The field of StubPrecodeData that leads to the MethodDesc. */
    enum layout_field stub_target;
};

extern const struct precode_stubs_version precode_stubs_1, precode_stubs_2, precode_stubs_3;

/*
 * GetMethodDescFromStubAddress: the MethodDesc of the precode that starts at `address`, which has no tag bits. 0 if no
 * precode of a method starts there (but a UMEntry thunk, a dynamic helper or an unused precode); also, and the reader
 * fails, if it cannot be read.
 */
uint64_t precode_stubs_method_desc(const struct precode_stubs_version *version, struct reader *reader,
                                   uint64_t address);

#endif
