/*
 * fuzz_stress_log.c: a StressLog of three threads, in whose structures the input overwrites bytes; then all messages
 * are visited. The first byte selects width, byte order, release and layout; the second the length of a format string,
 * which follows with its arguments; each further three bytes are an offset and a value.
 */
#include <stdlib.h>

#include "cdacq.h"
#include "contracts/stress_log/message_text.h"
#include "src/lookup/opened_session.h"
#include "tests/support/stress_mock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { THREADS = 3, ROUNDS = 24, PLACE_MAX = 32, VISITS_MAX = 100000 };

struct sample {
    struct mock *mock;
    struct stress_mock stress;
    uint64_t threads[THREADS];
    struct {
        uint64_t address, size;
    } places[PLACE_MAX];
    size_t place_count;
};

static void add_place(struct sample *sample, uint64_t address, uint64_t size)
{
    if (sample->place_count == PLACE_MAX)
        abort();
    sample->places[sample->place_count].address = address;
    sample->places[sample->place_count++].size = size;
}

/* A ring that was written several times, a list that grows, and a log of one chunk. */
static void write_messages(struct sample *sample)
{
    static const char *const formats[] = {"%d %s\n", "MT %pT %pM", "%pV %pK %S", "{ %5.3f %*d %-8p"};
    for (unsigned i = 0; i < ROUNDS; i++)
        for (unsigned thread = 0; thread < THREADS; thread++)
            stress_mock_write(&sample->stress, sample->threads[thread], thread == 1 ? 5 : 1 + thread,
                              &(struct stress_mock_message){
                                  .time = 7 * i + thread,
                                  .facility = 1u << i % 32,
                                  .format = formats[i % ARRAY_SIZE(formats)],
                                  .count = i % 4,
                                  .arguments = {sample->stress.images[0] + 64, sample->threads[0], 0x10, UINT64_MAX}});
}

static struct sample build(uint8_t choice)
{
    bool is_net11 = choice & 4;
    struct mock_options options = {
        .pointer_size = choice & 1 ? 8 : 4,
        .big_endian = choice & 2,
        .seed = choice / 8,
        .version = is_net11 ? MOCK_NET_11 : 2,
        .unwind = MOCK_UNWIND_HEADER,
    };
    struct sample sample = {.mock = mock_create(&options)};
    if (!sample.mock)
        abort();
    stress_mock_init(&sample.stress, sample.mock, is_net11);
    for (unsigned i = 0; i < THREADS; i++)
        sample.threads[i] = stress_mock_thread(&sample.stress, 100 + i);
    write_messages(&sample);
    add_place(&sample, sample.stress.log,
              mock_size_of(sample.mock, "StressLog") + 5 * (uint64_t)mock_size_of(sample.mock, "StressLogModuleDesc"));
    for (unsigned i = 0; i < THREADS; i++) {
        uint64_t first = mock_get(sample.mock, sample.threads[i], "ThreadStressLog.ChunkListHead"), chunk = first;
        add_place(&sample, sample.threads[i], mock_size_of(sample.mock, "ThreadStressLog"));
        do {
            add_place(&sample, chunk, mock_size_of(sample.mock, "StressLogChunk") + STRESS_MOCK_CHUNK);
            chunk = mock_get(sample.mock, chunk, "StressLogChunk.Next");
        } while (chunk != first);
    }
    add_place(&sample, sample.stress.images[0], 256);
    mock_publish(sample.mock, NULL);
    if (mock_error(sample.mock))
        abort();
    return sample;
}

/* The address of a byte, by its number among all places. */
static void overwrite(struct sample *sample, unsigned where, uint8_t value)
{
    uint64_t total = 0, at;
    for (size_t i = 0; i < sample->place_count; i++)
        total += sample->places[i].size;
    at = where % total;
    for (size_t i = 0; i < sample->place_count; at -= sample->places[i++].size)
        if (at < sample->places[i].size) {
            mock_write(sample->mock, sample->places[i].address + at, &value, 1);
            return;
        }
}

static void check_printable(const char *text)
{
    for (; text && *text; text++)
        if ((uint8_t)*text < 0x20 || *text == 0x7f)
            abort();
}

static int check(const struct cdacq_stress_message *message, void *context)
{
    if (!message->text == !message->problem || message->argument_count > 63 ||
        (message->argument_count && !message->arguments))
        abort();
    check_printable(message->text);
    check_printable(message->format);
    check_printable(message->problem);
    return ++*(unsigned *)context == VISITS_MAX;
}

/* A format string and its arguments, of which each is one byte or, above 127, of the sample's memory. */
static size_t format_text(struct sample *sample, struct cdacq_session *session, const uint8_t *data, size_t size)
{
    const struct message_source source = {0};
    size_t length = size > 1 ? MIN((size_t)data[1], size - 2) : 0;
    uint64_t arguments[8];
    struct text text = {0};
    for (unsigned i = 0; i < ARRAY_SIZE(arguments); i++) {
        uint8_t byte = 2 + length + i < size ? data[2 + length + i] : 0;
        arguments[i] = byte < 128 ? byte : sample->stress.images[0] + byte;
    }
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    message_text_write(&session->resolver.reader, &source, (const char *)data + MIN((size_t)2, size), length, arguments,
                       size ? data[0] % 9 : 0, &text);
    check_printable(text.data);
    text_deinit(&text);
    return MIN(size, 2 + length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_error error = {0};
    struct cdacq_stress_log log = {.size = sizeof log};
    struct sample sample = build(size ? data[0] : 0);
    unsigned visits = 0;
    const struct cdacq_options options = {.size = sizeof options, .work_max = 50 * 1000 * 1000};
    if (cdacq_target_open_memory(mock_memory(sample.mock), &options, &target, NULL) < 0 ||
        cdacq_session_create(target, &session, NULL) < 0)
        abort(); /* nothing of it is damaged yet */
    for (size_t i = format_text(&sample, session, data, size); i + 3 <= size && i < 600; i += 3)
        overwrite(&sample, load_u16(data + i, false), data[i + 2]);
    if (mock_error(sample.mock))
        abort();
    enum cdacq_status status = cdacq_session_get_stress_log(session, &log, &error);
    if (status < 0 && !error.message[0])
        abort();
    status = cdacq_session_visit_stress_log(session, check, &visits, &error);
    if (status < 0 && !error.message[0])
        abort();
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    stress_mock_deinit(&sample.stress);
    mock_destroy(sample.mock);
    return 0;
}
