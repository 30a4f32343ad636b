#include "target/core_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "util/error.h"
#include "util/file.h"

enum { KEPT_MAX = 256 * 1024 * 1024 }; /* bytes that are copied from a core that is not mapped */

const uint8_t *core_file_peek(struct core_file *file, uint64_t offset, size_t size, uint8_t *buffer)
{
    struct span span;
    if (file->bytes && range_fits(offset, size, file->size))
        return file->bytes + offset;
    memset(buffer, 0, size);
    for (size_t done = 0; !file->bytes && done < size && page_cache_at(&file->cache, offset + done, &span);) {
        size_t n = (size_t)MIN(span.end - (offset + done), (uint64_t)(size - done));
        memcpy(buffer + done, span.bytes + (offset + done - span.begin), n);
        done += n;
    }
    return buffer;
}

bool core_file_keep(struct core_file *file, uint64_t offset, uint64_t size, const uint8_t **ret)
{
    *ret = file->bytes ? file->bytes + offset : NULL;
    if (file->bytes || size > KEPT_MAX - file->kept_size)
        return true;
    file->kept_size += size;
    uint8_t *bytes = arena_allocate(&file->kept, size);
    if (bytes && file_read_at(file->fd, offset, bytes, size) == size)
        *ret = bytes;
    return bytes != NULL;
}

/* Replaces *fd, which is the source's or was opened, by the temporary file that the core is stored in. */
static enum cdacq_status store(struct core_file *file, const struct core_source *source, int *fd,
                               struct cdacq_error *err)
{
    struct stored_core stored;
    enum cdacq_status status = core_store(*fd, source->path, &source->store, &stored, err);
    if (status < 0)
        return status;
    if (*fd != source->fd)
        close(*fd);
    *fd = stored.fd;
    file->size = (size_t)stored.size;
    file->stored = true;
    memcpy(file->problem, stored.problem, sizeof file->problem);
    return CDACQ_OK;
}

/* The size of a file without its holes, which cost nothing and say nothing. Some file systems count no blocks. */
static uint64_t size_on_disk(int fd, uint64_t size)
{
    struct stat st;
    enum { BLOCK = 512 }; /* of st_blocks, on every file system */
    return fstat(fd, &st) == 0 && st.st_blocks > 0 ? MIN(size, (uint64_t)st.st_blocks * BLOCK) : size;
}

/* Opens the file. *ret is a descriptor of its own that can be mapped, and file->size is set. */
static enum cdacq_status open_file(struct core_file *file, const struct core_source *source, int *ret,
                                   struct cdacq_error *err)
{
    struct stat st;
    int fd = source->fd;
    if (fd < 0 ? (fd = file_open(source->path, &st)) < 0 : fstat(fd, &st) < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", source->path, strerror(errno));
    enum cdacq_status status = CDACQ_OK;
    bool is_file = S_ISREG(st.st_mode) && (source->fd < 0 || lseek(fd, 0, SEEK_CUR) == 0);
    if (is_file && (uint64_t)st.st_size > SIZE_MAX / 2) /* of a program of 32 bits */
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", source->path, strerror(EFBIG));
    file->size = (size_t)st.st_size;
    file->written = S_ISREG(st.st_mode) ? st.st_mtime : 0;
    if (source->fd < 0 && !S_ISREG(st.st_mode))
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: not a regular file", source->path);
    else if (status >= 0 && (!is_file || core_store_needed(fd)))
        status = store(file, source, &fd, err);
    if (status >= 0 && fd == source->fd && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", source->path, strerror(errno));
    if (status >= 0) {
        *ret = fd;
        file->size_on_disk = size_on_disk(fd, file->size);
    } else if (fd >= 0 && fd != source->fd) {
        close(fd);
    }
    return status;
}

/* Maps the file or, without `map`, keeps its descriptor, and checks that it is a core. */
static enum cdacq_status take_file(struct core_file *file, const struct core_source *source, bool map,
                                   struct cdacq_error *err)
{
    CLEANUP_CLOSE int fd = -1;
    const char *path = source->path;
    enum cdacq_status status = open_file(file, source, &fd, err);
    if (status < 0)
        return status;
    if (file->size < EI_NIDENT)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %s", path, file->size ? "not an ELF file" : "empty");
    if (map) {
        void *bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            return error_set(err, CDACQ_ERR_IO, 0, "%s: cannot be mapped: %s", path, strerror(errno));
        file->bytes = bytes;
    } else {
        file->fd = fd;
        fd = -1;
    }
    uint8_t buffer[ELF_RECORD_MAX];
    if (!elf_class_of(core_file_peek(file, 0, EI_NIDENT, buffer), &file->elf) ||
        file->size < elf_header_size(file->elf))
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: not an ELF file", path);
    struct elf_header elf = elf_header_at(file->elf, core_file_peek(file, 0, elf_header_size(file->elf), buffer));
    if (elf.type != ET_CORE)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: an ELF file, but not a core dump", path);
    file->machine = elf.machine;
    return CDACQ_OK;
}

static size_t read_core(uint64_t offset, void *buffer, size_t size, void *context)
{
    return file_read_at(((const struct core_file *)context)->fd, offset, buffer, size);
}

enum cdacq_status core_file_open(struct core_file *file, const struct core_source *source, bool map,
                                 struct cdacq_error *err)
{
    *file = (struct core_file){.fd = -1};
    if (!page_cache_init(&file->cache, read_core, file))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    return take_file(file, source, map, err);
}

void core_file_close(struct core_file *file)
{
    if (file->bytes)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    arena_deinit(&file->kept);
    page_cache_deinit(&file->cache);
    if (file->fd >= 0)
        close(file->fd);
}

void core_file_release_pages(const struct core_file *file)
{
    if (file->bytes)
        (void)madvise((void *)(uintptr_t)file->bytes, file->size, MADV_DONTNEED);
}
