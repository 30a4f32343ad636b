/* The range section map: every index, tags, deleted sections, and maps that no runtime would write. */
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "contracts/code_lookup/range_section_map.h"
#include "tests/support/mock_support.h"

/* The lowest address bit that selects a slot, level 1 first, as the specification has them. */
static const unsigned shifts_32[] = {16, 24}, shifts_64[] = {17, 25, 33, 41, 49};

static unsigned shift_of(int arch, unsigned level)
{
    return arch & 1 ? shifts_64[level - 1] : shifts_32[level - 1];
}

static unsigned levels(int arch)
{
    return arch & 1 ? 5 : 2;
}

static bool find(struct cdacq_target *target, uint64_t address, struct range_section *ret)
{
    struct reader reader = mock_reader(target);
    bool found = range_section_map_find(&reader, target->manager.map, address, ret);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_OK);
    return found;
}

static void assert_found(struct cdacq_target *target, uint64_t address, uint64_t section)
{
    struct range_section found = {0};
    ck_assert_msg(find(target, address, &found), "nothing at %#llx", (unsigned long long)address);
    ck_assert_uint_eq(found.address, section);
}

static void assert_none(struct cdacq_target *target, uint64_t address)
{
    struct range_section found;
    ck_assert_msg(!find(target, address, &found), "something at %#llx", (unsigned long long)address);
}

static uint64_t add(struct mock *mock, uint64_t begin, uint64_t end, uint32_t flags)
{
    return mock_section_add(mock, &(struct mock_section){.begin = begin, .end = end, .flags = flags});
}

START_TEST(no_sections)
{
    struct mock *mock = mock_of_arch(_i, 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    assert_none(target, 0);
    assert_none(target, 0x12345678);
    assert_none(target, UINT64_MAX);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, 0);
    ck_assert_uint_eq(list.left_out, 0);
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

START_TEST(one_section)
{
    struct mock *mock = mock_of_arch(_i, 2);
    uint64_t begin = 0x20003010, end = 0x20008000;
    uint64_t section = mock_section_add(
        mock,
        &(struct mock_section){
            .begin = begin, .end = end, .flags = 2, .heap_list = 0x1110, .r2r_module = 0x2220, .range_list = 0x3330});
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct range_section found;
    ck_assert(find(target, begin, &found));
    ck_assert_uint_eq(found.address, section);
    ck_assert_uint_eq(found.begin, begin);
    ck_assert_uint_eq(found.end, end);
    ck_assert_uint_eq(found.flags, 2);
    ck_assert_uint_eq(found.heap_list, 0x1110);
    ck_assert_uint_eq(found.r2r_module, 0x2220);
    ck_assert_uint_eq(found.range_list, 0x3330);
    ck_assert_uint_ne(found.jit_manager, 0);
    assert_found(target, end - 1, section);
    assert_none(target, begin - 1);
    assert_none(target, end);
    assert_none(target, begin + (_i & 1 ? UINT64_C(1) << 57 : UINT64_C(1) << 32)); /* bits that select nothing */
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* One level, and each of its 256 slots, with random bits around those of the slot. */
static void check_level(int arch, unsigned level)
{
    struct mock *mock = mock_of_arch(arch, 3 + level);
    struct random random = {level};
    uint64_t begins[256], sections[256], chunk = mock_chunk_size(mock);
    unsigned shift = shift_of(arch, level), top = shift_of(arch, levels(arch)) + 8;
    uint64_t around = (UINT64_C(1) << top) - 1;
    for (uint64_t i = 0; i < 256; i++) {
        uint64_t bits = (random_below(&random, UINT64_MAX) & around & ~(UINT64_C(0xff) << shift)) | i << shift;
        begins[i] = bits - bits % chunk;
        sections[i] = add(mock, begins[i], begins[i] + chunk, 0);
        /* The slot is where the specification puts it: level tables are found with the shifts above. */
        uint64_t table = mock_map_address(mock) + mock_offset_of(mock, "RangeSectionMap.TopLevelData");
        unsigned word = arch & 1 ? 8 : 4;
        for (unsigned at = levels(arch); at > level; at--)
            table = mock_read_pointer(mock, table + (begins[i] >> shift_of(arch, at) & 255) * word) & ~UINT64_C(1);
        ck_assert_uint_eq(mock_map_slot(mock, begins[i], level), table + i * word);
    }
    struct cdacq_target *target = mock_publish_and_open(mock);
    for (unsigned i = 0; i < 256; i++) {
        assert_found(target, begins[i], sections[i]);
        assert_found(target, begins[i] + chunk - 1, sections[i]);
        assert_found(target, begins[i] + random_below(&random, chunk), sections[i]);
    }
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, 256);
    for (size_t i = 1; i < list.count; i++)
        ck_assert_uint_le(list.items[i - 1].end, list.items[i].begin);
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}

START_TEST(every_index_of_every_level)
{
    for (unsigned level = 1; level <= levels(_i); level++)
        check_level(_i, level);
}
END_TEST

/* Sections over several chunks, several in one chunk, and the space between them. */
START_TEST(many_sections)
{
    struct mock *mock = mock_of_arch(_i, 20 + (uint64_t)_i);
    struct random random = {99};
    enum { COUNT = 40 };
    uint64_t begins[COUNT], ends[COUNT], sections[COUNT], at = 0x20000000;
    for (int i = 0; i < COUNT; i++) {
        begins[i] = at + 1 + random_below(&random, 0x4000);
        ends[i] = begins[i] + 1 + random_below(&random, i % 5 ? 0x3000 : 0x80000);
        sections[i] = add(mock, begins[i], ends[i], (uint32_t)random_below(&random, 4));
        at = ends[i];
    }
    struct cdacq_target *target = mock_publish_and_open(mock);
    for (int i = 0; i < COUNT; i++) {
        assert_found(target, begins[i], sections[i]);
        assert_found(target, ends[i] - 1, sections[i]);
        assert_found(target, begins[i] + random_below(&random, ends[i] - begins[i]), sections[i]);
        assert_none(target, begins[i] - 1);
    }
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        ck_assert_uint_eq(list.items[i].address, sections[i]);
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Bit 0 of a pointer on the way does not change where it leads. */
START_TEST(tags_anywhere)
{
    struct mock *mock = mock_of_arch(_i, 5);
    struct random random = {(uint64_t)_i};
    uint64_t chunk = mock_chunk_size(mock), begin = 0x30000000, end = begin + 3 * chunk;
    uint64_t first = add(mock, begin, begin + chunk / 2, 0), second = add(mock, begin + chunk / 2, end, 1);
    for (uint64_t address = begin; address < end; address += chunk)
        for (unsigned level = 1; level <= levels(_i); level++) {
            uint64_t slot = mock_map_slot(mock, address, level);
            mock_write_pointer(mock, slot, (mock_read_pointer(mock, slot) & ~UINT64_C(1)) | random_below(&random, 2));
        }
    size_t count;
    uint64_t stride, fragment = mock_section_fragments(mock, first, &count, &stride);
    mock_set(mock, fragment, "RangeSectionFragment.Next", mock_get(mock, fragment, "RangeSectionFragment.Next") | 1);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_found(target, begin, first);
    assert_found(target, begin + chunk / 2, second);
    assert_found(target, end - 1, second);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The runtime links collectible fragments after the others and tags the pointers to them. */
START_TEST(collectible_sections)
{
    struct mock *mock = mock_of_arch(_i, 6);
    uint64_t a = add(mock, 0x30000000, 0x30001000, 1), b = add(mock, 0x30002000, 0x30003000, 0);
    uint64_t c = add(mock, 0x30004000, 0x30005000, 1), d = add(mock, 0x30006000, 0x30007000, 0);
    ck_assert_uint_eq(mock_read_pointer(mock, mock_map_slot(mock, 0x30000000, 1)) & 1, 0);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_found(target, 0x30000000, a);
    assert_found(target, 0x30002fff, b);
    assert_found(target, 0x30004000, c);
    assert_found(target, 0x30006000, d);
    assert_none(target, 0x30001000);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A section that is being deleted is skipped, and the one after it that replaces it is found. */
START_TEST(deleted_sections)
{
    struct mock *mock = mock_of_arch(_i, 7);
    uint64_t old = add(mock, 0x30000000, 0x30004000, 0), other = add(mock, 0x30008000, 0x30009000, 0);
    uint64_t new = add(mock, 0x30000000, 0x30002000, 1);
    mock_section_delete(mock, old);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_found(target, 0x30000000, new);
    assert_none(target, 0x30003000);
    assert_found(target, 0x30008000, other);
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, 2);
    ck_assert_uint_eq(list.items[0].address, new);
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A runtime that does not describe NextForDelete: no section counts as deleted. */
START_TEST(deletion_not_described)
{
    struct mock *mock = mock_of_arch(_i, 8);
    uint64_t section = add(mock, 0x30000000, 0x30004000, 0);
    mock_section_delete(mock, section);
    mock_hide(mock, "RangeSection.NextForDelete");
    mock_hide(mock, "RangeSection.RangeList");
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_found(target, 0x30000000, section);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* ---- Maps that no runtime writes ---- */

static uint32_t units_used(const struct reader *reader, uint32_t fuel)
{
    return fuel - reader_fuel(reader);
}

/* Lists the map. Returns the number of its sections, which are `sections` (in any order), and whole. */
static void check_list(struct cdacq_target *target, const uint64_t *sections, size_t count, size_t left_out)
{
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    reader_begin(&reader, FUEL_INDEX);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, count);
    ck_assert_uint_eq(list.left_out, left_out);
    for (size_t i = 0; i < list.count; i++) {
        size_t k = 0;
        while (k < count && sections[k] != list.items[i].address)
            k++;
        ck_assert_uint_lt(k, count);
        ck_assert(list.items[i].whole);
        ck_assert_uint_lt(list.items[i].begin, list.items[i].end);
        ck_assert(!i || list.items[i - 1].end <= list.items[i].begin);
    }
    free(list.items);
}

/* A look-up in a fragment before the cycle, or in it, succeeds; another one ends. All sections are listed, once. */
START_TEST(cycles_of_fragments)
{
    enum { COUNT = 9 };
    /* `tail` fragments lead to a cycle of all that follow. */
    for (int tail = 0; tail < COUNT; tail = tail < 3 ? tail + 1 : tail + 5) {
        struct mock *mock = mock_of_arch(_i, 9);
        uint64_t fragments[COUNT] = {0}, sections[COUNT], stride;
        size_t count;
        for (int i = 0; i < COUNT; i++) {
            uint64_t begin = 0x30000000 + (uint64_t)i * 0x1000;
            sections[i] = add(mock, begin, begin + 0x1000, 0);
            fragments[i] = mock_section_fragments(mock, sections[i], &count, &stride);
        }
        uint64_t other = add(mock, 0x30100000, 0x30101000, 0);
        /* A new fragment goes first, so the last in the list was made first. */
        mock_set(mock, fragments[0], "RangeSectionFragment.Next", fragments[COUNT - 1 - tail]);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct range_section found;
        struct cdacq_error error;
        struct reader reader = mock_reader(target);
        for (int i = 0; i < COUNT; i++)
            assert_found(target, 0x30000800 + (uint64_t)i * 0x1000, sections[i]);
        reader_begin(&reader, FUEL_LOOKUP);
        ck_assert(!range_section_map_find(&reader, target->manager.map, 0x3000f000, &found));
        ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FUEL);
        ck_assert_ptr_nonnull(strstr(error.message, "RangeSectionFragment.Next list"));
        ck_assert_uint_eq(units_used(&reader, FUEL_LOOKUP), FUEL_LOOKUP);
        uint64_t all[COUNT + 1];
        memcpy(all, sections, sizeof sections);
        all[COUNT] = other;
        check_list(target, all, COUNT + 1, 1);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Two slots that lead to one table: it is listed once. */
START_TEST(shared_tables)
{
    struct mock *mock = mock_of_arch(_i, 10);
    uint64_t first = UINT64_C(0x30000000) - (UINT64_C(1) << (_i & 1 ? 25 : 24)),
             second = UINT64_C(0x30000000) + (UINT64_C(1) << (_i & 1 ? 25 : 24));
    uint64_t section = add(mock, 0x30000000, 0x30004000, 0);
    uint64_t table = mock_read_pointer(mock, mock_map_slot(mock, 0x30000000, 2));
    mock_write_pointer(mock, mock_map_slot(mock, first, 2), table);
    mock_write_pointer(mock, mock_map_slot(mock, second, 2), table);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_found(target, 0x30000000, section);
    assert_none(target, first);
    assert_none(target, second);
    check_list(target, &section, 1, 2);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* More than a few such slots are too much: it takes long to find out which table each of them repeats. */
START_TEST(tables_shared_too_often)
{
    struct mock *mock = mock_of_arch(_i, 10);
    add(mock, 0x30000000, 0x30004000, 0);
    uint64_t slot = mock_map_slot(mock, 0x30000000, 2), word = _i & 1 ? 8 : 4;
    uint64_t table = slot - (UINT64_C(0x30000000) >> shift_of(_i, 2) & 255) * word;
    for (unsigned i = 0; i <= RANGE_REPEATED_MAX + 1; i++)
        mock_write_pointer(mock, table + i * word, mock_read_pointer(mock, slot));
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    reader_begin(&reader, FUEL_INDEX);
    ck_assert(!range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_FUEL);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The outermost table again, one level down: neither a look-up nor a listing loops, and what is there is listed. */
START_TEST(cycles_of_tables)
{
    struct mock *mock = mock_of_arch(_i, 12);
    uint64_t section = add(mock, 0x30000000, 0x30004000, 0);
    uint64_t top = mock_map_address(mock) + mock_offset_of(mock, "RangeSectionMap.TopLevelData");
    uint64_t elsewhere = _i & 1 ? UINT64_C(1) << 50 : UINT64_C(0x7f) << 24;
    mock_write_pointer(mock, mock_map_slot(mock, elsewhere, levels(_i)), top);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct range_section found;
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    assert_found(target, 0x30000000, section);
    range_section_map_find(&reader, target->manager.map, elsewhere, &found); /* anything, but it ends */
    reader_begin(&reader, FUEL_INDEX);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    size_t at = 0;
    while (at < list.count && list.items[at].address != section)
        at++;
    ck_assert_uint_lt(at, list.count);
    ck_assert(list.items[at].whole);
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Sections with other bounds than their fragments have, or the same as others: the rest is listed as before. */
START_TEST(impossible_sections)
{
    static const struct {
        uint64_t begin, end;
        size_t left; /* of the three */
    } cases[] = {
        {0x30012000, 0x30012000, 2}, {0x30013000, 0x30012000, 2}, /* empty */
        {0x30000000, 0x30013000, 2}, {0x30012000, 0x30025000, 2}, /* overlap one of the others */
        {0, UINT32_MAX, 2},                                       /* and both */
        {0x30011000, 0x30013000, 3}, {0x30010000, 0x30014000, 3}, /* are in no one's way */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mock *mock = mock_of_arch(_i, 13);
        uint64_t sections[3];
        for (unsigned k = 0; k < 3; k++)
            sections[k] = add(mock, 0x30000000 + k * 0x12000, 0x30004000 + k * 0x12000, 0);
        mock_set(mock, sections[1], "RangeSection.RangeBegin", cases[i].begin);
        mock_set(mock, sections[1], "RangeSection.RangeEndOpen", cases[i].end);
        struct cdacq_target *target = mock_publish_and_open(mock);
        struct range_section_list list;
        struct reader reader = mock_reader(target);
        ck_assert(range_section_map_list(&reader, target->manager.map, &list));
        ck_assert_uint_eq(list.count, cases[i].left);
        ck_assert_uint_eq(list.left_out, 3 - cases[i].left);
        ck_assert_uint_eq(list.items[0].address, sections[0]);
        ck_assert_uint_eq(list.items[list.count - 1].address, sections[2]);
        ck_assert(list.items[0].whole && list.items[list.count - 1].whole);
        ck_assert(list.count == 2 || !list.items[1].whole);
        free(list.items);
        assert_found(target, 0x30000000, sections[0]);
        assert_found(target, 0x30024000, sections[2]);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* Of two sections for the same addresses, none is listed; a look-up takes the one that its slot lists first. */
START_TEST(sections_for_the_same_addresses)
{
    struct mock *mock = mock_of_arch(_i, 14);
    uint64_t other = add(mock, 0x30100000, 0x30101000, 0);
    add(mock, 0x30000000, 0x30004000, 0);
    uint64_t last = add(mock, 0x30002000, 0x30006000, 0);
    add(mock, 0x30005000, 0x30007000, 0);
    struct cdacq_target *target = mock_publish_and_open(mock);
    assert_found(target, 0x30003000, last);
    check_list(target, &other, 1, 3);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* A fragment that claims the addresses of another section: look-ups may come there first, so the other is not whole. */
START_TEST(false_claims)
{
    struct mock *mock = mock_of_arch(_i, 15);
    uint64_t other = add(mock, 0x30004000, 0x30006000, 0), stride;
    uint64_t section = add(mock, 0x30000000, 0x30004000, 0), far = add(mock, 0x30006000, 0x30007000, 0);
    size_t count;
    uint64_t fragment = mock_section_fragments(mock, section, &count, &stride);
    mock_set(mock, fragment, "RangeSectionFragment.RangeEndOpen", 0x30005000);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct range_section found;
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    ck_assert(!range_section_map_find(&reader, target->manager.map, 0x30004000, &found));
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_CORRUPT);
    reader_begin(&reader, FUEL_INDEX);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, 3);
    ck_assert_uint_eq(list.left_out, 0);
    const uint64_t expected[] = {section, other, far};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(list.items[i].address, expected[i]);
        ck_assert_int_eq(list.items[i].whole, i == 2);
    }
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* An address whose tables were not dumped is unknown, not free; the rest is found and listed. */
START_TEST(missing_memory)
{
    struct mock *mock = mock_of_arch(_i, 12);
    uint64_t far = UINT64_C(0x30000000) + (UINT64_C(1) << (_i & 1 ? 25 : 24));
    uint64_t near = add(mock, 0x30000000, 0x30004000, 0);
    uint64_t no_table = add(mock, far, far + 0x1000, 0), no_fragment = add(mock, 0x30100000, 0x30101000, 0);
    uint64_t no_section = add(mock, 0x30200000, 0x30201000, 0), stride;
    size_t count;
    ck_assert_uint_ne(no_table, 0);
    mock_unmap(mock, mock_read_pointer(mock, mock_map_slot(mock, far, 2)) & ~UINT64_C(1), 256 * 4);
    uint64_t fragment = mock_section_fragments(mock, no_fragment, &count, &stride);
    mock_unmap(mock, fragment, stride);
    mock_unmap(mock, no_section, mock_size_of(mock, "RangeSection"));
    struct cdacq_target *target = mock_publish_and_open(mock);
    static const struct {
        uint64_t address;
        const char *what;
    } cases[] = {{0, "RangeSectionMap"}, {0x30100000, "RangeSectionFragment."}, {0x30200000, "RangeSection."}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reader reader = mock_reader(target);
        struct range_section found;
        struct cdacq_error error;
        ck_assert(!range_section_map_find(&reader, target->manager.map, i ? cases[i].address : far, &found));
        ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
        ck_assert_msg(strncmp(error.message, cases[i].what, strlen(cases[i].what)) == 0, "%s", error.message);
    }
    assert_found(target, 0x30000000, near);
    struct range_section_list list;
    struct reader reader = mock_reader(target);
    ck_assert(range_section_map_list(&reader, target->manager.map, &list));
    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.left_out, 3);
    free(list.items);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("range_section_map");
    TCase *tcase = tcase_create("range_section_map");
    tcase_add_loop_test(tcase, no_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, one_section, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, every_index_of_every_level, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, many_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, tags_anywhere, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, collectible_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, deleted_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, deletion_not_described, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, cycles_of_fragments, 0, rounds(ARCH_COUNT, 1));
    tcase_add_loop_test(tcase, shared_tables, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, tables_shared_too_often, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, cycles_of_tables, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, impossible_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, sections_for_the_same_addresses, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, false_claims, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, missing_memory, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
