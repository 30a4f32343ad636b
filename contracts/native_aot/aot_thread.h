/*
 * aot_thread.h: the managed Thread of a NativeAOT runtime's Thread. The runtime does not publish it. The thread statics
 * of a thread are the fields of an object, and one of them is System.Threading.Thread.t_currentThread. It is found by
 * its type: if the program has other thread statics of that type, there is no answer.
 */
#ifndef CDACQ_CONTRACTS_NATIVE_AOT_AOT_THREAD_H
#define CDACQ_CONTRACTS_NATIVE_AOT_AOT_THREAD_H

#include "contracts/native_aot/aot_image.h"

/* The address of the object; 0 if there is none yet, if it is not known which one it is, or if the reader fails. */
uint64_t aot_managed_thread(struct aot_image *aot, struct reader *reader, uint64_t thread);

/* The managed id of such an object; 0 if it is not described, or if the reader fails. */
uint32_t aot_managed_thread_id(struct reader *reader, uint64_t object);

#endif
