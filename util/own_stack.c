#include "util/own_stack.h"

#include <pthread.h>

uintptr_t own_stack_floor(size_t reserve)
{
    pthread_attr_t attributes;
    void *address = NULL;
    size_t size = 0, guard = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return UINTPTR_MAX;
    bool is_known =
        pthread_attr_getstack(&attributes, &address, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0;
    pthread_attr_destroy(&attributes);
    uintptr_t begin = (uintptr_t)address, here = (uintptr_t)__builtin_frame_address(0);
    bool is_own = is_known && here >= begin && here - begin < size && size > guard && size - guard > reserve;
    return is_own ? begin + guard + reserve : UINTPTR_MAX;
}
