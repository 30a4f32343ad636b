/*
 * pe_debug.h: the debug directory of a PE image: which PDB belongs to the image, and the portable PDB that may be
 * embedded in it. The input is not trusted: entries are capped, and what is malformed is left out. Source:
 * dotnet/runtime docs/design/specs/PE-COFF.md; Microsoft PE/COFF specification, "Debug Directory".
 */
#ifndef CDACQ_FORMATS_PE_DEBUG_H
#define CDACQ_FORMATS_PE_DEBUG_H

#include "formats/pe.h"

enum {
    PE_DEBUG_PATH_SIZE = 2048, /* a longer path counts as none */
    PE_DEBUG_CHECKSUM_MAX = 4,
    PE_DEBUG_KEY_SIZE = 32 + 8 + 1,
};

struct pe_checksum {
    char algorithm[16]; /* as it is spelled: "SHA256" */
    uint8_t bytes[64];
    uint8_t size;
};

struct pe_debug {
    bool has_pdb;                  /* the image names a PDB: the next four fields are known */
    bool portable;                 /* that PDB is portable; otherwise it has Microsoft's older format */
    uint8_t id[20];                /* GUID and stamp */
    uint32_t age;                  /* of a PDB in the older format; 1 in a portable one */
    char path[PE_DEBUG_PATH_SIZE]; /* of the PDB when the image was built: any bytes */
    unsigned checksum_count;
    struct pe_checksum checksums[PE_DEBUG_CHECKSUM_MAX];
    uint64_t embedded_offset; /* in the source, of the compressed PDB */
    uint32_t embedded_size;   /* 0: none is embedded */
    uint32_t embedded_pdb_size;
    bool embedded_refused; /* what is embedded is no such PDB, or of an unknown version */
    bool incomplete;       /* the source lacks what an entry refers to */
};

/* An image without a debug directory has a `ret` of zeros. ERR_MEMORY: the source lacks bytes of the directory. */
enum cdacq_status pe_read_debug(const struct pe *pe, struct pe_debug *ret);

/* The last component of the path, which may be one of Windows. */
const char *pe_debug_pdb_name(const struct pe_debug *debug);

/*
 * The middle part of the PDB's key on symbol servers, NAME/KEY/NAME: the GUID, then FFFFFFFF for a portable PDB and the
 * age for another. `by_age` gives the latter form in any case; some stores have it. Source: dotnet/diagnostics
 * documentation/symbols/SSQP_Key_Conventions.md.
 */
void pe_debug_symbol_key(const struct pe_debug *debug, bool by_age, char ret[PE_DEBUG_KEY_SIZE]);

#endif
