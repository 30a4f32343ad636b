/*
 * codec.h: a compressed format: how a file of it begins, and the library that unpacks it. Each format is a row, in a
 * file of its own. The libraries are those that tools of Debian's base system need; they are loaded when a file of the
 * format is first read. Their headers may not be installed, so each file declares what it uses of the library's ABI.
 *
 * A compressed file is one member (zstd and lz4: frame; xz: stream) or several, one after the other.
 */
#ifndef CDACQ_FORMATS_COMPRESSION_CODEC_H
#define CDACQ_FORMATS_COMPRESSION_CODEC_H

#include "util/library.h"

enum {
    CODEC_WINDOW_LOG_MAX = 27, /* 128 MiB, zstd's own bound; `xz -9` needs 65 MiB */
    CODEC_MEMORY_MAX = 128 * 1024 * 1024,
};

enum codec_result {
    CODEC_MORE,    /* call again: with more input if all of it was used, with more room if that is full */
    CODEC_END,     /* of a member; the next call begins another */
    CODEC_DAMAGED, /* the data are not what the format allows */
    CODEC_MEMORY,  /* unpacking takes more memory than CODEC_MEMORY_MAX */
    CODEC_NOMEM,
};

/* What one step takes and gives; it advances the pointers and lowers the sizes. */
struct codec_bytes {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
};

struct codec {
    const char *name; /* "zstd" */
    struct library library;
    uint8_t magic[6]; /* that a member begins with */
    uint8_t magic_size;
    bool skippable; /* members of zstd's skippable format may stand among the others */
    bool padded;    /* zeros may stand between and after the members */
    /* Loads the library. *ret is the state of a file. On failure NULL, and `why` is one line. */
    void *(*create)(char *why, size_t why_size);
    enum codec_result (*step)(void *state, struct codec_bytes *bytes);
    void (*destroy)(void *state); /* NULL is allowed */
};

extern const struct codec codec_zstd, codec_gzip, codec_xz, codec_lz4;

#endif
