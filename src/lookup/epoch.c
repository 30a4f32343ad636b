#include "src/lookup/epoch.h"

#include "src/lookup/opened_target.h"

void epoch_init(struct epoch *epoch, struct cdacq_target *target, struct reader *reader)
{
    *epoch = (struct epoch){.target = target, .reader = reader, .pins = &epoch->own_pins};
}

void epoch_deinit(struct epoch *epoch)
{
    void_flags_deinit(&epoch->unconfirmed);
    read_log_deinit(&epoch->log);
}

void epoch_watch(struct epoch *epoch)
{
    reader_forget(epoch->reader, epoch->reader->log); /* a span of a file is noted when it is next used */
    read_log_clear(&epoch->log);
}

void epoch_read_anew(struct epoch *epoch)
{
    struct target *memory = epoch->target->memory;
    target_begin_epoch(memory);
    reader_forget(epoch->reader, &epoch->log);
    read_log_clear(&epoch->log);
    epoch->unconfirmed.count = 0;
    epoch->round++;
    epoch->pages_of = memory->epoch;
}

/* The mappings may be others, too. */
static void refresh(struct epoch *epoch)
{
    if (!target_owner(epoch->target)->mapping_pins)
        target_refresh(epoch->target->memory);
}

void epoch_follow(struct epoch *epoch)
{
    if (epoch_is_running(epoch) && epoch->pages_of != epoch->target->memory->epoch)
        epoch_read_anew(epoch);
}

bool epoch_begin(struct epoch *epoch)
{
    const struct cdacq_target *owner = target_owner(epoch->target);
    if (!epoch_is_running(epoch))
        return false;
    if (*epoch->pins || (owner->keep && epoch->refresh == owner->refresh && epoch->reader->log)) {
        epoch_follow(epoch);
        return false;
    }
    epoch->refresh = owner->refresh;
    refresh(epoch);
    epoch_read_anew(epoch);
    return true;
}

bool epoch_confirm(struct epoch *epoch)
{
    if (!epoch_is_running(epoch))
        return true;
    bool same = target_unchanged(epoch->target->memory, &epoch->log, 0);
    for (size_t i = 0; !same && i < epoch->unconfirmed.count; i++)
        *epoch->unconfirmed.items[i] = true;
    epoch->unconfirmed.count = 0;
    epoch->round++; /* later answers that rest on a module need a confirmation of their own */
    epoch_watch(epoch);
    return same;
}

enum cdacq_status epoch_check_process(const struct epoch *epoch, struct cdacq_error *err)
{
    return epoch_is_running(epoch) ? target_check_gone(epoch->target->memory, 0, err) : CDACQ_OK;
}

/* Whether to try again what did not hold. */
static bool try_again(struct epoch *epoch, struct epoch_tries *tries)
{
    if (++tries->count < EPOCH_TRIES) {
        refresh(epoch);
        epoch_read_anew(epoch);
        return true;
    }
    tries->verdict = target_gone(epoch->target->memory) ? EPOCH_GONE : EPOCH_CHANGED;
    return false;
}

bool epoch_again(struct epoch *epoch, struct epoch_tries *tries)
{
    return !epoch_confirm(epoch) && try_again(epoch, tries);
}

bool epoch_again_or_fail(struct epoch *epoch, struct epoch_tries *tries, bool *answered)
{
    if (epoch_again(epoch, tries))
        return true;
    if (tries->verdict == EPOCH_HELD)
        return false;
    bool is_gone = tries->verdict == EPOCH_GONE;
    reader_begin(epoch->reader, FUEL_LOOKUP);
    reader_fail(epoch->reader, is_gone ? CDACQ_ERR_IO : CDACQ_ERR_CHANGED, 0,
                is_gone ? target_gone(epoch->target->memory) : NULL);
    *answered = false;
    return false;
}

void epoch_begin_aside(struct epoch *epoch, struct read_log *log)
{
    if (epoch_is_running(epoch))
        reader_log(epoch->reader, log);
    reader_begin(epoch->reader, FUEL_INDEX);
}

bool epoch_again_aside(struct epoch *epoch, struct epoch_tries *tries, struct read_log *log, bool check)
{
    if (!epoch_is_running(epoch))
        return false;
    enum cdacq_status status = reader_failure(epoch->reader).status;
    bool can_pass = check && status != CDACQ_ERR_NOMEM && status != CDACQ_ERR_IO;
    bool changed = can_pass && log->reads.count < READ_LOG_MAX && !target_unchanged(epoch->target->memory, log, 0);
    reader_log(epoch->reader, &epoch->log);
    read_log_deinit(log);
    *log = (struct read_log){0};
    return changed && try_again(epoch, tries);
}

static size_t form_singly(struct epoch *epoch, epoch_form *form, void *context, size_t *items, size_t count)
{
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        epoch_watch(epoch);
        form(context, items[i]);
        if (!epoch_confirm(epoch))
            items[failed++] = items[i];
    }
    return failed;
}

/*
 * Forms the items in two halves. Memory that has not changed is read again only to confirm it. If all of one half
 * fails, all items may rest on what changes; to halve the other half, too, would form each of them many times.
 */
static size_t form_halves(struct epoch *epoch, epoch_form *form, void *context, size_t *items, size_t count)
{
    epoch_watch(epoch);
    for (size_t i = 0; i < count; i++)
        form(context, items[i]);
    if (epoch_confirm(epoch))
        return 0;
    if (count == 1)
        return 1;
    size_t half = count / 2, failed = form_halves(epoch, form, context, items, half);
    size_t more = (failed == half ? form_singly : form_halves)(epoch, form, context, items + half, count - half);
    memmove(items + failed, items + half, more * sizeof *items);
    return failed + more;
}

size_t epoch_form_items(struct epoch *epoch, epoch_form *form, void *context, size_t *items, size_t count)
{
    for (struct epoch_tries tries = {0}; count;) {
        count = form_halves(epoch, form, context, items, count);
        if (count && !try_again(epoch, &tries))
            break;
    }
    return count;
}
