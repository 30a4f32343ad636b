/*
 * exception_writer.h: the state of a text of exceptions that is being written. Internal to exception_text.c,
 * exception_message.c, exception_value.c and exception_trace.c.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_WRITER_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_WRITER_H

#include "contracts/objects/exception_output.h"

struct exception_kind;

/* An exception that is being written, and those around it. */
struct writing_exception {
    struct exception fields;
    const struct exception_kind *message, *text; /* whose Message and ToString() are used */
    const struct writing_exception *outer;
    unsigned depth;
};

/*
 * A text of the framework's resources: all of it is `before` if `after` is NULL. Otherwise there is a value between
 * `before` and `after`.
 */
struct resource_text {
    const char *key, *before, *after;
};

struct exception_writer {
    /* The kind of a type, NULL if it makes neither text itself. System.Exception has one. */
    const struct exception_kind *(*find_kind)(const struct metadata *metadata, uint32_t token);
    /* The same by the names of the assembly and of the type. */
    const struct exception_kind *(*find_named)(const char *assembly, const char *type);
    /* Finds the kinds of an exception of NativeAOT. */
    void (*find_native_kinds)(struct exception_writer *w, struct writing_exception *e);
    const struct exception_kind *base; /* that of System.Exception */
    const struct exception_output *output;
    unsigned flaws;
    bool stopped; /* nothing more is written */
    uint64_t written;
    const char *pending; /* written before the next bytes, if there are any; NULL: nothing */
    uint32_t exceptions_left, elements_left, frames_left, names_left;
    bool lines_failed;             /* the trace that is being written has no further lines */
    bool asked_for_keys, has_keys; /* whether the process has the keys of texts in place of the texts */
    struct frame_names *names;     /* of exception_trace.c; NULL until first needed */
};

/*
 * Each part of a text is a task of its own, so that one that cannot be read does not end the text. Ends such a task;
 * `outer` is what reader_enter() returned. False, and a flaw: it has failed. What it read from files that nothing
 * confirms is a flaw, too.
 */
bool exception_leave_part(struct exception_writer *w, const struct reader_task *outer);

void exception_put(struct exception_writer *w, const char *bytes, size_t length);
void exception_puts(struct exception_writer *w, const char *string);

/*
 * A text of the framework's resources, or what precedes and follows its value. If the process has no such texts, its
 * key takes the place of the text, and the values follow it. If it is not known whether it has them, that is a flaw.
 */
void exception_put_resource(struct exception_writer *w, const struct resource_text *text);
void exception_begin_resource(struct exception_writer *w, const struct resource_text *text);
void exception_end_resource(struct exception_writer *w, const struct resource_text *text);

/* Whether the process has keys in place of texts. */
bool exception_has_keys(struct exception_writer *w);

/* A string object; nothing for 0. */
void exception_put_string(struct exception_writer *w, uint64_t string);

/* Type.ToString() of a MethodTable. */
void exception_put_type(struct exception_writer *w, uint64_t method_table);

/* A reference or string field of an exception by name; 0 if it is null or cannot be read, which is a flaw. */
uint64_t exception_member(struct exception_writer *w, const struct writing_exception *e, const char *name);

/* The same of a field that not every release of the framework has. False, without a flaw: there is none. */
bool exception_find_member(struct exception_writer *w, const struct writing_exception *e, const char *name,
                           uint64_t *ret);

/* Whether a string is neither null nor empty. */
bool exception_has_text(struct exception_writer *w, uint64_t string);

/* Prepares an exception within `outer`, which may be NULL. False: it is not written. */
bool exception_enter(struct exception_writer *w, uint64_t address, const struct writing_exception *outer,
                     struct writing_exception *ret);

/* Message and ToString() of one exception, as its type makes them. */
void exception_put_message(struct exception_writer *w, const struct writing_exception *e);
void exception_put_text(struct exception_writer *w, const struct writing_exception *e);

/* A type that makes its own Message or ToString(). A program may declare a type of the same name. */
struct exception_kind {
    const char *assembly, *space, *name;
    void (*message)(struct exception_writer *w, const struct writing_exception *e);
    void (*text)(struct exception_writer *w, const struct writing_exception *e);
};

#endif
