#include "target/live_mappings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/binary_search.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/file_system.h"
#include "util/proc_file.h"
#include "target/mapped_files.h"
#include "target/mapped_path.h"
#include "target/proc_status.h"

/* The first numbers of /proc/PID/statm. */
enum { STATM_SIZE, STATM_RESIDENT, STATM_SHARED, STATM_NUMBERS };

DEFINE_VECTOR(mapping_list, struct mapping);

/* The number of parts found one by one that begin at or below an address. */
static size_t found_up_to(const struct live_mappings *mappings, uint64_t address)
{
    return lower_bound(i, mappings->found_count, mappings->found[mappings->order[i]].begin <= address);
}

/*
 * What is known to be mapped around an address, from the list or found one by one; without a file, if none is mapped
 * there. NULL: nothing is known.
 */
static const struct mapping *known_at(const struct live_mappings *mappings, uint64_t address)
{
    if (!mappings->target->partial)
        return target_mapping_at(mappings->target, address);
    size_t after = found_up_to(mappings, address);
    const struct mapping *known = after ? &mappings->found[mappings->order[after - 1]] : NULL;
    return known && address < known->end ? known : NULL;
}

static struct file_number number_of(struct mapped_file *const *file)
{
    return (struct file_number){(*file)->device, (*file)->inode};
}

static uint64_t hash_number(struct file_number number, uint64_t seed)
{
    return hash_u64(number.inode, hash_u64(number.device, seed));
}

static bool equal_numbers(struct file_number a, struct file_number b)
{
    return a.device == b.device && a.inode == b.inode;
}

DEFINE_HASH_TABLE_FUNCTIONS(files_by_number, struct mapped_file *, struct file_number, number_of, hash_number,
                            equal_numbers);

/* Keeps a file by its number, which it may have taken over from one that was deleted. */
static void keep_number(struct live_mappings *mappings, struct mapped_file *file)
{
    struct mapped_file **known = files_by_number_insert(&mappings->files, file, NULL);
    if (known) /* else it is not found once it is deleted */
        *known = file;
}

/*
 * Whether a mapping is of a known file. Another file may have its number once it was deleted and nobody has it open;
 * this program does if it has mapped it. Otherwise, the path must be the same.
 */
static bool is_mapping_of(const struct mapped_file *file, const struct proc_map *map)
{
    const struct file_candidate *content = &file->content;
    bool is_held = atomic_load(&file->resolved) && content->bytes && !content->owned && content->is_mapped_one;
    return file->inode == map->inode && file->device == map->device &&
           (is_held || mapped_path_is_still(map->path, file->name));
}

/* The record of a file that was deleted after its first mapping was seen. NULL: there is none. */
static struct mapped_file *deleted_file(const struct live_mappings *mappings, const struct proc_map *map)
{
    if (!mapped_path_is_deleted(map->path))
        return NULL;
    struct mapped_file **known = files_by_number_find(&mappings->files, (struct file_number){map->device, map->inode});
    return known && is_mapping_of(*known, map) ? *known : NULL;
}

/*
 * The record of a mapping's file. A file that was mapped at the same place before keeps its record, even if another
 * file has its path by now. NULL: there are too many files, and this one has no record.
 */
static struct mapped_file *file_of(struct live_mappings *mappings, const struct proc_map *map)
{
    struct target *target = mappings->target;
    const struct mapping *before = known_at(mappings, map->begin);
    struct mapped_file *file = before ? before->file : NULL;
    if (file && is_mapping_of(file, map) && map->offset - before->offset == map->begin - before->begin)
        return file;
    file = deleted_file(mappings, map);
    if (file)
        return file;
    file = mapped_files_get(target, mappings->policy, map->path);
    if (file && file->inode && (file->inode != map->inode || file->device != map->device))
        file = mapped_files_replace(target, mappings->policy, map->path);
    if (file && !file->inode && map->inode) {
        file->device = map->device;
        file->inode = map->inode;
        keep_number(mappings, file);
    }
    return file;
}

static struct mapping mapping_of(const struct proc_map *map, struct mapped_file *file)
{
    return (struct mapping){
        .begin = map->begin,
        .end = map->end,
        .offset = map->offset,
        .path = file->path,
        .access = map->writable ? MAPPING_WRITABLE : MAPPING_READ_ONLY,
        .may_execute = map->executable,
        .file = file,
    };
}

/* Whether another program or machine supplies the pages of a mapping. */
static bool is_far(struct live_mappings *mappings, const struct proc_map *map)
{
    struct known_device *devices = mappings->devices;
    if (!map->device)
        return false;
    for (size_t i = 0; i < KNOWN_DEVICES; i++)
        if (devices[i].device == map->device)
            return devices[i].is_far;
    bool far = !file_system_device_is_local(map->device, mappings->target->pid);
    devices[mappings->next_device++ % KNOWN_DEVICES] = (struct known_device){map->device, far};
    return far;
}

/*
 * Appends the mappings of a listing, which has them in the order of their addresses, and notes which are far. False:
 * out of memory.
 */
static bool take_listing(struct live_mappings *mappings, struct proc_maps *maps, struct mapping_list *ret)
{
    struct proc_map map;
    maps->nameless = true;
    mappings->far.count = 0;
    while (proc_maps_next(maps, &map)) {
        if (is_far(mappings, &map) && !far_ranges_append(&mappings->far, (struct far_range){map.begin, map.end}))
            return false;
        if (map.path[0] != '/')
            continue;
        struct mapped_file *file = file_of(mappings, &map);
        if (file && !mapping_list_append(ret, mapping_of(&map, file)))
            return false;
    }
    return true;
}

static bool is_same_mapping(const struct mapping *a, const struct mapping *b)
{
    return a->begin == b->begin && a->end == b->end && a->offset == b->offset && a->access == b->access &&
           a->may_execute == b->may_execute && a->file == b->file;
}

/* Takes over the mappings if they differ from the known ones, and leaves *list empty then. False: out of memory. */
static bool take_mappings(struct target *target, struct mapping_list *list)
{
    bool same = target->mappings && list->count == target->mapping_count;
    for (size_t i = 0; same && i < list->count; i++)
        same = is_same_mapping(&list->items[i], &target->mappings[i]);
    if (same)
        return true;
    struct mapping *old = target->mappings;
    size_t old_count = target->mapping_count;
    target->mappings = list->items;
    target->mapping_count = list->count;
    target_sort_mappings(target);
    if (!mapped_files_index(target)) { /* the files still refer to the old mappings, so these stay */
        target->mappings = old;
        target->mapping_count = old_count;
        return false;
    }
    *list = (struct mapping_list){0};
    free(old);
    target->mapping_round++;
    return true;
}

/* Reads statm: numbers of pages. They are 0 if they are not known. */
static void read_statm(const struct live_mappings *mappings, uint64_t numbers[STATM_NUMBERS])
{
    char text[128];
    size_t n = mappings->statm < 0 ? 0 : file_read_at(mappings->statm, 0, text, sizeof text - 1);
    text[n] = '\0';
    char *at = text;
    for (size_t i = 0; i < STATM_NUMBERS; i++)
        numbers[i] = strtoull(at, &at, 10);
}

/* The size of the process's memory in pages; 0 if it is not known. */
static uint64_t size_of(const struct live_mappings *mappings)
{
    uint64_t numbers[STATM_NUMBERS];
    read_statm(mappings, numbers);
    return numbers[STATM_SIZE];
}

uint64_t live_mappings_own_size(const struct live_mappings *mappings)
{
    uint64_t numbers[STATM_NUMBERS];
    read_statm(mappings, numbers);
    uint64_t resident = numbers[STATM_RESIDENT], shared = MIN(numbers[STATM_SHARED], resident);
    uint64_t own = resident - shared;
    return MAX(own + MIN(shared, own), UINT64_C(1)) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Notes when, and at which size of the process, the mappings that are read next were read. */
static void note_age(struct live_mappings *mappings)
{
    mappings->size = size_of(mappings);
    mappings->time = monotonic_ns() / NS_PER_SECOND; /* a second later, they are out of date in any case */
}

static enum cdacq_status list(struct live_mappings *mappings, bool one_by_one)
{
    struct proc_maps maps;
    struct mapping_list found = {0};
    note_age(mappings);
    int problem = proc_maps_begin(mappings->file, false, &maps);
    bool taken = false;
    if (!problem && one_by_one && maps.queries) {
        taken = mappings->target->partial = true;
    } else if (!problem) {
        taken = take_listing(mappings, &maps, &found) && take_mappings(mappings->target, &found);
        mappings->target->partial &= !taken;
    }
    proc_maps_end(&maps);
    mapping_list_deinit(&found);
    errno = problem;
    return problem == ESRCH ? CDACQ_NOT_MANAGED : problem ? CDACQ_ERR_IO : taken ? CDACQ_OK : CDACQ_ERR_NOMEM;
}

enum cdacq_status live_mappings_list(struct live_mappings *mappings)
{
    return list(mappings, false);
}

/* A thread through which the kernel shows the memory of a process whose first thread has ended; 0: there is none. */
static int thread_with_memory(int pid)
{
    char path[64], text[64];
    int ret = 0;
    DIR *dir = proc_folder_open(pid, "task");
    if (!dir)
        return 0;
    for (struct dirent *entry; !ret && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%.10s/statm", entry->d_name);
        if (isdigit((unsigned char)entry->d_name[0]) && file_read_text(dirfd(dir), path, text, sizeof text) &&
            strtoull(text, NULL, 10)) /* pages */
            ret = atoi(entry->d_name);
    }
    closedir(dir);
    return ret;
}

/* Why a process has no memory. Returns IO. */
static enum cdacq_status no_memory(int pid, struct cdacq_error *err)
{
    int tid = thread_with_memory(pid);
    if (tid)
        return error_set(err, CDACQ_ERR_IO, 0,
                         "process %d: its first thread has ended; ask for another one instead: %d", pid, tid);
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: it has no memory: it has ended (zombie), or is a kernel thread",
                     pid);
}

enum cdacq_status live_mappings_open(struct target *target, struct file_policy *policy, bool one_by_one,
                                     struct live_mappings *ret, struct cdacq_error *err)
{
    ret->target = target;
    ret->policy = policy;
    ret->statm = proc_file_open(target->pid, "statm");
    ret->file = proc_maps_open(target->pid);
    enum cdacq_status status = ret->file < 0 ? CDACQ_ERR_IO : list(ret, one_by_one);
    if (status == CDACQ_ERR_IO)
        return proc_error(target->pid, err);
    if (status == CDACQ_NOT_MANAGED)
        return no_memory(target->pid, err);
    return status < 0 ? error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory") : CDACQ_OK;
}

void live_mappings_close(struct live_mappings *mappings)
{
    far_ranges_deinit(&mappings->far);
    files_by_number_deinit(&mappings->files);
    if (mappings->file >= 0)
        close(mappings->file);
    if (mappings->statm >= 0)
        close(mappings->statm);
}

bool live_mappings_are_due(const struct live_mappings *mappings)
{
    return size_of(mappings) != mappings->size || monotonic_ns() / NS_PER_SECOND != mappings->time;
}

void live_mappings_refresh(struct live_mappings *mappings)
{
    if (!mappings->target->partial) {
        (void)live_mappings_list(mappings); /* if it fails, the known ones stay */
        return;
    }
    note_age(mappings);
    mappings->found_count = 0;
    mappings->target->mapping_round++;
}

void live_mappings_expire(struct live_mappings *mappings)
{
    mappings->time = 0;
}

/* Lists all mappings, if possible, and finds an address in the list. */
static const struct mapping *listed_at(struct live_mappings *mappings, uint64_t address)
{
    return live_mappings_list(mappings) == CDACQ_OK ? target_mapping_at(mappings->target, address) : NULL;
}

/* Keeps what was found. NULL: it is no mapping of a file. */
static const struct mapping *keep_found(struct live_mappings *mappings, struct mapping found, bool far)
{
    size_t place = found_up_to(mappings, found.begin), number = mappings->found_count++;
    memmove(&mappings->order[place + 1], &mappings->order[place], number - place);
    mappings->order[place] = (uint8_t)number;
    mappings->found[number] = found;
    mappings->far_found[number] = far;
    return found.file ? &mappings->found[number] : NULL;
}

const struct mapping *live_mappings_at(struct live_mappings *mappings, uint64_t address)
{
    struct proc_map map;
    const struct mapping *known = known_at(mappings, address);
    if (known)
        return known->file ? known : NULL;
    if (mappings->found_count == LIVE_FOUND_MAX)
        return listed_at(mappings, address);
    if (!proc_maps_part_at(mappings->file, address, mappings->name, &map))
        return NULL;
    bool far = is_far(mappings, &map);
    if (!map.path)
        return keep_found(mappings, (struct mapping){.begin = map.begin, .end = map.end}, far);
    struct mapped_file *file = file_of(mappings, &map);
    if (!file) { /* too many files are known: a listing forgets those without a mapping, which makes room */
        (void)live_mappings_list(mappings);
        return listed_at(mappings, address);
    }
    return keep_found(mappings, mapping_of(&map, file), far);
}

/* As live_mappings_part_at(), of the list of all. */
static struct live_part listed_part_at(const struct live_mappings *mappings, uint64_t address)
{
    const struct far_ranges *far = &mappings->far;
    size_t i = lower_bound(k, far->count, far->items[k].end <= address);
    if (i == far->count)
        return (struct live_part){UINT64_MAX, false};
    bool is_inside = address >= far->items[i].begin;
    return (struct live_part){is_inside ? far->items[i].end : far->items[i].begin, is_inside};
}

struct live_part live_mappings_part_at(void *context, uint64_t address)
{
    struct live_mappings *mappings = context;
    if (mappings->target->partial && !known_at(mappings, address))
        (void)live_mappings_at(mappings, address); /* which may list all */
    if (!mappings->target->partial)
        return listed_part_at(mappings, address);
    const struct mapping *known = known_at(mappings, address);
    if (!known)
        return (struct live_part){address / PAGE_SIZE * PAGE_SIZE + PAGE_SIZE, false};
    return (struct live_part){known->end, mappings->far_found[known - mappings->found]};
}

/* Looks only at mappings that can be executed: every loaded file has one, and most mappings are of other kinds. */
const struct mapping *live_mappings_next_loaded(struct live_mappings *mappings, bool (*accepts)(const char *path),
                                                uint64_t *position)
{
    struct proc_maps maps;
    struct proc_map map;
    const struct mapping *first = NULL;
    bool is_begun = proc_maps_begin(mappings->file, true, &maps) == 0, is_found = true;
    maps.next = *position;
    while (is_begun && is_found && !first && proc_maps_next(&maps, &map)) {
        if (!accepts(map.path))
            continue;
        first = map.offset <= map.begin ? live_mappings_at(mappings, map.begin - map.offset) : NULL;
        is_found = first && !first->offset && mapped_path_is_still(map.path, first->file->name);
        if (is_found && first->begin < *position)
            first = NULL; /* another mapping of the same file's code was visited before */
        else if (is_found)
            *position = map.end;
    }
    proc_maps_end(&maps);
    if (is_begun && is_found)
        return first;
    (void)live_mappings_list(mappings);
    return NULL;
}
