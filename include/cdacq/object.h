/*
 * cdacq/object.h: the objects of a target: types, fields with their values, strings, the contents of arrays and
 * collections. The library does not trust the heap: it bounds lengths, and fails if something cannot be read. Source:
 * dotnet/runtime docs/design/datacontracts/{Object,RuntimeTypeSystem}.md.
 */
#ifndef CDACQ_OBJECT_H
#define CDACQ_OBJECT_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* An object. The caller sets `size`. The session owns the string: see struct cdacq_method. */
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

/*
 * Whether there is an object at `address`, as far as its type tells: the address is aligned, and holds the address of a
 * MethodTable whose class belongs to it. CDACQ_NOT_MANAGED: there is none. Fails with ARGUMENT, or with MEMORY if that
 * cannot be read, as where there is none, or where the target lacks the type.
 */
CDACQ_API enum cdacq_status cdacq_session_check_object(struct cdacq_session *session, uint64_t address,
                                                       struct cdacq_error *err);

/* What a field or an element holds. */
enum cdacq_value_kind {
    CDACQ_VALUE_BOOLEAN,
    CDACQ_VALUE_CHARACTER, /* a UTF-16 unit */
    CDACQ_VALUE_SIGNED,
    CDACQ_VALUE_UNSIGNED,
    CDACQ_VALUE_REAL,
    CDACQ_VALUE_REFERENCE, /* an object, or 0 */
    CDACQ_VALUE_POINTER,
    CDACQ_VALUE_STRUCT, /* only `address` and, in an array, `width` are set; in a register, `bits` and `width` */
};

/* The value of a field or an element. The caller sets `size`. */
struct cdacq_value {
    size_t size;
    enum cdacq_value_kind kind;
    uint32_t width;        /* bytes */
    uint64_t address;      /* where it is stored; 0: in a register */
    uint64_t bits;         /* a signed value is extended to 64 bits, any other has zeros above its width */
    uint64_t method_table; /* of a struct or an enum; 0: another type, or not known */
};

/*
 * Reads an instance field by its name in the metadata, such as "_message" or "<Name>k__BackingField". If several types
 * of the hierarchy declare the name, reads the field of the most derived one. The bits of an enum are its number.
 * CDACQ_NOT_MANAGED: there is no such field. Fails as cdacq_session_get_object does, and with CONTRACT for a static
 * field.
 */
CDACQ_API enum cdacq_status cdacq_session_get_field(struct cdacq_session *session, uint64_t object, const char *name,
                                                    struct cdacq_value *ret, struct cdacq_error *err);

/* A field of an object or a struct, for the time of a visit. The session owns the strings (struct cdacq_method). */
struct cdacq_field {
    size_t size;
    const char *name;    /* as the metadata has it; printable UTF-8; NULL: not known */
    const char *type;    /* the declared type with its actual arguments, as Type.ToString() gives it; NULL: not known */
    const char *owner;   /* the type that declares the field, likewise */
    uint32_t offset;     /* bytes from the first field of the object or struct */
    const char *problem; /* one line: why the value cannot be read; NULL: it was read */
    const struct cdacq_value *value; /* with a problem, its `bits` and `method_table` are 0 */
};

/*
 * Calls `visit` for every instance field of an object: those of base types first, each type's in the order in which the
 * runtime has them. The fields are read before the first is passed on, and `visit` may use the session. A value that
 * cannot be read is a problem of its field alone. CDACQ_STOPPED: `visit` returned non-zero. Fails as
 * cdacq_session_get_object does, with NOMEM, and with FIELD if the target does not describe fields.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_fields(struct cdacq_session *session, uint64_t object,
                                                       int (*visit)(const struct cdacq_field *field, void *context),
                                                       void *context, struct cdacq_error *err);

/* The same for a struct at `address`: it and the MethodTable are those of a struct cdacq_value. */
CDACQ_API enum cdacq_status
cdacq_session_visit_struct_fields(struct cdacq_session *session, uint64_t method_table, uint64_t address,
                                  int (*visit)(const struct cdacq_field *field, void *context), void *context,
                                  struct cdacq_error *err);

/*
 * The same for a struct value, also for one without an address, as a variable in a register has (cdacq/variables.h).
 * Fails with ARGUMENT if the value is no struct of a known type.
 */
CDACQ_API enum cdacq_status
cdacq_session_visit_value_fields(struct cdacq_session *session, const struct cdacq_value *value,
                                 int (*visit)(const struct cdacq_field *field, void *context), void *context,
                                 struct cdacq_error *err);

/*
 * Reads the value in a boxed struct, enum or primitive value. CDACQ_NOT_MANAGED: the object is no box. Fails as
 * cdacq_session_get_object does.
 */
CDACQ_API enum cdacq_status cdacq_session_get_boxed(struct cdacq_session *session, uint64_t object,
                                                    struct cdacq_value *ret, struct cdacq_error *err);

/*
 * Reads the value in a System.Nullable<T>; *ret_has_value is false, and *ret empty, for null. CDACQ_NOT_MANAGED: the
 * value is no Nullable<T>. Fails as cdacq_session_get_object does.
 */
CDACQ_API enum cdacq_status cdacq_session_get_nullable(struct cdacq_session *session, const struct cdacq_value *value,
                                                       bool *ret_has_value, struct cdacq_value *ret,
                                                       struct cdacq_error *err);

/*
 * Passes the text of a value to `write`, in one piece of UTF-8: a number; `true` or `false`; a character; the name of
 * an enum's member, the names of several, separated by ", ", or its number; the address in a pointer; Nullable<T> as
 * its value or `null`; and, as ToString() gives them for the invariant culture, Guid, DateTime and DateTimeOffset
 * (format "o"), TimeSpan, DateOnly, TimeOnly, Decimal, Int128, UInt128, and Span<char> and ReadOnlySpan<char> of up to
 * 4,096 characters. A DateTime of local time, whose offset is not known, ends in " (local)". A character can be a
 * control character: escape the text before you print it.
 * CDACQ_NOT_MANAGED: a reference or another struct, which has no such text, or one whose bytes are no value of its
 * type. CDACQ_STOPPED: `write` returned non-zero. Fails with ARGUMENT, NOMEM, MEMORY or FUEL.
 */
CDACQ_API enum cdacq_status cdacq_session_write_value(struct cdacq_session *session, const struct cdacq_value *value,
                                                      int (*write)(const char *bytes, size_t length, void *context),
                                                      void *context, struct cdacq_error *err);

/* What a delegate calls. The caller sets `size`. The session owns the string: see struct cdacq_method. */
struct cdacq_delegate {
    size_t size;
    uint64_t target;      /* the object that the method is called on; 0: none, as of a static method */
    uint64_t entry;       /* the code pointer that is called */
    uint64_t method_desc; /* 0: not known */
    const char *method;   /* in the target's enum cdacq_name_style; printable UTF-8; NULL: not known */
};

/*
 * Reads a delegate that calls one method. CDACQ_NOT_MANAGED: the object is no delegate, or calls no single method, as
 * one that was combined from several. Fails as cdacq_session_get_object does.
 */
CDACQ_API enum cdacq_status cdacq_session_get_delegate(struct cdacq_session *session, uint64_t object,
                                                       struct cdacq_delegate *ret, struct cdacq_error *err);

#define CDACQ_RANK_MAX 32 /* dimensions of an array */

/* What an array or a collection contains, as a whole. The caller sets `size`. */
struct cdacq_contents {
    size_t size;
    uint64_t count; /* of elements or items */
    bool is_array;
    bool has_keys; /* Dictionary and ConcurrentDictionary */
    uint32_t rank; /* of an array; else 0 */
    uint32_t lengths[CDACQ_RANK_MAX];
    int32_t lower_bounds[CDACQ_RANK_MAX];
};

/* An item of a collection, or an element of an array, for the time of a visit. */
struct cdacq_item {
    size_t size;
    uint64_t index;                /* from 0; of an array of several dimensions, in the order of memory */
    const char *problem;           /* one line: why the item cannot be read; NULL: it was read */
    const struct cdacq_value *key; /* NULL: the item has none */
    const struct cdacq_value *value;
};

/*
 * Calls `visit` for the first `max` elements of an array, or items of a List, Queue, Stack (the top first), HashSet,
 * Dictionary or ConcurrentDictionary, or of a type derived from one of them. *ret, unless it is NULL, is filled before.
 * `visit` may be NULL, and may use the session. CDACQ_NOT_MANAGED: the object is none of these, or its fields are not
 * those that this build knows. CDACQ_STOPPED: `visit` returned non-zero. Fails as cdacq_session_get_object does.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_items(struct cdacq_session *session, uint64_t object, uint64_t max,
                                                      struct cdacq_contents *ret,
                                                      int (*visit)(const struct cdacq_item *item, void *context),
                                                      void *context, struct cdacq_error *err);

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
