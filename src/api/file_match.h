/*
 * file_match.h: whether a file on disk is the one that a target had mapped, and which of its bytes are the same in
 * every process. Everything that the target itself holds of the file is compared: build-id, PE time stamp and size,
 * MVID, runtime functions, read-only pages. One difference refuses the file; one match confirms it. Source: ELF
 * gABI (build-id note); PE/COFF; ECMA-335 II.22.30 (Mvid); readytorun-format.md, section 102.
 */
#ifndef CDACQ_API_FILE_MATCH_H
#define CDACQ_API_FILE_MATCH_H

#include "target/mapped_file.h"

file_compare compare_mapped_file;

/* By what a symbol server or debuginfod knows the file, from the headers that the target itself holds. */
file_identify identify_mapped_file;

#endif
