#include "src/files/pdb_search.h"

#include <ctype.h>
#include <stdio.h>

#include "target/mapped_file.h"
#include "target/mapped_path.h"
#include "util/error.h"

enum {
    HASHED_AT_ONCE = 64 * 1024 * 1024, /* bytes of PDBs that stay in memory after their checksums were compared */
};

enum { UNITS_OF_A_PDB = 64 }; /* of a snapshot: what it takes to open it, and to begin and end its hash */

static void note_difference(struct pdb_search *search, const char *path, const char *reason)
{
    char printable[160];
    snprintf(search->why, sizeof search->why, "%s is not the PDB of %s: %s",
             error_printable(printable, sizeof printable, path), search->module_name, reason);
}

/* Whether a PDB that was considered for another module cannot be that of this one. */
static bool excludes(struct file_search *files, const char *path, const struct file_tag *tag)
{
    struct pdb_search *search = (struct pdb_search *)files;
    const char *reason = pdb_match_tag(search->debug, tag);
    if (reason)
        note_difference(search, path, reason);
    return reason != NULL;
}

/* Uses the file at `path` if it matches. If it does not, `why` has the reason. */
static bool consider(struct file_search *files, const char *path, struct file_candidate *candidate)
{
    struct pdb_search *search = (struct pdb_search *)files;
    struct module_pdb *pdb = search->pdb;
    struct work *work = &search->target->work;
    bool is_confirmed;
    const char *reason = pdb_match_file(search->debug, candidate, search->budget, work, &pdb->tables, &is_confirmed);
    if (!reason && search->budget->hashed > HASHED_AT_ONCE)
        file_candidate_release_pages(candidate);
    if (!reason && candidate->owned)
        reason = pdb_budget_take_memory(search->budget, work, (size_t)candidate->size);
    if (reason)
        note_difference(search, path, reason);
    if (reason || !(pdb->path = strdup(path)))
        return false;
    pdb->content = file_candidate_take(candidate);
    pdb->unverified |= !is_confirmed;
    pdb->usable = true;
    return true;
}

/* In the folder of the file at `path`, below `root`. */
static bool look_beside(struct pdb_search *search, const struct file_root *root, const char *path)
{
    int folder = (int)(path_basename(path) - path);
    return file_search_at(&search->files, root, "%.*s%s", folder, path, search->name);
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
static bool look_in_store(struct pdb_search *search, const struct file_root *directory)
{
    char lower_name[PDB_NAME_MAX + 1];
    change_case(search->name, tolower, lower_name);
    const char *names[] = {search->name, strcmp(lower_name, search->name) != 0 ? lower_name : NULL};
    for (unsigned by_age = 0; by_age < 2; by_age++) {
        char keys[3][PE_DEBUG_KEY_SIZE];
        pe_debug_symbol_key(search->debug, by_age, keys[0]);
        change_case(keys[0], toupper, keys[1]);
        change_case(keys[0], tolower, keys[2]);
        for (size_t i = 0; i < ARRAY_SIZE(names) && names[i]; i++)
            for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
                if (file_search_at(&search->files, directory, "/%s/%s/%s", names[i], keys[k], names[i]))
                    return true;
    }
    return false;
}

static bool look_below_modules(struct pdb_search *search)
{
    struct file_policy *policy = search->files.policy;
    for (size_t i = 0; policy->module_paths && policy->module_paths[i]; i++) {
        const struct file_root *directory = file_policy_module_root(policy, i);
        if (file_search_at(&search->files, directory, "/%s", search->name) || look_in_store(search, directory) ||
            file_search_named(&search->files, i, search->name))
            return true;
    }
    return false;
}

static struct cdacq_need need_of(const struct pdb_search *search)
{
    return (struct cdacq_need){
        .size = sizeof(struct cdacq_need),
        .kind = CDACQ_NEED_PDB,
        .path = search->name,
        .symbol_key = search->pdb->symbol_key,
    };
}

static bool ask_opener(struct pdb_search *search)
{
    const struct cdacq_need need = need_of(search);
    return file_search_ask(&search->files, &need);
}

/* Copies an accepted PDB of the snapshot, so that the module owns its bytes. Returns why that failed, or NULL. */
static const char *copy_accepted(struct pdb_search *search, struct file_candidate *candidate)
{
    struct module_pdb *pdb = search->pdb;
    size_t size = (size_t)candidate->size;
    struct work *work = &search->target->work;
    const char *reason = pdb_budget_take_memory(search->budget, work, size);
    if (reason)
        return reason;
    reason = "out of memory";
    if ((candidate->owned = malloc(size))) {
        memcpy(candidate->owned, candidate->bytes, size);
        candidate->bytes = candidate->owned;
        reason = pdb_match_id(search->debug, candidate, &pdb->tables); /* opens it in the copy */
    }
    if (!reason) {
        pdb->content = *candidate;
        pdb->usable = pdb->embedded = true;
        return NULL;
    }
    free(candidate->owned);
    pdb_budget_return_memory(search->budget, work, size);
    return reason;
}

/* Whether a PDB of the snapshot has the id. Each is opened once: thousands of modules may look among thousands. */
static bool has_id(struct pdb_search *search, struct target_pdb *pdb)
{
    struct portable_pdb opened;
    _Static_assert(sizeof pdb->id == sizeof opened.id, "the same id");
    if (!pdb->was_opened) {
        pdb->was_opened = true;
        pdb->is_damaged = portable_pdb_open(pdb->bytes, pdb->size, &opened) < 0;
        if (!pdb->is_damaged)
            memcpy(pdb->id, opened.id, sizeof pdb->id);
    }
    return !pdb->is_damaged && pdb_match_has_id(search->debug, pdb->id);
}

/* Looks among the PDBs that a snapshot holds. */
static bool look_in_snapshot(struct pdb_search *search)
{
    struct target_pdbs *pdbs = &search->target->pdbs;
    for (size_t i = 0; i < pdbs->count && work_left(&search->target->work); i++) {
        struct file_candidate candidate = {.bytes = pdbs->items[i].bytes, .size = pdbs->items[i].size};
        bool is_confirmed = false;
        if (!has_id(search, &pdbs->items[i]))
            continue;
        work_add_steps(&search->target->work, UNITS_OF_A_PDB);
        const char *reason = pdb_budget_take_note(search->budget, candidate.size);
        if (!reason)
            reason = pdb_match_file(search->debug, &candidate, search->budget, &search->target->work,
                                    &search->pdb->tables, &is_confirmed);
        if (!reason)
            reason = copy_accepted(search, &candidate);
        if (!reason) {
            search->pdb->unverified |= !is_confirmed;
            return true;
        }
        snprintf(search->why, sizeof search->why, "the snapshot's PDB of %s: %s", search->module_name, reason);
    }
    return false;
}

/*
 * The path of the file beside which the PDB may be. An assembly that is only in memory has no path, for example because
 * it was compressed in a single-file application. Its PDB is beside the application. NULL: neither path is known.
 */
static const char *path_beside(const struct pdb_search *search)
{
    const char *host = search->runtime_path;
    if (mapped_path_is_file(search->module_path))
        return search->module_path;
    return host && mapped_path_is_file(host) ? host : NULL;
}

static bool look_on_this_machine(struct pdb_search *search)
{
    struct file_policy *policy = search->files.policy;
    const struct mapping *mapping = target_mapping_at(search->target, search->pdb->image.base);
    const char *beside = path_beside(search);
    if (look_in_snapshot(search) || ask_opener(search))
        return true;
    for (size_t i = 0; beside && policy->sysroots && policy->sysroots[i]; i++)
        if (look_beside(search, file_policy_sysroot(policy, i), beside))
            return true;
    if (look_below_modules(search))
        return true;
    const struct mapped_file *file = mapping ? mapping->file : NULL;
    const struct file_root *root = file_search_own_root(search->target);
    /* The path of a file below a root means nothing to this machine. */
    const char *local = file && !(file->content.root && file->content.root->confined) ? file->local_path : NULL;
    if (local && look_beside(search, &file_root_machine, local))
        return true;
    if (!beside || policy->no_own_paths || !root)
        return false;
    const char *own = file_search_own_path(search->target, beside);
    return !(local && file_search_is_below(local, root, own)) && look_beside(search, root, own);
}

static bool fetch(struct pdb_search *search)
{
    const struct cdacq_need need = need_of(search);
    return file_search_fetch(&search->files, search->target, &need, search->why);
}

/* Adds what is missing to `why`, and how to supply it. */
static void describe_missing(struct pdb_search *search)
{
    enum { OTHER_WORDS = 120 }; /* room for these and for how to supply the PDB */
    const struct cdacq_need need = need_of(search);
    char *why = search->why;
    size_t length = strlen(why);
    const char *begin = length ? "; wanted: " : " (", *end = length ? "" : ")";
    char name[PDB_NAME_MAX + 1], key[sizeof search->why];
    error_printable(name, sizeof name, search->name);
    if (!length && !work_left(search->files.work)) {
        snprintf(why, sizeof search->why, "the bound on work was reached before %s was found", name);
        return;
    }
    error_printable(key, sizeof key, need.symbol_key ? need.symbol_key : "?"); /* NULL when out of memory */
    bool has_room = (length ? length : strlen(name)) + strlen(key) + OTHER_WORDS < sizeof search->why;
    if (!length)
        length = (size_t)snprintf(why, sizeof search->why, "%s is needed for source lines and was not found", name);
    snprintf(why + length, sizeof search->why - length, "%s%s%s%s", begin,
             has_room ? "symbol server key " : "a symbol server key that is too long for this message",
             has_room ? key : "", end); /* a part of a key is of no use */
    file_policy_describe(search->files.policy, &need, why, sizeof search->why);
}

void pdb_search_init(struct pdb_search *search, struct target *target, struct file_policy *policy,
                     const char *module_path)
{
    *search = (struct pdb_search){
        .files = {.policy = policy, .work = &target->work, .consider = consider, .excludes = excludes},
        .target = target,
        .module_path = module_path,
    };
    error_printable(search->module_name, sizeof search->module_name, path_basename(module_path));
}

bool pdb_search_run(struct pdb_search *search)
{
    bool found = look_on_this_machine(search) || fetch(search);
    if (!found) {
        search->pdb->refused = search->why[0];
        describe_missing(search);
    }
    return found;
}
