/*
 * type_handle.h: TypeHandle, of the RuntimeTypeSystem contract: feeds loaded types to names
 * (formats/names/type_walk.h), for what a method is instantiated over and for the signatures of dynamic methods, which
 * hold handles. Bit 1 of a handle distinguishes a TypeDesc (pointers, references, type variables) from a MethodTable.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_HANDLE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_HANDLE_H

#include "cdacq/error.h"
#include "util/base.h"

struct metadata;
struct module_cache;
struct namer;
struct text;

/* Feeds a type, with its actual type arguments, to a name. */
void type_handle_feed(struct module_cache *cache, uint64_t handle, struct namer *n);

/* Appends Type.ToString() of a type; nothing if it fails. */
enum cdacq_status type_handle_name(struct module_cache *cache, uint64_t handle, struct text *ret);

/* Feeds argument `index` of an array of handles at `arguments`. */
void type_handle_feed_argument(struct module_cache *cache, uint64_t arguments, uint32_t index, struct namer *n);

/*
 * The number of type arguments of a MethodTable's type, 0 for a definition; *ret is the address of their handles. An
 * array's argument is its element.
 */
enum cdacq_status type_handle_arguments(struct module_cache *cache, uint64_t method_table, uint64_t *ret,
                                        uint32_t *ret_count);

/* The TypeDef of a handle's type, which must not be an array. CORRUPT for a TypeDesc. */
enum cdacq_status type_handle_definition(struct module_cache *cache, uint64_t handle,
                                         const struct metadata **ret_metadata, uint32_t *ret_token);

#endif
