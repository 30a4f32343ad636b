/*
 * runtime_info.h: RuntimeInfo: the architecture of the target's code, which decides the encoding of unwind data and GC
 * info, and its operating system. Descriptors publish both since .NET 10.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeInfo.md.
 */
#ifndef CDACQ_DESCRIPTORS_RUNTIME_INFO_H
#define CDACQ_DESCRIPTORS_RUNTIME_INFO_H

#include "descriptors/descriptor.h"

enum architecture {
    ARCHITECTURE_UNKNOWN, /* none of the following */
    ARCHITECTURE_X86,
    ARCHITECTURE_X64,
    ARCHITECTURE_ARM,
    ARCHITECTURE_ARM64,
    ARCHITECTURE_LOONGARCH64,
    ARCHITECTURE_RISCV64,
    ARCHITECTURE_COUNT
};

/* From the global "Architecture" of the descriptor or, where there is none, from the ELF machine (EM_*). */
enum architecture architecture_find(const struct descriptor *descriptor, unsigned elf_machine);

/* EM_*; EM_NONE for ARCHITECTURE_UNKNOWN. */
unsigned architecture_elf_machine(enum architecture architecture);

/*
 * "unix" or "win", from the global "OperatingSystem"; NULL if the descriptor has neither. The .NET 10 runtimes for
 * Linux publish "1" for "unix": the compiler's macro of that name is replaced when they are built.
 */
const char *operating_system_find(const struct descriptor *descriptor);

#endif
