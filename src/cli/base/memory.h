/*
 * memory.h: allocation that does not fail: without memory, the tool prints a message and exits.
 */
#ifndef CDACQ_CLI_BASE_MEMORY_H
#define CDACQ_CLI_BASE_MEMORY_H

#include <stddef.h>

_Noreturn void out_of_memory(void);
void *allocate(size_t size); /* zeroed */
void *reallocate(void *data, size_t size);

#endif
