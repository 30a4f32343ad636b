/*
 * gc_info_x86.h: the head of a method's GC info on x86, which describes the method's frame, and the table of what the
 * code has pushed. Other architectures have unwind data for this. The head begins with one of 128 usual ones; bytes
 * that follow change it.
 * Source: dotnet/runtime src/coreclr/inc/{gcdecoder.cpp,gcinfotypes.h}; src/coreclr/vm/gc_unwind_x86.inl.
 */
#ifndef CDACQ_CONTRACTS_UNWIND_GC_INFO_X86_H
#define CDACQ_CONTRACTS_UNWIND_GC_INFO_X86_H

#include "target/reader.h"

/* Sizes in bytes. */
struct gc_info_x86 {
    uint32_t code_size; /* with funclets */
    uint32_t prolog_size;
    uint32_t epilog_size; /* of the smallest */
    uint32_t epilog_count;
    bool epilog_at_end; /* the only epilog ends the code */
    bool saves_edi, saves_esi, saves_ebx, saves_ebp;
    bool has_frame;      /* ebp is the frame pointer */
    bool double_aligned; /* ebp is the frame pointer; below the saved one, the frame is aligned to 8 */
    bool interruptible;  /* the table has every change of what is pushed, not only that of calls */
    bool caller_pops;    /* with variable arguments the caller removes them */
    uint32_t arguments;  /* on the stack */
    uint32_t frame_size; /* without saved registers */
    uint64_t epilogs; /* address of a list: the distance of each start to the one before; 0: epilog_at_end, or none */
    uint64_t pushes;  /* address of the table */
    uint64_t regions; /* address of a list: the offset and size of each region that no collection may interrupt */
    uint32_t region_count;
};

/*
 * Reads the head. False, and the reader fails, if it cannot be read, is damaged, or `version` is none that is known (2
 * to 4).
 */
bool gc_info_x86_read(struct reader *reader, uint64_t gc_info, unsigned version, struct gc_info_x86 *ret);

/* The start of the last epilog that begins before `offset`. False if there is none or the reader fails. */
bool gc_info_x86_epilog(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset, uint32_t *ret);

/*
 * What the code has pushed for calls before it has reached `offset`, in the method's body or a funclet. 0 in methods
 * with a frame pointer that are not interruptible: these have no such record. False if the reader fails.
 */
bool gc_info_x86_pushed(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset, uint32_t *ret);

/*
 * Whether a collection can begin at an instruction: in code that is interruptible, outside of prolog, epilogs and
 * regions. False, and the reader fails, if the lists cannot be read.
 */
bool gc_info_x86_is_safe(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset);

#endif
