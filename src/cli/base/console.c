#include "src/cli/base/console.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/base.h"
#include "util/clock.h"
#include "util/escape.h"

#define ERASE_LINE "\r\033[K"

/* Of the progress line. */
static struct {
    pthread_mutex_t lock; /* of all members, of each progress in the list, and of writing to the terminal */
    struct progress *innermost;
    pthread_t thread; /* shows it, until the process ends */
    bool has_thread;
    bool waits;
    bool is_shown; /* a message must erase it first */
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum colour colour_wanted;

void console_set_colour(enum colour colour)
{
    colour_wanted = colour;
}

bool console_has_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (colour_wanted != COLOUR_AUTO)
        return colour_wanted == COLOUR_ALWAYS;
    return fd >= 0 && isatty(fd) && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}

const char *console_style(enum style style)
{
    static const char *const bytes[] = {[STYLE_NONE] = "\033[0m",
                                        [STYLE_HEADING] = "\033[1m",
                                        [STYLE_MINOR] = "\033[2m",
                                        [STYLE_DOUBT] = "\033[33m",
                                        [STYLE_ERROR] = "\033[31m"};
    return bytes[style];
}

static void write_stderr(const char *data, size_t length)
{
    /* A failure cannot be reported. */
    if (write(STDERR_FILENO, data, length) < 0)
        return;
}

static void erase_line(void)
{
    if (shown.is_shown)
        write_stderr(ERASE_LINE, strlen(ERASE_LINE));
    shown.is_shown = false;
}

enum { MESSAGE_SIZE = 4096 };

static char last_messages[64][512]; /* a command has some 20 about single items, and a few about all */
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

/* Writes one line at once, so that lines of several processes do not mix. */
static void write_message(const char *text, size_t length, enum style style)
{
    static const char name[] = "cdacq:";
    char line[2 * 8 + sizeof name + 1 + ESCAPED_SIZE(MESSAGE_SIZE) + 1], *end = line;
    bool coloured = style != STYLE_NONE && console_has_colour(STDERR_FILENO);
    end = stpcpy(end, coloured ? console_style(style) : "");
    end = stpcpy(end, name);
    end = stpcpy(end, coloured ? console_style(STYLE_NONE) : "");
    *end++ = ' ';
    end = escape(end, text, length, ESCAPE_MESSAGE);
    *end++ = '\n';
    pthread_mutex_lock(&shown.lock);
    erase_line();
    write_stderr(line, (size_t)(end - line));
    pthread_mutex_unlock(&shown.lock);
}

static void write_formatted(const char *format, va_list args, enum style style)
{
    char text[MESSAGE_SIZE];
    int length = vsnprintf(text, sizeof text, format, args);
    if (message_subject && length > 0 && !strstr(text, message_subject)) {
        char alone[sizeof text];
        memcpy(alone, text, sizeof text);
        length = snprintf(text, sizeof text, "%s: %s", message_subject, alone);
    }
    if (length < 0)
        return;
    snprintf(last_messages[message_count++ % ARRAY_SIZE(last_messages)], sizeof last_messages[0], "%.500s", text);
    write_message(text, MIN((size_t)length, sizeof text - 1), style);
}

void message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_formatted(format, args, STYLE_ERROR);
    va_end(args);
}

void notice(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_formatted(format, args, STYLE_NONE);
    va_end(args);
}

int terminal_width(int fd)
{
    struct winsize size;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* ---- Progress -------------------------------------------------------------------------------------------------- */

/* When the line is shown first, and how often after that. Variables for the test. */
static int first_ms = 500, next_ms = 200;

static double seconds_since(uint64_t then)
{
    return (double)(monotonic_ns() - then) / 1e9;
}

/* "1200 of ~5000 methods, 800/s, 4 s left"; the end is known if the total is. */
static int format_counter(const struct progress *progress, char *ret, size_t size)
{
    char of_total[32] = "", left[40] = "";
    double rate = (double)progress->done / seconds_since(progress->began);
    if (progress->total)
        snprintf(of_total, sizeof of_total, " of %s%" PRIu64, progress->is_estimate ? "~" : "",
                 MAX(progress->total, progress->done));
    if (progress->total > progress->done && rate > 0)
        snprintf(left, sizeof left, ", %.0f s left", (double)(progress->total - progress->done) / rate);
    return snprintf(ret, size, "%" PRIu64 "%s %s, %.0f/s%s", progress->done, of_total, progress->what, rate, left);
}

static int format_progress(char *ret, size_t size)
{
    const struct progress *progress = shown.innermost;
    while (progress->outer && progress->counts && !progress->done)
        progress = progress->outer;
    if (progress->counts)
        return format_counter(progress, ret, size);
    return snprintf(ret, size, "%s, %.0f s", progress->what, seconds_since(progress->began));
}

static void show_line(void)
{
    char text[200], line[sizeof ERASE_LINE + ESCAPED_SIZE(sizeof text)];
    int length = format_progress(text, sizeof text), width = terminal_width(STDERR_FILENO);
    size_t room = MIN(sizeof text, (size_t)MAX(width, 2)) - 1; /* a line that wraps could not be erased */
    memcpy(line, ERASE_LINE, strlen(ERASE_LINE));
    char *end = escape(line + strlen(ERASE_LINE), text, MIN((size_t)MAX(length, 0), room), ESCAPE_MESSAGE);
    write_stderr(line, (size_t)(end - line));
    shown.is_shown = true;
}

static void *show_progress(void *unused)
{
    for (;;) {
        poll(NULL, 0, next_ms);
        pthread_mutex_lock(&shown.lock);
        const struct progress *outermost = shown.innermost;
        while (outermost && outermost->outer)
            outermost = outermost->outer;
        if (outermost && !shown.waits && seconds_since(outermost->began) * 1000 >= first_ms)
            show_line();
        pthread_mutex_unlock(&shown.lock);
    }
    return unused;
}

/* Signals are for the main thread, whose waits they interrupt. Without a thread, nothing is shown. */
static void start_thread(void)
{
    sigset_t all, before;
    if (shown.has_thread)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    shown.has_thread = pthread_create(&shown.thread, NULL, show_progress, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void begin_progress(struct progress *progress, const char *what, bool wanted, bool counts)
{
    *progress = (struct progress){.what = what, .wanted = wanted, .counts = counts};
    if (!wanted)
        return;
    progress->began = monotonic_ns();
    start_thread();
    pthread_mutex_lock(&shown.lock);
    progress->outer = shown.innermost;
    shown.innermost = progress;
    pthread_mutex_unlock(&shown.lock);
}

void progress_begin(struct progress *progress, const char *what, int results)
{
    begin_progress(progress, what, isatty(STDERR_FILENO) && (results < 0 || !isatty(results)), true);
}

void progress_begin_activity(struct progress *progress, const char *what)
{
    begin_progress(progress, what, isatty(STDERR_FILENO), false);
}

void progress_step(struct progress *progress, uint64_t done)
{
    if (!progress->wanted)
        return;
    pthread_mutex_lock(&shown.lock);
    progress->done = done;
    pthread_mutex_unlock(&shown.lock);
}

void progress_expect(struct progress *progress, uint64_t total)
{
    pthread_mutex_lock(&shown.lock);
    progress->total = total;
    progress->is_estimate = false;
    pthread_mutex_unlock(&shown.lock);
}

void progress_estimate(struct progress *progress, uint64_t done, uint64_t part, uint64_t whole)
{
    if (!progress->wanted)
        return;
    pthread_mutex_lock(&shown.lock);
    double total = part ? (double)done * (double)whole / (double)part : 0;
    progress->done = done;
    progress->total = total < (double)INT64_MAX ? (uint64_t)total : 0; /* not if ranges are invented */
    progress->is_estimate = part < whole;
    pthread_mutex_unlock(&shown.lock);
}

void progress_end(struct progress *progress)
{
    pthread_mutex_lock(&shown.lock);
    if (progress->wanted) {
        shown.innermost = progress->outer;
        progress->wanted = false;
        erase_line();
    }
    pthread_mutex_unlock(&shown.lock);
}

void progress_wait(bool waits)
{
    pthread_mutex_lock(&shown.lock);
    shown.waits = waits;
    if (waits)
        erase_line();
    pthread_mutex_unlock(&shown.lock);
}

void progress_end_all(void)
{
    pthread_mutex_lock(&shown.lock);
    for (; shown.innermost; shown.innermost = shown.innermost->outer)
        shown.innermost->wanted = false;
    erase_line();
    pthread_mutex_unlock(&shown.lock);
}
