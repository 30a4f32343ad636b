/*
 * method_desc.h: MethodDesc, of the RuntimeTypeSystem contract: its module, token and type arguments. ChunkIndex leads
 * to its MethodDescChunk, which names the MethodTable and holds the upper bits of the token; the MethodDesc holds the
 * lower ones. Dynamic methods (DynamicMethod, IL stubs) have a name instead of a token.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_DESC_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_DESC_H

#include "descriptors/fields.h"

enum method_classification {
    METHOD_IL,
    METHOD_FCALL,
    METHOD_PINVOKE,
    METHOD_EEIMPL, /* delegates' own */
    METHOD_ARRAY,  /* Get, Set, Address, .ctor of array types */
    METHOD_INSTANTIATED,
    METHOD_COM_INTEROP,
    METHOD_DYNAMIC,
};

struct method_desc {
    uint64_t address, method_table;
    uint64_t module; /* 0 for dynamic methods */
    uint32_t token;  /* methoddef; 0 for dynamic methods */
    uint8_t classification;
};

/* False, and the reader fails, if it cannot be read or is corrupt. */
bool method_desc_read(struct reader *reader, uint64_t address, struct method_desc *ret);

/*
 * The number of the method's own type arguments, 0 if it is no instantiation; *ret is the address of their handles. The
 * reader fails if an instantiation has none or too many.
 */
uint32_t method_desc_arguments(struct reader *reader, const struct method_desc *method, uint64_t *ret);

/*
 * What the code of a method that returns a Task is, since .NET 11. A Task-returning method has two MethodDescs with one
 * token. Callers of the *async variant* get the Task's result or, if it is not there yet, a continuation. If the
 * runtime suspends the method, its IL is compiled as the async variant; an *async thunk* then stands for the method
 * itself. The runtime also makes a thunk where an override returns more than the method that it overrides.
 * Source: dotnet/runtime src/coreclr/vm/method.hpp (AsyncMethodFlags), asyncthunks.cpp.
 */
struct method_async_kind {
    bool is_variant;   /* it returns what its Task would yield */
    bool drops_result; /* no: it returns nothing, as the method that it overrides returns a Task without a result */
    bool is_thunk;     /* its code is the runtime's, and the runtime's stack traces leave it out */
};

/* Of a MethodDesc. All false before .NET 11, or if the reader fails. */
struct method_async_kind method_desc_async_kind(struct reader *reader, uint64_t address);

/* Whether a dynamic method is a stub of the runtime's, not a System.Reflection.Emit.DynamicMethod. */
bool method_desc_is_il_stub(struct reader *reader, const struct method_desc *method);

/* Whether the runtime's stack traces leave a method out, whatever its attributes: an IL stub, or an async thunk. */
bool method_desc_is_hidden(struct reader *reader, const struct method_desc *method);

/* The name of a dynamic method, allocated. False, and the reader fails, if the runtime does not describe it. */
bool method_desc_dynamic_name(struct reader *reader, const struct method_desc *method, char **ret);

/* The signature of a dynamic method. False, without failing, if there is none. */
bool method_desc_stored_signature(struct reader *reader, const struct method_desc *method, struct window *ret);

#endif
