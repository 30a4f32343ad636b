/*
 * elf_file.c: writes an ELF file of a target's managed code: of all, or of that in the mappings of one file. The
 * methods are visited once; what the sections hold is formed in memory, except for code, which is read when it is
 * written. Of a running process, code and call-frame information are read when a method is visited, and it is then
 * confirmed that the method is still there: later, there may be another one.
 */
#include <elf.h>
#include <stdio.h>

#include "formats/dwarf_frame_writer.h"
#include "formats/elf_writer.h"
#include "src/api/listing.h"
#include "src/api/session.h"
#include "src/perf/elf_debug.h"
#include "src/perf/kept_code.h"
#include "src/perf/method_frames.h"
#include "src/perf/sink.h"
#include "util/sized.h"
#include "util/vector.h"

enum {
    TRIES = 4,                     /* of reading a method that a running process may free */
    GAP_MAX = 64 * 1024,           /* bytes without symbols in a section that holds code */
    CODE_MAX = 2000 * 1024 * 1024, /* bytes of all sections that hold code */
    VISIT_FLAGS = CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL | CDACQ_VISIT_R2R_NONE,
};

/* A symbol. Addresses here and in sections are those of the ELF file. */
struct code_symbol {
    uint64_t begin, size;
    uint64_t moved; /* from the target's address */
    uint32_t name;  /* offset in .strtab */
    uint32_t range; /* index of its code range */
};

DEFINE_VECTOR(code_symbols, struct code_symbol);
DEFINE_VECTOR(elf_sections, struct elf_writer_section);
DEFINE_VECTOR(text_moves, uint64_t);

struct code_file {
    struct cdacq_session *session;
    struct cdacq_sink sink;
    unsigned flags;
    const char *path; /* only code in the mappings of this file; NULL: all */
    const struct code_map *map;
    struct code_symbols symbols;
    struct byte_writer strings, symbol_table, debug_frame, frame_index;
    struct method_frames frames;
    struct dwarf_frame_writer frame_writer;
    struct elf_debug debug;
    struct elf_sections sections; /* those of the code come first */
    struct text_moves moves;      /* of the sections of the code, as code_symbol.moved */
    struct kept_code kept;        /* of a running process: of its methods */
    struct cdacq_written written;
    uint64_t code_size; /* of the sections of the code */
    bool stopped, no_memory;
    enum cdacq_status cut; /* a bound was reached, or the process has ended: what was found until then is written */
};

static void leave_out(struct code_file *file, const struct cdacq_method *method, const char *why)
{
    if (!sink_leave_out(&file->sink, &file->written, method, method->code_start, method->code_size, why))
        file->stopped = true;
}

/* ---- Symbols ---- */

static void add_string(struct code_file *file, const char *name, size_t length, const char *suffix, uint32_t *ret)
{
    *ret = (uint32_t)file->strings.length;
    put_bytes(&file->strings, name, length);
    put_string(&file->strings, suffix, strlen(suffix));
}

/*
 * Finds how far code at an address is moved in the file. False if it is not in the file. The mapping is not kept: those
 * of a running process are listed again when what was read of it does not hold.
 */
static bool find_place(const struct code_file *file, uint64_t address, uint64_t *ret_moved)
{
    *ret_moved = 0;
    if (!file->path)
        return true;
    const struct mapping *mapping = target_mapping_at(file->session->target->target, address);
    if (!mapping || !mapping->path || strcmp(mapping->path, file->path) != 0)
        return false;
    *ret_moved = mapping->offset - mapping->begin;
    return true;
}

/* Adds [begin, end), addresses of the target, which is clipped to the code range that it begins in. */
static void add_symbol(struct code_file *file, uint64_t begin, uint64_t end, uint32_t name)
{
    const struct code_range *range = code_map_range(file->map, begin);
    uint64_t moved;
    if (!range || end <= begin || !find_place(file, begin, &moved))
        return;
    struct code_symbol symbol = {
        .begin = begin + moved,
        .size = MIN(end, range->section.end) - begin,
        .moved = moved,
        .name = name,
        .range = (uint32_t)(range - file->map->ranges),
    };
    /* perf asks addr2line for "," to see where an answer ends, and waits for ever if there is code at 0. */
    if (file->path && !symbol.begin) {
        symbol.begin++;
        symbol.size--;
    }
    if (symbol.size && !code_symbols_append(&file->symbols, symbol))
        file->no_memory = true;
}

/* A hot or cold part of a method. */
struct method_part {
    const struct cdacq_method *method;
    const struct method_record *hot, *own; /* of the hot part, and of this part; NULL: it cannot be read */
    uint64_t begin, size;                  /* addresses of the target */
    uint64_t offset;                       /* within the method's code, whose cold part follows its hot part */
    struct window code;                    /* of a running process, until it is kept; or empty */
};

/* Adds [begin, end) of a part: the body or a funclet. `name` is that of its symbol, which ends with the suffix. */
static void add_piece(struct code_file *file, const struct method_part *part, uint64_t begin, uint64_t end,
                      uint32_t name, const char *suffix)
{
    uint64_t moved;
    if (end <= begin || !find_place(file, begin, &moved))
        return;
    add_symbol(file, begin, end, name);
    struct debug_piece piece = {
        .begin = begin + moved,
        .size = end - begin,
        .offset = part->offset + (begin - part->begin),
        .suffix = suffix,
    };
    elf_debug_add(&file->debug, part->method, part->hot, &piece);
}

/* Adds a part with its funclets, which follow the body. */
static void add_part(struct code_file *file, const struct method_part *part)
{
    const struct cdacq_method *method = part->method;
    uint64_t end = part->begin + part->size, start = part->begin;
    uint32_t name, funclet_name = 0;
    bool named = !file->path; /* profilers count the pieces of a method together */
    const char *suffix = named && part->offset ? " [cold]" : "", *funclet_suffix = named ? " [funclet]" : "";
    add_string(file, method->name, method->name_length, suffix, &name);
    for (uint32_t i = 0; part->own && i < part->own->function_count; i++) {
        const struct method_function *function = &part->own->functions[i];
        uint64_t at = part->own->unwind_base + function->begin;
        bool is_funclet = function->funclet == function->begin && at != method->code_start;
        if (!is_funclet || at < start || at >= end)
            continue;
        add_piece(file, part, start, at, name, suffix);
        if (!funclet_name)
            add_string(file, method->name, method->name_length, funclet_suffix, &funclet_name);
        name = funclet_name;
        suffix = funclet_suffix;
        start = at;
    }
    add_piece(file, part, start, end, name, suffix);
}

/* ---- Methods ---- */

static void add_frames(const struct unwind_function *function, const struct frame_rows *rows, void *context)
{
    struct code_file *file = context;
    if (find_place(file, function->begin, &file->frame_writer.moved))
        dwarf_frame_add(&file->frame_writer, function->begin, function->end, rows->items, rows->count);
}

/* What the file has before a method is read. */
struct frames_mark {
    size_t length;
    uint64_t functions, left_out, without_epilogs;
};

static struct frames_mark mark_frames(const struct code_file *file)
{
    const struct method_frames *frames = &file->frames;
    return (struct frames_mark){file->debug_frame.length, frames->functions, frames->left_out, frames->without_epilogs};
}

static void take_frames_back(struct code_file *file, const struct frames_mark *mark)
{
    file->debug_frame.length = mark->length;
    file->frames.functions = mark->functions;
    file->frames.left_out = mark->left_out;
    file->frames.without_epilogs = mark->without_epilogs;
}

/* Whether code is copied when its method is visited. */
static bool keeps_code(const struct code_file *file)
{
    return file->flags & CDACQ_ELF_CODE && session_is_running(file->session);
}

/* The hot part of a method, and its cold part if there is one: `count` says so. */
struct method_parts {
    struct method_part items[2];
    unsigned count;
};

static void release_code(struct method_parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++)
        window_deinit(&parts->items[i].code);
}

/* Reads what the file has of a part besides its symbols. */
static bool read_part(struct code_file *file, struct method_part *part, struct cdacq_error *err)
{
    struct reader *reader = &file->session->reader.raw;
    struct code_block block;
    if (method_block(file->session, part->begin, &block))
        method_frames_visit(&file->frames, &block, add_frames, file);
    else
        file->frames.left_out++;
    if (!keeps_code(file))
        return true;
    reader_begin(reader, FUEL_LOOKUP);
    return reader_window(reader, part->begin, part->size, "code", &part->code) || reader_status(reader, err) >= 0;
}

static bool read_parts(struct code_file *file, struct method_parts *parts, struct cdacq_error *err)
{
    bool is_read = true;
    for (unsigned i = 0; i < parts->count && is_read; i++)
        is_read = read_part(file, &parts->items[i], err);
    return is_read;
}

static bool keep_code(struct code_file *file, const struct method_parts *parts, struct cdacq_error *err)
{
    struct work *work = &file->session->target->target->work;
    for (unsigned i = 0; i < parts->count && keeps_code(file); i++) {
        const struct method_part *part = &parts->items[i];
        if (!kept_code_add(&file->kept, work, part->begin, part->code.bytes, part->code.size)) {
            error_set(err, CDACQ_ERR_NOMEM, part->begin, "no memory for its code");
            return false;
        }
    }
    return true;
}

/* Whether a method that could not be confirmed is there no more, and otherwise why it could not. */
static bool was_freed(struct code_file *file, const struct cdacq_method *method, struct cdacq_error *err)
{
    struct cdacq_method now;
    session_answer(file->session, method->code_start, &now);
    error_set(err, CDACQ_ERR_CHANGED, method->code_start, "%s",
              now.answer == CDACQ_ANSWER_ERROR ? now.error : cdacq_status_text(CDACQ_ERR_CHANGED));
    return now.answer != CDACQ_ANSWER_ERROR &&
           (now.answer != CDACQ_ANSWER_MANAGED || now.code_start != method->code_start || now.name != method->name ||
            now.method_desc != method->method_desc);
}

/*
 * Reads a method. If a running process changes it meanwhile, it is read again, and left out if that is in vain. Nothing
 * is said of a method that the process has freed: a listing does not have it either.
 */
static bool read_method(struct code_file *file, const struct cdacq_method *method, struct method_parts *parts)
{
    struct cdacq_session *session = file->session;
    const struct frames_mark mark = mark_frames(file);
    struct cdacq_error error;
    bool is_read = false, is_confirmed = !session_is_running(session);
    if (is_confirmed)
        return read_parts(file, parts, &error);
    session_clear_log(session);
    for (unsigned tries = 0; tries < TRIES && !is_confirmed; tries++) {
        is_read = read_parts(file, parts, &error);
        is_confirmed = session_confirms(session, method);
        if (is_confirmed)
            is_read = is_read && keep_code(file, parts, &error);
        else
            session_read_anew(session);
        release_code(parts);
        if (!is_confirmed || !is_read)
            take_frames_back(file, &mark);
    }
    if (is_confirmed ? !is_read : !was_freed(file, method, &error))
        leave_out(file, method, error.message);
    return is_confirmed && is_read;
}

static void add_method(struct code_file *file, const struct cdacq_method *method)
{
    static const char unnamed[] = "[unnamed method]";
    struct cdacq_method named = *method;
    uint64_t moved;
    if (!find_place(file, method->code_start, &moved) &&
        !(method->cold_start && find_place(file, method->cold_start, &moved)))
        return;
    const struct method_record *hot = method_record_at(file->session, method->code_start, true);
    struct method_parts parts = {.count = method->cold_start ? 2 : 1};
    parts.items[0] = (struct method_part){
        .method = &named, .hot = hot, .own = hot, .begin = method->code_start, .size = method->code_size};
    if (method->cold_start)
        parts.items[1] = (struct method_part){.method = &named,
                                              .hot = hot,
                                              .own = method_record_at(file->session, method->cold_start, false),
                                              .begin = method->cold_start,
                                              .size = method->cold_size,
                                              .offset = method->code_size};
    if (!read_method(file, method, &parts))
        return;
    if (!method->name) {
        leave_out(file, method, method->error);
        named.name = unnamed;
        named.name_length = sizeof unnamed - 1;
    }
    file->written.methods++;
    file->written.unverified += !method->module_verified;
    for (unsigned i = 0; i < parts.count; i++)
        add_part(file, &parts.items[i]);
}

static void add_stubs(struct code_file *file, const struct cdacq_method *stub)
{
    char text[64];
    uint64_t moved;
    uint32_t name;
    if (!find_place(file, stub->code_start, &moved))
        return;
    snprintf(text, sizeof text, "stub <%s>", cdacq_code_kind_text(stub->kind));
    add_string(file, text, strlen(text), "", &name);
    add_symbol(file, stub->code_start, add_saturated(stub->code_start, stub->code_size), name);
    file->written.stubs++;
}

/* Whether something is to be said of code that cannot be read: not if it is in another file, or in none. */
static bool concerns_file(const struct code_file *file, const struct cdacq_method *method)
{
    uint64_t moved;
    return !method->code_start || find_place(file, method->code_start, &moved);
}

static int visit_code(const struct cdacq_method *method, void *context)
{
    struct code_file *file = context;
    sink_visit(&file->sink, method);
    if (method->answer == CDACQ_ANSWER_ERROR) {
        if (concerns_file(file, method))
            leave_out(file, method, method->error);
    } else if (method->answer == CDACQ_ANSWER_STUB) {
        add_stubs(file, method);
    } else if (method->kind == CDACQ_CODE_JITTED || method->kind == CDACQ_CODE_READY_TO_RUN) {
        add_method(file, method);
    }
    return file->stopped || file->no_memory || file->debug.no_memory || file->strings.broken ||
           file->debug_frame.broken || file->kept.size > CODE_MAX;
}

/* ---- Sections ---- */

static uint32_t add_section(struct code_file *file, struct elf_writer_section section)
{
    if (!elf_sections_append(&file->sections, section))
        file->no_memory = true;
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
    bool wide = file->session->target->descriptor_info.pointer_size == 8;
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

static int compare_symbols(const void *a, const void *b)
{
    const struct code_symbol *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
                                : (x->size > y->size) - (x->size < y->size);
}

/* Whether a symbol needs another section than the one before it: a code range has one, or few if they hold bytes. */
static bool needs_section(const struct code_file *file, const struct code_symbol *last,
                          const struct code_symbol *symbol)
{
    return !last || last->range != symbol->range || last->moved != symbol->moved ||
           (file->flags & CDACQ_ELF_CODE && symbol->begin - (last->begin + last->size) > GAP_MAX);
}

/* Begins the section that a symbol is in. */
static void begin_text(struct code_file *file, const struct code_symbol *symbol)
{
    const struct jit_manager_ops *manager = file->map->ranges[symbol->range].manager;
    add_section(file, (struct elf_writer_section){
                          .name = manager->compiles    ? ".text.jit"
                                  : manager->in_images ? ".text.r2r"
                                                       : ".text.stubs",
                          .type = file->flags & CDACQ_ELF_CODE ? SHT_PROGBITS : SHT_NOBITS,
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
    for (size_t i = 0; i < file->symbols.count && !file->no_memory; i++) {
        struct code_symbol *symbol = &file->symbols.items[i];
        uint64_t next = i + 1 < file->symbols.count ? file->symbols.items[i + 1].begin : UINT64_MAX;
        symbol->size = MIN(symbol->size, next - symbol->begin);
        if (!symbol->size)
            continue;
        if (needs_section(file, last, symbol)) {
            begin_text(file, symbol);
            if (!text_moves_append(&file->moves, symbol->moved))
                file->no_memory = true;
        }
        if (file->no_memory)
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
    bool wide = file->session->target->descriptor_info.pointer_size == 8;
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
                                                  .size = file->strings.length,
                                                  .align = 1,
                                                  .bytes = file->strings.data});
}

/* ---- Writing ---- */

/* Code as the target has it now, with zeros for what is missing. */
static void read_code_now(struct reader *reader, uint64_t address, uint8_t *buffer, size_t size)
{
    memset(buffer, 0, size);
    reader_begin(reader, FUEL_LOOKUP);
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
    read_code_now(&file->session->reader.raw, address, buffer, size);
    kept_code_copy(&file->kept, address, buffer, size);
}

static bool write_bytes(void *context, const void *bytes, size_t size)
{
    struct code_file *file = context;
    if (file->sink.write(bytes, size, file->sink.context))
        file->stopped = true;
    else
        file->written.bytes += size;
    return !file->stopped;
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
    return (uint16_t)(target->target->elf_machine ? target->target->elf_machine
                                                  : architecture_elf_machine(target->layout.architecture));
}

static enum cdacq_status gather(struct code_file *file, struct cdacq_error *err)
{
    struct cdacq_session *session = file->session;
    put_u8(&file->strings, 0);
    if (file->frame_writer.machine)
        dwarf_frame_begin(&file->frame_writer);
    enum cdacq_status status = cdacq_session_visit_methods(session, file->flags & VISIT_FLAGS, visit_code, file, err);
    file->cut = listing_is_part(status) && file->symbols.count && !file->path ? status : CDACQ_OK;
    if ((status < 0 && !file->cut) || file->stopped)
        return status;
    kept_code_sort(&file->kept);
    if (file->symbols.count)
        qsort(file->symbols.items, file->symbols.count, sizeof *file->symbols.items, compare_symbols);
    add_texts(file);
    add_symbol_table(file);
    add_bytes(file, ".debug_frame", &file->debug_frame, 8);
    if (file->path)
        add_empty_index(file);
    bool formed = elf_debug_form(&file->debug);
    add_bytes(file, ".debug_info", &file->debug.info, 1);
    add_bytes(file, ".debug_abbrev", &file->debug.abbreviations, 1);
    add_bytes(file, ".debug_line", &file->debug.lines, 1);
    add_bytes(file, ".debug_aranges", &file->debug.address_ranges, 1);
    add_bytes(file, ".debug_ranges", &file->debug.ranges, 1);
    if (file->no_memory || file->debug.no_memory)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the ELF file");
    if (!formed || file->strings.broken || file->debug_frame.broken || file->symbol_table.broken ||
        file->sections.count > ELF_WRITER_SECTIONS_MAX || file->kept.size > CODE_MAX ||
        (file->flags & CDACQ_ELF_CODE && file->code_size > CODE_MAX))
        return error_set(err, CDACQ_ERR_FUEL, 0, "the target has more code than an ELF file of this kind can hold");
    return CDACQ_OK;
}

static enum cdacq_status write_file(struct code_file *file, struct cdacq_error *err)
{
    const struct cdacq_target *target = file->session->target;
    uint8_t build_id[ELF_WRITER_BUILD_ID_SIZE];
    struct elf_writer_image image = {
        .wide = target->descriptor_info.pointer_size == 8,
        .big_endian = target->descriptor_info.big_endian,
        .type = ET_EXEC,
        .machine = machine_of(target),
        .addresses_are_offsets = file->path != NULL,
        .sections = file->sections.items,
        .section_count = file->sections.count,
        .read = read_code,
        .write = write_bytes,
        .context = file,
    };
    if (elf_writer_write(&image, build_id))
        return CDACQ_OK;
    return file->stopped ? CDACQ_STOPPED : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the ELF file");
}

static void init(struct code_file *file, struct cdacq_session *session, unsigned flags)
{
    bool big = session->target->descriptor_info.big_endian;
    *file = (struct code_file){.session = session, .flags = flags, .sink.size = sizeof file->sink};
    file->strings.big_endian = file->symbol_table.big_endian = file->debug_frame.big_endian = big;
    method_frames_init(&file->frames, session);
    file->frame_writer = (struct dwarf_frame_writer){
        .to = &file->debug_frame,
        .machine = method_frames_machine(&file->frames),
        .word_size = session->target->descriptor_info.pointer_size,
    };
    const struct frame_machine *machine = file->frame_writer.machine;
    elf_debug_init(&file->debug, session->target, machine ? machine->code_factor : 1);
}

static void deinit(struct code_file *file)
{
    text_moves_deinit(&file->moves);
    code_symbols_deinit(&file->symbols);
    elf_sections_deinit(&file->sections);
    byte_writer_deinit(&file->strings);
    byte_writer_deinit(&file->symbol_table);
    byte_writer_deinit(&file->debug_frame);
    byte_writer_deinit(&file->frame_index);
    method_frames_deinit(&file->frames);
    kept_code_deinit(&file->kept, &file->session->target->target->work);
    elf_debug_deinit(&file->debug);
}

static enum cdacq_status write_elf(struct cdacq_session *session, const char *path, unsigned flags,
                                   const struct cdacq_sink *sink, struct cdacq_written *ret, struct cdacq_error *err)
{
    struct code_file file;
    init(&file, session, flags);
    file.path = path;
    enum cdacq_status status = sized_check(ret, "struct cdacq_written", err);
    if (sized_check(sink, "struct cdacq_sink", NULL) >= 0)
        sized_copy(&file.sink, sink, sink->size);
    if (status >= 0 && !file.sink.write)
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "an ELF file needs a sink that writes");
    if (status >= 0)
        file.map = session_question_map(session, &status, err);
    session->visits++; /* the map and the records have to stay until the file is written */
    if (status >= 0)
        status = gather(&file, err);
    if (status >= 0 && !file.stopped && (file.symbols.count || !path))
        status = write_file(&file, err);
    session->visits--;
    if (status >= 0) {
        file.written.functions = file.frames.functions;
        file.written.functions_left_out = file.frames.left_out;
        file.written.without_epilogs = file.frames.without_epilogs;
        sized_copy(ret, &file.written, sizeof file.written);
        status = file.stopped ? CDACQ_STOPPED : file.cut;
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
