/*
 * cfi.h: call-frame information, as .eh_frame and .debug_frame hold it: records (CIE, FDE), and the row of rules that
 * applies at an address. Bytes in, rules out: what the rules mean in memory is the business of target/native/.
 *
 * Every size and count in the input is checked. A program that uses what is not known gives no row.
 * Source: DWARF 5 section 6.4; Linux Standard Base 5, "Exception Frames"; DWARF for the Arm 64-bit Architecture. Pure
 * functions.
 */
#ifndef CDACQ_FORMATS_CFI_H
#define CDACQ_FORMATS_CFI_H

#include "util/base.h"

enum {
    CFI_REGISTER_MAX = 64, /* rules of registers with higher numbers, which are no integer registers, are skipped */
    CFI_RECORD_MAX = 1024 * 1024, /* bytes of a CIE or an FDE; those of real functions have up to some 20,000 */
};

/* DW_EH_PE_*: how a pointer is encoded. The low four bits are the format, the next three what it is relative to. */
enum {
    CFI_ENCODING_ABSOLUTE = 0x00,
    CFI_ENCODING_PC_RELATIVE = 0x10,
    CFI_ENCODING_DATA_RELATIVE = 0x30,
    CFI_ENCODING_SDATA4 = 0x0b,
    CFI_ENCODING_OMITTED = 0xff,
};

/* Bytes at an address: a record, or the header of a section. */
struct cfi_bytes {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;   /* of the first byte, in the target or, in .debug_frame, its vaddr or offset */
    unsigned word_size; /* 4 or 8 */
    bool big;
    bool is_debug_frame; /* .debug_frame, not .eh_frame */
};

/* What a record begins with. */
struct cfi_head {
    uint64_t size; /* of the whole record, bytes, its length included; 0: the end of the section */
    bool is_cie;
    uint64_t cie; /* of an FDE: the address of its CIE; in .debug_frame the offset in the section */
};

enum { CFI_HEAD_SIZE = 4 + 8 + 8 }; /* the longest head: length, 64-bit length, CIE pointer */

/* Reads a head from at least CFI_HEAD_SIZE bytes, or as many as are left. False if it is damaged. */
bool cfi_head_at(const struct cfi_bytes *bytes, struct cfi_head *ret);

struct cfi_cie {
    uint64_t code_factor;
    int64_t data_factor;
    unsigned return_address;                 /* column */
    uint8_t pointer_encoding, lsda_encoding; /* the latter: CFI_ENCODING_OMITTED if its FDEs have none */
    bool has_augmentation_size, is_signal;
    const uint8_t *program;
    size_t program_size;
};

bool cfi_cie_read(const struct cfi_bytes *bytes, struct cfi_cie *ret);

struct cfi_fde {
    uint64_t begin, end; /* addresses that it covers; of .debug_frame vaddrs */
    uint64_t lsda;       /* address of the language-specific data of the function; 0: there are none */
    const uint8_t *program;
    size_t program_size;
};

bool cfi_fde_read(const struct cfi_bytes *bytes, const struct cfi_cie *cie, struct cfi_fde *ret);

/* The header of .eh_frame_hdr (PT_GNU_EH_FRAME). */
struct cfi_index {
    uint64_t eh_frame; /* address of the first record */
    uint64_t count;    /* entries of the table; 0: there is none that can be searched */
    uint64_t table;    /* address of {begin, FDE}: 32-bit numbers relative to the header's address, sorted by begin */
};

enum { CFI_INDEX_SIZE = 4 + 2 * 8, CFI_INDEX_ENTRY = 8 };

bool cfi_index_read(const struct cfi_bytes *bytes, struct cfi_index *ret);

/* ---- Rules ---- */

enum cfi_rule_kind {
    CFI_UNSPECIFIED,  /* the calling convention says */
    CFI_UNDEFINED,    /* not known in the caller */
    CFI_SAME,         /* unchanged */
    CFI_OFFSET,       /* in memory at CFA + value */
    CFI_VALUE_OFFSET, /* CFA + value */
    CFI_REGISTER,     /* in register `value` */
    CFI_EXPRESSION,   /* in memory at the result of an expression */
    CFI_VALUE_EXPRESSION,
};

struct cfi_rule {
    uint8_t kind;  /* enum cfi_rule_kind */
    uint32_t size; /* of an expression, bytes */
    int64_t value; /* of an expression: its address */
};

struct cfi_row {
    uint8_t cfa_register;
    bool is_signal;         /* a signal trampoline */
    uint8_t return_address; /* column */
    struct cfi_rule cfa;    /* VALUE_OFFSET from cfa_register, or VALUE_EXPRESSION; else there is none */
    struct cfi_rule registers[CFI_REGISTER_MAX];
};

/*
 * The row at `address`, which the FDE covers. `cie_bytes` and `fde_bytes` are what the records were read from. False if
 * a program is damaged or uses an unknown instruction.
 */
bool cfi_row_at(const struct cfi_bytes *cie_bytes, const struct cfi_cie *cie, const struct cfi_bytes *fde_bytes,
                const struct cfi_fde *fde, uint64_t address, struct cfi_row *ret);

#endif
