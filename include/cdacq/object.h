/*
 * cdacq/object.h: the objects of a target: types, fields by name, strings, elements of arrays. The library does not
 * trust the heap: it bounds lengths, and fails if something cannot be read. Source: dotnet/runtime
 * docs/design/datacontracts/{Object,RuntimeTypeSystem}.md.
 */
#ifndef CDACQ_OBJECT_H
#define CDACQ_OBJECT_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* An object. The caller sets `size`. The session owns the string. */
struct cdacq_object {
    size_t size;
    uint64_t address;
    uint64_t method_table;
    const char *type;   /* as Type.ToString() gives it; printable UTF-8; NULL: not known */
    uint64_t byte_size; /* of the instance, with its header and elements */
    bool is_string, is_array;
    uint32_t length;       /* UTF-16 units of a string; elements of an array, in all dimensions */
    uint32_t rank;         /* of an array; else 0 */
    uint32_t element_size; /* bytes of an element of an array; else 0 */
};

/*
 * Reads the object at `address`. Fails with ARGUMENT, or with CORRUPT, MEMORY or FIELD if it cannot be read, and then
 * leaves *ret untouched. Does not check that there is an object: the answer for any other address is arbitrary.
 */
CDACQ_API enum cdacq_status cdacq_session_get_object(struct cdacq_session *session, uint64_t address,
                                                     struct cdacq_object *ret, struct cdacq_error *err);

enum cdacq_value_kind {
    CDACQ_VALUE_BOOLEAN,
    CDACQ_VALUE_CHARACTER, /* a UTF-16 unit */
    CDACQ_VALUE_SIGNED,
    CDACQ_VALUE_UNSIGNED,
    CDACQ_VALUE_REAL,
    CDACQ_VALUE_REFERENCE, /* an object, or 0 */
    CDACQ_VALUE_POINTER,
    CDACQ_VALUE_STRUCT, /* only `address` and, in an array, `width` are set */
};

/* The value of a field or an element. The caller sets `size`. */
struct cdacq_value {
    size_t size;
    enum cdacq_value_kind kind;
    uint32_t width;   /* bytes */
    uint64_t address; /* where it is stored */
    uint64_t bits;    /* a signed value is extended to 64 bits, any other has zeros above its width */
};

/*
 * Reads an instance field by its name in the metadata, such as "_message" or "<Name>k__BackingField". If several types
 * of the hierarchy declare the name, reads the field of the most derived one. The value of an enum is its number.
 * CDACQ_NOT_MANAGED: there is no such field. Fails as cdacq_session_get_object does, and with CONTRACT for a static
 * field.
 */
CDACQ_API enum cdacq_status cdacq_session_get_field(struct cdacq_session *session, uint64_t object, const char *name,
                                                    struct cdacq_value *ret, struct cdacq_error *err);

/*
 * Reads an element of an array. In an array of several dimensions, `index` counts the elements in the order of memory.
 * Fails as cdacq_session_get_object does, and with ARGUMENT if the object is no array or has no such element.
 */
CDACQ_API enum cdacq_status cdacq_session_get_element(struct cdacq_session *session, uint64_t array, uint32_t index,
                                                      struct cdacq_value *ret, struct cdacq_error *err);

/*
 * Passes at most `max` UTF-16 units of a string to `write`, in pieces of UTF-8. A surrogate without its pair becomes
 * U+FFFD. The text can have any control characters: escape it before you print it. cdacq_session_get_object returns
 * the length of the string. `write` must not use the session. CDACQ_STOPPED: `write` returned non-zero. Fails with
 * ARGUMENT, or with CORRUPT or MEMORY if the object is no string or cannot be read, perhaps after some pieces.
 */
CDACQ_API enum cdacq_status cdacq_session_write_string(struct cdacq_session *session, uint64_t string, uint32_t max,
                                                       int (*write)(const char *bytes, size_t length, void *context),
                                                       void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
