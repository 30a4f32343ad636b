#include "formats/dwarf_info_writer.h"

enum {
    TAG_COMPILE_UNIT = 0x11,
    TAG_SUBPROGRAM = 0x2e,
    AT_NAME = 0x03,
    AT_STMT_LIST = 0x10,
    AT_LOW_PC = 0x11,
    AT_HIGH_PC = 0x12,
    AT_LANGUAGE = 0x13,
    AT_PRODUCER = 0x25,
    AT_DECL_FILE = 0x3a,
    AT_DECL_LINE = 0x3b,
    AT_RANGES = 0x55,
    FORM_ADDR = 0x01,
    FORM_STRING = 0x08,
    FORM_DATA1 = 0x0b,
    FORM_UDATA = 0x0f,
    FORM_SEC_OFFSET = 0x17,
    LANG_C99 = 0x0c, /* names are taken as they are written; debuggers do not know C# */
};

/* Abbreviations. */
enum { UNIT = 1, UNIT_WITH_LINES, FUNCTION, FUNCTION_WITH_LINE };

static void put_abbreviation(struct byte_writer *to, unsigned code, unsigned tag, const uint8_t *pairs, size_t count)
{
    put_uleb(to, code);
    put_uleb(to, tag);
    put_u8(to, tag == TAG_COMPILE_UNIT); /* has children */
    put_bytes(to, pairs, 2 * count);
    put_u16(to, 0);
}

void dwarf_info_begin(struct dwarf_info_writer *writer)
{
    static const uint8_t unit[] = {
        AT_PRODUCER, FORM_STRING, AT_LANGUAGE, FORM_DATA1,      AT_NAME,      FORM_STRING,
        AT_LOW_PC,   FORM_ADDR,   AT_RANGES,   FORM_SEC_OFFSET, AT_STMT_LIST, FORM_SEC_OFFSET,
    };
    static const uint8_t function[] = {
        AT_NAME,    FORM_STRING,  AT_LOW_PC,  FORM_ADDR,    AT_HIGH_PC,
        FORM_UDATA, AT_DECL_FILE, FORM_UDATA, AT_DECL_LINE, FORM_UDATA,
    };
    struct byte_writer *to = writer->abbreviations;
    put_abbreviation(to, UNIT, TAG_COMPILE_UNIT, unit, 5);
    put_abbreviation(to, UNIT_WITH_LINES, TAG_COMPILE_UNIT, unit, 6);
    put_abbreviation(to, FUNCTION, TAG_SUBPROGRAM, function, 3);
    put_abbreviation(to, FUNCTION_WITH_LINE, TAG_SUBPROGRAM, function, 5);
    put_u8(to, 0);
}

void dwarf_info_begin_unit(struct dwarf_info_writer *writer, const char *name, uint32_t lines)
{
    static const char producer[] = "cdacq";
    struct byte_writer *to = writer->info;
    writer->unit = to->length;
    put_u32(to, 0);
    put_u16(to, 4); /* version */
    put_u32(to, 0); /* abbreviations */
    put_u8(to, writer->word_size);
    put_uleb(to, lines == (uint32_t)DWARF_NO_LINES ? UNIT : UNIT_WITH_LINES);
    put_string(to, producer, sizeof producer - 1);
    put_u8(to, LANG_C99);
    put_string(to, name, strlen(name));
    put_word(to, 0, writer->word_size); /* what ranges are relative to */
    writer->unit_ranges = to->length;
    put_u32(to, 0);
    if (lines != (uint32_t)DWARF_NO_LINES)
        put_u32(to, lines);
}

static void put_range(struct dwarf_info_writer *writer, uint64_t begin, uint64_t end)
{
    put_word(writer->ranges, begin, writer->word_size);
    put_word(writer->ranges, end, writer->word_size);
}

void dwarf_info_add(struct dwarf_info_writer *writer, const struct dwarf_function *function)
{
    struct byte_writer *to = writer->info;
    bool has_line = function->line && function->file;
    put_uleb(to, has_line ? FUNCTION_WITH_LINE : FUNCTION);
    put_bytes(to, function->name, function->name_length);
    put_string(to, function->suffix, strlen(function->suffix));
    put_word(to, function->begin, writer->word_size);
    put_uleb(to, function->end - function->begin);
    if (has_line) {
        put_uleb(to, function->file);
        put_uleb(to, function->line);
    }
}

void dwarf_info_end_functions(struct dwarf_info_writer *writer)
{
    struct byte_writer *to = writer->address_ranges;
    put_u8(writer->info, 0);
    patch_u32(writer->info, writer->unit, (uint32_t)(writer->info->length - writer->unit - 4));
    patch_u32(writer->info, writer->unit_ranges, (uint32_t)writer->ranges->length);
    size_t start = to->length;
    put_u32(to, 0);
    put_u16(to, 2); /* version */
    put_u32(to, (uint32_t)writer->unit);
    put_u8(to, writer->word_size);
    put_u8(to, 0); /* no segments */
    while ((to->length - start) % (2u * writer->word_size) && !to->broken)
        put_u8(to, 0);
    writer->unit_addresses = start;
}

void dwarf_info_add_range(struct dwarf_info_writer *writer, uint64_t begin, uint64_t end)
{
    put_range(writer, begin, end);
    put_word(writer->address_ranges, begin, writer->word_size);
    put_word(writer->address_ranges, end - begin, writer->word_size);
}

void dwarf_info_end_unit(struct dwarf_info_writer *writer)
{
    struct byte_writer *to = writer->address_ranges;
    put_range(writer, 0, 0);
    put_word(to, 0, writer->word_size);
    put_word(to, 0, writer->word_size);
    patch_u32(to, writer->unit_addresses, (uint32_t)(to->length - writer->unit_addresses - 4));
}
