/* no_files.h: a target of which no file is known, for the modules of an invented heap. */
#ifndef CDACQ_TESTS_SUPPORT_NO_FILES_H
#define CDACQ_TESTS_SUPPORT_NO_FILES_H

#include "contracts/module_cache.h"

static inline const char *no_path_at(void *context, uint64_t address)
{
    (void)context;
    (void)address;
    return NULL;
}

static inline bool no_next_assembly(void *context, struct reader *reader, const char *name, size_t length,
                                    size_t *position, uint64_t *ret_base)
{
    (void)context;
    (void)reader;
    (void)name;
    (void)length;
    (void)position;
    (void)ret_base;
    return false;
}

static inline bool no_relocated_pointer(void *context, struct reader *reader, uint64_t address, uint64_t *ret)
{
    (void)context;
    (void)reader;
    (void)address;
    (void)ret;
    return false;
}

static const struct module_files no_files = {
    .path_at = no_path_at, .next_assembly = no_next_assembly, .relocated_pointer = no_relocated_pointer};

#endif
