/*
 * code_writer.h: from the methods and stubs of a listing to the entries of a file for profilers: one for each part of a
 * method, one for each span of stubs. The format of an entry is a function of its file (perf_files.c,
 * jitdump_records.h). Belongs to the thread of its session.
 */
#ifndef CDACQ_PERF_CODE_WRITER_H
#define CDACQ_PERF_CODE_WRITER_H

#include "cdacq/perf.h"
#include "formats/byte_writer.h"

struct jitdump_debug;

/* One entry: code that is called `name` followed by `suffix`. */
struct code_entry {
    const struct cdacq_method *method;
    uint64_t begin, size;
    const char *name, *suffix;
    size_t name_length, suffix_length;
};

struct code_writer {
    struct cdacq_session *session;
    struct cdacq_sink sink;
    bool (*put)(struct code_writer *writer, const struct code_entry *entry); /* false: it was left out */
    bool with_bytes;                                                         /* an entry includes the code bytes */
    struct jitdump_debug *debug; /* NULL: without lines and call-frame information */
    uint64_t time;               /* of the last record */
    struct byte_writer *record;  /* of a file that is followed: an entry's records, which are written at once */
    bool unverified;             /* the bytes of the last entry are */
    bool stopped;
    bool no_memory; /* for the records of an entry: it is stopped, too */
    struct cdacq_written written;
};

/* Takes and checks the arguments of the caller of the library. `what` is the kind of file. */
enum cdacq_status code_writer_take_arguments(struct code_writer *writer, const struct cdacq_sink *sink,
                                             const struct cdacq_written *ret, const char *what,
                                             struct cdacq_error *err);

/* A visitor of methods, whose `context` is a writer: writes the entries of a method, or of stubs. */
int code_writer_visit(const struct cdacq_method *method, void *context);

/* For the formats: the next bytes of the file, or the name of an entry. */
void code_writer_put(struct code_writer *writer, const void *bytes, size_t size);
void code_writer_put_name(struct code_writer *writer, const struct code_entry *entry);

/* Writes the records that were kept, if the writer keeps those of an entry. */
void code_writer_flush(struct code_writer *writer);

/* Reports code that is not written. */
void code_writer_leave_out(struct code_writer *writer, const struct cdacq_method *method, uint64_t begin, uint64_t size,
                           const char *why);

#endif
