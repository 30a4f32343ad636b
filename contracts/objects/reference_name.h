/*
 * reference_name.h: how an object has a reference, by its offset: the field, the element of an array, the field of a
 * struct in either.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_REFERENCE_NAME_H
#define CDACQ_CONTRACTS_OBJECTS_REFERENCE_NAME_H

#include "contracts/module_cache.h"
#include "util/text.h"

/* Appends "_items", "[3]", "[3].value". False if no field or element is known there, or if the reader fails. */
bool reference_name_append(struct module_cache *cache, uint64_t object, uint64_t offset, struct text *ret);

#endif
