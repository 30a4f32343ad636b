#include "descriptors/runtime_info.h"

#include <elf.h>
#include <strings.h>

#include "cdacq/target.h"
#include "descriptors/descriptor.h"
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

/* A global that is a text. NULL if it is a number, or not there. */
static const char *text_of(const struct descriptor *descriptor, const char *global)
{
    const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", global);
    return item ? item->text : NULL;
}

enum architecture architecture_find(const struct descriptor *descriptor, unsigned elf_machine)
{
    const char *name = text_of(descriptor, "Architecture");
    for (unsigned i = ARCHITECTURE_UNKNOWN + 1; i < ARCHITECTURE_COUNT; i++)
        if (name ? strcasecmp(name, rows[i].name) == 0 : elf_machine == rows[i].elf_machine)
            return (enum architecture)i;
    return ARCHITECTURE_UNKNOWN;
}

unsigned architecture_elf_machine(enum architecture architecture)
{
    return rows[architecture].elf_machine;
}

const char *operating_system_find(const struct descriptor *descriptor)
{
    const char *name = text_of(descriptor, "OperatingSystem");
    if (!name)
        return NULL;
    if (strcasecmp(name, "unix") == 0 || strcmp(name, "1") == 0)
        return "unix";
    return strcasecmp(name, "win") == 0 || strcasecmp(name, "windows") == 0 ? "win" : NULL;
}

enum runtime_flavor runtime_flavor_find(const struct descriptor *descriptor)
{
    const char *name = text_of(descriptor, "RuntimeFlavor");
    if (name && strcasecmp(name, "coreclr") == 0)
        return RUNTIME_FLAVOR_CORECLR;
    return name && strcasecmp(name, "nativeaot") == 0 ? RUNTIME_FLAVOR_NATIVE_AOT : RUNTIME_FLAVOR_UNKNOWN;
}

const char *product_version_find(const struct descriptor *descriptor)
{
    return text_of(descriptor, "RuntimeProductVersionString");
}
