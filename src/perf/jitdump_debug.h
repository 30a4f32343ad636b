/*
 * jitdump_debug.h: what the records before a JIT_CODE_LOAD hold: its lines, also in samply's form, and its call-frame
 * information.
 */
#ifndef CDACQ_PERF_JITDUMP_DEBUG_H
#define CDACQ_PERF_JITDUMP_DEBUG_H

#include "formats/byte_writer.h"
#include "formats/dwarf_frame_writer.h"
#include "src/perf/method_frames.h"

DEFINE_VECTOR_TYPE(frame_entries, struct dwarf_frame_entry);

struct jitdump_debug {
    struct method_frames frames;
    struct byte_writer entries; /* the debug entries of the last method: address, line, 0, file */
    uint64_t entry_count;
    bool with_samply;
    struct byte_writer code_offsets, positions, strings; /* in samply's form: offset, position; its 7 fields; text */
    uint64_t position_count, string_count;               /* each position has a code offset */
    const struct source_document *documents[8]; /* whose files are the strings from 1 on, as far as they are kept */
    struct byte_writer unwinding; /* .eh_frame, then .eh_frame_hdr, of the last method; empty: there is none */
    uint64_t index_size;          /* of .eh_frame_hdr */
    struct frame_entries index;
    struct dwarf_frame_writer writer;
};

void jitdump_debug_init(struct jitdump_debug *debug, struct cdacq_session *session);
void jitdump_debug_deinit(struct jitdump_debug *debug);

/* Forms all of them for the part [begin, begin + size) of a method. */
void jitdump_debug_form(struct jitdump_debug *debug, const struct cdacq_method *method, uint64_t begin, uint64_t size);

#endif
