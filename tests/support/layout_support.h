/*
 * layout_support.h: where the fields of a runtime are, from the supplement that the library itself contains.
 */
#ifndef CDACQ_TESTS_SUPPORT_LAYOUT_SUPPORT_H
#define CDACQ_TESTS_SUPPORT_LAYOUT_SUPPORT_H

#include "descriptors/layout.h"

/* The layout of .NET 8 for x64. Pointers, which the runtime would publish, are 0. Aborts on failure. */
void layout_of_net8_x64(struct layout *ret);

/* That of .NET 11.0.0, without the addresses of its globals. */
void layout_of_net11_x64(struct layout *ret);

#endif
