#include "contracts/module_cache.h"

#include "target/reader.h"
#include "util/text.h"

static struct module_key module_key(struct kept_module *const *kept)
{
    const struct module *module = &(*kept)->module;
    return (struct module_key){module->form == MODULE_IMAGE ? module->base : module->address, module->form};
}

static uint64_t hash_key(struct module_key key, uint64_t seed)
{
    return hash_u64(key.address ^ (uint64_t)key.form << 62, seed);
}

static bool equal_keys(struct module_key a, struct module_key b)
{
    return a.address == b.address && a.form == b.form;
}

DEFINE_HASH_TABLE_FUNCTIONS(modules, struct kept_module *, struct module_key, module_key, hash_key, equal_keys);

static void forget_evidence(struct kept_module *kept)
{
    logged_reads_deinit(&kept->evidence.reads);
    free(kept->evidence.bytes);
    kept->evidence.bytes = NULL;
}

static void kept_destroy(struct kept_module *kept)
{
    forget_evidence(kept);
    module_deinit(&kept->module);
    free(kept);
}

static uint64_t current_round(const struct module_cache *cache)
{
    return cache->round ? *cache->round : 0; /* memory that does not change */
}

void module_cache_init(struct module_cache *cache, struct reader *reader, struct module_files files)
{
    *cache = (struct module_cache){.reader = reader, .files = files};
}

static void free_retired(struct module_cache *cache)
{
    cache->failed = NULL;
    while (cache->retired) {
        struct kept_module *kept = cache->retired;
        cache->retired = kept->retired;
        kept_destroy(kept);
    }
    cache->retired_count = 0;
}

void module_cache_deinit(struct module_cache *cache)
{
    for (struct kept_module **kept = NULL; (kept = modules_next(&cache->modules, kept));)
        kept_destroy(*kept);
    modules_deinit(&cache->modules);
    free_retired(cache);
}

void module_cache_trim(struct module_cache *cache)
{
    if (cache->modules.count > MODULE_KEPT)
        module_cache_deinit(cache);
    else
        free_retired(cache);
}

enum { EVIDENCE_MAX = 256 * 1024 }; /* bytes */

/* Keeps what was read from the log's item `from` on. */
static void keep_evidence(struct kept_module *kept, struct reader *reader, size_t from)
{
    struct module_evidence *evidence = &kept->evidence;
    uint64_t size = 0;
    evidence->incomplete = true;
    if (!reader->log || kept->module.status < 0)
        return;
    struct read_log *log = reader_log(reader, NULL); /* copying must not extend what is copied */
    for (size_t i = from; i < log->reads.count; i++)
        size += log->reads.items[i].size;
    size_t count = log->reads.count - from;
    evidence->incomplete = log->incomplete || size > EVIDENCE_MAX || !logged_reads_reserve(&evidence->reads, count) ||
                           !(evidence->bytes = malloc(size + 1));
    size_t at = 0;
    for (size_t i = 0; !evidence->incomplete && i < count; i++) {
        const struct logged_read *read = &log->reads.items[from + i];
        (void)logged_reads_append(&evidence->reads, *read);
        evidence->incomplete = !reader_try_copy(reader, read->address, evidence->bytes + at, read->size);
        at += read->size;
    }
    reader_log(reader, log);
}

/* Whether memory still holds what the module was opened by, and maps its image. */
static bool evidence_holds(const struct kept_module *kept, struct reader *reader)
{
    const struct module_evidence *evidence = &kept->evidence;
    size_t at = 0;
    if (evidence->incomplete)
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    bool holds = module_is_mapped(&kept->module, reader);
    for (size_t i = 0; holds && i < evidence->reads.count; i++) {
        const struct logged_read *read = &evidence->reads.items[i];
        uint8_t piece[256];
        for (uint64_t done = 0, n; holds && done < read->size; done += n, at += n) {
            n = MIN(read->size - done, sizeof piece);
            holds =
                reader_try_copy(reader, read->address + done, piece, n) && memcmp(piece, evidence->bytes + at, n) == 0;
        }
    }
    (void)reader_leave(reader, &outer);
    return holds;
}

/* The name of a loaded module for messages about what was added to it. NULL if it is not known. */
static char *name_of_loaded(struct module_cache *cache, uint64_t address)
{
    struct kept_module **loaded = modules_find(&cache->modules, (struct module_key){address, MODULE_LOADED});
    const char *path = loaded ? (*loaded)->module.path : NULL;
    return path ? strdup(path_basename(path)) : NULL;
}

/* Opens a module in a nested task, whose failure the module keeps; the look-up pays MODULE_COST. */
static struct kept_module *kept_create(struct module_cache *cache, struct module_key key)
{
    struct kept_module *kept =
        cache->modules.count + cache->retired_count < MODULE_MAX ? calloc(1, sizeof *kept) : NULL;
    if (!kept)
        return NULL;
    const struct module *failed = cache->failed;
    struct module *module = &kept->module;
    module->form = key.form;
    *(key.form == MODULE_IMAGE ? &module->base : &module->address) = key.address;
    module->cache = cache;
    module->reader = cache->reader;
    module->failed = &cache->failed;
    if (key.form == MODULE_READ_WRITE)
        module->path = name_of_loaded(cache, key.address);
    kept->round = current_round(cache);
    struct reader *reader = cache->reader;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    size_t from = reader->log ? read_log_begin_part(reader->log) : 0;
    module_open(module, &cache->files);
    if (reader->target->changes)
        keep_evidence(kept, reader, from);
    (void)reader_leave(reader, &outer); /* module->error has the failure */
    reader_charge(reader, MODULE_COST);
    cache->failed = failed;
    return kept;
}

static struct kept_module *cache_add(struct module_cache *cache, struct module_key key)
{
    struct kept_module *kept = kept_create(cache, key);
    if (kept && modules_insert(&cache->modules, kept, NULL))
        return kept;
    if (kept)
        kept_destroy(kept);
    return NULL;
}

/* The module of an entry or, if the process has another one there now, that. */
static struct kept_module *cache_check(struct module_cache *cache, struct kept_module **entry)
{
    struct kept_module *kept = *entry;
    if (kept->round == current_round(cache) || evidence_holds(kept, cache->reader)) {
        kept->round = current_round(cache);
        return kept;
    }
    struct kept_module *now = kept_create(cache, module_key(entry));
    if (!now)
        return NULL;
    forget_evidence(kept);
    kept->retired = cache->retired;
    cache->retired = kept;
    cache->retired_count++;
    return *entry = now;
}

static struct module *cache_get(struct module_cache *cache, struct module_key key)
{
    struct kept_module **known = modules_find(&cache->modules, key);
    struct kept_module *kept = known ? cache_check(cache, known) : cache_add(cache, key);
    return kept ? &kept->module : NULL;
}

struct module *module_cache_get(struct module_cache *cache, uint64_t address)
{
    return address ? cache_get(cache, (struct module_key){address, MODULE_LOADED}) : NULL;
}

struct module *module_cache_get_image(struct module_cache *cache, uint64_t base)
{
    return cache_get(cache, (struct module_key){base, MODULE_IMAGE});
}

const struct metadata *module_metadata(const struct module *module, uint32_t token)
{
    uint32_t table = metadata_token_table(token);
    if (module->form != MODULE_LOADED || table >= METADATA_TABLE_COUNT ||
        metadata_rid(token) <= metadata_row_count(&module->metadata, table))
        return &module->metadata;
    struct module_cache *cache = module->cache;
    const struct module *added = cache_get(cache, (struct module_key){module->address, MODULE_READ_WRITE});
    if (added && added->status >= 0)
        return &added->metadata;
    cache->failed = added;
    return &module->metadata;
}

enum cdacq_status module_cache_metadata(struct module_cache *cache, uint64_t address, uint32_t token,
                                        const struct metadata **ret)
{
    struct module *module = module_cache_get(cache, address);
    if (!module)
        return CDACQ_ERR_NOMEM;
    if (module->status < 0)
        cache->failed = module;
    else
        *ret = module_metadata(module, token);
    return module->status;
}

bool module_cache_report(const struct module_cache *cache, enum cdacq_status status, const struct module *module,
                         struct cdacq_error *err)
{
    /* A module that is open but lacks bytes is the cause only of a MEMORY failure. */
    if (cache->failed && (cache->failed->status < 0 || status == CDACQ_ERR_MEMORY))
        module = cache->failed;
    if (module && module->status < 0)
        *err = module->error;
    else if (module)
        module_report(module, status, err);
    return module != NULL;
}

static bool has_mvid(const struct module *module, const uint8_t *mvid)
{
    uint8_t found[16];
    return module && module->status >= 0 && metadata_mvid(&module->metadata, found) >= 0 &&
           memcmp(found, mvid, sizeof found) == 0;
}

struct module *module_cache_find_assembly(struct module_cache *cache, const char *name, size_t length,
                                          const uint8_t *mvid)
{
    const struct module_files *files = &cache->files;
    const struct module *failed = cache->failed;
    size_t position = 0;
    uint64_t base;
    while (files->next_assembly(files->context, cache->reader, name, length, &position, &base)) {
        struct module *module = module_cache_get_image(cache, base);
        if (has_mvid(module, mvid)) {
            cache->failed = failed;
            return module;
        }
        if (module && module->status < 0)
            cache->failed = module;
    }
    return NULL;
}
