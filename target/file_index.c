#include "target/file_index.h"

#include <fts.h>
#include <sys/types.h>

#include "util/binary_search.h"

static int compare_entries(const void *a, const void *b)
{
    const struct file_index_entry *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : strcmp(x->path, y->path);
}

void file_index_deinit(struct file_index *index)
{
    for (size_t i = 0; i < index->entries.count; i++) {
        free(index->entries.items[i].path);
        free(index->entries.items[i].tag);
    }
    file_entries_deinit(&index->entries);
}

static bool add(struct file_entries *entries, const char *path)
{
    CLEANUP_FREE char *copy = strdup(path);
    if (!copy || !file_entries_append(entries, (struct file_index_entry){path_basename(copy), copy, NULL}))
        return false;
    copy = NULL;
    return true;
}

/*
 * Links to directories are not followed, so cycles are harmless; links count, as in .build-id folders. Where they lead
 * is found when they are opened.
 */
static bool may_be_file(const FTSENT *entry)
{
    return entry->fts_info == FTS_F || entry->fts_info == FTS_SL;
}

bool file_index_build(const char *directory, struct file_index *ret)
{
    struct file_index index = {0};
    bool stored = true;
    char *const roots[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL);
    FTSENT *entry;
    while (tree && stored && (entry = fts_read(tree))) {
        if (entry->fts_level > FILE_INDEX_DEPTH_MAX && entry->fts_info == FTS_D) {
            fts_set(tree, entry, FTS_SKIP);
            index.cut = true;
        } else if (may_be_file(entry)) {
            index.cut |= index.entries.count == FILE_INDEX_MAX;
            if (index.entries.count == FILE_INDEX_MAX)
                break;
            stored = add(&index.entries, entry->fts_path);
        }
    }
    if (tree)
        fts_close(tree);
    if (!stored) {
        file_index_deinit(&index);
        return false;
    }
    if (index.entries.count) /* qsort must not be given NULL */
        qsort(index.entries.items, index.entries.count, sizeof *index.entries.items, compare_entries);
    *ret = index;
    return true;
}

struct file_index_entry *file_index_find(struct file_index *index, const char *name, size_t *ret_count)
{
    struct file_index_entry *items = index->entries.items;
    size_t count = index->entries.count;
    size_t first = lower_bound(i, count, strcmp(items[i].name, name) < 0), end = first;
    while (end < count && strcmp(items[end].name, name) == 0)
        end++;
    *ret_count = end - first;
    return end > first ? &items[first] : NULL;
}

void file_index_set_tag(struct file_index_entry *entry, const struct file_tag *tag)
{
    if (!entry->tag)
        entry->tag = malloc(sizeof *entry->tag);
    if (entry->tag)
        *entry->tag = *tag;
}
