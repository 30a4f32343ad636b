/*
 * fuzz_added_code.c: the metadata of a module to which its process has added, and the versions of its IL, with words
 * overwritten. The first byte selects the process; then, words of five bytes each: a place (2), and a value (3), which
 * is a number or the address of a place. The method that the image has keeps its name; the other one has a name, or a
 * reason why it has none.
 */
#include "contracts/dynamic_il.h"
#include "contracts/type_system/code_versions.h"
#include "src/lookup/opened_session.h"
#include "tests/support/added_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 32, PROCESSES = 8 };

static struct added_code processes[PROCESSES];

static struct added_code build(unsigned choice)
{
    struct mock *mock = mock_create(
        &(struct mock_options){.pointer_size = choice & 1 ? 8 : 4, .version = choice & 4 ? MOCK_NET_11 : 2});
    if (!mock)
        abort();
    struct added_code added = added_code_make(mock, choice & 2);
    mock_publish(mock, NULL);
    if (mock_error(mock))
        abort();
    return added;
}

struct saved_word {
    uint64_t address, value;
    unsigned width;
};

/* Returns what to put back. */
static struct saved_word overwrite(const struct added_code *added, unsigned pointer_size, const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false), width = word[2] & 3 ? 4 : pointer_size;
    uint64_t size = added->end - added->begin - 8, address = added->begin + place % size;
    uint64_t new = word[2] & 1 ? value : word[2] & 2 ? (uint64_t)value << 16 : added->begin + value % size;
    struct saved_word saved = {address, mock_read_uint(added->mock, address, width), width};
    mock_write_uint(added->mock, address, width, new);
    return saved;
}

static void check(const struct added_code *added, bool intact)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_method method = {.size = sizeof method};
    if (cdacq_target_open_memory(mock_memory(added->mock), NULL, &target, NULL) != CDACQ_OK ||
        cdacq_session_create(target, &session, NULL) != CDACQ_OK ||
        cdacq_session_method_at(session, added->added_code, &method, NULL) != CDACQ_OK ||
        !method.name == !method.error || cdacq_session_method_at(session, added->old_code, &method, NULL) != CDACQ_OK ||
        !method.name || strcmp(method.name, "Ns.First.Old()") != 0)
        abort();
    if (intact && (cdacq_session_method_at(session, added->added_code, &method, NULL) != CDACQ_OK || !method.name ||
                   strcmp(method.name, "Ns.Added<T>.New(T)") != 0))
        abort();
    for (uint32_t token = 0x06000000; token < 0x06000008; token++) {
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        (void)dynamic_il_exists(&session->resolver.reader, added->module, token);
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        bool edited = code_versions_is_edited(&session->resolver.reader, added->module, token);
        if (intact && edited != (metadata_rid(token) == ADDED_CODE_METHOD))
            abort();
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct saved_word saved[WORDS_MAX];
    size_t count = 0;
    if (!size)
        return 0;
    struct added_code *added = &processes[data[0] % PROCESSES];
    if (!added->mock) {
        *added = build(data[0] % PROCESSES);
        /* A table of methods with other IL, which is any bytes. */
        mock_set(added->mock, added->module, "Module.DynamicILBlobTable", added->store);
    }
    for (; count < WORDS_MAX && 1 + count * WORD + WORD <= size; count++)
        saved[count] = overwrite(added, data[0] & 1 ? 8 : 4, data + 1 + count * WORD);
    check(added, !count);
    while (count-- > 0)
        mock_write_uint(added->mock, saved[count].address, saved[count].width, saved[count].value);
    if (mock_error(added->mock)) /* it refuses all that follows: words would stay */
        abort();
    return 0;
}
