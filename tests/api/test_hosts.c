/*
 * Processes other than one known CoreCLR: two runtimes, NativeAOT, a descriptor in several parts, an unknown runtime;
 * and what `cdacq info` reports about them. On mocks of every width and byte order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"
#include "util/text.h"

/* ---- What is asked of them ---- */

static struct cdacq_options partial(unsigned runtime)
{
    return (struct cdacq_options){
        .size = sizeof(struct cdacq_options), .flags = CDACQ_OPEN_PARTIAL, .runtime = runtime};
}

static void assert_said(const char *text, const char *said)
{
    ck_assert_msg(text && strstr(text, said), "%s is not in: %s", said, text ? text : "nothing");
}

static void assert_method(struct cdacq_target *target, uint64_t ip, uint64_t start, uint64_t method_desc)
{
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    enum cdacq_status status = cdacq_session_method_at(session, ip, &method, NULL);
    ck_assert_int_eq(status, start ? CDACQ_OK : CDACQ_NOT_MANAGED);
    ck_assert_uint_eq(method.code_start, start);
    ck_assert_uint_eq(method.method_desc, method_desc);
    cdacq_session_destroy(session);
}

/* Runs `cdacq COMMAND CORE OPTIONS` on the mock as a core. Returns its stdout and then its stderr, to be freed. */
static char *run_tool(struct mock *mock, const char *command, const char *options, int *ret_exit)
{
    const char *tool = getenv("CDACQ_TOOL");
    char core[] = "/tmp/cdacq-test-hosts-XXXXXX", line[1024];
    struct cdacq_error error;
    int fd = mkstemp(core);
    ck_assert_int_ge(fd, 0);
    close(fd);
    if (!mock_write_core(mock, core, &error))
        ck_abort_msg("%s", error.message);
    snprintf(line, sizeof line, "'%s' %s %s %s 2>&1", tool, command, core, options);
    FILE *pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    struct text output = {0};
    for (int c; (c = fgetc(pipe)) != EOF;)
        text_putc(&output, (char)c);
    text_putc(&output, '\0');
    int status = pclose(pipe);
    unlink(core);
    ck_assert(WIFEXITED(status) && !output.broken);
    *ret_exit = WEXITSTATUS(status);
    return output.data;
}

/* The tool prints everything in `said` and exits with `code`; a failure is one line. */
#define ASSERT_TOOL(mock, command, options, code, ...)                            \
    assert_tool(mock, command, options, code, (const char *const[]){__VA_ARGS__}, \
                sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))
static void assert_tool(struct mock *mock, const char *command, const char *options, int code, const char *const *said,
                        size_t count)
{
    int ended;
    if (!getenv("CDACQ_TOOL"))
        return; /* there is no tool: only the library was built */
    char *output = run_tool(mock, command, options, &ended);
    ck_assert_msg(ended == code, "%s %s: exit %d\n%s", command, options, ended, output);
    for (size_t i = 0; i < count; i++)
        assert_said(output, said[i]);
    const char *message = strstr(output, "cdacq: ");
    ck_assert(message || !code);
    ck_assert(!message || !strstr(message + 1, "\ncdacq: "));
    free(output);
}

/* ---- Two runtimes ---- */

struct host {
    struct mock *mock;
    uint64_t start; /* of a method of its own */
};

static const char *const paths[] = {"/mock/first/libcoreclr.so", "/mock/second/libcoreclr.so"};

static struct host make_host(int arch, unsigned number, unsigned version, const struct mock_publish_options *publish)
{
    uint64_t bases[] = {arch & 1 ? UINT64_C(0x7f0010000000) : 0x10000000,
                        arch & 1 ? UINT64_C(0x7f8010000000) : 0x50000000};
    struct mock_options options = {.pointer_size = arch & 1 ? 8 : 4,
                                   .big_endian = arch & 2,
                                   .seed = 6 + number,
                                   .version = version,
                                   .base = bases[number]};
    struct host host = {.mock = mock_create(&options)};
    struct mock_heap *heap = mock_heap_create(host.mock, &(struct mock_heap_options){.size = 0x4000});
    host.start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000 + number});
    mock_publish(host.mock, publish);
    mock_check(host.mock);
    return host;
}

struct listed {
    unsigned count, in_use;
    const char *paths[4];
    uint64_t bases[4], descriptors[4];
    bool build_ids[4];
    char versions[4][32];
    char problems[4][256];
};

static int list_runtime(const struct cdacq_runtime_info *runtime, void *context)
{
    struct listed *listed = context;
    ck_assert_uint_lt(listed->count, ARRAY_SIZE(listed->paths));
    listed->paths[listed->count] = runtime->path;
    listed->bases[listed->count] = runtime->base;
    listed->descriptors[listed->count] = runtime->descriptor_address;
    listed->build_ids[listed->count] = runtime->build_id != NULL;
    snprintf(listed->versions[listed->count], sizeof listed->versions[0], "%s",
             runtime->version ? runtime->version : "");
    snprintf(listed->problems[listed->count], sizeof listed->problems[0], "%s",
             runtime->problem ? runtime->problem : "");
    if (runtime->in_use)
        listed->in_use = listed->count;
    listed->count++;
    return 0;
}

static int count_method(const struct cdacq_method *method, void *context)
{
    (void)method;
    ++*(int *)context;
    return 0;
}

/* Look-ups are answered by the runtime that has code at the address; lists are of one runtime. */
static void assert_answers_of_all(struct cdacq_session *session, const struct host *hosts)
{
    enum { REPEATS = 40 }; /* so that indexes are used, too */
    uint64_t ips[3 * REPEATS];
    struct cdacq_method methods[3 * REPEATS] = {{.size = sizeof *methods}};
    for (unsigned i = 0; i < ARRAY_SIZE(ips); i++)
        ips[i] = i % 3 == 2 ? 0x10 : hosts[i % 3].start + 5;
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, ARRAY_SIZE(ips), methods, NULL), CDACQ_OK);
    for (unsigned i = 0; i < ARRAY_SIZE(ips); i++) {
        struct cdacq_method method = {.size = sizeof method};
        enum cdacq_status status = cdacq_session_method_at(session, ips[i], &method, NULL);
        bool found = i % 3 < 2;
        ck_assert_int_eq(status, found ? CDACQ_OK : CDACQ_NOT_MANAGED);
        ck_assert_int_eq(method.answer, found ? CDACQ_ANSWER_MANAGED : CDACQ_ANSWER_NONE);
        ck_assert_uint_eq(method.runtime, found ? i % 3 : 0);
        ck_assert_uint_eq(method.method_desc, found ? 0x1000 + i % 3 : 0);
        ck_assert_uint_eq(method.ip, ips[i]);
        ck_assert_uint_eq(methods[i].answer, method.answer);
        ck_assert_uint_eq(methods[i].runtime, method.runtime);
        ck_assert_uint_eq(methods[i].method_desc, method.method_desc);
        ck_assert_uint_eq(methods[i].ip, ips[i]);
    }
}

static void assert_all_runtimes(struct mock *mock, const struct host *hosts)
{
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++)
        for (unsigned number = 0; number < 2; number++) {
            struct cdacq_options options = {
                .size = sizeof options, .flags = CDACQ_OPEN_ALL_RUNTIMES, .runtime = number};
            struct cdacq_target *target = mock_open(mock, carrier, &options);
            struct cdacq_session *session = mock_session(target);
            ck_assert_uint_eq(cdacq_target_runtime_count(target), 2);
            ck_assert_ptr_eq(cdacq_session_of_runtime(session, number), session);
            ck_assert_ptr_eq(cdacq_session_target(session), target);
            ck_assert_ptr_null(cdacq_session_of_runtime(session, 2));
            ck_assert_ptr_null(cdacq_session_of_runtime(session, ~0u));
            assert_answers_of_all(session, hosts);
            for (unsigned i = 0; i < 2; i++) {
                struct cdacq_session *one = cdacq_session_of_runtime(session, i);
                struct cdacq_target_info info = {.size = sizeof info};
                int count = 0;
                assert_answers_of_all(one, hosts);
                ck_assert_int_eq(cdacq_session_visit_methods(one, 0, count_method, &count, NULL), CDACQ_OK);
                ck_assert_int_eq(count, 1);
                cdacq_target_get_info(cdacq_session_target(one), &info, NULL);
                ck_assert_uint_eq(info.runtime, i);
                ck_assert_str_eq(mock_path_of(info.runtime_path), paths[i]);
                cdacq_target_close(cdacq_session_target(one == session ? NULL : one)); /* which has no effect */
            }
            cdacq_session_destroy(session);
            cdacq_target_close(target);
        }
}

/* A runtime that cannot be read does not take the other. */
START_TEST(one_of_two_runtimes_cannot_be_read)
{
    static const char broken[] = "{\"version\":0,";
    for (unsigned bad = 0; bad < 2; bad++) {
        struct host hosts[2];
        for (unsigned i = 0; i < 2; i++)
            hosts[i] =
                make_host(_i, i, 2, &(struct mock_publish_options){.path = paths[i], .json = i == bad ? broken : NULL});
        struct mock *mock = hosts[0].mock;
        mock_join(mock, hosts[1].mock);
        struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_ALL_RUNTIMES};
        struct cdacq_target *target = mock_open(mock, 0, &options);
        struct cdacq_session *session = mock_session(target);
        struct cdacq_method method = {.size = sizeof method};
        ck_assert_ptr_null(cdacq_session_of_runtime(session, bad));
        ck_assert_ptr_eq(cdacq_session_of_runtime(session, !bad), session);
        ck_assert_int_eq(cdacq_session_method_at(session, hosts[!bad].start, &method, NULL), CDACQ_OK);
        ck_assert_uint_eq(method.runtime, !bad);
        ck_assert_int_eq(cdacq_session_method_at(session, hosts[bad].start, &method, NULL), CDACQ_NOT_MANAGED);
        struct listed listed = {0};
        cdacq_target_visit_runtimes(target, list_runtime, &listed, NULL);
        ck_assert_uint_eq(listed.in_use, !bad);
        assert_said(listed.problems[bad], "JSON");
        ck_assert_str_eq(listed.problems[!bad], "");
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        char ip[80], said[80];
        snprintf(ip, sizeof ip, "%" PRIx64 " --json", hosts[!bad].start);
        snprintf(said, sizeof said, "\"method_desc\":\"0x%x\"", 0x1000 + !bad);
        ASSERT_TOOL(mock, "ip2method", ip, 1, said, bad ? "\"runtime\":0" : "\"runtime\":1",
                    bad ? "cdacq: runtime 1 (" : "cdacq: runtime 0 (", paths[bad]);
        for (unsigned i = 0; i < 2; i++)
            mock_destroy(hosts[i].mock);
    }
}
END_TEST

/* If neither can be read, the problem is that of the first. */
START_TEST(none_of_two_runtimes_can_be_read)
{
    static const char *const broken[] = {"{\"version\":0,", "{\"version\":0,\"types\":"};
    struct host hosts[2];
    struct cdacq_error errors[2];
    for (unsigned i = 0; i < 2; i++)
        hosts[i] = make_host(_i, i, 2, &(struct mock_publish_options){.path = paths[i], .json = broken[i]});
    mock_join(hosts[0].mock, hosts[1].mock);
    for (unsigned i = 0; i < 2; i++) {
        struct cdacq_options options = {.size = sizeof options, .flags = i ? CDACQ_OPEN_ALL_RUNTIMES : 0};
        ck_assert_int_eq(mock_open_fails(hosts[0].mock, &options, &errors[i]), CDACQ_ERR_DESCRIPTOR);
    }
    ck_assert_str_eq(errors[0].message, errors[1].message);
    for (unsigned i = 0; i < 2; i++)
        mock_destroy(hosts[i].mock);
}
END_TEST

START_TEST(two_runtimes)
{
    struct host hosts[2];
    for (unsigned i = 0; i < 2; i++)
        hosts[i] = make_host(_i, i, i ? MOCK_NET_11 : 2, &(struct mock_publish_options){.path = paths[i]});
    struct mock *mock = hosts[0].mock;
    mock_join(mock, hosts[1].mock);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++)
        for (unsigned number = 0; number < 2; number++) {
            struct cdacq_options options = {.size = sizeof options, .runtime = number};
            struct cdacq_target *target = mock_open(mock, carrier, &options);
            struct cdacq_target_info info = {.size = sizeof info};
            struct listed listed = {0};
            cdacq_target_get_info(target, &info, NULL);
            ck_assert_uint_eq(info.runtime_count, 2);
            ck_assert_uint_eq(info.runtime, number);
            ck_assert_str_eq(mock_path_of(info.runtime_path), paths[number]);
            ck_assert_uint_eq(info.schema, number ? 2 : 0);
            ck_assert_pstr_eq(info.runtime_version, number ? MOCK_NET_11_VERSION : NULL);
            ck_assert_pstr_eq(info.runtime_release, number ? "11.0" : NULL);
            ck_assert_str_eq(info.operating_system, "unix");
            ck_assert_int_eq(info.problem_status, CDACQ_OK);
            cdacq_target_visit_runtimes(target, list_runtime, &listed, NULL);
            ck_assert_uint_eq(listed.count, 2);
            ck_assert_uint_eq(listed.in_use, number);
            for (unsigned i = 0; i < 2; i++) {
                ck_assert_str_eq(mock_path_of(listed.paths[i]), paths[i]);
                ck_assert(listed.bases[i] && listed.descriptors[i] > listed.bases[i] && listed.build_ids[i]);
                ck_assert_str_eq(listed.versions[i], i ? MOCK_NET_11_VERSION : ""); /* whichever is selected */
            }
            ck_assert_uint_lt(listed.bases[0], listed.bases[1]);
            /* Each target has only its own methods. */
            assert_method(target, hosts[number].start + 5, hosts[number].start, 0x1000 + number);
            assert_method(target, hosts[!number].start + 5, 0, 0);
            cdacq_target_close(target);
        }
    assert_all_runtimes(mock, hosts);
    struct cdacq_error error;
    struct cdacq_options options = {.size = sizeof options, .runtime = 2};
    ck_assert_int_eq(mock_open_fails(mock, &options, &error), CDACQ_ERR_ARGUMENT);
    assert_said(error.message, "runtime 2: the target has 2, numbers 0 to 1");
    options.flags = CDACQ_OPEN_PARTIAL; /* the caller's mistake here too */
    ck_assert_int_eq(mock_open_fails(mock, &options, &error), CDACQ_ERR_ARGUMENT);
    for (unsigned i = 0; i < 2; i++)
        mock_destroy(hosts[i].mock);
}
END_TEST

START_TEST(the_tool_on_two_runtimes)
{
    struct host hosts[2];
    char ip[120], said[80], other[80];
    for (unsigned i = 0; i < 2; i++)
        hosts[i] = make_host(_i, i, 2, &(struct mock_publish_options){.path = paths[i]});
    struct mock *mock = hosts[0].mock;
    mock_join(mock, hosts[1].mock);
    ASSERT_TOOL(mock, "info", "", 0, "\nruntimes    0: ", paths[0], "(in use)\n            1: ", paths[1]);
    ASSERT_TOOL(mock, "info", "--runtime 1", 0, "; runtime 1 of 0 to 1", "\nruntimes    0: ");
    ASSERT_TOOL(mock, "info", "--json", 0, "\"runtime_count\":2,\"runtime\":0", "\"runtimes\":[{\"path\":\"", paths[0],
                "\"in_use\":true},{\"path\":\"", paths[1], "\"in_use\":false}]");
    ASSERT_TOOL(mock, "info", "--json --runtime 1", 0, "\"runtime_count\":2,\"runtime\":1", "\"in_use\":true}]");
    ASSERT_TOOL(mock, "info", "--runtime 2", 2, "cdacq: runtime 2: the target has 2, numbers 0 to 1\n");
    ASSERT_TOOL(mock, "methods", "--runtime 2", 2, "cdacq: runtime 2: the target has 2, numbers 0 to 1\n");
    snprintf(ip, sizeof ip, "%" PRIx64 " --json", hosts[1].start);
    ASSERT_TOOL(mock, "ip2method", ip, 0, "\"method_desc\":\"0x1001\"", ",\"runtime\":1}\n");
    snprintf(ip, sizeof ip, "%" PRIx64 " %" PRIx64 " 10 --json", hosts[0].start, hosts[1].start);
    ASSERT_TOOL(mock, "ip2method", ip, 0, ",\"runtime\":0}\n", ",\"runtime\":1}\n", ",\"runtime\":null}\n");
    ASSERT_TOOL(mock, "inspect", ip, 0, ",\"runtime\":0}\n", ",\"runtime\":1}\n", ",\"runtime\":null}\n");
    snprintf(ip, sizeof ip, "%" PRIx64 " %" PRIx64 " 10", hosts[0].start, hosts[1].start);
    ASSERT_TOOL(mock, "ip2method", ip, 0, " [runtime 0]\n", " [runtime 1]\n", "0x10 - [none]\n");
    ASSERT_TOOL(mock, "inspect", ip, 0, "  runtime            0\n", "  runtime            1\n", "0x10 - [none]\n");
    for (unsigned i = 0; i < 2; i++) {
        snprintf(ip, sizeof ip, "%" PRIx64 " --json --runtime %u", hosts[1].start, i);
        ASSERT_TOOL(mock, "ip2method", ip, 0, i ? "\"method_desc\":\"0x1001\"" : "\"status\":\"none\"",
                    "\"async_thunk\":", "}\n");
        snprintf(said, sizeof said, "0x%" PRIx64 " +0x", hosts[i].start);
        snprintf(other, sizeof other, "--runtime %u", i);
        ASSERT_TOOL(mock, "methods", other, 0, said);
    }
    ASSERT_TOOL(mock, "methods", "", 0, " [runtime 0]\n", " [runtime 1]\n");
    ASSERT_TOOL(mock, "methods", "--json", 0, ",\"runtime\":0}\n", ",\"runtime\":1}\n");
    ASSERT_TOOL(mock, "descriptor", "", 0, "cdacq: descriptor answers for runtime 0 (", paths[0],
                ") of 0 to 1; --runtime N takes another\n");
    ASSERT_TOOL(mock, "descriptor", "--runtime 1", 0, "RealCodeHeader");
    for (unsigned i = 0; i < 2; i++)
        mock_destroy(hosts[i].mock);
}
END_TEST

/* ---- NativeAOT ---- */

/* A preview of .NET 11: no ExecutionManager yet. */
static const char native_aot[] =
    "{\"version\":2,\"baseline\":\"empty\",\"types\":{"
    "\"Thread\":{\"OSId\":[8,\"uint64\"],\"State\":16,\"LinkNext\":24,\"ExceptionTracker\":32},"
    "\"ThreadStore\":{\"FirstThreadLink\":0},"
    "\"MethodTable\":{\"Flags\":0,\"BaseSize\":4,\"RelatedType\":8,\"NumVtableSlots\":16,\"NumInterfaces\":18},"
    "\"ExInfo\":{\"PreviousNestedInfo\":0,\"ThrownObject\":8}},"
    "\"globals\":{\"ObjectToMethodTableUnmask\":[\"7\",\"uint8\"]},"
    "\"contracts\":{\"Thread\":\"n1\",\"Exception\":\"n1\",\"RuntimeTypeSystem\":\"n1\"}}";

static int count_item(const struct cdacq_descriptor_item *item, void *context)
{
    (void)item;
    ++*(int *)context;
    return 0;
}

static int count_contract(const struct cdacq_contract_info *contract, void *context)
{
    ck_assert(contract->supported); /* what is missing is an ExecutionManager */
    ++*(int *)context;
    return 0;
}

static void assert_native_aot(struct cdacq_target *target)
{
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_error error = {0};
    struct cdacq_session *session = NULL;
    int items = 0, contracts = 0;
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_int_eq(info.problem_status, CDACQ_ERR_CONTRACT);
    ck_assert(info.native_aot);
    assert_said(info.problem, "is NativeAOT, and its descriptor has no ExecutionManager");
    ck_assert_str_eq(info.descriptor_origin, "memory");
    ck_assert_uint_eq(info.schema, 2);
    cdacq_target_visit_descriptor(target, count_item, &items, NULL);
    ck_assert_int_gt(items, 15);
    cdacq_target_visit_contracts(target, count_contract, &contracts, NULL);
    ck_assert_int_eq(contracts, 3);
    ck_assert_int_eq(cdacq_session_create(target, &session, &error), CDACQ_ERR_CONTRACT);
    ck_assert_ptr_null(session);
    ck_assert_str_eq(error.message, info.problem);
}

START_TEST(a_native_aot_application)
{
    struct mock_publish_options publish = {.path = "/mock/app", .json = native_aot};
    struct host host = make_host(_i, 0, 2, &publish);
    struct cdacq_error error;
    ck_assert_int_eq(mock_open_fails(host.mock, NULL, &error), CDACQ_ERR_CONTRACT);
    assert_said(error.message, "is NativeAOT, and its descriptor has no ExecutionManager");
    struct cdacq_options options = partial(0);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        struct cdacq_target *target = mock_open(host.mock, carrier, &options);
        struct cdacq_target_info info = {.size = sizeof info};
        cdacq_target_get_info(target, &info, NULL);
        ck_assert_str_eq(mock_path_of(info.runtime_path), "/mock/app");
        ck_assert_uint_eq(info.pointer_size, _i & 1 ? 8 : 4);
        ck_assert(info.big_endian == !!(_i & 2));
        assert_native_aot(target);
        cdacq_target_close(target);
    }
    ASSERT_TOOL(host.mock, "ip2method", "1234", 2, "cdacq: the runtime is NativeAOT");
    ASSERT_TOOL(host.mock, "methods", "", 2, "cdacq: the runtime is NativeAOT");
    ASSERT_TOOL(host.mock, "info", "", 2, "\nruntime     .NET NativeAOT", "/mock/app\n", "Thread n1", "modules",
                "\nnext        ", "native debugger", "cdacq: the runtime is NativeAOT");
    ASSERT_TOOL(host.mock, "info", "--json", 2, "\"native_aot\":true", "\"runtime_path\":\"/mock/app\"",
                "\"name\":\"Thread\",\"version\":\"n1\"", "\"problem\":\"the runtime is NativeAOT",
                "\"next_steps\":[{\"need\":\"runtime\"");
    ASSERT_TOOL(host.mock, "descriptor", "--json", 0, "\"RelatedType\"");
    mock_destroy(host.mock);
}
END_TEST

/* Up to .NET 10, NativeAOT publishes no descriptor. */
START_TEST(a_native_aot_application_without_a_descriptor)
{
    struct mock_publish_options publish = {.path = "/mock/app", .symbols = MOCK_SYMBOLS_NATIVE};
    struct host host = make_host(_i, 0, 2, &publish);
    struct cdacq_error error;
    ck_assert_int_eq(mock_open_fails(host.mock, NULL, &error), CDACQ_ERR_NO_RUNTIME);
    assert_said(error.message, "/mock/app was compiled by NativeAOT");
    ASSERT_TOOL(host.mock, "report", "", 2, "cdacq: no .NET runtime in ", "/mock/app was compiled by NativeAOT");
    ASSERT_TOOL(host.mock, "info", "", 2, "\nruntime     .NET NativeAOT", "\nnext        name addresses by a native");
    ASSERT_TOOL(host.mock, "info", "--json", 2, "\"native_aot\":true", "\"need\":\"runtime\"");
    mock_destroy(host.mock);
}
END_TEST

START_TEST(a_native_aot_application_with_a_long_path)
{
    char path[1024] = "/mock/";
    memset(path + strlen(path), 'a', sizeof path - strlen(path) - 1);
    path[sizeof path - 1] = '\0';
    struct mock_publish_options publish = {.path = path, .symbols = MOCK_SYMBOLS_NATIVE};
    struct host host = make_host(_i, 0, 2, &publish);
    struct cdacq_error error;
    ck_assert_int_eq(mock_open_fails(host.mock, NULL, &error), CDACQ_ERR_NO_RUNTIME);
    assert_said(error.message, " was compiled by NativeAOT, and publishes no contract descriptor");
    mock_destroy(host.mock);
}
END_TEST

/* Methods are found with an ExecutionManager alone, without Modules, MethodDescs and images with code. */
START_TEST(an_execution_manager_alone)
{
    static const char *const hidden[] = {
        "Module", "MethodDesc",       "MethodDescChunk",       "ReadyToRunInfo",        "HashMap",
        "Bucket", "HashMapValueMask", "HashMapSlotsPerBucket", "RangeSection.R2RModule"};
    struct mock *mock = mock_of_version(_i, 3, MOCK_NET_11);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
    mock_contract(mock, "RuntimeTypeSystem", NULL);
    mock_contract(mock, "Loader", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
        mock_hide(mock, hidden[i]);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    ck_assert(!info.native_aot);
    ck_assert_int_eq(cdacq_session_method_at(session, start + 7, &method, NULL), CDACQ_OK);
    ck_assert_int_eq(method.answer, CDACQ_ANSWER_MANAGED);
    ck_assert_uint_eq(method.code_start, start);
    ck_assert_uint_eq(method.method_desc, 0x1000);
    ck_assert_ptr_null(method.name);
    ck_assert_int_eq(cdacq_session_method_at(session, heap->end + 7, &method, NULL), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(method.answer, CDACQ_ANSWER_NONE);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A library compiled by NativeAOT in a CoreCLR process: it is listed and not taken for CoreCLR. */
START_TEST(a_native_aot_library)
{
    struct mock_publish_options library = {.path = "/mock/plugin.so", .json = native_aot};
    struct host coreclr = make_host(_i, 1, 2, &(struct mock_publish_options){.path = paths[0]});
    struct host plugin = make_host(_i, 0, 2, &library);
    mock_join(coreclr.mock, plugin.mock);
    struct cdacq_target *target = mock_open(coreclr.mock, CARRIER_MEMORY, NULL);
    assert_method(target, coreclr.start, coreclr.start, 0x1001);
    cdacq_target_close(target);
    struct cdacq_options options = partial(0);
    struct listed listed = {0};
    target = mock_open(coreclr.mock, CARRIER_MEMORY, &options);
    assert_method(target, coreclr.start, coreclr.start, 0x1001);
    cdacq_target_visit_runtimes(target, list_runtime, &listed, NULL);
    ck_assert_uint_eq(listed.count, 2);
    ck_assert_uint_eq(listed.in_use, 0);
    ck_assert_str_eq(listed.paths[0], paths[0]);
    ck_assert_str_eq(listed.paths[1], "/mock/plugin.so");
    cdacq_target_close(target);
    options = partial(1);
    target = mock_open(coreclr.mock, CARRIER_MEMORY, &options);
    assert_native_aot(target);
    cdacq_target_close(target);
    struct cdacq_error error;
    options.flags = 0;
    ck_assert_int_eq(mock_open_fails(coreclr.mock, &options, &error), CDACQ_ERR_CONTRACT);
    mock_destroy(coreclr.mock);
    mock_destroy(plugin.mock);
}
END_TEST

/* A CoreCLR that does not publish ExecutionManager yet is not NativeAOT. */
START_TEST(a_coreclr_without_execution_manager)
{
    struct mock *mock = mock_of_arch(_i, 6);
    struct cdacq_error error;
    mock_contract(mock, "ExecutionManager", NULL);
    mock_publish(mock, NULL);
    ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_CONTRACT);
    assert_said(error.message, "publishes no ExecutionManager contract");
    ck_assert_ptr_null(strstr(error.message, "NativeAOT"));
    ASSERT_TOOL(mock, "info", "--json", 2, "\"native_aot\":false", "\"need\":\"descriptor\"",
                "\"options\":[\"--descriptor\"]");
    mock_destroy(mock);
}
END_TEST

/* ---- Runtimes that cannot be read ---- */

START_TEST(an_unknown_runtime)
{
    struct mock *mock = mock_of_arch(_i, 6);
    struct cdacq_error error;
    mock_publish(mock, &(struct mock_publish_options){.symbols = MOCK_SYMBOLS_NONE});
    ck_assert_int_eq(mock_open_fails(mock, NULL, &error), CDACQ_ERR_NO_DESCRIPTOR);
    ASSERT_TOOL(mock, "info", "", 2, "\nruntime     .NET unknown", "/mock/libcoreclr.so", "build-id ",
                "the runtime publishes none", "\nproblem     ", "\nnext        --descriptor FILE");
    ASSERT_TOOL(mock, "info", "--json", 2, "\"problem\":\"/mock/libcoreclr.so (build-id ", "\"need\":\"descriptor\"",
                "\"options\":[\"--descriptor\",\"--descriptor-address\"]");
    ASSERT_TOOL(mock, "descriptor", "", 2, "exports no contract descriptor");
    mock_destroy(mock);
}
END_TEST

START_TEST(no_runtime_at_all)
{
    struct mock *mock = mock_of_arch(_i, 6);
    mock_map(mock, 0, 0x1000, MOCK_READ, "/mock/native", 0);
    struct cdacq_options options = partial(0);
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        struct cdacq_target *target = mock_open(mock, carrier, &options);
        struct cdacq_target_info info = {.size = sizeof info};
        cdacq_target_get_info(target, &info, NULL);
        ck_assert_int_eq(info.problem_status, CDACQ_ERR_NO_RUNTIME);
        ck_assert_uint_eq(info.runtime_count, 0);
        ck_assert(!info.native_aot && !info.descriptor_origin && !info.runtime_path && !info.pointer_size);
        cdacq_target_close(target);
    }
    ASSERT_TOOL(mock, "info", "", 2, "\nruntime     none\n", "modules     1 mapped file",
                "\nproblem     no .NET runtime", "\nnext        ");
    ASSERT_TOOL(mock, "info", "--json", 2, "\"pointer_size\":null", "\"runtimes\":[]", "\"/mock/native\"");
    mock_destroy(mock);
}
END_TEST

START_TEST(a_runtime_that_has_not_started)
{
    struct mock *mock = mock_of_arch(_i, 1);
    mock_global(mock, "ExecutionManagerCodeRangeMapAddress", 0);
    mock_publish(mock, NULL);
    ASSERT_TOOL(mock, "info", "", 2, "\nproblem     the runtime has not started yet",
                "\nnext        take the core once");
    mock_destroy(mock);
}
END_TEST

/* The pointer to the JSON, after the magic number, flags and the size of the JSON, is as the file has it. */
START_TEST(a_runtime_that_is_being_loaded)
{
    struct mock *mock = mock_of_arch(_i, 1);
    uint64_t pointer = mock_publish(mock, NULL) + 16;
    struct cdacq_target *target = mock_open(mock, CARRIER_MEMORY, NULL);
    struct cdacq_target_info info = {.size = sizeof info};
    ck_assert_int_eq(cdacq_target_get_info(target, &info, NULL), CDACQ_OK);
    mock_write_pointer(mock, pointer, mock_read_pointer(mock, pointer) - info.runtime_base);
    cdacq_target_close(target);
    ASSERT_TOOL(mock, "info", "", 2, "\nproblem     the runtime has not started yet: its image is not relocated",
                "\nnext        take the core once");
    mock_destroy(mock);
}
END_TEST

START_TEST(methods_without_names)
{
    struct mock *mock = mock_of_arch(_i, 6);
    mock_contract(mock, "Loader", "77");
    mock_publish(mock, NULL);
    ASSERT_TOOL(mock, "info", "", 0, "Loader 77: NOT SUPPORTED, this build reads 1",
                "\nnext        Loader: not published");
    ASSERT_TOOL(mock, "info", "--json", 0, "\"problem\":null", "\"next_steps\":[{\"need\":\"names\"");
    mock_destroy(mock);
}
END_TEST

/* Memory that neither the core nor a file has: the message names the range and what would help. */
START_TEST(memory_that_is_missing)
{
    struct mock *mock = mock_of_arch(_i, 6);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
    mock_unmap(mock, heap->node, mock_size_of(mock, "CodeHeapListNode"));
    mock_publish(mock, NULL);
    ASSERT_TOOL(mock, "info", "", 0, "1 known only in part", "\nnext        take a core with more", "1 code range is");
    ASSERT_TOOL(mock, "info", "--json", 0, "\"next_steps\":[{\"need\":\"memory\"");
    mock_destroy(mock);
}
END_TEST

/* ---- What a file is known by ---- */

struct known {
    char build_id[80], symbol_key[200];
    unsigned count;
};

static int note_runtime_module(const struct cdacq_mapped_file *module, void *context)
{
    struct known *known = context;
    ck_assert_str_eq(module->path, "/mock/libcoreclr.so");
    snprintf(known->build_id, sizeof known->build_id, "%s", module->build_id ? module->build_id : "");
    snprintf(known->symbol_key, sizeof known->symbol_key, "%s", module->symbol_key ? module->symbol_key : "");
    known->count++;
    return 0;
}

static struct known known_of(struct mock *mock, struct cdacq_target_info *ret)
{
    struct cdacq_options options = partial(0);
    struct cdacq_target *target = mock_open(mock, CARRIER_CORE, &options);
    struct known known = {0};
    cdacq_target_get_info(target, ret, NULL);
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, note_runtime_module, &known, NULL), CDACQ_OK);
    ck_assert_uint_eq(known.count, 1);
    cdacq_target_close(target);
    return known;
}

/* A build-id is reported if all of it is in the core, even if the page around it is not complete. */
START_TEST(a_build_id_in_part)
{
    enum { SIZE = 20 };
    uint64_t at = (_i & 1 ? 64 + 4 * 56 : 52 + 4 * 32) + 16; /* in its note, after the headers */
    struct mock *mock = mock_of_arch(_i, 6);
    struct cdacq_target_info info = {.size = sizeof info};
    char key[200];
    mock_publish(mock, NULL);
    struct known whole = known_of(mock, &info);
    ck_assert_uint_eq(strlen(whole.build_id), 2 * SIZE);
    snprintf(key, sizeof key, "libcoreclr.so/elf-buildid-%s/libcoreclr.so", whole.build_id);
    ck_assert_str_eq(whole.symbol_key, key);
    mock_unmap(mock, info.runtime_base + 2000, 1); /* elsewhere in the page */
    struct known cut = known_of(mock, &info);
    ck_assert_str_eq(cut.build_id, whole.build_id);
    ck_assert_str_eq(cut.symbol_key, whole.symbol_key);
    mock_unmap(mock, info.runtime_base + at + SIZE - 1, 1); /* its last byte */
    struct known lost = known_of(mock, &info);
    ck_assert_str_eq(lost.build_id, "");
    ck_assert_str_eq(lost.symbol_key, "");
    mock_destroy(mock);
}
END_TEST

/* ---- A descriptor in parts ---- */

/* An item of the merged descriptor, by its name and that of the type visited last. */
struct wanted {
    const char *type, *name, *last;
    bool found, has_value;
    uint64_t value;
    char origin[60], overrides[60];
};

static int look_at_item(const struct cdacq_descriptor_item *item, void *context)
{
    struct wanted *wanted = context;
    if (item->kind == CDACQ_ITEM_TYPE)
        wanted->last = item->name;
    const char *type = item->kind == CDACQ_ITEM_FIELD ? wanted->last : NULL;
    if (strcmp(item->name, wanted->name) != 0 || (type != NULL) != (wanted->type != NULL) ||
        (type && strcmp(type, wanted->type) != 0))
        return 0;
    wanted->found = true;
    wanted->has_value = item->has_value;
    wanted->value = item->value;
    snprintf(wanted->origin, sizeof wanted->origin, "%s", item->origin);
    snprintf(wanted->overrides, sizeof wanted->overrides, "%s", item->overrides ? item->overrides : "");
    return 1;
}

static struct wanted item_of(struct cdacq_target *target, const char *type, const char *name)
{
    struct wanted wanted = {.type = type, .name = name};
    cdacq_target_visit_descriptor(target, look_at_item, &wanted, NULL);
    return wanted;
}

static void assert_item(struct cdacq_target *target, const char *type, const char *name, uint64_t value,
                        const char *origin, const char *overrides)
{
    struct wanted wanted = item_of(target, type, name);
    ck_assert_msg(wanted.found, "%s is not there", name);
    ck_assert_uint_eq(wanted.value, value);
    ck_assert_str_eq(wanted.origin, origin);
    ck_assert_str_eq(wanted.overrides, overrides);
}

/* As in the datadescriptor.inc of the GC and of the metadata reader; and two that the main descriptor has too. */
static const char gc[] = "{\"version\":2,\"baseline\":\"empty\",\"types\":{"
                         "\"GCHeap\":{\"MarkArray\":[16,\"pointer\"],\"NextSweepObj\":24},"
                         "\"RangeSection\":{\"Flags\":4095,\"RangeBegin\":4095}},"
                         "\"globals\":{\"HeapCount\":[[1],\"pointer\"],\"MethodDescAlignment\":[\"8\",\"uint64\"],"
                         "\"StubCodeBlockLast\":[\"9\",\"uint8\"],\"GCIdentifiers\":[\"workstation\",\"string\"]},"
                         "\"subDescriptors\":{\"Deeper\":[[2],\"pointer\"],\"Cycle\":[[3],\"pointer\"]},"
                         "\"contracts\":{\"GC\":\"c1\",\"Loader\":\"c1\"}}";
static const char ecma_metadata[] =
    "{\"version\":2,\"baseline\":\"empty\",\"types\":{\"MDInternalRO\":{\"LiteWeightStgdb\":8}},"
    "\"globals\":{},\"contracts\":{}}";
static const char deeper[] = "{\"version\":2,\"baseline\":\"empty\",\"types\":{},"
                             "\"globals\":{\"Deep\":[[1],\"pointer\"]},\"contracts\":{}}";

START_TEST(sub_descriptors)
{
    for (uint64_t seed = 1; seed <= 2; seed++) { /* declared types, as in checked builds, and none */
        struct mock *mock = mock_of_version(_i, seed, MOCK_NET_11);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
        uint64_t deep_pointers[] = {0x5678};
        /* The variable of a nested sub-descriptor belongs to its parent; here the main descriptor has it too. */
        uint64_t below = mock_sub_descriptor(mock, "Below", deeper, deep_pointers, 1);
        uint64_t cycle = mock_alloc(mock, 8, 8);
        uint64_t gc_pointers[] = {0x1234, below, cycle};
        uint64_t variable = mock_sub_descriptor(mock, "GC", gc, gc_pointers, 3);
        mock_sub_descriptor(mock, "EcmaMetadata", ecma_metadata, NULL, 0);
        mock_sub_descriptor(mock, "ManagedTypes", NULL, NULL, 0); /* not there yet */
        mock_write_pointer(mock, cycle, mock_read_pointer(mock, variable));
        mock_publish(mock, NULL);
        uint64_t alignment = 8, flags = mock_offset_of(mock, "RangeSection.Flags");
        for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
            struct cdacq_target *target = mock_open(mock, carrier, NULL);
            assert_item(target, "GCHeap", "MarkArray", 16, "sub-descriptor GC", "");
            assert_item(target, NULL, "HeapCount", 0x1234, "sub-descriptor GC", ""); /* its own pointer data */
            assert_item(target, NULL, "Deep", 0x5678, "sub-descriptor Below", "");
            assert_item(target, "MDInternalRO", "LiteWeightStgdb", 8, "sub-descriptor EcmaMetadata", "");
            /* A name that occurs twice: the main descriptor's value is used, and a different value is shown. */
            assert_item(target, NULL, "MethodDescAlignment", alignment, "runtime", "");
            assert_item(target, NULL, "StubCodeBlockLast", 15, "runtime", "sub-descriptor GC");
            assert_item(target, "RangeSection", "Flags", flags, "runtime", "sub-descriptor GC");
            assert_method(target, start + 5, start, 0x1000);
            struct wanted contract = item_of(target, NULL, "GC");
            ck_assert(contract.found);
            ck_assert_str_eq(contract.origin, "sub-descriptor GC");
            cdacq_target_close(target);
        }
        mock_destroy(mock);
    }
}
END_TEST

/* Writes a descriptor with up to one pointer, in the form of `like`. Returns a variable that holds its address. */
static uint64_t put_descriptor(struct mock *mock, unsigned word, uint64_t like, const char *json, uint64_t pointer)
{
    uint64_t text = mock_alloc(mock, strlen(json) + 1, 8), data = mock_alloc(mock, word, 8);
    uint64_t header = mock_alloc(mock, 24 + 2 * word, 8), variable = mock_alloc(mock, word, 8);
    mock_write(mock, text, json, strlen(json) + 1);
    mock_write_pointer(mock, data, pointer);
    mock_write_uint(mock, header, 8, mock_read_uint(mock, like, 8)); /* the magic number */
    mock_write_uint(mock, header + 8, 4, mock_read_uint(mock, like + 8, 4));
    mock_write_uint(mock, header + 12, 4, strlen(json));
    mock_write_pointer(mock, header + 16, text);
    mock_write_uint(mock, header + 16 + word, 4, 1);
    mock_write_pointer(mock, header + 24 + word, data);
    mock_write_pointer(mock, variable, header);
    return variable;
}

/* Each has the next one: all are read. */
START_TEST(a_chain_of_sub_descriptors)
{
    enum { DEPTH = 300 };
    struct mock *mock = mock_of_version(_i, 1, MOCK_NET_11);
    uint64_t like = mock_read_pointer(mock, mock_sub_descriptor(mock, "First", ecma_metadata, NULL, 0));
    uint64_t variable = 0x77;
    for (int depth = DEPTH; depth >= 1; depth--) {
        char json[300];
        snprintf(json, sizeof json,
                 "{\"version\":2,\"baseline\":\"empty\",\"types\":{},\"globals\":{\"Depth%d\":[\"%d\",\"uint64\"]},"
                 "\"subDescriptors\":{%s},\"contracts\":{}}",
                 depth, depth, depth < DEPTH ? "\"Next\":[[0],\"pointer\"]" : "");
        variable = put_descriptor(mock, _i & 1 ? 8 : 4, like, json, variable);
    }
    uint64_t pointers[] = {variable};
    mock_sub_descriptor(mock, "Chain",
                        "{\"version\":2,\"baseline\":\"empty\",\"types\":{},\"globals\":{},"
                        "\"subDescriptors\":{\"Next\":[[1],\"pointer\"]},\"contracts\":{}}",
                        pointers, 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    for (unsigned depth = 1; depth <= DEPTH; depth++) {
        char name[20];
        snprintf(name, sizeof name, "Depth%u", depth);
        assert_item(target, NULL, name, depth, "sub-descriptor Next", "");
    }
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Their number has no bound of its own, their size has one. */
START_TEST(large_sub_descriptors)
{
    enum { COUNT = 5, SIZE = 1000000 };
    struct mock *mock = mock_of_version(_i, 1, MOCK_NET_11);
    uint64_t like = mock_read_pointer(mock, mock_sub_descriptor(mock, "First", ecma_metadata, NULL, 0));
    char *json = malloc(SIZE + 1);
    uint64_t variable = 0x77;
    ck_assert_ptr_nonnull(json);
    for (int i = 0; i < COUNT; i++) {
        int length = snprintf(json, SIZE, "{\"subDescriptors\":{\"Next\":[[0],\"pointer\"]}}");
        memset(json + length, ' ', (size_t)(SIZE - length));
        json[SIZE] = 0;
        variable = put_descriptor(mock, _i & 1 ? 8 : 4, like, json, variable);
    }
    free(json);
    mock_sub_descriptor(mock, "Chain", "{\"subDescriptors\":{\"Next\":[[1],\"pointer\"]}}", &variable, 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_ptr_nonnull(info.descriptor_missing);
    assert_said(info.descriptor_missing, "sub-descriptor Next: the descriptors together are larger than");
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Any of the descriptors may describe ExecutionManager. */
START_TEST(a_contract_of_a_sub_descriptor)
{
    struct mock *mock = mock_of_version(_i, 2, MOCK_NET_11);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
    char json[300];
    snprintf(json, sizeof json,
             "{\"version\":2,\"baseline\":\"empty\",\"types\":{\"RealCodeHeader\":{\"MethodDesc\":%u}},\"globals\":{},"
             "\"contracts\":{\"ExecutionManager\":\"c1\"}}",
             mock_offset_of(mock, "RealCodeHeader.MethodDesc"));
    mock_hide(mock, "RealCodeHeader.MethodDesc");
    mock_contract(mock, "ExecutionManager", NULL);
    mock_sub_descriptor(mock, "Code", json, NULL, 0);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_method(target, start + 5, start, 0x1000);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A sub-descriptor that a core does not have is left out, and all else is read. */
START_TEST(missing_sub_descriptors)
{
    static const char *const said[] = {"sub-descriptor GC: memory: no memory at 0x10", "no memory at 0x20",
                                       "sub-descriptor GC: the descriptor's JSON: "};
    for (unsigned i = 0; i < ARRAY_SIZE(said); i++) {
        struct mock *mock = mock_of_version(_i, 2, MOCK_NET_11);
        unsigned word = _i & 1 ? 8 : 4;
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
        uint64_t like = mock_read_pointer(mock, mock_sub_descriptor(mock, "First", ecma_metadata, NULL, 0));
        uint64_t variable = put_descriptor(mock, word, like, "{}", 0);
        if (i == 1)
            mock_write_pointer(mock, variable, 0x20);
        if (i == 2) /* the JSON */
            mock_write_pointer(mock, mock_read_pointer(mock, variable) + 16, 0x20);
        uint64_t pointers[] = {i ? variable : 0x10};
        mock_sub_descriptor(mock, "Chain", "{\"subDescriptors\":{\"GC\":[[1],\"pointer\"]}}", pointers, 1);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_target_info info = {.size = sizeof info};
        cdacq_target_get_info(target, &info, NULL);
        ck_assert_ptr_nonnull(info.descriptor_missing);
        assert_said(info.descriptor_missing, said[i]);
        assert_item(target, "MDInternalRO", "LiteWeightStgdb", 8, "sub-descriptor First", "");
        assert_method(target, start + 5, start, 0x1000);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* A sub-descriptor that is malformed or of another width is left out as a whole, and all else is read. */
START_TEST(broken_sub_descriptors)
{
    static const struct {
        const char *json, *said;
    } cases[] = {{"{\"version\":2", "sub-descriptor GC: "},
                 {"{\"globals\":{\"Half\":[\"1\",\"uint8\"],\"X\":[[9],\"pointer\"]}}", "beyond the pointer data"},
                 {"{\"subDescriptors\":{\"Below\":[[9],\"pointer\"]}}",
                  "sub-descriptor Below: not an index into the pointer data"},
                 {NULL, "sub-descriptor GC: no contract descriptor at"},
                 {NULL, "its pointer size or byte order is not that of the main descriptor"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_of_version(_i, 2, MOCK_NET_11);
        struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
        uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x1000});
        mock_sub_descriptor(mock, "First", ecma_metadata, NULL, 0);
        uint64_t variable = mock_sub_descriptor(mock, "GC", cases[i].json, NULL, 0);
        mock_sub_descriptor(mock, "Last", "{\"globals\":{\"Last\":[\"5\",\"uint8\"]}}", NULL, 0);
        if (!cases[i].json)
            mock_write_pointer(mock, variable, mock_alloc(mock, 64, 8));
        if (i == 4) /* the magic number in the other byte order */
            mock_write(mock, mock_read_pointer(mock, variable), _i & 2 ? "DNCCDAC" : "\0CADCCND", 8);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct cdacq_target_info info = {.size = sizeof info};
        cdacq_target_get_info(target, &info, NULL);
        ck_assert_ptr_nonnull(info.descriptor_missing);
        assert_said(info.descriptor_missing, cases[i].said);
        ck_assert_ptr_null(strstr(info.descriptor_missing, "GC: sub-descriptor"));
        assert_item(target, "MDInternalRO", "LiteWeightStgdb", 8, "sub-descriptor First", "");
        assert_item(target, NULL, "Last", 5, "sub-descriptor Last", "");
        ck_assert(!item_of(target, NULL, "Half").found);
        assert_method(target, start + 5, start, 0x1000);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("hosts");
    TCase *tcase = tcase_create("hosts");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, two_runtimes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, one_of_two_runtimes_cannot_be_read, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, none_of_two_runtimes_can_be_read, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, the_tool_on_two_runtimes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_native_aot_application, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_native_aot_application_without_a_descriptor, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_native_aot_application_with_a_long_path, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, an_execution_manager_alone, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_native_aot_library, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_coreclr_without_execution_manager, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, an_unknown_runtime, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, no_runtime_at_all, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_runtime_that_has_not_started, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_runtime_that_is_being_loaded, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, methods_without_names, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, memory_that_is_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_build_id_in_part, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, sub_descriptors, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_chain_of_sub_descriptors, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, large_sub_descriptors, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_contract_of_a_sub_descriptor, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_sub_descriptors, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, broken_sub_descriptors, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
