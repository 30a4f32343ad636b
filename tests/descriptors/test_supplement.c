#include "descriptors/descriptor.h"
#include "descriptors/json.h"
#include "descriptors/supplement.h"

#include <stdio.h>

#include "descriptors/embedded.h"
#include "descriptors/runtime_version.h"
#include "target/image.h"
#include "target/memory.h"
#include "target/target.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/fixture_file.h"

enum { POINTERS = 157 }; /* of .NET 8's table, in its latest servicing versions */

static const uint64_t base = 0x7f0000000000;
static uint8_t *loaded;
static size_t loaded_size;
static struct target *target;
static struct image image;
static struct supplement supplement;
static struct cdacq_error error;

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    (void)context;
    if (address < base || address - base >= loaded_size)
        return false;
    *ret_begin = base;
    *ret_end = base + loaded_size;
    *ret_bytes = loaded;
    return true;
}

/* Opens an image whose table has `size` bytes. Pointer N of it is 0x1000 + N. */
static void open_image_of(uint16_t machine, size_t size, bool with_descriptor)
{
    static struct elf_object object;
    size_t file_size;
    elf_object_init(&object, true, false);
    object.machine = machine;
    object.data_size = (POINTERS + 1) * 8;
    elf_object_symbol(&object, "g_dacTable", 0x5100, size);
    if (with_descriptor)
        elf_object_symbol(&object, "DotNetRuntimeContractDescriptor", 0x5100, 40);
    uint8_t *file = elf_object_build(&object, &file_size);
    loaded = elf_object_load(&object, file, file_size, base, true, &loaded_size);
    free(file);
    for (size_t i = 0; i <= POINTERS; i++)
        store_u64(loaded + 0x5100 + i * 8, 0x1000 + i, false);
    static struct cdacq_mapping mapping;
    mapping = (struct cdacq_mapping){sizeof mapping, base, base + loaded_size, 0, "/app/libcoreclr.so"};
    struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at, .mappings = &mapping, .mapping_count = 1};
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, &error), CDACQ_OK);
    ck_assert_int_eq(image_open(target, &target->mappings[0], &image, &error), CDACQ_OK);
    ck_assert_int_eq(supplement_find(&image, NULL, &supplement, &error), CDACQ_OK);
}

static void open_image(size_t size, bool with_descriptor)
{
    open_image_of(EM_X86_64, size, with_descriptor);
}

static void close_image(void)
{
    supplement_deinit(&supplement);
    target_destroy(target);
    free(loaded);
}

/* Versions of .NET 8 before the latest ones lack pointer 68, and 8.0.0 also 91. */
START_TEST(tables_of_servicing_versions)
{
    static const struct {
        const char *name;
        unsigned places[3]; /* in a whole table, without the last pointer that was added, without both */
    } globals[] = {{"ExecutionManagerCodeRangeMapAddress", {0, 0, 0}},
                   {"FreeObjectMethodTable", {54, 54, 54}},
                   {"SyncTableEntries", {80, 79, 79}},
                   {"ThePreStubAddress", {93, 92, 91}},
                   {"ExceptionFilterFrameIdentifier", {147, 146, 145}}};
    open_image((POINTERS - (unsigned)_i) * 8, false);
    ck_assert_ptr_nonnull(supplement.root);
    ck_assert_str_eq(supplement.runtime, ".NET 8.0");
    struct descriptor descriptor = {0};
    ck_assert_int_eq(supplement_add(&supplement, &image, &descriptor, &error), CDACQ_OK);
    for (size_t i = 0; i < ARRAY_SIZE(globals); i++) {
        const struct descriptor_item *item = descriptor_find(&descriptor, CDACQ_ITEM_GLOBAL, "", globals[i].name);
        ck_assert_ptr_nonnull(item);
        ck_assert_uint_eq(item->value, 0x1000 + globals[i].places[_i]);
    }
    descriptor_deinit(&descriptor);
    close_image();
}
END_TEST

START_TEST(other_tables)
{
    static const size_t sizes[] = {(POINTERS - 3) * 8, (POINTERS + 1) * 8, POINTERS * 8 - 4, 0};
    open_image(sizes[_i], false);
    ck_assert_ptr_null(supplement.root);
    close_image();
}
END_TEST

/* A later version of .NET 10 may have another table: all but the pointers is as in the versions that are known. */
START_TEST(a_later_servicing_version)
{
    struct descriptor descriptor = {0};
    open_image(1032 + 8, true);
    ck_assert_ptr_null(supplement.root);
    static const char *const others[] = {"8.0", "9.0", "12.0", "10"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        ck_assert_int_eq(supplement_find(&image, others[i], &supplement, &error), CDACQ_OK);
        ck_assert_ptr_null(supplement.root);
    }
    ck_assert_int_eq(supplement_find(&image, "10.0", &supplement, &error), CDACQ_OK);
    ck_assert_ptr_nonnull(supplement.root);
    ck_assert(supplement.lacks_pointers);
    ck_assert_int_eq(supplement_add(&supplement, &image, &descriptor, &error), CDACQ_OK);
    const struct descriptor_item *pointer = descriptor_find(&descriptor, CDACQ_ITEM_GLOBAL, "", "SyncBlockCache");
    ck_assert(!pointer || !pointer->has_value);
    ck_assert_ptr_nonnull(descriptor_find(&descriptor, CDACQ_ITEM_FIELD, "RealCodeHeader", "DebugInfo"));
    descriptor_deinit(&descriptor);
    close_image();
}
END_TEST

static void put_thread(struct descriptor *descriptor, const char *text)
{
    struct json *root;
    const struct pointer_data none = {.count = 64, .unknown = true};
    ck_assert_int_eq(json_parse(text, strlen(text), "runtime", &root, &error), CDACQ_OK);
    ck_assert_int_eq(descriptor_add(descriptor, root, "runtime", none, MERGE_OVERRIDE, &error), CDACQ_OK);
    json_free(root);
}

/* .NET 10 on arm64: what arm64 publishes is demanded, and what x64 publishes does not fit. */
START_TEST(another_machine)
{
    static const char *const published[] = {"descriptors/10.0-arm64.json", "descriptors/10.0.json"};
    for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
        struct descriptor descriptor = {0};
        size_t size;
        char *text = (char *)fixture_file(published[i], &size);
        open_image_of(EM_AARCH64, 1032, true);
        ck_assert_ptr_nonnull(supplement.root);
        ck_assert_str_eq(supplement.name, "coreclr-10.0-linux-arm64.json");
        put_thread(&descriptor, text);
        ck_assert_int_eq(supplement_fits(&supplement, &descriptor), i == 0);
        ck_assert_int_eq(supplement_add(&supplement, &image, &descriptor, &error), CDACQ_OK);
        const struct descriptor_item *item =
            descriptor_find(&descriptor, CDACQ_ITEM_FIELD, "Thread", "CachedStackBase");
        ck_assert_ptr_nonnull(item);
        ck_assert_uint_eq(item->value, 160);
        free(text);
        descriptor_deinit(&descriptor);
        close_image();
    }
}
END_TEST

/* .NET 11: two fields, and only where the runtime publishes those around them as it did when they were measured. */
START_TEST(fields_that_must_be_published)
{
#define OTHERS "\"LinkNext\":112,\"CachedStackBase\":120,\"CachedStackLimit\":128,"
#define MORE   "\"ExposedObject\":232,\"LastThrownObject\":264,\"ExceptionTracker\":280}}}"
    static const char *const published[] = {
        "{\"types\":{\"Thread\":{" OTHERS "\"OSId\":224," MORE,
        "{\"types\":{\"Thread\":{" OTHERS "\"OSId\":232," MORE,
        "{\"types\":{\"Thread\":{" OTHERS MORE,
        "{\"types\":{}}",
    };
    enum { OF_11 = 1048 };
    static const char *const fields[] = {"m_pvHJRetAddr", "m_ppvHJRetAddrPtr"};
    for (size_t size = OF_11; size <= OF_11 + 8; size += 8) {
        struct descriptor descriptor = {0};
        open_image(size, true);
        if (size != OF_11) /* a later servicing version with another table, which is not used */
            ck_assert_int_eq(supplement_find(&image, "11.0", &supplement, &error), CDACQ_OK);
        ck_assert_ptr_nonnull(supplement.root);
        ck_assert_str_eq(supplement.runtime, ".NET 11.0");
        ck_assert(!supplement.lacks_pointers);
        put_thread(&descriptor, published[_i]);
        ck_assert_int_eq(supplement_fits(&supplement, &descriptor), _i == 0);
        ck_assert_int_eq(supplement_add(&supplement, &image, &descriptor, &error), CDACQ_OK);
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
            const struct descriptor_item *item = descriptor_find(&descriptor, CDACQ_ITEM_FIELD, "Thread", fields[i]);
            ck_assert_ptr_nonnull(item);
            ck_assert_uint_eq(item->value, 152 + 8 * i);
            ck_assert_str_eq(item->origin, "supplement coreclr-11.0-linux-x64.json");
        }
        descriptor_deinit(&descriptor);
        close_image();
    }
#undef OTHERS
#undef MORE
}
END_TEST

/* What .NET 11 publishes is not repeated: the supplement has these two fields and nothing else. */
START_TEST(only_two_fields_of_11)
{
    struct descriptor descriptor = {0};
    open_image(1048, true);
    ck_assert_int_eq(supplement_add(&supplement, &image, &descriptor, &error), CDACQ_OK);
    size_t count = 0;
    for (size_t i = 0; i < descriptor.items.count; i++) {
        const struct descriptor_item *item = &descriptor.items.items[i];
        count += item->kind != CDACQ_ITEM_TYPE;
        ck_assert_int_ne(item->kind, CDACQ_ITEM_CONTRACT);
        ck_assert_int_ne(item->kind, CDACQ_ITEM_GLOBAL);
    }
    ck_assert_uint_eq(count, 2);
    descriptor_deinit(&descriptor);
    close_image();
}
END_TEST

START_TEST(releases_of_folders)
{
    static const char *const cases[][2] = {
        {"/usr/share/dotnet/shared/Microsoft.NETCore.App/11.0.2/libcoreclr.so", "11.0"},
        {"/x/10.0.0-preview.4/libcoreclr.so", "10.0"},
        {"/app/libcoreclr.so", ""},
        {"/app/8/libcoreclr.so", ""},
        {"libcoreclr.so", ""},
        {"/libcoreclr.so", ""},
        {"", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char release[16];
        runtime_version_of_path(cases[i][0], release);
        ck_assert_str_eq(release, cases[i][1]);
    }
}
END_TEST

/* What an older table lacks is used by nothing. */
START_TEST(added_pointers_are_not_referred_to)
{
    size_t checked = 0;
    for (size_t i = 0; i < embedded_descriptor_count; i++) {
        const struct embedded_file *file = &embedded_descriptors[i];
        struct json *root;
        uint64_t added, index;
        ck_assert_int_eq(json_parse((const char *)file->data, file->size, file->name, &root, &error), CDACQ_OK);
        const struct json *all = json_get(root, "$pointer_data_added");
        for (const struct json *one = all ? json_first(all) : NULL; one; one = json_next(one)) {
            ck_assert(json_integer(one, &added));
            for (const struct json *global = json_first(json_get(root, "globals")); global;
                 global = json_next(global)) {
                const struct json *value = json_first(global);
                if (value && json_kind(value) == JSON_ARRAY && json_integer(json_first(value), &index)) {
                    ck_assert_msg(index != added, "%s: %s", file->name, json_key(global));
                    checked++;
                }
            }
        }
        json_free(root);
    }
    ck_assert_uint_gt(checked, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("supplement");
    TCase *tcase = tcase_create("supplement");
    tcase_add_loop_test(tcase, tables_of_servicing_versions, 0, 3);
    tcase_add_loop_test(tcase, other_tables, 0, 4);
    tcase_add_test(tcase, a_later_servicing_version);
    tcase_add_test(tcase, another_machine);
    tcase_add_loop_test(tcase, fields_that_must_be_published, 0, 4);
    tcase_add_test(tcase, only_two_fields_of_11);
    tcase_add_test(tcase, releases_of_folders);
    tcase_add_test(tcase, added_pointers_are_not_referred_to);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
