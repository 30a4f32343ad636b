#include "src/api/question.h"

static const char *interned_key(const char *const *text)
{
    return *text;
}

DEFINE_HASH_TABLE_FUNCTIONS(interned_texts, const char *, const char *, interned_key, hash_string, equal_strings);

const char *session_text(struct cdacq_session *session, const char *text, size_t length)
{
    return session_is_running(session) ? session_intern(session, text, length)
                                       : arena_string(&session->arena, text, length);
}

const char *session_intern(struct cdacq_session *session, const char *text, size_t length)
{
    const char **known = interned_texts_find(&session->texts, text);
    const char *copy = known ? *known : arena_string(&session->arena, text, length);
    return known || (copy && interned_texts_insert(&session->texts, copy, NULL)) ? copy : NULL;
}

static void forget_records(struct cdacq_session *session)
{
    for (size_t i = 0; session->ranges && i < session->map->count; i++)
        free(session->ranges[i].records);
    free(session->ranges);
    session->ranges = NULL;
    session->map = NULL;
    session->no_map = false;
    session->hint = 0;
    code_map_free(session->own_map);
    session->own_map = NULL;
    walked_records_deinit(&session->walked);
    record_index_deinit(&session->formed);
    arena_deinit(&session->records_arena);
    module_cache_trim(&session->modules);
    session->answered = NULL;
    session->function_total = 0;
    session->il_point_total = 0;
    session->source_point_total = 0;
    session->source_point_bytes = 0;
}

void session_question_deinit(struct cdacq_session *session)
{
    forget_records(session);
    record_list_deinit(&session->unchecked);
    interned_texts_deinit(&session->texts);
    read_log_deinit(&session->log);
}

void session_clear_log(struct cdacq_session *session)
{
    reader_forget(&session->reader.raw, session->reader.raw.log); /* a span of a file is noted when it is next used */
    read_log_clear(&session->log);
}

void session_read_anew(struct cdacq_session *session)
{
    target_begin_question(session->target->target);
    reader_forget(&session->reader.raw, &session->log);
    read_log_clear(&session->log);
    session->unchecked.count = 0;
    session->modules.round++;
    session->pages_of = session->target->target->question;
}

void session_try_again(struct cdacq_session *session)
{
    if (!session->target->visits)
        target_refresh(session->target->target);
    session_read_anew(session);
}

void session_follow(struct cdacq_session *session)
{
    if (session_is_running(session) && session->pages_of != session->target->target->question)
        session_read_anew(session);
}

void session_begin_question(struct cdacq_session *session)
{
    struct cdacq_target *target = session->target;
    bool continues = target->keep && session->refresh == target->refresh && session->reader.raw.log;
    if (!session_is_running(session))
        return;
    if (session->visits || continues) {
        session_follow(session);
        return;
    }
    session->refresh = target->refresh;
    if (!target->visits)
        target_refresh(target->target);
    if (session->mapping_round != target->target->mapping_round) { /* there may be other images */
        native_modules_destroy(session->native);
        session->native = NULL;
        session->mapping_round = target->target->mapping_round;
    }
    forget_records(session);
    session_read_anew(session);
}

struct code_map *session_running_map(struct cdacq_session *session)
{
    struct read_log log = {0};
    struct code_map *map = NULL;
    bool again = true;
    for (unsigned tries = 0; again && tries < SESSION_TRIES; tries++) {
        code_map_free(map);
        session_begin_logged(session, &log);
        map = code_map_build(&session->target->manager, &session->reader);
        again = session_end_logged(session, &log, true);
    }
    return map;
}

void session_begin_logged(struct cdacq_session *session, struct read_log *log)
{
    if (session_is_running(session))
        reader_log(&session->reader.raw, log);
    reader_begin(&session->reader.raw, FUEL_INDEX);
}

bool session_end_logged(struct cdacq_session *session, struct read_log *log, bool check)
{
    struct reader *reader = &session->reader.raw;
    if (!session_is_running(session))
        return false;
    enum cdacq_status status = reader_failure(reader).status;
    bool can_pass = check && status != CDACQ_ERR_NOMEM && status != CDACQ_ERR_IO;
    bool changed = can_pass && log->reads.count < READ_LOG_MAX && !target_unchanged(session->target->target, log, 0);
    reader_log(reader, &session->log);
    read_log_deinit(log);
    *log = (struct read_log){0};
    if (changed)
        session_try_again(session);
    return changed;
}

bool session_note_record(struct cdacq_session *session, struct method_record *record)
{
    record->round = session->modules.round;
    return !session_is_running(session) || record_list_append(&session->unchecked, record);
}

/* If not, the records since then are void. */
bool session_check(struct cdacq_session *session)
{
    if (!session_is_running(session))
        return true;
    bool same = target_unchanged(session->target->target, &session->log, 0);
    for (size_t i = 0; !same && i < session->unchecked.count; i++)
        session->unchecked.items[i]->is_void = true;
    session->unchecked.count = 0;
    session->modules.round++; /* later answers that rest on a module need a check of their own */
    session_clear_log(session);
    return same;
}

enum cdacq_status session_check_process(const struct cdacq_session *session, struct cdacq_error *err)
{
    return session_is_running(session) ? target_check_gone(session->target->target, 0, err) : CDACQ_OK;
}

static size_t form_singly(struct cdacq_session *session, session_form *form, void *context, size_t *items, size_t count)
{
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        session_clear_log(session);
        form(session, context, items[i]);
        if (!session_check(session))
            items[failed++] = items[i];
    }
    return failed;
}

/*
 * Forms the items in two halves. Memory that has not changed is read again only to check it. If all of one half fails,
 * all items may rest on what changes; to halve the other half, too, would form each of them many times.
 */
static size_t form_halves(struct cdacq_session *session, session_form *form, void *context, size_t *items, size_t count)
{
    session_clear_log(session);
    for (size_t i = 0; i < count; i++)
        form(session, context, items[i]);
    if (session_check(session))
        return 0;
    if (count == 1)
        return 1;
    size_t half = count / 2, failed = form_halves(session, form, context, items, half);
    size_t more = (failed == half ? form_singly : form_halves)(session, form, context, items + half, count - half);
    memmove(items + failed, items + half, more * sizeof *items);
    return failed + more;
}

size_t session_form_items(struct cdacq_session *session, session_form *form, void *context, size_t *items, size_t count)
{
    for (unsigned tries = 0; tries < SESSION_TRIES && count; tries++) {
        if (tries)
            session_try_again(session);
        count = form_halves(session, form, context, items, count);
    }
    return count;
}

bool session_must_repeat(struct cdacq_session *session, unsigned *tries, bool *answered)
{
    if (session_check(session))
        return false;
    if (++*tries < SESSION_TRIES) {
        session_try_again(session);
        return true;
    }
    const char *gone = target_gone(session->target->target);
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    reader_fail(&session->reader.raw, gone ? CDACQ_ERR_IO : CDACQ_ERR_CHANGED, 0, gone);
    *answered = false;
    return false;
}
