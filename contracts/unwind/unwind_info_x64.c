#include "contracts/unwind/unwind_info_x64.h"

const uint8_t dwarf_numbers_x64[16] = {RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- UNWIND_INFO ------------------------------------------------------------------------------------------------ */

unsigned code_slots(const struct unwind_info_x64 *info, unsigned i)
{
    static const uint8_t slots[] = {1, 0, 1, 1, 2, 3, 2, 3, 2, 3, 1, 3};
    enum unwind_operation operation = code_operation(info, i);
    if (operation == UWOP_ALLOC_LARGE)
        return code_info(info, i) ? 3 : 2;
    return (size_t)operation < ARRAY_SIZE(slots) ? slots[operation] : 0;
}

/* Checks that every code is known and has its operand, so that what follows need not; and finds the frame offset. */
static bool check_codes(struct unwind_info_x64 *info)
{
    unsigned i = 0, slots;
    for (; i < info->code_count; i += slots) {
        slots = code_slots(info, i);
        if (!slots || slots > info->code_count - i)
            return false;
        if (code_operation(info, i) == UWOP_SET_FPREG_LARGE)
            info->frame_offset = 16 * operand32(info, i);
    }
    return true;
}

bool unwind_info_x64_read(struct reader *reader, uint64_t address, struct unwind_info_x64 *ret)
{
    uint8_t header[4], chained[FUNCTION_SIZE] = {0};
    if (!reader_copy(reader, address, header, sizeof header))
        return false;
    *ret = (struct unwind_info_x64){
        .flags = header[0] >> 3,
        .prolog_size = header[1],
        .code_count = header[2],
        .frame_register = header[3] & 15 ? dwarf_numbers_x64[header[3] & 15] : 0,
        .frame_offset = 16 * (header[3] >> 4),
    };
    unsigned slots = (ret->code_count + 1) & ~1u;
    if ((header[0] & 7) != 1)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, address, "UNWIND_INFO.Version");
    if (!reader_copy(reader, address + 4, ret->codes, 2 * (size_t)slots))
        return false;
    if (ret->flags & CHAININFO && !reader_copy(reader, address + 4 + 2 * slots, chained, sizeof chained))
        return false;
    for (unsigned i = 0; i < 3; i++)
        ret->chained[i] = load_u32(chained + 4 * i, false);
    return check_codes(ret) || reader_fail(reader, CDACQ_ERR_CORRUPT, address, "UNWIND_INFO.UnwindCode");
}

bool unwind_info_x64_has_frame(const struct unwind_info_x64 *info, uint64_t offset)
{
    bool is_set = info->frame_register != 0;
    if (is_set && offset < info->prolog_size && !(info->flags & CHAININFO)) {
        is_set = false;
        for (unsigned i = 0; i < info->code_count; i += code_slots(info, i)) {
            enum unwind_operation operation = code_operation(info, i);
            if (operation == UWOP_SET_FPREG || operation == UWOP_SET_FPREG_LARGE)
                is_set = offset >= code_offset(info, i);
        }
    }
    return is_set;
}

/* ---- Epilogs ---------------------------------------------------------------------------------------------------- */

/* A number of 1 or 4 bytes. */
static int64_t signed_number(const uint8_t *bytes, bool wide)
{
    return wide ? (int32_t)load_u32(bytes, false) : (int8_t)bytes[0];
}

struct epilog_instruction_x64 epilog_instruction_x64_at(const uint8_t *bytes)
{
    unsigned rex = (bytes[0] & 0xf0) == 0x40 ? bytes[0] : 0, high = (rex & 1) << 3;
    if ((bytes[0] & 0xf8) == 0x58)
        return (struct epilog_instruction_x64){POP, 1, dwarf_numbers_x64[bytes[0] & 7], 0};
    if (rex && (bytes[1] & 0xf8) == 0x58)
        return (struct epilog_instruction_x64){POP, 2, dwarf_numbers_x64[high | (bytes[1] & 7)], 0};
    if (rex == 0x48 && (bytes[1] == 0x83 || bytes[1] == 0x81) && bytes[2] == 0xc4) {
        bool wide = bytes[1] == 0x81;
        return (struct epilog_instruction_x64){ADD_RSP, wide ? 7 : 4, RSP, signed_number(bytes + 3, wide)};
    }
    unsigned mode = bytes[2] & 0xf8; /* a displacement of 1 or 4 bytes, RSP the destination */
    if ((rex & 0xfe) == 0x48 && bytes[1] == 0x8d && (mode == 0x60 || mode == 0xa0)) {
        bool wide = mode == 0xa0;
        return (struct epilog_instruction_x64){LEA_RSP, wide ? 7 : 4, dwarf_numbers_x64[high | (bytes[2] & 7)],
                                               signed_number(bytes + 3, wide)};
    }
    return (struct epilog_instruction_x64){OTHER, 0, 0, 0};
}

/* Whether control leaves the function at the next instruction: a return, or a jump that is a call in its place. */
static bool leaves(const uint8_t *bytes, uint64_t address, const struct unwind_function *function, bool is_chained)
{
    if (bytes[0] == 0xf2) { /* REPNE may precede it */
        bytes++;
        address++;
    }
    if (bytes[0] == 0xc3 || bytes[0] == 0xc2 || (bytes[0] == 0xf3 && bytes[1] == 0xc3))
        return true;
    if (bytes[0] == 0xeb || bytes[0] == 0xe9) {
        bool wide = bytes[0] == 0xe9;
        uint64_t to = address + (wide ? 5 : 2) + (uint64_t)signed_number(bytes + 1, wide);
        bool outside =
            (to < function->begin || to >= function->end) && (to < function->other_begin || to >= function->other_end);
        return outside || (to == function->begin && !is_chained); /* to its own begin: it calls itself */
    }
    return (bytes[0] == 0xff && bytes[1] == 0x25) ||
           ((bytes[0] & 0xf8) == 0x48 && bytes[1] == 0xff && (bytes[2] & 0x38) == 0x20);
}

int epilog_x64_length(const uint8_t code[EPILOG_WINDOW], unsigned size, uint64_t pc,
                      const struct unwind_function *function, const struct unwind_info_x64 *info)
{
    struct epilog_instruction_x64 instruction;
    unsigned end = 0;
    for (; end < size && (instruction = epilog_instruction_x64_at(code + end)).kind != OTHER; end += instruction.length)
        if (instruction.kind == LEA_RSP && instruction.number != info->frame_register)
            return -1;
    return leaves(code + end, pc + end, function, info->flags & CHAININFO) ? (int)end : -1;
}
