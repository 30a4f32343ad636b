/*
 * call_frame.h: call-frame information of one image of the target: from an address to its row of rules (formats/cfi.h),
 * and from the registers of a frame and a row to the registers of the caller.
 */
#ifndef CDACQ_TARGET_NATIVE_CALL_FRAME_H
#define CDACQ_TARGET_NATIVE_CALL_FRAME_H

#include "target/registers.h"

struct cfi_row;
struct image;

enum call_frame_result { CALL_FRAME_FOUND, CALL_FRAME_NONE, CALL_FRAME_FAILED /* so has the reader */ };

/*
 * The row at an address by the image's .eh_frame, which .eh_frame_hdr leads to. Read from the target, as all read-only
 * data of an image.
 */
enum call_frame_result call_frame_find(struct reader *reader, const struct image *image, uint64_t address,
                                       struct cfi_row *ret);

/* What an FDE describes. */
struct call_frame_function {
    uint64_t begin, end;
    uint64_t lsda; /* address of its language-specific data; 0: none */
};

/* The function that covers an address, by the same tables. */
enum call_frame_result call_frame_function_at(struct reader *reader, const struct image *image, uint64_t address,
                                              struct call_frame_function *ret);

/*
 * Calls `visit` for the functions that begin in [begin, end), ascending, until it returns false. None if the image has
 * no table of them. False, and the reader fails, if a record cannot be read.
 */
bool call_frame_each(struct reader *reader, const struct image *image, uint64_t begin, uint64_t end,
                     bool (*visit)(const struct call_frame_function *function, void *context), void *context);

/* How many functions the image's table has; 0: it has none, or that cannot be read. */
uint64_t call_frame_count(struct reader *reader, const struct image *image);

/* What the row of a frame says of its caller. */
struct calling_frame {
    struct registers registers;
    uint64_t cfa;    /* of the frame that it called */
    bool is_missing; /* there is no caller: the frame is the outermost; `registers` are not set */
};

/*
 * Computes the registers of the caller and the CFA. False, and the reader fails, where memory or a register that the
 * CFA or the return address needs is missing. Another register whose value is missing is not known in the caller.
 */
bool call_frame_apply(struct reader *reader, const struct register_machine *machine, const struct cfi_row *row,
                      const struct registers *registers, struct calling_frame *ret);

#endif
