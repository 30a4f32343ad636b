/*
 * similar.h: finds the known word that another word is most likely a misspelling of.
 */
#ifndef CDACQ_UTIL_SIMILAR_H
#define CDACQ_UTIL_SIMILAR_H

#include <stddef.h>

enum { SIMILAR_MAX = 32 }; /* a longer word is not compared */

struct similar {
    const char *word; /* belongs to the caller */
    const char *best; /* the most similar word considered so far; NULL: none is similar enough */
    size_t distance;  /* of `best` */
};

/* `word` must remain valid and may be changed until the first word is considered. */
void similar_begin(struct similar *similar, const char *word);

/* Makes `known` the best word if it is closer than those before. */
void similar_consider(struct similar *similar, const char *known);

/* The number of letters to insert, drop, replace, or swap with the next to make one word the other; or SIMILAR_MAX. */
size_t similar_distance(const char *a, const char *b);

#endif
