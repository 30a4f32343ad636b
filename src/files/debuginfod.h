/*
 * debuginfod.h: fetches ELF files by build-id from the servers in DEBUGINFOD_URLS. elfutils' client is loaded on
 * demand, because linking it would slow down every start. Used only with CDACQ_OPEN_DEBUGINFOD.
 */
#ifndef CDACQ_FILES_DEBUGINFOD_H
#define CDACQ_FILES_DEBUGINFOD_H

#include "cdacq/target.h"
#include "target/file_policy.h"

/* Who hears of what is fetched: the fields of struct cdacq_options. The context of the functions. */
struct debuginfod_listener {
    void (*fetching)(const struct cdacq_need *file, uint64_t done, uint64_t total, void *context); /* may be NULL */
    void *context;
};

/* Fails if there is no client, no server or no such file. */
file_fetch debuginfod_fetch;

/* The same for the file with debugging information. */
file_fetch debuginfod_fetch_debug_file;

#endif
