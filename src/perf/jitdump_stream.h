/*
 * jitdump_stream.h: the records of a jitdump, one by one. Only what is decoded is read: code and unwinding data are
 * skipped unless requested. A record is connected with those before it: a JIT_CODE_LOAD with the records that describe
 * its function, a JIT_CODE_MOVE with the function that it moves. What a record points to is valid until the next call.
 * One thread at a time may use a stream.
 */
#ifndef CDACQ_PERF_JITDUMP_STREAM_H
#define CDACQ_PERF_JITDUMP_STREAM_H

#include "formats/jitdump_places.h"
#include "src/perf/jitdump_file.h"
#include "src/perf/jitdump_pending.h"

struct jitdump_stream {
    struct jitdump_file file;
    unsigned flags;
    uint64_t offset; /* of the next record */
    bool has_header;
    struct cdacq_jitdump_record header;
    const char *restart; /* why the file is read from its beginning again; NULL: it is not */
    struct jitdump_pending pending;
    uint64_t closed;  /* offset of the JIT_CODE_CLOSE; 0: there is none yet */
    uint64_t highest; /* code_index of all JIT_CODE_LOADs */
    bool has_load;    /* there was one */
    bool has_places;  /* `places` holds all JIT_CODE_LOADs before `offset` */
    struct jitdump_places places;
    struct cdacq_error no_places; /* why `places` cannot be built */
    struct cdacq_error problem;   /* of the last record */
    /* Of a followed file: */
    uint64_t content;        /* a hash of the records before `offset` */
    uint64_t last_record;    /* offset of the last of these; 0: there is none */
    uint64_t content_before; /* the hash without it */
};

/* Opens the file at a path, with CDACQ_JITDUMP_ flags. Fails with IO, NOMEM. */
enum cdacq_status jitdump_stream_open(const char *path, unsigned flags, struct jitdump_stream *ret,
                                      struct cdacq_error *err);

/* A stream of its own, without flags, on the file of another one, which need not have its path any more. IO, NOMEM. */
enum cdacq_status jitdump_stream_open_again(const struct jitdump_stream *stream, struct jitdump_stream *ret,
                                            struct cdacq_error *err);
void jitdump_stream_close(struct jitdump_stream *stream);

/* Returns to the beginning of the file. Nothing that was read is valid any more. */
void jitdump_stream_restart(struct jitdump_stream *stream, const char *why);

/* CDACQ_DONE: the file, up to the size last checked, holds no further complete record. */
enum cdacq_status jitdump_stream_next(struct jitdump_stream *stream, struct cdacq_jitdump_record *ret,
                                      struct cdacq_error *err);

/* Whether the last complete record ends the file. FORMAT: more bytes follow, or a record lacks its JIT_CODE_LOAD. */
enum cdacq_status jitdump_stream_check_end(const struct jitdump_stream *stream, struct cdacq_error *err);

/* Reads the prefix of the record at `offset`. CDACQ_DONE: the prefix is not complete. */
enum cdacq_status jitdump_stream_prefix(struct jitdump_stream *stream, uint64_t offset,
                                        struct cdacq_jitdump_record *ret, struct cdacq_error *err);

/* Adds the first bytes of a record to a hash. CDACQ_DONE: the file has changed. */
enum cdacq_status jitdump_stream_hash(struct jitdump_stream *stream, const struct cdacq_jitdump_record *record,
                                      uint64_t *hash);

/* Builds the table of places from the records before `end`. CDACQ_DONE: the file has changed. */
enum cdacq_status jitdump_stream_collect_places(struct jitdump_stream *stream, uint64_t end, struct cdacq_error *err);

#endif
