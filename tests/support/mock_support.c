#include "tests/support/mock_support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "cdacq.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"

struct mock *mock_of_arch(int arch, uint64_t seed)
{
    return mock_of_version(arch, seed, 2);
}

struct mock *mock_of_version(int arch, uint64_t seed, unsigned version)
{
    struct mock_options options = {
        .pointer_size = arch & 1 ? 8 : 4,
        .big_endian = arch & 2,
        .seed = seed,
        .version = version,
        .interpreter = version == MOCK_NET_11 && seed & 1,
        .unwind = (enum mock_unwind)(seed % (arch & 1 ? 5 : 3)),
        .span_size = seed % 5 == 3   ? 64
                     : seed % 5 == 4 ? 7
                                     : 0,
    };
    struct mock *mock = mock_create(&options);
    ck_assert_ptr_nonnull(mock);
    return mock;
}

void mock_check(const struct mock *mock)
{
    if (mock_error(mock))
        ck_abort_msg("mock: %s", mock_error(mock));
}

/* The core file lives until the process ends: a mapped core needs no file descriptor. */
static enum cdacq_status open_core(struct mock *mock, const struct cdacq_options *options, struct cdacq_target **ret,
                                   struct cdacq_error *err)
{
    char path[64];
    int fd = memfd_create("core", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!mock_write_core(mock, path, err))
        ck_abort_msg("%s", err->message);
    enum cdacq_status status = cdacq_target_open_core(path, options, ret, err);
    close(fd);
    return status;
}

/* ---- Memory that is copied ---- */

static size_t read_span(uint64_t address, void *buffer, size_t size, void *context)
{
    static unsigned calls;
    const struct cdacq_memory *memory = context;
    uint64_t begin, end;
    const void *bytes;
    size_t done = 0;
    while (done < size && memory->span_at(address + done, &begin, &end, &bytes, memory->context)) {
        size_t n = (size_t)MIN(end - (address + done), (uint64_t)(size - done));
        memcpy((uint8_t *)buffer + done, (const uint8_t *)bytes + (address + done - begin), n);
        done += n;
    }
    return done < size && calls++ & 1 ? 0 : done;
}

static enum cdacq_status open_read(struct mock *mock, const struct cdacq_options *options, struct cdacq_target **ret,
                                   struct cdacq_error *err)
{
    const struct cdacq_memory *memory = mock_memory(mock);
    struct cdacq_memory copied = {
        .size = sizeof copied,
        .context = (void *)(uintptr_t)memory,
        .read = read_span,
        .mappings = memory->mappings,
        .mapping_count = memory->mapping_count,
    };
    return cdacq_target_open_memory(&copied, options, ret, err);
}

/* ---- Processes ---- */

enum { PROCESS_MAX = 8, PROCESS_TRIES = 16 };

static const char process_directory[] = "/tmp/cdacq-process-XXXXXX";

/*
 * The last processes that were started, each with a directory for its files; the oldest ends when there are too many.
 */
static struct process {
    pid_t pid;
    char directory[sizeof process_directory];
} processes[PROCESS_MAX];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static void end_process(struct process *process)
{
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
    }
    if (process->directory[0])
        nftw(process->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    *process = (struct process){0};
}

static void end_processes(void)
{
    for (size_t i = 0; i < PROCESS_MAX; i++)
        end_process(&processes[i]);
}

/* Beside this program. */
static void undump_path(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    ck_assert_int_gt(n, 0);
    path[n] = '\0';
    char *name = strrchr(path, '/') + 1;
    snprintf(name, size - (size_t)(name - path), "undump");
}

/* The exit code, or 0 once the process is ready; *ret is its id. */
static int start_process(char *core, char *directory, pid_t *ret)
{
    extern char **environ;
    char path[4096], text[16];
    char *arguments[] = {path, core, directory, NULL};
    int ends[2], status;
    posix_spawn_file_actions_t actions;
    undump_path(path, sizeof path);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (posix_spawn(ret, path, &actions, NULL, arguments, environ) != 0)
        ck_abort_msg("%s cannot be started", path);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text);
    close(ends[0]);
    if (n > 0)
        return 0;
    waitpid(*ret, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static enum cdacq_status open_process(struct mock *mock, const struct cdacq_options *options, struct cdacq_target **ret,
                                      struct cdacq_error *err)
{
    static unsigned next;
    struct process *process = &processes[next % PROCESS_MAX];
    char core[sizeof process->directory + 8];
    enum { TAKEN = 3 };
    if (!next++)
        atexit(end_processes);
    end_process(process);
    memcpy(process->directory, process_directory, sizeof process_directory);
    ck_assert_ptr_nonnull(mkdtemp(process->directory));
    snprintf(core, sizeof core, "%s/core", process->directory);
    if (!mock_write_core(mock, core, err))
        ck_abort_msg("%s", err->message);
    int result = TAKEN;
    for (int i = 0; i < PROCESS_TRIES && result == TAKEN; i++)
        result = start_process(core, process->directory, &process->pid);
    if (result != 0) {
        process->pid = 0;
        ck_abort_msg("undump: exit code %d", result);
    }
    unlink(core);
    return cdacq_target_open_pid(process->pid, options, ret, err);
}

const char *mock_path_of(const char *path)
{
    size_t fixed = strlen(process_directory) - strlen("XXXXXX");
    return strncmp(path, process_directory, fixed) == 0 ? path + strlen(process_directory) : path;
}

enum carrier mock_carriers(void)
{
    static enum carrier count;
    char byte = 'x', copy = 0;
    int ends[2];
    if (count)
        return count;
    if (sizeof(void *) < sizeof(uint64_t)) {
        printf("left out: mocks as processes: those of 64 bits do not fit into a program of 32\n");
        return count = CARRIER_PROCESS;
    }
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        close(ends[1]);
        _exit(read(ends[0], &copy, 1) > 0); /* until we have done */
    }
    struct iovec local = {&copy, 1}, remote = {&byte, 1};
    bool permitted = process_vm_readv(child, &local, 1, &remote, 1, 0) == 1 && copy == byte;
    int problem = errno;
    close(ends[0]);
    close(ends[1]);
    waitpid(child, NULL, 0);
    const char *required = getenv("CDACQ_REQUIRE_PTRACE");
    if (!permitted && required && strcmp(required, "1") == 0)
        ck_abort_msg("CDACQ_REQUIRE_PTRACE=1, and another process's memory cannot be read: %s", strerror(problem));
    if (!permitted && !left_out_emulated("mocks as processes", "no process_vm_readv"))
        fprintf(stderr, "mocks as processes: skipped: another process's memory cannot be read: %s\n",
                strerror(problem));
    count = permitted ? CARRIER_COUNT : CARRIER_PROCESS;
    return count;
}

enum cdacq_status mock_try_open(struct mock *mock, enum carrier carrier, const struct cdacq_options *options,
                                struct cdacq_target **ret, struct cdacq_error *err)
{
    struct cdacq_options pread = {.size = sizeof pread};
    mock_check(mock);
    if (options)
        pread = *options;
    pread.flags |= CDACQ_OPEN_PREAD;
    switch (carrier) {
    case CARRIER_MEMORY:
        return cdacq_target_open_memory(mock_memory(mock), options, ret, err);
    case CARRIER_READ:
        return open_read(mock, options, ret, err);
    case CARRIER_CORE:
        return open_core(mock, options, ret, err);
    case CARRIER_CORE_PREAD:
        return open_core(mock, &pread, ret, err);
    case CARRIER_PROCESS:
        return open_process(mock, options, ret, err);
    case CARRIER_COUNT:
        break;
    }
    return CDACQ_ERR_ARGUMENT;
}

struct cdacq_target *mock_open(struct mock *mock, enum carrier carrier, const struct cdacq_options *options)
{
    struct cdacq_target *target = NULL;
    struct cdacq_error error = {0};
    if (mock_try_open(mock, carrier, options, &target, &error) < 0)
        ck_abort_msg("%s", error.message);
    return target;
}

struct cdacq_target *mock_publish_and_open(struct mock *mock)
{
    mock_publish(mock, NULL);
    return mock_open(mock, CARRIER_MEMORY, NULL);
}

enum cdacq_status mock_open_fails(struct mock *mock, const struct cdacq_options *options, struct cdacq_error *err)
{
    struct cdacq_target *target = NULL;
    mock_check(mock);
    *err = (struct cdacq_error){0};
    enum cdacq_status status = cdacq_target_open_memory(mock_memory(mock), options, &target, err);
    ck_assert_int_lt(status, 0);
    ck_assert_ptr_null(target);
    ck_assert_int_eq(err->status, status);
    ck_assert_int_ne(err->message[0], '\0');
    return status;
}

struct reader mock_reader(struct cdacq_target *target)
{
    struct reader reader;
    reader_init_fields(&reader, target->memory, &target->layout, target->descriptor_info.pointer_size,
                       target->descriptor_info.big_endian);
    return reader;
}

struct cdacq_session *mock_session(struct cdacq_target *target)
{
    struct cdacq_session *session = NULL;
    struct cdacq_error error;
    if (cdacq_session_create(target, &session, &error) < 0)
        ck_abort_msg("%s", error.message);
    return session;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (x ^ x >> 32) % bound;
}

/* ---- The sample process ---- */

/* Metadata of one type, N.T, with static methods M1() to Mn(). */
static uint8_t *sample_metadata(size_t *ret_size)
{
    static const uint8_t signature[] = {0, 0, 1};     /* static void () */
    static const uint8_t generic[] = {0x10, 1, 0, 1}; /* the same with a type parameter */
    struct metadata_writer writer;
    metadata_writer_init(&writer);
    uint32_t blob = metadata_writer_blob(&writer, signature, sizeof signature);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "T"),
                 metadata_writer_string(&writer, "N"), 0, 1, 1);
    for (int i = 1; i <= SAMPLE_METHODS; i++) {
        char name[16];
        snprintf(name, sizeof name, "M%d", i);
        METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x16, metadata_writer_string(&writer, name), blob, 1);
    }
    uint32_t rid = METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x16, metadata_writer_string(&writer, "G"),
                                metadata_writer_blob(&writer, generic, sizeof generic), 1);
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, rid << 1 | 1, metadata_writer_string(&writer, "U"));
    uint8_t *metadata = metadata_writer_finish(&writer, ret_size);
    metadata_writer_deinit(&writer);
    return metadata;
}

enum { GENERIC_RID = SAMPLE_METHODS + 1 };

static void add_range(struct sample_process *sample, uint64_t begin, uint64_t end)
{
    ck_assert_uint_lt(sample->range_count, SAMPLE_RANGES);
    sample->ranges[sample->range_count].begin = begin;
    sample->ranges[sample->range_count++].end = end;
}

enum { REMAINDER_BITS = 4 }; /* of a token in its MethodDesc, so that a type's methods need several token ranges */

/* MethodDescs in chunks of one token range each, or just numbers. */
static void make_method_descs(struct sample_process *sample, uint64_t module, uint64_t *ret, bool types)
{
    uint64_t table = types ? mock_method_table(sample->mock, module, 2) : 0, stride = 0, first = 0;
    uint32_t in_range = 1 << REMAINDER_BITS, chunk = 1;
    for (uint32_t rid = 1; rid <= SAMPLE_METHODS; rid++) {
        if (types && (rid == 1 || rid % in_range == 0)) {
            first = mock_method_descs(sample->mock, table, rid, in_range - rid % in_range, &stride);
            chunk = rid;
        }
        ret[rid - 1] = types ? first + (rid - chunk) * stride : 0x1000 + rid * 8;
    }
}

enum { CLAUSES = 4 };

/* Up to CLAUSES clauses of every kind; a filter's offset is mostly that of the first funclet, at `funclet`. */
static size_t random_clauses(struct random *random, uint64_t funclet, bool jit, struct mock_clause *ret)
{
    static const uint32_t kinds[] = {MOCK_CLAUSE_TYPED, MOCK_CLAUSE_FILTER, MOCK_CLAUSE_FINALLY, MOCK_CLAUSE_FAULT,
                                     MOCK_CLAUSE_CACHED_CLASS};
    size_t count = random_below(random, 2) ? 0 : 1 + random_below(random, CLAUSES);
    for (size_t i = 0; i < count; i++) {
        uint32_t flags = kinds[random_below(random, ARRAY_SIZE(kinds) - !jit)] |
                         (random_below(random, 3) ? 0 : MOCK_CLAUSE_DUPLICATED);
        ret[i] = (struct mock_clause){
            .flags = flags,
            .try_start = (uint32_t)random_below(random, 100),
            .try_end = 100 + (uint32_t)random_below(random, 100),
            .handler_start = 200 + (uint32_t)random_below(random, 100),
            .handler_end = 300 + (uint32_t)random_below(random, 100),
            .what = flags & MOCK_CLAUSE_FILTER ? funclet + (random_below(random, 3) ? 0 : 1)
                                               : 0x01000001 + random_below(random, 500),
        };
    }
    return count;
}

/* Methods of all sizes, alone and side by side, with stubs among them, some of which are freed again. */
static void fill_heap(struct sample_process *sample, struct mock_heap *heap, struct random *random)
{
    uint64_t starts[64];
    size_t count = 0;
    while (count < ARRAY_SIZE(starts) && heap->end - heap->cursor > 0x3000) {
        uint64_t funclets[4], size = 1 + random_below(random, count % 9 == 4 ? 0x1800 : 300);
        struct mock_clause clauses[CLAUSES];
        size_t clause_count = random_clauses(random, align_up(size, 4), true, clauses);
        struct mock_method method = {
            .size = clause_count ? align_up(size, 4) : size,
            .clauses = clauses,
            .clause_count = clause_count,
            .no_debug_info = !random_below(random, 5),
            .no_gc_info = !random_below(random, 5),
            .funclets = funclets,
            .funclet_count = random_below(random, 3) ? 0 : 1 + random_below(random, ARRAY_SIZE(funclets)),
            .method_desc = random_below(random, 20) ? sample->method_descs[0][random_below(random, SAMPLE_METHODS)]
                                                    : sample->dynamic_method_desc,
            .alignment = random_below(random, 3) ? 32 : 4 << random_below(random, 4),
            .skip = random_below(random, 3) ? 0 : random_below(random, count % 11 == 3 ? 0x900 : 100),
            .tail = random_below(random, 3) ? 0 : random_below(random, 300),
        };
        for (size_t i = 0; i < ARRAY_SIZE(funclets); i++)
            funclets[i] = 1 + random_below(random, 90);
        starts[count++] = random_below(random, 6) ? mock_method(heap, &method)
                                                  : mock_stub(heap, (unsigned)random_below(random, SAMPLE_STUB_KINDS),
                                                              1 + random_below(random, 700));
    }
    for (size_t i = 0; i < count; i++)
        if (!random_below(random, 5))
            mock_code_free(heap, starts[i]);
    add_range(sample, heap->begin, heap->end);
}

static void add_heaps(struct sample_process *sample, struct random *random)
{
    static const struct mock_heap_options heaps[] = {{.size = 0x30000},
                                                     {.size = 0x5000, .collectible = true, .map_slack = 0x10},
                                                     {.size = 0x4000},
                                                     {.size = 0x4000}};
    for (size_t i = 0; i < ARRAY_SIZE(heaps); i++) {
        struct mock_heap *heap = mock_heap_create(sample->mock, &heaps[i]);
        mock_check(sample->mock);
        fill_heap(sample, heap, random);
        if (i == 3)
            mock_section_delete(sample->mock, heap->section);
    }
    mock_heap_create(sample->mock, &(struct mock_heap_options){.size = 0x1000}); /* never used */
}

static void add_other_sections(struct sample_process *sample, struct random *random, bool interpreter)
{
    uint64_t begin;
    for (unsigned kind = 3; kind < 6; kind++) {
        mock_range_list(sample->mock, 0x1800, kind, kind == 4, &begin);
        add_range(sample, begin, begin + 0x1800);
    }
    if (interpreter)
        fill_heap(sample,
                  mock_heap_create(sample->mock, &(struct mock_heap_options){.size = 0x8000, .interpreter = true}),
                  random);
}

/* One method of an image: with funclets, cold parts, padding, prepared or not at random. */
static void add_image_method(struct mock_r2r *image, const uint64_t *method_descs, struct random *random,
                             unsigned tables, bool split, uint32_t rid)
{
    uint64_t sizes[6];
    uint8_t instance[] = {0x04, GENERIC_RID, 1, 0x08}; /* G<int> */
    bool is_instance = tables & MOCK_R2R_INSTANCES && (!(tables & MOCK_R2R_METHODDEFS) || !random_below(random, 4));
    bool prepared = !tables || !random_below(random, 3);
    struct mock_clause clauses[CLAUSES];
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        sizes[i] = 1 + random_below(random, 200);
    size_t clause_count = random_clauses(random, align_up(sizes[0], 4), false, clauses);
    if (clause_count)
        sizes[0] = align_up(sizes[0], 4);
    mock_r2r_method(image, &(struct mock_r2r_method){
                               .hot = sizes,
                               .hot_count = 1 + (random_below(random, 3) ? 0 : random_below(random, 3)),
                               .cold = sizes + 3,
                               .cold_count = !split || random_below(random, 4) ? 0 : 1 + random_below(random, 3),
                               .skip = random_below(random, 2) ? 0 : random_below(random, 80),
                               .method_desc = prepared ? method_descs[rid - 1] : 0,
                               .rid = is_instance ? 0 : rid,
                               .instance = is_instance ? instance : NULL,
                               .instance_size = sizeof instance,
                               .fixups = random_below(random, 2),
                               .clauses = clauses,
                               .clause_count = clause_count,
                               .no_debug_info = !random_below(random, 5),
                           });
}

static void add_images(struct sample_process *sample, struct random *random, const void *metadata, size_t size,
                       bool types)
{
    enum { ALL = MOCK_R2R_METHODDEFS | MOCK_R2R_INSTANCES };
    static const unsigned tables[] = {MOCK_R2R_NO_HEADER, MOCK_R2R_METHODDEFS, MOCK_R2R_INSTANCES, ALL, ALL};
    static const char *const paths[] = {"/mock/none.dll", "/mock/defs.dll", "/mock/instances.dll", "/mock/all.dll",
                                        "/mock/unsplit.dll"};
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        struct mock_r2r *image =
            mock_r2r_create(sample->mock, &(struct mock_r2r_options){.path = paths[i],
                                                                     .tables = tables[i],
                                                                     .thunk_size = i % 2 ? 0x60 : 0,
                                                                     .bucket_count = i == 0   ? 17
                                                                                     : i == 3 ? 23
                                                                                              : 0,
                                                                     .composite = i == 2,
                                                                     .sentinel_counted = i == 1,
                                                                     .metadata = metadata,
                                                                     .metadata_size = size});
        mock_check(sample->mock);
        make_method_descs(sample, image->module, sample->method_descs[1 + i], types);
        for (uint32_t rid = 1; rid <= SAMPLE_METHODS; rid += 1 + (uint32_t)random_below(random, i ? 3 : 2))
            add_image_method(image, sample->method_descs[1 + i], random, tables[i], i < 4, rid);
        mock_r2r_finish(image);
        mock_check(sample->mock);
        add_range(sample, image->begin, image->end);
        sample->unsplit = image;
    }
}

struct sample_process sample_build(int arch, uint64_t seed, unsigned version, bool types)
{
    struct sample_process sample = {.mock = mock_of_version(arch, seed, version)};
    struct random random = {seed * 16 + (uint64_t)arch * 4 + version};
    size_t size;
    uint8_t *metadata = sample_metadata(&size);
    mock_global(sample.mock, "MethodDescTokenRemainderBitCount", REMAINDER_BITS);
    sample.module = mock_module(
        sample.mock, &(struct mock_module_options){
                         .path = "/mock/jit.dll", .metadata = metadata, .metadata_size = size, .flat = seed & 1});
    sample.dynamic_method_desc = mock_dynamic_method_desc(sample.mock, "Emitted");
    make_method_descs(&sample, sample.module, sample.method_descs[0], types);
    add_heaps(&sample, &random);
    add_other_sections(&sample, &random, version != MOCK_NET_11 || seed & 1);
    add_images(&sample, &random, metadata, size, types);
    free(metadata);
    mock_check(sample.mock);
    return sample;
}

void sample_destroy(struct sample_process *sample)
{
    mock_destroy(sample->mock);
}

const char *sample_name(const struct sample_process *sample, const struct mock_function *function)
{
    static char name[32];
    uint32_t rid = function->rid;
    if (function->code == MOCK_CODE_R2R && !rid && !function->method_desc)
        return "N.T.G<int>()";
    if (function->code != MOCK_CODE_R2R && function->method_desc == sample->dynamic_method_desc)
        return "dynamicClass.Emitted(...)";
    /* A MethodDesc takes precedence over an entry in the table of instances. */
    for (size_t i = 0; i < ARRAY_SIZE(sample->method_descs); i++)
        for (uint32_t j = 0; !rid && j < SAMPLE_METHODS; j++)
            if (function->method_desc == sample->method_descs[i][j])
                rid = j + 1;
    snprintf(name, sizeof name, "N.T.M%u()", rid);
    return name;
}

enum cdacq_code_kind sample_code_kind(const struct mock_function *fact)
{
    switch (fact->code) {
    case MOCK_CODE_JIT:
        return CDACQ_CODE_JITTED;
    case MOCK_CODE_R2R:
        return CDACQ_CODE_READY_TO_RUN;
    case MOCK_CODE_INTERPRETER:
        return CDACQ_CODE_INTERPRETER;
    case MOCK_CODE_THUNK:
        return CDACQ_CODE_METHOD_CALL_THUNK;
    case MOCK_CODE_STUB:
    case MOCK_CODE_RANGE_LIST:
        break;
    }
    enum cdacq_code_kind kind = CDACQ_CODE_UNKNOWN;
    while (kind < CDACQ_CODE_KIND_COUNT && strcmp(cdacq_code_kind_text(kind), fact->stub_kind) != 0)
        kind++;
    return kind;
}

void lend_session(struct cdacq_session *ret, struct cdacq_target *target, const struct reader *reader,
                  const struct module_cache *modules)
{
    static const struct module_files no_files;
    *ret = (struct cdacq_session){0};
    resolver_init(&ret->resolver, target, no_files);
    ret->resolver.reader = *reader;
    ret->resolver.modules = *modules;
    ret->resolver.modules.reader = &ret->resolver.reader;
}

void give_session_back(struct cdacq_session *session, struct module_cache *modules, struct reader *reader)
{
    static const struct module_cache none;
    *modules = session->resolver.modules; /* which has opened modules since */
    modules->reader = reader;
    session->resolver.modules = none;
    resolver_deinit(&session->resolver);
}
