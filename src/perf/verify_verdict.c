#include "src/perf/verify_verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/lookup/answer.h"

enum { CANDIDATES_MAX = 64 }; /* methods of one size without a record that are compared with a record */

static const struct {
    const char *text, *meaning;
    bool contradiction;
} verdicts[] = {
#define VERDICT(name, text, contradiction, meaning) [CDACQ_VERDICT_##name] = {text, meaning, contradiction},
    CDACQ_VERDICTS(VERDICT)
#undef VERDICT
};

const char *cdacq_verdict_text(enum cdacq_verdict verdict)
{
    return (unsigned)verdict < ARRAY_SIZE(verdicts) ? verdicts[verdict].text : "unknown";
}

const char *cdacq_verdict_meaning(enum cdacq_verdict verdict)
{
    return (unsigned)verdict < ARRAY_SIZE(verdicts) ? verdicts[verdict].meaning : "unknown";
}

bool cdacq_verdict_is_contradiction(enum cdacq_verdict verdict)
{
    return (unsigned)verdict < ARRAY_SIZE(verdicts) && verdicts[verdict].contradiction;
}

/* What a verdict rests on, and where it says why. */
struct judge {
    struct cdacq_session *session;
    struct record_history *history;
    char *detail;
};

static void explain(const struct judge *judge, const char *format, ...) PRINTF_LIKE(2, 3);

static void explain(const struct judge *judge, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(judge->detail, VERDICT_DETAIL_SIZE, format, args);
    va_end(args);
}

static struct known_method *known(const struct judge *judge, const struct cdacq_method *method)
{
    return verify_methods_find(&judge->history->methods, method);
}

/* Whether a record matches the method. */
static bool is_taken(const struct judge *judge, const struct cdacq_method *method)
{
    const struct known_method *other = known(judge, method);
    return other && other->match;
}

static bool has_later_record(const struct judge *judge, const struct file_record *record)
{
    return verify_starts_has_later(&judge->history->starts, record);
}

/* Whether a record is newer than all that match. */
static bool is_newest(const struct judge *judge, const struct file_record *record)
{
    return judge->history->newest.number && record_history_ends_before(judge->history, record);
}

/*
 * Whether what differs may be due to time only. The answers of a running process are newer than its list of methods and
 * than the file as the first pass has read it: released code may have made way for a method whose record came later.
 */
static bool is_of_another_time(const struct judge *judge, const struct cdacq_method *method, bool is_releasable)
{
    bool is_new = method->answer == CDACQ_ANSWER_MANAGED && method->kind == CDACQ_CODE_JITTED && !known(judge, method);
    return resolver_is_running(&judge->session->resolver) && (is_releasable || is_new);
}

static bool has_range_of(const struct file_record *record, const struct cdacq_method *method)
{
    return record->address == evidence_part_start(method) && record->size == evidence_part_size(method);
}

/* Whether the record's code begins within the method, after its start, and does not go beyond its end. */
static bool is_within(const struct file_record *record, const struct cdacq_method *method)
{
    uint64_t start = evidence_part_start(method), size = evidence_part_size(method);
    return record->address > start && record->address - start < size &&
           record->size <= size - (record->address - start);
}

/*
 * Whether the record describes `method`, which has the record's name. Where code may have been released, the method may
 * be a later one of the same name, so its code must not differ. A record of the middle of the method, with its name and
 * its bytes, can be of no other code, even if the method has a record of its own.
 */
static bool describes(const struct judge *judge, const struct file_record *record, const struct cdacq_method *method,
                      bool is_releasable)
{
    uint64_t start = evidence_part_start(method), differs;
    bool within = is_within(record, method);
    if (within && evidence_compare_code(judge->session, record, record->address, &differs) == AGREE_YES)
        return true;
    if (is_taken(judge, method))
        return false;
    if (!is_releasable || has_range_of(record, method))
        return true;
    if (within || (evidence_part_size(method) != record->size && start != record->address))
        return false;
    return evidence_compare_code(judge->session, record, start, &differs) != AGREE_NO;
}

/* Addresses of the record's code: its start, its middle and its last byte. */
struct record_ips {
    uint64_t start, middle, last;
};

static struct record_ips ips_of(const struct file_record *record)
{
    uint64_t last = add_saturated(record->address, record->size ? record->size - 1 : 0);
    return (struct record_ips){record->address, record->address + (last - record->address) / 2, last};
}

/*
 * Finds a method at the record's start, middle or end that the record describes but does not match. Sets *evidence to
 * that method.
 */
static bool find_described(const struct judge *judge, const struct file_record *record, bool is_releasable,
                           struct evidence *evidence)
{
    if (evidence->method.answer == CDACQ_ANSWER_MANAGED) {
        bool is_free = !is_taken(judge, &evidence->method);
        if (evidence->name == AGREE_YES && describes(judge, record, &evidence->method, is_releasable))
            return true;
        /* Without the same name, the start or the code must agree. */
        if (is_free && evidence->name == AGREE_UNKNOWN && evidence->at_start)
            return true;
        if (is_free && evidence->same_range && evidence->code != AGREE_NO)
            return true;
    }
    struct record_ips of = ips_of(record);
    const uint64_t ips[] = {of.middle, of.last};
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        struct evidence other = {0};
        answer_find(&judge->session->resolver, ips[i], &other.method);
        if (other.method.answer != CDACQ_ANSWER_MANAGED)
            continue;
        other.name = evidence_compare_names(record, &other.method);
        if (other.name != AGREE_YES || !describes(judge, record, &other.method, is_releasable))
            continue;
        *evidence = other;
        return true;
    }
    return false;
}

/*
 * Finds a method without a record that has the record's name, size and, as far as known, code: the record has the wrong
 * address. A method that can be released may instead have been loaded again.
 */
static bool find_moved(const struct judge *judge, const struct file_record *record, bool is_releasable,
                       struct evidence *evidence)
{
    const struct verify_methods *methods = &judge->history->methods;
    size_t first = verify_methods_first_missing(methods, record->size);
    for (size_t i = first; i < methods->missing_count && i - first < CANDIDATES_MAX; i++) {
        const struct known_method *method = &methods->listed.items[methods->missing[i]];
        struct evidence other = {0};
        uint64_t differs;
        if (method->size != record->size)
            return false;
        if (method->described)
            continue;
        answer_find(&judge->session->resolver, method->start, &other.method);
        if (other.method.answer != CDACQ_ANSWER_MANAGED || evidence_compare_names(record, &other.method) != AGREE_YES)
            continue;
        enum agreement code = evidence_compare_code(judge->session, record, method->start, &differs);
        bool stays = evidence_code_lifetime(judge->session, method->start) == CODE_LIFETIME_PERMANENT;
        if (code != AGREE_NO && (stays || (!is_releasable && code == AGREE_YES))) {
            other.name = AGREE_YES;
            *evidence = other;
            return true;
        }
    }
    return false;
}

/* Whether a method with a later record now overlaps the record's code. */
static bool is_overwritten(const struct judge *judge, const struct file_record *record)
{
    struct record_ips of = ips_of(record);
    const uint64_t ips[] = {of.start, of.middle, of.last};
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        struct cdacq_method answer;
        answer_find(&judge->session->resolver, ips[i], &answer);
        const struct known_method *method = answer.answer == CDACQ_ANSWER_MANAGED ? known(judge, &answer) : NULL;
        if (method && method->match > record->number)
            return true;
    }
    return false;
}

/* The verdict on a record that describes evidence->method but differs from it. */
static enum cdacq_verdict difference(const struct judge *judge, const struct file_record *record,
                                     const struct evidence *evidence)
{
    const struct cdacq_method *method = &evidence->method;
    struct known_method *described = known(judge, method);
    if (described)
        described->described = true;
    if (!evidence->same_range) {
        if (record->addresses_differ && has_range_of(record, method))
            explain(judge, "its vma and code_addr differ");
        else
            explain(judge, "the target has it at 0x%" PRIx64 " +0x%" PRIx64, evidence_part_start(method),
                    evidence_part_size(method));
        return CDACQ_VERDICT_RANGE_DIFFERS;
    }
    if (evidence->name == AGREE_NO) {
        explain(judge, "the target calls it otherwise");
        return CDACQ_VERDICT_NAME_DIFFERS;
    }
    explain(judge, "the first byte that differs is +0x%" PRIx64, evidence->code_differs);
    return CDACQ_VERDICT_BYTES_DIFFER;
}

/* The verdict on a record whose code is not in the target. */
static enum cdacq_verdict absence(const struct judge *judge, const struct file_record *record,
                                  const struct evidence *evidence, bool is_releasable)
{
    const struct cdacq_method *method = &evidence->method;
    if (evidence->at_start && is_taken(judge, method) && has_later_record(judge, record))
        return CDACQ_VERDICT_REPLACED; /* the code range was freed and is in use again */
    if (is_overwritten(judge, record))
        return CDACQ_VERDICT_FREED;
    if (is_newest(judge, record))
        return CDACQ_VERDICT_LATER;
    if (is_releasable)
        return CDACQ_VERDICT_FREED;
    if (method->answer != CDACQ_ANSWER_MANAGED) {
        explain(judge, "%s",
                method->answer == CDACQ_ANSWER_STUB ? "the target has a stub there" : "the target has no code there");
        return CDACQ_VERDICT_UNKNOWN_TO_TARGET;
    }
    bool named = evidence->name == AGREE_YES; /* of a method that another record matches */
    explain(judge, "the target has %s at 0x%" PRIx64 " +0x%" PRIx64,
            named ? "it, and matches another record," : "another method", evidence_part_start(method),
            evidence_part_size(method));
    if (evidence->at_start && !named)
        return CDACQ_VERDICT_NAME_DIFFERS;
    return evidence->same_range ? CDACQ_VERDICT_BYTES_DIFFER : CDACQ_VERDICT_RANGE_DIFFERS;
}

/* The verdict on a record that does not match what is at its start. */
static enum cdacq_verdict judge_mismatch(const struct judge *judge, const struct file_record *record,
                                         struct evidence *evidence)
{
    enum code_lifetime lifetime = evidence_code_lifetime(judge->session, record->address);
    bool is_releasable = lifetime == CODE_LIFETIME_RELEASABLE;
    bool replaced = is_releasable && has_later_record(judge, record);
    if (evidence->method.answer == CDACQ_ANSWER_ERROR || lifetime == CODE_LIFETIME_UNKNOWN) {
        explain(judge, "%s", evidence->method.error ? evidence->method.error : "the map of code ranges cannot be read");
        return replaced ? CDACQ_VERDICT_REPLACED : CDACQ_VERDICT_NOT_COMPARED;
    }
    if (is_of_another_time(judge, &evidence->method, is_releasable))
        return replaced ? CDACQ_VERDICT_REPLACED : is_newest(judge, record) ? CDACQ_VERDICT_LATER : CDACQ_VERDICT_FREED;
    if ((!replaced && find_described(judge, record, is_releasable, evidence)) ||
        find_moved(judge, record, is_releasable, evidence))
        return difference(judge, record, evidence);
    return replaced ? CDACQ_VERDICT_REPLACED : absence(judge, record, evidence, is_releasable);
}

enum cdacq_verdict verdict_on_half_line(char detail[VERDICT_DETAIL_SIZE])
{
    snprintf(detail, VERDICT_DETAIL_SIZE, "the file ends within the line");
    return CDACQ_VERDICT_NOT_COMPARED;
}

enum cdacq_verdict verdict_on(struct cdacq_session *session, struct record_history *history,
                              const struct file_record *record, struct evidence *evidence,
                              char detail[VERDICT_DETAIL_SIZE])
{
    const struct judge judge = {session, history, detail};
    detail[0] = '\0';
    evidence_find(session, record, evidence);
    if (evidence_matches(evidence))
        return CDACQ_VERDICT_MATCH;
    return record->unfinished ? verdict_on_half_line(detail) : judge_mismatch(&judge, record, evidence);
}
