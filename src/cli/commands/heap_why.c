#include "src/cli/commands/heap_why.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/exit_code.h"
#include "src/cli/base/heap_holder.h"
#include "src/cli/base/ip_text.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/commands/heap_paths.h"
#include "src/cli/commands/heap_words.h"
#include "src/cli/commands/name_pattern.h"
#include "util/base.h"

enum {
    HOPS_MAX = 1 << 20, /* of a path that is written */
    PERIOD_MAX = 4,     /* objects of a chain that repeat */
    REPEATS_MIN = 3,    /* which are folded */
    ROOTS_SHOWN = 8,    /* of a type, without --all */
    WORDS_MAX = 4,      /* of a path: timers, events, async methods */
    WORD_HOPS_MAX = 64, /* at the begin and the end of a path, which are looked at for them */
};

/* How an object of a type refers to the next one: fields of one type have the same offsets. */
struct hop_name {
    uint64_t key;     /* type and offset */
    const char *name; /* the session owns it */
};

DEFINE_U64_TABLE(hop_names, struct hop_name, key);

struct hop {
    uint32_t object;
    const char *by; /* NULL: the root itself refers to it */
};

struct work {
    const struct heap_question *question;
    struct output out;
    struct heap_graph graph;
    struct heap_paths paths;
    struct hop_names names;
    struct hop *hops;
    size_t hop_count;
    uint64_t cut;    /* objects of the path that were left out */
    uint64_t unkept; /* objects that were asked for and have no known root */
};

/* ---- Paths ------------------------------------------------------------------------------------------------------ */

/* How an object refers to another one. */
static const char *name_hop(struct work *work, uint32_t from, uint32_t to)
{
    struct heap_graph *graph = &work->graph;
    uint64_t offset = heap_paths_find_hop(graph, from, to);
    if (offset == GRAPH_NO_OFFSET)
        return heap_paths_name_hop(graph, from, offset);
    uint64_t key = (uint64_t)graph->type_of.items[from] << 32 | (offset & UINT32_MAX);
    const struct hop_name *known = hop_names_find(&work->names, key);
    if (known)
        return known->name;
    const char *name = heap_paths_name_hop(graph, from, offset);
    /* An index depends on the lengths of the array, too. */
    if (name[0] != '[' && !hop_names_insert(&work->names, (struct hop_name){.key = key, .name = name}, NULL))
        out_of_memory();
    return name;
}

static uint32_t top_of(const struct work *work, uint32_t object)
{
    uint32_t from = work->paths.from[object];
    while (!(from & PATH_ROOT))
        from = work->paths.from[from];
    return from & ~PATH_ROOT;
}

/* Lists the objects from a root to `object`. Of a very long path, the objects in the middle are left out. */
static void list_hops(struct work *work, uint32_t object)
{
    size_t count = 1, at = 0;
    for (uint32_t from = work->paths.from[object]; !(from & PATH_ROOT); from = work->paths.from[from])
        count++;
    work->hop_count = MIN(count, (size_t)HOPS_MAX);
    work->cut = count - work->hop_count;
    work->hops = reallocate(work->hops, work->hop_count * sizeof *work->hops);
    for (uint32_t o = object; at < count; o = work->paths.from[o], at++) {
        size_t place = count - 1 - at; /* from the root */
        if (place >= work->hop_count / 2 && place < work->hop_count / 2 + work->cut)
            continue;
        struct hop *hop = &work->hops[place < work->hop_count / 2 ? place : place - work->cut];
        uint32_t from = work->paths.from[o];
        hop->object = o;
        hop->by = from & PATH_ROOT ? NULL : name_hop(work, from, o);
    }
}

/* Calls `write` for what the objects of the path are in words, for at most WORDS_MAX. */
static void each_word(struct work *work, uint32_t object,
                      void (*write)(struct work *work, void *context, size_t hop, const struct heap_word *word),
                      void *context)
{
    const struct graph_root *root = &work->graph.roots.items[top_of(work, object)];
    unsigned written = 0;
    struct heap_word word;
    for (size_t i = 0; i < work->hop_count && written < WORDS_MAX; i++) {
        if (i >= WORD_HOPS_MAX && i + WORD_HOPS_MAX < work->hop_count)
            continue;
        const struct heap_step step = {.root = i ? NULL : root,
                                       .holder = i ? work->hops[i - 1].object : GRAPH_NONE,
                                       .object = work->hops[i].object,
                                       .next = i + 1 < work->hop_count ? work->hops[i + 1].object : GRAPH_NONE,
                                       .by = work->hops[i].by};
        heap_word_of(&work->graph, &step, &word);
        if (word.kind == HEAP_WORD_NONE)
            continue;
        write(work, context, i, &word);
        written++;
    }
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

static bool equal_hops(const struct work *work, size_t a, size_t b)
{
    const struct hop *left = &work->hops[a], *right = &work->hops[b];
    return work->graph.type_of.items[left->object] == work->graph.type_of.items[right->object] && left->by &&
           right->by && strcmp(left->by, right->by) == 0;
}

/* How often the `period` hops from `begin` on follow each other. */
static size_t repeats_of(const struct work *work, size_t begin, size_t period)
{
    size_t same = 0;
    while (begin + same + period < work->hop_count && equal_hops(work, begin + same, begin + same + period))
        same++;
    return same / period + 1;
}

static void write_hop(struct work *work, size_t number)
{
    const struct hop *hop = &work->hops[number];
    const char *type = heap_graph_type_name(&work->graph, work->graph.type_of.items[hop->object]);
    output_printf(&work->out, "  0x%016" PRIx64 " ", heap_graph_address(&work->graph, hop->object));
    output_note(&work->out, type ? type : "?");
    if (hop->by)
        output_note_between(&work->out, " (by ", hop->by, ")");
    output_literal(&work->out, "\n");
}

static void write_hops(struct work *work)
{
    for (size_t i = 0; i < work->hop_count && !output_failed(&work->out);) {
        size_t period = 1, repeats = 1;
        while (period <= PERIOD_MAX && (repeats = repeats_of(work, i, period)) < REPEATS_MIN)
            period++;
        if (period > PERIOD_MAX) {
            write_hop(work, i++);
            continue;
        }
        size_t end = i + repeats * period;
        bool is_last = end == work->hop_count; /* which is shown, too */
        for (size_t n = 0; n < period; n++)
            write_hop(work, i + n);
        output_printf(&work->out, "  ... %zu more of the same\n", end - i - period - is_last);
        if (is_last)
            write_hop(work, end - 1);
        i = end;
    }
    if (work->cut)
        output_printf(&work->out, "  (%" PRIu64 " objects in the middle of this path were left out)\n", work->cut);
}

static const char not_found[] = "no root was found";

/* The context that an object belongs to as its LoaderAllocator or its AssemblyLoadContext. NULL: none. */
static const struct graph_context *context_of(const struct work *work, uint32_t object)
{
    const struct graph_contexts *contexts = &work->graph.contexts;
    for (size_t i = 0; i < contexts->count; i++)
        if (contexts->items[i].allocator == object || contexts->items[i].object == object)
            return &contexts->items[i];
    return NULL;
}

/* The last object of a path may stand for an assembly load context. */
static void write_context(struct work *work, uint32_t object)
{
    const struct graph_context *context = context_of(work, object);
    if (!context)
        return;
    output_note_between(&work->out, "  (assembly load context ", context->name,
                        context->is_unloading ? ", unloading" : "");
    if (context->allocator == object)
        output_literal(&work->out, ")\n");
    else
        output_printf(&work->out, "; what keeps it loaded keeps 0x%" PRIx64 ")\n",
                      heap_graph_address(&work->graph, context->allocator));
}

static void write_unkept_text(struct work *work, uint32_t object)
{
    const struct heap_graph *graph = &work->graph;
    const char *type = heap_graph_type_name(&work->graph, graph->type_of.items[object]);
    output_printf(&work->out, "%s for 0x%016" PRIx64 " ", not_found, heap_graph_address(graph, object));
    output_note(&work->out, type ? type : "?");
    output_literal(&work->out, "\n");
    if (heap_graph_generation(graph, object) == CDACQ_GENERATION_FROZEN)
        output_literal(&work->out, "  it is frozen, and never collected\n");
    for (size_t i = 0; i < graph->roots.count; i++) {
        const struct graph_root *root = &graph->roots.items[i];
        bool is_static = root->kind == CDACQ_ROOT_STATIC || root->kind == CDACQ_ROOT_THREAD_STATIC;
        if (root->object != object || root->keeps || is_static)
            continue;
        output_printf(&work->out,
                      root->kind == CDACQ_ROOT_FINALIZABLE ? "  its finalizer will run when it is collected\n"
                                                           : "  %s handle 0x%" PRIx64 " does not keep it\n",
                      cdacq_handle_kind_text((enum cdacq_handle_kind)root->handle), root->type);
    }
}

static void write_word_text(struct work *work, void *context, size_t hop, const struct heap_word *word)
{
    bool *any = context;
    (void)hop;
    output_note_between(&work->out, *any ? ", " : ", through ", word->text, "");
    *any = true;
}

static void write_path_text(struct work *work, uint32_t object, uint64_t count)
{
    char text[GRAPH_ROOT_TEXT_SIZE];
    list_hops(work, object);
    heap_graph_root_text(&work->graph, &work->graph.roots.items[top_of(work, object)], text);
    if (count)
        output_printf(&work->out, "%" PRIu64 " object%s, kept by ", count, plural(count));
    output_note(&work->out, text);
    bool any = false;
    each_word(work, object, write_word_text, &any);
    output_literal(&work->out, "\n");
    write_hops(work);
    write_context(work, object);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void write_hop_json(struct work *work, struct json_writer *w, uint32_t object, const char *by)
{
    heap_hop_write_json(w, heap_graph_address(&work->graph, object),
                        heap_graph_type_name(&work->graph, work->graph.type_of.items[object]), by);
}

static void write_word_json(struct work *work, void *context, size_t hop, const struct heap_word *word)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "kind", heap_word_kind_text(word->kind));
    json_note(w, "text", word->text);
    json_address(w, "address", heap_graph_address(&work->graph, work->hops[hop].object));
    json_end_object(w);
}

/* `object` has no root if it is not reached. `count`: of objects of its type with the same root; 0: not asked. */
static void write_path_json(struct work *work, uint32_t object, uint64_t count)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    char text[GRAPH_ROOT_TEXT_SIZE];
    bool is_kept = work->paths.from[object] != GRAPH_NONE;
    if (is_kept) {
        const struct graph_root *root = &work->graph.roots.items[top_of(work, object)];
        heap_graph_root_text(&work->graph, root, text);
        heap_root_write_json(w, (enum cdacq_root_kind)root->kind, text);
        list_hops(work, object);
    } else {
        json_null(w, "root");
    }
    json_begin_array(w, "path");
    for (size_t i = 0; is_kept && i < work->hop_count; i++)
        write_hop_json(work, w, work->hops[i].object, work->hops[i].by);
    if (!is_kept)
        write_hop_json(work, w, object, NULL);
    json_end_array(w);
    json_begin_array(w, "through");
    if (is_kept)
        each_word(work, object, write_word_json, w);
    json_end_array(w);
    if (is_kept)
        json_number(w, "left_out", work->cut);
    else
        json_bool(w, "frozen", heap_graph_generation(&work->graph, object) == CDACQ_GENERATION_FROZEN);
    if (count)
        json_number(w, "count", count);
    const struct graph_context *context = context_of(work, object);
    if (context) {
        json_begin_object(w, "context");
        json_note(w, "name", context->name);
        json_address(w, "allocator", heap_graph_address(&work->graph, context->allocator));
        json_bool(w, "unloading", context->is_unloading);
        json_end_object(w);
    }
    json_begin_array(w, "problems");
    for (size_t i = 0; i < work->graph.problems.count; i++)
        json_note(w, NULL, work->graph.problems.items[i]);
    json_end_array(w);
    json_end_line(w);
}

/* ---- One object ------------------------------------------------------------------------------------------------- */

static int show_one(struct work *work, uint32_t object)
{
    heap_paths_deinit(&work->paths);
    if (!heap_paths_find(&work->graph, object, false, &work->paths))
        out_of_memory();
    bool is_kept = work->paths.from[object] != GRAPH_NONE;
    work->unkept += !is_kept;
    if (work->question->json)
        write_path_json(work, object, 0);
    else if (is_kept)
        write_path_text(work, object, 0);
    else
        write_unkept_text(work, object);
    return is_kept ? EXIT_ANSWERED : EXIT_PARTLY;
}

static int show_object(struct work *work, uint64_t address)
{
    uint32_t object = heap_graph_find(&work->graph, address);
    if (object == GRAPH_NONE) {
        message("0x%" PRIx64 ": no object of the heap is there", address);
        return EXIT_FAILED;
    }
    if (heap_graph_address(&work->graph, object) != address)
        message("0x%" PRIx64 " is within the object at 0x%" PRIx64, address, heap_graph_address(&work->graph, object));
    return show_one(work, object);
}

/* What keeps assembly load contexts of a name loaded: their LoaderAllocators. */
static int show_contexts(struct work *work, const char *pattern)
{
    const struct graph_contexts *contexts = &work->graph.contexts;
    bool any = false, partly = false;
    for (size_t i = 0; i < contexts->count; i++) {
        if (!name_matches(contexts->items[i].name, pattern))
            continue;
        partly |= show_one(work, contexts->items[i].allocator) == EXIT_PARTLY;
        any = true;
    }
    if (!any)
        message("no object of the heap has a type named %s, and no assembly load context that name", pattern);
    return !any ? EXIT_FAILED : partly ? EXIT_PARTLY : EXIT_ANSWERED;
}

/* ---- A type ----------------------------------------------------------------------------------------------------- */

/* Objects of a type with one root. */
struct root_count {
    uint32_t root;    /* GRAPH_NONE: no root was found */
    uint32_t example; /* an object */
    uint64_t count;
};

static int by_count(const void *a, const void *b)
{
    const struct root_count *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->root > right->root) - (left->root < right->root);
}

/* Whether each type is asked for. */
static bool *match_types(struct work *work, const char *pattern)
{
    bool any = false, *wanted = allocate(work->graph.types.count + 1);
    for (uint32_t i = 0; i < work->graph.types.count; i++) {
        const char *name = heap_graph_type_name(&work->graph, i);
        wanted[i] = name && name_matches(name, pattern);
        any |= wanted[i];
    }
    if (any)
        return wanted;
    free(wanted);
    return NULL;
}

static int show_type(struct work *work, const char *pattern)
{
    struct heap_graph *graph = &work->graph;
    bool *wanted = match_types(work, pattern);
    if (!wanted)
        return show_contexts(work, pattern);
    if (!heap_paths_find(graph, GRAPH_NONE, true, &work->paths))
        out_of_memory();
    struct root_count *counts = allocate((graph->roots.count + 1) * sizeof *counts);
    for (uint32_t object = 0; object < graph->places.count; object++) {
        if (!wanted[graph->type_of.items[object]])
            continue;
        bool is_kept = work->paths.from[object] != GRAPH_NONE;
        struct root_count *count = &counts[is_kept ? work->paths.top[object] : graph->roots.count];
        count->root = is_kept ? work->paths.top[object] : GRAPH_NONE;
        count->example = count->count++ ? count->example : object;
    }
    free(wanted);
    qsort(counts, graph->roots.count + 1, sizeof *counts, by_count);
    size_t shown = 0, roots = 0;
    uint64_t unkept = 0;
    for (size_t i = 0; i <= graph->roots.count && counts[i].count; i++) {
        if (counts[i].root == GRAPH_NONE)
            unkept = counts[i].count;
        roots++;
        if (shown == ROOTS_SHOWN && !work->question->all && !work->question->json)
            continue;
        shown++;
        if (work->question->json)
            write_path_json(work, counts[i].example, counts[i].count);
        else if (counts[i].root != GRAPH_NONE)
            write_path_text(work, counts[i].example, counts[i].count);
        else
            output_printf(&work->out, "%" PRIu64 " object%s: %s, as for 0x%" PRIx64 "\n", counts[i].count,
                          plural(counts[i].count), not_found, heap_graph_address(graph, counts[i].example));
    }
    free(counts);
    if (shown < roots)
        output_printf(&work->out, "... %zu more root%s (--all)\n", roots - shown, plural(roots - shown));
    work->unkept += unkept;
    return unkept ? EXIT_PARTLY : EXIT_ANSWERED;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static void deinit(struct work *work)
{
    hop_names_deinit(&work->names);
    heap_paths_deinit(&work->paths);
    heap_graph_deinit(&work->graph);
    free(work->hops);
    free(work);
}

/* Whether a text is the address of an object, and not the name of a type. */
static bool is_address(const char *text, uint64_t *ret)
{
    struct bad_ip bad;
    return strspn(text, "0123456789abcdefABCDEFxX") == strlen(text) && text[0] >= '0' && text[0] <= '9' &&
           ip_parse(text, strlen(text), ret, &bad);
}

int heap_why_show(const struct heap_question *question, const struct word_list *what)
{
    struct work *work = allocate(sizeof *work);
    int code = EXIT_FAILED;
    uint64_t address;
    work->question = question;
    if (!output_open(&work->out, question->output)) {
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(question->opened->name);
    bool is_read = heap_graph_read(&work->graph, question->opened->session, work->out.fd);
    bool any = false, partly = false, failed = false;
    if (is_read)
        heap_graph_read_contexts(&work->graph);
    for (size_t i = 0; is_read && i < what->count; i++) {
        code = is_address(what->items[i], &address) ? show_object(work, address) : show_type(work, what->items[i]);
        any |= code != EXIT_FAILED;
        partly |= code == EXIT_PARTLY;
        failed |= code == EXIT_FAILED;
        heap_paths_deinit(&work->paths);
    }
    code = !any ? EXIT_FAILED : partly || failed ? EXIT_PARTLY : EXIT_ANSWERED;
    target_let_go(question->opened->target);
    work->out.is_held = false;
    if (work->unkept)
        message("%s for %" PRIu64 " object%s; native code of threads was not searched", not_found, work->unkept,
                plural(work->unkept));
    if (partly || work->graph.is_under_way)
        heap_graph_tell_problems(&work->graph, !work->question->json);
    if (!output_close_if(&work->out, code != EXIT_FAILED))
        code = EXIT_FAILED;
    deinit(work);
    return code;
}
