#include "src/api/core_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/error.h"
#include "util/file.h"

enum cdacq_status core_output_write(const char *path, const struct core_writer_image *image, uint64_t *ret_size,
                                    struct cdacq_error *err)
{
    struct new_file created;
    /* Not readable by others: it holds memory of a process. */
    if (!file_create(path, 0600, &created))
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, created.problem ? created.problem : strerror(errno));
    int fd = fcntl(created.fd, F_DUPFD_CLOEXEC, 3); /* fclose() reports what could not be written */
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    struct cdacq_error error;
    uint64_t written = 0;
    enum cdacq_status status = file ? core_writer_write(file, image, &written, &error)
                                    : error_set(&error, CDACQ_ERR_IO, 0, "%s", strerror(errno));
    if (status < 0)
        error_set(err, status, 0, "%s: %s", path, error.message);
    if (fd >= 0 && (file ? fclose(file) : close(fd)) != 0 && status >= 0)
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    if (status < 0)
        file_abandon(&created);
    else if (!file_commit(&created))
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    if (status >= 0 && ret_size)
        *ret_size = written;
    return status;
}
