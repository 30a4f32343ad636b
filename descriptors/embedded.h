/*
 * embedded.h: the JSON files of this folder, compiled into the library by cmake/embed.cmake.
 */
#ifndef CDACQ_DESCRIPTORS_EMBEDDED_H
#define CDACQ_DESCRIPTORS_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
    const char *name;          /* "coreclr-9.0-linux-x64.json" */
    const unsigned char *data; /* followed by a NUL */
    size_t size;               /* without the NUL */
};

extern const struct embedded_file embedded_descriptors[]; /* sorted by name */
extern const size_t embedded_descriptor_count;

#endif
