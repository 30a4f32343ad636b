#include "target/native/debug_sections.h"

#include "target/file_candidate.h"
#include "target/image.h"
#include "target/mapped_file.h"
#include "target/native/debug_file.h"
#include "util/binary_search.h"
#include "util/inflate.h"

enum {
    RECORDS_MAX = 4 * 1024 * 1024,
    BYTES_PER_STEP = 16, /* of work, for bytes that are read without a reader */
};

DEFINE_VECTOR_FUNCTIONS(debug_records, struct debug_record);

void debug_sections_deinit(struct debug_sections *debug)
{
    for (unsigned i = 0; i < debug->kept_count; i++)
        free(debug->kept[i].owned);
    file_candidate_close(&debug->file);
    dwarf_sequences_deinit(&debug->sequences);
    debug_records_deinit(&debug->records);
}

/* ---- Sections ---- */

static void open_files(struct debug_sections *debug, const struct image *image)
{
    struct mapped_file *mapped = image->file;
    debug->opened = true;
    if (!mapped || !mapped_file_resolve(mapped))
        return;
    struct bytes own = bytes_of_buffer(mapped->content.bytes, mapped->content.size);
    if (!elf_file_open(&own, &debug->own))
        debug->own = (struct elf_file){0};
    if (!debug_file_open(image, debug->own.bytes.size ? &debug->own : NULL, &debug->file))
        return;
    struct bytes bytes = bytes_of_buffer(debug->file.bytes, debug->file.size);
    if (!elf_file_open(&bytes, &debug->debug))
        debug->debug = (struct elf_file){0};
}

/* Decompresses a section to *ret. False if it is damaged, too large, or compressed otherwise than by zlib. */
static bool decompress(const struct image *image, struct elf_class elf, const uint8_t *bytes, uint64_t size,
                       struct debug_section *ret)
{
    enum { ZLIB_HEADER = 2 };
    uint64_t header = elf.wide ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
    char why[80];
    if (size < header + ZLIB_HEADER || load_u32(bytes, elf.big) != ELFCOMPRESS_ZLIB)
        return false;
    uint64_t whole = elf.wide ? load_u64(bytes + 8, elf.big) : load_u32(bytes + 4, elf.big);
    if (!whole || whole > DEBUG_SECTION_MAX || !work_take_memory(&image->target->work, whole))
        return false;
    uint8_t *owned = malloc((size_t)whole);
    if (!owned || !inflate_raw(bytes + header + ZLIB_HEADER, (size_t)(size - header - ZLIB_HEADER), owned,
                               (size_t)whole, why, sizeof why)) {
        free(owned);
        return false;
    }
    ret->owned = owned;
    ret->contents = (struct dwarf_section){owned, (size_t)whole};
    return true;
}

static bool take_section(const struct image *image, const struct elf_file *file, struct debug_section *ret)
{
    struct elf_section section;
    const uint8_t *bytes = file->bytes.size && elf_file_section_named(file, ret->name, &section)
                               ? elf_file_contents(file, &section)
                               : NULL;
    if (!bytes || !section.size)
        return false;
    if (section.flags & SHF_COMPRESSED)
        return decompress(image, file->class, bytes, section.size, ret);
    ret->contents = (struct dwarf_section){bytes, (size_t)section.size};
    return true;
}

/* A section by its name, a static string. Empty if there is none. */
static struct dwarf_section section_of(struct debug_sections *debug, const struct image *image, const char *name)
{
    if (!debug->opened)
        open_files(debug, image);
    for (unsigned i = 0; i < debug->kept_count; i++)
        if (strcmp(debug->kept[i].name, name) == 0)
            return debug->kept[i].contents;
    struct debug_section section = {.name = name};
    if (debug->kept_count == DEBUG_SECTIONS_KEPT)
        return section.contents;
    if (!take_section(image, &debug->own, &section))
        (void)take_section(image, &debug->debug, &section);
    debug->kept[debug->kept_count++] = section;
    return section.contents;
}

/* ---- Lines ---- */

/* Rows of one sequence. */
struct rows_visit {
    bool (*visit)(const struct dwarf_row *row, uint32_t unit, void *context);
    void *context;
    uint32_t unit;
    uint64_t end;
    bool stopped;
};

static bool visit_row(const struct dwarf_row *row, void *context)
{
    struct rows_visit *rows = context;
    if (row->address >= rows->end)
        return false;
    rows->stopped = !rows->visit(row, rows->unit, rows->context);
    return !rows->stopped;
}

void debug_lines_each(struct debug_sections *debug, const struct image *image, uint64_t begin, uint64_t end,
                      bool (*visit)(const struct dwarf_row *row, uint32_t unit, void *context), void *context,
                      struct dwarf_line_sections *ret_sections)
{
    *ret_sections = (struct dwarf_line_sections){
        .line = section_of(debug, image, ".debug_line"),
        .line_strings = section_of(debug, image, ".debug_line_str"),
        .strings = section_of(debug, image, ".debug_str"),
        .big = image->elf.big,
    };
    if (!debug->has_sequences) {
        debug->has_sequences = true;
        work_add_steps(&image->target->work, ret_sections->line.size / BYTES_PER_STEP);
        if (!dwarf_sequences_find(ret_sections, &debug->sequences))
            dwarf_sequences_deinit(&debug->sequences);
    }
    const struct dwarf_sequence *items = debug->sequences.items;
    size_t count = debug->sequences.count;
    size_t i = lower_bound_in_memory(k, count, items[k].begin <= begin);
    struct rows_visit rows = {.visit = visit, .context = context, .end = end};
    for (i -= i != 0; i < count && items[i].begin < end && !rows.stopped; i++) {
        rows.unit = items[i].unit;
        if (items[i].end > begin)
            work_add_steps(&image->target->work,
                           dwarf_rows_each(ret_sections, &items[i], visit_row, &rows) / BYTES_PER_STEP);
    }
}

/* ---- Call-frame information ---- */

static struct cfi_bytes bytes_at(const struct image *image, const struct dwarf_section *section, uint64_t offset)
{
    return (struct cfi_bytes){
        .bytes = section->bytes + offset,
        .size = section->size - (size_t)offset,
        .address = offset,
        .word_size = (uint8_t)elf_word_size(image->elf),
        .big = image->elf.big,
        .is_debug_frame = true,
    };
}

/* The bytes of the record at an offset. False if there is none. */
static bool record_at(const struct image *image, const struct dwarf_section *section, uint64_t offset,
                      struct cfi_bytes *ret, struct cfi_head *ret_head)
{
    if (offset >= section->size)
        return false;
    *ret = bytes_at(image, section, offset);
    if (!cfi_head_at(ret, ret_head) || !ret_head->size || ret_head->size > ret->size)
        return false;
    ret->size = (size_t)ret_head->size;
    return true;
}

/* The FDE at an offset, with its CIE. */
struct frame_record {
    struct cfi_bytes cie_bytes, fde_bytes;
    struct cfi_cie cie;
    struct cfi_fde fde;
};

static bool read_record(const struct image *image, const struct dwarf_section *section, uint64_t offset,
                        struct frame_record *ret)
{
    struct cfi_head head, cie_head;
    return record_at(image, section, offset, &ret->fde_bytes, &head) && !head.is_cie &&
           record_at(image, section, head.cie, &ret->cie_bytes, &cie_head) && cie_head.is_cie &&
           cfi_cie_read(&ret->cie_bytes, &ret->cie) && cfi_fde_read(&ret->fde_bytes, &ret->cie, &ret->fde);
}

static void find_records(struct debug_sections *debug, const struct image *image, const struct dwarf_section *section)
{
    struct cfi_bytes bytes;
    struct cfi_head head;
    struct frame_record record;
    work_add_steps(&image->target->work, section->size / BYTES_PER_STEP);
    for (uint64_t offset = 0; record_at(image, section, offset, &bytes, &head); offset += head.size)
        if (!head.is_cie && read_record(image, section, offset, &record) && record.fde.begin < record.fde.end &&
            (debug->records.count == RECORDS_MAX ||
             !debug_records_append(&debug->records, (struct debug_record){record.fde.begin, record.fde.end, offset})))
            break;
    sort_u64(debug->records.items, debug->records.count, sizeof *debug->records.items);
}

/* An expression is an address in the target, which has no .debug_frame. */
static bool has_expression(const struct cfi_row *row)
{
    bool found = row->cfa.kind == CFI_VALUE_EXPRESSION;
    for (unsigned i = 0; i < CFI_REGISTER_MAX; i++)
        found |= row->registers[i].kind == CFI_EXPRESSION || row->registers[i].kind == CFI_VALUE_EXPRESSION;
    return found;
}

bool debug_frame_find(struct debug_sections *debug, const struct image *image, uint64_t vaddr, struct cfi_row *ret)
{
    const struct dwarf_section section = section_of(debug, image, ".debug_frame");
    struct frame_record record;
    struct cfi_row row;
    if (!debug->has_records) {
        debug->has_records = true;
        find_records(debug, image, &section);
    }
    const struct debug_record *items = debug->records.items;
    size_t after = lower_bound_in_memory(i, debug->records.count, items[i].begin <= vaddr);
    if (!after || vaddr >= items[after - 1].end || !read_record(image, &section, items[after - 1].offset, &record) ||
        !cfi_row_at(&record.cie_bytes, &record.cie, &record.fde_bytes, &record.fde, vaddr, &row) ||
        has_expression(&row))
        return false;
    *ret = row;
    return true;
}
