/* The header of a ReadyToRun image and its table of sections. */
#include "formats/ready_to_run.h"

#include "tests/support/check_main.h"

static const uint8_t little[] = {'R', 'T', 'R', 0, 9, 0, 2, 0, 1,   0, 0, 0, 2,    0,    0, 0, 102, 0, 0, 0,
                                 8,   0,   0,   0, 0, 0, 0, 0, 103, 0, 0, 0, 0x10, 0x20, 0, 0, 8,   0, 0, 0};
static const uint8_t big[] = {0, 'R', 'T', 'R', 0, 9, 0, 2, 0, 0, 0, 1,   0, 0, 0,    2,    0, 0, 0, 102,
                              0, 0,   0,   8,   0, 0, 0, 0, 0, 0, 0, 103, 0, 0, 0x20, 0x10, 0, 0, 0, 8};

static uint32_t little_word(void *context, uint64_t at)
{
    (void)context;
    return at + 4 <= sizeof little ? load_u32(little + at, false) : 0;
}

static uint32_t big_word(void *context, uint64_t at)
{
    (void)context;
    return at + 4 <= sizeof big ? load_u32(big + at, true) : 0;
}

static const struct r2r_source sources[] = {{.word = little_word}, {.word = big_word, .big_endian = true}};

START_TEST(headers)
{
    const struct r2r_source *source = &sources[_i];
    struct r2r_header header;
    ck_assert(r2r_header_read(source, 0, &header));
    ck_assert(header.major == 9 && header.minor == 2);
    ck_assert(header.sections.at == 16 && header.sections.count == 2);
    ck_assert(!r2r_header_read(source, 4, &header));
    struct r2r_section_table table = r2r_core_header_read(source, 8);
    ck_assert(table.at == 16 && table.count == 2);
}
END_TEST

START_TEST(sections)
{
    const struct r2r_source *source = &sources[_i];
    struct r2r_section_table table = {16, 2};
    struct r2r_section section;
    ck_assert(r2r_section_find(source, &table, R2R_METHODDEF_ENTRYPOINTS, &section));
    ck_assert(section.rva == 0x2010 && section.size == 8);
    ck_assert(!r2r_section_find(source, &table, R2R_RUNTIME_FUNCTIONS, &section)); /* it is empty */
    table.count = UINT32_MAX;
    ck_assert(!r2r_section_find(source, &table, R2R_HOT_COLD_MAP, &section));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("ready_to_run");
    TCase *tcase = tcase_create("ready_to_run");
    tcase_add_loop_test(tcase, headers, 0, 2);
    tcase_add_loop_test(tcase, sections, 0, 2);
    suite_add_tcase(s, tcase);
    return s;
}

CHECK_MAIN(suite)
