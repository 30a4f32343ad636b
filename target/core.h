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

#include "target/core_file.h"
#include "target/file_policy.h"

/* `policy` must outlive the target. */
enum cdacq_status core_open_source(const struct core_source *source, struct file_policy *policy, bool record,
                                   struct target **ret, struct cdacq_error *err);

/* Opens the file at `path`. */
enum cdacq_status core_open(const char *path, struct file_policy *policy, bool record, struct target **ret,
                            struct cdacq_error *err);

/*
 * Releases the resident pages of a core; later reads map them again. Since Linux 6.18 one read byte may map 2 MB of
 * page cache around it, and look-ups mostly read other pages than opening does.
 */
void core_release_pages(struct target *core);

#endif
