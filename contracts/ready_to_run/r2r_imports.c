#include "contracts/ready_to_run/r2r_imports.h"

enum { SECTION_MAX = 64 }; /* of one image; images of .NET 11 have seven */

static uint32_t word_in_memory(void *context, uint64_t at)
{
    return read_u32(context, at);
}

static bool corrupt(struct reader *reader, uint64_t address)
{
    return reader_fail(reader, CDACQ_ERR_CORRUPT, address, "ReadyToRun section 101");
}

/* Visits the stub if the signature at `rva` is that of one. */
static bool visit_signature(struct reader *reader, const struct r2r_imports *imports, uint32_t rva,
                            void (*visit)(uint32_t rva, void *context), void *context)
{
    uint64_t address = imports->base + rva;
    if (address >= imports->end)
        return corrupt(reader, address);
    if (read_u8(reader, address) != R2R_FIXUP_RESUMPTION_STUB_ENTRY_POINT)
        return !reader_failed(reader);
    uint32_t stub = read_u32(reader, address + 1);
    if (reader_failed(reader))
        return false;
    visit(stub, context);
    return true;
}

static bool visit_section(struct reader *reader, const struct r2r_imports *imports,
                          const struct r2r_import_section *section, void (*visit)(uint32_t rva, void *context),
                          void *context)
{
    struct window signatures;
    uint32_t count = section->cell_size ? section->size / section->cell_size : 0;
    if (!range_fits(section->signatures, (uint64_t)count * 4, imports->end - imports->base))
        return corrupt(reader, imports->base + section->signatures);
    if (!count || !reader_window(reader, imports->base + section->signatures, (uint64_t)count * 4,
                                 "ReadyToRun section 101", &signatures))
        return !count;
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++)
        good = reader_step(reader, "ReadyToRun section 101") &&
               visit_signature(reader, imports, load_u32(signatures.bytes + (size_t)i * 4, reader->big_endian), visit,
                               context);
    window_deinit(&signatures);
    return good;
}

bool r2r_imports_resumption_stubs(struct reader *reader, const struct r2r_imports *imports,
                                  void (*visit)(uint32_t rva, void *context), void *context)
{
    const struct r2r_source source = {word_in_memory, reader, reader->big_endian};
    uint32_t count = imports->sections.size / R2R_IMPORT_SECTION_SIZE;
    if (count > SECTION_MAX)
        return corrupt(reader, imports->base + imports->sections.rva);
    for (uint32_t i = 0; i < count; i++) {
        struct r2r_import_section section = r2r_import_section_read(&source, imports->base + imports->sections.rva +
                                                                                 (uint64_t)i * R2R_IMPORT_SECTION_SIZE);
        if (reader_failed(reader))
            return false;
        bool may_have_stubs = section.type == R2R_IMPORT_SECTION_TYPE_UNKNOWN && section.signatures && section.size;
        if (may_have_stubs && !visit_section(reader, imports, &section, visit, context))
            return false;
    }
    return true;
}
