#include "target/file_index.h"

#include <fts.h>
#include <sys/stat.h>

static int compare_entries(const void *a, const void *b)
{
    const struct file_index_entry *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : strcmp(x->path, y->path);
}

void file_index_deinit(struct file_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->entries[i].path);
    free(index->entries);
    *index = (struct file_index){0};
}

static bool add(struct file_index *index, const char *path, size_t *capacity)
{
    if (index->count == *capacity) {
        *capacity = MAX(*capacity * 2, (size_t)256);
        struct file_index_entry *entries = realloc(index->entries, *capacity * sizeof *entries);
        if (!entries)
            return false;
        index->entries = entries;
    }
    char *copy = strdup(path);
    if (!copy)
        return false;
    index->entries[index->count++] = (struct file_index_entry){path_basename(copy), copy};
    return true;
}

/* A link is no way down, so that a circle of links is none; but a link to a file is a file, as in .build-id folders. */
static bool is_file(const FTSENT *entry)
{
    struct stat st;
    return entry->fts_info == FTS_F ||
           (entry->fts_info == FTS_SL && stat(entry->fts_accpath, &st) == 0 && S_ISREG(st.st_mode));
}

bool file_index_build(const char *directory, struct file_index *ret)
{
    struct file_index index = {0};
    size_t capacity = 0;
    bool stored = true;
    char *const roots[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL);
    FTSENT *entry;
    while (tree && stored && (entry = fts_read(tree))) {
        if (entry->fts_level > FILE_INDEX_DEPTH_MAX && entry->fts_info == FTS_D) {
            fts_set(tree, entry, FTS_SKIP);
            index.cut = true;
        } else if (is_file(entry)) {
            index.cut |= index.count == FILE_INDEX_MAX;
            if (index.cut && index.count == FILE_INDEX_MAX)
                break;
            stored = add(&index, entry->fts_path, &capacity);
        }
    }
    if (tree)
        fts_close(tree);
    if (!stored) {
        file_index_deinit(&index);
        return false;
    }
    if (index.count)
        qsort(index.entries, index.count, sizeof *index.entries, compare_entries);
    *ret = index;
    return true;
}

const struct file_index_entry *file_index_find(const struct file_index *index, const char *name, size_t *ret_count)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(index->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < index->count && strcmp(index->entries[end].name, name) == 0)
        end++;
    *ret_count = end - low;
    return end > low ? &index->entries[low] : NULL;
}
