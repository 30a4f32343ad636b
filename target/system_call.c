#include "target/system_call.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/elf_machine.h"
#include "formats/elf.h"
#include "target/proc_net.h"
#include "target/threads.h"
#include "util/proc_file.h"

enum { NO_ARGUMENT = UINT8_MAX };

/* The calls in which threads wait. `descriptor`: the index of the argument that is one. */
static const struct call_row {
    uint16_t number;
    const char *name;
    enum cdacq_call_kind kind;
    uint8_t descriptor;
} calls[] = {
    {0, "read", CDACQ_CALL_READ, 0},
    {1, "write", CDACQ_CALL_WRITE, 0},
    {2, "open", CDACQ_CALL_OTHER, NO_ARGUMENT},
    {7, "poll", CDACQ_CALL_POLL, NO_ARGUMENT},
    {16, "ioctl", CDACQ_CALL_OTHER, 0},
    {17, "pread64", CDACQ_CALL_READ, 0},
    {18, "pwrite64", CDACQ_CALL_WRITE, 0},
    {19, "readv", CDACQ_CALL_READ, 0},
    {20, "writev", CDACQ_CALL_WRITE, 0},
    {23, "select", CDACQ_CALL_POLL, NO_ARGUMENT},
    {34, "pause", CDACQ_CALL_SLEEP, NO_ARGUMENT},
    {35, "nanosleep", CDACQ_CALL_SLEEP, NO_ARGUMENT},
    {42, "connect", CDACQ_CALL_CONNECT, 0},
    {43, "accept", CDACQ_CALL_ACCEPT, 0},
    {44, "sendto", CDACQ_CALL_SEND, 0},
    {45, "recvfrom", CDACQ_CALL_RECEIVE, 0},
    {46, "sendmsg", CDACQ_CALL_SEND, 0},
    {47, "recvmsg", CDACQ_CALL_RECEIVE, 0},
    {61, "wait4", CDACQ_CALL_CHILD, NO_ARGUMENT},
    {72, "fcntl", CDACQ_CALL_OTHER, 0},
    {73, "flock", CDACQ_CALL_LOCK, 0},
    {74, "fsync", CDACQ_CALL_WRITE, 0},
    {75, "fdatasync", CDACQ_CALL_WRITE, 0},
    {128, "rt_sigtimedwait", CDACQ_CALL_OTHER, NO_ARGUMENT},
    {202, "futex", CDACQ_CALL_FUTEX, NO_ARGUMENT},
    {219, "restart_syscall", CDACQ_CALL_OTHER, NO_ARGUMENT},
    {230, "clock_nanosleep", CDACQ_CALL_SLEEP, NO_ARGUMENT},
    {232, "epoll_wait", CDACQ_CALL_POLL, 0},
    {247, "waitid", CDACQ_CALL_CHILD, NO_ARGUMENT},
    {257, "openat", CDACQ_CALL_OTHER, NO_ARGUMENT},
    {270, "pselect6", CDACQ_CALL_POLL, NO_ARGUMENT},
    {271, "ppoll", CDACQ_CALL_POLL, NO_ARGUMENT},
    {281, "epoll_pwait", CDACQ_CALL_POLL, 0},
    {288, "accept4", CDACQ_CALL_ACCEPT, 0},
    {295, "preadv", CDACQ_CALL_READ, 0},
    {296, "pwritev", CDACQ_CALL_WRITE, 0},
    {299, "recvmmsg", CDACQ_CALL_RECEIVE, 0},
    {307, "sendmmsg", CDACQ_CALL_SEND, 0},
    {441, "epoll_pwait2", CDACQ_CALL_POLL, 0},
};

enum {
    CALL_POLL = 7,
    CALL_WAIT4 = 61,
    CALL_FCNTL = 72,
    CALL_RESTART = 219,
    CALL_WAITID = 247,
    CALL_PPOLL = 271,
};

/* The argument with an index; 0 if its register is not known. */
static uint64_t argument(const struct target_thread *thread, unsigned index)
{
    static const uint8_t registers[] = {5, 4, 1}; /* rdi, rsi, rdx */
    return thread->registers.values[registers[index]];
}

/*
 * The number of a call that goes on after the thread was stopped. The instructions before the program counter set it:
 * mov imm32, eax; syscall.
 */
static unsigned restarted(struct reader *reader, const struct target_thread *thread, unsigned number)
{
    enum { MOVE_TO_EAX = 0xb8, SYSCALL = 0x050f, LENGTH = 7 };
    uint64_t pc = thread->registers.values[register_machine_find(EM_X86_64)->pc];
    if (number != CALL_RESTART || pc < LENGTH)
        return number;
    uint8_t move = read_u8(reader, pc - LENGTH);
    uint32_t moved = read_u32(reader, pc - LENGTH + 1);
    uint16_t syscall = read_u16(reader, pc - 2);
    return !reader_failed(reader) && move == MOVE_TO_EAX && syscall == SYSCALL ? moved : number;
}

bool system_call_describe(struct reader *reader, const struct target_thread *thread, struct cdacq_system_call *ret)
{
    enum { BY_PID = 1, SET_LOCK_WAIT = 7, SET_OPEN_LOCK_WAIT = 38 }; /* P_PID, F_SETLKW, F_OFD_SETLKW */
    if (!thread->call)
        return false;
    unsigned number = restarted(reader, thread, thread->call - 1);
    struct cdacq_system_call call = {.size = sizeof call, .number = number, .descriptor = -1};
    const struct call_row *row = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(calls) && !row; i++)
        row = calls[i].number == number ? &calls[i] : NULL;
    if (row) {
        call.name = row->name;
        call.kind = row->kind;
        if (row->descriptor != NO_ARGUMENT)
            call.descriptor = (int)argument(thread, row->descriptor);
    }
    if (number == CALL_FCNTL && (argument(thread, 1) == SET_LOCK_WAIT || argument(thread, 1) == SET_OPEN_LOCK_WAIT))
        call.kind = CDACQ_CALL_LOCK;
    if (number == CALL_WAIT4 || (number == CALL_WAITID && argument(thread, 0) == BY_PID))
        call.child = MAX((int)argument(thread, number == CALL_WAIT4 ? 0 : 1), 0);
    if ((number == CALL_POLL || number == CALL_PPOLL) && argument(thread, 1) == 1) {
        int descriptor = (int)read_u32(reader, argument(thread, 0));
        call.descriptor = reader_failed(reader) ? -1 : descriptor;
    }
    *ret = call;
    return true;
}

bool system_call_find_file(struct proc_net *net, int descriptor, struct open_descriptor *ret)
{
    char path[64];
    uint64_t inode;
    *ret = (struct open_descriptor){.file = ""};
    if (descriptor < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", net->pid, descriptor);
    ssize_t length = readlink(path, ret->file, sizeof ret->file - 1); /* which opens nothing */
    if (length <= 0)
        return false;
    ret->file[length] = '\0';
    if (sscanf(ret->file, "socket:[%" SCNu64 "]", &inode) == 1)
        proc_net_find(net, inode, ret->local, sizeof ret->local, ret->peer, sizeof ret->peer);
    return true;
}
