#include "src/perf/elf_debug.h"

#include "formats/debug_info.h"
#include "src/api/source_lines.h"
#include "util/binary_search.h"

enum { NO_METHOD = UINT32_MAX, FILES_MAX = 1024 /* of a unit; lines of other files are left out */ };

struct debug_method {
    const char *name;
    const struct method_record *record;
    uint64_t begin, size, cold_begin, cold_size;
    uint32_t name_length, next; /* the next method of the unit, or NO_METHOD */
};

struct debug_unit {
    const char *name;
    uint32_t first, last;
    bool has_lines;
};

struct unit_index {
    uint64_t key;
    uint32_t index;
};

static uint64_t unit_key(const struct unit_index *unit)
{
    return unit->key;
}

DEFINE_VECTOR_FUNCTIONS(debug_methods, struct debug_method);
DEFINE_VECTOR_FUNCTIONS(debug_units, struct debug_unit);
DEFINE_HASH_TABLE_FUNCTIONS(unit_indexes, struct unit_index, uint64_t, unit_key, hash_u64, equal_u64);
DEFINE_VECTOR(documents, const char *);

void elf_debug_init(struct elf_debug *debug, const struct cdacq_target *target, unsigned code_factor)
{
    bool big = target->descriptor_info.big_endian;
    *debug = (struct elf_debug){.word_size = target->descriptor_info.pointer_size, .code_factor = (uint8_t)code_factor};
    debug->info.big_endian = debug->abbreviations.big_endian = debug->ranges.big_endian = big;
    debug->address_ranges.big_endian = debug->lines.big_endian = big;
}

void elf_debug_deinit(struct elf_debug *debug)
{
    debug_methods_deinit(&debug->methods);
    debug_units_deinit(&debug->units);
    unit_indexes_deinit(&debug->indexes);
    byte_writer_deinit(&debug->info);
    byte_writer_deinit(&debug->abbreviations);
    byte_writer_deinit(&debug->ranges);
    byte_writer_deinit(&debug->address_ranges);
    byte_writer_deinit(&debug->lines);
}

/* ---- Methods and units ---- */

/* The first line of a method whose file is known. NULL if there is none. */
static const struct source_point *first_point(const struct method_record *record)
{
    for (uint32_t i = 0; record && record->il_point_count && i < record->source_point_count; i++)
        if (record->source_points[i].document)
            return &record->source_points[i];
    return NULL;
}

/* The unit for a key. NULL when out of memory. */
static struct debug_unit *unit_for(struct elf_debug *debug, uint64_t key, const char *name, bool has_lines)
{
    bool added;
    struct unit_index *index =
        unit_indexes_insert(&debug->indexes, (struct unit_index){key, (uint32_t)debug->units.count}, &added);
    if (!index ||
        (added && !debug_units_append(&debug->units, (struct debug_unit){name, NO_METHOD, NO_METHOD, has_lines})))
        return NULL;
    return &debug->units.items[index->index];
}

void elf_debug_add(struct elf_debug *debug, const struct cdacq_method *method, const struct method_record *record)
{
    const struct source_point *point = first_point(record);
    const char *name = point ? point->document->file : method->module ? method->module : "[dynamic]";
    /* Names and documents live as long as the session, each at an address of its own. */
    uint64_t key = point ? (uintptr_t)point->document : (uintptr_t)method->module;
    struct debug_unit *unit = unit_for(debug, key, name, point != NULL);
    uint32_t index = (uint32_t)debug->methods.count;
    struct debug_method added = {
        .name = method->name,
        .record = point ? record : NULL,
        .begin = method->code_start,
        .size = method->code_size,
        .cold_begin = method->cold_start,
        .cold_size = method->cold_size,
        .name_length = (uint32_t)method->name_length,
        .next = NO_METHOD,
    };
    if (!unit || index == NO_METHOD || !debug_methods_append(&debug->methods, added)) {
        debug->no_memory = true;
        return;
    }
    if (unit->first == NO_METHOD)
        unit->first = index;
    else
        debug->methods.items[unit->last].next = index;
    unit->last = index;
}

/* ---- Lines ---- */

/* The number of a file in the unit's table, from 1; 0: it has too many. */
static uint32_t file_number(struct documents *files, const char *file)
{
    for (size_t i = files->count; i > 0; i--)
        if (files->items[i - 1] == file)
            return (uint32_t)i;
    if (files->count == FILES_MAX || !documents_append(files, file))
        return 0;
    return (uint32_t)files->count;
}

/* The code [begin, begin + size), which is at `offset` of the method's code. */
static void add_sequence(struct dwarf_line_writer *writer, struct documents *files, const struct method_record *record,
                         uint64_t begin, uint64_t size, uint64_t offset)
{
    const struct il_point *points = record->il_points;
    uint32_t count = record->il_point_count;
    uint32_t i = lower_bound(k, count, points[k].native_offset <= offset);
    struct dwarf_line_row last = {.line = UINT32_MAX};
    if (!size)
        return;
    dwarf_line_begin_sequence(writer, begin);
    for (i = i ? i - 1 : 0; i < count && points[i].native_offset < add_saturated(offset, size); i++) {
        const struct source_point *point = record_source_point(record, (int32_t)points[i].il_offset);
        uint64_t at = points[i].native_offset > offset ? points[i].native_offset - offset : 0;
        struct dwarf_line_row row = {.address = begin + at, .file = 1};
        uint32_t file = point ? file_number(files, point->document->file) : 0;
        if (file) {
            row.file = file;
            row.line = point->line;
            row.column = point->column;
        }
        if (row.file != last.file || row.line != last.line || row.column != last.column)
            dwarf_line_add(writer, &row);
        last = row;
    }
    dwarf_line_end_sequence(writer, begin + size);
}

/* ---- Sections ---- */

static struct dwarf_function function_of(const struct debug_method *method, struct documents *files)
{
    const struct source_point *point = first_point(method->record);
    struct dwarf_function function = {.name = method->name, .name_length = method->name_length};
    if (point) {
        function.file = file_number(files, point->document->file);
        function.line = point->line;
    }
    function.parts[0].begin = method->begin;
    function.parts[0].end = method->begin + method->size;
    function.parts[1].begin = method->cold_begin;
    function.parts[1].end = method->cold_begin + method->cold_size;
    return function;
}

static uint32_t form_lines(struct elf_debug *debug, const struct debug_unit *unit, struct dwarf_line_writer *writer,
                           struct documents *files)
{
    files->count = 0;
    if (!unit->has_lines)
        return DWARF_NO_LINES;
    file_number(files, unit->name);
    for (uint32_t i = unit->first; i != NO_METHOD; i = debug->methods.items[i].next) {
        const struct debug_method *method = &debug->methods.items[i];
        add_sequence(writer, files, method->record, method->begin, method->size, 0);
        add_sequence(writer, files, method->record, method->cold_begin, method->cold_size, method->size);
    }
    return dwarf_line_end_unit(writer, files->items, files->count);
}

static void form_unit(struct elf_debug *debug, const struct debug_unit *unit, struct dwarf_line_writer *lines,
                      struct dwarf_info_writer *info, struct documents *files)
{
    const struct debug_method *methods = debug->methods.items;
    uint32_t offset = form_lines(debug, unit, lines, files);
    dwarf_info_begin_unit(info, unit->name, offset);
    for (uint32_t i = unit->first; i != NO_METHOD; i = methods[i].next) {
        struct dwarf_function function = function_of(&methods[i], files);
        dwarf_info_add(info, &function);
    }
    dwarf_info_end_functions(info);
    for (uint32_t i = unit->first; i != NO_METHOD; i = methods[i].next) {
        struct dwarf_function function = function_of(&methods[i], files);
        dwarf_info_add_ranges(info, &function);
    }
    dwarf_info_end_unit(info);
}

bool elf_debug_form(struct elf_debug *debug)
{
    struct documents files = {0};
    struct dwarf_line_writer lines = {.to = &debug->lines,
                                      .program.big_endian = debug->lines.big_endian,
                                      .word_size = debug->word_size,
                                      .code_factor = debug->code_factor};
    struct dwarf_info_writer info = {.info = &debug->info,
                                     .abbreviations = &debug->abbreviations,
                                     .ranges = &debug->ranges,
                                     .address_ranges = &debug->address_ranges,
                                     .word_size = debug->word_size};
    dwarf_info_begin(&info);
    for (size_t i = 0; i < debug->units.count; i++)
        form_unit(debug, &debug->units.items[i], &lines, &info, &files);
    dwarf_line_deinit(&lines);
    documents_deinit(&files);
    return !debug->no_memory && !debug->info.broken && !debug->abbreviations.broken && !debug->ranges.broken &&
           !debug->address_ranges.broken && !debug->lines.broken;
}
