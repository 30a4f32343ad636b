/*
 * module_cache.h: the modules of a target, each opened when it is first needed. A module of a running process is used
 * again for later epochs if the memory by which it was opened is the same. A cache and its modules belong to the
 * thread of its reader.
 */
#ifndef CDACQ_CONTRACTS_MODULE_CACHE_H
#define CDACQ_CONTRACTS_MODULE_CACHE_H

#include "contracts/loader.h"
#include "target/read_log.h"
#include "util/hash_table.h"

enum {
    MODULE_KEPT = 4 * 1024, /* modules that stay for the next epoch about a running process */
    MODULE_MAX = 16 * 1024, /* modules that one cache keeps, together with those that the process no longer has */
    MODULE_COST = 100,      /* fuel that opening one takes from the outer task */
};

/* Memory of a running process that a module was opened by: reads, and their bytes one after the other. */
struct module_evidence {
    struct logged_reads reads;
    uint8_t *bytes;
    bool incomplete;
};

/* A module of a cache. */
struct kept_module {
    struct module module; /* first, so that a pointer to it is one to its kept_module */
    uint64_t round;       /* of the cache, in which the evidence was last found to hold */
    struct module_evidence evidence;
    struct kept_module *retired; /* the next one in the cache's list */
};

/* A module's key is its form, and its address or, if it was found by its file, its base. */
struct module_key {
    uint64_t address;
    enum module_form form;
};

DEFINE_HASH_TABLE_TYPE(modules, struct kept_module *);

struct aot_image;

struct module_cache {
    struct reader *reader;
    struct aot_image *aot; /* of a NativeAOT program, which has no modules; NULL for CoreCLR */
    struct module_files files;
    struct modules modules;
    const uint64_t *round;       /* advances when memory may have changed: each module is then checked when next used */
    struct kept_module *retired; /* those that the process no longer has; others may still refer to them */
    size_t retired_count;
    const struct module *failed; /* the last one that could not be opened or read, or NULL */
};

void module_cache_init(struct module_cache *cache, struct reader *reader, struct module_files files);
void module_cache_deinit(struct module_cache *cache);

/*
 * Frees the modules that the process no longer has, and all if there are more than MODULE_KEPT: most of these have been
 * unloaded, and nobody asks for them again. Nothing may refer to a module any more.
 */
void module_cache_trim(struct module_cache *cache);

/* The module at `address`, opened on first use. NULL only if memory runs out or above MODULE_MAX. */
struct module *module_cache_get(struct module_cache *cache, uint64_t address);

/* The image that is mapped at `base`, opened on first use without its Module. Fails as module_cache_get() does. */
struct module *module_cache_get_image(struct module_cache *cache, uint64_t base);

/*
 * The metadata that has the row of `token`, a TypeDef or MethodDef of an open module: what was added to the module if
 * the row is not in its image. The module's own if neither has it.
 */
const struct metadata *module_metadata(const struct module *module, uint32_t token);

/* The same of the module at `address`. A module that cannot be opened becomes the cache's `failed`. */
enum cdacq_status module_cache_metadata(struct module_cache *cache, uint64_t address, uint32_t token,
                                        const struct metadata **ret);

/* A component of a composite image, by its simple name and its MVID (16 bytes). NULL if no mapped file is that. */
struct module *module_cache_find_assembly(struct module_cache *cache, const char *name, size_t length,
                                          const uint8_t *mvid);

/*
 * Reports which module could not be read, and why, for an action that failed with `status`: the cache's `failed` or
 * else `module`, which may be NULL. False, and *err is untouched, if there is neither.
 */
bool module_cache_report(const struct module_cache *cache, enum cdacq_status status, const struct module *module,
                         struct cdacq_error *err);

#endif
