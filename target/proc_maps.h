/*
 * proc_maps.h: the parts of files that a process maps. The kernel is asked for one mapping after the other
 * (PROCMAP_QUERY, Linux 6.11), which takes half as long as its text does, or else for the text of /proc/PID/maps.
 * Source: proc_pid_maps(5); struct procmap_query in include/uapi/linux/fs.h of Linux.
 */
#ifndef CDACQ_TARGET_PROC_MAPS_H
#define CDACQ_TARGET_PROC_MAPS_H

#include "util/base.h"

enum { PROC_MAPS_NAME = 4096 }; /* bytes of a path; a longer one cannot be opened */

/* A mapping of a file that has an absolute path. */
struct proc_map {
    uint64_t begin, end;
    uint64_t offset; /* in the file, bytes */
    uint64_t device, inode;
    const char *path; /* " (deleted)" follows that of a file that was deleted; valid until the next one is listed */
    bool readable, writable, executable;
};

/* A listing, from the lowest address on. */
struct proc_maps {
    int file;
    bool executable;        /* only mappings that may be executed */
    bool nameless;          /* also mappings of files that have no absolute path, or one that is too long */
    bool queries;           /* by queries; otherwise by text */
    uint64_t next;          /* mappings that end here or below are left out, or have been listed */
    uint64_t device, inode; /* queries: of the last mapping, if it is of a memfd; otherwise 0 */
    unsigned fuel;          /* queries: mappings still allowed */
    char *text, *rest;      /* text: all of it, and what is still to come */
    char name[PROC_MAPS_NAME];
};

/* Opens /proc/PID/maps, which stays that of the program that the process executes now. -1 with errno set. */
int proc_maps_open(int pid);

/*
 * Begins a listing of an open /proc/PID/maps, or of what of it may be executed; proc_maps_end() ends it in any case.
 * Returns 0, or an errno: ESRCH if the process has no memory any more.
 */
int proc_maps_begin(int file, bool executable, struct proc_maps *ret);
void proc_maps_end(struct proc_maps *maps);

/* The next mapping; false after the last one. */
bool proc_maps_next(struct proc_maps *maps, struct proc_map *ret);

/*
 * The mapping of a file around an address, as proc_maps_next() has it, with the path in `name`, of PROC_MAPS_NAME
 * bytes; or else addresses around it where no file with an absolute path is mapped, and a path of NULL. False with
 * errno set if the kernel does not tell, or ENOENT for the last address of all.
 */
bool proc_maps_part_at(int file, uint64_t address, char *name, struct proc_map *ret);

#endif
