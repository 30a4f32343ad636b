/*
 * type_handle.h: TypeHandle, of the RuntimeTypeSystem contract: types that the runtime has loaded, as a feeder of names
 * (formats/names/type_walk.h). Needed for what a method is instantiated over, and for signatures that hold handles
 * instead of tokens, as those of dynamic methods do.
 *
 * Bit 1 of a handle distinguishes a TypeDesc (pointers, references, type variables) from a MethodTable.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_HANDLE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_HANDLE_H

#include "contracts/loader.h"
#include "formats/names/names.h"

/* Feeds a type to the name in the making, with its actual type arguments. */
void type_handle_feed(struct module_cache *cache, uint64_t handle, struct namer *n);

/* The same for argument `index` of an array of handles at `arguments`. */
void type_handle_feed_argument(struct module_cache *cache, uint64_t arguments, uint32_t index, struct namer *n);

/*
 * How many type arguments the type of a MethodTable has, 0 also for a definition; *ret is where their handles are. That
 * of an array is its element.
 */
enum cdacq_status type_handle_arguments(struct module_cache *cache, uint64_t method_table, uint64_t *ret,
                                        uint32_t *ret_count);

/* The TypeDef that the type of a handle, which is no TypeDesc and no array, is declared by. */
enum cdacq_status type_handle_definition(struct module_cache *cache, uint64_t handle,
                                         const struct metadata **ret_metadata, uint32_t *ret_token);

#endif
