/*
 * gzip.c: RFC 1952. Source of the ABI: zlib.h of 1.2.
 */
#include "formats/compression/codec.h"

enum { ONLY_GZIP_WINDOW_BITS = 16 + 15 };

enum { Z_NO_FLUSH = 0, Z_OK = 0, Z_STREAM_END = 1, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5 };

struct z_stream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*allocate)(void *opaque, unsigned count, unsigned size);
    void (*release)(void *opaque, void *address);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
};

struct functions {
    int (*init)(struct z_stream *stream, int window_bits, const char *version, int stream_size);
    int (*inflate)(struct z_stream *stream, int flush);
    int (*reset)(struct z_stream *stream);
    int (*end)(struct z_stream *stream);
};

static const char *const names[] = {"inflateInit2_", "inflate", "inflateReset", "inflateEnd", NULL};

struct state {
    struct functions zlib;
    struct z_stream stream;
    bool ended; /* the last step ended a member */
};

static void gzip_destroy(void *state)
{
    struct state *s = state;
    if (s)
        s->zlib.end(&s->stream);
    free(s);
}

static void *gzip_create(char *why, size_t why_size)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s || !library_load(&codec_gzip.library, &s->zlib, why, why_size) ||
        s->zlib.init(&s->stream, ONLY_GZIP_WINDOW_BITS, "1", sizeof s->stream) != Z_OK) {
        free(s);
        return NULL;
    }
    return s;
}

static enum codec_result gzip_step(void *state, struct codec_bytes *bytes)
{
    struct state *s = state;
    if (s->ended)
        s->zlib.reset(&s->stream);
    s->ended = false;
    s->stream.next_in = bytes->in;
    s->stream.avail_in = (unsigned)MIN(bytes->in_size, (size_t)INT32_MAX);
    s->stream.next_out = bytes->out;
    s->stream.avail_out = (unsigned)MIN(bytes->out_size, (size_t)INT32_MAX);
    int result = s->zlib.inflate(&s->stream, Z_NO_FLUSH);
    bytes->in_size -= (size_t)(s->stream.next_in - bytes->in);
    bytes->in = s->stream.next_in;
    bytes->out_size -= (size_t)(s->stream.next_out - bytes->out);
    bytes->out = s->stream.next_out;
    s->ended = result == Z_STREAM_END;
    if (result == Z_OK || result == Z_BUF_ERROR)
        return CODEC_MORE;
    if (result == Z_STREAM_END)
        return CODEC_END;
    return result == Z_MEM_ERROR ? CODEC_NOMEM : CODEC_DAMAGED;
}

const struct codec codec_gzip = {
    .name = "gzip",
    .library = {"libz.so.1", "zlib1g", names},
    .magic = {0x1f, 0x8b, 8},
    .magic_size = 3,
    .skippable = false,
    .padded = true,
    .create = gzip_create,
    .step = gzip_step,
    .destroy = gzip_destroy,
};
