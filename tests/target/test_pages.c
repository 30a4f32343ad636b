#include "target/target.h"

#include "tests/support/check_main.h"

static struct pages pages;

static void teardown(void)
{
    for (struct page *page = NULL; (page = pages_next(&pages, page));)
        free(page->bytes);
    pages_deinit(&pages);
}

START_TEST(nothing)
{
    ck_assert_ptr_null(pages_find(&pages, 0));
    ck_assert_ptr_null(pages_find(&pages, 4096));
    ck_assert_uint_eq(pages.count, 0);
}
END_TEST

START_TEST(adds_once)
{
    bool added = false;
    struct page *page = pages_insert(&pages, (struct page){.address = 0x7000}, &added);
    ck_assert_ptr_nonnull(page);
    ck_assert(added);
    ck_assert_uint_eq(page->address, 0x7000);
    ck_assert_ptr_null(page->bytes);
    page->bytes = malloc(PAGE_SIZE); /* ours to free */
    uint8_t *bytes = page->bytes;
    page = pages_insert(&pages, (struct page){.address = 0x7000}, &added);
    ck_assert(!added);
    ck_assert_ptr_eq(page->bytes, bytes);
    ck_assert_ptr_eq(pages_find(&pages, 0x7000), page);
    ck_assert_ptr_null(pages_find(&pages, 0x6000));
    ck_assert_ptr_null(pages_find(&pages, 0x8000));
    ck_assert_uint_eq(pages.count, 1);
}
END_TEST

START_TEST(the_ends_of_the_address_space)
{
    const uint64_t addresses[] = {0, PAGE_SIZE, UINT64_MAX - PAGE_SIZE + 1, UINT64_C(1) << 63};
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        ck_assert_ptr_nonnull(pages_insert(&pages, (struct page){.address = addresses[i]}, NULL));
    ck_assert_uint_eq(pages.count, ARRAY_SIZE(addresses));
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        ck_assert_uint_eq(pages_find(&pages, addresses[i])->address, addresses[i]);
}
END_TEST

START_TEST(deinit_may_be_repeated)
{
    ck_assert_ptr_nonnull(pages_insert(&pages, (struct page){.address = 0}, NULL));
    pages_deinit(&pages);
    ck_assert_uint_eq(pages.count, 0);
    ck_assert_ptr_null(pages_find(&pages, 0));
    ck_assert_ptr_nonnull(pages_insert(&pages, (struct page){.address = 0}, NULL));
}
END_TEST

/* The strides that processes really have: neighbours, huge pages, thread stacks, the 4 GiB between regions. */
START_TEST(many_at_any_stride)
{
    static const uint64_t strides[] = {1, 2, 16, 512, 2048, 1 << 18, 1 << 20, 3, 513};
    enum { COUNT = 200 * 1000 };
    double start = cpu_seconds();
    uint64_t stride = strides[_i] * PAGE_SIZE, base = UINT64_C(0x7f0000000000);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct page *page = pages_insert(&pages, (struct page){.address = base + i * stride}, NULL);
        if (!page)
            ck_abort(); /* ck_assert writes to a file each time: too slow for many */
        if (i % 1000 == 0)
            page->bytes = malloc(16);
    }
    ck_assert_uint_eq(pages.count, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct page *page = pages_find(&pages, base + i * stride);
        if (!page || page->address != base + i * stride || (page->bytes != NULL) != (i % 1000 == 0))
            ck_abort_msg("page %lu", (unsigned long)i);
        if (stride > PAGE_SIZE && pages_find(&pages, base + i * stride + PAGE_SIZE))
            ck_abort_msg("a page behind page %lu", (unsigned long)i);
    }
    ck_assert_msg(cpu_seconds() - start < time_bound(30), "%g s", cpu_seconds() - start);
}
END_TEST

/* Addresses that would all start at one slot if everybody knew the hash. */
START_TEST(addresses_made_to_collide)
{
    enum { COUNT = 500 };
    for (uint64_t address = 0, found = 0; found < COUNT; address += PAGE_SIZE)
        if (hash_u64(address, 0) % 4096 == 0) {
            ck_assert_ptr_nonnull(pages_insert(&pages, (struct page){.address = address}, NULL));
            found++;
        }
    ck_assert_uint_eq(pages.count, COUNT);
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < pages.capacity; i++) {
        run = pages.tags[i] ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    ck_assert_uint_lt(longest, COUNT / 4);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pages");
    TCase *tc = tcase_create("pages");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, nothing);
    tcase_add_test(tc, adds_once);
    tcase_add_test(tc, the_ends_of_the_address_space);
    tcase_add_test(tc, deinit_may_be_repeated);
    tcase_add_test(tc, addresses_made_to_collide);
    tcase_add_loop_test(tc, many_at_any_stride, 0, 9);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
