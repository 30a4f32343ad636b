#include "target/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/file.h"
#include "formats/elf.h"
#include "target/image.h"
#include "target/memory.h"
#include "target/page_cache.h"

/* The load address is not 0, so that a pointer without relocation is noticed. */
#define LOAD_BIAS UINT64_C(0x10000000)

static bool nothing_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    (void)context, (void)address, (void)ret_begin, (void)ret_end, (void)ret_bytes;
    return false;
}

struct file_window {
    int fd;
    uint8_t bytes[ELF_RECORD_MAX];
};

static const void *read_window(void *context, uint64_t offset, size_t count)
{
    struct file_window *window = context;
    return count <= sizeof window->bytes && file_read_at(window->fd, offset, window->bytes, count) == count
               ? window->bytes
               : NULL;
}

/* The mappings that a loader makes. Returns their number, 0 where this is no ELF image. */
static size_t read_mappings(int fd, const char *path, struct cdacq_mapping *ret, uint16_t *ret_machine)
{
    struct file_window window = {.fd = fd};
    struct bytes bytes = {.window = read_window, .context = &window, .size = UINT64_MAX};
    struct elf_file elf;
    struct elf_segment segment;
    size_t mapped = 0;
    *ret_machine = 0;
    if (!elf_file_open(&bytes, &elf) || (elf.header.type != ET_DYN && elf.header.type != ET_EXEC))
        return 0;
    for (unsigned i = 0; mapped < IMAGE_SEGMENT_MAX && elf_file_segment(&elf, i, &segment); i++) {
        uint64_t begin = LOAD_BIAS + align_down(segment.vaddr, PAGE_SIZE), end;
        if (segment.type != PT_LOAD || !segment.file_size || segment.vaddr > UINT64_MAX / 2 ||
            __builtin_add_overflow(LOAD_BIAS + segment.vaddr, segment.file_size, &end) || end > UINT64_MAX - PAGE_SIZE)
            continue;
        ret[mapped++] = (struct cdacq_mapping){
            .size = sizeof *ret,
            .begin = begin,
            .end = align_up(end, PAGE_SIZE),
            .file_offset = align_down(segment.offset, PAGE_SIZE),
            .path = path,
        };
    }
    *ret_machine = elf.header.machine;
    return mapped;
}

enum cdacq_status image_file_open(const char *path, struct file_policy *policy, bool record, char **ret_path,
                                  struct target **ret, struct cdacq_error *err)
{
    struct cdacq_mapping mappings[IMAGE_SEGMENT_MAX];
    char shown[256];
    uint16_t machine;
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd >= 0 && !S_ISREG(st.st_mode))
        return error_set(err, CDACQ_ERR_IO, 0, "%s: not a regular file", error_printable(shown, sizeof shown, path));
    char *real = fd < 0 ? NULL : realpath(path, NULL);
    if (!real) {
        int error = errno;
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", error_printable(shown, sizeof shown, path), strerror(error));
    }
    size_t count = read_mappings(fd, real, mappings, &machine);
    struct cdacq_memory memory = {
        .size = sizeof memory,
        .span_at = nothing_at,
        .mappings = mappings,
        .mapping_count = count,
        .elf_machine = machine,
    };
    enum cdacq_status status =
        count ? memory_open(&memory, policy, record, ret, err)
              : error_set(err, CDACQ_ERR_FORMAT, 0, "%s: not an ELF image", error_printable(shown, sizeof shown, path));
    if (status >= 0) {
        (*ret)->kind = CDACQ_TARGET_IMAGE;
        *ret_path = real;
    } else {
        free(real);
    }
    return status;
}
