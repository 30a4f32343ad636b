#include "target/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "target/mapped_path.h"
#include "util/file.h"
#include "util/proc_file.h"

enum {
    TEXT_MAX = 1 << 30, /* bytes: vm.max_map_count is 65,530 by default */
    MAPS_MAX = 1 << 22,
};

/* The kernel's struct procmap_query, which older headers lack. */
struct query {
    uint64_t size, flags, address;
    uint64_t begin, end, access, page_size, offset, inode;
    uint32_t device_major, device_minor;
    uint32_t name_size, build_id_size;
    uint64_t name, build_id;
};

enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4 };                    /* of `access`; in `flags`: only such */
enum { OR_NEXT = 0x10, OF_FILE = 0x20, NEXT_FILE = OR_NEXT | OF_FILE }; /* of `flags` */

#define PROCMAP_QUERY _IOWR('f', 17, struct query)

int proc_maps_open(int pid)
{
    return proc_file_open(pid, "maps");
}

/* The mapping around an address, or as the flags have it. `name` has room for NAME bytes, or is NULL. */
static bool ask(int file, uint64_t address, uint64_t flags, char *name, struct proc_map *ret)
{
    struct query query = {.size = sizeof query,
                          .flags = flags,
                          .address = address,
                          .name = (uintptr_t)name,
                          .name_size = name ? PROC_MAPS_NAME : 0};
    if (ioctl(file, PROCMAP_QUERY, &query) < 0)
        return false;
    *ret = (struct proc_map){
        .begin = query.begin,
        .end = query.end,
        .offset = query.offset,
        .device = makedev(query.device_major, query.device_minor),
        .inode = query.inode,
        .path = name && query.name_size ? name : "",
        .readable = query.access & READABLE,
        .writable = query.access & WRITABLE,
        .executable = query.access & EXECUTABLE,
    };
    return true;
}

/* A path that is not absolute is that of something else. */
static bool is_listed(const struct proc_map *map)
{
    return map->path[0] == '/';
}

/* Whether a listing has it. */
static bool is_wanted(const struct proc_maps *maps, const struct proc_map *map)
{
    return is_listed(map) || (maps->nameless && map->device);
}

bool proc_maps_part_at(int file, uint64_t address, char *name, struct proc_map *ret)
{
    struct proc_map next = {.begin = UINT64_MAX, .path = ""};
    if (address == UINT64_MAX) { /* nothing is mapped there, and no end is above it */
        errno = ENOENT;
        return false;
    }
    bool is_told = ask(file, address, OR_NEXT, name, &next) ||
                   (errno == ENAMETOOLONG && ask(file, address, OR_NEXT, NULL, &next)) || errno == ENOENT;
    if (!is_told)
        return false;
    *ret = next.begin > address ? (struct proc_map){.begin = address, .end = next.begin} : next;
    if (ret->path && !is_listed(ret))
        ret->path = NULL;
    return true;
}

int proc_maps_begin(int file, bool executable, struct proc_maps *ret)
{
    struct proc_map map;
    size_t length;
    int problem = ask(file, 0, NEXT_FILE, NULL, &map) ? 0 : errno;
    *ret = (struct proc_maps){.file = file, .fuel = MAPS_MAX, .executable = executable};
    ret->queries = !problem || problem == ENOENT || problem == ESRCH;
    if (ret->queries)
        return problem == ESRCH ? ESRCH : 0;
    ret->text = file_read_all(file, TEXT_MAX, &length);
    ret->rest = ret->text;
    return !ret->text ? errno : !length ? ESRCH : 0;
}

void proc_maps_end(struct proc_maps *maps)
{
    free(maps->text);
    maps->text = maps->rest = NULL;
}

/* Reads a number in front of `after`, and skips both. sscanf() would take a third of the time to open a process. */
static bool parse_number(char **text, unsigned base, char after, uint64_t *ret)
{
    uint64_t value = 0;
    const char *begin = *text;
    for (;; (*text)++) {
        unsigned digit = digit_value(**text);
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    if (*text == begin || **text != after)
        return false;
    (*text)++;
    *ret = value;
    return true;
}

/* A line is "begin-end perms offset device inode   path". */
static bool parse_line(char *line, struct proc_map *ret)
{
    uint64_t major, minor;
    char *text = line;
    if (!parse_number(&text, 16, '-', &ret->begin) || !parse_number(&text, 16, ' ', &ret->end) ||
        strcspn(text, " ") != 4)
        return false;
    ret->readable = text[0] == 'r';
    ret->writable = text[1] == 'w';
    ret->executable = text[2] == 'x';
    text += 5;
    if (!parse_number(&text, 16, ' ', &ret->offset) || !parse_number(&text, 16, ':', &major) ||
        !parse_number(&text, 16, ' ', &minor) || !parse_number(&text, 10, ' ', &ret->inode))
        return false;
    ret->device = makedev((unsigned)major, (unsigned)minor);
    text += strspn(text, " ");
    mapped_path_unescape(text);
    ret->path = text;
    return ret->begin < ret->end;
}

static bool is_memfd(const char *path)
{
    return strncmp(path, "/memfd:", strlen("/memfd:")) == 0;
}

/*
 * A path takes longer than the rest of a mapping, and hundreds may follow each other of one file without a name, with
 * which .NET maps its heaps: after one of them, the path is asked for only if the next is of another file. Other files
 * may share a device and an inode number on file systems with subvolumes.
 */
static bool ask_next(struct proc_maps *maps, struct proc_map *ret)
{
    uint64_t flags = NEXT_FILE | (maps->executable ? EXECUTABLE : 0);
    bool is_same = maps->inode && ask(maps->file, maps->next, flags, NULL, ret) && ret->inode == maps->inode &&
                   ret->device == maps->device;
    if (is_same)
        ret->path = maps->name;
    else if (!ask(maps->file, maps->next, flags, maps->name, ret))
        return errno == ENAMETOOLONG && ask(maps->file, maps->next, flags, NULL, ret);
    bool has_no_name = is_memfd(ret->path);
    maps->device = has_no_name ? ret->device : 0;
    maps->inode = has_no_name ? ret->inode : 0;
    return true;
}

bool proc_maps_next(struct proc_maps *maps, struct proc_map *ret)
{
    if (!maps->queries) {
        for (char *line; (line = strsep(&maps->rest, "\n"));)
            if (parse_line(line, ret) && ret->end > maps->next && is_wanted(maps, ret) &&
                (ret->executable || !maps->executable))
                return true;
        return false;
    }
    while (maps->fuel && ask_next(maps, ret) && ret->end > maps->next) {
        maps->fuel--;
        maps->next = ret->end;
        if (is_wanted(maps, ret))
            return true;
    }
    return false;
}
