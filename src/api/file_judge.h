/*
 * file_judge.h: whether a file on disk is the one that a target had mapped, and which of its bytes are the same in
 * every process. Everything that the target itself holds of the file is evidence: build-id, PE time stamp and size,
 * MVID, runtime functions, read-only pages. One contradiction refuses the file; one agreement confirms it. Source: ELF
 * gABI (build-id note); PE/COFF; ECMA-335 II.22.30 (Mvid); readytorun-format.md, section 102.
 */
#ifndef CDACQ_API_FILE_JUDGE_H
#define CDACQ_API_FILE_JUDGE_H

#include "target/mapped_file.h"

file_judge judge_mapped_file;

/* By what a symbol server or debuginfod knows the file, from the headers that the target itself holds. */
file_identify identify_mapped_file;

#endif
