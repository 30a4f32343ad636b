/*
 * core_output.h: the file of a core that the library writes. It has a temporary name until it is complete, and nobody
 * but its owner may read it: it holds memory of a process. Threads: no state.
 */
#ifndef CDACQ_API_CORE_OUTPUT_H
#define CDACQ_API_CORE_OUTPUT_H

#include "formats/core_writer.h"

/* Writes the image to the file at `path`. *ret_size, which may be NULL, is the size of the file. */
enum cdacq_status core_output_write(const char *path, const struct core_writer_image *image, uint64_t *ret_size,
                                    struct cdacq_error *err);

#endif
