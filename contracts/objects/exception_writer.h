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

struct exception_writer {
    /* The kind of a type, NULL if it makes neither text itself. System.Exception has one. */
    const struct exception_kind *(*find_kind)(const struct metadata *metadata, uint32_t token);
    const struct exception_kind *base; /* that of System.Exception */
    const struct exception_output *output;
    unsigned flaws;
    bool stopped; /* nothing more is written */
    uint64_t written;
    const char *pending; /* written before the next bytes, if there are any; NULL: nothing */
    uint32_t exceptions_left, elements_left, frames_left, names_left;
    struct frame_names *names; /* of exception_trace.c; NULL until first needed */
};

/*
 * Each part of a text is a task of its own, so that one that cannot be read does not end the text. Ends such a task;
 * `outer` is what reader_enter() returned. False, and a flaw: it has failed. What it read from files that nothing
 * confirms is a flaw, too.
 */
bool exception_leave_part(struct exception_writer *w, const struct reader_task *outer);

void exception_put(struct exception_writer *w, const char *bytes, size_t length);
void exception_puts(struct exception_writer *w, const char *string);

/* A string object; nothing for 0. */
void exception_put_string(struct exception_writer *w, uint64_t string);

/* Type.ToString() of a MethodTable. */
void exception_put_type(struct exception_writer *w, uint64_t method_table);

/* A reference or string field of an exception by name; 0 if it is null or cannot be read, which is a flaw. */
uint64_t exception_member(struct exception_writer *w, const struct writing_exception *e, const char *name);

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
