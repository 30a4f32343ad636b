/*
 * core.h: an ELF core dump, of either class and byte order, as a target. The file (core_file.h) is mapped or, with the
 * policy's `pread`, read a page at a time. What its notes say of the process is in core_process.h.
 *
 * The core's own bytes always win. What lies beyond a segment's p_filesz was not dumped: it is missing, not zero,
 * unless the file that NT_FILE names may stand in (mapped_file.h). Source: ELF gABI chapter 5; core(5); Linux
 * fs/binfmt_elf.c for NT_FILE and PN_XNUM.
 */
#ifndef CDACQ_TARGET_CORE_H
#define CDACQ_TARGET_CORE_H

#include "cdacq/error.h"
#include "util/base.h"

struct core_source;
struct elf_class;
struct elf_segment;
struct file_policy;
struct mapped_file;
struct target;

/* `policy` must outlive the target. */
enum cdacq_status core_open_source(const struct core_source *source, struct file_policy *policy, bool record,
                                   struct target **ret, struct cdacq_error *err);

/* Opens the file at `path`. */
enum cdacq_status core_open(const char *path, struct file_policy *policy, bool record, struct target **ret,
                            struct cdacq_error *err);

/* ---- For one who writes the core again. All of them are for targets that core_open() or its sibling has made. ---- */

/* A part of the memory that a core knows: its own bytes, or what a file may stand in for. */
struct core_part {
    uint64_t begin, end;
    struct mapped_file *file; /* NULL: the core has the bytes */
    uint64_t file_offset;     /* of `begin` */
};

/*
 * The first part that ends above `address`, without what of it is below. False: there is none. Parts do not overlap.
 */
bool core_next_part(struct target *core, uint64_t address, struct core_part *ret);

/* The class of the core, and its program header `index`, as far as the file has them. False: there are not so many. */
struct elf_class core_class(const struct target *core);
bool core_program_header(struct target *core, uint64_t index, struct elf_segment *ret);

/* Bytes of the core's file, which are valid until the target is destroyed. False as core_file_keep(). */
bool core_bytes(struct target *core, uint64_t offset, uint64_t size, const uint8_t **ret);

/*
 * Whether the core has all mappings that the process has written to, so that a part that it lacks is as its file was:
 * the kernel and gdb leave out a private mapping only if it is unchanged, and a shared one has the file's own pages.
 */
bool core_has_changed_memory(const struct target *core);

/*
 * Releases the resident pages of a core; later reads map them again. Since Linux 6.18 one read byte may map 2 MB of
 * page cache around it, and look-ups mostly read other pages than opening does.
 */
void core_release_pages(struct target *core);

#endif
