/*
 * runtime_info.h: RuntimeInfo: the architecture of the target's code, which decides the encoding of unwind data and GC
 * info, and its operating system; descriptors publish both since .NET 10. Since .NET 11, also which runtime it is, and
 * its version. Names are compared without regard to case, as the runtime's own reader does.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeInfo.md.
 */
#ifndef CDACQ_DESCRIPTORS_RUNTIME_INFO_H
#define CDACQ_DESCRIPTORS_RUNTIME_INFO_H

struct descriptor;

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
 * Linux publish "1" for "unix": the compiler's macro of that name is replaced when they are built. .NET 11 writes
 * "Unix" and "Windows".
 */
const char *operating_system_find(const struct descriptor *descriptor);

enum runtime_flavor { RUNTIME_FLAVOR_UNKNOWN, RUNTIME_FLAVOR_CORECLR, RUNTIME_FLAVOR_NATIVE_AOT };

/* From the global "RuntimeFlavor", which is published since .NET 11. */
enum runtime_flavor runtime_flavor_find(const struct descriptor *descriptor);

/* "11.0.0", from the global "RuntimeProductVersionString", or any other text that it has; NULL before .NET 11. */
const char *product_version_find(const struct descriptor *descriptor);

#endif
