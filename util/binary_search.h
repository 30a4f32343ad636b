/*
 * binary_search.h: the one binary search. What is searched need not be an array: the condition may read it from
 * anywhere.
 *
 *     size_t next = lower_bound(i, spans->count, spans->items[i].end <= address);
 *
 * finds the first index for which the condition is false, or the count. It has to be true for all indexes before some
 * place and false from there on; where it is not, the result is still an index or the count.
 */
#ifndef CDACQ_UTIL_BINARY_SEARCH_H
#define CDACQ_UTIL_BINARY_SEARCH_H

/* Has the type of `count`; `i` is the name of the index within the condition, which is not evaluated for the count. */
#define lower_bound(i, count, condition)                    \
    ({                                                      \
        __typeof__((count) + 0) low_ = 0, high_ = (count);  \
        while (low_ < high_) {                              \
            __typeof__(low_) i = low_ + (high_ - low_) / 2; \
            if (condition)                                  \
                low_ = i + 1;                               \
            else                                            \
                high_ = i;                                  \
        }                                                   \
        low_;                                               \
    })

#endif
