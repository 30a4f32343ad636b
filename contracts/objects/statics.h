/*
 * statics.h: the references in static fields and thread statics of all types that the runtime has loaded. Types are
 * found by their modules: those of the application domain, where the runtime describes its list, and those that the
 * caller knows of. A module has a map of the types that it defines and a table of those that it has made, such as
 * instances of generic types.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,RuntimeTypeSystem,Thread}.md;
 * src/coreclr/vm/threadstatics.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_STATICS_H
#define CDACQ_CONTRACTS_OBJECTS_STATICS_H

#include "contracts/module_cache.h"
#include "contracts/thread.h"

struct static_reference {
    uint64_t type;  /* the MethodTable that declares the field; 0: the array of all thread statics of `thread` */
    uint32_t token; /* of the field */
    uint64_t address, object;
    const struct thread_data *thread; /* of a thread static; else NULL */
};

struct known_types;

/* NULL, and the reader fails, when out of memory. */
struct known_types *known_types_create(struct module_cache *cache);
void known_types_destroy(struct known_types *types);

/* Adds a module, or a type with its base types and its module. 0 is ignored. The reader may fail. */
void known_types_add_module(struct known_types *types, uint64_t module);
void known_types_add(struct known_types *types, uint64_t method_table);

/* Adds the modules of the application domain. False if the runtime does not describe them; the reader may fail. */
bool known_types_add_domain(struct known_types *types);

/*
 * Calls `visit` for each reference that is not null, of static fields and of the thread statics of `threads`. What
 * cannot be read is left out and counted in *ret_left_out: types. False if `visit` returns false, or if the reader
 * fails, without fuel or memory.
 */
bool known_types_visit_statics(struct known_types *types, const struct thread_list *threads,
                               bool (*visit)(void *context, const struct static_reference *reference), void *context,
                               uint64_t *ret_left_out);

#endif
