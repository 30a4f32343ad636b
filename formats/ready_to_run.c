#include "formats/ready_to_run.h"

static uint32_t word(const struct r2r_source *source, uint64_t at)
{
    return source->word(source->context, at);
}

bool r2r_header_read(const struct r2r_source *source, uint64_t at, struct r2r_header *ret)
{
    enum { SIGNATURE = 0x00525452, VERSION = 4, SECTION_COUNT = 12 }; /* "RTR" */
    if (word(source, at) != SIGNATURE)
        return false;
    uint32_t version = word(source, at + VERSION);
    *ret = (struct r2r_header){
        .major = (uint16_t)(source->big_endian ? version >> 16 : version),
        .minor = (uint16_t)(source->big_endian ? version : version >> 16),
        .sections = {at + R2R_HEADER_SIZE, word(source, at + SECTION_COUNT)},
    };
    return true;
}

struct r2r_section_table r2r_core_header_read(const struct r2r_source *source, uint64_t at)
{
    enum { SECTION_COUNT = 4, SIZE = 8 };
    return (struct r2r_section_table){at + SIZE, word(source, at + SECTION_COUNT)};
}

bool r2r_section_find(const struct r2r_source *source, const struct r2r_section_table *table,
                      enum r2r_section_type type, struct r2r_section *ret)
{
    enum { RVA = 4, SIZE = 8, ROW = 12 };
    for (uint32_t i = 0; i < MIN(table->count, (uint32_t)R2R_SECTION_MAX); i++) {
        uint64_t row = table->at + (uint64_t)i * ROW;
        if (word(source, row) == type) {
            *ret = (struct r2r_section){word(source, row + RVA), word(source, row + SIZE)};
            return ret->size != 0;
        }
    }
    return false;
}

struct r2r_import_section r2r_import_section_read(const struct r2r_source *source, uint64_t at)
{
    enum { SIZE = 4, FLAGS_TYPE_CELL_SIZE = 8, SIGNATURES = 12 };
    uint32_t packed = word(source, at + FLAGS_TYPE_CELL_SIZE);
    return (struct r2r_import_section){
        .size = word(source, at + SIZE),
        .type = (uint8_t)(source->big_endian ? packed >> 8 : packed >> 16),
        .cell_size = (uint8_t)(source->big_endian ? packed : packed >> 24),
        .signatures = word(source, at + SIGNATURES),
    };
}
