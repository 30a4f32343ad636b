/*
 * faults.c: a library to preload, which lets one call fail: CDACQ_FAULT is CALL:NUMBER, such as malloc:17 or read:3,
 * and CDACQ_FAULT_LOG names a file to which the number of calls is written at the end. Calls are counted from 1, by
 * kind, once main() is near: what the dynamic linker and the C library do before is not counted. With
 * CDACQ_FAULT_SIGNAL, the call does not fail, but that signal arrives before it, or, if it opens a file, after it. With
 * CDACQ_FAULT_PID, the signal goes to that process, which is given the time to end. With CDACQ_FAULT_NO_TMPFILE, a file
 * has a name from the beginning, as on file systems without O_TMPFILE.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char kind[32];
static long number, count;
static int signal_number; /* 0: none */
static pid_t other;       /* which gets the signal; 0: this process */
static bool ready, no_tmpfile;

/* Whether this call is the one. */
static bool is_it(const char *call)
{
    return ready && strcmp(call, kind) == 0 && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == number;
}

static void send_signal(void)
{
    if (!other) {
        raise(signal_number);
        return;
    }
    kill(other, signal_number);
    usleep(20000);
}

static bool fails(const char *call)
{
    bool now = is_it(call);
    if (now && signal_number)
        send_signal();
    return now && !signal_number;
}

__attribute__((constructor)) static void begin(void)
{
    no_tmpfile = getenv("CDACQ_FAULT_NO_TMPFILE");
    const char *fault = getenv("CDACQ_FAULT"), *colon = fault ? strchr(fault, ':') : NULL;
    if (!colon || (size_t)(colon - fault) >= sizeof kind)
        return;
    memcpy(kind, fault, (size_t)(colon - fault));
    number = atol(colon + 1);
    signal_number = getenv("CDACQ_FAULT_SIGNAL") ? atoi(getenv("CDACQ_FAULT_SIGNAL")) : 0;
    other = getenv("CDACQ_FAULT_PID") ? atoi(getenv("CDACQ_FAULT_PID")) : 0;
    ready = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("CDACQ_FAULT_LOG");
    ready = false;
    FILE *log = path ? fopen(path, "w") : NULL;
    if (log) {
        fprintf(log, "%ld\n", count);
        fclose(log);
    }
}

#define REAL(name) ((__typeof__(&name))real(#name, &real_##name))

static void *real(const char *name, void **kept)
{
    if (!*kept)
        *kept = dlsym(RTLD_NEXT, name);
    return *kept;
}

/* ---- Memory: the C library's own names, because dlsym() may allocate ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

/* Every call that allocates is a malloc, and of these the ones that grow what there is are a realloc, too. */
static bool no_memory(const char *call)
{
    bool no = fails("malloc") || (strcmp(call, "malloc") != 0 && fails(call));
    if (no)
        errno = ENOMEM;
    return no;
}

void *malloc(size_t size)
{
    return no_memory("malloc") ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return no_memory("malloc") ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    return no_memory("realloc") ? NULL : __libc_realloc(memory, size);
}

/* ---- Calls of the system ---- */

#define WRAP(result, name, failed, error, parameters, arguments) \
    static void *real_##name;                                    \
    result name parameters                                       \
    {                                                            \
        if (fails(#name)) {                                      \
            errno = error;                                       \
            return failed;                                       \
        }                                                        \
        return REAL(name) arguments;                             \
    }

WRAP(ssize_t, read, -1, EIO, (int fd, void *buffer, size_t size), (fd, buffer, size))
WRAP(ssize_t, pread, -1, EIO, (int fd, void *buffer, size_t size, off_t at), (fd, buffer, size, at))
WRAP(ssize_t, write, -1, ENOSPC, (int fd, const void *buffer, size_t size), (fd, buffer, size))
WRAP(void *, mmap, MAP_FAILED, ENOMEM, (void *address, size_t size, int access, int flags, int fd, off_t at),
     (address, size, access, flags, fd, at))
WRAP(int, fstat, -1, EIO, (int fd, struct stat *st), (fd, st))
WRAP(int, stat, -1, EACCES, (const char *path, struct stat *st), (path, st))
WRAP(int, lstat, -1, EACCES, (const char *path, struct stat *st), (path, st))
WRAP(off_t, lseek, -1, EIO, (int fd, off_t at, int whence), (fd, at, whence))
WRAP(int, ftruncate, -1, ENOSPC, (int fd, off_t size), (fd, size))
WRAP(int, rename, -1, EIO, (const char *from, const char *to), (from, to))
WRAP(int, linkat, -1, EIO, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
WRAP(int, renameat, -1, EIO, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, unlinkat, -1, EIO, (int fd, const char *path, int flags), (fd, path, flags))
WRAP(int, symlinkat, -1, ENOSPC, (const char *to, int fd, const char *path), (to, fd, path))
WRAP(int, mkdir, -1, ENOSPC, (const char *path, mode_t mode), (path, mode))
WRAP(int, mkdirat, -1, ENOSPC, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP(int, dup, -1, EMFILE, (int fd), (fd))
WRAP(int, dup2, -1, EBUSY, (int fd, int wanted), (fd, wanted))
WRAP(pid_t, fork, -1, EAGAIN, (void), ())
WRAP(int, fchmod, -1, EPERM, (int fd, mode_t mode), (fd, mode))
WRAP(int, close, -1, EIO, (int fd), (fd))
WRAP(ssize_t, process_vm_readv, -1, EFAULT,
     (pid_t pid, const struct iovec *to, unsigned long to_count, const struct iovec *from, unsigned long from_count,
      unsigned long flags),
     (pid, to, to_count, from, from_count, flags))
WRAP(char *, realpath, NULL, EACCES, (const char *path, char *to), (path, to))

/* Only the call that reads the registers of a thread. */
long ptrace(enum __ptrace_request request, ...)
{
    static void *kept;
    va_list arguments;
    va_start(arguments, request);
    pid_t tid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *), *data = va_arg(arguments, void *);
    va_end(arguments);
    if (request == PTRACE_GETREGSET && fails("ptrace")) {
        errno = EIO;
        return -1;
    }
    return ((long (*)(enum __ptrace_request, ...))real("ptrace", &kept))(request, tid, address, data);
}

static int open_from(const char *call, int folder, const char *path, int flags, mode_t mode)
{
    static void *kept;
    bool now = is_it(call), is_tmpfile = (flags & O_TMPFILE) == O_TMPFILE;
    if ((now && !signal_number) || (is_tmpfile && no_tmpfile)) {
        errno = is_tmpfile && no_tmpfile ? EOPNOTSUPP : EMFILE;
        return -1;
    }
    int fd = ((int (*)(int, const char *, int, ...))real("openat", &kept))(folder, path, flags, mode);
    if (now)
        send_signal();
    return fd;
}

#define WRAP_OPEN(name, call, folder, parameters)                                                          \
    int name parameters                                                                                    \
    {                                                                                                      \
        va_list arguments;                                                                                 \
        va_start(arguments, flags);                                                                        \
        mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0; \
        va_end(arguments);                                                                                 \
        return open_from(call, folder, path, flags, mode);                                                 \
    }

WRAP_OPEN(open, "open", AT_FDCWD, (const char *path, int flags, ...))
WRAP_OPEN(openat, "openat", folder, (int folder, const char *path, int flags, ...))
WRAP_OPEN(open64, "open", AT_FDCWD, (const char *path, int flags, ...))
WRAP_OPEN(openat64, "openat", folder, (int folder, const char *path, int flags, ...))

/* With 64-bit file offsets, programs call these names; here they are the same. */
ssize_t pread64(int fd, void *buffer, size_t size, off_t at)
{
    return pread(fd, buffer, size, at);
}

void *mmap64(void *address, size_t size, int access, int flags, int fd, off_t at)
{
    return mmap(address, size, access, flags, fd, at);
}

int fstat64(int fd, struct stat64 *st)
{
    return fstat(fd, (struct stat *)st);
}

int stat64(const char *path, struct stat64 *st)
{
    return stat(path, (struct stat *)st);
}

int lstat64(const char *path, struct stat64 *st)
{
    return lstat(path, (struct stat *)st);
}

off_t lseek64(int fd, off_t at, int whence)
{
    return lseek(fd, at, whence);
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}
