/*
 * shared_memory.h: a file without a name (memfd) that a running process maps and shares with itself, mapped here, too.
 * .NET keeps the memory of its loader heaps in one, to write to code through a second mapping (W^X). Reading it costs
 * no system call; it changes while it is read.
 * Source: memfd_create(2); proc_pid_fd(5).
 */
#ifndef CDACQ_TARGET_SHARED_MEMORY_H
#define CDACQ_TARGET_SHARED_MEMORY_H

#include "util/base.h"

struct shared_memory {
    const uint8_t *bytes; /* NULL: it is not mapped */
    uint64_t size;
    uint64_t device, inode;
};

/*
 * Maps the file of this identity, if the process has it open, and if the kernel answers queries (target/proc_maps.h) on
 * `maps`: without that, nobody can tell whether the process still has the file where it had it.
 * Otherwise *ret is zeroed.
 */
void shared_memory_open(int pid, int maps, uint64_t device, uint64_t inode, struct shared_memory *ret);
void shared_memory_close(struct shared_memory *memory);

/* Whether the process has the file at [begin, end), from `offset` on, shared and readable. */
bool shared_memory_is_mapped(const struct shared_memory *memory, int maps, uint64_t begin, uint64_t end,
                             uint64_t offset);

#endif
