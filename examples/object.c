/*
 * object CORE ADDRESS [FIELD]...: prints what an object is, and fields of it.
 */
#include <cdacq.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A string of the target can hold anything; only what is printable is printed. */
static int print_text(const char *bytes, size_t length, void *context)
{
    (void)context;
    for (size_t i = 0; i < length; i++)
        putchar(isprint((unsigned char)bytes[i]) ? bytes[i] : '?');
    return 0;
}

static enum cdacq_status print_object(struct cdacq_session *session, uint64_t address, struct cdacq_error *error)
{
    struct cdacq_object object = {.size = sizeof object};
    enum cdacq_status status = cdacq_session_get_object(session, address, &object, error);
    if (status < 0)
        return status;
    printf("%#" PRIx64 " %s, %" PRIu64 " bytes", address, object.type ? object.type : "?", object.byte_size);
    if (object.is_array)
        printf(", %" PRIu32 " elements", object.length);
    if (object.is_string) {
        printf(": ");
        status = cdacq_session_write_string(session, address, 100, print_text, NULL, error);
    }
    printf("\n");
    return status;
}

static enum cdacq_status print_field(struct cdacq_session *session, uint64_t object, const char *name,
                                     struct cdacq_error *error)
{
    struct cdacq_value value = {.size = sizeof value};
    enum cdacq_status status = cdacq_session_get_field(session, object, name, &value, error);
    if (status < 0)
        return status;
    printf("%s: ", name);
    if (status == CDACQ_NOT_MANAGED)
        printf("no such field\n");
    else if (value.kind == CDACQ_VALUE_REFERENCE && value.bits)
        return print_object(session, value.bits, error);
    else if (value.kind == CDACQ_VALUE_STRUCT)
        printf("a struct at %#" PRIx64 "\n", value.address);
    else if (value.kind == CDACQ_VALUE_SIGNED)
        printf("%" PRId64 "\n", (int64_t)value.bits);
    else
        printf("%#" PRIx64 "\n", value.bits);
    return CDACQ_OK;
}

int main(int argc, char **argv)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_error error;
    if (argc < 3)
        return 64;
    enum cdacq_status status = cdacq_target_open_core(argv[1], NULL, &target, &error);
    if (status >= 0 && (status = cdacq_session_create(target, &session, &error)) >= 0) {
        uint64_t address = strtoull(argv[2], NULL, 16);
        status = print_object(session, address, &error);
        for (int i = 3; i < argc && status >= 0; i++)
            status = print_field(session, address, argv[i], &error);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
    if (status < 0)
        fprintf(stderr, "%s\n", error.message);
    return status < 0 ? 2 : 0;
}
