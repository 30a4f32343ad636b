/*
 * debuginfod.h: fetches ELF files by build-id from the servers in DEBUGINFOD_URLS. elfutils' client is loaded on
 * demand, because linking it would slow down every start. Used only with CDACQ_OPEN_DEBUGINFOD.
 */
#ifndef CDACQ_API_DEBUGINFOD_H
#define CDACQ_API_DEBUGINFOD_H

#include "util/base.h"

/* The path of a local copy, allocated; NULL if there is no client, no server or no such file. */
char *debuginfod_fetch(const uint8_t *build_id, size_t size);

/* The same for the file with debugging information. */
char *debuginfod_fetch_debug_file(const uint8_t *build_id, size_t size);

#endif
