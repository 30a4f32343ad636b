#include "src/cli/commands/call_paths.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/base/stack_writer.h"

static const struct stack_frame no_frame;

DEFINE_VECTOR_FUNCTIONS(call_labels, struct call_label);
DEFINE_VECTOR_FUNCTIONS(call_sites, struct call_site);
DEFINE_VECTOR_FUNCTIONS(call_steps, uint32_t);
DEFINE_VECTOR_FUNCTIONS(call_path_list, struct call_path);

/* ---- What is equal ---- */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static const struct call_label *label_key(const struct known_label *known)
{
    return &known->label;
}

static uint64_t hash_label(const struct call_label *label, uint64_t seed)
{
    return hash_string(label->text, hash_string(or_empty(label->module), seed));
}

static bool equal_labels(const struct call_label *a, const struct call_label *b)
{
    return !strcmp(a->text, b->text) && !strcmp(or_empty(a->module), or_empty(b->module));
}

static const struct call_site *site_key(const struct known_site *known)
{
    return &known->site;
}

static uint64_t hash_site(const struct call_site *site, uint64_t seed)
{
    return hash_string(or_empty(site->file), hash_u64((uint64_t)site->label << 32 | site->line, seed));
}

static bool equal_sites(const struct call_site *a, const struct call_site *b)
{
    return a->label == b->label && a->line == b->line && !strcmp(or_empty(a->file), or_empty(b->file));
}

DEFINE_HASH_TABLE_FUNCTIONS(known_labels, struct known_label, const struct call_label *, label_key, hash_label,
                            equal_labels);
DEFINE_HASH_TABLE_FUNCTIONS(known_sites, struct known_site, const struct call_site *, site_key, hash_site, equal_sites);
DEFINE_U64_TABLE_FUNCTIONS(known_frames, struct known_frame, frame);

void call_paths_deinit(struct call_paths *paths)
{
    call_labels_deinit(&paths->labels);
    call_sites_deinit(&paths->sites);
    call_steps_deinit(&paths->steps);
    call_path_list_deinit(&paths->list);
    known_labels_deinit(&paths->known_labels);
    known_sites_deinit(&paths->known_sites);
    known_frames_deinit(&paths->known_frames);
    arena_deinit(&paths->strings);
}

static const char *keep(struct call_paths *paths, const char *text)
{
    char *copy = text ? arena_string(&paths->strings, text, strlen(text)) : NULL;
    if (text && !copy)
        out_of_memory();
    return copy;
}

static uint32_t number_of_label(struct call_paths *paths, struct call_label label)
{
    const struct known_label *known = known_labels_find(&paths->known_labels, &label);
    if (known)
        return known->number;
    struct stack_frame *copy = arena_allocate(&paths->strings, sizeof *copy);
    if (!copy)
        out_of_memory();
    *copy = *label.frame;
    label.frame = copy;
    label.text = keep(paths, label.text);
    label.module = keep(paths, label.module);
    const struct known_label added = {label, (uint32_t)paths->labels.count};
    if (!known_labels_insert(&paths->known_labels, added, NULL) || !call_labels_append(&paths->labels, label))
        out_of_memory();
    return added.number;
}

/* The place of a label is that of all its frames. */
static void narrow_place(struct call_label *label, const struct call_site *site, bool is_first)
{
    bool same_file = label->file && site->file && !strcmp(label->file, site->file);
    if (is_first)
        label->file = site->file;
    else if (!same_file)
        label->file = NULL;
    if (is_first)
        label->line = site->line;
    else if (!same_file || label->line != site->line)
        label->line = 0;
}

static uint32_t number_of_site(struct call_paths *paths, struct call_label label, const char *file, uint32_t line)
{
    size_t labels = paths->labels.count;
    struct call_site site = {number_of_label(paths, label), line, file, label.frame};
    if (label.frame == &no_frame) /* marks differ */
        site.frame = paths->labels.items[site.label].frame;
    const struct known_site *known = known_sites_find(&paths->known_sites, &site);
    if (known)
        return known->number;
    const struct known_site added = {site, (uint32_t)paths->sites.count};
    if (!known_sites_insert(&paths->known_sites, added, NULL) || !call_sites_append(&paths->sites, site))
        out_of_memory();
    narrow_place(&paths->labels.items[site.label], &site, paths->labels.count > labels);
    return added.number;
}

/* ---- Labels ---- */

static void write_name(struct output *out, const struct cdacq_method *method)
{
    bool is_empty = !method->name || !*method->name;
    if (!is_empty)
        output_literal(out, method->name);
    if (is_empty || answers_doubt_name(method))
        output_literal(out, "?");
}

/* Of code that is not native. */
static void write_method(struct output *out, const struct cdacq_method *method)
{
    if (method->answer == CDACQ_ANSWER_MANAGED)
        write_name(out, method);
    else if (method->answer == CDACQ_ANSWER_STUB)
        output_text_between(out, "[stub ", cdacq_code_kind_text(method->kind), "]");
    else
        output_literal(out, method->answer == CDACQ_ANSWER_ERROR ? "[no answer]" : "[unknown]");
    output_literal(out, method->async_thunk ? " [async thunk]" : "");
}

static bool is_native(const struct cdacq_frame *frame)
{
    return !frame->method && (frame->symbol || frame->module);
}

/* Native code that has no symbol. */
static void write_file(struct output *out, const struct cdacq_frame *frame, bool has_offsets)
{
    if (!frame->module)
        output_literal(out, "[unknown]");
    else if (has_offsets)
        output_text(out, path_basename(frame->module)), output_printf(out, "+0x%" PRIx64, frame->module_offset);
    else
        output_text_between(out, "[", path_basename(frame->module), "]");
}

static void write_text(struct output *out, const struct stack_frame *item, bool has_offsets)
{
    const struct cdacq_frame *frame = &item->frame;
    const char *funclet = stack_funclet_text(frame->funclet);
    if (funclet)
        output_text_between(out, "[", funclet, "] ");
    if (frame->kind == CDACQ_FRAME_ASYNC) {
        output_literal(out, "[async] ");
        write_name(out, &item->method);
    } else if (!is_native(frame)) {
        write_method(out, &item->method);
    } else if (frame->symbol && *frame->symbol) {
        output_text(out, frame->symbol);
    } else {
        write_file(out, frame, has_offsets);
    }
    output_literal(out, frame->kind == CDACQ_FRAME_SIGNAL ? " [signal]" : "");
    output_literal(out, frame->by == CDACQ_FRAME_BY_GUESS ? " [guess]" : "");
}

/* Ends a text with a NUL, which is not a part of it: another may follow. */
static void end_text(struct output *text)
{
    char *end = output_reserve(text, 1);
    *end = '\0';
    output_commit(text, end + 1);
}

static const char *module_of(const struct stack_frame *item)
{
    const struct cdacq_frame *frame = &item->frame;
    if (is_native(frame))
        return frame->symbol && *frame->symbol ? frame->module : NULL;
    return item->method.answer == CDACQ_ANSWER_MANAGED || frame->kind == CDACQ_FRAME_ASYNC ? item->method.module : NULL;
}

static uint32_t form_site(struct call_paths *paths, const struct stack_frame *item)
{
    struct output text;
    const char *module = module_of(item);
    const struct cdacq_method *method = &item->method;
    output_open_memory(&text);
    write_text(&text, item, paths->has_offsets);
    if (paths->tells_runtime && item->frame.method && method->answer != CDACQ_ANSWER_NONE)
        output_printf(&text, " [runtime %u]", method->runtime);
    end_text(&text);
    size_t module_begin = text.length;
    output_text(&text, module ? path_basename(module) : "");
    end_text(&text);
    struct call_label label = {
        .text = text.data, .module = text.data[module_begin] ? text.data + module_begin : NULL, .frame = item};
    uint32_t site = number_of_site(paths, label, method->file, method->line);
    output_abandon(&text);
    return site;
}

static uint32_t site_of(struct call_paths *paths, const struct stack_frame *item)
{
    const struct known_frame *known = known_frames_find(&paths->known_frames, (uintptr_t)item);
    if (known)
        return known->site;
    const struct known_frame added = {(uintptr_t)item, form_site(paths, item)};
    if (!known_frames_insert(&paths->known_frames, added, NULL))
        out_of_memory();
    return added.site;
}

/* ---- Paths ---- */

static void add_step(struct call_paths *paths, uint32_t site)
{
    if (!call_steps_append(&paths->steps, site))
        out_of_memory();
}

static void add_mark(struct call_paths *paths, const char *text)
{
    add_step(paths, number_of_site(paths, (struct call_label){.text = text, .frame = &no_frame}, NULL, 0));
}

static void add_root(struct call_paths *paths, const char *root)
{
    struct output text;
    output_open_memory(&text);
    output_text(&text, root);
    end_text(&text);
    add_mark(paths, *text.data ? text.data : "?");
    output_abandon(&text);
}

static void end_path(struct call_paths *paths, struct call_path path)
{
    path.length = paths->steps.count - path.first;
    if (!call_path_list_append(&paths->list, path))
        out_of_memory();
}

static void count_doubts(struct answers *answers, const struct cdacq_method *method)
{
    if (method->answer == CDACQ_ANSWER_ERROR) {
        answers->errors++;
        return;
    }
    answers->unconfirmed += !method->module_verified;
    answers_count_unread(&answers->unread, method);
}

void call_paths_add_stack(struct call_paths *paths, struct answers *answers, const struct stack *stack,
                          const char *root)
{
    const struct kept_frame *frames = stack->frames.items;
    const struct call_path path = {
        .first = paths->steps.count, .count = stack->samples ? stack->samples : stack->threads.count, .stack = stack};
    if (root)
        add_root(paths, root);
    if (stack->problem)
        add_mark(paths, "[incomplete]");
    else if (!stack->frames.count)
        add_mark(paths, "[no frames]");
    for (size_t i = stack->frames.count; i-- > 0;) {
        const struct stack_frame *item = frames[i].shared;
        if (!is_native(&item->frame))
            count_doubts(answers, &item->method);
        add_step(paths, site_of(paths, item));
        if (item->frame.after_gap && i)
            add_mark(paths, "[frames may be missing]");
    }
    end_path(paths, path);
}

void call_paths_add_chain(struct call_paths *paths, struct answers *answers, const struct cdacq_async_chain *chain)
{
    const struct call_path path = {.first = paths->steps.count, .count = chain->count};
    for (size_t i = chain->method_count; i-- > 0;) {
        const struct cdacq_method *method = &chain->methods[i];
        struct output text;
        count_doubts(answers, method);
        output_open_memory(&text);
        write_name(&text, method);
        end_text(&text);
        add_mark(paths, text.data);
        output_abandon(&text);
    }
    end_path(paths, path);
}

size_t call_paths_common(const struct call_paths *paths, const struct call_path *a, const struct call_path *b)
{
    size_t most = MIN(a->length, b->length), depth = 0;
    while (depth < most && call_path_label(paths, a, depth) == call_path_label(paths, b, depth))
        depth++;
    return depth;
}

/* What is equal stays in the order in which it was added. */
static int compare_paths(const void *left, const void *right, void *context)
{
    const struct call_path *a = left, *b = right;
    const struct call_paths *paths = context;
    size_t depth = call_paths_common(paths, a, b);
    if (depth < a->length && depth < b->length)
        return call_path_label(paths, a, depth) < call_path_label(paths, b, depth) ? -1 : 1;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

void call_paths_sort(struct call_paths *paths)
{
    if (paths->list.count)
        qsort_r(paths->list.items, paths->list.count, sizeof *paths->list.items, compare_paths, paths);
}

size_t call_paths_equal(const struct call_paths *paths, size_t i, uint64_t *ret_count)
{
    const struct call_path *items = paths->list.items, *first = &items[i];
    *ret_count = 0;
    for (; i < paths->list.count && items[i].length == first->length &&
           call_paths_common(paths, &items[i], first) == first->length;
         i++)
        *ret_count += items[i].count;
    return i;
}
