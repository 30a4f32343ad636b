/*
 * r2r_imports.h: the import sections of a ReadyToRun image: cells that the runtime fills in before code uses them. A
 * signature says what each cell is for.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md, "READYTORUN_IMPORT_SECTIONS";
 * src/coreclr/inc/readytorun.h.
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_IMPORTS_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_IMPORTS_H

#include "descriptors/fields.h"
#include "formats/ready_to_run.h"

/* Where the import sections of an image are. */
struct r2r_imports {
    uint64_t base, end; /* of the image */
    struct r2r_section sections;
};

/*
 * Calls `visit` with the RVA of each resumption stub, in the order of the cells. Such a stub continues an async method
 * (since .NET 11); no table of entry points has it. False, and the reader fails, if the sections cannot be read.
 */
bool r2r_imports_resumption_stubs(struct reader *reader, const struct r2r_imports *imports,
                                  void (*visit)(uint32_t rva, void *context), void *context);

#endif
