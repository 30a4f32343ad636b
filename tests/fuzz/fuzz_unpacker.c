/*
 * fuzz_unpacker.c: a byte that chooses how many bytes a read gives, then any bytes as a compressed file. Whatever the
 * sizes of the reads and of the output are, the same bytes come out, and the same state is reached.
 */
#include "formats/compression/unpacker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20 };

struct source {
    const uint8_t *bytes;
    size_t size, at, most;
};

static size_t read_source(void *context, void *buffer, size_t size)
{
    struct source *source = context;
    size_t n = MIN(MIN(size, source->most), source->size - source->at);
    memcpy(buffer, source->bytes + source->at, n);
    source->at += n;
    return n;
}

struct result {
    enum unpacker_state state;
    uint64_t produced, sum;
};

static bool unpack(const uint8_t *data, size_t size, size_t most, size_t piece, struct result *ret)
{
    static uint8_t out[4096];
    char why[100];
    struct unpacker unpacker;
    struct source source = {data, size, 0, most};
    *ret = (struct result){0};
    const struct codec *codec = codec_of(data, size);
    if (!codec || !unpacker_init(&unpacker, codec, read_source, &source, why, sizeof why))
        return false;
    size_t n = piece;
    while (n == piece && unpacker.produced < OUT_MAX) {
        n = unpacker_read(&unpacker, out, piece);
        if (n > piece || (n < piece && unpacker.state == UNPACKER_OPEN))
            abort();
        for (size_t i = 0; i < n; i++)
            ret->sum = ret->sum * 31 + out[i];
    }
    if (unpacker.consumed > size)
        abort();
    ret->state = unpacker.state;
    ret->produced = unpacker.produced;
    unpacker_deinit(&unpacker);
    return ret->produced < OUT_MAX; /* beyond, the two runs stop at different places */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result whole, pieces;
    if (!size)
        return 0;
    if (!unpack(data + 1, size - 1, SIZE_MAX, 4096, &whole) ||
        !unpack(data + 1, size - 1, 1 + data[0] % 64, 1 + data[0], &pieces))
        return 0;
    /* A decoder may notice damage before or after it gives out the bytes before it. */
    bool failed = whole.state != UNPACKER_COMPLETE, differs = failed != (pieces.state != UNPACKER_COMPLETE);
    /* libzstd compares a frame with the size in its header only if it gets all of the frame at once. */
    bool is_zstd_size = failed && codec_of(data + 1, size - 1) == &codec_zstd;
    if (differs && !is_zstd_size)
        abort();
    if (differs)
        return 0;
    if (!failed && (whole.produced != pieces.produced || whole.sum != pieces.sum))
        abort();
    return 0;
}
