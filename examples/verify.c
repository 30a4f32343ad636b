/*
 * verify CORE FILE: compares a process with the jitdump or perf map that its runtime wrote. Exit 1: they contradict
 * each other.
 */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>

static int print_contradiction(const struct cdacq_comparison *comparison, void *context)
{
    (void)context;
    if (cdacq_verdict_is_contradiction(comparison->verdict))
        printf("%s: %#" PRIx64 " %.*s: %s\n", cdacq_verdict_text(comparison->verdict), comparison->address,
               (int)comparison->name_length, comparison->name ? comparison->name : "",
               comparison->detail ? comparison->detail : "");
    return 0;
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_verification sum = {.size = sizeof sum};

    if (argc != 3) {
        fprintf(stderr, "usage: %s CORE FILE\n", argv[0]);
        return 64;
    }
    if (cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
        cdacq_target_verify(target, argv[2], print_contradiction, NULL, &sum, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        cdacq_target_close(target);
        return 2;
    }
    for (int i = 0; i < CDACQ_VERDICT_COUNT; i++)
        if (sum.counts[i])
            printf("%8" PRIu64 "  %s: %s\n", sum.counts[i], cdacq_verdict_text((enum cdacq_verdict)i),
                   cdacq_verdict_meaning((enum cdacq_verdict)i));
    cdacq_target_close(target);
    return sum.contradictions ? 1 : 0;
}
