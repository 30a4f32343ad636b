/*
 * load_context.h: the assemblies that a process has loaded, and the assembly load context of each. A context that can
 * be unloaded has a LoaderAllocator of its own: the object of it is kept as long as anything uses the assemblies.
 * Source: dotnet/runtime docs/design/datacontracts/Loader.md; src/coreclr/vm/{appdomain.hpp,peassembly.h,
 * assemblybinder.h,loaderallocator.hpp}.
 */
#ifndef CDACQ_CONTRACTS_LOAD_CONTEXT_H
#define CDACQ_CONTRACTS_LOAD_CONTEXT_H

#include "descriptors/fields.h"

/*
 * Calls `visit` with the module of each assembly of the application domain. False if the runtime does not describe
 * the list; the reader may fail.
 */
bool assemblies_visit(struct reader *reader, void (*visit)(void *context, uint64_t module), void *context);

/* Objects; 0: there is none, or it is not described. */
struct load_context {
    uint64_t context;   /* an AssemblyLoadContext */
    uint64_t allocator; /* a System.Reflection.LoaderAllocator */
};

/* Of a module. The reader may fail. */
struct load_context load_context_read(struct reader *reader, uint64_t module);

/* The LoaderAllocator object of a module that can be unloaded; else 0. The reader may fail. */
uint64_t module_allocator(struct reader *reader, uint64_t module);

#endif
