/*
 * exception_text.h: what Exception.ToString() returns, from memory alone: type, message, inner exceptions and the stack
 * trace. Messages that a type of the framework makes from its fields are made here too.
 *
 * No code of the target runs. If a type of the program overrides Message, ToString or StackTrace, the stored fields are
 * written instead and the result says so. The text is any text: whoever prints it escapes it.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Exception.cs, and those of the types in
 * exception_message.c;
 * src/libraries/System.Private.CoreLib/src/System/Diagnostics/StackTrace.cs.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_TEXT_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_TEXT_H

#include "contracts/objects/exception_output.h"

/* Writes the text. Returns its flaws, 0 if it is exactly that of the runtime. */
unsigned exception_text_write(const struct exception_output *output, uint64_t exception);

/* Writes Type.ToString() of the exception. */
unsigned exception_text_type(const struct exception_output *output, uint64_t exception);

#endif
