/*
 * lz4.c: LZ4 frames. Source: lz4_Frame_format.md, and lz4frame.h of 1.8, its stable part.
 */
#include "formats/compression/codec.h"

enum { LZ4F_VERSION = 100, ERROR_ALLOCATION = 9 };

struct functions {
    size_t (*create)(void **context, unsigned version);
    size_t (*destroy)(void *context);
    size_t (*decompress)(void *context, void *out, size_t *out_size, const void *in, size_t *in_size,
                         const void *options);
    unsigned (*is_error)(size_t result);
};

static const char *const names[] = {"LZ4F_createDecompressionContext", "LZ4F_freeDecompressionContext",
                                    "LZ4F_decompress", "LZ4F_isError", NULL};

struct state {
    struct functions lz4;
    void *context;
};

static void lz4_destroy(void *state)
{
    struct state *s = state;
    if (s && s->context)
        s->lz4.destroy(s->context);
    free(s);
}

static void *lz4_create(char *why, size_t why_size)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s || !library_load(&codec_lz4.library, &s->lz4, why, why_size)) {
        free(s);
        return NULL;
    }
    if (s->lz4.is_error(s->lz4.create(&s->context, LZ4F_VERSION))) {
        s->context = NULL;
        lz4_destroy(s);
        return NULL;
    }
    return s;
}

static enum codec_result lz4_step(void *state, struct codec_bytes *bytes)
{
    struct state *s = state;
    size_t in_size = bytes->in_size, out_size = bytes->out_size;
    size_t result = s->lz4.decompress(s->context, bytes->out, &out_size, bytes->in, &in_size, NULL);
    if (s->lz4.is_error(result)) /* the sizes are then not set */
        return 0 - result == ERROR_ALLOCATION ? CODEC_NOMEM : CODEC_DAMAGED;
    bytes->in += in_size;
    bytes->in_size -= in_size;
    bytes->out += out_size;
    bytes->out_size -= out_size;
    return result ? CODEC_MORE : CODEC_END;
}

const struct codec codec_lz4 = {
    .name = "lz4",
    .library = {"liblz4.so.1", "liblz4-1", names},
    .magic = {0x04, 0x22, 0x4d, 0x18},
    .magic_size = 4,
    .skippable = true,
    .padded = false,
    .create = lz4_create,
    .step = lz4_step,
    .destroy = lz4_destroy,
};
