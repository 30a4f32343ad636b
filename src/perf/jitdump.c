/* jitdump.c: reads a jitdump record by record, also while it is being written. */
#include "src/perf/jitdump_follow.h"
#include "src/perf/jitdump_handle.h"
#include "util/sized.h"

enum { CHECKS = 4 }; /* of a file that keeps changing */

enum cdacq_status cdacq_jitdump_open(const char *path, unsigned flags, struct cdacq_jitdump **ret,
                                     struct cdacq_error *err)
{
    enum cdacq_status status = error_check_path(path, err);
    if (status >= 0)
        status = error_check_flags(flags, CDACQ_JITDUMP_FOLLOW | CDACQ_JITDUMP_CODE, err);
    if (status < 0)
        return status;
    struct cdacq_jitdump *jitdump = calloc(1, sizeof *jitdump);
    if (!jitdump)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    status = jitdump_stream_open(path, flags, &jitdump->stream, err);
    if (status != CDACQ_OK) {
        free(jitdump);
        return status;
    }
    *ret = jitdump;
    return CDACQ_OK;
}

void cdacq_jitdump_close(struct cdacq_jitdump *jitdump)
{
    if (!jitdump)
        return;
    jitdump_stream_close(&jitdump->found);
    jitdump_stream_close(&jitdump->stream);
    free(jitdump);
}

static enum cdacq_status read_next(struct jitdump_stream *stream, struct cdacq_jitdump_record *ret,
                                   struct cdacq_error *err)
{
    enum cdacq_status status = jitdump_stream_next(stream, ret, err);
    if (status == CDACQ_DONE && !(stream->flags & CDACQ_JITDUMP_FOLLOW)) {
        status = jitdump_stream_check_end(stream, err);
        return status == CDACQ_OK ? CDACQ_DONE : status;
    }
    for (int i = 0; i < CHECKS && status == CDACQ_DONE; i++) {
        status = jitdump_follow(stream, err);
        if (status != CDACQ_OK)
            return status;
        status = jitdump_stream_next(stream, ret, err);
    }
    return status;
}

enum cdacq_status cdacq_jitdump_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                     struct cdacq_error *err)
{
    /* The smallest record that the functions for its lists can use. */
    size_t least = offsetof(struct cdacq_jitdump_record, as) + sizeof(struct cdacq_jitdump_samply_debug_info2);
    enum cdacq_status status = sized_check_least(ret, least, "struct cdacq_jitdump_record", err);
    if (status < 0)
        return status;
    if (ret->size == sizeof *ret)
        return read_next(&jitdump->stream, ret, err);
    struct cdacq_jitdump_record record; /* the caller has another version of the struct */
    status = read_next(&jitdump->stream, &record, err);
    if (status == CDACQ_OK)
        sized_copy(ret, &record, sizeof record);
    return status;
}

enum cdacq_status cdacq_jitdump_check_end(struct cdacq_jitdump *jitdump, struct cdacq_error *err)
{
    return jitdump_stream_check_end(&jitdump->stream, err);
}

enum cdacq_status cdacq_jitdump_visit_places(struct cdacq_jitdump *jitdump,
                                             int (*visit)(const struct cdacq_jitdump_place *place, void *context),
                                             void *context, struct cdacq_error *err)
{
    struct jitdump_stream *stream = &jitdump->stream;
    if (stream->has_header && !stream->has_places) {
        enum cdacq_status status = jitdump_stream_collect_places(stream, stream->offset, err);
        if (status == CDACQ_DONE)
            return error_set(err, CDACQ_ERR_IO, stream->offset, "the jitdump has changed while it was read");
        if (status != CDACQ_OK)
            return status;
    }
    for (const struct jitdump_place *place = NULL; (place = jitdump_places_next(&stream->places, place));) {
        const struct cdacq_jitdump_place info = {
            .size = sizeof info,
            .code_index = place->code_index,
            .load = place->load,
            .vma = place->vma,
            .code_addr = place->code_addr,
            .code_size = place->code_size,
            .timestamp = place->timestamp,
        };
        if (visit(&info, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}
