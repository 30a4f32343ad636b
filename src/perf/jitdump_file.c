#include "src/perf/jitdump_file.h"

#include <errno.h>
#include <fcntl.h>

#include "util/file_root.h"

enum { BLOCK = 64 * 1024 };

static enum cdacq_status io_error(const char *path, uint64_t offset, int error, struct cdacq_error *err)
{
    char room[160];
    return error_set(err, CDACQ_ERR_IO, offset, "cannot read '%s': %s", error_printable(room, sizeof room, path),
                     strerror(error));
}

static void note_state(struct jitdump_file *file, const struct stat *st)
{
    file->size = (uint64_t)st->st_size;
    file->is_sparse = (uint64_t)st->st_blocks * 512 < file->size;
    file->written = st->st_mtim;
}

/* Opens what is at file->path. On failure the file is untouched. */
static enum cdacq_status open_path(struct jitdump_file *file, struct cdacq_error *err)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open_regular(file->path, &st);
    if (fd < 0 && errno == EINVAL) {
        char path[160];
        return error_set(err, CDACQ_ERR_IO, 0, "'%s' is not a regular file",
                         error_printable(path, sizeof path, file->path));
    }
    if (fd < 0)
        return io_error(file->path, 0, errno, err);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = fd;
    fd = -1;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    note_state(file, &st);
    return CDACQ_OK;
}

enum cdacq_status jitdump_file_open(const char *path, bool is_followed, struct jitdump_file *ret,
                                    struct cdacq_error *err)
{
    struct jitdump_file file = {.fd = -1, .is_followed = is_followed, .path = strdup(path)};
    if (!file.path)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    enum cdacq_status status = open_path(&file, err);
    if (status != CDACQ_OK) {
        jitdump_file_close(&file);
        return status;
    }
    *ret = file;
    return CDACQ_OK;
}

enum cdacq_status jitdump_file_open_again(const struct jitdump_file *file, struct jitdump_file *ret,
                                          struct cdacq_error *err)
{
    struct jitdump_file again = {.path = strdup(file->path)};
    struct stat st;
    if (!again.path)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "jitdump: out of memory");
    again.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    if (again.fd < 0 || fstat(again.fd, &st) < 0) {
        enum cdacq_status status = io_error(again.path, 0, errno, err);
        jitdump_file_close(&again);
        return status;
    }
    note_state(&again, &st);
    *ret = again;
    return CDACQ_OK;
}

void jitdump_file_close(struct jitdump_file *file)
{
    if (!file || !file->path)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->extent.data);
    free(file->path);
    *file = (struct jitdump_file){0};
}

enum cdacq_status jitdump_file_fill(struct jitdump_file *file, uint64_t offset, size_t count, struct cdacq_error *err)
{
    struct jitdump_extent *extent = &file->extent;
    size_t wanted = (size_t)MIN((uint64_t)MAX(count, (size_t)BLOCK), file->size - offset);
    uint64_t hole = file->is_sparse && count < wanted ? file_find_hole(file->fd, offset) : UINT64_MAX;
    if (hole != UINT64_MAX)
        wanted = (size_t)MAX((uint64_t)count, MIN((uint64_t)wanted, hole - offset));
    bool is_large = wanted > BLOCK;
    if (is_large || !extent->data) {
        uint8_t *data = calloc(1, MAX(wanted, (size_t)BLOCK));
        if (!data)
            return error_set(err, CDACQ_ERR_NOMEM, offset, "jitdump: out of memory");
        free(extent->data);
        extent->data = data;
    }
    extent->length = 0;
    if (file->is_sparse && !is_large)
        memset(extent->data, 0, wanted);
    bool by_holes = is_large || file->is_sparse;
    size_t n = (by_holes ? file_read_sparse_at : file_read_at)(file->fd, offset, extent->data, wanted);
    if (n < wanted && errno)
        return io_error(file->path, offset, errno, err);
    /* Checked after the read: a block that was read before the file was rewritten is valid. */
    if (n < count || (file->is_followed && jitdump_file_is_rewritten(file)))
        return CDACQ_DONE;
    extent->begin = offset;
    extent->length = n;
    return CDACQ_OK;
}

void jitdump_file_keep_header(struct jitdump_file *file, const uint8_t *bytes, size_t size)
{
    file->header_size = MIN(size, sizeof file->header);
    memcpy(file->header, bytes, file->header_size);
}

bool jitdump_file_is_rewritten(const struct jitdump_file *file)
{
    uint8_t now[JITDUMP_HEADER_SIZE];
    return file_read_at(file->fd, 0, now, file->header_size) < file->header_size ||
           memcmp(now, file->header, file->header_size) != 0;
}

enum cdacq_status jitdump_file_look_again(struct jitdump_file *file, bool *ret_written, struct cdacq_error *err)
{
    struct stat st;
    if (fstat(file->fd, &st) < 0)
        return io_error(file->path, 0, errno, err);
    *ret_written = st.st_mtim.tv_sec != file->written.tv_sec || st.st_mtim.tv_nsec != file->written.tv_nsec;
    note_state(file, &st);
    jitdump_file_forget(file); /* an incomplete record may have been rewritten */
    return CDACQ_OK;
}

bool jitdump_file_open_successor(struct jitdump_file *file)
{
    struct stat st;
    /* The path may be gone while the writer still has the file open. */
    CLEANUP_CLOSE int fd = file_open_regular(file->path, &st);
    if (fd < 0 || (st.st_dev == file->device && st.st_ino == file->inode))
        return false;
    return open_path(file, NULL) == CDACQ_OK;
}
