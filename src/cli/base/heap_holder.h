/*
 * heap_holder.h: what large parts of the heap hang below: a root, and the lowest object below it that has nearly all of
 * the part. One thread at a time.
 */
#ifndef CDACQ_CLI_BASE_HEAP_HOLDER_H
#define CDACQ_CLI_BASE_HEAP_HOLDER_H

#include "cdacq.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/output.h"

enum {
    HOLDERS_MAX = 3,
    HOLDER_HOPS_MAX = 64,
};

/* An object of the path from the root. */
struct heap_holder_hop {
    uint64_t address;
    char *type; /* NULL: not known */
    char *by;   /* how the one before refers to it; NULL: the root does */
};

struct heap_holder {
    enum cdacq_root_kind kind;
    char *root; /* in words */
    struct heap_holder_hop hops[HOLDER_HOPS_MAX];
    size_t hop_count;
    uint64_t count, bytes; /* of the objects below it that were asked for */
    unsigned percent;      /* of all that was asked for */
    char *most;            /* the type that has most of them; NULL: not known */
};

/* The largest first. */
struct heap_holders {
    struct heap_holder items[HOLDERS_MAX];
    unsigned count;
};

/* The member "root": what a root is, in words. */
void heap_root_write_json(struct json_writer *w, enum cdacq_root_kind kind, const char *text);
/* An element of "path". `type` and `by`: NULL where there is none. */
void heap_hop_write_json(struct json_writer *w, uint64_t address, const char *type, const char *by);

void heap_holders_write_text(const struct heap_holders *holders, struct output *out);
/* The member "holders". */
void heap_holders_write_json(const struct heap_holders *holders, struct json_writer *w);
void heap_holders_deinit(struct heap_holders *holders);

#endif
