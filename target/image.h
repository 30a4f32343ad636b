/*
 * image.h: an ELF image that is mapped into a target: its exported symbols, build-id and relocated read-only data.
 *
 * Everything is read from the target first. Where pages are missing, the mapped file supplies what is the same in every
 * process (mapped_file.h). For objects that only relocation changes, image_read_relocated() applies relative
 * relocations (RELA, REL and RELR) to the file's bytes. Source: ELF gABI; GNU hash section; generic ABI proposal for
 * RELR.
 */
#ifndef CDACQ_TARGET_IMAGE_H
#define CDACQ_TARGET_IMAGE_H

#include "cdacq/error.h"
#include "formats/elf.h"
#include "util/base.h"

struct mapped_file;
struct mapping;
struct target;

enum { IMAGE_SEGMENT_MAX = 64, BUILD_ID_MAX = 32 };

struct image_segment {
    uint64_t vaddr, memory_size, file_size, file_offset; /* as the program header says */
    bool writable, executable;
};

/* Values of the DT_ tags in use. Addresses are those of the target, 0 where there is none. */
struct image_dynamic {
    uint64_t symtab, strtab, strsz, gnu_hash, hash, rela, relasz, rel, relsz, relr, relrsz;
};

struct image {
    struct target *target;
    struct mapped_file *file;
    const char *path;
    uint64_t base;       /* the address of vaddr 0 */
    uint64_t begin, end; /* of all segments, as addresses */
    struct elf_class elf;
    uint16_t machine;
    struct image_segment segments[IMAGE_SEGMENT_MAX];
    size_t segment_count;
    uint64_t entry_vaddr; /* 0: there is none */
    uint64_t dynamic_vaddr, dynamic_size;
    uint64_t eh_frame_hdr_vaddr, eh_frame_hdr_size; /* PT_GNU_EH_FRAME; size 0: there is none */
    struct image_dynamic dynamic;
    bool dynamic_complete; /* read to the end, or there is none */
    uint8_t build_id[BUILD_ID_MAX];
    size_t build_id_size;
};

/*
 * Reads the headers of the ELF image that begins at `first`. FORMAT where there is no ELF image, MEMORY where neither
 * the target nor the file has the headers.
 */
enum cdacq_status image_open(struct target *target, const struct mapping *first, struct image *ret,
                             struct cdacq_error *err);

/* The address and size of the exported symbol `name`. False where it is not exported or cannot be read. */
bool image_find_symbol(const struct image *image, const char *name, uint64_t *ret_address, uint64_t *ret_size);

/*
 * Copies [address, address + size) of the image's initialised data from the target or, where it lacks bytes, from the
 * file with relative relocations applied; then *ret_from_file is true. Fails with MEMORY where a pointer is bound by
 * name, because no file holds its value. Not for data that the process writes to.
 */
enum cdacq_status image_read_relocated(const struct image *image, uint64_t address, void *buffer, size_t size,
                                       bool *ret_from_file, struct cdacq_error *err);

#endif
