/*
 * core.h: an ELF core dump, of either class and byte order, as a target. The file is mapped or, with the policy's
 * `pread`, read a page at a time, for a file that may be truncated while it is open. A core that is compressed, or that
 * comes from a pipe or socket, is first stored in a temporary file (core_store.h).
 *
 * The core's own bytes always win. What lies beyond a segment's p_filesz was not dumped: it is missing, not zero,
 * unless the file that NT_FILE names may stand in (mapped_file.h). Source: ELF gABI chapter 5; core(5); Linux
 * fs/binfmt_elf.c for NT_FILE and PN_XNUM.
 */
#ifndef CDACQ_TARGET_CORE_H
#define CDACQ_TARGET_CORE_H

#include "target/core_store.h"
#include "target/file_policy.h"

/* Where a core is read from. */
struct core_source {
    const char *path; /* or, with `fd`, only a name for messages */
    int fd;           /* -1: `path` is opened; otherwise the caller's, read from its position */
    struct core_store_options store;
};

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
