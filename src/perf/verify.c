/*
 * verify.c: compares a jitdump or perf map with the target. The first pass over the file finds which methods have a
 * record that matches, the newest of these records, and the last record of every start with a record that does not
 * match. The second pass gives each record its verdict.
 *
 * A record is of the code that the target has only if name, range and code agree well enough. Any other record may be
 * of code of another time; it is a contradiction only if that is impossible.
 */
#include <inttypes.h>
#include <stdio.h>

#include "util/binary_search.h"
#include "util/hash_table.h"
#include "util/vector.h"
#include "src/api/session.h"
#include "formats/perf_name.h"
#include "src/perf/record_file.h"
#include "util/sized.h"

enum {
    STARTS_MAX = 16 * 1024 * 1024,
    CODE_CHUNK = 4096,
    OWN_PROCESS_MAX = 256, /* methods of a file, of which one at least is in its own process */
    CANDIDATES_MAX = 64,   /* methods of one size without a record that are compared with a record */
    DETAIL = 320,
    PROGRESS_STEP = 1024, /* records */
    ASKED_AT_ONCE = 4096, /* records and methods, in one question */
};

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

/* ---- Methods and starts ------------------------------------------------------------------------------------------ */

/* A JIT-compiled method of the target. */
struct known_method {
    uint64_t start, size;
    uint64_t match; /* number of the last record that matches; 0 if none */
    bool described; /* a record that differs describes it */
};

/* A start with a record that does not match. */
struct start {
    uint64_t address;
    uint64_t last; /* number of the last record with this start */
};

static uint64_t start_address(const struct start *start)
{
    return start->address;
}

DEFINE_VECTOR(known_methods, struct known_method);
DEFINE_HASH_TABLE(starts, struct start, uint64_t, start_address, hash_u64, equal_u64);

struct verifier {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct record_file file;
    struct known_methods methods; /* by start */
    uint32_t *missing;            /* indexes of methods without a match, by size */
    size_t missing_count;
    struct starts starts;
    struct {
        uint64_t timestamp, number;
    } newest;           /* matching record of a JIT-compiled method; 0, 0 if none */
    bool holds_methods; /* a record is not of a stub */
    bool stub_block;    /* a stub record is of the kind that .NET 10 fails on */
    uint64_t asked;     /* records and methods */
    int (*visit)(const struct cdacq_comparison *, void *);
    void *context;
    struct cdacq_verification *sum;
    char detail[DETAIL];
};

static struct known_method *known(const struct verifier *v, const struct cdacq_method *method)
{
    struct known_method *items = v->methods.items;
    size_t count = v->methods.count, first = lower_bound(i, count, items[i].start < method->code_start);
    bool found = method->kind == CDACQ_CODE_JITTED && first < count && items[first].start == method->code_start;
    return found ? &items[first] : NULL;
}

/* Whether a failure at `address` may hide JIT-compiled methods. */
static bool is_jit_code(const struct verifier *v, uint64_t address)
{
    const struct code_range *range = v->session->map ? code_map_range(v->session->map, address) : NULL;
    return !range || range->manager->compiles;
}

static int add_method(const struct cdacq_method *method, void *context)
{
    struct verifier *v = context;
    if (method->answer == CDACQ_ANSWER_ERROR && !v->sum->methods_problem[0] && is_jit_code(v, method->code_start))
        snprintf(v->sum->methods_problem, sizeof v->sum->methods_problem, "%s",
                 method->error ? method->error : "a code range cannot be listed");
    if (method->answer != CDACQ_ANSWER_MANAGED || method->kind != CDACQ_CODE_JITTED)
        return 0;
    return !known_methods_append(&v->methods,
                                 (struct known_method){.start = method->code_start, .size = method->code_size});
}

static enum cdacq_status list_methods(struct verifier *v, struct cdacq_error *err)
{
    struct cdacq_error problem;
    enum cdacq_status status = cdacq_session_visit_methods(v->session, CDACQ_VISIT_R2R_NONE, add_method, v, &problem);
    if (status == CDACQ_STOPPED)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
    if (status == CDACQ_ERR_IO && session_check_process(v->session, err) < 0)
        return CDACQ_ERR_IO;
    if (status < 0) /* look-ups work without the map */
        memcpy(v->sum->methods_problem, problem.message, sizeof v->sum->methods_problem);
    return CDACQ_OK;
}

/* Sets the last record of a start. Adds the start only with `insert`. */
static enum cdacq_status set_last_record(struct verifier *v, const struct file_record *record, bool insert,
                                         struct cdacq_error *err)
{
    struct start *start = starts_find(&v->starts, record->address);
    if (start)
        start->last = record->number;
    if (start || !insert)
        return CDACQ_OK;
    if (v->starts.count >= STARTS_MAX)
        return error_set(err, CDACQ_ERR_FUEL, 0, "more than %d places have records that do not match", STARTS_MAX);
    return starts_insert(&v->starts, (struct start){record->address, record->number}, NULL)
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
}

static bool has_later_record(const struct verifier *v, const struct file_record *record)
{
    const struct start *start = starts_find(&v->starts, record->address);
    return start && start->last > record->number;
}

/* A session keeps what it has read of a running process until the next question. */
static void bound_question(struct verifier *v)
{
    if (++v->asked % ASKED_AT_ONCE == 0)
        session_begin_question(v->session);
}

/* ---- A record and what the target has ---------------------------------------------------------------------------- */

enum agreement { UNKNOWN, DIFFERS, AGREES };

/* What the target has for a record. */
struct evidence {
    struct cdacq_method method; /* at the record's start, or the method that the record describes */
    bool at_start;              /* the method or its cold part starts at the record's address */
    bool same_range;
    enum agreement name, code;
    uint64_t code_differs; /* offset of the first byte that differs */
};

static enum agreement compare_names(const struct file_record *record, const struct cdacq_method *method)
{
    if (!method->name)
        return UNKNOWN;
    return perf_name_is_of(record->name, record->name_length, method->name, method->name_length) ? AGREES : DIFFERS;
}

static uint64_t part_start(const struct cdacq_method *method)
{
    return method->cold ? method->cold_start : method->code_start;
}

static uint64_t part_size(const struct cdacq_method *method)
{
    return method->cold ? method->cold_size : method->code_size;
}

/* Compares the record's code with the target's memory at `address`. */
static enum agreement compare_code(struct verifier *v, const struct file_record *record, uint64_t address,
                                   uint64_t *ret_differs)
{
    uint8_t chunk[CODE_CHUNK];
    struct field_reader *reader = &v->session->reader;
    const uint8_t *code = record->code;
    if (!code || !record->size)
        return UNKNOWN;
    reader_begin(&reader->raw, FUEL_INDEX);
    for (uint64_t done = 0; done < record->size; done += sizeof chunk) {
        size_t size = (size_t)MIN(record->size - done, (uint64_t)sizeof chunk);
        if (!reader_try_copy(&reader->raw, address + done, chunk, size))
            return UNKNOWN;
        if (memcmp(chunk, code + done, size) == 0)
            continue;
        size_t i = 0;
        while (chunk[i] == code[done + i])
            i++;
        *ret_differs = done + i;
        return DIFFERS;
    }
    return AGREES;
}

static void find_evidence_once(struct verifier *v, const struct file_record *record, struct evidence *ret)
{
    *ret = (struct evidence){.name = UNKNOWN, .code = UNKNOWN};
    session_answer(v->session, record->address, &ret->method);
    if (ret->method.answer != CDACQ_ANSWER_MANAGED)
        return;
    ret->at_start = part_start(&ret->method) == record->address;
    ret->same_range = ret->at_start && part_size(&ret->method) == record->size && !record->addresses_differ;
    ret->name = compare_names(record, &ret->method);
    if (ret->at_start)
        ret->code = compare_code(v, record, record->address, &ret->code_differs);
}

/* The page of code that is new in a running process may have been read before the code was. */
static void find_evidence(struct verifier *v, const struct file_record *record, struct evidence *ret)
{
    unsigned tries = 0;
    bool answered = true;
    do
        find_evidence_once(v, record, ret);
    while (ret->code == DIFFERS && session_must_repeat(v->session, &tries, &answered));
    if (!answered)
        ret->code = UNKNOWN;
}

static bool matches(const struct evidence *evidence)
{
    return evidence->same_range && evidence->name != DIFFERS && evidence->code != DIFFERS;
}

/* ---- First pass -------------------------------------------------------------------------------------------------- */

static bool is_newer(const struct verifier *v, const struct file_record *record)
{
    return record->timestamp != v->newest.timestamp ? record->timestamp > v->newest.timestamp
                                                    : record->number > v->newest.number;
}

static enum cdacq_status index_record(struct verifier *v, const struct file_record *record, struct cdacq_error *err)
{
    struct evidence evidence;
    if (record->problem)
        return CDACQ_OK;
    if (perf_name_is_stub(record->name, record->name_length)) {
        static const char block[] = "ReportStubBlock";
        v->stub_block |= memmem(record->name, record->name_length, block, sizeof block - 1) != NULL;
        return CDACQ_OK;
    }
    v->holds_methods = true;
    find_evidence(v, record, &evidence);
    if (!matches(&evidence))
        return set_last_record(v, record, true, err);
    struct known_method *method = known(v, &evidence.method);
    /* A second record may be of later code that looks the same. */
    bool first = evidence.method.kind == CDACQ_CODE_JITTED && (!method || !method->match);
    if (method)
        method->match = record->number;
    if (first && is_newer(v, record)) {
        v->newest.timestamp = record->timestamp;
        v->newest.number = record->number;
    }
    return set_last_record(v, record, false, err);
}

/* A record that came while the file was compared may be of a method that was listed. */
static enum cdacq_status index_late_record(struct verifier *v, const struct file_record *record,
                                           struct cdacq_error *err)
{
    const struct cdacq_method method = {.kind = CDACQ_CODE_JITTED, .code_start = record->address};
    const struct known_method *listed = known(v, &method);
    return listed && !listed->match && listed->size == record->size ? index_record(v, record, err) : CDACQ_OK;
}

static int compare_sizes(const void *a, const void *b, void *methods)
{
    const struct known_method *x = (struct known_method *)methods + *(const uint32_t *)a,
                              *y = (struct known_method *)methods + *(const uint32_t *)b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static enum cdacq_status list_missing(struct verifier *v, struct cdacq_error *err)
{
    v->missing = calloc(v->methods.count + 1, sizeof *v->missing);
    if (!v->missing)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
    for (size_t i = 0; i < v->methods.count && i < UINT32_MAX; i++)
        if (!v->methods.items[i].match)
            v->missing[v->missing_count++] = (uint32_t)i;
    qsort_r(v->missing, v->missing_count, sizeof *v->missing, compare_sizes, v->methods.items);
    return CDACQ_OK;
}

/* ---- Second pass ------------------------------------------------------------------------------------------------- */

/* Whether code at `address` may have been released. UNKNOWN: the target's map of code ranges cannot be read. */
static enum agreement can_be_freed(struct verifier *v, uint64_t address)
{
    struct field_reader *reader = &v->session->reader;
    uint64_t map = v->target->manager.map;
    struct range_section section;
    unsigned tries = 0;
    bool freed, answered = true;
    session_clear_log(v->session);
    do {
        reader_begin(&reader->raw, FUEL_LOOKUP);
        /* A section without methods is newer than the record. */
        if (execution_manager_section(&v->target->manager, reader, address, &section))
            freed = section.flags & RANGE_SECTION_COLLECTIBLE ||
                    jit_manager_of(&section)->method_kind == CDACQ_CODE_UNKNOWN;
        else
            freed = range_section_map_reaches(reader, map, address);
    } while (session_must_repeat(v->session, &tries, &answered));
    return reader_failed(&reader->raw) ? UNKNOWN : freed ? AGREES : DIFFERS;
}

/*
 * Whether what differs may be due to time only. The answers of a running process are newer than its list of methods and
 * than the file as the first pass has read it: released code may have made way for a method whose record came later.
 */
static bool is_of_another_time(const struct verifier *v, const struct cdacq_method *method, bool is_freed)
{
    bool is_new = method->answer == CDACQ_ANSWER_MANAGED && method->kind == CDACQ_CODE_JITTED && !known(v, method);
    return session_is_running(v->session) && (is_freed || is_new);
}

/* Whether a record matches the method. */
static bool is_taken(const struct verifier *v, const struct cdacq_method *method)
{
    const struct known_method *other = known(v, method);
    return other && other->match;
}

/*
 * Whether the record describes `method`, which has the record's name. Where code may have been released, the method may
 * be a later one of the same name, so its code must not differ.
 */
static bool describes(struct verifier *v, const struct file_record *record, const struct cdacq_method *method,
                      bool is_freed)
{
    uint64_t differs;
    if (is_taken(v, method))
        return false;
    if (!is_freed || (part_start(method) == record->address && part_size(method) == record->size))
        return true;
    /* A record of the middle of the method, with its name and its bytes, can be of no other code. */
    if (record->address > part_start(method) && record->address - part_start(method) < part_size(method) &&
        record->size <= part_size(method) - (record->address - part_start(method)))
        return compare_code(v, record, record->address, &differs) == AGREES;
    if (part_size(method) != record->size && part_start(method) != record->address)
        return false;
    return compare_code(v, record, part_start(method), &differs) != DIFFERS;
}

/*
 * Finds a method at the record's start, middle or end that the record describes but does not match. Sets *evidence to
 * that method.
 */
static bool find_described(struct verifier *v, const struct file_record *record, bool is_freed,
                           struct evidence *evidence)
{
    bool managed = evidence->method.answer == CDACQ_ANSWER_MANAGED;
    if (managed && evidence->name == AGREES && describes(v, record, &evidence->method, is_freed))
        return true;
    /* Without the same name, the start or the code must agree. */
    if (managed && evidence->name == UNKNOWN && evidence->at_start && !is_taken(v, &evidence->method))
        return true;
    if (managed && evidence->same_range && evidence->code != DIFFERS && !is_taken(v, &evidence->method))
        return true;
    uint64_t last = add_saturated(record->address, record->size ? record->size - 1 : 0);
    uint64_t ips[] = {record->address + (last - record->address) / 2, last};
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        struct evidence other = {0};
        session_answer(v->session, ips[i], &other.method);
        if (other.method.answer != CDACQ_ANSWER_MANAGED)
            continue;
        other.name = compare_names(record, &other.method);
        if (other.name != AGREES || !describes(v, record, &other.method, is_freed))
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
static bool find_moved(struct verifier *v, const struct file_record *record, bool is_freed, struct evidence *evidence)
{
    const struct known_method *methods = v->methods.items;
    size_t first = lower_bound(i, v->missing_count, methods[v->missing[i]].size < record->size);
    for (size_t i = first; i < v->missing_count && i - first < CANDIDATES_MAX; i++) {
        const struct known_method *method = &methods[v->missing[i]];
        struct evidence other = {0};
        uint64_t differs;
        if (method->size != record->size)
            return false;
        if (method->described)
            continue;
        session_answer(v->session, method->start, &other.method);
        if (other.method.answer != CDACQ_ANSWER_MANAGED || compare_names(record, &other.method) != AGREES)
            continue;
        enum agreement code = compare_code(v, record, method->start, &differs);
        bool stays = can_be_freed(v, method->start) == DIFFERS;
        if (code != DIFFERS && (stays || (!is_freed && code == AGREES))) {
            other.name = AGREES;
            *evidence = other;
            return true;
        }
    }
    return false;
}

/* Whether a method with a later record now overlaps the record's code. */
static bool is_overwritten(struct verifier *v, const struct file_record *record)
{
    uint64_t last = add_saturated(record->address, record->size ? record->size - 1 : 0);
    uint64_t ips[] = {record->address, record->address + (last - record->address) / 2, last};
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
        struct cdacq_method answer;
        session_answer(v->session, ips[i], &answer);
        const struct known_method *method = answer.answer == CDACQ_ANSWER_MANAGED ? known(v, &answer) : NULL;
        if (method && method->match > record->number)
            return true;
    }
    return false;
}

/* The verdict on a record that describes evidence->method but differs from it. */
static enum cdacq_verdict difference(struct verifier *v, const struct file_record *record,
                                     const struct evidence *evidence)
{
    const struct cdacq_method *method = &evidence->method;
    struct known_method *described = known(v, method);
    if (described)
        described->described = true;
    if (!evidence->same_range) {
        if (record->addresses_differ && part_start(method) == record->address && part_size(method) == record->size)
            snprintf(v->detail, sizeof v->detail, "its vma and code_addr differ");
        else
            snprintf(v->detail, sizeof v->detail, "the target has it at 0x%" PRIx64 " +0x%" PRIx64, part_start(method),
                     part_size(method));
        return CDACQ_VERDICT_RANGE_DIFFERS;
    }
    if (evidence->name == DIFFERS) {
        snprintf(v->detail, sizeof v->detail, "the target calls it otherwise");
        return CDACQ_VERDICT_NAME_DIFFERS;
    }
    snprintf(v->detail, sizeof v->detail, "the first byte that differs is +0x%" PRIx64, evidence->code_differs);
    return CDACQ_VERDICT_BYTES_DIFFER;
}

/* The verdict on a record whose code is not in the target. */
static enum cdacq_verdict absence(struct verifier *v, const struct file_record *record, const struct evidence *evidence,
                                  enum agreement freed)
{
    bool any_match = v->newest.number != 0, managed = evidence->method.answer == CDACQ_ANSWER_MANAGED;
    if (evidence->at_start && is_taken(v, &evidence->method) && has_later_record(v, record))
        return CDACQ_VERDICT_REPLACED; /* the code range was freed and is in use again */
    if (is_overwritten(v, record))
        return CDACQ_VERDICT_FREED;
    if (any_match && is_newer(v, record))
        return CDACQ_VERDICT_LATER;
    if (freed == AGREES)
        return CDACQ_VERDICT_FREED;
    if (!managed) {
        snprintf(v->detail, sizeof v->detail, "%s",
                 evidence->method.answer == CDACQ_ANSWER_STUB ? "the target has a stub there"
                                                              : "the target has no code there");
        return CDACQ_VERDICT_UNKNOWN_TO_TARGET;
    }
    bool named = evidence->name == AGREES; /* of a method that another record matches */
    snprintf(v->detail, sizeof v->detail, "the target has %s at 0x%" PRIx64 " +0x%" PRIx64,
             named ? "it, and matches another record," : "another method", part_start(&evidence->method),
             part_size(&evidence->method));
    if (evidence->at_start && !named)
        return CDACQ_VERDICT_NAME_DIFFERS;
    return evidence->same_range ? CDACQ_VERDICT_BYTES_DIFFER : CDACQ_VERDICT_RANGE_DIFFERS;
}

static enum cdacq_verdict compare(struct verifier *v, const struct file_record *record, struct evidence *evidence)
{
    find_evidence(v, record, evidence);
    if (matches(evidence)) {
        v->sum->names_not_compared += evidence->name == UNKNOWN;
        v->sum->code_not_compared += evidence->code == UNKNOWN && !v->sum->perf_map;
        return CDACQ_VERDICT_MATCH;
    }
    if (record->unfinished) {
        snprintf(v->detail, sizeof v->detail, "the file ends within the line");
        return CDACQ_VERDICT_DAMAGED;
    }
    enum agreement freed = can_be_freed(v, record->address);
    bool replaced = freed == AGREES && has_later_record(v, record);
    if (evidence->method.answer == CDACQ_ANSWER_ERROR || freed == UNKNOWN) {
        snprintf(v->detail, sizeof v->detail, "%s",
                 evidence->method.error ? evidence->method.error : "the map of code ranges cannot be read");
        return replaced ? CDACQ_VERDICT_REPLACED : CDACQ_VERDICT_UNTOLD;
    }
    bool is_freed = freed == AGREES;
    if (is_of_another_time(v, &evidence->method, is_freed)) {
        bool is_later = v->newest.number && is_newer(v, record);
        return replaced ? CDACQ_VERDICT_REPLACED : is_later ? CDACQ_VERDICT_LATER : CDACQ_VERDICT_FREED;
    }
    if ((!replaced && find_described(v, record, is_freed, evidence)) || find_moved(v, record, is_freed, evidence))
        return difference(v, record, evidence);
    if (replaced)
        return CDACQ_VERDICT_REPLACED;
    return absence(v, record, evidence, freed);
}

static enum cdacq_status report(struct verifier *v, const struct cdacq_comparison *comparison)
{
    v->sum->counts[comparison->verdict]++;
    v->sum->contradictions += cdacq_verdict_is_contradiction(comparison->verdict);
    return v->visit && v->visit(comparison, v->context) ? CDACQ_STOPPED : CDACQ_OK;
}

static enum cdacq_status compare_record(struct verifier *v, const struct file_record *record)
{
    struct evidence evidence = {.method.answer = CDACQ_ANSWER_NONE};
    struct cdacq_comparison comparison = {
        .size = sizeof comparison,
        .offset = record->offset,
        .line = record->line,
        .timestamp = record->timestamp,
        .address = record->address,
        .code_size = record->size,
        .name = record->name,
        .name_length = record->name_length,
    };
    v->detail[0] = '\0';
    v->sum->records++;
    if (record->problem) {
        snprintf(v->detail, sizeof v->detail, "%s", record->problem);
        comparison.verdict = CDACQ_VERDICT_DAMAGED;
    } else if (perf_name_is_stub(record->name, record->name_length)) {
        comparison.verdict = CDACQ_VERDICT_STUB;
    } else {
        comparison.verdict = compare(v, record, &evidence);
    }
    if (evidence.method.answer == CDACQ_ANSWER_MANAGED || evidence.method.answer == CDACQ_ANSWER_STUB)
        comparison.method = &evidence.method;
    comparison.detail = v->detail[0] ? v->detail : NULL;
    return report(v, &comparison);
}

/* Whether a running process may have released a method since it was listed. */
static bool may_be_gone(struct verifier *v, const struct known_method *listed, const struct cdacq_method *now)
{
    return session_is_running(v->session) &&
           (now->answer != CDACQ_ANSWER_MANAGED || now->code_start != listed->start || now->code_size != listed->size ||
            can_be_freed(v, listed->start) != DIFFERS);
}

static enum cdacq_status report_missing(struct verifier *v)
{
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < v->methods.count && status == CDACQ_OK; i++) {
        struct cdacq_method method;
        const struct known_method *listed = &v->methods.items[i];
        if (listed->match || listed->described)
            continue;
        bound_question(v);
        session_answer(v->session, listed->start, &method);
        if (may_be_gone(v, listed, &method))
            continue;
        status = report(v, &(struct cdacq_comparison){.size = sizeof(struct cdacq_comparison),
                                                      .verdict = CDACQ_VERDICT_MISSING_FROM_FILE,
                                                      .method = &method});
    }
    return status;
}

/* ---- Both passes ------------------------------------------------------------------------------------------------- */

/*
 * Whether the file is of another process: its header names another pid, and none of its first methods matches. A pid
 * alone proves nothing, because a container has its own.
 */
static enum cdacq_status check_process(const struct verifier *v, struct cdacq_error *err)
{
    int pid = v->target->target->pid;
    if (!v->file.pid || pid <= 0 || v->file.pid == (uint32_t)pid || v->newest.number || !v->methods.count)
        return CDACQ_OK;
    return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                     "it is the jitdump of process %" PRIu32 ", the target is process %d, and none of its methods is "
                     "in the target",
                     v->file.pid, pid);
}

static void show_progress(const struct verifier *v, const struct file_record *record, uint64_t before)
{
    const struct cdacq_target *target = v->target;
    if (target->progress && v->file.count % PROGRESS_STEP == 0)
        target->progress(target->progress_context, before + record->offset, 2 * v->file.size);
}

static enum cdacq_status first_pass(struct verifier *v, struct cdacq_error *err)
{
    struct file_record record;
    enum cdacq_status status;
    uint64_t damaged = 0, methods = 0;
    while ((status = record_file_next(&v->file, &record, err)) == CDACQ_OK) {
        show_progress(v, &record, 0);
        damaged += record.problem != NULL;
        bound_question(v);
        status = index_record(v, &record, err);
        methods += !record.problem && !perf_name_is_stub(record.name, record.name_length);
        if (status == CDACQ_OK && methods == OWN_PROCESS_MAX)
            status = check_process(v, err);
        if (status < 0)
            return status;
    }
    if (status >= 0 && methods && methods < OWN_PROCESS_MAX)
        status = check_process(v, err);
    if (status < 0)
        return status;
    if (v->sum->perf_map && damaged && damaged == v->file.count)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "neither a jitdump nor a perf map: no line of it is a symbol");
    if (v->file.cut && v->sum->perf_map)
        snprintf(v->sum->cut, sizeof v->sum->cut, "the last line has no end: the file is being written, or cut");
    else if (v->file.cut)
        memcpy(v->sum->cut, v->file.problem.message, sizeof v->sum->cut);
    /* dotnet/runtime#120419: the runtime writes a block of stubs whose pages do not exist yet, and then gives up. */
    if (!v->sum->perf_map && !v->holds_methods && (v->stub_block || v->file.cut))
        v->sum->advice = "this jitdump holds no methods: .NET 10 stops writing it at the first block of stubs "
                         "(dotnet/runtime#120419); run the process with DOTNET_PerfMapStubGranularity=2";
    return CDACQ_OK;
}

static enum cdacq_status second_pass(struct verifier *v, struct cdacq_error *err)
{
    struct file_record record;
    uint64_t count = v->file.count;
    enum cdacq_status status = record_file_rewind(&v->file, err);
    while (status == CDACQ_OK &&
           v->file.count < count) { /* a file that grows is compared as it was in the first pass */
        status = record_file_next(&v->file, &record, err);
        if (status != CDACQ_OK)
            break;
        show_progress(v, &record, v->file.size);
        bound_question(v);
        status = compare_record(v, &record);
    }
    while (status == CDACQ_OK && session_is_running(v->session) &&
           record_file_next(&v->file, &record, NULL) == CDACQ_OK)
        status = index_late_record(v, &record, err);
    return status == CDACQ_END ? CDACQ_OK : status;
}

static enum cdacq_status run(struct verifier *v, struct cdacq_error *err)
{
    enum cdacq_status status = list_methods(v, err);
    if (status == CDACQ_OK)
        status = first_pass(v, err);
    if (status == CDACQ_OK)
        status = list_missing(v, err);
    if (status == CDACQ_OK)
        status = second_pass(v, err);
    if (status == CDACQ_OK)
        status = session_check_process(v->session, err); /* of one that ended meanwhile, no verdict is true */
    return status == CDACQ_OK ? report_missing(v) : status;
}

enum cdacq_status cdacq_target_verify(struct cdacq_target *target, const char *path,
                                      int (*visit)(const struct cdacq_comparison *comparison, void *context),
                                      void *context, struct cdacq_verification *ret, struct cdacq_error *err)
{
    struct cdacq_verification sum = {0};
    struct verifier v = {.target = target, .visit = visit, .context = context, .sum = &sum};
    enum cdacq_status status = sized_check(ret, "struct cdacq_verification", err);
    if (status >= 0)
        status = error_check_path(path, err);
    if (status >= 0)
        status = record_file_open(path, &v.file, err);
    if (status < 0)
        return status;
    sum.perf_map = !v.file.jitdump;
    status = cdacq_session_create(target, &v.session, err);
    if (status == CDACQ_OK) {
        v.session->names = CDACQ_NAMES_IL;
        status = run(&v, err);
    }
    if (status >= 0)
        sized_copy(ret, &sum, sizeof sum);
    cdacq_session_destroy(v.session);
    record_file_close(&v.file);
    known_methods_deinit(&v.methods);
    free(v.missing);
    starts_deinit(&v.starts);
    return status;
}
