/*
 * measure.c: runs a command and prints its wall time, processor time, peak memory and page faults. It is written in C
 * because the peak that the kernel reports includes the memory of the parent before exec, and that of run.py would be
 * larger than ours.
 *
 *     measure STDIN_FILE STDOUT_FILE COMMAND [ARGUMENT...]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_NOT_RUN = 127 };

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double microseconds(struct timeval time)
{
    return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

static int open_for(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);
    if (fd < 0) {
        fprintf(stderr, "measure: %s: %s\n", path, strerror(errno));
        exit(EXIT_NOT_RUN);
    }
    return fd;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: measure STDIN_FILE STDOUT_FILE COMMAND [ARGUMENT...]\n");
        return 64;
    }
    int input = open_for(argv[1], O_RDONLY), output = open_for(argv[2], O_WRONLY | O_CREAT | O_TRUNC);
    double start = now_us();
    pid_t pid = vfork();
    if (pid == 0) {
        dup2(input, STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        execvp(argv[3], argv + 3);
        _exit(EXIT_NOT_RUN);
    }
    struct rusage usage;
    int status;
    if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
        fprintf(stderr, "measure: %s: %s\n", argv[3], strerror(errno));
        return EXIT_NOT_RUN;
    }
    printf("wall_us=%.1f\ncpu_us=%.1f\npeak_rss_kb=%ld\nminor_faults=%ld\nmajor_faults=%ld\nexit=%d\n",
           now_us() - start, microseconds(usage.ru_utime) + microseconds(usage.ru_stime), usage.ru_maxrss,
           usage.ru_minflt, usage.ru_majflt, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
