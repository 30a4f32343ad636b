#include "target/mapped_file.h"

#include <stdio.h>

#include "util/binary_search.h"
#include "util/error.h"
#include "util/escape.h"
#include "util/text.h"
#include "formats/elf_machine.h"
#include "target/file_search.h"
#include "target/mapped_path.h"

size_t mapped_file_mappings_to(const struct mapped_file *file, uint64_t offset)
{
    return lower_bound(i, file->mapping_count, file->mappings[i]->offset <= offset);
}

/* The identity at `place`, found and remembered when it is first needed. */
static const struct file_identity *remembered(_Atomic(struct file_identity *) *place, struct mapped_file *file,
                                              file_identify *identify)
{
    static const struct file_identity unknown;
    struct file_identity *known = atomic_load_explicit(place, memory_order_acquire);
    if (known)
        return known;
    struct file_identity *found = calloc(1, sizeof *found);
    if (!found)
        return &unknown;
    identify(file->target, file, found);
    if (atomic_compare_exchange_strong(place, &known, found))
        return found;
    free(found); /* another thread was faster */
    return known;
}

const struct file_identity *mapped_file_identity(struct mapped_file *file, file_identify *identify)
{
    return remembered(&file->identity, file, identify);
}

const struct file_identity *mapped_file_content_identity(struct mapped_file *file, file_identify *identify)
{
    bool known = atomic_load_explicit(&file->content_identity, memory_order_acquire);
    const struct file_identity *identity = remembered(&file->content_identity, file, identify);
    if (!known) /* a listing asks for the identities of all files, and may need nothing else of them */
        file_candidate_release_pages(&file->content);
    return identity;
}

/* The largest page size of kernels for the machine. */
static uint64_t page_size_max(unsigned elf_machine)
{
    const struct elf_machine *machine = elf_machine_find(elf_machine);
    return machine ? machine->page_max : 64 * 1024;
}

enum { WARM_MAX = 512 }; /* files that keep in memory what was read to compare them; a real process maps fewer */

struct search {
    struct file_search files;
    struct mapped_file *file;
    bool only_confirmed;                /* only a file that matches is accepted */
    char why[CDACQ_ERROR_MESSAGE_SIZE]; /* why the last candidate was refused; then, what is missing */
};

/* What the file is called elsewhere. Most searches do without: to find it, the target's memory is read. */
static const struct file_identity *identity_of(const struct search *search)
{
    static const struct file_identity unknown;
    struct mapped_file *file = search->file;
    return file->policy->identify ? mapped_file_identity(file, file->policy->identify) : &unknown;
}

/* A need, with the text of its build-id. */
struct file_need {
    struct cdacq_need need;
    char build_id[2 * sizeof((struct file_identity *)NULL)->build_id + 1];
};

bool mapped_file_is_deleted(const struct mapped_file *file)
{
    return mapped_path_is_deleted(file->name);
}

static void describe_need(const struct search *search, struct file_need *ret)
{
    const struct file_identity *identity = identity_of(search);
    text_hex(ret->build_id, identity->build_id, identity->build_id_size);
    ret->need = (struct cdacq_need){
        .size = sizeof ret->need,
        .kind = CDACQ_NEED_FILE,
        .path = search->file->path,
        .build_id = ret->build_id[0] ? ret->build_id : NULL,
        .symbol_key = identity->key[0] ? identity->key : NULL,
    };
}

/*
 * Whether the file is too small for what was mapped. The kernel fills the last page with zeros; a file that ends before
 * that page was not mapped like this. A single page that begins at the end does not count: the runtime maps the
 * assemblies of single-file apps, and unmaps a page less where their offset in the file is no multiple of a page.
 */
static bool is_too_small(const struct mapped_file *file, uint64_t size)
{
    uint64_t page = page_size_max(file->target->elf_machine), end = align_up(size, page);
    bool is_left = false;
    if (end >= file->mapped_size)
        return false;
    for (size_t i = 0; i < file->mapping_count; i++) {
        const struct mapping *mapping = file->mappings[i];
        uint64_t mapped = mapping->end - mapping->begin;
        if (mapping->is_guard || mapping->offset + mapped <= end)
            continue;
        if (mapping->offset != end || mapped > page)
            return true;
        is_left = true;
    }
    return !is_left;
}

/*
 * Whether another file has taken the place of an assembly that was mapped as a whole. It is asked where the contents
 * could not be compared.
 */
static bool is_too_large(const struct mapped_file *file, uint64_t size)
{
    const struct mapping *only = file->mapping_count == 1 ? file->mappings[0] : NULL;
    return only && !only->offset && align_up(size, page_size_max(file->target->elf_machine)) > only->end - only->begin;
}

/* Refuses a file of the wrong size. `why_size` is that of `why`. */
static bool has_right_size(const struct mapped_file *file, uint64_t size, char *why, size_t why_size)
{
    bool is_right = !is_too_small(file, size);
    if (!is_right)
        snprintf(why, why_size, "it has %llu bytes and %llu were mapped", (unsigned long long)size,
                 (unsigned long long)file->mapped_size);
    return is_right;
}

static void note_difference(struct search *search, const char *path, const char *reason)
{
    char printable[160];
    snprintf(search->why, sizeof search->why, "%s is not the file that was mapped: %s",
             error_printable(printable, sizeof printable, path), reason);
}

/* Whether the identities of a file and of the one in the target differ. If so, `why` says how. */
static bool has_other_identity(const struct file_identity *identity, const struct file_tag *tag, char *why,
                               size_t why_size)
{
    struct pe_identity pe;
    if (file_tag_differs(tag, FILE_TAG_ELF, identity->build_id, identity->build_id_size)) {
        snprintf(why, why_size, "it has another build-id");
        return true;
    }
    if (!identity->is_pe || !file_tag_differs(tag, FILE_TAG_PE, &identity->pe, sizeof identity->pe))
        return false;
    memcpy(&pe, tag->id, sizeof pe);
    if (pe.time_stamp != identity->pe.time_stamp)
        snprintf(why, why_size, "its time stamp is %08x, the target's %08x", pe.time_stamp, identity->pe.time_stamp);
    else
        snprintf(why, why_size, "its SizeOfImage is %08x, the target's %08x", pe.image_size, identity->pe.image_size);
    return true;
}

/* Whether a file that was considered for another one has the wrong size, or another identity than the target holds. */
static bool excludes(struct file_search *files, const char *path, const struct file_tag *tag)
{
    struct search *search = (struct search *)files;
    char reason[160];
    bool is_other = !has_right_size(search->file, tag->size, reason, sizeof reason) ||
                    (tag->id_size && has_other_identity(identity_of(search), tag, reason, sizeof reason));
    if (is_other)
        note_difference(search, path, reason);
    return is_other;
}

/* Whether the target holds none of the file's bytes, so that no candidate can be confirmed. */
static bool is_unheld(const struct mapped_file *file)
{
    uint64_t mapped = 0;
    for (size_t i = 0; i < file->mapping_count; i++)
        mapped += file->mappings[i]->end - file->mappings[i]->begin;
    return mapped && mapped == file->missing_size;
}

/* Keeps the better of the candidate at `path` and the file accepted so far. True once there can be no better one. */
static bool consider(struct file_search *files, const char *path, struct file_candidate *candidate)
{
    struct search *search = (struct search *)files;
    struct mapped_file *file = search->file;
    char reason[160] = "";
    candidate->is_mapped_one = file->inode && file->inode == candidate->inode && file->device == candidate->device;
    enum file_match match = FILE_UNKNOWN;
    if (!has_right_size(file, candidate->size, reason, sizeof reason))
        match = FILE_DIFFERS;
    else if (file->policy->compare)
        match = file->policy->compare(file->target, file, candidate, reason, sizeof reason);
    if (match == FILE_UNKNOWN && mapped_file_is_deleted(file) && is_too_large(file, candidate->size)) {
        match = FILE_DIFFERS;
        snprintf(reason, sizeof reason, "it has %llu bytes and only %llu were mapped",
                 (unsigned long long)candidate->size, (unsigned long long)file->mapped_size);
    }
    if (match == FILE_DIFFERS)
        note_difference(search, path, reason);
    /* Unless it matches, it is no better than a file that was accepted before. */
    bool may_be_unknown = !search->only_confirmed || candidate->is_mapped_one;
    bool better = match == FILE_MATCHES || (match == FILE_UNKNOWN && !file->local_path && may_be_unknown);
    char *local_path = better ? strdup(path) : NULL;
    if (!local_path)
        return false;
    file_candidate_close(&file->content);
    free(file->local_path);
    file->local_path = local_path;
    file->content = file_candidate_take(candidate);
    file->verified = match == FILE_MATCHES;
    return file->verified || is_unheld(file);
}

/* That the file is there and cannot be opened; a comparison with another one says more. */
static void note_refusal(struct file_search *files, const char *path, const char *reason)
{
    struct search *search = (struct search *)files;
    char printable[160];
    if (!search->why[0])
        snprintf(search->why, sizeof search->why, "%s cannot be read: %s",
                 error_printable(printable, sizeof printable, path), reason);
}

/* Below module directory `i`: .build-id/xx/yyyy, .build-id/xx/yyyy.debug, or a file named by the whole build-id. */
static bool look_for_build_id(struct search *search, size_t i)
{
    const struct file_identity *identity = identity_of(search);
    char hex[2 * sizeof identity->build_id + sizeof ".debug"];
    text_hex(hex, identity->build_id, identity->build_id_size);
    if (identity->build_id_size < 2)
        return false;
    if (file_search_named(&search->files, i, hex) || file_search_named(&search->files, i, hex + 2))
        return true;
    strcat(hex, ".debug");
    return file_search_named(&search->files, i, hex + 2);
}

static bool look_below_modules(struct search *search)
{
    struct file_policy *policy = search->file->policy;
    const char *name = path_basename(search->file->path);
    for (size_t i = 0; policy->module_paths && policy->module_paths[i]; i++)
        if (file_search_at(&search->files, file_policy_module_root(policy, i), "/%s", name) ||
            file_search_named(&search->files, i, name) || look_for_build_id(search, i))
            return true;
    return false;
}

static bool ask_opener(struct search *search)
{
    struct file_need file;
    if (!search->file->policy->find)
        return false;
    describe_need(search, &file);
    return file_search_ask(&search->files, &file.need);
}

/* A file that only its contents show to be the right one. */
static bool look_for_confirmed(struct search *search, const struct file_root *root, const char *path)
{
    search->only_confirmed = true;
    bool found = file_search_at(&search->files, root, "%s", path);
    search->only_confirmed = false;
    return found;
}

/* At the target's own path. A name may end like the mark of a deleted file. */
static bool look_at_own_path(struct search *search)
{
    struct mapped_file *file = search->file;
    const struct file_root *root = file_search_own_root(file->target);
    return file_search_at(&search->files, root, "%s", file_search_own_path(file->target, file->path)) ||
           (mapped_file_is_deleted(file) &&
            look_for_confirmed(search, root, file_search_own_path(file->target, file->name)));
}

static bool fetch_by_build_id(struct search *search)
{
    struct mapped_file *file = search->file;
    struct file_policy *policy = file->policy;
    const struct file_identity *identity = policy->fetch ? identity_of(search) : NULL;
    if (!identity || !identity->build_id_size)
        return false;
    CLEANUP_FREE char *fetched =
        policy->fetch(policy->fetch_context, file->path, identity->build_id, identity->build_id_size);
    return fetched && file_search_trusted(&search->files, fetched);
}

/* From a symbol server. All other places were asked in vain. */
static void fetch_by_key(struct search *search)
{
    struct file_need file;
    describe_need(search, &file);
    (void)file_search_fetch(&search->files, search->file->target, &file.need, search->why);
}

static void look_for(struct search *search)
{
    struct mapped_file *file = search->file;
    struct file_policy *policy = file->policy;
    for (size_t i = 0; policy->sysroots && policy->sysroots[i]; i++)
        if (file_search_at(&search->files, file_policy_sysroot(policy, i), "%s", file->path))
            return;
    if (look_below_modules(search))
        return;
    if (!policy->no_own_paths && look_at_own_path(search))
        return;
    if (!fetch_by_build_id(search) && policy->server.fetch && !file->local_path)
        fetch_by_key(search);
}

/* Adds to `why` what is missing: the path of the file, its identity, and how to supply it. */
static void describe_missing(struct search *search)
{
    enum { OTHER_WORDS = 120 }; /* room for these and for how to supply the file */
    struct file_need file;
    char *why = search->why;
    size_t length = strlen(why), room = sizeof search->why - length;
    char path[200], key[240], known[sizeof key + 120] = "";
    error_printable(path, sizeof path, search->file->path);
    if (!length && !work_left(search->files.work)) {
        snprintf(why, room, "the bound on work was reached before %s was found", path);
        return;
    }
    if (!length && !mapped_path_is_file(search->file->path)) {
        snprintf(why, room, "no file has the contents of %s", path);
        return;
    }
    const struct file_identity *identity = identity_of(search);
    const char *text = identity->text, *begin = length ? "; wanted: " : " (", *end = length ? "" : ")";
    error_printable(key, sizeof key, identity->key);
    bool has_room = strlen(key) < sizeof key - ESCAPED_CHARACTER_SIZE && /* a part of a key is of no use */
                    (length ? length : strlen(path)) + strlen(text) + strlen(key) + OTHER_WORDS < sizeof search->why;
    if (key[0] && !has_room)
        snprintf(known, sizeof known, "%.80s", text);
    else if (key[0])
        snprintf(known, sizeof known, "%.80s%ssymbol server key %s", text, text[0] ? ", " : "", key);
    if (!length)
        length = (size_t)snprintf(
            why, room, "%s is needed and was not found%s", path,
            mapped_file_is_deleted(search->file) ? "; it was deleted or replaced while the process ran" : "");
    if (known[0])
        snprintf(why + length, sizeof search->why - length, "%s%s%s", begin, known, end);
    describe_need(search, &file);
    file_policy_describe(search->file->policy, &file.need, why, sizeof search->why);
}

/* Looks for the file everywhere, and notes why there is none. */
static void find_file(struct mapped_file *file)
{
    struct search search = {.files = {.policy = file->policy,
                                      .work = &file->target->work,
                                      .mapped = {file->device, file->inode},
                                      .consider = consider,
                                      .refused = note_refusal,
                                      .excludes = excludes},
                            .file = file};
    if (!ask_opener(&search) && mapped_path_is_file(file->path))
        look_for(&search);
    if (file->local_path)
        return;
    describe_missing(&search);
    file->problem = strdup(search.why);
}

bool mapped_file_resolve(struct mapped_file *file)
{
    if (atomic_load_explicit(&file->resolved, memory_order_acquire))
        return file->local_path != NULL;
    if (!file->policy)
        return false;
    pthread_mutex_lock(&file->policy->lock);
    if (!atomic_load_explicit(&file->resolved, memory_order_relaxed)) {
        find_file(file);
        if (file->local_path && ++file->policy->accepted > WARM_MAX)
            file_candidate_release_pages(&file->content);
        atomic_store_explicit(&file->resolved, true, memory_order_release);
    }
    pthread_mutex_unlock(&file->policy->lock);
    return file->local_path != NULL;
}

const char *mapped_file_problem(const struct mapped_file *file)
{
    return atomic_load_explicit(&file->resolved, memory_order_acquire) ? file->problem : NULL;
}

bool mapped_file_constant(const struct mapped_file *file, enum mapping_access access, uint64_t offset, uint64_t *begin,
                          uint64_t *end)
{
    const struct file_candidate *content = &file->content;
    for (size_t i = 0; i < content->constant.count; i++) {
        const struct file_extent *extent = &content->constant.items[i];
        if (offset < extent->begin || offset >= extent->end || !(extent->access >> access & 1))
            continue;
        *begin = MAX(*begin, extent->begin);
        *end = MIN(*end, extent->end);
        return true;
    }
    return false;
}

bool mapped_file_memory_at(struct mapped_file *file, const struct mapped_part *part, uint64_t address, struct span *ret)
{
    uint64_t from = part->offset, to = part->offset + (part->end - part->begin);
    if (!mapped_file_resolve(file) ||
        !mapped_file_constant(file, part->access, part->offset + (address - part->begin), &from, &to))
        return false;
    *ret = (struct span){
        .begin = part->begin + (from - part->offset),
        .end = part->begin + (to - part->offset),
        .bytes = file->content.bytes + from,
        .unverified = !file->verified,
    };
    return true;
}

void mapped_file_explain(struct target *target, uint64_t address, char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (target->ops->is_cut_at && target->ops->is_cut_at(target, address)) {
        snprintf(buffer, size, "; the core ends before it: copy it again, or take it again with enough room");
        return;
    }
    const struct mapping *mapping = target_mapping_at(target, address);
    if (!mapping || !mapping->path)
        return;
    char path[160];
    error_printable(path, sizeof path, mapping->path);
    const char *problem = mapping->file ? mapped_file_problem(mapping->file) : NULL;
    if (target->ops->is_silent_at && target->ops->is_silent_at(target, address))
        snprintf(buffer, size, "; the file system of %s does not answer", path);
    else if (problem)
        snprintf(buffer, size, "; %s", problem);
    else
        snprintf(buffer, size, "; it belongs to %s", path);
}
