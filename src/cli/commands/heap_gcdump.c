/*
 * heap_gcdump.c: the heap as a .gcdump: a FastSerialization stream, little-endian, of a GCHeapDump with a MemoryGraph
 * and the segments. Strings have a count of UTF-16 units, each of them as UTF-8. Nodes of the graph are in a blob of
 * compressed integers (put_compressed): the type, whether the node has a size of its own, that size, the number of
 * references, and for each the difference of the numbers of both nodes.
 * Source: microsoft/perfview src/FastSerialization/FastSerialization.cs, StreamReaderWriter.cs; dotnet/diagnostics
 * src/Tools/dotnet-gcdump/DotNetHeapDump/GCHeapDump.cs, Graph.cs, MemoryGraph.cs, DotNetHeapInfo.cs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cdacq.h"
#include "src/cli/base/exit_code.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/heap_export.h"
#include "src/cli/commands/heap_paths.h"
#include "util/base.h"
#include "util/escape.h"

/* Tags of the stream. */
enum {
    TAG_NULL = 1,
    TAG_REFERENCE = 2, /* the label of an object follows: its place in the stream */
    TAG_BEGIN = 4,     /* an object with its type follows */
    TAG_END = 6,
    TAG_BYTE = 8,
    TAG_SKIP_REGION = 12, /* the number of the label of its end follows, then an object */
    TAG_STRING = 13,
};

enum {
    STEP = 1024 * 1024,
    NO_TEXT = -1,
    BLOB_MAX = INT32_MAX,
    UNDEFINED = 0, /* the type of the node at the begin of the blob, which is in no list */
    FIRST_TYPE = 1,
    ROOT = 0, /* the first nodes: the root, then the groups of roots */
    FIRST_GROUP = 1,
    LABEL = 4, /* bytes */
};

#define UNIX_EPOCH INT64_C(62135596800) /* in seconds since the year 1 */
#define TICKS      INT64_C(10000000)    /* in a second */

/* Names that PerfView knows. */
static const char *const group_names[CDACQ_ROOT_COUNT] = {
    [CDACQ_ROOT_STATIC] = "[static vars]",
    [CDACQ_ROOT_THREAD_STATIC] = "[thread static vars]",
    [CDACQ_ROOT_LOCAL] = "[local vars]",
    [CDACQ_ROOT_HANDLE] = "[strong Handles]",
    [CDACQ_ROOT_FINALIZER] = "[finalizer Handles]",
    [CDACQ_ROOT_DEPENDENT] = "[Dependent Handles]",
    [CDACQ_ROOT_FINALIZABLE] = "[finalizable objects]",
};

/* Where bytes go. */
struct stream {
    struct output *out; /* NULL: they are counted */
    uint64_t at;
};

struct group {
    uint8_t kind;
    uint32_t type;
    uint32_t first, count; /* of the nodes of roots */
};

/* Nodes: the root, the groups, the one of objects that no root keeps, those of roots, the objects. */
struct work {
    struct output out, types_out;
    struct stream file, types;
    struct progress progress;
    struct heap_graph graph;
    uint32_t type_count;
    struct graph_numbers sizes;      /* of each type: of its first object */
    struct graph_numbers roots;      /* of each node of a root: the root */
    struct graph_numbers root_types; /* and its type */
    struct graph_numbers unkept;
    struct group groups[CDACQ_ROOT_COUNT];
    uint32_t group_count, root_type, no_root_type;
    uint64_t unnamed_types;
    int pid;
    char *program;
    int64_t time;
    uint32_t segment_type; /* the label of its definition; 0: there is none yet */
};

/* ---- Parts of the stream ---------------------------------------------------------------------------------------- */

static void put(struct stream *stream, const void *bytes, size_t size)
{
    stream->at += size;
    if (stream->out)
        output_bytes(stream->out, bytes, size);
}

static void put_byte(struct stream *stream, unsigned value)
{
    put(stream, &(uint8_t){(uint8_t)value}, 1);
}

static void put_u32(struct stream *stream, uint32_t value)
{
    uint8_t bytes[4];
    store_u32(bytes, value, false);
    put(stream, bytes, sizeof bytes);
}

static void put_u64(struct stream *stream, uint64_t value)
{
    uint8_t bytes[8];
    store_u64(bytes, value, false);
    put(stream, bytes, sizeof bytes);
}

static void put_float(struct stream *stream, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u32(stream, bits);
}

static void put_unit(struct stream *stream, uint32_t unit)
{
    if (unit >= 0x800) {
        put_byte(stream, 0xe0 | unit >> 12);
        put_byte(stream, 0x80 | (unit >> 6 & 0x3f));
    } else if (unit >= 0x80) {
        put_byte(stream, 0xc0 | unit >> 6);
    }
    put_byte(stream, unit < 0x80 ? unit : 0x80 | (unit & 0x3f));
}

/* Writes the units of a text, or only counts them. What is no UTF-8, as where a text was cut, becomes "?". */
static uint32_t put_units(struct stream *stream, const char *text)
{
    uint32_t count = 0, code;
    for (size_t left = strlen(text), n; left; left -= n, text += n) {
        n = utf8_decode((const uint8_t *)text, left, &code);
        if (!n) {
            n = 1;
            code = '?';
        }
        count += code > 0xffff ? 2 : 1;
        if (!stream)
            continue;
        if (code > 0xffff)
            put_unit(stream, 0xd800 + ((code - 0x10000) >> 10));
        put_unit(stream, code > 0xffff ? 0xdc00 + ((code - 0x10000) & 0x3ff) : code);
    }
    return count;
}

static void put_text(struct stream *stream, const char *text)
{
    put_u32(stream, text ? put_units(NULL, text) : (uint32_t)NO_TEXT);
    if (text)
        put_units(stream, text);
}

/*
 * Seven bits a byte, the highest first; all but the last byte have their highest bit set; the first one has the sign.
 */
static void put_compressed(struct stream *stream, int32_t value)
{
    unsigned bytes = 1;
    while (bytes < 5 && (value < -(INT64_C(1) << (7 * bytes - 1)) || value >= INT64_C(1) << (7 * bytes - 1)))
        bytes++;
    while (bytes--)
        put_byte(stream, ((uint32_t)(value >> 7 * bytes) & 0x7f) | (bytes ? 0x80 : 0));
}

/* The object follows, then put_end(). *label: where the type was defined; 0: here. */
static void put_begin(struct stream *stream, const char *type, uint32_t version, uint32_t least, uint32_t *label)
{
    put_byte(stream, TAG_BEGIN);
    if (*label) {
        put_byte(stream, TAG_REFERENCE);
        put_u32(stream, *label);
        return;
    }
    *label = (uint32_t)stream->at;
    put_byte(stream, TAG_BEGIN);
    put_byte(stream, TAG_NULL); /* the type of a type */
    put_u32(stream, version);
    put_u32(stream, least); /* of a reader */
    put_text(stream, type);
    put_byte(stream, TAG_END);
}

static void put_end(struct stream *stream)
{
    put_byte(stream, TAG_END);
}

/* ---- Types ------------------------------------------------------------------------------------------------------ */

static uint32_t add_type(struct work *work, const char *name, uint32_t size)
{
    put_text(&work->types, name);
    put_u32(&work->types, size);
    put_u32(&work->types, (uint32_t)NO_TEXT); /* its module */
    return work->type_count++;
}

static int32_t node_size(const struct work *work, uint32_t object)
{
    return (int32_t)MIN(heap_graph_exact_size(&work->graph, object), (uint64_t)INT32_MAX);
}

static void add_types(struct work *work)
{
    char room[GRAPH_TYPE_TEXT_SIZE];
    if (!graph_numbers_resize(&work->sizes, work->graph.types.count))
        out_of_memory();
    for (uint32_t object = 0; object < work->graph.places.count; object++) {
        uint32_t *size = &work->sizes.items[work->graph.type_of.items[object]];
        *size = *size ? *size : (uint32_t)node_size(work, object);
    }
    add_type(work, "UNDEFINED", 0);
    for (uint32_t i = 0; i < work->graph.types.count; i++) {
        const char *text = heap_graph_type_text(&work->graph, i, room);
        work->unnamed_types += text == room;
        add_type(work, text, work->sizes.items[i]);
    }
    work->root_type = add_type(work, "[.NET Roots]", 0);
    work->no_root_type = add_type(work, "[not reachable from roots]", 0);
}

/* Roots of one text, which follow each other, share a type; handles have that of their group. */
static void add_root_node(struct work *work, uint32_t number, char last[static GRAPH_ROOT_TEXT_SIZE])
{
    const struct graph_root *root = &work->graph.roots.items[number];
    char text[GRAPH_ROOT_TEXT_SIZE], name[GRAPH_ROOT_TEXT_SIZE + 2];
    if (!work->group_count || work->groups[work->group_count - 1].kind != root->kind) {
        work->groups[work->group_count++] = (struct group){.kind = root->kind,
                                                           .type = add_type(work, group_names[root->kind], 0),
                                                           .first = (uint32_t)work->roots.count};
        last[0] = '\0';
    }
    struct group *group = &work->groups[work->group_count - 1];
    uint32_t type = group->type;
    group->count++;
    if (root->kind == CDACQ_ROOT_STATIC || root->kind == CDACQ_ROOT_THREAD_STATIC || root->kind == CDACQ_ROOT_LOCAL) {
        heap_graph_root_text(&work->graph, root, text);
        snprintf(name, sizeof name, "[%s]", text);
        type = strcmp(text, last) == 0 ? work->root_types.items[work->root_types.count - 1] : add_type(work, name, 0);
        memcpy(last, text, sizeof text);
    }
    if (!graph_numbers_append(&work->roots, number) || !graph_numbers_append(&work->root_types, type))
        out_of_memory();
}

/* Asks for all names and facts: the process may run on after it. */
static void ask_all(struct work *work, struct cdacq_target *target)
{
    char last[GRAPH_ROOT_TEXT_SIZE] = "";
    struct cdacq_process_info process = {.size = sizeof process};
    add_types(work);
    for (uint32_t i = 0; i < work->graph.roots.count; i++)
        if (work->graph.roots.items[i].keeps)
            add_root_node(work, i, last);
    if (cdacq_target_get_process_info(target, &process, NULL) < 0)
        return;
    work->pid = process.pid;
    work->time = process.time_s;
    work->program = copy_text(process.program);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

static uint32_t no_root_node(const struct work *work)
{
    return FIRST_GROUP + work->group_count;
}

static uint32_t root_node(const struct work *work, uint32_t root)
{
    return no_root_node(work) + 1 + root;
}

static uint32_t object_node(const struct work *work, uint32_t object)
{
    return root_node(work, (uint32_t)work->roots.count) + object;
}

static void put_link(struct stream *blob, uint32_t from, uint32_t to)
{
    put_compressed(blob, (int32_t)(to - from));
}

static void put_node(struct stream *blob, uint32_t type, uint64_t links)
{
    put_compressed(blob, (int32_t)(type << 1));
    put_compressed(blob, (int32_t)links);
}

static void put_object(struct stream *blob, const struct work *work, uint32_t object)
{
    const struct heap_graph *graph = &work->graph;
    uint32_t type = graph->type_of.items[object], end = graph->first_edge.items[object + 1];
    int32_t size = node_size(work, object);
    bool has_size = (uint32_t)size != work->sizes.items[type];
    put_compressed(blob, (int32_t)((FIRST_TYPE + type) << 1 | has_size));
    if (has_size)
        put_compressed(blob, size);
    put_compressed(blob, (int32_t)(end - graph->first_edge.items[object]));
    for (uint32_t edge = graph->first_edge.items[object]; edge < end; edge++)
        put_link(blob, object, graph->edges.items[edge]);
}

static void put_label(struct stream *labels, const struct stream *blob)
{
    if (labels)
        put_u32(labels, (uint32_t)blob->at);
}

/* Writes all nodes, or counts their bytes, and their labels to `labels`, or not. */
static void put_nodes(struct work *work, struct stream *blob, struct stream *labels)
{
    put_node(blob, UNDEFINED, 0);
    put_label(labels, blob);
    put_node(blob, work->root_type, work->group_count + 1);
    for (uint32_t i = 0; i <= work->group_count; i++)
        put_link(blob, ROOT, FIRST_GROUP + i);
    for (uint32_t i = 0; i < work->group_count; i++) {
        const struct group *group = &work->groups[i];
        put_label(labels, blob);
        put_node(blob, group->type, group->count);
        for (uint32_t root = 0; root < group->count; root++)
            put_link(blob, FIRST_GROUP + i, root_node(work, group->first + root));
    }
    put_label(labels, blob);
    put_node(blob, work->no_root_type, work->unkept.count);
    for (size_t i = 0; i < work->unkept.count; i++)
        put_link(blob, no_root_node(work), object_node(work, work->unkept.items[i]));
    for (uint32_t i = 0; i < work->roots.count; i++) {
        put_label(labels, blob);
        put_node(blob, work->root_types.items[i], 1);
        put_link(blob, root_node(work, i), object_node(work, work->graph.roots.items[work->roots.items[i]].object));
    }
    for (uint32_t object = 0; object < work->graph.places.count; object++) {
        put_label(labels, blob);
        put_object(blob, work, object);
        if (UNLIKELY(object % STEP == STEP - 1))
            progress_step(&work->progress, work->progress.done + STEP);
        if (blob->at > BLOB_MAX || output_failed(&work->out))
            return;
    }
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

static uint64_t total_size(const struct work *work)
{
    uint64_t total = 0;
    for (uint32_t object = 0; object < work->graph.places.count; object++)
        total += (uint64_t)node_size(work, object);
    return total;
}

/* `blob_size`: of all nodes. */
static void write_graph(struct work *work, uint64_t blob_size)
{
    struct stream *file = &work->file, blob = {0};
    uint32_t label = 0, nodes = object_node(work, (uint32_t)work->graph.places.count);
    put_begin(file, "Graphs.MemoryGraph", 1, 0, &label);
    put_u64(file, total_size(work));
    put_u32(file, ROOT);
    put_u32(file, work->type_count);
    put(file, work->types_out.data, work->types_out.length);
    put_u32(file, nodes);
    put_nodes(work, &blob, file);
    put_u32(file, (uint32_t)blob_size);
    put_nodes(work, file, NULL);
    put_u32(file, nodes);
    for (uint32_t i = 0; i < object_node(work, 0); i++)
        put_u64(file, 0);
    for (uint32_t i = 0; i < work->graph.places.count && !output_failed(&work->out); i++)
        put_u64(file, heap_graph_address(&work->graph, i));
    put_byte(file, TAG_BYTE);
    put_byte(file, 1); /* 64 bits */
    put_end(file);
}

/* A segment has the ends of its generations 0 to 4; where one begins, the older ones end. */
static void write_segment(struct work *work, const struct graph_segment *segment)
{
    struct stream *file = &work->file;
    unsigned generation = MIN((unsigned)segment->generation, (unsigned)CDACQ_GENERATION_POH);
    if (segment->generation == CDACQ_GENERATION_FROZEN)
        generation = CDACQ_GENERATION_2;
    put_begin(file, "GCHeapDumpSegment", 1, 1, &work->segment_type);
    put_u64(file, segment->begin);
    put_u64(file, segment->end);
    for (unsigned i = 0; i <= CDACQ_GENERATION_POH; i++)
        put_u64(file, i <= generation ? segment->end : segment->begin);
    put_end(file);
}

static void write_segments(struct work *work)
{
    struct stream *file = &work->file;
    const struct graph_segments *segments = &work->graph.segments;
    uint64_t total = 0;
    uint32_t label = 0;
    for (size_t i = 0; i < segments->count; i++)
        total += segments->items[i].end - segments->items[i].begin;
    put_begin(file, "DotNetHeapInfo", 0, 0, &label);
    put_u64(file, total);
    put_u32(file, (uint32_t)segments->count);
    for (size_t i = 0; i < segments->count; i++)
        write_segment(work, &segments->items[i]);
    put_end(file);
}

static void write_file(struct work *work, uint64_t blob_size)
{
    struct stream *file = &work->file;
    uint32_t label = 0;
    char tool[64];
    put_text(file, "!FastSerialization.1");
    put_begin(file, "GCHeapDump", 10, 8, &label);
    write_graph(work, blob_size);
    put_byte(file, 1);  /* 64 bits */
    put_float(file, 1); /* the graph is no sample: counts and sizes are multiplied by 1 */
    put_float(file, 1);
    put_byte(file, TAG_NULL); /* of JavaScript */
    write_segments(work);
    put_text(file, NULL); /* a log */
    put_u64(file, work->time ? (uint64_t)((work->time + UNIX_EPOCH) * TICKS) : 0);
    put_text(file, NULL); /* the machine */
    put_text(file, work->program);
    put_u32(file, (uint32_t)work->pid);
    put_u64(file, 0); /* committed and resident memory: not known */
    put_u64(file, 0);
    put_u32(file, 0); /* multipliers of types */
    put_byte(file, TAG_SKIP_REGION);
    put_u32(file, 0);         /* the label below */
    put_byte(file, TAG_NULL); /* of COM */
    uint32_t region_end = (uint32_t)file->at;
    put_byte(file, TAG_STRING);
    snprintf(tool, sizeof tool, "cdacq %s", cdacq_version());
    put_text(file, tool);
    put_end(file);
    put_end(file); /* of all objects */
    uint32_t labels = (uint32_t)file->at;
    put_u32(file, 1);
    put_u32(file, region_end);
    uint32_t trailer = (uint32_t)file->at;
    put_u32(file, labels);
    put_u32(file, trailer);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

/* The bytes of all nodes. False: the file would be larger than its labels and numbers can be. */
static bool measure(struct work *work, uint64_t *ret)
{
    struct stream blob = {0};
    put_nodes(work, &blob, NULL);
    uint64_t nodes = (uint64_t)object_node(work, 0) + work->graph.places.count;
    *ret = blob.at;
    if (blob.at <= BLOB_MAX && nodes <= INT32_MAX &&
        blob.at + nodes * (LABEL + sizeof(uint64_t)) + work->types.at <= UINT32_MAX - STEP)
        return true;
    message("%zu objects are too many for a .gcdump file: export a .heapsnapshot", work->graph.places.count);
    return false;
}

static bool write_all(struct work *work)
{
    uint64_t blob_size;
    if (!heap_paths_list_unkept(&work->graph, &work->unkept))
        out_of_memory();
    progress_begin(&work->progress, "objects", work->out.fd);
    progress_expect(&work->progress, 3 * (uint64_t)work->graph.places.count);
    bool fits = measure(work, &blob_size);
    if (fits)
        write_file(work, blob_size);
    progress_end(&work->progress);
    return fits;
}

static void deinit(struct work *work)
{
    output_abandon(&work->types_out);
    graph_numbers_deinit(&work->sizes);
    graph_numbers_deinit(&work->roots);
    graph_numbers_deinit(&work->root_types);
    graph_numbers_deinit(&work->unkept);
    heap_graph_deinit(&work->graph);
    free(work->program);
    free(work);
}

int heap_export_gcdump(const struct heap_question *question)
{
    struct work *work = allocate(sizeof *work);
    if (!output_open_private(&work->out, question->output)) {
        free(work);
        return EXIT_FAILED;
    }
    work->file.out = &work->out;
    output_open_memory(&work->types_out);
    work->types.out = &work->types_out;
    bool is_read = heap_graph_read_offsets(&work->graph, question->opened->session, work->out.fd);
    if (is_read)
        ask_all(work, question->opened->target);
    target_let_go(question->opened->target);
    bool is_written = is_read && write_all(work);
    if (is_written) {
        heap_graph_tell_problems(&work->graph, false);
        heap_graph_tell_unnamed(work->unnamed_types, 0);
    }
    bool is_whole = heap_graph_is_whole(&work->graph) && !work->unnamed_types;
    int code = !output_close_if(&work->out, is_written) ? EXIT_FAILED : is_whole ? EXIT_ANSWERED : EXIT_PARTLY;
    deinit(work);
    return code;
}
