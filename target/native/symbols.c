#include "target/native/symbols.h"

#include "util/binary_search.h"

DEFINE_VECTOR_FUNCTIONS(symbol_list, struct symbol);

enum {
    NESTED_MAX = 64,       /* symbols that may begin within another one */
    NAME_MAX_SIZE = 65536, /* bytes of a name, the NUL included; a longer name is left out */
};

void symbols_deinit(struct symbols *symbols)
{
    symbol_list_deinit(&symbols->list);
    *symbols = (struct symbols){0};
}

static bool is_code(const struct image *image, const struct elf_symbol *symbol)
{
    unsigned type = ELF32_ST_TYPE(symbol->info);
    if (symbol->section == SHN_UNDEF || symbol->section >= SHN_LORESERVE ||
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
        return false;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *segment = &image->segments[i];
        if (segment->executable && symbol->value >= segment->vaddr &&
            symbol->value - segment->vaddr < segment->memory_size)
            return true;
    }
    return false;
}

/* Of several names of one address: a sized one, then a global, a weak, a local one. */
static uint8_t rank_of(const struct elf_symbol *symbol)
{
    unsigned bind = ELF32_ST_BIND(symbol->info);
    return (uint8_t)((symbol->size ? 4 : 0) + (bind == STB_GLOBAL ? 3 : bind == STB_WEAK ? 2 : 1));
}

static uint64_t end_of_section(const struct elf_file *file, unsigned index)
{
    struct elf_section section;
    return file && elf_file_section(file, index, &section) ? add_saturated(section.address, section.size) : UINT64_MAX;
}

void symbols_add(struct symbols *symbols, const struct image *image, const struct elf_file *file,
                 const struct symbol_table *table)
{
    const char *strings = table->strings.bytes;
    size_t entry_size = elf_symbol_size(image->elf);
    /* Thumb code has the lowest bit set. */
    uint64_t thumb = image->machine == EM_ARM;
    if (symbols->table_count == SYMBOL_TABLE_MAX || table->strings.size > UINT32_MAX)
        return;
    symbols->strings[symbols->table_count] = table->strings;
    for (size_t at = 0; table->size - at >= entry_size && symbols->list.count < SYMBOL_MAX; at += entry_size) {
        struct elf_symbol entry = elf_symbol_at(image->elf, table->entries + at);
        /* Local labels "$x" mark code and data for disassemblers. */
        if (entry.name >= table->strings.size || !strings[entry.name] || strings[entry.name] == '$' ||
            !is_code(image, &entry))
            continue;
        struct symbol symbol = {
            .begin = entry.value & ~thumb,
            .end = add_saturated(entry.value & ~thumb, entry.size),
            .limit = entry.size ? 0 : end_of_section(file, entry.section),
            .name = entry.name,
            .index = (uint32_t)(at / entry_size),
            .table = (uint8_t)symbols->table_count,
            .rank = rank_of(&entry),
        };
        if (!symbol_list_append(&symbols->list, symbol))
            break;
    }
    symbols->table_count++;
}

void symbols_add_file(struct symbols *symbols, const struct image *image, const struct elf_file *file, uint32_t type)
{
    struct elf_section section, names;
    if (file->class.wide != image->elf.wide || file->class.big != image->elf.big)
        return;
    for (unsigned i = 0; elf_file_section(file, i, &section); i++) {
        if (section.type != type || !elf_file_section(file, section.link, &names))
            continue;
        const struct symbol_table table = {
            .entries = elf_file_contents(file, &section),
            .size = (size_t)section.size,
            .strings = {(const char *)elf_file_contents(file, &names), (size_t)names.size},
        };
        if (table.entries && table.strings.bytes)
            symbols_add(symbols, image, file, &table);
    }
}

static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->rank != y->rank)
        return (int)x->rank - (int)y->rank;
    return x->table != y->table ? (int)y->table - (int)x->table : (x->index < y->index) - (x->index > y->index);
}

void symbols_seal(struct symbols *symbols, bool complete)
{
    uint64_t reach = 0;
    symbols->complete = complete;
    if (symbols->list.count)
        qsort(symbols->list.items, symbols->list.count, sizeof *symbols->list.items, compare_symbols);
    for (size_t i = 0; i < symbols->list.count; i++)
        symbols->list.items[i].reach = reach = MAX(reach, symbols->list.items[i].end);
}

static const char *name_of(const struct symbols *symbols, const struct symbol *symbol)
{
    const struct symbol_strings *strings = &symbols->strings[symbol->table];
    const char *name = strings->bytes + symbol->name;
    return memchr(name, 0, MIN(strings->size - symbol->name, (size_t)NAME_MAX_SIZE)) ? name : NULL;
}

const char *symbols_find(const struct symbols *symbols, uint64_t vaddr, uint64_t *ret_offset)
{
    const struct symbol *items = symbols->list.items, *found = NULL;
    size_t after = lower_bound(i, symbols->list.count, items[i].begin <= vaddr);
    if (!after)
        return NULL;
    const struct symbol *last = &items[after - 1];
    if (vaddr < last->reach) {
        for (size_t i = after; !found && i-- > 0 && after - i <= NESTED_MAX;)
            found = vaddr < items[i].end ? &items[i] : NULL;
    } else if (last->reach <= last->begin && vaddr < last->limit && (symbols->complete || vaddr == last->begin)) {
        found = last; /* of unknown size, and no other one ends after its begin */
    }
    if (!found)
        return NULL;
    *ret_offset = vaddr - found->begin;
    return name_of(symbols, found);
}
