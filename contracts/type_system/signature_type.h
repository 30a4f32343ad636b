/*
 * signature_type.h: the type at a place of a signature: its name, and the MethodTable of a value type. A signature
 * names types by tokens of its module and by type parameters; the actual arguments of the type and the method that the
 * signature belongs to replace these. Tokens lead to MethodTables through the maps of the module. Instances of generic
 * types are in a table of the module that loaded them: the table is searched, as its hashes are those of names.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,RuntimeTypeSystem}.md; src/coreclr/vm/dacenumerablehash.h.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_SIGNATURE_TYPE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_SIGNATURE_TYPE_H

#include "contracts/module_cache.h"
#include "formats/names/signature.h"
#include "util/text.h"

/* What signatures are read with. */
struct signature_scope {
    struct module_cache *cache;
    const struct metadata *metadata;           /* that tokens refer to */
    uint64_t module;                           /* its Module */
    uint64_t type_arguments, method_arguments; /* addresses of type handles */
    uint32_t type_count, method_count;
    /* The TypeDef and MethodDef whose parameters name arguments that shared code does not know; 0: none. */
    uint32_t type_token, method_token;
};

/* The handle of an argument. 0: there is none, or the reader fails. */
uint64_t signature_scope_argument(const struct signature_scope *scope, bool of_method, uint32_t number);

/*
 * The MethodTable of the type at the cursor if that is a value type and no primitive type that the signature names as
 * such. 0 for any other type, and where it is not loaded or cannot be found. The cursor is not moved.
 */
uint64_t signature_type_find(const struct signature_scope *scope, struct signature type);

/*
 * Appends Type.ToString() of the type at the cursor, printable, and takes it. An argument that shared generic code does
 * not know is the name of its parameter. False: the name is not known.
 */
bool signature_type_name(const struct signature_scope *scope, struct signature *type, struct text *ret);

/* Whether a handle is System.__Canon, which stands for any reference type in shared generic code. */
bool type_handle_is_canon(struct module_cache *cache, uint64_t handle);

#endif
