/*
 * source_lines.c: source lines in answers. The sequence points of a method are decoded when an address of it is first
 * asked about, and kept with its record.
 */
#include "src/api/source_lines.h"

#include "contracts/dynamic_il.h"
#include "contracts/type_system/code_versions.h"
#include "util/binary_search.h"
#include "util/escape.h"

enum {
    SOURCE_POINTS_MAX = 4 * 1024 * 1024,   /* points that a session remembers, of all methods */
    METHOD_BYTES_MAX = 4 * 1024 * 1024,    /* bytes of the sequence points of one method */
    SESSION_BYTES_MAX = 64 * 1024 * 1024,  /* the same of all methods; rows of a PDB can share a blob */
    DOCUMENT_BYTES_MAX = 64 * 1024 * 1024, /* bytes of the names and URLs that a session remembers */
    DOCUMENT_OVERHEAD = 256,               /* bytes that are charged for each document, to bound their number */
};

struct module_source {
    const struct module_pdb *pdb;
    struct source_link link;
    const struct source_document **documents; /* by rid; NULL until first needed */
};

static struct image_key module_source_key(struct module_source *const *source)
{
    return (*source)->pdb->image;
}

/* Stands for a document whose name makes no sense, or that is beyond the bound. */
static const struct source_document no_document;

DEFINE_HASH_TABLE_FUNCTIONS(module_sources, struct module_source *, struct image_key, module_source_key, hash_image_key,
                            equal_image_keys);

void session_sources_deinit(struct cdacq_session *session)
{
    for (struct module_source **source = NULL; (source = module_sources_next(&session->sources, source));) {
        source_link_deinit(&(*source)->link);
        free((*source)->documents);
        free(*source);
    }
    module_sources_deinit(&session->sources);
}

const struct module_pdb *session_module_pdb(struct cdacq_session *session, const struct module *module)
{
    struct cdacq_target *target = session->target;
    return module && module->base && module->status >= 0
               ? module_pdbs_get(&target->module_pdbs, target->target, &target->policy, module)
               : NULL;
}

/* The session's view of a PDB that is usable, or NULL. */
static struct module_source *source_of(struct cdacq_session *session, const struct module *module)
{
    struct module_source **known = module ? module_sources_find(&session->sources, image_key_of(module)) : NULL;
    if (known)
        return *known;
    const struct module_pdb *pdb = session_module_pdb(session, module);
    struct module_source *source = pdb && pdb->usable ? calloc(1, sizeof *source) : NULL;
    if (!source)
        return NULL;
    const uint8_t *json;
    size_t size, rows = metadata_row_count(&pdb->tables.metadata, METADATA_DOCUMENT);
    source->pdb = pdb;
    source->documents = calloc(rows + 1, sizeof(struct source_document *)); /* no more than the PDB's rows take */
    if (source->documents && module_sources_insert(&session->sources, source, NULL)) {
        if (portable_pdb_custom(&pdb->tables, metadata_token(METADATA_MODULE, 1), portable_pdb_source_link, &json,
                                &size) >= 0 &&
            json)
            source_link_init(&source->link, json, size);
        return source;
    }
    free(source->documents);
    free(source);
    return NULL;
}

/* A copy whose unprintable bytes are escaped; backslashes stay, because paths of Windows have them. */
static const char *printable(struct arena *arena, const char *text, size_t length)
{
    CLEANUP_FREE char *escaped = malloc(ESCAPED_SIZE(length) + 1);
    if (!escaped)
        return NULL;
    char *end = escape(escaped, text, length, ESCAPE_MESSAGE);
    return arena_string(arena, escaped, (size_t)(end - escaped));
}

static const struct source_document *make_document(struct cdacq_session *session, struct module_source *source,
                                                   uint32_t rid)
{
    struct text name = {0}, url = {0};
    struct source_document *document = NULL;
    struct work *work = &session->target->target->work;
    if (DOCUMENT_OVERHEAD <= DOCUMENT_BYTES_MAX - session->source_document_bytes && work_left(work) &&
        portable_pdb_document_name(&source->pdb->tables, rid, &name) >= 0 && name.length &&
        work_take_bytes(work, name.length * 8 + source_link_price(&source->link, name.length))) {
        source_link_url(&source->link, name.data, name.length, &url);
        size_t bytes = DOCUMENT_OVERHEAD + name.length + url.length;
        if (bytes <= DOCUMENT_BYTES_MAX - session->source_document_bytes) {
            session->source_document_bytes += bytes;
            document = arena_allocate(&session->arena, sizeof *document);
        }
    }
    if (document) {
        document->file = printable(&session->arena, name.data, name.length);
        document->url = url.length && !url.broken ? printable(&session->arena, url.data, url.length) : NULL;
    }
    text_deinit(&name);
    text_deinit(&url);
    return document && document->file ? document : &no_document;
}

/* NULL: the PDB has no such document, its name makes no sense, or the session remembers too many. */
static const struct source_document *document_of(struct cdacq_session *session, struct module_source *source,
                                                 uint32_t rid)
{
    if (rid > metadata_row_count(&source->pdb->tables.metadata, METADATA_DOCUMENT))
        return NULL;
    if (!source->documents[rid])
        source->documents[rid] = make_document(session, source, rid);
    return source->documents[rid] != &no_document ? source->documents[rid] : NULL;
}

/* Whether a method's points may be decoded. Charges them to the session. */
static bool charge_points(struct cdacq_session *session, const struct sequence_points *points)
{
    size_t bytes = (size_t)(points->at.end - points->at.at);
    if (bytes > METHOD_BYTES_MAX || bytes > SESSION_BYTES_MAX - session->source_point_bytes)
        return false;
    session->source_point_bytes += bytes;
    return true;
}

/* The number of points that are not hidden. 0: the method has none, or they are malformed. */
static size_t count_points(struct sequence_points points)
{
    struct sequence_point point;
    size_t count = 0;
    while (sequence_points_next(&points, &point))
        count += !sequence_point_is_hidden(&point);
    return points.malformed ? 0 : count;
}

/* Whether the method was compiled from other IL than that of the assembly: then the PDB does not describe it. */
static bool is_il_replaced(struct cdacq_session *session, const struct method_record *record)
{
    struct field_reader *reader = &session->reader;
    struct reader_task outer = reader_enter(&reader->raw, FUEL_LOOKUP);
    const struct cdacq_method *method = &record->method;
    bool replaced = dynamic_il_exists(reader, record->module->address, method->token) ||
                    (method->method_desc && code_versions_il_version(reader, method->method_desc, method->code_start));
    (void)reader_leave(&reader->raw, &outer);
    return replaced;
}

void record_read_source(struct cdacq_session *session, struct method_record *record)
{
    struct sequence_points points;
    struct sequence_point point;
    uint32_t rid = metadata_rid(record->method.token);
    struct module_source *source = rid && record->il_point_count ? source_of(session, record->module) : NULL;
    record->il_replaced = source && is_il_replaced(session, record);
    if (!source || record->il_replaced || portable_pdb_points(&source->pdb->tables, rid, &points) < 0)
        return;
    record->source_cut = !charge_points(session, &points);
    size_t count = record->source_cut ? 0 : count_points(points), total = session->source_point_total + count;
    record->source_cut |= total > SOURCE_POINTS_MAX;
    struct source_point *to =
        count && !record->source_cut ? arena_allocate(session_record_arena(session), count * sizeof *to) : NULL;
    if (!to)
        return;
    record->source_points = to;
    record->source_point_count = (uint32_t)count;
    record->source_unverified = source->pdb->unverified;
    session->source_point_total = total;
    while (sequence_points_next(&points, &point))
        if (!sequence_point_is_hidden(&point))
            *to++ = (struct source_point){
                .il_offset = point.il_offset,
                .line = point.start_line,
                .end_line = point.end_line,
                .column = point.start_column,
                .end_column = point.end_column,
                .document = document_of(session, source, point.document),
            };
}

const struct source_point *record_source_point(const struct method_record *record, int32_t il_offset)
{
    const struct source_point *points = record->source_points;
    if (il_offset < 0 || !record->source_point_count)
        return NULL;
    uint32_t after = lower_bound_in_memory(i, record->source_point_count, points[i].il_offset <= (uint32_t)il_offset);
    return after && points[after - 1].document ? &points[after - 1] : NULL;
}

void record_answer_source(const struct method_record *record, struct cdacq_method *ret)
{
    const struct source_point *point = record_source_point(record, ret->il_offset);
    if (!point)
        return;
    ret->file = point->document->file;
    ret->source_url = point->document->url;
    ret->line = point->line;
    ret->column = point->column;
    ret->module_verified &= !record->source_unverified;
}
