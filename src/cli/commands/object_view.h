/*
 * object_view.h: what cdacq object shows of an object: object_view.c asks, object_text.c and object_json.c write. What
 * cannot be read has its reason in its place.
 */
#ifndef CDACQ_CLI_COMMANDS_OBJECT_VIEW_H
#define CDACQ_CLI_COMMANDS_OBJECT_VIEW_H

#include "cdacq.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/object_heap.h"
#include "util/text.h"

enum {
    OBJECT_DEPTH_MAX = 16,         /* structs within structs */
    OBJECT_FIELDS_MAX = 64 * 1024, /* of one object, with those of its structs and elements */
    OBJECT_ITEMS_SHOWN = 20,       /* elements of an array, without --all */
    OBJECT_UNITS_SHOWN = 1000,     /* UTF-16 units of a string, without --all */
    OBJECT_UNITS_MAX = 20 * 1000,  /* with it, as a text has a cap */
};

/* An object that is being shown. */
struct object_view {
    struct cdacq_session *session;
    struct output *out;
    bool all;
    uint32_t fields_left;
    unsigned depth;
    uint64_t problems;        /* values that cannot be read */
    struct object_heap *heap; /* NULL: no generation is shown */
    bool with_referrers;
    struct cdacq_object object;
};

/* What a value is, for whoever writes it. */
enum shown_kind {
    SHOWN_NULL,
    SHOWN_TEXT,      /* `text` */
    SHOWN_WORD,      /* `text`, which is a number, true or false */
    SHOWN_CHARACTER, /* `text` */
    SHOWN_STRING,    /* `text` and `address`; `cut` units follow */
    SHOWN_REFERENCE, /* `address`, and `type`, unless that is NULL */
    SHOWN_STRUCT,    /* its fields are its value */
    SHOWN_PROBLEM,   /* `text` says why it cannot be read */
};

struct shown_value {
    enum shown_kind kind;
    struct text text; /* UTF-8, not escaped */
    uint64_t address;
    const char *type; /* of the object that is referred to */
    bool has_count;
    uint64_t count; /* of its elements or items */
    uint32_t length, cut;
    struct cdacq_value value; /* the one that is shown: of a Nullable<T>, that in it */
};

/* Reads what is shown of a value. `problem` is why it could not be read, or NULL. The caller frees it. */
void object_view_value(struct object_view *view, const struct cdacq_value *value, const char *problem,
                       struct shown_value *ret);
void shown_value_deinit(struct shown_value *shown);

/* The number of elements or items of an object. False, and *ret is left alone, if it has none or that is not known. */
bool object_view_count(const struct object_view *view, uint64_t address, uint64_t *ret);

/* Adds to `ret` at most as much of a string as is shown. */
void object_view_string(struct object_view *view, uint64_t address, struct shown_value *ret);

/* Whether one more field may be shown. The first that may not be is a problem. */
bool object_view_take_field(struct object_view *view);

/* How many items are shown at most. */
uint64_t object_view_item_limit(const struct object_view *view);

/* The name of the method that a delegate calls. NULL: the object is none, or the method is not known. */
const char *object_view_method(struct object_view *view);

/* Writes the object. `view->object` is filled. */
void object_view_write_text(struct object_view *view);
void object_view_write_json(struct object_view *view);

struct json_writer;

/* Writes " = " and a value, and ends its line: the fields of a struct follow on lines of their own. */
void object_view_put_text(struct object_view *view, const struct cdacq_value *value);

/* Writes the members of an object that are about a value. */
void object_view_put_json(struct object_view *view, struct json_writer *json, const struct cdacq_value *value);

/* Writes that there is no answer for an address, or for what was given as one. */
void object_write_error_text(struct output *out, const char *address, const char *why);
void object_write_error_json(struct output *out, const char *address, const char *why);

#endif
