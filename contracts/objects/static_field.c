#include "contracts/objects/static_field.h"

#include "contracts/objects/field.h"
#include "formats/names/signature.h"

enum { STATICS_NOT_INITIALIZED = 1 }; /* a tag of DynamicStaticsInfo.GCStatics and NonGCStatics */

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
