/* Records of ELF files from bytes written out by hand, of both classes and byte orders; and bytes that are cut. */
#include "formats/elf.h"

#include "tests/support/check_main.h"

static const struct elf_class classes[] = {{false, false}, {false, true}, {true, false}, {true, true}};

static void put(uint8_t *at, uint64_t value, size_t width, bool big)
{
    for (size_t i = 0; i < width; i++)
        at[big ? width - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static void put_ident(uint8_t *bytes, struct elf_class class)
{
    memcpy(bytes,
           (const uint8_t[]){0x7f, 'E', 'L', 'F', class.wide ? ELFCLASS64 : ELFCLASS32,
                             class.big ? ELFDATA2MSB : ELFDATA2LSB, EV_CURRENT},
           7);
}

START_TEST(an_ident_names_its_class)
{
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
        uint8_t ident[EI_NIDENT] = {0};
        struct elf_class class;
        put_ident(ident, classes[i]);
        ck_assert(elf_class_of(ident, &class));
        ck_assert_int_eq(class.wide, classes[i].wide);
        ck_assert_int_eq(class.big, classes[i].big);
        for (size_t j = 0; j < 7; j++) { /* every byte of it counts */
            uint8_t kept = ident[j];
            ident[j] = 9;
            ck_assert(!elf_class_of(ident, &class));
            ident[j] = kept;
        }
    }
}
END_TEST

START_TEST(a_file_gives_the_segments_that_it_holds)
{
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
        struct elf_class class = classes[i];
        uint8_t bytes[256] = {0};
        size_t header = elf_header_size(class), segment_size = elf_segment_size(class), word = elf_word_size(class);
        put_ident(bytes, class);
        put(bytes + 16, ET_DYN, 2, class.big);
        put(bytes + 18, EM_AARCH64, 2, class.big);
        put(bytes + 24 + word, header, word, class.big);
        put(bytes + header - 8, 3, 2, class.big); /* e_phnum */
        uint8_t *second = bytes + header + segment_size;
        put(second, PT_LOAD, 4, class.big);
        put(second + (class.wide ? 4 : 24), PF_R | PF_X, 4, class.big);
        put(second + (class.wide ? 16 : 8), 0x12340000, word, class.big);
        struct bytes source = bytes_of_buffer(bytes, header + 2 * segment_size);
        struct elf_file file;
        struct elf_segment segment;
        ck_assert(elf_file_open(&source, &file));
        ck_assert_int_eq(file.header.type, ET_DYN);
        ck_assert_int_eq(file.header.machine, EM_AARCH64);
        ck_assert(elf_file_segment(&file, 1, &segment));
        ck_assert_uint_eq(segment.type, PT_LOAD);
        ck_assert_uint_eq(segment.flags, PF_R | PF_X);
        ck_assert_uint_eq(segment.vaddr, 0x12340000);
        ck_assert(!elf_file_segment(&file, 2, &segment)); /* counted, but its bytes are missing */
        ck_assert(!elf_file_segment(&file, 3, &segment));
        source.size = header - 1;
        ck_assert(!elf_file_open(&source, &file));
    }
}
END_TEST

START_TEST(notes_end_where_their_bytes_do)
{
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
        struct elf_class class = classes[i];
        uint8_t bytes[64] = {0};
        struct elf_note_bytes view;
        uint64_t at = 0;
        put(bytes, 4, 4, class.big);
        put(bytes + 4, 5, 4, class.big); /* a description that is padded */
        put(bytes + 8, NT_GNU_BUILD_ID, 4, class.big);
        memcpy(bytes + 12, "GNU\0\1\2\3\4\5", 9);
        put(bytes + 24, 0xffffffff, 4, class.big);
        ck_assert(elf_note_next(class, bytes, sizeof bytes, 4, &at, &view));
        ck_assert(elf_note_is_build_id(&view.note, view.name));
        ck_assert_uint_eq(view.note.desc_size, 5);
        ck_assert_uint_eq(view.desc[4], 5);
        ck_assert_uint_eq(at, 24);
        ck_assert(!elf_note_next(class, bytes, sizeof bytes, 4, &at, &view)); /* its name is longer than all */
        at = 0;
        ck_assert(!elf_note_next(class, bytes, 20, 4, &at, &view));
        ck_assert_uint_eq(at, 0);
    }
}
END_TEST

START_TEST(mapped_files_end_where_their_paths_do)
{
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
        struct elf_class class = classes[i];
        uint8_t bytes[128] = {0};
        size_t word = elf_word_size(class), paths = 8 * word;
        const uint64_t words[] = {2, 4096, 0x1000, 0x2000, 3, 0x5000, 0x6000, 0};
        for (size_t j = 0; j < ARRAY_SIZE(words); j++)
            put(bytes + j * word, words[j], word, class.big);
        memcpy(bytes + paths, "/a\0/b", 6);
        struct elf_nt_file list;
        struct elf_mapped_file file;
        ck_assert(!elf_nt_file_open(class, bytes, 2 * word - 1, &list));
        ck_assert(elf_nt_file_open(class, bytes, paths - 1, &list) && !elf_nt_file_count_fits(&list));
        ck_assert(!elf_nt_file_next(&list, &file));
        ck_assert(elf_nt_file_open(class, bytes, paths + 5, &list) && elf_nt_file_count_fits(&list));
        ck_assert_uint_eq(list.page_size, 4096);
        ck_assert(elf_nt_file_next(&list, &file));
        ck_assert_uint_eq(file.begin, 0x1000);
        ck_assert_uint_eq(file.end, 0x2000);
        ck_assert_uint_eq(file.page_offset, 3);
        ck_assert_str_eq(file.path, "/a");
        ck_assert(!elf_nt_file_next(&list, &file)); /* the second path has no end */
    }
}
END_TEST

START_TEST(names_hash_as_the_specifications_say)
{
    ck_assert_uint_eq(elf_hash_gnu(""), 0x1505);
    ck_assert_uint_eq(elf_hash_gnu("printf"), 0x156b2bb8);
    ck_assert_uint_eq(elf_hash_sysv(""), 0);
    ck_assert_uint_eq(elf_hash_sysv("printf"), 0x077905a6);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("elf");
    TCase *t = tcase_create("elf");
    tcase_add_test(t, an_ident_names_its_class);
    tcase_add_test(t, a_file_gives_the_segments_that_it_holds);
    tcase_add_test(t, notes_end_where_their_bytes_do);
    tcase_add_test(t, mapped_files_end_where_their_paths_do);
    tcase_add_test(t, names_hash_as_the_specifications_say);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
