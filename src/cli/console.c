#include "src/cli/console.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/base.h"
#include "util/clock.h"
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
static const char *message_subject;

void message_set_subject(const char *subject)
{
    message_subject = subject;
    memset(last_messages, 0, sizeof last_messages);
}

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
    if (message_subject && length > 0 && !strstr(text, message_subject)) {
        char alone[sizeof text];
        memcpy(alone, text, sizeof text);
        length = snprintf(text, sizeof text, "%s: %s", message_subject, alone);
    }
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

static int64_t ms_since(uint64_t then)
{
    return (int64_t)((monotonic_ns() - then) / 1000000);
}

void progress_begin(struct progress *progress, const char *what, int results)
{
    *progress = (struct progress){.what = what, .wanted = isatty(STDERR_FILENO) && (results < 0 || !isatty(results))};
    if (progress->wanted)
        progress->began = progress->shown = monotonic_ns();
}

/* "1200 of 5000 methods, 800/s, 4 s left"; the end is known if the total is. */
static int format_progress(const struct progress *progress, uint64_t done, char *ret, size_t size)
{
    char of_total[32] = "", left[40] = "";
    double seconds = (double)ms_since(progress->began) / 1000, rate = (double)done / seconds;
    if (progress->total)
        snprintf(of_total, sizeof of_total, " of %" PRIu64, progress->total);
    if (progress->total > done && rate > 0)
        snprintf(left, sizeof left, ", %.0f s left", (double)(progress->total - done) / rate);
    return snprintf(ret, size, "%" PRIu64 "%s %s, %.0f/s%s", done, of_total, progress->what, rate, left);
}

void progress_step(struct progress *progress, uint64_t done)
{
    enum { FIRST_MS = 500, NEXT_MS = 200 };
    if (!progress->wanted || ms_since(progress->shown) < (line_is_shown ? NEXT_MS : FIRST_MS))
        return;
    progress->shown = monotonic_ns();
    char text[200], line[sizeof ERASE_LINE + ESCAPED_SIZE(sizeof text)];
    int length = format_progress(progress, done, text, sizeof text);
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
