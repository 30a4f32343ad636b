/*
 * answers.h: writes a line of text or JSON for a struct cdacq_method. This is the hot path of the tool: it does not use
 * printf, and the escaped form of each string is cached (shown_strings.h).
 */
#ifndef CDACQ_CLI_BASE_ANSWERS_H
#define CDACQ_CLI_BASE_ANSWERS_H

#include "src/cli/base/ip_text.h"
#include "src/cli/base/output.h"
#include "src/cli/base/shown_strings.h"
#include "cdacq.h"

/* Columns of an address on a terminal: "0x" and 12 digits, as user space has them on x86-64. */
enum { ANSWERS_ADDRESS_WIDTH = 14 };

/* Names that could not be read, in whole or in part. */
struct answers_unread {
    uint64_t count;
    char reason[CDACQ_ERROR_MESSAGE_SIZE]; /* of the first: a copy, as the next look-up ends the life of its text */
};

struct answers {
    struct output *out;
    bool json;
    bool tells_runtime; /* each answer says which runtime it is of */
    struct {
        const char *text;
        size_t length;
    } kinds[CDACQ_CODE_KIND_COUNT];
    struct shown_strings strings;
    uint64_t errors;              /* number of answers with the status error */
    uint64_t unconfirmed;         /* of text: number of answers that use a file that nothing confirms */
    struct answers_unread unread; /* of text */
};

void answers_init(struct answers *answers, struct output *out, bool json);
void answers_deinit(struct answers *answers);

/* To be called when a session is destroyed: others may have strings at the same addresses. */
void answers_forget_strings(struct answers *answers);

/* "managed", "stub", "none" or "error" */
const char *answers_status(enum cdacq_answer answer);

/* Whether text marks the name of a method with '?': it is missing or lacks type arguments. */
static inline bool answers_doubt_name(const struct cdacq_method *method)
{
    return !method->name || (method->error && !method->prepared_unknown);
}

/* Adds the answer if it is a method whose name could not be read. A name that says what it lacks ("(...)") could. */
void answers_count_unread(struct answers_unread *unread, const struct cdacq_method *method);

/* Prints a line with the reason if some names could not be read. Text marks each with '?'; JSON has each reason. */
void answers_tell_unread(const struct answers_unread *unread);

/* Whether JSON says if the answer rests on a file that something confirms: it does not of what needs no file. */
static inline bool answers_tells_verified(const struct cdacq_method *method)
{
    return method->answer == CDACQ_ANSWER_MANAGED || method->module || !method->module_verified;
}

/*
 * Prints a line if some answers use files that nothing in the target confirms: their names and lines may be those of
 * another build. Text cannot say so of each; JSON does. `element` is what one of them is called: "answer", "frame".
 */
void answers_tell_unconfirmed(uint64_t count, const char *element);

/* Writes the answer for method->ip. */
void answers_write(struct answers *answers, const struct cdacq_method *method);

/* Writes the answer for an async method that waits: its name and where it awaits. */
void answers_write_async(struct answers *answers, const struct cdacq_method *method);

/*
 * Writes the answer as JSON members of an object that the caller has begun. `status`: NULL, or what replaces its own.
 */
struct json_writer;
void answers_write_members(struct answers *answers, struct json_writer *w, const struct cdacq_method *method,
                           const char *status);

/* Writes the answer for text that is not an IP. */
void answers_write_bad(struct answers *answers, const struct bad_ip *bad);

/* Writes a method of a list, without an IP. */
void answers_write_method(struct answers *answers, const struct cdacq_method *method);

#endif
