/*
 * wait_role.h: the roles of methods of the framework in a wait: a method waits for some kind of object, runs a task,
 * or runs work items of the thread pool. The innermost managed frames of a waiting thread are methods that wait; the
 * first frame of another method ends them.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading;
 * src/coreclr/System.Private.CoreLib/src/System/Threading.
 */
#ifndef CDACQ_CONTRACTS_THREADING_WAIT_ROLE_H
#define CDACQ_CONTRACTS_THREADING_WAIT_ROLE_H

#include "contracts/threading/threading_types.h"

enum wait_role {
    WAIT_ROLE_NONE,
    WAIT_ROLE_ENTER,         /* Monitor.Enter */
    WAIT_ROLE_PULSE,         /* Monitor.Wait */
    WAIT_ROLE_LOCK,          /* System.Threading.Lock */
    WAIT_ROLE_READER_WRITER, /* ReaderWriterLockSlim */
    WAIT_ROLE_EVENT,         /* ManualResetEventSlim */
    WAIT_ROLE_SEMAPHORE,     /* SemaphoreSlim */
    WAIT_ROLE_TASK,
    WAIT_ROLE_TASKS,       /* Task.WaitAll */
    WAIT_ROLE_JOIN,        /* Thread.Join */
    WAIT_ROLE_HANDLE,      /* WaitHandle */
    WAIT_ROLE_INITIALIZER, /* waits for another thread to run the static constructor of a type */
    WAIT_ROLE_SLEEP,       /* Thread.Sleep */
    WAIT_ROLE_FINALIZERS,  /* GC.WaitForPendingFinalizers */
    WAIT_ROLE_PROCESS,     /* Process.WaitForExit */
    WAIT_ROLE_LAST_WAIT = WAIT_ROLE_PROCESS,
    WAIT_ROLE_RUNS_TASK,   /* no wait: it runs the task that is its `this` */
    WAIT_ROLE_WORKER,      /* no wait: the thread is a worker of the thread pool */
    WAIT_ROLE_RUNS_WORK,   /* no wait: it runs work items of the thread pool */
    WAIT_ROLE_SERVES_POOL, /* no wait: the thread belongs to the thread pool, but never runs work items */
    WAIT_ROLE_SUBSYSTEM,   /* waits for whoever called it; the roles above wait in such methods since .NET 11 */
    WAIT_ROLE_COUNT
};

static inline bool wait_role_waits(enum wait_role role)
{
    return role != WAIT_ROLE_NONE && role <= WAIT_ROLE_LAST_WAIT;
}

/* The type of the object that a frame with this role refers to; THREADING_OTHER: it can be of any type. */
enum threading_type wait_role_type(enum wait_role role);

/* The role of a MethodDef of the core library's metadata. */
enum wait_role wait_role_of(const struct metadata *metadata, uint32_t token);

/* The same of any other module of the framework. */
enum wait_role wait_role_elsewhere(const struct metadata *metadata, uint32_t token);

/* Whether a MethodDef of any module is a static constructor. */
bool wait_is_initializer(const struct metadata *metadata, uint32_t token);

/*
 * Whether a MethodDef of any module belongs to the framework, by its namespace. A method of the framework may wait for
 * a short time, again and again, for a caller that waits without end, as Barrier.SignalAndWait does.
 */
bool wait_is_of_framework(const struct metadata *metadata, uint32_t token);

#endif
