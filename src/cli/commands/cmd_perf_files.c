/*
 * cmd_perf_files.c: `perfmap`, `jitdump` and `elf` write the code of the process in formats that perf, debuggers and
 * other tools read. The library forms the bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/commands/code_progress.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/follow.h"
#include "src/cli/commands/left_out_code.h"
#include "src/cli/base/memory.h"
#include "src/cli/commands/native_aot.h"
#include "src/cli/base/output.h"
#include "src/cli/base/runtimes.h"

struct jitdump_options {
    struct method_options which;
    bool samply;
};

struct elf_options {
    struct method_options which;
    bool code;
};

struct work {
    struct output out;
    struct code_progress progress; /* not if it follows */
    struct left_out left_out;
    struct cdacq_sink sink;
    struct cdacq_written written;
};

static int take_bytes(const void *bytes, size_t size, void *context)
{
    struct work *work = context;
    output_bytes(&work->out, bytes, size);
    return output_failed(&work->out); /* nothing more can be written */
}

static void count_method(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    code_progress_step(&work->progress, method);
}

/* The pieces of a file that is followed are whole records. */
static int take_records(const void *bytes, size_t size, void *context)
{
    struct work *work = context;
    int result = take_bytes(bytes, size, context);
    output_end_record(&work->out);
    return result || follow_interrupted();
}

static int report_left_out(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    return left_out_take(&work->left_out, method);
}

typedef enum cdacq_status writer(struct cdacq_session *session, unsigned flags, const struct cdacq_sink *sink,
                                 struct cdacq_written *ret, struct cdacq_error *err);

static int write_with(const struct common_options *options, const struct opened_target *opened, writer *write,
                      unsigned flags, bool has_memory)
{
    struct work work = {.left_out.target = opened->target};
    struct cdacq_written written = {.size = sizeof written};
    struct cdacq_error error;
    if (native_aot_refused(opened->target) ||
        !(has_memory ? output_open_private : output_open)(&work.out, options->output))
        return EXIT_FAILED;
    const struct cdacq_sink sink = {.size = sizeof sink,
                                    .context = &work,
                                    .write = take_bytes,
                                    .left_out = report_left_out,
                                    .visited = count_method};
    code_progress_begin(&work.progress, opened->session, flags, work.out.fd);
    work.out.is_held = stop_is_wanted(options, opened->name);
    enum cdacq_status status = write(opened->session, flags, &sink, &written, &error);
    target_let_go(opened->target);
    code_progress_end(&work.progress);
    bool any = written.methods || written.stubs;
    bool is_cut = status == CDACQ_ERR_FUEL || status == CDACQ_ERR_IO; /* a bound, or the end of the process */
    bool none = status < 0 ? !is_cut || !any : work.left_out.count && !any;
    left_out_tell(&work.left_out, none, status < 0 ? error.message : NULL);
    if (none)
        output_abandon(&work.out); /* an incomplete file must not be used as a complete one */
    if (!none && !output_close(&work.out))
        return EXIT_FAILED;
    if (!none)
        left_out_tell_counts(&work.left_out, &written);
    bool partly = status < 0 || work.left_out.count || written.functions_left_out;
    return none ? EXIT_FAILED : partly ? EXIT_PARTLY : EXIT_ANSWERED;
}

/* A perf map has no beginning and no end: those of several runtimes are one file. */
static enum cdacq_status write_perf_map_of_all(struct cdacq_session *session, unsigned flags,
                                               const struct cdacq_sink *sink, struct cdacq_written *ret,
                                               struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    struct cdacq_session *one;
    for (unsigned next = 0; status == CDACQ_OK && (one = runtimes_next(session, &next));) {
        struct cdacq_written written = {.size = sizeof written};
        status = cdacq_session_write_perf_map(one, flags, sink, &written, err);
        ret->bytes += written.bytes;
        ret->methods += written.methods;
        ret->stubs += written.stubs;
        ret->left_out += written.left_out;
        ret->unverified += written.unverified;
    }
    return status;
}

static int write_perf_map(const void *given, const struct opened_target *opened)
{
    const struct method_options *options = given;
    return write_with(&options->common, opened, write_perf_map_of_all, method_flags(options, R2R_NONE), false);
}

static enum cdacq_status write_new(struct cdacq_follower *follower, void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    enum cdacq_status status = cdacq_follower_write_jitdump(follower, &work->sink, &work->written, &error);
    if (status < 0)
        message("%s", error.message);
    return status;
}

static unsigned jitdump_flags(const struct jitdump_options *options)
{
    return method_flags(&options->which, R2R_NONE) | (unsigned)CDACQ_WRITE_DEBUG |
           (options->samply ? (unsigned)CDACQ_WRITE_SAMPLY : 0u);
}

/* --follow: a jitdump that grows until the process ends. Its readers see it from the start. */
static int follow_jitdump(const void *given, const struct opened_target *opened)
{
    const struct jitdump_options *options = given;
    struct work work = {.left_out = {.target = opened->target, .at_once = true},
                        .written = {.size = sizeof work.written}};
    struct cdacq_error error;
    if (native_aot_refused(opened->target))
        return EXIT_FAILED;
    struct cdacq_follower *follower = follow_open(opened->target, jitdump_flags(options));
    if (!follower || !output_open_private_stream(&work.out, options->which.common.output)) {
        cdacq_follower_destroy(follower);
        return EXIT_FAILED;
    }
    work.sink = (struct cdacq_sink){.size = sizeof work.sink,
                                    .context = &work,
                                    .write = take_records,
                                    .left_out = report_left_out,
                                    .visited = NULL};
    enum cdacq_status status = follow_process(follower, &work.out, write_new, &work);
    work.sink.write = take_bytes; /* an interrupt does not stop the end of the file */
    enum cdacq_status end =
        output_failed(&work.out) ? CDACQ_OK : cdacq_follower_close_jitdump(follower, &work.sink, &work.written, &error);
    if (end < 0 && status >= 0)
        message("%s", error.message);
    status = MIN(status, end);
    cdacq_follower_destroy(follower);
    if (!output_close(&work.out) || (status < 0 && !work.written.methods && !work.written.stubs))
        return EXIT_FAILED;
    left_out_tell_counts(&work.left_out, &work.written);
    return status < 0 || work.left_out.count ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int write_jitdump(const void *given, const struct opened_target *opened)
{
    const struct jitdump_options *options = given;
    return write_with(&options->which.common, opened, cdacq_session_write_jitdump, jitdump_flags(options), true);
}

static int write_elf(const void *given, const struct opened_target *opened)
{
    const struct elf_options *options = given;
    unsigned flags = method_flags(&options->which, R2R_PREPARED) | (options->code ? (unsigned)CDACQ_ELF_CODE : 0u);
    return write_with(&options->which.common, opened, cdacq_session_write_elf, flags, options->code);
}

/* Whether standard output takes binary data; a message says if it does not. */
static bool takes_binary(const struct common_options *options)
{
    if (options->output || !isatty(STDOUT_FILENO))
        return true;
    message("%s: binary data is not written to a terminal; give -o FILE", options->command);
    return false;
}

static int run_perfmap(const void *options)
{
    return target_run(options, &(const struct target_use){.run = write_perf_map, .flags = CDACQ_OPEN_ALL_RUNTIMES});
}

static int run_jitdump(const void *options)
{
    const struct common_options *common = options;
    if (!takes_binary(common) || !follow_is_possible(common))
        return EXIT_USAGE;
    return target_run(common, &(const struct target_use){.run = common->follow ? follow_jitdump : write_jitdump});
}

static int run_elf(const void *options)
{
    return takes_binary(options) ? target_run(options, &(const struct target_use){.run = write_elf}) : EXIT_USAGE;
}

const struct option_row jitdump_rows[] = {
    {"samply", NULL, "add the records in which samply finds lines and columns",
     TO_FLAG(struct jitdump_options, samply)},
    {0},
};

const struct option_row elf_rows[] = {
    {"code", NULL, "include the bytes of the code", TO_FLAG(struct elf_options, code)},
    {0},
};

const struct command command_perfmap = {
    .name = "perfmap",
    .section = SECTION_FILES,
    RUNS(run_perfmap, struct method_options),
    .operands = OPERANDS({TARGET_OPERAND}),
    .options = OPTIONS(output_rows, target_rows, names_rows, stubs_rows, r2r_rows),
    .summary = "write a perf map",
    .details = "The file has the form of the runtime's /tmp/perf-PID.map (DOTNET_PerfMapEnabled=1), which need not\n"
               "exist: one line for each method that was compiled at run time. --r2r adds ReadyToRun methods, which\n"
               "the runtime leaves out. Without --names, names have the runtime's own form, --names il.\n"
               "  0x7f.. 1a int32 [Demo] Demo.Program::Fib(int32)   start, size, name\n",
    .names = CDACQ_NAMES_IL,
};

const struct command command_jitdump = {
    .name = "jitdump",
    .section = SECTION_FILES,
    RUNS(run_jitdump, struct jitdump_options),
    .operands = OPERANDS({TARGET_OPERAND}),
    .options = OPTIONS(output_rows, target_rows, names_rows, stubs_rows, r2r_rows, jitdump_rows, follow_rows),
    .summary = "write a jitdump: code with its bytes",
    .details = "The file has the form of the runtime's /tmp/jit-PID.dump (DOTNET_PerfMapEnabled=1), which need not\n"
               "exist: one record for each method that was compiled at run time. --r2r adds ReadyToRun methods.\n"
               "Incomplete code is left out. Without --names, names have the runtime's own form, --names il.\n"
               "With --follow, records of code that a process compiles later follow, until it ends or SIGINT arrives.\n"
               "--samply adds samply's own records of lines and columns.\n",
    .names = CDACQ_NAMES_IL,
};

const struct command command_elf = {
    .name = "elf",
    .section = SECTION_FILES,
    RUNS(run_elf, struct elf_options),
    .operands = OPERANDS({TARGET_OPERAND}, {.name = "-o FILE", .kind = OPERAND_OPTION}),
    .options = OPTIONS(output_rows, target_rows, names_rows, stubs_rows, r2r_rows, elf_rows),
    .summary = "write an ELF file of the managed code, for gdb and other tools",
    .details =
        "The file has symbols and call-frame information of every method, at the addresses that the code has in\n"
        "the process: JIT-compiled and prepared ReadyToRun methods, unless --r2r is given. --code adds the bytes\n"
        "of the code. For example:\n"
        "  gdb -p PID -ex 'add-symbol-file FILE' -ex bt\n"
        "  cdacq elf PID --code -o FILE && objdump -d FILE\n",
};
