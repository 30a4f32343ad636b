#include "contracts/objects/static_field.h"

#include "contracts/objects/field.h"
#include "descriptors/fields.h"
#include "descriptors/layout.h"
#include "formats/names/signature.h"

enum { STATICS_NOT_INITIALIZED = 1 }; /* a tag of DynamicStaticsInfo.GCStatics and NonGCStatics */

/*
 * .NET 8: what follows the slots of a generic type's MethodTable ends with its number in a table of the module that it
 * was loaded for. An entry leads to a block that begins with the place of the references.
 */
enum {
    MT_GENERICS_STATICS = 4, /* a bit of MTFlags */
    MT_SLOTS_MASK = 0x1f,    /* of MTFlags2: a bit for each slot that the type has */
    SLOTS_IN_TABLE = 2,      /* those that the fixed part has room for */
    VIRTUALS_PER_CHUNK = 8,
};

static uint64_t find_generic_references(struct reader *reader, uint64_t method_table, uint64_t statics)
{
    uint32_t slots = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags2) & MT_SLOTS_MASK;
    uint64_t virtuals = read_field(reader, method_table, F_MethodTable_NumVirtuals);
    uint64_t chunks = (virtuals + VIRTUALS_PER_CHUNK - 1) / VIRTUALS_PER_CHUNK;
    uint64_t others = (uint64_t)MAX(__builtin_popcount(slots), (int)SLOTS_IN_TABLE) - SLOTS_IN_TABLE;
    uint64_t info = method_table + reader->layout->sizes[T_MethodTable] + 8 * (chunks + others);
    uint64_t number = read_pointer(reader, info + 8);
    uint64_t count = read_field(reader, statics, F_DomainLocalModule_m_aDynamicEntries);
    if (reader_failed(reader) || number >= count)
        return 0;
    uint64_t entry = read_field(reader, statics, F_DomainLocalModule_m_pDynamicClassTable) +
                     number * reader->layout->sizes[T_DynamicClassInfo];
    uint64_t block = read_field(reader, entry, F_DynamicClassInfo_m_pDynamicEntry);
    return block ? read_pointer(reader, block) : 0;
}

/* The place of a type's references or of its other values, with the tag. 0: there is none yet. */
static uint64_t find_base(struct reader *reader, uint64_t method_table, bool of_references)
{
    uint64_t size = reader->layout->sizes[T_DynamicStaticsInfo];
    if (has_field(reader, F_MethodTable_AuxiliaryData) && size) {
        uint64_t info = read_field(reader, method_table, F_MethodTable_AuxiliaryData) - size;
        return read_field(reader, info,
                          of_references ? F_DynamicStaticsInfo_GCStatics : F_DynamicStaticsInfo_NonGCStatics);
    }
    if (!has_field(reader, F_Module_m_ModuleID) || !has_field(reader, F_DomainLocalModule_m_pGCStatics)) {
        (void)field_missing(reader, F_DynamicStaticsInfo_NonGCStatics);
        return 0;
    }
    uint64_t module = read_field(reader, method_table, F_MethodTable_Module);
    uint64_t statics = read_field(reader, module, F_Module_m_ModuleID);
    if (statics && read_field(reader, method_table, F_MethodTable_MTFlags) & MT_GENERICS_STATICS) {
        statics = of_references ? find_generic_references(reader, method_table, statics) : 0;
        return statics ? statics | STATICS_NOT_INITIALIZED : 0;
    }
    statics = statics && of_references ? read_field(reader, statics, F_DomainLocalModule_m_pGCStatics) : statics;
    return statics ? statics | STATICS_NOT_INITIALIZED : 0;
}

bool static_field_place(struct reader *reader, const struct object_field *field, struct static_field *ret)
{
    bool is_reference = field->element == ELEMENT_CLASS || field->element == ELEMENT_VALUETYPE; /* to a box */
    uint64_t base = find_base(reader, field->owner, is_reference);
    if (reader_failed(reader) || !(base & ~(uint64_t)STATICS_NOT_INITIALIZED))
        return false;
    *ret = (struct static_field){.address = (base & ~(uint64_t)STATICS_NOT_INITIALIZED) + field->offset,
                                 .element = field->element,
                                 .is_initialized = !(base & STATICS_NOT_INITIALIZED)};
    return true;
}

bool static_field_find(struct module_cache *cache, uint64_t method_table, const char *name, struct static_field *ret)
{
    struct object_field field;
    return object_field_declared(cache, method_table, name, &field) && field.is_static &&
           static_field_place(cache->reader, &field, ret);
}

bool static_reference(struct module_cache *cache, uint64_t method_table, const char *name, uint64_t *ret)
{
    struct reader *reader = cache->reader;
    struct static_field field;
    if (!static_field_find(cache, method_table, name, &field) || field.element != ELEMENT_CLASS)
        return false;
    *ret = read_pointer(reader, field.address);
    return !reader_failed(reader);
}
