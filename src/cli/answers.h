/*
 * answers.h: one line of output for one struct cdacq_method, as text or as JSON, for the commands that give answers.
 * It is the hot path of the tool: nothing here uses printf, and what paths look like escaped is kept per string.
 */
#ifndef CDACQ_CLI_ANSWERS_H
#define CDACQ_CLI_ANSWERS_H

#include "src/cli/ips.h"
#include "src/cli/output.h"
#include "cdacq.h"

/* What a string of the session looks like in output. */
struct shown {
    struct shown *next;       /* of those in use */
    const char *string;       /* as in the answer; its address is the key */
    char *text;               /* both forms, one allocation */
    size_t base, text_length; /* of the text's last path component, and of the whole text */
    size_t json_length;       /* the JSON string follows the text */
};

/* Each kind of string has its own slots: the strings of one answer never push each other out. */
enum shown_role { SHOWN_MODULE, SHOWN_TIER, SHOWN_FILE, SHOWN_ROLES };
enum { SHOWN_SLOTS = 2048 };

struct answers {
    struct output *out;
    bool json;
    struct {
        const char *text;
        size_t length;
    } kinds[CDACQ_CODE_KIND_COUNT];
    struct shown (*shown)[SHOWN_SLOTS]; /* per role; a later string may take an earlier one's slot: constant memory */
    struct shown *in_use;               /* the rest is never touched: a page fault each */
    uint64_t errors;                    /* answers with the status error */
};

void answers_init(struct answers *answers, struct output *out, bool json);
void answers_deinit(struct answers *answers);

/* "managed", "stub", "none" or "error" */
const char *answers_status(enum cdacq_answer answer);

/* The answer to a question about method->ip. */
void answers_write(struct answers *answers, const struct cdacq_method *method);

/* JSON: the answer as further members of an object that the caller has begun. */
struct json_writer;
void answers_write_members(struct answers *answers, struct json_writer *w, const struct cdacq_method *method);

/* The same as answers_write() for something that is no IP. */
void answers_write_bad(struct answers *answers, const struct bad_ip *bad);

/* One method of a list: no IP was asked. */
void answers_write_method(struct answers *answers, const struct cdacq_method *method);

#endif
