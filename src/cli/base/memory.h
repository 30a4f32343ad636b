/*
 * memory.h: allocation that does not fail: without memory, the tool prints a message and exits.
 */
#ifndef CDACQ_CLI_BASE_MEMORY_H
#define CDACQ_CLI_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Noreturn void out_of_memory(void);  /* also where spill_resize() has failed: it says why */
void *allocate(size_t size);         /* zeroed */
void *allocate_large(uint64_t size); /* likewise, by spill_resize() */
void *reallocate(void *data, size_t size);

/* NULL of NULL */
static inline char *copy_text(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        out_of_memory();
    return copy;
}

#endif
