/*
 * module_files.h: what the contracts need to know of the files that a target has mapped.
 */
#ifndef CDACQ_API_MODULE_FILES_H
#define CDACQ_API_MODULE_FILES_H

#include "contracts/loader.h"

/* For module_cache_init(). The target outlives the cache. */
struct module_files module_files_of(struct target *target);

#endif
