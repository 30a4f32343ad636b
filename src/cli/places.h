/*
 * places.h: addresses that are written as SYMBOL+0x10, where SYMBOL is a method, or as MODULE!0x1234 or MODULE+0x1234,
 * where MODULE is a mapped file.
 */
#ifndef CDACQ_CLI_PLACES_H
#define CDACQ_CLI_PLACES_H

#include "cdacq.h"
#include "src/cli/ips.h"

struct place_names; /* of the methods, sorted */

/* A zeroed struct with target and session set knows no names yet: they are listed when one is first asked for. */
struct places {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct place_names *names;
    bool incomplete; /* some methods could not be read */
};

/*
 * Whether the text has the form of a place. If so, *ret_found says whether it was found: in *ret, or *bad says why not.
 * A method may be named without its parameters. A name that several pieces of code have is not found. `places` is a
 * struct places: the function is the read_other of struct ips_taker.
 */
bool places_find(void *places, const char *text, size_t length, bool *ret_found, uint64_t *ret, struct bad_ip *bad);
void places_deinit(struct places *places);

#endif
