#include "contracts/code_lookup/auxiliary_symbols.h"

#include "contracts/code_lookup/platform_metadata.h"

enum {
    SYMBOL_MAX = 256, /* .NET 11.0 has room for 17 */
    NAME_ROOM = 64,   /* bytes of a name that is looked for */
};

static bool has_text(struct reader *reader, uint64_t address, const char *text)
{
    char bytes[NAME_ROOM];
    size_t size = strlen(text) + 1;
    return address && size <= sizeof bytes && reader_try_copy(reader, address, bytes, size) &&
           memcmp(bytes, text, size) == 0;
}

uint64_t auxiliary_symbols_find(struct reader *reader, const char *name)
{
    const struct layout *layout = reader->layout;
    uint64_t symbols = layout->globals[G_AuxiliarySymbols], count = layout->globals[G_AuxiliarySymbolCount];
    uint64_t size = layout->sizes[T_AuxiliarySymbolInfo];
    if (!(layout->usable >> LAYOUT_AuxiliarySymbols & 1) || !symbols || !count || !size)
        return 0;
    count = MIN(read_u32(reader, count), (uint32_t)SYMBOL_MAX);
    for (uint64_t i = 0; i < count && reader_step(reader, "AuxiliarySymbols"); i++) {
        uint64_t symbol = symbols + i * size, text = read_field(reader, symbol, F_AuxiliarySymbolInfo_Name);
        if (reader_failed(reader))
            return 0;
        if (has_text(reader, text, name))
            return address_of_code_pointer(reader, read_field(reader, symbol, F_AuxiliarySymbolInfo_Address));
    }
    return 0;
}
