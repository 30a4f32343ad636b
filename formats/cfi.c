#include "formats/cfi.h"

#include "formats/dwarf_cursor.h"

enum { STATE_MAX = 16 }; /* DW_CFA_remember_state nests one deep in practice */

static uint64_t address_of(const struct cfi_bytes *bytes, const struct dwarf_cursor *cursor)
{
    return bytes->address + (uint64_t)(cursor->at - bytes->bytes);
}

static struct dwarf_cursor cursor_of(const struct cfi_bytes *bytes)
{
    return dwarf_cursor_of(bytes->bytes, bytes->size, bytes->big);
}

/* A number of the format in an encoding's low bits. */
static uint64_t read_format(struct dwarf_cursor *cursor, unsigned encoding, unsigned word_size)
{
    enum { WORD, ULEB, UDATA2, UDATA4, UDATA8, SIGNED_WORD = 8, SLEB, SDATA2, SDATA4, SDATA8 };
    switch (encoding & 0x0f) {
    case WORD:
        return dwarf_uint(cursor, word_size);
    case SIGNED_WORD:
        return (uint64_t)dwarf_int(cursor, word_size);
    case ULEB:
        return dwarf_uleb(cursor);
    case SLEB:
        return (uint64_t)dwarf_sleb(cursor);
    case UDATA2:
    case UDATA4:
    case UDATA8:
        return dwarf_uint(cursor, 1u << ((encoding & 0x0f) - 1));
    case SDATA2:
    case SDATA4:
    case SDATA8:
        return (uint64_t)dwarf_int(cursor, 1u << ((encoding & 0x0f) - 9));
    default:
        cursor->failed = true;
        return 0;
    }
}

/* An encoded pointer. Indirect ones, and those relative to what is not known here, are no addresses of code. */
static uint64_t read_pointer_as(const struct cfi_bytes *bytes, struct dwarf_cursor *cursor, unsigned encoding)
{
    uint64_t from = address_of(bytes, cursor);
    uint64_t value = read_format(cursor, encoding, bytes->word_size);
    switch (encoding & 0xf0) {
    case CFI_ENCODING_ABSOLUTE:
        break;
    case CFI_ENCODING_PC_RELATIVE:
        value += from;
        break;
    case CFI_ENCODING_DATA_RELATIVE: /* only of .eh_frame_hdr, whose address is that of the bytes */
        value += bytes->address;
        break;
    default:
        cursor->failed = true;
    }
    return bytes->word_size == 4 ? (uint32_t)value : value;
}

static bool read_head(const struct cfi_bytes *bytes, struct dwarf_cursor *cursor, struct cfi_head *ret)
{
    uint64_t length = dwarf_uint(cursor, 4);
    unsigned width = 4;
    *ret = (struct cfi_head){0};
    if (length == UINT32_MAX) {
        length = dwarf_uint(cursor, 8);
        width = 8;
    }
    if (cursor->failed)
        return false;
    if (!length)
        return true; /* the terminator has no id */
    uint64_t at = address_of(bytes, cursor), prefix = width == 8 ? 12 : 4;
    uint64_t id = dwarf_uint(cursor, bytes->is_debug_frame ? width : 4);
    ret->size = add_saturated(prefix, length);
    ret->is_cie = id == (!bytes->is_debug_frame ? 0 : width == 8 ? UINT64_MAX : UINT32_MAX);
    ret->cie = bytes->is_debug_frame ? id : at - id;
    return !cursor->failed && length >= 4;
}

bool cfi_head_at(const struct cfi_bytes *bytes, struct cfi_head *ret)
{
    struct dwarf_cursor cursor = cursor_of(bytes);
    return read_head(bytes, &cursor, ret);
}

/* The letters after 'z'. False at one that is not known; the rest is then skipped by its size. */
static bool read_augmentation(const struct cfi_bytes *bytes, struct dwarf_cursor *cursor, char letter,
                              struct cfi_cie *cie)
{
    switch (letter) {
    case 'R':
        cie->pointer_encoding = (uint8_t)dwarf_uint(cursor, 1);
        return true;
    case 'P': {
        unsigned encoding = (unsigned)dwarf_uint(cursor, 1);
        read_format(cursor, encoding, bytes->word_size);
        return (encoding & 0x70) != 0x50; /* aligned: its size depends on its address */
    }
    case 'L':
        cie->lsda_encoding = (uint8_t)dwarf_uint(cursor, 1);
        return true;
    case 'S':
        cie->is_signal = true;
        return true;
    case 'B': /* the key that signs return addresses */
    case 'G': /* memory tagging */
        return true;
    default:
        return false;
    }
}

bool cfi_cie_read(const struct cfi_bytes *bytes, struct cfi_cie *ret)
{
    struct dwarf_cursor cursor = cursor_of(bytes);
    struct cfi_head head;
    *ret = (struct cfi_cie){.lsda_encoding = CFI_ENCODING_OMITTED};
    if (!read_head(bytes, &cursor, &head) || !head.is_cie)
        return false;
    unsigned version = (unsigned)dwarf_uint(&cursor, 1);
    const char *augmentation = (const char *)cursor.at;
    while (dwarf_uint(&cursor, 1))
        ;
    if (cursor.failed || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4 && (dwarf_uint(&cursor, 1) != bytes->word_size || dwarf_uint(&cursor, 1)))
        return false; /* addresses of another size, or with segments */
    ret->code_factor = dwarf_uleb(&cursor);
    ret->data_factor = dwarf_sleb(&cursor);
    uint64_t column = version == 1 ? dwarf_uint(&cursor, 1) : dwarf_uleb(&cursor);
    ret->return_address = (unsigned)column;
    if (column >= CFI_REGISTER_MAX || (augmentation[0] && augmentation[0] != 'z'))
        return false;
    if (augmentation[0]) {
        uint64_t size = dwarf_uleb(&cursor);
        struct dwarf_cursor letters = cursor;
        if (!dwarf_bytes(&cursor, size))
            return false;
        letters.end = cursor.at;
        while (*++augmentation && read_augmentation(bytes, &letters, *augmentation, ret))
            ;
        if (letters.failed)
            return false;
        ret->has_augmentation_size = true;
    }
    ret->program = cursor.at;
    ret->program_size = dwarf_left(&cursor);
    return !cursor.failed;
}

/* The pointer to the language-specific data; 0 if it is null, or encoded in a way that is not known. */
static uint64_t read_lsda(const struct cfi_bytes *bytes, struct dwarf_cursor cursor, unsigned encoding)
{
    struct dwarf_cursor pointer = cursor;
    bool is_null = encoding == CFI_ENCODING_OMITTED || !read_format(&cursor, encoding, bytes->word_size);
    uint64_t address = is_null ? 0 : read_pointer_as(bytes, &pointer, encoding);
    return pointer.failed ? 0 : address;
}

bool cfi_fde_read(const struct cfi_bytes *bytes, const struct cfi_cie *cie, struct cfi_fde *ret)
{
    struct dwarf_cursor cursor = cursor_of(bytes);
    struct cfi_head head;
    if (!read_head(bytes, &cursor, &head) || !head.size || head.is_cie)
        return false;
    ret->begin = read_pointer_as(bytes, &cursor, cie->pointer_encoding);
    ret->end = add_saturated(ret->begin, read_format(&cursor, cie->pointer_encoding & 0x07, bytes->word_size));
    ret->lsda = 0;
    if (cie->has_augmentation_size) {
        uint64_t size = dwarf_uleb(&cursor);
        struct dwarf_cursor data = cursor;
        if (dwarf_bytes(&cursor, size)) {
            data.end = cursor.at;
            ret->lsda = read_lsda(bytes, data, cie->lsda_encoding);
        }
    }
    ret->program = cursor.at;
    ret->program_size = dwarf_left(&cursor);
    return !cursor.failed;
}

bool cfi_index_read(const struct cfi_bytes *bytes, struct cfi_index *ret)
{
    struct dwarf_cursor cursor = cursor_of(bytes);
    unsigned version = (unsigned)dwarf_uint(&cursor, 1), frame_encoding = (unsigned)dwarf_uint(&cursor, 1);
    unsigned count_encoding = (unsigned)dwarf_uint(&cursor, 1), table_encoding = (unsigned)dwarf_uint(&cursor, 1);
    *ret = (struct cfi_index){0};
    if (cursor.failed || version != 1 || frame_encoding == CFI_ENCODING_OMITTED)
        return false;
    ret->eh_frame = read_pointer_as(bytes, &cursor, frame_encoding);
    if (cursor.failed)
        return false;
    if (count_encoding == CFI_ENCODING_OMITTED || table_encoding != (CFI_ENCODING_DATA_RELATIVE | CFI_ENCODING_SDATA4))
        return true; /* the records can only be read one after the other */
    ret->count = read_pointer_as(bytes, &cursor, count_encoding);
    ret->table = address_of(bytes, &cursor);
    return !cursor.failed;
}

/* ---- Programs ---- */

struct machine {
    const struct cfi_cie *cie;
    const struct cfi_bytes *bytes; /* of the program that runs */
    struct cfi_row row, initial;
    struct cfi_row *saved; /* STATE_MAX of them */
    unsigned saved_count;
    uint64_t at, until; /* the address that the row is for; the one wanted */
};

static int64_t factored(const struct machine *machine, int64_t value)
{
    return (int64_t)((uint64_t)value * (uint64_t)machine->cie->data_factor);
}

static void set_rule(struct machine *machine, uint64_t number, enum cfi_rule_kind kind, int64_t value)
{
    if (number < CFI_REGISTER_MAX)
        machine->row.registers[number] = (struct cfi_rule){.kind = (uint8_t)kind, .value = value};
}

static void restore_rule(struct machine *machine, uint64_t number)
{
    if (number < CFI_REGISTER_MAX)
        machine->row.registers[number] = machine->initial.registers[number];
}

/* An expression: its size, then its bytes. */
static struct cfi_rule read_expression(const struct machine *machine, struct dwarf_cursor *cursor,
                                       enum cfi_rule_kind kind)
{
    uint64_t size = dwarf_uleb(cursor);
    uint64_t address = address_of(machine->bytes, cursor);
    dwarf_bytes(cursor, size);
    return (struct cfi_rule){.kind = (uint8_t)kind, .size = (uint32_t)size, .value = (int64_t)address};
}

static void set_expression(struct machine *machine, struct dwarf_cursor *cursor, enum cfi_rule_kind kind)
{
    uint64_t number = dwarf_uleb(cursor);
    struct cfi_rule rule = read_expression(machine, cursor, kind);
    if (number < CFI_REGISTER_MAX)
        machine->row.registers[number] = rule;
}

static void set_cfa(struct machine *machine, struct dwarf_cursor *cursor, uint64_t number, int64_t offset)
{
    cursor->failed |= number >= CFI_REGISTER_MAX;
    machine->row.cfa_register = (uint8_t)number;
    machine->row.cfa = (struct cfi_rule){.kind = CFI_VALUE_OFFSET, .value = offset};
}

/* Changes one half of register and offset; both must have been there. */
static void change_cfa(struct machine *machine, struct dwarf_cursor *cursor, const uint64_t *number,
                       const int64_t *offset)
{
    cursor->failed |= machine->row.cfa.kind != CFI_VALUE_OFFSET;
    set_cfa(machine, cursor, number ? *number : machine->row.cfa_register, offset ? *offset : machine->row.cfa.value);
}

static void remember(struct machine *machine, struct dwarf_cursor *cursor)
{
    cursor->failed |= machine->saved_count == STATE_MAX;
    if (!cursor->failed)
        machine->saved[machine->saved_count++] = machine->row;
}

static void recall(struct machine *machine, struct dwarf_cursor *cursor)
{
    cursor->failed |= machine->saved_count == 0;
    if (!cursor->failed)
        machine->row = machine->saved[--machine->saved_count];
}

enum cfi_instruction {
    DW_CFA_nop,
    DW_CFA_set_loc,
    DW_CFA_advance_loc1,
    DW_CFA_advance_loc2,
    DW_CFA_advance_loc4,
    DW_CFA_offset_extended,
    DW_CFA_restore_extended,
    DW_CFA_undefined,
    DW_CFA_same_value,
    DW_CFA_register,
    DW_CFA_remember_state,
    DW_CFA_restore_state,
    DW_CFA_def_cfa,
    DW_CFA_def_cfa_register,
    DW_CFA_def_cfa_offset,
    DW_CFA_def_cfa_expression,
    DW_CFA_expression,
    DW_CFA_offset_extended_sf,
    DW_CFA_def_cfa_sf,
    DW_CFA_def_cfa_offset_sf,
    DW_CFA_val_offset,
    DW_CFA_val_offset_sf,
    DW_CFA_val_expression,
    DW_CFA_AARCH64_negate_ra_state = 0x2d,
    DW_CFA_GNU_args_size = 0x2e,
    DW_CFA_GNU_negative_offset_extended = 0x2f,
    /* With an operand in the low six bits: */
    DW_CFA_advance_loc = 0x40,
    DW_CFA_offset = 0x80,
    DW_CFA_restore = 0xc0,
};

static void run_cfa(struct machine *machine, struct dwarf_cursor *cursor, unsigned code)
{
    uint64_t number;
    int64_t offset;
    switch (code) {
    case DW_CFA_def_cfa:
        number = dwarf_uleb(cursor);
        set_cfa(machine, cursor, number, (int64_t)dwarf_uleb(cursor));
        break;
    case DW_CFA_def_cfa_sf:
        number = dwarf_uleb(cursor);
        set_cfa(machine, cursor, number, factored(machine, dwarf_sleb(cursor)));
        break;
    case DW_CFA_def_cfa_register:
        number = dwarf_uleb(cursor);
        change_cfa(machine, cursor, &number, NULL);
        break;
    case DW_CFA_def_cfa_offset:
        offset = (int64_t)dwarf_uleb(cursor);
        change_cfa(machine, cursor, NULL, &offset);
        break;
    case DW_CFA_def_cfa_offset_sf:
        offset = factored(machine, dwarf_sleb(cursor));
        change_cfa(machine, cursor, NULL, &offset);
        break;
    default: /* DW_CFA_def_cfa_expression */
        machine->row.cfa = read_expression(machine, cursor, CFI_VALUE_EXPRESSION);
    }
}

/* Rules of a register whose number is the first operand. */
static void run_rule(struct machine *machine, struct dwarf_cursor *cursor, unsigned code)
{
    uint64_t number = dwarf_uleb(cursor);
    switch (code) {
    case DW_CFA_offset_extended:
        set_rule(machine, number, CFI_OFFSET, factored(machine, (int64_t)dwarf_uleb(cursor)));
        break;
    case DW_CFA_offset_extended_sf:
        set_rule(machine, number, CFI_OFFSET, factored(machine, dwarf_sleb(cursor)));
        break;
    case DW_CFA_GNU_negative_offset_extended:
        set_rule(machine, number, CFI_OFFSET, (int64_t) - (uint64_t)factored(machine, (int64_t)dwarf_uleb(cursor)));
        break;
    case DW_CFA_val_offset:
        set_rule(machine, number, CFI_VALUE_OFFSET, factored(machine, (int64_t)dwarf_uleb(cursor)));
        break;
    case DW_CFA_val_offset_sf:
        set_rule(machine, number, CFI_VALUE_OFFSET, factored(machine, dwarf_sleb(cursor)));
        break;
    case DW_CFA_register:
        set_rule(machine, number, CFI_REGISTER, (int64_t)dwarf_uleb(cursor));
        break;
    case DW_CFA_undefined:
        set_rule(machine, number, CFI_UNDEFINED, 0);
        break;
    case DW_CFA_same_value:
        set_rule(machine, number, CFI_SAME, 0);
        break;
    default: /* DW_CFA_restore_extended */
        restore_rule(machine, number);
    }
}

static void advance(struct machine *machine, uint64_t delta)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, machine->cie->code_factor, &bytes))
        bytes = UINT64_MAX;
    machine->at = add_saturated(machine->at, bytes);
}

static void run_instruction(struct machine *machine, struct dwarf_cursor *cursor, unsigned code)
{
    switch (code) {
    case DW_CFA_nop:
    case DW_CFA_AARCH64_negate_ra_state: /* an address itself shows whether it is signed */
        break;
    case DW_CFA_set_loc:
        machine->at = read_pointer_as(machine->bytes, cursor, machine->cie->pointer_encoding);
        break;
    case DW_CFA_advance_loc1:
    case DW_CFA_advance_loc2:
    case DW_CFA_advance_loc4:
        advance(machine, dwarf_uint(cursor, 1u << (code - DW_CFA_advance_loc1)));
        break;
    case DW_CFA_remember_state:
        remember(machine, cursor);
        break;
    case DW_CFA_restore_state:
        recall(machine, cursor);
        break;
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_def_cfa_expression:
        run_cfa(machine, cursor, code);
        break;
    case DW_CFA_expression:
        set_expression(machine, cursor, CFI_EXPRESSION);
        break;
    case DW_CFA_val_expression:
        set_expression(machine, cursor, CFI_VALUE_EXPRESSION);
        break;
    case DW_CFA_GNU_args_size:
        dwarf_uleb(cursor);
        break;
    default:
        if (code > DW_CFA_val_expression && code != DW_CFA_GNU_negative_offset_extended)
            cursor->failed = true;
        else
            run_rule(machine, cursor, code);
    }
}

/* Runs a program up to the address that is wanted. */
static bool run(struct machine *machine, const struct cfi_bytes *bytes, const uint8_t *program, size_t size)
{
    struct dwarf_cursor cursor = dwarf_cursor_of(program, size, bytes->big);
    machine->bytes = bytes;
    while (!cursor.failed && dwarf_left(&cursor)) {
        unsigned code = (unsigned)dwarf_uint(&cursor, 1), low = code & 0x3f;
        switch (code & 0xc0) {
        case DW_CFA_advance_loc:
            advance(machine, low);
            break;
        case DW_CFA_offset:
            set_rule(machine, low, CFI_OFFSET, factored(machine, (int64_t)dwarf_uleb(&cursor)));
            break;
        case DW_CFA_restore:
            restore_rule(machine, low);
            break;
        default:
            run_instruction(machine, &cursor, code);
        }
        if (machine->at > machine->until)
            break;
    }
    return !cursor.failed;
}

bool cfi_row_at(const struct cfi_bytes *cie_bytes, const struct cfi_cie *cie, const struct cfi_bytes *fde_bytes,
                const struct cfi_fde *fde, uint64_t address, struct cfi_row *ret)
{
    struct cfi_row saved[STATE_MAX];
    struct machine machine = {
        .cie = cie,
        .row = {.is_signal = cie->is_signal, .return_address = (uint8_t)cie->return_address},
        .saved = saved,
        .at = fde->begin,
        .until = UINT64_MAX,
    };
    if (!run(&machine, cie_bytes, cie->program, cie->program_size))
        return false;
    machine.initial = machine.row;
    machine.at = fde->begin;
    machine.until = address;
    if (!run(&machine, fde_bytes, fde->program, fde->program_size))
        return false;
    *ret = machine.row;
    return ret->cfa.kind != CFI_UNSPECIFIED;
}
