#include "formats/il.h"

/* The kinds of headers: bits 0 and 1 of the first byte. */
enum {
    HEADER_KIND = 3,
    HEADER_TINY = 2,
    HEADER_FAT = 3,
    FAT_SIZE = 3, /* of the header, in words: bits 12 to 15 of its first two bytes */
};

enum {
    PREFIX = 0xfe, /* begins an opcode of two bytes */
    OPERAND_SWITCH = 0xff,
    UNDEFINED = 0xfd,
};

/* A range of opcodes whose operands have the same size. */
struct operand_range {
    uint8_t first, last;
    uint8_t size; /* bytes; or OPERAND_SWITCH, UNDEFINED */
};

static const struct operand_range short_opcodes[] = {
    {0x00, 0x0d, 0},         {0x0e, 0x13, 1}, {0x14, 0x1e, 0}, {0x1f, 0x1f, 1},         {0x20, 0x20, 4},
    {0x21, 0x21, 8},         {0x22, 0x22, 4}, {0x23, 0x23, 8}, {0x24, 0x24, UNDEFINED}, {0x25, 0x26, 0},
    {0x27, 0x29, 4},         {0x2a, 0x2a, 0}, {0x2b, 0x37, 1}, {0x38, 0x44, 4},         {0x45, 0x45, OPERAND_SWITCH},
    {0x46, 0x6e, 0},         {0x6f, 0x75, 4}, {0x76, 0x76, 0}, {0x77, 0x78, UNDEFINED}, {0x79, 0x79, 4},
    {0x7a, 0x7a, 0},         {0x7b, 0x81, 4}, {0x82, 0x8b, 0}, {0x8c, 0x8d, 4},         {0x8e, 0x8e, 0},
    {0x8f, 0x8f, 4},         {0x90, 0xa2, 0}, {0xa3, 0xa5, 4}, {0xa6, 0xb2, UNDEFINED}, {0xb3, 0xba, 0},
    {0xbb, 0xc1, UNDEFINED}, {0xc2, 0xc2, 4}, {0xc3, 0xc3, 0}, {0xc4, 0xc5, UNDEFINED}, {0xc6, 0xc6, 4},
    {0xc7, 0xcf, UNDEFINED}, {0xd0, 0xd0, 4}, {0xd1, 0xdc, 0}, {0xdd, 0xdd, 4},         {0xde, 0xde, 1},
    {0xdf, 0xe0, 0},
};

static const struct operand_range long_opcodes[] = {
    {0x00, 0x05, 0}, {0x06, 0x07, 4},         {0x08, 0x08, UNDEFINED}, {0x09, 0x0e, 2},
    {0x0f, 0x0f, 0}, {0x10, 0x10, UNDEFINED}, {0x11, 0x11, 0},         {0x12, 0x12, 1},
    {0x13, 0x14, 0}, {0x15, 0x16, 4},         {0x17, 0x18, 0},         {0x19, 0x19, 1},
    {0x1a, 0x1a, 0}, {0x1b, 0x1b, UNDEFINED}, {0x1c, 0x1c, 4},         {0x1d, 0x1e, 0},
};

static uint8_t operand_size(const struct operand_range *ranges, size_t count, uint8_t opcode)
{
    for (size_t i = 0; i < count; i++)
        if (opcode >= ranges[i].first && opcode <= ranges[i].last)
            return ranges[i].size;
    return UNDEFINED;
}

bool il_body_read(const uint8_t *bytes, size_t size, struct il_body *ret)
{
    if (!size)
        return false;
    if ((bytes[0] & HEADER_KIND) == HEADER_TINY) {
        *ret = (struct il_body){.header_size = 1, .code_size = bytes[0] >> 2};
        return true;
    }
    if ((bytes[0] & HEADER_KIND) != HEADER_FAT || size < IL_HEADER_MAX || bytes[1] >> 4 != FAT_SIZE)
        return false;
    uint32_t code_size = load_u32(bytes + 4, false);
    if (code_size > IL_CODE_MAX)
        return false;
    *ret = (struct il_body){IL_HEADER_MAX, code_size, load_u32(bytes + 8, false)};
    return true;
}

bool il_next(struct il_code *code, struct il_instruction *ret)
{
    uint32_t left = code->size - code->at, length = 1;
    const uint8_t *at = code->bytes + code->at;
    if (!left || (at[0] == PREFIX && left < 2))
        return false;
    bool is_long = at[0] == PREFIX;
    uint8_t size = is_long ? operand_size(long_opcodes, ARRAY_SIZE(long_opcodes), at[1])
                           : operand_size(short_opcodes, ARRAY_SIZE(short_opcodes), at[0]);
    length += is_long;
    if (size == UNDEFINED)
        return false;
    uint64_t operand = size;
    if (size == OPERAND_SWITCH) {
        if (left < length + 4)
            return false;
        operand = 4 + UINT64_C(4) * load_u32(at + length, false);
    }
    if (operand > left - length)
        return false;
    *ret = (struct il_instruction){
        .offset = code->at,
        .size = length + (uint32_t)operand,
        .opcode = is_long ? (uint16_t)(PREFIX << 8 | at[1]) : at[0],
        .operand = size == 1   ? at[length]
                   : size == 2 ? load_u16(at + length, false)
                   : size == 4 ? load_u32(at + length, false)
                               : 0,
    };
    code->at += ret->size;
    return true;
}

bool il_constant(const struct il_instruction *instruction, int32_t *ret)
{
    if (instruction->opcode >= IL_LDC_I4_M1 && instruction->opcode <= IL_LDC_I4_8)
        *ret = instruction->opcode - IL_LDC_I4_0;
    else if (instruction->opcode == IL_LDC_I4_S)
        *ret = (int8_t)instruction->operand;
    else if (instruction->opcode == IL_LDC_I4)
        *ret = (int32_t)instruction->operand;
    else
        return false;
    return true;
}

bool il_is_stloc(const struct il_instruction *instruction)
{
    return (instruction->opcode >= IL_STLOC_0 && instruction->opcode <= IL_STLOC_3) ||
           instruction->opcode == IL_STLOC_S || instruction->opcode == IL_STLOC;
}
