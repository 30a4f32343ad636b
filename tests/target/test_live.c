#include "target/live.h"
#include "target/target_process.h"
#include "target/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "target/live_mappings.h"
#include "target/mapped_file.h"
#include "target/reader.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/kernel_queries.h"

enum { THREADS = 6 };

/* Memory that the processes of a test share. */
static struct shared {
    _Atomic uint64_t counts[64]; /* one for each thread: it moves while the thread runs */
    _Atomic int ready, go, quit, signals, held;
    sem_t done;
} * shared;

static struct target *target;
static struct cdacq_error error;
static struct file_policy policy;
static pid_t child;

static void setup(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    sem_init(&shared->done, 1, 0);
    policy = (struct file_policy){0};
    pthread_mutex_init(&policy.lock, NULL);
    memset(&error, 0, sizeof error);
    target = NULL;
    child = 0;
}

static void end_child(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    child = 0;
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
    end_child();
    munmap(shared, sizeof *shared);
    test_dir_remove();
}

/* Starts a process that ends with this one. */
static pid_t spawn(void (*body)(void))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL); /* Check's handler would end all of them */
        body();
        _exit(0);
    }
    return pid;
}

static void nap(long microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* Waits at most 20 seconds. */
#define await(condition)                                          \
    do {                                                          \
        for (int i_ = 0; i_ < 20000 && !(condition); i_++)        \
            nap(1000);                                            \
        ck_assert_msg(condition, "not within 20 s: " #condition); \
    } while (0)

static void start(void (*body)(void))
{
    child = spawn(body);
    await(shared->ready);
}

static void open_live(bool stop)
{
    enum cdacq_status status = live_open(child, &policy, stop, false, &target, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

static void close_live(void)
{
    target_destroy(target);
    target = NULL;
}

/* ---- Children ---- */

enum { PAGES = 8 };

static uint8_t *memory; /* at the same place in parent and child */

static void body_with_memory(void)
{
    for (size_t i = 0; i < PAGES * 4096; i++)
        memory[i] = (uint8_t)(i * 31 + 5);
    mprotect(memory + 5 * 4096, 4096, PROT_NONE);
    munmap(memory + 6 * 4096, 4096);
    shared->ready = 1;
    for (;;) {
        shared->counts[0]++;
        if (shared->go)
            memory[0] = memory[4 * 4096] = 'X'; /* pages are read in blocks of four */
        nap(100);
    }
}

static void map_memory(void)
{
    memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
}

static void *count(void *which)
{
    shared->ready++;
    while (!shared->quit) {
        shared->counts[(uintptr_t)which]++;
        if (shared->counts[(uintptr_t)which] % 64 == 0)
            nap(50);
    }
    return NULL;
}

static void body_with_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 1; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, (void *)i);
    count((void *)0);
}

/* ---- What /proc reports ---- */

static char state_of(pid_t pid, pid_t tid)
{
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    FILE *file = fopen(path, "r");
    if (!file)
        return '-';
    size_t n = fread(stat, 1, sizeof stat - 1, file);
    fclose(file);
    stat[n] = '\0';
    const char *end = strrchr(stat, ')');
    return end ? end[2] : '-';
}

/* How many threads a process has, and how many of those are in one of `states`. */
static size_t threads_in(pid_t pid, const char *states, size_t *ret_all)
{
    char path[64];
    size_t all = 0, in = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (isdigit((unsigned char)entry->d_name[0])) {
            all++;
            in += strchr(states, state_of(pid, atoi(entry->d_name))) != NULL;
        }
    closedir(dir);
    *ret_all = all;
    return in;
}

static void assert_all_held(size_t expected)
{
    size_t all, held = threads_in(child, "t", &all);
    ck_assert_uint_eq(all, expected);
    ck_assert_uint_eq(held, all);
    uint64_t before[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        before[i] = shared->counts[i];
    nap(20 * 1000);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_uint_eq(shared->counts[i], before[i]);
}

static bool runs(size_t which)
{
    uint64_t before = shared->counts[which];
    for (int i = 0; i < 5000 && shared->counts[which] == before; i++)
        nap(1000);
    return shared->counts[which] != before;
}

static void assert_all_run(void)
{
    for (size_t i = 0; i < THREADS; i++)
        ck_assert(runs(i));
    size_t all;
    ck_assert_uint_eq(threads_in(child, "tTZX", &all), 0);
}

/* ---- Reading ---- */

/* How processes are read: as usual, or where process_vm_readv fails with one of these. */
static const int vm_readv_errors[] = {0, EPERM, ENOSYS};

/* A filter stays for the rest of the process: without a process for each test, nothing is forbidden. */
static int vm_readv_error_count(void)
{
    const char *fork_mode = getenv("CK_FORK");
    return fork_mode && strcmp(fork_mode, "no") == 0 ? 1 : (int)ARRAY_SIZE(vm_readv_errors);
}

static void forbid_vm_readv(int code)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_SIZE(rules), .filter = rules};
    if (!code)
        return;
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(reads_without_stopping)
{
    forbid_vm_readv(vm_readv_errors[_i]);
    map_memory();
    start(body_with_memory);
    open_live(false);
    ck_assert_int_eq(target->kind, CDACQ_TARGET_PROCESS);
    ck_assert_int_eq(target->pid, child);
    ck_assert_uint_ne(target->elf_machine, 0);
    uint64_t base = (uintptr_t)memory;
    struct reader reader;
    reader_init(&reader, target, 8, false);
    for (uint64_t i = 0; i < 5 * 4096; i += 97)
        ck_assert_uint_eq(read_u8(&reader, base + i), (uint8_t)(i * 31 + 5));
    uint8_t across[16];
    ck_assert(reader_copy(&reader, base + 4096 - 8, across, sizeof across));
    for (uint64_t i = 0; i < sizeof across; i++)
        ck_assert_uint_eq(across[i], (uint8_t)((4096 - 8 + i) * 31 + 5));
    struct window window;
    ck_assert(reader_window(&reader, base + 100, 4 * 4096, "window", &window));
    ck_assert_uint_eq(window.bytes[4 * 4096 - 1], (uint8_t)((100 + 4 * 4096 - 1) * 31 + 5));
    window_deinit(&window);
    ck_assert(!reader_failed(&reader));
    size_t all;
    ck_assert_uint_eq(threads_in(child, "tT", &all), 0);
    ck_assert(runs(0));
}
END_TEST

START_TEST(what_cannot_be_read_is_missing)
{
    forbid_vm_readv(vm_readv_errors[_i]);
    map_memory();
    start(body_with_memory);
    open_live(false);
    uint64_t base = (uintptr_t)memory;
    struct reader reader;
    const uint64_t missing[] = {base + 5 * 4096,   base + 6 * 4096,         0, 8, UINT64_MAX,
                                UINT64_MAX - 4095, UINT64_C(0x800000000000)};
    /* Memory without any access is read through /proc/PID/mem, as ptrace does. */
    for (size_t i = _i ? 1 : 0; i < ARRAY_SIZE(missing); i++) {
        reader_init(&reader, target, 8, false);
        ck_assert_uint_eq(read_u8(&reader, missing[i]), 0);
        ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
        ck_assert_uint_eq(error.address, missing[i]);
    }
    reader_init(&reader, target, 8, false);
    read_u64(&reader, base + (_i ? 6 : 5) * 4096 - 4);
    reader_status(&reader, &error);
    ck_assert_uint_eq(error.address, base + (_i ? 6 : 5) * 4096);
    reader_init(&reader, target, 8, false);
    ck_assert_uint_eq(read_u8(&reader, base + 7 * 4096), (uint8_t)(7 * 4096 * 31 + 5));
}
END_TEST

START_TEST(a_page_is_read_once)
{
    forbid_vm_readv(vm_readv_errors[_i]);
    map_memory();
    start(body_with_memory);
    open_live(false);
    uint64_t base = (uintptr_t)memory;
    struct reader reader;
    reader_init(&reader, target, 8, false);
    ck_assert_uint_eq(read_u8(&reader, base), 5);
    shared->go = 1;
    uint64_t before = shared->counts[0];
    await(shared->counts[0] > before + 2);
    ck_assert_uint_eq(read_u8(&reader, base), 5);
    ck_assert_uint_eq(read_u8(&reader, base + 4 * 4096), 'X');
    ck_assert_uint_eq(read_u8(&reader, base), 5);
}
END_TEST

START_TEST(an_epoch_reads_anew_and_notices_changes)
{
    forbid_vm_readv(vm_readv_errors[_i]);
    map_memory();
    start(body_with_memory);
    open_live(false);
    uint64_t base = (uintptr_t)memory, other = base + 3 * 4096;
    struct read_log log = {0};
    struct reader reader;
    struct window window;
    reader_init(&reader, target, 8, false);
    target_begin_epoch(target);
    reader_forget(&reader, &log);
    ck_assert_uint_eq(read_u8(&reader, base), 5);
    ck_assert_uint_eq(read_u32(&reader, other) & 0xff, (uint8_t)(3 * 4096 * 31 + 5));
    ck_assert(reader_window(&reader, base + 4096, 2 * 4096, "window", &window));
    ck_assert_uint_eq(window.bytes[0], (uint8_t)(4096 * 31 + 5));
    size_t reads = log.reads.count;
    ck_assert(target_unchanged(target, &log, 0));
    ck_assert(target_unchanged(target, &log, 0)); /* sorting it lost nothing */
    shared->go = 1;
    uint64_t before = shared->counts[0];
    await(shared->counts[0] > before + 2);
    ck_assert_uint_eq(read_u8(&reader, base), 5);
    ck_assert(!target_unchanged(target, &log, 0));

    target_begin_epoch(target);
    reader_forget(&reader, &log);
    read_log_clear(&log);
    ck_assert_uint_eq(read_u8(&reader, base), 'X');
    ck_assert_uint_eq(read_u8(&reader, base + 1), (uint8_t)(1 * 31 + 5));
    ck_assert_uint_eq(log.reads.count, 1); /* one read continues the other */
    read_u8(&reader, other + 64);
    read_u8(&reader, base);
    ck_assert_uint_eq(log.reads.count, 2); /* one repeats an earlier one */
    ck_assert_uint_eq(read_log_begin_part(&log), 2);
    read_u8(&reader, other + 64);
    ck_assert_uint_eq(log.reads.count, 3); /* unless that is of another part */
    ck_assert_uint_gt(reads, 1);
    ck_assert(target_unchanged(target, &log, 0));
    /* The bytes around what was read do not count. */
    read_log_clear(&log);
    ck_assert_uint_eq(read_u8(&reader, other + 8), (uint8_t)((3 * 4096 + 8) * 31 + 5));
    ck_assert(target_unchanged(target, &log, 0));
    window_deinit(&window);

    end_child();
    ck_assert(!target_unchanged(target, &log, 0));
    ck_assert_ptr_nonnull(target_gone(target));
    read_log_deinit(&log);
}
END_TEST

static void body_that_lends_its_memory(void)
{
    for (size_t i = 0; i < PAGES * 4096; i++)
        memory[i] = (uint8_t)(i * 31 + 5);
    if (vfork() == 0) {
        shared->ready = 1;
        for (int i = 0; i < 20000 && !shared->quit; i++)
            nap(1000);
        _exit(0);
    }
}

/* A process that has ended has its memory for as long as others do: while they read it, or by vfork(). */
START_TEST(memory_is_there_as_long_as_the_process_seems_to_be)
{
    if (getenv("CDACQ_VALGRIND")) /* which makes a fork() of vfork() */
        return;
    forbid_vm_readv(vm_readv_errors[_i]);
    map_memory();
    start(body_that_lends_its_memory);
    open_live(false);
    uint64_t base = (uintptr_t)memory;
    struct read_log log = {0};
    struct reader reader;
    reader_init(&reader, target, 8, false);
    target_begin_epoch(target);
    reader_forget(&reader, &log);
    ck_assert_uint_eq(read_u8(&reader, base), 5);
    end_child();
    ck_assert_ptr_null(target_gone(target));
    ck_assert_uint_eq(read_u8(&reader, base + 3 * 4096 + 1), (uint8_t)((3 * 4096 + 1) * 31 + 5));
    ck_assert(target_unchanged(target, &log, 0));
    shared->quit = 1;
    await(target_gone(target));
    ck_assert(!target_unchanged(target, &log, 0));
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_OK);
    read_u8(&reader, base + 7 * 4096);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_IO);
    read_log_deinit(&log);
}
END_TEST

/* More places than one call of the kernel compares. The first has changed. */
START_TEST(many_scattered_reads_are_compared)
{
    forbid_vm_readv(vm_readv_errors[_i]);
    enum { PLACES = 2500, APART = 1024 };
    static uint8_t scattered[PLACES * APART];
    struct read_log log = {0};
    struct reader reader;
    child = getpid();
    open_live(false);
    child = 0;
    memset(scattered, 1, sizeof scattered);
    reader_init(&reader, target, 8, false);
    reader_forget(&reader, &log);
    for (size_t i = 0; i < PLACES; i++)
        ck_assert_uint_eq(read_u8(&reader, (uintptr_t)scattered + i * APART), 1);
    ck_assert(target_unchanged(target, &log, 0));
    scattered[0] = 2;
    ck_assert(!target_unchanged(target, &log, 0));
    scattered[0] = 1;
    scattered[(PLACES - 1) * APART] = 2;
    ck_assert(!target_unchanged(target, &log, 0));
    read_log_deinit(&log);
}
END_TEST

/* Opens this process. */
static void open_self(void)
{
    child = getpid();
    open_live(false);
    child = 0;
}

/* The memory of .NET's loader heaps is a file that the process can truncate at any moment. */
START_TEST(shared_memory_may_be_truncated)
{
    enum { SIZE = 2 * 4096 };
    int fd = memfd_create("doublemapper", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    uint8_t *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    bytes[0] = bytes[4096] = 7;
    open_self();
    struct read_log log = {0};
    struct reader reader;
    reader_init(&reader, target, 8, false);
    target_begin_epoch(target);
    reader_forget(&reader, &log);
    ck_assert_uint_eq(read_u8(&reader, (uintptr_t)bytes), 7);
    ck_assert(target_unchanged(target, &log, 0));
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert(!target_unchanged(target, &log, 0));
    read_u8(&reader, (uintptr_t)bytes + 4096);
    ck_assert(reader_failed(&reader));
    read_log_deinit(&log);
    munmap(bytes, SIZE);
    close(fd);
}
END_TEST

START_TEST(records_when_asked)
{
    map_memory();
    start(body_with_memory);
    ck_assert_int_eq(live_open(child, &policy, false, true, &target, &error), CDACQ_OK);
    struct reader reader;
    reader_init(&reader, target, 8, false);
    read_u8(&reader, (uintptr_t)memory);
    ck_assert_ptr_nonnull(pages_find(&target->recording->pages, (uintptr_t)memory));
}
END_TEST

START_TEST(reads_its_own_process)
{
    open_self();
    static const char text[] = "found";
    struct reader reader;
    char *string;
    reader_init(&reader, target, 8, false);
    ck_assert(reader_string(&reader, (uintptr_t)text, 64, &string));
    ck_assert_str_eq(string, "found");
    free(string);
}
END_TEST

/* ---- Mappings ---- */

static const int constant = 1;
static int variable = 2;

static const char *mapped_path;
static int mapped_fd;

static void body_that_maps_files(void)
{
    int fd = open(mapped_path, O_RDWR);
    uint8_t *at = mmap(memory, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 4096);
    uint8_t *of_memfd = mmap(memory + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mapped_fd, 0);
    if (at == MAP_FAILED || of_memfd == MAP_FAILED)
        _exit(1);
    shared->ready = 1;
    for (;;)
        pause();
}

/* Starts a process that maps a file of that name, and one without a name. */
static void start_with_files(const char *name)
{
    static uint8_t bytes[3 * 4096];
    map_memory();
    mapped_path = test_file(name, bytes, sizeof bytes);
    mapped_fd = memfd_create("doublemapper", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(mapped_fd, 4096), 0);
    start(body_that_maps_files);
}

/* Mappings are asked for one by one where the kernel can do that, or all are listed first. */
static void list_if(bool listed)
{
    ck_assert_int_eq(target->partial, kernel_has_map_queries());
    if (listed)
        ck_assert_int_eq(target_list_mappings(target, &error), CDACQ_OK);
    ck_assert(!(listed && target->partial));
}

START_TEST(mappings_as_the_kernel_reports_them)
{
    start_with_files("a file\nwith (deleted) in its name");
    open_live(false);
    list_if(_i);
    char exe[512] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
    for (size_t i = 1; i < target->mapping_count; i++)
        ck_assert(target->mappings[i - 1].end <= target->mappings[i].begin);
    const struct mapping *mapping = target_mapping_at(target, (uintptr_t)&constant);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_str_eq(mapping->path, exe);
    ck_assert_int_eq(mapping->access, MAPPING_READ_ONLY);
    mapping = target_mapping_at(target, (uintptr_t)&variable);
    ck_assert_str_eq(mapping->path, exe);
    ck_assert_int_eq(mapping->access, MAPPING_WRITABLE);
    mapping = target_mapping_at(target, (uintptr_t)memory);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_str_eq(mapping->path, mapped_path);
    ck_assert_uint_eq(mapping->offset, 4096);
    ck_assert(mapped_file_resolve(mapping->file));
    /* The process's own root, which may differ in a container. */
    char expected[600];
    snprintf(expected, sizeof expected, "/proc/%d/root%s", child, mapped_path);
    ck_assert_str_eq(mapping->file->local_path, expected);
    mapping = target_mapping_at(target, (uintptr_t)memory + 4096);
    ck_assert_str_eq(mapping->path, "/memfd:doublemapper (deleted)");
    ck_assert(!mapped_file_resolve(mapping->file));
    ck_assert_ptr_null(target_mapping_at(target, (uintptr_t)memory + 2 * 4096)); /* anonymous: of no interest */
    ck_assert_ptr_null(target_mapping_at(target, (uintptr_t)__builtin_frame_address(0)));
}
END_TEST

START_TEST(another_file_is_not_opened_for_a_deleted_one)
{
    map_memory();
    static uint8_t bytes[2 * 4096];
    mapped_path = test_file("lib.so", bytes, sizeof bytes);
    mapped_fd = memfd_create("x", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(mapped_fd, 4096), 0);
    start(body_that_maps_files);
    ck_assert_int_eq(unlink(mapped_path), 0);
    test_file("lib.so (deleted)", bytes, sizeof bytes); /* a trap */
    open_live(false);
    const struct mapping *mapping = target_mapping_at(target, (uintptr_t)memory);
    ck_assert_str_eq(mapping->path, mapped_path);
    ck_assert(mapped_file_is_deleted(mapping->file));
    ck_assert(!mapped_file_resolve(mapping->file));
}
END_TEST

static void body_in_a_jail(void)
{
    if (chroot(test_path("jail")) < 0)
        _exit(0);
    body_that_maps_files();
}

/* The kernel gives the paths outside of it. */
START_TEST(files_of_a_process_in_a_jail)
{
    static uint8_t bytes[3 * 4096];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: chroot() needs root\n");
        return;
    }
    map_memory();
    test_file("jail/lib.so", bytes, sizeof bytes);
    mapped_path = "/lib.so";
    mapped_fd = memfd_create("x", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(mapped_fd, 4096), 0);
    start(body_in_a_jail);
    open_live(false);
    list_if(_i);
    const struct mapping *mapping = target_mapping_at(target, (uintptr_t)memory);
    ck_assert_str_eq(mapping->path, test_path("jail/lib.so"));
    ck_assert(mapped_file_resolve(mapping->file));
    char expected[64];
    snprintf(expected, sizeof expected, "/proc/%d/root/lib.so", child);
    ck_assert_str_eq(mapping->file->local_path, expected);
}
END_TEST

static const char *later_path;

/* Maps a file at `memory`; then, when told, another one in its place, and a new file of the first one's path. */
static void body_that_maps_anew(void)
{
    int fd = open(mapped_path, O_RDONLY);
    if (mmap(memory, 2 * 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
        _exit(1);
    shared->ready = 1;
    await(shared->go == 1);
    fd = open(later_path, O_RDONLY);
    if (mmap(memory, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
        _exit(1);
    fd = open(mapped_path, O_RDONLY);
    if (mmap(memory + 2 * 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
        _exit(1);
    shared->ready = 2;
    for (;;)
        pause();
}

START_TEST(mappings_are_listed_again)
{
    static const uint8_t first[2 * 4096] = "first", second[4096] = "second", third[4096] = "third";
    map_memory();
    mapped_path = test_file("mapped", first, sizeof first);
    later_path = test_file("later", second, sizeof second);
    start(body_that_maps_anew);
    open_live(false);
    list_if(_i);
    bool listed = !target->partial;
    uint64_t at = (uintptr_t)memory, round = target->mapping_round;
    struct mapped_file *old = target_mapping_at(target, at)->file;
    ck_assert(mapped_file_resolve(old));
    target_refresh(target);
    ck_assert(target->mapping_round == round || !listed);
    round = target->mapping_round;
    ck_assert_int_eq(unlink(mapped_path), 0);
    test_file("mapped", third, sizeof third);
    shared->go = 1;
    await(shared->ready == 2);
    for (int i = 0; i < 20 && target->mapping_round == round; i++) { /* at once, or within a second */
        target_refresh(target);
        nap(100 * 1000);
    }
    ck_assert_uint_ne(target->mapping_round, round);
    nap(1100 * 1000);
    target_refresh(target); /* once more, without an epoch in between */
    ck_assert_str_eq(target_mapping_at(target, at)->path, later_path);
    ck_assert_uint_eq(target_mapping_at(target, at)->end, at + 4096);
    /* The rest of the first mapping is still of that file, which has lost its path. */
    const struct mapping *rest = target_mapping_at(target, at + 4096), *anew = target_mapping_at(target, at + 2 * 4096);
    ck_assert_ptr_eq(rest->file, old);
    ck_assert_uint_eq(rest->offset, 4096);
    ck_assert_uint_eq(old->mapping_count, listed);
    ck_assert_str_eq(anew->path, mapped_path);
    ck_assert_ptr_ne(anew->file, old);
    ck_assert(mapped_file_resolve(anew->file));
    ck_assert_int_eq(memcmp(anew->file->content.bytes, "third", 5), 0);
    ck_assert_int_eq(memcmp(old->content.bytes, "first", 5), 0);
    end_child();
    target_refresh(target); /* the known ones stay */
    ck_assert_ptr_nonnull(target_mapping_at(target, at));
}
END_TEST

/* What is mapped at `memory` of this process, asked for anew: the size of its memory has changed. */
static const struct mapping *mapping_anew(void)
{
    ck_assert_ptr_ne(mmap(NULL, 64 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    target_refresh(target);
    return target_mapping_at(target, (uintptr_t)memory);
}

/* Maps a file at `memory`. Returns its inode number. */
static ino_t map_here(const char *path)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_ptr_ne(mmap(memory, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), MAP_FAILED);
    return st.st_ino;
}

/* Creates a file with an inode number that was used before. NULL: the file system does not use it again. */
static const char *file_with_number(ino_t number)
{
    static const uint8_t bytes[4096];
    enum { TRIES = 64 };
    for (int i = 0; i < TRIES; i++) {
        char name[32];
        struct stat st;
        snprintf(name, sizeof name, "second-%d", i);
        const char *path = test_file(name, bytes, sizeof bytes);
        ck_assert_int_eq(stat(path, &st), 0);
        if (st.st_ino == number)
            return path;
    }
    fprintf(stderr, "skipped: no file has the inode number of one that was deleted\n");
    return NULL;
}

enum { LISTED = 1, SEEN_DELETED = 2, SEEN_ANEW = 4, NUMBER_WAYS = 8 };

/* A program that deletes what it has loaded maps one file after the other that have the same inode number. */
START_TEST(files_with_the_same_number)
{
    static const uint8_t bytes[4096];
    static const char *const endings[] = {"", " (deleted)"};
    char expected[600];
    map_memory();
    const char *first = test_file("first", bytes, sizeof bytes), *ending = endings[(_i & SEEN_DELETED) != 0];
    open_self();
    list_if(_i & LISTED);
    ino_t number = map_here(first);
    if (_i & SEEN_DELETED)
        unlink(first);
    snprintf(expected, sizeof expected, "%s%s", first, ending);
    ck_assert_str_eq(mapping_anew()->file->name, expected);
    munmap(memory, 4096);
    if (_i & SEEN_ANEW)
        ck_assert_ptr_null(mapping_anew());
    unlink(first);
    const char *second = file_with_number(number);
    if (!second)
        return;
    map_here(second);
    if (_i & SEEN_DELETED)
        unlink(second);
    snprintf(expected, sizeof expected, "%s%s", second, ending);
    ck_assert_str_eq(mapping_anew()->file->name, expected);
    ck_assert_str_eq(mapping_anew()->path, second);
    unlink(second);
    ck_assert_str_eq(mapping_anew()->file->name, expected); /* it is still the record of that file */
}
END_TEST

/* Bytes that were read are a copy: the file is not open here, and another one can have its number. */
START_TEST(a_file_that_was_read_is_not_open)
{
    static const uint8_t bytes[4096] = "bytes";
    map_memory();
    const char *first = test_file("first", bytes, sizeof bytes);
    policy.pread = true;
    open_self();
    list_if(true);
    ino_t number = map_here(first);
    ck_assert(mapped_file_resolve(mapping_anew()->file));
    munmap(memory, 4096);
    unlink(first);
    const char *second = file_with_number(number);
    if (!second)
        return;
    map_here(second);
    ck_assert_str_eq(mapping_anew()->path, second);
}
END_TEST

/* While a file is open here, no other one has its number: its record stays, whatever becomes of its path. */
START_TEST(a_file_that_is_open_keeps_its_record)
{
    static const uint8_t bytes[4096] = "bytes";
    map_memory();
    const char *path = test_file("first", bytes, sizeof bytes), *renamed = test_file("renamed", bytes, 1);
    open_self();
    list_if(_i);
    map_here(path);
    struct mapped_file *file = mapping_anew()->file;
    ck_assert(mapped_file_resolve(file));
    ck_assert_int_eq(rename(path, renamed), 0);
    ck_assert_int_eq(unlink(renamed), 0);
    ck_assert_ptr_eq(mapping_anew()->file, file);
    ck_assert_str_eq(file->path, path);
}
END_TEST

static enum file_tag_kind accepted_kind;

/* Accepts any file as that of the process, and all of its bytes as constant. */
static enum file_match accept(struct target *compared, const struct mapped_file *file, struct file_candidate *candidate,
                              char *why, size_t why_size)
{
    (void)compared, (void)file, (void)why, (void)why_size;
    file_candidate_add_constant(candidate, 0, candidate->size, FILE_EXTENT_ALWAYS);
    file_tag_set(&candidate->tag, accepted_kind, "1", 1);
    return FILE_MATCHES;
}

/*
 * Another file has taken the path of one that is mapped, and has its identity. The memory of the process is read,
 * unless the file is an assembly, which is compared as a whole.
 */
START_TEST(a_replaced_library_does_not_stand_in)
{
    static const uint8_t first[4096] = "first", other[4096] = "other";
    struct span span;
    map_memory();
    accepted_kind = _i ? FILE_TAG_PE : FILE_TAG_ELF;
    policy.compare = accept;
    const char *path = test_file("lib", first, sizeof first), *beside = test_file("new", other, sizeof other);
    open_self();
    map_here(path);
    ck_assert_int_eq(rename(beside, path), 0);
    const struct mapping *mapping = mapping_anew();
    ck_assert(mapped_file_resolve(mapping->file));
    ck_assert_int_eq(memcmp(mapping->file->content.bytes, "other", 5), 0);
    ck_assert(target->ops->memory_at(target, (uintptr_t)memory, &span));
    ck_assert_str_eq((const char *)span.bytes + ((uintptr_t)memory - span.begin), _i ? "other" : "first");
}
END_TEST

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

/* A process of other namespaces, which maps a file that is nowhere but in its own /tmp. */
static void body_in_namespaces(void)
{
    char users[32], groups[32];
    snprintf(users, sizeof users, "0 %d 1", geteuid());
    snprintf(groups, sizeof groups, "0 %d 1", getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0 || !write_text("/proc/self/uid_map", users) ||
        !write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/gid_map", groups) ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("none", "/tmp", "tmpfs", 0, NULL) < 0) {
        shared->ready = -errno;
        _exit(1);
    }
    pid_t inner = fork();
    if (inner)
        waitpid(inner, NULL, 0);
    int fd = open("/tmp/inner.so", O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 2 * 4096) < 0 || pwrite(fd, "inner", 5, 4096) != 5 ||
        mmap(memory, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 4096) == MAP_FAILED)
        _exit(1);
    shared->ready = getpid();
    for (;;)
        pause();
}

/* The process that body_in_namespaces() started, as it is called here. */
static pid_t grandchild(void)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", child, child);
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    close(fd);
    return atoi(text);
}

START_TEST(a_process_in_other_namespaces)
{
    char expected[64];
    map_memory();
    child = spawn(body_in_namespaces);
    await(shared->ready);
    if (shared->ready < 0) {
        const char *required = getenv("CDACQ_REQUIRE_PTRACE");
        ck_assert_msg(!required || strcmp(required, "1") != 0, "no namespaces: %s", strerror(-shared->ready));
        fprintf(stderr, "skipped: no namespaces: %s\n", strerror(-shared->ready));
        return;
    }
    pid_t inner = grandchild();
    ck_assert_int_eq(shared->ready, 1); /* its own pid there */
    ck_assert_int_eq(live_open(inner, &policy, false, false, &target, &error), CDACQ_OK);
    const struct mapping *mapping = target_mapping_at(target, (uintptr_t)memory);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_str_eq(mapping->path, "/tmp/inner.so");
    ck_assert(mapped_file_resolve(mapping->file));
    snprintf(expected, sizeof expected, "/proc/%d/root/tmp/inner.so", inner);
    ck_assert_str_eq(mapping->file->local_path, expected);
    ck_assert(mapping->file->content.is_mapped_one);
    ck_assert_int_eq(memcmp(mapping->file->content.bytes + 4096, "inner", 5), 0);
    close_live();
    ck_assert_int_eq(live_open(inner, &policy, true, false, &target, &error), CDACQ_OK);
    struct threads threads;
    struct target_process process = {0};
    ck_assert_int_eq(target_threads(target, &threads, &error), CDACQ_OK);
    ck_assert_uint_eq(threads.count, 1);
    ck_assert_int_eq(threads.items[0].tid, inner);
    ck_assert_int_eq(threads.items[0].inner_tid, 1);
    threads_deinit(&threads);
    target->ops->process(target, &process);
    ck_assert_int_eq(process.inner_pid, 1);
    kill(inner, SIGKILL);
}
END_TEST

/* A program of 32 bits must not read the memory at the lower half of an address. */
static void body_of_this_system(void)
{
    shared->ready = 1;
    execl("/bin/sleep", "sleep", "100", NULL);
    _exit(1);
}

START_TEST(a_process_of_wider_addresses)
{
    start(body_of_this_system);
    enum cdacq_status status = CDACQ_OK;
    for (int i = 0; i < 1000 && status == CDACQ_OK; i++) { /* until it has been replaced */
        close_live();
        nap(1000);
        status = live_open(child, &policy, false, false, &target, &error);
    }
    ck_assert_int_eq(status, CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "64-bit addresses, which a 32-bit program cannot read"));
}
END_TEST

START_TEST(one_by_one_or_listed)
{
    start_with_files("mapped");
    open_live(false);
    list_if(true);
    struct target *listed = target;
    open_live(false);
    size_t count = MIN(listed->mapping_count, (size_t)LIVE_FOUND_MAX / 2);
    for (size_t i = 0; i < count; i++) { /* from both ends */
        const struct mapping *a = &listed->mappings[i % 2 ? count - 1 - i / 2 : i / 2];
        const struct mapping *b = target_mapping_at(target, (a->begin + a->end) / 2);
        ck_assert_ptr_nonnull(b);
        ck_assert(a->begin == b->begin && a->end == b->end && a->offset == b->offset);
        ck_assert(a->access == b->access && a->may_execute == b->may_execute);
        ck_assert_str_eq(a->path, b->path);
        ck_assert(a->file->inode == b->file->inode && a->file->device == b->file->device);
        ck_assert_ptr_eq(target_mapping_at(target, a->end - 1), b); /* it is not asked for again */
    }
    /* Where no file is mapped is not asked for again, either. */
    for (uintptr_t at = align_down((uintptr_t)&count, 4096), i = 0; i < 2 * LIVE_FOUND_MAX; i++)
        ck_assert_ptr_null(target_mapping_at(target, at + i));
    for (int i = 0; i < 2 * LIVE_FOUND_MAX; i++)
        ck_assert_ptr_null(target_mapping_at(target, UINT64_MAX));
    ck_assert_int_eq(target->partial, kernel_has_map_queries());
    /* What was found stays the same record. */
    struct mapped_file *file = target_mapping_at(target, (uintptr_t)memory)->file;
    list_if(true);
    ck_assert_ptr_eq(target_mapping_at(target, (uintptr_t)memory)->file, file);
    ck_assert_uint_eq(target->mapping_count, listed->mapping_count);
    ck_assert_uint_eq(file->mapping_count, 1);
    target_destroy(listed);
}
END_TEST

static bool is_program(const char *path)
{
    return strstr(path, "test_live");
}

static bool is_program_or_library(const char *path)
{
    return is_program(path) || (strstr(path, ".so") && !strstr(path, "vdso"));
}

/* That of the dynamic linker. The symbol _r_debug may be a copy in the program. */
static struct r_debug *debug(void)
{
    for (ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_DEBUG)
            return (struct r_debug *)entry->d_un.d_ptr;
    ck_abort_msg("a program without DT_DEBUG");
}

/* What is wrong with the dynamic linker's list. */
enum { LIST_WHOLE, LIST_CHANGING, LIST_CYCLIC, LIST_LOST, LIST_STATES };

static void write_memory(const volatile void *to, const void *bytes, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)(uintptr_t)to), (ssize_t)size);
    close(fd);
}

static void damage_list(int how)
{
    struct link_map *lost = (void *)8, *first = debug()->r_map;
    int state = RT_ADD;
    if (how == LIST_CHANGING)
        write_memory(&debug()->r_state, &state, sizeof state);
    else if (how == LIST_CYCLIC)
        write_memory(&first->l_next->l_next, &first, sizeof first);
    else if (how == LIST_LOST)
        write_memory(&debug()->r_map, &lost, sizeof lost);
}

/* Libraries are met, each once, from an address on; without the dynamic linker's list, all files with code are. */
START_TEST(files_with_code)
{
    start_with_files("without-code.so");
    damage_list(_i);
    open_live(false);
    list_if(true);
    struct target *listed = target;
    open_live(false);
    uint64_t position = 0, last = 0;
    unsigned libraries = 0, programs = 0, expected = 0;
    ck_assert_ptr_null(target_next_loaded(listed, is_program_or_library, &position)); /* the list is complete */
    for (const struct mapping *found; (found = target_next_loaded(target, is_program_or_library, &position));) {
        const struct mapping *same = target_mapping_at(listed, found->begin);
        ck_assert(same && same->begin == found->begin && !same->offset && !found->offset);
        ck_assert_str_eq(found->path, same->path);
        ck_assert_uint_gt(found->begin, last);
        last = found->begin;
        uint64_t from = found->begin;
        ck_assert_uint_eq(target_next_loaded(target, is_program_or_library, &from)->begin, found->begin);
        *(is_program(found->path) ? &programs : &libraries) += 1;
    }
    const char *path = "";
    for (size_t i = 0; i < listed->mapping_count; i++) {
        const struct mapping *mapping = &listed->mappings[i];
        if (!mapping->may_execute || !is_program_or_library(mapping->path) || is_program(mapping->path) ||
            strcmp(mapping->path, path) == 0)
            continue;
        path = mapping->path;
        expected++;
    }
    ck_assert_uint_ge(expected, 2); /* libc, the dynamic loader */
    ck_assert_uint_eq(libraries, kernel_has_map_queries() ? expected : 0);
    ck_assert_uint_le(programs, 1);
    if (_i != LIST_WHOLE)
        ck_assert_uint_eq(programs, kernel_has_map_queries());
    target_destroy(listed);
}
END_TEST

/* A file that the dynamic linker has at an address at which the kernel has none: all mappings are listed. */
START_TEST(a_list_that_is_not_true)
{
    uint64_t position = 0;
    ElfW(Addr) wrong = (uintptr_t)&variable;
    start_with_files("mapped");
    for (struct link_map *map = debug()->r_map; map; map = map->l_next)
        if (is_program_or_library(map->l_name))
            write_memory(&map->l_addr, &wrong, sizeof wrong);
    open_live(false);
    while (target_next_loaded(target, is_program_or_library, &position))
        ;
    ck_assert_ptr_nonnull(target_mapping_at(target, (uintptr_t)&constant));
}
END_TEST

enum { MANY = 6000 };

static void body_with_many_mappings(void)
{
    int fd = open(mapped_path, O_RDONLY);
    for (size_t i = 0; i < MANY; i++) /* the same page again and again: neighbours that the kernel does not join */
        if (mmap(memory + i * 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
            _exit(1);
    shared->ready = 1;
    for (;;)
        pause();
}

START_TEST(many_mappings)
{
    static uint8_t bytes[4096];
    mapped_path = test_file("a-file-with-a-name-of-some-length.so", bytes, sizeof bytes);
    memory = mmap(NULL, MANY * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    start(body_with_many_mappings);
    open_live(false);
    struct mapped_file *file = target_mapping_at(target, (uintptr_t)memory)->file;
    for (size_t i = 0; i < MANY; i++) {
        const struct mapping *mapping = target_mapping_at(target, (uintptr_t)memory + i * 4096 + 17);
        if (!mapping || mapping->begin != (uintptr_t)memory + i * 4096 || mapping->offset || mapping->file != file)
            ck_abort_msg("mapping %zu", i);
    }
    ck_assert_uint_gt(target->mapping_count, MANY); /* so many are listed */
    munmap(memory, MANY * 4096);
}
END_TEST

/* ---- Processes that cannot be read ---- */

static void body_that_ends(void)
{
    shared->ready = 1;
}

START_TEST(no_such_process)
{
    start(body_that_ends);
    pid_t gone = child;
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    child = 0;
    const int pids[] = {gone, 0, -1, -gone, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        for (int stop = 0; stop < 2; stop++) {
            char expected[100];
            snprintf(expected, sizeof expected, "process %d: there is no such process", pids[i]);
            ck_assert_int_eq(live_open(pids[i], &policy, stop, false, &target, &error), CDACQ_ERR_IO);
            ck_assert_str_eq(error.message, expected);
            ck_assert_ptr_null(target);
        }
}
END_TEST

START_TEST(a_process_that_has_ended)
{
    start(body_that_ends);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    for (int stop = 0; stop < 2; stop++) {
        ck_assert_int_eq(live_open(child, &policy, stop, false, &target, &error), CDACQ_ERR_IO);
        ck_assert_ptr_nonnull(strstr(error.message, "it has no memory"));
    }
}
END_TEST

static void body_of_nobody(void)
{
    /* Without the right to ptrace, even as root before. */
    if (setgid(65534) < 0 || setuid(65534) < 0)
        _exit(2);
    for (int stop = 0; stop < 2; stop++) {
        if (live_open(getppid(), &policy, stop, false, &target, &error) != CDACQ_ERR_IO)
            _exit(3 + stop);
        if (!strstr(error.message, stop ? "cannot be stopped" : "not permitted") || strchr(error.message, '\n'))
            _exit(5 + stop);
        if (!strstr(error.message, "(it belongs to another user: be that user, or root, or have CAP_SYS_PTRACE)"))
            _exit(7 + stop);
    }
}

START_TEST(a_process_of_somebody_else)
{
    pid_t nobody = spawn(body_of_nobody);
    int status;
    ck_assert_int_eq(waitpid(nobody, &status, 0), nobody);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(opening_leaves_outputs_alone_on_failure)
{
    struct target *untouched = (struct target *)&policy;
    ck_assert_int_lt(live_open(-1, &policy, false, false, &untouched, NULL), 0);
    ck_assert_ptr_eq(untouched, (struct target *)&policy);
}
END_TEST

/* ---- Stopping ---- */

START_TEST(all_threads_are_held_and_run_on)
{
    start(body_with_threads);
    await(shared->ready == THREADS);
    for (int round = 0; round < 5; round++) {
        open_live(true);
        assert_all_held(THREADS);
        close_live();
        assert_all_run();
    }
}
END_TEST

/* 'T' or 't' of a thread that is stopped, as /proc has it. */
static char state_of_child(void)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    ck_assert_ptr_nonnull(state);
    return state[2];
}

static void body_that_executes_another_program(void)
{
    shared->ready = 1;
    while (!shared->go)
        nap(1000);
    execl("/bin/sleep", "sleep", "100", NULL);
    _exit(1);
}

/* The threads are those of a program that nobody has asked about: they run on. */
START_TEST(another_program_is_not_stopped)
{
    start(body_that_executes_another_program);
    open_live(false);
    ck_assert_int_eq(target->ops->stop(target, false, &error), CDACQ_OK);
    ck_assert_int_eq(state_of_child(), 't');
    target->ops->resume(target);
    shared->go = 1;
    await(target_gone(target));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(target->ops->stop(target, false, &error), CDACQ_ERR_IO);
        ck_assert_ptr_nonnull(strstr(error.message, "executed another program"));
        ck_assert_int_ne(state_of_child(), 't');
    }
}
END_TEST

static void *close_elsewhere(void *unused)
{
    (void)unused;
    close_live();
    return NULL;
}

START_TEST(another_thread_may_let_go)
{
    start(body_with_threads);
    await(shared->ready == THREADS);
    open_live(true);
    assert_all_held(THREADS);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, close_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_all_run();
}
END_TEST

static void *open_elsewhere(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)live_open(child, &policy, true, false, &target, &error);
}

START_TEST(the_thread_that_opened_may_end)
{
    start(body_with_threads);
    await(shared->ready == THREADS);
    pthread_t thread;
    void *status;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_elsewhere, NULL), 0);
    pthread_join(thread, &status);
    ck_assert_int_eq((intptr_t)status, CDACQ_OK);
    assert_all_held(THREADS);
    close_live();
    assert_all_run();
}
END_TEST

static pid_t reader_target;

static void body_that_holds(void)
{
    enum cdacq_status status = live_open(reader_target, &policy, true, false, &target, &error);
    shared->go = status == CDACQ_OK ? 1 : 2;
    for (;;)
        pause();
}

static void assert_runs_when_reader_dies(int signal)
{
    start(body_with_threads);
    await(shared->ready == THREADS);
    reader_target = child;
    pid_t reader = spawn(body_that_holds);
    await(shared->go);
    ck_assert_int_eq(shared->go, 1);
    assert_all_held(THREADS);
    ck_assert_int_eq(kill(reader, signal), 0);
    ck_assert_int_eq(waitpid(reader, NULL, 0), reader);
    assert_all_run();
}

START_TEST(all_run_on_when_the_reader_is_killed)
{
    assert_runs_when_reader_dies(SIGKILL);
}
END_TEST

START_TEST(all_run_on_when_the_reader_is_terminated)
{
    assert_runs_when_reader_dies(SIGTERM);
}
END_TEST

static void on_signal(int signal)
{
    (void)signal;
    shared->signals++;
}

static void body_with_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    body_with_threads();
}

/* Sends signals as fast as the child takes them, so that some come between a thread's seizing and its stop. */
static void *send_signals(void *unused)
{
    (void)unused;
    intptr_t sent = 0;
    while (!shared->go) {
        if (sent - shared->signals < 200 && sigqueue(child, SIGRTMIN, (union sigval){0}) == 0)
            sent++;
        else
            nap(20);
    }
    return (void *)sent;
}

START_TEST(no_signal_gets_lost)
{
    start(body_with_signals);
    await(shared->ready == THREADS);
    pthread_t sender;
    void *sent;
    ck_assert_int_eq(pthread_create(&sender, NULL, send_signals, NULL), 0);
    for (int round = 0; round < 300; round++) {
        open_live(true);
        close_live();
        nap(200);
    }
    shared->go = 1;
    pthread_join(sender, &sent);
    ck_assert_int_gt((intptr_t)sent, 300);
    await(shared->signals == (intptr_t)sent);
    assert_all_run();
}
END_TEST

static void body_that_holds_once(void)
{
    (void)live_open(reader_target, &policy, true, false, &target, &error);
    shared->held = 1;
    for (;;)
        pause();
}

/* A reader that is killed as it has stopped a thread which was about to take a signal. */
START_TEST(no_signal_gets_lost_with_its_reader)
{
    start(body_with_signals);
    await(shared->ready == THREADS);
    pthread_t sender;
    void *sent;
    reader_target = child;
    ck_assert_int_eq(pthread_create(&sender, NULL, send_signals, NULL), 0);
    for (int round = 0; round < 300; round++) {
        shared->held = 0;
        pid_t reader = spawn(body_that_holds_once);
        if (round % 2)
            await(shared->held);
        else
            nap(round * 20);
        ck_assert_int_eq(kill(reader, SIGKILL), 0);
        ck_assert_int_eq(waitpid(reader, NULL, 0), reader);
    }
    shared->go = 1;
    pthread_join(sender, &sent);
    await(shared->signals == (intptr_t)sent);
    assert_all_run();
}
END_TEST

static bool is_reported_stopped(void)
{
    static struct target_process process;
    memset(&process, 0, sizeof process);
    target->ops->process(target, &process);
    return process.is_stopped;
}

START_TEST(a_stopped_process_stays_stopped)
{
    start(body_with_threads);
    await(shared->ready == THREADS);
    size_t all;
    open_live(true);
    ck_assert(!is_reported_stopped()); /* it is held, which is something else */
    close_live();
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    await(threads_in(child, "T", &all) == THREADS);
    /* One after the other: right after the process was let go, /proc may still say that it runs. */
    for (int round = 0; round < 300; round++) {
        open_live(true);
        assert_all_held(THREADS);
        ck_assert(is_reported_stopped());
        close_live();
    }
    await(threads_in(child, "T", &all) == THREADS);
    open_live(false);
    ck_assert(is_reported_stopped());
    close_live();
    nap(20 * 1000);
    ck_assert_uint_eq(threads_in(child, "T", &all), THREADS);
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    assert_all_run();
}
END_TEST

static void body_without_its_first_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, count, (void *)1);
    await(shared->ready);
    pthread_exit(NULL);
}

/* The kernel shows the memory through the other threads then, of which the message names one. */
START_TEST(a_first_thread_that_has_ended)
{
    static const char words[] = "its first thread has ended; ask for another one instead: ";
    start(body_without_its_first_thread);
    await(state_of(child, child) == 'Z');
    for (int stop = 0; stop < 2; stop++) {
        ck_assert_int_eq(live_open(child, &policy, stop, false, &target, &error), CDACQ_ERR_IO);
        const char *found = strstr(error.message, words);
        ck_assert_msg(found != NULL, "%s", error.message);
        ck_assert_int_eq(live_open(atoi(found + strlen(words)), &policy, stop, false, &target, &error), CDACQ_OK);
        target_destroy(target);
        target = NULL;
        ck_assert(runs(1));
    }
}
END_TEST

static void *come_and_go(void *unused)
{
    (void)unused;
    shared->counts[40]++;
    return NULL;
}

static void *spawn_threads(void *unused)
{
    (void)unused;
    shared->ready++;
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, come_and_go, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

static void body_with_churn(void)
{
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_create(&threads[i], NULL, spawn_threads, NULL);
    for (;;)
        pause();
}

START_TEST(threads_that_come_and_go)
{
    start(body_with_churn);
    await(shared->ready == 3);
    for (int round = 0; round < 100; round++) {
        size_t all;
        open_live(true);
        /* A thread that is exiting cannot be held. It runs no more code of the process, and is gone soon. */
        size_t held = threads_in(child, "tXZ", &all);
        for (int tries = 0; held != all && tries < 1000; tries++) {
            nap(1000);
            held = threads_in(child, "tXZ", &all);
        }
        ck_assert_uint_eq(held, all);
        uint64_t before = shared->counts[40];
        nap(500);
        ck_assert_uint_eq(shared->counts[40], before);
        close_live();
    }
    ck_assert(runs(40));
}
END_TEST

START_TEST(killed_while_held)
{
    start(body_with_threads);
    await(shared->ready == THREADS);
    open_live(true);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    await(state_of(child, child) == 'Z');
    await(target_gone(target)); /* its other threads have ended, too */
    struct reader reader;
    reader_init(&reader, target, 8, false);
    read_u8(&reader, (uintptr_t)&variable);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_IO);
    close_live();
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    child = 0;
}
END_TEST

static void body_traced_by_its_parent(void)
{
    shared->ready = 1;
    for (;;)
        pause();
}

static void body_that_traces(void)
{
    pid_t traced = spawn(body_traced_by_its_parent);
    await(shared->ready);
    if (live_open(traced, &policy, true, false, &target, &error) < 0)
        _exit(1);
    shared->go = traced;
    for (;;)
        pause();
}

START_TEST(a_process_that_is_traced_already)
{
    pid_t tracer = spawn(body_that_traces);
    await(shared->go);
    ck_assert_int_eq(live_open(shared->go, &policy, true, false, &target, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "cannot be stopped"));
    char tracer_named[64];
    snprintf(tracer_named, sizeof tracer_named, "(it is traced by another process: %d, ", tracer);
    ck_assert_ptr_nonnull(strstr(error.message, tracer_named));
    ck_assert_int_eq(live_open(shared->go, &policy, false, false, &target, &error), CDACQ_OK);
    ck_assert_int_eq(target->ops->stop(target, false, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, tracer_named));
    ck_assert_uint_eq(target->stops.count, 0);
    ck_assert_uint_eq(target->stops.total, 0);
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
}
END_TEST

START_TEST(its_own_process_cannot_be_stopped)
{
    ck_assert_int_eq(live_open(getpid(), &policy, true, false, &target, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "cannot be stopped"));
}
END_TEST

/* As after vfork(): the parent waits in the kernel until its child is done, and does not stop meanwhile. */
static void body_that_waits_in_the_kernel(void)
{
    shared->ready = 1;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        while (!shared->quit)
            nap(1000);
        _exit(0);
    }
    shared->counts[0]++;
    for (;;)
        pause();
}

START_TEST(a_thread_that_does_not_stop)
{
    start(body_that_waits_in_the_kernel);
    await(state_of(child, child) == 'D');
    ck_assert_int_eq(live_open(child, &policy, true, false, &target, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "did not stop within"));
    shared->quit = 1;
    await(shared->counts[0]);
    await(state_of(child, child) == 'S');
}
END_TEST

static Suite *suite(void)
{
    const TTest *const reading_tests[] = {
        reads_without_stopping,
        what_cannot_be_read_is_missing,
        a_page_is_read_once,
        an_epoch_reads_anew_and_notices_changes,
        memory_is_there_as_long_as_the_process_seems_to_be,
        many_scattered_reads_are_compared,
    };
    const TTest *const tests[] = {
        shared_memory_may_be_truncated,
        records_when_asked,
        reads_its_own_process,
        another_file_is_not_opened_for_a_deleted_one,
        one_by_one_or_listed,
        a_list_that_is_not_true,
        many_mappings,
    };
    const TTest *const failure_tests[] = {
        opening_leaves_outputs_alone_on_failure,
        no_such_process,
        a_process_that_has_ended,
    };
    const TTest *const stop_tests[] = {
        all_threads_are_held_and_run_on,
        another_program_is_not_stopped,
        another_thread_may_let_go,
        the_thread_that_opened_may_end,
        all_run_on_when_the_reader_is_killed,
        all_run_on_when_the_reader_is_terminated,
        no_signal_gets_lost,
        no_signal_gets_lost_with_its_reader,
        a_stopped_process_stays_stopped,
        a_first_thread_that_has_ended,
        threads_that_come_and_go,
        killed_while_held,
        a_process_that_is_traced_already,
        its_own_process_cannot_be_stopped,
        a_thread_that_does_not_stop,
    };
    Suite *s = suite_create("live");
    bool narrow = sizeof(void *) == 4; /* and the kernel, with its shell, has 64 bits */
    TCase *failures = tcase_create("failures");
    tcase_add_checked_fixture(failures, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(failure_tests); i++)
        tcase_add_test(failures, failure_tests[i]);
    suite_add_tcase(s, failures);
    if (left_out_emulated("reading and stopping a process", "neither process_vm_readv nor ptrace"))
        return s;
    TCase *tc = tcase_create("live");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    for (size_t i = 0; i < ARRAY_SIZE(reading_tests); i++)
        tcase_add_loop_test(tc, reading_tests[i], 0, vm_readv_error_count());
    tcase_add_loop_test(tc, mappings_as_the_kernel_reports_them, 0, 2);
    tcase_add_loop_test(tc, files_of_a_process_in_a_jail, 0, 2);
    tcase_add_loop_test(tc, mappings_are_listed_again, 0, 2);
    tcase_add_loop_test(tc, files_with_the_same_number, 0, NUMBER_WAYS);
    tcase_add_test(tc, a_file_that_was_read_is_not_open);
    tcase_add_loop_test(tc, a_file_that_is_open_keeps_its_record, 0, 2);
    tcase_add_loop_test(tc, a_replaced_library_does_not_stand_in, 0, 2);
    tcase_add_loop_test(tc, files_with_code, 0, LIST_STATES);
    suite_add_tcase(s, tc);
    if (getenv("CDACQ_VALGRIND")) {
        puts("left out under valgrind: what needs ptrace");
        return s;
    }
    TCase *stop = tcase_create("stop");
    tcase_add_checked_fixture(stop, setup, teardown);
    if (narrow)
        tcase_add_test(stop, a_process_of_wider_addresses);
    for (size_t i = 0; i < ARRAY_SIZE(stop_tests); i++)
        tcase_add_test(stop, stop_tests[i]);
    tcase_add_test(stop, a_process_in_other_namespaces);
    if (geteuid() == 0)
        tcase_add_test(stop, a_process_of_somebody_else);
    else
        puts("left out: another user's process; that takes root");
    suite_add_tcase(s, stop);
    return s;
}

CHECK_MAIN(suite)
