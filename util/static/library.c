/*
 * library.c for programs that are linked with nothing shared (CDACQ_STATIC): what the library loads is linked in.
 */
#include "util/library.h"

#include <stdio.h>

/* The declarations serve only to take addresses; callers have the types. */
#define FUNCTIONS(X)                   \
    X(inflateInit2_)                   \
    X(inflate)                         \
    X(inflateReset)                    \
    X(inflateEnd)                      \
    X(lzma_stream_decoder)             \
    X(lzma_code)                       \
    X(lzma_end)                        \
    X(ZSTD_createDStream)              \
    X(ZSTD_freeDStream)                \
    X(ZSTD_DCtx_setParameter)          \
    X(ZSTD_decompressStream)           \
    X(ZSTD_isError)                    \
    X(LZ4F_createDecompressionContext) \
    X(LZ4F_freeDecompressionContext)   \
    X(LZ4F_decompress)                 \
    X(LZ4F_isError)

#define DECLARE(name) extern void name(void);
FUNCTIONS(DECLARE)

static const struct {
    const char *name;
    void (*address)(void);
} functions_linked[] = {
#define ROW(name) {#name, name},
    FUNCTIONS(ROW)};

bool library_load(const struct library *library, void *functions, char *why, size_t why_size)
{
    for (size_t i = 0; library->names[i]; i++) {
        size_t k = 0;
        while (k < ARRAY_SIZE(functions_linked) && strcmp(functions_linked[k].name, library->names[i]) != 0)
            k++;
        if (k == ARRAY_SIZE(functions_linked)) {
            snprintf(why, why_size, "%s is not part of a static cdacq", library->file);
            return false;
        }
        memcpy((uint8_t *)functions + i * sizeof(void *), &functions_linked[k].address, sizeof(void *));
    }
    return true;
}
