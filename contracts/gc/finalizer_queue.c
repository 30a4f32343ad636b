#include "contracts/gc/finalizer_queue.h"

#include <inttypes.h>

enum {
    POINTERS = GC_GENERATION_MAX + 2, /* each is the end of a part; the array itself comes after them */
    OBJECTS_MAX = 1 << 28,            /* of a heap */
};

/* Visits the objects of one part. False: the visit ends. */
static bool visit_part(struct reader *reader, uint64_t begin, uint64_t end, bool is_ready, bool *stopped,
                       bool (*visit)(void *context, uint64_t slot, uint64_t object, bool is_ready), void *context)
{
    for (uint64_t slot = begin; slot < end && reader_step(reader, "the finalizer queue");
         slot += reader->pointer_size) {
        uint64_t object = read_pointer(reader, slot);
        if (object && !reader_failed(reader) && !visit(context, slot, object, is_ready)) {
            *stopped = true;
            return false;
        }
    }
    return !reader_failed(reader);
}

bool gc_finalizable_visit(struct reader *reader, const struct gc *gc, struct gc_problems *problems,
                          bool (*visit)(void *context, uint64_t slot, uint64_t object, bool is_ready), void *context)
{
    unsigned pointer = reader->pointer_size;
    for (size_t heap = 0; heap < gc->heaps.count; heap++) {
        uint64_t queue = gc->heaps.items[heap].finalize_queue, at = queue + gc->fill_pointers;
        bool stopped = false;
        if (!queue) {
            gc_problem(problems, "the finalizer queue of heap %zu was left out: the runtime does not describe it",
                       heap);
            continue;
        }
        uint64_t begin = read_pointer(reader, at + (uint64_t)POINTERS * pointer);
        for (unsigned i = 0; i < POINTERS && !reader_failed(reader); i++) {
            uint64_t end = read_pointer(reader, at + (uint64_t)i * pointer);
            if (!reader_failed(reader) &&
                (end < begin || (end - begin) / pointer > OBJECTS_MAX || (end - begin) % pointer)) {
                gc_problem(problems, "the finalizer queue at 0x%" PRIx64 " was left out: its bounds cannot be right",
                           queue);
                break;
            }
            if (!visit_part(reader, begin, end, i >= GC_GENERATION_MAX, &stopped, visit, context))
                break;
            begin = end;
        }
        if (stopped || !gc_problem_of_reader(problems, reader, "the finalizer queue"))
            return false;
    }
    return true;
}
