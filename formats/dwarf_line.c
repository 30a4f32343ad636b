#include "formats/dwarf_line.h"

#include "formats/dwarf_cursor.h"

enum {
    VERSION_MIN = 2,
    VERSION_MAX = 5,
    FORMATS_MAX = 16,
    ENTRIES_MAX = 1024 * 1024,
};

/* What the entries of a table of version 5 consist of. */
struct entry_format {
    uint64_t type, form;
};

/* A table of files or directories. */
struct table {
    struct dwarf_cursor at; /* its first entry */
    struct entry_format formats[FORMATS_MAX];
    unsigned format_count; /* 0: of versions up to 4 */
    uint64_t count;
};

/* The header of a unit. */
struct unit {
    const struct dwarf_line_sections *sections;
    struct dwarf_cursor program; /* from its first instruction to the end of the unit */
    unsigned offset_size, version, address_size;
    unsigned minimum_instruction, maximum_operations;
    int line_base;
    unsigned line_range, opcode_base;
    const uint8_t *operand_counts; /* of the standard opcodes, from 1 */
    struct table directories, files;
};

/* ---- Headers ---- */

enum { DW_LNCT_path = 1, DW_LNCT_directory_index = 2 };

enum {
    DW_FORM_block2 = 0x03,
    DW_FORM_block4 = 0x04,
    DW_FORM_data2 = 0x05,
    DW_FORM_data4 = 0x06,
    DW_FORM_data8 = 0x07,
    DW_FORM_string = 0x08,
    DW_FORM_block = 0x09,
    DW_FORM_block1 = 0x0a,
    DW_FORM_data1 = 0x0b,
    DW_FORM_strp = 0x0e,
    DW_FORM_udata = 0x0f,
    DW_FORM_data16 = 0x1e,
    DW_FORM_line_strp = 0x1f,
};

/* A string that ends at a NUL in the cursor; NULL, and the cursor fails, without one. */
static const char *read_string(struct dwarf_cursor *cursor)
{
    const uint8_t *end = cursor->failed ? NULL : memchr(cursor->at, 0, dwarf_left(cursor));
    if (!end) {
        cursor->failed = true;
        return NULL;
    }
    const char *string = (const char *)cursor->at;
    cursor->at = end + 1;
    return string;
}

static const char *string_at(const struct dwarf_section *section, uint64_t offset)
{
    bool ends = offset < section->size && memchr(section->bytes + offset, 0, section->size - (size_t)offset);
    return ends ? (const char *)section->bytes + offset : NULL;
}

/* A value of an entry: a number or a string, or neither. */
struct value {
    uint64_t number;
    const char *string;
};

static struct value read_value(const struct unit *unit, struct dwarf_cursor *cursor, uint64_t form)
{
    struct value value = {0};
    switch (form) {
    case DW_FORM_string:
        value.string = read_string(cursor);
        break;
    case DW_FORM_strp:
        value.string = string_at(&unit->sections->strings, dwarf_uint(cursor, unit->offset_size));
        break;
    case DW_FORM_line_strp:
        value.string = string_at(&unit->sections->line_strings, dwarf_uint(cursor, unit->offset_size));
        break;
    case DW_FORM_udata:
        value.number = dwarf_uleb(cursor);
        break;
    case DW_FORM_data1:
        value.number = dwarf_uint(cursor, 1);
        break;
    case DW_FORM_data2:
        value.number = dwarf_uint(cursor, 2);
        break;
    case DW_FORM_data4:
        value.number = dwarf_uint(cursor, 4);
        break;
    case DW_FORM_data8:
        value.number = dwarf_uint(cursor, 8);
        break;
    case DW_FORM_data16:
        dwarf_bytes(cursor, 16);
        break;
    case DW_FORM_block:
        dwarf_bytes(cursor, dwarf_uleb(cursor));
        break;
    case DW_FORM_block1:
        dwarf_bytes(cursor, dwarf_uint(cursor, 1));
        break;
    case DW_FORM_block2:
        dwarf_bytes(cursor, dwarf_uint(cursor, 2));
        break;
    case DW_FORM_block4:
        dwarf_bytes(cursor, dwarf_uint(cursor, 4));
        break;
    default:
        cursor->failed = true;
    }
    return value;
}

/* An entry of a table: its path, and the directory that the path is relative to. */
struct entry {
    const char *path;
    uint64_t directory;
};

static struct entry read_entry(const struct unit *unit, const struct table *table, struct dwarf_cursor *cursor)
{
    struct entry entry = {0};
    for (unsigned i = 0; i < table->format_count && !cursor->failed; i++) {
        struct value value = read_value(unit, cursor, table->formats[i].form);
        if (table->formats[i].type == DW_LNCT_path)
            entry.path = value.string;
        else if (table->formats[i].type == DW_LNCT_directory_index)
            entry.directory = value.number;
    }
    return entry;
}

/* Reads the head of a table of version 5, and skips its entries. */
static void read_table(const struct unit *unit, struct dwarf_cursor *cursor, struct table *ret)
{
    ret->format_count = (unsigned)dwarf_uint(cursor, 1);
    if (ret->format_count > FORMATS_MAX)
        cursor->failed = true;
    for (unsigned i = 0; i < ret->format_count && !cursor->failed; i++) {
        uint64_t type = dwarf_uleb(cursor);
        ret->formats[i] = (struct entry_format){type, dwarf_uleb(cursor)};
    }
    ret->count = dwarf_uleb(cursor);
    if (ret->count > ENTRIES_MAX || (ret->count && !ret->format_count))
        cursor->failed = true;
    ret->at = *cursor;
    for (uint64_t i = 0; i < ret->count && !cursor->failed; i++)
        read_entry(unit, ret, cursor);
}

/* The tables of versions 2 to 4 end at an empty string. */
static void read_old_tables(struct unit *unit, struct dwarf_cursor *cursor)
{
    const char *name;
    unit->directories.at = *cursor;
    while ((name = read_string(cursor)) && *name)
        unit->directories.count++;
    unit->files.at = *cursor;
    while ((name = read_string(cursor)) && *name) {
        unit->files.count++;
        for (unsigned i = 0; i < 3; i++) /* directory, time, size */
            dwarf_uleb(cursor);
    }
}

/* Reads the unit at the cursor, which is moved to the next one. False: it gives no rows. */
static bool read_unit(const struct dwarf_line_sections *sections, struct dwarf_cursor *cursor, struct unit *ret)
{
    *ret = (struct unit){.sections = sections, .offset_size = 4, .address_size = 8};
    uint64_t length = dwarf_uint(cursor, 4);
    if (length == UINT32_MAX) {
        length = dwarf_uint(cursor, 8);
        ret->offset_size = 8;
    }
    struct dwarf_cursor unit = *cursor;
    if (!dwarf_bytes(cursor, length))
        return false;
    unit.end = cursor->at;
    ret->version = (unsigned)dwarf_uint(&unit, 2);
    if (ret->version < VERSION_MIN || ret->version > VERSION_MAX)
        return false;
    if (ret->version == 5) {
        ret->address_size = (unsigned)dwarf_uint(&unit, 1);
        dwarf_uint(&unit, 1); /* segment selectors */
    }
    uint64_t header = dwarf_uint(&unit, ret->offset_size);
    struct dwarf_cursor head = unit;
    if (!dwarf_bytes(&unit, header))
        return false;
    ret->program = unit;
    head.end = unit.at;
    ret->minimum_instruction = (unsigned)dwarf_uint(&head, 1);
    ret->maximum_operations = ret->version >= 4 ? (unsigned)dwarf_uint(&head, 1) : 1;
    dwarf_uint(&head, 1); /* whether rows begin statements */
    ret->line_base = (int)dwarf_int(&head, 1);
    ret->line_range = (unsigned)dwarf_uint(&head, 1);
    ret->opcode_base = (unsigned)dwarf_uint(&head, 1);
    ret->operand_counts = dwarf_bytes(&head, ret->opcode_base ? ret->opcode_base - 1 : 0);
    if (ret->version == 5) {
        read_table(ret, &head, &ret->directories);
        read_table(ret, &head, &ret->files);
    } else {
        read_old_tables(ret, &head);
    }
    return !head.failed && ret->opcode_base && ret->line_range && ret->maximum_operations <= 1 &&
           (ret->address_size == 8 || ret->address_size == 4);
}

/* ---- Programs ---- */

enum {
    DW_LNS_copy = 1,
    DW_LNS_advance_pc,
    DW_LNS_advance_line,
    DW_LNS_set_file,
    DW_LNS_set_column,
    DW_LNS_negate_stmt,
    DW_LNS_set_basic_block,
    DW_LNS_const_add_pc,
    DW_LNS_fixed_advance_pc,
};

enum { DW_LNE_end_sequence = 1, DW_LNE_set_address = 2 };

/* The state of a program. */
struct machine {
    const struct unit *unit;
    struct dwarf_cursor cursor;
    struct dwarf_row row;
};

/* What an instruction does beyond changing the state. */
enum effect { EFFECT_NONE, EFFECT_ROW, EFFECT_END };

static void advance(struct machine *machine, uint64_t operations)
{
    machine->row.address += operations * machine->unit->minimum_instruction;
}

static enum effect run_extended(struct machine *machine)
{
    struct dwarf_cursor *cursor = &machine->cursor;
    uint64_t length = dwarf_uleb(cursor);
    struct dwarf_cursor operands = *cursor;
    if (!length || !dwarf_bytes(cursor, length)) {
        cursor->failed = true;
        return EFFECT_NONE;
    }
    operands.end = cursor->at;
    switch (dwarf_uint(&operands, 1)) {
    case DW_LNE_end_sequence:
        return EFFECT_END;
    case DW_LNE_set_address: {
        size_t width = dwarf_left(&operands);
        if (width == 4 || width == 8)
            machine->row.address = dwarf_uint(&operands, (unsigned)width);
        else
            cursor->failed = true;
        return EFFECT_NONE;
    }
    default: /* its length is known */
        return EFFECT_NONE;
    }
}

static enum effect run_standard(struct machine *machine, unsigned opcode)
{
    const struct unit *unit = machine->unit;
    struct dwarf_cursor *cursor = &machine->cursor;
    switch (opcode) {
    case DW_LNS_copy:
        return EFFECT_ROW;
    case DW_LNS_advance_pc:
        advance(machine, dwarf_uleb(cursor));
        break;
    case DW_LNS_advance_line:
        machine->row.line += (uint32_t)dwarf_sleb(cursor);
        break;
    case DW_LNS_set_file:
        machine->row.file = (uint32_t)dwarf_uleb(cursor);
        break;
    case DW_LNS_set_column:
        machine->row.column = (uint32_t)dwarf_uleb(cursor);
        break;
    case DW_LNS_const_add_pc:
        advance(machine, (255 - unit->opcode_base) / unit->line_range);
        break;
    case DW_LNS_fixed_advance_pc:
        machine->row.address += dwarf_uint(cursor, 2);
        break;
    default:
        for (unsigned i = 0; i < unit->operand_counts[opcode - 1]; i++)
            dwarf_uleb(cursor);
    }
    return EFFECT_NONE;
}

/* Runs one instruction. */
static enum effect run(struct machine *machine)
{
    const struct unit *unit = machine->unit;
    unsigned opcode = (unsigned)dwarf_uint(&machine->cursor, 1);
    if (machine->cursor.failed)
        return EFFECT_NONE;
    if (!opcode)
        return run_extended(machine);
    if (opcode < unit->opcode_base)
        return run_standard(machine, opcode);
    unsigned special = opcode - unit->opcode_base;
    advance(machine, special / unit->line_range);
    machine->row.line += (uint32_t)(unit->line_base + (int)(special % unit->line_range));
    return EFFECT_ROW;
}

static struct machine machine_at(const struct unit *unit, struct dwarf_cursor cursor)
{
    return (struct machine){.unit = unit, .cursor = cursor, .row = {.file = 1, .line = 1}};
}

/* Finds the sequences of a unit that begins at `offset`. False when out of memory, or if there are too many. */
static bool find_in_unit(const struct unit *unit, uint32_t offset, struct dwarf_sequences *ret)
{
    const uint8_t *bytes = unit->sections->line.bytes;
    struct machine machine = machine_at(unit, unit->program);
    struct dwarf_sequence sequence = {.unit = offset, .program = (uint32_t)(machine.cursor.at - bytes)};
    bool has_row = false;
    while (dwarf_left(&machine.cursor) && !machine.cursor.failed) {
        enum effect effect = run(&machine);
        if (effect == EFFECT_ROW && !has_row) {
            sequence.begin = machine.row.address;
            has_row = true;
        }
        if (effect != EFFECT_END)
            continue;
        sequence.end = machine.row.address;
        if (has_row && sequence.end > sequence.begin &&
            (ret->count == DWARF_SEQUENCE_MAX || !dwarf_sequences_append(ret, sequence)))
            return false;
        machine = machine_at(unit, machine.cursor);
        sequence.program = (uint32_t)(machine.cursor.at - bytes);
        has_row = false;
    }
    return true;
}

static struct dwarf_cursor section_cursor(const struct dwarf_line_sections *sections, uint32_t offset)
{
    size_t from = MIN((size_t)offset, sections->line.size);
    if (!sections->line.size)
        return (struct dwarf_cursor){0};
    return dwarf_cursor_of(sections->line.bytes + from, sections->line.size - from, sections->big);
}

bool dwarf_sequences_find(const struct dwarf_line_sections *sections, struct dwarf_sequences *ret)
{
    struct dwarf_cursor cursor = section_cursor(sections, 0);
    struct unit unit;
    if (sections->line.size > UINT32_MAX)
        return true;
    while (dwarf_left(&cursor) && !cursor.failed) {
        uint32_t offset = (uint32_t)(cursor.at - sections->line.bytes);
        if (read_unit(sections, &cursor, &unit) && !find_in_unit(&unit, offset, ret))
            return false;
    }
    sort_u64(ret->items, ret->count, sizeof *ret->items);
    return true;
}

size_t dwarf_rows_each(const struct dwarf_line_sections *sections, const struct dwarf_sequence *sequence,
                       bool (*visit)(const struct dwarf_row *row, void *context), void *context)
{
    struct dwarf_cursor cursor = section_cursor(sections, sequence->unit);
    const uint8_t *begin = cursor.at;
    struct unit unit;
    if (!read_unit(sections, &cursor, &unit))
        return 0;
    const uint8_t *program = sections->line.bytes + sequence->program;
    size_t head = (size_t)(unit.program.at - begin);
    if (program < unit.program.at || program > unit.program.end)
        return head;
    struct machine machine = machine_at(&unit, unit.program);
    machine.cursor.at = program;
    while (dwarf_left(&machine.cursor) && !machine.cursor.failed) {
        enum effect effect = run(&machine);
        if (effect == EFFECT_END || (effect == EFFECT_ROW && !visit(&machine.row, context)))
            break;
    }
    return head + (size_t)(machine.cursor.at - program);
}

/* ---- Files ---- */

/* Entry `index` of a table; its path is NULL if there is none. Tables up to version 4 count from 1. */
static struct entry entry_at(const struct unit *unit, const struct table *table, bool is_file, uint64_t index)
{
    struct dwarf_cursor cursor = table->at;
    struct entry entry = {0};
    uint64_t number = table->format_count ? index : index - 1;
    if (number >= table->count)
        return (struct entry){0};
    for (uint64_t i = 0; i <= number && !cursor.failed; i++) {
        if (table->format_count) {
            entry = read_entry(unit, table, &cursor);
            continue;
        }
        entry = (struct entry){.path = read_string(&cursor)};
        if (is_file) {
            entry.directory = dwarf_uleb(&cursor);
            dwarf_uleb(&cursor);
            dwarf_uleb(&cursor);
        }
    }
    return cursor.failed ? (struct entry){0} : entry;
}

/* Appends a directory and a slash, if it has a name. */
static void put_directory(const char *path, struct text *ret)
{
    if (!path || !*path)
        return;
    text_escape(ret, path, strlen(path));
    if (path[strlen(path) - 1] != '/')
        text_putc(ret, '/');
}

bool dwarf_file_path(const struct dwarf_line_sections *sections, uint32_t unit_offset, uint32_t file, struct text *ret)
{
    struct dwarf_cursor cursor = section_cursor(sections, unit_offset);
    struct unit unit;
    if (!read_unit(sections, &cursor, &unit))
        return false;
    struct entry entry = entry_at(&unit, &unit.files, true, file);
    if (!entry.path || !*entry.path)
        return false;
    struct entry directory = {0};
    if (entry.path[0] != '/' && (entry.directory || unit.version == 5))
        directory = entry_at(&unit, &unit.directories, false, entry.directory);
    if (unit.version == 5 && directory.path && directory.path[0] != '/' && entry.directory) /* 0: of the compiler */
        put_directory(entry_at(&unit, &unit.directories, false, 0).path, ret);
    put_directory(directory.path, ret);
    text_escape(ret, entry.path, strlen(entry.path));
    return !ret->broken;
}
