#include "util/inflate.h"
#include "tests/support/check_main.h"

/* "hello hello hello hello\n", by Python's zlib.compressobj(wbits=-15) */
static const uint8_t packed[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9, 0x00};
static const char plain[] = "hello hello hello hello\n";

static char why[200];

START_TEST(decompresses_a_raw_stream)
{
    char out[sizeof plain - 1];
    ck_assert_msg(inflate_raw(packed, sizeof packed, out, sizeof out, why, sizeof why), "%s", why);
    ck_assert_mem_eq(out, plain, sizeof out);
}
END_TEST

START_TEST(refuses_a_stream_of_another_size)
{
    char out[sizeof plain + 10];
    ck_assert(!inflate_raw(packed, sizeof packed, out, sizeof plain - 2, why, sizeof why));
    ck_assert(!inflate_raw(packed, sizeof packed, out, sizeof plain, why, sizeof why));
    ck_assert_str_ne(why, "");
}
END_TEST

START_TEST(refuses_what_is_damaged_or_cut_off)
{
    char out[sizeof plain - 1];
    uint8_t damaged[sizeof packed];
    for (size_t size = 0; size + 1 < sizeof packed; size++)
        ck_assert(!inflate_raw(packed, size, out, sizeof out, why, sizeof why));
    memcpy(damaged, packed, sizeof packed);
    damaged[0] = 0xff;
    ck_assert(!inflate_raw(damaged, sizeof damaged, out, sizeof out, why, sizeof why));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("inflate");
    TCase *tc = tcase_create("inflate");
    tcase_add_test(tc, decompresses_a_raw_stream);
    tcase_add_test(tc, refuses_a_stream_of_another_size);
    tcase_add_test(tc, refuses_what_is_damaged_or_cut_off);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
