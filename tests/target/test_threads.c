/* test_threads.c: threads of cores as the kernel, createdump and gdb write them, and of a process with many. */
#include "target/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "target/core.h"
#include "target/live.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static struct target *target;
static struct cdacq_error error;
static struct file_policy policy;
static struct elf_core core;
static struct threads threads;

static void setup(void)
{
    policy = (struct file_policy){0};
    pthread_mutex_init(&policy.lock, NULL);
    elf_core_init(&core, true, false);
    core.machine = EM_X86_64;
    target = NULL;
}

static void teardown(void)
{
    threads_deinit(&threads);
    target_destroy(target);
    target = NULL;
    elf_core_deinit(&core);
    pthread_mutex_destroy(&policy.lock);
    test_dir_remove();
}

static void put_thread(struct elf_core_segment *notes, int tid, int signal, int siginfo)
{
    struct elf_buffer desc = {.wide = core.wide, .big = core.big};
    elf_put(&desc, NULL, 12);
    elf_put_int(&desc, (uint64_t)signal, 2);
    elf_put_int(&desc, 0, 2);
    elf_put(&desc, NULL, core.wide ? 16 : 8);
    elf_put_int(&desc, (uint64_t)tid, 4);
    elf_put(&desc, NULL, core.wide ? 12 + 64 : 12 + 32);
    for (unsigned i = 0; i < 40; i++)
        elf_put_word(&desc, (uint64_t)tid * 1000 + i);
    elf_note(notes, "CORE", NT_PRSTATUS, desc.data, desc.size);
    free(desc.data);
    if (siginfo >= 0) {
        struct elf_buffer info = {.big = core.big};
        elf_put_int(&info, (uint64_t)siginfo, 4);
        elf_put(&info, NULL, 124);
        elf_note(notes, "CORE", NT_SIGINFO, info.data, info.size);
        free(info.data);
    }
}

static void open_core(void)
{
    size_t size;
    int fd;
    uint8_t *file = elf_core_build(&core, &size);
    enum cdacq_status status = core_open(memory_file(file, size, &fd), &policy, false, &target, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    close(fd);
    free(file);
}

static void list(void)
{
    enum cdacq_status status = target_threads(target, &threads, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

/* "11 died, 12:6, 13" of threads 11 to 13. */
static const char *listed(void)
{
    static char text[512];
    size_t n = 0;
    for (size_t i = 0; i < threads.count; i++) {
        const struct target_thread *thread = &threads.items[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", i ? ", " : "", thread->tid);
        if (thread->signal)
            n += (size_t)snprintf(text + n, sizeof text - n, ":%d", thread->signal);
        if (thread->died)
            n += (size_t)snprintf(text + n, sizeof text - n, " died");
    }
    return text;
}

static const struct {
    const char *what;
    bool gdb;
    struct {
        int tid, signal, siginfo;
    } threads[4];
    const char *expected;
} writers[] = {
    {"the kernel: one signal, in every note", false, {{12, 11, 11}, {11, 11, -1}, {13, 11, -1}}, "12:11 died, 11, 13"},
    {"an older kernel", false, {{12, 11, -1}, {11, 0, -1}}, "12:11 died, 11"},
    {"createdump after a crash", false, {{11, 0, -1}, {12, 0, -1}, {13, 6, 6}}, "13:6 died, 11, 12"},
    {"createdump on demand", false, {{11, 0, -1}, {12, 0, -1}}, "11, 12"},
    {"an old createdump: SIGABRT in every note", false, {{11, 6, -1}, {12, 6, -1}}, "11, 12"},
    {"gdb, attached", true, {{11, 5, 5}, {12, 19, 19}, {13, 0, 0}}, "11:5, 12:19, 13"},
    {"gdb, after a crash", true, {{12, 11, 11}, {11, 0, 0}}, "12:11 died, 11"},
};

/* One thread too many, and a note without registers: the others are listed, and the status says so. */
START_TEST(threads_that_cannot_be_read)
{
    struct elf_core_segment *notes = elf_core_notes(&core);
    for (int i = 0; i < (_i ? THREAD_MAX + 1 : 2); i++)
        put_thread(notes, 1 + i, 0, -1);
    if (!_i) {
        static const uint8_t signal[128] = {SIGSEGV}; /* of the thread that is left out */
        elf_note(notes, "CORE", NT_PRSTATUS, "", 1);
        elf_note(notes, "CORE", NT_SIGINFO, signal, sizeof signal);
    }
    open_core();
    ck_assert_int_eq(target_threads(target, &threads, &error), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(threads.count, _i ? THREAD_MAX : 2);
    ck_assert(!threads.items[0].died);
}
END_TEST

START_TEST(writers_of_cores)
{
    struct elf_core_segment *notes = elf_core_notes(&core);
    for (size_t i = 0; i < 4 && writers[_i].threads[i].tid; i++)
        put_thread(notes, writers[_i].threads[i].tid, writers[_i].threads[i].signal, writers[_i].threads[i].siginfo);
    if (writers[_i].gdb)
        elf_note(notes, "GDB", 0xff000000, "", 1);
    open_core();
    list();
    ck_assert_msg(strcmp(listed(), writers[_i].expected) == 0, "%s: %s", writers[_i].what, listed());
    for (size_t i = 0; i < threads.count; i++) {
        uint64_t first = (uint64_t)threads.items[i].tid * 1000;
        ck_assert_uint_eq(threads.items[i].registers.values[15], first);      /* r15 is word 0 */
        ck_assert_uint_eq(threads.items[i].registers.values[16], first + 16); /* rip */
        ck_assert_uint_eq(threads.items[i].registers.values[7], first + 19);  /* rsp */
    }
}
END_TEST

START_TEST(other_machines)
{
    static const struct {
        uint16_t machine;
        bool wide;
        unsigned pc, sp; /* words */
    } rows[] = {{EM_AARCH64, true, 32, 31}, {EM_ARM, false, 15, 13}, {EM_386, false, 12, 15}, {EM_RISCV, true, 0, 2}};
    elf_core_deinit(&core);
    elf_core_init(&core, rows[_i].wide, false);
    core.machine = rows[_i].machine;
    put_thread(elf_core_notes(&core), 7, 0, -1);
    open_core();
    list();
    const struct register_machine *machine = register_machine_find(core.machine);
    ck_assert_uint_eq(threads.count, 1);
    ck_assert_uint_eq(threads.items[0].registers.values[machine->pc], 7000 + rows[_i].pc);
    ck_assert_uint_eq(threads.items[0].registers.values[machine->sp], 7000 + rows[_i].sp);
}
END_TEST

START_TEST(name_of_the_first_thread)
{
    struct elf_core_segment *notes = elf_core_notes(&core);
    uint8_t process[136] = {0};
    store_u32(process + 24, 11, false);
    memcpy(process + 40, "dotnet", 7);
    elf_note(notes, "CORE", NT_PRPSINFO, process, sizeof process);
    put_thread(notes, 12, 0, -1);
    put_thread(notes, 11, 0, -1);
    open_core();
    list();
    ck_assert_int_eq(target->pid, 11);
    ck_assert_str_eq(threads.items[0].name, "");
    ck_assert_str_eq(threads.items[1].name, "dotnet");
}
END_TEST

START_TEST(targets_without_threads)
{
    uint8_t page[4096] = {0};
    elf_core_load(&core, 0x10000, page, sizeof page, sizeof page, PF_R);
    open_core();
    ck_assert_int_eq(target_threads(target, &threads, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "the core has no threads: it holds memory only");
}
END_TEST

START_TEST(a_process_that_runs)
{
    ck_assert_int_eq(live_open(getpid(), &policy, false, false, &target, &error), CDACQ_OK);
    ck_assert_int_eq(target_threads(target, &threads, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "only while the process is stopped"));
}
END_TEST

START_TEST(an_unknown_machine)
{
    core.machine = EM_SPARCV9;
    put_thread(elf_core_notes(&core), 7, 0, -1);
    open_core();
    ck_assert_int_eq(target_threads(target, &threads, &error), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(threads.count, 0);
}
END_TEST

/* ---- A process ---- */

enum { THREADS = 1000, SPINNER = 17 };

static struct shared {
    struct {
        int tid;
        uintptr_t frame;
    } threads[THREADS];
    _Atomic int ready;
} * shared;

static __attribute__((noreturn)) void *thread_main(void *context)
{
    int index = *(int *)context;
    char name[16];
    snprintf(name, sizeof name, "thread %d", index);
    prctl(PR_SET_NAME, name);
    shared->threads[index].tid = (int)syscall(SYS_gettid);
    shared->threads[index].frame = (uintptr_t)__builtin_frame_address(0);
    shared->ready++;
    for (;;)
        if (index != SPINNER)
            pause();
}

static void child_main(void)
{
    static int indexes[THREADS];
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    for (int i = 0; i < THREADS; i++) {
        indexes[i] = i;
        if (pthread_create(&thread, &attributes, thread_main, &indexes[i]) != 0)
            _exit(1);
    }
    for (;;)
        pause();
}

/* The processor time of this process: a busy machine does not change it. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* On a busy machine, a thread may get no processor for longer than is waited for. */
static void open_stopped(pid_t pid)
{
    enum cdacq_status status = CDACQ_ERR_IO;
    for (int tries = 0; tries < 20 && status == CDACQ_ERR_IO; tries++) {
        status = live_open(pid, &policy, true, false, &target, &error);
        ck_assert(status == CDACQ_OK || (status == CDACQ_ERR_IO && strstr(error.message, "did not stop within")));
    }
    ck_assert_int_eq(status, CDACQ_OK);
}

START_TEST(many_threads_of_a_process)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        child_main();
    }
    for (int i = 0; i < 300000 && shared->ready < THREADS; i++)
        usleep(1000);
    ck_assert_int_eq(shared->ready, THREADS);
    open_stopped(child);
    double before = seconds();
    list();
    ck_assert(seconds() - before < 5); /* some 10 ms on an idle machine */
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    bool has_mode = target->elf_machine == EM_X86_64;
    ck_assert_uint_eq(threads.count, THREADS + 1);
    ck_assert_int_eq(threads.items[0].tid, child);
    size_t found = 0, waiting = 0;
    for (size_t i = 0; i < THREADS; i++) {
        const struct target_thread *thread = NULL;
        for (size_t k = 0; k < threads.count; k++)
            if (threads.items[k].tid == shared->threads[i].tid)
                thread = &threads.items[k];
        ck_assert_ptr_nonnull(thread);
        char name[16];
        snprintf(name, sizeof name, "thread %zu", i);
        ck_assert_str_eq(thread->name, name);
        ck_assert(!thread->died && !thread->signal);
        uint64_t sp = thread->registers.values[machine->sp];
        ck_assert_uint_lt(sp, shared->threads[i].frame);
        ck_assert_uint_gt(sp, shared->threads[i].frame - 4096);
        found++;
        waiting += thread->mode == CDACQ_MODE_KERNEL;
        if (i == SPINNER)
            ck_assert_int_eq(thread->mode, has_mode ? CDACQ_MODE_USER : CDACQ_MODE_UNKNOWN);
    }
    ck_assert_uint_eq(found, THREADS);
    ck_assert((waiting > 0) == has_mode); /* some may not have begun to wait */
    threads_deinit(&threads);
    list(); /* may be repeated */
    ck_assert_uint_eq(threads.count, THREADS + 1);
    target_destroy(target);
    target = NULL;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(shared, sizeof *shared);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("threads");
    TCase *tc = tcase_create("threads");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, writers_of_cores, 0, ARRAY_SIZE(writers));
    tcase_add_loop_test(tc, threads_that_cannot_be_read, 0, 2);
    tcase_add_loop_test(tc, other_machines, 0, 4);
    tcase_add_test(tc, name_of_the_first_thread);
    tcase_add_test(tc, targets_without_threads);
    tcase_add_test(tc, an_unknown_machine);
    if (!left_out_emulated("a_process_that_runs", "no process_vm_readv"))
        tcase_add_test(tc, a_process_that_runs);
    if (getenv("CDACQ_VALGRIND"))
        puts("left out under valgrind: threads of a process, which would be valgrind's");
    else if (!left_out_emulated("many_threads_of_a_process", "no ptrace"))
        tcase_add_test(tc, many_threads_of_a_process);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
