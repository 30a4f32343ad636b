#include "util/similar.h"

#include <string.h>

#include "util/base.h"

size_t similar_distance(const char *a, const char *b)
{
    /* The rows of the usual table for the last two letters of `a`, and for the one that is being filled. */
    size_t rows[3][SIMILAR_MAX], a_length = strnlen(a, SIMILAR_MAX), b_length = strnlen(b, SIMILAR_MAX);
    if (a_length >= SIMILAR_MAX || b_length >= SIMILAR_MAX)
        return SIMILAR_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = MIN(replaced, MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = MIN(row[j], above_that[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void similar_begin(struct similar *similar, const char *word)
{
    *similar = (struct similar){.word = word, .distance = SIMILAR_MAX};
}

void similar_consider(struct similar *similar, const char *known)
{
    size_t length = strlen(similar->word), distance = similar_distance(similar->word, known);
    if (length >= 3 && !strncmp(similar->word, known, length))
        distance = 0; /* an abbreviation */
    if (distance < similar->distance && distance <= length / 3 + (length > 1)) {
        similar->distance = distance;
        similar->best = known;
    }
}
