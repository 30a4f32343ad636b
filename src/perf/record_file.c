#include "src/perf/record_file.h"

#include <errno.h>
#include <inttypes.h>

#include "util/binary_search.h"
#include "util/file.h"
#include "util/file_root.h"
#include "formats/jitdump.h"

enum {
    BLOCK = 64 * 1024,
    LINE_MAX_SIZE = 1024 * 1024, /* far above the longest name of a runtime (TEXT_CAP) */
};

static enum cdacq_status io_error(const struct record_file *file, struct cdacq_error *err, const char *why)
{
    char path[160];
    return error_set(err, CDACQ_ERR_IO, 0, "cannot read '%s': %s", error_printable(path, sizeof path, file->path), why);
}

static struct moved_load *find_moved(const struct moved_loads *moved, uint64_t load)
{
    struct moved_load *items = moved->items;
    size_t first = lower_bound(i, moved->count, items[i].load < load);
    return first < moved->count && items[first].load == load ? &items[first] : NULL;
}

static int take_place(const struct cdacq_jitdump_place *place, void *context)
{
    struct moved_load *moved = find_moved(context, place->load);
    if (moved)
        *moved = (struct moved_load){place->load, place->vma, place->code_addr, place->timestamp};
    return 0;
}

/* Finds where functions were moved. What cannot be read is reported when the records are. */
static enum cdacq_status find_moves(struct record_file *file, struct cdacq_error *err)
{
    struct cdacq_jitdump *jitdump = NULL;
    struct cdacq_jitdump_record record = {.size = sizeof record};
    enum cdacq_status status = cdacq_jitdump_open(file->path, 0, &jitdump, err);
    while (status == CDACQ_OK && cdacq_jitdump_next(jitdump, &record, NULL) == CDACQ_OK) {
        const struct moved_load moved = {record.as.move.load, record.as.move.vma, record.as.move.new_code_addr,
                                         record.timestamp};
        if (record.kind == CDACQ_JITDUMP_MOVE && moved.load && !moved_loads_append(&file->moved, moved))
            status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    if (file->moved.count) {
        sort_u64(file->moved.items, file->moved.count, sizeof *file->moved.items);
        (void)cdacq_jitdump_visit_places(jitdump, take_place, &file->moved, NULL);
    }
    cdacq_jitdump_close(jitdump);
    return status;
}

enum cdacq_status record_file_open(const char *path, struct record_file *ret, struct cdacq_error *err)
{
    struct record_file file = {.fd = -1, .path = strdup(path)};
    enum cdacq_status status = CDACQ_OK;
    struct stat st;
    uint8_t magic[4] = {0};
    if (!file.path)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    file.fd = file_open_regular(path, &st);
    if (file.fd < 0)
        status = io_error(&file, err, errno == EINVAL ? "it is not a regular file" : strerror(errno));
    else if (file_read_at(file.fd, 0, magic, sizeof magic) < sizeof magic && errno)
        status = io_error(&file, err, strerror(errno));
    else if (jitdump_is_magic(magic))
        status = cdacq_jitdump_open(path, CDACQ_JITDUMP_CODE, &file.jitdump, err);
    if (file.jitdump)
        status = find_moves(&file, err);
    if (status < 0) {
        record_file_close(&file);
        return status;
    }
    file.size = (uint64_t)st.st_size;
    *ret = file;
    return CDACQ_OK;
}

void record_file_close(struct record_file *file)
{
    cdacq_jitdump_close(file->jitdump);
    if (file->fd >= 0)
        close(file->fd);
    lines_deinit(&file->lines);
    moved_loads_deinit(&file->moved);
    free(file->path);
    *file = (struct record_file){.fd = -1};
}

enum cdacq_status record_file_rewind(struct record_file *file, struct cdacq_error *err)
{
    if (file->jitdump) {
        struct cdacq_jitdump *again;
        enum cdacq_status status = cdacq_jitdump_open(file->path, CDACQ_JITDUMP_CODE, &again, err);
        if (status < 0)
            return status;
        cdacq_jitdump_close(file->jitdump);
        file->jitdump = again;
    }
    file->count = file->read = file->line = 0;
    file->next = file->lines.count = 0;
    file->skipping = file->cut = false;
    return CDACQ_OK;
}

/* ---- jitdump ----------------------------------------------------------------------------------------------------- */

static enum cdacq_status next_load(struct record_file *file, struct file_record *ret, struct cdacq_error *err)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    enum cdacq_status status;
    while ((status = cdacq_jitdump_next(file->jitdump, &record, &file->problem)) == CDACQ_OK &&
           record.kind != CDACQ_JITDUMP_LOAD && !(record.kind == CDACQ_JITDUMP_MOVE && record.error)) {
        file->has_header = true;
        if (record.kind == CDACQ_JITDUMP_HEADER)
            file->pid = record.as.header.pid;
    }
    if (status == CDACQ_ERR_FORMAT && file->has_header) { /* the records before it are valid */
        file->cut = true;
        return CDACQ_DONE;
    }
    if (status != CDACQ_OK) {
        if (status < 0 && err)
            *err = file->problem;
        return status;
    }
    if (record.kind == CDACQ_JITDUMP_MOVE) { /* it says in vain where a function is */
        *ret = (struct file_record){.number = ++file->count,
                                    .offset = record.offset,
                                    .timestamp = record.timestamp,
                                    .address = record.as.move.vma,
                                    .size = record.as.move.code_size,
                                    .problem = record.error};
        return CDACQ_OK;
    }
    const struct cdacq_jitdump_load *load = &record.as.load;
    const struct moved_load *moved = find_moved(&file->moved, record.offset);
    *ret = (struct file_record){
        .number = ++file->count,
        .offset = record.offset,
        .timestamp = moved ? moved->timestamp : record.timestamp,
        .address = moved ? moved->code_addr : load->code_addr,
        .size = load->code_size,
        .name = load->name,
        .name_length = load->name_length,
        .code = load->code,
        .addresses_differ = moved ? moved->vma != moved->code_addr : load->vma != load->code_addr,
        .problem = !record.has_fields || !load->name ? record.error : NULL,
    };
    return CDACQ_OK;
}

/* ---- perf map ---------------------------------------------------------------------------------------------------- */

/* Reads more bytes after those that are left. CDACQ_DONE: there are no more. */
static enum cdacq_status fill(struct record_file *file, struct cdacq_error *err)
{
    struct lines *lines = &file->lines;
    if (file->skipping) { /* no line ends in a hole, which may be of any size */
        uint64_t data = file_find_data(file->fd, file->read);
        file->read = MAX(file->read, MIN(data, file->size));
    }
    size_t left = lines->count - file->next;
    if (left && file->next)
        memmove(lines->items, lines->items + file->next, left);
    lines->count = left;
    file->next = 0;
    if (left + 1 >= lines->capacity && !lines_reserve(lines, left + BLOCK)) /* one byte is for a NUL */
        return error_set(err, CDACQ_ERR_NOMEM, 0, "perf map: out of memory");
    size_t size = (size_t)MIN((uint64_t)(lines->capacity - left - 1), file->size - file->read);
    size_t n = file_read_at(file->fd, file->read, lines->items + left, size);
    if (!n && errno)
        return io_error(file, err, strerror(errno));
    lines->count += n;
    file->read += n;
    return n ? CDACQ_OK : CDACQ_DONE;
}

static void take_line(struct record_file *file, size_t length, bool whole, struct file_record *ret)
{
    struct perf_map map;
    struct perf_map_symbol symbol = {0};
    const char *problem = NULL;
    char *text = file->lines.items + file->next;
    *ret = (struct file_record){.offset = file->read - (file->lines.count - file->next),
                                .line = file->line,
                                .text = text,
                                .text_length = length,
                                .unfinished = !whole};
    while (ret->text_length && text[ret->text_length - 1] == '\r')
        ret->text_length--;
    perf_map_open(text, length, &map);
    enum perf_map_result result = perf_map_next(&map, &symbol, &problem);
    file->next += length + whole;
    if (result == PERF_MAP_END)
        return;
    ret->number = ++file->count;
    ret->problem = problem;
    ret->address = symbol.address;
    ret->size = symbol.size;
    ret->name = symbol.name;
    ret->name_length = symbol.name_length;
    if (symbol.name)
        text[symbol.name - text + (ptrdiff_t)symbol.name_length] = '\0'; /* its end, or the byte after the last line */
}

/* The next line that is not empty. */
static enum cdacq_status next_line(struct record_file *file, struct file_record *ret, struct cdacq_error *err)
{
    for (;;) {
        size_t left = file->lines.count - file->next;
        char *line = file->lines.items ? file->lines.items + file->next : NULL;
        char *end = left ? memchr(line, '\n', left) : NULL;
        enum cdacq_status status = CDACQ_OK;
        if (!end && left < LINE_MAX_SIZE)
            status = fill(file, err);
        if (status < 0 || (status == CDACQ_DONE && !left))
            return status;
        if (!end && left < LINE_MAX_SIZE && status == CDACQ_OK)
            continue;
        bool too_long = !end && status == CDACQ_OK, rest = file->skipping;
        size_t length = end ? (size_t)(end - line) : left;
        file->skipping = too_long;
        if (rest) { /* of a line that was reported already */
            file->next += length + !!end;
            continue;
        }
        file->line++;
        take_line(file, length, !!end, ret);
        if (too_long) {
            ret->problem = "it is too long";
            ret->unfinished = false;
        }
        if (!ret->number)
            continue;
        file->cut = ret->unfinished;
        return CDACQ_OK;
    }
}

enum cdacq_status record_file_next(struct record_file *file, struct file_record *ret, struct cdacq_error *err)
{
    return file->jitdump ? next_load(file, ret, err) : next_line(file, ret, err);
}
