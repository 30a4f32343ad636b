/*
 * The text of /proc/PID/smaps: as the kernel writes it, and as it never does.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "target/proc_smaps.h"
#include "util/base.h"
#include "util/file.h"
#include "util/proc_file.h"

START_TEST(reads_sizes_and_paths)
{
    char text[] =
        "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
        "Size:                132 kB\nRss:                  12 kB\nSwap:                  8 kB\nSwapPss: 4 kB\n"
        "VmFlags: rd wr mr mw me ac sd\n"
        "7f0000021000-7f0000030000 r-xp 00001000 fe:01 1234                       /a b/c (deleted)\n"
        "Rss:                   4 kB\n";
    char *rest = text;
    struct proc_smap map;
    ck_assert(proc_smaps_next(&rest, &map));
    ck_assert_uint_eq(map.begin, 0x7f0000000000);
    ck_assert_uint_eq(map.end, 0x7f0000021000);
    ck_assert_uint_eq(map.resident, 12 * 1024);
    ck_assert_uint_eq(map.swapped, 8 * 1024);
    ck_assert_str_eq(map.path, "");
    ck_assert(proc_smaps_next(&rest, &map));
    ck_assert_uint_eq(map.resident, 4 * 1024);
    ck_assert_uint_eq(map.swapped, 0);
    ck_assert_str_eq(map.path, "/a b/c (deleted)");
    ck_assert(!proc_smaps_next(&rest, &map));
}
END_TEST

/* Each of these has one mapping that is as expected. */
START_TEST(leaves_out_what_is_damaged)
{
    static const char *const texts[] = {
        "nonsense\n1000-2000 rw-p 0 0:0 0 \nRss: 4 kB\n",
        "2000-1000 rw-p 0 0:0 0 \nRss: 8 kB\n1000-2000 rw-p 0 0:0 0\nRss: 4 kB",
        "fffffffffffffffff-fffffffffffffffffff rw-p 0 0:0 0 \nRss: 8 kB\n1000-2000 rw-p 0 0:0 0 \nRss: 4 kB\nRss:\n",
        "1000-2000 rw-p\nRss: 4 kB\nRss: 99999999999999999999 kB\n1000-\n",
        "\n\n1000-2000 rw-p 0 0:0 0 \nRss: 4 kB\n\n\n",
    };
    char text[200], *rest = text;
    struct proc_smap map;
    snprintf(text, sizeof text, "%s", texts[_i]);
    ck_assert(proc_smaps_next(&rest, &map));
    ck_assert_uint_eq(map.begin, 0x1000);
    ck_assert_uint_eq(map.end, 0x2000);
    ck_assert_uint_eq(map.resident, 4096);
    ck_assert(!proc_smaps_next(&rest, &map));
}
END_TEST

/* The pages that this process has touched of a mapping of its own. */
START_TEST(agrees_with_the_kernel)
{
    enum { PAGES = 16, TOUCHED = 5 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), length;
    uint8_t *own = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(own, MAP_FAILED);
    for (size_t i = 0; i < TOUCHED; i++)
        own[i * page] = 1;
    CLEANUP_CLOSE int fd = proc_file_open(getpid(), "smaps");
    CLEANUP_FREE char *text = file_read_all(fd, 1 << 26, &length);
    ck_assert_ptr_nonnull(text);
    bool found = false;
    struct proc_smap map;
    for (char *rest = text; proc_smaps_next(&rest, &map);)
        if (map.begin == (uintptr_t)own) {
            found = true;
            ck_assert_uint_eq(map.end, (uintptr_t)own + PAGES * page);
            ck_assert_uint_eq(map.resident + map.swapped, TOUCHED * page);
        }
    ck_assert(found);
    munmap(own, PAGES * page);
}
END_TEST

static Suite *suite(void)
{
    TCase *tests = tcase_create("proc_smaps");
    tcase_add_test(tests, reads_sizes_and_paths);
    tcase_add_loop_test(tests, leaves_out_what_is_damaged, 0, 5);
    tcase_add_test(tests, agrees_with_the_kernel);
    Suite *all = suite_create("proc_smaps");
    suite_add_tcase(all, tests);
    return all;
}

CHECK_MAIN(suite)
