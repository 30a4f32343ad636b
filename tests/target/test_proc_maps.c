/* test_proc_maps.c: the mappings of this process by queries and by text, and texts that the kernel may write. */
#include "target/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/file.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/kernel_queries.h"

enum { MOST = 512, PAGE = 4096, PARTS = 3 };

/* A mapping, with a path of its own. */
struct listed {
    struct proc_map map;
    char *path;
};

struct listing {
    struct listed items[MOST];
    size_t count;
};

static struct listing by_queries, by_text;
static struct proc_maps maps;
static int file;

static void setup(void)
{
    file = -1;
}

static void clear(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->items[i].path);
    listing->count = 0;
}

static void teardown(void)
{
    clear(&by_queries);
    clear(&by_text);
    if (file >= 0)
        close(file);
    test_dir_remove();
}

static void list_some(int from, bool executable, bool queries, struct listing *ret)
{
    struct proc_map map;
    ck_assert_int_eq(proc_maps_begin(from, executable, &maps), 0);
    ck_assert_int_eq(maps.queries, queries);
    for (ret->count = 0; proc_maps_next(&maps, &map); ret->count++) {
        ck_assert_uint_lt(ret->count, MOST);
        ret->items[ret->count] = (struct listed){map, strdup(map.path)};
    }
    proc_maps_end(&maps);
}

static void list(int from, bool queries, struct listing *ret)
{
    list_some(from, false, queries, ret);
}

/* A file that has a text, which is listed as one of the kernel's. */
static int text_file(const void *text, size_t size)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
    return fd;
}

static const struct listed *item_at(const struct listing *listing, const void *address)
{
    for (size_t i = 0; i < listing->count; i++)
        if (listing->items[i].map.begin == (uintptr_t)address)
            return &listing->items[i];
    ck_abort_msg("%p is not listed", address);
}

static void *map_part(void *at, int fd, size_t part, int access, int flags)
{
    void *bytes = mmap(at, PAGE, access, flags | (at ? MAP_FIXED : 0), fd, (off_t)(part * PAGE));
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    return bytes;
}

/*
 * Two memfds in turn, files with odd names, one that was deleted, and all that a process has anyway. In the second
 * round all of them may be executed, and only what may be executed is listed.
 */
START_TEST(both_ways_list_the_same)
{
    uint8_t page[PARTS * PAGE] = {0};
    int access = PROT_READ | (_i ? PROT_EXEC : 0);
    int shared[2] = {text_file(page, sizeof page), text_file(page, sizeof page)}, fd;
    uint8_t *room = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(room, MAP_FAILED);
    for (size_t i = 0; i < 2 * PARTS; i++)
        map_part(room + i * PAGE, shared[i / 2 % 2], i % PARTS, access, MAP_SHARED);
    static const char *const names[] = {"plain", "new\nline", "x (deleted)", "gone"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        fd = open(test_file(names[i], page, sizeof page), O_RDWR);
        map_part(room + (8 + i) * PAGE, fd, i ? 1 : 0, i ? access : PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
        close(fd);
    }
    ck_assert_int_eq(unlink(test_path("gone")), 0);

    size_t size;
    file = proc_maps_open(getpid());
    ck_assert_int_ge(file, 0);
    char *text = file_read_all(file, 1 << 24, &size);
    list_some(file, _i, kernel_has_map_queries(), &by_queries);
    int copy = text_file(text, size);
    list_some(copy, _i, false, &by_text);

    for (size_t i = 0; _i && i < by_text.count; i++)
        ck_assert(by_text.items[i].map.executable);
    ck_assert_uint_ge(by_text.count, 2 * PARTS + ARRAY_SIZE(names));
    ck_assert_uint_eq(by_queries.count, by_text.count);
    for (size_t i = 0; i < by_text.count; i++) {
        const struct listed *a = &by_queries.items[i], *b = &by_text.items[i];
        ck_assert_str_eq(a->path, b->path);
        ck_assert(a->map.begin == b->map.begin && a->map.end == b->map.end && a->map.offset == b->map.offset &&
                  a->map.device == b->map.device && a->map.inode == b->map.inode &&
                  a->map.readable == b->map.readable && a->map.writable == b->map.writable &&
                  a->map.executable == b->map.executable);
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct listed *item = item_at(&by_queries, room + (8 + i) * PAGE);
        ck_assert(strstr(item->path, names[i]) != NULL);
        ck_assert_uint_eq(item->map.offset, i ? PAGE : 0);
        ck_assert(item->map.readable && item->map.writable == !i && item->map.executable == (!i || _i));
    }
    struct stat stat;
    fstat(shared[1], &stat);
    const struct listed *item = item_at(&by_queries, room + 2 * PAGE);
    ck_assert_uint_eq(item->map.inode, stat.st_ino);
    ck_assert_str_eq(item->path, "/memfd:text (deleted)");

    struct proc_map map;
    if (kernel_has_map_queries()) {
        ck_assert(proc_maps_part_at(file, (uintptr_t)room + 2 * PAGE + 7, maps.name, &map));
        ck_assert(map.begin == (uintptr_t)room + 2 * PAGE && map.inode == stat.st_ino);
        ck_assert_str_eq(map.path, "/memfd:text (deleted)");
        ck_assert(proc_maps_part_at(file, (uintptr_t)room + 14 * PAGE, maps.name, &map));
        ck_assert(map.begin <= (uintptr_t)room + 14 * PAGE && map.end > (uintptr_t)room + 14 * PAGE && !map.path);
        munmap(room, 16 * PAGE);
        ck_assert(proc_maps_part_at(file, (uintptr_t)room + PAGE, maps.name, &map)); /* up to the next mapping */
        ck_assert(map.begin == (uintptr_t)room + PAGE && map.end > map.begin && !map.path);
        ck_assert(proc_maps_part_at(file, UINT64_MAX - PAGE, maps.name, &map)); /* no mapping follows */
        ck_assert(map.begin == UINT64_MAX - PAGE && map.end == UINT64_MAX && !map.path);
        ck_assert(!proc_maps_part_at(file, UINT64_MAX, maps.name, &map));
    }
    ck_assert(!proc_maps_part_at(copy, (uintptr_t)room, maps.name, &map));
    ck_assert_int_eq(errno, ENOTTY);
    free(text);
    close(copy);
    close(shared[0]);
    close(shared[1]);
}
END_TEST

START_TEST(lines_of_text)
{
    static const char text[] = "1000-2000 r-xp 00003000 fd:01 77                         /lib/a b\n"
                               "2000-3000 rw-s 00000000 00:05 18446744073709551615       /dev/shm/x\\012y (deleted)\n"
                               "3000-4000 ---p 00000000 00:00 0\n"
                               "4000-5000 rw-p 00000000 00:00 0                          [heap]\n"
                               "5000-6000 rw-p 00000000 00:0f 5                          anon_inode:[io_uring]\n"
                               "7000-6000 r--p 00000000 fd:01 5                          /turned\n"
                               "x000-8000 r--p 00000000 fd:01 5                          /no number\n"
                               "8000-9000 r--p 00000000 fd:01                            /too few\n"
                               "\n"
                               "ffffffffff600000-ffffffffff601000 --xp 00001000 08:02 9  /end";
    file = text_file(text, sizeof text - 1);
    for (int i = 0; i < 2; i++) {
        list(file, false, &by_text);
        ck_assert_uint_eq(by_text.count, 3);
        const struct listed *items = by_text.items;
        ck_assert_str_eq(items[0].path, "/lib/a b");
        ck_assert(items[0].map.begin == 0x1000 && items[0].map.end == 0x2000 && items[0].map.offset == 0x3000);
        ck_assert(items[0].map.inode == 77 && items[0].map.device == makedev(0xfd, 1));
        ck_assert(items[0].map.readable && !items[0].map.writable && items[0].map.executable);
        ck_assert_str_eq(items[1].path, "/dev/shm/x\ny (deleted)");
        ck_assert(items[1].map.inode == UINT64_MAX && items[1].map.writable);
        ck_assert_str_eq(items[2].path, "/end");
        ck_assert(items[2].map.end == 0xffffffffff601000 && !items[2].map.readable);
        clear(&by_text);
    }
}
END_TEST

/* A process that was forked has the same offset, and may list the mappings at the same time. */
START_TEST(the_offset_of_the_file_stays)
{
    static const char text[] = "1000-2000 r-xp 00003000 fd:01 77 /a\n";
    file = text_file(text, sizeof text - 1);
    ck_assert_int_eq(lseek(file, 5, SEEK_SET), 5);
    list(file, false, &by_text);
    ck_assert_uint_eq(by_text.count, 1);
    ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 5);
}
END_TEST

START_TEST(a_process_without_memory)
{
    file = text_file("", 0);
    ck_assert_int_eq(proc_maps_begin(file, false, &maps), ESRCH);
    proc_maps_end(&maps);
    int ends[2], status;
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (!child)
        _exit(read(ends[0], &byte, 1) != 1);
    int of_child = proc_maps_open(child);
    ck_assert_int_ge(of_child, 0);
    ck_assert_int_eq(proc_maps_begin(of_child, false, &maps), 0);
    proc_maps_end(&maps);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT); /* it is a zombie then */
    ck_assert_int_eq(proc_maps_begin(of_child, false, &maps), ESRCH);
    proc_maps_end(&maps);
    close(of_child);
    waitpid(child, &status, 0);
    ck_assert_int_lt(proc_maps_open(child), 0);
    ck_assert_int_eq(errno, ENOENT);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("proc_maps");
    TCase *tcase = tcase_create("proc_maps");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, both_ways_list_the_same, 0, 2);
    tcase_add_test(tcase, lines_of_text);
    tcase_add_test(tcase, the_offset_of_the_file_stays);
    tcase_add_test(tcase, a_process_without_memory);
    suite_add_tcase(s, tcase);
    return s;
}

CHECK_MAIN(suite)
