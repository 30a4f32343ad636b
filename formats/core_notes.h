/*
 * core_notes.h: the notes of a core that describe its process and threads. Each function decodes one note's contents
 * ("desc"); the kernel's layout depends on the class of the core and, for registers, on the machine. Pure functions.
 * Source: Linux include/uapi/linux/elfcore.h, include/linux/elfcore-compat.h, include/uapi/asm-generic/siginfo.h.
 */
#ifndef CDACQ_FORMATS_CORE_NOTES_H
#define CDACQ_FORMATS_CORE_NOTES_H

#include "formats/elf.h"

/* NT_PRSTATUS: a thread. */
struct core_prstatus {
    int tid;
    int signal;               /* pr_cursig. Linux writes the signal that ended the process to every thread. */
    const uint8_t *registers; /* as the machine's kernel writes them; within the note */
    size_t registers_size;
};

/* False if the note is too short to have registers. */
bool core_prstatus_at(struct elf_class elf, const uint8_t *desc, size_t size, struct core_prstatus *ret);

/* si_signo of NT_SIGINFO, the signal that the thread of the NT_PRSTATUS before it got; 0 if the note is too short. */
int core_siginfo_signal(struct elf_class elf, const uint8_t *desc, size_t size);

/* NT_PRPSINFO: the process. */
struct core_prpsinfo {
    int pid;
    char name[17]; /* of its first thread, as the kernel cuts it; "" where the note does not reach it */
};

/* pid is 0 if the note is too short for it. */
struct core_prpsinfo core_prpsinfo_at(struct elf_class elf, const uint8_t *desc, size_t size);

/* The value of an entry of NT_AUXV (AT_*). 0 where there is none. */
uint64_t core_auxv_value(struct elf_class elf, const uint8_t *desc, size_t size, uint64_t type);

#endif
