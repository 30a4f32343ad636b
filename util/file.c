#include "util/file.h"

#include <errno.h>
#include <fcntl.h>

#include "util/vector.h"

enum { READ_SIZE = 64 * 1024 };

DEFINE_VECTOR(buffer, char);

int file_open(const char *path, struct stat *ret)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret) < 0)
        return -1;
    int opened = fd;
    fd = -1;
    return opened;
}

size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size)
{
    size_t done = 0;
    errno = 0;
    while (done < size && offset + done <= INT64_MAX) {
        ssize_t n = pread(fd, (uint8_t *)buffer + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return done;
        if (n == 0)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    errno = 0;
    return done;
}

char *file_read_all(int fd, size_t most, size_t *ret_length)
{
    struct buffer text = {0};
    for (;;) {
        if (!buffer_reserve(&text, text.count + READ_SIZE)) {
            errno = ENOMEM;
            break;
        }
        ssize_t n = read(fd, text.items + text.count, text.capacity - text.count - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0) {
            text.items[text.count] = '\0';
            *ret_length = text.count;
            return text.items;
        }
        if (n < 0)
            break;
        text.count += (size_t)n;
        if (text.count > most) {
            errno = EFBIG;
            break;
        }
    }
    int saved = errno;
    buffer_deinit(&text);
    errno = saved;
    return NULL;
}
