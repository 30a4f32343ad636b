/*
 * The texts of messages of the StressLog. The C library's printf is the judge of conversions that it knows. On every
 * architecture of the mock.
 */
#include <inttypes.h>
#include <stdio.h>

#include "contracts/stress_log/message_text.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

struct fixture {
    struct mock *mock;
    struct cdacq_target *target;
    struct reader reader;
    uint64_t strings; /* a page of memory */
    struct message_source source;
    struct text text;
};

static bool name(void *context, enum message_name kind, uint64_t address, struct text *ret)
{
    static const char *const kinds[] = {"type", "method", "vtable", "code"};
    (void)context;
    if (address == 0x999)
        return false;
    text_printf(ret, "%s %" PRIx64, kinds[kind], address);
    return true;
}

static bool is_constant(void *context, uint64_t address)
{
    const struct fixture *f = context;
    return address < f->strings + 2048;
}

static void begin(struct fixture *f, int arch)
{
    *f = (struct fixture){.mock = mock_of_arch(arch, 3)};
    f->strings = mock_map(f->mock, 0, 4096, MOCK_READ, NULL, 0);
    for (unsigned i = 0; i < 4096; i += 8)
        mock_write_uint(f->mock, f->strings + i, 8, 0);
    f->target = mock_publish_and_open(f->mock);
    f->reader = mock_reader(f->target);
    f->source = (struct message_source){.name = name, .is_constant = is_constant, .context = f};
}

static void end(struct fixture *f)
{
    text_deinit(&f->text);
    cdacq_target_close(f->target);
    mock_destroy(f->mock);
}

/* Fails the test unless the text and its flaws are these. */
static void check(struct fixture *f, const char *format, const uint64_t *arguments, unsigned count,
                  const char *expected, unsigned flaws)
{
    text_clear(&f->text);
    reader_begin(&f->reader, FUEL_LOOKUP);
    unsigned found = message_text_write(&f->reader, &f->source, format, strlen(format), arguments, count, &f->text);
    ck_assert_msg(!strcmp(f->text.data ? f->text.data : "", expected), "%s: '%s', not '%s'", format,
                  f->text.data ? f->text.data : "", expected);
    ck_assert_msg(found == flaws, "%s: flaws %x, not %x", format, found, flaws);
    ck_assert(!reader_failed(&f->reader));
}

#define CHECK(f, format, expected, flaws, ...)                                                                      \
    check(f, format, (const uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t), expected, \
          flaws)

START_TEST(as_printf)
{
    static const char *const formats[] = {
        "%d",   "%i",   "%u",    "%x",     "%X",      "%o",        "%5d", "%-5d|", "%05d", "%+d",  "% d",   "%#x",
        "%#o",  "%.3d", "%.0d",  "%8.3d",  "%-8.3x|", "%08.3d",    "%hd", "%hu",   "%hhd", "%hhu", "%hhx",  "%lld",
        "%llu", "%llx", "%#llx", "%20lld", "%020lld", "%-+20lld|", "%jd", "%qd",   "%c",   "%3c",  "%-3c|", "%#X",
    };
    static const uint64_t values[] = {0,
                                      1,
                                      7,
                                      65,
                                      127,
                                      32767,
                                      65535,
                                      0x7fffffff,
                                      0x80000000,
                                      UINT32_MAX,
                                      UINT64_C(0x7fffffffffffffff),
                                      UINT64_C(0x8000000000000000),
                                      UINT64_MAX};
    struct fixture f;
    begin(&f, _i);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            bool is_character = strchr(formats[i], 'c') != NULL;
            char expected[128];
            if (is_character && (values[k] < 32 || values[k] > 126))
                continue;
            snprintf(expected, sizeof expected, formats[i], values[k]);
            check(&f, formats[i], &values[k], 1, expected, 0);
        }
    end(&f);
}
END_TEST

START_TEST(real_numbers)
{
    static const char *const formats[] = {"%f",       "%g",      "%e",  "%.3f", "%10.2f",
                                          "%-10.2f|", "%010.2f", "%+g", "%G",   "% .1e"};
    static const float values[] = {0, 1, -1.5F, 0.1F, 1e30F, -3.25e-20F, __builtin_inff(), -__builtin_inff()};
    struct fixture f;
    begin(&f, _i);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            char expected[128];
            double wide = (double)values[k];
            uint32_t narrow_bits;
            uint64_t bits;
            memcpy(&bits, &wide, sizeof bits);
            memcpy(&narrow_bits, &values[k], sizeof narrow_bits);
            bits = f.reader.pointer_size == 4 ? narrow_bits : bits;
            if (formats[i][1] == '0' && !__builtin_isfinite(wide))
                continue;
            snprintf(expected, sizeof expected, formats[i], wide);
            check(&f, formats[i], &bits, 1, expected, 0);
        }
    end(&f);
}
END_TEST

/* What the runtime's formats have beside standard C, and what depends on the width of the target. */
START_TEST(as_the_runtime)
{
    struct fixture f;
    begin(&f, _i);
    bool is_wide = f.reader.pointer_size == 8;
    CHECK(&f, "plain\n", "plain", 0, 0);
    CHECK(&f, "a\nb\n\r\n", "a\\x0ab", 0, 0);
    CHECK(&f, "100%% of %d%%", "100% of 5%", 0, 5);
    CHECK(&f, "%I64x %I32d", "123456789abcdef0 -1", 0, UINT64_C(0x123456789abcdef0), UINT32_MAX);
    CHECK(&f, "%Ix", is_wide ? "ffffffffffffffff" : "ffffffff", 0, UINT64_MAX);
    CHECK(&f, "%lx", is_wide ? "ffffffffffffffff" : "ffffffff", 0, UINT64_MAX);
    CHECK(&f, "%zd %td", "-1 -1", 0, UINT64_MAX, UINT64_MAX);
    CHECK(&f, "%*d|%-*d|%.*d", "    7|7    |007", 0, 5, 7, 5, 7, 3, 7);
    CHECK(&f, "%*d|", "7    |", 0, (uint64_t)-5, 7);
    CHECK(&f, "%p %p", "0x7f00 0x0", 0, 0x7f00, 0);
    CHECK(&f, "%12p|%-12p|%012p", "      0x7f00|0x7f00      |0x0000007f00", 0, 0x7f00, 0x7f00, 0x7f00);
    CHECK(&f, "MT %pT, %pM.", "MT 0x10 (type 10), 0x20 (method 20).", 0, 0x10, 0x20);
    CHECK(&f, "%pV %pK", "0x10 (vtable 10) 0x999", 0, 0x10, 0x999);
    CHECK(&f, "%pT", "0x0", 0, 0);
    CHECK(&f, "%px", "0x1x", 0, 1);
    CHECK(&f, "%y %d", "%y 3", 0, 3);
    CHECK(&f, "%", "%", 0, 0);
    CHECK(&f, "%-0#", "%-0#", 0, 0);
    CHECK(&f, "%d %s %d", "1 (no argument) (no argument)", MESSAGE_NO_ARGUMENT, 1);
    CHECK(&f, "\x1b[31m%c", "\\x1b[31m\\x1b", 0, 0x1b);
    end(&f);
}
END_TEST

static void put_string(struct fixture *f, unsigned at, const char *text, size_t size)
{
    mock_write(f->mock, f->strings + at, text, size);
}

START_TEST(strings)
{
    struct fixture f;
    char text[600], expected[600];
    begin(&f, _i);
    put_string(&f, 8, "first", 6);
    put_string(&f, 64, "\x1b]0;\xff\xc3\xa9", 8);
    for (unsigned i = 0; i < 3; i++)
        mock_write_uint(f.mock, f.strings + 128 + 2 * i, 2, (const unsigned[]){'W', 0xe9, 'x'}[i]);
    CHECK(&f, "<%s>", "<first>", 0, f.strings + 8);
    CHECK(&f, "<%8s> <%-8s>", "<   first> <first   >", 0, f.strings + 8, f.strings + 8);
    CHECK(&f, "<%.2s>", "<fi>", 0, f.strings + 8);
    CHECK(&f, "<%s>", "<\\x1b]0;\\xff\xc3\xa9>", 0, f.strings + 64);
    CHECK(&f, "<%S> <%ls> <%ws> <%.1S>", "<W\xc3\xa9x> <W\xc3\xa9x> <W\xc3\xa9x> <W>", 0, f.strings + 128,
          f.strings + 128, f.strings + 128, f.strings + 128);
    CHECK(&f, "<%hs>", "<first>", 0, f.strings + 8);
    CHECK(&f, "<%s>", "<(null)>", 0, 0);
    CHECK(&f, "%s %d", "(no string at 0x10) 4", MESSAGE_MISSING, 0x10, 4);
    memset(text, 'a', sizeof text);
    put_string(&f, 1024, text, sizeof text);
    snprintf(expected, sizeof expected, "%.*s", MESSAGE_STRING_MAX, text);
    CHECK(&f, "%s", expected, MESSAGE_CUT, f.strings + 1024);
    put_string(&f, 2100, "may change", 11);
    CHECK(&f, "%s", "may change", MESSAGE_CHANGEABLE, f.strings + 2100);
    put_string(&f, 4094, "x", 2); /* the last byte of what there is is its NUL */
    CHECK(&f, "%s", "x", MESSAGE_CHANGEABLE, f.strings + 4094);
    put_string(&f, 4094, "xy", 2);
    snprintf(expected, sizeof expected, "(no string at 0x%" PRIx64 ")", f.strings + 4094);
    CHECK(&f, "%s", expected, MESSAGE_MISSING, f.strings + 4094);
    end(&f);
}
END_TEST

/* Widths, precisions, formats and texts have bounds. */
START_TEST(bounds)
{
    struct fixture f;
    char format[1400];
    begin(&f, _i);
    const uint64_t arguments[2] = {UINT32_MAX, 1};
    text_clear(&f.text);
    reader_begin(&f.reader, FUEL_LOOKUP);
    message_text_write(&f.reader, &f.source, "%99999999999999999999d", 22, arguments, 1, &f.text);
    ck_assert_uint_eq(f.text.length, MESSAGE_WIDTH_MAX);
    CHECK(&f, "%.99999x", "00000000000000000000000000000000000000000000000000000000000000ff", 0, 0xff);
    text_clear(&f.text);
    ck_assert_uint_eq(message_text_write(&f.reader, &f.source, "%*d", 3, (const uint64_t[]){INT32_MAX, 1}, 2, &f.text),
                      0);
    ck_assert_uint_eq(f.text.length, MESSAGE_WIDTH_MAX);
    memset(format, 'x', sizeof format);
    text_clear(&f.text);
    ck_assert_uint_eq(message_text_write(&f.reader, &f.source, format, sizeof format, NULL, 0, &f.text), MESSAGE_CUT);
    ck_assert_uint_eq(f.text.length, MESSAGE_FORMAT_MAX);
    for (size_t i = 0; i < 1000; i += 5)
        memcpy(format + i, "%256d", 5);
    uint64_t many[63] = {0};
    text_clear(&f.text);
    ck_assert_uint_eq(message_text_write(&f.reader, &f.source, format, 1000, many, 63, &f.text), MESSAGE_NO_ARGUMENT);
    ck_assert_uint_lt(f.text.length, TEXT_CAP);
    end(&f);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("message_text");
    TCase *t = tcase_create("message_text");
    tcase_add_loop_test(t, as_printf, 0, ARCH_COUNT);
    tcase_add_loop_test(t, real_numbers, 0, ARCH_COUNT);
    tcase_add_loop_test(t, as_the_runtime, 0, ARCH_COUNT);
    tcase_add_loop_test(t, strings, 0, ARCH_COUNT);
    tcase_add_loop_test(t, bounds, 0, ARCH_COUNT);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
