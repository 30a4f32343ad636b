/*
 * test_system_call.c: what a thread waits for in the kernel: the arguments of its system call, and what the descriptor
 * leads to. The judges are sockets, pipes and files of this process, and what the C library says of them.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/proc_locks.h"
#include "target/proc_net.h"
#include "target/memory.h"
#include "target/registers.h"
#include "target/system_call.h"
#include "target/threads.h"
#include "tests/support/check_main.h"

/* "127.0.0.1:80", as the C library writes it. */
static void put_own_name(int fd, bool of_peer, char *ret, size_t size)
{
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    ck_assert_int_eq((of_peer ? getpeername : getsockname)(fd, (struct sockaddr *)&name, &length), 0);
    snprintf(ret, size, "%s:%d", inet_ntoa(name.sin_addr), ntohs(name.sin_port));
}

START_TEST(sockets_of_this_process)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof loopback;
    struct work work = {0};
    struct proc_net net = {.pid = getpid(), .work = &work};
    char local[64], peer[64];
    struct open_descriptor found;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&loopback, sizeof loopback), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&loopback, &length), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&loopback, sizeof loopback), 0);
    put_own_name(client, false, local, sizeof local);
    put_own_name(client, true, peer, sizeof peer);
    ck_assert(system_call_find_file(&net, client, &found));
    ck_assert_str_eq(found.local, local);
    ck_assert_str_eq(found.peer, peer);
    ck_assert(system_call_find_file(&net, listener, &found));
    ck_assert_str_eq(found.local, peer);
    ck_assert_str_eq(found.peer, "");
    proc_net_deinit(&net);
    close(listener);
    close(client);
}
END_TEST

START_TEST(files_of_this_process)
{
    struct work work = {0};
    struct proc_net net = {.pid = getpid(), .work = &work};
    struct open_descriptor found;
    char path[] = "/tmp/cdacq-call-XXXXXX", expected[64];
    struct stat st;
    int file = mkstemp(path), ends[2];
    ck_assert_int_ge(file, 0);
    ck_assert(system_call_find_file(&net, file, &found));
    ck_assert_str_eq(found.file, path);
    ck_assert_str_eq(found.local, "");
    unlink(path);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fstat(ends[0], &st), 0);
    snprintf(expected, sizeof expected, "pipe:[%lu]", (unsigned long)st.st_ino);
    ck_assert(system_call_find_file(&net, ends[0], &found));
    ck_assert_str_eq(found.file, expected);
    close(ends[0]);
    ck_assert(!system_call_find_file(&net, ends[0], &found));
    ck_assert(!system_call_find_file(&net, -1, &found));
    ck_assert_str_eq(found.file, "");
    ck_assert(!net.is_read); /* no socket was looked for */
    proc_net_deinit(&net);
}
END_TEST

START_TEST(lines_of_locks)
{
    static const struct {
        const char *line;
        bool is_lock, is_held, is_flock;
        int pid;
        unsigned major, minor;
        uint64_t inode;
    } rows[] = {
        {"1: FLOCK  ADVISORY  WRITE 17 fe:00:5013 0 EOF\n", true, true, true, 17, 0xfe, 0, 5013},
        {"1: -> POSIX  ADVISORY  READ  18 08:a1:5014 0 9\n", true, false, false, 18, 8, 0xa1, 5014},
        {"12:   -> FLOCK  ADVISORY  WRITE 19 fe:00:1 0 EOF\n", true, false, true, 19, 0xfe, 0, 1},
        {"3: OFDLCK ADVISORY  WRITE -1 fe:00:5013 0 EOF\n", true, true, false, -1, 0xfe, 0, 5013},
        {.line = "4: LEASE  ACTIVE    READ  20 fe:00:5013 0 EOF\n"},
        {.line = "5: FLOCK  ADVISORY  WRITE 17 <none>:0 0 EOF\n"},
        {.line = "6: FLOCK  ADVISORY  WRITE\n"},
        {.line = "7:\n"},
        {.line = "\n"},
        {.line = ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct proc_lock lock = {.pid = 0};
        ck_assert_msg(proc_lock_line(rows[i].line, &lock) == rows[i].is_lock, "row %zu", i);
        ck_assert_msg(!rows[i].is_lock || (lock.is_held == rows[i].is_held && lock.is_flock == rows[i].is_flock &&
                                           lock.pid == rows[i].pid && lock.inode == rows[i].inode &&
                                           lock.device == makedev(rows[i].major, rows[i].minor)),
                      "row %zu", i);
    }
}
END_TEST

/* The kernel's own locks of a file, by flock() and by fcntl(), of this process and of a child. */
START_TEST(holders_of_locks)
{
    char path[] = "/tmp/cdacq-lock-XXXXXX", byte;
    struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
    struct work work = {0};
    int file = mkstemp(path), other = open(path, O_RDWR), ends[2];
    ck_assert_int_eq(proc_locks_find_holder(getpid(), other, true, &work), 0);
    ck_assert_int_eq(flock(file, LOCK_EX), 0);
    if (!proc_locks_find_holder(getpid(), file, true, &work)) { /* fdinfo has no inode before Linux 5.14 */
        unlink(path);
        return;
    }
    ck_assert_int_eq(proc_locks_find_holder(getpid(), other, true, &work), getpid());
    ck_assert_int_eq(proc_locks_find_holder(getpid(), other, false, &work), 0);
    ck_assert_int_eq(fcntl(file, F_SETLK, &lock), 0);
    ck_assert_int_eq(proc_locks_find_holder(getpid(), other, false, &work), 0); /* which is no wait */
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        lock.l_start = 1; /* another part of the file */
        bool is_locked = fcntl(file, F_SETLK, &lock) == 0;
        (void)!write(ends[1], is_locked ? "1" : "0", 1);
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, '1');
    ck_assert_int_eq(proc_locks_find_holder(getpid(), other, false, &work), child);
    ck_assert_int_eq(proc_locks_find_holder(child, other, false, &work), getpid());
    ck_assert_int_eq(flock(file, LOCK_SH), 0);
    ck_assert_int_eq(proc_locks_find_holder(child, other, true, &work), getpid());
    ck_assert_int_eq(proc_locks_find_holder(child, ends[0], true, &work), 0); /* no file of a mount */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(path);
}
END_TEST

/* The name of a socket that holds a newline and what looks like the line of another, which the kernel writes as is. */
START_TEST(forged_line)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct work work = {0};
    struct proc_net net = {.pid = getpid(), .work = &work};
    struct open_descriptor found;
    struct stat st;
    int honest = socket(AF_UNIX, SOCK_STREAM, 0), forger = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(fstat(honest, &st), 0);
    /* The name begins with NUL: no file. */
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "cdacq-%d", getpid());
    ck_assert_int_eq(bind(honest, (struct sockaddr *)&name, sizeof name), 0);
    ck_assert(system_call_find_file(&net, honest, &found));
    name.sun_path[0] = '@';
    ck_assert_msg(!strncmp(found.local, name.sun_path, strlen(name.sun_path)), "%s", found.local);
    proc_net_deinit(&net);

    net = (struct proc_net){.pid = getpid(), .work = &work};
    memset(name.sun_path, 0, sizeof name.sun_path);
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
             "%d\n0000000000000000: 00000002 00000000 00000000 0001 03 %lu /forged", getpid(),
             (unsigned long)st.st_ino);
    ck_assert_int_eq(bind(forger, (struct sockaddr *)&name, sizeof name), 0);
    ck_assert(system_call_find_file(&net, honest, &found));
    ck_assert_str_eq(found.local, "");
    proc_net_deinit(&net);
    close(honest);
    close(forger);
}
END_TEST

START_TEST(bounds_of_tables)
{
    static const char line[] = "00000000deadbeef: 00000002 00000000 00000000 0001 03 98 /a\n";
    char local[128], peer[128], many[2 * sizeof line];
    snprintf(many, sizeof many, "%s%s", line, line);
    for (unsigned lines = 0; lines < 4; lines++) { /* that are left for so many lines; 0: no bound */
        struct work work = {.steps_max = lines ? (lines - 1) * WORK_OF_AN_ENTRY + 1 : 0};
        struct proc_net net = {.work = &work, .is_read = true};
        FILE *table = fmemopen(many, strlen(many), "re");
        ck_assert_ptr_nonnull(table);
        proc_net_add(&net, table, true);
        ck_assert_uint_eq(net.lines, lines ? MIN(lines, 2) : 2);
        proc_net_find(&net, 98, local, sizeof local, peer, sizeof peer);
        ck_assert_str_eq(local, lines == 1 ? "" : "/a"); /* one line is missing */
        proc_net_deinit(&net);
        fclose(table);
    }
    struct work work = {0};
    struct proc_net net = {.work = &work, .is_read = true};
    FILE *table = tmpfile();
    ck_assert_ptr_nonnull(table);
    for (unsigned i = 1; i <= 1 << 17; i++)
        fprintf(table, "%u: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 %u 1\n", i, i);
    rewind(table);
    proc_net_add(&net, table, false);
    ck_assert_uint_eq(net.lines, 1 << 16);
    proc_net_find(&net, 1, local, sizeof local, peer, sizeof peer);
    ck_assert_str_ne(local, "");
    proc_net_find(&net, 1 << 17, local, sizeof local, peer, sizeof peer);
    ck_assert_str_eq(local, "");
    proc_net_deinit(&net);
    fclose(table);
}
END_TEST

START_TEST(lines_of_tables)
{
    static const struct {
        bool (*read)(const char *line, struct proc_net_socket *ret);
        const char *line;
        uint64_t inode; /* 0: it is no line of a socket */
        const char *local, *peer;
    } rows[] = {
        {proc_net_inet_line, "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n", 0, "",
         ""},
        {proc_net_inet_line,
         "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0 100\n",
         12345, "127.0.0.1:8080", ""},
        {proc_net_inet_line,
         "  17: 00000000000000000000000001000000:0050 0000000000000000FFFF00000100007F:C350 01 0:0 0:0 0 0 0 77 1\n",
         77, "[::1]:80", "[::ffff:127.0.0.1]:50000"},
        {proc_net_inet_line, "   0: 0100007:1F90 00000000:0000 0A 0:0 00:0 0 0 0 5 1\n", 0, "", ""},
        {proc_net_inet_line, "", 0, "", ""},
        {proc_net_unix_line, "Num       RefCount Protocol Flags    Type St Inode Path\n", 0, "", ""},
        {proc_net_unix_line, "00000000deadbeef: 00000002 00000000 00010000 0001 01 99 /run/a b.sock\n", 99,
         "/run/a b.sock", ""},
        {proc_net_unix_line, "00000000deadbeef: 00000002 00000000 00000000 0001 03 98\n", 98, "", ""},
        {proc_net_unix_line, "deadbeef: 00000002 00000000 00000000 0001 03    98\n", 98, "", ""},
        {proc_net_unix_line, "0: 2 0 0 1 3 98\n", 0, "", ""},
        {proc_net_unix_line, "00000000deadbeef: 00000002 00000000 00000000 0001 3 98\n", 0, "", ""},
        {proc_net_unix_line, "00000000deadbeef: 00000002 00000000 00000000 0001 03 98x\n", 0, "", ""},
        {proc_net_unix_line, "00000000deadbeef: 00000002 00000000", 0, "", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; i++) {
        struct proc_net_socket found = {.inode = 0};
        ck_assert_int_eq(rows[i].read(rows[i].line, &found), rows[i].inode != 0);
        ck_assert_uint_eq(found.inode, rows[i].inode);
        ck_assert_str_eq(found.local, rows[i].local);
        ck_assert_str_eq(found.peer, rows[i].peer);
    }
}
END_TEST

#ifdef __x86_64__
enum { CODE = 0x1000, POLLED = 0x2000 };

static const uint8_t code[] = {0xb8, SYS_clock_nanosleep, 0, 0, 0, 0x0f, 0x05}; /* mov; syscall */
static const uint8_t polled[] = {9, 0, 0, 0, 1, 0, 0, 0};

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **ret, void *context)
{
    bool is_code = address >= CODE && address < CODE + sizeof code;
    (void)context;
    *begin = is_code ? CODE : POLLED;
    *end = *begin + (is_code ? sizeof code : sizeof polled);
    *ret = is_code ? code : polled;
    return address >= *begin && address < *end;
}

/* Arguments: rdi, rsi, rdx. */
static struct target_thread thread_in(unsigned number, uint64_t first, uint64_t second, uint64_t third)
{
    struct target_thread thread = {.call = number + 1};
    register_set(&thread.registers, 5, first);
    register_set(&thread.registers, 4, second);
    register_set(&thread.registers, 1, third);
    register_set(&thread.registers, 16, CODE + 7);
    return thread;
}

START_TEST(calls_and_arguments)
{
    static const struct {
        unsigned number;
        uint64_t first, second, third;
        enum cdacq_call_kind kind;
        int descriptor, child;
        unsigned expected; /* the number */
    } rows[] = {
        {SYS_read, 5, 0, 0, CDACQ_CALL_READ, 5, 0, SYS_read},
        {SYS_recvmsg, 6, 0, 0, CDACQ_CALL_RECEIVE, 6, 0, SYS_recvmsg},
        {SYS_accept4, 7, 0, 0, CDACQ_CALL_ACCEPT, 7, 0, SYS_accept4},
        {SYS_flock, 8, 2, 0, CDACQ_CALL_LOCK, 8, 0, SYS_flock},
        {SYS_fcntl, 8, F_SETLKW, 0, CDACQ_CALL_LOCK, 8, 0, SYS_fcntl},
        {SYS_fcntl, 8, F_GETFL, 0, CDACQ_CALL_OTHER, 8, 0, SYS_fcntl},
        {SYS_wait4, 1234, 0, 0, CDACQ_CALL_CHILD, -1, 1234, SYS_wait4},
        {SYS_wait4, UINT64_MAX, 0, 0, CDACQ_CALL_CHILD, -1, 0, SYS_wait4},
        {SYS_waitid, 1, 4321, 0, CDACQ_CALL_CHILD, -1, 4321, SYS_waitid},
        {SYS_waitid, 0, 4321, 0, CDACQ_CALL_CHILD, -1, 0, SYS_waitid},
        {SYS_poll, POLLED, 1, 0, CDACQ_CALL_POLL, 9, 0, SYS_poll},
        {SYS_poll, POLLED, 2, 0, CDACQ_CALL_POLL, -1, 0, SYS_poll},
        {SYS_poll, 0x9000, 1, 0, CDACQ_CALL_POLL, -1, 0, SYS_poll}, /* cannot be read */
        {SYS_futex, 5, 0, 0, CDACQ_CALL_FUTEX, -1, 0, SYS_futex},
        {SYS_restart_syscall, 0, 0, 0, CDACQ_CALL_SLEEP, -1, 0, SYS_clock_nanosleep},
        {999, 0, 0, 0, CDACQ_CALL_OTHER, -1, 0, 999},
    };
    const struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at};
    struct target *target;
    struct reader reader;
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, NULL), CDACQ_OK);
    reader_init(&reader, target, 8, false);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct target_thread thread = thread_in(rows[i].number, rows[i].first, rows[i].second, rows[i].third);
        struct cdacq_system_call call;
        reader_begin(&reader, FUEL_LOOKUP);
        ck_assert(system_call_describe(&reader, &thread, &call));
        ck_assert_msg(call.kind == rows[i].kind && call.descriptor == rows[i].descriptor &&
                          call.child == rows[i].child && call.number == rows[i].expected,
                      "row %zu", i);
        ck_assert_int_eq(call.name == NULL, rows[i].number == 999);
    }
    const struct target_thread none = {.call = 0};
    struct cdacq_system_call call;
    ck_assert(!system_call_describe(&reader, &none, &call));
    target_destroy(target);
}
END_TEST
#endif

static Suite *suite(void)
{
    Suite *suite = suite_create("system_call");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, sockets_of_this_process);
    tcase_add_test(tcase, files_of_this_process);
    tcase_add_test(tcase, forged_line);
    tcase_add_test(tcase, bounds_of_tables);
    tcase_add_test(tcase, lines_of_tables);
    tcase_add_test(tcase, lines_of_locks);
    tcase_add_test(tcase, holders_of_locks);
#ifdef __x86_64__
    tcase_add_test(tcase, calls_and_arguments);
#endif
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
