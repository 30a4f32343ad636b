#include "target/mapped_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/error.h"

struct mapped_file *mapped_file_get(struct target *target, struct file_policy *policy, const char *path)
{
    uint32_t hash = 2166136261u; /* FNV-1a: a comparison of every path with every other would be slow */
    for (const char *p = path; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    size_t count = 0;
    for (struct mapped_file *file = target->files; file; file = file->next, count++)
        if (file->hash == hash && strcmp(file->path, path) == 0)
            return file;
    if (count >= FILE_MAX)
        return NULL;
    struct mapped_file *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path))) {
        free(file);
        return NULL;
    }
    file->hash = hash;
    file->target = target;
    file->policy = policy;
    file->next = target->files;
    target->files = file;
    return file;
}

static void candidate_close(struct file_candidate *candidate)
{
    if (candidate->bytes)
        munmap((void *)(uintptr_t)candidate->bytes, candidate->size);
    candidate->bytes = NULL;
}

void mapped_files_destroy(struct mapped_file *files)
{
    while (files) {
        struct mapped_file *file = files;
        files = file->next;
        candidate_close(&file->content);
        free(file->local_path);
        free(file->problem);
        free(file->path);
        free(file);
    }
}

/* Maps a regular file. NULL bytes with errno set where that fails; a path may name a device or a pipe: never block. */
static bool candidate_open(struct file_candidate *candidate, const char *path)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    if (!S_ISREG(st.st_mode) || st.st_size <= 0) {
        errno = EINVAL;
        return false;
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    *candidate = (struct file_candidate){.bytes = bytes, .size = (uint64_t)st.st_size};
    return true;
}

/*
 * False for a path that never had a file which could be opened (memfds, devices, shared memory, deleted files), and for
 * one that no kernel writes: a step up or sideways in it would lead out of a sysroot, or back to a device.
 */
static bool names_a_file(const char *path)
{
    for (const char *step = strchr(path, '/'); step; step = strchr(step + 1, '/')) {
        size_t length = strcspn(step + 1, "/");
        if (!length || (step[1] == '.' && (length == 1 || (length == 2 && step[2] == '.'))))
            return false;
    }
    static const char deleted[] = " (deleted)";
    size_t n = strlen(path);
    return path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/dev/", 5) != 0 &&
           strncmp(path, "/SYSV", 5) != 0 && strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 &&
           !(n > sizeof deleted && strcmp(path + n - (sizeof deleted - 1), deleted) == 0);
}

/* The largest page that a kernel of the machine may map files by. */
static uint64_t page_size_max(uint16_t elf_machine)
{
    return elf_machine == EM_X86_64 || elf_machine == EM_386 || elf_machine == EM_S390 ? PAGE_SIZE : 64 * 1024;
}

/* Keeps the better of what was accepted so far and a candidate at `path`. True once nothing can be better. */
static bool consider(struct mapped_file *file, const char *path, char *why, size_t why_size)
{
    struct file_candidate candidate = {0};
    if (!candidate_open(&candidate, path))
        return false;
    char printable[160];
    error_printable(printable, sizeof printable, path);
    char reason[160] = "";
    enum file_verdict verdict = FILE_UNKNOWN;
    /* The tail of the last page is the kernel's; a file that ends before that page was never mapped like this. */
    if (align_up(candidate.size, page_size_max(file->target->elf_machine)) < file->mapped_size) {
        verdict = FILE_CONTRADICTED;
        snprintf(reason, sizeof reason, "it has %llu bytes and %llu were mapped", (unsigned long long)candidate.size,
                 (unsigned long long)file->mapped_size);
    } else if (file->policy->judge) {
        verdict = file->policy->judge(file->target, file, &candidate, reason, sizeof reason);
    }
    if (verdict == FILE_CONTRADICTED) {
        snprintf(why, why_size, "%s is not the file that was mapped: %s", printable, reason);
        candidate_close(&candidate);
        return false;
    }
    if (file->local_path && verdict != FILE_CONFIRMED) {
        candidate_close(&candidate); /* no better than what an earlier place supplied */
        return false;
    }
    char *local_path = strdup(path);
    if (!local_path) {
        candidate_close(&candidate);
        return false;
    }
    candidate_close(&file->content);
    free(file->local_path);
    file->local_path = local_path;
    file->content = candidate;
    file->verified = verdict == FILE_CONFIRMED;
    return file->verified;
}

static void look_for(struct mapped_file *file, char *why, size_t why_size)
{
    char path[4096];
    const struct file_policy *policy = file->policy;
    for (char **root = policy->sysroots; root && *root; root++)
        if (snprintf(path, sizeof path, "%s%s", *root, file->path) < (int)sizeof path &&
            consider(file, path, why, why_size))
            return;
    for (char **dir = policy->module_paths; dir && *dir; dir++)
        if (snprintf(path, sizeof path, "%s/%s", *dir, path_basename(file->path)) < (int)sizeof path &&
            consider(file, path, why, why_size))
            return;
    consider(file, file->path, why, why_size);
}

bool mapped_file_resolve(struct mapped_file *file)
{
    if (atomic_load_explicit(&file->resolved, memory_order_acquire))
        return file->local_path != NULL;
    if (!file->policy)
        return false;
    pthread_mutex_lock(&file->policy->lock);
    if (!atomic_load_explicit(&file->resolved, memory_order_relaxed)) {
        char why[CDACQ_ERROR_MESSAGE_SIZE] = "", path[160];
        if (names_a_file(file->path))
            look_for(file, why, sizeof why);
        if (!file->local_path && !why[0])
            snprintf(why, sizeof why, "%s is needed and was not found: give --sysroot DIR or --module-path DIR",
                     error_printable(path, sizeof path, file->path));
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
    struct file_range whole = {0, content->size, false};
    const struct file_range *range = NULL;
    if (access == MAPPING_READ_ONLY && content->constant_when_read_only)
        range = &whole;
    for (size_t i = 0; !range && i < content->constant_count; i++) {
        const struct file_range *constant = &content->constant[i];
        if (offset >= constant->begin && offset < constant->end && (access != MAPPING_WRITABLE || constant->always))
            range = constant;
    }
    if (!range || offset >= range->end)
        return false;
    *begin = MAX(*begin, range->begin);
    *end = MIN(*end, range->end);
    return true;
}

void file_candidate_add_constant(struct file_candidate *candidate, uint64_t begin, uint64_t end, bool always)
{
    end = MIN(end, candidate->size);
    if (begin < end && candidate->constant_count < FILE_RANGE_MAX)
        candidate->constant[candidate->constant_count++] = (struct file_range){begin, end, always};
}
