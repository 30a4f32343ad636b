/*
 * binary_search.h: binary search over an array or anything else that a condition on an index can read.
 *
 *     size_t next = lower_bound(i, spans->count, spans->items[i].end <= address);
 *
 * finds the first index for which the condition is false, or the count. The condition must be true below some index and
 * false from there on; otherwise the result is any index or the count.
 */
#ifndef CDACQ_UTIL_BINARY_SEARCH_H
#define CDACQ_UTIL_BINARY_SEARCH_H

/* Has the type of `count`. `i` names the index in the condition, which is evaluated for indexes below the count. */
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

/*
 * The same without a branch that depends on the condition, which must be cheap: for arrays in memory and random
 * searches, in which half of the branches would be mispredicted.
 */
#define lower_bound_in_memory(i, count, condition)                             \
    ({                                                                         \
        __typeof__((count) + 0) low_ = 0, left_ = (count);                     \
        while (left_) {                                                        \
            __typeof__(low_) i = low_ + (left_ - 1) / 2, half_ = i - low_ + 1; \
            low_ += half_ & -(__typeof__(low_))!!(condition);                  \
            left_ -= half_;                                                    \
        }                                                                      \
        low_;                                                                  \
    })

#endif
