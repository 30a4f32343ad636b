#include "contracts/load_context.h"

enum { BLOCKS_MAX = 1 << 16 }; /* of the list of assemblies */

bool assemblies_visit(struct reader *reader, void (*visit)(void *context, uint64_t module), void *context)
{
    const struct layout *layout = reader->layout;
    if (!layout->global_present[G_AppDomain] || !has_field(reader, F_AppDomain_AssemblyList) ||
        !has_field(reader, F_Assembly_Module))
        return false;
    uint64_t domain = read_pointer(reader, layout->globals[G_AppDomain]);
    uint64_t list = domain ? field_address(reader, domain, F_AppDomain_AssemblyList) : 0;
    uint64_t left = list ? read_field(reader, list, F_ArrayListBase_Count) : 0;
    uint64_t block = list ? field_address(reader, list, F_ArrayListBase_FirstBlock) : 0;
    for (unsigned blocks = 0; block && left && blocks < BLOCKS_MAX && !reader_failed(reader); blocks++) {
        uint64_t size = read_field(reader, block, F_ArrayListBlock_Size);
        uint64_t items = field_address(reader, block, F_ArrayListBlock_ArrayStart);
        for (uint64_t i = 0; i < size && left && reader_step(reader, "the list of assemblies"); i++, left--) {
            uint64_t assembly = read_pointer(reader, items + i * reader->pointer_size);
            if (assembly && has_field(reader, F_DomainAssembly_m_pAssembly))
                assembly = read_field(reader, assembly, F_DomainAssembly_m_pAssembly);
            uint64_t module = read_optional(reader, assembly, F_Assembly_Module);
            if (module && !reader_failed(reader)) /* else it was unloaded */
                visit(context, module);
        }
        block = read_field(reader, block, F_ArrayListBlock_Next);
    }
    return !reader_failed(reader);
}

static uint64_t read_handle(struct reader *reader, uint64_t handle)
{
    return handle ? read_pointer(reader, handle) : 0;
}

uint64_t module_allocator(struct reader *reader, uint64_t module)
{
    uint64_t allocator = read_optional(reader, module, F_Module_LoaderAllocator);
    return read_handle(reader, read_optional(reader, allocator, F_LoaderAllocator_ObjectHandle));
}

struct load_context load_context_read(struct reader *reader, uint64_t module)
{
    uint64_t assembly = read_optional(reader, module, F_Module_PEAssembly);
    uint64_t host = read_optional(reader, assembly, F_PEAssembly_m_pHostAssembly);
    uint64_t binder = has_field(reader, F_PEAssembly_m_pHostAssembly)
                          ? read_optional(reader, host, F_BinderAssembly_m_pBinder)
                          : read_optional(reader, assembly, F_PEAssembly_AssemblyBinder);
    return (struct load_context){
        .context = read_handle(reader, read_optional(reader, binder, F_AssemblyBinder_AssemblyLoadContext)),
        .allocator = module_allocator(reader, module),
    };
}
