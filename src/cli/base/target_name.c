#include "src/cli/base/target_name.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/cli/base/console.h"
#include "util/base.h"
#include "util/file.h"

bool target_is_stdin(const char *name)
{
    return !strcmp(name, "-");
}

const char *target_display_name(const char *name)
{
    return target_is_stdin(name) ? "standard input" : name;
}

bool target_is_pid(const char *name)
{
    return name[0] && name[strspn(name, "0123456789")] == '\0';
}

int target_pid(const char *name)
{
    errno = 0;
    long pid = strtol(name, NULL, 10);
    return errno || pid > INT32_MAX ? 0 : (int)pid;
}

bool target_is_file(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 && S_ISREG(st.st_mode);
}

unsigned file_elf_type(const char *path, uint8_t header[FILE_HEADER_SIZE])
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0 || !S_ISREG(st.st_mode) || file_read_at(fd, 0, header, FILE_HEADER_SIZE) < FILE_HEADER_SIZE)
        memset(header, 0, FILE_HEADER_SIZE);
    return memcmp(header, ELFMAG, SELFMAG) == 0 ? load_u16(header + 16, header[EI_DATA] == ELFDATA2MSB) : ET_NONE;
}

uint64_t path_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

bool target_is_image(const char *name)
{
    uint8_t header[FILE_HEADER_SIZE];
    unsigned type = file_elf_type(name, header);
    return type == ET_DYN || type == ET_EXEC;
}

bool target_is_refused(const char *name)
{
    if (target_is_pid(name) || target_is_stdin(name) || !target_is_image(name))
        return false;
    message("%s: an ELF image, not a core; only 'info' and 'descriptor' can read it", name);
    return true;
}
