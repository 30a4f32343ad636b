#include "target/native/call_frame.h"

#include "formats/cfi.h"
#include "formats/elf.h"
#include "target/image.h"
#include "target/native/expression.h"
#include "util/binary_search.h"

/* ---- Finding a row ---- */

/* A record of .eh_frame. The caller deinits *ret_window. */
static bool read_record(struct reader *reader, const struct image *image, uint64_t address, struct window *ret_window,
                        struct cfi_bytes *ret)
{
    static const char what[] = ".eh_frame";
    uint8_t head[12];
    uint64_t size = reader_copy(reader, address, head, 4) ? load_u32(head, image->elf.big) : 0;
    if (size == UINT32_MAX)
        size = reader_copy(reader, address, head, 12) ? add_saturated(load_u64(head + 4, image->elf.big), 12) : 0;
    else
        size += 4;
    if (reader_failed(reader))
        return false;
    if (size > CFI_RECORD_MAX) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, address, what);
        return false;
    }
    if (!reader_window(reader, address, size, what, ret_window))
        return false;
    *ret = (struct cfi_bytes){
        .bytes = ret_window->bytes,
        .size = ret_window->size,
        .address = address,
        .word_size = (uint8_t)elf_word_size(image->elf),
        .big = image->elf.big,
    };
    return true;
}

/* Programs run outside the reader: a byte costs as much as a read, since it may copy a row. */
static bool pay(struct reader *reader, uint64_t at, uint64_t bytes)
{
    if (bytes > reader_fuel(reader))
        reader_fail(reader, CDACQ_ERR_FUEL, at, "a program of call-frame information");
    else
        reader_charge(reader, (uint32_t)bytes);
    return !reader_failed(reader);
}

/* What is wanted of the FDE that covers an address: either may be NULL. */
struct wanted {
    struct cfi_row *row;
    struct call_frame_function *function;
};

/* Takes what is wanted of an FDE that covers `address`. */
static enum call_frame_result take_fde(struct reader *reader, uint64_t address, const struct cfi_bytes *cie_bytes,
                                       const struct cfi_cie *cie, const struct cfi_bytes *fde_bytes,
                                       const struct cfi_fde *fde, const struct wanted *wanted)
{
    if (wanted->function)
        *wanted->function = (struct call_frame_function){fde->begin, fde->end, fde->lsda};
    if (!wanted->row)
        return CALL_FRAME_FOUND;
    return pay(reader, fde_bytes->address, (uint64_t)cie->program_size + fde->program_size) &&
                   cfi_row_at(cie_bytes, cie, fde_bytes, fde, address, wanted->row)
               ? CALL_FRAME_FOUND
               : CALL_FRAME_FAILED;
}

/* What is wanted of the FDE at `at`, if it covers `address`. */
static enum call_frame_result read_fde(struct reader *reader, const struct image *image, uint64_t at, uint64_t address,
                                       const struct wanted *wanted)
{
    struct window fde_window = {0}, cie_window = {0};
    struct cfi_bytes fde_bytes, cie_bytes;
    struct cfi_head head;
    struct cfi_cie cie;
    struct cfi_fde fde;
    enum call_frame_result result = CALL_FRAME_FAILED;
    if (read_record(reader, image, at, &fde_window, &fde_bytes) && cfi_head_at(&fde_bytes, &head) && !head.is_cie &&
        head.size && read_record(reader, image, head.cie, &cie_window, &cie_bytes) && cfi_cie_read(&cie_bytes, &cie) &&
        cfi_fde_read(&fde_bytes, &cie, &fde))
        result = address >= fde.begin && address < fde.end
                     ? take_fde(reader, address, &cie_bytes, &cie, &fde_bytes, &fde, wanted)
                     : CALL_FRAME_NONE;
    if (result == CALL_FRAME_FAILED)
        reader_fail(reader, CDACQ_ERR_CORRUPT, at, "call-frame information");
    window_deinit(&fde_window);
    window_deinit(&cie_window);
    return result;
}

/* Reads all records in order, for a header without a table. */
static enum call_frame_result scan(struct reader *reader, const struct image *image, uint64_t eh_frame,
                                   uint64_t address, const struct wanted *wanted)
{
    for (uint64_t at = eh_frame; at >= image->begin && at < image->end && reader_step(reader, ".eh_frame");) {
        struct window window = {0};
        struct cfi_bytes bytes;
        struct cfi_head head;
        if (!read_record(reader, image, at, &window, &bytes))
            break;
        bool valid = cfi_head_at(&bytes, &head);
        window_deinit(&window);
        if (!valid || !head.size)
            break;
        enum call_frame_result result = head.is_cie ? CALL_FRAME_NONE : read_fde(reader, image, at, address, wanted);
        if (result != CALL_FRAME_NONE)
            return result;
        at = add_saturated(at, head.size);
    }
    return reader_failed(reader) ? CALL_FRAME_FAILED : CALL_FRAME_NONE;
}

/* The table of .eh_frame_hdr. */
struct fde_table {
    uint64_t header, at, count; /* count 0: there is none that can be searched */
    uint64_t eh_frame;
};

static uint64_t entry_begin(struct reader *reader, const struct fde_table *table, uint64_t i)
{
    return table->header + (uint64_t)(int32_t)read_u32(reader, table->at + i * CFI_INDEX_ENTRY);
}

static uint64_t entry_fde(struct reader *reader, const struct fde_table *table, uint64_t i)
{
    return table->header + (uint64_t)(int32_t)read_u32(reader, table->at + i * CFI_INDEX_ENTRY + 4);
}

static enum call_frame_result read_table(struct reader *reader, const struct image *image, struct fde_table *ret)
{
    uint8_t bytes[CFI_INDEX_SIZE];
    uint64_t header = image->base + image->eh_frame_hdr_vaddr, size = image->eh_frame_hdr_size;
    struct cfi_index index;
    if (size < 8)
        return CALL_FRAME_NONE;
    struct cfi_bytes view = {
        .bytes = bytes,
        .size = (size_t)MIN(size, sizeof bytes),
        .address = header,
        .word_size = (uint8_t)elf_word_size(image->elf),
        .big = image->elf.big,
    };
    if (!reader_copy(reader, header, bytes, view.size)) {
        reader_name_failure(reader, ".eh_frame_hdr");
        return CALL_FRAME_FAILED;
    }
    if (!cfi_index_read(&view, &index))
        return CALL_FRAME_NONE;
    uint64_t in_header = index.table - header;
    *ret = (struct fde_table){.header = header,
                              .at = index.table,
                              .count = MIN(index.count, (size - MIN(size, in_header)) / CFI_INDEX_ENTRY),
                              .eh_frame = index.eh_frame};
    if (!index.count)
        ret->count = 0;
    return CALL_FRAME_FOUND;
}

/* The number of entries that begin before `address`, or at it. */
static uint64_t entries_up_to(struct reader *reader, const struct fde_table *table, uint64_t address)
{
    return lower_bound(i, table->count, entry_begin(reader, table, i) <= address);
}

static enum call_frame_result find(struct reader *reader, const struct image *image, uint64_t address,
                                   const struct wanted *wanted)
{
    struct fde_table table;
    enum call_frame_result result = read_table(reader, image, &table);
    if (result != CALL_FRAME_FOUND)
        return result;
    if (!table.count)
        return scan(reader, image, table.eh_frame, address, wanted);
    uint64_t after = entries_up_to(reader, &table, address);
    if (!reader_failed(reader) && !after)
        return CALL_FRAME_NONE;
    uint64_t fde = entry_fde(reader, &table, after - 1);
    reader_name_failure(reader, ".eh_frame_hdr");
    return reader_failed(reader) ? CALL_FRAME_FAILED : read_fde(reader, image, fde, address, wanted);
}

enum call_frame_result call_frame_find(struct reader *reader, const struct image *image, uint64_t address,
                                       struct cfi_row *ret)
{
    return find(reader, image, address, &(struct wanted){.row = ret});
}

enum call_frame_result call_frame_function_at(struct reader *reader, const struct image *image, uint64_t address,
                                              struct call_frame_function *ret)
{
    return find(reader, image, address, &(struct wanted){.function = ret});
}

uint64_t call_frame_count(struct reader *reader, const struct image *image)
{
    struct fde_table table;
    return read_table(reader, image, &table) == CALL_FRAME_FOUND ? table.count : 0;
}

bool call_frame_each(struct reader *reader, const struct image *image, uint64_t begin, uint64_t end,
                     bool (*visit)(const struct call_frame_function *function, void *context), void *context)
{
    struct fde_table table;
    struct call_frame_function function;
    if (read_table(reader, image, &table) != CALL_FRAME_FOUND)
        return !reader_failed(reader);
    uint64_t i = begin ? entries_up_to(reader, &table, begin - 1) : 0;
    for (; i < table.count && reader_step(reader, ".eh_frame_hdr"); i++) {
        uint64_t address = entry_begin(reader, &table, i);
        if (reader_failed(reader) || address >= end)
            break;
        enum call_frame_result result =
            read_fde(reader, image, entry_fde(reader, &table, i), address, &(struct wanted){.function = &function});
        if (result == CALL_FRAME_FAILED)
            break;
        if (result == CALL_FRAME_FOUND && !visit(&function, context))
            break;
    }
    return !reader_failed(reader);
}

/* ---- Applying a row ---- */

struct application {
    struct reader *reader;
    const struct register_machine *machine;
    const struct registers *registers;
    uint64_t cfa;
};

/* The value in the caller by a rule. False if it is not known; then the reader may have failed. */
static bool value_by(const struct application *application, const struct cfi_rule *rule, uint64_t *ret)
{
    struct reader *reader = application->reader;
    const struct registers *registers = application->registers;
    unsigned width = application->machine->word_size;
    uint64_t at = application->cfa + (uint64_t)rule->value, from = (uint64_t)rule->value;
    switch (rule->kind) {
    case CFI_OFFSET:
        *ret = read_uint(reader, width == 4 ? (uint32_t)at : at, width);
        break;
    case CFI_VALUE_OFFSET:
        *ret = at;
        break;
    case CFI_REGISTER:
        if (from >= REGISTER_MAX || !register_is_known(registers, (unsigned)from))
            return false;
        *ret = registers->values[from];
        break;
    case CFI_EXPRESSION:
    case CFI_VALUE_EXPRESSION:
        *ret = expression_evaluate(reader, application->machine, registers, from, rule->size, &application->cfa);
        if (rule->kind == CFI_EXPRESSION)
            *ret = read_uint(reader, *ret, width);
        break;
    default:
        return false;
    }
    return !reader_failed(reader);
}

/* The register in the caller, if it is known there. */
static void restore(const struct application *application, const struct cfi_row *row, unsigned number,
                    struct registers *caller)
{
    const struct register_machine *machine = application->machine;
    const struct cfi_rule *rule = &row->registers[number];
    bool same = rule->kind == CFI_SAME || (rule->kind == CFI_UNSPECIFIED && (machine->preserved >> number & 1));
    uint64_t value;
    if (same && register_is_known(application->registers, number))
        register_set(caller, number, application->registers->values[number]);
    else if (!same && value_by(application, rule, &value))
        register_set(caller, number, machine->word_size == 4 ? (uint32_t)value : value);
    reader_recover(application->reader, FAILURE(CDACQ_ERR_MEMORY) | FAILURE(CDACQ_ERR_CORRUPT));
}

/*
 * The return address, which is 0 only if `row` is that of a signal. False where there is none: *ret_outermost, or the
 * reader has failed.
 */
static bool return_address(const struct application *application, const struct cfi_row *row, uint64_t *ret,
                           bool *ret_outermost)
{
    const struct cfi_rule *rule = &row->registers[row->return_address];
    uint64_t pc = application->registers->values[application->machine->pc];
    *ret_outermost = rule->kind == CFI_UNDEFINED;
    if (*ret_outermost)
        return false;
    if (rule->kind == CFI_UNSPECIFIED || rule->kind == CFI_SAME)
        *ret = register_needed(application->reader, application->registers, row->return_address, pc);
    else if (!value_by(application, rule, ret))
        reader_fail(application->reader, CDACQ_ERR_CORRUPT, pc, "a register that unwinding needs");
    reader_name_failure(application->reader, "a return address");
    if (reader_failed(application->reader))
        return false;
    if (application->machine->elf_machine == EM_AARCH64)
        *ret = target_unsigned_address(application->reader->target, *ret);
    if (application->machine->word_size == 4)
        *ret = (uint32_t)*ret;
    /* A stack ends where the row says so. Only a signal may interrupt a call through a null pointer. */
    if (*ret == 0 && !row->is_signal)
        reader_fail(application->reader, CDACQ_ERR_CORRUPT, pc, "return address of native code");
    return !reader_failed(application->reader);
}

bool call_frame_apply(struct reader *reader, const struct register_machine *machine, const struct cfi_row *row,
                      const struct registers *registers, struct calling_frame *ret)
{
    struct application application = {.reader = reader, .machine = machine, .registers = registers};
    uint64_t pc = registers->values[machine->pc], address;
    ret->is_missing = false;
    if (row->cfa.kind == CFI_VALUE_OFFSET)
        application.cfa = register_needed(reader, registers, row->cfa_register, pc) + (uint64_t)row->cfa.value;
    else
        application.cfa =
            expression_evaluate(reader, machine, registers, (uint64_t)row->cfa.value, row->cfa.size, NULL);
    if (machine->word_size == 4)
        application.cfa = (uint32_t)application.cfa;
    ret->cfa = application.cfa;
    if (reader_failed(reader) || !return_address(&application, row, &address, &ret->is_missing))
        return !reader_failed(reader);
    ret->registers = (struct registers){0};
    for (unsigned i = 0; i < machine->count; i++)
        if (i == machine->sp && row->registers[i].kind == CFI_UNSPECIFIED)
            register_set(&ret->registers, i, application.cfa);
        else if (i != machine->pc)
            restore(&application, row, i, &ret->registers);
    register_set(&ret->registers, machine->pc, address);
    return !reader_failed(reader);
}
