#include "src/api/source_files.h"

#include <ctype.h>
#include <stdio.h>

#include "target/file_search.h"
#include "target/mapped_path.h"
#include "util/error.h"
#include "util/inflate.h"
#include "util/sha256.h"
#include "util/text.h"

enum {
    PACKED_MAX = 64 * 1024 * 1024,         /* of an embedded PDB, compressed */
    UNPACKED_MAX = 256 * 1024 * 1024,      /* and decompressed */
    FILE_SIZE_MAX = 256 * 1024 * 1024,     /* of a PDB file */
    ALLOCATED_MAX = 1024 * 1024 * 1024,    /* of all PDBs that are in allocated memory, used or refused */
    NOTES_HASHED_MAX = 1024 * 1024 * 1024, /* bytes of a snapshot's PDBs whose checksum is compared, for all modules */
    NAME_MAX_LENGTH = 255,
    WHY_SIZE = CDACQ_ERROR_MESSAGE_SIZE,
};

#define HASHED_MAX (UINT64_C(2) << 30) /* bytes of files whose checksum is compared, for all modules */

static struct source_key key_of_file(struct source_file *const *file)
{
    return (*file)->image;
}

DEFINE_HASH_TABLE_FUNCTIONS(source_file_table, struct source_file *, struct source_key, key_of_file, hash_source_key,
                            equal_source_keys);

static void file_destroy(struct source_file *file)
{
    if (!file)
        return;
    file_candidate_close(&file->content);
    free(file->path);
    free(file->key);
    free(file->problem);
    free(file);
}

size_t source_files_list(const struct source_file_list *list, struct file_candidate *ret, size_t room)
{
    size_t count = 0;
    for (struct source_file **file = NULL; count < room && (file = source_file_table_next(&list->files, file));)
        if ((*file)->usable && !(*file)->is_in_image)
            ret[count++] = (struct file_candidate){.bytes = (*file)->content.bytes, .size = (*file)->content.size};
    return count;
}

void source_files_deinit(struct source_file_list *list)
{
    for (struct source_file **file = NULL; (file = source_file_table_next(&list->files, file));)
        file_destroy(*file);
    source_file_table_deinit(&list->files);
}

/* A search for the PDB of one module. */
struct search {
    struct file_search files;
    struct source_file_list *list;
    struct target *target;
    const struct pe_debug *debug;
    const char *module_path; /* in the target */
    char module_name[160];   /* its last component, printable */
    const char *name;        /* of the PDB */
    struct source_file *file;
    char why[WHY_SIZE]; /* why the last candidate was refused */
};

/* ---- Does it match? ---- */

/* Hashes a PDB as its checksum does: with zeros in place of the id. */
static void hash_pdb(const struct file_candidate *candidate, const struct portable_pdb *pdb, uint8_t ret[SHA256_SIZE])
{
    static const uint8_t zeros[PORTABLE_PDB_ID_SIZE];
    uint64_t after = pdb->id_offset + sizeof zeros;
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, candidate->bytes, (size_t)pdb->id_offset);
    sha256_add(&hash, zeros, sizeof zeros);
    sha256_add(&hash, candidate->bytes + after, (size_t)(candidate->size - after));
    sha256_end(&hash, ret);
}

/* False if the image has a checksum of a kind that is known here, and none of them is that of the file. */
static bool checksum_matches(const struct pe_debug *debug, const struct file_candidate *candidate,
                             const struct portable_pdb *pdb)
{
    uint8_t digest[SHA256_SIZE];
    bool known = false;
    for (unsigned i = 0; i < debug->checksum_count; i++) {
        const struct pe_checksum *checksum = &debug->checksums[i];
        if (strcmp(checksum->algorithm, "SHA256") != 0 || checksum->size != SHA256_SIZE)
            continue;
        if (!known)
            hash_pdb(candidate, pdb, digest);
        known = true;
        if (memcmp(digest, checksum->bytes, SHA256_SIZE) == 0)
            return true;
    }
    return !known;
}

/* Says why a candidate is not the module's PDB, without its checksum. NULL: it may be, and *ret is open. */
static const char *refuse(const struct pe_debug *debug, const struct file_candidate *candidate,
                          struct portable_pdb *ret)
{
    static const char older[] = "Microsoft C/C++ MSF 7.00";
    if (candidate->size >= sizeof older && memcmp(candidate->bytes, older, sizeof older - 1) == 0)
        return "it has the format of Windows PDBs, which is not read";
    if (portable_pdb_open(candidate->bytes, (size_t)candidate->size, ret) < 0)
        return "it is not a portable PDB, or is damaged";
    /* A PDB that was converted from the Windows format keeps only the GUID of the id. */
    size_t id_size = debug->portable ? sizeof debug->id : 16;
    if (debug->has_pdb && memcmp(ret->id, debug->id, id_size) != 0)
        return "it has another id";
    return NULL;
}

/* ---- Candidates ---- */

/* Takes memory for a PDB. Returns NULL, or why it cannot be had. Needs the lock. */
static const char *take_memory(struct search *search, size_t size)
{
    struct source_file_list *list = search->list;
    if (size > ALLOCATED_MAX - list->allocated)
        return "the PDBs of other modules take 1 GiB already";
    if (!work_take_memory(&search->target->work, size))
        return "the bound on memory was reached";
    list->allocated += size;
    return NULL;
}

/* Takes memory for a PDB in the image. It is not returned, because a PDB that is refused has cost time, too. */
static const char *take_unpacked(struct search *search, size_t size)
{
    pthread_mutex_lock(&search->files.policy->lock);
    const char *reason = take_memory(search, size);
    pthread_mutex_unlock(&search->files.policy->lock);
    return reason;
}

/* The same as refuse(), with the checksum. */
static const char *refuse_file(struct search *search, const struct file_candidate *candidate)
{
    struct source_file_list *list = search->list;
    if (candidate->size > FILE_SIZE_MAX)
        return "it is larger than 256 MiB";
    const char *reason = refuse(search->debug, candidate, &search->file->pdb);
    if (reason || !search->debug->portable || !search->debug->checksum_count)
        return reason;
    if (candidate->size > HASHED_MAX - list->hashed)
        return "too many other files had to be compared";
    list->hashed += candidate->size;
    if (!work_take_bytes(&search->target->work, 2 * candidate->size))
        return "the bound on work was reached before it was compared";
    return checksum_matches(search->debug, candidate, &search->file->pdb) ? NULL
                                                                          : "it has the right id, but another checksum";
}

/* Uses the file at `path` if it matches. If it does not, `why` has the reason. */
static bool consider(struct file_search *files, const char *path, struct file_candidate *candidate)
{
    struct search *search = (struct search *)files;
    struct source_file *file = search->file;
    char printable[160];
    const char *reason = refuse_file(search, candidate);
    if (!reason && candidate->owned)
        reason = take_memory(search, (size_t)candidate->size);
    if (reason)
        snprintf(search->why, sizeof search->why, "%s is not the PDB of %s: %s",
                 error_printable(printable, sizeof printable, path), search->module_name, reason);
    if (reason || !(file->path = strdup(path)))
        return false;
    file->content = file_candidate_take(candidate);
    file->usable = true;
    return true;
}

/* Considers the PDB's name in the folder of `module`, a path in the target, below `root`. */
static bool consider_beside(struct search *search, const char *root, const char *module)
{
    int folder = (int)(path_basename(module) - module);
    return file_search_at(&search->files, "%s%.*s%s", root, folder, module, search->name);
}

static void change_case(const char *from, int (*change)(int c), char *ret)
{
    for (; *from; from++)
        *ret++ = (char)((unsigned char)*from < 0x80 ? change((unsigned char)*from) : *from);
    *ret = '\0';
}

/*
 * Looks in a directory for NAME/KEY/NAME, in all layouts of symbol stores: digits and name in either case, and FFFFFFFF
 * or the age.
 */
static bool look_in_store(struct search *search, const char *directory)
{
    char lower_name[NAME_MAX_LENGTH + 1];
    change_case(search->name, tolower, lower_name);
    const char *names[] = {search->name, strcmp(lower_name, search->name) != 0 ? lower_name : NULL};
    for (unsigned by_age = 0; by_age < 2; by_age++) {
        char keys[3][PE_DEBUG_KEY_SIZE];
        pe_debug_symbol_key(search->debug, by_age, keys[0]);
        change_case(keys[0], toupper, keys[1]);
        change_case(keys[0], tolower, keys[2]);
        for (size_t i = 0; i < ARRAY_SIZE(names) && names[i]; i++)
            for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
                if (file_search_at(&search->files, "%s/%s/%s/%s", directory, names[i], keys[k], names[i]))
                    return true;
    }
    return false;
}

static bool look_below_modules(struct search *search)
{
    const struct file_policy *policy = search->files.policy;
    for (size_t i = 0; policy->module_paths && policy->module_paths[i]; i++) {
        const char *directory = policy->module_paths[i];
        if (file_search_at(&search->files, "%s/%s", directory, search->name) || look_in_store(search, directory) ||
            file_search_named(&search->files, i, search->name))
            return true;
    }
    return false;
}

static struct cdacq_need need_of(const struct search *search)
{
    return (struct cdacq_need){
        .size = sizeof(struct cdacq_need),
        .kind = CDACQ_NEED_PDB,
        .path = search->name,
        .symbol_key = search->file->key,
    };
}

static bool ask_opener(struct search *search)
{
    const struct cdacq_need need = need_of(search);
    return file_search_ask(&search->files, &need);
}

/* Copies an accepted PDB of the snapshot, so that the module owns its bytes. Returns why that failed, or NULL. */
static const char *copy_accepted(struct search *search, struct file_candidate *candidate)
{
    struct source_file *file = search->file;
    size_t size = (size_t)candidate->size;
    const char *reason = take_memory(search, size);
    if (reason)
        return reason;
    reason = "out of memory";
    if ((candidate->owned = malloc(size))) {
        memcpy(candidate->owned, candidate->bytes, size);
        candidate->bytes = candidate->owned;
        reason = refuse(search->debug, candidate, &file->pdb); /* opens it in the copy */
    }
    if (!reason) {
        file->content = *candidate;
        file->usable = file->embedded = true;
        return NULL;
    }
    free(candidate->owned);
    search->list->allocated -= size;
    work_return_memory(&search->target->work, size);
    return reason;
}

/* Looks among the PDBs that a snapshot holds. */
static bool look_in_target(struct search *search)
{
    const struct target_pdbs *pdbs = &search->target->pdbs;
    struct source_file_list *list = search->list;
    for (size_t i = 0; i < pdbs->count; i++) {
        struct file_candidate candidate = {.bytes = pdbs->items[i].bytes, .size = pdbs->items[i].size};
        if (refuse(search->debug, &candidate, &search->file->pdb))
            continue;
        const char *reason = "too many other files had to be compared";
        if (candidate.size <= NOTES_HASHED_MAX - list->notes_hashed) {
            list->notes_hashed += candidate.size;
            reason = refuse_file(search, &candidate);
        }
        if (!reason)
            reason = copy_accepted(search, &candidate);
        if (!reason)
            return true;
        snprintf(search->why, sizeof search->why, "the snapshot's PDB of %s: %s", search->module_name, reason);
    }
    return false;
}

/* Whether `local` is the path of a target's file below the directory `root`. */
static bool is_below(const char *local, const char *root, const char *path)
{
    size_t length = strlen(root);
    return strncmp(local, root, length) == 0 && strcmp(local + length, path) == 0;
}

/*
 * The path of the file beside which the PDB may be. An assembly that is only in memory has no path, for example because
 * it was compressed in a single-file application. Its PDB is beside the application. NULL: neither path is known.
 */
static const char *path_beside(const struct search *search)
{
    const char *host = search->list->runtime_path;
    if (mapped_path_is_file(search->module_path))
        return search->module_path;
    return host && mapped_path_is_file(host) ? host : NULL;
}

/* Looks for a PDB in all places, in the order that cdacq/source.h gives. */
static bool look_for(struct search *search)
{
    const struct file_policy *policy = search->files.policy;
    const struct mapping *mapping = target_mapping_at(search->target, search->file->image.base);
    const char *beside = path_beside(search);
    if (look_in_target(search) || ask_opener(search))
        return true;
    for (char **root = policy->sysroots; beside && root && *root; root++)
        if (consider_beside(search, *root, beside))
            return true;
    if (look_below_modules(search))
        return true;
    const char *local = mapping && mapping->file ? mapping->file->local_path : NULL;
    if (local && consider_beside(search, "", local))
        return true;
    char own_root[32];
    file_search_own_root(search->target, own_root);
    return beside && !policy->no_own_paths && !(local && is_below(local, own_root, beside)) &&
           consider_beside(search, own_root, beside);
}

/* Whether a name is not a path, so that it cannot lead out of a folder. */
static bool is_plain_name(const char *name)
{
    size_t length = strlen(name);
    return length && length <= NAME_MAX_LENGTH && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* ---- A module ---- */

/* Decompresses the PDB in the image and uses it. On failure returns false, and `why` has the reason. */
static bool take_embedded(struct search *search, const struct module *module)
{
    const struct pe_debug *debug = search->debug;
    struct source_file *file = search->file;
    char *why = search->why;
    if (debug->embedded_size > PACKED_MAX || debug->embedded_pdb_size > UNPACKED_MAX) {
        snprintf(why, WHY_SIZE, "%s: its embedded PDB is larger than 64 MiB, or 256 MiB decompressed",
                 search->module_name);
        return false;
    }
    const void *packed = bytes_window(&module->pe.bytes, debug->embedded_offset, debug->embedded_size);
    if (!packed) {
        snprintf(why, WHY_SIZE, "%s: its embedded PDB is not in the target", search->module_name);
        return false;
    }
    char reason[200];
    const char *refused = take_unpacked(search, debug->embedded_pdb_size);
    CLEANUP_FREE uint8_t *bytes = refused ? NULL : malloc(debug->embedded_pdb_size);
    struct file_candidate candidate = {.bytes = bytes, .size = debug->embedded_pdb_size};
    if (!bytes)
        refused = refused ? refused : "out of memory";
    else if (!inflate_raw(packed, debug->embedded_size, bytes, debug->embedded_pdb_size, reason, sizeof reason))
        refused = reason;
    else
        refused = refuse(debug, &candidate, &file->pdb);
    if (refused) {
        snprintf(why, WHY_SIZE, "%s: its embedded PDB: %s", search->module_name, refused);
        return false;
    }
    candidate.owned = take_ptr(bytes);
    file->content = candidate;
    file->usable = file->embedded = file->is_in_image = true;
    return true;
}

static void describe_missing(struct search *search)
{
    const struct cdacq_need need = need_of(search);
    char *why = search->why;
    size_t length = strlen(why);
    char name[160], key[300];
    error_printable(name, sizeof name, search->name);
    error_printable(key, sizeof key, search->file->key ? search->file->key : "?"); /* NULL when out of memory */
    if (length)
        snprintf(why + length, WHY_SIZE - length, "; wanted: symbol server key %.280s", key);
    else
        snprintf(why, WHY_SIZE, "%.120s is needed for source lines and was not found (symbol server key %.280s)", name,
                 key);
    file_policy_describe(search->files.policy, &need, why, WHY_SIZE);
}

static char *symbol_key(const char *name, const char *key)
{
    char text[2 * NAME_MAX_LENGTH + PE_DEBUG_KEY_SIZE + 8];
    snprintf(text, sizeof text, "%s/%s/%s", name, key, name);
    return strdup(text);
}

/* Finds the PDB of a module whose debug directory was read. Needs the lock. */
static void find_pdb(struct search *search)
{
    struct source_file *file = search->file;
    bool refused = search->debug->embedded_size > 0 || search->debug->embedded_refused;
    if (file->usable)
        return;
    if (!search->debug->has_pdb || !is_plain_name(search->name)) {
        if (!search->why[0])
            snprintf(search->why, WHY_SIZE, "%s names no PDB", search->module_name);
    } else if (look_for(search)) {
        return;
    } else {
        refused = search->why[0];
        describe_missing(search);
    }
    file->problem = strdup(search->why);
    file->refused = refused;
}

/* Reads what the image says of its PDB, in a task of the module's reader. */
static void read_image(struct search *search, const struct module *module, struct pe_debug *debug)
{
    struct reader *reader = &module->reader->raw;
    const struct module *failed = *module->failed;
    struct source_file *file = search->file;
    char key[PE_DEBUG_KEY_SIZE];
    *debug = (struct pe_debug){0};
    reader_begin(reader, FUEL_NAME);
    if (pe_read_debug(&module->pe, debug) < 0)
        snprintf(search->why, sizeof search->why, "%s: its debug directory is not in the target, or is damaged",
                 search->module_name);
    search->name = pe_debug_pdb_name(debug);
    pe_debug_symbol_key(debug, false, key);
    if (debug->embedded_refused && !debug->embedded_size)
        snprintf(search->why, sizeof search->why,
                 "%s: its embedded PDB: its header is damaged, or of an unknown version", search->module_name);
    else if (debug->incomplete && !debug->has_pdb && !debug->embedded_size)
        snprintf(search->why, sizeof search->why, "%s: what its debug directory names is not in the target",
                 search->module_name);
    if (debug->has_pdb && is_plain_name(search->name))
        file->key = symbol_key(search->name, key);
    if (debug->embedded_size)
        take_embedded(search, module);
    file->unverified = reader_unverified(reader);
    *module->failed = failed;
}

static const struct source_file *known_file(struct source_file_list *list, struct source_key image)
{
    struct source_file **known = source_file_table_find(&list->files, image);
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

const struct source_file *source_file_get(struct source_file_list *list, struct target *target,
                                          struct file_policy *policy, const struct module *module)
{
    struct pe_debug debug;
    struct source_key image = source_key_of(module);
    pthread_mutex_lock(&policy->lock);
    const struct source_file *known = known_file(list, image);
    pthread_mutex_unlock(&policy->lock);
    if (known)
        return known;
    struct source_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->image = image;
    struct search search = {.files = {policy, consider},
                            .list = list,
                            .target = target,
                            .debug = &debug,
                            .module_path = path_of(target, module),
                            .file = file};
    error_printable(search.module_name, sizeof search.module_name, path_basename(search.module_path));
    read_image(&search, module, &debug); /* may look for the image's file, which takes the lock */
    pthread_mutex_lock(&policy->lock);
    known = known_file(list, image); /* another thread may have been faster */
    if (!known) {
        find_pdb(&search);
        known = source_file_table_insert(&list->files, file, NULL) ? file : NULL;
    }
    pthread_mutex_unlock(&policy->lock);
    if (known != file)
        file_destroy(file);
    return known;
}
