#include "formats/dwarf_line_writer.h"

enum {
    LNS_COPY = 1,
    LNS_ADVANCE_PC,
    LNS_ADVANCE_LINE,
    LNS_SET_FILE,
    LNS_SET_COLUMN,
    LNE_END_SEQUENCE = 1,
    LNE_SET_ADDRESS,
    OPCODE_BASE = 13,
    LINE_BASE = -5,
    LINE_RANGE = 14,
    SPECIAL_MAX = 255,
};

void dwarf_line_deinit(struct dwarf_line_writer *writer)
{
    byte_writer_deinit(&writer->program);
}

void dwarf_line_begin_sequence(struct dwarf_line_writer *writer, uint64_t address)
{
    struct byte_writer *to = &writer->program;
    put_u8(to, 0);
    put_uleb(to, 1u + writer->word_size);
    put_u8(to, LNE_SET_ADDRESS);
    put_word(to, address, writer->word_size);
    writer->address = address;
    writer->file = writer->line = 1;
    writer->column = 0;
}

void dwarf_line_add(struct dwarf_line_writer *writer, const struct dwarf_line_row *row)
{
    struct byte_writer *to = &writer->program;
    uint64_t advance = (row->address - writer->address) / writer->code_factor;
    int64_t lines = (int64_t)row->line - writer->line;
    writer->address += advance * writer->code_factor; /* a rest is made up for by the next row */
    if (row->file != writer->file) {
        put_u8(to, LNS_SET_FILE);
        put_uleb(to, row->file);
    }
    if (row->column != writer->column) {
        put_u8(to, LNS_SET_COLUMN);
        put_uleb(to, row->column);
    }
    if (lines < LINE_BASE || lines >= LINE_BASE + LINE_RANGE) {
        put_u8(to, LNS_ADVANCE_LINE);
        put_sleb(to, lines);
        lines = 0;
    }
    unsigned special = OPCODE_BASE + (unsigned)(lines - LINE_BASE);
    if (advance > (SPECIAL_MAX - special) / LINE_RANGE) {
        put_u8(to, LNS_ADVANCE_PC);
        put_uleb(to, advance);
        advance = 0;
    }
    put_u8(to, special + LINE_RANGE * (unsigned)advance);
    writer->file = row->file;
    writer->line = row->line;
    writer->column = row->column;
}

void dwarf_line_end_sequence(struct dwarf_line_writer *writer, uint64_t end)
{
    struct byte_writer *to = &writer->program;
    put_u8(to, LNS_ADVANCE_PC);
    put_uleb(to, (end - writer->address) / writer->code_factor);
    put_u8(to, 0);
    put_uleb(to, 1);
    put_u8(to, LNE_END_SEQUENCE);
}

/* The length of a path's folder; 0: none, so that all of it is the file's name, which must not be empty. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash != path && slash[1] ? (size_t)(slash - path) : 0;
}

/* Folders are written once for all files in a row that share them. */
static void put_folders(struct byte_writer *to, const char *const *files, size_t count)
{
    const char *last = "";
    size_t last_length = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = folder_length(files[i]);
        if (length && (length != last_length || memcmp(files[i], last, length) != 0))
            put_string(to, files[i], length);
        last = length ? files[i] : last;
        last_length = length ? length : last_length;
    }
    put_u8(to, 0);
}

static void put_files(struct byte_writer *to, const char *const *files, size_t count)
{
    const char *last = "";
    size_t last_length = 0;
    unsigned folder = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = folder_length(files[i]), skip = length ? length + 1 : 0;
        folder += length && (length != last_length || memcmp(files[i], last, length) != 0);
        last = length ? files[i] : last;
        last_length = length ? length : last_length;
        const char *name = files[i][0] ? files[i] + skip : "?"; /* an empty name would end the table */
        put_string(to, name, strlen(name));
        put_uleb(to, length ? folder : 0);
        put_uleb(to, 0); /* its time and size are not known */
        put_uleb(to, 0);
    }
    put_u8(to, 0);
}

uint32_t dwarf_line_end_unit(struct dwarf_line_writer *writer, const char *const *files, size_t count)
{
    static const uint8_t operands[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    struct byte_writer *to = writer->to;
    size_t start = to->length;
    put_u32(to, 0);
    put_u16(to, 4); /* version */
    size_t header = to->length;
    put_u32(to, 0);
    put_u8(to, writer->code_factor);
    put_u8(to, 1); /* operations of an instruction */
    put_u8(to, 1); /* rows begin statements */
    put_u8(to, (uint8_t)LINE_BASE);
    put_u8(to, LINE_RANGE);
    put_u8(to, OPCODE_BASE);
    put_bytes(to, operands, sizeof operands);
    put_folders(to, files, count);
    put_files(to, files, count);
    patch_u32(to, header, (uint32_t)(to->length - header - 4));
    to->broken |= writer->program.broken;
    put_bytes(to, writer->program.data, writer->program.length);
    patch_u32(to, start, (uint32_t)(to->length - start - 4));
    writer->program.length = 0;
    return (uint32_t)start;
}
