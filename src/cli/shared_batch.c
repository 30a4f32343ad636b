#include "src/cli/shared_batch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/cli/memory.h"
#include "src/cli/put.h"
#include "util/base.h"

enum { PART = 64 }; /* addresses that a process takes at a time */

struct ranked {
    uint64_t ip;
    size_t rank; /* at first its place in the batch */
};

struct shared_batch {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct answers *answers;
    size_t count;
    uint64_t *sorted;             /* the addresses */
    size_t *ranks;                /* of the batch's addresses among `sorted` */
    struct cdacq_method *methods; /* as `sorted` */
    _Atomic uint64_t *left;       /* of `sorted`, in memory of both processes: the first one; from bit 32 on, the end */
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->ip < y->ip ? -1 : x->ip > y->ip;
}

static void sort(const uint64_t *ips, const struct shared_batch *batch)
{
    struct ranked *items = reallocate(NULL, batch->count * sizeof *items);
    for (size_t i = 0; i < batch->count; i++)
        items[i] = (struct ranked){ips[i], i};
    qsort(items, batch->count, sizeof *items, compare);
    for (size_t i = 0; i < batch->count; i++) {
        batch->sorted[i] = items[i].ip;
        batch->ranks[items[i].rank] = i;
    }
    free(items);
}

/* Takes addresses that are left. False: there are none. */
static bool take(const struct shared_batch *batch, bool is_second, size_t *ret_first, size_t *ret_count)
{
    uint64_t left = atomic_load(batch->left), after;
    do {
        uint64_t first = (uint32_t)left, end = left >> 32, count = MIN(end - first, (uint64_t)PART);
        if (!count)
            return false;
        *ret_first = (size_t)(is_second ? end - count : first);
        *ret_count = (size_t)count;
        after = is_second ? (end - count) << 32 | first : end << 32 | (first + count);
    } while (!atomic_compare_exchange_weak(batch->left, &left, after));
    return true;
}

/* Whether the answer is one that the tool tells of or counts in a message. */
static bool needs_message(const struct cdacq_method *method)
{
    return method->answer == CDACQ_ANSWER_ERROR || !method->module_verified ||
           (method->answer == CDACQ_ANSWER_MANAGED && answers_doubt_name(method));
}

/* Looks up addresses until none is left. False: an answer needs a message. */
static bool look_up(const struct shared_batch *batch, bool is_second)
{
    size_t first, count;
    while (take(batch, is_second, &first, &count)) {
        struct cdacq_method *methods = &batch->methods[first];
        methods->size = sizeof *methods;
        if (cdacq_session_methods_at(batch->session, &batch->sorted[first], count, methods, NULL) < 0)
            return false;
        for (size_t i = 0; i < count; i++)
            if (needs_message(&methods[i]))
                return false;
    }
    return true;
}

/* Once no address is left: whether the second process took the one at a place of the batch. */
static bool is_of_second(const struct shared_batch *batch, size_t place)
{
    return batch->ranks[place] >= (uint32_t)atomic_load(batch->left);
}

/* Writes the answers of one process in the order of the batch. */
static void write_answers(const struct shared_batch *batch, bool is_second, struct output *out)
{
    struct output *usual = batch->answers->out;
    out->colour = usual->colour;
    batch->answers->out = out;
    for (size_t i = 0; i < batch->count; i++)
        if (is_of_second(batch, i) == is_second)
            answers_write(batch->answers, &batch->methods[batch->ranks[i]]);
    batch->answers->out = usual;
}

static bool answer_as_second(void *context, struct output *out)
{
    const struct shared_batch *batch = context;
    char bound[1];
    if (!look_up(batch, true) || cdacq_target_bound_reached(batch->target, bound, sizeof bound))
        return false;
    write_answers(batch, true, out);
    return true;
}

/* Puts the lines of both processes, which are in order, into the order of the batch. */
static void merge(const struct shared_batch *batch, const struct output *own, const struct output *other)
{
    const char *lines[] = {own->data, other->data};
    size_t left[] = {own->length, other->length};
    for (size_t i = 0; i < batch->count; i++) {
        bool is_other = is_of_second(batch, i);
        const char *line = lines[is_other], *newline = left[is_other] ? memchr(line, '\n', left[is_other]) : NULL;
        size_t length = newline ? (size_t)(newline + 1 - line) : 0;
        output_commit(batch->answers->out, put_bytes(output_reserve(batch->answers->out, length), line, length));
        lines[is_other] += length;
        left[is_other] -= length;
    }
}

static bool answer_as_first(const struct shared_batch *batch, struct second_process *second)
{
    struct output own, other;
    if (!look_up(batch, false)) {
        second_process_stop(second);
        return false;
    }
    output_open_memory(&own);
    write_answers(batch, false, &own); /* the second process may still be at work */
    bool taken = second_process_take(second, &other);
    if (taken) {
        merge(batch, &own, &other);
        output_abandon(&other);
    }
    output_abandon(&own);
    return taken;
}

bool shared_batch_answer(struct second_process *second, struct cdacq_target *target, struct cdacq_session *session,
                         const uint64_t *ips, size_t count, struct cdacq_method *methods, struct answers *answers)
{
    struct shared_batch batch = {target, session, answers, count, .methods = methods};
    batch.left = mmap(NULL, sizeof *batch.left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (batch.left == MAP_FAILED)
        return false;
    atomic_store(batch.left, (uint64_t)count << 32);
    batch.sorted = reallocate(NULL, count * sizeof *batch.sorted);
    batch.ranks = reallocate(NULL, count * sizeof *batch.ranks);
    sort(ips, &batch);
    bool answered = second_process_begin(second, answer_as_second, &batch) && answer_as_first(&batch, second);
    free(batch.sorted);
    free(batch.ranks);
    munmap(batch.left, sizeof *batch.left);
    return answered;
}
