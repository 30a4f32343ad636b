/*
 * verify.c: a jitdump or perf map against the target. The first pass over the file learns what only its end tells:
 * which methods have a record that matches, the newest of these, and the last record of every start that a record does
 * not match. The second pass decides each record and tells it.
 *
 * A record is of the code that the target has only where name, range and code agree well enough; what is left may be
 * code of another time, and is a contradiction only where no such time is possible.
 */
#include <inttypes.h>
#include <stdio.h>

#include "util/binary_search.h"
#include "util/hash_table.h"
#include "util/vector.h"
#include "src/api/handles.h"
#include "formats/perf_name.h"
#include "src/perf/record_file.h"
#include "util/sized.h"

enum {
    PLACES_MAX = 16 * 1024 * 1024,
    CODE_CHUNK = 4096,
    CANDIDATES_MAX = 64, /* missing methods of one size that are tried for a record */
    DETAIL = 320,
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

/* ---- What is kept ------------------------------------------------------------------------------------------------ */

/* A JIT-compiled method of the target. */
struct known_method {
    uint64_t start, size;
    uint64_t match; /* number of the last record that matches; 0: none does */
    bool mentioned; /* by a record that differs */
};

/* A start that some record does not match. */
struct place {
    uint64_t start;
    uint64_t last; /* number of the last record there */
};

static uint64_t place_start(const struct place *place)
{
    return place->start;
}

DEFINE_VECTOR(known_methods, struct known_method);
DEFINE_HASH_TABLE(places, struct place, uint64_t, place_start, hash_u64, equal_u64);

struct verifier {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct record_file file;
    struct known_methods methods; /* by start */
    bool methods_broken;          /* out of memory */
    uint32_t *missing;            /* indexes of methods without a match, by size */
    size_t missing_count;
    struct places places;
    struct {
        uint64_t timestamp, number;
    } newest;                  /* record of a JIT-compiled method that matches; 0, 0: none */
    uint64_t methods_recorded; /* records that are no stub's */
    bool stub_block;           /* there is a stub record of the kind that .NET 10 fails on */
    int (*visit)(const struct cdacq_comparison *, void *);
    void *context;
    struct cdacq_verification *sum;
    char detail[DETAIL];
};

static struct known_method *find_method(const struct verifier *v, uint64_t start)
{
    struct known_method *items = v->methods.items;
    size_t count = v->methods.count, first = lower_bound(i, count, items[i].start < start);
    return first < count && items[first].start == start ? &items[first] : NULL;
}

static struct known_method *known(const struct verifier *v, const struct cdacq_method *method)
{
    return method->kind == CDACQ_CODE_JITTED ? find_method(v, method->code_start) : NULL;
}

/* Whether JIT-compiled methods may be missing from the list where it has a failure. */
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
    v->methods_broken = !known_methods_append(
        &v->methods, (struct known_method){.start = method->code_start, .size = method->code_size});
    return v->methods_broken;
}

static enum cdacq_status list_methods(struct verifier *v, struct cdacq_error *err)
{
    struct cdacq_error problem;
    enum cdacq_status status = cdacq_session_visit_methods(v->session, 0, add_method, v, &problem);
    if (v->methods_broken)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
    if (status < 0) /* single look-ups may go on without the map */
        memcpy(v->sum->methods_problem, problem.message, sizeof v->sum->methods_problem);
    return CDACQ_OK;
}

/* Notes the last record of a start: of one that is noted already, or where `insert` says so. */
static enum cdacq_status note_place(struct verifier *v, const struct file_record *record, bool insert,
                                    struct cdacq_error *err)
{
    struct place *known = places_find(&v->places, record->address);
    if (known)
        known->last = record->number;
    if (known || !insert)
        return CDACQ_OK;
    if (v->places.count >= PLACES_MAX)
        return error_set(err, CDACQ_ERR_FUEL, 0, "more than %d places have records that do not match", PLACES_MAX);
    return places_insert(&v->places, (struct place){record->address, record->number}, NULL)
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
}

static bool has_later_record(const struct verifier *v, const struct file_record *record)
{
    const struct place *place = places_find(&v->places, record->address);
    return place && place->last > record->number;
}

/* ---- A record and what the target has ---------------------------------------------------------------------------- */

enum agreement { UNKNOWN, DIFFERS, AGREES };

/* The target's side of a record. */
struct evidence {
    struct cdacq_method method; /* at the record's start, or what it is of elsewhere */
    bool at_start;              /* the method, or its cold part, starts where the record does */
    bool same_range;
    enum agreement name, code;
    uint64_t code_differs; /* first byte */
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

/* The record's code with the target's memory at `address`. */
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

static void look(struct verifier *v, const struct file_record *record, struct evidence *ret)
{
    *ret = (struct evidence){.name = UNKNOWN, .code = UNKNOWN};
    session_answer(v->session, record->address, &ret->method);
    if (ret->method.answer != CDACQ_ANSWER_MANAGED)
        return;
    ret->at_start = part_start(&ret->method) == record->address;
    ret->same_range = ret->at_start && part_size(&ret->method) == record->size && !record->two_places;
    ret->name = compare_names(record, &ret->method);
    if (ret->at_start)
        ret->code = compare_code(v, record, record->address, &ret->code_differs);
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

static enum cdacq_status learn(struct verifier *v, const struct file_record *record, struct cdacq_error *err)
{
    struct evidence evidence;
    if (record->problem)
        return CDACQ_OK;
    if (perf_name_is_stub(record->name, record->name_length)) {
        static const char block[] = "ReportStubBlock";
        v->stub_block |= memmem(record->name, record->name_length, block, sizeof block - 1) != NULL;
        return CDACQ_OK;
    }
    v->methods_recorded++;
    look(v, record, &evidence);
    if (!matches(&evidence))
        return note_place(v, record, true, err);
    struct known_method *method = known(v, &evidence.method);
    /* A second one may be of code that came later and looks the same. */
    bool first = evidence.method.kind == CDACQ_CODE_JITTED && (!method || !method->match);
    if (method)
        method->match = record->number;
    if (first && is_newer(v, record)) {
        v->newest.timestamp = record->timestamp;
        v->newest.number = record->number;
    }
    return note_place(v, record, false, err);
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

/* Whether code at `address` can have been released. UNKNOWN: the target lacks what tells. */
static enum agreement can_be_freed(struct verifier *v, uint64_t address)
{
    struct field_reader *reader = &v->session->reader;
    uint64_t map = v->target->manager.map;
    struct range_section section;
    reader_begin(&reader->raw, FUEL_LOOKUP);
    bool freed;
    if (range_section_map_find(reader, map, address, &section))
        freed = section.flags & RANGE_SECTION_COLLECTIBLE ||
                jit_manager_of(&section)->method_kind == CDACQ_CODE_UNKNOWN; /* it holds no methods: it is newer */
    else
        freed = range_section_map_reaches(reader, map, address);
    return reader_failed(&reader->raw) ? UNKNOWN : freed ? AGREES : DIFFERS;
}

/* Whether another record is of the method that the target has there. */
static bool is_taken(const struct verifier *v, const struct cdacq_method *method)
{
    const struct known_method *other = known(v, method);
    return other && other->match;
}

/*
 * Whether a method that is called what the record says, and that no other record is of, is the record's method. Where
 * code is released another one of that name may have come: it has to have the same code, at least as far as can be
 * told.
 */
static bool is_itself(struct verifier *v, const struct file_record *record, const struct cdacq_method *method,
                      bool is_freed)
{
    uint64_t differs;
    if (is_taken(v, method))
        return false;
    if (!is_freed || (part_start(method) == record->address && part_size(method) == record->size))
        return true;
    if (part_size(method) != record->size && part_start(method) != record->address)
        return false;
    return compare_code(v, record, part_start(method), &differs) != DIFFERS;
}

/*
 * Whether the record is of a method that the target has at its start, in its middle or at its end, and just differs.
 * Sets *evidence to that one.
 */
static bool finds_itself(struct verifier *v, const struct file_record *record, bool is_freed, struct evidence *evidence)
{
    bool managed = evidence->method.answer == CDACQ_ANSWER_MANAGED;
    if (managed && evidence->name == AGREES && is_itself(v, record, &evidence->method, is_freed))
        return true;
    /* Another name or none: its start or its code has to tell. */
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
        if (other.name != AGREES || !is_itself(v, record, &other.method, is_freed))
            continue;
        *evidence = other;
        return true;
    }
    return false;
}

/*
 * A method without a record that is called what the record says, is as long and, where that can be told, has the same
 * code: the record tells a wrong place. But code that can be released may just have been loaded again.
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
        if (method->mentioned)
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

/* Whether a method of the target that has a later record now lies where the record's code was. */
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

/* How a record that is of evidence->method differs from it. */
static enum cdacq_verdict difference(struct verifier *v, const struct file_record *record,
                                     const struct evidence *evidence)
{
    const struct cdacq_method *method = &evidence->method;
    struct known_method *mentioned = known(v, method);
    if (mentioned)
        mentioned->mentioned = true;
    if (!evidence->same_range) {
        if (record->two_places && part_start(method) == record->address && part_size(method) == record->size)
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

/* A record whose code is not in the target. */
static enum cdacq_verdict absence(struct verifier *v, const struct file_record *record, const struct evidence *evidence,
                                  enum agreement freed)
{
    bool any_match = v->newest.number != 0, managed = evidence->method.answer == CDACQ_ANSWER_MANAGED;
    if (evidence->at_start && is_taken(v, &evidence->method) && has_later_record(v, record))
        return CDACQ_VERDICT_REPLACED; /* by a section that took another one's place */
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
    bool named = evidence->name == AGREES; /* of a method that another record is of */
    snprintf(v->detail, sizeof v->detail, "the target has %s at 0x%" PRIx64 " +0x%" PRIx64,
             named ? "it, and matches another record," : "another method", part_start(&evidence->method),
             part_size(&evidence->method));
    if (evidence->at_start && !named)
        return CDACQ_VERDICT_NAME_DIFFERS;
    return evidence->same_range ? CDACQ_VERDICT_BYTES_DIFFER : CDACQ_VERDICT_RANGE_DIFFERS;
}

static enum cdacq_verdict judge(struct verifier *v, const struct file_record *record, struct evidence *evidence)
{
    look(v, record, evidence);
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
    if ((!replaced && finds_itself(v, record, is_freed, evidence)) || find_moved(v, record, is_freed, evidence))
        return difference(v, record, evidence);
    if (replaced)
        return CDACQ_VERDICT_REPLACED;
    return absence(v, record, evidence, freed);
}

static enum cdacq_status tell(struct verifier *v, const struct cdacq_comparison *comparison)
{
    v->sum->counts[comparison->verdict]++;
    v->sum->contradictions += cdacq_verdict_is_contradiction(comparison->verdict);
    return v->visit && v->visit(comparison, v->context) ? CDACQ_STOPPED : CDACQ_OK;
}

static enum cdacq_status decide(struct verifier *v, const struct file_record *record)
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
        comparison.verdict = judge(v, record, &evidence);
    }
    if (evidence.method.answer == CDACQ_ANSWER_MANAGED || evidence.method.answer == CDACQ_ANSWER_STUB)
        comparison.method = &evidence.method;
    comparison.detail = v->detail[0] ? v->detail : NULL;
    return tell(v, &comparison);
}

static enum cdacq_status tell_missing(struct verifier *v)
{
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < v->methods.count && status == CDACQ_OK; i++) {
        struct cdacq_method method;
        if (v->methods.items[i].match || v->methods.items[i].mentioned)
            continue;
        session_answer(v->session, v->methods.items[i].start, &method);
        status = tell(v, &(struct cdacq_comparison){.size = sizeof(struct cdacq_comparison),
                                                    .verdict = CDACQ_VERDICT_MISSING_FROM_FILE,
                                                    .method = &method});
    }
    return status;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static enum cdacq_status first_pass(struct verifier *v, struct cdacq_error *err)
{
    struct file_record record;
    enum cdacq_status status;
    uint64_t damaged = 0;
    while ((status = record_file_next(&v->file, &record, err)) == CDACQ_OK) {
        damaged += record.problem != NULL;
        status = learn(v, &record, err);
        if (status < 0)
            return status;
    }
    if (status < 0)
        return status;
    if (v->sum->perf_map && damaged && damaged == v->file.count)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "neither a jitdump nor a perf map: no line of it is a symbol");
    if (v->file.cut && v->sum->perf_map)
        snprintf(v->sum->cut, sizeof v->sum->cut, "the last line has no end: the file is being written, or cut");
    else if (v->file.cut)
        memcpy(v->sum->cut, v->file.problem.message, sizeof v->sum->cut);
    /* dotnet/runtime#120419: a block of stubs is written before its pages are there, and the file is given up. */
    if (!v->sum->perf_map && !v->methods_recorded && (v->stub_block || v->file.cut))
        v->sum->advice = "this jitdump holds no methods: .NET 10 stops writing it at the first block of stubs "
                         "(dotnet/runtime#120419); run the process with DOTNET_PerfMapStubGranularity=2";
    return CDACQ_OK;
}

static enum cdacq_status second_pass(struct verifier *v, struct cdacq_error *err)
{
    struct file_record record;
    uint64_t count = v->file.count;
    enum cdacq_status status = record_file_rewind(&v->file, err);
    while (status == CDACQ_OK && v->file.count < count) { /* a file that grows is compared as it was at first */
        status = record_file_next(&v->file, &record, err);
        if (status == CDACQ_OK)
            status = decide(v, &record);
    }
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
    return status == CDACQ_OK ? tell_missing(v) : status;
}

enum cdacq_status cdacq_target_verify(struct cdacq_target *target, const char *path,
                                      int (*visit)(const struct cdacq_comparison *comparison, void *context),
                                      void *context, struct cdacq_verification *ret, struct cdacq_error *err)
{
    struct cdacq_verification sum = {0};
    struct verifier v = {.target = target, .visit = visit, .context = context, .sum = &sum};
    enum cdacq_status status = sized_check(ret, "struct cdacq_verification", err);
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
    places_deinit(&v.places);
    return status;
}
