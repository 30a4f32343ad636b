/*
 * image_file.h: an ELF image as a target of its own, without a process: what a runtime's file says of itself. Nothing
 * of it is in memory, so all that is read comes from the file, relocated as a loader would do it.
 */
#ifndef CDACQ_TARGET_IMAGE_FILE_H
#define CDACQ_TARGET_IMAGE_FILE_H

#include "util/error.h"
#include "target/mapped_file.h"

/* *ret_path is what the target's mappings call the file: it must outlive the target, and is the caller's to free. */
enum cdacq_status image_file_open(const char *path, struct file_policy *policy, bool record, char **ret_path,
                                  struct target **ret, struct cdacq_error *err);

#endif
