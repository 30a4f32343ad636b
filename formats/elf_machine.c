#include "formats/elf_machine.h"

#include <elf.h>

enum { RELATIVE_LOONGARCH = 3 }; /* R_LARCH_RELATIVE, which older elf.h lack */

static const struct elf_machine machines[] = {
    {EM_386, "i386", R_386_RELATIVE, 4096},         {EM_PPC64, "ppc64", R_PPC64_RELATIVE, 65536},
    {EM_S390, "s390x", R_390_RELATIVE, 4096},       {EM_ARM, "arm", R_ARM_RELATIVE, 65536},
    {EM_X86_64, "x86-64", R_X86_64_RELATIVE, 4096}, {EM_AARCH64, "aarch64", R_AARCH64_RELATIVE, 65536},
    {EM_RISCV, "riscv", R_RISCV_RELATIVE, 65536},   {ELF_MACHINE_LOONGARCH, "loongarch", RELATIVE_LOONGARCH, 65536},
};

const struct elf_machine *elf_machine_find(unsigned number)
{
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
        if (machines[i].number == number)
            return &machines[i];
    return NULL;
}
