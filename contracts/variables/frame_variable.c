#include "contracts/variables/frame_variable.h"

#include "contracts/objects/value.h"
#include "contracts/type_system/method_table_flags.h"

/* What a value is read by. */
struct value_type {
    uint8_t element; /* 0: not known */
    uint64_t type;   /* of a struct or an enum */
    bool is_by_ref;  /* the variable has the address of such a value */
};

static void type_of_handle(struct module_cache *cache, uint64_t handle, struct value_type *ret)
{
    ret->element = handle ? type_handle_element(cache, handle) : 0;
    ret->type = ret->element == ELEMENT_CLASS || ret->element == ELEMENT_PTR ? 0 : handle;
}

/* The type at a cursor. */
static void find_type(const struct signature_scope *scope, struct signature s, struct value_type *ret)
{
    signature_skip_modifiers(&s);
    if (signature_peek(&s) == ELEMENT_BYREF) {
        ret->is_by_ref = true;
        s.at++;
        signature_skip_modifiers(&s);
    }
    struct signature type = s;
    uint8_t element = signature_byte(&s);
    switch (element) {
    case ELEMENT_STRING:
    case ELEMENT_OBJECT:
    case ELEMENT_CLASS:
    case ELEMENT_SZARRAY:
    case ELEMENT_ARRAY:
        ret->element = ELEMENT_CLASS;
        break;
    case ELEMENT_PTR:
    case ELEMENT_FNPTR:
        ret->element = ELEMENT_PTR;
        break;
    case ELEMENT_GENERICINST:
        if (signature_peek(&s) == ELEMENT_CLASS)
            ret->element = ELEMENT_CLASS;
        else
            type_of_handle(scope->cache, signature_type_find(scope, type), ret);
        break;
    case ELEMENT_VALUETYPE:
        type_of_handle(scope->cache, signature_type_find(scope, type), ret);
        break;
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        type_of_handle(scope->cache, signature_scope_argument(scope, element == ELEMENT_MVAR, signature_uint(&s)), ret);
        break;
    case ELEMENT_TYPEDBYREF:
        break;
    default:
        ret->element = element_width(element, scope->cache->reader->pointer_size) ? element : 0;
        break;
    }
    if (s.failed)
        ret->element = 0;
}

/* Whether a register of that kind has all of a value of such a type. */
static bool fits_register(struct reader *reader, const struct value_type *type, enum variable_place_kind kind)
{
    bool is_real = type->element == ELEMENT_R4 || type->element == ELEMENT_R8;
    if (kind == PLACE_XMM)
        return !type->is_by_ref && (is_real || (type->element == ELEMENT_VALUETYPE &&
                                                struct_size(reader, type->type) <= reader->pointer_size));
    if (type->is_by_ref)
        return true;
    if (is_real)
        return false; /* what an integer register has of it is not known */
    return type->element != ELEMENT_VALUETYPE || struct_size(reader, type->type) <= reader->pointer_size;
}

static void read_by_ref(struct module_cache *cache, const struct value_type *type, const struct variable_place *place,
                        struct frame_value *ret)
{
    if (place->kind == PLACE_MEMORY)
        typed_value_read(cache, ELEMENT_BYREF, 0, place->address, &ret->value);
    else
        typed_value_of_bits(cache, ELEMENT_BYREF, 0, place->bits, &ret->value);
    ret->kind = FRAME_VALUE_KNOWN;
    if (!ret->value.bits || !type->element || reader_failed(cache->reader))
        return;
    ret->kind = FRAME_VALUE_BY_REF;
    typed_value_read(cache, type->element, type->type, ret->value.bits, &ret->referent);
}

static void read_placed(struct module_cache *cache, const struct value_type *type, const struct variable_place *place,
                        struct frame_value *ret)
{
    if (type->is_by_ref) {
        read_by_ref(cache, type, place, ret);
        return;
    }
    ret->kind = type->element ? FRAME_VALUE_KNOWN : FRAME_VALUE_NO_TYPE;
    if (type->element && place->kind == PLACE_MEMORY)
        typed_value_read(cache, type->element, type->type, place->address, &ret->value);
    else if (type->element)
        typed_value_of_bits(cache, type->element, type->type, place->bits, &ret->value);
}

void frame_variable_read(const struct variable_frame *frame, const struct frame_method *method, uint32_t number,
                         const struct signature *type, struct frame_value *ret)
{
    struct module_cache *cache = frame->cache;
    struct reader *reader = cache->reader;
    struct value_type found = {0};
    struct variable_place place;
    *ret = (struct frame_value){.kind = FRAME_VALUE_NONE};
    variable_place_find(frame, &method->places, method->is_funclet, number, &place);
    if (place.kind == PLACE_NONE)
        return;
    if (type)
        find_type(&method->scope, *type, &found);
    else if (method->owner_is_value)
        type_of_handle(cache, method->owner, &found);
    else
        found.element = ELEMENT_CLASS;
    found.is_by_ref |= !type && method->owner_is_value;
    reader_recover(reader, FAILURE_BUT_FUEL);
    if (reader_failed(reader))
        return;
    bool in_register = place.kind == PLACE_REGISTER || place.kind == PLACE_XMM;
    if (place.kind == PLACE_UNREAD || (in_register && !fits_register(reader, &found, place.kind)))
        ret->kind = FRAME_VALUE_UNREAD;
    else
        read_placed(cache, &found, &place, ret);
    if (reader_failed(reader))
        reader_status(reader, &ret->error);
    reader_recover(reader, FAILURE_BUT_FUEL);
}
