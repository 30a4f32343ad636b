#include "contracts/platform_metadata.h"

unsigned platform_metadata_code_pointer_flags(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    const struct layout_slot *slot = &layout->fields[F_PlatformMetadata_CodePointerFlags];
    uint64_t metadata = layout->globals[G_PlatformMetadata];
    uint8_t flags = 0;
    if (!layout->global_present[G_PlatformMetadata] || !metadata || !slot->present)
        return 0;
    return reader_try_copy(reader, metadata + slot->offset, &flags, 1) ? flags : 0;
}
