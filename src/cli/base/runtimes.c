#include "src/cli/base/runtimes.h"

#include "src/cli/base/console.h"
#include "src/cli/base/output.h"

bool runtimes_are_asked(const struct common_options *options, unsigned flags)
{
    return flags & CDACQ_OPEN_ALL_RUNTIMES && !options->has_runtime && !options->open.descriptor_count &&
           !options->open.descriptor_address;
}

struct cdacq_session *runtimes_next(struct cdacq_session *session, unsigned *next)
{
    struct cdacq_session *found = NULL;
    unsigned count = cdacq_target_runtime_count(cdacq_session_target(session));
    while (!found && *next < count)
        found = cdacq_session_of_runtime(session, (*next)++);
    return found;
}

struct left_out {
    const char *command;
    unsigned number, count; /* of the runtime that is visited, and of those that are left out */
};

static int tell_problem(const struct cdacq_runtime_info *runtime, void *context)
{
    struct left_out *left_out = context;
    if (runtime->problem) {
        message("runtime %u (%s): %s", left_out->number, runtime->path ? runtime->path : "no file", runtime->problem);
        left_out->count++;
    }
    left_out->number++;
    return 0;
}

static int tell_used(const struct cdacq_runtime_info *runtime, void *context)
{
    struct left_out *left_out = context;
    if (runtime->in_use)
        message("%s answers for runtime %u (%s) of 0 to %u; --runtime N takes another", left_out->command,
                left_out->number, runtime->path ? runtime->path : "no file", left_out->count - 1);
    left_out->number++;
    return 0;
}

bool runtimes_tell_left_out(const struct common_options *options, bool all_are_asked, struct cdacq_target *target)
{
    struct left_out left_out = {.command = options->command};
    if (cdacq_target_runtime_count(target) < 2 || options->has_runtime)
        return true;
    if (all_are_asked) {
        cdacq_target_visit_runtimes(target, tell_problem, &left_out, NULL);
        return !left_out.count;
    }
    left_out.count = cdacq_target_runtime_count(target);
    cdacq_target_visit_runtimes(target, tell_used, &left_out, NULL);
    return false;
}

void runtimes_put_version(struct output *out, const struct cdacq_target_info *facts)
{
    const char *version = runtime_version_of(facts);
    if (version)
        output_text_between(out, facts->native_aot ? ".NET NativeAOT " : ".NET ", version, "");
    else
        output_literal(out, "unknown");
}
