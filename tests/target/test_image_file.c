/*
 * An ELF image as a target of its own: the descriptor that it exports, relocated as a loader does, in every class and
 * byte order and with every kind of relative relocation; and files that are no image.
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "cdacq.h"

static const char json[] = "{\"version\":0,\"baseline\":\"empty\",\"types\":{\"Foo\":{\"!\":8,\"Bar\":[4,\"uint32\"]}},"
                           "\"globals\":{\"Pointed\":[[1],\"pointer\"],\"Plain\":[7,\"uint8\"]},"
                           "\"contracts\":{\"ExecutionManager\":2}}";

enum { ARCHS = 4, RELOCATIONS = 3, POINTERS_AT = 128, POINTED_AT = 200, SLOTS = 2 };

/* A runtime's file that publishes the above. To be freed. */
static uint8_t *runtime_file(int i, size_t *ret_size)
{
    bool wide = i & 1, big = i & 2;
    unsigned word = wide ? 8 : 4;
    struct elf_object object;
    elf_object_init(&object, wide, big);
    object.relocations = i / ARCHS;
    object.data_size = 4096;
    /* The text must be in read-only memory: among the names of symbols. The first build gives the offsets. */
    elf_object_symbol(&object, json, 0, 0);
    elf_object_symbol(&object, "DotNetRuntimeContractDescriptor", 0, wide ? 40 : 32);
    uint8_t *first = elf_object_build(&object, ret_size);
    const uint8_t *text = memmem(first, *ret_size, json, sizeof json - 1);
    ck_assert_ptr_nonnull(text);
    uint64_t vaddr = object.data_vaddr, text_vaddr = (uint64_t)(text - first);
    free(first);
    for (size_t n = 0; n < object.symbol_count; n++) /* they have been sorted */
        if (object.symbols[n].name != json)
            object.symbols[n].value = vaddr;
    uint8_t *data = object.data;
    store_u64(data, UINT64_C(0x0043414443434e44), big); /* DNCCDAC */
    store_u32(data + 8, wide ? 1 : 3, big);
    store_u32(data + 12, sizeof json - 1, big);
    elf_object_pointer(&object, 16, text_vaddr);
    store_u32(data + 16 + word, SLOTS, big);
    elf_object_pointer(&object, 24 + (wide ? 8 : 4), vaddr + POINTERS_AT);
    elf_object_pointer(&object, POINTERS_AT + word, vaddr + POINTED_AT);
    return elf_object_build(&object, ret_size);
}

struct seen {
    uint64_t size, offset, pointed, plain;
};

static int see(const struct cdacq_descriptor_item *item, void *context)
{
    struct seen *seen = context;
    if (!strcmp(item->name, "Foo"))
        seen->size = item->value;
    else if (!strcmp(item->name, "Bar"))
        seen->offset = item->value;
    else if (!strcmp(item->name, "Pointed"))
        seen->pointed = item->value;
    else if (!strcmp(item->name, "Plain"))
        seen->plain = item->value;
    return 0;
}

static const struct cdacq_options partly = {.size = sizeof partly, .flags = CDACQ_OPEN_PARTIAL};

START_TEST(the_descriptor_of_a_file)
{
    size_t size;
    uint8_t *file = runtime_file(_i, &size);
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    struct cdacq_error error = {0};
    struct cdacq_target_info info = {.size = sizeof info};
    struct seen seen = {0};
    test_dir();
    if (cdacq_target_open_image(test_file("libcoreclr.so", file, size), &partly, &target, &error) != CDACQ_OK)
        ck_abort_msg("%s", error.message);
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_int_eq(info.kind, CDACQ_TARGET_IMAGE);
    ck_assert_uint_eq(info.pointer_size, _i & 1 ? 8 : 4);
    ck_assert_int_eq(info.big_endian, !!(_i & 2));
    cdacq_target_visit_descriptor(target, see, &seen, NULL);
    ck_assert_msg(seen.size == 8, "%s", info.problem);
    ck_assert_uint_eq(seen.offset, 4);
    ck_assert_uint_eq(seen.plain, 7);
    ck_assert_uint_eq(seen.pointed, info.descriptor_address + POINTED_AT);
    ck_assert_int_lt(cdacq_session_create(target, &session, &error), 0); /* it lacks what ExecutionManager needs */
    cdacq_target_close(target);
    test_dir_remove();
    free(file);
}
END_TEST

/* Cut anywhere: it opens or says why, and reads nothing beyond. */
START_TEST(a_file_that_is_cut)
{
    size_t size;
    uint8_t *file = runtime_file(_i, &size);
    test_dir();
    for (size_t length = 0; length < size; length += 1 + length / 7) {
        struct cdacq_target *target = NULL;
        struct cdacq_error error = {0};
        uint8_t *part = malloc(length + 1);
        memcpy(part, file, length);
        enum cdacq_status status =
            cdacq_target_open_image(test_file("libcoreclr.so", part, length), &partly, &target, &error);
        ck_assert(status == CDACQ_OK ? target != NULL : target == NULL && error.message[0]);
        cdacq_target_close(target);
        free(part);
    }
    test_dir_remove();
    free(file);
}
END_TEST

START_TEST(no_images)
{
    static const char *const contents[] = {"", "text", "\177ELF"};
    struct cdacq_target *target = NULL;
    struct cdacq_error error = {0};
    test_dir();
    for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
        const char *path = test_file("other", contents[i], strlen(contents[i]));
        ck_assert_int_eq(cdacq_target_open_image(path, &partly, &target, &error), CDACQ_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(error.message, "not an ELF image"));
    }
    ck_assert_int_eq(cdacq_target_open_image(test_path("missing"), &partly, &target, &error), CDACQ_ERR_IO);
    ck_assert_ptr_null(target);
    test_dir_remove();
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("image_file");
    TCase *tcase = tcase_create("image_file");
    tcase_add_loop_test(tcase, the_descriptor_of_a_file, 0, ARCHS * RELOCATIONS);
    tcase_add_loop_test(tcase, a_file_that_is_cut, 0, ARCHS);
    tcase_add_test(tcase, no_images);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
