/* test_debug_file.c: the compressed symbols (.gnu_debugdata) of an ELF file: whole, cut at every length, damaged. */
#include "target/native/debug_file.h"

#include <elf.h>

#include "tests/support/check_main.h"

/* "symbols ", 100 times, by xz --check=crc32. */
static const uint8_t packed[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x03, 0x1f, 0x00, 0x12, 0x5d, 0x00, 0x39,
    0x9e, 0x49, 0xdd, 0x94, 0x71, 0x47, 0x96, 0x5a, 0x60, 0x6e, 0x33, 0xca, 0x86, 0x62, 0x79, 0x10,
    0x00, 0x00, 0x00, 0x00, 0x65, 0xba, 0x40, 0x51, 0x00, 0x01, 0x2a, 0xa0, 0x06, 0x00, 0x00, 0x00,
    0xc7, 0x32, 0x2e, 0x30, 0x3e, 0x30, 0x0d, 0x8b, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
};

/* The structs below are in the byte order of this machine. */
enum { HERE = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB };

static const char names[] = "\0.gnu_debugdata";

enum { COUNT = 3, NAMES_AT = sizeof(Elf64_Ehdr) + COUNT * sizeof(Elf64_Shdr), DATA_AT = NAMES_AT + sizeof names };

static struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[COUNT];
    uint8_t rest[sizeof names + sizeof packed];
} image;

_Static_assert(sizeof image >= DATA_AT + sizeof packed, "all of it");

static struct work work;

/* The data of a file whose section has the first `size` bytes. */
static uint8_t *unpack(size_t size, size_t *ret_size)
{
    struct elf_file file;
    image.header = (Elf64_Ehdr){
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, HERE, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_ehsize = sizeof image.header,
        .e_shoff = sizeof image.header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = COUNT,
        .e_shstrndx = 1,
    };
    image.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof names};
    image.sections[2] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = DATA_AT, .sh_size = size};
    struct bytes bytes = bytes_of_buffer((const uint8_t *)&image, sizeof image);
    ck_assert(elf_file_open(&bytes, &file));
    *ret_size = 0;
    return debug_data_open(&file, &work, ret_size);
}

static void setup(void)
{
    work_set(&work, 0, 0, 0);
    memcpy(image.rest, names, sizeof names);
    memcpy(image.rest + sizeof names, packed, sizeof packed);
}

START_TEST(whole)
{
    size_t size;
    uint8_t *data = unpack(sizeof packed, &size);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(size, 800);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(data[i], (uint8_t) "symbols "[i % 8]);
    free(data);
}
END_TEST

START_TEST(cut)
{
    size_t size;
    for (size_t i = 0; i < sizeof packed; i++)
        ck_assert_ptr_null(unpack(i, &size));
}
END_TEST

/* All bytes are covered by a checksum. */
START_TEST(damaged)
{
    size_t size;
    for (size_t i = 0; i < sizeof packed; i++) {
        image.rest[sizeof names + i] ^= 0x10;
        ck_assert_ptr_null(unpack(sizeof packed, &size));
        image.rest[sizeof names + i] ^= 0x10;
    }
}
END_TEST

/* What is unpacked counts, also if nothing comes of it. */
START_TEST(bounded)
{
    size_t size;
    char text[128];
    work_set(&work, 0, 799, 0);
    ck_assert_ptr_null(unpack(sizeof packed, &size));
    ck_assert(work_is_spent(&work, text, sizeof text));
    work_set(&work, 1000, 0, 0);
    ck_assert_ptr_null(unpack(sizeof packed - 1, &size));
    ck_assert(work_is_spent(&work, text, sizeof text));
    ck_assert_ptr_null(unpack(sizeof packed, &size));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("debug_file");
    TCase *tcase = tcase_create("debug_data");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, whole);
    tcase_add_test(tcase, cut);
    tcase_add_test(tcase, damaged);
    tcase_add_test(tcase, bounded);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
