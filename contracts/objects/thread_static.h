/*
 * thread_static.h: the fields of types that exist once for each thread. The runtime keeps those of some types of its
 * core library in its own structure for the thread (ThreadLocalData); only these are found.
 * Source: dotnet/runtime docs/design/datacontracts/{Thread,RuntimeTypeSystem}.md.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_THREAD_STATIC_H
#define CDACQ_CONTRACTS_OBJECTS_THREAD_STATIC_H

#include "contracts/module_cache.h"

/*
 * The address of a thread-static field that is no reference, for the runtime's Thread at `thread`. False if the field
 * is elsewhere, or if the reader fails, as it does where the runtime does not describe such fields.
 */
bool thread_static_find(struct module_cache *cache, uint64_t thread, uint64_t method_table, const char *name,
                        uint64_t *ret);

#endif
