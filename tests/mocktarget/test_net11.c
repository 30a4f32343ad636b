/*
 * test_net11.c: a mock of .NET 11 against what 11.0.0 for linux-x64 publishes (tests/fixtures/descriptors/11.0.json):
 * the mock has no name that the runtime lacks, and the same contracts and numbers. A mock of x64 with an even seed has
 * the runtime's offsets and sizes.
 */
#include <stdlib.h>

#include "descriptors/descriptor.h"
#include "descriptors/json.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"
#include "tests/support/mock_support.h"

/* The fixture. Its globals that are pointers have no value. */
static void read_fixture(struct descriptor *ret)
{
    const uint64_t none[256] = {0};
    struct cdacq_error error;
    struct json *root;
    size_t size;
    uint8_t *text = fixture_file("descriptors/11.0.json", &size);
    ck_assert_msg(json_parse((const char *)text, size, "11.0.json", &root, &error) >= 0, "%s", error.message);
    *ret = (struct descriptor){0};
    ck_assert_msg(descriptor_add(ret, root, "11.0.json", (struct pointer_data){none, ARRAY_SIZE(none), true}, MERGE_ADD,
                                 &error) >= 0,
                  "%s", error.message);
    json_free(root);
    free(text);
}

struct comparison {
    const struct descriptor *published;
    bool is_exact; /* offsets and sizes are the runtime's */
    char type[64];
    size_t fields, contracts, numbers, pointers;
};

/* What every mock has of its own: a type that no reader knows. */
static bool is_of_mocks(const char *type)
{
    return strcmp(type, "Unheard") == 0;
}

static const struct descriptor_item *published_item(const struct comparison *comparison,
                                                    const struct cdacq_descriptor_item *item)
{
    const char *scope = item->kind == CDACQ_ITEM_FIELD ? comparison->type : "";
    const struct descriptor_item *found = descriptor_find(comparison->published, item->kind, scope, item->name);
    ck_assert_msg(found, "%s.%s: .NET 11.0.0 does not publish it", scope, item->name);
    return found;
}

static int compare_item(const struct cdacq_descriptor_item *item, void *context)
{
    struct comparison *comparison = context;
    if (strcmp(item->origin, "runtime") != 0) /* a supplement adds two fields of Thread */
        return 0;
    if (item->kind == CDACQ_ITEM_TYPE)
        snprintf(comparison->type, sizeof comparison->type, "%s", item->name);
    if (is_of_mocks(comparison->type) && (item->kind == CDACQ_ITEM_TYPE || item->kind == CDACQ_ITEM_FIELD))
        return 0;
    const struct descriptor_item *published = published_item(comparison, item);
    bool is_placed = item->kind == CDACQ_ITEM_TYPE || item->kind == CDACQ_ITEM_FIELD;
    comparison->fields += item->kind == CDACQ_ITEM_FIELD;
    comparison->contracts += item->kind == CDACQ_ITEM_CONTRACT;
    comparison->pointers += item->kind == CDACQ_ITEM_GLOBAL && !published->has_value && !published->text;
    if (item->kind == CDACQ_ITEM_CONTRACT)
        ck_assert_str_eq(item->text, published->text);
    if (is_placed && comparison->is_exact) {
        ck_assert_msg(item->has_value == published->has_value, "%s.%s", comparison->type, item->name);
        ck_assert_msg(item->value == published->value, "%s.%s: %llu, not %llu", comparison->type, item->name,
                      (unsigned long long)item->value, (unsigned long long)published->value);
    }
    if (item->kind == CDACQ_ITEM_GLOBAL && published->has_value && comparison->is_exact) {
        comparison->numbers++;
        ck_assert_msg(item->value == published->value, "%s", item->name);
    }
    return 0;
}

static struct comparison compare(const struct descriptor *published, uint64_t seed)
{
    struct mock *mock = mock_create(&(struct mock_options){.seed = seed, .version = MOCK_NET_11});
    ck_assert_ptr_nonnull(mock);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct comparison comparison = {.published = published, .is_exact = !(seed & 1)};
    ck_assert_int_eq(cdacq_target_visit_descriptor(target, compare_item, &comparison, NULL), CDACQ_OK);
    cdacq_target_close(target);
    mock_destroy(mock);
    return comparison;
}

START_TEST(nothing_that_the_runtime_lacks)
{
    struct descriptor published;
    read_fixture(&published);
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct comparison comparison = compare(&published, seed);
        ck_assert_uint_gt(comparison.fields, 230);
        ck_assert_uint_eq(comparison.contracts, 31); /* all of them */
        ck_assert_uint_ge(comparison.pointers, 14);
        ck_assert(seed & 1 || comparison.numbers > 25);
    }
    descriptor_deinit(&published);
}
END_TEST

/* Names that 11.0.0 lacks are refused, and another build has to be asked for. */
START_TEST(names_of_others)
{
    static const char *const names[] = {"MethodTable.TypeDefRid", "Thread.DebugBlockingInfo", "SyncBlock.LockState",
                                        "InterpMethod.MethodDesc"};
    for (size_t i = 0; i <= ARRAY_SIZE(names); i++)
        for (int interpreter = 0; interpreter < 2; interpreter++) {
            struct mock *mock = mock_create(&(struct mock_options){
                .pointer_size = 8, .seed = i, .version = MOCK_NET_11, .interpreter = interpreter});
            ck_assert_ptr_nonnull(mock);
            if (i < ARRAY_SIZE(names))
                mock_set(mock, mock_alloc(mock, 2048, 8), names[i], 0);
            else
                mock_global(mock, "InterpreterJitManagerAddress", 0x1000);
            bool is_there = interpreter && i >= ARRAY_SIZE(names) - 1;
            ck_assert_msg(is_there == !mock_error(mock), "%zu", i);
            mock_destroy(mock);
        }
    static const struct mock_options others[] = {
        {.version = MOCK_NET_11, .precode_version = 2},
        {.version = MOCK_NET_11, .unwind = MOCK_UNWIND_FUNCTION_LENGTH, .no_funclets = true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert_ptr_null(mock_create(&others[i]));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("net11");
    TCase *tcase = tcase_create("net11");
    tcase_add_test(tcase, nothing_that_the_runtime_lacks);
    tcase_add_test(tcase, names_of_others);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
