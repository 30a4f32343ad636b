/*
 * file_match.h: checks whether a file on disk is the one that a target had mapped, and which of its bytes are constant.
 * It compares what the target itself holds of the file: build-id, PE time stamp and size, MVID, runtime functions and
 * read-only pages. One difference refuses the file; one match confirms it. Source: ELF gABI (build-id note); PE/COFF;
 * ECMA-335 II.22.30 (Mvid); readytorun-format.md, section 102.
 */
#ifndef CDACQ_FILES_FILE_MATCH_H
#define CDACQ_FILES_FILE_MATCH_H

#include "target/mapped_file.h"

file_compare compare_mapped_file;

/* The keys of a file for symbol servers and debuginfod, from the headers that the target itself holds. */
file_identify identify_mapped_file;

/* The same, from the content of a resolved file that was accepted. */
file_identify identify_local_file;

#endif
