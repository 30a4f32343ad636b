/*
 * entry_points.c: asks for the MethodDescs of entry points, for precodes.py.
 *
 *     entry_points TARGET <entry points    a line each, hex
 *
 * Prints a line for each: the MethodDesc, "none", or "error" and the message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cdacq.h"

static void answer(struct cdacq_session *session, uint64_t entry)
{
    struct cdacq_error error;
    uint64_t method_desc;
    enum cdacq_status status = cdacq_session_non_virtual_entry_to_method_desc(session, entry, &method_desc, &error);
    if (status == CDACQ_OK)
        printf("0x%" PRIx64 "\n", method_desc);
    else if (status == CDACQ_NOT_MANAGED)
        puts("none");
    else
        printf("error %s\n", error.message);
}

int main(int argc, char **argv)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_error error;
    char line[64];
    if (argc != 2)
        return 64;
    if (cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
        cdacq_session_create(target, &session, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    while (fgets(line, sizeof line, stdin))
        answer(session, strtoull(line, NULL, 16));
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return 0;
}
