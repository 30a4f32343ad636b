#include "src/files/curl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

enum { NUMBER_SIZE = 24, TEXT_SIZE = 512, PART = 64 * 1024 };

extern char **environ;

struct transfer {
    const struct curl_request *request;
    pid_t pid;
    struct pollfd files[2]; /* what curl writes: contents, and messages */
    uint64_t size;
    char text[TEXT_SIZE]; /* the first messages */
    size_t text_length;
    char *why;
    size_t why_size;
};

/* A pipe whose ends are no standard files, which the program may have closed. */
static bool make_pipe(int ends[2])
{
    int made[2];
    if (pipe2(made, O_CLOEXEC) < 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(made[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(made[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    errno = EMFILE;
    return false;
}

/* Returns 0, or an errno. */
static int spawn(const struct curl_request *request, int out, int err, pid_t *ret)
{
    char size_max[NUMBER_SIZE], seconds_max[NUMBER_SIZE], silent[NUMBER_SIZE], redirects[NUMBER_SIZE];
    snprintf(size_max, sizeof size_max, "%llu", (unsigned long long)request->size_max);
    snprintf(seconds_max, sizeof seconds_max, "%u", request->seconds_max);
    snprintf(silent, sizeof silent, "%d", CURL_SILENT_SECONDS);
    snprintf(redirects, sizeof redirects, "%d", CURL_REDIRECTS_MAX);
    bool is_secure = strncmp(request->url, "https:", 6) == 0;
    const char *const arguments[] = {
        "curl",
        "--disable",
        "--silent",
        "--show-error",
        "--fail",
        "--globoff",
        "--location",
        "--max-redirs",
        redirects,
        "--proto",
        "=http,https",
        "--proto-redir",
        is_secure ? "=https" : "=http,https",
        "--connect-timeout",
        silent,
        "--max-time",
        seconds_max,
        "--max-filesize",
        size_max,
        "--output",
        "-",
        "--url",
        request->url,
        NULL,
    };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    int error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        if (!error)
            error = posix_spawnp(ret, "curl", &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static enum curl_outcome fail(struct transfer *transfer, enum curl_outcome outcome, const char *format, ...)
    PRINTF_LIKE(3, 4);

static enum curl_outcome fail(struct transfer *transfer, enum curl_outcome outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transfer->why, transfer->why_size, format, arguments);
    va_end(arguments);
    return outcome;
}

static enum curl_outcome begin(struct transfer *transfer)
{
    int out[2], err[2];
    if (!make_pipe(out))
        return fail(transfer, CURL_FAILED, "%s", strerror(errno));
    if (!make_pipe(err)) {
        close(out[0]);
        close(out[1]);
        return fail(transfer, CURL_FAILED, "%s", strerror(errno));
    }
    int error = spawn(transfer->request, out[1], err[1], &transfer->pid);
    close(out[1]);
    close(err[1]);
    if (!error) {
        transfer->files[0] = (struct pollfd){.fd = out[0], .events = POLLIN};
        transfer->files[1] = (struct pollfd){.fd = err[0], .events = POLLIN};
        return CURL_DONE;
    }
    close(out[0]);
    close(err[0]);
    return error == ENOENT ? fail(transfer, CURL_MISSING, "the program curl is not installed")
                           : fail(transfer, CURL_MISSING, "the program curl cannot be started: %s", strerror(error));
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static enum curl_outcome take_contents(struct transfer *transfer, const uint8_t *part, size_t size)
{
    const struct curl_request *request = transfer->request;
    char most[NUMBER_SIZE];
    if (size > request->size_max - transfer->size) {
        text_bytes(most, sizeof most, request->size_max);
        return fail(transfer, CURL_FAILED, "it is larger than %s", most);
    }
    if (!write_all(request->fd, part, size))
        return fail(transfer, CURL_FAILED, "it cannot be stored: %s", strerror(errno));
    transfer->size += size;
    if (request->progress)
        request->progress(request->context, transfer->size);
    return CURL_DONE;
}

static void take_messages(struct transfer *transfer, const uint8_t *part, size_t size)
{
    size = MIN(size, sizeof transfer->text - 1 - transfer->text_length);
    memcpy(transfer->text + transfer->text_length, part, size);
    transfer->text_length += size;
    transfer->text[transfer->text_length] = '\0';
}

/* Reads what one of the pipes has. A pipe that has ended is closed. */
static enum curl_outcome take(struct transfer *transfer, struct pollfd *file)
{
    uint8_t part[PART];
    ssize_t n = read(file->fd, part, sizeof part);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return CURL_DONE;
    if (n <= 0) {
        close(file->fd);
        file->fd = -1;
        return CURL_DONE;
    }
    if (file == &transfer->files[0])
        return take_contents(transfer, part, (size_t)n);
    take_messages(transfer, part, (size_t)n);
    return CURL_DONE;
}

/* Reads until curl has ended what it writes, or is to be ended. */
static enum curl_outcome collect(struct transfer *transfer)
{
    struct pollfd *files = transfer->files;
    unsigned seconds = transfer->request->seconds_max;
    uint64_t end = monotonic_ns() + seconds * NS_PER_SECOND;
    enum curl_outcome outcome = CURL_DONE;
    while (outcome == CURL_DONE && (files[0].fd >= 0 || files[1].fd >= 0)) {
        int n = poll(files, 2, CURL_SILENT_SECONDS * 1000);
        if (n < 0 && errno != EINTR)
            return fail(transfer, CURL_FAILED, "%s", strerror(errno));
        if (n == 0)
            return fail(transfer, CURL_UNREACHABLE, "no data came for %d seconds", CURL_SILENT_SECONDS);
        if (monotonic_ns() >= end)
            return fail(transfer, CURL_FAILED, "it did not come within %u seconds", seconds);
        for (int i = 0; i < 2 && n > 0 && outcome == CURL_DONE; i++)
            if (files[i].fd >= 0 && files[i].revents)
                outcome = take(transfer, &files[i]);
    }
    return outcome;
}

/* What curl says, without "curl: (22) " before it, on one line. */
static const char *message_of(struct transfer *transfer)
{
    transfer->text[strcspn(transfer->text, "\r\n")] = '\0';
    const char *end = strncmp(transfer->text, "curl: (", 7) == 0 ? strstr(transfer->text, ") ") : NULL;
    return end ? end + 2 : transfer->text[0] ? transfer->text : "curl does not say why";
}

enum { HTTP_NOT_FOUND = 404, HTTP_GONE = 410 };

/* By curl's exit code: curl(1). */
static enum curl_outcome judge(struct transfer *transfer, int code)
{
    enum {
        NO_PROXY = 5,
        NO_HOST = 6,
        NO_CONNECTION = 7,
        HTTP_ERROR = 22,
        TIMED_OUT = 28,
        NO_TLS = 35,
        UNTRUSTED = 60,
        TOO_LARGE = 63
    };
    static const char marker[] = "error: ";
    char printable[TEXT_SIZE], most[NUMBER_SIZE];
    const char *text = message_of(transfer), *number = strstr(text, marker);
    error_printable(printable, sizeof printable, text);
    long status = code == HTTP_ERROR && number ? strtol(number + sizeof marker - 1, NULL, 10) : 0;
    switch (code) {
    case 0:
        return transfer->size ? CURL_DONE : fail(transfer, CURL_FAILED, "it is empty");
    case HTTP_ERROR:
        if (status == HTTP_NOT_FOUND || status == HTTP_GONE)
            return fail(transfer, CURL_ABSENT, "the server has no such file (%ld)", status);
        return status ? fail(transfer, CURL_FAILED, "the server answers %ld", status)
                      : fail(transfer, CURL_FAILED, "%s", printable);
    case TOO_LARGE:
        text_bytes(most, sizeof most, transfer->request->size_max);
        return fail(transfer, CURL_FAILED, "it is larger than %s", most);
    case NO_PROXY:
    case NO_HOST:
    case NO_CONNECTION:
    case TIMED_OUT:
    case NO_TLS:
    case UNTRUSTED:
        return fail(transfer, CURL_UNREACHABLE, "%s", printable);
    default:
        return fail(transfer, CURL_FAILED, "%s", printable);
    }
}

enum curl_outcome curl_read(const struct curl_request *request, uint64_t *ret_size, char *why, size_t why_size)
{
    struct transfer transfer = {.request = request, .why = why, .why_size = why_size};
    int status;
    *ret_size = 0;
    enum curl_outcome outcome = begin(&transfer);
    if (outcome != CURL_DONE)
        return outcome;
    outcome = collect(&transfer);
    if (outcome != CURL_DONE)
        (void)kill(transfer.pid, SIGKILL);
    for (int i = 0; i < 2; i++)
        if (transfer.files[i].fd >= 0)
            close(transfer.files[i].fd);
    pid_t ended;
    while ((ended = waitpid(transfer.pid, &status, 0)) < 0 && errno == EINTR)
        ;
    *ret_size = transfer.size;
    if (outcome != CURL_DONE)
        return outcome;
    if (ended < 0) /* the program ignores SIGCHLD, or has waited for all its children */
        return fail(&transfer, CURL_FAILED, "how curl ended is not known: %s", strerror(errno));
    if (!WIFEXITED(status))
        return fail(&transfer, CURL_FAILED, "curl was ended by signal %d", WTERMSIG(status));
    return judge(&transfer, WEXITSTATUS(status));
}
