/*
 * foreign_lines.h: lines of the texts of exceptions in methods of an assembly that the program loaded with the PDB of
 * another one. Source: dotnet/runtime src/libraries/System.Diagnostics.StackTrace/src/System/Diagnostics/
 * StackTraceSymbols.cs, which compares no ids.
 */
#ifndef CDACQ_ENDING_FOREIGN_LINES_H
#define CDACQ_ENDING_FOREIGN_LINES_H

#include "contracts/objects/exception_output.h"
#include "src/lookup/opened_session.h"

/*
 * The line that the runtime's own texts have for an address if the program loaded the assembly with a PDB of another
 * one: what this PDB says of a method with that token. False: the assembly has no such PDB.
 */
bool session_foreign_line(struct cdacq_session *session, uint64_t address, enum exception_line *ret_known,
                          const char **ret_file, uint32_t *ret_line);

#endif
