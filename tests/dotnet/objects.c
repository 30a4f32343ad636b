/*
 * objects.c: reads the objects at given addresses, for exceptions.py. TARGET is a core or the number of a process.
 *
 *     objects TARGET EXCEPTION <lines    ADDRESS [FIELD;...], hex; EXCEPTION is the MethodTable of System.Exception
 *     objects TARGET values <lines       ADDRESS [FIELD;...], hex: with the calls of cdacq/object.h
 *     objects TARGET text <lines         ADDRESS of an exception
 *     objects TARGET threads             TID MANAGED_ID STATE of each thread of the runtime
 *     objects TARGET last                the exception that each thread threw last
 *     objects TARGET words               what the runtime wrote as it ended the process: KIND BYTES FLAWS, then that
 *
 * Prints a line for each: ADDRESS METHOD_TABLE SIZE, then what the object is; or ADDRESS BYTES FLAWS, then the text of
 * the exception and a newline.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cdacq.h"
#include "contracts/objects/exception.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/string.h"
#include "contracts/objects/sync_block.h"
#include "src/lookup/opened_session.h"

static uint64_t exception_table;

static bool put_hash(void *context, const char *utf8, size_t length)
{
    uint64_t *hash = context;
    *hash = hash_bytes(*hash, utf8, length);
    return true;
}

static void put_array(const struct object_array *array)
{
    printf(" array %u %u %u ", array->rank, array->count, array->element_size);
    for (uint32_t i = 0; i < array->rank; i++)
        printf("%s%u:%d", i ? "," : "", array->lengths[i], array->lower_bounds[i]);
    printf(" %" PRIx64, array->element_type);
}

/* Every field of the type and its base types. */
static void put_fields(struct module_cache *cache, char *names, uint64_t method_table)
{
    printf(" fields ");
    for (char *name = strtok(names, ";"); name; name = strtok(NULL, ";")) {
        struct object_field field;
        if (object_field_find(cache, method_table, name, &field))
            printf("%s=%u:%u:%x;", name, field.offset, field.element, field.token);
        else
            printf("%s=none;", name);
    }
}

static void put_exception(struct reader *reader, uint64_t object)
{
    struct exception exception;
    struct exception_frame frame;
    if (!exception_read(reader, object, &exception))
        return;
    printf(" exception %x %" PRIx64 " ", (unsigned)exception.hresult, exception.inner);
    for (uint32_t i = 0; i < exception.frame_count && exception_frame_at(reader, &exception, i, &frame); i++)
        printf("%s%" PRIx64 ":%" PRIx64, i ? "," : "", frame.ip, frame.method_desc);
}

static bool is_exception(struct reader *reader, uint64_t method_table)
{
    for (unsigned i = 0; method_table && i < HIERARCHY_MAX; i++) {
        if (method_table == exception_table)
            return true;
        method_table = method_table_parent(reader, method_table);
    }
    return false;
}

static void put_object(struct module_cache *cache, uint64_t object, char *names)
{
    struct reader *reader = cache->reader;
    struct object_array array;
    struct object_monitor monitor;
    reader_begin(reader, FUEL_INDEX);
    uint64_t method_table = object_method_table(reader, object), hash = UINT64_C(0xcbf29ce484222325);
    printf("%" PRIx64 " %" PRIx64 " %" PRIu64, object, method_table, object_size(reader, object));
    if (object_array_read(reader, object, &array)) {
        put_array(&array);
    } else if (read_pointer(reader, reader->layout->globals[G_StringMethodTable]) == method_table) {
        string_each(reader, object, UINT32_MAX, put_hash, &hash);
        printf(" string %u %" PRIx64, string_length(reader, object), hash);
    } else {
        put_fields(cache, names, method_table);
    }
    if (is_exception(reader, method_table))
        put_exception(reader, object);
    if (object_monitor_read(reader, object, &monitor) && monitor.held)
        printf(" held %s %u %u", monitor.thin ? "thin" : "block", monitor.recursion, monitor.waiters);
    struct cdacq_error error;
    if (reader_status(reader, &error) < 0)
        printf(" ERROR %s", error.message);
    puts("");
}

/* ---- The calls of cdacq/object.h ---- */

enum { STRING_UNITS = 1000, ELEMENTS = 8 };

static int put_hex(const char *bytes, size_t length, void *context)
{
    (void)context;
    for (size_t i = 0; i < length; i++)
        printf("%02x", (uint8_t)bytes[i]);
    return 0;
}

static void put_value(enum cdacq_status status, const struct cdacq_value *value)
{
    if (status == CDACQ_OK)
        printf("%d:%u:%" PRIx64 ":%" PRIx64 ";", value->kind, value->width, value->address, value->bits);
    else
        printf("%s;", status == CDACQ_NOT_MANAGED ? "none" : "error");
}

static void put_values(struct cdacq_session *session, uint64_t address, char *names)
{
    struct cdacq_object object = {.size = sizeof object};
    struct cdacq_value value = {.size = sizeof value};
    struct cdacq_error error;
    if (cdacq_session_get_object(session, address, &object, &error) < 0) {
        printf("%" PRIx64 " error %s\n", address, error.message);
        return;
    }
    printf("%" PRIx64 " %" PRIx64 " %" PRIu64 " ", address, object.method_table, object.byte_size);
    if (object.is_string) {
        printf("string %u ", object.length);
        if (cdacq_session_write_string(session, address, STRING_UNITS, put_hex, NULL, &error) < 0)
            printf("error");
    } else if (object.is_array) {
        printf("array %u:%u:%u ", object.rank, object.length, object.element_size);
        for (uint32_t i = 0; i < object.length && i < ELEMENTS; i++)
            put_value(cdacq_session_get_element(session, address, i, &value, &error), &value);
    } else {
        printf("fields ");
        for (char *name = strtok(names, ";"); name; name = strtok(NULL, ";"))
            put_value(cdacq_session_get_field(session, address, name, &value, &error), &value);
    }
    puts("");
}

/* ---- The texts of exceptions ---- */

struct buffer {
    char *data;
    size_t length;
};

static int put_text(const char *bytes, size_t length, void *context)
{
    struct buffer *text = context;
    text->data = realloc(text->data, text->length + length);
    if (!text->data)
        abort();
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    return 0;
}

static void put_exception_text(struct cdacq_session *session, uint64_t object)
{
    struct buffer text = {0};
    struct cdacq_error error;
    unsigned flaws = 0;
    if (cdacq_session_write_exception(session, object, put_text, &text, &flaws, &error) < 0)
        fprintf(stderr, "%s\n", error.message);
    flaws &= ~(unsigned)CDACQ_EXCEPTION_UNVERIFIED; /* names and lines are compared */
    printf("%" PRIx64 " %zu %u\n", object, text.length, flaws);
    fwrite(text.data, 1, text.length, stdout);
    puts("");
    free(text.data);
}

static int put_last(const struct cdacq_thread *thread, void *context)
{
    if (thread->last_thrown)
        put_exception_text(context, thread->last_thrown);
    return 0;
}

static int put_thread(const struct cdacq_thread *thread, void *context)
{
    (void)context;
    if (thread->thread)
        printf("%d %u %x\n", thread->tid, thread->managed_id, thread->state);
    return 0;
}

static void put_last_words(struct cdacq_session *session)
{
    struct cdacq_end end = {.size = sizeof end};
    struct buffer text = {0};
    struct cdacq_error error;
    unsigned flaws = 0;
    if (cdacq_session_get_end(session, &end, &error) < 0 ||
        cdacq_session_write_last_words(session, put_text, &text, &flaws, &error) < 0)
        fprintf(stderr, "%s\n", error.message);
    flaws &= ~(unsigned)CDACQ_EXCEPTION_UNVERIFIED;
    printf("%d %zu %u\n", end.kind, text.length, flaws);
    fwrite(text.data, 1, text.length, stdout);
    puts("");
    free(text.data);
}

static enum cdacq_status open_target(const char *name, struct cdacq_target **ret, struct cdacq_error *err)
{
    char *end;
    long pid = strtol(name, &end, 10);
    return pid > 0 && !*end ? cdacq_target_open_pid((int)pid, NULL, ret, err)
                            : cdacq_target_open_core(name, NULL, ret, err);
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_error error;
    if (argc != 3)
        return 64;
    exception_table = strtoull(argv[2], NULL, 16);
    if (open_target(argv[1], &target, &error) < 0 || cdacq_session_create(target, &session, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    if (strcmp(argv[2], "words") == 0)
        put_last_words(session);
    else if (strcmp(argv[2], "threads") == 0)
        cdacq_session_visit_threads(session, put_thread, session, &error);
    else if (strcmp(argv[2], "last") == 0)
        cdacq_session_visit_threads(session, put_last, session, &error);
    bool asks = strcmp(argv[2], "last") != 0 && strcmp(argv[2], "words") != 0 && strcmp(argv[2], "threads") != 0;
    while (asks && fgets(line, sizeof line, stdin)) {
        char *names;
        line[strcspn(line, "\n")] = '\0';
        uint64_t object = strtoull(line, &names, 16);
        if (strcmp(argv[2], "text") == 0)
            put_exception_text(session, object);
        else if (strcmp(argv[2], "values") == 0)
            put_values(session, object, names + (*names == ' '));
        else
            put_object(&session->resolver.modules, object, names + (*names == ' '));
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return 0;
}
