/*
 * memory_use.c: the memory of a process by what it is for: what is in RAM, or what a core has. Source:
 * proc_pid_smaps(5); pagemap in Linux Documentation/admin-guide/mm/pagemap.rst.
 */
#include <errno.h>
#include <stdio.h>

#include "cdacq/heap.h"
#include "cdacq/stack.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "target/core.h"
#include "target/mapped_path.h"
#include "target/proc_smaps.h"
#include "target/registers.h"
#include "util/binary_search.h"
#include "util/file.h"
#include "util/proc_file.h"
#include "util/sized.h"

enum {
    TEXT_MAX = 1 << 28, /* bytes of smaps; it has some 700 for each mapping */
    PAGES_AT_ONCE = 4096,
    PAGES_MAX = 1 << 26, /* that are looked at one by one: 256 GiB */
};

enum kind { KIND_GC, KIND_CODE, KIND_LOADER, KIND_STACK, KIND_OTHER, KIND_FILE, KIND_COUNT };

/* Memory of a known kind. */
struct range {
    uint64_t begin, end;
    enum kind kind;
};

DEFINE_VECTOR(ranges, struct range);
DEFINE_VECTOR(stack_pointers, uint64_t);

struct survey {
    struct cdacq_session *session;
    struct target *target;
    struct ranges ranges; /* sorted; no overlaps */
    struct stack_pointers stacks;
    uint64_t first_region, last_region; /* GC with regions: the bounds of its only range of addresses */
    bool out_of_memory;
    int pagemap; /* of a process */
    uint64_t pages_left;
    uint64_t bytes[KIND_COUNT], swapped;
};

static void add_range(struct survey *survey, uint64_t begin, uint64_t end, enum kind kind)
{
    if (begin < end && !ranges_append(&survey->ranges, (struct range){begin, end, kind}))
        survey->out_of_memory = true;
}

/* ---- What is known --------------------------------------------------------------------------------------------- */

static int add_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct survey *survey = context;
    uint64_t begin = align_down(segment->begin, PAGE_SIZE);
    add_range(survey, begin, MAX(segment->committed, segment->end), KIND_GC);
    if (segment->generation != CDACQ_GENERATION_FROZEN) { /* those are elsewhere */
        survey->first_region = MIN(survey->first_region, begin);
        survey->last_region = MAX(survey->last_region, MAX(segment->reserved, segment->committed));
    }
    return survey->out_of_memory;
}

static int add_code(const struct cdacq_code_range_info *range, void *context)
{
    struct survey *survey = context;
    if (!strcmp(range->kind, "jit"))
        add_range(survey, range->begin, range->end, KIND_CODE);
    return survey->out_of_memory;
}

static int add_stack(const struct cdacq_thread *thread, void *context)
{
    struct survey *survey = context;
    const struct register_machine *machine = register_machine_find(survey->target->elf_machine);
    uint64_t sp = machine && thread->registers ? thread->registers->values[machine->sp] : 0;
    if (sp && !stack_pointers_append(&survey->stacks, sp))
        survey->out_of_memory = true;
    return survey->out_of_memory;
}

/* Sorts the ranges, and cuts those of a damaged target that overlap. */
static void seal(struct survey *survey)
{
    struct range *items = survey->ranges.items;
    size_t kept = 0;
    uint64_t end = 0;
    sort_u64(items, survey->ranges.count, sizeof *items);
    for (size_t i = 0; i < survey->ranges.count; i++) {
        struct range range = items[i];
        range.begin = MAX(range.begin, end);
        if (range.begin >= range.end)
            continue;
        items[kept++] = range;
        end = range.end;
    }
    survey->ranges.count = kept;
    sort_u64(survey->stacks.items, survey->stacks.count, sizeof *survey->stacks.items);
}

/* What cannot be read is missing in these lists, and is counted as other memory. */
static bool collect(struct survey *survey)
{
    struct cdacq_heap_info info = {.size = sizeof info};
    const struct cdacq_heap_visitor visitor = {.size = sizeof visitor, .segment = add_segment, .context = survey};
    survey->first_region = UINT64_MAX;
    if (cdacq_session_visit_heap(survey->session, &visitor, &info, NULL) >= 0 && info.has_regions)
        add_range(survey, survey->first_region, survey->last_region, KIND_GC);
    (void)cdacq_session_visit_code_ranges(survey->session, add_code, survey, NULL);
    (void)cdacq_session_visit_threads(survey->session, add_stack, survey, NULL);
    seal(survey);
    return !survey->out_of_memory;
}

static bool has_stack(const struct survey *survey, uint64_t begin, uint64_t end)
{
    size_t next = lower_bound(i, survey->stacks.count, survey->stacks.items[i] < begin);
    return next < survey->stacks.count && survey->stacks.items[next] < end;
}

/* The kind of a mapping by its name, apart from the ranges in it. */
static enum kind kind_of(const struct survey *survey, uint64_t begin, uint64_t end, const char *path)
{
    if (strstr(path, "doublemapper"))
        return KIND_LOADER;
    if (path[0] == '/' && !mapped_path_is_memory(path))
        return KIND_FILE;
    return has_stack(survey, begin, end) ? KIND_STACK : KIND_OTHER;
}

/* The next part of [begin, end) that is of one kind. */
static struct range next_part(const struct survey *survey, uint64_t begin, uint64_t end, enum kind otherwise)
{
    size_t next = lower_bound(i, survey->ranges.count, survey->ranges.items[i].end <= begin);
    const struct range *range = next < survey->ranges.count ? &survey->ranges.items[next] : NULL;
    if (range && range->begin <= begin)
        return (struct range){begin, MIN(range->end, end), range->kind};
    return (struct range){begin, range ? MIN(range->begin, end) : end, otherwise};
}

/* ---- A process ------------------------------------------------------------------------------------------------- */

/* Bytes in RAM of a part of a mapping, page by page. */
static uint64_t resident_in(struct survey *survey, uint64_t begin, uint64_t end)
{
    static const uint64_t present = UINT64_C(1) << 63;
    CLEANUP_FREE uint64_t *words = malloc(PAGES_AT_ONCE * sizeof *words);
    uint64_t pages = 0, page = begin / PAGE_SIZE, last = (end + PAGE_SIZE - 1) / PAGE_SIZE;
    while (words && page < last && survey->pages_left) {
        uint64_t wanted = MIN(MIN(last - page, (uint64_t)PAGES_AT_ONCE), survey->pages_left);
        size_t count = file_read_at(survey->pagemap, page * 8, words, (size_t)wanted * 8) / 8;
        for (size_t i = 0; i < count; i++)
            pages += (words[i] & present) != 0;
        survey->pages_left -= wanted;
        page += wanted;
        if (count < wanted)
            break;
    }
    return pages * PAGE_SIZE;
}

static void add_map(struct survey *survey, const struct proc_smap *map)
{
    enum kind kind = kind_of(survey, map->begin, map->end, map->path);
    uint64_t left = map->resident;
    survey->swapped = add_saturated(survey->swapped, map->swapped);
    if (!left)
        return;
    for (uint64_t at = map->begin; at < map->end;) {
        struct range part = next_part(survey, at, map->end, kind);
        bool is_whole = at == map->begin && part.end == map->end;
        uint64_t bytes = is_whole || survey->pagemap < 0 ? left : MIN(left, resident_in(survey, at, part.end));
        survey->bytes[part.kind] += bytes;
        left -= bytes;
        at = part.end;
    }
    survey->bytes[kind] += left; /* came while it was counted */
}

static enum cdacq_status survey_process(struct survey *survey, struct cdacq_error *err)
{
    int pid = survey->target->pid;
    size_t length;
    CLEANUP_CLOSE int fd = proc_file_open(pid, "smaps");
    CLEANUP_FREE char *text = fd < 0 ? NULL : file_read_all(fd, TEXT_MAX, &length);
    if (!text)
        return error_set(err, CDACQ_ERR_IO, 0, "/proc/%d/smaps: %s", pid, strerror(errno));
    survey->pagemap = proc_file_open(pid, "pagemap");
    survey->pages_left = PAGES_MAX;
    struct proc_smap map;
    for (char *rest = text; proc_smaps_next(&rest, &map);)
        add_map(survey, &map);
    if (survey->pagemap >= 0)
        close(survey->pagemap);
    return CDACQ_OK;
}

/* ---- A core ---------------------------------------------------------------------------------------------------- */

static void survey_core(struct survey *survey)
{
    struct core_part part;
    for (uint64_t at = 0; core_next_part(survey->target, at, &part); at = part.end) {
        const struct mapping *mapping = target_mapping_at(survey->target, part.begin);
        if (mapping)
            part.end = MIN(part.end, mapping->end);
        if (part.file) /* the core has nothing of it */
            continue;
        enum kind kind = kind_of(survey, part.begin, part.end, mapping ? mapping->path : "");
        for (uint64_t from = part.begin; from < part.end;) {
            struct range piece = next_part(survey, from, part.end, kind);
            survey->bytes[piece.kind] += piece.end - from;
            from = piece.end;
        }
    }
}

/* ---- The call -------------------------------------------------------------------------------------------------- */

static enum cdacq_status survey_target(struct survey *survey, struct cdacq_error *err)
{
    if (!collect(survey))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (survey->target->kind == CDACQ_TARGET_PROCESS)
        return survey_process(survey, err);
    survey_core(survey);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_get_memory_use(struct cdacq_session *session, struct cdacq_memory_use *ret,
                                               struct cdacq_error *err)
{
    if (!session)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session");
    enum cdacq_status status = sized_check(ret, "struct cdacq_memory_use", err);
    struct survey survey = {.session = session, .target = session->resolver.target->memory};
    bool is_process = survey.target->kind == CDACQ_TARGET_PROCESS;
    if (status >= 0 && !is_process && survey.target->kind != CDACQ_TARGET_CORE)
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "only a core or a process has a list of its memory");
    if (status >= 0)
        status = survey_target(&survey, err);
    ranges_deinit(&survey.ranges);
    stack_pointers_deinit(&survey.stacks);
    if (status < 0)
        return status;
    sized_copy(ret,
               &(struct cdacq_memory_use){.is_resident = is_process,
                                          .gc = survey.bytes[KIND_GC],
                                          .code = survey.bytes[KIND_CODE],
                                          .loader = survey.bytes[KIND_LOADER],
                                          .stacks = survey.bytes[KIND_STACK],
                                          .other = survey.bytes[KIND_OTHER],
                                          .files = survey.bytes[KIND_FILE],
                                          .swapped = survey.swapped},
               sizeof *ret);
    return CDACQ_OK;
}
