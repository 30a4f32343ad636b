/*
 * live_mappings.h: the mappings of a running process. They are asked for one by one, until somebody needs them all or
 * many were asked for: a question about one address needs a dozen, one about a thousand some seventy, and a process has
 * hundreds. Afterwards they are listed, and listed again when they may have changed. Kernels that answer no queries
 * (target/proc_maps.h) list them at once.
 */
#ifndef CDACQ_TARGET_LIVE_MAPPINGS_H
#define CDACQ_TARGET_LIVE_MAPPINGS_H

#include "target/file_policy.h"
#include "target/live_pages.h"
#include "target/proc_maps.h"

enum {
    LIVE_FOUND_MAX = 128, /* answers about single addresses that are kept before all mappings are listed */
    KNOWN_DEVICES = 8,    /* most processes map files of two or three */
};

/* What tells files from each other, apart from some file systems with subvolumes. */
struct file_number {
    uint64_t device, inode;
};

DEFINE_HASH_TABLE_TYPE(files_by_number, struct mapped_file *);

/* Addresses whose pages another program or machine supplies. */
struct far_range {
    uint64_t begin, end;
};

DEFINE_VECTOR(far_ranges, struct far_range);

/* A device of mappings, and whether it is no local file system. */
struct known_device {
    uint64_t device; /* 0: none */
    bool is_far;
};

struct live_mappings {
    struct target *target;
    struct file_policy *policy;
    int file;      /* /proc/PID/maps, which stays that of the program that was opened */
    int statm;     /* /proc/PID/statm: its first number changes when most mappings come and go */
    uint64_t size; /* that number, when mappings were last listed or forgotten */
    uint64_t time; /* and when that was, in seconds; 0: they are out of date */
    /* Found one by one since the last refresh, while target->partial; without a file: no file is mapped there. */
    struct mapping found[LIVE_FOUND_MAX];
    uint8_t order[LIVE_FOUND_MAX];  /* of `found`, by where they begin */
    bool far_found[LIVE_FOUND_MAX]; /* likewise: another program or machine supplies the pages */
    size_t found_count;
    struct far_ranges far; /* in the list of all, by their addresses */
    struct known_device devices[KNOWN_DEVICES];
    size_t next_device;           /* of `devices`, that is replaced next */
    struct files_by_number files; /* that have been met */
    char name[PROC_MAPS_NAME];    /* the path that was asked for last */
};

/*
 * `one_by_one`: where the kernel can, all are listed only when needed. IO for a process that may not be read or has
 * ended. Beforehand, the files of *ret are -1 and the rest is zero; close it in any case.
 */
enum cdacq_status live_mappings_open(struct target *target, struct file_policy *policy, bool one_by_one,
                                     struct live_mappings *ret, struct cdacq_error *err);
void live_mappings_close(struct live_mappings *mappings);

/*
 * What the process has in RAM, in bytes; never 0. Pages that it shares, such as those of its loader heaps, count only
 * as far as those of its own: a process can map one page a million times.
 */
uint64_t live_mappings_own_size(const struct live_mappings *mappings);

/* Lists all. NOT_MANAGED, and those known stay, if the process has no memory any more; IO with errno set. */
enum cdacq_status live_mappings_list(struct live_mappings *mappings);

/* Whether they may have changed: the size of the process's memory has, or a second has passed. */
bool live_mappings_are_due(const struct live_mappings *mappings);

/* Lists them again, or forgets those found one by one. */
void live_mappings_refresh(struct live_mappings *mappings);

/* They are due. */
void live_mappings_expire(struct live_mappings *mappings);

/* Whether the pages around an address may never come, and up to where that is so. `context` are the live_mappings. */
struct live_part live_mappings_part_at(void *context, uint64_t address);

/* As target_mapping_at() and target_next_loaded(), while target->partial. */
const struct mapping *live_mappings_at(struct live_mappings *mappings, uint64_t address);
const struct mapping *live_mappings_next_loaded(struct live_mappings *mappings, bool (*accepts)(const char *path),
                                                uint64_t *position);

#endif
