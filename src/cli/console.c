#include "src/cli/console.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/base.h"
#include "util/escape.h"

#define ERASE_LINE "\r\033[K"

/* Whether the terminal shows a progress line, which a message must erase first. */
static bool line_is_shown;

static void write_stderr(const char *data, size_t length)
{
    /* A failure cannot be reported. */
    if (write(STDERR_FILENO, data, length) < 0)
        return;
}

static void erase_line(void)
{
    if (line_is_shown)
        write_stderr(ERASE_LINE, strlen(ERASE_LINE));
    line_is_shown = false;
}

static char last_messages[4][512];
static unsigned message_count;

bool message_was_shown(const char *text)
{
    for (unsigned i = 0; i < ARRAY_SIZE(last_messages); i++)
        if (strstr(last_messages[i], text))
            return true;
    return false;
}

void message(const char *format, ...)
{
    static const char prefix[] = "cdacq: ";
    char text[4096], line[sizeof prefix + ESCAPED_SIZE(sizeof text) + 1];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof text)
        length = (int)sizeof text - 1;

    snprintf(last_messages[message_count++ % ARRAY_SIZE(last_messages)], sizeof last_messages[0], "%.500s", text);
    char *end = line + sizeof prefix - 1;
    memcpy(line, prefix, sizeof prefix - 1);
    end = escape(end, text, (size_t)length, ESCAPE_MESSAGE);
    *end++ = '\n';
    erase_line();
    /* One write, so that lines of several processes do not mix. */
    write_stderr(line, (size_t)(end - line));
}

int terminal_width(int fd)
{
    struct winsize size;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static struct timespec now(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time;
}

void progress_begin(struct progress *progress, const char *what, int results)
{
    *progress = (struct progress){
        .what = what, .after_ms = 1000, .wanted = isatty(STDERR_FILENO) && (results < 0 || !isatty(results))};
    if (progress->wanted)
        progress->shown = now();
}

void progress_step(struct progress *progress, uint64_t done)
{
    if (!progress->wanted)
        return;
    struct timespec time = now();
    int64_t elapsed_ms =
        (int64_t)(time.tv_sec - progress->shown.tv_sec) * 1000 + (time.tv_nsec - progress->shown.tv_nsec) / 1000000;
    if (elapsed_ms < (line_is_shown ? 200 : progress->after_ms))
        return;
    progress->shown = time;
    char of_total[32] = "", text[160], line[sizeof ERASE_LINE + ESCAPED_SIZE(sizeof text)];
    if (progress->total)
        snprintf(of_total, sizeof of_total, " of %" PRIu64, progress->total);
    int length = snprintf(text, sizeof text, "%" PRIu64 "%s %s", done, of_total, progress->what);
    memcpy(line, ERASE_LINE, strlen(ERASE_LINE));
    char *end = escape(line + strlen(ERASE_LINE), text, MIN((size_t)length, sizeof text - 1), ESCAPE_MESSAGE);
    write_stderr(line, (size_t)(end - line));
    line_is_shown = true;
}

void progress_end(struct progress *progress)
{
    progress->wanted = false;
    erase_line();
}
