/*
 * exception_message.h: the types of the framework that make their Message or ToString() from fields.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_MESSAGE_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_MESSAGE_H

#include "contracts/objects/exception_writer.h"

/* The kind of a TypeDef, NULL if it is none of them or of another assembly; that of System.Exception. */
const struct exception_kind *exception_kind_find(const struct metadata *metadata, uint32_t token);

/* The same by the names of the assembly and of the type: "System.ArgumentException". */
const struct exception_kind *exception_kind_named(const char *assembly, const char *type);
extern const struct exception_kind *const exception_kind_base;

#endif
