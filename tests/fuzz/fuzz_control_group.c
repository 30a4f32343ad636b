/*
 * fuzz_control_group.c: any bytes as the control groups of a process and, after a byte of zero, as the mounts of a
 * machine that has no files.
 */
#include "target/control_group.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char none[] = "/nonexistent";
    struct cpu_limit limit;
    struct memory_limit memory;
    char *text = calloc(1, size + 2);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (cpu_limit_find(text, text + strlen(text) + 1, none, &limit) ||
        memory_limit_find(text, text + strlen(text) + 1, none, &memory))
        abort();
    struct control_group group;
    for (const char *at = text; *at;)
        if (control_group_next(&at, &group) && (group.path < text || group.path + group.path_length > text + size))
            abort();
    free(text);
    return 0;
}
