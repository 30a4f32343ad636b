#include "src/cli/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/cli/base/console.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/put.h"
#include "src/cli/base/watchdog.h"
#include "util/same_file.h"

enum {
    OUTPUT_CAPACITY = 256 * 1024,
    PIECE = 16 * 1024, /* of a text that is escaped at once: one of any length needs no more memory */
};

static bool begin(struct output *out, const char *path, bool created)
{
    if (!created) {
        message("cannot write '%s': %s", path, out->file.problem ? out->file.problem : strerror(errno));
        return false;
    }
    out->name = path;
    out->fd = path ? out->file.fd : STDOUT_FILENO;
    out->is_terminal = isatty(out->fd);
    out->colour = console_has_colour(out->fd);
    out->capacity = OUTPUT_CAPACITY;
    out->data = reallocate(NULL, out->capacity);
    return true;
}

/*
 * A descriptor of the file at `path` if that is what a standard stream writes to, as /dev/stdout is: another file must
 * not take its place, and what others have written there stays. -1: it is not, or no file.
 */
static int open_stream_of(const char *path)
{
    struct stat file, stream;
    if (stat(path, &file) < 0 || !S_ISREG(file.st_mode))
        return -1;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &stream) == 0 && is_same_file(&stream, &file))
            return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return -1;
}

/* Signals wait while the file has a name that nobody would remove, but not while a FIFO is opened. */
static bool create(const char *path, unsigned mode, struct new_file *ret)
{
    sigset_t before;
    *ret = (struct new_file){.fd = open_stream_of(path)};
    if (ret->fd >= 0)
        return true;
    watchdog_block_ends(&before);
    bool created = file_create_beside(path, mode, ret);
    if (created && ret->temporary[0])
        watchdog_remove(ret->folder, ret->temporary);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return created || file_create_directly(path, mode, ret);
}

static bool open_with(struct output *out, const char *path, unsigned mode)
{
    *out = (struct output){.file.fd = -1};
    int watched = watchdog_set(0); /* a disk may be slow */
    bool created = !path || create(path, mode, &out->file);
    watchdog_set(watched);
    return begin(out, path, created);
}

bool output_open(struct output *out, const char *path)
{
    return open_with(out, path, 0666);
}

bool output_open_private(struct output *out, const char *path)
{
    return open_with(out, path, 0600);
}

/*
 * A file that must not be written to, because others may, or because it must be read by nobody else, is replaced at
 * once.
 */
static bool create_stream(const char *path, unsigned mode, struct new_file *ret)
{
    sigset_t before;
    if (file_create_directly(path, mode, ret))
        return true;
    const char *problem = ret->problem;
    watchdog_block_ends(&before);
    bool placed = problem && file_create_beside(path, mode, ret) && file_place(ret);
    sigprocmask(SIG_SETMASK, &before, NULL);
    ret->problem = problem;
    return placed;
}

static bool open_stream_with(struct output *out, const char *path, unsigned mode)
{
    *out = (struct output){.file.fd = -1};
    int watched = watchdog_set(0);
    if (path)
        out->file.fd = open_stream_of(path);
    bool created = !path || out->file.fd >= 0 || create_stream(path, mode, &out->file);
    watchdog_set(watched);
    return begin(out, path, created);
}

bool output_open_stream(struct output *out, const char *path)
{
    return open_stream_with(out, path, 0666);
}

bool output_open_private_stream(struct output *out, const char *path)
{
    return open_stream_with(out, path, 0600);
}

void output_open_fd(struct output *out, int fd, const char *name)
{
    *out = (struct output){.file.fd = fd};
    begin(out, name, true);
}

void output_open_memory(struct output *out)
{
    *out = (struct output){.fd = -1, .file.fd = -1};
}

static void forget_temporary(const struct output *out)
{
    if (out->file.temporary[0])
        watchdog_remove(AT_FDCWD, NULL);
}

void output_abandon(struct output *out)
{
    forget_temporary(out);
    file_abandon(&out->file);
    free(out->data);
    out->data = NULL;
}

/* Completes the file. A signal that ends the tool comes before or after that: no part of the file stays behind. */
static bool commit(struct output *out)
{
    sigset_t before;
    watchdog_block_ends(&before);
    forget_temporary(out);
    bool done = file_commit(&out->file);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return done;
}

bool output_close(struct output *out)
{
    out->is_held = false;
    output_flush(out);
    int watched = watchdog_set(0); /* a disk may be slow */
    if (out->error) {
        forget_temporary(out);
        file_abandon(&out->file);
    } else if (out->fd == STDOUT_FILENO ? close(out->fd) < 0 : !commit(out)) {
        out->error = errno; /* some file systems report only here that the disk is full */
    }
    watchdog_set(watched);
    free(out->data);
    out->data = NULL;
    if (!out->error || out->error == EPIPE) /* the reader has left: no message */
        return !out->error;
    if (out->name)
        message("cannot write '%s': %s", out->name, strerror(out->error));
    else
        message("cannot write to standard output: %s", strerror(out->error));
    return false;
}

bool output_close_if(struct output *out, bool wanted)
{
    if (wanted || out->file.fd < 0)
        return output_close(out) && wanted;
    output_abandon(out);
    return false;
}

/* Calls write once. Returns false on a permanent error. */
static bool write_some(struct output *out, size_t *written)
{
    ssize_t n = write(out->fd, out->data + *written, out->length - *written);
    if (n >= 0) {
        *written += (size_t)n;
        return true;
    }
    if (errno == EAGAIN) /* another process made it non-blocking */
        return poll(&(struct pollfd){.fd = out->fd, .events = POLLOUT}, 1, -1) >= 0 || errno == EINTR;
    return errno == EINTR;
}

void output_flush(struct output *out)
{
    size_t written = 0;
    if (out->is_held || !out->length)
        return;
    int watched = watchdog_set(0);
    if (out->is_terminal)
        progress_end_all();
    while (written < out->length && !out->error)
        if (!write_some(out, &written))
            out->error = errno;
    if (written && written < out->length && out->has_records &&
        out->file.fd >= 0) { /* best effort: it stays an error */
        off_t end = lseek(out->fd, 0, SEEK_CUR) - (off_t)written;
        if (end >= 0 && ftruncate(out->fd, end) == 0)
            lseek(out->fd, end, SEEK_SET);
    }
    watchdog_set(watched);
    out->length = 0;
}

void output_end_record(struct output *out)
{
    out->has_records = true;
    if (out->length >= OUTPUT_CAPACITY / 2)
        output_flush(out);
}

char *output_make_room(struct output *out, size_t size)
{
    if (out->fd >= 0)
        output_flush(out);
    if (size > out->capacity - out->length) {
        out->capacity = MAX(out->length + size, 2 * out->capacity);
        out->data = reallocate(out->data, out->capacity);
    }
    return out->data + out->length;
}

void output_printf(struct output *out, const char *format, ...)
{
    enum { ROOM = 1024 };
    char *p = output_reserve(out, ROOM);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(p, ROOM, format, args);
    va_end(args);
    if (length > 0)
        output_commit(out, p + (length < ROOM ? length : ROOM - 1));
}

void output_literal(struct output *out, const char *text)
{
    output_bytes(out, text, strlen(text));
}

/* Returns where to cut a text between characters: at `at` or up to three bytes before. */
static size_t cut_between_characters(const char *text, size_t at)
{
    for (size_t back = 0; back < 4 && back < at; back++)
        if (((unsigned char)text[at - back] & 0xc0) != 0x80)
            return at - back;
    return at; /* broken UTF-8 is escaped byte by byte */
}

void output_escaped(struct output *out, const char *text, size_t length, enum escape_form form)
{
    while (length) {
        size_t piece = length > PIECE ? cut_between_characters(text, PIECE) : length;
        output_commit(out, escape(output_reserve(out, ESCAPED_SIZE(piece)), text, piece, form));
        text += piece;
        length -= piece;
    }
}

void output_style(struct output *out, enum style style)
{
    if (out->colour)
        output_literal(out, console_style(style));
}

void output_styled(struct output *out, enum style style, const char *text)
{
    output_style(out, style);
    output_literal(out, text);
    output_style(out, STYLE_NONE);
}

void output_label(struct output *out, const char *text)
{
    output_style(out, STYLE_HEADING);
    output_printf(out, "%-12s", text);
    output_style(out, STYLE_NONE);
}

bool output_form_time(int64_t seconds, char ret[static OUTPUT_TIME_SIZE])
{
    time_t time = (time_t)seconds;
    struct tm parts;
    return gmtime_r(&time, &parts) && strftime(ret, OUTPUT_TIME_SIZE, "%Y-%m-%d %H:%M:%S UTC", &parts);
}

void output_text(struct output *out, const char *text)
{
    output_escaped(out, text, strlen(text), ESCAPE_DATA);
}

void output_note(struct output *out, const char *text)
{
    output_escaped(out, text, strlen(text), ESCAPE_MESSAGE);
}

void output_text_between(struct output *out, const char *before, const char *text, const char *after)
{
    output_literal(out, before);
    output_text(out, text);
    output_literal(out, after);
}

void output_note_between(struct output *out, const char *before, const char *text, const char *after)
{
    output_literal(out, before);
    output_note(out, text);
    output_literal(out, after);
}

int output_ignore_text(const char *bytes, size_t length, void *context)
{
    (void)bytes, (void)length, (void)context;
    return 0;
}
