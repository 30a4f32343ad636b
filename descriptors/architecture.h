/*
 * architecture.h: what the target's code was compiled for. Unwind data and GC info, unlike the structures of the
 * runtime, are encoded as the architecture has it; descriptors say which it is from .NET 10 on.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeInfo.md.
 */
#ifndef CDACQ_DESCRIPTORS_ARCHITECTURE_H
#define CDACQ_DESCRIPTORS_ARCHITECTURE_H

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

/* By the descriptor's global "Architecture"; where it publishes none, by the ELF machine (EM_*). */
enum architecture architecture_find(const struct descriptor *descriptor, unsigned elf_machine);

/* Its EM_*; 0, EM_NONE, of ARCHITECTURE_UNKNOWN. */
unsigned architecture_elf_machine(enum architecture architecture);

#endif
