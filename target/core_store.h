/*
 * core_store.h: stores a core that cannot be mapped as it is, because it is compressed or comes from a pipe or socket,
 * in a temporary file without a name. Pages of zeros become holes, which take no room on the disk. Storing stops at the
 * bounds below, at the end of the data, at damaged data, and where the file cannot grow. What was stored until then is
 * used, and `problem` says why it is not all.
 *
 * The file is in TMPDIR or, if that is not set, in /var/tmp or /tmp.
 */
#ifndef CDACQ_TARGET_CORE_STORE_H
#define CDACQ_TARGET_CORE_STORE_H

#include "util/base.h"
#include "cdacq/error.h"

#define CORE_STORE_DISK_MAX (UINT64_C(8) << 30) /* the default */
#define CORE_STORE_SIZE_MAX (UINT64_C(1) << 40) /* of the input, and of the core with its holes */
#define CORE_STORE_RATIO    1000                /* the core is at most this many times the compressed data ... */
#define CORE_STORE_SLACK    (UINT64_C(1) << 30) /* ... and this many bytes more */

struct core_store_options {
    uint64_t disk_max; /* bytes that are not zero pages; 0: CORE_STORE_DISK_MAX */
    /* Called for every few hundred KB that were read. `total` is 0 where it is not known. May be NULL. */
    void (*progress)(uint64_t done, uint64_t total, void *context);
    void *progress_context;
};

struct stored_core {
    int fd; /* the caller's to close */
    uint64_t size;
    char problem[300]; /* one line, without a path; "" where the data ended as they should */
};

/* Whether a regular file holds compressed data. */
bool core_store_needed(int fd);

/*
 * Reads `fd` from its position to its end. `name` is for messages. Fails if the data are no core, which a few bytes
 * show, if the library for a compressed format is missing, and if there is no room for a temporary file.
 */
enum cdacq_status core_store(int fd, const char *name, const struct core_store_options *options,
                             struct stored_core *ret, struct cdacq_error *err);

#endif
