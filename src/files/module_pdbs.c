#include "src/files/module_pdbs.h"

#include <stdio.h>

#include "src/files/pdb_search.h"
#include "target/reader.h"
#include "util/error.h"
#include "util/inflate.h"

enum {
    PACKED_MAX = 64 * 1024 * 1024,    /* of an embedded PDB, compressed */
    UNPACKED_MAX = 256 * 1024 * 1024, /* and decompressed */
    UNPACKING = 2,                    /* how many times as long as comparing bytes it takes to decompress them */
};

static struct image_key key_of_pdb(struct module_pdb *const *pdb)
{
    return (*pdb)->image;
}

DEFINE_HASH_TABLE_FUNCTIONS(pdb_table, struct module_pdb *, struct image_key, key_of_pdb, hash_image_key,
                            equal_image_keys);

static void pdb_destroy(struct module_pdb *pdb)
{
    if (!pdb)
        return;
    file_candidate_close(&pdb->content);
    file_candidate_close(&pdb->foreign_content);
    free(pdb->path);
    free(pdb->symbol_key);
    free(pdb->problem);
    free(pdb);
}

void module_pdbs_deinit(struct module_pdbs *pdbs)
{
    for (struct module_pdb **pdb = NULL; (pdb = pdb_table_next(&pdbs->table, pdb));)
        pdb_destroy(*pdb);
    pdb_table_deinit(&pdbs->table);
}

size_t module_pdbs_list(const struct module_pdbs *pdbs, struct file_candidate *ret, size_t room)
{
    size_t count = 0;
    for (struct module_pdb **pdb = NULL; count < room && (pdb = pdb_table_next(&pdbs->table, pdb));)
        if ((*pdb)->usable && !(*pdb)->is_in_target)
            ret[count++] = (struct file_candidate){.bytes = (*pdb)->content.bytes, .size = (*pdb)->content.size};
    return count;
}

/* Takes memory for a copy of a PDB in the target. It is not returned: a PDB that is refused has cost time, too. */
static const char *take_unpacked(struct pdb_search *search, size_t size)
{
    struct work *work = &search->target->work;
    if (!work_take_bytes(work, UNPACKING * size))
        return "the bound on work was reached before it was read";
    pthread_mutex_lock(&search->files.policy->lock);
    const char *reason = pdb_budget_take_memory(search->budget, work, size);
    pthread_mutex_unlock(&search->files.policy->lock);
    return reason;
}

/* Room for a PDB of the target's memory. *ret_refused says why there is none, or becomes NULL. */
static struct file_candidate allocate_unpacked(struct pdb_search *search, size_t size, const char **ret_refused)
{
    *ret_refused = take_unpacked(search, size);
    uint8_t *bytes = *ret_refused ? NULL : malloc(size);
    if (!bytes && !*ret_refused)
        *ret_refused = "out of memory";
    return (struct file_candidate){.bytes = bytes, .size = size, .owned = bytes};
}

/* Uses a PDB of the target's memory, unless `refused` says why not, and closes the candidate. */
static void use_in_target(struct pdb_search *search, struct file_candidate *candidate, const char *what,
                          const char *refused)
{
    struct module_pdb *pdb = search->pdb;
    if (!refused)
        refused = pdb_match_id(search->debug, candidate, &pdb->tables);
    if (refused) {
        pdb->refused = true;
        snprintf(search->why, sizeof search->why, "%s: its %s PDB: %s", search->module_name, what, refused);
    } else {
        pdb->content = file_candidate_take(candidate);
        pdb->usable = pdb->embedded = pdb->is_in_target = true;
    }
    file_candidate_close(candidate);
}

/*
 * Uses the PDB that the program gave to the runtime, unless another one is in use. If that fails, `why` has the reason.
 */
static void use_symbol_stream(struct pdb_search *search, const struct module *module)
{
    static const char missing[] = "it is not in the target";
    uint64_t address;
    uint32_t size;
    struct reader *reader = module->reader;
    if (!module_get_symbol_stream(module, &address, &size))
        return;
    struct file_candidate candidate = {0};
    const char *refused = reader_failed(reader) ? missing : size > UNPACKED_MAX ? "it is larger than 256 MiB" : NULL;
    if (!refused)
        candidate = allocate_unpacked(search, size, &refused);
    if (!refused && !reader_try_copy(reader, address, candidate.owned, size))
        refused = missing;
    struct module_pdb *pdb = search->pdb;
    if (!refused) {
        refused = pdb_match_id(search->debug, &candidate, &pdb->foreign);
        pdb->has_foreign = refused && !candidate.tag.refused; /* it could be opened, and is another image's */
        if (pdb->has_foreign)
            pdb->foreign_content = file_candidate_take(&candidate);
    }
    if (pdb->usable)
        file_candidate_close(&candidate);
    else
        use_in_target(search, &candidate, "loaded", refused);
}

/* Decompresses the PDB in the image and uses it. If that fails, `why` has the reason. */
static void use_embedded(struct pdb_search *search, const struct module *module)
{
    const struct pe_debug *debug = search->debug;
    char *why = search->why, reason[200];
    if (debug->embedded_size > PACKED_MAX || debug->embedded_pdb_size > UNPACKED_MAX) {
        snprintf(why, sizeof search->why, "%s: its embedded PDB is larger than 64 MiB, or 256 MiB decompressed",
                 search->module_name);
        return;
    }
    const void *packed = bytes_window(&module->pe.bytes, debug->embedded_offset, debug->embedded_size);
    if (!packed) {
        snprintf(why, sizeof search->why, "%s: its embedded PDB is not in the target", search->module_name);
        return;
    }
    const char *refused;
    struct file_candidate candidate = allocate_unpacked(search, debug->embedded_pdb_size, &refused);
    if (!refused &&
        !inflate_raw(packed, debug->embedded_size, candidate.owned, debug->embedded_pdb_size, reason, sizeof reason))
        refused = reason;
    use_in_target(search, &candidate, "embedded", refused);
}

/* Whether a name is not a path, so that it cannot lead out of a folder. */
static bool is_plain_name(const char *name)
{
    size_t length = strlen(name);
    return length && length <= PDB_NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static char *symbol_key(const struct pe_debug *debug, const char *name)
{
    char key[PE_DEBUG_KEY_SIZE], text[2 * PDB_NAME_MAX + PE_DEBUG_KEY_SIZE + 8];
    pe_debug_symbol_key(debug, false, key);
    snprintf(text, sizeof text, "%s/%s/%s", name, key, name);
    return strdup(text);
}

/* Reads what the image says of its PDB, and uses a PDB that the target holds. Begins tasks of the module's reader. */
static void read_image(struct pdb_search *search, const struct module *module, struct pe_debug *debug)
{
    struct reader *reader = module->reader;
    const struct module *failed = *module->failed;
    *debug = (struct pe_debug){0};
    reader_begin(reader, FUEL_NAME);
    if (pe_read_debug(&module->pe, debug) < 0)
        snprintf(search->why, sizeof search->why, "%s: its debug directory is not in the target, or is damaged",
                 search->module_name);
    if (debug->embedded_refused && !debug->embedded_size)
        snprintf(search->why, sizeof search->why,
                 "%s: its embedded PDB: its header is damaged, or of an unknown version", search->module_name);
    else if (debug->incomplete && !debug->has_pdb && !debug->embedded_size)
        snprintf(search->why, sizeof search->why, "%s: what its debug directory names is not in the target",
                 search->module_name);
    if (debug->has_pdb && is_plain_name(pe_debug_pdb_name(debug))) {
        search->name = pe_debug_pdb_name(debug);
        search->pdb->symbol_key = symbol_key(debug, search->name);
    }
    if (debug->embedded_size)
        use_embedded(search, module);
    search->pdb->unverified = reader_unverified(reader);
    reader_begin(reader, FUEL_NAME);
    use_symbol_stream(search, module);
    *module->failed = failed;
}

/* Finds the PDB of a module whose image was read. Needs the lock. */
static void find_pdb(struct pdb_search *search)
{
    struct module_pdb *pdb = search->pdb;
    if (pdb->usable || (search->name && pdb_search_run(search))) {
        pdb->refused = false; /* another one may have been */
        return;
    }
    pdb->refused |= search->debug->embedded_size || search->debug->embedded_refused;
    if (!search->why[0])
        snprintf(search->why, sizeof search->why, "%s names no PDB", search->module_name);
    pdb->problem = strdup(search->why);
}

static const struct module_pdb *known_pdb(struct module_pdbs *pdbs, struct image_key image)
{
    struct module_pdb **known = pdb_table_find(&pdbs->table, image);
    return known ? *known : NULL;
}

/* The path of the module as the target names it: that of its mapping, or what the runtime says. */
static const char *path_of(struct target *target, const struct module *module)
{
    const struct mapping *mapping = target_mapping_at(target, module->base);
    if (mapping && mapping->path && mapping->path[0] == '/')
        return mapping->path;
    return module->path ? module->path : "a module";
}

const struct module_pdb *module_pdbs_get(struct module_pdbs *pdbs, struct target *target, struct file_policy *policy,
                                         const struct module *module)
{
    struct pe_debug debug;
    struct pdb_search search;
    struct image_key image = image_key_of(module);
    pthread_mutex_lock(&policy->lock);
    const struct module_pdb *known = known_pdb(pdbs, image);
    pthread_mutex_unlock(&policy->lock);
    if (known)
        return known;
    struct module_pdb *pdb = calloc(1, sizeof *pdb);
    if (!pdb)
        return NULL;
    pdb->image = image;
    pdb_search_init(&search, target, policy, path_of(target, module));
    search.budget = &pdbs->budget;
    search.debug = &debug;
    search.runtime_path = pdbs->runtime_path;
    search.pdb = pdb;
    read_image(&search, module, &debug); /* may look for the image's file, which takes the lock */
    pthread_mutex_lock(&policy->lock);
    known = known_pdb(pdbs, image); /* another thread may have been faster */
    if (!known) {
        find_pdb(&search);
        known = pdb_table_insert(&pdbs->table, pdb, NULL) ? pdb : NULL;
    }
    pthread_mutex_unlock(&policy->lock);
    if (known != pdb)
        pdb_destroy(pdb);
    return known;
}
