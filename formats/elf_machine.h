/*
 * elf_machine.h: the machines of ELF files (e_machine) that .NET runs on.
 */
#ifndef CDACQ_FORMATS_ELF_MACHINE_H
#define CDACQ_FORMATS_ELF_MACHINE_H

#include "util/base.h"

enum { ELF_MACHINE_LOONGARCH = 258 }; /* EM_LOONGARCH, which older elf.h lack */

struct elf_machine {
    unsigned number;   /* EM_* */
    const char *name;  /* for people */
    uint32_t relative; /* the number of R_*_RELATIVE */
    uint32_t page_max; /* the largest page size of a kernel */
};

/* NULL for any other machine. */
const struct elf_machine *elf_machine_find(unsigned number);

#endif
