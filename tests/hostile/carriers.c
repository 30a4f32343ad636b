/*
 * carriers.c: the commands of the tool, in this process, on cores that reach them by other ways than a mapping of the
 * file: read with pread, from a callback that returns pointers, from one that copies. All ways give one answer. Then
 * single calls of the callbacks fail, each in turn: an answer may lack something, but what it has is right.
 *
 * The program is linked so that commands that open a core call __wrap_cdacq_target_open_core().
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/cli/base/arguments.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/lookup/opened_target.h"
#include "tests/fuzz/mutant_bases.h"
#include "tests/support/check_main.h"
#include "util/file.h"

enum { ARGUMENTS_MAX = 24, IPS = 12, LINE = 256 };

enum way { BY_MAPPING, BY_PREAD, BY_SPANS, BY_COPIES, WAY_COUNT };

static struct {
    enum way way;
    uint64_t calls, failing; /* the number of the call of the callback that fails; 0: none */
} carried;

/* ---- Carriers -------------------------------------------------------------------------------------------------- */

enum cdacq_status __real_cdacq_target_open_core(const char *path, const struct cdacq_options *options,
                                                struct cdacq_target **ret, struct cdacq_error *err);
enum cdacq_status __wrap_cdacq_target_open_core(const char *path, const struct cdacq_options *options,
                                                struct cdacq_target **ret, struct cdacq_error *err);

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **bytes, void *context)
{
    const struct base *base = context;
    const struct part *part = base_part_at(base, address);
    if (++carried.calls == carried.failing || !part)
        return false;
    *begin = MAX(part->begin, align_down(address, LINE)); /* narrow, so that there are many calls */
    *end = MIN(part->begin + part->size, *begin + LINE);
    *bytes = base->bytes + part->offset + (*begin - part->begin);
    return true;
}

static size_t copy_at(uint64_t address, void *buffer, size_t size, void *context)
{
    const struct base *base = context;
    size_t done = 0;
    if (++carried.calls == carried.failing)
        return 0;
    for (const struct part *part; done < size && (part = base_part_at(base, address + done)) != NULL;) {
        uint64_t at = address + done - part->begin;
        size_t n = (size_t)MIN(part->size - at, (uint64_t)(size - done));
        memcpy((uint8_t *)buffer + done, base->bytes + part->offset + at, n);
        done += n;
    }
    return done;
}

/* What the core file has beside memory: of the base with the same index. */
static struct extras {
    struct cdacq_target *target;
    struct cdacq_memory_thread *threads;
    struct cdacq_registers *registers;
    size_t thread_count;
} extras[BASE_MAX];

static int add_thread(const struct cdacq_thread *thread, void *context)
{
    struct extras *more = context;
    size_t count = more->thread_count + 1;
    more->threads = reallocarray(more->threads, count, sizeof *more->threads);
    more->registers = reallocarray(more->registers, count, sizeof *more->registers);
    if (!more->threads || !more->registers)
        exit(EXIT_FAILURE);
    more->registers[count - 1] = *thread->registers;
    more->threads[count - 1] = (struct cdacq_memory_thread){.size = sizeof *more->threads,
                                                            .tid = thread->tid,
                                                            .signal = thread->signal,
                                                            .died = thread->died,
                                                            .name = thread->name ? strdup(thread->name) : NULL};
    more->thread_count = count;
    return 0;
}

static void open_extras(size_t i)
{
    const struct cdacq_options options = {.size = sizeof options};
    struct cdacq_session *session;
    struct cdacq_error error;
    if (__real_cdacq_target_open_core(bases[i].path, &options, &extras[i].target, &error) < 0 ||
        cdacq_session_create(extras[i].target, &session, &error) < 0) {
        fprintf(stderr, "%s: %s\n", bases[i].name, error.message);
        exit(EXIT_FAILURE);
    }
    (void)cdacq_session_visit_threads(session, add_thread, &extras[i], NULL); /* a core may have none */
    for (size_t n = 0; n < extras[i].thread_count; n++)
        extras[i].threads[n].registers = &extras[i].registers[n];
    cdacq_session_destroy(session);
}

static void close_extras(size_t i)
{
    for (size_t n = 0; n < extras[i].thread_count; n++)
        free((char *)(uintptr_t)extras[i].threads[n].name);
    free(extras[i].threads);
    free(extras[i].registers);
    cdacq_target_close(extras[i].target);
}

static enum cdacq_status open_memory(size_t i, const struct cdacq_options *options, struct cdacq_target **ret,
                                     struct cdacq_error *err)
{
    const struct base *base = &bases[i];
    const struct target *core = extras[i].target->memory;
    struct cdacq_memory memory = {
        .size = sizeof memory,
        .context = (void *)(uintptr_t)base,
        .span_at = carried.way == BY_SPANS ? span_at : NULL,
        .read = carried.way == BY_COPIES ? copy_at : NULL,
        .mappings = base->mappings,
        .mapping_count = base->mapping_count,
        .pid = core->pid,
        .elf_machine = core->elf_machine,
        .threads = extras[i].threads,
        .thread_count = extras[i].thread_count,
    };
    enum cdacq_status status = cdacq_target_open_memory(&memory, options, ret, err);
    for (size_t n = 0; status >= 0 && n < core->pdbs.count; n++) /* a snapshot's */
        ck_assert(target_pdbs_append(&(*ret)->memory->pdbs, core->pdbs.items[n]));
    return status;
}

enum cdacq_status __wrap_cdacq_target_open_core(const char *path, const struct cdacq_options *options,
                                                struct cdacq_target **ret, struct cdacq_error *err)
{
    struct cdacq_options own = *options;
    if (carried.way == BY_PREAD)
        own.flags |= CDACQ_OPEN_PREAD;
    for (size_t i = 0; carried.way >= BY_SPANS && i < base_count; i++)
        if (strcmp(bases[i].path, path) == 0)
            return open_memory(i, &own, ret, err);
    return __real_cdacq_target_open_core(path, &own, ret, err);
}

/* ---- Commands -------------------------------------------------------------------------------------------------- */

/* Followed by a NUL. */
struct kept {
    char *data;
    size_t length;
};

struct outcome {
    int status;
    struct kept result, messages;
};

static void outcome_deinit(struct outcome *outcome)
{
    free(outcome->result.data);
    free(outcome->messages.data);
}

static struct kept read_all(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    struct kept bytes = {calloc(1, (size_t)st.st_size + 1), (size_t)st.st_size};
    ck_assert_ptr_nonnull(bytes.data);
    ck_assert_uint_eq(file_read_at(fd, 0, bytes.data, bytes.length), bytes.length);
    return bytes;
}

/* Carriers of memory look for no files, and say less about them: what follows "no memory at ADDRESS" is cut off. */
static void cut_reasons(struct kept *bytes)
{
    static const char mark[] = "no memory at ";
    char *to = bytes->data;
    for (const char *from = bytes->data, *end = from + bytes->length; from < end;) {
        if ((size_t)(end - from) > sizeof mark && memcmp(from, mark, sizeof mark - 1) == 0) {
            size_t kept = strcspn(from, ";\"\n");
            memmove(to, from, kept);
            to += kept;
            from += kept;
            from += *from == ';' ? strcspn(from, "\"\n") : 0;
        } else
            *to++ = *from++;
    }
    *to = '\0';
    bytes->length = (size_t)(to - bytes->data);
}

/* A row of the table below: words, of which CORE, IPS and OUT are replaced. */
struct invoked {
    const char *words[8];
    bool core_only; /* it also shows what only a core file has */
    bool binary;
};

/* The names of these styles are whole or missing; those in C# have formal parameters for arguments that are missing. */
static const struct invoked rows[] = {
    {{"ip2method", "CORE", "--names=sos", "IPS"}, false, false},
    {{"ip2method", "CORE", "--json", "IPS"}, false, false},
    {{"inspect", "CORE", "--names=il", "IPS"}, false, false},
    {{"inspect", "CORE", "--json", "IPS"}, false, false},
    {{"methods", "CORE", "--r2r=all", "--stubs", "--names=sos"}, false, false},
    {{"methods", "CORE", "--json", "--names=source"}, false, false},
    {{"perfmap", "CORE", "--r2r=all", "--stubs"}, false, false},
    {{"jitdump", "CORE", "--r2r=all"}, false, true},
    {{"elf", "CORE", "--code"}, false, true},
    {{"descriptor", "CORE"}, false, false},
    {{"stack", "CORE", "--managed", "--names=sos"}, false, false}, /* symbols of native code come from other files */
    {{"stack", "CORE", "--managed", "--json"}, false, false},
    {{"report", "CORE"}, true, false},
    {{"report", "CORE", "--json"}, true, false},
    {{"info", "CORE"}, true, false},
    {{"snapshot", "CORE", "--stacks", "-o", "OUT"}, true, true},
};

static void add_ips(char texts[IPS][24], char **arguments, int *count, const struct base *base)
{
    struct random random = {11};
    for (int i = 0; i < IPS; i++) {
        snprintf(texts[i], sizeof texts[i], "%llx", (unsigned long long)base_any_target(base, &random));
        arguments[(*count)++] = texts[i];
    }
}

static struct outcome run(const struct invoked *row, const struct base *base)
{
    char *arguments[ARGUMENTS_MAX] = {"carriers"}, ips[IPS][24], out[64];
    struct command_line line;
    struct outcome outcome = {.status = EXIT_USAGE};
    int count = 1, result = memfd_create("result", 0), messages = memfd_create("messages", 0);
    int error = dup(STDERR_FILENO), output = dup(STDOUT_FILENO);
    ck_assert(result >= 0 && messages >= 0 && error >= 0 && output >= 0);
    snprintf(out, sizeof out, "/dev/shm/cdacq-carriers-%d", getpid());
    for (int i = 0; row->words[i]; i++)
        if (strcmp(row->words[i], "CORE") == 0)
            arguments[count++] = (char *)(uintptr_t)base->path;
        else if (strcmp(row->words[i], "IPS") == 0)
            add_ips(ips, arguments, &count, base);
        else if (strcmp(row->words[i], "OUT") == 0)
            arguments[count++] = out;
        else
            arguments[count++] = (char *)(uintptr_t)row->words[i];
    dup2(messages, STDERR_FILENO);
    dup2(result, STDOUT_FILENO);
    optind = 0;
    carried.calls = 0;
    message_set_subject(NULL); /* forgets the messages of the command before: each process of the tool runs one */
    if (arguments_parse(count, arguments, &line) == ARGUMENTS_RUN)
        outcome.status = line.command->run(line.options);
    arguments_deinit(&line);
    dup2(error, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    close(error);
    close(output);
    int file = open(out, O_RDONLY | O_CLOEXEC);
    outcome.result = read_all(file < 0 ? result : file);
    unlink(out);
    if (file >= 0)
        close(file);
    outcome.messages = read_all(messages);
    close(result);
    close(messages);
    if (!row->binary)
        cut_reasons(&outcome.result);
    return outcome;
}

static void assert_ended(const struct outcome *outcome, const struct invoked *row)
{
    const char *messages = outcome->messages.data;
    ck_assert_msg(outcome->status >= 0 && outcome->status <= 2, "%s: exit %d", row->words[0], outcome->status);
    ck_assert_msg(outcome->status != 2 || *messages, "%s fails without a reason", row->words[0]);
    for (const char *line = messages; *line; line = strchr(line, '\n') + 1)
        ck_assert_msg(!strncmp(line, "cdacq: ", 7) && strchr(line, '\n'), "%s: %s", row->words[0], line);
}

static bool same(const struct kept *a, const struct kept *b)
{
    return a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

static void show_difference(const struct kept *a, const struct kept *b)
{
    size_t at = 0, line = 0;
    while (at < a->length && at < b->length && a->data[at] == b->data[at]) {
        line = a->data[at] == '\n' ? at + 1 : line;
        at++;
    }
    fprintf(stderr, "< %.300s\n> %.300s\n", a->data + line, b->data + line);
}

START_TEST(every_carrier_gives_one_answer)
{
    const struct base *base = &bases[_i];
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].words[0], "snapshot") == 0)
            continue; /* holds what was read, which the way decides */
        carried.way = BY_MAPPING;
        carried.failing = 0;
        struct outcome mapped = run(&rows[i], base);
        assert_ended(&mapped, &rows[i]);
        for (enum way way = BY_PREAD; way < (rows[i].core_only ? BY_SPANS : WAY_COUNT); way++) {
            carried.way = way;
            struct outcome other = run(&rows[i], base);
            assert_ended(&other, &rows[i]);
            bool equal = other.status == mapped.status && same(&mapped.result, &other.result);
            if (!equal)
                show_difference(&mapped.result, &other.result);
            ck_assert_msg(equal, "%s %s, way %d: exits %d and %d, %zu and %zu bytes", rows[i].words[0], base->name, way,
                          mapped.status, other.status, mapped.result.length, other.result.length);
            outcome_deinit(&other);
        }
        outcome_deinit(&mapped);
    }
}
END_TEST

/* ---- Failing reads --------------------------------------------------------------------------------------------- */

static bool has_word(const char *line, size_t size, const char *word, size_t length)
{
    for (const char *at = line; (at = memmem(at, size - (size_t)(at - line), word, length)) != NULL; at++)
        if ((at == line || at[-1] == ' ') && (at + length == line + size || at[length] == ' '))
            return true;
    return false;
}

/* The same, or the kind of code without its tier: "[jit]" for "[jit Tier1]". */
static bool has_word_or_kind(const char *line, size_t size, const char *word, size_t length)
{
    bool is_kind = length > 2 && word[0] == '[' && word[length - 1] == ']';
    return has_word(line, size, word, length) || (is_kind && has_word(line, size, word, length - 1));
}

/* Where the word begins that identifies a line: the address. Lines of a stack begin with a number. */
static const char *key_of(const char *line)
{
    const char *key = strstr(line, "0x");
    const char *end = strchr(line, '\n');
    return key && (!end || key < end) ? key : line;
}

/* Whether all words of a line are in the line of the same address in `whole`. */
static bool is_part_of(const char *line, const struct kept *whole)
{
    const char *key = key_of(line), *end = strchrnul(line, '\n');
    size_t key_length = strcspn(key, " \n");
    for (const char *at = whole->data; (at = strstr(at, "0x")) != NULL; at += 2) {
        if (strncmp(at, key, key_length) != 0 || (at[key_length] != ' ' && at[key_length] != '\n'))
            continue;
        const char *begin = at, *stop = strchrnul(at, '\n');
        while (begin > whole->data && begin[-1] != '\n')
            begin--;
        bool all = true;
        for (const char *word = key; all && word < end;) {
            size_t length = MIN(strcspn(word, " \n"), (size_t)(end - word));
            all = !length || has_word_or_kind(begin, (size_t)(stop - begin), word, length);
            word += length + 1;
        }
        if (all)
            return true;
    }
    return false;
}

/* Whether the method of a frame is in `whole`, perhaps at another place: a Frame may have the address of its call. */
static bool is_method_of(const char *line, const struct kept *whole)
{
    const char *name = strchr(key_of(line), ' '), *end = strstr(line, " +0x");
    CLEANUP_FREE char *copy =
        line[0] == '#' && name && end && name < end ? strndup(name, (size_t)(end - name + 4)) : NULL;
    return copy && strstr(whole->data, copy);
}

/* A line that says that something is missing, or that it rests on a guess. */
static bool is_honest(const char *line)
{
    CLEANUP_FREE char *copy = strndup(line, strcspn(line, "\n"));
    return !copy || !*copy || !strncmp(copy, "TID ", 4) || strstr(copy, "? ") || strstr(copy, "(incomplete") ||
           strstr(copy, "... ");
}

/* Whether the line of a descriptor is in `whole`, where the runtime and not a supplement says the same. */
static bool is_of_runtime(const char *line, const struct kept *whole)
{
    static const char origin[] = "\"origin\": \"";
    const char *at = strstr(line, origin), *end = at ? strchr(at + sizeof origin - 1, '"') : NULL;
    char copy[512];
    if (!end || strncmp(at + sizeof origin - 1, "supplement ", 11) != 0)
        return false;
    snprintf(copy, sizeof copy, "%.*s%sruntime%s", (int)(at - line), line, origin, end);
    return strstr(whole->data, copy);
}

/* A line of `whole` with the same address. */
static const char *line_like(const char *line, const struct kept *whole)
{
    CLEANUP_FREE char *key = strndup(key_of(line), strcspn(key_of(line), " \n"));
    const char *found = key ? strstr(whole->data, key) : NULL;
    return found ? found : "nothing";
}

/* Text without JSON: each line is right as far as it goes. */
static void assert_partial(const struct outcome *outcome, const struct kept *whole, const struct invoked *row,
                           uint64_t failing)
{
    if (outcome->status == 2)
        return;
    for (const char *line = outcome->result.data; *line; line = *strchrnul(line, '\n') ? strchr(line, '\n') + 1 : "") {
        CLEANUP_FREE char *copy = strndup(line, strcspn(line, "\n"));
        ck_assert_ptr_nonnull(copy);
        if (*copy && copy[strlen(copy) - 1] == ',') /* the last of its object now */
            copy[strlen(copy) - 1] = '\0';
        ck_assert_msg(strstr(whole->data, copy) || is_honest(line) || is_part_of(line, whole) ||
                          is_method_of(line, whole) || is_of_runtime(copy, whole),
                      "%s, call %llu fails: %.400s\n%.400s\ninstead of %.200s", row->words[0],
                      (unsigned long long)failing, copy, outcome->messages.data, line_like(line, whole));
    }
}

static bool is_json(const struct invoked *row)
{
    for (int i = 0; row->words[i]; i++)
        if (strcmp(row->words[i], "--json") == 0)
            return true;
    return false;
}

/* The first calls, and then some of the others, as time allows. */
static void fail_in_turn(const struct invoked *row, const struct base *base, double seconds)
{
    carried.failing = 0;
    struct outcome whole = run(row, base);
    uint64_t calls = carried.calls, done = 0;
    double end = cpu_seconds() + seconds;
    uint64_t step = 1;
    ck_assert_uint_gt(calls, 0);
    for (carried.failing = 1; carried.failing <= calls; carried.failing += step, done++) {
        uint64_t failing = carried.failing;
        struct outcome outcome = run(row, base);
        assert_ended(&outcome, row);
        if (!row->binary && !row->core_only && !is_json(row))
            assert_partial(&outcome, &whole.result, row, failing);
        outcome_deinit(&outcome);
        double left = end - cpu_seconds();
        if (left < 0)
            break;
        double each = (seconds - left) / (double)(done + 1);
        step = 1 + (uint64_t)((double)(calls - failing) * each / left);
    }
    outcome_deinit(&whole);
    carried.failing = 0;
    if (getenv("CDACQ_FAULTS_VERBOSE"))
        fprintf(stderr, "%s %s: %llu of %llu calls failed\n", row->words[0], base->name, (unsigned long long)done,
                (unsigned long long)calls);
}

START_TEST(what_is_left_when_a_read_fails_is_right)
{
    const char *all = getenv("CDACQ_FAULTS_SECONDS");
    double seconds = all ? strtod(all, NULL) : 0.02;
    for (enum way way = BY_SPANS; way < WAY_COUNT; way++)
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            carried.way = way;
            fail_in_turn(&rows[i], &bases[_i], seconds);
        }
}
END_TEST

int main(void)
{
    static const char *const names[] = {"net10-x64", "crash-net10-x64", "net8-x64", "crash-net9-x64"};
    const char *fixtures = getenv("CDACQ_FIXTURES");
    Suite *suite = suite_create("carriers");
    TCase *tests = tcase_create("carriers");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s/core", fixtures ? fixtures : "tests/fixtures", names[i]);
        bases_add_file(path);
    }
    carried.way = BY_MAPPING;
    bases_list_mappings();
    for (size_t i = 0; i < base_count; i++)
        open_extras(i);
    tcase_add_loop_test(tests, every_carrier_gives_one_answer, 0, (int)base_count);
    tcase_add_loop_test(tests, what_is_left_when_a_read_fails_is_right, 0, (int)base_count);
    tcase_set_timeout(tests, 600);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    for (size_t i = 0; i < base_count; i++)
        close_extras(i);
    return failed != 0;
}
