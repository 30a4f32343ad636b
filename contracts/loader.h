/*
 * loader.h: the Loader and EcmaMetadata contracts: from a Module to its image, its path and its metadata, which is read
 * row by row from the target. An image may be mapped by RVA or flat, as in its file. Modules of Reflection.Emit have no
 * image; the runtime keeps a copy of their metadata. Where something was added to a module while the process ran, the
 * rows that its image or its copy lacks are those of read_write_metadata.h. A cache and its modules belong to the
 * thread of its reader.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,EcmaMetadata}.md.
 */
#ifndef CDACQ_CONTRACTS_LOADER_H
#define CDACQ_CONTRACTS_LOADER_H

#include "util/hash_table.h"
#include "contracts/read_write_metadata.h"
#include "descriptors/field_reader.h"
#include "formats/metadata.h"
#include "formats/pe.h"

enum {
    MODULE_KEPT = 4 * 1024, /* modules that stay for the next question about a running process */
    MODULE_MAX = 16 * 1024, /* modules that one cache keeps, together with those that the process no longer has */
    MODULE_COST = 100,      /* fuel that opening one takes from the outer task */
};

/* Target memory as the source of a format reader. */
struct target_bytes {
    uint64_t base;
    const uint8_t *metadata;  /* all of the image's metadata, or NULL if it is not in one span that does not change */
    bool metadata_unverified; /* it is of a file that nothing confirmed */
    uint64_t missing;         /* the last address that could not be read, or 0 */
    uint8_t *joined;          /* a copy of bytes that are not contiguous */
    size_t joined_size;
};

/* Which files are mapped where, answered by the layer above: no contract searches for a file. */
struct module_files {
    /* The path of the file mapped at `address`, or NULL. Valid as long as the cache. */
    const char *(*path_at)(void *context, uint64_t address);
    /*
     * Where the next file called NAME.dll is mapped; `position` is 0 at first. False if there are no more, or if the
     * reader, whose fuel the search costs, fails.
     */
    bool (*next_assembly)(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base);
    void *context;
};

struct module_cache;

/* Memory of a running process that a module was opened by: reads, and their bytes one after the other. */
struct module_evidence {
    struct logged_reads reads;
    uint8_t *bytes;
    bool incomplete;
};

enum module_form {
    MODULE_LOADED,     /* what the runtime loaded */
    MODULE_IMAGE,      /* an image without its Module */
    MODULE_READ_WRITE, /* the metadata to which the process has added; only module_metadata() uses it */
};

struct module {
    struct module_cache *cache;
    uint64_t round; /* of the cache, in which the evidence was last found to hold */
    struct module_evidence evidence;
    struct module *retired; /* the next one in the cache's list */
    enum module_form form;
    uint64_t address;         /* of the Module */
    uint64_t base;            /* of the image; 0 if it has none */
    char *path;               /* escaped, printable; NULL if not known */
    bool unverified;          /* its image's bytes come from a file that nothing confirmed */
    enum cdacq_status status; /* OK: `metadata` is open */
    struct cdacq_error error;
    struct target_bytes source;
    struct pe pe;
    struct bytes_extent part;
    struct bytes metadata_bytes;
    struct metadata metadata;
    struct read_write_metadata read_write; /* of MODULE_READ_WRITE */
};

/* A module's key is its form, and its address or, if it was found by its file, its base. */
struct module_key {
    uint64_t address;
    enum module_form form;
};

DEFINE_HASH_TABLE_TYPE(modules, struct module *);

struct module_cache {
    struct field_reader *reader;
    struct module_files files;
    struct modules modules;
    uint64_t round;         /* advances when memory may have changed: each module is then checked when next used */
    struct module *retired; /* those that the process no longer has; others may still refer to them */
    size_t retired_count;
    const struct module *failed; /* the last one that could not be opened or read, or NULL */
};

void module_cache_init(struct module_cache *cache, struct field_reader *reader, struct module_files files);
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
