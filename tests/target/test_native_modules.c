/*
 * test_native_modules.c: the stack of a real program (tests/carrier/frames.c), live and from cores of it, against what
 * the program's own unwinder found and, where it is installed, against eu-stack.
 */
#include "target/native/native_modules.h"

#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "src/files/file_match.h"
#include "target/core.h"
#include "target/live.h"
#include "target/native/symbols.h"
#include "target/threads.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

enum { FRAME_MAX = 512, MAPPING_MAX = 128 };

#ifdef __x86_64__
enum { IS_X64 = true };
#else
enum { IS_X64 = false };
#endif

struct frame {
    uint64_t pc, sp;
    bool interrupted;
};

struct stack {
    struct frame frames[FRAME_MAX];
    size_t count;
    enum native_step end;
    struct cdacq_error error;
};

static struct target *target;
static struct native_modules *modules;
static struct file_policy policy;
static struct threads threads;
static struct elf_core core;
static struct stack recorded, walked;
static pid_t child;
static FILE *from_child;

static void setup(void)
{
    policy = (struct file_policy){.compare = compare_mapped_file, .identify = identify_mapped_file};
    pthread_mutex_init(&policy.lock, NULL);
    elf_core_init(&core, true, false);
    core.machine = EM_X86_64;
    child = 0;
    target = NULL;
    modules = NULL;
    from_child = NULL;
}

static void close_target(void)
{
    native_modules_destroy(modules);
    threads_deinit(&threads);
    target_destroy(target);
    modules = NULL;
    target = NULL;
}

static void teardown(void)
{
    close_target();
    if (from_child)
        fclose(from_child);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    child = 0;
    elf_core_deinit(&core);
    pthread_mutex_destroy(&policy.lock);
    test_dir_remove();
}

/* Starts the program and reads its own backtrace. */
static void start_program(const char *name, const char *a, const char *b)
{
    char path[4096], line[128];
    int ends[2];
    const char *build = getenv("CDACQ_BUILD_DIR");
    snprintf(path, sizeof path, "%s/tests/%s", build ? build : ".", name);
    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (!child) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        signal(SIGTERM, SIG_DFL);
        execl(path, path, a, b, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    from_child = fdopen(ends[0], "r");
    recorded = (struct stack){0};
    while (fgets(line, sizeof line, from_child) && strcmp(line, "end\n") != 0) {
        unsigned long pc, sp;
        int interrupted;
        ck_assert_int_eq(sscanf(line, "%lx %d %lx", &pc, &interrupted, &sp), 3);
        ck_assert_uint_lt(recorded.count, FRAME_MAX);
        recorded.frames[recorded.count++] = (struct frame){pc, sp, interrupted};
    }
}

static void start(const char *a, const char *b)
{
    start_program("frames", a, b);
    ck_assert_uint_gt(recorded.count, 200);
}

static void walk(const struct registers *from)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    struct registers registers = *from;
    struct native_frame_info info = {.is_signal = true}; /* the innermost frame was interrupted */
    struct reader reader;
    walked = (struct stack){.end = NATIVE_STEPPED};
    while (walked.end == NATIVE_STEPPED) {
        ck_assert_uint_lt(walked.count, FRAME_MAX);
        walked.frames[walked.count++] =
            (struct frame){registers.values[machine->pc], registers.values[machine->sp], info.is_signal};
        reader_init(&reader, target, machine->word_size, false);
        reader_begin(&reader, 2000);
        walked.end = native_modules_step(modules, &reader, info.is_signal, &registers, &info);
        enum cdacq_status status = reader_status(&reader, &walked.error);
        ck_assert_int_eq(status < 0, walked.end == NATIVE_FAILED);
    }
}

static void walk_thread(int tid)
{
    enum cdacq_status status = target_threads(target, &threads, &walked.error);
    ck_assert_msg(status == CDACQ_OK, "%s", walked.error.message);
    modules = native_modules_create(target, &walked.error);
    ck_assert_ptr_nonnull(modules);
    for (size_t i = 0; i < threads.count; i++)
        if (!tid ? threads.items[i].tid != child : threads.items[i].tid == tid)
            walk(&threads.items[i].registers);
    ck_assert_msg(walked.end == NATIVE_OUTERMOST, "after %zu frames: %d %s", walked.count, walked.end,
                  walked.error.message);
}

/* The frames around the innermost function, which went on after it wrote its own, are the same. */
static size_t check_walk(void)
{
    size_t first = 0;
    while (first < walked.count && walked.frames[first].pc != recorded.frames[1].pc)
        first++;
    ck_assert_uint_lt(first, walked.count);
    ck_assert_uint_eq(walked.count - first, recorded.count - 1);
    for (size_t i = 1; i < recorded.count; i++) {
        const struct frame *a = &recorded.frames[i], *b = &walked.frames[first + i - 1];
        ck_assert_uint_eq(a->pc, b->pc);
        ck_assert_uint_eq(a->sp, b->sp);
        ck_assert_int_eq(a->interrupted, b->interrupted);
    }
    return first - 1;
}

static const char *symbol_of(size_t frame)
{
    struct native_symbol symbol;
    const struct frame *at = &walked.frames[frame];
    return native_modules_symbol(modules, at->pc - !at->interrupted, &symbol) ? symbol.name : NULL;
}

/* Each function of the program, in order; repeated ones once. */
static void check_symbols(size_t first, const char *const *names)
{
    for (size_t i = first; *names; i++) {
        ck_assert_uint_lt(i, walked.count);
        const char *name = symbol_of(i);
        if (name && strcmp(name, *names) != 0 && i > first && strcmp(name, names[-1]) == 0)
            continue;
        if (strcmp(*names, "*") != 0)
            ck_assert_msg(name && strcmp(name, *names) == 0, "frame %zu: %s, not %s", i, name ? name : "-", *names);
        names++;
    }
}

static const char *const plain_names[] = {"capture",     "through_assembly", "realigned",
                                          "with_alloca", "never_returns",    "ends_with_a_call",
                                          "recursion",   "thread_main",      NULL};
/* "*": the C library's trampoline, which has no name without its debug file */
static const char *const signal_names[] = {"capture",          "through_assembly", "in_handler",  "*",
                                           "faulting",         "realigned",        "with_alloca", "never_returns",
                                           "ends_with_a_call", "recursion",        "thread_main", NULL};

static const struct {
    const char *a, *b;
    const char *const *names;
} programs[] = {
    {NULL, NULL, plain_names},     {"signal", NULL, signal_names},
    {"thread", NULL, plain_names}, {"signal", "restorer", signal_names},
    {"bare", NULL, plain_names},   {"bare", "signal", signal_names},
};

static void open_live(void)
{
    enum cdacq_status status = live_open(child, &policy, true, false, &target, &walked.error);
    ck_assert_msg(status == CDACQ_OK, "%s", walked.error.message);
}

START_TEST(of_a_process)
{
    start(programs[_i].a, programs[_i].b);
    open_live();
    walk_thread(programs[_i].a && strcmp(programs[_i].a, "thread") == 0 ? 0 : child);
    check_symbols(check_walk(), programs[_i].names);
}
END_TEST

/* Until the child has called pause(), after its last line. */
static void wait_for_pause(void)
{
    char path[64], state = '\0';
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    while (state != 'S') {
        FILE *stat = fopen(path, "r");
        ck_assert_ptr_nonnull(stat);
        ck_assert_int_eq(fscanf(stat, "%*d (bare) %c", &state), 1);
        fclose(stat);
        usleep(1000);
    }
}

/* Nothing calls the code at the entry point. */
START_TEST(of_a_process_without_libc)
{
    start_program("bare", NULL, NULL);
    wait_for_pause();
    open_live();
    walk_thread(child);
    ck_assert_uint_eq(walked.count, 2);
    ck_assert_str_eq(symbol_of(0), "wait_for_nothing");
    ck_assert_str_eq(symbol_of(1), "_start");
}
END_TEST

/* A symbol of unknown size goes on to the next one, or to the end of its section, if each function has a symbol. */
START_TEST(symbols_of_unknown_size)
{
    static const struct {
        Elf64_Ehdr header;
        Elf64_Shdr sections[2];
    } contents = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                             .e_shoff = sizeof(Elf64_Ehdr),
                             .e_shentsize = sizeof(Elf64_Shdr),
                             .e_shnum = 2},
                  .sections = {[1] = {.sh_type = SHT_PROGBITS, .sh_addr = 0x1000, .sh_size = 0x38}}};
    const struct bytes bytes = bytes_of_buffer(&contents, sizeof contents);
    struct elf_file file;
    static const char strings[] = "\0first\0sized\0last";
    static const Elf64_Sym table[] = {
        {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 0x1010},
        {.st_name = 7, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 0x1020, .st_size = 8},
        {.st_name = 13, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), .st_shndx = 1, .st_value = 0x1030},
    };
    static const struct {
        uint64_t vaddr;
        const char *complete, *exported;
    } cases[] = {{0x100f, NULL, NULL},       {0x1010, "first", "first"}, {0x101f, "first", NULL},
                 {0x1020, "sized", "sized"}, {0x1027, "sized", "sized"}, {0x1028, NULL, NULL},
                 {0x1030, "last", "last"},   {0x1031, "last", NULL},     {0x1037, "last", NULL},
                 {0x1038, NULL, NULL}};
    const struct image image = {.elf = {.wide = true},
                                .machine = EM_X86_64,
                                .segments = {{.vaddr = 0x1000, .memory_size = 0x1000, .executable = true}},
                                .segment_count = 1};
    ck_assert(elf_file_open(&bytes, &file));
    for (int complete = 0; complete < 2; complete++) {
        struct symbols symbols = {0};
        uint64_t offset;
        symbols_add(&symbols, &image, &file,
                    &(struct symbol_table){(const uint8_t *)table, sizeof table, {strings, sizeof strings}});
        symbols_seal(&symbols, complete);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            const char *expected = complete ? cases[i].complete : cases[i].exported;
            ck_assert_pstr_eq(symbols_find(&symbols, cases[i].vaddr, &offset), expected);
        }
        symbols_deinit(&symbols);
    }
}
END_TEST

/* ---- Cores ---- */

/* What a core of the program holds. */
enum contents { ALL, ALL_WITHOUT_FILES, ONLY_ANONYMOUS };

static void put_word(struct elf_buffer *desc, const struct registers *registers, unsigned number)
{
    elf_put_word(desc, number == REGISTER_NONE ? 0 : registers->values[number]);
}

static void put_thread(struct elf_core_segment *notes, const struct target_thread *thread)
{
    const struct register_machine *machine = register_machine_find(EM_X86_64);
    struct elf_buffer desc = {.wide = true};
    elf_put(&desc, NULL, 32);
    elf_put_int(&desc, (uint64_t)thread->tid, 4);
    elf_put(&desc, NULL, 12 + 64);
    for (size_t i = 0; i < 27; i++)
        put_word(&desc, &thread->registers, i < machine->kernel_count ? machine->kernel[i] : REGISTER_NONE);
    elf_put_word(&desc, 0);
    elf_note(notes, "CORE", NT_PRSTATUS, desc.data, desc.size);
    free(desc.data);
}

/* Copies the stopped process into a core; its path. */
static const char *write_core(enum contents contents)
{
    char path[64], line[4500], name[4096];
    static struct elf_mapping mappings[MAPPING_MAX];
    static void *copies[MAPPING_MAX];
    size_t mapping_count = 0, copy_count = 0, size;
    snprintf(path, sizeof path, "/proc/%d/maps", child);
    FILE *maps = fopen(path, "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) && copy_count < MAPPING_MAX) {
        unsigned long begin, end, offset;
        name[0] = '\0';
        ck_assert_int_ge(sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &begin, &end, &offset, name), 3);
        if (name[0] == '/')
            mappings[mapping_count++] = (struct elf_mapping){begin, end, offset / 4096, strdup(name)};
        bool dump = contents != ONLY_ANONYMOUS || name[0] != '/';
        uint8_t *copy = malloc(end - begin);
        struct iovec local = {copy, end - begin}, remote = {(void *)begin, end - begin};
        if (dump && process_vm_readv(child, &local, 1, &remote, 1, 0) == (ssize_t)(end - begin))
            elf_core_load(&core, begin, copy, end - begin, end - begin, strchr(line, 'w') ? PF_R | PF_W : PF_R);
        copies[copy_count++] = copy;
    }
    fclose(maps);
    /* One PT_NOTE, in the kernel's order: eu-stack reads no other. */
    struct elf_core_segment *notes = elf_core_notes(&core);
    struct elf_buffer auxv = {.wide = true}, process = {.wide = true};
    struct elf_buffer files = elf_mappings_desc(true, false, 4096, mappings, mapping_count);
    put_thread(notes, &threads.items[0]);
    elf_put(&process, NULL, 24);
    elf_put_int(&process, (uint64_t)child, 4);
    elf_put(&process, NULL, 108);
    elf_note(notes, "CORE", NT_PRPSINFO, process.data, process.size);
    elf_put_word(&auxv, AT_SYSINFO_EHDR);
    elf_put_word(&auxv, target->vdso);
    elf_put(&auxv, NULL, 16);
    elf_note(notes, "CORE", NT_AUXV, auxv.data, auxv.size);
    elf_note(notes, "CORE", NT_FILE, files.data, files.size);
    free(auxv.data);
    free(process.data);
    free(files.data);
    for (size_t i = 1; i < threads.count; i++)
        put_thread(notes, &threads.items[i]);
    uint8_t *file = elf_core_build(&core, &size);
    const char *written = test_file("core", file, size);
    free(file);
    for (size_t i = 0; i < copy_count; i++)
        free(copies[i]);
    for (size_t i = 0; i < mapping_count; i++)
        free((char *)(uintptr_t)mappings[i].path);
    return written;
}

/* eu-stack prints "#1  0x... - 1 name": what it finds for the program's first thread. */
static void check_eu_stack(const char *path)
{
    char command[4400], line[4096];
    snprintf(command, sizeof command, "eu-stack -n 0 --core %s 2>/dev/null", path);
    FILE *output = popen(command, "r");
    size_t count = 0;
    while (output && fgets(line, sizeof line, output)) {
        unsigned index;
        unsigned long pc;
        if (sscanf(line, "#%u %lx", &index, &pc) != 2)
            continue;
        if (index == 0 && count)
            break; /* the next thread */
        ck_assert_uint_lt(index, walked.count);
        ck_assert_uint_eq(pc, walked.frames[index].pc);
        count++;
    }
    if (output)
        pclose(output);
    if (count) /* installed */
        ck_assert_uint_eq(count, walked.count);
}

START_TEST(of_a_core)
{
    enum contents contents = (enum contents)(_i % 3);
    start(_i / 3 ? "signal" : NULL, NULL);
    open_live();
    walk_thread(child);
    size_t first = check_walk();
    struct stack live = walked;
    const char *path = write_core(contents);
    close_target();
    policy.no_own_paths = contents == ALL_WITHOUT_FILES;
    ck_assert_int_eq(core_open(path, &policy, false, &target, &walked.error), CDACQ_OK);
    walk_thread(child);
    ck_assert_uint_eq(walked.count, live.count);
    ck_assert_mem_eq(walked.frames, live.frames, live.count * sizeof *live.frames);
    if (contents != ALL_WITHOUT_FILES)
        check_symbols(first, _i / 3 ? signal_names : plain_names);
    else /* exported symbols are in memory */
        ck_assert_str_eq(symbol_of(walked.count - 2), "__libc_start_main");
    struct native_symbol symbol;
    ck_assert(native_modules_symbol(modules, walked.frames[first].pc - 1, &symbol));
    ck_assert_int_eq(symbol.unverified, contents == ONLY_ANONYMOUS); /* nothing of the file is in the core */
    if (contents == ALL)
        check_eu_stack(path);
}
END_TEST

/* ---- What is missing ---- */

START_TEST(addresses_without_an_image)
{
    struct native_symbol symbol;
    struct native_frame_info info;
    struct reader reader;
    start(NULL, NULL);
    open_live();
    walk_thread(child);
    struct registers registers = threads.items[0].registers;
    uint64_t stack = registers.values[7];
    static const uint64_t nowhere[] = {1, 0x1000, UINT64_MAX, UINT64_MAX / 2};
    for (size_t i = 0; i <= ARRAY_SIZE(nowhere); i++) {
        struct registers at = registers;
        register_set(&at, 16, i < ARRAY_SIZE(nowhere) ? nowhere[i] : stack);
        struct registers before = at;
        reader_init(&reader, target, 8, false);
        ck_assert(!native_modules_symbol(modules, at.values[16], &symbol));
        ck_assert_int_eq(native_modules_step(modules, &reader, true, &at, &info), NATIVE_UNKNOWN);
        ck_assert_mem_eq(&at, &before, sizeof at);
        ck_assert(!reader_failed(&reader));
    }
    /* A return address of 0 ends a stack; a jump to 0 does not. */
    register_set(&registers, 16, 0);
    ck_assert_int_eq(native_modules_step(modules, &reader, false, &registers, &info), NATIVE_OUTERMOST);
    ck_assert_int_eq(native_modules_step(modules, &reader, true, &registers, &info), NATIVE_UNKNOWN);
}
END_TEST

START_TEST(registers_that_are_missing)
{
    struct native_frame_info info;
    struct reader reader;
    start(NULL, NULL);
    open_live();
    walk_thread(child);
    for (unsigned number = 0; number < 17; number++) {
        struct registers registers = threads.items[0].registers, before;
        registers_keep(&registers, ~(UINT64_C(1) << number));
        before = registers;
        reader_init(&reader, target, 8, false);
        enum native_step step = native_modules_step(modules, &reader, true, &registers, &info);
        if (number == 7 || number == 16) { /* the stack pointer, the program counter */
            ck_assert_int_eq(step, NATIVE_FAILED);
            ck_assert_mem_eq(&registers, &before, sizeof registers);
        } else {
            ck_assert_int_eq(step, NATIVE_STEPPED);
        }
    }
    /* Without its stack a frame has no caller, and the message names an address. */
    struct registers registers = threads.items[0].registers;
    register_set(&registers, 7, 0x10);
    reader_init(&reader, target, 8, false);
    ck_assert_int_eq(native_modules_step(modules, &reader, true, &registers, &info), NATIVE_FAILED);
    ck_assert_int_eq(reader_status(&reader, &walked.error), CDACQ_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(walked.error.message, "a return address: no memory at 0x"));
}
END_TEST

START_TEST(the_kernels_image)
{
    struct native_symbol symbol = {0};
    start(NULL, NULL);
    open_live();
    walk_thread(child);
    ck_assert_uint_ne(target->vdso, 0);
    bool found = false;
    for (uint64_t at = target->vdso; at < target->vdso + 0x2000 && !found; at += 4)
        found = native_modules_symbol(modules, at, &symbol) && symbol.name &&
                strcmp(symbol.name, "__vdso_clock_gettime") == 0;
    ck_assert(found);
    ck_assert_str_eq(symbol.module, "[vdso]");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("native_modules");
    TCase *tc = tcase_create("native_modules");
    tcase_add_checked_fixture(tc, setup, teardown);
    suite_add_tcase(s, tc);
    if (!IS_X64) {
        puts("left out: native_modules: the program's frames are compared with the registers of x86-64");
        return s;
    }
    tcase_add_loop_test(tc, of_a_process, 0, ARRAY_SIZE(programs));
    tcase_add_loop_test(tc, of_a_core, 0, 6);
    tcase_add_test(tc, of_a_process_without_libc);
    tcase_add_test(tc, symbols_of_unknown_size);
    tcase_add_test(tc, addresses_without_an_image);
    tcase_add_test(tc, registers_that_are_missing);
    tcase_add_test(tc, the_kernels_image);
    return s;
}

CHECK_MAIN(suite)
