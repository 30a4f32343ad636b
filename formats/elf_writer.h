/*
 * elf_writer.h: writes ELF files with sections (ET_EXEC): the writer gets what the sections hold and lays them out. The
 * bytes are passed on in the order of the file, so nothing is held in memory. Each section with addresses (SHF_ALLOC)
 * also is a PT_LOAD, so that tools that look at segments find the addresses. The last section is a build-id, a hash of
 * the other contents. The same sections always give the same bytes.
 *
 * Threads: no state.
 * Source: ELF gABI chapters 4 and 5.
 */
#ifndef CDACQ_FORMATS_ELF_WRITER_H
#define CDACQ_FORMATS_ELF_WRITER_H

#include "util/base.h"

enum {
    ELF_WRITER_SECTIONS_MAX = 60000, /* the numbers from 0xff00 on have other meanings */
    ELF_WRITER_BUILD_ID_SIZE = 20,
};

struct elf_writer_section {
    const char *name; /* of at most 64 bytes */
    uint32_t type;    /* SHT_* */
    uint64_t flags, address, size, align, entry_size;
    uint32_t link, info; /* sections count from 1 */
    const void *bytes;   /* `size` of them; NULL: `read` has them, or the type is SHT_NOBITS */
};

struct elf_writer_image {
    bool wide; /* ELFCLASS64, else ELFCLASS32 */
    bool big_endian;
    uint16_t type, machine; /* ET_*, EM_* */
    /*
     * Segments claim that addresses are offsets in the file, and that they have no bytes in it: for perf, which
     * converts the addresses of symbols to the offsets of samples by the segments.
     */
    bool addresses_are_offsets;
    const struct elf_writer_section *sections;
    size_t section_count; /* at most ELF_WRITER_SECTIONS_MAX */
    /* Fills `buffer` with the bytes at `offset` of a section whose `bytes` are NULL. */
    void (*read)(void *context, size_t section, uint64_t offset, void *buffer, size_t size);
    bool (*write)(void *context, const void *bytes, size_t size); /* false ends the writing */
    void *context;                                                /* of both */
};

/* Writes the file. False if `write` ended it, or out of memory, or a value does not fit the class. */
bool elf_writer_write(const struct elf_writer_image *image, uint8_t ret_build_id[ELF_WRITER_BUILD_ID_SIZE]);

#endif
