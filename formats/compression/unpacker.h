/*
 * unpacker.h: unpacks a file or stream that is compressed by zstd, gzip, xz or lz4, member after member. The format is
 * recognised by the first bytes, never by a name. What was unpacked before the data end or turn out to be damaged is
 * good. At most CODEC_MEMORY_MAX of memory, and a buffer. One thread.
 */
#ifndef CDACQ_FORMATS_COMPRESSION_UNPACKER_H
#define CDACQ_FORMATS_COMPRESSION_UNPACKER_H

#include "formats/compression/codec.h"

enum {
    COMPRESSION_PEEK = 64, /* bytes that are enough to recognise a format */
    UNPACKER_BUFFER = 256 * 1024,
};

/* The format of data that begin with these bytes. NULL: none of those above. */
const struct codec *codec_of(const uint8_t *bytes, size_t size);

enum unpacker_state {
    UNPACKER_OPEN,
    UNPACKER_COMPLETE, /* the last member ended; what follows it, if anything, is not of the format */
    UNPACKER_CUT,      /* the data end within a member */
    UNPACKER_DAMAGED,
    UNPACKER_MEMORY, /* needs more memory than CODEC_MEMORY_MAX */
    UNPACKER_NOMEM,
};

struct unpacker {
    const struct codec *codec;
    void *codec_state;
    /* Copies up to `size` bytes of the data, at least one before the end. */
    size_t (*read)(void *context, void *buffer, size_t size);
    void *context;
    uint8_t *buffer; /* its input is [begin, end) */
    size_t begin, end;
    bool source_ended;
    bool between; /* members; the next one's first byte was not passed on yet */
    enum unpacker_state state;
    uint64_t consumed, produced;
};

/* On failure returns false, `why` is one line, and there is nothing to free. */
bool unpacker_init(struct unpacker *unpacker, const struct codec *codec,
                   size_t (*read)(void *context, void *buffer, size_t size), void *context, char *why, size_t why_size);
void unpacker_deinit(struct unpacker *unpacker);

/* Unpacks up to `size` bytes and returns their number. With fewer, unpacker->state is why there are no more. */
size_t unpacker_read(struct unpacker *unpacker, uint8_t *bytes, size_t size);

#endif
