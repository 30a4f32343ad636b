#include "contracts/threading/wait_role.h"

#include "formats/metadata_members.h"

/* A `*` at the end of a method's name stands for any characters. The first row that matches counts. */
static const struct {
    const char *space, *type, *method;
    enum wait_role role;
} rows[] = {
    {"System.Threading", "Monitor", "Wait", WAIT_ROLE_PULSE},
    {"System.Threading", "Monitor", "ObjWait", WAIT_ROLE_PULSE},
    {"System.Threading", "Monitor", "Enter*", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "ReliableEnter*", WAIT_ROLE_ENTER},
    {"System.Threading", "Monitor", "TryEnter*", WAIT_ROLE_ENTER},
    {"System.Threading", "Lock", "TryEnterSlow", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "Enter*", WAIT_ROLE_LOCK},
    {"System.Threading", "Lock", "TryEnter*", WAIT_ROLE_LOCK},
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
    {"System.Threading", "WaitHandle", "Wait*", WAIT_ROLE_HANDLE},
    {"System.Threading", "WaitHandle", "SignalAndWait*", WAIT_ROLE_HANDLE},
    {"System.Runtime.CompilerServices", "InitHelpers", "Init*", WAIT_ROLE_INITIALIZER}, /* since .NET 10 */
    {"System.Runtime.CompilerServices", "StaticsHelpers", "Get*", WAIT_ROLE_INITIALIZER},
    {"System.Threading.Tasks", "Task", "ExecuteWithThreadLocal", WAIT_ROLE_RUNS_TASK},
    {"", "AsyncStateMachineBox`1", "MoveNext", WAIT_ROLE_RUNS_TASK},
    {"", "ThunkTaskCore", "MoveNext", WAIT_ROLE_RUNS_TASK}, /* async methods that the runtime suspends */
    {"", "WorkerThread", "WorkerThreadStart", WAIT_ROLE_WORKER},
    {"System.Threading", "ThreadPoolWorkQueue", "Dispatch", WAIT_ROLE_RUNS_WORK},
    {"", "GateThread", "GateThreadStart", WAIT_ROLE_SERVES_POOL}, /* starts workers */
    {"", "WaitThread", "WaitThreadStart", WAIT_ROLE_SERVES_POOL}, /* of RegisterWaitForSingleObject */
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

enum wait_role wait_role_of(const struct metadata *metadata, uint32_t token)
{
    struct metadata_method_def method;
    uint32_t owner;
    if (metadata_token_table(token) != METADATA_METHOD_DEF ||
        metadata_method_def(metadata, metadata_rid(token), &method) != CDACQ_OK ||
        metadata_method_owner(metadata, metadata_rid(token), &owner) != CDACQ_OK)
        return WAIT_ROLE_NONE;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool equal = false;
        if (matches(metadata, method.name, rows[i].method) &&
            metadata_type_is(metadata, metadata_token(METADATA_TYPE_DEF, owner), rows[i].space, rows[i].type, &equal) ==
                CDACQ_OK &&
            equal)
            return rows[i].role;
    }
    return WAIT_ROLE_NONE;
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
