/*
 * signature_names.h: the names in a signature, which are the same in other builds and runtimes.
 */
#ifndef CDACQ_CLI_REPORT_SIGNATURE_NAMES_H
#define CDACQ_CLI_REPORT_SIGNATURE_NAMES_H

#include "src/cli/base/output.h"
#include "util/text.h"

/*
 * Appends a method's name without what differs between builds and runtimes: parameters, type arguments (shared code has
 * none), and the numbers that compilers give ("<Run>b__3_0" becomes "<Run>b__").
 */
void signature_form_name(struct text *ret, const char *name, size_t length);

/* Writes it, escaped. */
void signature_write_name(struct output *out, const char *name, size_t length);

/*
 * Appends a symbol without its version and what the compiler appends to the name of a function that it has split
 * ("run.cold"), and one of the C library without the kind of processor that it is for: "memset" for
 * "__memset_avx512_unaligned".
 */
void signature_form_symbol(struct text *ret, const char *symbol);

/* Whether a method is of the framework: those between two of the program, and their names, depend on the runtime. */
bool signature_is_of_framework(const char *name, size_t length);

/* Whether it shows how a thread begins, which depends on the runtime, or how it dies, not why. */
bool signature_is_of_no_interest(const char *name, size_t length);

#endif
