/*
 * gc_info.h: the head of a method's GC info, which holds the length of the method's code. It is a stream of bits,
 * lowest bit first; on x86 it begins with the length, seven bits a byte, highest first. The format has a version, which
 * for ReadyToRun code follows from the image's.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md; src/coreclr/inc/gcinfo.h, gcinfotypes.h;
 * src/coreclr/vm/gcinfodecoder.cpp; src/coreclr/gcdump/i386/gcdumpx86.cpp.
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_GC_INFO_H
#define CDACQ_CONTRACTS_CODE_INFO_GC_INFO_H

#include "descriptors/fields.h"

/*
 * The version of the GC info in a ReadyToRun image of format `major`.`minor` (.NET 8: 9.1, .NET 9: 10.1, .NET 10: 16.0;
 * the specification names 11 to 14). For newer formats, the version of the runtime that loaded it. 0 if not known.
 */
unsigned gc_info_version_of_r2r(const struct layout *layout, unsigned major, unsigned minor);

/* The version of the GC info of code that the runtime compiled: its global GCInfoVersion. 0 if not known. */
unsigned gc_info_version_of_jit(const struct layout *layout);

/* The size of a method's hot and cold code, with funclets. x86 ignores `version`. 0, without failing, if unknown. */
uint32_t gc_info_code_length(struct reader *reader, uint64_t gc_info, unsigned version);

/* The same for the interpreter's byte code, whose encoding begins like that of x64 on every architecture. */
uint32_t gc_info_code_length_interpreter(struct reader *reader, uint64_t gc_info, unsigned version);

#endif
