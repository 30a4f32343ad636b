/*
 * runtime_version.h: which version of .NET a runtime is, from what the target itself shows: the sizes of symbols that
 * differ between releases, the version string in its image, and, last, the folder it was loaded from.
 */
#ifndef CDACQ_DESCRIPTORS_RUNTIME_VERSION_H
#define CDACQ_DESCRIPTORS_RUNTIME_VERSION_H

#include "descriptors/runtime.h"

struct runtime_version {
    char release[16];      /* "10.0"; "" unless two of the sources agree */
    char version[32];      /* "10.0.12", the folder's, where it agrees with the release; "" else */
    char file_version[48]; /* "10.0.1226.42308", from the image; "" where that is not readable */
};

void runtime_version_find(const struct runtime *runtime, struct runtime_version *ret);

#endif
