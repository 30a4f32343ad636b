/*
 * pe.h: what a reader of .NET needs of a PE image: identity (time stamp, sizes), sections, the CLR header, and one
 * export by name. The image is either flat, as in a file, or mapped, laid out by RVA as a loader does. It is read
 * through windows, so that only the pages needed are touched. The input is not trusted: counts are capped, and every
 * range is checked before it is read. An opened `struct pe` is immutable; threads may share it if they may share its
 * source. Source: Microsoft PE/COFF specification; ECMA-335 II.25.
 */
#ifndef CDACQ_FORMATS_PE_H
#define CDACQ_FORMATS_PE_H

#include "formats/bytes.h"

enum {
    PE_SECTION_CAP = 96, /* what loaders accept */
    PE_DIRECTORY_COUNT = 16,
    PE_DIRECTORY_EXPORT = 0,
    PE_DIRECTORY_BASE_RELOCATION = 5,
    PE_DIRECTORY_CLR = 14,
};

enum pe_section_flags {
    PE_SECTION_CODE = 0x20,
    PE_SECTION_EXECUTE = 0x20000000,
    PE_SECTION_READ = 0x40000000,
    PE_SECTION_WRITE = (int)0x80000000,
};

struct pe_range {
    uint32_t rva, size;
};

struct pe_section {
    char name[9]; /* as stored: up to 8 bytes, not necessarily printable; NUL-terminated here */
    uint32_t rva, virtual_size;
    uint32_t file_offset, file_size;
    uint32_t characteristics; /* enum pe_section_flags */
};

struct pe {
    struct bytes bytes; /* the image; must outlive this */
    bool mapped;
    bool wide;        /* PE32+ */
    uint16_t machine; /* ReadyToRun images for other systems than Windows XOR it with a tag of the system */
    uint32_t time_stamp;
    uint32_t image_size;                             /* SizeOfImage */
    uint32_t headers_size;                           /* SizeOfHeaders */
    uint64_t image_base;                             /* preferred */
    struct pe_range directories[PE_DIRECTORY_COUNT]; /* {0, 0} if the image has none */
    uint16_t section_count;
    struct pe_section sections[PE_SECTION_CAP];
};

/* The CLR header (ECMA-335 II.25.3.3). */
struct pe_clr {
    struct pe_range metadata;
    struct pe_range managed_native_header; /* READYTORUN_HEADER of a single-file ReadyToRun image; {0, 0} elsewhere */
    uint32_t flags;
};

/* Reads headers and section table. ERR_FORMAT: not a PE image, or a malformed one. ERR_MEMORY: a header is missing. */
enum cdacq_status pe_open(const struct bytes *bytes, bool mapped, struct pe *ret);

/*
 * The offset in the source of the `size` bytes at `rva`, which the source may lack. ERR_FORMAT: they are not all inside
 * the image or, if it is flat, inside the file data of one section.
 */
enum cdacq_status pe_offset(const struct pe *pe, uint32_t rva, uint32_t size, uint64_t *ret);

/* The RVA of an offset in a flat image's file. False if no section's data are there. */
bool pe_rva(const struct pe *pe, uint64_t offset, uint32_t *ret);

/* ERR_MODULE: the image has no CLR header, so it is not an assembly. */
enum cdacq_status pe_read_clr(const struct pe *pe, struct pe_clr *ret);

/* The RVA of an export by its name; *ret_rva is 0 if there is none, or only a forwarder. */
enum cdacq_status pe_find_export(const struct pe *pe, const char *name, uint32_t *ret_rva);

/*
 * The RVA to which the 64-bit pointer at `rva` leads. A loader relocates the pointer if the image is not at its
 * preferred address. ERR_MODULE: the image has no base relocation (IMAGE_REL_BASED_DIR64) for it. ERR_FUEL: it has too
 * many.
 */
enum cdacq_status pe_relocated_pointer(const struct pe *pe, uint32_t rva, uint32_t *ret);

/*
 * Marks the bytes of [rva, rva + size) that a loader changes if the image is not at its preferred address: those of all
 * base relocations. Each relocation takes one from *budget, and each block a few, before it is read. Fails, with only
 * some of them marked, if the relocations are damaged (ERR_FORMAT) or too many (ERR_FUEL).
 */
enum cdacq_status pe_mark_relocated(const struct pe *pe, uint32_t rva, uint32_t size, unsigned *budget, bool *ret);

/* ---- An extent of a source, as a source ---- */

struct bytes_extent {
    struct bytes whole;
    uint64_t offset;
};

/*
 * The bytes [offset, offset + size) of `whole` as a source of their own, cut off at the end of `whole`. The source uses
 * `extent`, which must not be moved or reused as long as the source is used.
 */
struct bytes bytes_of_extent(const struct bytes *whole, uint64_t offset, uint64_t size, struct bytes_extent *extent);

/* The image's metadata as a source. Fails as pe_read_clr and pe_offset do. */
enum cdacq_status pe_metadata(const struct pe *pe, struct bytes_extent *extent, struct bytes *ret);

#endif
