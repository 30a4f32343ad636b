#include "formats/core_notes.h"

#include <signal.h>

/*
 * struct elf_prstatus: signal number, code and error (4 bytes each), pr_cursig (2), two sets of signals (a word each),
 * four ids (4 bytes each), four times (two words each), the registers, pr_fpvalid (4).
 */
bool core_prstatus_at(struct elf_class elf, const uint8_t *desc, size_t size, struct core_prstatus *ret)
{
    size_t word = elf_word_size(elf), tid = 16 + 2 * word, registers = tid + 4 * 4 + 8 * word;
    if (size <= registers)
        return false;
    *ret = (struct core_prstatus){
        .tid = (int)load_u32(desc + tid, elf.big),
        .signal = (int16_t)load_u16(desc + 12, elf.big),
        .registers = desc + registers,
        .registers_size = size - registers,
    };
    return true;
}

struct core_siginfo core_siginfo_at(struct elf_class elf, const uint8_t *desc, size_t size)
{
    size_t fields = elf.wide ? 16 : 12; /* signal number, error, code, and the alignment of what follows */
    struct core_siginfo info = {0};
    if (size < 12)
        return info;
    info.signal = (int)load_u32(desc, elf.big);
    info.code = (int)load_u32(desc + 8, elf.big);
    bool fault = info.signal == SIGILL || info.signal == SIGFPE || info.signal == SIGSEGV || info.signal == SIGBUS ||
                 info.signal == SIGTRAP;
    /* The processor does not report the address of some faults, such as that of one which no memory can have. */
    if (info.code > 0 && info.code != SI_KERNEL && fault && size >= fields + elf_word_size(elf)) {
        info.has_address = true;
        info.address = elf_word(elf, desc + fields);
    } else if (info.code <= 0 && size >= fields + 8) {
        info.pid = (int)load_u32(desc + fields, elf.big);
        info.uid = load_u32(desc + fields + 4, elf.big);
    }
    return info;
}

/*
 * struct elf_prpsinfo: four bytes of state, a flag word, uid and gid, four ids (4 bytes each), pr_fname (16), pr_psargs
 * (80). Where words have 32 bits, uid and gid have 16 on some machines, which shows in the size.
 */
struct core_prpsinfo core_prpsinfo_at(struct elf_class elf, const uint8_t *desc, size_t size)
{
    enum { NAME = 16, ARGUMENTS = 80, IDS = 4 * 4, NARROW_SIZE = 124 };
    struct core_prpsinfo info = {0};
    size_t pid = elf.wide ? 24 : size > NARROW_SIZE ? 16 : 12, name = pid + IDS;
    if (size >= pid + 4)
        info.pid = (int)load_u32(desc + pid, elf.big);
    if (size >= name + NAME)
        memcpy(info.name, desc + name, NAME);
    if (size >= name + NAME + ARGUMENTS)
        memcpy(info.arguments, desc + name + NAME, ARGUMENTS);
    return info;
}

/* struct user_pac_mask: the bits of signed pointers to data, then those of signed addresses of code. */
uint64_t core_pac_mask_at(struct elf_class elf, const uint8_t *desc, size_t size)
{
    enum { ADDRESS_BITS_MIN = 36 };                                          /* of a process, with pages of 16 KiB */
    static const uint64_t others = ((UINT64_C(1) << ADDRESS_BITS_MIN) - 1) | /* and bit 55, of the kernel's addresses */
                                   UINT64_C(1) << 55;
    uint64_t mask = elf.wide && size >= 16 ? load_u64(desc + 8, elf.big) : 0;
    return mask & others ? 0 : mask;
}

uint64_t core_auxv_value(struct elf_class elf, const uint8_t *desc, size_t size, uint64_t type)
{
    size_t word = elf_word_size(elf);
    for (size_t at = 0; size - at >= 2 * word && elf_word(elf, desc + at); at += 2 * word)
        if (elf_word(elf, desc + at) == type)
            return elf_word(elf, desc + at + word);
    return 0;
}
