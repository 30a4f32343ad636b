/*
 * variable_place.h: where the value of a variable of a frame is: in memory, or in a register that the walk of the stack
 * knows. A caller's frame has only the registers that calls preserve, so that a value in another one is lost; on x86-64
 * all xmm registers are lost. Structs in two registers are not read: of 104,547 variables with a place at 40,000
 * addresses of code of .NET 11, outside of prologs, one was in two registers, and 370 were in xmm registers.
 *
 * What the debug info says is looked up for the instruction that runs, which in a caller is its call. The runtime's own
 * data access looks it up for the return address and takes the end of a range for a part of it: a variable that the
 * code assigns after the call, or whose register is free by then, would have a wrong value.
 * Source: dotnet/runtime src/coreclr/inc/cordebuginfo.h; src/coreclr/debug/daccess/stack.cpp
 * (ClrDataFrame::ValueFromDebugInfo).
 */
#ifndef CDACQ_CONTRACTS_VARIABLES_VARIABLE_PLACE_H
#define CDACQ_CONTRACTS_VARIABLES_VARIABLE_PLACE_H

#include "contracts/execution_manager/execution_manager.h"
#include "contracts/execution_manager/il_offsets.h"
#include "contracts/module_cache.h"
#include "target/registers.h"
#include "util/text.h"

/* A frame of managed code. */
struct variable_frame {
    struct module_cache *cache;
    struct execution_manager *manager;
    const struct debug_info_encoding *encoding; /* of code compiled at run time; NULL: not read */
    const struct registers *registers;
    uint64_t pc;  /* of the instruction that runs: of a caller, an address in its call */
    uint64_t cfa; /* 0: not known */
};

enum variable_place_kind {
    PLACE_NONE, /* the code does not hold it here, or nobody saved the register that did */
    PLACE_MEMORY,
    PLACE_REGISTER,
    PLACE_XMM,    /* in the low half of one */
    PLACE_UNREAD, /* in registers that are not read, or several */
};

struct variable_place {
    enum variable_place_kind kind;
    uint64_t address;
    uint64_t bits; /* of the register */
};

/*
 * The place of an argument or a local by its number in the IL, as the debug info has it: arguments from 0, with `this`,
 * then locals. NULL: the code does not hold it here or, with *ret_is_doubtful, has it in several places.
 */
const struct debug_info_variable *variable_place_search(const struct block_variables *places, uint32_t number,
                                                        bool *ret_is_doubtful);

/*
 * Appends the text of a place: a register ("rdi"), two ("rax:rdx"), an address on the stack ("rbp-0x18"), or what has
 * the address of the variable ("[rbp-0x18]"). False: it has none that is true of this code.
 */
bool variable_place_text(enum architecture architecture, const struct debug_info_variable *variable, bool is_funclet,
                         struct text *ret);

/* The frame pointer of a frame, as its method uses it. False: it is not known. */
bool variable_frame_pointer(const struct variable_frame *frame, uint64_t *ret);

/* Where the value is. `places` are those of the method's block at the frame's program counter. */
void variable_place_find(const struct variable_frame *frame, const struct block_variables *places, bool is_funclet,
                         uint32_t number, struct variable_place *ret);

#endif
