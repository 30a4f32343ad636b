/*
 * source_lines.c: source lines in answers. The sequence points of a method are decoded when an address of it is first
 * asked about, and kept with its record.
 */
#include "src/lookup/source_lines.h"

#include "contracts/dynamic_il.h"
#include "contracts/type_system/code_versions.h"
#include "formats/portable_pdb/sequence_points.h"
#include "src/files/module_pdbs.h"
#include "src/lookup/module_source.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/resolver.h"
#include "target/native/native_modules.h"
#include "util/binary_search.h"
#include "util/escape.h"

DEFINE_VECTOR(source_points, struct source_point);

enum {
    SOURCE_POINTS_MAX = 4 * 1024 * 1024,   /* points that a session remembers, of all methods */
    METHOD_BYTES_MAX = 4 * 1024 * 1024,    /* bytes of the sequence points of one method */
    SESSION_BYTES_MAX = 64 * 1024 * 1024,  /* the same of all methods; rows of a PDB can share a blob */
    DOCUMENT_BYTES_MAX = 64 * 1024 * 1024, /* bytes of the names and URLs that a session remembers */
    DOCUMENT_OVERHEAD = 256,               /* bytes that are charged for each document, to bound their number */
};

/* Stands for a document whose name makes no sense, or that is beyond the bound. */
static const struct source_document no_document;

const struct module_pdb *resolver_module_pdb(struct resolver *resolver, const struct module *module)
{
    struct cdacq_target *target = resolver->target;
    return module && module->base && module->status >= 0
               ? module_pdbs_get(&target->module_pdbs, target->memory, target->policy, module)
               : NULL;
}

/* The session's view of a PDB that is usable, or NULL. */
static struct module_source *source_of(struct resolver *resolver, const struct module *module)
{
    struct module_source **known = module ? module_sources_find(&resolver->lines.sources, image_key_of(module)) : NULL;
    if (known)
        return *known;
    const struct module_pdb *pdb = resolver_module_pdb(resolver, module);
    struct module_source *source = pdb && pdb->usable ? calloc(1, sizeof *source) : NULL;
    if (!source)
        return NULL;
    const uint8_t *json;
    size_t size, rows = metadata_row_count(&pdb->tables.metadata, METADATA_DOCUMENT);
    source->pdb = pdb;
    source->documents = calloc(rows + 1, sizeof(struct source_document *)); /* no more than the PDB's rows take */
    if (source->documents && module_sources_insert(&resolver->lines.sources, source, NULL)) {
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

static const struct source_document *make_document(struct resolver *resolver, struct module_source *source,
                                                   uint32_t rid)
{
    struct text name = {0}, url = {0};
    struct source_document *document = NULL;
    struct work *work = &resolver->target->memory->work;
    if (DOCUMENT_OVERHEAD <= DOCUMENT_BYTES_MAX - resolver->lines.document_bytes && work_left(work) &&
        portable_pdb_document_name(&source->pdb->tables, rid, &name) >= 0 && name.length &&
        work_take_bytes(work, name.length * 8 + source_link_price(&source->link, name.length))) {
        source_link_url(&source->link, name.data, name.length, &url);
        size_t bytes = DOCUMENT_OVERHEAD + name.length + url.length;
        if (bytes <= DOCUMENT_BYTES_MAX - resolver->lines.document_bytes) {
            resolver->lines.document_bytes += bytes;
            document = arena_allocate(&resolver->records.arena, sizeof *document);
        }
    }
    if (document) {
        document->file = printable(&resolver->records.arena, name.data, name.length);
        document->url = url.length && !url.broken ? printable(&resolver->records.arena, url.data, url.length) : NULL;
    }
    text_deinit(&name);
    text_deinit(&url);
    return document && document->file ? document : &no_document;
}

/* NULL: the PDB has no such document, its name makes no sense, or the session remembers too many. */
static const struct source_document *document_of(struct resolver *resolver, struct module_source *source, uint32_t rid)
{
    if (rid > metadata_row_count(&source->pdb->tables.metadata, METADATA_DOCUMENT))
        return NULL;
    if (!source->documents[rid])
        source->documents[rid] = make_document(resolver, source, rid);
    return source->documents[rid] != &no_document ? source->documents[rid] : NULL;
}

/* Whether a method's points may be decoded. Charges them to the session. */
static bool charge_points(struct resolver *resolver, const struct sequence_points *points)
{
    size_t bytes = (size_t)(points->at.end - points->at.at);
    if (bytes > METHOD_BYTES_MAX || bytes > SESSION_BYTES_MAX - resolver->lines.point_bytes)
        return false;
    resolver->lines.point_bytes += bytes;
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

/*
 * Whether the method was compiled from other IL than that of the assembly: then the PDB does not describe it. Nor does
 * it describe a method that was edited, though its old code still runs: the source is no longer that of the PDB.
 */
static void find_replaced_il(struct resolver *resolver, struct method_record *record)
{
    struct reader *reader = &resolver->reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    const struct cdacq_method *method = &record->method;
    uint64_t module = record->module->address;
    record->il_replaced =
        dynamic_il_exists(reader, module, method->token) || code_versions_is_edited(reader, module, method->token) ||
        (method->method_desc && code_versions_il_version(reader, method->method_desc, method->code_start));
    /* An old line would be worse than none. Snapshots of earlier versions lack what tells it up to .NET 10. */
    record->il_unknown = reader_failed(reader) && has_field(reader, F_ILCodeVersionNode_Source);
    (void)reader_leave(reader, &outer);
}

bool resolver_il_is_replaced(struct resolver *resolver, uint64_t module, uint32_t token, uint64_t method_desc,
                             uint64_t code_start)
{
    struct reader *reader = &resolver->reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_replaced = dynamic_il_exists(reader, module, token) || code_versions_is_edited(reader, module, token) ||
                       (method_desc && code_versions_il_version(reader, method_desc, code_start)) ||
                       (reader_failed(reader) && has_field(reader, F_ILCodeVersionNode_Source));
    (void)reader_leave(reader, &outer);
    return is_replaced;
}

/* Lines of a NativeAOT method that are being read. */
struct native_lines {
    struct resolver *resolver;
    const struct method_record *record;
    struct source_points points;
    const char *file; /* of the last one */
    const struct source_document *document;
    bool failed; /* there are too many, or memory ran out */
};

static const struct source_document *native_document(struct native_lines *lines, const char *file)
{
    if (!file || (lines->document && lines->file == file))
        return file ? lines->document : NULL;
    struct source_document *document = arena_allocate(resolver_record_arena(lines->resolver), sizeof *document);
    lines->file = file;
    if (document)
        *document = (struct source_document){.file = resolver_intern(lines->resolver, file, strlen(file))};
    lines->document = document && document->file ? document : NULL;
    return lines->document;
}

static bool take_native_line(const struct native_line *line, void *context)
{
    enum { HIDDEN = 0xfeefee }; /* as in PDBs */
    struct native_lines *lines = context;
    uint64_t start = lines->record->method.code_start;
    struct source_point point = {.il_offset = (uint32_t)(line->begin - start), .line = line->line};
    point.end_line = line->line;
    point.column = point.end_column = (uint16_t)MIN(line->column, (uint32_t)UINT16_MAX);
    if (line->begin < start) /* the last one before the method */
        return true;
    if (line->line && line->line != HIDDEN)
        point.document = native_document(lines, line->file);
    lines->failed = lines->resolver->lines.point_total + lines->points.count >= SOURCE_POINTS_MAX ||
                    !source_points_append(&lines->points, point);
    return !lines->failed;
}

/* The lines of a NativeAOT method, by the program's DWARF. */
static void read_native_lines(struct resolver *resolver, struct method_record *record)
{
    struct native_modules *native = resolver_native(resolver);
    struct native_lines lines = {.resolver = resolver, .record = record};
    uint64_t begin = record->method.code_start;
    record->source_by_code = true;
    if (!native)
        return;
    native_modules_lines(native, begin, begin + record->method.code_size, take_native_line, &lines,
                         &record->source_unverified);
    size_t bytes = lines.points.count * sizeof *lines.points.items;
    struct source_point *to =
        lines.points.count && !lines.failed ? arena_allocate(resolver_record_arena(resolver), bytes) : NULL;
    record->source_cut = lines.failed;
    if (to) {
        memcpy(to, lines.points.items, bytes);
        record->source_points = to;
        record->source_point_count = (uint32_t)lines.points.count;
        resolver->lines.point_total += lines.points.count;
    }
    source_points_deinit(&lines.points);
}

void record_read_source(struct resolver *resolver, struct method_record *record)
{
    if (record->method.kind == CDACQ_CODE_NATIVE_AOT) {
        read_native_lines(resolver, record);
        return;
    }
    struct sequence_points points;
    struct sequence_point point;
    uint32_t rid = metadata_rid(record->method.token);
    bool can_have_lines = rid && record->il_point_count && record->module;
    struct module_source *source = can_have_lines ? source_of(resolver, record->module) : NULL;
    /* A snapshot must hold what tells whether the lines count of a PDB that is found later. */
    if (source || (can_have_lines && resolver->target->memory->recording))
        find_replaced_il(resolver, record);
    if (!source || record->il_replaced || record->il_unknown ||
        portable_pdb_points(&source->pdb->tables, rid, &points) < 0)
        return;
    record->source_cut = !charge_points(resolver, &points);
    size_t count = record->source_cut ? 0 : count_points(points), total = resolver->lines.point_total + count;
    record->source_cut |= total > SOURCE_POINTS_MAX;
    struct source_point *to =
        count && !record->source_cut ? arena_allocate(resolver_record_arena(resolver), count * sizeof *to) : NULL;
    if (!to)
        return;
    record->source_points = to;
    record->source_point_count = (uint32_t)count;
    record->source_unverified = source->pdb->unverified;
    resolver->lines.point_total = total;
    while (sequence_points_next(&points, &point))
        if (!sequence_point_is_hidden(&point))
            *to++ = (struct source_point){
                .il_offset = point.il_offset,
                .line = point.start_line,
                .end_line = point.end_line,
                .column = point.start_column,
                .end_column = point.end_column,
                .document = document_of(resolver, source, point.document),
            };
}

const struct source_point *record_source_point(const struct method_record *record, const struct cdacq_method *answer)
{
    const struct source_point *points = record->source_points;
    int32_t il_offset = record->source_by_code ? (int32_t)MIN(answer->offset, (uint64_t)INT32_MAX) : answer->il_offset;
    if (il_offset < 0 || !record->source_point_count)
        return NULL;
    uint32_t after = lower_bound_in_memory(i, record->source_point_count, points[i].il_offset <= (uint32_t)il_offset);
    return after && points[after - 1].document ? &points[after - 1] : NULL;
}
