/*
 * image_file.h: an ELF image on disk as a target without a process. All bytes come from the file, relocated as a loader
 * does it.
 */
#ifndef CDACQ_TARGET_IMAGE_FILE_H
#define CDACQ_TARGET_IMAGE_FILE_H

#include "util/error.h"
#include "target/mapped_file.h"

/* *ret_path is the path of the target's mappings. The caller frees it after the target. */
enum cdacq_status image_file_open(const char *path, struct file_policy *policy, bool record, char **ret_path,
                                  struct target **ret, struct cdacq_error *err);

#endif
