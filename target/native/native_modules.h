/*
 * native_modules.h: the native ELF images of a target, for unwinding by call-frame information (CFI) and for symbols.
 *
 * An image is opened when an address in it is first looked up. Its bytes are read as all memory of the target: what the
 * target lacks comes from the image's file, if that is found and nothing in the target contradicts it (mapped_file.h).
 * So a recording target has all that unwinding needs. Managed images, which are PE files, and memory without a file are
 * no native images.
 *
 * One thread at a time. Source: DWARF 5 section 6.4; Linux Standard Base, "Exception Frames"; GDB's manual,
 * "Debugging Information in Separate Files".
 */
#ifndef CDACQ_TARGET_NATIVE_NATIVE_MODULES_H
#define CDACQ_TARGET_NATIVE_NATIVE_MODULES_H

#include "target/registers.h"

struct native_modules;

/* Mappings of a file that are searched for the first one, down from that of an address; a real one has some 10. */
enum { NATIVE_MAPPINGS_MAX = 256 };

/*
 * NULL with *err if the machine is not known, or out of memory. The target must outlive the result.
 */
struct native_modules *native_modules_create(struct target *target, struct cdacq_error *err);
void native_modules_destroy(struct native_modules *modules);

enum native_step {
    NATIVE_STEPPED,   /* *registers are the caller's */
    NATIVE_OUTERMOST, /* there is no caller: the return address is undefined, or the program counter of a caller is 0 */
    NATIVE_UNKNOWN,   /* no call-frame information covers the address, and it is no signal trampoline */
    NATIVE_FAILED,    /* a register, memory or the information itself is missing or damaged: the reader has failed */
};

struct native_frame_info {
    uint64_t cfa;   /* of the frame that was left */
    bool is_signal; /* that frame is a signal trampoline: its caller was interrupted, at any instruction */
};

/*
 * Replaces the registers of a frame by those of its caller. `interrupted`: the program counter is not a return address,
 * as in the innermost frame and that below a signal trampoline. Fails if the caller's frame is not further up the
 * stack, except from a signal trampoline, which may change to another stack. Registers that the information does not
 * mention keep their value if the calling convention preserves them; otherwise they are not known in the caller.
 * *registers is unchanged unless the result is NATIVE_STEPPED. Fuel bounds all work, through the reader.
 */
enum native_step native_modules_step(struct native_modules *modules, struct reader *reader, bool interrupted,
                                     struct registers *registers, struct native_frame_info *ret);

struct native_symbol {
    const char *name;       /* as the linker has it (mangled); NULL: not known */
    uint64_t offset;        /* of the address in the symbol */
    const char *module;     /* path of the image; "[vdso]" for the kernel's */
    uint64_t module_offset; /* of the address from the image's vaddr 0, as addr2line expects it */
    bool unverified;        /* the symbols come from a file that nothing in the target could confirm */
};

/*
 * The symbol at an address, from .symtab, .dynsym and .gnu_debugdata of the image and from a separate debug file. False
 * if no native image contains the address. The strings are valid as long as the modules.
 */
bool native_modules_symbol(struct native_modules *modules, uint64_t address, struct native_symbol *ret);

/* A line of a source file, of the code from `begin` on. */
struct native_line {
    uint64_t begin;
    const char *file;      /* printable; NULL: none. Valid as long as the modules */
    uint32_t line, column; /* 0: none */
};

/*
 * Calls `visit` for the lines of [begin, end), code of one image, ascending, until it returns false: by .debug_line of
 * the image's file or of its debug file. *ret_unverified: nothing in the target could confirm the file.
 */
void native_modules_lines(struct native_modules *modules, uint64_t begin, uint64_t end,
                          bool (*visit)(const struct native_line *line, void *context), void *context,
                          bool *ret_unverified);

#endif
