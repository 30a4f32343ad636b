#include "src/perf/jitdump_follow.h"

/*
 * Whether the last record is no longer that which was read, as far as its first bytes show. If it is, a file that has
 * grown is taken for the same one: reading all of it again whenever it grows would take too long.
 */
static bool is_other_record(struct jitdump_stream *stream)
{
    struct cdacq_jitdump_record record;
    uint64_t hash = stream->content_before;
    return stream->last_record && (jitdump_stream_prefix(stream, stream->last_record, &record, NULL) != CDACQ_OK ||
                                   record.offset + record.total_size != stream->offset ||
                                   jitdump_stream_hash(stream, &record, &hash) != CDACQ_OK || hash != stream->content);
}

/* Whether the records before `offset` are no longer those that were read, as far as the first bytes of each show. */
static bool is_other_content(struct jitdump_stream *stream)
{
    struct cdacq_jitdump_record record;
    uint64_t hash = 0;
    for (uint64_t offset = stream->header.total_size; offset < stream->offset; offset += record.total_size)
        if (jitdump_stream_prefix(stream, offset, &record, NULL) != CDACQ_OK ||
            !range_fits(offset, record.total_size, stream->offset) ||
            jitdump_stream_hash(stream, &record, &hash) != CDACQ_OK)
            return true;
    jitdump_file_forget(&stream->file);
    return hash != stream->content;
}

static enum cdacq_status restart(struct jitdump_stream *stream, const char *why)
{
    jitdump_stream_restart(stream, why);
    return CDACQ_OK;
}

enum cdacq_status jitdump_follow(struct jitdump_stream *stream, struct cdacq_error *err)
{
    struct jitdump_file *file = &stream->file;
    uint64_t before = file->size;
    bool written;
    enum cdacq_status status = jitdump_file_look_again(file, &written, err);
    if (status < 0)
        return status;
    if (file->size == before && written && stream->has_header && is_other_content(stream))
        return restart(stream, "the file was rewritten");
    if (file->size < stream->offset)
        return restart(stream, "the file was truncated");
    if (jitdump_file_is_rewritten(file) || (file->size > before && is_other_record(stream)))
        return restart(stream, "the file was rewritten");
    if (file->size != before)
        return CDACQ_OK;
    return jitdump_file_open_successor(file) ? restart(stream, "another file took its place") : CDACQ_DONE;
}
