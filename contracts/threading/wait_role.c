#include "contracts/threading/wait_role.h"

#include "formats/metadata_members.h"

/* A `*` at the end of a method's name stands for any characters. The first row that matches counts. */
struct role_row {
    const char *space, *type, *method;
    enum wait_role role;
};

static const struct role_row rows[] = {
    {"System.Threading", "Monitor", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Monitor", "ObjWait", WAIT_ROLE_PULSE},
    {"System.Threading", "Monitor", "Enter*", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "ReliableEnter*", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "TryEnter*", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "SynchronizedMethodEnter", WAIT_ROLE_ENTER},
    {"System.Threading", "ObjectHeader", "AcquireThinLock", WAIT_ROLE_ENTER},
    {"System.Threading", "ObjectHeader", "TryAcquireThinLock", WAIT_ROLE_ENTER},
    {"System.Threading", "Condition", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Lock", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Lock", "TryEnterSlow", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "Enter*", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "TryEnter*", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "Reenter", WAIT_ROLE_LOCK},
    {"System.Threading", "ReaderWriterLockSlim", "WaitOnEvent", WAIT_ROLE_READER_WRITER},
    {"System.Threading", "ReaderWriterLockSlim", "Enter*", WAIT_ROLE_READER_WRITER},
    {"System.Threading", "ReaderWriterLockSlim", "TryEnter*", WAIT_ROLE_READER_WRITER},
    {"System.Threading", "ManualResetEventSlim", "Wait", WAIT_ROLE_EVENT},
    {"System.Threading", "SemaphoreSlim", "Wait*", WAIT_ROLE_SEMAPHORE},
    {"System.Threading.Tasks", "Task", "Wait", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "InternalWait", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "InternalWaitCore", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "SpinThenBlockingWait", WAIT_ROLE_TASK},
    {"System.Threading.Tasks", "Task", "WaitAll*", WAIT_ROLE_TASKS},
    {"System.Threading", "Thread", "Join*", WAIT_ROLE_JOIN},
    {"System.Threading", "Thread", "<Join>*", WAIT_ROLE_JOIN}, /* the native function that Join calls */
    {"System.Threading", "Thread", "Sleep*", WAIT_ROLE_SLEEP},
    {"System.Threading", "Thread", "<Sleep*", WAIT_ROLE_SLEEP},
    {"System", "GC", "WaitForPendingFinalizers", WAIT_ROLE_FINALIZERS},
    {"System", "GC", "_WaitForPendingFinalizers", WAIT_ROLE_FINALIZERS},
    {"System", "GC", "<WaitForPendingFinalizers*", WAIT_ROLE_FINALIZERS},
    {"System", "GC", "<_WaitForPendingFinalizers*", WAIT_ROLE_FINALIZERS},
    {"System.Threading", "WaitHandle", "Wait*", WAIT_ROLE_HANDLE},
    {"System.Threading", "WaitHandle", "SignalAndWait*", WAIT_ROLE_HANDLE},
    {"System.Threading", "WaitSubsystem", "*", WAIT_ROLE_SUBSYSTEM},
    {"", "ThreadWaitInfo", "*", WAIT_ROLE_SUBSYSTEM},
    {"", "WaitableObject", "*", WAIT_ROLE_SUBSYSTEM},
    {"", "NamedMutex", "*", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "NamedMutexProcessDataBase", "*", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "NamedMutexProcessDataWithPThreads", "*", WAIT_ROLE_SUBSYSTEM},
    {"System.Threading", "LowLevelMonitor", "*", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "LowLevelMonitor_*", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "<LowLevelMonitor_*", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "LowLevelCrossProcessMutex_*", WAIT_ROLE_SUBSYSTEM},
    {"", "Sys", "<LowLevelCrossProcessMutex_*", WAIT_ROLE_SUBSYSTEM},
    {"System.Runtime.CompilerServices", "InitHelpers", "Init*", WAIT_ROLE_INITIALIZER}, /* since .NET 10 */
    {"System.Runtime.CompilerServices", "StaticsHelpers", "Get*", WAIT_ROLE_INITIALIZER},
    {"System.Threading.Tasks", "Task", "ExecuteWithThreadLocal", WAIT_ROLE_RUNS_TASK},
    {"", "AsyncStateMachineBox`1", "MoveNext", WAIT_ROLE_RUNS_TASK},
    {"", "ThunkTaskCore", "MoveNext", WAIT_ROLE_RUNS_TASK}, /* async methods that the runtime suspends */
    {"", "RuntimeAsyncTask`1", "DispatchContinuations", WAIT_ROLE_RUNS_TASK}, /* likewise, in .NET 11.0.0 */
    {"", "RuntimeAsyncTask`1", "InstrumentedDispatchContinuations", WAIT_ROLE_RUNS_TASK},
    {"", "WorkerThread", "WorkerThreadStart", WAIT_ROLE_WORKER},
    {"System.Threading", "ThreadPoolWorkQueue", "Dispatch", WAIT_ROLE_RUNS_WORK},
    {"", "GateThread", "GateThreadStart", WAIT_ROLE_SERVES_POOL}, /* starts workers */
    {"", "WaitThread", "WaitThreadStart", WAIT_ROLE_SERVES_POOL}, /* of RegisterWaitForSingleObject */
};

/* Of other modules. */
static const struct role_row rows_elsewhere[] = {
    {"System.Diagnostics", "Process", "WaitForExit*", WAIT_ROLE_PROCESS},
    {"System.Diagnostics", "ProcessWaitState", "WaitForExit*", WAIT_ROLE_PROCESS},
};

enum threading_type wait_role_type(enum wait_role role)
{
    static const enum threading_type types[WAIT_ROLE_COUNT] = {
        [WAIT_ROLE_LOCK] = THREADING_LOCK,
        [WAIT_ROLE_EVENT] = THREADING_EVENT,
        [WAIT_ROLE_SEMAPHORE] = THREADING_SEMAPHORE,
        [WAIT_ROLE_TASK] = THREADING_TASK,
        [WAIT_ROLE_TASKS] = THREADING_LIST,
        [WAIT_ROLE_JOIN] = THREADING_THREAD,
        [WAIT_ROLE_HANDLE] = THREADING_WAIT_HANDLE,
        [WAIT_ROLE_RUNS_TASK] = THREADING_TASK,
        [WAIT_ROLE_READER_WRITER] = THREADING_READER_WRITER,
    };
    return types[role];
}

static bool matches(const struct metadata *metadata, uint32_t name, const char *pattern)
{
    char buffer[METADATA_STRING_CAP];
    const char *text;
    size_t length, wanted = strlen(pattern);
    bool prefix = pattern[wanted - 1] == '*';
    if (metadata_string(metadata, name, buffer, &text, &length) != CDACQ_OK)
        return false;
    wanted -= prefix;
    return (prefix ? length >= wanted : length == wanted) && memcmp(text, pattern, wanted) == 0;
}

static enum wait_role role_in(const struct role_row *list, size_t count, const struct metadata *metadata,
                              uint32_t token)
{
    struct metadata_method_def method;
    uint32_t owner;
    if (metadata_token_table(token) != METADATA_METHOD_DEF ||
        metadata_method_def(metadata, metadata_rid(token), &method) != CDACQ_OK ||
        metadata_method_owner(metadata, metadata_rid(token), &owner) != CDACQ_OK)
        return WAIT_ROLE_NONE;
    for (size_t i = 0; i < count; i++) {
        bool equal = false;
        if (matches(metadata, method.name, list[i].method) &&
            metadata_type_is(metadata, metadata_token(METADATA_TYPE_DEF, owner), list[i].space, list[i].type, &equal) ==
                CDACQ_OK &&
            equal)
            return list[i].role;
    }
    return WAIT_ROLE_NONE;
}

enum wait_role wait_role_of(const struct metadata *metadata, uint32_t token)
{
    return role_in(rows, ARRAY_SIZE(rows), metadata, token);
}

enum wait_role wait_role_elsewhere(const struct metadata *metadata, uint32_t token)
{
    return role_in(rows_elsewhere, ARRAY_SIZE(rows_elsewhere), metadata, token);
}

bool wait_is_initializer(const struct metadata *metadata, uint32_t token)
{
    struct metadata_method_def method;
    return metadata_token_table(token) == METADATA_METHOD_DEF &&
           metadata_method_def(metadata, metadata_rid(token), &method) == CDACQ_OK &&
           matches(metadata, method.name, ".cctor");
}

bool wait_is_of_framework(const struct metadata *metadata, uint32_t token)
{
    struct metadata_type_def type;
    uint32_t owner;
    return metadata_token_table(token) == METADATA_METHOD_DEF &&
           metadata_method_owner(metadata, metadata_rid(token), &owner) == CDACQ_OK &&
           metadata_type_def(metadata, owner, &type) == CDACQ_OK &&
           (matches(metadata, type.namespace_name, "System.*") ||
            matches(metadata, type.namespace_name, "Microsoft.*"));
}
