/*
 * target.h: memory of a process, wherever it comes from. A backend answers one question: the widest readable run of
 * bytes around an address. Nothing here knows what .NET is.
 *
 * Threads: the targets of cores and of caller's memory are immutable after open, except that a mapped file is resolved
 * once, under a lock, and that a recording target notes pages. A live or recording target serves one thread at a time.
 */
#ifndef CDACQ_TARGET_TARGET_H
#define CDACQ_TARGET_TARGET_H

#include "util/base.h"
#include "cdacq/target.h"
#include "target/pages.h"

/* A run of target memory at hand. `bytes` belongs to `begin` and is good for the target's life. */
struct span {
    uint64_t begin, end;
    const uint8_t *bytes;
    bool unverified; /* the bytes come from a file that nothing in the target could confirm */
};

enum mapping_access { MAPPING_UNKNOWN, MAPPING_READ_ONLY, MAPPING_WRITABLE };

/* A file-backed or named mapping, as NT_FILE or /proc/PID/maps tells it. */
struct mapping {
    uint64_t begin, end;
    uint64_t offset; /* in the file, bytes */
    const char *path;
    enum mapping_access access;
    struct mapped_file *file; /* NULL where no file stands behind it */
    uint64_t reach;           /* file offset: the furthest end of it and of those before it in file->mappings */
};

/* Bytes that stand for target memory although no page holds them: a relocated part of an image's file. */
struct patch {
    uint64_t address;
    size_t size;
    struct patch *next;
    uint8_t bytes[];
};

/*
 * What a recording target has seen being read. Lines, not whole pages: what lies beside it in the process's heap, its
 * environment for instance, is nobody's business.
 */
struct recording {
    struct pages pages;
    struct patch *patches;
};

struct target;

DEFINE_HASH_TABLE_TYPE(file_table, struct mapped_file *);

struct target_ops {
    bool (*memory_at)(struct target *target, uint64_t address, struct span *ret);
    /* As memory_at, but only what the target itself holds: no file stands in. */
    bool (*dumped_at)(struct target *target, uint64_t address, struct span *ret);
    void (*destroy)(struct target *target);
};

struct target {
    const struct target_ops *ops;
    enum cdacq_target_kind kind;
    int pid;
    uint16_t elf_machine;     /* EM_*, 0 where not known */
    struct mapping *mappings; /* sorted by begin */
    size_t mapping_count;
    struct mapped_file *files;            /* a list through `next` */
    struct file_table file_table;         /* the same by path */
    const struct mapping **file_mappings; /* those of each file together: parts of it are mapped_file.mappings */
    struct recording *recording;
    const char *writer; /* of a core: who made it, as far as its notes tell; a static string */
    uint64_t segment_count, dumped_size, missing_size;
    bool truncated;
};

/* Frees the target and what it owns; lets a stopped process run. NULL is fine. */
void target_destroy(struct target *target);

/* Frees what every backend shares; for the backends' own destroy. */
void target_deinit(struct target *target);

/* The mapping that holds `address`, or NULL. */
const struct mapping *target_mapping_at(const struct target *target, uint64_t address);

/* Sorts the mappings by address; a backend calls it once it has listed them. */
void target_sort_mappings(struct target *target);

/* Notes that [address, address + size) was read; only for a recording target. */
void target_record(struct target *target, uint64_t address, uint64_t size);
void target_record_patch(struct target *target, uint64_t address, const void *bytes, size_t size);

#endif
