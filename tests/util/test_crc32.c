#include "util/crc32.h"
#include "tests/support/check_main.h"

/* The check value of the RevEng catalogue (CRC-32/ISO-HDLC), and values that zlib gives. */
START_TEST(sums_up_as_zlib_does)
{
    ck_assert_uint_eq(crc32_of("", 0), 0);
    ck_assert_uint_eq(crc32_of("123456789", 9), 0xcbf43926);
    ck_assert_uint_eq(crc32_of("The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
    ck_assert_uint_eq(crc32_of("\0\0\0\0", 4), 0x2144df1c);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("crc32");
    TCase *tc = tcase_create("crc32");
    tcase_add_test(tc, sums_up_as_zlib_does);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
