/* Whether the runtime's maps of a Module show that metadata is that of another assembly. */
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
    struct field_reader reader = mock_reader(target);
    bool differs = lookup_maps_differ(&reader, module, metadata, ret);
    ck_assert(!reader_failed(&reader.raw));
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

static Suite *suite(void)
{
    Suite *suite = suite_create("lookup_map");
    TCase *tcase = tcase_create("lookup_map");
    tcase_add_loop_test(tcase, maps_have_a_place_more_than_rows, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
