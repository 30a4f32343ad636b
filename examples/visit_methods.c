/*
 * visit_methods CORE [PREFIX]: lists the methods of a process by address; with PREFIX up to the first one whose name
 * begins with it.
 */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int print_method(const struct cdacq_method *method, void *context)
{
    const char *prefix = context;
    if (method->answer == CDACQ_ANSWER_ERROR) { /* a code range that cannot be read; the visit continues */
        fprintf(stderr, "%#" PRIx64 ": %s\n", method->code_start, method->error);
        return 0;
    }
    printf("%#" PRIx64 " %#" PRIx64 " %s %s\n", method->code_start, method->code_size,
           cdacq_code_kind_text(method->kind), method->name ? method->name : "?");
    return prefix && method->name && strncmp(method->name, prefix, strlen(prefix)) == 0; /* 1 ends the visit */
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    enum cdacq_status status = CDACQ_OK;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: %s CORE [PREFIX]\n", argv[0]);
        return 64;
    }
    int failed = cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
                 cdacq_session_create(target, &session, &error) < 0 ||
                 (status = cdacq_session_visit_methods(session, 0, print_method, argv[2], &error)) < 0;
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    else if (status == CDACQ_STOPPED)
        fprintf(stderr, "stopped at %s\n", argv[2]);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return failed ? 2 : 0;
}
