/* fuzz_smaps.c: any bytes as the text of /proc/PID/smaps. Paths are within it, and no mapping is empty. */
#include "target/proc_smaps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proc_smap map;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    char *at = text;
    while (proc_smaps_next(&at, &map)) {
        if (map.begin >= map.end || map.path < text || map.path > text + size || at > text + size)
            abort();
        sink += map.resident + map.swapped;
    }
    if (at > text + size)
        abort();
    free(text);
    return 0;
}
