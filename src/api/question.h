/*
 * question.h: what a session keeps while it answers questions about a running process, whose memory changes while it is
 * read. A question is one call or, with CDACQ_OPEN_KEEP, all calls until cdacq_target_refresh. What the process may
 * change is read again for each question. What an answer rests on is read a second time after the answer was formed. If
 * it is the same, there was a moment between at which the process was as the answer says.
 */
#ifndef CDACQ_API_QUESTION_H
#define CDACQ_API_QUESTION_H

#include "src/api/handles.h"

/* Whether the memory of the session's target changes. */
static inline bool session_is_running(const struct cdacq_session *session)
{
    return session->target->target->changes;
}

/*
 * Begins a question unless one continues: every call that asks something calls it first. Then records and tables of the
 * session are gone. Does nothing for memory that does not change.
 */
void session_begin_question(struct cdacq_session *session);

/* Reads the process again if another session of the target has: the pages that this session used are gone then. */
void session_follow(struct cdacq_session *session);

/* The process is read again from here on, but records that were formed in this question remain. */
void session_read_anew(struct cdacq_session *session);

/* What is read from here on is what the next check is about. */
void session_clear_log(struct cdacq_session *session);

/* As session_read_anew, for an answer that did not hold: the files that the process maps may be others, too. */
void session_try_again(struct cdacq_session *session);

/*
 * Whether the process still holds what was read since the last check. If not, the records that were formed since then
 * are void. True for memory that does not change.
 */
bool session_check(struct cdacq_session *session);

/*
 * IO if a running process has ended or executed another program: what was read then is nothing, or of that program.
 * For calls that go on where something cannot be read.
 */
enum cdacq_status session_check_process(const struct cdacq_session *session, struct cdacq_error *err);

enum { SESSION_TRIES = 16 }; /* of one answer about a running process */

/*
 * Whether an answer has to be formed again, since the process has changed what it rests on. *tries counts from 0. After
 * SESSION_TRIES it is not: the reader fails with CHANGED, or with IO if the process has ended, and *answered is false.
 */
bool session_must_repeat(struct cdacq_session *session, unsigned *tries, bool *answered);

/* Forms an item of a list from what the process holds. */
typedef void session_form(struct cdacq_session *session, void *context, size_t item);

/*
 * Forms items and checks them: together or, if that fails, in halves, so that few checks find those that the process
 * has changed. These are formed again, up to SESSION_TRIES times. Returns the number of items that did not hold even
 * then, and moves them to the front of `items`.
 */
size_t session_form_items(struct cdacq_session *session, session_form *form, void *context, size_t *items,
                          size_t count);

/* Counts a record among those to check. False when out of memory. */
bool session_note_record(struct cdacq_session *session, struct method_record *record);

/*
 * Between these two, what an index of code is read from is logged apart from what answers rest on. The second one
 * returns whether the process has changed it, if it is to be checked, and then has it read again. It returns false for
 * failures that reading again would not mend, and for more reads than a log can have.
 */
void session_begin_logged(struct cdacq_session *session, struct read_log *log);
bool session_end_logged(struct cdacq_session *session, struct read_log *log, bool check);

/*
 * The map of all code as the process has it now. It is read again, up to SESSION_TRIES times, if the process has
 * changed it meanwhile. NULL, and the reader fails, as code_map_build() does.
 */
struct code_map *session_running_map(struct cdacq_session *session);

/* A text that lives as long as the session. NULL when out of memory. */
const char *session_text(struct cdacq_session *session, const char *text, size_t length);

/* The same, and one copy for equal texts without NUL: for texts of which there are few, but many questions. */
const char *session_intern(struct cdacq_session *session, const char *text, size_t length);

void session_question_deinit(struct cdacq_session *session);

#endif
