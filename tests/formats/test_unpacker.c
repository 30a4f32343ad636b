#include "formats/compression/unpacker.h"

#include "tests/support/check_main.h"
#include "tests/support/compressor.h"
#include "tests/support/emulation.h"

static const char *const formats[] = {"zstd", "gzip", "xz", "lz4"};

enum { SIZE = 300 * 1000 };

static uint8_t *plain, *packed, *out;
static size_t packed_size;

/* Bytes, and how many of them a read gives at most. */
static struct source {
    const uint8_t *bytes;
    size_t size, at, most;
} source;

static size_t read_source(void *context, void *buffer, size_t size)
{
    struct source *from = context;
    size_t n = MIN(MIN(size, from->most), from->size - from->at);
    memcpy(buffer, from->bytes + from->at, n);
    from->at += n;
    return n;
}

/* What compresses well, what does not, and zeros. */
static void setup(void)
{
    uint32_t random = 1;
    plain = calloc(1, SIZE);
    out = malloc(4 * SIZE);
    ck_assert(plain && out);
    for (size_t i = 0; i < SIZE; i++) {
        random = random * 1664525 + 1013904223;
        plain[i] = (uint8_t)(i % 5000 < 2000 ? random >> 24 : i % 5000 < 4000 ? i / 16 : 0);
    }
}

static void teardown(void)
{
    free(plain);
    free(packed);
    free(out);
    plain = packed = out = NULL;
}

static void pack(const char *format, size_t size)
{
    free(packed);
    packed = compress_bytes(format, plain, size, &packed_size);
}

static void append_packed(const void *bytes, size_t size)
{
    packed = realloc(packed, packed_size + size);
    ck_assert_ptr_nonnull(packed);
    memcpy(packed + packed_size, bytes, size);
    packed_size += size;
}

/* Unpacks `size` bytes of the packed data, read by `most`, in pieces of `piece`. Returns the number of bytes. */
static size_t unpack(size_t size, size_t most, size_t piece, struct unpacker *ret)
{
    char why[200];
    struct unpacker unpacker;
    const struct codec *codec = codec_of(packed, packed_size);
    ck_assert_ptr_nonnull(codec);
    source = (struct source){packed, size, 0, most};
    ck_assert_msg(unpacker_init(&unpacker, codec, read_source, &source, why, sizeof why), "%s", why);
    size_t done = 0, n;
    do {
        ck_assert_uint_le(done + piece, 4 * SIZE);
        n = unpacker_read(&unpacker, out + done, piece);
        done += n;
    } while (n == piece);
    ck_assert_int_ne(unpacker.state, UNPACKER_OPEN);
    ck_assert_uint_eq(unpacker.produced, done);
    ck_assert_uint_le(unpacker.consumed, size);
    *ret = unpacker;
    unpacker_deinit(&unpacker);
    return done;
}

START_TEST(whole)
{
    struct unpacker end;
    pack(formats[_i], SIZE);
    ck_assert_str_eq(codec_of(packed, packed_size)->name, formats[_i]);
    static const size_t pieces[][2] = {{1, 100}, {7, 1}, {100, SIZE + 1}, {SIZE, 4096}, {SIZE, SIZE + 1}};
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        ck_assert_uint_eq(unpack(packed_size, pieces[i][0], pieces[i][1], &end), SIZE);
        ck_assert_int_eq(end.state, UNPACKER_COMPLETE);
        ck_assert_uint_eq(end.consumed, packed_size);
        ck_assert_mem_eq(out, plain, SIZE);
    }
}
END_TEST

START_TEST(empty_member)
{
    struct unpacker end;
    pack(formats[_i], 0);
    ck_assert_uint_eq(unpack(packed_size, 1000, 1000, &end), 0);
    ck_assert_int_eq(end.state, UNPACKER_COMPLETE);
}
END_TEST

/* Wherever the data are cut off, what comes out is the beginning of what went in. */
START_TEST(cut)
{
    struct unpacker end;
    pack(formats[_i], SIZE);
    size_t magic_size = codec_of(packed, packed_size)->magic_size, last = 0;
    size_t part = (size_t)rounds(15, 4);
    for (size_t size = magic_size; size < packed_size; size += 1 + size / part * (size + 40 < packed_size)) {
        size_t done = unpack(size, 1000, 5000, &end);
        ck_assert_int_eq(end.state, UNPACKER_CUT);
        ck_assert_uint_ge(done, last);
        ck_assert_mem_eq(out, plain, done);
        last = done;
    }
    ck_assert_uint_gt(last, SIZE / 3);
}
END_TEST

/* Nothing hangs or overruns. xz and gzip have checksums, so a change is never taken for the whole data. */
START_TEST(damaged)
{
    struct unpacker end;
    unsigned ends[UNPACKER_NOMEM + 1] = {0};
    pack(formats[_i], SIZE);
    for (size_t at = 0; at < packed_size; at += 1 + at / (size_t)rounds(8, 2)) {
        packed[at] ^= 0x55;
        if (codec_of(packed, packed_size)) {
            size_t done = unpack(packed_size, 4000, 5000, &end);
            ends[end.state]++;
            if (done == SIZE && end.state == UNPACKER_COMPLETE && (formats[_i][0] == 'x' || formats[_i][0] == 'g') &&
                memcmp(out, plain, SIZE) != 0)
                ck_abort_msg("%s: byte %zu changed, and this was not noticed", formats[_i], at);
        }
        packed[at] ^= 0x55;
    }
    ck_assert_uint_gt(ends[UNPACKER_DAMAGED], 0);
    ck_assert_uint_eq(ends[UNPACKER_NOMEM], 0);
}
END_TEST

START_TEST(members_are_concatenated)
{
    struct unpacker end;
    size_t member_size;
    uint8_t *member = compress_bytes(formats[_i], plain, 1000, &member_size);
    for (size_t most = 1; most < 5000; most = most * 3 + 1) {
        pack(formats[_i], 1000);
        append_packed(member, member_size);
        append_packed(member, member_size);
        ck_assert_uint_eq(unpack(packed_size, most, 700, &end), 3000);
        ck_assert_int_eq(end.state, UNPACKER_COMPLETE);
        for (size_t i = 0; i < 3; i++)
            ck_assert_mem_eq(out + 1000 * i, plain, 1000);
        ck_assert_uint_ge(unpack(packed_size - 1, most, 700, &end), 2000);
        ck_assert_int_eq(end.state, UNPACKER_CUT);
    }
    free(member);
}
END_TEST

/* Other data after the last member are left alone; zeros are padding in gzip and xz. */
START_TEST(what_follows_the_last_member)
{
    struct unpacker end;
    static const uint8_t zeros[1000];
    pack(formats[_i], 1000);
    append_packed(zeros, sizeof zeros);
    ck_assert_uint_eq(unpack(packed_size, 64, 700, &end), 1000);
    ck_assert_int_eq(end.state, UNPACKER_COMPLETE);
    append_packed("other", 5);
    ck_assert_uint_eq(unpack(packed_size, 64, 700, &end), 1000);
    ck_assert_int_eq(end.state, UNPACKER_COMPLETE);
}
END_TEST

START_TEST(skippable_members)
{
    static const uint8_t skippable[] = {0x51, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'};
    static const char *const skipping[] = {"zstd", "lz4"};
    struct unpacker end;
    size_t member_size;
    uint8_t *member = compress_bytes(skipping[_i], plain, 1000, &member_size);
    packed_size = 0;
    append_packed(skippable, sizeof skippable);
    append_packed(member, member_size);
    append_packed(skippable, sizeof skippable);
    append_packed(member, member_size);
    append_packed(skippable, sizeof skippable);
    ck_assert_str_eq(codec_of(packed, packed_size)->name, skipping[_i]);
    ck_assert_uint_eq(unpack(packed_size, 3, 300, &end), 2000);
    ck_assert_int_eq(end.state, UNPACKER_COMPLETE);
    ck_assert_mem_eq(out + 1000, plain, 1000);
    free(member);
}
END_TEST

START_TEST(formats_by_their_first_bytes)
{
    static const uint8_t long_skippable[] = {0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff, 0, 0};
    ck_assert_ptr_null(codec_of((const uint8_t *)"", 0));
    ck_assert_ptr_null(codec_of((const uint8_t *)"\x7f"
                                                 "ELF\2\1\1",
                                7));
    ck_assert_ptr_null(codec_of((const uint8_t *)"BZh91AY", 7));
    ck_assert_ptr_null(codec_of((const uint8_t *)"\x28\xb5\x2f", 3));
    ck_assert_ptr_eq(codec_of((const uint8_t *)"\x28\xb5\x2f\xfd", 4), &codec_zstd);
    ck_assert_ptr_eq(codec_of((const uint8_t *)"\x1f\x8b\x08", 3), &codec_gzip);
    ck_assert_ptr_eq(codec_of(long_skippable, sizeof long_skippable), &codec_zstd);
}
END_TEST

/* A window of 1 GiB, as `zstd --long=30` may write it, is refused before anything is unpacked. */
START_TEST(too_much_memory)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, (30 - 10) << 3, 0x41, 0, 0, 'x', 0, 0, 0};
    struct unpacker end;
    packed_size = 0;
    append_packed(frame, sizeof frame);
    ck_assert_uint_eq(unpack(packed_size, 100, 100, &end), 0);
    ck_assert_int_eq(end.state, UNPACKER_MEMORY);
}
END_TEST

static Suite *unpacker_suite(void)
{
    Suite *suite = suite_create("unpacker");
    TCase *tcase = tcase_create("unpacker");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, whole, 0, ARRAY_SIZE(formats));
    tcase_add_loop_test(tcase, empty_member, 0, ARRAY_SIZE(formats));
    tcase_add_loop_test(tcase, cut, 0, ARRAY_SIZE(formats));
    tcase_add_loop_test(tcase, damaged, 0, ARRAY_SIZE(formats));
    tcase_add_loop_test(tcase, members_are_concatenated, 0, ARRAY_SIZE(formats));
    tcase_add_loop_test(tcase, what_follows_the_last_member, 0, ARRAY_SIZE(formats));
    tcase_add_loop_test(tcase, skippable_members, 0, 2);
    tcase_add_test(tcase, formats_by_their_first_bytes);
    tcase_add_test(tcase, too_much_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(unpacker_suite)
