#include "contracts/objects/string.h"

#include "contracts/objects/object.h"
#include "util/utf16.h"

enum { PIECE = 1024 }; /* units */

uint32_t string_length(struct reader *reader, uint64_t object)
{
    uint64_t method_table = object_method_table(reader, object);
    bool is_string;
    if (reader->layout->global_present[G_StringMethodTable])
        is_string = read_pointer(reader, reader->layout->globals[G_StringMethodTable]) == method_table;
    else
        is_string = method_table_is_string(reader, method_table);
    if (!is_string)
        reader_fail(reader, CDACQ_ERR_CORRUPT, object, "a string");
    uint32_t length = (uint32_t)read_field(reader, object, F_String_m_StringLength);
    if (length > STRING_LENGTH_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, object, "String.m_StringLength");
    return reader_failed(reader) ? 0 : length;
}

/* Passes `end` units from `first` on to `put`, in pieces. False likewise. */
static bool each_unit(struct reader *reader, uint64_t first, uint32_t end,
                      bool (*put)(void *context, const char *utf8, size_t length), void *context)
{
    uint8_t units[2 * PIECE];
    char utf8[UTF8_PER_UTF16 * PIECE];
    for (uint32_t at = 0; at < end;) {
        uint32_t count = MIN(end - at, PIECE);
        size_t taken;
        if (!reader_copy(reader, first + 2 * (uint64_t)at, units, 2 * (size_t)count))
            return false;
        char *to = utf16_to_utf8(utf8, units, count, reader->big_endian, count < end - at, &taken);
        if (!put(context, utf8, (size_t)(to - utf8)))
            return false;
        at += (uint32_t)taken;
    }
    return !reader_failed(reader);
}

bool string_each(struct reader *reader, uint64_t object, uint32_t max,
                 bool (*put)(void *context, const char *utf8, size_t length), void *context)
{
    uint32_t length = string_length(reader, object);
    uint64_t first = field_address(reader, object, F_String_m_FirstChar);
    return each_unit(reader, first, MIN(length, max), put, context) && length <= max;
}

static bool put_text(void *context, const char *utf8, size_t length)
{
    struct text *text = context;
    text_append(text, utf8, length);
    return !text->broken;
}

bool string_append(struct reader *reader, uint64_t object, uint32_t max, struct text *ret)
{
    return string_each(reader, object, max, put_text, ret);
}

bool string_append_units(struct reader *reader, uint64_t address, uint32_t count, struct text *ret)
{
    return each_unit(reader, address, count, put_text, ret);
}
