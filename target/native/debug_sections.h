/*
 * debug_sections.h: debug information of one image: sections of its own file or of its debug file (debug_file.h),
 * decompressed. A zeroed struct has nothing yet. One thread at a time.
 * Source: ELF gABI, "Compressed Sections"; DWARF 5.
 */
#ifndef CDACQ_TARGET_NATIVE_DEBUG_SECTIONS_H
#define CDACQ_TARGET_NATIVE_DEBUG_SECTIONS_H

#include "formats/cfi.h"
#include "formats/dwarf_line.h"
#include "formats/elf.h"
#include "target/file_candidate.h"
#include "util/vector.h"

struct image;

enum {
    DEBUG_SECTION_MAX = 256 * 1024 * 1024, /* bytes of one, decompressed */
    DEBUG_SECTIONS_KEPT = 8,
};

/* A decompressed section. */
struct debug_section {
    const char *name; /* a static string */
    struct dwarf_section contents;
    uint8_t *owned;
};

struct debug_record {
    uint64_t begin, end; /* vaddrs that an FDE covers */
    uint64_t offset;     /* of the FDE */
};

DEFINE_VECTOR_TYPE(debug_records, struct debug_record);

struct debug_sections {
    bool opened;
    struct elf_file own, debug; /* `bytes.size` is 0 where there is none */
    struct file_candidate file; /* the debug file */
    struct debug_section kept[DEBUG_SECTIONS_KEPT];
    unsigned kept_count;
    bool has_sequences, has_records; /* they were looked for */
    struct dwarf_sequences sequences;
    struct debug_records records;
};

void debug_sections_deinit(struct debug_sections *debug);

/*
 * Calls `visit` for the rows of the sequences that cover [begin, end), vaddrs of the image, until it returns false.
 * *ret_sections is what dwarf_file_path() takes; `unit` is that of the rows.
 */
void debug_lines_each(struct debug_sections *debug, const struct image *image, uint64_t begin, uint64_t end,
                      bool (*visit)(const struct dwarf_row *row, uint32_t unit, void *context), void *context,
                      struct dwarf_line_sections *ret_sections);

/* The row of call-frame information at a vaddr, by .debug_frame. False if there is none without an expression. */
bool debug_frame_find(struct debug_sections *debug, const struct image *image, uint64_t vaddr, struct cfi_row *ret);

#endif
