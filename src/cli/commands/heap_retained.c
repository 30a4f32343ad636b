#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/exit_code.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/commands/dominators.h"
#include "src/cli/commands/heap_graph.h"
#include "src/cli/commands/heap_why.h"
#include "util/base.h"

enum {
    TYPES_SHOWN = 16, /* without --all */
    FIELDS_SHOWN = 16,
    OBJECTS_SHOWN = 16,
    CONTEXTS_SHOWN = 16,
    OBJECTS_MAX = 1000, /* with it */
};

/* What would be freed with all objects of a type, with a static field, an object or an assembly load context. */
struct retained {
    uint32_t number; /* of a type, a root, an object, a context */
    uint64_t count;  /* of a type or context: its objects that are kept */
    uint64_t bytes;  /* that are freed */
    uint64_t own;    /* of a type or context: of its objects */
};

DEFINE_VECTOR(retained_list, struct retained);

/*
 * Nodes: the objects, then a node for each static field, which is a holder of its own, then the one that keeps all.
 */
struct work {
    const struct heap_question *question;
    struct output out;
    struct heap_graph graph;
    struct graph_numbers fields; /* roots that are static fields */
    struct dominators dominators;
    uint64_t *bytes; /* of each place in the order: what it keeps alone, with itself */
    struct retained_list types, roots, objects, contexts;
    uint64_t kept, kept_bytes, all_bytes;
};

/* ---- The graph -------------------------------------------------------------------------------------------------- */

static bool is_field(const struct graph_root *root)
{
    return (root->kind == CDACQ_ROOT_STATIC || root->kind == CDACQ_ROOT_THREAD_STATIC) && root->type && root->keeps;
}

static uint32_t object_count(const struct work *work)
{
    return (uint32_t)work->graph.places.count;
}

static uint32_t top_node(const struct work *work)
{
    return object_count(work) + (uint32_t)work->fields.count;
}

static uint32_t next_of(void *context, uint32_t node, uint32_t *cursor)
{
    const struct work *work = context;
    const struct heap_graph *graph = &work->graph;
    uint32_t objects = object_count(work);
    if (node < objects) {
        uint32_t at = graph->first_edge.items[node] + *cursor;
        if (at >= graph->first_edge.items[node + 1])
            return DOMINATORS_NONE;
        ++*cursor;
        return graph->edges.items[at];
    }
    if (node < top_node(work))
        return (*cursor)++ ? DOMINATORS_NONE : graph->roots.items[work->fields.items[node - objects]].object;
    if (*cursor < work->fields.count)
        return objects + (*cursor)++;
    while (*cursor - work->fields.count < graph->roots.count) {
        const struct graph_root *root = &graph->roots.items[(*cursor)++ - work->fields.count];
        if (root->keeps && !is_field(root))
            return root->object;
    }
    return DOMINATORS_NONE;
}

/* The references are not needed any more. */
static void release(void *context)
{
    struct work *work = context;
    graph_array_deinit(&work->graph.edges);
    graph_array_deinit(&work->graph.first_edge);
    graph_array_deinit(&work->graph.blocks);
}

static void find_dominators(struct work *work)
{
    for (uint32_t i = 0; i < work->graph.roots.count; i++)
        if (is_field(&work->graph.roots.items[i]) && !graph_numbers_append(&work->fields, i))
            out_of_memory();
    const struct dominators_graph graph = {
        .count = top_node(work) + 1, .root = top_node(work), .next = next_of, .release = release, .context = work};
    if (!dominators_find(&graph, &work->dominators))
        out_of_memory();
}

/* ---- Sums ------------------------------------------------------------------------------------------------------- */

static void sum_bytes(struct work *work)
{
    const struct dominators *d = &work->dominators;
    work->bytes = allocate_large(((uint64_t)d->count + 1) * sizeof *work->bytes);
    for (uint32_t i = d->count; i-- > 1;) {
        if (d->order[i] < object_count(work))
            work->bytes[i] += heap_graph_size(&work->graph, d->order[i]);
        work->bytes[d->of[i]] += work->bytes[i];
    }
    work->kept_bytes = work->bytes[0];
    for (uint32_t i = 0; i < object_count(work); i++)
        work->all_bytes += heap_graph_size(&work->graph, i);
}

/* Keeps the largest OBJECTS_MAX objects: a heap whose least is first. */
static void offer(struct retained_list *list, struct retained item)
{
    size_t at = list->count;
    if (at == OBJECTS_MAX) {
        if (item.bytes <= list->items[0].bytes)
            return;
        for (at = 0; 2 * at + 1 < list->count;) {
            size_t least = 2 * at + 1;
            if (least + 1 < list->count && list->items[least + 1].bytes < list->items[least].bytes)
                least++;
            if (list->items[least].bytes >= item.bytes)
                break;
            list->items[at] = list->items[least];
            at = least;
        }
        list->items[at] = item;
        return;
    }
    if (!retained_list_append(list, item))
        out_of_memory();
    for (; at && list->items[(at - 1) / 2].bytes > item.bytes; at = (at - 1) / 2)
        list->items[at] = list->items[(at - 1) / 2];
    list->items[at] = item;
}

/* Types, or contexts: which of them are above an object in the tree, and what would be freed with each. */
struct groups {
    struct retained *items;
    uint32_t *above; /* how often each is */
};

static struct groups groups_of(size_t count)
{
    return (struct groups){allocate((count + 1) * sizeof(struct retained)), allocate((count + 1) * sizeof(uint32_t))};
}

/* Whether no object of the group is above this one: else it is a part of what is counted, such as a list. */
static bool enter(struct groups *groups, uint32_t number, uint64_t own, uint64_t bytes)
{
    struct retained *group = &groups->items[number];
    bool is_top = !groups->above[number]++;
    group->count++;
    group->own += own;
    group->bytes += is_top ? bytes : 0;
    return is_top;
}

static void list_groups(struct groups *groups, size_t count, struct retained_list *ret)
{
    for (uint32_t i = 0; i < count; i++) {
        groups->items[i].number = i;
        if (groups->items[i].count && !retained_list_append(ret, groups->items[i]))
            out_of_memory();
    }
    free(groups->items);
    free(groups->above);
}

/* The context of an object: that of its type, or the one that it is the LoaderAllocator of; GRAPH_NONE: none. */
static uint32_t context_of(const struct heap_graph *graph, uint32_t object)
{
    uint32_t type = graph->type_of.items[object], allocator = graph->types.items[type].allocator;
    if (!graph->contexts.count)
        return GRAPH_NONE;
    if (allocator == GRAPH_NONE && type == graph->type_of.items[graph->contexts.items[0].allocator])
        allocator = object;
    return allocator == GRAPH_NONE ? GRAPH_NONE : heap_graph_find_context(graph, allocator);
}

/*
 * What would be freed with all objects of each type, or of each context: the sum over those that no other object of it
 * keeps. A walk of the tree knows which are above. `child` and `sibling` are the tree.
 */
static void sum_groups(struct work *work)
{
    const struct dominators *d = &work->dominators;
    struct heap_graph *graph = &work->graph;
    struct groups types = groups_of(graph->types.count), contexts = groups_of(graph->contexts.count);
    uint32_t *child = allocate_large(((uint64_t)d->count + 1) * sizeof *child);
    uint32_t *sibling = allocate_large(((uint64_t)d->count + 1) * sizeof *sibling);
    for (uint32_t i = d->count; i-- > 1;) {
        sibling[i] = child[d->of[i]];
        child[d->of[i]] = i;
    }
    bool is_down = true; /* else the walk leaves `at` */
    for (uint32_t at = 0; d->count;) {
        uint32_t object = d->order[at];
        if (object < object_count(work)) {
            uint32_t type = graph->type_of.items[object], context = context_of(graph, object);
            uint64_t own = heap_graph_size(graph, object);
            if (is_down && enter(&types, type, own, work->bytes[at]))
                offer(&work->objects, (struct retained){.number = object, .bytes = work->bytes[at]});
            if (is_down && context != GRAPH_NONE)
                enter(&contexts, context, own, work->bytes[at]);
            work->kept += is_down;
            if (!is_down) {
                types.above[type]--;
                if (context != GRAPH_NONE)
                    contexts.above[context]--;
            }
        }
        uint32_t next = is_down && child[at] ? child[at] : 0;
        if (next) {
            at = next;
            continue;
        }
        if (is_down) { /* it has no children */
            is_down = false;
            continue;
        }
        if (!at)
            break;
        is_down = sibling[at] != 0;
        at = is_down ? sibling[at] : d->of[at];
    }
    list_groups(&types, graph->types.count, &work->types);
    list_groups(&contexts, graph->contexts.count, &work->contexts);
    spill_free(child);
    spill_free(sibling);
}

static void list_fields(struct work *work)
{
    const struct dominators *d = &work->dominators;
    for (uint32_t i = 1; i < d->count; i++) {
        if (d->order[i] < object_count(work) || !work->bytes[i])
            continue;
        const struct retained field = {.number = work->fields.items[d->order[i] - object_count(work)],
                                       .bytes = work->bytes[i]};
        if (!retained_list_append(&work->roots, field))
            out_of_memory();
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct retained *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return (left->number > right->number) - (left->number < right->number);
}

static void sort(struct retained_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_bytes);
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

static size_t shown(const struct work *work, const struct retained_list *list, size_t some)
{
    return work->question->all ? list->count : MIN(list->count, some);
}

static void write_more(struct work *work, size_t count, size_t written, const char *what)
{
    if (written < count)
        output_printf(&work->out, "... %zu more %s (--all)\n", count - written, what);
}

static void write_contexts(struct work *work)
{
    struct output *out = &work->out;
    size_t count = shown(work, &work->contexts, CONTEXTS_SHOWN);
    if (count)
        output_styled(out, STYLE_HEADING, "\n      frees bytes      objects      own bytes  assembly load context\n");
    for (size_t i = 0; i < count && !output_failed(out); i++) {
        const struct retained *found = &work->contexts.items[i];
        const struct graph_context *context = &work->graph.contexts.items[found->number];
        output_printf(out, "%17" PRIu64 " %12" PRIu64 " %14" PRIu64 "  ", found->bytes, found->count, found->own);
        output_note(out, context->name);
        output_printf(out, "%s, LoaderAllocator 0x%016" PRIx64 "\n", context->is_unloading ? ", unloading" : "",
                      heap_graph_address(&work->graph, context->allocator));
    }
    write_more(work, work->contexts.count, count, "assembly load contexts");
}

static void write_text(struct work *work)
{
    struct output *out = &work->out;
    char text[GRAPH_ROOT_TEXT_SIZE];
    output_printf(out, "%" PRIu64 " of %" PRIu32 " objects are kept by roots, with %" PRIu64 " of %" PRIu64 " bytes\n",
                  work->kept, object_count(work), work->kept_bytes, work->all_bytes);
    output_styled(out, STYLE_HEADING, "\n      frees bytes  static field\n");
    size_t count = shown(work, &work->roots, FIELDS_SHOWN);
    for (size_t i = 0; i < count && !output_failed(out); i++) {
        heap_graph_root_text(&work->graph, &work->graph.roots.items[work->roots.items[i].number], text);
        output_printf(out, "%17" PRIu64 "  ", work->roots.items[i].bytes);
        output_note(out, text);
        output_literal(out, "\n");
    }
    write_more(work, work->roots.count, count, "static fields");
    output_styled(out, STYLE_HEADING, "\n      frees bytes      objects      own bytes  type\n");
    count = shown(work, &work->types, TYPES_SHOWN);
    for (size_t i = 0; i < count && !output_failed(out); i++) {
        const struct retained *type = &work->types.items[i];
        const char *name = heap_graph_type_name(&work->graph, type->number);
        output_printf(out, "%17" PRIu64 " %12" PRIu64 " %14" PRIu64 "  ", type->bytes, type->count, type->own);
        output_note(out, name ? name : "?");
        output_literal(out, "\n");
    }
    write_more(work, work->types.count, count, "types");
    write_contexts(work);
    output_styled(out, STYLE_HEADING, "\n      frees bytes  object\n");
    count = shown(work, &work->objects, OBJECTS_SHOWN);
    for (size_t i = 0; i < count && !output_failed(out); i++) {
        const struct retained *object = &work->objects.items[i];
        const char *name = heap_graph_type_name(&work->graph, work->graph.type_of.items[object->number]);
        output_printf(out, "%17" PRIu64 "  0x%016" PRIx64 " ", object->bytes,
                      heap_graph_address(&work->graph, object->number));
        output_note(out, name ? name : "?");
        output_literal(out, "\n");
    }
}

static void write_type_json(struct work *work, const struct retained *type)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_note(w, "type", heap_graph_type_name(&work->graph, type->number));
    json_address(w, "method_table", work->graph.types.items[type->number].method_table);
    json_number(w, "count", type->count);
    json_number(w, "bytes", type->own);
    json_number(w, "retained", type->bytes);
    json_end_line(w);
}

static void write_context_json(struct work *work, const struct retained *found)
{
    const struct heap_graph *graph = &work->graph;
    const struct graph_context *context = &graph->contexts.items[found->number];
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_begin_object(w, "context");
    json_note(w, "name", context->name);
    json_known_address(w, "address", context->object != GRAPH_NONE,
                       context->object == GRAPH_NONE ? 0 : heap_graph_address(graph, context->object));
    json_address(w, "allocator", heap_graph_address(graph, context->allocator));
    json_bool(w, "unloading", context->is_unloading);
    json_end_object(w);
    json_number(w, "count", found->count);
    json_number(w, "bytes", found->own);
    json_number(w, "retained", found->bytes);
    json_end_line(w);
}

/* How many roots of each kind there are, with those that keep nothing. */
static void write_root_counts(struct work *work, struct json_writer *w)
{
    uint64_t counts[CDACQ_ROOT_COUNT][CDACQ_HANDLE_COUNT] = {0};
    for (size_t i = 0; i < work->graph.roots.count; i++)
        counts[work->graph.roots.items[i].kind][work->graph.roots.items[i].handle]++;
    json_begin_array(w, "roots");
    for (unsigned kind = 0; kind < CDACQ_ROOT_COUNT; kind++)
        for (unsigned handle = 0; handle < CDACQ_HANDLE_COUNT; handle++) {
            bool is_handle = kind == CDACQ_ROOT_HANDLE || kind == CDACQ_ROOT_DEPENDENT;
            if (!counts[kind][handle])
                continue;
            json_begin_object(w, NULL);
            json_string(w, "kind", cdacq_root_kind_text((enum cdacq_root_kind)kind));
            json_string(w, "handle", is_handle ? cdacq_handle_kind_text((enum cdacq_handle_kind)handle) : NULL);
            json_number(w, "count", counts[kind][handle]);
            json_end_object(w);
        }
    json_end_array(w);
}

static void write_json(struct work *work)
{
    struct json_writer writer, *w = &writer;
    char text[GRAPH_ROOT_TEXT_SIZE];
    size_t count = shown(work, &work->types, TYPES_SHOWN);
    for (size_t i = 0; i < count && !output_failed(&work->out); i++)
        write_type_json(work, &work->types.items[i]);
    count = shown(work, &work->contexts, CONTEXTS_SHOWN);
    for (size_t i = 0; i < count && !output_failed(&work->out); i++)
        write_context_json(work, &work->contexts.items[i]);
    count = shown(work, &work->roots, FIELDS_SHOWN);
    for (size_t i = 0; i < count && !output_failed(&work->out); i++) {
        const struct graph_root *root = &work->graph.roots.items[work->roots.items[i].number];
        heap_graph_root_text(&work->graph, root, text);
        writer = json_begin_line(&work->out);
        json_begin_object(w, "root");
        json_string(w, "kind", cdacq_root_kind_text((enum cdacq_root_kind)root->kind));
        json_note(w, "text", text);
        json_end_object(w);
        json_number(w, "retained", work->roots.items[i].bytes);
        json_end_line(w);
    }
    count = shown(work, &work->objects, OBJECTS_SHOWN);
    for (size_t i = 0; i < count && !output_failed(&work->out); i++) {
        uint32_t object = work->objects.items[i].number;
        writer = json_begin_line(&work->out);
        json_address(w, "address", heap_graph_address(&work->graph, object));
        json_note(w, "type", heap_graph_type_name(&work->graph, work->graph.type_of.items[object]));
        json_number(w, "retained", work->objects.items[i].bytes);
        json_end_line(w);
    }
    writer = json_begin_line(&work->out);
    json_number(w, "objects", object_count(work));
    json_number(w, "bytes", work->all_bytes);
    json_number(w, "kept_objects", work->kept);
    json_number(w, "kept_bytes", work->kept_bytes);
    write_root_counts(work, w);
    json_begin_array(w, "problems");
    for (size_t i = 0; i < work->graph.problems.count; i++)
        json_note(w, NULL, work->graph.problems.items[i]);
    json_end_array(w);
    json_end_line(w);
}

int heap_retained_show(const struct heap_question *question)
{
    struct work *work = allocate(sizeof *work);
    work->question = question;
    if (!output_open(&work->out, question->output)) {
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(question->opened->name);
    bool is_read = heap_graph_read(&work->graph, question->opened->session, work->out.fd);
    if (is_read) {
        heap_graph_read_contexts(&work->graph);
        find_dominators(work);
        sum_bytes(work);
        sum_groups(work);
        list_fields(work);
        sort(&work->types);
        sort(&work->contexts);
        sort(&work->roots);
        sort(&work->objects);
        (question->json ? write_json : write_text)(work);
    }
    target_let_go(question->opened->target);
    work->out.is_held = false;
    if (is_read)
        heap_graph_tell_problems(&work->graph, !work->question->json);
    bool is_whole = heap_graph_is_whole(&work->graph);
    int code = !output_close_if(&work->out, is_read) || !is_read ? EXIT_FAILED : is_whole ? EXIT_ANSWERED : EXIT_PARTLY;
    retained_list_deinit(&work->types);
    retained_list_deinit(&work->roots);
    retained_list_deinit(&work->objects);
    retained_list_deinit(&work->contexts);
    dominators_deinit(&work->dominators);
    graph_numbers_deinit(&work->fields);
    heap_graph_deinit(&work->graph);
    spill_free(work->bytes);
    free(work);
    return code;
}
