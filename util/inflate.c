#include "util/inflate.h"

#include <limits.h>
#include <stdio.h>

#include "util/library.h"

/* The interface of zlib, declared here because its header may not be installed. */
struct stream {
    const unsigned char *next_in;
    unsigned avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *allocate, *release, *opaque; /* NULL: malloc() and free() */
    int data_type;
    unsigned long checksum, reserved;
};

enum { Z_FINISH = 4, Z_STREAM_END = 1, Z_OK = 0, RAW_WINDOW_BITS = -15 };

struct zlib {
    int (*begin)(struct stream *stream, int window_bits, const char *version, int stream_size);
    int (*inflate)(struct stream *stream, int flush);
    int (*end)(struct stream *stream);
};

static const struct library library = {
    .file = "libz.so.1",
    .package = "zlib1g",
    .names = (const char *const[]){"inflateInit2_", "inflate", "inflateEnd", NULL},
};

bool inflate_raw(const void *bytes, size_t size, void *ret, size_t ret_size, char *why, size_t why_size)
{
    struct zlib zlib;
    struct stream stream = {
        .next_in = bytes, .avail_in = (unsigned)size, .next_out = ret, .avail_out = (unsigned)ret_size};
    if (size > UINT_MAX || ret_size > UINT_MAX) {
        snprintf(why, why_size, "compressed data of more than 4 GiB");
        return false;
    }
    if (!library_load(&library, &zlib, why, why_size))
        return false;
    if (zlib.begin(&stream, RAW_WINDOW_BITS, "1.2.0", sizeof stream) != Z_OK) {
        snprintf(why, why_size, "zlib cannot begin");
        return false;
    }
    bool whole = zlib.inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_out;
    zlib.end(&stream);
    if (!whole)
        snprintf(why, why_size, "its compressed data are damaged");
    return whole;
}
