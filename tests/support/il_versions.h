/*
 * il_versions.h: versions of the IL of a mock's methods, which hot reload and profilers make.
 */
#ifndef CDACQ_TESTS_SUPPORT_IL_VERSIONS_H
#define CDACQ_TESTS_SUPPORT_IL_VERSIONS_H

#include "mocktarget/mocktarget.h"

enum il_version_source { IL_VERSION_REJIT = 1, IL_VERSION_EDIT };

/* A version, and those of the list `next` after it. Returns the list that begins with it. */
uint64_t il_version_put(struct mock *mock, enum il_version_source source, uint64_t next);

/*
 * Gives the methods of a Module their lists of versions; `lists` has one for each row of MethodDef, from row 0 on, or
 * 0. Returns the address of the map's places.
 */
uint64_t il_versions_put(struct mock *mock, uint64_t module, const uint64_t *lists, uint32_t count);

#endif
