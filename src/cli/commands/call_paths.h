/*
 * call_paths.h: stacks as paths of calls from the outermost frame on, for what counts them: a tree, folded stacks, a
 * profile. Frames of one method are equal, wherever in it they are. One thread.
 */
#ifndef CDACQ_CLI_COMMANDS_CALL_PATHS_H
#define CDACQ_CLI_COMMANDS_CALL_PATHS_H

#include "cdacq.h"
#include "src/cli/base/answers.h"
#include "src/cli/base/stacks.h"

/* A method, native symbol or file, or a mark such as "[incomplete]". */
struct call_label {
    const char *text;                /* printable, not empty */
    const char *module;              /* name of its file, printable; NULL: none, or the text has it */
    const struct stack_frame *frame; /* a copy of the first of it; zeros if it is no frame of a stack */
    const char *file;                /* source file of all its frames; NULL: not known, or not the same */
    uint32_t line;                   /* the same; 0 */
};

/* A place in a method. */
struct call_site {
    uint32_t label;
    uint32_t line;                   /* 0: not known */
    const char *file;                /* NULL: not known */
    const struct stack_frame *frame; /* the first of it */
};

struct call_path {
    size_t first, length;      /* of its sites in `steps` */
    uint64_t count;            /* threads, chains or samples */
    const struct stack *stack; /* NULL: it is a chain of async methods */
};

struct known_label {
    struct call_label label;
    uint32_t number;
};

struct known_site {
    struct call_site site;
    uint32_t number;
};

struct known_frame {
    uint64_t frame; /* address of a struct stack_frame */
    uint32_t site;
};

DEFINE_VECTOR_TYPE(call_labels, struct call_label);
DEFINE_VECTOR_TYPE(call_sites, struct call_site);
DEFINE_VECTOR_TYPE(call_steps, uint32_t);
DEFINE_VECTOR_TYPE(call_path_list, struct call_path);
DEFINE_HASH_TABLE_TYPE(known_labels, struct known_label);
DEFINE_HASH_TABLE_TYPE(known_sites, struct known_site);
DEFINE_HASH_TABLE_TYPE(known_frames, struct known_frame);

struct call_paths {
    struct call_labels labels; /* in the order in which they were first seen */
    struct call_sites sites;
    struct call_steps steps; /* numbers of sites */
    struct call_path_list list;
    struct known_labels known_labels;
    struct known_sites known_sites;
    struct known_frames known_frames;
    struct arena strings;
    bool tells_runtime; /* labels say which runtime they are of */
    bool has_offsets;   /* native code without a symbol is one label at each offset, not in each file */
};

/* Of what the paths were made from, strings and frames must live longer. */
void call_paths_deinit(struct call_paths *paths);

/*
 * Adds a stack with the number of its threads. `root`: NULL, or what its path begins with. Frames without an answer,
 * and in doubt, are counted in `answers`.
 */
void call_paths_add_stack(struct call_paths *paths, struct answers *answers, const struct stack *stack,
                          const char *root);

/* Adds a chain of async methods, whose strings are copied. */
void call_paths_add_chain(struct call_paths *paths, struct answers *answers, const struct cdacq_async_chain *chain);

/*
 * Brings paths that begin alike together, and equal ones next to each other. A path comes before what goes on from it.
 */
void call_paths_sort(struct call_paths *paths);

/* With how many equal labels two paths begin. */
size_t call_paths_common(const struct call_paths *paths, const struct call_path *a, const struct call_path *b);

/* Where in the sorted list the paths that are equal to the one at `i` end. *ret_count is the sum of their counts. */
size_t call_paths_equal(const struct call_paths *paths, size_t i, uint64_t *ret_count);

static inline uint32_t call_path_site(const struct call_paths *paths, const struct call_path *path, size_t depth)
{
    return paths->steps.items[path->first + depth];
}

static inline uint32_t call_path_label(const struct call_paths *paths, const struct call_path *path, size_t depth)
{
    return paths->sites.items[call_path_site(paths, path, depth)].label;
}

#endif
