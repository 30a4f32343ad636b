/*
 * fuzz_portable_pdb.c: a byte that chooses, then any bytes: 0 as a PDB, of which every method, local, document and
 * custom information is read; 1 as the sequence points of one method, after a byte for its document; 2 and 3 as a PE
 * image, flat or mapped, whose debug directory is read.
 */
#include "formats/pe_debug.h"
#include "formats/portable_pdb/local_variables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROW_CAP = 400 };

static uint64_t sum; /* what is read must be readable, so it is used */

static void check_points(struct sequence_points *points)
{
    struct sequence_point point, last = {0};
    for (unsigned i = 0; sequence_points_next(points, &point); i++) {
        if ((i && point.il_offset <= last.il_offset) || !point.document || point.end_line < point.start_line ||
            point.start_line > SEQUENCE_POINT_HIDDEN_LINE ||
            (sequence_point_is_hidden(&point) && (point.start_column || point.end_column)))
            abort();
        last = point;
    }
    struct sequence_point unchanged = last;
    if (sequence_points_next(points, &unchanged) || memcmp(&unchanged, &last, sizeof last) != 0)
        abort();
}

static void read_custom(const struct portable_pdb *pdb, uint32_t token, const uint8_t *kind)
{
    const uint8_t *blob;
    size_t size;
    if (portable_pdb_custom(pdb, token, kind, &blob, &size) == CDACQ_OK && blob)
        for (size_t i = 0; i < size; i++)
            sum += blob[i];
}

static bool read_local(const struct local_variable *variable, void *context)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    const struct portable_pdb *pdb = context;
    if (metadata_string(&pdb->metadata, variable->name, buffer, &name, &length) == CDACQ_OK)
        for (size_t i = 0; i < length; i++)
            sum += (uint8_t)name[i];
    return true;
}

static void read_pdb(const uint8_t *data, size_t size)
{
    struct portable_pdb pdb;
    struct sequence_points points;
    struct text text = {0};
    if (portable_pdb_open(data, size, &pdb) < 0)
        return;
    for (uint32_t rid = 0; rid < ROW_CAP; rid++) {
        if (portable_pdb_points(&pdb, rid, &points) == CDACQ_OK)
            check_points(&points);
        read_custom(&pdb, metadata_token(METADATA_METHOD_DEF, rid), portable_pdb_source_link);
        for (uint32_t il_offset = 0; il_offset < 64; il_offset += 9)
            (void)local_variables_each(&pdb, rid, il_offset, read_local, &pdb);
        text_clear(&text);
        portable_pdb_document_name(&pdb, rid, &text);
    }
    read_custom(&pdb, 1, portable_pdb_source_link);
    text_deinit(&text);
}

static void read_image(const uint8_t *data, size_t size, bool mapped)
{
    struct bytes bytes = bytes_of_buffer(data, size);
    struct pe pe;
    struct pe_debug debug;
    char key[PE_DEBUG_KEY_SIZE];
    if (pe_open(&bytes, mapped, &pe) < 0 || pe_read_debug(&pe, &debug) < 0)
        return;
    sum += strlen(pe_debug_pdb_name(&debug));
    pe_debug_symbol_key(&debug, mapped, key);
    if (debug.checksum_count > PE_DEBUG_CHECKSUM_MAX || strlen(key) < 33)
        abort();
    if (debug.embedded_size && !range_fits(debug.embedded_offset, debug.embedded_size, size) && !mapped)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sequence_points points;
    if (size < 2)
        return 0;
    switch (data[0] & 3) {
    case 0:
        read_pdb(data + 1, size - 1);
        break;
    case 1:
        sequence_points_begin(&points, data + 2, size - 2, data[1]);
        check_points(&points);
        break;
    default:
        read_image(data + 1, size - 1, data[0] & 1);
        break;
    }
    return 0;
}
