#include "src/ending/foreign_lines.h"

#include "formats/portable_pdb/portable_pdb.h"
#include "src/files/module_pdb.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/source_lines.h"
#include "util/escape.h"

/* The last point at or before an IL offset that is not hidden. False: there is none. */
static bool find_point(struct sequence_points points, uint32_t il_offset, struct sequence_point *ret)
{
    struct sequence_point point;
    bool found = false;
    while (sequence_points_next(&points, &point) && point.il_offset <= il_offset) {
        if (sequence_point_is_hidden(&point))
            continue;
        *ret = point;
        found = true;
    }
    return found && !points.malformed;
}

static const char *foreign_document(struct cdacq_session *session, const struct portable_pdb *pdb, uint32_t rid)
{
    CLEANUP_FREE char *escaped = NULL;
    const char *file = NULL;
    struct text name = {0};
    if (portable_pdb_document_name(pdb, rid, &name) >= 0 && name.length && !name.broken &&
        work_take_memory(&session->resolver.target->memory->work, name.length))
        escaped = malloc(ESCAPED_SIZE(name.length) + 1);
    if (escaped) {
        char *end = escape(escaped, name.data, name.length, ESCAPE_MESSAGE);
        file = resolver_intern(&session->resolver, escaped, (size_t)(end - escaped));
    }
    text_deinit(&name);
    return file;
}

bool session_foreign_line(struct cdacq_session *session, uint64_t address, enum exception_line *ret_known,
                          const char **ret_file, uint32_t *ret_line)
{
    struct cdacq_method method = {.size = sizeof method};
    struct sequence_points points;
    struct sequence_point point;
    resolver_begin(&session->resolver);
    const struct method_record *record = answer_find(&session->resolver, address, &method);
    const struct module_pdb *pdb = record ? resolver_module_pdb(&session->resolver, record->module) : NULL;
    *ret_known = EXCEPTION_LINE_NONE;
    if (!pdb || !pdb->has_foreign)
        return false;
    const struct portable_pdb *foreign = &pdb->foreign;
    uint32_t rid = metadata_rid(method.token);
    if (rid > metadata_row_count(&foreign->metadata, METADATA_METHOD_DEBUG_INFORMATION)) {
        *ret_known = EXCEPTION_LINE_FAILED;
    } else if (method.il_offset >= 0 && portable_pdb_points(foreign, rid, &points) >= 0 &&
               work_take_bytes(&session->resolver.target->memory->work, (size_t)(points.at.end - points.at.at)) &&
               find_point(points, (uint32_t)method.il_offset, &point)) {
        *ret_line = point.start_line;
        *ret_file = foreign_document(session, foreign, point.document);
        *ret_known = *ret_file ? EXCEPTION_LINE_KNOWN : EXCEPTION_LINE_NONE;
    }
    return true;
}
