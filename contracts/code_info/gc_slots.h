/*
 * gc_slots.h: the slots, registers and words of the stack, in which a method's frame holds references to objects at an
 * instruction, from the method's GC info. The runtime's collector reads the same: each slot is a reference or null.
 * This build reads them for x64, arm64 and arm.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md; src/coreclr/vm/gcinfodecoder.cpp;
 * src/coreclr/inc/gcinfotypes.h; pull request 110845 (calls, since version 4).
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_GC_SLOTS_H
#define CDACQ_CONTRACTS_CODE_INFO_GC_SLOTS_H

#include "descriptors/fields.h"
#include "util/vector.h"

enum gc_slot_base {
    GC_SLOT_CALLER_SP, /* at `offset` from the caller's stack pointer */
    GC_SLOT_SP,        /* at `offset` from the stack pointer */
    GC_SLOT_FRAME,     /* at `offset` from the register `number` */
    GC_SLOT_REGISTER,  /* the register `number` */
};

struct gc_slot {
    int32_t offset;
    uint8_t base;     /* enum gc_slot_base */
    uint8_t number;   /* of a register, as DWARF counts them */
    bool is_interior; /* it refers to something within an object, or to something else */
};

DEFINE_VECTOR(gc_slots, struct gc_slot);

enum { GC_SLOTS_MAX = 4096 }; /* of a method */

/*
 * Appends the slots that are live at `offset` of the method's code. `is_call`: it is a return address, so registers
 * that calls do not preserve hold nothing. False if the GC info does not say what is live there: another architecture
 * or version, an instruction at which the collector cannot stop. False, and the reader fails, if the GC info is corrupt
 * or cannot be read.
 */
bool gc_slots_read(struct reader *reader, uint64_t gc_info, unsigned version, uint32_t offset, bool is_call,
                   struct gc_slots *ret);

#endif
