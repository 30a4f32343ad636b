/*
 * loader.h: the Loader and EcmaMetadata contracts: from a Module to its image, its path and its metadata, which is then
 * read row by row from the target, not as a whole.
 *
 * An image is laid out in memory as a loader does (by RVA), or lies there flat, as in its file; both occur in one
 * process. Modules made by Reflection.Emit have no image; the runtime keeps a copy of their metadata, which is read
 * instead. A cache and its modules belong to one thread; they read through the reader that the cache was made with.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,EcmaMetadata}.md.
 */
#ifndef CDACQ_CONTRACTS_LOADER_H
#define CDACQ_CONTRACTS_LOADER_H

#include "util/hash_table.h"
#include "descriptors/field_reader.h"
#include "formats/metadata.h"
#include "formats/pe.h"

enum {
    MODULE_MAX = 16 * 1024, /* modules that one cache keeps */
    MODULE_COST = 100,      /* fuel that opening one takes from the task that wants it */
};

/* Target memory as the source of a format reader. */
struct target_bytes {
    uint64_t base;
    uint64_t missing; /* the last address that was asked for in vain; 0 */
    uint8_t *joined;  /* a copy of bytes that are not in one run */
    size_t joined_size;
};

/*
 * Which files are mapped where: a module's path, and the assemblies whose Modules are not at hand, are needs that the
 * layer above fills. No contract looks for a file.
 */
struct module_files {
    /* The path of the file that is mapped at `address`; NULL where none is known. Good while the cache lives. */
    const char *(*path_at)(void *context, uint64_t address);
    /*
     * Where the next file called NAME.dll is mapped; `position` is 0 at first. False where there are no more, or when
     * the reader, whose fuel the search costs, fails.
     */
    bool (*next_assembly)(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base);
    void *context;
};

struct module_cache;

struct module {
    struct module_cache *cache;
    uint64_t address;         /* of the Module */
    uint64_t base;            /* of the image; 0 for a module that has none */
    char *path;               /* escaped, printable; NULL where not known */
    bool unverified;          /* its image's bytes come from a file that nothing confirmed */
    enum cdacq_status status; /* OK: `metadata` can be read */
    struct cdacq_error error;
    struct target_bytes source;
    struct pe pe;
    struct bytes_extent part;
    struct bytes metadata_bytes;
    struct metadata metadata;
};

/* A module is known by its address; one that was found by its file, by its base. */
struct module_key {
    uint64_t address;
    bool is_base;
};

DEFINE_HASH_TABLE_TYPE(modules, struct module *);

struct module_cache {
    struct field_reader *reader;
    struct module_files files;
    struct modules modules;

    /* The module that was last asked in vain: it cannot be opened, or a part of it is missing. NULL: forgotten. */
    const struct module *failed;
};

void module_cache_init(struct module_cache *cache, struct field_reader *reader, struct module_files files);
void module_cache_deinit(struct module_cache *cache);

/* The module at `address`, opened when it is first asked for. NULL only when out of memory or above MODULE_MAX. */
struct module *module_cache_get(struct module_cache *cache, uint64_t address);

/*
 * The metadata of such a module. Where they cannot be read, the status says why, and the module is the cache's `failed`
 * unless it is out of memory.
 */
enum cdacq_status module_cache_metadata(struct module_cache *cache, uint64_t address, const struct metadata **ret);

/*
 * The same for an assembly by its simple name and its MVID (16 bytes), for a component of a composite image, whose
 * Module is not at hand. NULL where no mapped file is that.
 */
struct module *module_cache_find_assembly(struct module_cache *cache, const char *name, size_t length,
                                          const uint8_t *mvid);

/*
 * Tells of what failed with `status` which module could not be read, and why: of several that took part the cache's
 * `failed`, else `module`, which may be NULL. False, and *err is as it was, where there is none to blame.
 */
bool module_cache_report(const struct module_cache *cache, enum cdacq_status status, const struct module *module,
                         struct cdacq_error *err);

#endif
