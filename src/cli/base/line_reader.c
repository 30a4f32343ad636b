#include "src/cli/base/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/base/memory.h"

enum { BUFFER_SIZE = 256 * 1024 };

void line_reader_init(struct line_reader *reader, int fd, const char *what)
{
    struct stat st;
    if (isatty(fd))
        notice("reading %s from the terminal; Ctrl-D ends it", what);
    *reader = (struct line_reader){.fd = fd, .data = reallocate(NULL, BUFFER_SIZE + 1)};
    reader->size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    reader->next = reader->end = reader->data;
    *reader->end = '\0';
}

void line_reader_deinit(struct line_reader *reader)
{
    progress_end(&reader->progress);
    free(reader->data);
    reader->data = NULL;
}

void line_reader_show(struct line_reader *reader, int results)
{
    progress_begin(&reader->progress, "KiB of text", results);
    progress_expect(&reader->progress, reader->size >> 10);
}

bool line_reader_would_block(const struct line_reader *reader)
{
    return !reader->at_end && poll(&(struct pollfd){.fd = reader->fd, .events = POLLIN}, 1, 0) == 0;
}

bool line_reader_take(struct line_reader *reader, struct text_line *ret)
{
    while (reader->next < reader->end) {
        const char *text = reader->next, *newline = memchr(text, '\n', (size_t)(reader->end - text));
        bool is_full = reader->end - text == BUFFER_SIZE, was_skipping = reader->skipping;
        if (!newline && !is_full && !was_skipping && !reader->at_end)
            break;
        reader->next = newline ? newline + 1 : reader->end;
        reader->skipping = !newline;
        if (was_skipping)
            continue;
        *ret = (struct text_line){text, newline ? newline : reader->end, !newline && is_full};
        return true;
    }
    return false;
}

bool line_reader_fill(struct line_reader *reader)
{
    size_t left = (size_t)(reader->end - reader->next);
    memmove(reader->data, reader->next, left);
    reader->next = reader->data;
    reader->end = reader->data + left;
    *reader->end = '\0';

    ssize_t n;
    bool waits = line_reader_would_block(reader);
    if (waits)
        progress_wait(true);
    while ((n = read(reader->fd, reader->end, BUFFER_SIZE - left)) < 0) {
        if (errno == EAGAIN) /* a non-blocking stream */
            poll(&(struct pollfd){.fd = reader->fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            break;
    }
    if (waits)
        progress_wait(false);
    if (n < 0)
        return false;
    reader->taken += (uint64_t)n;
    progress_step(&reader->progress, reader->taken >> 10);
    reader->at_end = n == 0;
    reader->end += n;
    *reader->end = '\0';
    return true;
}
