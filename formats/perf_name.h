/*
 * perf_name.h: the names that a runtime writes into its jitdump and perf map: methods with their tier ("X[Tier1]"), the
 * cold part of a ReadyToRun method ("X[PreJIT]X[PreJit-cold]") and the runtime's own code
 * ("stub GenerateLookupStub<GenerateLookupStub>", numbered by .NET 8 and 9: "stub<7> ...").
 *
 * Pure functions; thread-safe. Source: dotnet/runtime src/coreclr/vm/perfmap.cpp, and what .NET 8, 9 and 10 write.
 */
#ifndef CDACQ_FORMATS_PERF_NAME_H
#define CDACQ_FORMATS_PERF_NAME_H

#include "util/base.h"

bool perf_name_is_stub(const char *name, size_t length);

/*
 * Whether `name`, any bytes from a file, is the name of the method that CDACQ_NAMES_IL spells `il`. That spelling
 * doubles backslashes and escapes what is not printable; the file does neither.
 */
bool perf_name_is_of(const char *name, size_t length, const char *il, size_t il_length);

/*
 * Perf maps have a line for each symbol, and runtimes write names with newlines as they are, so that such a name takes
 * several lines. If `line` is what `il` has before its next newline, returns the rest of `il`, which is the next line
 * and what follows; otherwise NULL. Readers of lines leave out empty ones and carriage returns at their ends.
 */
const char *perf_name_take_line(const char *line, size_t length, const char *il, size_t il_length);

/* Whether a line of a perf map can be the last one of a method's name: it ends with the parameters, or with a tier. */
bool perf_name_is_whole(const char *name, size_t length);

#endif
