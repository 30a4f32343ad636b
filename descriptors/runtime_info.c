#include "descriptors/runtime_info.h"

#include <elf.h>

#include "formats/elf_machine.h"

static const struct {
    const char *name;
    unsigned elf_machine;
} rows[ARCHITECTURE_COUNT] = {
    [ARCHITECTURE_X86] = {"x86", EM_386},
    [ARCHITECTURE_X64] = {"x64", EM_X86_64},
    [ARCHITECTURE_ARM] = {"arm", EM_ARM},
    [ARCHITECTURE_ARM64] = {"arm64", EM_AARCH64},
    [ARCHITECTURE_LOONGARCH64] = {"loongarch64", ELF_MACHINE_LOONGARCH},
    [ARCHITECTURE_RISCV64] = {"riscv64", EM_RISCV},
};

enum architecture architecture_find(const struct descriptor *descriptor, unsigned elf_machine)
{
    const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", "Architecture");
    const char *name = item ? item->text : NULL;
    for (unsigned i = ARCHITECTURE_UNKNOWN + 1; i < ARCHITECTURE_COUNT; i++)
        if (name ? strcmp(name, rows[i].name) == 0 : elf_machine == rows[i].elf_machine)
            return (enum architecture)i;
    return ARCHITECTURE_UNKNOWN;
}

unsigned architecture_elf_machine(enum architecture architecture)
{
    return rows[architecture].elf_machine;
}

const char *operating_system_find(const struct descriptor *descriptor)
{
    const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", "OperatingSystem");
    if (!item || !item->text) /* a number has no text */
        return NULL;
    if (strcmp(item->text, "unix") == 0 || strcmp(item->text, "1") == 0)
        return "unix";
    return strcmp(item->text, "win") == 0 ? "win" : NULL;
}
