/*
 * perf_map CORE: writes a perf map of a process to standard output, as its runtime does with DOTNET_PerfMapEnabled.
 * cdacq_session_write_jitdump is called in the same way.
 */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>

static int write_bytes(const void *bytes, size_t size, void *context)
{
    return fwrite(bytes, 1, size, context) != size; /* 1 stops the writing */
}

static int report_left_out(const struct cdacq_method *method, void *context)
{
    (void)context;
    fprintf(stderr, "left out: %#" PRIx64 ": %s\n", method->code_start, method->error);
    return 0;
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    struct cdacq_options options = {.size = sizeof options,
                                    .names = CDACQ_NAMES_IL}; /* as in the runtime's own perf map */
    struct cdacq_sink sink = {
        .size = sizeof sink, .context = stdout, .write = write_bytes, .left_out = report_left_out};
    struct cdacq_written written = {.size = sizeof written};

    if (argc != 2) {
        fprintf(stderr, "usage: %s CORE\n", argv[0]);
        return 64;
    }
    int failed = cdacq_target_open_core(argv[1], &options, &target, &error) < 0 ||
                 cdacq_session_create(target, &session, &error) < 0 ||
                 cdacq_session_write_perf_map(session, 0, &sink, &written, &error) < 0;
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    else
        fprintf(stderr, "%" PRIu64 " methods, %" PRIu64 " bytes\n", written.methods, written.bytes);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return failed ? 2 : 0;
}
