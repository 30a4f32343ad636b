/*
 * image.h: an ELF shared library, as the loader has mapped it, that exports the contract descriptor among other
 * symbols.
 */
#ifndef CDACQ_MOCKTARGET_IMAGE_H
#define CDACQ_MOCKTARGET_IMAGE_H

#include "mocktarget/mock.h"

struct image_plan {
    const char *path;
    enum mock_symbols symbols;
    size_t json_size, header_size, pointers_size;
    uint64_t json, header, pointers; /* out: their addresses */
};

/* Maps the image and writes everything except the JSON, the header and the pointers. */
void image_write(struct mock *mock, struct image_plan *plan);

#endif
