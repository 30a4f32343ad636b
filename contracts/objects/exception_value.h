/*
 * exception_value.h: values in the text of an exception: numbers in its fields, and what ToString() of another object
 * returns. As for exception_writer.h, what cannot be read is a flaw of the text.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_VALUE_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_VALUE_H

#include "contracts/objects/exception_writer.h"

/* A field of the exception that has `width` bytes, at most 8; 0 if it cannot be read. */
uint64_t exception_value(struct exception_writer *w, const struct writing_exception *e, const char *name,
                         unsigned width);

/* Writes ToString() of an object. That of most types is code, in whose place the type's name is written. */
void exception_put_object(struct exception_writer *w, uint64_t object);

#endif
