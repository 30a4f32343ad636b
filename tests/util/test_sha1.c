#include "util/sha1.h"
#include "tests/support/check_main.h"
#include "util/text.h"

static void check_hash(const void *bytes, size_t size, const char *expected)
{
    uint8_t digest[SHA1_SIZE];
    char hex[2 * SHA1_SIZE + 1];
    sha1(bytes, size, digest);
    text_hex(hex, digest, sizeof digest);
    ck_assert_str_eq(hex, expected);
}

/* The examples of FIPS 180-4 (csrc.nist.gov, "SHA_All"), and lengths on both sides of the last block. */
START_TEST(hashes_the_published_examples)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char many[1000];
    memset(many, 'a', sizeof many);
    check_hash("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    check_hash("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    check_hash(two, sizeof two - 1, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    check_hash(many, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    check_hash(many, 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    check_hash(many, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    check_hash(many, 1000, "291e9a6c66994949b57ba5e650361e98fc36b1ba");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sha1");
    TCase *tc = tcase_create("sha1");
    tcase_add_test(tc, hashes_the_published_examples);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
