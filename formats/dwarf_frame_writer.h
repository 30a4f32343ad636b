/*
 * dwarf_frame_writer.h: writes call-frame information: one CIE, and an FDE for each function, as .debug_frame or as
 * .eh_frame with its index .eh_frame_hdr.
 * Source: DWARF 4 section 6.4; Linux Standard Base 5, "Exception Frames". Pure functions.
 */
#ifndef CDACQ_FORMATS_DWARF_FRAME_WRITER_H
#define CDACQ_FORMATS_DWARF_FRAME_WRITER_H

#include "formats/byte_writer.h"
#include "formats/frame_row.h"

struct dwarf_frame_writer {
    struct byte_writer *to; /* empty at first */
    const struct frame_machine *machine;
    unsigned word_size; /* 4 or 8 */
    /*
     * .eh_frame, not .debug_frame: addresses are 32-bit numbers, relative to where they are. `address` is that of the
     * section's first byte, in the same address space as the functions.
     */
    bool is_eh_frame;
    uint64_t address;
    uint64_t moved; /* is added to the addresses of functions */
};

/* Writes the CIE. */
void dwarf_frame_begin(struct dwarf_frame_writer *writer);

/*
 * Writes the FDE of the function [begin, end). `rows` ascend, the first begins where the function does, and all begin
 * in it. Returns the offset of the FDE in the section.
 */
size_t dwarf_frame_add(struct dwarf_frame_writer *writer, uint64_t begin, uint64_t end, const struct frame_row *rows,
                       size_t count);

/* Writes the end of .eh_frame. */
void dwarf_frame_end(struct dwarf_frame_writer *writer);

/* An FDE, for the index. */
struct dwarf_frame_entry {
    uint64_t begin; /* of its function, as it was given */
    size_t fde;     /* offset in the section */
};

/* Writes .eh_frame_hdr, whose first byte is at `address`. `entries` ascend by begin. */
void dwarf_frame_put_index(const struct dwarf_frame_writer *writer, struct byte_writer *to, uint64_t address,
                           const struct dwarf_frame_entry *entries, size_t count);

#endif
