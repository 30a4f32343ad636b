#include "formats/compression/unpacker.h"

#include <stdio.h>

static const struct codec *const codecs[] = {&codec_zstd, &codec_gzip, &codec_xz, &codec_lz4};

enum { SKIPPABLE_HEADER = 8, SKIPPABLE_MAGIC = 0x184d2a50 };

/* zstd and lz4 share a kind of member without data; its last four bits are free. */
static bool is_skippable(const uint8_t *bytes, size_t size)
{
    return size >= SKIPPABLE_HEADER && (load_u32(bytes, false) & ~UINT32_C(15)) == SKIPPABLE_MAGIC;
}

static bool begins_member(const struct codec *codec, const uint8_t *bytes, size_t size)
{
    return size >= codec->magic_size && memcmp(bytes, codec->magic, codec->magic_size) == 0;
}

const struct codec *codec_of(const uint8_t *bytes, size_t size)
{
    bool skipped = false;
    while (is_skippable(bytes, size)) {
        uint64_t skip = SKIPPABLE_HEADER + (uint64_t)load_u32(bytes + 4, false);
        skipped = true;
        bytes += MIN(skip, size);
        size -= MIN(skip, size);
    }
    for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
        if (begins_member(codecs[i], bytes, size) && (!skipped || codecs[i]->skippable))
            return codecs[i];
    return skipped && !size ? &codec_zstd : NULL; /* pzstd writes such members, lz4 does not */
}

bool unpacker_init(struct unpacker *unpacker, const struct codec *codec,
                   size_t (*read)(void *context, void *buffer, size_t size), void *context, char *why, size_t why_size)
{
    *unpacker = (struct unpacker){.codec = codec, .read = read, .context = context, .between = true};
    snprintf(why, why_size, "out of memory");
    unpacker->buffer = malloc(UNPACKER_BUFFER);
    unpacker->codec_state = unpacker->buffer ? codec->create(why, why_size) : NULL;
    if (!unpacker->codec_state)
        unpacker_deinit(unpacker);
    return unpacker->codec_state;
}

void unpacker_deinit(struct unpacker *unpacker)
{
    if (unpacker->codec_state)
        unpacker->codec->destroy(unpacker->codec_state);
    free(unpacker->buffer);
    *unpacker = (struct unpacker){0};
}

/* Reads until `size` bytes of input are there, or the data end. */
static void fill(struct unpacker *unpacker, size_t size)
{
    if (unpacker->end - unpacker->begin >= size || unpacker->source_ended)
        return;
    memmove(unpacker->buffer, unpacker->buffer + unpacker->begin, unpacker->end - unpacker->begin);
    unpacker->end -= unpacker->begin;
    unpacker->begin = 0;
    while (unpacker->end < size && !unpacker->source_ended) {
        size_t n = unpacker->read(unpacker->context, unpacker->buffer + unpacker->end, UNPACKER_BUFFER - unpacker->end);
        unpacker->end += n;
        unpacker->source_ended = n == 0;
    }
}

static void consume(struct unpacker *unpacker, size_t size)
{
    unpacker->begin += size;
    unpacker->consumed += size;
}

/* Moves on to the next member. False where there is none. */
static bool next_member(struct unpacker *unpacker)
{
    const struct codec *codec = unpacker->codec;
    for (;;) {
        fill(unpacker, COMPRESSION_PEEK);
        if (!codec->padded || !unpacker->consumed || unpacker->begin == unpacker->end ||
            unpacker->buffer[unpacker->begin])
            break;
        consume(unpacker, 1);
    }
    const uint8_t *bytes = unpacker->buffer + unpacker->begin;
    size_t size = unpacker->end - unpacker->begin;
    return begins_member(codec, bytes, size) || (codec->skippable && is_skippable(bytes, size));
}

static enum unpacker_state state_of(enum codec_result result)
{
    return result == CODEC_DAMAGED  ? UNPACKER_DAMAGED
           : result == CODEC_MEMORY ? UNPACKER_MEMORY
           : result == CODEC_NOMEM  ? UNPACKER_NOMEM
                                    : UNPACKER_OPEN;
}

/* Returns whether anything was used or unpacked. */
static bool step(struct unpacker *unpacker, uint8_t *out, size_t out_size, size_t *ret_written)
{
    size_t in_size = unpacker->end - unpacker->begin;
    struct codec_bytes bytes = {unpacker->buffer + unpacker->begin, in_size, out, out_size};
    enum codec_result result = unpacker->codec->step(unpacker->codec_state, &bytes);
    consume(unpacker, in_size - bytes.in_size);
    *ret_written = out_size - bytes.out_size;
    unpacker->produced += *ret_written;
    unpacker->between = result == CODEC_END;
    unpacker->state = state_of(result);
    return bytes.in_size < in_size || *ret_written;
}

size_t unpacker_read(struct unpacker *unpacker, uint8_t *bytes, size_t size)
{
    size_t done = 0, written;
    while (done < size && unpacker->state == UNPACKER_OPEN) {
        if (unpacker->between && !next_member(unpacker)) {
            unpacker->state = UNPACKER_COMPLETE;
            break;
        }
        fill(unpacker, 1);
        bool at_end = unpacker->begin == unpacker->end;
        bool moved = step(unpacker, bytes + done, size - done, &written);
        done += written;
        if (!moved && !unpacker->between && unpacker->state == UNPACKER_OPEN)
            unpacker->state = at_end ? UNPACKER_CUT : UNPACKER_DAMAGED;
    }
    return done;
}
