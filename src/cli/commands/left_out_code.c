#include "src/cli/commands/left_out_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/base/answers.h"
#include "src/cli/base/console.h"
#include "util/base.h"

int left_out_take(struct left_out *left_out, const struct cdacq_method *method)
{
    char bound[160], *text;
    uint64_t number = method->code_start ? MIN(left_out->count, (uint64_t)READ_FAILURES_MAX) : READ_FAILURES_MAX;
    left_out->count++;
    if ((number == READ_FAILURES_MAX && method->code_start) ||
        cdacq_target_bound_reached(left_out->target, bound, sizeof bound))
        return 0;
    int length = method->code_start ? asprintf(&text, "0x%" PRIx64 "%s%s: left out: %s", method->code_start,
                                               method->name ? " " : "", method->name ? method->name : "", method->error)
                                    : asprintf(&text, "%s", method->error);
    if (length < 0)
        return 0;
    left_out->complaint_count++;
    if (left_out->at_once)
        message("%s", text);
    if (left_out->at_once || left_out->complaints[number])
        free(text);
    else
        left_out->complaints[number] = text;
    return 0;
}

void left_out_tell(struct left_out *left_out, bool none, const char *problem)
{
    const char *first = left_out->complaints[0] ? left_out->complaints[0] : left_out->complaints[READ_FAILURES_MAX];
    if (none && !problem)
        message("nothing can be written: methods or stubs left out: %" PRIu64 "%s%s", left_out->count,
                first ? "; the first: " : "", first ? first : "");
    for (size_t i = 0; i < ARRAY_SIZE(left_out->complaints); i++) {
        if (left_out->complaints[i] && !none)
            message("%s", left_out->complaints[i]);
        free(left_out->complaints[i]);
        left_out->complaints[i] = NULL;
    }
    if (problem && !message_was_shown(problem))
        message("%s", problem);
}

void left_out_tell_counts(const struct left_out *left_out, const struct cdacq_written *written)
{
    uint64_t further = left_out->count - MIN(left_out->count, left_out->complaint_count);
    if (left_out->count > READ_FAILURES_MAX && further)
        message("%" PRIu64 " more %s left out", further, further == 1 ? "method or stub is" : "methods or stubs are");
    answers_tell_unconfirmed(written->unverified, "method");
    if (written->functions_left_out)
        message("functions without call-frame information, because their unwind data cannot be read: %" PRIu64,
                written->functions_left_out);
    if (written->without_epilogs)
        message(
            "functions without call-frame information in epilogs, because their code is missing or too long: %" PRIu64,
            written->without_epilogs);
}
