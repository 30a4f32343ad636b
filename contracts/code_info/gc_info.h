/*
 * gc_info.h: the head of a method's GC info, whose first fields tell the length of the method's code. It is a stream of
 * bits, lowest bit first, except on x86, which has numbers of seven bits a byte, highest first, the length before all
 * else. The format has a version, which for ReadyToRun code follows from the image's.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md; src/coreclr/inc/gcinfo.h, gcinfotypes.h;
 * src/coreclr/vm/gcinfodecoder.cpp; src/coreclr/gcdump/i386/gcdumpx86.cpp.
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_GC_INFO_H
#define CDACQ_CONTRACTS_CODE_INFO_GC_INFO_H

#include "descriptors/field_reader.h"

/*
 * The version of the GC info in a ReadyToRun image of format `major`.`minor`; 0 where that is not known. .NET 8 has
 * 9.1, .NET 9 10.1, .NET 10 16.0; the specification names 11 to 14. Of formats that are newer than this build, the
 * runtime's own version: it has loaded the image.
 */
unsigned gc_info_version_of_r2r(const struct layout *layout, unsigned major, unsigned minor);

/* The version of the GC info of code that the runtime has compiled: its global GCInfoVersion. 0 where not known. */
unsigned gc_info_version_of_jit(const struct layout *layout);

/*
 * Bytes that a method's code takes, hot and cold, funclets included. On x86 `version` does not matter. 0 where that
 * cannot be told: the reader does not fail.
 */
uint32_t gc_info_code_length(struct field_reader *reader, uint64_t gc_info, unsigned version);

/* The same for byte code of the interpreter, whose encoding, on every architecture, begins as that of x64 does. */
uint32_t gc_info_code_length_interpreter(struct field_reader *reader, uint64_t gc_info, unsigned version);

#endif
