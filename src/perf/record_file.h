/*
 * record_file.h: what a runtime has written of its code, a jitdump or a perf map, as one stream: where code was, how
 * long it was, what it is called. Which of the two a file is, its first bytes tell. Read with pread in blocks up to the
 * size that the file had when it was opened; memory stays bounded whatever the file holds, and one damaged record takes
 * no other with it. A file belongs to one thread.
 */
#ifndef CDACQ_PERF_RECORD_FILE_H
#define CDACQ_PERF_RECORD_FILE_H

#include "cdacq/jitdump.h"
#include "util/vector.h"
#include "util/error.h"
#include "formats/perf_map.h"

DEFINE_VECTOR(lines, char);

struct record_file {
    struct cdacq_jitdump *jitdump; /* NULL: it is a perf map */
    int fd;
    char *path;
    uint64_t count; /* of records so far */
    uint64_t size;  /* of the file */
    uint64_t read;  /* bytes of it that are in the lines or were */
    struct lines lines;
    size_t next; /* the lines before it are done */
    uint64_t line;
    bool skipping;              /* within a line that is too long */
    bool has_header;            /* of a jitdump, and that was read */
    bool cut;                   /* the file ends within its last record */
    struct cdacq_error problem; /* of a cut jitdump */
};

/* A JIT_CODE_LOAD, or a line. What it points to is good until the next one. */
struct file_record {
    uint64_t number; /* in the file, from 1 */
    uint64_t offset; /* of the record or line in the file */
    uint64_t line;   /* of a perf map; 0 else */
    uint64_t timestamp;
    uint64_t address, size;
    const char *name; /* any bytes, not NUL-terminated */
    size_t name_length;
    const void *code;    /* `size` bytes; NULL where the file does not hold them */
    const char *problem; /* what is wrong with it: the rest but for offset and line may be 0 then */
    bool two_places;     /* vma and code_addr differ, which those of a .NET runtime never do */
    bool unfinished;     /* the last line of a perf map has no end: more of it may be to come */
};

enum cdacq_status record_file_open(const char *path, struct record_file *ret, struct cdacq_error *err);
void record_file_close(struct record_file *file);

/* Goes back to the first record. */
enum cdacq_status record_file_rewind(struct record_file *file, struct cdacq_error *err);

/* The next record. CDACQ_END behind the last; `cut` tells then whether the file ends within one. */
enum cdacq_status record_file_next(struct record_file *file, struct file_record *ret, struct cdacq_error *err);

#endif
