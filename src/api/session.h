/*
 * session.h: what the parts of a session do for each other and for the files that implement cdacq.h.
 */
#ifndef CDACQ_API_SESSION_H
#define CDACQ_API_SESSION_H

#include "src/api/question.h"

/* Appends Type.ToString() of an exception, printable. Returns its flaws (enum exception_text_flaw). */
unsigned session_exception_type(struct cdacq_session *session, uint64_t address, struct text *ret);

/* Drops what is kept of how the process ended. */
void session_forget_ending(struct cdacq_session *session);

/* The map of all code, built on demand. NULL if that fails: look-ups then walk. */
const struct code_map *session_map(struct cdacq_session *session);

/* Begins a question and returns its map. NULL, with *ret_status and *err set, on failure or if the process is gone. */
const struct code_map *session_question_map(struct cdacq_session *session, enum cdacq_status *ret_status,
                                            struct cdacq_error *err);

/* The index of the range that contains an address, often that of the last look-up; SIZE_MAX if there is none. */
size_t session_find_range(struct cdacq_session *session, uint64_t address);

/* The table of a range with this session's records, built on demand. NULL if that fails. */
struct session_range *session_table(struct cdacq_session *session, size_t range);

/* Whether a bound on all work on the target was reached. Sets *err if so. */
bool session_gave_up(const struct cdacq_session *session, struct cdacq_error *err);

/* Report why session_map or session_table returned NULL. NOT_MANAGED: a running process has freed the range. */
enum cdacq_status session_map_error(const struct cdacq_session *session, struct cdacq_error *err);
enum cdacq_status session_table_error(struct cdacq_session *session, size_t range, struct cdacq_error *err);

/*
 * The part of an answer that is the same for all addresses of a block's hot or cold part. NULL, with session->error
 * set, when out of memory or if a bound is reached.
 */
struct method_record *session_make_record(struct cdacq_session *session, const struct code_block *block);

/* The record of a part, formed on demand. NULL on failure, with session->error set. */
struct method_record *session_record(struct cdacq_session *session, size_t range, const struct block_part *part);

enum { SESSION_AT_ONCE = 256 }; /* methods of a running process that are read, and checked, together */

/*
 * Forms the records of at most SESSION_AT_ONCE parts of a range, from `from` up to `to`, and checks them together.
 * session_record() then returns them, and fails with NOT_MANAGED for a method that the process no longer has. For a
 * running process. Parts for which `wanted`, which may be NULL, has false are left out.
 */
void session_prepare_records(struct cdacq_session *session, size_t range, size_t from, size_t to, const bool *wanted);

/*
 * Whether a running process still has a method as `method` says. What was read since the last check is checked with it.
 */
bool session_confirms(struct cdacq_session *session, const struct cdacq_method *method);

/* Looks up an address. The text of a failure is valid until the next call on the session. */
void session_answer(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret);

/* The same for one of several addresses: the text of a failure is valid until the scratch arena is emptied. */
void session_answer_one(struct cdacq_session *session, uint64_t ip, bool batch, struct cdacq_method *ret);

/*
 * Looks up one address without a table. With `many`, the record of an earlier walk, such as `known`, is the answer if
 * it is that of the address; of a running process, one of this question. Returns whether it walked.
 */
bool session_look_up_singly(struct cdacq_session *session, uint64_t ip, bool many, struct method_record *known,
                            struct cdacq_method *ret);

/* The answer for an address that the process changed each time it was looked up. */
void session_answer_changed(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret);

/* Keeps the text of a failure until the scratch arena is emptied. */
void session_keep_error(struct cdacq_session *session, struct cdacq_method *method);

/* The answer for an address from the record of its method. `block` is the record's, or NULL. */
void session_answer_from(struct cdacq_session *session, struct method_record *record, const struct code_block *block,
                         uint64_t address, struct cdacq_method *ret);

/* Fills in what the record alone has for an address. */
void record_answer(const struct method_record *record, uint64_t ip, struct cdacq_method *ret);

struct il_point;

/* Decodes the IL offsets of a record's method. `block` is the record's, or NULL: it is then looked up. */
void record_read_il_map(struct cdacq_session *session, struct method_record *record, const struct code_block *block);

/* Why an IL offset of the method is not known, and so its line: reads the map again. Kept by the session, or static. */
const char *record_why_no_il_offset(struct cdacq_session *session, const struct method_record *record);

/* Adds the IL offset to what record_answer() has filled, where it is known. */
void record_answer_il(const struct method_record *record, struct cdacq_method *ret);

/*
 * Looks up an address and fills *ret as session_answer() does. Returns the record of the method; NULL if no method owns
 * the address, or on failure.
 */
const struct method_record *session_find_record(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret);

#endif
