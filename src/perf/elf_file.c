/*
 * elf_file.c: writes an ELF file of a target's managed code: of all, or of that in the mappings of one file. The
 * methods are visited once; what the sections hold is formed in memory, except for code, which is read when it is
 * written.
 */
#include <elf.h>
#include <inttypes.h>

#include "contracts/execution_manager/code_map.h"
#include "formats/elf_writer.h"
#include "src/api/listing.h"
#include "src/lookup/opened_target.h"
#include "src/perf/elf_code.h"
#include "src/lookup/index.h"
#include "util/sized.h"

enum { GAP_MAX = 64 * 1024 }; /* bytes without symbols in a section that holds code */

DEFINE_VECTOR(elf_sections, struct elf_writer_section);
DEFINE_VECTOR(text_moves, uint64_t);

struct code_file {
    struct elf_code code;
    struct byte_writer symbol_table, frame_index;
    struct elf_sections sections; /* those of the code come first */
    struct text_moves moves;      /* of the sections of the code, as code_symbol.moved */
    uint64_t code_size;           /* of the sections of the code */
    enum cdacq_status cut; /* a bound was reached, or the process has ended: what was found until then is written */
};

/* ---- Sections ---- */

static uint32_t add_section(struct code_file *file, struct elf_writer_section section)
{
    if (!elf_sections_append(&file->sections, section))
        file->code.no_memory = true;
    return (uint32_t)file->sections.count;
}

static void add_bytes(struct code_file *file, const char *name, const struct byte_writer *bytes, unsigned align)
{
    if (bytes->length)
        add_section(
            file, (struct elf_writer_section){
                      .name = name, .type = SHT_PROGBITS, .size = bytes->length, .align = align, .bytes = bytes->data});
}

static void put_symbol(struct code_file *file, const struct code_symbol *symbol, unsigned section)
{
    struct byte_writer *to = &file->symbol_table;
    bool wide = file->code.session->resolver.target->descriptor_info.pointer_size == 8;
    unsigned info = ELF64_ST_INFO(STB_LOCAL, section ? STT_FUNC : STT_NOTYPE);
    put_u32(to, symbol->name);
    if (wide) {
        put_u8(to, info);
        put_u8(to, STV_DEFAULT);
        put_u16(to, section);
        put_u64(to, symbol->begin);
        put_u64(to, symbol->size);
    } else {
        put_u32(to, (uint32_t)symbol->begin);
        put_u32(to, (uint32_t)symbol->size);
        put_u8(to, info);
        put_u8(to, STV_DEFAULT);
        put_u16(to, section);
    }
}

/* Whether a symbol needs another section than the one before it: a code range has one, or few if they hold bytes. */
static bool needs_section(const struct code_file *file, const struct code_symbol *last,
                          const struct code_symbol *symbol)
{
    return !last || last->range != symbol->range || last->moved != symbol->moved ||
           (file->code.flags & CDACQ_ELF_CODE && symbol->begin - (last->begin + last->size) > GAP_MAX);
}

/* Begins the section that a symbol is in. */
static void begin_text(struct code_file *file, const struct code_symbol *symbol)
{
    const struct jit_manager_ops *manager = file->code.map->ranges[symbol->range].manager;
    add_section(file, (struct elf_writer_section){
                          .name = manager->compiles    ? ".text.jit"
                                  : manager->in_images ? ".text.r2r"
                                                       : ".text.stubs",
                          .type = file->code.flags & CDACQ_ELF_CODE ? SHT_PROGBITS : SHT_NOBITS,
                          .flags = SHF_ALLOC | SHF_EXECINSTR,
                          .address = symbol->begin,
                          .align = 1,
                      });
}

/* Adds the sections of the code, and the symbols, which are sorted. */
static void add_texts(struct code_file *file)
{
    const struct code_symbol *last = NULL;
    put_symbol(file, &(struct code_symbol){0}, 0);
    for (size_t i = 0; i < file->code.symbols.count && !file->code.no_memory; i++) {
        struct code_symbol *symbol = &file->code.symbols.items[i];
        uint64_t next = i + 1 < file->code.symbols.count ? file->code.symbols.items[i + 1].begin : UINT64_MAX;
        symbol->size = MIN(symbol->size, next - symbol->begin);
        if (!symbol->size)
            continue;
        if (needs_section(file, last, symbol)) {
            begin_text(file, symbol);
            if (!text_moves_append(&file->moves, symbol->moved))
                file->code.no_memory = true;
        }
        if (file->code.no_memory)
            return;
        struct elf_writer_section *text = &file->sections.items[file->sections.count - 1];
        uint64_t size = symbol->begin + symbol->size - text->address;
        file->code_size = add_saturated(file->code_size, size - text->size);
        text->size = size;
        put_symbol(file, symbol, (unsigned)file->sections.count);
        last = symbol;
    }
}

static void add_symbol_table(struct code_file *file)
{
    bool wide = file->code.session->resolver.target->descriptor_info.pointer_size == 8;
    size_t size = wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    uint32_t strings = (uint32_t)file->sections.count + 2;
    add_section(file, (struct elf_writer_section){
                          .name = ".symtab",
                          .type = SHT_SYMTAB,
                          .size = file->symbol_table.length,
                          .align = 8,
                          .entry_size = size,
                          .link = strings,
                          .info = (uint32_t)(file->symbol_table.length / size), /* all are local */
                          .bytes = file->symbol_table.data,
                      });
    add_section(file, (struct elf_writer_section){.name = ".strtab",
                                                  .type = SHT_STRTAB,
                                                  .size = file->code.strings.length,
                                                  .align = 1,
                                                  .bytes = file->code.strings.data});
}

/* ---- Writing ---- */

/* Code as the target has it now, with zeros for what is missing. */
static void read_code_now(struct reader *reader, uint64_t address, uint8_t *buffer, size_t size)
{
    memset(buffer, 0, size);
    reader_begin_last(reader, FUEL_LOOKUP);
    if (reader_try_copy(reader, address, buffer, size))
        return;
    memset(buffer, 0, size);
    for (size_t at = 0; at < size;) {
        size_t count = (size_t)MIN((uint64_t)(size - at), PAGE_SIZE - (address + at) % PAGE_SIZE);
        if (!reader_try_copy(reader, address + at, buffer + at, count))
            memset(buffer + at, 0, count);
        at += count;
    }
}

/* Of a running process, stubs and what is between methods are as they are now. */
static void read_code(void *context, size_t section, uint64_t offset, void *buffer, size_t size)
{
    struct code_file *file = context;
    uint64_t address = file->sections.items[section].address + offset - file->moves.items[section];
    read_code_now(&file->code.session->resolver.reader, address, buffer, size);
    kept_code_copy(&file->code.kept, address, buffer, size);
}

static bool write_bytes(void *context, const void *bytes, size_t size)
{
    struct code_file *file = context;
    if (file->code.sink.write(bytes, size, file->code.sink.context))
        file->code.stopped = true;
    else
        file->code.written.bytes += size;
    return !file->code.stopped;
}

/*
 * An .eh_frame_hdr without entries. perf 6.1 reads no .debug_frame on x86-64, and an index with entries only in the
 * mapped part of the file, which is code (find_proc_info in tools/perf/util/unwind-libunwind-local.c). Where an index
 * has no entry for an address, libunwind goes on by the frame pointer; without any index it gives up.
 */
static void add_empty_index(struct code_file *file)
{
    static const uint8_t omitted[] = {1, 0xff, 0x03, 0x3b}; /* version; encodings: none, 4 bytes, 4 bytes relative */
    enum { READ = 20 };                                     /* bytes that perf reads */
    put_bytes(&file->frame_index, omitted, sizeof omitted);
    while (file->frame_index.length < READ && !file->frame_index.broken)
        put_u32(&file->frame_index, 0);
    add_bytes(file, ".eh_frame_hdr", &file->frame_index, 4);
}

static uint16_t machine_of(const struct cdacq_target *target)
{
    return (uint16_t)(target->memory->elf_machine ? target->memory->elf_machine
                                                  : architecture_elf_machine(target->layout.architecture));
}

static enum cdacq_status gather(struct code_file *file, struct cdacq_error *err)
{
    enum cdacq_status status = elf_code_visit(&file->code, err);
    file->cut = listing_is_part(status) && file->code.symbols.count && !file->code.path ? status : CDACQ_OK;
    if ((status < 0 && !file->cut) || file->code.stopped)
        return status;
    elf_code_sort(&file->code);
    add_texts(file);
    add_symbol_table(file);
    add_bytes(file, ".debug_frame", &file->code.debug_frame, 8);
    if (file->code.path)
        add_empty_index(file);
    bool formed = elf_debug_form(&file->code.debug);
    add_bytes(file, ".debug_info", &file->code.debug.info, 1);
    add_bytes(file, ".debug_abbrev", &file->code.debug.abbreviations, 1);
    add_bytes(file, ".debug_line", &file->code.debug.lines, 1);
    add_bytes(file, ".debug_aranges", &file->code.debug.address_ranges, 1);
    add_bytes(file, ".debug_ranges", &file->code.debug.ranges, 1);
    if (file->code.no_memory || file->code.debug.no_memory)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the ELF file");
    if (!formed || file->code.strings.broken || file->code.debug_frame.broken || file->symbol_table.broken ||
        file->sections.count > ELF_WRITER_SECTIONS_MAX || file->code.kept.size > ELF_CODE_MAX ||
        (file->code.flags & CDACQ_ELF_CODE && file->code_size > ELF_CODE_MAX))
        return error_set(err, CDACQ_ERR_FUEL, 0, "the target has more code than an ELF file of this kind can hold");
    const struct work *work = &file->code.session->resolver.target->memory->work;
    if (file->code.flags & CDACQ_ELF_CODE && !work_allows_code(work, file->code_size))
        return error_set(err, CDACQ_ERR_FUEL, 0,
                         "the bound on work, %" PRIu64 " steps, does not allow a file with %" PRIu64 " MiB of code",
                         work->steps_max, file->code_size >> 20);
    return CDACQ_OK;
}

static enum cdacq_status write_file(struct code_file *file, struct cdacq_error *err)
{
    const struct cdacq_target *target = file->code.session->resolver.target;
    uint8_t build_id[ELF_WRITER_BUILD_ID_SIZE];
    struct elf_writer_image image = {
        .wide = target->descriptor_info.pointer_size == 8,
        .big_endian = target->descriptor_info.big_endian,
        .type = ET_EXEC,
        .machine = machine_of(target),
        .addresses_are_offsets = file->code.path != NULL,
        .sections = file->sections.items,
        .section_count = file->sections.count,
        .read = read_code,
        .write = write_bytes,
        .context = file,
    };
    if (elf_writer_write(&image, build_id))
        return CDACQ_OK;
    return file->code.stopped ? CDACQ_STOPPED : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the ELF file");
}

static void deinit(struct code_file *file)
{
    elf_code_deinit(&file->code);
    text_moves_deinit(&file->moves);
    elf_sections_deinit(&file->sections);
    byte_writer_deinit(&file->symbol_table);
    byte_writer_deinit(&file->frame_index);
}

static enum cdacq_status write_elf(struct cdacq_session *session, const char *path, unsigned flags,
                                   const struct cdacq_sink *sink, struct cdacq_written *ret, struct cdacq_error *err)
{
    struct code_file file = {.symbol_table.big_endian = session->resolver.target->descriptor_info.big_endian};
    elf_code_init(&file.code, session, path, flags);
    enum cdacq_status status = sized_check(ret, "struct cdacq_written", err);
    if (status >= 0)
        status = error_check_flags(flags, VISIT_FLAGS | CDACQ_ELF_CODE, err);
    if (sized_check(sink, "struct cdacq_sink", NULL) >= 0)
        sized_copy(&file.code.sink, sink, sink->size);
    if (status >= 0 && !file.code.sink.write)
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "an ELF file needs a sink that writes");
    if (status >= 0)
        file.code.map = resolver_begin_map(&session->resolver, &status, err);
    epoch_pin(&session->resolver.epoch); /* the map and the records have to stay until the file is written */
    if (status >= 0)
        status = gather(&file, err);
    if (status >= 0 && !file.code.stopped && (file.code.symbols.count || !path))
        status = write_file(&file, err);
    epoch_unpin(&session->resolver.epoch);
    if (status >= 0) {
        file.code.written.functions = file.code.frames.functions;
        file.code.written.functions_left_out = file.code.frames.left_out;
        file.code.written.without_epilogs = file.code.frames.without_epilogs;
        sized_copy(ret, &file.code.written, sizeof file.code.written);
        status = file.code.stopped ? CDACQ_STOPPED : file.cut;
    }
    deinit(&file);
    return status;
}

enum cdacq_status cdacq_session_write_elf(struct cdacq_session *session, unsigned flags, const struct cdacq_sink *sink,
                                          struct cdacq_written *ret, struct cdacq_error *err)
{
    return write_elf(session, NULL, flags, sink, ret, err);
}

enum cdacq_status cdacq_session_write_elf_of_file(struct cdacq_session *session, const char *path, unsigned flags,
                                                  const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                  struct cdacq_error *err)
{
    return path ? write_elf(session, path, flags, sink, ret, err)
                : error_set(err, CDACQ_ERR_ARGUMENT, 0, "an ELF file of a mapped file needs its path");
}
