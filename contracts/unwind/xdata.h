/*
 * xdata.h: the unwind data that arm and arm64 share: a header of one or two words, a word for each epilog unless the
 * header describes the only one, and the codes.
 * Source: Microsoft's "ARM exception handling" and "ARM64 exception handling".
 */
#ifndef CDACQ_CONTRACTS_UNWIND_XDATA_H
#define CDACQ_CONTRACTS_UNWIND_XDATA_H

#include "contracts/unwind/unwinder.h"

enum { XDATA_CODES_MAX = 4 * 255 };

/* The codes of a function, and where pc is in it; positions and lengths in units of the machine's instructions. */
struct xdata {
    uint8_t bytes[XDATA_CODES_MAX + 4]; /* beyond `size` they are 0: a code that is cut reads zeros */
    unsigned size;
    uint64_t position, length;
    bool fragment;   /* of arm: there is no prolog here */
    bool one_epilog; /* at the end of the function; else they have scopes */
    unsigned epilog; /* of the one: the index of its first code */
    uint64_t scopes; /* address of the others, a word each */
    unsigned scope_count;
};

/*
 * Reads all but `position`, which the caller has set. `words_shift` is where the header has the number of code words,
 * in the bits up to its highest; the five bits below are the number of epilogs or the index of the only one. False, and
 * the reader fails, if it cannot be read or has another version.
 */
bool xdata_read(struct reader *reader, const struct unwind_function *function, unsigned words_shift, struct xdata *ret);

#endif
