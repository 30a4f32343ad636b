/*
 * image.h: an ELF image as it is mapped into a target: its exported symbols, its build-id, and the bytes of its
 * relocated read-only data where the target itself does not hold them.
 *
 * Everything is read through the target first. Where pages are missing, the mapped file supplies what is the same in
 * every process (mapped_file.h). For the few objects that only relocation changes, image_read_relocated() takes the
 * file's bytes and applies its relative relocations (RELA, REL and RELR); it never yields what a process may have
 * written. Source: ELF gABI; GNU hash section; generic ABI proposal for RELR.
 */
#ifndef CDACQ_TARGET_IMAGE_H
#define CDACQ_TARGET_IMAGE_H

#include "formats/elf.h"
#include "target/mapped_file.h"
#include "target/reader.h"

enum { IMAGE_SEGMENT_MAX = 64, BUILD_ID_MAX = 32 };

struct image_segment {
    uint64_t vaddr, memory_size, file_size, file_offset; /* as the program header says */
    bool writable;
};

/* The DT_ values that are used; addresses are target addresses, 0 where there is none. */
struct image_dynamic {
    uint64_t symtab, strtab, strsz, gnu_hash, hash, rela, relasz, rel, relsz, relr, relrsz;
};

struct image {
    struct target *target;
    struct mapped_file *file;
    const char *path;
    uint64_t base;       /* where vaddr 0 is */
    uint64_t begin, end; /* of its segments, target addresses */
    struct elf_class elf;
    uint16_t machine;
    struct image_segment segments[IMAGE_SEGMENT_MAX];
    size_t segment_count;
    uint64_t dynamic_vaddr, dynamic_size;
    struct image_dynamic dynamic;
    bool dynamic_complete; /* read to its end, or there is none */
    uint8_t build_id[BUILD_ID_MAX];
    size_t build_id_size;
};

/*
 * Reads the headers of the ELF image whose first byte is at `base`. FORMAT where no ELF image is there, MEMORY where
 * its headers are nowhere.
 */
enum cdacq_status image_open(struct target *target, const struct mapping *first, struct image *ret,
                             struct cdacq_error *err);

/* The address of the exported data or function `name`, and its size. False when it is not exported, or unreadable. */
bool image_find_symbol(const struct image *image, const char *name, uint64_t *ret_address, uint64_t *ret_size);

/*
 * Copies [address, address + size) of the image's initialised data: from the target, and what that does not hold from
 * the file with relative relocations applied. `*ret_from_file` says whether any was. Fails with MEMORY where a pointer
 * is bound by name: what the loader found for it is in no file. Not for anything that the process writes to.
 */
enum cdacq_status image_read_relocated(const struct image *image, uint64_t address, void *buffer, size_t size,
                                       bool *ret_from_file, struct cdacq_error *err);

#endif
