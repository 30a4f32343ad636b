#include "util/sha256.h"
#include "tests/support/check_main.h"
#include "util/text.h"

/* In pieces of `piece` bytes. */
static void check_hash(const char *bytes, size_t size, size_t piece, const char *expected)
{
    struct sha256 hash;
    uint8_t digest[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    sha256_begin(&hash);
    for (size_t done = 0; done < size; done += piece)
        sha256_add(&hash, bytes + done, MIN(piece, size - done));
    sha256_end(&hash, digest);
    text_hex(hex, digest, sizeof digest);
    ck_assert_str_eq(hex, expected);
}

/* The examples of FIPS 180-4 (csrc.nist.gov, "SHA_All"). */
START_TEST(hashes_the_published_examples)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    check_hash("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash(two, sizeof two - 1, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
END_TEST

START_TEST(hashes_a_million_bytes_in_pieces_of_any_size)
{
    static const size_t pieces[] = {1000000, 64, 63, 65, 1, 4096};
    char *bytes = malloc(1000000);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'a', 1000000);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        check_hash(bytes, 1000000, pieces[i], "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(bytes);
}
END_TEST

/* Every length around the end of a block pads differently; the sum is that of Python's hashlib. */
START_TEST(pads_messages_of_every_length)
{
    struct sha256 all;
    uint8_t digest[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1], message[130];
    memset(message, 'x', sizeof message);
    sha256_begin(&all);
    for (size_t size = 0; size <= sizeof message; size++) {
        struct sha256 one;
        sha256_begin(&one);
        sha256_add(&one, message, size);
        sha256_end(&one, digest);
        sha256_add(&all, digest, sizeof digest);
    }
    sha256_end(&all, digest);
    text_hex(hex, digest, sizeof digest);
    ck_assert_str_eq(hex, "f5a018ad6f7a21c451c8d98b57699f4aeeb1976b88771c339c7ea60cd09c64ef");
}
END_TEST

/* A processor without instructions for SHA gets the same sums. */
START_TEST(hashes_alike_on_every_processor)
{
    uint8_t bytes[1000], plain[SHA256_SIZE], fast[SHA256_SIZE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct sha256 a, b;
        sha256_begin(&a);
        sha256_begin_portable(&b);
        sha256_add(&a, bytes, size);
        sha256_add(&b, bytes, size);
        sha256_end(&a, fast);
        sha256_end(&b, plain);
        ck_assert_mem_eq(fast, plain, SHA256_SIZE);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sha256");
    TCase *tc = tcase_create("sha256");
    tcase_add_test(tc, hashes_the_published_examples);
    tcase_add_test(tc, hashes_a_million_bytes_in_pieces_of_any_size);
    tcase_add_test(tc, pads_messages_of_every_length);
    tcase_add_test(tc, hashes_alike_on_every_processor);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
