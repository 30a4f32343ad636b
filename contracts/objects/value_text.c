#include "contracts/objects/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "contracts/objects/string.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/attributes.h"
#include "formats/names/spelling.h"
#include "util/utf16.h"

enum {
    ENUM_MEMBERS_MAX = 4096,
    ENUM_PARTS_MAX = 64, /* members that together are one value */
    NULLABLE_DEPTH_MAX = 4,
};

#define TICKS_PER_SECOND UINT64_C(10000000)
#define TICKS_PER_DAY    (86400 * TICKS_PER_SECOND)
#define TICKS_MASK       UINT64_C(0x3fffffffffffffff) /* of DateTime._dateData; the kind is above it */
#define DATE_DAYS_MAX    3652058                      /* 9999-12-31 */

static bool put_value(struct module_cache *cache, const struct cdacq_value *value, struct text *ret, unsigned depth);

/* ---- Numbers ---- */

/* The shortest digits that give the number again. */
static void put_real(struct text *ret, uint64_t bits, uint32_t width)
{
    char digits[40];
    double value;
    float single;
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&value, &bits, sizeof value);
    if (width == sizeof single)
        value = (double)single;
    if (isnan(value) || isinf(value)) {
        text_puts(ret, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        double again = strtod(digits, NULL);
        if (width == sizeof single ? (float)again == single : again == value)
            break;
    }
    text_puts(ret, digits);
}

static void put_character(struct reader *reader, struct text *ret, uint16_t unit)
{
    char utf8[UTF8_PER_UTF16];
    uint8_t bytes[2] = {(uint8_t)unit, (uint8_t)(unit >> 8)};
    size_t taken;
    (void)reader;
    text_append(ret, utf8, (size_t)(utf16_to_utf8(utf8, bytes, 1, false, false, &taken) - utf8));
}

/* ---- Enums ---- */

struct enum_member {
    uint64_t value;
    uint32_t name;
};

/* The members of an enum whose values have `width` bytes, in the order of their values, which have zeros above. */
static uint32_t read_members(struct module_cache *cache, const struct metadata *metadata, uint32_t type, uint32_t width,
                             struct enum_member *ret)
{
    uint32_t begin, end, count = 0;
    if (metadata_fields(metadata, type, &begin, &end) != CDACQ_OK)
        return 0;
    for (uint32_t rid = begin; rid < end && count < ENUM_MEMBERS_MAX && reader_step(cache->reader, "an enum"); rid++) {
        CLEANUP_METADATA_BLOB struct metadata_blob blob;
        struct metadata_field field;
        uint32_t constant;
        bool found;
        blob.allocated = NULL;
        if (metadata_field(metadata, rid, &field) != CDACQ_OK || !(field.flags & FIELD_FLAG_LITERAL) ||
            metadata_field_constant(metadata, rid, &found, &constant) != CDACQ_OK || !found ||
            metadata_blob_read(metadata, constant, &blob) != CDACQ_OK || blob.length != width)
            continue;
        struct enum_member member = {.name = field.name};
        for (uint32_t i = 0; i < width; i++)
            member.value |= (uint64_t)blob.data[i] << 8 * i;
        uint32_t at = count++;
        for (; at && ret[at - 1].value > member.value; at--)
            ret[at] = ret[at - 1];
        ret[at] = member;
    }
    return count;
}

static bool put_name(const struct metadata *metadata, uint32_t index, struct text *ret)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    if (metadata_string(metadata, index, buffer, &name, &length) != CDACQ_OK)
        return false;
    text_escape(ret, name, length);
    return true;
}

static bool has_flags_attribute(const struct metadata *metadata, uint32_t token)
{
    struct text text = {0};
    const struct name_source source = {.metadata = metadata};
    struct namer n = namer_begin(&source, &type_spelling_reflection, &text);
    bool has = namer_has_attribute(&n, metadata, token, "System", "FlagsAttribute");
    has = has && namer_end(&n) == CDACQ_OK;
    text_deinit(&text);
    return has;
}

/* The names of the bits of a value. False: its members do not make it up. */
static bool put_flags(const struct metadata *metadata, const struct enum_member *members, uint32_t count,
                      uint64_t value, struct text *ret)
{
    uint32_t parts[ENUM_PARTS_MAX], part_count = 0;
    for (uint32_t i = count; i-- > 0 && value && part_count < ENUM_PARTS_MAX;)
        if (members[i].value && (value & members[i].value) == members[i].value) {
            value -= members[i].value;
            parts[part_count++] = members[i].name;
        }
    if (value || !part_count)
        return false;
    while (part_count) {
        if (!put_name(metadata, parts[--part_count], ret))
            return false;
        text_puts(ret, part_count ? ", " : "");
    }
    return true;
}

/* False, and nothing is written: the type is no enum, or has no such member. */
static bool put_enum(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    const struct metadata *metadata;
    uint32_t token;
    size_t length = ret->length;
    if (type_handle_definition(cache, value->method_table, &metadata, &token) != CDACQ_OK)
        return false;
    struct enum_member *members = calloc(ENUM_MEMBERS_MAX, sizeof *members);
    if (!members)
        return false;
    uint64_t bits = value->width < 8 ? value->bits & ((UINT64_C(1) << 8 * value->width) - 1) : value->bits;
    uint32_t count = read_members(cache, metadata, metadata_rid(token), value->width, members);
    bool named = false;
    for (uint32_t i = 0; i < count && !named; i++)
        named = members[i].value == bits && put_name(metadata, members[i].name, ret);
    if (!named && count && has_flags_attribute(metadata, token))
        named = put_flags(metadata, members, count, bits, ret);
    if (!named)
        text_cut(ret, length);
    free(members);
    return named;
}

/* ---- Types of the core library ---- */

/* A field of a struct by its name. 0: there is none, or the reader fails. */
static uint64_t member(struct module_cache *cache, const struct cdacq_value *value, const char *name, unsigned width)
{
    struct object_field field;
    if (!object_field_declared(cache, value->method_table, name, &field) || field.is_static) {
        reader_fail(cache->reader, CDACQ_ERR_FIELD, value->method_table, name);
        return 0;
    }
    return read_uint(cache->reader, value->address + field.offset, width);
}

/* The days since 0001-01-01 as a date of the Gregorian calendar. */
static void put_date(struct text *ret, uint32_t days)
{
    static const uint16_t before[] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337}; /* from March on */
    uint32_t day = days + 306;                                                                /* since 0000-03-01 */
    uint32_t era = day / 146097, of_era = day % 146097;
    uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint32_t of_year = of_era - (365 * year + year / 4 - year / 100), month = 11;
    while (before[month] > of_year)
        month--;
    year += era * 400 + (month >= 10);
    text_printf(ret, "%04" PRIu32 "-%02" PRIu32 "-%02" PRIu32, year, month < 10 ? month + 3 : month - 9,
                of_year - before[month] + 1);
}

static void put_time(struct text *ret, uint64_t ticks)
{
    uint64_t seconds = ticks / TICKS_PER_SECOND;
    text_printf(ret, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%07" PRIu64, seconds / 3600, seconds / 60 % 60,
                seconds % 60, ticks % TICKS_PER_SECOND);
}

/* False: it is no time that DateTime can have. */
static bool put_moment(struct text *ret, uint64_t ticks)
{
    if (ticks / TICKS_PER_DAY > DATE_DAYS_MAX)
        return false;
    put_date(ret, (uint32_t)(ticks / TICKS_PER_DAY));
    text_puts(ret, "T");
    put_time(ret, ticks % TICKS_PER_DAY);
    return true;
}

static bool put_date_time(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    uint64_t data = member(cache, value, "_dateData", 8), kind = data >> 62;
    if (!put_moment(ret, data & TICKS_MASK))
        return false;
    text_puts(ret, kind == 0 ? "" : kind == 1 ? "Z" : " (local)");
    return true;
}

/* The moment is kept in UTC. */
static bool put_date_time_offset(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    struct object_field field;
    struct reader *reader = cache->reader;
    if (!object_field_declared(cache, value->method_table, "_dateTime", &field))
        return false;
    uint64_t ticks = read_u64(reader, value->address + field.offset) & TICKS_MASK;
    if (!object_field_declared(cache, value->method_table, "_offsetMinutes", &field))
        return false;
    unsigned width = element_width(field.element, reader->pointer_size);
    uint64_t offset_bits = width == 2 || width == 4 ? read_uint(reader, value->address + field.offset, width) : 0;
    int32_t offset = width == 2 ? (int16_t)offset_bits : (int32_t)offset_bits;
    if (offset < -14 * 60 || offset > 14 * 60 ||
        !put_moment(ret, ticks + (uint64_t)((int64_t)offset * 60 * (int64_t)TICKS_PER_SECOND)))
        return false;
    uint32_t minutes = (uint32_t)abs(offset);
    text_printf(ret, "%c%02" PRIu32 ":%02" PRIu32, offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
    return true;
}

static bool put_time_span(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    uint64_t ticks = member(cache, value, "_ticks", 8);
    if (ticks >> 63) {
        text_puts(ret, "-");
        ticks = 0 - ticks;
    }
    if (ticks >= TICKS_PER_DAY)
        text_printf(ret, "%" PRIu64 ".", ticks / TICKS_PER_DAY);
    put_time(ret, ticks % TICKS_PER_DAY);
    return true;
}

static bool put_date_only(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    uint64_t days = member(cache, value, "_dayNumber", 4);
    if (days > DATE_DAYS_MAX)
        return false;
    put_date(ret, (uint32_t)days);
    return true;
}

static bool put_time_only(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    uint64_t ticks = member(cache, value, "_ticks", 8);
    if (ticks >= TICKS_PER_DAY)
        return false;
    put_time(ret, ticks);
    return true;
}

static bool put_guid(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    uint8_t tail[8];
    struct reader *reader = cache->reader;
    uint32_t a = read_u32(reader, value->address);
    uint16_t b = read_u16(reader, value->address + 4), c = read_u16(reader, value->address + 6);
    if (!reader_copy(reader, value->address + 8, tail, sizeof tail))
        return false;
    text_printf(ret, "%08" PRIx32 "-%04x-%04x-%02x%02x-", a, b, c, tail[0], tail[1]);
    for (size_t i = 2; i < sizeof tail; i++)
        text_printf(ret, "%02x", tail[i]);
    return true;
}

/* A number of `count` words, lowest first, with a point before its last digits; divides the words. */
static void put_big(struct text *ret, uint32_t *words, unsigned count, unsigned point, bool negative)
{
    char digits[64], *at = digits + sizeof digits;
    unsigned written = 0;
    for (bool more = true; more || written <= point; written++) {
        uint64_t rest = 0;
        more = false;
        for (unsigned i = count; i-- > 0;) {
            uint64_t part = rest << 32 | words[i];
            words[i] = (uint32_t)(part / 10);
            rest = part % 10;
            more |= words[i] != 0;
        }
        if (written == point && point)
            *--at = '.';
        *--at = (char)('0' + rest);
    }
    text_puts(ret, negative ? "-" : "");
    text_append(ret, at, (size_t)(digits + sizeof digits - at));
}

static bool put_decimal(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    enum { SCALE_SHIFT = 16, SCALE_MAX = 28 };
    uint32_t flags = (uint32_t)member(cache, value, "_flags", 4);
    uint64_t low = member(cache, value, "_lo64", 8);
    uint32_t words[] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)member(cache, value, "_hi32", 4)};
    unsigned scale = flags >> SCALE_SHIFT & 0xff;
    if (scale > SCALE_MAX || reader_failed(cache->reader))
        return false;
    put_big(ret, words, ARRAY_SIZE(words), scale, flags >> 31);
    return true;
}

static void put_128(struct module_cache *cache, const struct cdacq_value *value, bool is_signed, struct text *ret)
{
    uint64_t low = member(cache, value, "_lower", 8), high = member(cache, value, "_upper", 8);
    bool negative = is_signed && high >> 63;
    if (negative) {
        low = 0 - low;
        high = ~high + (low == 0);
    }
    uint32_t words[] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
    put_big(ret, words, ARRAY_SIZE(words), 0, negative);
}

static bool put_int128(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    put_128(cache, value, true, ret);
    return true;
}

static bool put_uint128(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    put_128(cache, value, false, ret);
    return true;
}

/* Only a span of characters has a text. */
static bool put_span(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    enum { UNITS_MAX = 4096 };
    struct reader *reader = cache->reader;
    uint64_t arguments;
    uint32_t count = 0;
    if (type_handle_arguments(cache, value->method_table, &arguments, &count) != CDACQ_OK || count != 1 ||
        type_handle_element(cache, read_pointer(reader, arguments)) != ELEMENT_CHAR)
        return false;
    uint64_t units = member(cache, value, "_length", 4);
    uint64_t first = member(cache, value, "_reference", reader->pointer_size);
    return units <= UNITS_MAX && !reader_failed(reader) && string_append_units(reader, first, (uint32_t)units, ret);
}

static const struct {
    const char *name; /* in the namespace System */
    bool (*put)(struct module_cache *cache, const struct cdacq_value *value, struct text *ret);
} core_structs[] = {
    {"DateTime", put_date_time},  {"DateTimeOffset", put_date_time_offset},
    {"TimeSpan", put_time_span},  {"DateOnly", put_date_only},
    {"TimeOnly", put_time_only},  {"Guid", put_guid},
    {"Decimal", put_decimal},     {"Int128", put_int128},
    {"UInt128", put_uint128},     {"Span`1", put_span},
    {"ReadOnlySpan`1", put_span},
};

static bool put_core_struct(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    const struct metadata *metadata;
    uint32_t token;
    bool equal = false;
    if (type_handle_definition(cache, value->method_table, &metadata, &token) != CDACQ_OK ||
        metadata_assembly_is(metadata, "System.Private.CoreLib", &equal) != CDACQ_OK || !equal)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(core_structs); i++)
        if (metadata_type_is(metadata, token, "System", core_structs[i].name, &equal) == CDACQ_OK && equal)
            return core_structs[i].put(cache, value, ret);
    return false;
}

static bool put_value(struct module_cache *cache, const struct cdacq_value *value, struct text *ret, unsigned depth)
{
    struct reader *reader = cache->reader;
    struct cdacq_value inner;
    bool has_type = value->method_table && !cache->aot, has_value;
    switch (value->kind) {
    case CDACQ_VALUE_STRUCT:
        if (!has_type || !value->address || depth > NULLABLE_DEPTH_MAX)
            return false;
        if (!nullable_value_read(cache, value, &has_value, &inner))
            return !reader_failed(reader) && put_core_struct(cache, value, ret);
        if (has_value)
            return put_value(cache, &inner, ret, depth + 1);
        text_puts(ret, "null");
        return true;
    case CDACQ_VALUE_BOOLEAN:
        text_puts(ret, value->bits ? "true" : "false");
        return true;
    case CDACQ_VALUE_CHARACTER:
        put_character(reader, ret, (uint16_t)value->bits);
        return true;
    case CDACQ_VALUE_REAL:
        put_real(ret, value->bits, value->width);
        return true;
    case CDACQ_VALUE_SIGNED:
    case CDACQ_VALUE_UNSIGNED:
        if (has_type && put_enum(cache, value, ret))
            return true;
        reader_recover(reader, FAILURE_BUT_FUEL);
        if (value->kind == CDACQ_VALUE_SIGNED)
            text_printf(ret, "%" PRId64, (int64_t)value->bits);
        else
            text_printf(ret, "%" PRIu64, value->bits);
        return true;
    case CDACQ_VALUE_POINTER:
        text_printf(ret, "0x%" PRIx64, value->bits);
        return true;
    default:
        return false;
    }
}

bool value_text(struct module_cache *cache, const struct cdacq_value *value, struct text *ret)
{
    size_t length = ret->length;
    if (put_value(cache, value, ret, 0) && !ret->broken && !reader_failed(cache->reader))
        return true;
    text_cut(ret, length);
    return false;
}
