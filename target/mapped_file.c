#include "target/mapped_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "util/binary_search.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "formats/elf_machine.h"
#include "target/file_index.h"

enum { FILE_READ_MAX = 1 << 30 };

static const char *file_path(struct mapped_file *const *file)
{
    return (*file)->path;
}

DEFINE_HASH_TABLE_FUNCTIONS(file_table, struct mapped_file *, const char *, file_path, hash_string, equal_strings);

static struct mapped_file *record_create(struct target *target, struct file_policy *policy, const char *path)
{
    struct mapped_file *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path))) {
        free(file);
        return NULL;
    }
    file->target = target;
    file->policy = policy;
    return file;
}

/*
 * Whether one more file can be known. Files without a mapping, as of the last index, do not count among those at once.
 */
static bool has_room(const struct target *target)
{
    return target->file_count - target->unmapped_file_count < FILE_MAX && target->file_count < FILE_EVER_MAX;
}

static struct mapped_file *record_add(struct target *target, struct mapped_file *file)
{
    file->next = target->files;
    target->files = file;
    target->file_count++;
    return file;
}

struct mapped_file *mapped_file_get(struct target *target, struct file_policy *policy, const char *path)
{
    struct mapped_file **known = file_table_find(&target->file_table, path);
    if (known || !has_room(target))
        return known ? *known : NULL;
    struct mapped_file *file = record_create(target, policy, path);
    if (file && file_table_insert(&target->file_table, file, NULL))
        return record_add(target, file);
    free(file ? file->path : NULL);
    free(file);
    return NULL;
}

struct mapped_file *mapped_file_replace(struct target *target, struct file_policy *policy, const char *path)
{
    struct mapped_file **known = file_table_find(&target->file_table, path);
    struct mapped_file *file = has_room(target) ? record_create(target, policy, path) : NULL;
    if (!known || !file) {
        free(file ? file->path : NULL);
        free(file);
        return NULL;
    }
    return *known = record_add(target, file);
}

static int compare_by_file(const void *a, const void *b)
{
    const struct mapping *x = *(const struct mapping *const *)a, *y = *(const struct mapping *const *)b;
    if (x->file != y->file)
        return ((uintptr_t)x->file > (uintptr_t)y->file) - ((uintptr_t)x->file < (uintptr_t)y->file);
    if (x->offset != y->offset)
        return (x->offset > y->offset) - (x->offset < y->offset);
    return (x->begin < y->begin) - (x->begin > y->begin); /* a descending walk meets the lowest first */
}

bool mapped_files_index(struct target *target)
{
    const struct mapping **mappings = calloc(target->mapping_count + 1, sizeof *mappings);
    size_t count = 0;
    if (!mappings)
        return false;
    free(target->file_mappings);
    target->file_mappings = mappings;
    for (struct mapped_file *file = target->files; file; file = file->next)
        file->mapping_count = 0, file->mappings = NULL, file->begin = file->end = 0;
    target->unmapped_file_count = target->file_count;
    for (size_t i = 0; i < target->mapping_count; i++)
        if (target->mappings[i].file)
            mappings[count++] = &target->mappings[i];
    qsort(mappings, count, sizeof *mappings, compare_by_file);
    for (size_t i = 0; i < count; i++) {
        struct mapping *mapping = &target->mappings[mappings[i] - target->mappings];
        struct mapped_file *file = mapping->file;
        mapping->reach = mapping->offset + (mapping->end - mapping->begin);
        if (!file->mapping_count) {
            file->mappings = &mappings[i];
            file->begin = mapping->begin;
        } else {
            mapping->reach = MAX(mapping->reach, mappings[i - 1]->reach);
        }
        target->unmapped_file_count -= !file->mapping_count;
        file->mapping_count++;
        file->begin = MIN(file->begin, mapping->begin);
        file->end = MAX(file->end, mapping->end);
    }
    return true;
}

size_t mapped_file_mappings_to(const struct mapped_file *file, uint64_t offset)
{
    return lower_bound(i, file->mapping_count, file->mappings[i]->offset <= offset);
}

const struct file_identity *mapped_file_identity(struct mapped_file *file, file_identify *identify)
{
    static const struct file_identity unknown;
    struct file_identity *known = atomic_load_explicit(&file->identity, memory_order_acquire);
    if (known)
        return known;
    struct file_identity *found = calloc(1, sizeof *found);
    if (!found)
        return &unknown;
    identify(file->target, file, found);
    if (atomic_compare_exchange_strong(&file->identity, &known, found))
        return found;
    free(found); /* another thread was faster */
    return known;
}

void file_candidate_close(struct file_candidate *candidate)
{
    if (candidate->bytes && !candidate->owned)
        munmap((void *)(uintptr_t)candidate->bytes, candidate->size);
    free(candidate->owned);
    candidate->bytes = candidate->owned = NULL;
    file_extents_deinit(&candidate->constant);
}

void mapped_files_deinit(struct target *target)
{
    file_table_deinit(&target->file_table);
    while (target->files) {
        struct mapped_file *file = target->files;
        target->files = file->next;
        file_candidate_close(&file->content);
        free(file->identity);
        free(file->local_path);
        free(file->problem);
        free(file->path);
        free(file);
    }
    free(target->file_mappings);
}

/* Reads the whole file, or what is left of one that was truncated meanwhile. */
static bool candidate_read(struct file_candidate *candidate, int fd, uint64_t size)
{
    if (size > FILE_READ_MAX) {
        errno = EFBIG;
        return false;
    }
    CLEANUP_FREE uint8_t *bytes = malloc((size_t)size);
    if (!bytes)
        return false;
    size_t done = file_read_at(fd, 0, bytes, (size_t)size);
    if (!done) {
        errno = EINVAL;
        return false;
    }
    candidate->size = done;
    candidate->bytes = candidate->owned = take_ptr(bytes);
    return true;
}

bool file_candidate_open(struct file_candidate *candidate, const char *path, bool pread)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0)
        return false;
    if (!S_ISREG(st.st_mode) || st.st_size <= 0) {
        errno = EINVAL;
        return false;
    }
    candidate->device = st.st_dev;
    candidate->inode = st.st_ino;
    if ((uint64_t)st.st_size > SIZE_MAX / 2) { /* of a program of 32 bits */
        errno = EFBIG;
        return false;
    }
    if (pread)
        return candidate_read(candidate, fd, (uint64_t)st.st_size);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    candidate->bytes = bytes;
    candidate->size = (uint64_t)st.st_size;
    return true;
}

bool mapped_path_is_memory(const char *path)
{
    static const char *const prefixes[] = {"/memfd:", "/dev/zero", "/SYSV"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

bool mapped_path_is_deleted(const char *path)
{
    static const char deleted[] = " (deleted)";
    size_t n = strlen(path);
    return n > sizeof deleted && strcmp(path + n - (sizeof deleted - 1), deleted) == 0;
}

bool mapped_path_is_file(const char *path)
{
    for (const char *step = strchr(path, '/'); step; step = strchr(step + 1, '/')) {
        size_t length = strcspn(step + 1, "/");
        if (!length || (step[1] == '.' && (length == 1 || (length == 2 && step[2] == '.'))))
            return false;
    }
    return path[0] == '/' && !mapped_path_is_memory(path) && strncmp(path, "/dev/", 5) != 0 &&
           strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 && !mapped_path_is_deleted(path);
}

/* The largest page size of kernels for the machine. */
static uint64_t page_size_max(unsigned elf_machine)
{
    const struct elf_machine *machine = elf_machine_find(elf_machine);
    return machine ? machine->page_max : 64 * 1024;
}

struct search {
    struct mapped_file *file;
    char *why;
    size_t why_size;
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

/* Keeps the better of the candidate at `path` and the file accepted so far. True once the file is verified. */
static bool consider(struct search *search, const char *path)
{
    struct mapped_file *file = search->file;
    struct file_candidate candidate = {0};
    if (!file_candidate_open(&candidate, path, file->policy->pread))
        return false;
    char printable[160];
    error_printable(printable, sizeof printable, path);
    char reason[160] = "";
    candidate.is_mapped_one = file->inode && file->inode == candidate.inode && file->device == candidate.device;
    enum file_match match = FILE_UNKNOWN;
    /* The kernel fills the last page with zeros; a file that ends before that page was not mapped like this. */
    if (align_up(candidate.size, page_size_max(file->target->elf_machine)) < file->mapped_size) {
        match = FILE_DIFFERS;
        snprintf(reason, sizeof reason, "it has %llu bytes and %llu were mapped", (unsigned long long)candidate.size,
                 (unsigned long long)file->mapped_size);
    } else if (file->policy->compare) {
        match = file->policy->compare(file->target, file, &candidate, reason, sizeof reason);
    }
    if (match == FILE_DIFFERS)
        snprintf(search->why, search->why_size, "%s is not the file that was mapped: %s", printable, reason);
    /* Unless it matches, it is no better than a file that was accepted before. */
    bool better = match == FILE_MATCHES || (match == FILE_UNKNOWN && !file->local_path);
    char *local_path = better ? strdup(path) : NULL;
    if (!local_path) {
        file_candidate_close(&candidate);
        return false;
    }
    file_candidate_close(&file->content);
    free(file->local_path);
    file->local_path = local_path;
    file->content = candidate;
    file->verified = match == FILE_MATCHES;
    return file->verified;
}

static bool consider_at(struct search *search, const char *directory, const char *rest)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s%s", directory, rest) < (int)sizeof path && consider(search, path);
}

/* Considers every file of that name in a module directory. */
static bool consider_named(struct search *search, const struct file_index *index, const char *name)
{
    size_t count;
    const struct file_index_entry *entries = file_index_find(index, name, &count);
    for (size_t i = 0; i < count; i++)
        if (consider(search, entries[i].path))
            return true;
    return false;
}

/* .build-id/xx/yyyy, .build-id/xx/yyyy.debug, or a file named by the whole build-id. */
static bool consider_build_id(struct search *search, const struct file_index *index)
{
    const struct file_identity *identity = identity_of(search);
    char hex[2 * sizeof identity->build_id + sizeof ".debug"];
    text_hex(hex, identity->build_id, identity->build_id_size);
    if (identity->build_id_size < 2)
        return false;
    if (consider_named(search, index, hex) || consider_named(search, index, hex + 2))
        return true;
    strcat(hex, ".debug");
    return consider_named(search, index, hex + 2);
}

const struct file_index *file_policy_index(struct file_policy *policy, size_t i)
{
    if (!policy->indexes) {
        size_t count = 0;
        while (policy->module_paths[count])
            count++;
        policy->indexes = calloc(count, sizeof *policy->indexes);
        for (size_t k = 0; policy->indexes && k < count; k++)
            file_index_build(policy->module_paths[k], &policy->indexes[k]);
    }
    return policy->indexes ? &policy->indexes[i] : NULL;
}

static bool look_below_modules(struct search *search)
{
    struct file_policy *policy = search->file->policy;
    const char *name = path_basename(search->file->path);
    for (size_t i = 0; policy->module_paths && policy->module_paths[i]; i++) {
        char slash_name[512];
        if (snprintf(slash_name, sizeof slash_name, "/%s", name) < (int)sizeof slash_name &&
            consider_at(search, policy->module_paths[i], slash_name))
            return true;
        const struct file_index *index = file_policy_index(policy, i);
        if (index && (consider_named(search, index, name) || consider_build_id(search, index)))
            return true;
    }
    return false;
}

/* Considers the path from the opener's callback. */
static bool ask_opener(struct search *search)
{
    struct file_policy *policy = search->file->policy;
    struct file_need file;
    char path[4096] = "";
    if (!policy->find)
        return false;
    describe_need(search, &file);
    return policy->find(policy->find_context, &file.need, path, sizeof path) && memchr(path, 0, sizeof path) &&
           consider(search, path);
}

static void look_for(struct search *search)
{
    struct mapped_file *file = search->file;
    struct file_policy *policy = file->policy;
    for (char **root = policy->sysroots; root && *root; root++)
        if (consider_at(search, *root, file->path))
            return;
    if (look_below_modules(search))
        return;
    /* A running process may have another root directory. */
    char root[64] = "";
    if (file->target->kind == CDACQ_TARGET_PROCESS)
        snprintf(root, sizeof root, "/proc/%d/root", file->target->pid);
    if (!policy->no_own_paths && consider_at(search, root, file->path))
        return;
    const struct file_identity *identity = policy->fetch ? identity_of(search) : NULL;
    if (!identity || !identity->build_id_size)
        return;
    CLEANUP_FREE char *fetched =
        policy->fetch(policy->fetch_context, file->path, identity->build_id, identity->build_id_size);
    if (fetched)
        consider(search, fetched);
}

void file_policy_deinit(struct file_policy *policy)
{
    for (size_t i = 0; policy->indexes && policy->module_paths[i]; i++)
        file_index_deinit(&policy->indexes[i]);
    free(policy->indexes);
    policy->indexes = NULL;
}

void file_policy_describe(const struct file_policy *policy, const struct cdacq_need *need, char *message, size_t size)
{
    size_t length = strlen(message);
    if (!policy->describe)
        return;
    policy->describe(policy->describe_context, need, message + length, size - length);
    message[size - 1] = '\0';
}

/*
 * Describes a missing file: its path, its identity and how to supply it. `why` may already say why a file that was
 * found was refused.
 */
static void describe_missing(const struct search *search, char *why, size_t why_size)
{
    struct file_need file;
    size_t length = strlen(why);
    char path[120], known[300] = "";
    error_printable(path, sizeof path, search->file->path);
    if (!length && !mapped_path_is_file(search->file->path)) {
        snprintf(why, why_size, "no file has the contents of %s", path);
        return;
    }
    const struct file_identity *identity = identity_of(search);
    if (identity->key[0])
        snprintf(known, sizeof known, "%.80s%ssymbol server key %.180s", identity->text, identity->text[0] ? ", " : "",
                 identity->key);
    if (length && known[0])
        snprintf(why + length, why_size - length, "; wanted: %s", known);
    else if (!length)
        snprintf(why, why_size, "%s is needed and was not found%s%s%s", path, known[0] ? " (" : "", known,
                 known[0] ? ")" : "");
    describe_need(search, &file);
    file_policy_describe(search->file->policy, &file.need, why, why_size);
}

/* Looks for the file everywhere. On failure `why` says what is missing. */
static void find_file(struct mapped_file *file, char *why, size_t why_size)
{
    struct search search = {.file = file, .why = why, .why_size = why_size};
    if (!ask_opener(&search) && mapped_path_is_file(file->path))
        look_for(&search);
    if (!file->local_path)
        describe_missing(&search, why, why_size);
}

bool mapped_file_resolve(struct mapped_file *file)
{
    if (atomic_load_explicit(&file->resolved, memory_order_acquire))
        return file->local_path != NULL;
    if (!file->policy)
        return false;
    pthread_mutex_lock(&file->policy->lock);
    if (!atomic_load_explicit(&file->resolved, memory_order_relaxed)) {
        char why[CDACQ_ERROR_MESSAGE_SIZE] = "";
        find_file(file, why, sizeof why);
        if (!file->local_path)
            file->problem = strdup(why);
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

bool mapped_file_memory_at(struct mapped_file *file, enum mapping_access access, uint64_t begin, uint64_t end,
                           uint64_t offset, uint64_t address, struct span *ret)
{
    uint64_t from = offset, to = offset + (end - begin);
    if (!mapped_file_resolve(file) || !mapped_file_constant(file, access, offset + (address - begin), &from, &to))
        return false;
    *ret = (struct span){
        .begin = begin + (from - offset),
        .end = begin + (to - offset),
        .bytes = file->content.bytes + from,
        .unverified = !file->verified,
    };
    return true;
}

void file_candidate_add_constant(struct file_candidate *candidate, uint64_t begin, uint64_t end, unsigned access)
{
    end = MIN(end, candidate->size);
    if (begin < end && candidate->constant.count < FILE_EXTENT_MAX)
        (void)file_extents_append(&candidate->constant, (struct file_extent){begin, end, access});
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
    if (problem)
        snprintf(buffer, size, "; %s", problem);
    else
        snprintf(buffer, size, "; it belongs to %s", path);
}

void mapped_file_release_pages(const struct mapped_file *file)
{
    if (file->content.bytes && !file->content.owned)
        (void)madvise((void *)(uintptr_t)file->content.bytes, (size_t)file->content.size, MADV_DONTNEED);
}
