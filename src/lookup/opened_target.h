/*
 * opened_target.h: struct cdacq_target, the handle of an opened process: its memory, and what is known of the runtime
 * in use. Several sessions may use one.
 */
#ifndef CDACQ_LOOKUP_OPENED_TARGET_H
#define CDACQ_LOOKUP_OPENED_TARGET_H

#include <stdatomic.h>

#include "cdacq/session.h"
#include "contracts/contracts.h"
#include "contracts/execution_manager/execution_manager.h"
#include "descriptors/contract_descriptor.h"
#include "descriptors/descriptor.h"
#include "descriptors/layout.h"
#include "descriptors/runtime.h"
#include "descriptors/runtime_version.h"
#include "src/files/debuginfod.h"
#include "src/files/module_pdbs.h"
#include "src/files/symbol_server.h"
#include "target/file_policy.h"
#include "target/threads.h"

struct code_map;
struct target;
struct target_process;

/*
 * With CDACQ_OPEN_ALL_RUNTIMES, and if there are several: a target for each runtime, by its number; NULL: it cannot be
 * read. The one in use has the memory and the files, and the others use them.
 */
struct target_group {
    struct cdacq_target *owner;
    struct cdacq_target *items[RUNTIME_MAX];
    struct cdacq_error problems[RUNTIME_MAX]; /* why not */
};

struct cdacq_target {
    struct target_group *group; /* NULL: it has one runtime */
    bool keep;                  /* CDACQ_OPEN_KEEP */
    uint64_t refresh;           /* counts the calls of cdacq_target_refresh */
    unsigned mapping_pins;      /* visits of the mappings in progress: they must not be listed again */
    struct file_policy own_policy;
    struct file_policy *policy;                                     /* the same, or that of the owner */
    struct debuginfod_listener listener;                            /* of what the policy fetches */
    struct symbol_server symbol_server;                             /* likewise */
    void (*progress)(uint64_t done, uint64_t total, void *context); /* as in cdacq_options */
    void *progress_context;
    char *image_path; /* of CDACQ_TARGET_IMAGE: the path of its only mapping */
    struct target *memory;
    struct runtimes runtimes;
    unsigned runtime; /* index of the one in use */
    struct descriptor descriptor;
    struct contract_descriptor_info descriptor_info;
    struct layout layout;
    struct contracts contracts;
    enum cdacq_name_style names;
    bool runtime_types; /* this build reads MethodDescs and metadata of this runtime */
    struct execution_manager manager;
    struct cdacq_error problem; /* CDACQ_OPEN_PARTIAL, CDACQ_OPEN_NATIVE: why no method can be found */
    bool is_native;             /* CDACQ_OPEN_NATIVE: sessions are for native code alone */
    _Atomic(struct code_map *) code_map;
    struct module_pdbs module_pdbs;           /* under the policy's lock */
    _Atomic(struct target_process *) process; /* NULL until first needed */
    struct threads snapshot_threads;          /* of a recording target: those that a snapshot will hold */
    uint64_t snapshot_stacks;                 /* bytes of stacks that were looked at for it */
    char build_id[2 * BUILD_ID_MAX + 1];
    struct runtime_version version; /* found on demand, under the policy's lock */
    bool has_version;
    bool records_arguments; /* of a recording target: a snapshot will hold the command line */
};

struct cdacq_local_file {
    const struct file_candidate *content;
    const char *path; /* at which it was found */
};

/* The target whose memory and files a target uses. */
static inline struct cdacq_target *target_owner(struct cdacq_target *target)
{
    return target->group ? target->group->owner : target;
}

#endif
