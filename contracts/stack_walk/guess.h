/*
 * guess.h: return addresses found by what they look like: the last resort of a walk, and the means to check stubs. An
 * address counts if it is in managed code, or in native code of a file, and follows an instruction that calls.
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_GUESS_H
#define CDACQ_CONTRACTS_STACK_WALK_GUESS_H

#include "contracts/stack_walk/machine.h"

struct execution_manager;

/* What an address that may be a return address leads to. */
struct call_site {
    bool is_managed; /* in a method's code */
    uint64_t target; /* the address of the callee; 0: not known */
};

struct guess {
    struct execution_manager *manager;
    struct reader *reader;
    const struct walk_machine *machine;
    uint64_t stack_base;                                /* nothing above is read; 0: not known */
    bool (*is_native)(void *context, uint64_t address); /* whether a file is mapped there; may be NULL */
    void *context;
};

/* Whether `address` follows an instruction that calls. Missing memory does not fail the reader. */
bool guess_is_return_address(const struct guess *guess, uint64_t address, struct call_site *ret);

/* Whether the bytes in front of an address are known and no call: nothing returns there. */
bool guess_is_refuted(const struct walk_machine *machine, struct reader *reader, uint64_t address);

/*
 * Replaces the registers of a frame by what may be those of its caller: by the frame pointer or, if that leads nowhere,
 * by the nearest word further up the stack that may be a return address. Of the caller's registers only the program
 * counter, the stack pointer and, perhaps, the frame pointer are known. False if nothing is found.
 */
bool guess_caller(const struct guess *guess, bool interrupted, struct registers *registers);

#endif
