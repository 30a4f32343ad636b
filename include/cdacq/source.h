/*
 * cdacq/source.h: from an address to its IL offset, and on to the file and line that it was compiled from.
 *
 * Lines come from portable PDBs. A module's PDB is embedded in its image, or the program loaded it with an assembly
 * from memory, or it is a file that has the id and, if the image gives a SHA-256 checksum, that checksum. The file is
 * looked for when the first line of the module is asked for: with cdacq_options.find_file; below the sysroots; below
 * the module paths, by its name or in the layout of a symbol server (NAME/KEY/NAME); beside the module; on the symbol
 * servers of cdacq_options. debuginfod is not asked: it finds files by the build-id of ELF, and a PDB has none. A file
 * that does not match is not used, and `problem` names it.
 */
#ifndef CDACQ_SOURCE_H
#define CDACQ_SOURCE_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/*
 * The IL offset of the code at an address, by the rule of the runtime's stack traces: the lowest IL offset at the last
 * native offset at or before the address that has any. CDACQ_OK with CDACQ_OFFSET_UNKNOWN in *ret: the method has no
 * map from code to IL. CDACQ_NOT_MANAGED, with *ret untouched: no method owns the address. For a return address, give
 * the address minus 1. Fails as cdacq_session_method_at does. Source: dotnet/runtime
 * docs/design/datacontracts/DebugInfo.md; src/coreclr/vm/debugdebugger.cpp.
 */
CDACQ_API enum cdacq_status cdacq_session_il_offset_at(struct cdacq_session *session, uint64_t address, int32_t *ret,
                                                       struct cdacq_error *err);

/*
 * Where an address was compiled from. The caller sets `size`. The session owns the strings: see struct
 * cdacq_method. What is not known is 0, NULL or, for il_offset, CDACQ_OFFSET_UNKNOWN.
 */
struct cdacq_source {
    size_t size;
    int32_t il_offset;
    uint32_t line;     /* from 1; 0: no line is known */
    uint32_t column;   /* from 1 */
    uint32_t end_line; /* the statement ends before end_column of this line */
    uint32_t end_column;
    const char *file;    /* the path of the source file when the module was built */
    const char *url;     /* where the text of the file is, by the PDB's Source Link map */
    const char *pdb;     /* the local path of the PDB in use; NULL if it is embedded, or none is in use */
    bool pdb_embedded;   /* the PDB in use is part of the image, of the process's memory, or of the snapshot */
    const char *problem; /* one line: why there is no line; NULL if there is one */
    bool verified;       /* false: the answer uses a file that nothing in the target could confirm */
};

/*
 * Finds the sequence point of the code at an address: the last that is not hidden at or before its IL offset, as the
 * runtime's stack traces do. CDACQ_OK: *ret describes managed code, with a line or the reason why there is none.
 * CDACQ_NOT_MANAGED, with *ret untouched: no method owns the address. Fails as cdacq_session_method_at does. Source:
 * dotnet/runtime docs/design/specs/PortablePdb-Metadata.md;
 * src/libraries/System.Diagnostics.StackTrace/src/System/Diagnostics/StackTraceSymbols.cs.
 */
CDACQ_API enum cdacq_status cdacq_session_source_at(struct cdacq_session *session, uint64_t address,
                                                    struct cdacq_source *ret, struct cdacq_error *err);

/* The PDB of an assembly. Strings are valid until `visit` returns, and NULL if not known. */
struct cdacq_pdb_info {
    size_t size;
    const char *module;  /* path of the assembly, as the target names it */
    uint64_t base;       /* where its image is mapped */
    const char *key;     /* NAME/KEY/NAME: the key for symbol servers */
    const char *path;    /* the local path of the PDB in use */
    bool embedded;       /* it is part of the image, of the process's memory (Assembly.Load), or of the snapshot */
    bool refused;        /* a file was found that does not match: `problem` names it */
    const char *problem; /* one line: why none is in use; NULL if one is */
    const struct cdacq_local_file *local_file; /* that of `path`, or NULL */
};

/*
 * Looks for the PDB of every assembly that is mapped as a file of its own, and calls `visit` for it, in no particular
 * order. CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT, or with IO if a running process has ended or
 * executed another program.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_pdbs(struct cdacq_session *session,
                                                     int (*visit)(const struct cdacq_pdb_info *pdb, void *context),
                                                     void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
