/* What the runtime's maps of a Module hold, and whether they show that metadata is that of another assembly. */
#include "contracts/lookup_map.h"

#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

enum { MAPS = 5 };

static const struct {
    const char *map;
    enum metadata_table table;
    const char *what;
} maps[MAPS] = {
    {"TypeDefToMethodTableMap", METADATA_TYPE_DEF, "types"},
    {"MethodDefToDescMap", METADATA_METHOD_DEF, "methods"},
    {"FieldDefToDescMap", METADATA_FIELD, "fields"},
    {"TypeRefToMethodTableMap", METADATA_TYPE_REF, "references to types"},
    {"MemberRefToDescMap", METADATA_MEMBER_REF, "references to members"},
};

/* A Module whose maps have these counts of places. */
static uint64_t put_module(struct mock *mock, const uint32_t *counts)
{
    uint64_t module = mock_module(mock, &(struct mock_module_options){0});
    for (size_t i = 0; i < MAPS; i++) {
        char name[64];
        snprintf(name, sizeof name, "Module.%s", maps[i].map);
        uint64_t place = module + mock_offset_of(mock, name) + mock_offset_of(mock, "ModuleLookupMap.Count");
        mock_write_uint(mock, place, 4, counts[i]);
    }
    return module;
}

static bool differ(struct cdacq_target *target, uint64_t module, const struct metadata *metadata,
                   struct lookup_map_difference *ret)
{
    struct reader reader = mock_reader(target);
    bool differs = lookup_maps_differ(&reader, module, metadata, ret);
    ck_assert(!reader_failed(&reader));
    return differs;
}

/* `wrong` is the map whose count is not that of the metadata; MAPS: none. */
static void check(int arch, size_t wrong, bool described)
{
    static const uint32_t rows[MAPS] = {3, 70, 0, 12, 65536}, none[MAPS] = {0};
    struct mock *mock = mock_of_arch(arch, wrong);
    struct metadata metadata = {0};
    struct lookup_map_difference difference;
    uint32_t counts[MAPS];
    for (size_t i = 0; i < MAPS; i++) {
        metadata.tables[maps[i].table].rows = rows[i];
        counts[i] = rows[i] + 1 + (i == wrong);
    }
    uint64_t module = put_module(mock, counts), empty = put_module(mock, none);
    if (!described)
        mock_hide(mock, "ModuleLookupMap.Count");
    struct cdacq_target *target = mock_publish_and_open(mock);
    ck_assert_int_eq(differ(target, module, &metadata, &difference), wrong < MAPS && described);
    if (wrong < MAPS && described) {
        ck_assert_str_eq(difference.what, maps[wrong].what);
        ck_assert_uint_eq(difference.rows, rows[wrong]);
        ck_assert_uint_eq(difference.loaded, rows[wrong] + 1);
    }
    ck_assert(!differ(target, empty, &metadata, &difference)); /* the runtime has not made them yet */
    ck_assert(!differ(target, 0x10, &metadata, &difference));  /* not in the core */
    cdacq_target_close(target);
    mock_destroy(mock);
}

START_TEST(maps_have_a_place_more_than_rows)
{
    for (size_t wrong = 0; wrong <= MAPS; wrong++) {
        check(_i, wrong, true);
        check(_i, wrong, false);
    }
}
END_TEST

/* A map with a place more than `count`, each of which has its row's number times 16, and the flag 2. */
static void put_places(struct mock *mock, int arch, uint64_t map, uint32_t first, uint32_t count, uint64_t next)
{
    unsigned word = arch & 1 ? 8 : 4;
    uint64_t places = mock_alloc(mock, (uint64_t)count * word, 8);
    for (uint32_t i = 0; i < count; i++)
        mock_write_uint(mock, places + (uint64_t)i * word, word, (first + i) * 16 | 2);
    mock_set(mock, map, "ModuleLookupMap.TableData", places);
    mock_set(mock, map, "ModuleLookupMap.Count", count);
    mock_set(mock, map, "ModuleLookupMap.Next", next);
    mock_set(mock, map, "ModuleLookupMap.SupportedFlagsMask", 3);
}

/* A map that has grown is a list of parts. */
START_TEST(elements)
{
    static const uint32_t rids[] = {0, 1, 4, 5, 11, 12, 99};
    struct mock *mock = mock_of_arch(_i, 5);
    uint64_t module = mock_module(mock, &(struct mock_module_options){0});
    uint64_t map = module + mock_offset_of(mock, "Module.MethodDefToDescMap"),
             later = mock_new(mock, "ModuleLookupMap", 0);
    put_places(mock, _i, later, 5, 7, 0);
    put_places(mock, _i, map, 0, 5, later);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct reader reader = mock_reader(target);
    for (size_t i = 0; i < ARRAY_SIZE(rids); i++)
        ck_assert_uint_eq(lookup_map_element(&reader, module, F_Module_MethodDefToDescMap, rids[i]),
                          rids[i] < 12 ? rids[i] * 16 : 0);
    ck_assert(!reader_failed(&reader));
    mock_set(mock, later, "ModuleLookupMap.Next", map); /* a cycle ends */
    (void)lookup_map_element(&reader, module, F_Module_MethodDefToDescMap, 0x12345678);
    mock_set(mock, later, "ModuleLookupMap.TableData", 0x10);
    reader = mock_reader(target);
    ck_assert_uint_eq(lookup_map_element(&reader, module, F_Module_MethodDefToDescMap, 4), 64);
    ck_assert(!reader_failed(&reader));
    ck_assert_uint_eq(lookup_map_element(&reader, module, F_Module_MethodDefToDescMap, 5), 0);
    ck_assert(reader_failed(&reader));
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* The places, or the map itself. */
START_TEST(elements_that_are_not_described)
{
    bool of_places = _i < ARCH_COUNT;
    int arch = _i % ARCH_COUNT;
    struct metadata metadata = {0};
    struct lookup_map_difference difference;
    struct mock *mock = mock_of_arch(arch, 6);
    uint64_t module = mock_module(mock, &(struct mock_module_options){0});
    put_places(mock, arch, module + mock_offset_of(mock, "Module.MethodDefToDescMap"), 0, 5, 0);
    mock_hide(mock, of_places ? "ModuleLookupMap.TableData" : "Module.MethodDefToDescMap");
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct reader reader = mock_reader(target);
    ck_assert_uint_eq(lookup_map_element(&reader, module, F_Module_MethodDefToDescMap, 1), 0);
    ck_assert_int_eq(lookup_maps_differ(&reader, module, &metadata, &difference), of_places);
    ck_assert(!reader_failed(&reader));
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("lookup_map");
    TCase *tcase = tcase_create("lookup_map");
    tcase_add_loop_test(tcase, maps_have_a_place_more_than_rows, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, elements, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, elements_that_are_not_described, 0, 2 * ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
