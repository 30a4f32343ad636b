/* methods_at CORE IP...: names many addresses with one call, which is faster than a call for each. */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const struct cdacq_method *method)
{
    printf("%#" PRIx64 "  ", method->ip);
    switch (method->answer) {
    case CDACQ_ANSWER_MANAGED:
        printf("%s +%#" PRIx64 "\n", method->name ? method->name : "?", method->offset);
        break;
    case CDACQ_ANSWER_STUB:
        printf("[stub %s]\n", cdacq_code_kind_text(method->kind));
        break;
    case CDACQ_ANSWER_NONE:
        printf("[none]\n");
        break;
    case CDACQ_ANSWER_ERROR:
        printf("[error] %s\n", method->error);
        break;
    }
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    size_t count = argc > 2 ? (size_t)argc - 2 : 0;
    uint64_t *ips = calloc(count + 1, sizeof *ips);
    struct cdacq_method *methods = calloc(count + 1, sizeof *methods);
    if (!count || !ips || !methods) {
        fprintf(stderr, "usage: %s CORE IP...\n", argv[0]);
        return 64;
    }
    for (size_t i = 0; i < count; i++)
        ips[i] = strtoull(argv[2 + i], NULL, 16);
    methods[0].size = sizeof methods[0]; /* the library sets the others */
    int failed = cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
                 cdacq_session_create(target, &session, &error) < 0 ||
                 cdacq_session_methods_at(session, ips, count, methods, &error) < 0;
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    else
        for (size_t i = 0; i < count; i++)
            print(&methods[i]);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    free(methods);
    free(ips);
    return failed ? 2 : 0;
}
