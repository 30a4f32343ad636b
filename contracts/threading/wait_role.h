/*
 * wait_role.h: what a frame of the core library does while its thread waits: which kind of object it waits for, or that
 * it runs a task or work items of the pool. The innermost managed frames of a waiting thread are such methods; the
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
    WAIT_ROLE_INITIALIZER, /* the static constructor of a type has to run first */
    WAIT_ROLE_LAST_WAIT = WAIT_ROLE_INITIALIZER,
    WAIT_ROLE_RUNS_TASK,   /* no wait: it runs the task that is its `this` */
    WAIT_ROLE_WORKER,      /* no wait: the thread is a worker of the thread pool */
    WAIT_ROLE_RUNS_WORK,   /* no wait: it runs work items of the thread pool */
    WAIT_ROLE_SERVES_POOL, /* no wait: the thread is of the thread pool, and no worker: it never runs work items */
    WAIT_ROLE_COUNT
};

static inline bool wait_role_waits(enum wait_role role)
{
    return role != WAIT_ROLE_NONE && role <= WAIT_ROLE_LAST_WAIT;
}

/* The type of the objects that frames of a role have; THREADING_OTHER: of any. */
enum threading_type wait_role_type(enum wait_role role);

/* The role of a MethodDef of the core library's metadata. */
enum wait_role wait_role_of(const struct metadata *metadata, uint32_t token);

/* Whether a MethodDef of any module is a static constructor. */
bool wait_is_initializer(const struct metadata *metadata, uint32_t token);

/*
 * Whether a MethodDef of any module is of the framework, by its namespace. Such a method may wait again and again for a
 * short time on behalf of one that waits without end, as Barrier.SignalAndWait does.
 */
bool wait_is_of_framework(const struct metadata *metadata, uint32_t token);

#endif
