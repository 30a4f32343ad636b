/*
 * elf_machine.h: what differs among the machines of ELF files (e_machine): those that .NET runs on.
 */
#ifndef CDACQ_FORMATS_ELF_MACHINE_H
#define CDACQ_FORMATS_ELF_MACHINE_H

#include "util/base.h"

enum { ELF_MACHINE_LOONGARCH = 258 }; /* EM_LOONGARCH, which older elf.h lack */

struct elf_machine {
    unsigned number;   /* EM_* */
    const char *name;  /* as people write it */
    uint32_t relative; /* the number of R_*_RELATIVE */
    uint32_t page_max; /* the largest page that a kernel may map files by */
};

/* NULL for any other machine. */
const struct elf_machine *elf_machine_find(unsigned number);

#endif
