/*
 * core.h: an ELF core dump as a target. The file is mapped and never copied, or, where the policy says so, read a page
 * at a time with pread, for a file that may be cut while it is open. Either class and byte order will do, and more than
 * 65,535 segments (PN_XNUM) too.
 *
 * What the core holds always wins. What lies beyond a segment's p_filesz was not dumped: it is missing, not zero, and
 * comes from the file that NT_FILE names there if that may stand in (mapped_file.h), else from nowhere.
 * Source: ELF gABI chapter 5; core(5); Linux fs/binfmt_elf.c for NT_FILE and PN_XNUM.
 */
#ifndef CDACQ_TARGET_CORE_H
#define CDACQ_TARGET_CORE_H

#include "target/mapped_file.h"

/* `policy` must outlive the target. */
enum cdacq_status core_open(const char *path, struct file_policy *policy, bool record, struct target **ret,
                            struct cdacq_error *err);

/*
 * Gives back the resident pages of a core; what is read later is mapped again. Since Linux 6.18 one touched byte may
 * map the whole 2 MB of page cache around it, and what opening read is mostly not what questions read.
 */
void core_release_pages(struct target *core);

#endif
