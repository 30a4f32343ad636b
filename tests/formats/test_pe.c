#include "formats/pe.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"
#include "tests/support/paged_bytes.h"

static uint8_t *file;
static size_t file_size;

static void setup(void)
{
    file = fixture_file("names/Names.dll", &file_size);
}

static void teardown(void)
{
    free(file);
}

/* The image as a loader lays it out. */
static uint8_t *map_image(const struct pe *pe)
{
    uint8_t *image = calloc(1, pe->image_size);
    ck_assert_ptr_nonnull(image);
    memcpy(image, file, pe->headers_size);
    for (unsigned i = 0; i < pe->section_count; i++)
        memcpy(image + pe->sections[i].rva, file + pe->sections[i].file_offset,
               MIN(pe->sections[i].file_size, pe->sections[i].virtual_size));
    return image;
}

START_TEST(reads_a_flat_assembly)
{
    struct bytes bytes = bytes_of_buffer(file, file_size);
    struct pe pe;
    struct pe_clr clr;
    uint64_t offset;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_uint_eq(pe.machine, 0x14c); /* any CPU */
    ck_assert(!pe.wide);
    ck_assert_uint_eq(pe.headers_size, 0x200);
    ck_assert_uint_eq(pe.section_count, 3);
    ck_assert_str_eq(pe.sections[0].name, ".text");
    ck_assert_uint_eq(pe.sections[0].characteristics, PE_SECTION_CODE | PE_SECTION_EXECUTE | PE_SECTION_READ);
    ck_assert_uint_eq(pe.image_size % 0x2000, 0);

    ck_assert_int_eq(pe_read_clr(&pe, &clr), CDACQ_OK);
    ck_assert_uint_eq(clr.flags, 1); /* IL only */
    ck_assert_uint_eq(clr.managed_native_header.rva, 0);
    ck_assert_int_eq(pe_offset(&pe, clr.metadata.rva, clr.metadata.size, &offset), CDACQ_OK);
    ck_assert_mem_eq(file + offset, "BSJB", 4);
    const struct pe_section *text = &pe.sections[0];
    ck_assert_uint_ge(clr.metadata.rva, text->rva);
    ck_assert_uint_lt(clr.metadata.rva - text->rva, text->virtual_size);
}
END_TEST

START_TEST(reads_a_mapped_assembly)
{
    struct bytes bytes = bytes_of_buffer(file, file_size), flat_metadata, mapped_metadata;
    struct bytes_extent flat_part, mapped_part;
    struct pe flat, mapped;
    ck_assert_int_eq(pe_open(&bytes, false, &flat), CDACQ_OK);
    uint8_t *image = map_image(&flat);
    bytes = bytes_of_buffer(image, flat.image_size);
    ck_assert_int_eq(pe_open(&bytes, true, &mapped), CDACQ_OK);
    ck_assert_uint_eq(mapped.time_stamp, flat.time_stamp);

    ck_assert_int_eq(pe_metadata(&flat, &flat_part, &flat_metadata), CDACQ_OK);
    ck_assert_int_eq(pe_metadata(&mapped, &mapped_part, &mapped_metadata), CDACQ_OK);
    ck_assert_uint_eq(flat_metadata.size, mapped_metadata.size);
    ck_assert_mem_eq(bytes_window(&flat_metadata, 0, flat_metadata.size),
                     bytes_window(&mapped_metadata, 0, mapped_metadata.size), flat_metadata.size);
    ck_assert_ptr_null(bytes_window(&flat_metadata, 1, flat_metadata.size));
    free(image);
}
END_TEST

START_TEST(checks_ranges)
{
    struct bytes bytes = bytes_of_buffer(file, file_size);
    struct pe pe;
    uint64_t offset = 12345;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    const struct pe_section *last = &pe.sections[pe.section_count - 1];
    ck_assert_int_eq(pe_offset(&pe, 0, pe.headers_size + 1, &offset), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(pe_offset(&pe, pe.sections[0].rva, pe.sections[0].file_size + 1, &offset), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(pe_offset(&pe, last->rva + last->file_size, 1, &offset), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(pe_offset(&pe, UINT32_MAX, UINT32_MAX, &offset), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(offset, 12345);
    ck_assert_int_eq(pe_offset(&pe, last->rva, last->file_size, &offset), CDACQ_OK);
    ck_assert_uint_eq(offset, last->file_offset);
    pe.mapped = true;
    ck_assert_int_eq(pe_offset(&pe, pe.image_size, 0, &offset), CDACQ_OK);
    ck_assert_int_eq(pe_offset(&pe, pe.image_size, 1, &offset), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(touches_one_page_to_open)
{
    struct paged_bytes paged;
    struct bytes bytes = paged_bytes_open(&paged, file, file_size);
    struct pe pe;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_uint_eq(paged.page_count, 1);
    paged_bytes_close(&paged);
}
END_TEST

START_TEST(distinguishes_missing_from_malformed)
{
    struct paged_bytes paged;
    struct bytes bytes = paged_bytes_open(&paged, file, file_size);
    struct pe pe = {.machine = 77};
    paged.missing_begin = 0x90; /* in the headers */
    paged.missing_end = 0x91;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(pe.machine, 77);
    paged.missing_begin = 0x210; /* the CLR header */
    paged.missing_end = 0x211;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    struct pe_clr clr;
    ck_assert_int_eq(pe_read_clr(&pe, &clr), CDACQ_ERR_MEMORY);
    paged_bytes_close(&paged);
}
END_TEST

START_TEST(survives_truncation)
{
    for (size_t size = 0; size <= file_size; size += size < 2048 ? 1 : 97) {
        struct paged_bytes paged;
        struct bytes bytes = paged_bytes_open(&paged, file, size), metadata;
        struct bytes_extent part;
        struct pe pe;
        uint32_t rva;
        for (int mapped = 0; mapped < 2; mapped++) {
            enum cdacq_status status = pe_open(&bytes, mapped, &pe);
            ck_assert(status == CDACQ_OK || status == CDACQ_ERR_FORMAT);
            if (status == CDACQ_OK) {
                pe_metadata(&pe, &part, &metadata);
                pe_find_export(&pe, "RTR_HEADER", &rva);
            }
        }
        paged_bytes_close(&paged);
    }
}
END_TEST

START_TEST(survives_mutation)
{
    uint64_t state = 1;
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t headers[0x400];
        struct bytes metadata, bytes = bytes_of_buffer(headers, sizeof headers);
        struct bytes_extent part;
        struct pe pe;
        uint32_t rva;
        memcpy(headers, file, sizeof headers);
        for (unsigned i = 0; i < 4; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            headers[state >> 40 & 0x1ff] = (uint8_t)(state >> 56);
        }
        if (pe_open(&bytes, round & 1, &pe) != CDACQ_OK)
            continue;
        ck_assert_uint_le(pe.section_count, PE_SECTION_CAP);
        if (pe_metadata(&pe, &part, &metadata) == CDACQ_OK)
            ck_assert_uint_le(metadata.size, bytes.size);
        pe_find_export(&pe, "RTR_HEADER", &rva);
        pe_relocated_pointer(&pe, pe.image_size / 2, &rva);
        bool marked[64];
        unsigned budget = 1 << 20;
        pe_mark_relocated(&pe, pe.image_size / 2, sizeof marked, &budget, marked);
    }
}
END_TEST

START_TEST(refuses_what_is_no_image)
{
    uint8_t data[0x400] = {0};
    struct bytes bytes = bytes_of_buffer(data, sizeof data);
    struct pe pe;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_ERR_FORMAT);
    memcpy(data,
           "\x7f"
           "ELF",
           4);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_ERR_FORMAT);
    memcpy(data, file, sizeof data);
    uint32_t header = load_u32(data + 0x3c, false);
    store_u16(data + header + 6, PE_SECTION_CAP + 1, false);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_ERR_FORMAT);
    memcpy(data, file, sizeof data);
    store_u32(data + 0x3c, 0xfffffff0, false);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_ERR_FORMAT);
    memcpy(data, file, sizeof data);
    memset(data + header + 24 + 96 + 8 * PE_DIRECTORY_CLR, 0, 8);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    struct pe_clr clr;
    ck_assert_int_eq(pe_read_clr(&pe, &clr), CDACQ_ERR_MODULE);
}
END_TEST

/* A PE32+ image, mapped, whose exports are `Other` (RVA 0x700), `RTR_HEADER` (0x800) and `Zforward` (a forwarder). */
enum { EXPORTS = 0x400, IMAGE_SIZE = 0x1000 };

static void write_image(uint8_t image[IMAGE_SIZE])
{
    static const char *const names[] = {"Other", "RTR_HEADER", "Zforward"};
    static const uint32_t ordinals[] = {2, 0, 1}, functions[] = {0x800, EXPORTS + 0x28, 0x700};
    memset(image, 0, IMAGE_SIZE);
    memcpy(image, "MZ", 2);
    store_u32(image + 0x3c, 0x80, false);
    memcpy(image + 0x80, "PE\0\0", 4);
    store_u16(image + 0x84, 0x8664, false);
    store_u32(image + 0x88, 0x12345678, false);
    store_u16(image + 0x94, 112 + 8 * 16, false);
    uint8_t *optional = image + 0x98;
    store_u16(optional, 0x20b, false);
    store_u64(optional + 24, UINT64_C(0x180000000), false);
    store_u32(optional + 56, IMAGE_SIZE, false);
    store_u32(optional + 60, 0x200, false);
    store_u32(optional + 108, 16, false);
    store_u32(optional + 112, EXPORTS, false);
    store_u32(optional + 116, 0x200, false);
    uint8_t *directory = image + EXPORTS;
    store_u32(directory + 20, 3, false);
    store_u32(directory + 24, 3, false);
    store_u32(directory + 28, EXPORTS + 0x40, false);
    store_u32(directory + 32, EXPORTS + 0x60, false);
    store_u32(directory + 36, EXPORTS + 0x80, false);
    for (unsigned i = 0, at = EXPORTS + 0x100; i < 3; i++, at += 0x20) {
        store_u32(directory + 0x40 + 4 * i, functions[i], false);
        store_u32(directory + 0x60 + 4 * i, at, false);
        store_u16(directory + 0x80 + 2 * i, (uint16_t)ordinals[i], false);
        strcpy((char *)image + at, names[i]);
    }
}

START_TEST(finds_exports)
{
    uint8_t image[IMAGE_SIZE] = {0};
    struct bytes bytes = bytes_of_buffer(image, sizeof image);
    struct pe pe;
    uint32_t rva;
    write_image(image);
    ck_assert_int_eq(pe_open(&bytes, true, &pe), CDACQ_OK);
    ck_assert(pe.wide);
    ck_assert_uint_eq(pe.machine, 0x8664);
    ck_assert_uint_eq(pe.time_stamp, 0x12345678);
    ck_assert_uint_eq(pe.image_base, UINT64_C(0x180000000));
    ck_assert_int_eq(pe_find_export(&pe, "RTR_HEADER", &rva), CDACQ_OK);
    ck_assert_uint_eq(rva, 0x800);
    ck_assert_int_eq(pe_find_export(&pe, "Other", &rva), CDACQ_OK);
    ck_assert_uint_eq(rva, 0x700);
    ck_assert_int_eq(pe_find_export(&pe, "Zforward", &rva), CDACQ_OK);
    ck_assert_uint_eq(rva, 0);
    ck_assert_int_eq(pe_find_export(&pe, "RTR_HEAD", &rva), CDACQ_OK);
    ck_assert_uint_eq(rva, 0);

    store_u16(image + EXPORTS + 0x82, 3, false); /* RTR_HEADER's ordinal: past the functions */
    ck_assert_int_eq(pe_find_export(&pe, "RTR_HEADER", &rva), CDACQ_ERR_FORMAT);
    store_u32(image + EXPORTS + 24, UINT32_MAX, false);
    ck_assert_int_eq(pe_find_export(&pe, "RTR_HEADER", &rva), CDACQ_ERR_FUEL);
}
END_TEST

enum { RELOCATIONS = 0x600, POINTER = 0x7f8, OTHER_PAGE = 0x1000 };

/* Adds two blocks of base relocations: of another page, and of the pointer, after one of another kind. */
static void write_relocations(uint8_t *image)
{
    static const uint64_t base = UINT64_C(0x180000000);
    uint8_t *directory = image + 0x80 + 24 + 112 + 8 * PE_DIRECTORY_BASE_RELOCATION, *block = image + RELOCATIONS;
    store_u32(directory, RELOCATIONS, false);
    store_u32(directory + 4, 24, false);
    store_u32(block, OTHER_PAGE, false);
    store_u32(block + 4, 12, false);
    store_u16(block + 8, 10 << 12 | POINTER, false);
    store_u32(block + 12, 0, false);
    store_u32(block + 16, 12, false);
    store_u16(block + 20, 3 << 12 | (POINTER - 8), false);
    store_u16(block + 22, 10 << 12 | POINTER, false);
    store_u64(image + POINTER, base + 0x123, false);
}

START_TEST(relocated_pointers)
{
    uint8_t image[IMAGE_SIZE] = {0};
    struct bytes bytes = bytes_of_buffer(image, sizeof image);
    struct pe pe;
    uint32_t rva = 0;
    write_image(image);
    ck_assert_int_eq(pe_open(&bytes, true, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER, &rva), CDACQ_ERR_MODULE); /* no relocations at all */
    write_relocations(image);
    ck_assert_int_eq(pe_open(&bytes, true, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER, &rva), CDACQ_OK);
    ck_assert_uint_eq(rva, 0x123);
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER - 8, &rva), CDACQ_ERR_MODULE); /* of another kind */
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER + 1, &rva), CDACQ_ERR_MODULE);
    ck_assert_int_eq(pe_relocated_pointer(&pe, OTHER_PAGE + POINTER, &rva), CDACQ_ERR_FORMAT); /* not in the image */
    store_u64(image + POINTER, UINT64_C(0x180000000) + pe.image_size, false);
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER, &rva), CDACQ_ERR_FORMAT);
    store_u32(image + RELOCATIONS + 16, 7, false); /* a block without room for its header, or beyond the directory */
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER, &rva), CDACQ_ERR_FORMAT);
    store_u32(image + RELOCATIONS + 16, 13, false);
    ck_assert_int_eq(pe_relocated_pointer(&pe, POINTER, &rva), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(rva, 0x123);
}
END_TEST

/* Each kind of relocation; words that begin before what is asked for, end behind it, or are of another page. */
START_TEST(relocated_bytes)
{
    static const struct {
        uint16_t entry;
        unsigned size;
    } kinds[] = {{1 << 12, 2}, {2 << 12, 2},  {3 << 12, 4}, {5 << 12, 8},
                 {7 << 12, 8}, {10 << 12, 8}, {0, 0},       {9 << 12, 0}};
    uint8_t image[IMAGE_SIZE] = {0};
    struct bytes bytes = bytes_of_buffer(image, sizeof image);
    struct pe pe;
    bool marked[32];
    unsigned budget = 1000;
    write_image(image);
    write_relocations(image);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        store_u16(image + RELOCATIONS + 20, (uint16_t)(kinds[i].entry | (POINTER + 12)), false);
        store_u16(image + RELOCATIONS + 22, (uint16_t)(kinds[i].entry | (POINTER - 4)), false);
        ck_assert_int_eq(pe_open(&bytes, true, &pe), CDACQ_OK);
        memset(marked, true, sizeof marked);
        ck_assert_int_eq(pe_mark_relocated(&pe, POINTER, 16, &budget, marked), CDACQ_OK);
        for (unsigned at = 0; at < 16; at++)
            ck_assert_msg(marked[at] == (at + 4 < kinds[i].size || (at >= 12 && at - 12 < kinds[i].size)), "%zu: %u", i,
                          at);
        ck_assert(marked[16]);
        ck_assert_int_eq(pe_mark_relocated(&pe, OTHER_PAGE + POINTER, 16, &budget, marked), CDACQ_OK);
        for (unsigned at = 0; at < 16; at++)
            ck_assert(marked[at] == (at < 8)); /* of the other block */
    }
    store_u32(image + RELOCATIONS + 16, 7, false);
    ck_assert_int_eq(pe_mark_relocated(&pe, POINTER, 16, &budget, marked), CDACQ_ERR_FORMAT);
    store_u32(image + RELOCATIONS + 16, 12, false);
    for (budget = 0; budget < 10; budget++) { /* for two blocks; the second has two entries */
        unsigned left = budget;
        ck_assert_int_eq(pe_mark_relocated(&pe, POINTER, 16, &left, marked), CDACQ_ERR_FUEL);
        ck_assert_uint_eq(left, 0);
    }
    ck_assert_int_eq(pe_mark_relocated(&pe, POINTER, 16, &budget, marked), CDACQ_OK);
}
END_TEST

START_TEST(parts_of_sources)
{
    struct bytes bytes = bytes_of_buffer(file, 100);
    struct bytes_extent part, inner_part;
    struct bytes middle = bytes_of_extent(&bytes, 10, 50, &part);
    struct bytes inner = bytes_of_extent(&middle, 5, UINT64_MAX, &inner_part);
    ck_assert_uint_eq(middle.size, 50);
    ck_assert_ptr_eq(bytes_window(&middle, 1, 49), file + 11);
    ck_assert_ptr_null(bytes_window(&middle, 1, 50));
    ck_assert_uint_eq(inner.size, 45);
    ck_assert_ptr_eq(bytes_window(&inner, 0, 45), file + 15);
    middle = bytes_of_extent(&bytes, UINT64_MAX, 1, &part);
    ck_assert_uint_eq(middle.size, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pe");
    TCase *t = tcase_create("pe");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, reads_a_flat_assembly);
    tcase_add_test(t, reads_a_mapped_assembly);
    tcase_add_test(t, checks_ranges);
    tcase_add_test(t, touches_one_page_to_open);
    tcase_add_test(t, distinguishes_missing_from_malformed);
    tcase_add_test(t, survives_truncation);
    tcase_add_test(t, survives_mutation);
    tcase_add_test(t, refuses_what_is_no_image);
    tcase_add_test(t, finds_exports);
    tcase_add_test(t, relocated_pointers);
    tcase_add_test(t, relocated_bytes);
    tcase_add_test(t, parts_of_sources);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
