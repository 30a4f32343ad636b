/*
 * core_writer.h: writes ELF core files (ET_CORE) of either class and byte order. It writes a stream, for any
 * number of segments (PN_XNUM beyond 65,534). The same image always gives the same bytes.
 *
 * Unless the file is packed, the offset of a segment's bytes is congruent to its address modulo CORE_WRITER_PAGE, so
 * that the file can be mapped page by page. The bytes from filesz to memsz are missing from the core. Segments are
 * written in the caller's order; ELF requires ascending addresses and no overlap.
 *
 * Threads: no state.
 * Source: ELF gABI chapters 4 and 5; core(5); Linux fs/binfmt_elf.c for NT_AUXV, NT_FILE, NT_PRPSINFO,
 * NT_PRSTATUS and PN_XNUM.
 */
#ifndef CDACQ_FORMATS_CORE_WRITER_H
#define CDACQ_FORMATS_CORE_WRITER_H

#include <stdio.h>

#include "util/base.h"
#include "cdacq/error.h"

enum { CORE_WRITER_PAGE = 4096 };

/* As PF_X, PF_W, PF_R; the last one is of those that ELF leaves to operating systems (PF_MASKOS). */
enum core_writer_flags {
    CORE_WRITER_X = 1,
    CORE_WRITER_W = 2,
    CORE_WRITER_R = 4,
    CORE_WRITER_UNCONFIRMED = 0x00100000, /* of a file; nothing shows that the process had mapped it */
};

/*
 * A PT_LOAD. `bytes` has `filesz` bytes, at most `memsz`; it may be NULL if filesz is 0, or if core_writer_image.read
 * supplies them.
 */
struct core_writer_segment {
    uint64_t vaddr;
    const void *bytes;
    uint64_t filesz, memsz;
    uint32_t flags; /* enum core_writer_flags */
};

/* An entry of NT_FILE: [begin, end) is mapped from `path` at `offset`, in bytes. */
struct core_writer_mapping {
    uint64_t begin, end, offset;
    const char *path;
};

/* A thread: an NT_PRSTATUS. */
struct core_writer_thread {
    int tid;
    int signal;               /* that ended the process, of every thread, as the kernel writes it; 0: none */
    bool died;                /* the thread that got it: an NT_SIGINFO follows, with the next four */
    int code;                 /* si_code */
    uint64_t address;         /* si_addr, of a fault; else 0 and */
    int sender_pid;           /* si_pid */
    uint32_t sender_uid;      /* si_uid */
    const uint8_t *registers; /* as the machine's kernel writes them */
    size_t registers_size;
    uint64_t pac_mask; /* of arm64: the bits of signed addresses; 0: no NT_ARM_PAC_MASK is written */
    const char *name;  /* NULL: no CORE_WRITER_THREAD_NAME is written */
};

#define CORE_WRITER_NOTE "CDACQ" /* name of the notes of a core that `cdacq snapshot` writes */

/* gdb goes by the type alone, whatever the name: these are no NT_* that it knows, so that it passes over the notes. */
enum core_writer_note {
    CORE_WRITER_MARK = 0x43444301,        /* empty: who wrote the core */
    CORE_WRITER_PDB = 0x43444302,         /* the bytes of a portable PDB, which has its id in it */
    CORE_WRITER_ARGUMENTS = 0x43444303,   /* the command line, separated by spaces */
    CORE_WRITER_PROGRAM = 0x43444304,     /* the path of the program */
    CORE_WRITER_THREAD_NAME = 0x43444305, /* the kernel's name of the thread whose NT_PRSTATUS is before it */
    CORE_WRITER_PDB_BEFORE = 2,           /* the same in snapshots of earlier versions */
};

/* Notes of another core, as they are in it. */
struct core_writer_notes {
    const void *bytes;
    size_t size;
};

/* Bytes of a note of that kind, at most 1 GiB. */
struct core_writer_pdb {
    const void *bytes;
    size_t size;
};

struct core_writer_image {
    bool wide; /* ELFCLASS64, else ELFCLASS32 */
    bool big_endian;
    bool marked;           /* with a CORE_WRITER_MARK */
    bool packed;           /* no padding between segments: smaller if many of them are less than a page */
    uint16_t machine;      /* EM_* */
    int pid;               /* 0: no NT_PRPSINFO is written */
    const char *name;      /* of the process, for NT_PRPSINFO; may be NULL */
    const char *arguments; /* likewise, its command line; cut after 79 bytes, and whole in a note of its own */
    const char *program;   /* its path; NULL: no CORE_WRITER_PROGRAM is written */
    uint64_t vdso;         /* its address, for NT_AUXV, without which ClrMD opens no core; 0: none is written */
    unsigned page_size;    /* the unit of NT_FILE's offsets; 0: CORE_WRITER_PAGE if all offsets allow it, otherwise 1 */
    const struct core_writer_mapping *mappings; /* NT_FILE is written even if there are none */
    size_t mapping_count;
    const struct core_writer_thread *threads; /* written in this order; readers take the first for the current one */
    size_t thread_count;
    const struct core_writer_pdb *pdbs;
    size_t pdb_count;
    const struct core_writer_segment *segments;
    size_t segment_count;
    const struct core_writer_notes *notes; /* if there are any: they are written, and no others */
    size_t note_count;
    /*
     * Supplies bytes of the segments that have none: at most `size` from `address` on, valid until it is called again.
     * Returns their number, not 0; *ret_bytes NULL: they are zero.
     */
    size_t (*read)(void *context, uint64_t address, size_t size, const void **ret_bytes);
    void *context;
};

/*
 * Writes the image at the current position of `file`, which need not be seekable, and flushes it. *ret_size, which may
 * be NULL, is the number of bytes written. Fails with ARGUMENT if a value does not fit its field, or with IO.
 */
enum cdacq_status core_writer_write(FILE *file, const struct core_writer_image *image, uint64_t *ret_size,
                                    struct cdacq_error *err);

#endif
