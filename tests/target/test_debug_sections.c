/*
 * test_debug_sections.c: lines and call-frame information of programs (tests/carrier/lines.c) that the compiler at hand
 * has made in DWARF 4 and 5, and compressed. They say themselves which line each of their addresses belongs to.
 */
#include "target/native/debug_sections.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "src/files/file_match.h"
#include "target/live.h"
#include "target/native/native_modules.h"
#include "target/threads.h"
#include "tests/support/check_main.h"

enum { NOTES_MAX = 16 };

static const char *const programs[] = {"lines_4", "lines_5", "lines_compressed"};

struct note {
    uint64_t address;
    uint32_t line;
    bool in_other_file;
};

static struct file_policy policy;
static struct target *target;
static struct native_modules *modules;
static struct threads threads;
static struct note notes[NOTES_MAX];
static size_t note_count;
static pid_t child;
static FILE *from_child;

static void setup(void)
{
    policy = (struct file_policy){.compare = compare_mapped_file, .identify = identify_mapped_file};
    pthread_mutex_init(&policy.lock, NULL);
    note_count = 0;
}

static void teardown(void)
{
    native_modules_destroy(modules);
    threads_deinit(&threads);
    target_destroy(target);
    if (from_child)
        fclose(from_child);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    modules = NULL;
    target = NULL;
    from_child = NULL;
    child = 0;
    pthread_mutex_destroy(&policy.lock);
}

/* Starts a program, reads what it writes, and opens it. */
static void start(const char *name)
{
    char path[4096], line[128];
    struct cdacq_error error;
    const char *build = getenv("CDACQ_BUILD_DIR");
    int ends[2];
    snprintf(path, sizeof path, "%s/tests/%s", build ? build : ".", name);
    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (!child) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    from_child = fdopen(ends[0], "r");
    while (fgets(line, sizeof line, from_child) && strcmp(line, "end\n") != 0) {
        struct note note;
        int other;
        ck_assert_uint_lt(note_count, NOTES_MAX);
        ck_assert_int_eq(sscanf(line, "%" SCNx64 " %" SCNu32 " %d", &note.address, &note.line, &other), 3);
        note.in_other_file = other;
        notes[note_count++] = note;
    }
    ck_assert_uint_eq(note_count, 5);
    if (live_open(child, &policy, true, false, &target, &error) < 0 ||
        !(modules = native_modules_create(target, &error)))
        ck_abort_msg("%s", error.message);
}

/* The last line that begins at or before an address. */
struct search {
    uint64_t address, last;
    struct native_line found;
};

static bool take_line(const struct native_line *line, void *context)
{
    struct search *search = context;
    ck_assert_uint_ge(line->begin, search->last);
    search->last = line->begin;
    if (line->begin <= search->address)
        search->found = *line;
    return true;
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = path ? strlen(path) : 0;
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

START_TEST(each_address_has_its_line)
{
    start(programs[_i]);
    for (size_t i = 0; i < note_count; i++) {
        struct search search = {.address = notes[i].address};
        bool unverified = true;
        native_modules_lines(modules, notes[i].address & ~UINT64_C(15), notes[i].address + 1, take_line, &search,
                             &unverified);
        ck_assert_uint_eq(search.found.line, notes[i].line);
        ck_assert_msg(ends_with(search.found.file, notes[i].in_other_file ? "folder/other.c" : "carrier/lines.c"), "%s",
                      search.found.file);
        ck_assert(!unverified);
    }
}
END_TEST

static bool count_line(const struct native_line *line, void *context)
{
    (void)line;
    ++*(unsigned *)context;
    return false;
}

START_TEST(a_visit_ends_when_it_is_asked_to)
{
    unsigned count = 0;
    bool unverified;
    start(programs[_i]);
    native_modules_lines(modules, notes[0].address, notes[0].address + 64, count_line, &count, &unverified);
    ck_assert_uint_eq(count, 1);
    native_modules_lines(modules, 0x1000, 0x2000, count_line, &count, &unverified); /* no image is there */
    ck_assert_uint_eq(count, 1);
}
END_TEST

/* Its code has no .eh_frame, and no frame pointer on which one could rely. */
START_TEST(a_stack_by_debug_frame)
{
    static const char *const names[] = {"wait_for_test", "inner", "outer", "main"};
    struct cdacq_error error;
    size_t found = 0;
    start(programs[_i]);
    if (target_threads(target, &threads, &error) < 0)
        ck_abort_msg("%s", error.message);
    struct registers registers = threads.items[0].registers;
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    struct native_frame_info info = {.is_signal = true};
    enum native_step step = NATIVE_STEPPED;
    while (step == NATIVE_STEPPED && found < ARRAY_SIZE(names)) {
        struct native_symbol symbol;
        struct reader reader;
        if (native_modules_symbol(modules, registers.values[machine->pc] - !info.is_signal, &symbol) && symbol.name &&
            (found || strcmp(symbol.name, names[0]) == 0)) {
            ck_assert_str_eq(symbol.name, names[found]);
            found++;
        }
        reader_init(&reader, target, machine->word_size, false);
        reader_begin(&reader, 2000);
        step = native_modules_step(modules, &reader, info.is_signal, &registers, &info);
    }
    ck_assert_uint_eq(found, ARRAY_SIZE(names));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("debug_sections");
    TCase *tc = tcase_create("debug_sections");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, each_address_has_its_line, 0, ARRAY_SIZE(programs));
    tcase_add_loop_test(tc, a_visit_ends_when_it_is_asked_to, 0, ARRAY_SIZE(programs));
    tcase_add_loop_test(tc, a_stack_by_debug_frame, 0, ARRAY_SIZE(programs));
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
