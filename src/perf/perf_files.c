/*
 * perf_files.c: writes whole perf maps and jitdumps of a target.
 */
#include "src/api/listing.h"
#include "src/lookup/opened_session.h"
#include "formats/perf_map.h"
#include "src/perf/jitdump_debug.h"
#include "src/perf/jitdump_records.h"
#include "src/lookup/index.h"
#include "util/sized.h"

static bool put_line(struct code_writer *writer, const struct code_entry *entry)
{
    char head[PERF_MAP_HEAD_MAX];
    code_writer_put(writer, head, perf_map_encode(entry->begin, entry->size, head));
    code_writer_put_name(writer, entry);
    code_writer_put(writer, "\n", 1);
    return true;
}

/* Checks the arguments of the caller, then writes a whole file. */
static enum cdacq_status write_file(struct code_writer *writer, unsigned flags, const struct cdacq_sink *sink,
                                    struct cdacq_written *ret, const char *what, struct cdacq_error *err)
{
    struct cdacq_session *session = writer->session;
    enum cdacq_status status = code_writer_take_arguments(writer, sink, ret, what, err);
    if (status < 0)
        return status;
    if (!resolver_begin_map(&session->resolver, &status, err))
        return status;
    if (writer->with_bytes)
        jitdump_records_put_header(writer);
    epoch_pin(&session->resolver.epoch); /* the listing is of the epoch that has begun */
    if (!writer->stopped)
        status = session_visit_methods(session, flags, NULL, code_writer_visit, writer, err);
    epoch_unpin(&session->resolver.epoch);
    bool any = writer->written.methods + writer->written.stubs > 0;
    bool is_part = any && listing_is_part(status);
    if (status < 0 && !is_part)
        return status;
    if (writer->with_bytes && !writer->stopped)
        jitdump_records_put(writer, &(struct cdacq_jitdump_record){.kind = CDACQ_JITDUMP_CLOSE});
    sized_copy(ret, &writer->written, sizeof writer->written);
    return writer->stopped ? CDACQ_STOPPED : is_part ? status : CDACQ_OK;
}

enum cdacq_status cdacq_session_write_perf_map(struct cdacq_session *session, unsigned flags,
                                               const struct cdacq_sink *sink, struct cdacq_written *ret,
                                               struct cdacq_error *err)
{
    struct code_writer writer = {.session = session, .put = put_line};
    enum cdacq_status status = error_check_flags(flags, VISIT_FLAGS, err);
    return status < 0 ? status : write_file(&writer, flags, sink, ret, "perf map", err);
}

enum cdacq_status cdacq_session_write_jitdump(struct cdacq_session *session, unsigned flags,
                                              const struct cdacq_sink *sink, struct cdacq_written *ret,
                                              struct cdacq_error *err)
{
    struct jitdump_debug debug;
    enum cdacq_status status = error_check_flags(flags, JITDUMP_WRITE_FLAGS, err);
    if (status < 0)
        return status;
    jitdump_debug_init(&debug, session);
    debug.with_samply = flags & (unsigned)CDACQ_WRITE_SAMPLY;
    struct code_writer writer = {.session = session,
                                 .put = jitdump_records_put_entry,
                                 .with_bytes = true,
                                 .debug = flags & (unsigned)CDACQ_WRITE_DEBUG ? &debug : NULL};
    status = write_file(&writer, flags, sink, ret, "jitdump", err);
    jitdump_debug_deinit(&debug);
    return status;
}
