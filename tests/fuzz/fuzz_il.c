/*
 * fuzz_il.c: any bytes as a method. Instructions follow each other without gaps and end with the code.
 */
#include "formats/il.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct il_body body;
    struct il_instruction instruction;
    int32_t value;
    if (!il_body_read(data, size, &body) || body.header_size > size)
        return 0;
    struct il_code code = {data + body.header_size, (uint32_t)MIN(body.code_size, size - body.header_size), 0};
    for (uint32_t at = 0; il_next(&code, &instruction); at += instruction.size) {
        if (instruction.offset != at || !instruction.size || code.at != at + instruction.size || code.at > code.size)
            abort();
        (void)il_constant(&instruction, &value);
    }
    return 0;
}
