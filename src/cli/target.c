/* target.c: opens TARGET. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"

/* A name of digits is a pid; a core of that name is "./1234". */
static bool is_pid(const char *name)
{
    return name[0] && name[strspn(name, "0123456789")] == '\0';
}

/* Returns 0 if no process can have the number. */
static int parse_pid(const char *name)
{
    errno = 0;
    long pid = strtol(name, NULL, 10);
    return errno || pid > INT32_MAX ? 0 : (int)pid;
}

/* Whether a file is an ELF image, such as libcoreclr.so, and not a core. */
static bool is_image(const char *name)
{
    uint8_t header[18] = {0};
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, header, sizeof header);
    close(fd);
    unsigned type = header[EI_DATA] == ELFDATA2MSB ? header[16] << 8 | header[17] : header[17] << 8 | header[16];
    return n == sizeof header && !memcmp(header, ELFMAG, SELFMAG) && (type == ET_DYN || type == ET_EXEC);
}

struct cdacq_target *target_open(const char *name, const struct cdacq_options *options)
{
    struct cdacq_target *target = NULL;
    struct cdacq_error error;
    enum cdacq_status status;
    if (!is_pid(name)) {
        if (is_image(name) && !(options->flags & CDACQ_OPEN_PARTIAL)) {
            message("%s: an ELF image, not a core; only 'info' and 'descriptor' can read it", name);
            return NULL;
        }
        status = is_image(name) ? cdacq_target_open_image(name, options, &target, &error)
                                : cdacq_target_open_core(name, options, &target, &error);
    } else {
        int pid = parse_pid(name);
        if (!pid) {
            message("%s: no process can have this pid", name);
            return NULL;
        }
        status = cdacq_target_open_pid(pid, options, &target, &error);
    }
    if (status < 0) {
        message("%s", error.message);
        return NULL;
    }
    return target;
}

bool output_is_a_target(const struct invocation *invocation)
{
    struct stat output, target;
    if (!invocation->output || stat(invocation->output, &output) < 0)
        return false;
    if (invocation->file && stat(invocation->file, &target) == 0 && output.st_dev == target.st_dev &&
        output.st_ino == target.st_ino) {
        message("'%s' is an input file and will not be overwritten", invocation->output);
        return true;
    }
    for (size_t i = 0; i < invocation->target_count; i++) {
        const char *name = invocation->targets[i];
        bool is_process = invocation->command->options & OPTIONS_TARGET && is_pid(name);
        if (is_process || stat(name, &target) < 0)
            continue;
        if (output.st_dev == target.st_dev && output.st_ino == target.st_ino) {
            message("'%s' is the target and will not be overwritten", invocation->output);
            return true;
        }
    }
    return false;
}

int target_run(const struct invocation *invocation, unsigned more_flags,
               int (*run)(const struct invocation *invocation, struct cdacq_target *target,
                          struct cdacq_session *session))
{
    struct cdacq_options options = invocation->options;
    options.flags |= more_flags;
    if (output_is_a_target(invocation))
        return EXIT_FAILED;
    struct cdacq_target *target = target_open(invocation->targets[0], &options);
    if (!target)
        return EXIT_FAILED;

    int status = EXIT_FAILED;
    struct cdacq_session *session = NULL;
    struct cdacq_error error;
    if (cdacq_session_create(target, &session, &error) < 0)
        message("%s", error.message);
    if (session || options.flags & CDACQ_OPEN_PARTIAL)
        status = run(invocation, target, session);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return status;
}
