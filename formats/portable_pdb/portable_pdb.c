#include "formats/portable_pdb/portable_pdb.h"

#include "formats/metadata_schema.h"

enum {
    PART_CAP = 1024,        /* of a document name */
    CUSTOM_KIND_CAP = 1024, /* rows of one parent that are compared; compilers write less than ten */
};

const uint8_t portable_pdb_source_link[16] = {0x56, 0x05, 0x11, 0xcc, 0x91, 0xa0, 0x38, 0x4d,
                                              0x9f, 0xec, 0x25, 0xab, 0x9a, 0x35, 0x1a, 0x6a};

enum cdacq_status portable_pdb_open(const void *bytes, size_t size, struct portable_pdb *ret)
{
    struct portable_pdb pdb;
    struct bytes source = bytes_of_buffer(bytes, size);
    const uint8_t *id;
    enum cdacq_status status = metadata_open(&source, &pdb.metadata);
    if (status != CDACQ_OK)
        return status;
    if (pdb.metadata.pdb.size < PORTABLE_PDB_ID_SIZE)
        return CDACQ_ERR_FORMAT; /* metadata, but not that of a PDB */
    pdb.id_offset = pdb.metadata.pdb.offset;
    status = bytes_require(&source, pdb.id_offset, PORTABLE_PDB_ID_SIZE, &id);
    if (status != CDACQ_OK)
        return status;
    memcpy(pdb.id, id, sizeof pdb.id);
    *ret = pdb;
    return CDACQ_OK;
}

/* The bytes of a blob, which are in the PDB's buffer. */
static enum cdacq_status find_blob(const struct portable_pdb *pdb, uint32_t index, const uint8_t **ret,
                                   size_t *ret_size)
{
    uint64_t offset;
    uint32_t length;
    enum cdacq_status status = metadata_blob_extent(&pdb->metadata, index, &offset, &length);
    if (status == CDACQ_OK)
        status = bytes_require(&pdb->metadata.bytes, offset, length, ret);
    if (status == CDACQ_OK)
        *ret_size = length;
    return status;
}

enum cdacq_status portable_pdb_points(const struct portable_pdb *pdb, uint32_t method_rid, struct sequence_points *ret)
{
    struct metadata_method_debug_information row = {0};
    const uint8_t *blob = NULL;
    size_t size = 0;
    enum cdacq_status status = CDACQ_OK;
    if (metadata_row_count(&pdb->metadata, METADATA_METHOD_DEBUG_INFORMATION)) /* the table may be missing */
        status = metadata_method_debug_information(&pdb->metadata, method_rid, &row);
    if (status == CDACQ_OK && row.sequence_points)
        status = find_blob(pdb, row.sequence_points, &blob, &size);
    if (status == CDACQ_OK)
        sequence_points_begin(ret, blob, size, row.document);
    return status;
}

enum cdacq_status portable_pdb_document_name(const struct portable_pdb *pdb, uint32_t rid, struct text *text)
{
    struct metadata_document document;
    const uint8_t *p, *part;
    size_t size, part_size;
    enum cdacq_status status = metadata_document(&pdb->metadata, rid, &document);
    if (status == CDACQ_OK)
        status = find_blob(pdb, document.name, &p, &size);
    if (status == CDACQ_OK && (!size || p[0] >= 0x80))
        status = CDACQ_ERR_FORMAT;
    if (status != CDACQ_OK)
        return status;
    struct signature parts = signature_at(p, size, 0, false);
    char separator = (char)signature_byte(&parts);
    for (unsigned count = 0; parts.at < parts.end && !text->broken; count++) {
        uint32_t index = signature_uint(&parts);
        if (count == PART_CAP || parts.failed)
            return CDACQ_ERR_FORMAT;
        status = find_blob(pdb, index, &part, &part_size);
        if (status != CDACQ_OK)
            return status;
        if (count && separator)
            text_putc(text, separator);
        text_append(text, part, part_size);
    }
    return text->broken ? CDACQ_ERR_FORMAT : CDACQ_OK;
}

enum cdacq_status portable_pdb_custom(const struct portable_pdb *pdb, uint32_t token, const uint8_t kind[16],
                                      const uint8_t **ret, size_t *ret_size)
{
    const struct metadata *metadata = &pdb->metadata;
    struct metadata_custom_debug_information row;
    uint8_t found[16];
    uint32_t key, rid;
    if (!metadata_encode_cell(METADATA_CUSTOM_DEBUG_INFORMATION, CUSTOM_DEBUG_PARENT, token, &key))
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status =
        metadata_find_row(metadata, METADATA_CUSTOM_DEBUG_INFORMATION, CUSTOM_DEBUG_PARENT, key, &rid);
    for (unsigned i = 0; status == CDACQ_OK && rid; i++, rid++) {
        if (i == CUSTOM_KIND_CAP)
            return CDACQ_ERR_FUEL;
        if (rid > metadata_row_count(metadata, METADATA_CUSTOM_DEBUG_INFORMATION))
            break;
        status = metadata_custom_debug_information(metadata, rid, &row);
        if (status != CDACQ_OK || row.parent != token)
            break;
        status = metadata_guid(metadata, row.kind, found);
        if (status == CDACQ_OK && memcmp(found, kind, sizeof found) == 0)
            return find_blob(pdb, row.value, ret, ret_size);
        if (status == CDACQ_ERR_FORMAT) /* the kind of one row says nothing of the others */
            status = CDACQ_OK;
    }
    if (status == CDACQ_OK)
        *ret = NULL;
    return status;
}
