#include "formats/x64_instruction.h"

enum { LENGTH_MAX = 15 };

/*
 * What follows an opcode:
 *   .  nothing                         M  a ModRM byte with its operand
 *   1  a byte                          a  M and a byte
 *   2  two bytes                       d  M and z
 *   3  three bytes                     T  M and, of TEST, a byte
 *   z  four bytes, two with prefix 66  U  M and, of TEST, z
 *   4  four bytes                      V  four bytes; two with prefix 66, eight with REX.W
 *   O  an address                      x  there is no such opcode
 *   p, R, E, Y, Z, X: no opcode, but a prefix, REX, 0F, VEX of three or two bytes, EVEX
 */
static const char one_byte[] = "MMMM1zxxMMMM1zxE"
                               "MMMM1zxxMMMM1zxx"
                               "MMMM1zpxMMMM1zpx"
                               "MMMM1zpxMMMM1zpx"
                               "RRRRRRRRRRRRRRRR"
                               "................"
                               "xxXMppppzd1a...."
                               "1111111111111111"
                               "adxaMMMMMMMMMMMM"
                               "..........x....."
                               "OOOO....1z......"
                               "11111111VVVVVVVV"
                               "aa2.YZad3.2..1x."
                               "MMMMxxx.MMMMMMMM"
                               "1111111144x1...."
                               "p.pp..TU......MM";

/* After 0F. */
static const char two_bytes[] = "MMMMx.....x.xM.a"
                                "MMMMMMMMMMMMMMMM"
                                "MMMMxxxxMMMMMMMM"
                                "......x.xxxxxxxx"
                                "MMMMMMMMMMMMMMMM"
                                "MMMMMMMMMMMMMMMM"
                                "MMMMMMMMMMMMMMMM"
                                "aaaaMMM.MMMMMMMM"
                                "4444444444444444"
                                "MMMMMMMMMMMMMMMM"
                                "...MaMxx...MaMMM"
                                "MMMMMMMMMMaMMMMM"
                                "MMaMaaaM........"
                                "MMMMMMMMMMMMMMMM"
                                "MMMMMMMMMMMMMMMM"
                                "MMMMMMMMMMMMMMMM";

/* The class of the opcode in a map of VEX or EVEX: 1 to 3 are 0F, 0F 38 and 0F 3A; 5 and 6 are of EVEX alone. */
static char class_in_map(unsigned map, uint8_t opcode)
{
    switch (map) {
    case 1:
        return two_bytes[opcode];
    case 2:
    case 5:
    case 6:
        return 'M';
    case 3:
        return 'a';
    default:
        return 'x';
    }
}

/* The length of a ModRM byte with SIB and displacement. `bytes` has two. */
static unsigned operand_length(const uint8_t *bytes)
{
    unsigned mode = bytes[0] >> 6, rm = bytes[0] & 7, length = 1;
    if (mode == 3)
        return length;
    bool is_absolute = mode == 0 && rm == 5; /* RIP-relative */
    if (rm == 4) {
        length++;
        is_absolute = mode == 0 && (bytes[1] & 7) == 5;
    }
    return length + (mode == 1 ? 1 : mode == 2 || is_absolute ? 4 : 0);
}

struct opcode {
    char class;
    unsigned end; /* of the opcode: the offset of what follows */
    bool short_operand, wide, short_address;
};

/* Finds the opcode behind the prefixes. `code` is padded with zeros. */
static struct opcode find_opcode(const uint8_t code[2 * LENGTH_MAX])
{
    struct opcode ret = {.class = 'p', .end = 0};
    for (; ret.class == 'p' && ret.end < LENGTH_MAX; ret.end++) {
        ret.class = one_byte[code[ret.end]];
        ret.short_operand |= code[ret.end] == 0x66;
        ret.short_address |= code[ret.end] == 0x67;
    }
    if (ret.class == 'R') {
        ret.wide = code[ret.end - 1] & 8;
        ret.class = one_byte[code[ret.end++]];
        if (ret.class == 'p' || ret.class == 'R' || ret.class == 'X' || ret.class == 'Y' || ret.class == 'Z')
            ret.class = 'x'; /* REX is the last prefix */
    }
    const uint8_t *at = code + ret.end;
    if (ret.class == 'E' && (at[0] == 0x38 || at[0] == 0x3a)) {
        ret.class = at[0] == 0x38 ? 'M' : 'a';
        ret.end += 2;
    } else if (ret.class == 'E') {
        ret.class = two_bytes[at[0]];
        ret.end++;
    } else if (ret.class == 'Z') {
        ret.class = class_in_map(1, at[1]);
        ret.end += 2;
    } else if (ret.class == 'Y') {
        ret.class = class_in_map(at[0] & 0x1f, at[2]);
        ret.end += 3;
    } else if (ret.class == 'X') {
        ret.class = class_in_map(at[0] & 7, at[3]);
        ret.end += 4;
    }
    return ret;
}

static unsigned immediate_length(const struct opcode *opcode, uint8_t modrm)
{
    unsigned z = opcode->short_operand && !opcode->wide ? 2 : 4;
    bool is_test = (modrm >> 3 & 7) < 2;
    switch (opcode->class) {
    case '1':
    case 'a':
        return 1;
    case '2':
        return 2;
    case '3':
        return 3;
    case '4':
        return 4;
    case 'z':
    case 'd':
        return z;
    case 'T':
        return is_test;
    case 'U':
        return is_test ? z : 0;
    case 'V':
        return opcode->wide ? 8 : z;
    case 'O':
        return opcode->short_address ? 4 : 8;
    default:
        return 0;
    }
}

unsigned x64_instruction_length(const uint8_t *code, size_t size)
{
    uint8_t padded[2 * LENGTH_MAX] = {0};
    memcpy(padded, code, MIN(size, (size_t)LENGTH_MAX));
    struct opcode opcode = find_opcode(padded);
    if (opcode.class == 'x' || opcode.end >= LENGTH_MAX + 2)
        return 0;
    char class = opcode.class;
    bool has_modrm = class == 'M' || class == 'a' || class == 'd' || class == 'T' || class == 'U';
    unsigned length = opcode.end + (has_modrm ? operand_length(padded + opcode.end) : 0) +
                      immediate_length(&opcode, padded[opcode.end]);
    return length <= MIN(size, (size_t)LENGTH_MAX) ? length : 0;
}
