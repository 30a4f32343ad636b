#include "target/core_store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>

#include "formats/compression/unpacker.h"
#include "formats/elf.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

enum { CHUNK = 256 * 1024, HOLE = 4096, TYPE_END = EI_NIDENT + 2 };

/* A core on its way to its temporary file. */
struct intake {
    const char *name;
    const struct core_store_options *options;
    /* The input. */
    int fd;
    uint8_t peeked[COMPRESSION_PEEK]; /* its first bytes */
    size_t peek_at, peek_size;
    uint64_t consumed, total;
    int read_error;
    bool packed;
    struct unpacker unpacker;
    /* The temporary file. */
    int stored;
    const char *directory;
    uint64_t size, disk_size;
    uint64_t disk_max, file_size_limit;
    char reason[160]; /* why no more is stored; "" while more is */
};

bool core_store_needed(int fd)
{
    uint8_t first[COMPRESSION_PEEK];
    return codec_of(first, file_read_at(fd, 0, first, sizeof first));
}

/* ---- The input ------------------------------------------------------------------------------------------------- */

/* Reads what is there, at least one byte before the end. */
static size_t read_fd(struct intake *intake, void *buffer, size_t size)
{
    while (!intake->read_error) {
        ssize_t n = read(intake->fd, buffer, size);
        if (n >= 0)
            return (size_t)n;
        if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = intake->fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            intake->read_error = errno;
    }
    return 0;
}

static size_t read_input(void *context, void *buffer, size_t size)
{
    struct intake *intake = context;
    const struct core_store_options *options = intake->options;
    size_t n = MIN(size, intake->peek_size - intake->peek_at);
    memcpy(buffer, intake->peeked + intake->peek_at, n);
    intake->peek_at += n;
    if (!n && intake->consumed < CORE_STORE_SIZE_MAX)
        n = read_fd(intake, buffer, size);
    intake->consumed += n;
    if (n && options->progress)
        options->progress(intake->consumed, intake->total, options->progress_context);
    return n;
}

static enum cdacq_status begin_input(struct intake *intake, struct cdacq_error *err)
{
    struct stat st;
    size_t n;
    char why[160];
    off_t at = lseek(intake->fd, 0, SEEK_CUR);
    if (at >= 0 && fstat(intake->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > at)
        intake->total = (uint64_t)(st.st_size - at);
    do {
        n = read_fd(intake, intake->peeked + intake->peek_size, sizeof intake->peeked - intake->peek_size);
        intake->peek_size += n;
    } while (n && intake->peek_size < sizeof intake->peeked);
    if (!intake->peek_size && intake->read_error)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", intake->name, strerror(intake->read_error));
    if (!intake->peek_size)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: empty", intake->name);
    const struct codec *codec = codec_of(intake->peeked, intake->peek_size);
    intake->packed = codec;
    if (codec && !unpacker_init(&intake->unpacker, codec, read_input, intake, why, sizeof why))
        return error_set(err, CDACQ_ERR_IO, 0, "%s: compressed with %s, but %s", intake->name, codec->name, why);
    return CDACQ_OK;
}

/* The next bytes of the core. Fewer than `size` only at the end. */
static size_t next_bytes(struct intake *intake, uint8_t *bytes, size_t size)
{
    size_t done = 0;
    if (intake->packed)
        return unpacker_read(&intake->unpacker, bytes, size);
    for (size_t n = 1; n && done < size; done += n)
        n = read_input(intake, bytes + done, size - done);
    return done;
}

/* ---- The temporary file ------------------------------------------------------------------------------------------ */

static enum cdacq_status create_file(struct intake *intake, struct cdacq_error *err)
{
    struct rlimit limit;
    intake->stored = file_create_temporary(&intake->directory);
    if (intake->stored < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: no temporary file can be created in %s (TMPDIR): %s", intake->name,
                         intake->directory, strerror(errno));
    /* Beyond this limit a signal would end the process. */
    intake->file_size_limit = CORE_STORE_SIZE_MAX;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < intake->file_size_limit)
        intake->file_size_limit = limit.rlim_cur;
    return CDACQ_OK;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    return !bytes[0] && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static void stop(struct intake *intake, const char *format, uint64_t bound)
{
    char text[40];
    text_bytes(text, sizeof text, bound);
    snprintf(intake->reason, sizeof intake->reason, format, text);
}

/* Writes bytes without holes. False where they do not fit. */
static bool write_run(struct intake *intake, const uint8_t *bytes, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(intake->stored, bytes + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            snprintf(intake->reason, sizeof intake->reason, "it cannot be stored in %s (TMPDIR): %s", intake->directory,
                     strerror(n < 0 ? errno : ENOSPC));
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

/* Appends bytes. On return intake->size is the end of what is stored, and intake->reason says why that is not all. */
static void append(struct intake *intake, const uint8_t *bytes, size_t size)
{
    uint64_t begin = intake->size;
    size_t at = 0;
    if (size > intake->file_size_limit - begin) {
        size = (size_t)(intake->file_size_limit - begin);
        stop(intake,
             intake->file_size_limit == CORE_STORE_SIZE_MAX ? "a core of more than %s is not stored"
                                                            : "files of more than %s are not allowed (ulimit -f)",
             intake->file_size_limit);
    }
    while (at < size) {
        size_t run = at;
        while (run < size && !is_zero(bytes + run, MIN(HOLE, size - run))) {
            if (intake->disk_size + HOLE > intake->disk_max) {
                stop(intake, "no more than %s of a core are stored, not counting zeros", intake->disk_max);
                size = run;
                break;
            }
            intake->disk_size += HOLE;
            run += MIN(HOLE, size - run);
        }
        if (!write_run(intake, bytes + at, run - at, begin + at))
            size = at;
        intake->size = begin + MIN(run, size);
        at = run;
        while (at < size && is_zero(bytes + at, MIN(HOLE, size - at)))
            at += MIN(HOLE, size - at);
        intake->size = MAX(intake->size, begin + MIN(at, size));
    }
}

/* ---- From one to the other ------------------------------------------------------------------------------------- */

/* Why the input has no more: sets intake->reason, unless it ended as it should. */
static void note_end(struct intake *intake)
{
    const struct unpacker *unpacker = &intake->unpacker;
    const char *format = intake->packed ? unpacker->codec->name : "";
    size_t size = sizeof intake->reason;
    if (intake->reason[0])
        return;
    if (intake->read_error)
        snprintf(intake->reason, size, "reading failed: %s", strerror(intake->read_error));
    else if (intake->consumed >= CORE_STORE_SIZE_MAX)
        stop(intake, "no more than %s are read", CORE_STORE_SIZE_MAX);
    else if (intake->packed && unpacker->state == UNPACKER_CUT)
        snprintf(intake->reason, size, "the %s data end early", format);
    else if (intake->packed && unpacker->state == UNPACKER_DAMAGED)
        snprintf(intake->reason, size, "the %s data are damaged", format);
    else if (intake->packed && unpacker->state == UNPACKER_MEMORY)
        snprintf(intake->reason, size, "the %s data take more than %d MiB of memory to unpack", format,
                 CODEC_MEMORY_MAX >> 20);
    else if (intake->packed && unpacker->state == UNPACKER_NOMEM)
        snprintf(intake->reason, size, "out of memory");
}

/* Whether the first bytes are those of a core. */
static bool is_core(const uint8_t *bytes, size_t size)
{
    struct elf_class elf;
    uint8_t header[ELF_RECORD_MAX] = {0};
    memcpy(header, bytes, MIN(size, sizeof header));
    return size >= TYPE_END && elf_class_of(bytes, &elf) && elf_header_at(elf, header).type == ET_CORE;
}

static enum cdacq_status store_all(struct intake *intake, uint8_t *chunk, struct cdacq_error *err)
{
    size_t n = CHUNK;
    while (n == CHUNK && !intake->reason[0]) {
        n = next_bytes(intake, chunk, CHUNK);
        if (!intake->size && !is_core(chunk, n)) {
            note_end(intake);
            if (n < TYPE_END && intake->reason[0])
                return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: no core: %s", intake->name, intake->reason);
            return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %snot an ELF core", intake->name,
                             intake->packed ? "unpacked, it is " : "");
        }
        append(intake, chunk, n);
        if (intake->packed && intake->size > CORE_STORE_SLACK &&
            (intake->size - CORE_STORE_SLACK) / CORE_STORE_RATIO > intake->consumed)
            stop(intake, "the compressed data expand to more than %s and 1,000 times their size", CORE_STORE_SLACK);
    }
    note_end(intake);
    if (ftruncate(intake->stored, (off_t)intake->size) < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: it cannot be stored in %s (TMPDIR): %s", intake->name,
                         intake->directory, strerror(errno));
    return CDACQ_OK;
}

enum cdacq_status core_store(int fd, const char *name, const struct core_store_options *options,
                             struct stored_core *ret, struct cdacq_error *err)
{
    struct intake intake = {
        .name = name,
        .options = options,
        .fd = fd,
        .stored = -1,
        .disk_max = options->disk_max ? options->disk_max : CORE_STORE_DISK_MAX,
    };
    CLEANUP_FREE uint8_t *chunk = malloc(CHUNK);
    enum cdacq_status status = chunk ? begin_input(&intake, err) : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status >= 0)
        status = create_file(&intake, err);
    if (status >= 0)
        status = store_all(&intake, chunk, err);
    unpacker_deinit(&intake.unpacker);
    if (status < 0) {
        if (intake.stored >= 0)
            close(intake.stored);
        return status;
    }
    *ret = (struct stored_core){.fd = intake.stored, .size = intake.size};
    if (intake.reason[0])
        snprintf(ret->problem, sizeof ret->problem, "only its first %llu bytes were read: %s",
                 (unsigned long long)intake.size, intake.reason);
    return CDACQ_OK;
}
