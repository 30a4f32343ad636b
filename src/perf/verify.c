/*
 * verify.c: compares a jitdump or perf map with the target. The first pass over the file finds which methods have a
 * record that matches, the newest of these records, and the last record of every start with a record that does not
 * match. The second pass gives each record its verdict.
 */
#include <inttypes.h>
#include <stdio.h>

#include "formats/perf_name.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_target.h"
#include "src/perf/verify_verdict.h"
#include "util/sized.h"

enum {
    OWN_PROCESS_MAX = 256, /* methods of a file; one at least is in its own process */
    PROGRESS_STEP = 1024,  /* records */
    ASKED_AT_ONCE = 4096,  /* records and methods, in one epoch */
};

struct verifier {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct record_file file;
    struct record_history history;
    bool holds_methods; /* a record is not of a stub */
    bool stub_block;    /* a stub record is of the kind that .NET 10 fails on */
    bool has_match;     /* a record is of code that the target has */
    bool is_foreign;    /* none is, and some may be of other code */
    uint64_t asked;     /* records and methods */
    struct lines rest;  /* of the last name, in a perf map: the lines that must follow, as CDACQ_NAMES_IL spells them */
    uint64_t open_line; /* of a name that lacks its end, whose method the target does not have; or 0 */
    int (*visit)(const struct cdacq_comparison *, void *);
    void *context;
    struct cdacq_verification *sum;
};

static void show_progress(const struct verifier *v, const struct file_record *record, uint64_t before)
{
    const struct cdacq_target *target = v->target;
    if (target->progress && v->file.count % PROGRESS_STEP == 0)
        target->progress(before + record->offset, 2 * v->file.size, target->progress_context);
}

/* A session keeps what it has read of a running process until the next epoch. */
static void bound_epoch(struct verifier *v)
{
    if (++v->asked % ASKED_AT_ONCE == 0)
        resolver_begin(&v->session->resolver);
}

/* ---- Names of several lines -------------------------------------------------------------------------------------- */

/* Whether a line of a perf map continues the name of the method before it, which has a newline. */
static bool take_rest(struct verifier *v, const struct file_record *record)
{
    struct lines *rest = &v->rest;
    if (!rest->count)
        return false;
    const char *left = perf_name_take_line(record->text, record->text_length, rest->items, rest->count);
    bool is_last = !left && perf_name_is_of(record->text, record->text_length, rest->items, rest->count);
    size_t count = left ? (size_t)(rest->items + rest->count - left) : 0;
    if (left)
        memmove(rest->items, left, count);
    rest->count = count;
    return left || is_last || (record->problem && record->unfinished);
}

/* To be called with each record that matches. */
static enum cdacq_status note_rest(struct verifier *v, const struct file_record *record,
                                   const struct cdacq_method *method, struct cdacq_error *err)
{
    const char *rest = record->line && method->name
                           ? perf_name_take_line(record->name, record->name_length, method->name, method->name_length)
                           : NULL;
    size_t count = rest ? (size_t)(method->name + method->name_length - rest) : 0;
    if (!lines_resize(&v->rest, count))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (count)
        memcpy(v->rest.items, rest, count);
    return CDACQ_OK;
}

/* Whether a line that is no symbol may continue the name of a method that the target no longer has. */
static bool take_open_rest(struct verifier *v, const struct file_record *record)
{
    bool is_rest = v->open_line && record->problem;
    if (is_rest && perf_name_is_whole(record->text, record->text_length))
        v->open_line = 0;
    return is_rest;
}

/* ---- First pass -------------------------------------------------------------------------------------------------- */

static enum cdacq_status index_record(struct verifier *v, const struct file_record *record, struct cdacq_error *err)
{
    struct record_history *history = &v->history;
    struct evidence evidence;
    if (take_rest(v, record) || record->problem)
        return CDACQ_OK;
    if (perf_name_is_stub(record->name, record->name_length)) {
        static const char block[] = "ReportStubBlock";
        v->stub_block |= memmem(record->name, record->name_length, block, sizeof block - 1) != NULL;
        return CDACQ_OK;
    }
    v->holds_methods = true;
    evidence_find(v->session, record, &evidence);
    if (!evidence_matches(&evidence))
        return verify_starts_add(&history->starts, record, err);
    v->has_match = true;
    struct known_method *method = verify_methods_find(&history->methods, &evidence.method);
    /* A second record may be of later code that looks the same. */
    bool first = evidence.method.kind == CDACQ_CODE_JITTED && (!method || !method->match);
    if (method)
        method->match = record->number;
    if (first && record_history_ends_before(history, record)) {
        history->newest.timestamp = record->timestamp;
        history->newest.number = record->number;
    }
    verify_starts_update(&history->starts, record);
    return note_rest(v, record, &evidence.method, err);
}

/*
 * Whether the file is of another process: its header names another pid, and none of its first methods matches. A pid
 * alone proves nothing, because a container has its own.
 */
static enum cdacq_status check_process(const struct verifier *v, struct cdacq_error *err)
{
    int pid = v->target->memory->pid;
    if (!v->file.pid || pid <= 0 || v->file.pid == (uint32_t)pid || v->history.newest.number ||
        !v->history.methods.listed.count)
        return CDACQ_OK;
    return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                     "it is the jitdump of process %" PRIu32 ", the target is process %d, and none of its methods is "
                     "in the target",
                     v->file.pid, pid);
}

static enum cdacq_status first_pass(struct verifier *v, struct cdacq_error *err)
{
    struct file_record record;
    enum cdacq_status status;
    uint64_t damaged = 0, methods = 0;
    while ((status = record_file_next(&v->file, &record, err)) == CDACQ_OK) {
        show_progress(v, &record, 0);
        damaged += record.problem != NULL;
        bound_epoch(v);
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

/*
 * The verdict on a record of code that the target no longer has, or does not have yet. It supposes that the file is one
 * of the target, and at least one match must show that.
 */
static bool is_of_other_time(enum cdacq_verdict verdict)
{
    return verdict == CDACQ_VERDICT_FREED || verdict == CDACQ_VERDICT_REPLACED || verdict == CDACQ_VERDICT_LATER;
}

/* ---- Second pass ------------------------------------------------------------------------------------------------- */

static enum cdacq_status report(struct verifier *v, const struct cdacq_comparison *comparison)
{
    v->sum->counts[comparison->verdict]++;
    v->sum->contradictions += cdacq_verdict_is_contradiction(comparison->verdict);
    return v->visit && v->visit(comparison, v->context) ? CDACQ_STOPPED : CDACQ_OK;
}

/*
 * Lines of a name whose method the target does not have may look like symbols, and then nothing shows it. No verdict
 * rests on such a line.
 */
static void weigh_open_name(struct verifier *v, const struct file_record *record, struct cdacq_comparison *comparison,
                            char detail[VERDICT_DETAIL_SIZE])
{
    if (v->open_line && cdacq_verdict_is_contradiction(comparison->verdict)) {
        comparison->verdict = CDACQ_VERDICT_NOT_COMPARED;
        snprintf(detail, VERDICT_DETAIL_SIZE, "it may be a part of the name in line %" PRIu64, v->open_line);
    } else if (!v->open_line && record->line && is_of_other_time(comparison->verdict)) {
        v->open_line = record->line;
    }
    if (comparison->verdict == CDACQ_VERDICT_MATCH || perf_name_is_whole(record->name, record->name_length))
        v->open_line = 0;
}

static enum cdacq_status compare_record(struct verifier *v, const struct file_record *record, struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
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
    char detail[VERDICT_DETAIL_SIZE] = "";
    if (take_rest(v, record) || take_open_rest(v, record))
        return CDACQ_OK;
    v->sum->records++;
    if (record->problem && record->unfinished) {
        comparison.verdict = verdict_on_half_line(detail);
    } else if (record->problem) {
        snprintf(detail, sizeof detail, "%s", record->problem);
        comparison.verdict = CDACQ_VERDICT_DAMAGED;
    } else if (perf_name_is_stub(record->name, record->name_length)) {
        comparison.verdict = CDACQ_VERDICT_STUB;
    } else {
        comparison.verdict = verdict_on(v->session, &v->history, record, &evidence, detail);
        v->has_match |= comparison.verdict == CDACQ_VERDICT_MATCH;
        if (!v->has_match && is_of_other_time(comparison.verdict)) {
            comparison.verdict = CDACQ_VERDICT_NOT_COMPARED;
            snprintf(detail, sizeof detail, "no record of the file matches the target");
            v->is_foreign = true;
        }
        weigh_open_name(v, record, &comparison, detail);
    }
    if (comparison.verdict == CDACQ_VERDICT_MATCH) {
        v->sum->names_not_compared += evidence.name == AGREE_UNKNOWN;
        status = note_rest(v, record, &evidence.method, err);
        v->sum->code_not_compared += evidence.code == AGREE_UNKNOWN && !v->sum->perf_map;
    }
    if (evidence.method.answer == CDACQ_ANSWER_MANAGED || evidence.method.answer == CDACQ_ANSWER_STUB)
        comparison.method = &evidence.method;
    comparison.detail = detail[0] ? detail : NULL;
    return status == CDACQ_OK ? report(v, &comparison) : status;
}

/* A record that came while the file was compared may be of a method that was listed. */
static enum cdacq_status index_late_record(struct verifier *v, const struct file_record *record,
                                           struct cdacq_error *err)
{
    const struct cdacq_method method = {.kind = CDACQ_CODE_JITTED, .code_start = record->address};
    const struct known_method *listed = verify_methods_find(&v->history.methods, &method);
    return listed && !listed->match && listed->size == record->size ? index_record(v, record, err) : CDACQ_OK;
}

static enum cdacq_status second_pass(struct verifier *v, struct cdacq_error *err)
{
    struct file_record record;
    uint64_t count = v->file.count;
    enum cdacq_status status = record_file_rewind(&v->file, err);
    v->rest.count = 0;
    while (status == CDACQ_OK &&
           v->file.count < count) { /* a file that grows is compared as it was in the first pass */
        status = record_file_next(&v->file, &record, err);
        if (status != CDACQ_OK)
            break;
        show_progress(v, &record, v->file.size);
        bound_epoch(v);
        status = compare_record(v, &record, err);
    }
    while (status == CDACQ_OK && resolver_is_running(&v->session->resolver) &&
           record_file_next(&v->file, &record, NULL) == CDACQ_OK)
        status = index_late_record(v, &record, err);
    return status == CDACQ_DONE ? CDACQ_OK : status;
}

/* ---- The methods that the file lacks ----------------------------------------------------------------------------- */

/* Whether a running process may have released a method since it was listed. */
static bool may_be_gone(const struct verifier *v, const struct known_method *listed, const struct cdacq_method *now)
{
    return resolver_is_running(&v->session->resolver) &&
           (now->answer != CDACQ_ANSWER_MANAGED || now->code_start != listed->start || now->code_size != listed->size ||
            evidence_code_lifetime(v->session, listed->start) != CODE_LIFETIME_PERMANENT);
}

static enum cdacq_status report_missing(struct verifier *v)
{
    const struct known_methods *methods = &v->history.methods.listed;
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < methods->count && status == CDACQ_OK; i++) {
        struct cdacq_method method;
        const struct known_method *listed = &methods->items[i];
        if (listed->match || listed->described)
            continue;
        bound_epoch(v);
        answer_find(&v->session->resolver, listed->start, &method);
        if (may_be_gone(v, listed, &method))
            continue;
        status = report(v, &(struct cdacq_comparison){.size = sizeof(struct cdacq_comparison),
                                                      .verdict = CDACQ_VERDICT_MISSING_FROM_FILE,
                                                      .method = &method});
    }
    return status;
}

/* ---- Both passes ------------------------------------------------------------------------------------------------- */

static enum cdacq_status run(struct verifier *v, struct cdacq_error *err)
{
    enum cdacq_status status = verify_methods_list(v->session, &v->history.methods, v->sum->methods_problem, err);
    if (status == CDACQ_OK)
        status = first_pass(v, err);
    if (status == CDACQ_OK)
        status = verify_methods_list_missing(&v->history.methods, err);
    if (status == CDACQ_OK)
        status = second_pass(v, err);
    if (status == CDACQ_OK && v->holds_methods && !v->has_match)
        v->sum->advice = "no record matches the target: it is of another process or another runtime, or of a time when "
                         "the target had other code";
    if (status == CDACQ_OK)
        status =
            epoch_check_process(&v->session->resolver.epoch, err); /* of one that ended meanwhile, no verdict is true */
    return status == CDACQ_OK && !v->is_foreign ? report_missing(v) : status;
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
        v.session->resolver.names = CDACQ_NAMES_IL;
        status = run(&v, err);
    }
    if (status >= 0)
        sized_copy(ret, &sum, sizeof sum);
    cdacq_session_destroy(v.session);
    record_file_close(&v.file);
    lines_deinit(&v.rest);
    verify_methods_deinit(&v.history.methods);
    record_starts_deinit(&v.history.starts);
    return status;
}
