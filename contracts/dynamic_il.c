#include "contracts/dynamic_il.h"

bool dynamic_il_exists(struct reader *reader, uint64_t module, uint32_t token)
{
    uint64_t table = read_optional(reader, module, F_Module_DynamicILBlobTable);
    if (!table || reader_failed(reader) || !has_field(reader, F_DynamicILBlobTable_Table))
        return false;
    uint64_t entries = read_field(reader, table, F_DynamicILBlobTable_Table);
    uint64_t size = read_field(reader, table, F_DynamicILBlobTable_TableSize);
    uint64_t entry_size = reader->layout->sizes[T_DynamicILBlobTable];
    if (!size && !reader_failed(reader))
        return false;
    /* The hash of a token is the token. The step between the places where it can be is another function of it. */
    uint64_t at = size ? token % size : 0, step = size > 1 ? token % (size - 1) + 1 : 1;
    for (uint64_t tried = 0; tried < size && reader_step(reader, "methods that have dynamic IL"); tried++) {
        uint64_t found = read_field(reader, entries + at * entry_size, F_DynamicILBlobTable_EntryMethodToken);
        if (reader_failed(reader) || found == token)
            return true;
        if (!found)
            return false;
        at = (at + step) % size;
    }
    return reader_failed(reader);
}
