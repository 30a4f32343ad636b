/*
 * gc_info.h: the head of a method's GC info: a bit stream, lowest bit first, whose first fields tell the length of the
 * method's code. Its format has a version, which for ReadyToRun code follows from the image's.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md; src/coreclr/inc/gcinfo.h, gcinfodecoder.cpp.
 */
#ifndef CDACQ_CONTRACTS_GC_INFO_H
#define CDACQ_CONTRACTS_GC_INFO_H

#include "descriptors/layout.h"

/*
 * The version of the GC info in a ReadyToRun image of format `major`.`minor`; 0 where that is not known. (The
 * specification names 11 to 14; .NET 10 has 16.)
 */
unsigned gc_info_version_of_r2r(unsigned major, unsigned minor);

/* Bytes that a method's code takes, hot and cold, on x64. 0 where that cannot be told: the reader does not fail. */
uint32_t gc_info_code_length(struct reader *reader, uint64_t gc_info, unsigned version);

#endif
