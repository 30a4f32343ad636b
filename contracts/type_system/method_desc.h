/*
 * method_desc.h: MethodDesc, of the RuntimeTypeSystem contract: which method of which module it stands for.
 *
 * MethodDescs stand in chunks; ChunkIndex leads back to the chunk, which names the MethodTable and holds the upper bits
 * of the token, the MethodDesc itself the lower ones. Dynamic methods (DynamicMethod, IL stubs) have no token but a
 * name. Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_DESC_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_DESC_H

#include "descriptors/field_reader.h"

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
    uint64_t module; /* 0 for dynamic methods, which are none of its own */
    uint32_t token;  /* methoddef; 0 for dynamic methods */
    uint8_t classification;
};

/* False, and the reader fails, when it cannot be read or is impossible. */
bool method_desc_read(struct field_reader *reader, uint64_t address, struct method_desc *ret);

/*
 * How many type arguments the method itself has, 0 where it is no instantiation; *ret is where their handles are. An
 * instantiation over none or too many contradicts itself: the reader fails.
 */
uint32_t method_desc_arguments(struct field_reader *reader, const struct method_desc *method, uint64_t *ret);

/* Whether a dynamic method is a stub that the runtime has made, not a System.Reflection.Emit.DynamicMethod. */
bool method_desc_is_il_stub(struct field_reader *reader, const struct method_desc *method);

/* The name of a dynamic method, allocated. False, and the reader fails, where the runtime does not describe it. */
bool method_desc_dynamic_name(struct field_reader *reader, const struct method_desc *method, char **ret);

/* The signature that a dynamic method carries. False, without failing, where there is none. */
bool method_desc_stored_signature(struct field_reader *reader, const struct method_desc *method, struct window *ret);

#endif
