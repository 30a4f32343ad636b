#include "src/perf/elf_debug.h"

#include <stdlib.h>

#include "src/lookup/opened_target.h"
#include "src/perf/code_lines.h"

enum {
    NO_FUNCTION = UINT32_MAX,
    NO_RANGE = UINT32_MAX,
    FILES_MAX = 1024,     /* of a unit; lines of other files are left out */
    FUNCTIONS_MAX = 1024, /* of a unit: binutils takes time with the square of the number of its ranges */
    GAP_MAX = 4096,       /* between two functions, in one range of their unit */
};

struct debug_function {
    const char *name;
    const struct method_record *record; /* of the method; NULL: it has no lines */
    struct debug_piece piece;
    uint32_t name_length, next; /* the next function of the unit, or NO_FUNCTION */
};

struct debug_unit {
    const char *name;
    uint32_t first, last, count;
    uint32_t first_range, last_range;
    bool has_lines;
};

/* Addresses of a unit. No function of another unit is in them. */
struct debug_range {
    uint64_t begin, end;
    uint32_t unit, next; /* the next range of the unit, or NO_RANGE */
};

struct unit_index {
    uint64_t key;
    uint32_t index;
};

DEFINE_VECTOR_FUNCTIONS(debug_functions, struct debug_function);
DEFINE_VECTOR_FUNCTIONS(debug_units, struct debug_unit);
DEFINE_U64_TABLE_FUNCTIONS(unit_indexes, struct unit_index, key);
DEFINE_VECTOR(documents, const char *);
DEFINE_VECTOR(debug_ranges, struct debug_range);

void elf_debug_init(struct elf_debug *debug, const struct cdacq_target *target, unsigned code_factor)
{
    bool big = target->descriptor_info.big_endian;
    *debug = (struct elf_debug){.word_size = target->descriptor_info.pointer_size, .code_factor = code_factor};
    debug->info.big_endian = debug->abbreviations.big_endian = debug->ranges.big_endian = big;
    debug->address_ranges.big_endian = debug->lines.big_endian = big;
}

void elf_debug_deinit(struct elf_debug *debug)
{
    debug_functions_deinit(&debug->functions);
    debug_units_deinit(&debug->units);
    unit_indexes_deinit(&debug->indexes);
    byte_writer_deinit(&debug->info);
    byte_writer_deinit(&debug->abbreviations);
    byte_writer_deinit(&debug->ranges);
    byte_writer_deinit(&debug->address_ranges);
    byte_writer_deinit(&debug->lines);
}

/* ---- Methods and units ---- */

/* The unit for a key that has room for a function. NULL when out of memory. */
static struct debug_unit *unit_for(struct elf_debug *debug, uint64_t key, const char *name, bool has_lines)
{
    bool added;
    struct debug_unit unit = {
        .name = name,
        .first = NO_FUNCTION,
        .last = NO_FUNCTION,
        .first_range = NO_RANGE,
        .last_range = NO_RANGE,
        .has_lines = has_lines,
    };
    struct unit_index *index =
        unit_indexes_insert(&debug->indexes, (struct unit_index){key, (uint32_t)debug->units.count}, &added);
    if (index && !added && debug->units.items[index->index].count == FUNCTIONS_MAX) {
        index->index = (uint32_t)debug->units.count;
        added = true;
    }
    if (!index || (added && !debug_units_append(&debug->units, unit)))
        return NULL;
    return &debug->units.items[index->index];
}

void elf_debug_add(struct elf_debug *debug, const struct cdacq_method *method, const struct method_record *record,
                   const struct debug_piece *piece)
{
    const struct source_point *point = first_line_of(record);
    const char *name = point ? point->document->file : method->module ? method->module : "[dynamic]";
    /* Names and documents live until the file is written, each at an address of its own. */
    uint64_t key = point ? (uintptr_t)point->document : (uintptr_t)method->module;
    struct debug_unit *unit = unit_for(debug, key, name, point != NULL);
    uint32_t index = (uint32_t)debug->functions.count;
    struct debug_function added = {
        .name = method->name,
        .record = point ? record : NULL,
        .piece = *piece,
        .name_length = (uint32_t)method->name_length,
        .next = NO_FUNCTION,
    };
    if (!unit || index == NO_FUNCTION || !debug_functions_append(&debug->functions, added)) {
        debug->no_memory = true;
        return;
    }
    if (unit->first == NO_FUNCTION)
        unit->first = index;
    else
        debug->functions.items[unit->last].next = index;
    unit->last = index;
    unit->count++;
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

static void add_sequence(struct dwarf_line_writer *writer, struct documents *files, const struct method_record *record,
                         const struct debug_piece *piece)
{
    struct dwarf_line_row last = {.line = UINT32_MAX};
    struct code_lines lines;
    struct code_line line;
    if (!piece->size)
        return;
    dwarf_line_begin_sequence(writer, piece->begin);
    code_lines_init(&lines, record, piece->offset, piece->size);
    while (code_lines_next(&lines, &line)) {
        const struct source_point *point = line.point;
        struct dwarf_line_row row = {.address = piece->begin + line.at, .file = 1};
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
    dwarf_line_end_sequence(writer, piece->begin + piece->size);
}

/* ---- Sections ---- */

static struct dwarf_function function_of(const struct debug_function *from, struct documents *files)
{
    const struct source_point *point = first_line_of(from->record);
    return (struct dwarf_function){
        .name = from->name,
        .suffix = from->piece.suffix,
        .name_length = from->name_length,
        .file = point ? file_number(files, point->document->file) : 0,
        .line = point ? point->line : 0,
        .begin = from->piece.begin,
        .end = from->piece.begin + from->piece.size,
    };
}

static uint32_t form_lines(struct elf_debug *debug, const struct debug_unit *unit, struct dwarf_line_writer *writer,
                           struct documents *files)
{
    files->count = 0;
    if (!unit->has_lines)
        return DWARF_NO_LINES;
    file_number(files, unit->name);
    for (uint32_t i = unit->first; i != NO_FUNCTION; i = debug->functions.items[i].next) {
        const struct debug_function *function = &debug->functions.items[i];
        add_sequence(writer, files, function->record, &function->piece);
    }
    return dwarf_line_end_unit(writer, files->items, files->count);
}

/*
 * Finds the ranges of all units: code of one unit that nothing of another one separates is one range, because programs
 * that read the file take time for each.
 */
static bool form_ranges(struct elf_debug *debug, struct debug_ranges *ranges)
{
    size_t count = 0;
    for (uint32_t unit = 0; unit < debug->units.count; unit++)
        for (uint32_t i = debug->units.items[unit].first; i != NO_FUNCTION; i = debug->functions.items[i].next) {
            const struct debug_piece *piece = &debug->functions.items[i].piece;
            struct debug_range range = {piece->begin, piece->begin + piece->size, unit, NO_RANGE};
            if (!debug_ranges_append(ranges, range))
                return false;
        }
    sort_u64(ranges->items, ranges->count, sizeof *ranges->items);
    for (size_t i = 0; i < ranges->count; i++) {
        struct debug_range *last = &ranges->items[count - (count > 0)], range = ranges->items[i];
        if (count && last->unit == range.unit && range.begin - last->begin <= last->end - last->begin + GAP_MAX) {
            last->end = MAX(last->end, range.end);
            continue;
        }
        struct debug_unit *unit = &debug->units.items[range.unit];
        *(unit->first_range == NO_RANGE ? &unit->first_range : &ranges->items[unit->last_range].next) = (uint32_t)count;
        unit->last_range = (uint32_t)count;
        ranges->items[count++] = range;
    }
    return true;
}

static void form_unit(struct elf_debug *debug, const struct debug_unit *unit, struct dwarf_line_writer *lines,
                      struct dwarf_info_writer *info, struct documents *files, const struct debug_ranges *ranges)
{
    const struct debug_function *functions = debug->functions.items;
    uint32_t offset = form_lines(debug, unit, lines, files);
    dwarf_info_begin_unit(info, unit->name, offset);
    for (uint32_t i = unit->first; i != NO_FUNCTION; i = functions[i].next) {
        struct dwarf_function function = function_of(&functions[i], files);
        dwarf_info_add(info, &function);
    }
    dwarf_info_end_functions(info);
    for (uint32_t i = unit->first_range; i != NO_RANGE; i = ranges->items[i].next)
        dwarf_info_add_range(info, ranges->items[i].begin, ranges->items[i].end);
    dwarf_info_end_unit(info);
}

bool elf_debug_form(struct elf_debug *debug)
{
    struct documents files = {0};
    struct debug_ranges ranges = {0};
    debug->no_memory |= !form_ranges(debug, &ranges);
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
    for (size_t i = 0; i < debug->units.count && !debug->no_memory; i++)
        form_unit(debug, &debug->units.items[i], &lines, &info, &files, &ranges);
    dwarf_line_deinit(&lines);
    documents_deinit(&files);
    debug_ranges_deinit(&ranges);
    return !debug->no_memory && !debug->info.broken && !debug->abbreviations.broken && !debug->ranges.broken &&
           !debug->address_ranges.broken && !debug->lines.broken;
}
