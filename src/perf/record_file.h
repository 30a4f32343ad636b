/*
 * record_file.h: the code that a runtime has recorded in a jitdump or perf map, as one stream of records. A function
 * that was moved is a record at its last address. The first bytes of the file decide which of the two it is. The file
 * is read in blocks with pread, up to its size when it was opened; memory is bounded, and a damaged record does not
 * affect others. One thread at a time may use a file.
 */
#ifndef CDACQ_PERF_RECORD_FILE_H
#define CDACQ_PERF_RECORD_FILE_H

#include "cdacq/jitdump.h"
#include "util/vector.h"
#include "util/error.h"
#include "formats/perf_map.h"

DEFINE_VECTOR(lines, char);

/* Where the function of a JIT_CODE_LOAD is after its JIT_CODE_MOVEs. */
struct moved_load {
    uint64_t load; /* offset of the record */
    uint64_t vma, code_addr, timestamp;
};

DEFINE_VECTOR(moved_loads, struct moved_load);

struct record_file {
    struct cdacq_jitdump *jitdump; /* NULL for a perf map */
    int fd;
    char *path;
    uint64_t count; /* records read so far */
    uint64_t size;  /* of the file */
    uint64_t read;  /* bytes read so far, including those in `lines` */
    struct lines lines;
    size_t next; /* index in `lines` of the next line */
    uint64_t line;
    bool skipping;              /* inside a line that is too long */
    bool has_header;            /* the header of a jitdump was read */
    uint32_t pid;               /* that it names; 0: none */
    struct moved_loads moved;   /* by load; of the file when it was opened */
    bool cut;                   /* the file ends within its last record */
    struct cdacq_error problem; /* of a cut jitdump */
};

/* A JIT_CODE_LOAD or a line. What it points to is valid until the next call. */
struct file_record {
    uint64_t number; /* in the file, from 1 */
    uint64_t offset; /* of the record or line in the file */
    uint64_t line;   /* in a perf map; otherwise 0 */
    uint64_t timestamp;
    uint64_t address, size;
    const char *name; /* any bytes, NUL-terminated */
    size_t name_length;
    const char *text; /* of a line, without its end and carriage returns there; not NUL-terminated */
    size_t text_length;
    const void *code;      /* `size` bytes; NULL if the file lacks them */
    const char *problem;   /* what is wrong with it; fields other than offset and line may then be 0; or NULL */
    bool addresses_differ; /* vma and code_addr differ, which a .NET runtime never writes */
    bool unfinished;       /* the last line of a perf map has no newline: it may be incomplete */
};

/* Opens a file; the caller closes it. Fails with IO, NOMEM. */
enum cdacq_status record_file_open(const char *path, struct record_file *ret, struct cdacq_error *err);
void record_file_close(struct record_file *file);

/* Returns to the first record. */
enum cdacq_status record_file_rewind(struct record_file *file, struct cdacq_error *err);

/* Reads the next record. CDACQ_DONE after the last; file->cut then says whether the file ends within a record. */
enum cdacq_status record_file_next(struct record_file *file, struct file_record *ret, struct cdacq_error *err);

#endif
