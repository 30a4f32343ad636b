#include "src/cli/commands/call_profile.h"

#include <inttypes.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "util/base.h"
#include "util/crc32.h"

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

static bool write_folded(struct output *out, struct call_paths *paths)
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

/* A sample for each different path, with what it stands for as its weight; sorts them. */
static void write_speedscope(struct output *out, struct call_paths *paths, const char *name, const char *unit)
{
    struct json_writer writer = json_begin_line(out), *w = &writer;
    uint64_t total = 0, count;
    call_paths_sort(paths);
    json_string(w, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_string(w, "exporter", "cdacq");
    json_string(w, "name", name);
    json_number(w, "activeProfileIndex", 0);
    write_labels(w, paths);
    json_begin_array(w, "profiles");
    json_begin_object(w, NULL);
    json_string(w, "type", "sampled");
    json_string(w, "name", unit);
    json_string(w, "unit", "none");
    json_number(w, "startValue", 0);
    for (size_t i = 0; i < paths->list.count; i++)
        total += paths->list.items[i].count;
    json_number(w, "endValue", total);
    json_begin_array(w, "samples");
    for (size_t i = 0; i < paths->list.count && !output_failed(out); i = call_paths_equal(paths, i, &count))
        write_sample(w, paths, &paths->list.items[i]);
    json_end_array(w);
    json_begin_array(w, "weights");
    for (size_t i = 0; i < paths->list.count && !output_failed(out);) {
        i = call_paths_equal(paths, i, &count);
        json_number(w, NULL, count);
    }
    json_end_array(w);
    json_end_object(w);
    json_end_array(w);
    json_end_line(w);
}

/* ---- Pprof ---- */

/* Numbers of fields. Source: github.com/google/pprof, proto/profile.proto; protobuf.dev, "Encoding". */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    VALUE_TYPE = 1,
    VALUE_UNIT = 2,
    SAMPLE_LOCATIONS = 1,
    SAMPLE_VALUES = 2,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_NUMBER = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_FILE = 4,
    STORED_MAX = 65535, /* bytes of a block of gzip that is not compressed */
};

static void pprof_varint(struct output *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    output_bytes(out, bytes, size);
}

static void pprof_number(struct output *out, unsigned field, uint64_t value)
{
    pprof_varint(out, field << 3);
    pprof_varint(out, value);
}

static void pprof_field(struct output *out, unsigned field, const void *bytes, size_t size)
{
    pprof_varint(out, field << 3 | 2);
    pprof_varint(out, size);
    output_bytes(out, bytes, size);
}

/* Appends a message as a field, and empties it. */
static void pprof_message(struct output *out, unsigned field, struct output *message)
{
    pprof_field(out, field, message->data, message->length);
    message->length = 0;
}

/* Strings: "", the kind and the unit, then name and file of each label. */
enum { STRING_UNIT = 1, STRING_COUNT, STRING_LABELS };

static void put_strings(struct output *profile, const struct call_paths *paths, const char *unit)
{
    pprof_field(profile, PROFILE_STRING, "", 0);
    pprof_field(profile, PROFILE_STRING, unit, strlen(unit));
    pprof_field(profile, PROFILE_STRING, "count", 5);
    for (size_t i = 0; i < paths->labels.count; i++) {
        const struct call_label *label = &paths->labels.items[i];
        const char *file = label->file ? label->file : label->module ? label->module : "";
        pprof_field(profile, PROFILE_STRING, label->text, strlen(label->text));
        pprof_field(profile, PROFILE_STRING, file, strlen(file));
    }
}

/* A function is a label, and a location a site; both are numbered from 1. */
static void put_places(struct output *profile, const struct call_paths *paths, struct output *part, struct output *line)
{
    for (size_t i = 0; i < paths->labels.count; i++) {
        pprof_number(part, FUNCTION_ID, i + 1);
        pprof_number(part, FUNCTION_NAME, STRING_LABELS + 2 * i);
        pprof_number(part, FUNCTION_FILE, STRING_LABELS + 2 * i + 1);
        pprof_message(profile, PROFILE_FUNCTION, part);
    }
    for (size_t i = 0; i < paths->sites.count; i++) {
        pprof_number(line, LINE_FUNCTION, paths->sites.items[i].label + UINT64_C(1));
        pprof_number(line, LINE_NUMBER, paths->sites.items[i].line);
        pprof_number(part, LOCATION_ID, i + 1);
        pprof_message(part, LOCATION_LINE, line);
        pprof_message(profile, PROFILE_LOCATION, part);
    }
}

static void put_samples(struct output *profile, const struct call_paths *paths, struct output *part,
                        struct output *packed)
{
    for (size_t i = 0; i < paths->list.count; i++) {
        const struct call_path *path = &paths->list.items[i];
        for (size_t depth = path->length; depth-- > 0;)
            pprof_varint(packed, call_path_site(paths, path, depth) + UINT64_C(1));
        pprof_message(part, SAMPLE_LOCATIONS, packed);
        pprof_varint(packed, path->count);
        pprof_message(part, SAMPLE_VALUES, packed);
        pprof_message(profile, PROFILE_SAMPLE, part);
    }
}

/* The form of RFC 1952, whose blocks (RFC 1951) hold the bytes as they are. */
static void put_gzip(struct output *out, const char *bytes, size_t size)
{
    static const uint8_t header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    uint8_t block[5], trailer[8];
    output_bytes(out, header, sizeof header);
    for (size_t done = 0, n; done < size && !output_failed(out); done += n) {
        n = MIN(size - done, (size_t)STORED_MAX);
        block[0] = done + n == size;
        store_u16(block + 1, (uint16_t)n, false);
        store_u16(block + 3, (uint16_t)~n, false);
        output_bytes(out, block, sizeof block);
        output_bytes(out, bytes + done, n);
    }
    store_u32(trailer, crc32_of(bytes, size), false);
    store_u32(trailer + 4, (uint32_t)size, false);
    output_bytes(out, trailer, sizeof trailer);
}

static void write_pprof(struct output *out, const struct call_paths *paths, const char *unit)
{
    struct output profile, part, inner;
    output_open_memory(&profile);
    output_open_memory(&part);
    output_open_memory(&inner);
    pprof_number(&part, VALUE_TYPE, STRING_UNIT);
    pprof_number(&part, VALUE_UNIT, STRING_COUNT);
    pprof_message(&profile, PROFILE_SAMPLE_TYPE, &part);
    put_samples(&profile, paths, &part, &inner);
    put_places(&profile, paths, &part, &inner);
    put_strings(&profile, paths, unit);
    put_gzip(out, profile.data, profile.length);
    output_abandon(&profile);
    output_abandon(&part);
    output_abandon(&inner);
}

bool call_profile_is_wanted(const struct common_options *options)
{
    return options->folded || options->speedscope || options->pprof;
}

bool call_profile_write(struct output *out, struct call_paths *paths, const struct common_options *options,
                        const char *name, const char *unit)
{
    if (options->speedscope)
        write_speedscope(out, paths, name, unit);
    else if (options->pprof)
        write_pprof(out, paths, unit);
    else
        return write_folded(out, paths);
    return true;
}
