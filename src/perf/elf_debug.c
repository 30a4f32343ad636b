#include "src/perf/elf_debug.h"

#include "src/perf/code_lines.h"

enum { NO_FUNCTION = UINT32_MAX, FILES_MAX = 1024 /* of a unit; lines of other files are left out */ };

struct debug_function {
    const char *name;
    const struct method_record *record; /* of the method; NULL: it has no lines */
    struct debug_piece piece;
    uint32_t name_length, next; /* the next function of the unit, or NO_FUNCTION */
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

DEFINE_VECTOR_FUNCTIONS(debug_functions, struct debug_function);
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

/* The unit for a key. NULL when out of memory. */
static struct debug_unit *unit_for(struct elf_debug *debug, uint64_t key, const char *name, bool has_lines)
{
    bool added;
    struct unit_index *index =
        unit_indexes_insert(&debug->indexes, (struct unit_index){key, (uint32_t)debug->units.count}, &added);
    if (!index ||
        (added && !debug_units_append(&debug->units, (struct debug_unit){name, NO_FUNCTION, NO_FUNCTION, has_lines})))
        return NULL;
    return &debug->units.items[index->index];
}

void elf_debug_add(struct elf_debug *debug, const struct cdacq_method *method, const struct method_record *record,
                   const struct debug_piece *piece)
{
    const struct source_point *point = first_line_of(record);
    const char *name = point ? point->document->file : method->module ? method->module : "[dynamic]";
    /* Names and documents live as long as the session, each at an address of its own. */
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

static void form_unit(struct elf_debug *debug, const struct debug_unit *unit, struct dwarf_line_writer *lines,
                      struct dwarf_info_writer *info, struct documents *files)
{
    const struct debug_function *functions = debug->functions.items;
    uint32_t offset = form_lines(debug, unit, lines, files);
    dwarf_info_begin_unit(info, unit->name, offset);
    for (uint32_t i = unit->first; i != NO_FUNCTION; i = functions[i].next) {
        struct dwarf_function function = function_of(&functions[i], files);
        dwarf_info_add(info, &function);
    }
    dwarf_info_end_functions(info);
    for (uint32_t i = unit->first; i != NO_FUNCTION; i = functions[i].next) {
        struct dwarf_function function = function_of(&functions[i], files);
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
