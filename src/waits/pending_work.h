/*
 * pending_work.h: what a process has yet to do besides its async methods: work items in the queues of the thread pool,
 * timers, and HTTP requests in flight. It is read from the objects of the heap by the names of their fields: a version
 * of a library that names them otherwise loses its rows.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/{ThreadPoolWorkQueue,Timer,
 * CancellationTokenSource}.cs; src/libraries/System.Net.Http/src/System/Net/Http/HttpClient.cs; dotnet/aspnetcore
 * src/Servers/Kestrel/Core/src/Internal/Http/HttpProtocol.cs, src/Hosting/Hosting/src/Internal/HostingApplication.cs.
 */
#ifndef CDACQ_WAITS_PENDING_WORK_H
#define CDACQ_WAITS_PENDING_WORK_H

#include "cdacq/work.h"
#include "src/waits/async_reasons.h"

enum {
    PENDING_ITEMS_MAX = 1 << 20,    /* work items that are looked at; also timers */
    PENDING_REQUESTS_MAX = 1 << 16, /* of each side */
};

/* Equal ones have all members in common but `object` and `due`. */
struct pending_item {
    uint64_t object;
    enum cdacq_work_kind kind;
    uint64_t entry;   /* the method's entry point; 0: not known, or it is an async method */
    uint64_t machine; /* the state machine of an async method */
    uint64_t type;    /* its method table */
};

struct pending_timer {
    uint64_t object;
    uint64_t entry;    /* of its callback */
    int64_t period_ms; /* -1: it fires once */
    int64_t due;       /* in milliseconds of the target's clock */
};

struct pending_request {
    uint64_t object;
    bool is_served; /* by this process */
    int64_t start;  /* in milliseconds of the same clock; 0: not known */
};

DEFINE_VECTOR(pending_items, struct pending_item);
DEFINE_VECTOR(pending_timers, struct pending_timer);
DEFINE_VECTOR(pending_requests, struct pending_request);

struct pending_work {
    struct async_operations *operations;
    struct pending_items items;
    struct pending_timers timers;
    struct pending_requests requests;
    int64_t latest;       /* the last time that any of them began: the target lived then */
    bool has_queue;       /* the pool has queues */
    bool misses_items;    /* a queue cannot be read to its end */
    bool misses_timers;   /* of the type or of an object, something cannot be read */
    bool misses_requests; /* likewise, of requests that are served */
    bool is_full;         /* there are more than are looked at */
    bool no_memory;
};

/* The kinds of objects that are needed, for async_operations.also_searched. */
uint64_t pending_work_kinds(void);

/* Collects them, after the operations were found. False: out of memory. */
bool pending_work_find(struct pending_work *work, struct async_operations *operations);
void pending_work_deinit(struct pending_work *work);

/* Appends "GET /orders/12?full=1" of a request that the process serves. False: it is not known. */
bool pending_served_put(struct pending_work *work, uint64_t request, struct text *ret);

#endif
