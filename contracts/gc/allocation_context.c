#include "contracts/gc/allocation_context.h"

#include <inttypes.h>
#include <stdio.h>

#include "contracts/thread.h"

/* Adds the hole of a GCAllocContext, unless it has none. */
static void add_hole(struct reader *reader, uint64_t context, struct gc_holes *holes)
{
    uint64_t begin = read_field(reader, context, F_GCAllocContext_Pointer);
    uint64_t limit = read_field(reader, context, F_GCAllocContext_Limit);
    uint64_t end = add_saturated(limit, 3 * (uint64_t)reader->pointer_size);
    if (reader_failed(reader) || !begin || begin > limit)
        return;
    if (!gc_holes_append(holes, (struct gc_hole){begin, end}))
        reader_fail(reader, CDACQ_ERR_NOMEM, context, "allocation contexts");
}

/* The GCAllocContext in an EEAllocContext, which .NET 9 does not have. */
static uint64_t inner_context(struct reader *reader, uint64_t context)
{
    return has_field(reader, F_EEAllocContext_GCAllocationContext)
               ? field_address(reader, context, F_EEAllocContext_GCAllocationContext)
               : context;
}

static void add_thread(struct reader *reader, uint64_t thread, struct gc_holes *holes)
{
    if (has_field(reader, F_Thread_m_alloc_context)) {
        add_hole(reader, field_address(reader, thread, F_Thread_m_alloc_context), holes);
        return;
    }
    uint64_t locals = read_field(reader, thread, F_Thread_RuntimeThreadLocals);
    if (locals && !reader_failed(reader)) /* 0: the thread has ended */
        add_hole(reader, inner_context(reader, field_address(reader, locals, F_RuntimeThreadLocals_AllocContext)),
                 holes);
}

/* Lists the threads, as far as possible. A list that does not end is a problem. False: it may not go on. */
static bool list_threads(struct reader *reader, struct gc_problems *problems, struct thread_list *ret)
{
    struct reader_task outer = reader_enter(reader, FUEL_OPEN);
    thread_list_read(reader, ret);
    struct reader_failure failure = reader_leave(reader, &outer);
    if (failure.status == CDACQ_ERR_FUEL || (failure.status < 0 && ret->count == RUNTIME_THREADS_MAX))
        gc_problem(problems, "allocation contexts of threads: the list of threads has no end, or is too long");
    else if (reader_fail_again(reader, &failure))
        return gc_problem_of_reader(problems, reader, "allocation contexts of threads");
    return true;
}

/* False: it may not go on. */
static bool add_threads(struct reader *reader, struct gc_problems *problems, struct gc_holes *holes)
{
    struct thread_list threads;
    bool good = list_threads(reader, problems, &threads);
    for (size_t i = 0; i < threads.count && good; i++) {
        char prefix[80];
        uint64_t thread = threads.items[i].address;
        add_thread(reader, thread, holes);
        snprintf(prefix, sizeof prefix, "the allocation context of the Thread at 0x%" PRIx64, thread);
        good = gc_problem_of_reader(problems, reader, prefix);
    }
    thread_list_deinit(&threads);
    return good;
}

bool gc_holes_read(struct reader *reader, const struct gc *gc, struct gc_problems *problems, struct gc_holes *ret)
{
    const struct layout *layout = reader->layout;
    *ret = (struct gc_holes){0};
    bool good = add_threads(reader, problems, ret);
    if (good && layout->global_present[G_GlobalAllocContext]) {
        add_hole(reader, inner_context(reader, layout->globals[G_GlobalAllocContext]), ret);
        good = gc_problem_of_reader(problems, reader, "the allocation context of the process");
    }
    for (size_t heap = 0; heap < gc->heaps.count && good; heap++)
        for (unsigned generation = 0; generation < GC_GENERATION_MAX && good; generation++) {
            add_hole(reader, gc_generation(gc, &gc->heaps.items[heap], generation) + gc->generation.allocation_context,
                     ret);
            good = gc_problem_of_reader(problems, reader, "the allocation context of a generation");
        }
    sort_u64(ret->items, ret->count, sizeof *ret->items);
    return good;
}
