/*
 * call_tree.c: sorted, the paths that share a node of the tree are neighbours, so a node is a range of paths and a
 * depth. Frames without a branch between them are a run: lines of one indentation. The ranges that wait to be written
 * are disjoint, so there are never more of them than paths.
 */
#include "src/cli/commands/call_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/base/memory.h"
#include "src/cli/base/stack_writer.h"

enum {
    LEVELS_SHOWN = 64, /* by indentation; deeper ones by a number, or hostile stacks would fill a disk with blanks */
    THREADS_SHOWN = 16,
};

/* Paths that are equal up to `depth`. */
struct range {
    size_t begin, end, depth;
    unsigned level; /* of its lines */
    uint64_t count;
};

DEFINE_VECTOR(ranges, struct range);

struct tree {
    struct output *out;
    const struct call_paths *paths;
    const uint64_t *counts; /* of all paths before each */
    struct ranges pending;
    struct stack run; /* the frames of a run, from its outermost; there is room for the longest path */
    bool native;
};

/* "    8  ", or blanks instead of the count in the further lines of a run. */
static void begin_line(const struct tree *tree, unsigned level, uint64_t count, bool is_first)
{
    char number[24];
    int width = snprintf(number, sizeof number, "%" PRIu64, count);
    output_printf(tree->out, "%*s", 2 * (int)MIN(level, (unsigned)LEVELS_SHOWN), "");
    if (level > LEVELS_SHOWN)
        output_printf(tree->out, "[level %u] ", level);
    output_printf(tree->out, "%*s  ", width, is_first ? number : "");
}

static bool is_one_site(const struct tree *tree, const struct range *range, size_t depth)
{
    const struct call_path *items = tree->paths->list.items;
    uint32_t site = call_path_site(tree->paths, &items[range->begin], depth);
    for (size_t i = range->begin + 1; i < range->end; i++)
        if (call_path_site(tree->paths, &items[i], depth) != site)
            return false;
    return true;
}

/* The frame of a run with that position in it. */
static void write_node(const struct tree *tree, const struct range *range, size_t i)
{
    const struct call_paths *paths = tree->paths;
    uint32_t number = call_path_site(paths, &paths->list.items[range->begin], range->depth + i);
    const struct call_site *site = &paths->sites.items[number];
    const struct call_label *label = &paths->labels.items[site->label];
    bool is_minor = !label->frame->frame.method;
    begin_line(tree, range->level, range->count, i == 0);
    if (is_minor)
        output_style(tree->out, STYLE_MINOR);
    output_literal(tree->out, label->text);
    if (site->file && tree->run.frames.items[i].shared == site->frame) {
        output_text_between(tree->out, " ", path_basename(site->file), "");
        if (site->line)
            output_printf(tree->out, ":%" PRIu32, site->line);
    }
    if (label->module) {
        output_literal(tree->out, " (");
        output_literal(tree->out, label->module);
        output_literal(tree->out, ")");
    }
    if (is_minor)
        output_style(tree->out, STYLE_NONE);
    output_literal(tree->out, "\n");
}

/* Frames in one place are one frame, so that only these are folded where they repeat. */
static void gather_run(struct tree *tree, const struct range *range, size_t end)
{
    const struct call_paths *paths = tree->paths;
    tree->run.frames.count = 0;
    for (size_t depth = range->depth; depth < end; depth++) {
        const struct call_site *site =
            &paths->sites.items[call_path_site(paths, &paths->list.items[range->begin], depth)];
        bool is_one = is_one_site(tree, range, depth);
        tree->run.frames.items[tree->run.frames.count++] =
            (struct kept_frame){.shared = is_one ? site->frame : paths->labels.items[site->label].frame};
    }
}

/* The frames of a range up to the depth `end`. The innermost one of a stack is always shown. */
static void write_run(struct tree *tree, const struct range *range, size_t end)
{
    gather_run(tree, range, end);
    size_t count = tree->run.frames.count, fold_end = count;
    if (tree->paths->list.items[range->begin].length == end && count)
        fold_end--;
    for (size_t i = 0; i < count && !output_failed(tree->out);) {
        size_t row = tree->native || i >= fold_end ? 0 : MIN(stack_native_row(&tree->run, i), fold_end - i);
        if (row > 1) {
            begin_line(tree, range->level, range->count, i == 0);
            stack_write_row(tree->out, &tree->run, i, row, "native frames");
            i += row;
            continue;
        }
        struct stack_run repeated = stack_run_at(&tree->run, i);
        for (size_t k = 0; k < repeated.period; k++)
            write_node(tree, range, i + k);
        if (repeated.count > 1) {
            begin_line(tree, range->level, range->count, false);
            stack_write_repeats(tree->out, &repeated);
            output_literal(tree->out, "\n");
        }
        i += repeated.period * repeated.count;
    }
}

/* The threads of the paths from `begin` to `end`, whose stacks are the same. */
static void write_threads(const struct tree *tree, size_t begin, size_t end, unsigned level, bool is_first)
{
    const struct call_path *items = tree->paths->list.items;
    uint64_t count = tree->counts[end] - tree->counts[begin], written = 0;
    begin_line(tree, level, count, is_first);
    output_style(tree->out, STYLE_HEADING);
    output_literal(tree->out, "TID ");
    for (size_t i = begin; i < end && written < THREADS_SHOWN; i++)
        for (size_t k = 0; k < items[i].stack->threads.count && written < THREADS_SHOWN; k++) {
            output_literal(tree->out, written++ ? ", " : "");
            stack_write_thread(tree->out, &items[i].stack->threads.items[k]);
        }
    if (written < count)
        output_printf(tree->out, ", and %" PRIu64 " more", count - written);
    output_style(tree->out, STYLE_NONE);
    output_literal(tree->out, "\n");
}

/* The end of the paths from `begin` on that have the same label at a depth. Their number is doubled, then halved. */
static size_t end_of_branch(const struct tree *tree, size_t begin, size_t end, size_t depth)
{
    const struct call_path *items = tree->paths->list.items;
    uint32_t label = call_path_label(tree->paths, &items[begin], depth);
    size_t same = begin, step = 1;
    while (end - same > step && call_path_label(tree->paths, &items[same + step], depth) == label) {
        same += step;
        step *= 2;
    }
    for (; step; step /= 2)
        if (end - same > step && call_path_label(tree->paths, &items[same + step], depth) == label)
            same += step;
    return same + 1;
}

/* The last one is written first: the one with the highest count, or of these the first. */
static int by_count(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return (x->begin < y->begin) - (x->begin > y->begin);
}

static void write_range(struct tree *tree, const struct range *range)
{
    const struct call_path *items = tree->paths->list.items;
    size_t depth = call_paths_common(tree->paths, &items[range->begin], &items[range->end - 1]);
    size_t next = range->begin, waiting = tree->pending.count;
    write_run(tree, range, depth);
    while (next < range->end && items[next].length == depth)
        next++;
    unsigned level = range->level + (depth > range->depth);
    bool is_branch = next < range->end;
    if (next > range->begin)
        write_threads(tree, range->begin, next, is_branch ? level : range->level, is_branch);
    for (size_t begin = next; begin < range->end; begin = next) {
        next = end_of_branch(tree, begin, range->end, depth);
        const struct range branch = {begin, next, depth, level, tree->counts[next] - tree->counts[begin]};
        if (!ranges_append(&tree->pending, branch))
            out_of_memory();
    }
    if (tree->pending.count > waiting)
        qsort(tree->pending.items + waiting, tree->pending.count - waiting, sizeof *tree->pending.items, by_count);
}

void call_tree_write(struct output *out, struct call_paths *paths, bool native)
{
    size_t count = paths->list.count, longest = 0;
    uint64_t *counts = reallocate(NULL, (count + 1) * sizeof *counts);
    struct tree tree = {.out = out, .paths = paths, .counts = counts, .native = native};
    call_paths_sort(paths);
    counts[0] = 0;
    for (size_t i = 0; i < count; i++) {
        counts[i + 1] = counts[i] + paths->list.items[i].count;
        longest = MAX(longest, paths->list.items[i].length);
    }
    tree.run.frames.items = reallocate(NULL, (longest + 1) * sizeof *tree.run.frames.items);
    output_printf(out, "%" PRIu64 " thread%s\n", counts[count], plural(counts[count]));
    if (count && !ranges_append(&tree.pending, (struct range){.end = count, .count = counts[count]}))
        out_of_memory();
    while (tree.pending.count && !output_failed(out)) {
        const struct range range = tree.pending.items[--tree.pending.count];
        write_range(&tree, &range);
    }
    ranges_deinit(&tree.pending);
    free(tree.run.frames.items);
    free(counts);
}
