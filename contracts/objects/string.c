#include "contracts/objects/string.h"

#include "contracts/objects/object.h"
#include "util/utf16.h"

enum { PIECE = 1024 }; /* units */

/* The component size of a string is 2, and its category is not that of an array. */
enum { STRING_FLAGS_MASK = 0xfffff, STRING_FLAGS = 2 };

uint32_t string_length(struct field_reader *reader, uint64_t object)
{
    struct reader *raw = &reader->raw;
    uint64_t method_table = object_method_table(reader, object);
    bool is_string;
    if (reader->layout->global_present[G_StringMethodTable])
        is_string = read_pointer(raw, reader->layout->globals[G_StringMethodTable]) == method_table;
    else
        is_string = (read_field(reader, method_table, F_MethodTable_MTFlags) & STRING_FLAGS_MASK) == STRING_FLAGS;
    if (!is_string)
        reader_fail(raw, CDACQ_ERR_CORRUPT, object, "a string");
    uint32_t length = (uint32_t)read_field(reader, object, F_String_m_StringLength);
    if (length > STRING_LENGTH_MAX)
        reader_fail(raw, CDACQ_ERR_CORRUPT, object, "String.m_StringLength");
    return reader_failed(raw) ? 0 : length;
}

bool string_each(struct field_reader *reader, uint64_t object, uint32_t max,
                 bool (*put)(void *context, const char *utf8, size_t length), void *context)
{
    uint8_t units[2 * PIECE];
    char utf8[UTF8_PER_UTF16 * PIECE];
    uint32_t length = string_length(reader, object), end = MIN(length, max);
    uint64_t first = field_address(reader, object, F_String_m_FirstChar);
    for (uint32_t at = 0; at < end;) {
        uint32_t count = MIN(end - at, PIECE);
        size_t taken;
        if (!reader_copy(&reader->raw, first + 2 * (uint64_t)at, units, 2 * (size_t)count))
            return false;
        char *to = utf16_to_utf8(utf8, units, count, reader->raw.big_endian, count < end - at, &taken);
        if (!put(context, utf8, (size_t)(to - utf8)))
            return false;
        at += (uint32_t)taken;
    }
    return end == length && !reader_failed(&reader->raw);
}

static bool put_text(void *context, const char *utf8, size_t length)
{
    struct text *text = context;
    text_append(text, utf8, length);
    return !text->broken;
}

bool string_append(struct field_reader *reader, uint64_t object, uint32_t max, struct text *ret)
{
    return string_each(reader, object, max, put_text, ret);
}
