#include "src/perf/jitdump_debug.h"

#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/resolver.h"
#include "src/perf/code_lines.h"

enum { DATA_MAX = 16 * 1024 * 1024 /* bytes of a record; more is left out */, UNWINDING_ALIGN = 8 };

DEFINE_VECTOR_FUNCTIONS(frame_entries, struct dwarf_frame_entry);

void jitdump_debug_init(struct jitdump_debug *debug, struct cdacq_session *session)
{
    bool big = session->resolver.target->descriptor_info.big_endian;
    *debug = (struct jitdump_debug){.entries.big_endian = big,
                                    .unwinding.big_endian = big,
                                    .code_offsets.big_endian = big,
                                    .positions.big_endian = big};
    method_frames_init(&debug->frames, session);
}

void jitdump_debug_deinit(struct jitdump_debug *debug)
{
    method_frames_deinit(&debug->frames);
    byte_writer_deinit(&debug->entries);
    byte_writer_deinit(&debug->unwinding);
    byte_writer_deinit(&debug->code_offsets);
    byte_writer_deinit(&debug->positions);
    byte_writer_deinit(&debug->strings);
    frame_entries_deinit(&debug->index);
}

static void put_samply_string(struct jitdump_debug *debug, const char *string, size_t length)
{
    put_string(&debug->strings, string, length);
    debug->string_count++;
}

/* The index of the string of a document's file. A method has one document, or a few. */
static uint32_t samply_file(struct jitdump_debug *debug, const struct source_document *document)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(debug->documents) && debug->documents[i]; i++)
        if (debug->documents[i] == document)
            return i + 1;
    if (debug->string_count <= ARRAY_SIZE(debug->documents))
        debug->documents[debug->string_count - 1] = document;
    put_samply_string(debug, document->file, strlen(document->file));
    return (uint32_t)debug->string_count - 1;
}

/* The first sequence point that is not hidden is where the function begins. String 0 is its name. */
static void put_samply_position(struct jitdump_debug *debug, const struct source_point *first,
                                const struct code_line *line)
{
    const struct source_point *point = line->point;
    const uint32_t no_caller = UINT32_MAX;
    bool has_first = first->document == point->document;
    const uint32_t fields[] = {no_caller,
                               0,
                               samply_file(debug, point->document),
                               has_first ? first->line : 0,
                               has_first ? first->column : 0u,
                               point->line,
                               point->column};
    put_u32(&debug->code_offsets, (uint32_t)line->at);
    put_u32(&debug->code_offsets, (uint32_t)debug->position_count++);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        put_u32(&debug->positions, fields[i]);
}

static uint64_t samply_size(const struct jitdump_debug *debug)
{
    return debug->code_offsets.length + debug->positions.length + debug->strings.length;
}

static void form_samply(struct jitdump_debug *debug, const struct cdacq_method *method,
                        const struct method_record *record, uint64_t size, uint64_t offset)
{
    const struct source_point *first = first_line_of(record), *last = NULL;
    struct code_lines lines;
    struct code_line line;
    if (!first)
        return;
    put_samply_string(debug, method->name ? method->name : "", method->name_length);
    code_lines_init(&lines, record, offset, size);
    while (code_lines_next(&lines, &line)) {
        if (!line.point || line.point == last || samply_size(debug) > DATA_MAX)
            continue;
        put_samply_position(debug, first, &line);
        last = line.point;
    }
}

/* Code that no line is known for belongs to the line before it: the format cannot say that there is none. */
static void form_entries(struct jitdump_debug *debug, const struct method_record *record, uint64_t begin, uint64_t size,
                         uint64_t offset)
{
    const struct source_point *last = NULL;
    struct code_lines lines;
    struct code_line line;
    code_lines_init(&lines, record, offset, size);
    while (code_lines_next(&lines, &line)) {
        const struct source_point *point = line.point;
        if (!point || (last && last->line == point->line && last->document == point->document) ||
            debug->entries.length > DATA_MAX)
            continue;
        put_u64(&debug->entries, begin + line.at);
        put_u32(&debug->entries, point->line);
        put_u32(&debug->entries, 0);
        put_string(&debug->entries, point->document->file, strlen(point->document->file));
        debug->entry_count++;
        last = point;
    }
}

static void add_function(const struct unwind_function *function, const struct frame_rows *rows, void *context)
{
    struct jitdump_debug *debug = context;
    size_t fde = dwarf_frame_add(&debug->writer, function->begin, function->end, rows->items, rows->count);
    if (!frame_entries_append(&debug->index, (struct dwarf_frame_entry){function->begin, fde}))
        debug->unwinding.broken = true;
}

/* Where perf puts it: .eh_frame follows the code, which begins at 0 here, and .eh_frame_hdr follows .eh_frame. */
static void form_unwinding(struct jitdump_debug *debug, const struct code_block *block, uint64_t begin, uint64_t size)
{
    struct byte_writer *to = &debug->unwinding;
    debug->index.count = 0;
    debug->writer = (struct dwarf_frame_writer){
        .to = to,
        .machine = method_frames_machine(&debug->frames),
        .word_size = debug->frames.session->resolver.target->descriptor_info.pointer_size,
        .is_eh_frame = true,
        .address = align_up(size, UNWINDING_ALIGN),
        .moved = -begin,
    };
    if (!debug->writer.machine)
        return;
    dwarf_frame_begin(&debug->writer);
    method_frames_visit(&debug->frames, block, add_function, debug);
    dwarf_frame_end(&debug->writer);
    size_t table = to->length;
    dwarf_frame_put_index(&debug->writer, to, debug->writer.address + table, debug->index.items, debug->index.count);
    debug->index_size = to->length - table;
    if (to->broken || !debug->index.count || to->length > DATA_MAX)
        to->length = 0;
}

void jitdump_debug_form(struct jitdump_debug *debug, const struct cdacq_method *method, uint64_t begin, uint64_t size)
{
    struct cdacq_session *session = debug->frames.session;
    const struct method_record *record = method_record_at(session, method->code_start, true);
    struct code_block block;
    debug->entries.length = debug->unwinding.length = 0;
    debug->code_offsets.length = debug->positions.length = debug->strings.length = 0;
    debug->entry_count = debug->index_size = 0;
    debug->position_count = debug->string_count = 0;
    memset(debug->documents, 0, sizeof debug->documents);
    uint64_t offset = begin == method->code_start ? 0 : method->code_size;
    bool has_lines = record && record->il_point_count && record->source_point_count;
    if (has_lines)
        form_entries(debug, record, begin, size, offset);
    if (debug->entries.broken)
        debug->entry_count = 0;
    if (has_lines && debug->with_samply)
        form_samply(debug, method, record, size, offset);
    if (debug->code_offsets.broken || debug->positions.broken || debug->strings.broken)
        debug->position_count = 0;
    if (method_block(session, begin, &block))
        form_unwinding(debug, &block, begin, size);
}
