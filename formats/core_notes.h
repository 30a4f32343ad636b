/*
 * core_notes.h: the notes of a core that describe its process and threads. Each function decodes one note's contents
 * ("desc"); the kernel's layout depends on the class of the core and, for registers, on the machine. Pure functions.
 * Source: Linux include/uapi/linux/elfcore.h, include/linux/elfcore-compat.h, include/uapi/asm-generic/siginfo.h,
 * arch/arm64/include/uapi/asm/ptrace.h.
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

/* NT_SIGINFO: the signal that the thread of the NT_PRSTATUS before it got. What the signal has not is 0. */
struct core_siginfo {
    int signal;       /* si_signo; 0: not known */
    int code;         /* si_code: above 0, the kernel sent it */
    bool has_address; /* of SIGILL, SIGFPE, SIGSEGV, SIGBUS and SIGTRAP from the kernel, unless it knows none */
    uint64_t address; /* si_addr */
    int pid;          /* si_pid: of a signal that a process sent, the process */
    uint32_t uid;     /* si_uid: its user */
};

/* `signal` is 0 if the note is too short for it. */
struct core_siginfo core_siginfo_at(struct elf_class elf, const uint8_t *desc, size_t size);

/* NT_PRPSINFO: the process. */
struct core_prpsinfo {
    int pid;
    char name[17];      /* of its first thread, as the kernel cuts it; "" where the note does not reach it */
    char arguments[81]; /* the command line, separated by spaces, as the kernel cuts it; likewise */
};

/* pid is 0 if the note is too short for it. */
struct core_prpsinfo core_prpsinfo_at(struct elf_class elf, const uint8_t *desc, size_t size);

/*
 * NT_ARM_PAC_MASK: the bits of a signed return address that hold its signature. 0 if the note is too short, or if they
 * are not bits that the kernel leaves to signatures.
 */
uint64_t core_pac_mask_at(struct elf_class elf, const uint8_t *desc, size_t size);

/* The value of an entry of NT_AUXV (AT_*). 0 where there is none. */
uint64_t core_auxv_value(struct elf_class elf, const uint8_t *desc, size_t size, uint64_t type);

#endif
