/* info.h: the facts about a target that cmd_info.c collects, and info_text.c and info_json.c write. */
#ifndef CDACQ_CLI_COMMANDS_INFO_H
#define CDACQ_CLI_COMMANDS_INFO_H

#include "src/cli/base/next_steps.h"
#include "src/cli/base/output.h"
#include "cdacq.h"

enum {
    INFO_KINDS_MAX = 16,
    INFO_ADDRESSES_MAX = 256,
};

/* The code ranges of one kind. */
struct info_kind {
    char name[32];
    uint64_t count, size, collectible;
    uint64_t unreadable;
    char problem[CDACQ_ERROR_MESSAGE_SIZE]; /* of the last range that cannot be read */
};

struct info {
    const char *target_name;
    const struct cdacq_options *options;
    struct cdacq_target *target;
    struct cdacq_session *session; /* NULL where no method can be found */
    struct cdacq_target_info facts;
    struct info_kind kinds[INFO_KINDS_MAX];
    size_t kind_count;
    struct {
        uint64_t all, missing, filled, unverified, problems;
    } modules;
    struct {
        bool known;
        uint64_t files, embedded, missing;
    } pdbs;
    uint64_t
        unreadable[INFO_ADDRESSES_MAX]; /* an address of each code range that memory is missing for; 0: a file has it */
    size_t unreadable_count;
};

/* "core", "process", ... */
const char *info_target_kind(const struct info *info);

/* Visits the steps that would supply what is missing. */
void info_visit_next_steps(const struct info *info, void (*visit)(const struct next_step *step, void *context),
                           void *context);

void info_write_text(const struct info *info, struct output *out);
void info_write_json(const struct info *info, struct output *out);

#endif
