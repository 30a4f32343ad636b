/*
 * r2r_method_bounds.h: where a method of a ReadyToRun image starts and ends, in runtime functions: a method is a
 * function and the ones after it up to the next method's start.
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_BOUNDS_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_BOUNDS_H

#include "contracts/ready_to_run/r2r_image.h"

/* The start that a hot function belongs to: the nearest one at or before it. UINT32_MAX if there is none. */
uint32_t r2r_method_start(const struct r2r_image *image, const struct r2r_entries *entries, struct field_reader *reader,
                          uint32_t function);

/* The function after the last one of the method that starts at `start`: the next start, or the end of the hot code. */
uint32_t r2r_method_end(const struct r2r_image *image, const struct r2r_entries *entries, struct field_reader *reader,
                        uint32_t start);

/* The length of the code of the method that starts at `start`, by its GC info; 0 if that cannot be read. */
uint32_t r2r_method_length(const struct r2r_image *image, struct field_reader *reader, uint32_t start);

/* The same end by the method's length, without the image's tables. 0 if no function ends exactly there. */
uint32_t r2r_method_end_by_length(const struct r2r_image *image, struct field_reader *reader, uint32_t start,
                                  uint32_t length);

#endif
