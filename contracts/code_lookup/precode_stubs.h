/*
 * precode_stubs.h: PrecodeStubs: from a precode, the small piece of code that stands for a method until (and often
 * after) it has code of its own, to the method's MethodDesc.
 *
 * Precodes stand in pages of equal pieces; what a piece refers to stands one page further on, at the same place, as
 * StubPrecodeData or FixupPrecodeData. All but fixup precodes are the same code: their data says what they are. The
 * versions of the contract differ in how code is told from code: versions 1 and 2 by a number in an instruction,
 * version 3 by comparing all bytes that are the same in every piece; and in what StubPrecodeData calls the MethodDesc.
 *
 * Nothing here loops over the target's memory: a precode costs a fixed number of reads, whatever they give.
 * Source: dotnet/runtime docs/design/datacontracts/PrecodeStubs.md; src/coreclr/vm/precode.h, precode.cpp.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_PRECODE_STUBS_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_PRECODE_STUBS_H

#include "descriptors/field_reader.h"

/* What precodes there are, in the order in which the specification compares types. */
enum precode_kind {
    PRECODE_NONE, /* not a precode, or one that nobody knows */
    PRECODE_STUB,
    PRECODE_PINVOKE_IMPORT,
    PRECODE_FIXUP,
    PRECODE_THIS_PTR_RET_BUF,
    PRECODE_UM_ENTRY,
    PRECODE_INTERPRETER,
    PRECODE_DYNAMIC_HELPER,
    PRECODE_KIND_COUNT
};

/* What PrecodeMachineDescriptor holds: how this target's precodes look. */
struct precode_machine {
    uint64_t page_size;
    bool has_type[PRECODE_KIND_COUNT];
    uint8_t types[PRECODE_KIND_COUNT]; /* the number that says the kind */
    uint8_t type_offset, type_width, type_shift;
    struct precode_code {
        uint8_t size; /* of all three */
        uint8_t bytes[UINT8_MAX], ignored[UINT8_MAX];
    } stub, fixup;
};

/* What differs between versions of the contract. */
struct precode_stubs_version {
    /* What the code at `address` is, as far as code tells: PRECODE_STUB, PRECODE_FIXUP, another kind, or none. */
    enum precode_kind (*code_at)(struct field_reader *reader, const struct precode_machine *machine, uint64_t address);
    /* Reads the part of the machine descriptor that code_at needs. */
    void (*read_code)(struct field_reader *reader, uint64_t descriptor, struct precode_machine *machine);
    /* The field of StubPrecodeData that leads to the MethodDesc. */
    enum layout_field stub_target;
};

extern const struct precode_stubs_version precode_stubs_1, precode_stubs_2, precode_stubs_3;

/*
 * GetMethodDescFromStubAddress: the MethodDesc of the precode that starts at `address`, which is no code pointer any
 * more. 0 where no precode starts there, or one that stands for no method (UMEntry thunks, dynamic helpers, pieces not
 * yet in use); that too, and the reader fails, where it cannot be told.
 */
uint64_t precode_stubs_method_desc(const struct precode_stubs_version *version, struct field_reader *reader,
                                   uint64_t address);

#endif
