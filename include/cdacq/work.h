/*
 * cdacq/work.h: what a process has yet to do: work items in the queues of the thread pool, timers, and HTTP requests in
 * flight. They are found on the GC heap, by the names of types and fields. One thread at a time uses a session. Source:
 * dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/{ThreadPoolWorkQueue,Timer}.cs,
 * src/libraries/System.Net.Http/src/System/Net/Http/HttpClient.cs; dotnet/aspnetcore
 * src/Servers/Kestrel/Core/src/Internal/Http/HttpProtocol.cs.
 */
#ifndef CDACQ_WORK_H
#define CDACQ_WORK_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* What a work item is. */
enum cdacq_work_kind {
    CDACQ_WORK_OTHER,    /* an object with a method Execute (IThreadPoolWorkItem): `type` tells more */
    CDACQ_WORK_TASK,     /* a Task that runs a delegate */
    CDACQ_WORK_ASYNC,    /* the rest of an async method */
    CDACQ_WORK_CALLBACK, /* a delegate: of ThreadPool.QueueUserWorkItem, or what goes on after an await */
};

/* "task"; "?" for another number. Static. */
CDACQ_API const char *cdacq_work_kind_text(enum cdacq_work_kind kind);

/* Work items of one kind, method and type. The library sets `size`. Pointers are valid until the callback returns. */
struct cdacq_work_item {
    size_t size;
    enum cdacq_work_kind kind;
    const char *method; /* that runs; NULL: not known */
    const char *type;   /* of the object, as Type.ToString() gives it; NULL: not known */
    uint64_t count;     /* 1 or more */
    uint64_t object;    /* the first */
};

/* Timers that run, with one callback and period. The library sets `size`. Likewise. */
struct cdacq_timer {
    size_t size;
    const char *callback; /* the method; NULL: not known */
    int64_t period_ms;    /* -1: it fires once */
    uint64_t count;       /* 1 or more */
    int64_t first_due_ms; /* until the first and the last of them are due; negative: they are late */
    int64_t last_due_ms;
    bool is_exact;   /* false, of a core: they are due in this time or earlier */
    uint64_t object; /* the first to be due */
};

/*
 * An HTTP request that an async method sends, or that the program answers. One whose answer is read as a stream no
 * longer counts as sent, nor does one that a thread sends by itself (HttpClient.Send). The library sets `size`.
 * Likewise.
 */
struct cdacq_http_request {
    size_t size;
    bool is_served;      /* by the process (Kestrel); false: the process sent it (HttpClient) */
    const char *request; /* "GET http://host/path"; a served one has no host; NULL: not known */
    bool has_elapsed;    /* the next two are known */
    bool is_exact;       /* false, of a core: it is older than that */
    int64_t elapsed_ms;  /* since it began */
    uint64_t object;     /* a HttpRequestMessage, or the HttpProtocol that serves it */
};

/* The caller sets `size`. */
struct cdacq_work_info {
    size_t size;
    bool has_queue; /* false: the process has not used the thread pool, or its queues are not known */
    uint64_t item_count, timer_count, request_count;
    uint64_t problem_count; /* what was left out: each was told to cdacq_work_visitor.problem, up to 1,000 */
};

/*
 * What is called. A callback that returns non-zero ends the visit. Any may be NULL. None may use the session. The
 * caller sets `size`.
 */
struct cdacq_work_visitor {
    size_t size;
    int (*item)(const struct cdacq_work_item *item, void *context);          /* the most frequent first */
    int (*timer)(const struct cdacq_timer *timer, void *context);            /* in the order in which they are due */
    int (*request)(const struct cdacq_http_request *request, void *context); /* sent ones first; the oldest first */
    int (*problem)(const char *text, void *context); /* one printable line; valid until the callback returns */
    void *context;
};

/*
 * Visits the work items, then the timers, then the requests. At most 1,048,576 work items and timers and 65,536
 * requests of each side are looked at. CDACQ_STOPPED: a callback returned non-zero. `ret` may be NULL. Fails as
 * cdacq_session_visit_heap does, and with CONTRACT for NativeAOT. *ret is set unless it fails. A process that runs
 * changes meanwhile: stop it (CDACQ_OPEN_STOP), or the result is inexact.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_work(struct cdacq_session *session,
                                                     const struct cdacq_work_visitor *visitor,
                                                     struct cdacq_work_info *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
