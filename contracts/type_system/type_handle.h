/*
 * type_handle.h: TypeHandle, of the RuntimeTypeSystem contract: the name of a type that the runtime has loaded. Needed
 * for signatures that hold handles instead of tokens, as those of dynamic methods do.
 *
 * Bit 1 of a handle tells a TypeDesc (pointers, references, type variables) from a MethodTable.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_HANDLE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_HANDLE_H

#include "contracts/loader.h"
#include "formats/names.h"

/* Appends the name of a type, with its actual type arguments. On failure the text may hold a part of it. */
enum cdacq_status type_handle_name(struct module_cache *cache, uint64_t handle, enum name_type_form form,
                                   struct text *ret);

/*
 * The same of argument `index` of an array of handles at `arguments`, as an argument: NAME_TYPE_FULL puts it in
 * brackets with the simple name of its assembly.
 */
enum cdacq_status type_handle_argument(struct module_cache *cache, uint64_t arguments, uint32_t index,
                                       enum name_type_form form, struct text *ret);

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
