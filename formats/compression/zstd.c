/*
 * zstd.c: RFC 8878. Source of the ABI: zstd.h of 1.4, its stable part.
 */
#include "formats/compression/codec.h"

struct in_buffer {
    const void *bytes;
    size_t size, at;
};

struct out_buffer {
    void *bytes;
    size_t size, at;
};

enum { WINDOW_LOG_MAX_PARAMETER = 100, ERROR_MEMORY = 64, ERROR_WINDOW_TOO_LARGE = 16 };

struct functions {
    void *(*create)(void);
    size_t (*destroy)(void *context);
    size_t (*set_parameter)(void *context, int parameter, int value);
    size_t (*decompress)(void *context, struct out_buffer *out, struct in_buffer *in);
    unsigned (*is_error)(size_t result);
};

static const char *const names[] = {"ZSTD_createDStream",    "ZSTD_freeDStream", "ZSTD_DCtx_setParameter",
                                    "ZSTD_decompressStream", "ZSTD_isError",     NULL};

struct state {
    struct functions zstd;
    void *context;
};

static void zstd_destroy(void *state)
{
    struct state *s = state;
    if (s && s->context)
        s->zstd.destroy(s->context);
    free(s);
}

static void *zstd_create(char *why, size_t why_size)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s || !library_load(&codec_zstd.library, &s->zstd, why, why_size)) {
        free(s);
        return NULL;
    }
    s->context = s->zstd.create();
    if (!s->context ||
        s->zstd.is_error(s->zstd.set_parameter(s->context, WINDOW_LOG_MAX_PARAMETER, CODEC_WINDOW_LOG_MAX))) {
        zstd_destroy(s);
        return NULL;
    }
    return s;
}

/* An error is the negative of its number. The numbers are part of the ABI (zstd_errors.h). */
static enum codec_result result_of_error(size_t result)
{
    size_t number = 0 - result;
    return number == ERROR_WINDOW_TOO_LARGE ? CODEC_MEMORY : number == ERROR_MEMORY ? CODEC_NOMEM : CODEC_DAMAGED;
}

static enum codec_result zstd_step(void *state, struct codec_bytes *bytes)
{
    struct state *s = state;
    struct in_buffer in = {bytes->in, bytes->in_size, 0};
    struct out_buffer out = {bytes->out, bytes->out_size, 0};
    size_t result = s->zstd.decompress(s->context, &out, &in);
    bytes->in += in.at;
    bytes->in_size -= in.at;
    bytes->out += out.at;
    bytes->out_size -= out.at;
    if (!s->zstd.is_error(result))
        return result ? CODEC_MORE : CODEC_END;
    return result_of_error(result);
}

const struct codec codec_zstd = {
    .name = "zstd",
    .library = {"libzstd.so.1", "libzstd1", names},
    .magic = {0x28, 0xb5, 0x2f, 0xfd},
    .magic_size = 4,
    .skippable = true,
    .padded = false,
    .create = zstd_create,
    .step = zstd_step,
    .destroy = zstd_destroy,
};
