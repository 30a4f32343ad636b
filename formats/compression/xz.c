/*
 * xz.c: the .xz file format 1.2. Source of the ABI: lzma/base.h and lzma/container.h of 5.2.
 */
#include "formats/compression/codec.h"

enum { LZMA_RUN = 0 };

enum { LZMA_OK = 0, LZMA_STREAM_END = 1, LZMA_MEM_ERROR = 5, LZMA_MEMLIMIT_ERROR = 6, LZMA_BUF_ERROR = 10 };

struct lzma_stream {
    const uint8_t *next_in;
    size_t avail_in;
    uint64_t total_in;
    uint8_t *next_out;
    size_t avail_out;
    uint64_t total_out;
    const void *allocator;
    void *internal;
    void *reserved_pointers[4];
    uint64_t seek_position, reserved_64;
    size_t reserved_sizes[2];
    int reserved_enums[2];
};

struct functions {
    int (*init)(struct lzma_stream *stream, uint64_t memory_limit, uint32_t flags);
    int (*code)(struct lzma_stream *stream, int action);
    void (*end)(struct lzma_stream *stream);
};

static const char *const names[] = {"lzma_stream_decoder", "lzma_code", "lzma_end", NULL};

struct state {
    struct functions lzma;
    struct lzma_stream stream;
    bool ended; /* the last step ended a member */
};

static void xz_destroy(void *state)
{
    struct state *s = state;
    if (s)
        s->lzma.end(&s->stream);
    free(s);
}

static void *xz_create(char *why, size_t why_size)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s || !library_load(&codec_xz.library, &s->lzma, why, why_size) ||
        s->lzma.init(&s->stream, CODEC_MEMORY_MAX, 0) != LZMA_OK) {
        free(s);
        return NULL;
    }
    return s;
}

static enum codec_result xz_step(void *state, struct codec_bytes *bytes)
{
    struct state *s = state;
    if (s->ended && s->lzma.init(&s->stream, CODEC_MEMORY_MAX, 0) != LZMA_OK)
        return CODEC_NOMEM;
    s->ended = false;
    s->stream.next_in = bytes->in;
    s->stream.avail_in = bytes->in_size;
    s->stream.next_out = bytes->out;
    s->stream.avail_out = bytes->out_size;
    int result = s->lzma.code(&s->stream, LZMA_RUN);
    bytes->in = s->stream.next_in;
    bytes->in_size = s->stream.avail_in;
    bytes->out = s->stream.next_out;
    bytes->out_size = s->stream.avail_out;
    s->ended = result == LZMA_STREAM_END;
    if (result == LZMA_OK || result == LZMA_BUF_ERROR)
        return CODEC_MORE;
    if (result == LZMA_STREAM_END)
        return CODEC_END;
    return result == LZMA_MEM_ERROR ? CODEC_NOMEM : result == LZMA_MEMLIMIT_ERROR ? CODEC_MEMORY : CODEC_DAMAGED;
}

const struct codec codec_xz = {
    .name = "xz",
    .library = {"liblzma.so.5", "liblzma5", names},
    .magic = {0xfd, '7', 'z', 'X', 'Z', 0},
    .magic_size = 6,
    .skippable = false,
    .padded = true,
    .create = xz_create,
    .step = xz_step,
    .destroy = xz_destroy,
};
