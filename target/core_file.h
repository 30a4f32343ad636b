/*
 * core_file.h: the file that a core is read from. It is mapped, or read a page at a time where it may be truncated
 * while it is open. A core that is compressed, or that comes from a pipe or socket, is first stored in a temporary file
 * (core_store.h).
 */
#ifndef CDACQ_TARGET_CORE_FILE_H
#define CDACQ_TARGET_CORE_FILE_H

#include "util/arena.h"
#include "formats/elf.h"
#include "target/core_store.h"
#include "target/page_cache.h"

/* Where a core is read from. */
struct core_source {
    const char *path; /* or, with `fd`, only a name for messages */
    int fd;           /* -1: `path` is opened; otherwise the caller's, read from its position */
    struct core_store_options store;
};

struct core_file {
    const uint8_t *bytes; /* the whole file; NULL where `fd` is read instead */
    size_t size;
    int fd; /* -1 where the file is mapped */
    struct page_cache cache;
    struct arena
        kept; /* what core_file_keep() has copied of a core that is not mapped, and the paths of its mappings */
    uint64_t kept_size;
    struct elf_class elf;                                     /* of the headers; the runtime's data may differ */
    uint16_t machine;                                         /* EM_* */
    uint64_t size_on_disk;                                    /* without holes */
    int64_t written;                                          /* time of the last modification; 0: not known */
    bool stored;                                              /* a temporary file, which core_store() made */
    char problem[sizeof(((struct stored_core *)0)->problem)]; /* of storing it; "" where there is none */
};

/*
 * Opens the file, which is mapped if `map` is set, and checks that it is a core. The struct must not move until it is
 * closed, which it must be after a failure, too.
 */
enum cdacq_status core_file_open(struct core_file *file, const struct core_source *source, bool map,
                                 struct cdacq_error *err);
void core_file_close(struct core_file *file);

/* Bytes of the file, in `buffer` where it is not mapped; zeros after its end. */
const uint8_t *core_file_peek(struct core_file *file, uint64_t offset, size_t size, uint8_t *buffer);

/*
 * An extent that is within the file, valid until it is closed. *ret is NULL where it cannot be read. False when out of
 * memory.
 */
bool core_file_keep(struct core_file *file, uint64_t offset, uint64_t size, const uint8_t **ret);

/* Gives back the memory that a mapped file takes. */
void core_file_release_pages(const struct core_file *file);

#endif
