/* source.c: the calls of cdacq/source.h. */
#include "cdacq/source.h"
#include "src/files/module_pdb.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/source_lines.h"
#include "src/lookup/il_offsets.h"
#include "target/mapped_file.h"
#include "util/error.h"
#include "util/sized.h"

enum cdacq_status cdacq_session_il_offset_at(struct cdacq_session *session, uint64_t address, int32_t *ret,
                                             struct cdacq_error *err)
{
    struct cdacq_method method = {.size = sizeof method};
    enum cdacq_status status = cdacq_session_method_at(session, address, &method, err);
    if (status == CDACQ_OK)
        *ret = method.il_offset;
    return status;
}

/* Why a managed address has no line. */
static const char *why_no_line(struct cdacq_session *session, const struct method_record *record,
                               const struct module_pdb *pdb, int32_t il_offset)
{
    if (il_offset == CDACQ_OFFSET_UNKNOWN)
        return record_why_no_il_offset(&session->resolver, record);
    if (!record->module)
        return record->method.token ? "the method's module is not known" : "the method is dynamic: no PDB describes it";
    if (!pdb)
        return record->module->status < 0
                   ? arena_string(&session->resolver.records.arena, record->module->error.message,
                                  strlen(record->module->error.message))
                   : "the module has no image that could name a PDB";
    if (!pdb->usable)
        return pdb->problem ? pdb->problem : "out of memory";
    if (record->il_unknown)
        return "whether its IL was replaced while the process ran cannot be read, so that the PDB may be of other IL";
    if (record->il_replaced)
        return "its IL was replaced while the process ran (hot reload or a profiler), and the PDB is of the old one";
    if (record->source_cut)
        return "the method, or the session, has more sequence points than are read";
    return record->source_point_count ? "the code belongs to no line" : "the PDB has no lines of the method";
}

enum cdacq_status cdacq_session_source_at(struct cdacq_session *session, uint64_t address, struct cdacq_source *ret,
                                          struct cdacq_error *err)
{
    struct cdacq_method method = {.size = sizeof method};
    enum cdacq_status status = sized_check(ret, "struct cdacq_source", err);
    if (status < 0)
        return status;
    resolver_begin(&session->resolver);
    const struct method_record *record = answer_find(&session->resolver, address, &method);
    if (!record) {
        if (method.answer == CDACQ_ANSWER_ERROR) {
            if (err)
                *err = session->resolver.error;
            return session->resolver.error.status;
        }
        return CDACQ_NOT_MANAGED;
    }
    const struct module_pdb *pdb = resolver_module_pdb(&session->resolver, record->module);
    const struct source_point *point = record_source_point(record, &method);
    struct cdacq_source source = {
        .size = sizeof source, .il_offset = method.il_offset, .verified = method.module_verified};
    if (pdb && pdb->usable) {
        source.pdb = pdb->path;
        source.pdb_embedded = pdb->embedded;
    }
    if (point) {
        source.file = point->document->file;
        source.url = point->document->url;
        source.line = point->line;
        source.column = point->column;
        source.end_line = point->end_line;
        source.end_column = point->end_column;
    } else {
        source.problem = why_no_line(session, record, pdb, method.il_offset);
    }
    sized_copy(ret, &source, sizeof source);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_visit_pdbs(struct cdacq_session *session,
                                           int (*visit)(const struct cdacq_pdb_info *pdb, void *context), void *context,
                                           struct cdacq_error *err)
{
    if (!session || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session, or no function to call");
    resolver_begin(&session->resolver);
    enum cdacq_status status = target_list_mappings(session->resolver.target->memory, err);
    if (status < 0)
        return status;
    for (const struct mapped_file *mapped = session->resolver.target->memory->files; mapped; mapped = mapped->next) {
        uint8_t magic[2] = {0};
        if (!mapped->mapping_count || mapped->mappings[0]->offset)
            continue;
        epoch_follow(&session->resolver.epoch); /* `visit` may have used another session of the target */
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        uint64_t base = mapped->mappings[0]->begin;
        if (!reader_try_copy(&session->resolver.reader, base, magic, sizeof magic) || memcmp(magic, "MZ", 2) != 0)
            continue;
        const struct module *module = module_cache_get_image(&session->resolver.modules, base);
        const struct module_pdb *pdb = resolver_module_pdb(&session->resolver, module);
        if (!pdb)
            continue;
        const struct cdacq_local_file file = {&pdb->content, pdb->path};
        struct cdacq_pdb_info info = {
            .size = sizeof info,
            .module = mapped->path,
            .base = base,
            .key = pdb->symbol_key,
            .path = pdb->path,
            .embedded = pdb->embedded,
            .refused = pdb->refused,
            .problem = pdb->problem,
            .local_file = pdb->path ? &file : NULL,
        };
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return epoch_check_process(&session->resolver.epoch, err); /* images that could not be read were not visited */
}
