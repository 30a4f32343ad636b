/*
 * method_at CORE IP: the smallest program that uses the library. Build it against an installed copy with
 *     cc method_at.c $(pkg-config --cflags --libs libcdacq)
 */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    struct cdacq_method method = {.size = sizeof method};

    if (argc != 3) {
        printf("cdacq %s\nusage: %s CORE IP\n", cdacq_version(), argv[0]);
        return argc == 1 ? 0 : 64;
    }
    int exit_code = 2;
    uint64_t ip = strtoull(argv[2], NULL, 16);
    if (cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
        cdacq_session_create(target, &session, &error) < 0)
        goto failed;
    enum cdacq_status status = cdacq_session_method_at(session, ip, &method, &error);
    if (status < 0)
        goto failed;
    if (status == CDACQ_OK)
        printf("%s +%#" PRIx64 "\n", method.name ? method.name : "?", method.offset);
    else
        printf("%s\n", cdacq_status_text(status));
    exit_code = 0;
    goto done;
failed:
    fprintf(stderr, "%s\n", error.message);
done:
    if (session)
        cdacq_session_destroy(session);
    cdacq_target_close(target);
    return exit_code;
}
