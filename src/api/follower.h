/*
 * follower.h: what a follower of a running process knows of its code.
 */
#ifndef CDACQ_API_FOLLOWER_H
#define CDACQ_API_FOLLOWER_H

#include "cdacq/follow.h"
#include "src/lookup/opened_session.h"

/* Code that was found. */
struct followed {
    uint64_t start; /* the key */
    uint64_t size, cold_start, method_desc;
    uint64_t name;   /* a hash; 0: to be visited again */
    uint64_t round;  /* in which it was last found */
    unsigned errors; /* times in a row that it could not be read */
    bool is_known;   /* it was visited, as a method or stub */
    bool was_error;  /* it was visited as an error */
    bool is_kept;    /* the process never frees it */
};

DEFINE_HASH_TABLE_TYPE(followed_table, struct followed);

struct cdacq_follower {
    struct cdacq_target *target;
    struct cdacq_session *session; /* replaced when it has taken much memory; NULL before the first round */
    unsigned flags;
    struct followed_table known;
    uint64_t round;
    unsigned failures; /* rounds in a row that failed */
    bool has_ended;    /* the process has */
    int (*visit)(const struct cdacq_method *method, void *context);
    void *context;
    /* Of a jitdump: */
    uint64_t began; /* when the last round that saw all code did, in nanoseconds; 0: there was none */
    struct {
        bool has_header, closed;
        uint64_t time; /* of the last record */
        struct cdacq_written written;
    } jitdump;
};

/* The code at `start` was not used: the next round visits it again if it is still there. */
void follower_retry(struct cdacq_follower *follower, uint64_t start);

/* Opens the session of the next round, unless there is one that can be used. */
enum cdacq_status follower_session(struct cdacq_follower *follower, struct cdacq_error *err);

#endif
