/*
 * debuginfod.h: ELF files by their build-id from the servers that DEBUGINFOD_URLS names, through elfutils' client,
 * which is loaded only then: linking it would cost every start. Nothing is asked over the network unless the user wants
 * that.
 */
#ifndef CDACQ_API_DEBUGINFOD_H
#define CDACQ_API_DEBUGINFOD_H

#include "util/base.h"

/* The path of a local copy, allocated; NULL where there is no client, no server, or no such file. */
char *debuginfod_fetch(const uint8_t *build_id, size_t size);

#endif
