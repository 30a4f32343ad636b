#include "contracts/code_lookup/platform_metadata.h"

/* The address of a field; 0 if the target publishes no such field or no PlatformMetadata. */
static uint64_t address_of(const struct layout *layout, enum layout_field field)
{
    uint64_t metadata = layout->globals[G_PlatformMetadata];
    bool published = layout->global_present[G_PlatformMetadata] && metadata && layout->fields[field].present;
    return published ? metadata + layout->fields[field].offset : 0;
}

unsigned platform_metadata_code_pointer_flags(struct reader *reader)
{
    uint64_t address = address_of(reader->layout, F_PlatformMetadata_CodePointerFlags);
    uint8_t flags = 0;
    return address && reader_try_copy(reader, address, &flags, 1) ? flags : 0;
}

uint64_t platform_metadata_precode_machine_descriptor(const struct reader *reader)
{
    return address_of(reader->layout, F_PlatformMetadata_PrecodeMachineDescriptor);
}
