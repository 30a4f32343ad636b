/*
 * live_pages.h: memory of a running process, read when it is first needed in an epoch. What was read stays as it is
 * until the next epoch begins, and is then read again. A page is read alone, or with those after it if the page
 * before it was read. Where the kernel lacks process_vm_readv, or a filter on system calls forbids it, /proc/PID/mem is
 * read in its place. Memory whose pages may never come, because another program or machine supplies them, is read by
 * another process (util/helper). One thread at a time.
 * Source: process_vm_readv(2), proc(5), seccomp(2).
 */
#ifndef CDACQ_TARGET_LIVE_PAGES_H
#define CDACQ_TARGET_LIVE_PAGES_H

#include "target/read_log.h"
#include "target/target.h"

enum {
    LIVE_PAGE_MAX = 1 << 18,  /* 1 GiB, without a bound on memory */
    LIVE_PAGE_KEPT = 1 << 14, /* when an epoch begins: 64 MiB */
};

/* A page, valid in one epoch. */
struct live_page {
    uint64_t address;
    uint8_t *bytes; /* in a slab; NULL if it has never been read */
    uint64_t epoch; /* in which it was last asked for */
    bool missing;   /* it could not be read then */
    bool is_far;    /* it was read by the helper */
    uint64_t check; /* the last check that it was part of */
    size_t place;   /* among the pages of that check */
};

DEFINE_U64_TABLE(live_page_table, struct live_page, address);

/* The part of a page that is read again: all that was read of it lies within. */
struct checked_page {
    uint64_t address;
    const uint8_t *bytes;
    uint32_t begin, end; /* offsets in the page */
    uint32_t at;         /* of `begin` in the scratch memory */
    bool differs, is_far;
};

DEFINE_VECTOR(checked_pages, struct checked_page);

/* Memory for the bytes of pages. */
struct live_slab;

/* Addresses up to `end` whose pages may never come, or that the process has by itself. */
struct live_part {
    uint64_t end;
    bool is_far;
};

struct live_pages {
    struct live_page_table table;
    struct live_slab *slabs; /* the newest first */
    struct work *work;       /* which has its bound on memory; NULL: there is none */
    uint64_t charged;        /* bytes that were taken from that */
    int pid;
    int memory;      /* /proc/PID/mem, or -1: it stays that of the program that was opened; owned by the caller */
    bool by_file;    /* process_vm_readv is not available any more: `memory` is read */
    int error;       /* errno of the last read that failed; 0 if none has */
    uint64_t checks; /* counts them */
    struct live_part (*part_at)(void *context, uint64_t address); /* NULL: all is near */
    void *context;
    struct checked_pages checked;
    uint8_t *scratch;
};

void live_pages_deinit(struct live_pages *pages);

/* Forgets what was read, if that is much. Spans of earlier epochs are no longer valid. */
void live_pages_trim(struct live_pages *pages);

/* The span around `address` as the epoch `now` has it. False if the byte is missing. Valid until live_pages_trim. */
bool live_pages_at(struct live_pages *pages, uint64_t now, uint64_t address, struct span *ret);

/*
 * Reads the pages of [begin, end) again, as the epoch `now` has them from here on: with one call, those that were read
 * before and that are near; others when they are next needed. Spans of them stay valid, and show the new bytes.
 */
void live_pages_renew(struct live_pages *pages, uint64_t now, uint64_t begin, uint64_t end);

/* Reads memory as it is now, and keeps nothing. Returns the number of bytes before the first one that is missing. */
size_t live_pages_peek(struct live_pages *pages, uint64_t address, void *buffer, size_t size);

/*
 * Reads again what the epoch `now` has read, from the log's item `from` on. True if all of it is the same: there was
 * a moment between the last of the first reads and the first of these at which the process held all of it. False also
 * if memory runs out or the process has ended.
 */
bool live_pages_unchanged(struct live_pages *pages, uint64_t now, const struct read_log *log, size_t from);

/* The first line of a mapped file that the process does not hold where the file is mapped; NULL if it has them all. */
const struct logged_file *live_pages_differing_file(struct live_pages *pages, const struct logged_files *files);

#endif
