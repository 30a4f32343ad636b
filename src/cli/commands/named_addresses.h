/*
 * named_addresses.h: addresses that are written as SYMBOL+0x10, where SYMBOL is a method, or as MODULE!0x1234 or
 * MODULE+0x1234, where MODULE is a mapped file.
 */
#ifndef CDACQ_CLI_COMMANDS_NAMED_ADDRESSES_H
#define CDACQ_CLI_COMMANDS_NAMED_ADDRESSES_H

#include "cdacq.h"
#include "src/cli/base/ip_text.h"
#include "util/arena.h"

struct place_names; /* of the methods, sorted */

/* A zeroed struct with target and session set knows no names yet: they are listed when one is first asked for. */
struct named_addresses {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct place_names *names;
    struct arena texts; /* of the names */
    bool incomplete;    /* some methods could not be read */
};

/*
 * Whether the text has the form of a place. If so, *ret_found says whether it was found: in *ret, or *bad says why not.
 * A method may be named without its parameters. A name that several pieces of code have is not found. `places` is a
 * struct named_addresses: the function is the read_other of struct ip_taker.
 */
bool named_addresses_find(void *places, const char *text, size_t length, bool *ret_found, uint64_t *ret,
                          struct bad_ip *bad);
void named_addresses_deinit(struct named_addresses *places);

#endif
