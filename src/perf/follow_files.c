/*
 * follow_files.c: writes a jitdump of a running process that grows with its code: each round appends the records of
 * what is new.
 */
#include "src/api/follower.h"
#include "src/perf/jitdump_debug.h"
#include "src/perf/jitdump_records.h"
#include "util/sized.h"

struct round {
    struct cdacq_follower *follower;
    struct code_writer writer;
};

static int write_new_code(const struct cdacq_method *method, void *context)
{
    struct round *round = context;
    const struct cdacq_written *written = &round->writer.written;
    uint64_t before = written->methods + written->left_out;
    int result = code_writer_visit(method, &round->writer);
    if (method->answer == CDACQ_ANSWER_MANAGED && before == written->methods + written->left_out)
        follower_retry(round->follower, method->code_start); /* it changed too often, or was freed */
    return result;
}

/* Continues the jitdump after what the rounds before have written. */
static enum cdacq_status begin_round(struct round *round, struct cdacq_follower *follower,
                                     const struct cdacq_sink *sink, const struct cdacq_written *ret,
                                     struct byte_writer *record, struct cdacq_error *err)
{
    struct code_writer *writer = &round->writer;
    enum cdacq_status status = follower_session(follower, err);
    *round = (struct round){.follower = follower,
                            .writer = {.session = follower->session,
                                       .put = jitdump_records_put_entry,
                                       .with_bytes = true,
                                       .time = MAX(follower->jitdump.time, follower->began),
                                       .record = record,
                                       .written = follower->jitdump.written}};
    if (status >= 0 && follower->jitdump.closed)
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "jitdump: its JIT_CODE_CLOSE is written");
    if (status >= 0)
        status = code_writer_take_arguments(writer, sink, ret, "jitdump", err);
    if (status >= 0 && !follower->jitdump.has_header) {
        jitdump_records_put_header(writer);
        code_writer_flush(writer);
        follower->jitdump.has_header = !writer->no_memory;
    }
    return status;
}

static enum cdacq_status end_round(struct round *round, enum cdacq_status status, struct cdacq_written *ret,
                                   struct cdacq_error *err)
{
    round->follower->jitdump.time = round->writer.time;
    round->follower->jitdump.written = round->writer.written;
    byte_writer_deinit(round->writer.record);
    if (status >= 0 && round->writer.no_memory)
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    if (status < 0)
        return status;
    sized_copy(ret, &round->writer.written, sizeof round->writer.written);
    return round->writer.stopped ? CDACQ_STOPPED : status;
}

enum cdacq_status cdacq_follower_write_jitdump(struct cdacq_follower *follower, const struct cdacq_sink *sink,
                                               struct cdacq_written *ret, struct cdacq_error *err)
{
    struct byte_writer record = {0};
    struct jitdump_debug debug;
    struct round round;
    enum cdacq_status status = begin_round(&round, follower, sink, ret, &record, err);
    if (status < 0 || round.writer.stopped)
        return end_round(&round, status, ret, err);
    jitdump_debug_init(&debug, follower->session);
    debug.with_samply = follower->flags & (unsigned)CDACQ_WRITE_SAMPLY;
    if (follower->flags & (unsigned)CDACQ_WRITE_DEBUG)
        round.writer.debug = &debug;
    status = cdacq_follower_visit_methods(follower, write_new_code, &round, err);
    jitdump_debug_deinit(&debug);
    return end_round(&round, status, ret, err);
}

enum cdacq_status cdacq_follower_close_jitdump(struct cdacq_follower *follower, const struct cdacq_sink *sink,
                                               struct cdacq_written *ret, struct cdacq_error *err)
{
    struct byte_writer record = {0};
    struct round round;
    enum cdacq_status status = begin_round(&round, follower, sink, ret, &record, err);
    if (status >= 0 && !round.writer.stopped) {
        jitdump_records_put(&round.writer, &(struct cdacq_jitdump_record){.kind = CDACQ_JITDUMP_CLOSE});
        code_writer_flush(&round.writer);
        follower->jitdump.closed = true;
    }
    return end_round(&round, status, ret, err);
}
