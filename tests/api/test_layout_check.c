/*
 * test_layout_check.c: a mock of .NET 11 with a name renamed, a contract's version raised, or a list relaid. Opening
 * fails or the check of the layout says so, in one line that has the name, and what does not depend on it is right.
 */
#include <stdlib.h>

#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/mock_support.h"

enum { METHODS = 3, THREADS = 3, FIRST_TID = 41, SEEDS = 2, FIRST_TYPE = 2 };

struct process {
    struct mock *mock;
    uint64_t methods[METHODS], descs[METHODS], threads[THREADS];
    uint64_t store, module, string, header;
};

/* ---- The process ---- */

static void add_core_library(struct process *process)
{
    struct metadata_writer writer;
    size_t size;
    metadata_writer_init(&writer);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "String"),
                 metadata_writer_string(&writer, "System"), 0, 1, 1);
    uint8_t *metadata = metadata_writer_finish(&writer, &size);
    metadata_writer_deinit(&writer);
    process->module =
        mock_module(process->mock, &(struct mock_module_options){.metadata = metadata, .metadata_size = size});
    free(metadata);
    process->string = mock_alloc(process->mock, 8, 8);
    mock_write_pointer(process->mock, process->string, mock_method_table(process->mock, process->module, FIRST_TYPE));
    mock_global(process->mock, "StringMethodTable", process->string);
}

/* A Thread leads to the next Thread. */
static void add_threads(struct process *process)
{
    struct mock *mock = process->mock;
    uint64_t variable = mock_alloc(mock, 8, 8), next = 0;
    process->store = mock_new(mock, "ThreadStore", 0);
    for (unsigned i = THREADS; i--;) {
        process->threads[i] = mock_new(mock, "Thread", 0);
        mock_set(mock, process->threads[i], "Thread.Id", i + 1);
        mock_set(mock, process->threads[i], "Thread.OSId", FIRST_TID + i);
        mock_set(mock, process->threads[i], "Thread.Frame", UINT64_MAX);
        mock_set(mock, process->threads[i], "Thread.LinkNext", next);
        next = process->threads[i];
    }
    mock_set(mock, process->store, "ThreadStore.FirstThreadLink", next);
    mock_set(mock, process->store, "ThreadStore.ThreadCount", THREADS);
    mock_write_pointer(mock, variable, process->store);
    mock_global(mock, "ThreadStore", variable);
}

/* `seed`: an even one has the layout of 11.0.0. */
static struct process make_process(uint64_t seed)
{
    struct process process = {.mock = mock_create(&(struct mock_options){.seed = seed, .version = MOCK_NET_11})};
    ck_assert_ptr_nonnull(process.mock);
    struct mock_heap *heap = mock_heap_create(process.mock, &(struct mock_heap_options){.size = 0x10000});
    for (unsigned i = 0; i < METHODS; i++) {
        process.descs[i] = mock_dynamic_method_desc(process.mock, "Method");
        process.methods[i] = mock_method(heap, &(struct mock_method){.size = 60 + i, .method_desc = process.descs[i]});
    }
    add_core_library(&process);
    add_threads(&process);
    return process;
}

/* ---- What is said of it ---- */

/* The text of the failure to open, or of the check; "" if nothing is said. Checks the methods if it opens. */
static void ask(struct process *process, bool all_methods, char *ret, size_t size)
{
    struct cdacq_memory_thread threads[THREADS];
    struct cdacq_memory memory = *mock_memory(process->mock);
    struct cdacq_target *target;
    struct cdacq_error error = {0};
    mock_check(process->mock);
    for (unsigned i = 0; i < THREADS; i++)
        threads[i] = (struct cdacq_memory_thread){.size = sizeof threads[i], .tid = FIRST_TID + (int)i};
    memory.threads = threads;
    memory.thread_count = THREADS;
    ret[0] = '\0';
    if (cdacq_target_open_memory(&memory, NULL, &target, &error) < 0) {
        snprintf(ret, size, "%s", error.message);
        return;
    }
    struct cdacq_session *session = mock_session(target);
    if (cdacq_session_check_layout(session, &error) < 0)
        snprintf(ret, size, "%s", error.message);
    for (unsigned i = 0; i < METHODS; i++) {
        struct cdacq_method method = {.size = sizeof method};
        if (cdacq_session_method_at(session, process->methods[i] + 7, &method, &error) != CDACQ_OK) {
            ck_assert_msg(!all_methods && ret[0], "\"%s\": a method is not found: %s", ret, error.message);
            continue;
        }
        ck_assert_uint_eq(method.code_start, process->methods[i]);
        ck_assert_uint_eq(method.method_desc, process->descs[i]);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
}

static void assert_said(const char *text, const char *name)
{
    ck_assert_msg(strstr(text, name) && !strchr(text, '\n'), "%s: \"%s\"", name, text);
}

/* What tells where a method's code begins and ends. */
static bool is_of_code(const char *name)
{
    static const char *const types[] = {"CodeHeapListNode.", "RealCodeHeader.", "RuntimeFunction."};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strncmp(name, types[i], strlen(types[i])) == 0)
            return true;
    return false;
}

static void ask_without(const char *hidden, const char *name, uint64_t seed)
{
    char text[CDACQ_ERROR_MESSAGE_SIZE];
    struct process process = make_process(seed);
    mock_hide(process.mock, hidden);
    mock_publish(process.mock, NULL);
    ask(&process, !is_of_code(hidden), text, sizeof text);
    assert_said(text, name);
    mock_destroy(process.mock);
}

START_TEST(nothing_changed)
{
    char text[CDACQ_ERROR_MESSAGE_SIZE];
    struct process process = make_process(_i);
    mock_publish(process.mock, NULL);
    ask(&process, true, text, sizeof text);
    ck_assert_str_eq(text, "");
    mock_destroy(process.mock);
}
END_TEST

/* ---- Names ---- */

/* The layout of a process in which nothing changed. */
static void read_layout(struct layout *ret)
{
    struct process process = make_process(0);
    struct cdacq_target *target = mock_publish_and_open(process.mock);
    *ret = target->layout;
    cdacq_target_close(target);
    mock_destroy(process.mock);
}

START_TEST(each_field_renamed)
{
    static struct layout layout;
    size_t count = 0;
    read_layout(&layout);
    for (unsigned field = 0; field < F_COUNT; field++)
        if (layout.fields[field].present) {
            const char *name = layout_field_name(field);
            ask_without(name, name, count++ % SEEDS);
        }
    ck_assert_uint_gt(count, 230);
}
END_TEST

START_TEST(each_size_renamed)
{
    static const struct {
        enum layout_type type;
        const char *hidden, *said;
    } sizes[] = {
#define CDAC_SIZE(type, contract, need) {T_##type, #type ".!", #type ".size"},
#include "descriptors/layout.def"
    };
    static struct layout layout;
    size_t count = 0;
    read_layout(&layout);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        if (layout.sizes[sizes[i].type])
            ask_without(sizes[i].hidden, sizes[i].said, count++ % SEEDS);
    ck_assert_uint_gt(count, 18);
}
END_TEST

/* Those with a default are not needed. */
START_TEST(each_global_renamed)
{
    static const char *const names[] = {
#define CDAC_GLOBAL_DEFAULT(kind, name, contract, value) [G_##name] = NULL,
#define CDAC_GLOBAL(kind, name, contract, need)          [G_##name] = #name,
#include "descriptors/layout.def"
    };
    static struct layout layout;
    size_t count = 0;
    read_layout(&layout);
    for (unsigned global = 0; global < G_COUNT; global++)
        if (names[global] && layout.global_present[global])
            ask_without(names[global], names[global], count++ % SEEDS);
    ck_assert_uint_gt(count, 35);
}
END_TEST

/* ---- Versions ---- */

START_TEST(each_version_raised)
{
    static const char *const names[] = {
        "ExecutionManager",
        "AuxiliarySymbols",
        "PlatformMetadata",
        "PrecodeStubs",
        "RuntimeTypeSystem",
        "CodeVersions",
        "Loader",
        "EcmaMetadata",
        "DebugInfo",
        "Thread",
        "StackWalk",
        "Object",
        "SyncBlock",
        "Exception",
        "RuntimeInfo",
        "GCInfo",
        "SHash",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (int gone = 0; gone < 2; gone++) {
            char text[CDACQ_ERROR_MESSAGE_SIZE], said[64];
            struct process process = make_process(i % SEEDS);
            mock_contract(process.mock, names[i], gone ? NULL : "c9");
            mock_publish(process.mock, NULL);
            ask(&process, true, text, sizeof text);
            snprintf(said, sizeof said, "%s c9", names[i]);
            assert_said(text, gone ? names[i] : said);
            mock_destroy(process.mock);
        }
}
END_TEST

/* ---- Lists ---- */

/* Adds to the offset that the published descriptor states for a field. False if its text would be longer. */
static bool move_field(struct process *process, const char *type, const char *field, int by)
{
    struct mock *mock = process->mock;
    uint64_t json = mock_read_pointer(mock, process->header + 16), size = mock_read_uint(mock, process->header + 12, 4);
    char *text = calloc(1, size + 1), quoted[80], number[24];
    ck_assert_ptr_nonnull(text);
    for (uint64_t i = 0; i < size; i++)
        text[i] = (char)mock_read_uint(mock, json + i, 1);
    snprintf(quoted, sizeof quoted, "\"%s\":{", type);
    char *at = strstr(text, quoted);
    snprintf(quoted, sizeof quoted, "\"%s\":", field);
    at = at ? strstr(at, quoted) : NULL;
    ck_assert_ptr_nonnull(at);
    at += strlen(quoted);
    long offset = strtol(at, NULL, 10);
    size_t digits = strspn(at, "0123456789");
    bool fits = offset + by >= 0 && (size_t)snprintf(number, sizeof number, "%ld", offset + by) == digits;
    if (fits)
        mock_write(mock, json + (uint64_t)(at - text), number, digits);
    free(text);
    return fits;
}

/* A field that links the items of a list is said to be elsewhere. */
START_TEST(each_list_relaid)
{
    static const struct {
        const char *type, *field;
        bool is_checked; /* there is such a list in the process */
    } links[] = {
        {"ThreadStore", "FirstThreadLink", true},
        {"Thread", "LinkNext", true},
        {"RangeSectionFragment", "Next", false},
        {"RangeSection", "NextForDelete", false},
        {"CodeHeapListNode", "Next", false},
        {"ModuleLookupMap", "Next", false},
        {"Frame", "Next", false},
        {"ExceptionInfo", "PreviousNestedInfo", false},
        {"NativeCodeVersionNode", "Next", false},
        {"ILCodeVersionNode", "Next", false},
        {"StgPoolSeg", "NextSegment", false},
        {"ContinuationObject", "Next", false},
    };
    static const int moves[] = {-16, -8, 8, 16, 24};
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        for (size_t j = 0; j < ARRAY_SIZE(moves); j++) {
            char text[CDACQ_ERROR_MESSAGE_SIZE];
            struct process process = make_process(0); /* in which no type is declared */
            process.header = mock_publish(process.mock, NULL);
            bool is_moved = move_field(&process, links[i].type, links[i].field, moves[j]);
            ask(&process, strcmp(links[i].type, "RangeSectionFragment") && strcmp(links[i].type, "RangeSection"), text,
                sizeof text);
            if (is_moved && links[i].is_checked)
                assert_said(text, "Thread or ThreadStore");
            mock_destroy(process.mock);
        }
}
END_TEST

enum { LINKS_OF_LINKS, CYCLE, SHORT, LONG, NOT_A_THREAD, NO_ID, LIST_CASES };

/* The list of threads as older releases have it, or as none has. */
START_TEST(the_list_of_threads)
{
    char text[CDACQ_ERROR_MESSAGE_SIZE];
    struct process process = make_process(_i / LIST_CASES);
    struct mock *mock = process.mock;
    uint64_t link = mock_offset_of(mock, "Thread.LinkNext");
    switch (_i % LIST_CASES) {
    case LINKS_OF_LINKS:
        mock_set(mock, process.store, "ThreadStore.FirstThreadLink", process.threads[0] + link);
        for (unsigned i = 0; i + 1 < THREADS; i++)
            mock_set(mock, process.threads[i], "Thread.LinkNext", process.threads[i + 1] + link);
        break;
    case CYCLE:
        mock_set(mock, process.threads[THREADS - 1], "Thread.LinkNext", process.threads[0]);
        break;
    case SHORT:
        mock_set(mock, process.threads[0], "Thread.LinkNext", 0);
        break;
    case LONG:
        mock_set(mock, process.store, "ThreadStore.ThreadCount", 1);
        break;
    case NOT_A_THREAD:
        mock_set(mock, process.store, "ThreadStore.FirstThreadLink", 0x18);
        break;
    default:
        mock_set(mock, process.threads[0], "Thread.OSId", UINT64_C(0x7f0000001234));
    }
    mock_publish(mock, NULL);
    ask(&process, true, text, sizeof text);
    assert_said(text, "Thread or ThreadStore");
    if (_i % LIST_CASES == CYCLE)
        assert_said(text, "comes back to this Thread");
    mock_destroy(mock);
}
END_TEST

START_TEST(the_core_library)
{
    for (int change = 0; change < 2; change++) {
        char text[CDACQ_ERROR_MESSAGE_SIZE];
        struct process process = make_process(_i);
        uint64_t base = mock_get(process.mock, process.module, "Module.Base");
        if (change)
            mock_write_pointer(process.mock, process.string, 0x18);
        else
            mock_set(process.mock, process.module, "Module.Base", base + 8);
        mock_publish(process.mock, NULL);
        ask(&process, true, text, sizeof text);
        assert_said(text, "Module");
        mock_destroy(process.mock);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("layout_check");
    TCase *tcase = tcase_create("layout_check");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, nothing_changed, 0, 12);
    tcase_add_test(tcase, each_field_renamed);
    tcase_add_test(tcase, each_size_renamed);
    tcase_add_test(tcase, each_global_renamed);
    tcase_add_test(tcase, each_version_raised);
    tcase_add_test(tcase, each_list_relaid);
    tcase_add_loop_test(tcase, the_list_of_threads, 0, SEEDS * LIST_CASES);
    tcase_add_loop_test(tcase, the_core_library, 0, SEEDS);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
