#include "tests/support/compressor.h"

#include <dlfcn.h>
#include <err.h>

static void (*function(const char *library, const char *name))(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *address = handle ? dlsym(handle, name) : NULL;
    if (!address)
        errx(1, "%s: %s", library, dlerror());
    return (void (*)(void))(uintptr_t)address;
}

static size_t compress_zstd(uint8_t *out, size_t room, const void *bytes, size_t size)
{
    size_t (*compress)(void *, size_t, const void *, size_t, int) =
        (size_t(*)(void *, size_t, const void *, size_t, int))function("libzstd.so.1", "ZSTD_compress");
    return compress(out, room, bytes, size, 3);
}

static size_t compress_lz4(uint8_t *out, size_t room, const void *bytes, size_t size)
{
    size_t (*compress)(void *, size_t, const void *, size_t, const void *) =
        (size_t(*)(void *, size_t, const void *, size_t, const void *))function("liblz4.so.1", "LZ4F_compressFrame");
    return compress(out, room, bytes, size, NULL);
}

static size_t compress_xz(uint8_t *out, size_t room, const void *bytes, size_t size)
{
    enum { PRESET = 1, CHECK_CRC64 = 4 };
    int (*compress)(uint32_t, int, const void *, const void *, size_t, void *, size_t *, size_t) =
        (int (*)(uint32_t, int, const void *, const void *, size_t, void *, size_t *, size_t))function(
            "liblzma.so.5", "lzma_easy_buffer_encode");
    size_t done = 0;
    return compress(PRESET, CHECK_CRC64, NULL, bytes, size, out, &done, room) ? room + 1 : done;
}

static size_t compress_gzip(uint8_t *out, size_t room, const void *bytes, size_t size)
{
    enum { FINISH = 4, STREAM_END = 1, DEFLATED = 8, GZIP_WINDOW_BITS = 16 + 15, MEMORY_LEVEL = 8 };
    struct z_stream {
        const uint8_t *next_in;
        unsigned avail_in;
        unsigned long total_in;
        uint8_t *next_out;
        unsigned avail_out;
        unsigned long total_out;
        const void *others[5];
        unsigned long numbers[3];
    } stream = {.next_in = bytes, .avail_in = (unsigned)size, .next_out = out, .avail_out = (unsigned)room};
    int (*init)(struct z_stream *, int, int, int, int, int, const char *, int) =
        (int (*)(struct z_stream *, int, int, int, int, int, const char *, int))function("libz.so.1", "deflateInit2_");
    int (*step)(struct z_stream *, int) = (int (*)(struct z_stream *, int))function("libz.so.1", "deflate");
    int (*end)(struct z_stream *) = (int (*)(struct z_stream *))function("libz.so.1", "deflateEnd");
    if (init(&stream, 6, DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL, 0, "1", sizeof stream) ||
        step(&stream, FINISH) != STREAM_END)
        return room + 1;
    end(&stream);
    return stream.total_out;
}

uint8_t *compress_bytes(const char *format, const void *bytes, size_t size, size_t *ret_size)
{
    static const struct {
        const char *name;
        size_t (*compress)(uint8_t *out, size_t room, const void *bytes, size_t size);
    } rows[] = {{"zstd", compress_zstd}, {"gzip", compress_gzip}, {"xz", compress_xz}, {"lz4", compress_lz4}};
    size_t room = size + size / 8 + 256 * 1024;
    uint8_t *out = malloc(room);
    for (size_t i = 0; out && i < ARRAY_SIZE(rows); i++)
        if (!strcmp(rows[i].name, format)) {
            *ret_size = rows[i].compress(out, room, bytes, size);
            if (*ret_size > room)
                errx(1, "%s: cannot compress", format);
            return out;
        }
    errx(1, "%s: no such format", format);
}
