/*
 * test_call_paths.c: stacks as a tree, as folded stacks and as a profile. Stacks are written as the names of their
 * frames, a letter each, from the outermost: a lower-case one is a method, an upper-case one a native symbol; '?' is a
 * guess, '!' comes before a frame inside which others may be missing.
 */
#include <ctype.h>
#include <stdio.h>

#include "src/cli/base/json_writer.c"
#include "src/cli/base/output.c"
#include "src/cli/base/stacks.c"
#include "src/cli/base/stack_writer.c"
#include "src/cli/commands/call_paths.c"
#include "src/cli/commands/call_profile.c"
#include "src/cli/commands/call_tree.c"
#include "tests/support/check_main.h"

static struct stacks stacks;
static struct call_paths paths;
static struct answers answers;
static struct output out;
static char told[256];

/* ---- What the tool has instead ---- */

_Noreturn void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void *allocate(size_t size)
{
    return calloc(1, size);
}

void *reallocate(void *data, size_t size)
{
    data = realloc(data, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

int watchdog_set(int pid)
{
    return pid;
}

void watchdog_remove(int folder, const char *name)
{
    (void)folder, (void)name;
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigemptyset(ret_before);
}

void message(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(told, sizeof told, format, list);
    va_end(list);
}

bool console_has_colour(int fd)
{
    (void)fd;
    return false;
}

const char *console_style(enum style style)
{
    (void)style;
    return "";
}

void progress_end_all(void)
{
}

void answers_write(struct answers *to, const struct cdacq_method *method)
{
    (void)to, (void)method;
}

void answers_write_async(struct answers *to, const struct cdacq_method *method)
{
    (void)to, (void)method;
}

void answers_write_members(struct answers *to, struct json_writer *w, const struct cdacq_method *method,
                           const char *status)
{
    (void)to, (void)w, (void)method, (void)status;
}

void answers_count_unread(struct answers_unread *unread, const struct cdacq_method *method)
{
    unread->count += answers_doubt_name(method);
}

/* ---- Stacks ---- */

static void setup(void)
{
    stacks = (struct stacks){0};
    paths = (struct call_paths){0};
    answers = (struct answers){0};
    told[0] = '\0';
    output_open_memory(&out);
}

static void teardown(void)
{
    output_abandon(&out);
    call_paths_deinit(&paths);
    stacks_deinit(&stacks);
}

/* Names live as long as the program. */
static const char *name_of(char letter, const char *end)
{
    static char names[256][8];
    snprintf(names[(uint8_t)letter], sizeof *names, "%c%s", letter, end);
    return names[(uint8_t)letter];
}

static void add_line(int tid, const char *frames, const char *problem, uint32_t line)
{
    struct stack *stack = stack_new();
    for (size_t i = strlen(frames); i-- > 0;) {
        char c = frames[i];
        if (c == '?' || c == '!')
            continue;
        const char *name = name_of(c, isupper((unsigned char)c) ? "" : "()");
        struct cdacq_method method = {.size = sizeof method,
                                      .answer = CDACQ_ANSWER_MANAGED,
                                      .name = name,
                                      .name_length = strlen(name),
                                      .module = "/x/Demo.dll",
                                      .module_verified = true,
                                      .file = "/src/Demo.cs",
                                      .line = line};
        struct cdacq_frame frame = {.size = sizeof frame,
                                    .kind = CDACQ_FRAME_MANAGED,
                                    .pc = (uint64_t)c << 32 | line,
                                    .method = &method,
                                    .by = i && frames[i - 1] == '?' ? CDACQ_FRAME_BY_GUESS : CDACQ_FRAME_BY_UNWIND,
                                    .after_gap = i && frames[i - 1] == '!'};
        if (isupper((unsigned char)c)) {
            frame.kind = CDACQ_FRAME_NATIVE;
            frame.method = NULL;
            frame.symbol = c == 'U' ? NULL : name;
            frame.module = "/x/libn.so";
            frame.module_offset = 0x100 + line;
        }
        stack_add_frame(&stacks, stack, &frame);
    }
    struct cdacq_thread thread = {.size = sizeof thread, .tid = tid};
    stacks_add(&stacks, stack, &thread, problem, false);
}

static void add(int tid, const char *frames)
{
    add_line(tid, frames, NULL, 7);
}

static void gather(const char *root)
{
    for (size_t i = 0; i < stacks.list.count; i++)
        call_paths_add_stack(&paths, &answers, stacks.list.items[i], root);
}

static void check_written(const char *expected)
{
    ck_assert_uint_eq(out.length, strlen(expected));
    ck_assert_msg(!memcmp(out.data, expected, out.length), "%.*s", (int)out.length, out.data);
}

START_TEST(tree_has_counts_and_threads)
{
    add(1, "abc");
    add(2, "abd");
    add(3, "abc");
    add(4, "ab");
    add(5, "e");
    gather(NULL);
    call_tree_write(&out, &paths, false);
    check_written("5 threads\n"
                  "4  a() Demo.cs:7 (Demo.dll)\n"
                  "   b() Demo.cs:7 (Demo.dll)\n"
                  "  1  TID 4\n"
                  "  2  c() Demo.cs:7 (Demo.dll)\n"
                  "     TID 1, 3\n"
                  "  1  d() Demo.cs:7 (Demo.dll)\n"
                  "     TID 2\n"
                  "1  e() Demo.cs:7 (Demo.dll)\n"
                  "   TID 5\n");
}
END_TEST

/* Where threads are in different lines of a method, none is shown. */
START_TEST(lines_that_differ_are_not_shown)
{
    add_line(1, "ab", NULL, 7);
    add_line(2, "ab", NULL, 8);
    gather(NULL);
    call_tree_write(&out, &paths, false);
    check_written("2 threads\n"
                  "2  a() (Demo.dll)\n"
                  "   b() (Demo.dll)\n"
                  "   TID 1, 2\n");
    ck_assert_ptr_nonnull(paths.labels.items[0].file);
    ck_assert_uint_eq(paths.labels.items[0].line, 0);
}
END_TEST

START_TEST(native_rows_and_recursion_are_folded)
{
    add(1, "ABCaababababababDEF");
    gather(NULL);
    call_tree_write(&out, &paths, false);
    check_written("1 thread\n"
                  "1  ... 3 native frames (libn.so)\n"
                  "   a() Demo.cs:7 (Demo.dll)\n"
                  "   a() Demo.cs:7 (Demo.dll)\n"
                  "   b() Demo.cs:7 (Demo.dll)\n"
                  "   ... 2 frames above repeated 5 times more\n"
                  "   ... 2 native frames (libn.so)\n"
                  "   F (libn.so)\n"
                  "   TID 1\n");
}
END_TEST

/* "bb" in one line and in others: only those in the same line are the same. */
START_TEST(recursion_through_lines_is_not_one_line)
{
    struct stack *stack = stack_new();
    for (unsigned i = 0; i < 7; i++) {
        const struct cdacq_method method = {.answer = CDACQ_ANSWER_MANAGED,
                                            .name = "b()",
                                            .name_length = 3,
                                            .module_verified = true,
                                            .file = "Demo.cs",
                                            .line = i == 6 ? 2 : 1};
        const struct cdacq_frame frame = {.kind = CDACQ_FRAME_MANAGED, .pc = 1 + i / 6, .method = &method};
        stack_add_frame(&stacks, stack, &frame);
    }
    stacks_add(&stacks, stack, &(struct cdacq_thread){.tid = 1}, NULL, false);
    gather(NULL);
    call_tree_write(&out, &paths, false);
    check_written("1 thread\n"
                  "1  b() Demo.cs:2\n"
                  "   b() Demo.cs:1\n"
                  "   ... 1 frame above repeated 5 times more\n"
                  "   TID 1\n");
}
END_TEST

/* Marks are no frames that repeat, unless they are the same. */
START_TEST(marks_differ)
{
    add_line(1, "!a!a!a!a!ab", "no memory", 7);
    gather(NULL);
    call_tree_write(&out, &paths, false);
    check_written("1 thread\n"
                  "1  [incomplete]\n"
                  "   a() Demo.cs:7 (Demo.dll)\n"
                  "   [frames may be missing]\n"
                  "   ... 2 frames above repeated 4 times more\n"
                  "   b() Demo.cs:7 (Demo.dll)\n"
                  "   TID 1\n");
}
END_TEST

START_TEST(native_frames_each)
{
    add(1, "AB");
    gather(NULL);
    call_tree_write(&out, &paths, true);
    check_written("1 thread\n1  A (libn.so)\n   B (libn.so)\n   TID 1\n");
}
END_TEST

START_TEST(doubts_are_marked)
{
    add_line(1, "!a?bU", "no memory", 7);
    add(2, "");
    gather(NULL);
    ck_assert(write_folded(&out, &paths));
    check_written("[incomplete];a();[frames may be missing];b() [guess];[libn.so] 1\n[no frames] 1\n");
}
END_TEST

/* A guess is another frame than one that is known; code without symbol is one label for each offset on request. */
START_TEST(what_differs_is_not_merged)
{
    paths.has_offsets = true;
    add(1, "a");
    add(2, "?a");
    add_line(3, "U", NULL, 1);
    add_line(4, "U", NULL, 2);
    gather(NULL);
    ck_assert(write_folded(&out, &paths));
    check_written("a() 1\na() [guess] 1\nlibn.so+0x101 1\nlibn.so+0x102 1\n");
}
END_TEST

START_TEST(folded_stacks_are_counted)
{
    add_line(1, "abA", NULL, 7);
    add_line(2, "abA", NULL, 8); /* other lines: another stack of the same methods */
    add_line(3, "abA", NULL, 7);
    add(4, "ab");
    gather("x;y z");
    ck_assert(write_folded(&out, &paths));
    check_written("x:y z;a();b() 1\nx:y z;a();b();A 3\n");
}
END_TEST

START_TEST(chains_are_counted)
{
    const struct cdacq_method methods[] = {{.answer = CDACQ_ANSWER_MANAGED, .name = "In.N()", .module_verified = true},
                                           {.answer = CDACQ_ANSWER_MANAGED, .module_verified = true},
                                           {.answer = CDACQ_ANSWER_ERROR, .name = "Out()", .error = "bad"}};
    const struct cdacq_async_chain chain = {.methods = methods, .method_count = 3, .count = 5};
    call_paths_add_chain(&paths, &answers, &chain);
    call_paths_add_chain(&paths, &answers, &chain);
    ck_assert(write_folded(&out, &paths));
    check_written("Out()?;?;In.N() 10\n");
    ck_assert_uint_eq(answers.errors, 2);
    ck_assert_uint_eq(answers.unread.count, 2);
}
END_TEST

/* Of a line that no program would read, both ends are kept. */
START_TEST(long_lines_are_cut)
{
    enum { FRAMES = 300 * 1000 };
    char *frames = malloc(FRAMES + 1);
    memset(frames, 'b', FRAMES);
    frames[FRAMES] = '\0';
    frames[0] = 'a';
    frames[FRAMES - 1] = 'c';
    add(1, frames);
    gather(NULL);
    ck_assert(!write_folded(&out, &paths));
    ck_assert_uint_lt(out.length, LINE_MAX_BYTES + 64);
    ck_assert(!memcmp(out.data, "a();b();b();", 12) && !memcmp(out.data + out.length - 11, ";b();c() 1\n", 11));
    ck_assert_ptr_nonnull(memmem(out.data, out.length, "frames left out];b();", 21));
    ck_assert_str_eq(told, "1 stack cut: frames in the middle are left out");
    out.length = 0;
    call_tree_write(&out, &paths, false);
    check_written("1 thread\n"
                  "1  a() Demo.cs:7 (Demo.dll)\n"
                  "   b() Demo.cs:7 (Demo.dll)\n"
                  "   ... 1 frame above repeated 299997 times more\n"
                  "   c() Demo.cs:7 (Demo.dll)\n"
                  "   TID 1\n");
    free(frames);
}
END_TEST

/* Each stack leaves the one before one frame later: the indentation ends, and so does the output. */
START_TEST(deep_branches_stay_small)
{
    enum { STACKS = 3000 };
    char frames[STACKS + 2];
    memset(frames, 'a', sizeof frames);
    for (int i = 1; i <= STACKS; i++) {
        frames[i] = 'b';
        frames[i + 1] = '\0';
        add(i, frames);
        frames[i] = frames[i + 1] = 'a';
    }
    gather(NULL);
    call_tree_write(&out, &paths, false);
    ck_assert_uint_lt(out.length, STACKS * 3 * (2 * LEVELS_SHOWN + 64));
    size_t lines = 0;
    for (size_t i = 0; i < out.length; i++)
        lines += out.data[i] == '\n';
    ck_assert_uint_eq(lines, 1 + 3 * STACKS);
    ck_assert_ptr_nonnull(memmem(out.data, out.length, "[level 2999] 1  a() Demo.cs:7", 29));
}
END_TEST

START_TEST(speedscope_has_a_sample_for_each_stack)
{
    add(1, "aB");
    add(2, "aB");
    add(3, "a");
    gather(NULL);
    write_speedscope(&out, &paths, "co\"re", "threads");
    check_written("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"cdacq\","
                  "\"name\":\"co\\\"re\",\"activeProfileIndex\":0,\"shared\":{\"frames\":["
                  "{\"name\":\"a()\",\"file\":\"/src/Demo.cs\",\"line\":7},{\"name\":\"B\",\"file\":\"libn.so\"}]},"
                  "\"profiles\":[{\"type\":\"sampled\",\"name\":\"threads\",\"unit\":\"none\",\"startValue\":0,"
                  "\"endValue\":3,\"samples\":[[0],[0,1]],\"weights\":[1,2]}]}\n");
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("call_paths");
    TCase *tcase = tcase_create("call_paths");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, tree_has_counts_and_threads);
    tcase_add_test(tcase, lines_that_differ_are_not_shown);
    tcase_add_test(tcase, native_rows_and_recursion_are_folded);
    tcase_add_test(tcase, recursion_through_lines_is_not_one_line);
    tcase_add_test(tcase, marks_differ);
    tcase_add_test(tcase, native_frames_each);
    tcase_add_test(tcase, doubts_are_marked);
    tcase_add_test(tcase, what_differs_is_not_merged);
    tcase_add_test(tcase, folded_stacks_are_counted);
    tcase_add_test(tcase, chains_are_counted);
    tcase_add_test(tcase, long_lines_are_cut);
    tcase_add_test(tcase, deep_branches_stay_small);
    tcase_add_test(tcase, speedscope_has_a_sample_for_each_stack);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
