/*
 * r2r_method_bounds.h: where a method of a ReadyToRun image starts and ends, in runtime functions: a method is a
 * function and the ones after it up to the next method's start. The tables of an image have the starts, except those of
 * stubs that continue async methods; such a stub starts where the method before it ends by its GC info.
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_BOUNDS_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_BOUNDS_H

#include "contracts/ready_to_run/r2r_image.h"

/* The bytes from the beginning of function `first` to the end of those before `after`, which are adjacent. */
uint32_t r2r_functions_size(const struct r2r_image *image, struct reader *reader, uint32_t first, uint32_t after);

/* The cold part of a method. */
struct r2r_cold_part {
    uint32_t first, count; /* functions; a count of 0: it has none */
    uint32_t rva, size;
};

/* Of the method that starts at `start`. */
struct r2r_cold_part r2r_method_cold_part(const struct r2r_image *image, struct reader *reader, uint32_t start);

/* The next start in the tables after a function, or the end of the hot code. */
uint32_t r2r_next_start(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                        uint32_t function);

/*
 * The function after the last one of the method that starts at `start`: `next_start`, from r2r_next_start(), or an
 * earlier one if the image has resumption stubs and the method's GC info says that it ends there. Then another method
 * starts there, which no table has.
 */
uint32_t r2r_method_end(const struct r2r_image *image, struct reader *reader, uint32_t start, uint32_t next_start);

/*
 * The start of the method that a hot function belongs to: the nearest start in the tables at or before it, or a later
 * one where the method before it ends. UINT32_MAX if there is none.
 */
uint32_t r2r_method_start(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                          uint32_t function);

/* The length of the code of the method that starts at `start`, by its GC info; 0 if that cannot be read. */
uint32_t r2r_method_length(const struct r2r_image *image, struct reader *reader, uint32_t start);

/*
 * The same end by the length of the hot code, without the image's tables. 0 if no function before `limit` ends there.
 */
uint32_t r2r_method_end_by_length(const struct r2r_image *image, struct reader *reader, uint32_t start, uint32_t length,
                                  uint32_t limit);

#endif
