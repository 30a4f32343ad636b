/*
 * target.h: the memory of a process, from any source. A backend answers one question: which span is around an address.
 * Nothing here depends on .NET.
 *
 * Threads: the targets of cores and of caller's memory are immutable after open, except that a mapped file is resolved
 * once, under a lock. A live or recording target serves one thread at a time.
 */
#ifndef CDACQ_TARGET_TARGET_H
#define CDACQ_TARGET_TARGET_H

#include "util/base.h"
#include "util/hash_table.h"
#include "util/vector.h"
#include "target/work.h"
#include "cdacq/target.h"

#define PAGE_SIZE    UINT64_C(4096)
#define LINE_SIZE    UINT64_C(64)
#define PAGE_LINES   (PAGE_SIZE / LINE_SIZE)
#define RECENT_LINES 256

/* An interval of target memory with its bytes, which are valid as long as the target, or, if they can change, until the
   next epoch. */
struct span {
    uint64_t begin, end;
    const uint8_t *bytes; /* at `begin` */
    bool unverified;      /* they come from a file that nothing in the target could confirm */
    bool changing;        /* the process may change them */
};

enum mapping_access { MAPPING_UNKNOWN, MAPPING_READ_ONLY, MAPPING_WRITABLE };

/* A mapping that NT_FILE or /proc/PID/maps reports with a path. */
struct mapping {
    uint64_t begin, end;
    uint64_t offset; /* in the file, bytes */
    const char *path;
    enum mapping_access access;
    bool may_execute;         /* code in it may be executed, or that is not known */
    bool is_guard;            /* without access, as far as a core shows: a gap of an image */
    struct mapped_file *file; /* NULL where there is none */
    uint64_t reach;           /* the highest end, as a file offset, of it and those before it in file->mappings */
};

/* Relocated bytes of an image's file, read in place of memory that was not dumped. */
struct patch {
    uint64_t address;
    size_t size;
    struct patch *next;
    uint8_t bytes[];
};

/* A page, with a copy of its bytes or only a set of its lines. */
struct page {
    uint64_t address; /* of its first byte */
    uint8_t *bytes;   /* belongs to the owner of the set; may be NULL */
    uint64_t lines;   /* a bit for each of its PAGE_LINES lines; the owner gives it its meaning */
};

DEFINE_U64_TABLE(pages, struct page, address);

/* What was read from a recording target: lines, not whole pages, so that a snapshot holds no more than it needs. */
struct recording {
    struct pages pages;
    /* Lines that are in `pages`, each plus 1, by their low bits: most reads are of them. */
    uint64_t recent[RECENT_LINES];
    struct patch *patches;
};

struct file_root;
struct mapped_file;
struct read_log;
struct target;
struct target_process;
struct threads;

DEFINE_HASH_TABLE_TYPE(file_table, struct mapped_file *);

/* A PDB that a snapshot holds. The bytes belong to the target. */
struct target_pdb {
    const uint8_t *bytes;
    size_t size;
    uint8_t id[20];              /* PORTABLE_PDB_ID_SIZE */
    bool was_opened, is_damaged; /* the id is known, or that there is none; whoever searches the PDBs fills it in */
};

DEFINE_VECTOR(target_pdbs, struct target_pdb);

struct target_ops {
    bool (*memory_at)(struct target *target, uint64_t address, struct span *ret);
    /* As memory_at, but without files standing in. */
    bool (*dumped_at)(struct target *target, uint64_t address, struct span *ret);
    /*
     * Copies memory as it is now, and keeps nothing: for much of it. Returns the number of bytes before the first that
     * is missing. NULL: all memory is there as memory_at has it.
     */
    size_t (*peek)(struct target *target, uint64_t address, void *buffer, size_t size);
    /* Whether a core that ends early was to have this byte. NULL: there is no such core. */
    bool (*is_cut_at)(const struct target *target, uint64_t address);
    /* Whether memory there did not come within the time that there is for it. May be NULL. */
    bool (*is_silent_at)(struct target *target, uint64_t address);
    /* Fills the list of threads (target/threads.h). NULL where there are none. */
    enum cdacq_status (*threads)(struct target *target, struct threads *ret, struct cdacq_error *err);
    /* Fills in a zeroed struct. NULL where nothing is known. */
    void (*process)(struct target *target, struct target_process *ret);
    /* The next ten are of a process, and NULL for memory that does not change. */
    /* mapping_at and next_loaded: only while `partial` is set. list_mappings fails with IO and errno set, with
       NOT_MANAGED where there is no memory any more, or with NOMEM. */
    const struct mapping *(*mapping_at)(struct target *target, uint64_t address);
    const struct mapping *(*next_loaded)(struct target *target, bool (*accepts)(const char *path), uint64_t *position);
    enum cdacq_status (*list_mappings)(struct target *target);
    void (*begin_epoch)(struct target *target);
    void (*refresh)(struct target *target);
    /* Stops the process, which runs, and begins an epoch. `as_core`: its memory does not change any more. */
    enum cdacq_status (*stop)(struct target *target, bool as_core, struct cdacq_error *err);
    void (*resume)(struct target *target);
    bool (*unchanged)(struct target *target, const struct read_log *log, size_t from);
    bool (*distrust_file)(struct target *target, uint64_t address);
    /* Why nothing can be read any more: the process has ended or executed another program. NULL if it still runs. */
    const char *(*gone)(struct target *target);
    void (*destroy)(struct target *target);
    /* What was read there in this epoch is read again. NULL: it is that of one moment. */
    void (*renew)(struct target *target, uint64_t begin, uint64_t end);
};

/* How often and for how long a process was stopped, in nanoseconds. */
struct target_stops {
    uint64_t count, total, longest;
};

struct target {
    const struct target_ops *ops;
    enum cdacq_target_kind kind;
    int pid;
    bool changes;             /* a running process, opened without a stop or a recording; later stops leave it */
    bool is_held;             /* all threads of the process are stopped, and must not wait for long */
    uint64_t epoch;           /* of a running process, the number of the current epoch, from 1 on; otherwise 0 */
    uint16_t elf_machine;     /* EM_*; 0 where unknown */
    bool partial;             /* there are more mappings, which are asked for one by one */
    struct mapping *mappings; /* sorted by begin; none while `partial`: see target_list_mappings() */
    size_t mapping_count;
    uint64_t mapping_round;               /* advances when they are listed again: pointers to the old ones are void */
    struct mapped_file *files;            /* a list through `next` */
    size_t file_count;                    /* of that list */
    size_t unmapped_file_count;           /* of these; as of the last index */
    struct file_table file_table;         /* `files` by path */
    const struct mapping **file_mappings; /* grouped by file; mapped_file.mappings point into it */
    struct recording *recording;
    struct file_root *own_root; /* of a running process; NULL: it cannot be opened */
    struct target_pdbs pdbs;    /* of a snapshot */
    uint64_t pac_mask;          /* of arm64: the bits of a signed address that hold its signature; 0: not known */
    uint64_t vdso;              /* address of the kernel's ELF image in the process; 0 where unknown */
    const char *writer;         /* the program that wrote a core, guessed from its notes; static */
    uint64_t segment_count, dumped_size, missing_size;
    unsigned missing_filter; /* CDACQ_FILTER_PRIVATE, CDACQ_FILTER_SHARED */
    uint64_t open_units;     /* what opening it cost, and */
    uint32_t seek_units;     /* what finding a span costs beside the read, in units of fuel (target/reader.h) */
    struct work work;
    struct target_stops stops;
    uint64_t own_size; /* which bounds work: of a core as read, without holes; of a process, of its own in RAM; or 0 */
    bool truncated;
    const char *truncation; /* why only the beginning of a core was read, where that is known; owned by the backend */
};

/* Frees the target and resumes a stopped process. NULL is allowed. */
void target_destroy(struct target *target);

/* Frees what all backends share; each backend's destroy calls it. */
void target_deinit(struct target *target);

/*
 * The address within an address of code of arm64, which may be signed (pointer authentication): without the bits that
 * NT_ARM_PAC_MASK names or, where the target has none, without those above the 48 that addresses have by default.
 */
static inline uint64_t target_unsigned_address(const struct target *target, uint64_t address)
{
    return address & ~(target->pac_mask ? target->pac_mask : UINT64_MAX << 48);
}

/*
 * Begins an epoch: from now on, what the process may change is read again. Call reader_forget for each reader. Does
 * nothing if the memory does not change.
 */
void target_begin_epoch(struct target *target);

/*
 * Lists the mappings of a running process again, if they may have changed since they were last listed: when the size of
 * its memory has changed, and every second. Records of files stay. mapping_round says whether there are others now.
 */
void target_refresh(struct target *target);

/*
 * Within an epoch, what was read of [begin, end) is read again, for what has changed since. What readers have of it
 * changes with it.
 */
static inline void target_renew(struct target *target, uint64_t begin, uint64_t end)
{
    if (target->changes)
        target->ops->renew(target, begin, end);
}

/* Whether the process still holds what the log says was read in this epoch, from item `from` on. */
bool target_unchanged(struct target *target, const struct read_log *log, size_t from);

/*
 * The process has other memory at `address` than the file that is listed as mapped there, which supplies nothing from
 * now on. The mappings are listed again with the next target_refresh(). False if no file supplies anything there.
 */
bool target_distrust_file(struct target *target, uint64_t address);

/* Why nothing can be read any more, or NULL. */
const char *target_gone(struct target *target);

/* Fails with IO, and that reason, if nothing can be read any more. */
enum cdacq_status target_check_gone(struct target *target, uint64_t address, struct cdacq_error *err);

/* The mapping that holds `address`, or NULL. */
const struct mapping *target_mapping_at(struct target *target, uint64_t address);

/*
 * While `partial`: the next mapping, from *position on, of the beginning of a library that is loaded and whose path
 * `accepts`; *position, first 0, is moved on. Other files with executable mappings may be among them. NULL: there is no
 * more, or all mappings are listed now.
 */
const struct mapping *target_next_loaded(struct target *target, bool (*accepts)(const char *path), uint64_t *position);

/* Sees to it that `mappings`, and those of each mapped_file, are all that there are. */
enum cdacq_status target_list_mappings(struct target *target, struct cdacq_error *err);

/* Sorts the mappings by address. A backend calls it after listing them. */
void target_sort_mappings(struct target *target);

/* Records that [address, address + size) was read; only for a recording target. */
void target_record(struct target *target, uint64_t address, uint64_t size);
void target_record_patch(struct target *target, uint64_t address, const void *bytes, size_t size);

#endif
