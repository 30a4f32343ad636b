/*
 * fuzz_unwind.c: any bytes as code, unwind data and stack of a frame of managed code. The first eight bytes are the
 * registers in small: where the program counter, the function's begin and end, the unwind data and the stack pointer
 * are in the memory that follows; the last of them chooses the architecture. A frame that is unwound has moved up the
 * stack; one that is not is untouched. The rows of call-frame information of the function are written and read back.
 */
#include "contracts/unwind/unwinder.h"
#include "formats/cfi.h"
#include "formats/dwarf_frame_writer.h"
#include "target/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    BASE = 0x10000,
    HEADER = 8,
    WALK_MAX = 16,
    INTERRUPTED = 1,
    ARM64 = 2,
    PACKED = 4,
    ARM = 8,
    FUNCLET = 16,
    X86 = 32
};

struct bytes_at {
    const uint8_t *data;
    size_t size;
};

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    const struct bytes_at *bytes = context;
    if (address < BASE || address - BASE >= bytes->size)
        return false;
    *ret_begin = BASE;
    *ret_end = BASE + bytes->size;
    *ret_bytes = bytes->data;
    return true;
}

static void walk(const struct unwinder *unwinder, struct reader *reader, const struct unwind_function *function,
                 bool interrupted, struct registers registers)
{
    for (unsigned i = 0; i < WALK_MAX; i++) {
        struct registers before = registers;
        reader_begin(reader, FUEL_LOOKUP);
        bool unwound = unwinder->unwind(reader, function, interrupted, &registers);
        if (unwound == reader_failed(reader))
            abort();
        if (!unwound && memcmp(&before, &registers, sizeof before))
            abort();
        if (!unwound)
            return;
        if (registers.values[unwinder->sp] < before.values[unwinder->sp] + !interrupted)
            abort();
        registers.values[unwinder->pc] = before.values[unwinder->pc]; /* as if it were recursive */
        interrupted = false;
    }
}

/* Writes the rows of the function as an FDE, and reads each back. */
static void check_rows(const struct frame_machine *machine, const struct unwind_function *function,
                       const struct frame_rows *rows, bool is_eh_frame)
{
    struct byte_writer section = {0};
    struct dwarf_frame_writer writer = {
        .to = &section, .machine = machine, .word_size = 8, .is_eh_frame = is_eh_frame, .address = BASE};
    dwarf_frame_begin(&writer);
    size_t fde_at = dwarf_frame_add(&writer, function->begin, function->end, rows->items, rows->count);
    struct cfi_bytes cie_bytes = {section.data, fde_at, BASE, 8, false, !is_eh_frame}, fde_bytes = cie_bytes;
    fde_bytes.bytes += fde_at;
    fde_bytes.size = section.length - fde_at;
    fde_bytes.address += fde_at;
    struct cfi_cie cie;
    struct cfi_fde fde;
    struct cfi_row row;
    if (section.broken || !cfi_cie_read(&cie_bytes, &cie) || !cfi_fde_read(&fde_bytes, &cie, &fde) ||
        fde.begin != function->begin || fde.end != function->end)
        abort();
    for (size_t i = 0; i < rows->count; i++) {
        const struct frame_row *expected = &rows->items[i];
        if (i ? expected->begin <= rows->items[i - 1].begin : expected->begin != function->begin)
            abort();
        if (!cfi_row_at(&cie_bytes, &cie, &fde_bytes, &fde, expected->begin, &row) ||
            row.cfa_register != expected->cfa_register || row.cfa.value != expected->cfa_offset)
            abort();
        for (unsigned k = 0; k < machine->slot_count; k++) {
            const struct frame_slot *slot = &expected->slots[k];
            const struct cfi_rule *rule = &row.registers[machine->slots[k]];
            bool relative = slot->base == expected->cfa_register && (slot->offset - expected->cfa_offset) % 8 == 0;
            if (slot->kind == FRAME_AT
                    ? rule->kind != (relative ? CFI_OFFSET : CFI_EXPRESSION)
                    : rule->kind != (slot->kind == FRAME_UNDEFINED ? CFI_UNDEFINED : CFI_UNSPECIFIED))
                abort();
            if (rule->kind == CFI_OFFSET && rule->value != (int64_t)slot->offset - expected->cfa_offset)
                abort();
        }
    }
    byte_writer_deinit(&section);
}

static void form_rows(const struct unwinder *unwinder, struct reader *reader, const struct unwind_function *function)
{
    struct frame_rows rows = {0};
    bool epilogs;
    reader_begin(reader, FUEL_LOOKUP);
    if (unwinder->rows && unwinder->rows(reader, function, &rows, &epilogs)) {
        if (reader_failed(reader) || !rows.count)
            abort();
        check_rows(unwinder->machine, function, &rows, false);
        check_rows(unwinder->machine, function, &rows, true);
    }
    free(rows.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target *target;
    struct reader reader;
    if (size < HEADER)
        return 0;
    struct bytes_at bytes = {data + HEADER, size - HEADER};
    struct cdacq_memory memory = {.size = sizeof memory, .context = &bytes, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &target, NULL) != CDACQ_OK)
        abort();
    reader_init(&reader, target, 8, false);
    const struct unwinder *unwinder = data[7] & X86     ? &unwinder_x86
                                      : data[7] & ARM   ? &unwinder_arm
                                      : data[7] & ARM64 ? &unwinder_arm64
                                                        : &unwinder_x64;
    struct unwind_function function = {
        .base = BASE,
        .begin = BASE + data[1],
        .end = BASE + data[1] + data[2],
        .unwind_data = BASE + data[3],
        .method = BASE + (data[7] & PACKED ? 0 : data[1]),
        .gc_info = BASE + data[3],
        .gc_info_version = 4,
        .funclet = data[7] & FUNCLET,
        .packed = data[7] & PACKED && bytes.size >= 4 ? load_u32(bytes.data, false) : 0,
    };
    struct registers registers = {0};
    for (unsigned i = 0; i < REGISTER_MAX; i++)
        if (data[5] >> i % 8 & 1)
            register_set(&registers, i, BASE + 4 * (uint64_t)data[6] + i);
    register_set(&registers, unwinder->pc, function.begin + data[0]);
    register_set(&registers, unwinder->sp, BASE + 4 * (uint64_t)data[4]);
    walk(unwinder, &reader, &function, data[7] & INTERRUPTED, registers);
    form_rows(unwinder, &reader, &function);
    target_destroy(target);
    return 0;
}
