/*
 * Real ReadyToRun images of several architectures, as crossgen2 has compiled them, loaded into a mock process. Next to
 * each NAME.dll is NAME.txt: what the compiler's own map and tests/dotnet/r2r_image.py, which shares no code with the
 * library, state about every function. In tests/fixtures/r2r, or in the folder that CDACQ_R2R_IMAGES names.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/execution_manager.h"
#include "contracts/ready_to_run/r2r_image.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "contracts/code_info/gc_info.h"
#include "contracts/code_lookup/platform_metadata.h"
#include "contracts/execution_manager/block_function.h"
#include "tests/support/fixture_file.h"
#include "tests/support/mock_support.h"

#define expect(condition, ip)                                                            \
    do {                                                                                 \
        if (!(condition))                                                                \
            ck_abort_msg("at rva %#" PRIx64 ": not so: %s", (uint64_t)(ip), #condition); \
    } while (0)

enum { IMAGE_MAX = 32 };

static char *names[IMAGE_MAX]; /* without ".dll" */
static int name_count;

#define RID_OF_STUB UINT32_MAX /* a stub that continues an async method */

/* A line of NAME.txt: a function, in the table's order. Addresses are RVAs. */
struct function {
    uint32_t begin, length;
    uint32_t method, hot_size, cold_begin, cold_size, rid; /* 0: an instance; RID_OF_STUB: no method at all */
    uint32_t funclet_begin, is_funclet, is_filter;
    uint32_t unwind, unwind_size;
    uint32_t gc_info, gc_version, debug_info;
};

/* After the functions, sorted by method: an exception clause. Fields after `method` are relative to it. */
struct clause {
    uint32_t method, flags, try_start, try_end, handler_start, handler_end, token_or_filter;
};

struct loaded {
    struct function *functions;
    struct clause *clauses;
    uint32_t count, clause_count;
    char architecture[16];
    struct mock *mock;
    struct mock_r2r_file file;
    struct cdacq_target *target;
};

static const char *folder(void)
{
    static char path[4096];
    const char *fixtures = getenv("CDACQ_FIXTURES"), *given = getenv("CDACQ_R2R_IMAGES");
    if (given)
        return given;
    snprintf(path, sizeof path, "%s/r2r", fixtures ? fixtures : "tests/fixtures");
    return path;
}

static int is_image(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".dll") == 0;
}

static void find_images(void)
{
    struct dirent **entries;
    int count = scandir(folder(), &entries, is_image, alphasort);
    for (int i = 0; i < count; i++) {
        if (name_count < IMAGE_MAX)
            names[name_count++] = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 4);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static uint8_t *read_file(const char *name, const char *suffix, size_t *ret_size)
{
    char path[4096 + 300];
    snprintf(path, sizeof path, "%s/%s%s", folder(), name, suffix);
    return file_at(path, ret_size);
}

/* Lines of `field_count` hexadecimal numbers each. */
static void *read_lines(const char **at, uint32_t count, size_t field_count)
{
    uint32_t *fields = calloc(count + 1, field_count * sizeof *fields);
    ck_assert_ptr_nonnull(fields);
    for (size_t i = 0; i < count * field_count; i++) {
        char *end;
        fields[i] = (uint32_t)strtoul(*at, &end, 16);
        ck_assert_ptr_ne(end, *at);
        *at = end;
    }
    return fields;
}

static void read_expected(struct loaded *image, const char *name)
{
    size_t size;
    char *text = (char *)read_file(name, ".txt", &size);
    const char *at = strchr(text, '\n');
    ck_assert_int_eq(sscanf(text, "# %15[^,], ReadyToRun %*u.%*u, %u functions, %u clauses", image->architecture,
                            &image->count, &image->clause_count),
                     3);
    ck_assert_uint_gt(image->count, 0);
    image->functions = read_lines(&at, image->count, sizeof *image->functions / sizeof(uint32_t));
    image->clauses = read_lines(&at, image->clause_count, sizeof *image->clauses / sizeof(uint32_t));
    ck_assert_str_eq(at, "\n");
    free(text);
}

/* With `prepared`, the runtime's map has every method, each with a MethodDesc of its own. */
static void load(struct loaded *image, int i, bool prepared)
{
    size_t size;
    read_expected(image, names[i]);
    const char *architecture = image->architecture;
    bool arm = strcmp(architecture, "arm") == 0, x86 = strcmp(architecture, "x86") == 0;
    struct mock_options options = {
        .pointer_size = arm || x86 ? 4 : 8,
        .unwind = strcmp(architecture, "x64") == 0 ? MOCK_UNWIND_END_ADDRESS
                  : x86                            ? MOCK_UNWIND_FUNCTION_LENGTH
                                                   : MOCK_UNWIND_HEADER,
        .code_pointer_flags = arm,
    };
    image->mock = mock_create(&options);
    uint8_t *bytes = read_file(names[i], ".dll", &size);
    image->file = mock_r2r_load(
        image->mock, &(struct mock_r2r_file_options){.bytes = bytes, .size = size, .bucket_count = image->count + 5});
    free(bytes);
    ck_assert_uint_eq(image->file.function_count, image->count);
    for (uint32_t j = 0; prepared && j < image->count; j++) {
        uint64_t start = image->file.begin + image->functions[j].method;
        if (j == 0 || image->functions[j].method > image->functions[j - 1].method)
            ck_assert(mock_ptr_hash_map_insert(image->mock, image->file.entry_point_map, start, 0x10000 + 8 * j));
    }
    image->target = mock_publish_and_open(image->mock);
}

static void unload(struct loaded *image)
{
    cdacq_target_close(image->target);
    mock_destroy(image->mock);
    free(image->functions);
    free(image->clauses);
}

static bool is_cold(const struct function *function)
{
    return function->cold_size && function->begin >= function->cold_begin;
}

static uint32_t offset_of(const struct function *function, uint32_t rva)
{
    return is_cold(function) ? function->hot_size + (rva - function->cold_begin) : rva - function->method;
}

/* Calls `check` for the first, the middle and the last byte of each function. */
static void each_address(struct loaded *image,
                         void (*check)(struct loaded *image, const struct function *function, uint32_t rva,
                                       void *context),
                         void *context)
{
    /* On arm an odd address is a code pointer with its Thumb bit. */
    uint32_t mask = image->target->layout.code_pointer_flags & CODE_POINTER_ARM32_THUMB ? ~1u : ~0u;
    for (uint32_t i = 0; i < image->count; i++) {
        const struct function *function = &image->functions[i];
        check(image, function, function->begin, context);
        check(image, function, (function->begin + function->length / 2) & mask, context);
        check(image, function, (function->begin + function->length - 1) & mask, context);
    }
}

static void check_block(struct loaded *image, const struct function *function, uint32_t rva,
                        const struct code_block *block)
{
    uint64_t base = image->file.begin;
    expect(block->kind == CDACQ_CODE_READY_TO_RUN, rva);
    expect(block->start == base + function->method, rva);
    expect(block->hot_size == function->hot_size, rva);
    expect(block->cold_start == (function->cold_size ? base + function->cold_begin : 0), rva);
    expect(block->cold_size == function->cold_size, rva);
    expect(block->cold == is_cold(function), rva);
    expect(block->offset == offset_of(function, rva), rva);
}

/* ---- Walking: a look-up of one address ---- */

static const struct r2r_image *image_of(struct loaded *image, struct reader *reader)
{
    struct range_section section = {0};
    ck_assert(range_section_map_find(reader, image->target->manager.map, image->file.begin, &section));
    const struct r2r_image *opened = r2r_images_get(&image->target->manager.managers.images, reader, &section);
    ck_assert_ptr_nonnull(opened);
    return opened;
}

/* What the public API does not report: the size of unwind data, and the contents of GC info. */
static void check_unwind_and_gc(struct loaded *image, const struct function *function, uint32_t rva,
                                const struct code_block *block, struct reader *reader)
{
    struct block_function place;
    uint32_t size = 0, version = 0;
    uint64_t base = image->file.begin, address = 0, gc_info = 0;
    expect(block_function_find(reader, block, &place), rva);
    expect(place.start == base + function->funclet_begin, rva);
    expect(unwind_table_length(reader, &place.table, place.index) == function->length, rva);
    expect(unwind_table_data(reader, &place.table, place.index, &address, &size), rva);
    expect(address == base + function->unwind && size == function->unwind_size, rva);
    expect(block->manager->gc_info(reader, block, &gc_info, &version), rva);
    expect(gc_info == base + function->gc_info && version == function->gc_version, rva);
    expect(gc_info_code_length(reader, gc_info, version) == function->hot_size + function->cold_size, rva);
    expect(!reader_failed(reader), rva);
}

static void check_walk(struct loaded *image, const struct function *function, uint32_t rva, void *context)
{
    struct reader *reader = context;
    struct code_block block;
    reader_begin(reader, FUEL_LOOKUP);
    expect(execution_manager_find(&image->target->manager, reader, image->file.begin + rva, &block), rva);
    check_block(image, function, rva, &block);
    bool is_stub = function->rid == RID_OF_STUB;
    expect(block.entry_kind == (is_stub         ? ENTRY_RESUMPTION_STUB
                                : function->rid ? ENTRY_METHODDEF
                                                : ENTRY_INSTANCE),
           rva);
    expect(is_stub || !function->rid || block.entry == function->rid, rva);
    check_unwind_and_gc(image, function, rva, &block, reader);
}

START_TEST(every_function_of_an_image)
{
    struct loaded image = {0};
    load(&image, _i, false);
    struct reader reader = mock_reader(image.target);
    each_address(&image, check_walk, &reader);
    unload(&image);
}
END_TEST

/* ---- The ExecutionManager contract, by the public API ---- */

struct clause_check {
    const struct clause *next, *end;
    uint32_t method;
};

static int check_clause(const struct cdacq_exception_clause *found, void *context)
{
    struct clause_check *check = context;
    const struct clause *clause = check->next++;
    expect(clause < check->end && clause->method == check->method, check->method);
    expect(found->flags == clause->flags, check->method);
    expect(found->try_start == clause->try_start && found->try_end == clause->try_end, check->method);
    expect(found->handler_start == clause->handler_start && found->handler_end == clause->handler_end, check->method);
    bool typed = found->kind == CDACQ_CLAUSE_TYPED, filter = found->kind == CDACQ_CLAUSE_FILTER;
    expect(filter == (clause->flags % 8 == 1) && typed == (clause->flags % 8 == 0), check->method);
    expect(found->filter_offset == (filter ? clause->token_or_filter : 0), check->method);
    expect(found->class_token == (typed ? clause->token_or_filter : 0), check->method);
    return 0;
}

static void check_clauses(struct loaded *image, struct cdacq_session *session, const struct cdacq_block *block,
                          uint32_t method)
{
    const struct clause *clause = image->clauses, *end = image->clauses + image->clause_count;
    while (clause < end && clause->method < method)
        clause++;
    struct clause_check check = {clause, end, method};
    expect(cdacq_block_visit_exception_clauses(block, session, check_clause, &check, NULL) == CDACQ_OK, method);
    expect(check.next == end || check.next->method != method, method);
}

static void check_contract(struct loaded *image, const struct function *function, uint32_t rva, void *context)
{
    struct cdacq_session *session = context;
    struct cdacq_block block;
    struct cdacq_error error = {0};
    uint32_t number = (uint32_t)(function - image->functions), version;
    uint64_t base = image->file.begin, hot_size, cold_start, cold_size, address;
    bool is_funclet, is_filter, has_flag_byte;
    expect(cdacq_session_code_block_at(session, base + rva, &block, &error) == CDACQ_OK, rva);
    expect(cdacq_block_get_start_address(&block) == base + function->method, rva);
    expect(cdacq_block_get_relative_offset(&block) == offset_of(function, rva), rva);
    expect(cdacq_block_get_unwind_info_base_address(&block) == base, rva);
    if (cdacq_block_get_method_region_info(&block, session, &hot_size, &cold_start, &cold_size, &error) < 0)
        ck_abort_msg("at rva %#x: %s", rva, error.message);
    expect(hot_size == function->hot_size && cold_size == function->cold_size, rva);
    expect(cold_start == (cold_size ? base + function->cold_begin : 0), rva);
    expect(cdacq_block_get_funclet_start_address(&block, session, &address, &error) == CDACQ_OK, rva);
    expect(address == base + function->funclet_begin, rva);
    expect(cdacq_block_is_funclet(&block, session, &is_funclet, &error) == CDACQ_OK, rva);
    expect(is_funclet == function->is_funclet, rva);
    if (cdacq_block_is_filter_funclet(&block, session, &is_filter, &error) < 0)
        ck_abort_msg("at rva %#x: %s", rva, error.message);
    expect(is_filter == function->is_filter, rva);
    expect(cdacq_block_get_unwind_info(&block, session, &address, &error) == CDACQ_OK, rva);
    expect(address == image->file.functions + (uint64_t)number * mock_size_of(image->mock, "RuntimeFunction"), rva);
    expect(cdacq_block_get_gc_info(&block, session, &address, &version, &error) == CDACQ_OK, rva);
    expect(address == base + function->gc_info && version == function->gc_version, rva);
    if (cdacq_block_get_debug_info(&block, session, &address, &has_flag_byte, &error) < 0)
        ck_abort_msg("at rva %#x: %s", rva, error.message);
    expect(address == (function->debug_info ? base + function->debug_info : 0) && !has_flag_byte, rva);
    if (rva == function->begin)
        check_clauses(image, session, &block, function->method);
}

START_TEST(the_contract)
{
    struct loaded image = {0};
    load(&image, _i, false);
    struct cdacq_session *session = mock_session(image.target);
    each_address(&image, check_contract, session);
    cdacq_session_destroy(session);
    unload(&image);
}
END_TEST

/* Between functions there is padding, thunks or data, which no method owns. */
START_TEST(nothing_between_functions)
{
    struct loaded image = {0};
    struct code_block block;
    size_t gaps = 0;
    load(&image, _i, false);
    struct reader reader = mock_reader(image.target);
    for (uint32_t i = 0; i < image.count; i++) {
        uint32_t end = image.functions[i].begin + image.functions[i].length;
        if (i + 1 < image.count && image.functions[i + 1].begin == end)
            continue;
        reader_begin(&reader, FUEL_LOOKUP);
        bool found = execution_manager_find(&image.target->manager, &reader, image.file.begin + end, &block);
        expect(!found || block.kind == CDACQ_CODE_METHOD_CALL_THUNK, end);
        expect(!reader_failed(&reader), end);
        gaps++;
    }
    ck_assert_uint_gt(gaps, 0);
    unload(&image);
}
END_TEST

/* ---- Prepared methods: by the runtime's map and the length in the GC info, without the image's tables ---- */

static void check_prepared(struct loaded *image, const struct function *function, uint32_t rva, void *context)
{
    struct reader *reader = context;
    struct code_block block;
    reader_begin(reader, FUEL_LOOKUP);
    expect(execution_manager_find(&image->target->manager, reader, image->file.begin + rva, &block), rva);
    check_block(image, function, rva, &block);
    expect(block.method_desc >= 0x10000, rva);
    check_unwind_and_gc(image, function, rva, &block, reader);
}

START_TEST(prepared_methods)
{
    struct loaded image = {0};
    load(&image, _i, true);
    struct reader reader = mock_reader(image.target);
    bool split = false;
    for (uint32_t i = 0; i < image.count; i++)
        split |= image.functions[i].cold_size != 0;
    each_address(&image, check_prepared, &reader);
    /* The tables were not needed; otherwise this would not test the GC info. */
    ck_assert(split || !atomic_load(&((struct r2r_image *)(uintptr_t)image_of(&image, &reader))->entries));
    unload(&image);
}
END_TEST

/* ---- The public API, many addresses at once: by the index of all methods ---- */

struct batch {
    uint64_t *ips;
    size_t count;
    const struct function **functions;
};

static void add_to_batch(struct loaded *image, const struct function *function, uint32_t rva, void *context)
{
    struct batch *batch = context;
    batch->functions[batch->count] = function;
    batch->ips[batch->count++] = image->file.begin + rva;
}

START_TEST(many_addresses)
{
    struct loaded image = {0};
    load(&image, _i, false);
    struct batch batch = {calloc(3 * (size_t)image.count, sizeof *batch.ips), 0,
                          calloc(3 * (size_t)image.count, sizeof *batch.functions)};
    struct cdacq_method *methods = calloc(3 * (size_t)image.count, sizeof *methods);
    each_address(&image, add_to_batch, &batch);
    struct cdacq_session *session = mock_session(image.target);
    methods->size = sizeof *methods;
    cdacq_session_methods_at(session, batch.ips, batch.count, methods, NULL);
    for (size_t i = 0; i < batch.count; i++) {
        const struct function *function = batch.functions[i];
        const struct cdacq_method *method = &methods[i];
        uint32_t rva = (uint32_t)(batch.ips[i] - image.file.begin);
        expect(method->answer == CDACQ_ANSWER_MANAGED && method->kind == CDACQ_CODE_READY_TO_RUN, rva);
        expect(method->code_start == image.file.begin + function->method, rva);
        expect(method->code_size == function->hot_size && method->cold_size == function->cold_size, rva);
        expect(method->offset == offset_of(function, rva) && method->cold == is_cold(function), rva);
        expect(is_cold(function) || method->funclet_start == image.file.begin + function->funclet_begin, rva);
        uint32_t rid = function->rid == RID_OF_STUB ? 0 : function->rid;
        expect(!function->rid || method->token == (rid ? 0x06000000 | rid : 0), rva);
        if (!method->name)
            ck_abort_msg("at rva %#x: no name: %s", rva, method->error);
    }
    cdacq_session_destroy(session);
    free(methods);
    free(batch.functions);
    free(batch.ips);
    unload(&image);
}
END_TEST

START_TEST(there_are_images)
{
    ck_assert_int_gt(name_count, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("r2r_images");
    TCase *tc = tcase_create("images");
    find_images();
    tcase_add_test(tc, there_are_images);
    tcase_add_loop_test(tc, every_function_of_an_image, 0, name_count);
    tcase_add_loop_test(tc, the_contract, 0, name_count);
    tcase_add_loop_test(tc, nothing_between_functions, 0, name_count);
    tcase_add_loop_test(tc, prepared_methods, 0, name_count);
    tcase_add_loop_test(tc, many_addresses, 0, name_count);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
