/* own_stack.h: how much of its stack the calling thread has left, for recursion that only memory bounds. */
#ifndef CDACQ_UTIL_OWN_STACK_H
#define CDACQ_UTIL_OWN_STACK_H

#include "util/base.h"

/*
 * The lowest address that frames of this thread may reach if `reserve` bytes are to be left below them. UINTPTR_MAX if
 * that is not known: the thread is on another stack than its own.
 */
uintptr_t own_stack_floor(size_t reserve);

#endif
