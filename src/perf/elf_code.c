#include "src/perf/elf_code.h"

#include <stdio.h>

#include "contracts/execution_manager/code_block.h"
#include "contracts/execution_manager/code_map.h"
#include "src/api/listing.h"
#include "src/lookup/answer.h"
#include "src/lookup/find.h"
#include "src/lookup/opened_target.h"
#include "target/mapped_file.h"
#include "util/error.h"

DEFINE_VECTOR_FUNCTIONS(code_symbols, struct code_symbol);

enum {
    TRIES = 4,           /* of reading a method that a running process may free */
    SIZE_OF_PIECE = 256, /* bytes in sections and tables, about */
};

static void leave_out(struct elf_code *code, const struct cdacq_method *method, const char *why)
{
    if (!sink_leave_out(&code->sink, &code->written, method, method->code_start, method->code_size, why))
        code->stopped = true;
}

/* ---- Symbols ---- */

/* Adds the name of a symbol. It is kept in two sections, beside what they have of each piece of code. */
static void add_string(struct elf_code *code, const char *name, size_t length, const char *suffix, uint32_t *ret)
{
    uint64_t size = 2 * length + SIZE_OF_PIECE;
    if (work_take_memory(&code->session->resolver.target->memory->work, size)) /* otherwise, the listing ends */
        code->kept_names += size;
    *ret = (uint32_t)code->strings.length;
    put_bytes(&code->strings, name, length);
    put_string(&code->strings, suffix, strlen(suffix));
}

/*
 * Finds how far code at an address is moved in the file. False if it is not in the file. The mapping is not kept: those
 * of a running process are listed again when what was read of it does not hold.
 */
static bool find_place(const struct elf_code *code, uint64_t address, uint64_t *ret_moved)
{
    *ret_moved = 0;
    if (!code->path)
        return true;
    const struct mapping *mapping = target_mapping_at(code->session->resolver.target->memory, address);
    if (!mapping || !mapping->path || strcmp(mapped_file_name(mapping), code->path) != 0)
        return false;
    *ret_moved = mapping->offset - mapping->begin;
    return true;
}

/* Adds [begin, end), addresses of the target, which is clipped to the code range that it begins in. */
static void add_symbol(struct elf_code *code, uint64_t begin, uint64_t end, uint32_t name)
{
    const struct code_range *range = code_map_range(code->map, begin);
    uint64_t moved;
    if (!range || end <= begin || !find_place(code, begin, &moved))
        return;
    struct code_symbol symbol = {
        .begin = begin + moved,
        .size = MIN(end, range->section.end) - begin,
        .moved = moved,
        .name = name,
        .range = (uint32_t)(range - code->map->ranges),
    };
    /* perf asks addr2line for "," to see where an answer ends, and waits for ever if there is code at 0. */
    if (code->path && !symbol.begin) {
        symbol.begin++;
        symbol.size--;
    }
    if (symbol.size && !code_symbols_append(&code->symbols, symbol))
        code->no_memory = true;
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
static void add_piece(struct elf_code *code, const struct method_part *part, uint64_t begin, uint64_t end,
                      uint32_t name, const char *suffix)
{
    uint64_t moved;
    if (end <= begin || !find_place(code, begin, &moved))
        return;
    add_symbol(code, begin, end, name);
    struct debug_piece piece = {
        .begin = begin + moved,
        .size = end - begin,
        .offset = part->offset + (begin - part->begin),
        .suffix = suffix,
    };
    elf_debug_add(&code->debug, part->method, part->hot, &piece);
}

/* Adds a part with its funclets, which follow the body. */
static void add_part(struct elf_code *code, const struct method_part *part)
{
    const struct cdacq_method *method = part->method;
    uint64_t end = part->begin + part->size, start = part->begin;
    uint32_t name, funclet_name = 0;
    bool named = !code->path; /* profilers count the pieces of a method together */
    const char *suffix = named && part->offset ? " [cold]" : "", *funclet_suffix = named ? " [funclet]" : "";
    add_string(code, method->name, method->name_length, suffix, &name);
    for (uint32_t i = 0; part->own && i < part->own->function_count; i++) {
        const struct method_function *function = &part->own->functions[i];
        uint64_t at = part->own->unwind_base + function->begin;
        bool is_funclet = function->funclet == function->begin && at != method->code_start;
        if (!is_funclet || at < start || at >= end)
            continue;
        add_piece(code, part, start, at, name, suffix);
        if (!funclet_name)
            add_string(code, method->name, method->name_length, funclet_suffix, &funclet_name);
        name = funclet_name;
        suffix = funclet_suffix;
        start = at;
    }
    add_piece(code, part, start, end, name, suffix);
}

/* ---- Methods ---- */

static void add_frames(const struct unwind_function *function, const struct frame_rows *rows, void *context)
{
    struct elf_code *code = context;
    if (find_place(code, function->begin, &code->frame_writer.moved))
        dwarf_frame_add(&code->frame_writer, function->begin, function->end, rows->items, rows->count);
}

/* What the file has before a method is read. */
struct frames_mark {
    size_t length;
    uint64_t functions, left_out, without_epilogs;
};

static struct frames_mark mark_frames(const struct elf_code *code)
{
    const struct method_frames *frames = &code->frames;
    return (struct frames_mark){code->debug_frame.length, frames->functions, frames->left_out, frames->without_epilogs};
}

static void take_frames_back(struct elf_code *code, const struct frames_mark *mark)
{
    code->debug_frame.length = mark->length;
    code->frames.functions = mark->functions;
    code->frames.left_out = mark->left_out;
    code->frames.without_epilogs = mark->without_epilogs;
}

/* Whether code is copied when its method is visited. */
static bool keeps_code(const struct elf_code *code)
{
    return code->flags & CDACQ_ELF_CODE && resolver_is_running(&code->session->resolver);
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
static bool read_part(struct elf_code *code, struct method_part *part, struct cdacq_error *err)
{
    struct reader *reader = &code->session->resolver.reader;
    struct code_block block;
    if (method_block(code->session, part->begin, &block))
        method_frames_visit(&code->frames, &block, add_frames, code);
    else
        code->frames.left_out++;
    if (!keeps_code(code))
        return true;
    reader_begin(reader, FUEL_LOOKUP);
    return reader_window(reader, part->begin, part->size, "code", &part->code) || reader_status(reader, err) >= 0;
}

static bool read_parts(struct elf_code *code, struct method_parts *parts, struct cdacq_error *err)
{
    bool is_read = true;
    for (unsigned i = 0; i < parts->count && is_read; i++)
        is_read = read_part(code, &parts->items[i], err);
    return is_read;
}

static bool keep_code(struct elf_code *code, const struct method_parts *parts, struct cdacq_error *err)
{
    struct work *work = &code->session->resolver.target->memory->work;
    for (unsigned i = 0; i < parts->count && keeps_code(code); i++) {
        const struct method_part *part = &parts->items[i];
        if (!kept_code_add(&code->kept, work, part->begin, part->code.bytes, part->code.size)) {
            error_set(err, CDACQ_ERR_NOMEM, part->begin, "no memory for its code");
            return false;
        }
    }
    return true;
}

/* Whether a method that could not be confirmed is there no more, and otherwise why it could not. */
static bool was_freed(struct elf_code *code, const struct cdacq_method *method, struct cdacq_error *err)
{
    struct cdacq_method now;
    answer_find(&code->session->resolver, method->code_start, &now);
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
static bool read_method(struct elf_code *code, const struct cdacq_method *method, struct method_parts *parts)
{
    struct cdacq_session *session = code->session;
    const struct frames_mark mark = mark_frames(code);
    struct cdacq_error error;
    bool is_read = false, is_confirmed = !resolver_is_running(&session->resolver);
    if (is_confirmed)
        return read_parts(code, parts, &error);
    epoch_watch(&session->resolver.epoch);
    for (unsigned tries = 0; tries < TRIES && !is_confirmed; tries++) {
        is_read = read_parts(code, parts, &error);
        is_confirmed = resolver_confirms(&session->resolver, method);
        if (is_confirmed)
            is_read = is_read && keep_code(code, parts, &error);
        else
            epoch_read_anew(&session->resolver.epoch);
        release_code(parts);
        if (!is_confirmed || !is_read)
            take_frames_back(code, &mark);
    }
    if (is_confirmed ? !is_read : !was_freed(code, method, &error))
        leave_out(code, method, error.message);
    return is_confirmed && is_read;
}

static void add_method(struct elf_code *code, const struct cdacq_method *method)
{
    static const char unnamed[] = "[unnamed method]";
    struct cdacq_method named = *method;
    uint64_t moved;
    if (!find_place(code, method->code_start, &moved) &&
        !(method->cold_start && find_place(code, method->cold_start, &moved)))
        return;
    const struct method_record *hot = method_record_at(code->session, method->code_start, true);
    struct method_parts parts = {.count = method->cold_start ? 2 : 1};
    parts.items[0] = (struct method_part){
        .method = &named, .hot = hot, .own = hot, .begin = method->code_start, .size = method->code_size};
    if (method->cold_start)
        parts.items[1] = (struct method_part){.method = &named,
                                              .hot = hot,
                                              .own = method_record_at(code->session, method->cold_start, false),
                                              .begin = method->cold_start,
                                              .size = method->cold_size,
                                              .offset = method->code_size};
    if (!read_method(code, method, &parts))
        return;
    if (!method->name) {
        leave_out(code, method, method->error);
        named.name = unnamed;
        named.name_length = sizeof unnamed - 1;
    }
    code->written.methods++;
    code->written.unverified += !method->module_verified;
    for (unsigned i = 0; i < parts.count; i++)
        add_part(code, &parts.items[i]);
}

static void add_stubs(struct elf_code *code, const struct cdacq_method *stub)
{
    char text[64];
    uint64_t moved;
    uint32_t name;
    if (!find_place(code, stub->code_start, &moved))
        return;
    snprintf(text, sizeof text, "stub <%s>", cdacq_code_kind_text(stub->kind));
    add_string(code, text, strlen(text), "", &name);
    add_symbol(code, stub->code_start, add_saturated(stub->code_start, stub->code_size), name);
    code->written.stubs++;
}

/* Whether something is to be said of code that cannot be read: not if it is in another file, or in none. */
static bool concerns_file(const struct elf_code *code, const struct cdacq_method *method)
{
    uint64_t moved;
    return !method->code_start || find_place(code, method->code_start, &moved);
}

static int visit_code(const struct cdacq_method *method, void *context)
{
    struct elf_code *code = context;
    sink_visit(&code->sink, method);
    if (method->answer == CDACQ_ANSWER_ERROR) {
        if (concerns_file(code, method))
            leave_out(code, method, method->error);
    } else if (method->answer == CDACQ_ANSWER_STUB) {
        add_stubs(code, method);
    } else if (method->kind == CDACQ_CODE_JITTED || method->kind == CDACQ_CODE_READY_TO_RUN) {
        add_method(code, method);
    }
    return code->stopped || code->no_memory || code->debug.no_memory || code->strings.broken ||
           code->debug_frame.broken || code->kept.size > ELF_CODE_MAX;
}

/* ---- The visit ---- */

void elf_code_init(struct elf_code *code, struct cdacq_session *session, const char *path, unsigned flags)
{
    bool big = session->resolver.target->descriptor_info.big_endian;
    *code = (struct elf_code){.session = session, .path = path, .flags = flags, .sink.size = sizeof code->sink};
    code->strings.big_endian = code->debug_frame.big_endian = big;
    method_frames_init(&code->frames, session);
    code->frame_writer = (struct dwarf_frame_writer){
        .to = &code->debug_frame,
        .machine = method_frames_machine(&code->frames),
        .word_size = session->resolver.target->descriptor_info.pointer_size,
    };
    const struct frame_machine *machine = code->frame_writer.machine;
    elf_debug_init(&code->debug, session->resolver.target, machine ? machine->code_factor : 1);
}

void elf_code_deinit(struct elf_code *code)
{
    code_symbols_deinit(&code->symbols);
    byte_writer_deinit(&code->strings);
    byte_writer_deinit(&code->debug_frame);
    method_frames_deinit(&code->frames);
    kept_code_deinit(&code->kept, &code->session->resolver.target->memory->work);
    work_return_memory(&code->session->resolver.target->memory->work, code->kept_names);
    elf_debug_deinit(&code->debug);
}

enum cdacq_status elf_code_visit(struct elf_code *code, struct cdacq_error *err)
{
    put_u8(&code->strings, 0);
    if (code->frame_writer.machine)
        dwarf_frame_begin(&code->frame_writer);
    return cdacq_session_visit_methods(code->session, code->flags & VISIT_FLAGS, visit_code, code, err);
}

static int compare_symbols(const void *a, const void *b)
{
    const struct code_symbol *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
                                : (x->size > y->size) - (x->size < y->size);
}

void elf_code_sort(struct elf_code *code)
{
    kept_code_sort(&code->kept);
    if (code->symbols.count)
        qsort(code->symbols.items, code->symbols.count, sizeof *code->symbols.items, compare_symbols);
}
