/*
 * epoch.h: what a running process is read for, while its memory changes. An epoch is one call of the API or, with
 * CDACQ_OPEN_KEEP, all calls until cdacq_target_refresh. Memory is read again for each epoch. What an answer rests on
 * is logged, and read a second time once the answer is formed. If it is the same, there was a moment between at which
 * the process was as the answer says. For memory that does not change, all of this does nothing.
 */
#ifndef CDACQ_LOOKUP_EPOCH_H
#define CDACQ_LOOKUP_EPOCH_H

#include "target/read_log.h"
#include "target/reader.h"
#include "util/vector.h"

struct cdacq_target;

enum { EPOCH_TRIES = 16 }; /* to form one answer */

DEFINE_VECTOR(void_flags, bool *);

struct epoch {
    struct cdacq_target *target;
    struct reader *reader;
    struct read_log log;           /* what has been read since the last confirmation */
    struct void_flags unconfirmed; /* set if that did not hold */
    uint64_t round;                /* advances with each confirmation, and when memory is read anew */
    uint64_t pages_of;             /* the epoch of the target's memory that the reader's last span is of */
    uint64_t refresh;              /* the target's count when the epoch began */
    unsigned *pins;                /* own_pins, or those of a group of sessions */
    unsigned own_pins;             /* uses of what was read in the epoch: it goes on until they end */
};

enum epoch_verdict {
    EPOCH_HELD,
    EPOCH_CHANGED,
    EPOCH_GONE, /* the process has ended or executed another program */
};

void epoch_init(struct epoch *epoch, struct cdacq_target *target, struct reader *reader);
void epoch_deinit(struct epoch *epoch);

/* Whether the memory changes. */
static inline bool epoch_is_running(const struct epoch *epoch)
{
    return epoch->reader->target->changes;
}

/* Begins an epoch unless the last one goes on. True: a new one has begun, and what was formed before is void. */
bool epoch_begin(struct epoch *epoch);

/* Between these two, calls on the same session or its group belong to the epoch: they leave all that was read. */
static inline void epoch_pin(struct epoch *epoch)
{
    ++*epoch->pins;
}

static inline void epoch_unpin(struct epoch *epoch)
{
    --*epoch->pins;
}

/* Goes on after others may have used the target: the pages that this session used may be gone. */
void epoch_follow(struct epoch *epoch);

/* Makes what is read from here on the subject of the next confirmation. */
void epoch_watch(struct epoch *epoch);

/* Reads memory again from here on. Records that were confirmed in this epoch remain. */
void epoch_read_anew(struct epoch *epoch);

/* Has *is_void set if the next confirmation fails. False when out of memory. */
static inline bool epoch_note(struct epoch *epoch, bool *is_void)
{
    return !epoch_is_running(epoch) || void_flags_append(&epoch->unconfirmed, is_void);
}

/* Whether the process still has what was read since the last confirmation. */
bool epoch_confirm(struct epoch *epoch);

/* IO if the process is gone: what was read then is nothing, or of another program. */
enum cdacq_status epoch_check_process(const struct epoch *epoch, struct cdacq_error *err);

/* Tries to form an answer; {0} at first. */
struct epoch_tries {
    unsigned count;
    enum epoch_verdict verdict; /* once epoch_again() is false */
};

/*
 * The condition of the loop that forms an answer: whether to form it again, because the process has changed what it
 * rests on. Ends after EPOCH_TRIES.
 */
bool epoch_again(struct epoch *epoch, struct epoch_tries *tries);

/* The same for one answer of a reader. If it did not hold, the reader fails, and *answered is false. */
bool epoch_again_or_fail(struct epoch *epoch, struct epoch_tries *tries, bool *answered);

/*
 * The same for an index, whose reads are logged apart, between epoch_begin_aside() and this: an answer does not rest on
 * all of them. Without `check`, only the log is put back. False for failures that reading again would not mend, and for
 * more reads than a log can have.
 */
bool epoch_again_aside(struct epoch *epoch, struct epoch_tries *tries, struct read_log *log, bool check);
void epoch_begin_aside(struct epoch *epoch, struct read_log *log);

/* Forms an item of a list from what the process has. */
typedef void epoch_form(void *context, size_t item);

/*
 * Forms items and confirms them: together or, if that fails, in halves, so that few confirmations find those that the
 * process has changed. These are formed again, up to EPOCH_TRIES times. Returns the number of items that did not hold
 * even then, and moves them to the front of `items`.
 */
size_t epoch_form_items(struct epoch *epoch, epoch_form *form, void *context, size_t *items, size_t count);

#endif
