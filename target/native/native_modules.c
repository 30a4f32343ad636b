#include "target/native/native_modules.h"

#include "target/file_candidate.h"
#include "target/mapped_file.h"
#include "target/native/call_frame.h"
#include "target/native/debug_file.h"
#include "target/native/debug_sections.h"
#include "target/native/known_code.h"
#include "target/native/symbols.h"
#include "util/arena.h"
#include "util/error.h"

enum {
    MODULE_MAX = 8192,
    ROW_MAX = 16384, /* that are kept; a core with 1,000 threads has some 1,000 addresses */
    SYMBOL_FUEL = 64 * 1024,
    SYMBOLS_IN_MEMORY_MAX = 1024 * 1024,
    STEPS_OF_A_SYMBOL = 3,
    SYMBOL_BYTES_MAX = 1024 * 1024 * 1024, /* of all images; those after that have no symbols */
};

struct native_module {
    struct image image;
    bool has_symbols; /* they were looked for */
    struct symbols symbols;
    uint8_t *debug_data;
    struct file_candidate debug_file;
    size_t debug_data_size;
    struct window memory[2]; /* .dynsym and .dynstr of an image without a file */
    struct debug_sections debug;
};

/* The module that a mapping belongs to; NULL where it is no native image's. */
struct module_of_mapping {
    uint64_t begin;
    struct native_module *module;
};

DEFINE_U64_TABLE(module_table, struct module_of_mapping, begin);

/* The row of rules at an address; NULL where there is none. */
struct kept_row {
    uint64_t address;
    const struct cfi_row *row;
    bool unverified; /* read from a file that nothing in the target could confirm */
};

DEFINE_U64_TABLE(row_table, struct kept_row, address);
DEFINE_VECTOR(module_list, struct native_module *);

struct native_modules {
    struct target *target;
    const struct register_machine *machine;
    struct module_list modules;
    struct module_table by_mapping;
    struct row_table rows;
    struct arena arena;    /* of rows */
    uint64_t symbol_bytes; /* that the symbols of all images take */
    struct mapping vdso_mapping;
    struct native_module *vdso;
    bool vdso_opened;
};

struct native_modules *native_modules_create(struct target *target, struct cdacq_error *err)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    struct native_modules *modules = NULL;
    if (!machine)
        error_set(err, CDACQ_ERR_FORMAT, 0, "stacks of ELF machine %u cannot be unwound", target->elf_machine);
    else if (!(modules = calloc(1, sizeof *modules)))
        error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    else
        *modules = (struct native_modules){.target = target, .machine = machine};
    return modules;
}

void native_modules_destroy(struct native_modules *modules)
{
    if (!modules)
        return;
    for (size_t i = 0; i < modules->modules.count; i++) {
        struct native_module *module = modules->modules.items[i];
        symbols_deinit(&module->symbols);
        free(module->debug_data);
        file_candidate_close(&module->debug_file);
        window_deinit(&module->memory[0]);
        window_deinit(&module->memory[1]);
        debug_sections_deinit(&module->debug);
        free(module);
    }
    module_list_deinit(&modules->modules);
    module_table_deinit(&modules->by_mapping);
    row_table_deinit(&modules->rows);
    arena_deinit(&modules->arena);
    free(modules);
}

/* ---- Images ---- */

/* NULL where there is no ELF image of the target's machine, or out of memory. */
static struct native_module *open_module(struct native_modules *modules, const struct mapping *first)
{
    struct native_module *module = modules->modules.count < MODULE_MAX ? calloc(1, sizeof *module) : NULL;
    if (module && image_open(modules->target, first, &module->image, NULL) == CDACQ_OK &&
        module->image.machine == modules->machine->elf_machine &&
        elf_word_size(module->image.elf) == modules->machine->word_size &&
        module_list_append(&modules->modules, module))
        return module;
    free(module);
    return NULL;
}

static bool is_of_file(const struct mapping *mapping, const struct mapping *other)
{
    return mapping->file ? mapping->file == other->file : strcmp(mapping->path, other->path) == 0;
}

/* The image that begins at the mapping or before it, in mappings of the same file. */
static struct native_module *module_of(struct native_modules *modules, const struct mapping *mapping)
{
    struct module_of_mapping *known = module_table_find(&modules->by_mapping, mapping->begin);
    if (known)
        return known->module;
    struct native_module *module = NULL;
    for (size_t i = (size_t)(mapping - modules->target->mappings) + 1, steps = 0;
         i-- > 0 && steps < NATIVE_MAPPINGS_MAX && strncmp(mapping->path, "/memfd:doublemapper", 19) != 0; steps++) {
        const struct mapping *first = &modules->target->mappings[i];
        if (!is_of_file(mapping, first) || first->offset != 0)
            continue;
        module = first == mapping ? open_module(modules, first) : module_of(modules, first);
        break;
    }
    if (module && (mapping->begin < module->image.begin || mapping->begin >= module->image.end))
        module = NULL;
    module_table_insert(&modules->by_mapping, (struct module_of_mapping){mapping->begin, module}, NULL);
    return module;
}

/* The kernel's image, which is in no mapping of a file. */
static struct native_module *vdso_of(struct native_modules *modules)
{
    if (!modules->vdso_opened && modules->target->vdso) {
        modules->vdso_mapping = (struct mapping){.begin = modules->target->vdso, .path = "[vdso]"};
        modules->vdso = open_module(modules, &modules->vdso_mapping);
    }
    modules->vdso_opened = true;
    return modules->vdso;
}

static struct native_module *module_at(struct native_modules *modules, uint64_t address)
{
    const struct mapping *mapping = target_mapping_at(modules->target, address);
    struct native_module *module = mapping ? module_of(modules, mapping) : vdso_of(modules);
    return module && address >= module->image.begin && address < module->image.end ? module : NULL;
}

/* ---- Unwinding ---- */

/* The row at an address, kept for the next time. NULL with CALL_FRAME_FOUND only when out of memory. */
static enum call_frame_result row_at(struct native_modules *modules, struct reader *reader, uint64_t address,
                                     const struct cfi_row **ret)
{
    const struct kept_row *kept = row_table_find(&modules->rows, address);
    struct cfi_row row, *copy = NULL;
    if (kept) {
        reader_add_unverified(reader, kept->unverified);
        *ret = kept->row;
        return kept->row ? CALL_FRAME_FOUND : CALL_FRAME_NONE;
    }
    struct native_module *module = module_at(modules, address);
    enum call_frame_result result = module ? call_frame_find(reader, &module->image, address, &row) : CALL_FRAME_NONE;
    if (result == CALL_FRAME_FAILED)
        return result;
    if (result == CALL_FRAME_NONE && module &&
        debug_frame_find(&module->debug, &module->image, address - module->image.base, &row)) {
        reader_add_unverified(reader, mapped_file_is_unconfirmed(module->image.file));
        result = CALL_FRAME_FOUND;
    }
    if (result == CALL_FRAME_FOUND) {
        copy = arena_allocate(&modules->arena, sizeof *copy);
        if (!copy) {
            reader_fail(reader, CDACQ_ERR_NOMEM, address, "call-frame information");
            return CALL_FRAME_FAILED;
        }
        *copy = row;
    }
    if (modules->rows.count < ROW_MAX)
        row_table_insert(&modules->rows, (struct kept_row){address, copy, reader_unverified(reader)}, NULL);
    *ret = copy;
    return result;
}

/* A step without call-frame information. */
static enum native_step step_known(struct native_modules *modules, struct reader *reader, bool interrupted,
                                   struct registers *registers, struct native_frame_info *ret)
{
    uint64_t pc = registers->values[modules->machine->pc];
    const struct native_module *module = module_at(modules, interrupted ? pc : pc - 1);
    const struct image *image = module ? &module->image : NULL;
    if (known_code_step(modules->machine, reader, image, interrupted, registers, &ret->cfa, &ret->is_signal))
        return NATIVE_STEPPED;
    return !interrupted && known_code_is_outermost(modules->machine, reader, image, pc) ? NATIVE_OUTERMOST
                                                                                        : NATIVE_UNKNOWN;
}

enum native_step native_modules_step(struct native_modules *modules, struct reader *reader, bool interrupted,
                                     struct registers *registers, struct native_frame_info *ret)
{
    const struct register_machine *machine = modules->machine;
    uint64_t pc = register_needed(reader, registers, machine->pc, 0);
    uint64_t sp = register_needed(reader, registers, machine->sp, pc);
    const struct cfi_row *row = NULL;
    struct calling_frame caller;
    *ret = (struct native_frame_info){0};
    if (reader_failed(reader))
        return NATIVE_FAILED;
    if (!pc)
        return interrupted ? NATIVE_UNKNOWN : NATIVE_OUTERMOST;
    enum call_frame_result found = row_at(modules, reader, interrupted ? pc : pc - 1, &row);
    if (found == CALL_FRAME_NONE)
        return step_known(modules, reader, interrupted, registers, ret);
    if (found != CALL_FRAME_FOUND)
        return NATIVE_FAILED;
    ret->is_signal = row->is_signal;
    bool applied = call_frame_apply(reader, machine, row, registers, &caller);
    ret->cfa = caller.cfa;
    if (!applied)
        return NATIVE_FAILED;
    if (caller.is_missing)
        return NATIVE_OUTERMOST;
    /* A leaf function of a machine with a link register may have no frame at all. */
    uint64_t next = caller.registers.values[machine->sp];
    bool moved = next > sp || (next == sp && interrupted && machine->return_address != machine->pc);
    if (!moved && !row->is_signal) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "a frame that does not move up the stack");
        return NATIVE_FAILED;
    }
    *registers = caller.registers;
    return NATIVE_STEPPED;
}

/* ---- Symbols ---- */

/* The number of symbols in .dynsym: DT_HASH has it; DT_GNU_HASH ends with the last symbol's chain. */
static uint64_t count_dynamic(struct reader *reader, const struct image_dynamic *dynamic, size_t word)
{
    if (dynamic->hash)
        return read_u32(reader, dynamic->hash + 4);
    if (!dynamic->gnu_hash)
        return 0;
    uint32_t bucket_count = read_u32(reader, dynamic->gnu_hash), first = read_u32(reader, dynamic->gnu_hash + 4);
    uint64_t buckets = dynamic->gnu_hash + 16 + (uint64_t)read_u32(reader, dynamic->gnu_hash + 8) * word, last = 0;
    for (uint64_t i = 0; i < bucket_count && reader_step(reader, "DT_GNU_HASH"); i++)
        last = MAX(last, read_u32(reader, buckets + i * 4));
    uint64_t chains = buckets + (uint64_t)bucket_count * 4;
    while (last >= first && reader_step(reader, "DT_GNU_HASH chain") &&
           !(read_u32(reader, chains + (last - first) * 4) & 1))
        last++;
    return last >= first ? last + 1 : 0;
}

/* The exported symbols of an image without a file, as far as memory has them. */
static void add_from_memory(struct native_modules *modules, struct native_module *module)
{
    const struct image *image = &module->image;
    const struct image_dynamic *dynamic = &image->dynamic;
    struct window *table = &module->memory[0], *strings = &module->memory[1];
    struct reader reader;
    reader_init(&reader, modules->target, (unsigned)elf_word_size(image->elf), image->elf.big);
    reader_begin(&reader, SYMBOL_FUEL);
    uint64_t count =
        dynamic->symtab && dynamic->strtab ? count_dynamic(&reader, dynamic, elf_word_size(image->elf)) : 0;
    if (reader_failed(&reader) || !count || count > SYMBOLS_IN_MEMORY_MAX)
        return;
    uint64_t size = count * elf_symbol_size(image->elf);
    if (!reader_window(&reader, dynamic->symtab, size, ".dynsym", table) ||
        !reader_window(&reader, dynamic->strtab, dynamic->strsz, ".dynstr", strings))
        return;
    const struct symbol_table added = {table->bytes, table->size, {(const char *)strings->bytes, strings->size}};
    symbols_add(&module->symbols, image, NULL, &added);
}

static void add_symtab(struct native_module *module, const uint8_t *data, uint64_t size)
{
    struct bytes bytes = bytes_of_buffer(data, size);
    struct elf_file file;
    if (data && elf_file_open(&bytes, &file))
        symbols_add_file(&module->symbols, &module->image, &file, SHT_SYMTAB);
}

/* Charges the list and its order. Without memory for it, there are no symbols. */
static void charge_symbols(struct native_modules *modules, struct symbols *symbols)
{
    struct work *work = &modules->target->work;
    work_add_steps(work, symbols->list.count * STEPS_OF_A_SYMBOL);
    if (!work_take_memory(work, symbols->list.capacity * sizeof(struct symbol))) {
        symbols_deinit(symbols);
        modules->symbol_bytes = SYMBOL_BYTES_MAX; /* later images would be refused, too */
    }
}

static void add_symbols(struct native_modules *modules, struct native_module *module)
{
    struct mapped_file *mapped = module->image.file;
    const struct elf_file *file = NULL;
    struct elf_file opened;
    if (mapped && mapped_file_resolve(mapped)) {
        struct bytes bytes = bytes_of_buffer(mapped->content.bytes, mapped->content.size);
        file = elf_file_open(&bytes, &opened) ? &opened : NULL;
    }
    if (file)
        symbols_add_file(&module->symbols, &module->image, file, SHT_SYMTAB);
    bool complete = module->symbols.list.count > 0; /* .symtab holds what the others do */
    if (!complete && debug_file_open(&module->image, file, &module->debug_file)) {
        add_symtab(module, module->debug_file.bytes, module->debug_file.size);
        complete = module->symbols.list.count > 0;
    }
    if (!complete && file) {
        module->debug_data = debug_data_open(file, &modules->target->work, &module->debug_data_size);
        add_symtab(module, module->debug_data, module->debug_data_size);
    }
    if (!complete && file)
        symbols_add_file(&module->symbols, &module->image, file, SHT_DYNSYM);
    if (!file || modules->target->recording) /* a snapshot holds the memory, not the file */
        add_from_memory(modules, module);
    symbols_seal(&module->symbols, complete || module->debug_data_size);
    charge_symbols(modules, &module->symbols);
    modules->symbol_bytes += module->symbols.list.count * sizeof(struct symbol) + module->debug_data_size +
                             module->debug_file.size + module->memory[0].size + module->memory[1].size;
}

bool native_modules_symbol(struct native_modules *modules, uint64_t address, struct native_symbol *ret)
{
    struct native_module *module = module_at(modules, address);
    *ret = (struct native_symbol){0};
    if (!module)
        return false;
    if (!module->has_symbols && modules->symbol_bytes < SYMBOL_BYTES_MAX && work_left(&modules->target->work))
        add_symbols(modules, module);
    module->has_symbols = true;
    ret->module = module->image.path;
    ret->module_offset = address - module->image.base;
    ret->name = symbols_find(&module->symbols, ret->module_offset, &ret->offset);
    ret->unverified = mapped_file_is_unconfirmed(module->image.file);
    return true;
}

/* ---- Lines ---- */

/* The lines of an interval that are being visited. */
struct lines_visit {
    struct native_modules *modules;
    uint64_t base;
    bool (*visit)(const struct native_line *line, void *context);
    void *context;
    const struct dwarf_line_sections *sections;
    uint32_t unit, file; /* of `path` */
    const char *path;
};

/* The path of a row's file, which rows in succession share. */
static const char *path_of(struct lines_visit *visit, const struct dwarf_row *row, uint32_t unit)
{
    struct text path = {0};
    if (visit->path && visit->unit == unit && visit->file == row->file)
        return visit->path;
    bool found = dwarf_file_path(visit->sections, unit, row->file, &path);
    visit->path = found ? arena_string(&visit->modules->arena, path.data, path.length) : NULL;
    visit->unit = unit;
    visit->file = row->file;
    text_deinit(&path);
    return visit->path;
}

static bool visit_row(const struct dwarf_row *row, uint32_t unit, void *context)
{
    struct lines_visit *visit = context;
    const struct native_line line = {
        .begin = visit->base + row->address,
        .file = row->line ? path_of(visit, row, unit) : NULL,
        .line = row->line,
        .column = row->column,
    };
    return visit->visit(&line, visit->context);
}

void native_modules_lines(struct native_modules *modules, uint64_t begin, uint64_t end,
                          bool (*visit)(const struct native_line *line, void *context), void *context,
                          bool *ret_unverified)
{
    struct native_module *module = module_at(modules, begin);
    *ret_unverified = false;
    if (!module)
        return;
    struct dwarf_line_sections sections;
    struct lines_visit lines = {
        .modules = modules,
        .base = module->image.base,
        .visit = visit,
        .context = context,
        .sections = &sections,
    };
    *ret_unverified = mapped_file_is_unconfirmed(module->image.file);
    debug_lines_each(&module->debug, &module->image, begin - lines.base, end - lines.base, visit_row, &lines,
                     &sections);
}
