/*
 * elf_code.h: what an ELF file has of the methods and stubs of a target, as they are visited: symbols, call-frame
 * information, debug information and, of a running process, their code. Of a running process, code and call-frame
 * information are read when a method is visited, and it is then confirmed that the method is still there: later, there
 * may be another one. One thread at a time.
 */
#ifndef CDACQ_PERF_ELF_CODE_H
#define CDACQ_PERF_ELF_CODE_H

#include "formats/dwarf_frame_writer.h"
#include "src/lookup/opened_session.h"
#include "src/perf/elf_debug.h"
#include "src/perf/kept_code.h"
#include "src/perf/method_frames.h"
#include "src/perf/sink_reports.h"
#include "util/vector.h"

enum { ELF_CODE_MAX = 2000 * 1024 * 1024 }; /* bytes of code */

/* A symbol. Addresses are those of the ELF file. */
struct code_symbol {
    uint64_t begin, size;
    uint64_t moved; /* from the target's address */
    uint32_t name;  /* offset in .strtab */
    uint32_t range; /* index of its code range */
};

DEFINE_VECTOR_TYPE(code_symbols, struct code_symbol);

struct elf_code {
    struct cdacq_session *session;
    struct cdacq_sink sink;
    unsigned flags;
    const char *path; /* only code in the mappings of this file; NULL: all */
    const struct code_map *map;
    struct code_symbols symbols;
    struct byte_writer strings, debug_frame;
    struct method_frames frames;
    struct dwarf_frame_writer frame_writer;
    struct elf_debug debug;
    struct kept_code kept; /* of a running process: of its methods */
    uint64_t kept_names;   /* bytes that were taken from the target's bound on memory */
    struct cdacq_written written;
    bool stopped, no_memory;
};

/* `path` is that of the mapped file whose code is visited; NULL: all is. The caller sets `map` before the visit. */
void elf_code_init(struct elf_code *code, struct cdacq_session *session, const char *path, unsigned flags);
void elf_code_deinit(struct elf_code *code);

/* Visits all code. What was visited before a failure stays. */
enum cdacq_status elf_code_visit(struct elf_code *code, struct cdacq_error *err);

/* After the visit: sorts the symbols and the kept code by address. */
void elf_code_sort(struct elf_code *code);

#endif
