/* references.c: the calls of cdacq/heap.h for the references of one object. */
#include <inttypes.h>

#include "contracts/gc/references.h"
#include "contracts/objects/object.h"
#include "contracts/objects/reference_name.h"
#include "src/lookup/opened_session.h"
#include "util/error.h"

struct visit {
    int (*visit)(uint64_t offset, uint64_t target, void *context);
    void *context;
};

static bool tell(void *context, uint64_t offset, uint64_t target)
{
    const struct visit *visit = context;
    return visit->visit(offset, target, visit->context) == 0;
}

static enum cdacq_status begin(struct cdacq_session *session, uint64_t object, bool is_asked, struct cdacq_error *err)
{
    if (!session || !object || !is_asked)
        return error_set(err, CDACQ_ERR_ARGUMENT, object,
                         !session   ? "no session"
                         : is_asked ? "no object"
                                    : "nowhere to put the answer");
    resolver_begin(&session->resolver);
    reader_begin(&session->resolver.reader, FUEL_HEAP);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_visit_references(struct cdacq_session *session, uint64_t object,
                                                 int (*visit_reference)(uint64_t offset, uint64_t target,
                                                                        void *context),
                                                 void *context, struct cdacq_error *err)
{
    enum cdacq_status status = begin(session, object, visit_reference, err);
    if (status < 0)
        return status;
    struct reader *reader = &session->resolver.reader;
    struct visit telling = {.visit = visit_reference, .context = context};
    struct gc_references references;
    const struct cdacq_heap_object described = {.address = object,
                                                .method_table = object_method_table(reader, object),
                                                .byte_size = object_size(reader, object)};
    if (reader_failed(reader) || !gc_references_init(&references, reader))
        return reader_status(reader, err);
    epoch_pin(&session->resolver.epoch);
    bool all = gc_references_visit(&references, &described, tell, &telling);
    bool is_damaged = references.damaged;
    epoch_unpin(&session->resolver.epoch);
    gc_references_deinit(&references);
    if (reader_failed(reader))
        return reader_status(reader, err);
    if (is_damaged)
        return error_set(err, CDACQ_ERR_CORRUPT, described.method_table,
                         "the references of the type at 0x%" PRIx64 " cannot be read", described.method_table);
    return all ? CDACQ_OK : CDACQ_STOPPED;
}

enum cdacq_status cdacq_session_get_reference_name(struct cdacq_session *session, uint64_t object, uint64_t offset,
                                                   const char **ret, struct cdacq_error *err)
{
    enum cdacq_status status = begin(session, object, ret, err);
    if (status < 0)
        return status;
    struct text text = {0};
    const char *name = NULL;
    if (offset == GC_REFERENCE_LOADER)
        name = "LoaderAllocator of the type";
    else if (reference_name_append(&session->resolver.modules, object, offset, &text) && text.length)
        name = resolver_intern(&session->resolver, text.data, text.length);
    text_deinit(&text);
    status = reader_status(&session->resolver.reader, err);
    if (status < 0)
        return status;
    if (!name)
        return CDACQ_NOT_MANAGED;
    *ret = name;
    return CDACQ_OK;
}
