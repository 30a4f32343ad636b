#include "src/cli/commands/heap_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/heap_messages.h"
#include "util/base.h"
#include "util/binary_search.h"

enum {
    BLOCK_SHIFT_MIN = 9, /* bytes of a segment for each entry of `blocks` */
    STEP = 1024 * 1024,
    PROBLEMS_SHOWN = 10,
    PLACE = 4, /* bytes: units of `places` */
    SIZE = 8,  /* and of `sizes` */
};

static int fail(struct heap_graph *graph, const char *why)
{
    graph->failure = graph->failure ? graph->failure : why;
    return 1;
}

static int add_problem(const char *text, void *context)
{
    struct heap_graph *graph = context;
    graph->problem_count++;
    char *copy = strdup(text);
    if (copy && graph_texts_append(&graph->problems, copy))
        return 0;
    free(copy);
    return fail(graph, spill_failure());
}

/* ---- Objects ---------------------------------------------------------------------------------------------------- */

static int add_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct heap_graph *graph = context;
    const struct graph_segment added = {
        .begin = segment->begin, .end = segment->end, .generation = segment->generation};
    graph->bytes += segment->end - segment->begin;
    heap_presence_add_segment(&graph->presence, segment);
    return graph_segments_append(&graph->segments, added) ? 0 : fail(graph, spill_failure());
}

static int find_type(struct heap_graph *graph, uint64_t method_table, uint32_t *ret)
{
    if (LIKELY(graph->recent && graph->recent->method_table == method_table)) {
        *ret = graph->recent->index;
        return 0;
    }
    const struct graph_type type = {
        .method_table = method_table, .index = (uint32_t)graph->types.count, .allocator = GRAPH_NONE};
    bool added = false;
    graph->recent = graph_type_index_insert(&graph->type_index, type, &added);
    if (!graph->recent || (added && !graph_types_append(&graph->types, type)))
        return fail(graph, spill_failure());
    *ret = graph->recent->index;
    return 0;
}

static int add_object(const struct cdacq_heap_object *object, void *context)
{
    struct heap_graph *graph = context;
    uint32_t type;
    graph->walked += object->byte_size;
    heap_presence_add_object(&graph->presence, object);
    if (object->is_free)
        return 0;
    while (graph->segment + 1 < graph->segments.count && object->address >= graph->segments.items[graph->segment].end)
        graph->segments.items[++graph->segment].first = (uint32_t)graph->places.count;
    if (!graph->segments.count || graph->places.count >= GRAPH_OBJECTS_MAX)
        return fail(graph, "it has too many objects");
    uint64_t place = (object->address - graph->segments.items[graph->segment].begin) / PLACE;
    uint64_t size = (object->byte_size + SIZE - 1) / SIZE;
    if (place > UINT32_MAX || size > UINT32_MAX)
        return fail(graph, "a segment of it has more than 16 GiB");
    if (find_type(graph, object->method_table, &type))
        return 1;
    if (!graph_array_append(&graph->places, (uint32_t)place) || !graph_array_append(&graph->sizes, (uint32_t)size) ||
        !graph_array_append(&graph->type_of, type))
        return fail(graph, spill_failure());
    if (graph->has_offsets && !graph_bytes_append(&graph->paddings, (uint8_t)(size * SIZE - object->byte_size)))
        return fail(graph, spill_failure());
    if (UNLIKELY(graph->places.count % STEP == 0)) /* references take the other half */
        progress_estimate(&graph->progress, graph->places.count, graph->walked, 2 * graph->bytes);
    return 0;
}

static uint32_t end_of(const struct heap_graph *graph, size_t segment)
{
    return segment + 1 < graph->segments.count ? graph->segments.items[segment + 1].first
                                               : (uint32_t)graph->places.count;
}

/* A segment has no more blocks than objects: a core can claim that it is far larger than what is in it. */
static uint8_t block_shift(uint64_t bytes, uint32_t count)
{
    uint8_t shift = BLOCK_SHIFT_MIN;
    while (bytes >> shift > count)
        shift++;
    return shift;
}

/* Lists, for each block of a segment, the first object at or after it. */
static bool index_blocks(struct heap_graph *graph)
{
    for (size_t i = graph->segment + 1; i < graph->segments.count; i++)
        graph->segments.items[i].first = (uint32_t)graph->places.count;
    for (size_t i = 0; i < graph->segments.count; i++) {
        struct graph_segment *segment = &graph->segments.items[i];
        uint32_t object = segment->first, end = end_of(graph, i);
        segment->first_block = (uint32_t)graph->blocks.count;
        if (segment->first == end)
            continue;
        segment->block_shift = block_shift(segment->end - segment->begin, end - object);
        uint64_t count = ((segment->end - segment->begin) >> segment->block_shift) + 2;
        if (graph->blocks.count + count > UINT32_MAX)
            return !fail(graph, "its segments are too large");
        if (!graph_array_reserve(&graph->blocks, graph->blocks.count + (size_t)count))
            return !fail(graph, spill_failure());
        for (uint64_t block = 0; block < count; block++) {
            while (object < end && graph->places.items[object] < (block << segment->block_shift) / PLACE)
                object++;
            graph->blocks.items[graph->blocks.count++] = object;
        }
    }
    return true;
}

static size_t segment_of(const struct heap_graph *graph, uint32_t object)
{
    const struct graph_segments *segments = &graph->segments;
    return lower_bound(i, segments->count, segments->items[i].first <= object) - 1;
}

uint64_t heap_graph_address(const struct heap_graph *graph, uint32_t object)
{
    return graph->segments.items[segment_of(graph, object)].begin + (uint64_t)graph->places.items[object] * PLACE;
}

enum cdacq_generation heap_graph_generation(const struct heap_graph *graph, uint32_t object)
{
    return graph->segments.items[segment_of(graph, object)].generation;
}

uint32_t heap_graph_find(const struct heap_graph *graph, uint64_t address)
{
    const struct graph_segments *segments = &graph->segments;
    size_t after = lower_bound(i, segments->count, segments->items[i].begin <= address);
    if (!after || address >= segments->items[after - 1].end)
        return GRAPH_NONE;
    const struct graph_segment *segment = &segments->items[after - 1];
    uint32_t end = end_of(graph, after - 1);
    if (segment->first == end)
        return GRAPH_NONE;
    uint64_t place = (address - segment->begin) / PLACE, block = (address - segment->begin) >> segment->block_shift;
    uint32_t high = graph->blocks.items[segment->first_block + block + 1], first = segment->first;
    first = MAX(first, graph->blocks.items[segment->first_block + block]);
    uint32_t low = first + (uint32_t)lower_bound(i, high - first, graph->places.items[first + i] <= place);
    if (low == segment->first)
        return GRAPH_NONE;
    uint32_t found = low - 1;
    return (place - graph->places.items[found]) * PLACE < heap_graph_size(graph, found) ? found : GRAPH_NONE;
}

/* ---- Roots ------------------------------------------------------------------------------------------------------ */

/* The text of a method, kept once for roots that follow each other. */
static const char *keep_method(struct heap_graph *graph, const char *name)
{
    if (!name)
        return NULL;
    if (graph->methods.count && strcmp(graph->methods.items[graph->methods.count - 1], name) == 0)
        return graph->methods.items[graph->methods.count - 1];
    char *copy = strdup(name);
    if (copy && graph_texts_append(&graph->methods, copy))
        return copy;
    free(copy);
    return NULL;
}

static int add_root(const struct cdacq_heap_root *root, void *context)
{
    struct heap_graph *graph = context;
    bool is_static = root->kind == CDACQ_ROOT_STATIC || root->kind == CDACQ_ROOT_THREAD_STATIC;
    struct graph_root added = {
        .kind = (uint8_t)root->kind,
        .handle = (uint8_t)root->handle,
        .keeps = root->keeps,
        .tid = root->tid,
        .frame = root->frame,
        .token = root->token,
        .object = heap_graph_find(graph, root->object),
        .dependent = root->dependent ? heap_graph_find(graph, root->dependent) : GRAPH_NONE,
        .type = is_static ? root->method_table : root->address,
        .method = keep_method(graph, root->method),
    };
    if (added.object == GRAPH_NONE)
        return 0;
    if (graph->roots.count >= GRAPH_ROOTS_MAX)
        return fail(graph, "it has more than 16 million roots");
    if (is_static && root->keeps && root->address && !graph_addresses_append(&graph->slots, root->address))
        return fail(graph, spill_failure());
    return graph_roots_append(&graph->roots, added) ? 0 : fail(graph, spill_failure());
}

/* The kinds are in the order of what they say; the handle of a thread's or a type's array of statics says least. */
static int by_kind(const void *a, const void *b)
{
    const struct graph_root *left = a, *right = b;
    if (left->kind != right->kind)
        return left->kind - right->kind;
    if (left->tid != right->tid)
        return left->tid < right->tid ? -1 : 1;
    if (left->frame != right->frame)
        return left->frame < right->frame ? -1 : 1;
    if (left->type != right->type)
        return left->type < right->type ? -1 : 1;
    return left->token != right->token ? (left->token < right->token ? -1 : 1)
                                       : (left->object > right->object) - (left->object < right->object);
}

static int by_object(const void *a, const void *b, void *context)
{
    const struct heap_graph *graph = context;
    const struct graph_root *left = &graph->roots.items[*(const uint32_t *)a],
                            *right = &graph->roots.items[*(const uint32_t *)b];
    return (left->object > right->object) - (left->object < right->object);
}

static bool sort_roots(struct heap_graph *graph)
{
    if (graph->roots.count)
        qsort(graph->roots.items, graph->roots.count, sizeof *graph->roots.items, by_kind);
    sort_u64(graph->slots.items, graph->slots.count, sizeof *graph->slots.items);
    for (size_t i = 0; i < graph->roots.count; i++)
        if (graph->roots.items[i].dependent != GRAPH_NONE && !graph_numbers_append(&graph->dependents, (uint32_t)i))
            return !fail(graph, spill_failure());
    if (graph->dependents.count)
        qsort_r(graph->dependents.items, graph->dependents.count, sizeof *graph->dependents.items, by_object, graph);
    return true;
}

/* ---- References ------------------------------------------------------------------------------------------------- */

/* `offset` is in units of PLACE. */
static int add_edge(struct heap_graph *graph, uint32_t target, uint64_t offset)
{
    if (graph->has_offsets && !graph_array_append(&graph->offsets, (uint32_t)MIN(offset, (uint64_t)GRAPH_NONE)))
        return fail(graph, spill_failure());
    if (graph->edges.count >= UINT32_MAX - 1)
        return fail(graph, "it has more than 4 billion references");
    return graph_array_append(&graph->edges, target) ? 0 : fail(graph, spill_failure());
}

/* Ends the references of objects up to `object`, with what depends on each. */
static int advance(struct heap_graph *graph, uint32_t object)
{
    for (; graph->object < object; graph->object++) {
        while (graph->next_dependent < graph->dependents.count) {
            const struct graph_root *root = &graph->roots.items[graph->dependents.items[graph->next_dependent]];
            if (root->object != graph->object)
                break;
            graph->next_dependent++;
            if (add_edge(graph, root->dependent, GRAPH_NONE))
                return 1;
        }
        graph->first_edge.items[graph->object + 1] = (uint32_t)graph->edges.count;
        if (UNLIKELY(graph->object % STEP == 0))
            progress_step(&graph->progress, graph->places.count + graph->object);
    }
    return 0;
}

/* Brings `graph->object` to the object at an address. GRAPH_NONE: it was not there before. */
static uint32_t follow(struct heap_graph *graph, uint64_t address)
{
    uint32_t object = graph->object, count = (uint32_t)graph->places.count;
    while (object < count) {
        while (graph->segment + 1 < graph->segments.count && object >= graph->segments.items[graph->segment + 1].first)
            graph->segment++;
        uint64_t at = graph->segments.items[graph->segment].begin + (uint64_t)graph->places.items[object] * PLACE;
        if (at >= address)
            return at == address && !advance(graph, object) ? object : GRAPH_NONE;
        object++;
        if (advance(graph, object))
            return GRAPH_NONE;
    }
    return GRAPH_NONE;
}

static int add_reference(uint64_t object, uint64_t offset, uint64_t target, void *context)
{
    struct heap_graph *graph = context;
    if (follow(graph, object) == GRAPH_NONE)
        return graph->failure != NULL;
    /* The runtime keeps static fields in arrays: the fields are roots, and the arrays would hide them. */
    uint64_t slot = object + offset;
    if (graph->slots.count && slot >= graph->slots.items[0] && slot <= graph->slots.items[graph->slots.count - 1]) {
        size_t at = lower_bound(i, graph->slots.count, graph->slots.items[i] < slot);
        if (at < graph->slots.count && graph->slots.items[at] == slot)
            return 0;
    }
    uint32_t found = heap_graph_find(graph, target);
    if (!offset) /* no field is there */
        graph->types.items[graph->type_of.items[graph->object]].allocator = found;
    return found == GRAPH_NONE ? 0 : add_edge(graph, found, offset / PLACE);
}

static int ignore_problem(const char *text, void *context)
{
    (void)text;
    (void)context;
    return 0;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static enum cdacq_status read_objects(struct heap_graph *graph, struct cdacq_error *err)
{
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .segment = add_segment, .object = add_object, .problem = add_problem, .context = graph};
    struct cdacq_heap_info info = {.size = sizeof info};
    enum cdacq_status status = cdacq_session_visit_heap(graph->session, &visitor, &info, err);
    graph->is_under_way = info.is_under_way;
    if (status == CDACQ_OK && heap_is_missing(&graph->presence, &info)) {
        snprintf(err->message, sizeof err->message, "most of its objects are missing");
        return CDACQ_ERR_MEMORY;
    }
    return status == CDACQ_OK && !index_blocks(graph) ? CDACQ_STOPPED : status;
}

static enum cdacq_status read_roots(struct heap_graph *graph, struct cdacq_error *err)
{
    const struct cdacq_roots_visitor visitor = {
        .size = sizeof visitor, .root = add_root, .problem = add_problem, .context = graph};
    enum cdacq_status status = cdacq_session_visit_roots(graph->session, &visitor, err);
    return status == CDACQ_OK && !sort_roots(graph) ? CDACQ_STOPPED : status;
}

static enum cdacq_status read_references(struct heap_graph *graph, struct cdacq_error *err)
{
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .reference = add_reference, .problem = ignore_problem, .context = graph};
    if (!graph_array_resize(&graph->first_edge, graph->places.count + 1)) {
        fail(graph, spill_failure());
        return CDACQ_STOPPED;
    }
    graph->segment = 0;
    graph->object = 0;
    progress_expect(&graph->progress, 2 * (uint64_t)graph->places.count);
    enum cdacq_status status = cdacq_session_visit_heap(graph->session, &visitor, NULL, err);
    return status == CDACQ_OK && advance(graph, (uint32_t)graph->places.count) ? CDACQ_STOPPED : status;
}

static bool read_graph(struct heap_graph *graph, int results)
{
    struct cdacq_error error;
    progress_begin(&graph->progress, "objects", results);
    enum cdacq_status status = read_objects(graph, &error);
    if (status == CDACQ_OK)
        status = read_roots(graph, &error);
    if (status == CDACQ_OK)
        status = read_references(graph, &error);
    progress_end(&graph->progress);
    graph_type_index_deinit(&graph->type_index);
    graph_addresses_deinit(&graph->slots);
    graph->recent = NULL;
    heap_tell_failure(status, "the heap", &error);
    if (status > CDACQ_OK)
        message("the heap cannot be read: %s", graph->failure ? graph->failure : "");
    return status == CDACQ_OK;
}

bool heap_graph_read(struct heap_graph *graph, struct cdacq_session *session, int results)
{
    *graph = (struct heap_graph){.session = session};
    return read_graph(graph, results);
}

bool heap_graph_read_offsets(struct heap_graph *graph, struct cdacq_session *session, int results)
{
    *graph = (struct heap_graph){.session = session, .has_offsets = true};
    return read_graph(graph, results);
}

void heap_graph_deinit(struct heap_graph *graph)
{
    for (size_t i = 0; i < graph->problems.count; i++)
        free(graph->problems.items[i]);
    for (size_t i = 0; i < graph->methods.count; i++)
        free(graph->methods.items[i]);
    graph_texts_deinit(&graph->problems);
    graph_texts_deinit(&graph->methods);
    graph_types_deinit(&graph->types);
    graph_type_index_deinit(&graph->type_index);
    graph_segments_deinit(&graph->segments);
    graph_array_deinit(&graph->places);
    graph_array_deinit(&graph->sizes);
    graph_array_deinit(&graph->type_of);
    graph_array_deinit(&graph->first_edge);
    graph_array_deinit(&graph->edges);
    graph_array_deinit(&graph->blocks);
    graph_numbers_deinit(&graph->dependents);
    graph_array_deinit(&graph->offsets);
    graph_bytes_deinit(&graph->paddings);
    graph_addresses_deinit(&graph->slots);
    graph_roots_deinit(&graph->roots);
    graph_contexts_deinit(&graph->contexts);
}

/* ---- Assembly load contexts ------------------------------------------------------------------------------------- */

static int add_context(const struct cdacq_load_context *context, void *given)
{
    struct heap_graph *graph = given;
    struct graph_context added = {.object = context->address ? heap_graph_find(graph, context->address) : GRAPH_NONE,
                                  .allocator =
                                      context->allocator ? heap_graph_find(graph, context->allocator) : GRAPH_NONE,
                                  .name = context->name ? context->name : "?",
                                  .is_unloading = context->is_unloading};
    return added.allocator != GRAPH_NONE && !graph_contexts_append(&graph->contexts, added);
}

static int by_allocator(const void *a, const void *b)
{
    const struct graph_context *left = a, *right = b;
    return (left->allocator > right->allocator) - (left->allocator < right->allocator);
}

void heap_graph_read_contexts(struct heap_graph *graph)
{
    (void)cdacq_session_visit_load_contexts(graph->session, add_context, graph, NULL);
    if (graph->contexts.count)
        qsort(graph->contexts.items, graph->contexts.count, sizeof *graph->contexts.items, by_allocator);
}

uint32_t heap_graph_find_context(const struct heap_graph *graph, uint32_t allocator)
{
    const struct graph_contexts *contexts = &graph->contexts;
    size_t at = lower_bound(i, contexts->count, contexts->items[i].allocator < allocator);
    return at < contexts->count && contexts->items[at].allocator == allocator ? (uint32_t)at : GRAPH_NONE;
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

const char *heap_graph_type_name(struct heap_graph *graph, uint32_t type)
{
    struct graph_type *known = &graph->types.items[type];
    if (!known->is_asked && cdacq_session_get_type_name(graph->session, known->method_table, &known->name, NULL) < 0)
        known->name = NULL;
    known->is_asked = true;
    return known->name;
}

const char *heap_graph_type_text(struct heap_graph *graph, uint32_t type, char room[static GRAPH_TYPE_TEXT_SIZE])
{
    const char *name = heap_graph_type_name(graph, type);
    if (name)
        return name;
    snprintf(room, GRAPH_TYPE_TEXT_SIZE, "? (MethodTable 0x%" PRIx64 ")", graph->types.items[type].method_table);
    return room;
}

void heap_graph_root_text(const struct heap_graph *graph, const struct graph_root *root,
                          char ret[static GRAPH_ROOT_TEXT_SIZE])
{
    const char *name = NULL;
    bool is_static = root->kind == CDACQ_ROOT_STATIC || root->kind == CDACQ_ROOT_THREAD_STATIC;
    if (is_static && root->type)
        (void)cdacq_session_get_static_name(graph->session, root->type, root->token, &name, NULL);
    switch ((enum cdacq_root_kind)root->kind) {
    case CDACQ_ROOT_STATIC:
        snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "static field %s", name ? name : "?");
        break;
    case CDACQ_ROOT_THREAD_STATIC:
        if (root->type)
            snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "thread-static field %s of thread %d", name ? name : "?", root->tid);
        else
            snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "thread-static fields of thread %d", root->tid);
        break;
    case CDACQ_ROOT_LOCAL:
        if (root->method)
            snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "local of %s in frame %" PRIu32 " of thread %d", root->method,
                     root->frame, root->tid);
        else
            snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "the runtime's own code in thread %d", root->tid);
        break;
    case CDACQ_ROOT_FINALIZER:
        snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "finalizer queue: the finalizer has not run yet");
        break;
    default:
        snprintf(ret, GRAPH_ROOT_TEXT_SIZE, "%s handle 0x%" PRIx64,
                 cdacq_handle_kind_text((enum cdacq_handle_kind)root->handle), root->type);
        break;
    }
}

void heap_graph_tell_problems(const struct heap_graph *graph, bool json_has_them)
{
    heap_tell_under_way(graph->is_under_way);
    for (size_t i = 0; i < MIN(graph->problems.count, (size_t)PROBLEMS_SHOWN); i++)
        message("%s", graph->problems.items[i]);
    if (graph->problem_count > PROBLEMS_SHOWN)
        message("%" PRIu64 " more problems%s", graph->problem_count - PROBLEMS_SHOWN,
                json_has_them ? "; --json has them" : "");
}

void heap_graph_tell_unnamed(uint64_t types, uint64_t edges)
{
    if (types)
        message("%" PRIu64 " type%s without a name", types, plural(types));
    if (edges)
        message("%" PRIu64 " reference%s without a name", edges, plural(edges));
}
