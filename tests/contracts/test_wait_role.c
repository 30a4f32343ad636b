/*
 * test_wait_role.c: the role of each method of the core library that a thread waits in. What the core libraries of the
 * runtimes call these methods is tested with processes that wait (tests/dotnet/).
 */
#include "contracts/threading/wait_role.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/paged_bytes.h"

struct method {
    const char *space, *type, *name;
    enum wait_role role;
};

/* At least one for each row of the table, and the names in the list with a `*` with and without an ending. */
static const struct method methods[] = {
    {"System.Threading", "Monitor", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Monitor", "ObjWait", WAIT_ROLE_PULSE},
    {"System.Threading", "Monitor", "Enter", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "Enter_Slowpath", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "ReliableEnter", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "ReliableEnterTimeout", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "TryEnter", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "TryEnter_FastPath_WithTimeout", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "SynchronizedMethodEnter", WAIT_ROLE_ENTER},
    {"System.Threading", "ObjectHeader", "AcquireThinLock", WAIT_ROLE_ENTER},
    {"System.Threading", "ObjectHeader", "TryAcquireThinLock", WAIT_ROLE_ENTER},
    {"System.Threading", "Condition", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Lock", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Lock", "Reenter", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "TryEnterSlow", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "Enter", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "EnterScope", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "TryEnter", WAIT_ROLE_LOCK},
    {"System.Threading", "ReaderWriterLockSlim", "WaitOnEvent", WAIT_ROLE_READER_WRITER},
    {"System.Threading", "ReaderWriterLockSlim", "EnterWriteLock", WAIT_ROLE_READER_WRITER},
    {"System.Threading", "ReaderWriterLockSlim", "TryEnterReadLockCore", WAIT_ROLE_READER_WRITER},
    {"System.Threading", "ManualResetEventSlim", "Wait", WAIT_ROLE_EVENT},
    {"System.Threading", "SemaphoreSlim", "Wait", WAIT_ROLE_SEMAPHORE},
    {"System.Threading", "SemaphoreSlim", "WaitUntilCountOrTimeout", WAIT_ROLE_SEMAPHORE},
    {"System.Threading.Tasks", "Task", "Wait", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "InternalWait", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "InternalWaitCore", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "SpinThenBlockingWait", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "WaitAll", WAIT_ROLE_TASKS},
    {"System.Threading.Tasks", "Task", "WaitAllBlockingCore", WAIT_ROLE_TASKS},
    {"System.Threading", "Thread", "Join", WAIT_ROLE_JOIN},
    {"System.Threading", "Thread", "<Join>g____PInvoke|72_0", WAIT_ROLE_JOIN},
    {"System.Threading", "Thread", "Sleep", WAIT_ROLE_SLEEP},
    {"System.Threading", "Thread", "<SleepInternal>g____PInvoke|72_0", WAIT_ROLE_SLEEP},
    {"System", "GC", "WaitForPendingFinalizers", WAIT_ROLE_FINALIZERS},
    {"System", "GC", "_WaitForPendingFinalizers", WAIT_ROLE_FINALIZERS},
    {"System", "GC", "<WaitForPendingFinalizers>g____PInvoke|0_0", WAIT_ROLE_FINALIZERS},
    {"System", "GC", "<_WaitForPendingFinalizers>g____PInvoke|0_0", WAIT_ROLE_FINALIZERS},
    {"System.Threading", "WaitHandle", "WaitOne", WAIT_ROLE_HANDLE},
    {"System.Threading", "WaitHandle", "WaitAny", WAIT_ROLE_HANDLE},
    {"System.Threading", "WaitHandle", "SignalAndWait", WAIT_ROLE_HANDLE},
    {"System.Runtime.CompilerServices", "InitHelpers", "InitClassSlow", WAIT_ROLE_INITIALIZER},
    {"System.Runtime.CompilerServices", "StaticsHelpers", "GetGCStaticBase", WAIT_ROLE_INITIALIZER},
    {"System.Threading.Tasks", "Task", "ExecuteWithThreadLocal", WAIT_ROLE_RUNS_TASK},
    {"", "AsyncStateMachineBox`1", "MoveNext", WAIT_ROLE_RUNS_TASK},
    {"", "ThunkTaskCore", "MoveNext", WAIT_ROLE_RUNS_TASK},
    {"", "WorkerThread", "WorkerThreadStart", WAIT_ROLE_WORKER},
    {"System.Threading", "ThreadPoolWorkQueue", "Dispatch", WAIT_ROLE_RUNS_WORK},
    {"", "GateThread", "GateThreadStart", WAIT_ROLE_SERVES_POOL},
    {"", "WaitThread", "WaitThreadStart", WAIT_ROLE_SERVES_POOL},
    {"System.Threading", "WaitSubsystem", "Wait", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "WaitSubsystem", "SignalAndWait", WAIT_ROLE_SUBSYSTEM},
    {"", "ThreadWaitInfo", "Wait", WAIT_ROLE_SUBSYSTEM},
    {"", "WaitableObject", "Wait_Locked", WAIT_ROLE_SUBSYSTEM},
    {"", "NamedMutex", "Wait_Locked", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "NamedMutexProcessDataBase", "TryAcquireLock", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "NamedMutexProcessDataWithPThreads", "AcquireLockCore", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "LowLevelMonitor", "WaitCore", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "LowLevelMonitor_Wait", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "<LowLevelMonitor_TimedWait>g____PInvoke|73_0", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "LowLevelCrossProcessMutex_Acquire", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "<LowLevelCrossProcessMutex_Acquire>g____PInvoke|168_0", WAIT_ROLE_SUBSYSTEM},

    /* A name that is not a beginning has no ending and no beginning left out. */
    {"System.Threading", "Monitor", "Wait_Slow", WAIT_ROLE_NONE},
    {"System.Threading", "Monitor", "Wai", WAIT_ROLE_NONE},
    {"System.Threading", "Monitor", "Ente", WAIT_ROLE_NONE},
    {"System.Threading", "Monitor", "Exit", WAIT_ROLE_NONE},
    {"System.Threading", "Lock", "Exit", WAIT_ROLE_NONE},
    {"System.Threading", "Condition", "SignalOne", WAIT_ROLE_NONE},
    {"", "Sys", "Read", WAIT_ROLE_NONE},
    {"System.Threading", "LowLevelLock", "WaitAndAcquire", WAIT_ROLE_NONE},
    {"System.Threading", "Monitor", "enter", WAIT_ROLE_NONE},
    {"System.Threading.Tasks", "Task", "Waiting", WAIT_ROLE_NONE},
    {"System.Threading.Tasks", "Task", "", WAIT_ROLE_NONE},
    /* The type has to be the same, with its namespace. */
    {"System.Threading", "Task", "Wait", WAIT_ROLE_NONE},
    {"System.Threading.Tasks", "Monitor", "Wait", WAIT_ROLE_NONE},
    {"System.Threading", "Monitors", "Wait", WAIT_ROLE_NONE},
    {"System", "Monitor", "Wait", WAIT_ROLE_NONE},
    {"", "Monitor", "Wait", WAIT_ROLE_NONE},
    {"System.Threading", "WorkerThread", "WorkerThreadStart", WAIT_ROLE_NONE},
    /* A role that only other modules have. */
    {"System.Diagnostics", "Process", "WaitForExit", WAIT_ROLE_NONE},
    {"System.Diagnostics", "ProcessWaitState", "WaitForExit", WAIT_ROLE_NONE},
    /* A static constructor waits for nothing by itself. */
    {"Demo", "Settings", ".cctor", WAIT_ROLE_NONE},
};

static uint8_t *written;
static struct paged_bytes paged;
static struct bytes bytes;
static struct metadata metadata;

/* A type for each method: the one that comes after the type `<Module>`, in the same order. */
static void setup(void)
{
    struct metadata_writer writer;
    size_t size;
    metadata_writer_init(&writer);
    for (uint32_t i = 0; i < ARRAY_SIZE(methods); i++) {
        METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, metadata_writer_string(&writer, methods[i].name), 0, 1);
        METADATA_ROW(&writer, METADATA_TYPE_DEF, 0, metadata_writer_string(&writer, methods[i].type),
                     metadata_writer_string(&writer, methods[i].space), 0, 1, i + 1);
    }
    written = metadata_writer_finish(&writer, &size);
    metadata_writer_deinit(&writer);
    bytes = paged_bytes_open(&paged, written, size);
    ck_assert_int_eq(metadata_open(&bytes, &metadata), CDACQ_OK);
}

static void teardown(void)
{
    paged_bytes_close(&paged);
    free(written);
}

static uint32_t token_of(size_t i)
{
    return metadata_token(METADATA_METHOD_DEF, (uint32_t)i + 1);
}

START_TEST(each_method_has_its_role)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        ck_assert_msg(wait_role_of(&metadata, token_of(i)) == methods[i].role, "%s.%s.%s", methods[i].space,
                      methods[i].type, methods[i].name);
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        bool waits = strcmp(methods[i].space, "System.Diagnostics") == 0;
        ck_assert_int_eq(wait_role_elsewhere(&metadata, token_of(i)), waits ? WAIT_ROLE_PROCESS : WAIT_ROLE_NONE);
    }
}
END_TEST

/* Of any type. An instance constructor is none. */
START_TEST(static_constructors)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        ck_assert(wait_is_initializer(&metadata, token_of(i)) == (strcmp(methods[i].name, ".cctor") == 0));
    ck_assert(!wait_is_initializer(&metadata, metadata_token(METADATA_METHOD_DEF, ARRAY_SIZE(methods) + 1)));
    ck_assert(!wait_is_initializer(&metadata, metadata_token(METADATA_TYPE_DEF, 1)));
}
END_TEST

START_TEST(each_role_has_a_method)
{
    for (unsigned role = WAIT_ROLE_NONE; role < WAIT_ROLE_COUNT; role++) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
            found |= methods[i].role == role || wait_role_elsewhere(&metadata, token_of(i)) == role;
        ck_assert_msg(found, "role %u", role);
    }
}
END_TEST

START_TEST(what_is_no_method_has_no_role)
{
    const uint32_t tokens[] = {0, metadata_token(METADATA_METHOD_DEF, 0), token_of(ARRAY_SIZE(methods)),
                               metadata_token(METADATA_TYPE_DEF, 2), UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
        ck_assert_int_eq(wait_role_of(&metadata, tokens[i]), WAIT_ROLE_NONE);
}
END_TEST

START_TEST(which_roles_wait)
{
    for (unsigned role = 0; role < WAIT_ROLE_COUNT; role++) {
        bool waits = role != WAIT_ROLE_NONE && role != WAIT_ROLE_RUNS_TASK && role != WAIT_ROLE_WORKER &&
                     role != WAIT_ROLE_RUNS_WORK && role != WAIT_ROLE_SERVES_POOL && role != WAIT_ROLE_SUBSYSTEM;
        ck_assert_msg(wait_role_waits((enum wait_role)role) == waits, "role %u", role);
    }
}
END_TEST

START_TEST(methods_of_the_framework_are_told_by_their_namespace)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        ck_assert_int_eq(wait_is_of_framework(&metadata, token_of(i)),
                         strncmp(methods[i].space, "System.", strlen("System.")) == 0);
    ck_assert(!wait_is_of_framework(&metadata, metadata_token(METADATA_TYPE_DEF, 2)));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("wait_role");
    TCase *tc = tcase_create("wait_role");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, each_method_has_its_role);
    tcase_add_test(tc, static_constructors);
    tcase_add_test(tc, each_role_has_a_method);
    tcase_add_test(tc, what_is_no_method_has_no_role);
    tcase_add_test(tc, which_roles_wait);
    tcase_add_test(tc, methods_of_the_framework_are_told_by_their_namespace);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
