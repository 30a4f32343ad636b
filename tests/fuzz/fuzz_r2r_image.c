/*
 * fuzz_r2r_image.c: a small ReadyToRun image with async methods and the stubs that continue them, in which the input
 * overwrites bytes; then every address is asked about in every way. The first byte selects width, byte order,
 * architecture and layout; each further three bytes are an offset and a value.
 */
#include <stdlib.h>

#include "mocktarget/mocktarget.h"
#include "src/lookup/opened_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { METHODS = 12, TABLES_MAX = 0x2000 };

struct sample {
    struct mock *mock;
    struct mock_r2r *image;
};

static struct sample build(uint8_t choice)
{
    static const uint64_t sizes[] = {0x30, 0x18, 0x24};
    struct mock_options options = {
        .pointer_size = choice & 1 ? 8 : 4,
        .big_endian = choice & 2,
        .seed = choice / 4 % 8,
        .version = MOCK_NET_11,
        .unwind = (enum mock_unwind)(choice / 32 % 3),
    };
    struct sample sample = {.mock = mock_create(&options)};
    if (!sample.mock)
        abort();
    sample.image = mock_r2r_create(
        sample.mock,
        &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS, .composite = choice / 96, .major = 26, .minor = 1});
    for (uint32_t i = 0; i < METHODS; i++)
        mock_r2r_method(sample.image, &(struct mock_r2r_method){.hot = sizes + i % 3,
                                                                .hot_count = i % 4 == 1 ? 2 - (i % 3 == 2) : 1,
                                                                .cold = sizes,
                                                                .cold_count = i % 5 == 1,
                                                                .rid = i % 4 == 2 || i % 4 == 3 ? 0 : i + 1,
                                                                .method_desc = i % 4 ? 0 : 0x1000 + 8 * i,
                                                                .resumption_stub = i % 4 == 2});
    mock_r2r_finish(sample.image);
    mock_publish(sample.mock, NULL);
    if (mock_error(sample.mock))
        abort();
    return sample;
}

/* An answer covers its address. Without damage, a look-up gives the same answer as a batch. */
static void ask(struct cdacq_session *session, uint64_t begin, uint64_t end, bool damaged)
{
    struct cdacq_method one = {.size = sizeof one}, batch[64];
    uint64_t ips[ARRAY_SIZE(batch)];
    for (uint64_t at = begin; at < end;) {
        size_t count = 0;
        for (; at < end && count < ARRAY_SIZE(ips); at += 4)
            ips[count++] = at;
        batch[0].size = sizeof batch[0];
        if (cdacq_session_methods_at(session, ips, count, batch, NULL) < 0)
            abort();
        for (size_t i = 0; i < count; i++) {
            const struct cdacq_method *m = &batch[i];
            uint64_t into = m->cold ? ips[i] - m->cold_start : ips[i] - m->code_start;
            if (m->answer == CDACQ_ANSWER_MANAGED && into >= (m->cold ? m->cold_size : m->code_size))
                abort();
            cdacq_session_method_at(session, ips[i], &one, NULL);
            if (!damaged && (one.answer != m->answer || one.code_start != m->code_start ||
                             one.code_size != m->code_size || one.cold_size != m->cold_size))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct sample sample = build(size ? data[0] : 0);
    uint64_t tables = sample.image->header, code = mock_r2r_start(sample.image, 0);
    uint64_t room = MIN(code - tables, (uint64_t)TABLES_MAX);
    for (size_t i = 1; i + 3 <= size && i < 300; i += 3)
        mock_write(sample.mock, tables + load_u16(data + i, false) % room, &data[i + 2], 1);
    if (mock_error(sample.mock))
        abort();
    if (cdacq_target_open_memory(mock_memory(sample.mock), NULL, &target, NULL) < 0 ||
        cdacq_session_create(target, &session, NULL) < 0)
        abort(); /* the image is not needed for that */
    ask(session, code, sample.image->end, size > 1);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(sample.mock);
    return 0;
}
