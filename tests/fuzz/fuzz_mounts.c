/* fuzz_mounts.c: any bytes as the text of mountinfo. The types of file systems are within the line that they are in. */
#include "util/file_system.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file_system_mount mount;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    const char *at = text;
    while (file_system_next_mount(&at, &mount)) {
        if (mount.type < text || mount.type + mount.type_length > at || memchr(mount.type, '\n', mount.type_length))
            abort();
        sink += (size_t)file_system_kind_of(mount.type, mount.type_length);
    }
    if (*at || at > text + size)
        abort();
    free(text);
    return 0;
}
