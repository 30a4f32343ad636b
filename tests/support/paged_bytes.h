/*
 * paged_bytes.h: a source that is as strict as struct bytes allows: a window has exactly its bytes (under
 * AddressSanitizer) and is valid only until the next one, and a part of the source may be missing, as in a core. It
 * counts the pages that were asked for.
 */
#ifndef CDACQ_TESTS_SUPPORT_PAGED_BYTES_H
#define CDACQ_TESTS_SUPPORT_PAGED_BYTES_H

#include "formats/bytes.h"

enum { PAGED_BYTES_PAGE = 4096, PAGED_BYTES_PAGES = 1 << 14 };

struct paged_bytes {
    const uint8_t *data;
    uint64_t missing_begin, missing_end;
    uint8_t *window;
    size_t page_count; /* distinct ones touched */
    uint8_t touched[PAGED_BYTES_PAGES / 8];
};

static inline const void *paged_bytes_window(void *context, uint64_t offset, size_t count)
{
    struct paged_bytes *paged = context;
    free(paged->window);
    paged->window = NULL;
    if (offset < paged->missing_end && offset + count > paged->missing_begin)
        return NULL;
    for (uint64_t page = offset / PAGED_BYTES_PAGE; page * PAGED_BYTES_PAGE < offset + count; page++)
        if (page < PAGED_BYTES_PAGES && !(paged->touched[page / 8] >> page % 8 & 1)) {
            paged->touched[page / 8] |= (uint8_t)(1 << page % 8);
            paged->page_count++;
        }
    paged->window = malloc(count ? count : 1);
    if (!paged->window)
        abort();
    memcpy(paged->window, paged->data + offset, count);
    return paged->window;
}

static inline struct bytes paged_bytes_open(struct paged_bytes *paged, const void *data, uint64_t size)
{
    memset(paged, 0, sizeof *paged);
    paged->data = data;
    return (struct bytes){.window = paged_bytes_window, .context = paged, .size = size};
}

static inline void paged_bytes_close(struct paged_bytes *paged)
{
    free(paged->window);
    paged->window = NULL;
}

#endif
