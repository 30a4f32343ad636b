/*
 * fuzz_metadata.c: names every method of a metadata blob, or of the PE image around it, in every spelling. The first
 * byte selects: bit 0 a PE image, bit 1 mapped, bit 2 a part of the source is missing, bit 3 the bytes are a separate
 * signature.
 */
#include "formats/pe.h"
#include "tests/support/metadata_find.h"
#include "tests/support/paged_bytes.h"
#include "tests/support/type_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    IS_IMAGE = 1,
    IS_MAPPED = 2,
    HAS_HOLE = 4,
    IS_SIGNATURE = 8,
    ROW_CAP = 400, /* of each table: the work for an input is bounded, not only that for a name */
};

static struct metadata metadata;

static const struct name_spelling *const spellings[] = {&name_spelling_csharp, &name_spelling_sos, &name_spelling_il,
                                                        &name_spelling_source};

static void feed_handle(void *context, uint64_t address, struct namer *n)
{
    (void)context;
    text_printf(n->text, "%#llx", (unsigned long long)address);
    if (address & 1)
        type_array(n, NULL);
}

static enum cdacq_status define_handle(void *context, uint64_t address, const struct metadata **ret_metadata,
                                       uint32_t *ret_token)
{
    (void)context;
    *ret_metadata = &metadata;
    *ret_token = (uint32_t)address;
    return CDACQ_OK;
}

static const struct metadata *find_module(void *context, uint32_t index)
{
    (void)context;
    return index < 4 ? &metadata : NULL;
}

static const struct name_source source = {.metadata = &metadata,
                                          .type_handle = feed_handle,
                                          .type_definition = define_handle,
                                          .pointer_size = 4,
                                          .module = find_module};

static void feed_owner(void *context, struct namer *n)
{
    (void)context;
    text_puts(n->text, "Owner");
}

static void feed_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    (void)context;
    if (index >= 2)
        abort();
    if (index && metadata.bytes.size)
        type_definition(n, &metadata, 0x02000002);
    else
        text_printf(n->text, "%d.%u", of_method, index);
}

static const struct name_instance instance = {
    .owner = feed_owner, .argument = feed_argument, .type_count = 2, .method_count = 2};

static void check_text(const struct text *text, size_t before, enum cdacq_status status)
{
    if (status != CDACQ_OK && text->length != before)
        abort();
    for (size_t i = before; i < text->length; i++)
        if ((unsigned char)text->data[i] < 0x20 || text->data[i] == 0x7f)
            abort();
}

static void name_all(enum metadata_table table, struct text *text)
{
    bool types = table == METADATA_TYPE_DEF || table == METADATA_TYPE_SPEC || table == METADATA_TYPE_REF;
    uint32_t count = MIN(metadata_row_count(&metadata, table), (uint32_t)ROW_CAP);
    for (uint32_t rid = 1; rid <= count; rid++) {
        uint32_t token = metadata_token(table, rid);
        for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
            text_clear(text);
            check_text(text, 0,
                       types ? name_type(&source, spellings[i]->owner, token, text)
                             : name_method(&source, spellings[i], token, rid & 1 ? &instance : NULL, text));
        }
    }
}

static void look_up(void)
{
    uint8_t mvid[16];
    uint32_t rid;
    metadata_mvid(&metadata, mvid);
    metadata_assembly_name(&metadata, &rid);
    if (metadata_row_count(&metadata, METADATA_TYPE_DEF) > ROW_CAP)
        return;
    metadata_find_type(&metadata, "System", "String", 0, &rid);
    metadata_find_method(&metadata, 2, "Main", "\0\0\1", 3, &rid);
}

static void name_signatures(const uint8_t *data, size_t size, struct text *text)
{
    const struct dynamic_method method = {"Owner", "N(", data, size, &instance};
    struct name_entry_point entry;
    bool decoded = name_entry_point_decode(data, size, &entry) == CDACQ_OK;
    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        text_clear(text);
        check_text(text, 0, name_signature_type(&source, spellings[i]->owner, data, size, text, NULL));
        text_clear(text);
        check_text(text, 0, name_dynamic(&source, spellings[i], &method, text));
        text_clear(text);
        if (decoded)
            check_text(text, 0, name_entry_point(&source, spellings[i], &entry, text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct paged_bytes paged;
    struct bytes_extent part;
    struct text text = {0};
    struct pe pe;
    uint32_t rva;
    if (size < 2)
        return 0;
    unsigned options = *data++;
    size--;
    memset(&metadata, 0, sizeof metadata);
    struct bytes bytes = paged_bytes_open(&paged, data, size);
    if (options & HAS_HOLE) {
        paged.missing_begin = (uint64_t)data[0] * size / 256;
        paged.missing_end = paged.missing_begin + size / 16;
    }
    if (options & IS_SIGNATURE) {
        name_signatures(data, size, &text);
    } else {
        enum cdacq_status status = CDACQ_OK;
        if (options & IS_IMAGE) {
            status = pe_open(&bytes, options & IS_MAPPED, &pe);
            if (status == CDACQ_OK) {
                pe_find_export(&pe, "RTR_HEADER", &rva);
                pe_relocated_pointer(&pe, pe.directories[PE_DIRECTORY_CLR].rva, &rva);
                bool marked[64];
                unsigned budget = 1 << 20;
                pe_mark_relocated(&pe, pe.directories[PE_DIRECTORY_CLR].rva, sizeof marked, &budget, marked);
                status = pe_metadata(&pe, &part, &bytes);
            }
        }
        if (status == CDACQ_OK && metadata_open(&bytes, &metadata) == CDACQ_OK) {
            static const uint8_t tables[] = {METADATA_METHOD_DEF, METADATA_MEMBER_REF, METADATA_TYPE_DEF,
                                             METADATA_TYPE_REF, METADATA_TYPE_SPEC};
            for (unsigned i = 0; i < ARRAY_SIZE(tables); i++)
                name_all(tables[i], &text);
            look_up();
        }
    }
    text_deinit(&text);
    paged_bytes_close(&paged);
    return 0;
}
