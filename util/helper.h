/*
 * helper.h: does in another process what may never end, such as a look at a file of a network file system whose server
 * is gone: no signal ends such a wait. The process is forked when it is first needed. If it does not answer, it is left
 * behind, and what it was asked fails.
 *
 * All answers together are waited for HELPER_SECONDS, from one helper_renew() to the next. Each answer, and bytes that
 * come, add a little time: as much as a slow disk takes. Once the time is used up, all questions fail at once.
 *
 * The process runs nothing but functions of this library, which allocate nothing, keeps none of the caller's file
 * descriptors open, and ends with the caller. It sends no SIGCHLD, and only waitpid() with __WALL finds it.
 * Thread-safe.
 */
#ifndef CDACQ_UTIL_HELPER_H
#define CDACQ_UTIL_HELPER_H

#include "util/base.h"

enum {
    HELPER_SECONDS = 4,              /* with the rest of an answer, there is one in five */
    HELPER_QUESTION_MAX = 16 * 1024, /* bytes */
    HELPER_ANSWER_MAX = 64 * 1024,
    HELPER_UNIT = 4 << 20, /* bytes after which an answer that takes long says so */
};

#define HELPER_BYTES_MAX (UINT64_C(1) << 30) /* of all answers from one helper_renew() to the next */

/* An answer, which begins as an empty one. */
struct helper_answer {
    uint8_t bytes[HELPER_ANSWER_MAX];
    size_t size;
    int fd;        /* is sent and closed; -1: none */
    uint64_t most; /* bytes that helper_progress() may still count */
    int socket;    /* for helper_progress() */
};

/*
 * What the other process does. `fd` is a copy of the asker's, or -1; it is closed afterwards. Returns 0 or an errno.
 * Makes only calls that a child of a program with several threads may make.
 */
typedef int helper_work(const void *question, size_t size, int fd, struct helper_answer *ret);

/* For the work: that it has read so many bytes more, and goes on. */
void helper_progress(struct helper_answer *answer, uint64_t bytes);

/* A question and the room for its answer. */
struct helper_call {
    helper_work *work;
    const void *question;
    size_t question_size;
    int question_fd; /* -1: none */
    void *answer;
    size_t answer_room, answer_size; /* `answer_size` is set */
    int answer_fd;                   /* is set: the caller closes it; -1: none */
};

/*
 * Asks, and waits for the answer. False with errno set, also to what the work returned: ETIMEDOUT if there is no
 * answer, or no time left for one.
 */
bool helper_ask(struct helper_call *call);

/* From now on, there is time again. For the opener of a target. */
void helper_renew(void);

#endif
