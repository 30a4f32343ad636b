#include "util/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "util/clock.h"
#include "util/file.h"

enum {
    NS_PER_MS = 1000 * 1000,
    BYTES_PER_MS = 16 * 1024, /* that come add time: 16 MiB a second are a slow file system, and no dead one */
};

#define TIME_MAX (HELPER_SECONDS * NS_PER_SECOND)

struct question_header {
    helper_work *work;
    uint64_t most;
};

/* Comes before each part of an answer. */
struct answer_header {
    uint64_t bytes; /* read since the last part */
    int32_t error;
    uint32_t is_last; /* no bool: all bytes of the header are sent, and have values */
};

/* ---- Messages, with a file descriptor or without ---- */

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static ssize_t send_message(int socket, struct iovec parts[2], int fd)
{
    union control control = {.room = {0}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;
    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    do
        n = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t receive_message(int socket, struct iovec parts[2], int *ret_fd)
{
    union control control;
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t n;
    *ret_fd = -1;
    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *sent = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (sent && sent->cmsg_type == SCM_RIGHTS && sent->cmsg_len == CMSG_LEN(sizeof *ret_fd))
        memcpy(ret_fd, CMSG_DATA(sent), sizeof *ret_fd);
    return n;
}

/* ---- The other process ---- */

static bool send_part(struct helper_answer *answer, struct answer_header header)
{
    struct iovec parts[] = {{&header, sizeof header}, {answer->bytes, header.is_last ? answer->size : 0}};
    return send_message(answer->socket, parts, header.is_last ? answer->fd : -1) >= 0;
}

void helper_progress(struct helper_answer *answer, uint64_t bytes)
{
    answer->most -= MIN(answer->most, bytes);
    (void)send_part(answer, (struct answer_header){.bytes = bytes});
}

static _Noreturn void serve(int socket)
{
    static uint8_t question[HELPER_QUESTION_MAX];
    static struct helper_answer answer;
    struct question_header header;
    int fd;
    (void)prctl(PR_SET_NAME, "cdacq-helper");
    file_close_all_from(0, socket);
    for (;;) {
        struct iovec parts[] = {{&header, sizeof header}, {question, sizeof question}};
        ssize_t n = receive_message(socket, parts, &fd);
        if (n < (ssize_t)sizeof header) /* the caller has ended */
            _exit(EXIT_SUCCESS);
        answer.socket = socket;
        answer.size = 0;
        answer.fd = -1;
        answer.most = header.most;
        int error = header.work(question, (size_t)n - sizeof header, fd, &answer);
        if (!send_part(&answer, (struct answer_header){.error = error, .is_last = true}))
            _exit(EXIT_FAILURE);
        if (answer.fd >= 0 && answer.fd != fd)
            (void)close(answer.fd);
        if (fd >= 0)
            (void)close(fd);
    }
}

/* ---- The caller ---- */

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* this program, or the one that has forked it */
    pid_t pid;   /* of the helper; 0: there is none */
    pid_t left;  /* a helper that did not answer; 0: there is none, or it has ended */
    int socket;
    uint64_t time, bytes; /* that are left */
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER, .time = TIME_MAX, .bytes = HELPER_BYTES_MAX};

static void reap(pid_t *pid)
{
    if (*pid && waitpid(*pid, NULL, __WALL | WNOHANG) != 0)
        *pid = 0;
}

/* What it waits for may keep it until the end of all time. */
static void leave_behind(void)
{
    close(helper.socket);
    (void)kill(helper.pid, SIGKILL);
    reap(&helper.left);
    helper.left = helper.pid;
    helper.pid = 0;
    reap(&helper.left);
}

/* A fork() that runs no code of other libraries in the child, where only this thread is, and no handler of a signal. */
static pid_t fork_silently(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L); /* no flags, and no signal at the end */
    if (pid != 0)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static bool begin(void)
{
    int ends[2];
    pid_t own = getpid();
    if (helper.owner != own) { /* they are of the program that has forked this one */
        if (helper.pid)
            close(helper.socket);
        helper.pid = helper.left = 0;
        helper.owner = own;
    }
    reap(&helper.left);
    if (helper.pid)
        return true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    pid_t pid = fork_silently();
    if (pid == 0)
        serve(ends[1]);
    int saved = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = saved;
        return false;
    }
    helper.pid = pid;
    helper.socket = ends[0];
    return true;
}

/* Waits for a message, and takes the time from what is left. False: there is none. */
static bool wait_for_part(void)
{
    struct pollfd more = {.fd = helper.socket, .events = POLLIN};
    while (helper.time >= NS_PER_MS) {
        uint64_t before = monotonic_ns();
        int n = poll(&more, 1, (int)(helper.time / NS_PER_MS));
        int error = n < 0 ? errno : 0;
        helper.time -= MIN(helper.time, monotonic_ns() - before);
        if (n > 0 || (n < 0 && error != EINTR))
            return n > 0;
    }
    return false;
}

/* Each message adds a little time, so that many quick answers never use it up. */
static void note_part(const struct answer_header *header)
{
    uint64_t added = NS_PER_MS + header->bytes / BYTES_PER_MS * NS_PER_MS;
    helper.time = MIN(helper.time + added, TIME_MAX);
    helper.bytes -= MIN(helper.bytes, header->bytes);
}

/* Receives the answer, and the errno of the work. Returns 0, or an errno if there is no answer. */
static int receive(struct helper_call *call, int *ret_error)
{
    struct answer_header header = {.is_last = false};
    struct iovec parts[] = {{&header, sizeof header}, {call->answer, call->answer_room}};
    do {
        if (!wait_for_part()) {
            helper.time = 0;
            return ETIMEDOUT;
        }
        ssize_t n = receive_message(helper.socket, parts, &call->answer_fd);
        if (n < (ssize_t)sizeof header) /* it was killed */
            return EIO;
        call->answer_size = (size_t)n - sizeof header;
        note_part(&header);
    } while (!header.is_last);
    *ret_error = header.error;
    return 0;
}

static int ask(struct helper_call *call)
{
    struct question_header header = {call->work, helper.bytes};
    struct iovec parts[] = {{&header, sizeof header}, {(void *)(uintptr_t)call->question, call->question_size}};
    int error = 0;
    if (helper.time < NS_PER_MS)
        return ETIMEDOUT;
    if (!begin())
        return errno;
    int problem = send_message(helper.socket, parts, call->question_fd) < 0 ? EIO : receive(call, &error);
    if (problem)
        leave_behind();
    return problem ? problem : error;
}

bool helper_ask(struct helper_call *call)
{
    call->answer_size = 0;
    call->answer_fd = -1;
    pthread_mutex_lock(&helper.lock);
    int error = ask(call);
    pthread_mutex_unlock(&helper.lock);
    if (error && call->answer_fd >= 0) {
        close(call->answer_fd);
        call->answer_fd = -1;
    }
    errno = error;
    return !error;
}

void helper_renew(void)
{
    pthread_mutex_lock(&helper.lock);
    helper.time = TIME_MAX;
    helper.bytes = HELPER_BYTES_MAX;
    pthread_mutex_unlock(&helper.lock);
}
