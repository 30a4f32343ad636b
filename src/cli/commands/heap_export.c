/*
 * heap_export.c: the heap as a V8 heap snapshot, a JSON file with flat arrays: seven numbers a node, three an edge, and
 * strings that both refer to. Source: v8/src/profiler/heap-snapshot-generator.cc, and the meta object of the file.
 */
#include "src/cli/commands/heap_export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/exit_code.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/commands/heap_paths.h"
#include "util/base.h"
#include "util/text.h"

enum {
    NODE_NUMBERS = 7,
    TEXTS_MAX = 1 << 22,
    NAMES_MAX = 1 << 22,      /* of references */
    INDEXED_MAX = 1 << 22,    /* strings such as "[3].value" */
    TEXT_BYTES_MAX = 1 << 28, /* of all texts that are kept */
    NOT_INDEXED = -1,
    STEP = 1024 * 1024,
    POINTER = 8, /* bytes: the header of an object, which its size includes, is before its address */
};

/* Numbers of the types in the meta object. */
enum { NODE_OBJECT = 3, NODE_NATIVE = 8, NODE_SYNTHETIC = 9 };
enum { EDGE_ELEMENT = 1, EDGE_PROPERTY = 2, EDGE_INTERNAL = 3 };

/* The first texts: what the empty name and a name that is not known have. */
enum { TEXT_EMPTY, TEXT_UNKNOWN };

static const char *const node_fields[] = {"type",       "name",          "id",          "self_size",
                                          "edge_count", "trace_node_id", "detachedness"};
static const char *const node_types[] = {"hidden",
                                         "array",
                                         "string",
                                         "object",
                                         "code",
                                         "closure",
                                         "regexp",
                                         "number",
                                         "native",
                                         "synthetic",
                                         "concatenated string",
                                         "sliced string",
                                         "symbol",
                                         "bigint",
                                         "object shape"};
static const char *const node_field_types[] = {"string", "number", "number", "number", "number", "number"};
static const char *const edge_fields[] = {"type", "name_or_index", "to_node"};
static const char *const edge_types[] = {"context", "element", "property", "internal", "hidden", "shortcut", "weak"};
static const char *const edge_field_types[] = {"string_or_number", "node"};
static const char *const function_fields[] = {"function_id", "name", "script_name", "script_id", "line", "column"};
static const char *const trace_fields[] = {"id", "function_info_index", "count", "size", "children"};
static const char *const sample_fields[] = {"timestamp_us", "last_assigned_id"};
static const char *const location_fields[] = {"object_index", "script_id", "line", "column"};

/* The nodes below the root. DevTools counts distances from those that are not synthetic. */
static const char *const group_names[CDACQ_ROOT_COUNT] = {
    [CDACQ_ROOT_STATIC] = "(static fields)",
    [CDACQ_ROOT_THREAD_STATIC] = "(thread-static fields)",
    [CDACQ_ROOT_LOCAL] = "(locals of methods)",
    [CDACQ_ROOT_HANDLE] = "(handles)",
    [CDACQ_ROOT_FINALIZER] = "(finalizer queue)",
    [CDACQ_ROOT_DEPENDENT] = "(dependent handles)",
    [CDACQ_ROOT_FINALIZABLE] = "(finalizable objects)",
};
static const char gc_roots[] = "(GC roots)"; /* DevTools looks for this name */
static const char no_root[] = "(no root found)";

/* A string of the file. */
struct export_text {
    char *text;
    uint32_t indexed; /* how many strings "[0]text", "[1]text", ... there are */
    uint32_t first;   /* the number of the first of them */
};

struct text_place {
    const char *text;
    uint32_t number;
};

static const char *place_key(const struct text_place *place)
{
    return place->text;
}

/* How objects of a type have a reference. */
struct edge_name {
    uint64_t key;  /* the type and the offset; of an array, the offset within the element */
    uint32_t text; /* of an array, what follows the index; TEXT_EMPTY: nothing */
    bool is_known, is_internal;
};

struct export_type {
    uint32_t name; /* a text */
    bool is_asked;
    uint32_t element_size; /* 0: no array */
    uint64_t elements;     /* from the begin of an array to its first element */
};

struct export_group {
    uint8_t kind;
    uint32_t name;
    uint32_t count; /* of roots */
};

DEFINE_VECTOR(export_texts, struct export_text);
DEFINE_VECTOR(export_types, struct export_type);
DEFINE_HASH_TABLE(text_places, struct text_place, const char *, place_key, hash_string, equal_strings);
DEFINE_U64_TABLE(edge_names, struct edge_name, key);

/* Nodes: the root, "(GC roots)", the groups, the one of objects without a root, and the objects. */
struct work {
    struct output out;
    struct progress progress;
    struct heap_graph graph;
    struct export_texts texts;
    struct text_places places;
    size_t text_bytes;
    struct export_types types;
    struct edge_names names;
    struct graph_numbers root_names; /* of each root: a text */
    struct graph_numbers unkept;     /* objects that lead to all that no root keeps */
    struct export_group groups[CDACQ_ROOT_COUNT];
    uint32_t group_count, kept_roots;
    uint32_t gc_roots, no_root, dependent; /* texts */
    uint64_t unnamed_types, unnamed_edges;
};

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

/* The number of a text. Beyond the bounds, all texts are "?". */
static uint32_t keep_text(struct work *work, const char *text)
{
    const struct text_place *known = text_places_find(&work->places, text);
    if (known)
        return known->number;
    size_t length = strlen(text);
    if (work->texts.count >= TEXTS_MAX || work->text_bytes + length > TEXT_BYTES_MAX)
        return TEXT_UNKNOWN;
    const struct export_text kept = {.text = strdup(text)};
    const struct text_place place = {.text = kept.text, .number = (uint32_t)work->texts.count};
    if (!kept.text || !export_texts_append(&work->texts, kept) || !text_places_insert(&work->places, place, NULL))
        out_of_memory();
    work->text_bytes += length;
    return place.number;
}

static void name_root(struct work *work, const struct graph_root *root)
{
    char text[GRAPH_ROOT_TEXT_SIZE];
    uint32_t name = TEXT_EMPTY;
    if (root->keeps) {
        heap_graph_root_text(&work->graph, root, text);
        name = keep_text(work, text);
        if (!work->group_count || work->groups[work->group_count - 1].kind != root->kind)
            work->groups[work->group_count++] =
                (struct export_group){.kind = root->kind, .name = keep_text(work, group_names[root->kind])};
        work->groups[work->group_count - 1].count++;
        work->kept_roots++;
    }
    if (!graph_numbers_append(&work->root_names, name))
        out_of_memory();
}

static void name_type(struct work *work, uint32_t type)
{
    char room[GRAPH_TYPE_TEXT_SIZE];
    const char *text = heap_graph_type_text(&work->graph, type, room);
    work->unnamed_types += text == room;
    if (!export_types_append(&work->types, (struct export_type){.name = keep_text(work, text)}))
        out_of_memory();
}

/* ---- Names of references ---------------------------------------------------------------------------------------- */

/* Where an array of the type has its elements: all arrays of a type have them at one place. */
static void describe_type(struct work *work, struct export_type *type, uint32_t object)
{
    struct cdacq_object found = {.size = sizeof found};
    uint64_t address = heap_graph_address(&work->graph, object), elements;
    type->is_asked = true;
    if (cdacq_session_get_object(work->graph.session, address, &found, NULL) < 0 || !found.is_array)
        return;
    elements = (uint64_t)found.length * found.element_size + POINTER;
    if (!found.element_size || found.byte_size <= elements)
        return;
    type->element_size = found.element_size;
    type->elements = found.byte_size - elements;
}

/* The key of the name of a reference. *ret_index: of the element of an array; NOT_INDEXED: it is in none. */
static uint64_t find_key(const struct work *work, uint32_t object, uint32_t edge, int64_t *ret_index)
{
    uint32_t number = work->graph.type_of.items[object];
    const struct export_type *type = &work->types.items[number];
    uint64_t offset = heap_graph_offset(&work->graph, edge);
    *ret_index = NOT_INDEXED;
    if (type->element_size && offset >= type->elements) {
        *ret_index = (int64_t)((offset - type->elements) / type->element_size);
        offset = (offset - type->elements) % type->element_size;
    }
    return (uint64_t)number << 32 | (uint64_t)(*ret_index != NOT_INDEXED) << 31 | (offset / 4 & INT32_MAX);
}

static struct edge_name ask_name(struct work *work, uint32_t object, uint32_t edge, uint64_t key, int64_t index)
{
    const char *text = NULL;
    struct edge_name name = {.key = key, .text = TEXT_UNKNOWN};
    uint64_t address = heap_graph_address(&work->graph, object), offset = heap_graph_offset(&work->graph, edge);
    if (cdacq_session_get_reference_name(work->graph.session, address, offset, &text, NULL) != CDACQ_OK)
        return name;
    if (index != NOT_INDEXED) {
        text = text[0] == '[' ? strchr(text, ']') : NULL;
        if (!text)
            return name;
        text++;
    }
    name.is_known = true;
    name.is_internal = !offset;
    name.text = keep_text(work, text);
    return name;
}

static void name_edge(struct work *work, uint32_t object, uint32_t edge)
{
    struct export_type *type = &work->types.items[work->graph.type_of.items[object]];
    int64_t index;
    if (work->graph.offsets.items[edge] == GRAPH_NONE)
        return;
    if (!type->is_asked)
        describe_type(work, type, object);
    uint64_t key = find_key(work, object, edge, &index);
    const struct edge_name *name = edge_names_find(&work->names, key);
    if (!name && work->names.count < NAMES_MAX) {
        name = edge_names_insert(&work->names, ask_name(work, object, edge, key, index), NULL);
        if (!name)
            out_of_memory();
    }
    if (!name || !name->is_known) {
        work->unnamed_edges++;
        return;
    }
    struct export_text *text = &work->texts.items[name->text];
    if (index != NOT_INDEXED && name->text != TEXT_EMPTY)
        text->indexed = (uint32_t)MAX((int64_t)text->indexed, MIN(index + 1, (int64_t)INDEXED_MAX));
}

/* Numbers the strings "[0].value", "[1].value", ...: they follow the texts. */
static void number_indexed(struct work *work)
{
    uint32_t left = INDEXED_MAX, next = (uint32_t)work->texts.count;
    for (size_t i = 0; i < work->texts.count; i++) {
        struct export_text *text = &work->texts.items[i];
        text->indexed = MIN(text->indexed, left);
        text->first = next;
        next += text->indexed;
        left -= text->indexed;
    }
}

/* Asks the session for all names: the process may run on after it. */
static void name_all(struct work *work)
{
    const struct heap_graph *graph = &work->graph;
    keep_text(work, "");
    keep_text(work, "?");
    work->gc_roots = keep_text(work, gc_roots);
    work->no_root = keep_text(work, no_root);
    work->dependent = keep_text(work, "dependent handle");
    for (uint32_t i = 0; i < graph->types.count; i++)
        name_type(work, i);
    for (size_t i = 0; i < graph->roots.count; i++)
        name_root(work, &graph->roots.items[i]);
    progress_begin(&work->progress, "objects", work->out.fd);
    for (uint32_t object = 0; object < graph->places.count; object++) {
        for (uint32_t edge = graph->first_edge.items[object]; edge < graph->first_edge.items[object + 1]; edge++)
            name_edge(work, object, edge);
        if (UNLIKELY(object % STEP == STEP - 1))
            progress_step(&work->progress, object);
    }
    progress_end(&work->progress);
    number_indexed(work);
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

static void write_elements(struct json_writer *w, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_string(w, NULL, words[i]);
}

static void write_words(struct json_writer *w, const char *key, const char *const *words, size_t count)
{
    json_begin_array(w, key);
    write_elements(w, words, count);
    json_end_array(w);
}

static void write_meta(struct json_writer *w)
{
    json_begin_object(w, "meta");
    write_words(w, "node_fields", node_fields, ARRAY_SIZE(node_fields));
    json_begin_array(w, "node_types");
    write_words(w, NULL, node_types, ARRAY_SIZE(node_types));
    write_elements(w, node_field_types, ARRAY_SIZE(node_field_types));
    json_end_array(w);
    write_words(w, "edge_fields", edge_fields, ARRAY_SIZE(edge_fields));
    json_begin_array(w, "edge_types");
    write_words(w, NULL, edge_types, ARRAY_SIZE(edge_types));
    write_elements(w, edge_field_types, ARRAY_SIZE(edge_field_types));
    json_end_array(w);
    write_words(w, "trace_function_info_fields", function_fields, ARRAY_SIZE(function_fields));
    write_words(w, "trace_node_fields", trace_fields, ARRAY_SIZE(trace_fields));
    write_words(w, "sample_fields", sample_fields, ARRAY_SIZE(sample_fields));
    write_words(w, "location_fields", location_fields, ARRAY_SIZE(location_fields));
    json_end_object(w);
}

static uint64_t first_group(void)
{
    return 2; /* the root and "(GC roots)" are before it */
}

static uint64_t no_root_node(const struct work *work)
{
    return first_group() + work->group_count;
}

static uint64_t object_node(const struct work *work, uint32_t object)
{
    return no_root_node(work) + 1 + object;
}

static uint64_t edge_count(const struct work *work)
{
    /* The root has "(GC roots)", the groups and the one without a root; "(GC roots)" has the groups again. */
    return UINT64_C(2) + work->group_count + work->group_count + work->kept_roots + work->unkept.count +
           work->graph.edges.count;
}

static void write_node(struct json_writer *w, uint64_t node, unsigned type, uint32_t name, uint64_t size,
                       uint64_t edges)
{
    const uint64_t numbers[NODE_NUMBERS] = {type, name, 2 * node + 1, size, edges, 0, 0}; /* V8's ids are odd, too */
    for (size_t i = 0; i < NODE_NUMBERS; i++)
        json_number(w, NULL, numbers[i]);
    output_literal(w->out, "\n");
}

static void write_nodes(struct work *work, struct json_writer *w)
{
    const struct heap_graph *graph = &work->graph;
    json_begin_array(w, "nodes");
    write_node(w, 0, NODE_SYNTHETIC, TEXT_EMPTY, 0, UINT64_C(2) + work->group_count);
    write_node(w, 1, NODE_SYNTHETIC, work->gc_roots, 0, work->group_count);
    for (uint32_t i = 0; i < work->group_count; i++)
        write_node(w, first_group() + i, NODE_NATIVE, work->groups[i].name, 0, work->groups[i].count);
    write_node(w, no_root_node(work), NODE_SYNTHETIC, work->no_root, 0, work->unkept.count);
    for (uint32_t object = 0; object < graph->places.count && !output_failed(w->out); object++)
        write_node(w, object_node(work, object), NODE_OBJECT, work->types.items[graph->type_of.items[object]].name,
                   heap_graph_exact_size(graph, object),
                   graph->first_edge.items[object + 1] - graph->first_edge.items[object]);
    json_end_array(w);
}

static void write_edge(struct json_writer *w, unsigned type, uint64_t name, uint64_t node)
{
    json_number(w, NULL, type);
    json_number(w, NULL, name);
    json_number(w, NULL, node * NODE_NUMBERS);
    output_literal(w->out, "\n");
}

static void write_reference(const struct work *work, struct json_writer *w, uint32_t object, uint32_t edge)
{
    uint64_t target = object_node(work, work->graph.edges.items[edge]);
    int64_t index;
    if (work->graph.offsets.items[edge] == GRAPH_NONE) {
        write_edge(w, EDGE_INTERNAL, work->dependent, target);
        return;
    }
    const struct edge_name *name = edge_names_find(&work->names, find_key(work, object, edge, &index));
    const struct export_text *text = &work->texts.items[name ? name->text : TEXT_UNKNOWN];
    if (index == NOT_INDEXED)
        write_edge(w, name && name->is_internal ? EDGE_INTERNAL : EDGE_PROPERTY, name ? name->text : TEXT_UNKNOWN,
                   target);
    else if (index < text->indexed)
        write_edge(w, EDGE_PROPERTY, text->first + (uint64_t)index, target);
    else
        write_edge(w, EDGE_ELEMENT, (uint64_t)index, target);
}

/* The edges of nodes follow each other as the nodes do. */
static void write_edges(struct work *work, struct json_writer *w)
{
    const struct heap_graph *graph = &work->graph;
    size_t root = 0;
    json_begin_array(w, "edges");
    for (uint64_t i = 1; i <= no_root_node(work); i++)
        write_edge(w, EDGE_ELEMENT, i, i);
    for (uint64_t i = 0; i < work->group_count; i++)
        write_edge(w, EDGE_ELEMENT, i + 1, first_group() + i);
    for (; root < graph->roots.count; root++) /* groups are in the order of their roots */
        if (graph->roots.items[root].keeps)
            write_edge(w, EDGE_INTERNAL, work->root_names.items[root],
                       object_node(work, graph->roots.items[root].object));
    for (size_t i = 0; i < work->unkept.count; i++)
        write_edge(w, EDGE_ELEMENT, i + 1, object_node(work, work->unkept.items[i]));
    for (uint32_t object = 0; object < graph->places.count && !output_failed(w->out); object++)
        for (uint32_t edge = graph->first_edge.items[object]; edge < graph->first_edge.items[object + 1]; edge++)
            write_reference(work, w, object, edge);
    json_end_array(w);
}

static void write_strings(struct work *work, struct json_writer *w)
{
    struct text indexed = {0};
    json_begin_array(w, "strings");
    for (size_t i = 0; i < work->texts.count; i++) {
        json_note(w, NULL, work->texts.items[i].text);
        output_literal(w->out, "\n");
    }
    for (size_t i = 0; i < work->texts.count && !output_failed(w->out); i++)
        for (uint32_t index = 0; index < work->texts.items[i].indexed; index++) {
            text_clear(&indexed);
            text_printf(&indexed, "[%" PRIu32 "]%s", index, work->texts.items[i].text);
            json_note(w, NULL, indexed.broken ? "?" : indexed.data);
            output_literal(w->out, "\n");
        }
    text_deinit(&indexed);
    json_end_array(w);
}

static void write_file(struct work *work)
{
    static const char *const empty[] = {"trace_function_infos", "trace_tree", "samples", "locations"};
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_begin_object(w, "snapshot");
    write_meta(w);
    json_number(w, "node_count", object_node(work, (uint32_t)work->graph.places.count));
    json_number(w, "edge_count", edge_count(work));
    json_number(w, "trace_function_count", 0);
    json_end_object(w);
    write_nodes(work, w);
    write_edges(work, w);
    for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
        write_words(w, empty[i], NULL, 0);
    write_strings(work, w);
    json_end_line(w);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static void deinit(struct work *work)
{
    for (size_t i = 0; i < work->texts.count; i++)
        free(work->texts.items[i].text);
    export_texts_deinit(&work->texts);
    text_places_deinit(&work->places);
    export_types_deinit(&work->types);
    edge_names_deinit(&work->names);
    graph_numbers_deinit(&work->root_names);
    graph_numbers_deinit(&work->unkept);
    heap_graph_deinit(&work->graph);
    free(work);
}

int heap_export_snapshot(const struct heap_question *question)
{
    struct work *work = allocate(sizeof *work);
    if (!output_open_private(&work->out, question->output)) {
        free(work);
        return EXIT_FAILED;
    }
    bool is_read = heap_graph_read_offsets(&work->graph, question->opened->session, work->out.fd);
    if (is_read)
        name_all(work);
    target_let_go(question->opened->target);
    if (is_read) {
        if (!heap_paths_list_unkept(&work->graph, &work->unkept))
            out_of_memory();
        write_file(work);
        heap_graph_tell_problems(&work->graph, false);
        heap_graph_tell_unnamed(work->unnamed_types, work->unnamed_edges);
    }
    bool is_whole = heap_graph_is_whole(&work->graph) && !work->unnamed_types && !work->unnamed_edges;
    int code = !output_close_if(&work->out, is_read) ? EXIT_FAILED : is_whole ? EXIT_ANSWERED : EXIT_PARTLY;
    deinit(work);
    return code;
}
