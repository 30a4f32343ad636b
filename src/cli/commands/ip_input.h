/*
 * ip_input.h: takes addresses from the command line or from standard input, one a line. A line that is not an address
 * is reported, and the next line is read.
 */
#ifndef CDACQ_CLI_COMMANDS_IP_INPUT_H
#define CDACQ_CLI_COMMANDS_IP_INPUT_H

#include "src/cli/base/ip_text.h"
#include "src/cli/base/output.h"

/* Receives IPs in order. */
struct ip_taker {
    void *context;
    void (*take)(void *context, uint64_t ip);
    void (*take_bad)(void *context, uint64_t line, const struct bad_ip *bad);
    void (*pause)(void *context); /* answers all IPs taken so far; may be NULL */
    struct output *out;           /* is flushed before a wait for input; no more IPs are read after it failed */
    void (*more)(void *context);  /* what follows was written to a pipe or terminal only now; may be NULL */
    struct progress *progress;    /* gets the total; may be NULL */
    const bool *stopped;          /* no more IPs are read once this is set; may be NULL */
    /* Reads what is not a number, such as named_addresses_find; *ret_found, then *ret or *bad. May be NULL. */
    bool (*read_other)(void *other, const char *text, size_t length, bool *ret_found, uint64_t *ret,
                       struct bad_ip *bad);
    void *other;
};

/* Passes on the IPs of the command line or, without any, those on standard input. Reports a read error. */
bool ip_feed(const char *const *ips, size_t count, const struct ip_taker *taker);

#endif
