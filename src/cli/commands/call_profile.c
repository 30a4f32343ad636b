#include "src/cli/commands/call_profile.h"

#include <inttypes.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"

enum { LINE_MAX_BYTES = 192 * 1024 }; /* 'cdacq flame' reads 256 KiB */

/* ---- Folded stacks ---- */

static size_t length_at(const struct call_paths *paths, const struct call_path *path, size_t depth)
{
    return strlen(paths->labels.items[call_path_label(paths, path, depth)].text) + 1;
}

/* Writes a frame; a ';' would end it. */
static void write_step(struct output *out, const struct call_paths *paths, const struct call_path *path, size_t depth)
{
    const char *text = paths->labels.items[call_path_label(paths, path, depth)].text;
    char *p = output_reserve(out, strlen(text) + 1);
    if (depth)
        *p++ = ';';
    for (; *text; text++)
        *p++ = *text == ';' ? ':' : *text;
    output_commit(out, p);
}

/* Which frames in the middle are left out: those from *ret_begin to *ret_end. */
static bool is_cut(const struct call_paths *paths, const struct call_path *path, size_t *ret_begin, size_t *ret_end)
{
    size_t begin = 0, end = path->length;
    for (size_t room = LINE_MAX_BYTES / 2; begin < end && length_at(paths, path, begin) <= room; begin++)
        room -= length_at(paths, path, begin);
    for (size_t room = LINE_MAX_BYTES / 2; end > begin && length_at(paths, path, end - 1) <= room; end--)
        room -= length_at(paths, path, end - 1);
    *ret_begin = begin;
    *ret_end = end;
    return begin < end;
}

bool call_profile_write_folded(struct output *out, struct call_paths *paths)
{
    uint64_t cut = 0;
    call_paths_sort(paths);
    for (size_t i = 0; i < paths->list.count && !output_failed(out);) {
        const struct call_path *path = &paths->list.items[i];
        size_t begin, end;
        uint64_t count;
        cut += is_cut(paths, path, &begin, &end);
        for (size_t depth = 0; depth < begin; depth++)
            write_step(out, paths, path, depth);
        if (begin < end)
            output_printf(out, "%s[%zu frames left out]", begin ? ";" : "", end - begin);
        for (size_t depth = end; depth < path->length; depth++)
            write_step(out, paths, path, depth);
        i = call_paths_equal(paths, i, &count);
        output_printf(out, " %" PRIu64 "\n", count);
    }
    if (cut)
        message("%" PRIu64 " stack%s cut: frames in the middle are left out", cut, plural(cut));
    return !cut;
}

/* ---- Speedscope ---- */

static void write_labels(struct json_writer *w, const struct call_paths *paths)
{
    json_begin_object(w, "shared");
    json_begin_array(w, "frames");
    for (size_t i = 0; i < paths->labels.count && !output_failed(w->out); i++) {
        const struct call_label *label = &paths->labels.items[i];
        json_begin_object(w, NULL);
        json_note(w, "name", label->text);
        if (label->file)
            json_string(w, "file", label->file);
        else if (label->module)
            json_note(w, "file", label->module);
        if (label->line)
            json_number(w, "line", label->line);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static void write_sample(struct json_writer *w, const struct call_paths *paths, const struct call_path *path)
{
    json_begin_array(w, NULL);
    for (size_t depth = 0; depth < path->length; depth++)
        json_number(w, NULL, call_path_label(paths, path, depth));
    json_end_array(w);
}

void call_profile_write_speedscope(struct output *out, const struct call_paths *paths, const char *name)
{
    struct json_writer writer = json_begin_line(out), *w = &writer;
    const struct call_path *items = paths->list.items;
    uint64_t total = 0;
    json_string(w, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_string(w, "exporter", "cdacq");
    json_string(w, "name", name);
    json_number(w, "activeProfileIndex", 0);
    write_labels(w, paths);
    json_begin_array(w, "profiles");
    json_begin_object(w, NULL);
    json_string(w, "type", "sampled");
    json_string(w, "name", "threads");
    json_string(w, "unit", "none");
    json_number(w, "startValue", 0);
    for (size_t i = 0; i < paths->list.count; i++)
        total += items[i].count;
    json_number(w, "endValue", total);
    json_begin_array(w, "samples");
    for (size_t i = 0; i < paths->list.count; i++)
        for (uint64_t k = 0; k < items[i].count && !output_failed(out); k++)
            write_sample(w, paths, &items[i]);
    json_end_array(w);
    json_begin_array(w, "weights");
    for (uint64_t i = 0; i < total && !output_failed(out); i++)
        json_number(w, NULL, 1);
    json_end_array(w);
    json_end_object(w);
    json_end_array(w);
    json_end_line(w);
}
